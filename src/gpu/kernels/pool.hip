/* pool.hip: windows of planes: their maxima, their means, and the gradients of both. */
#include "planes.hip"
#include "pool.h"

struct range {
    i32 begin, end;
};
/* The part of window o that lies in the input. */
DEVICE range window_of(const pool_dim &d, i32 o)
{
    i32 start = o * d.stride - d.padding, end = start + d.kernel;
    return {start > 0 ? start : 0, end < d.in ? end : d.in};
}
/* The windows that element i is in. */
DEVICE range windows_over(const pool_dim &d, i32 i)
{
    i32 first = i + d.padding - d.kernel + 1, end = (i32)divide((u32)(i + d.padding), d.by_stride) + 1;
    first = first > 0 ? (i32)divide((u32)(first + d.stride - 1), d.by_stride) : 0;
    return {first, end < d.out ? end : d.out};
}
/* Elements of window o that count in a mean. */
DEVICE i32 counted(const pool_dim &d, i32 o, bool exclude_pad)
{
    range w = window_of(d, o);
    if (exclude_pad)
        return w.end - w.begin;
    i32 start = o * d.stride - d.padding, end = start + d.kernel, last = d.in + d.padding;
    return (end < last ? end : last) - start;
}

/* MAX 0: a sum; 1: the maximum so far and its place in the plane; 2: the maximum alone. */
template <class A, int MAX> struct fold {
    A value;
    u32 place;
    MEMBER void take(A v, u32 at, bool first_nan)
    {
        if (MAX == 2) {
            value = max_nan(value, v);
        } else if (MAX) {
            bool larger = v > value || (v != v && !(first_nan && value != value));
            value = larger ? v : value;
            place = larger ? at : place;
        } else {
            value += v;
        }
    }
    /* Another part of the same window. */
    MEMBER void join(A v, u32 at, bool first_nan)
    {
        if (MAX) {
            bool nan = v != v, had = value != value;
            bool larger = nan || had ? nan && (!had || (first_nan ? at < place : at > place))
                                     : v > value || (v == value && at < place);
            value = larger ? v : value;
            place = larger ? at : place;
        } else {
            value += v;
        }
    }
};

template <class T, int MAX>
DEVICE void store_result(const pool_args &a, u32 plane, i32 oh, i32 ow, const fold<acc<T>, MAX> &f)
{
    acc<T> v = f.value;
    u32 size = (u32)(a.h.out * a.w.out); /* of a plane */
    i64 at = a.walk.first * size + ((u64)plane * size + (u32)(oh * a.w.out + ow));
    if (!MAX && a.whole)
        v *= (acc<T>)a.share;
    else if (!MAX)
        v /= (acc<T>)counted(a.h, oh, a.exclude_pad) * (acc<T>)counted(a.w, ow, a.exclude_pad);
    if (a.y.p)
        ((T *)a.y.p)[at] = put<T>(v);
    if (MAX == 1 && a.indices.p)
        ((u32 *)a.indices.p)[at] = f.place;
}

/* Windows of K x K, or of any size where K is 0. Those that lie in the plane whole need no look at its edges. */
template <class T, int MAX, int K>
DEVICE fold<acc<T>, MAX> fold_window(const pool_args &a, const T *x, i32 oh, i32 ow)
{
    range rows = window_of(a.h, oh), cols = window_of(a.w, ow);
    fold<acc<T>, MAX> f = {MAX ? smallest<acc<T>>() : 0, (u32)(rows.begin * a.w.in + cols.begin)};
    if (K > 0 && rows.end - rows.begin == K && cols.end - cols.begin == K) {
        const T *from = x + rows.begin * a.x.row + cols.begin;
        T v[K ? K : 1][K ? K : 1];
        UNROLL
        for (int i = 0; i < K; i++)
            UNROLL
            for (int j = 0; j < K; j++)
                v[i][j] = from[i * a.x.row + j];
        UNROLL
        for (int i = 0; i < K; i++)
            UNROLL
            for (int j = 0; j < K; j++)
                f.take(get(v[i][j]), (u32)((rows.begin + i) * a.w.in + cols.begin + j), false);
        return f;
    }
    for (i32 r = rows.begin; r < rows.end; r++)
        for (i32 q = cols.begin; q < cols.end; q++)
            f.take(get(x[r * a.x.row + q]), (u32)(r * a.w.in + q), false);
    return f;
}

/* A thread takes a few windows below each other: neighbours in the wave are neighbours in the row. */
template <class T, int MAX, int K> DEVICE void pool_windows(const pool_args &a)
{
    for (u32 i = (u32)global_thread(); i < a.walk.items; i += (u32)global_threads()) {
        plane_item at(a.walk, i);
        i32 end = lesser(at.row + a.walk.rows, a.h.out);
        const T *x = plane_of<const T>(a.x, a.walk, at.plane);
        for (i32 oh = at.row; oh < end; oh++)
            store_result<T, MAX>(a, at.plane, oh, at.col, fold_window<T, MAX, K>(a, x, oh, at.col));
    }
}

/* A row of the plane as two neighbouring windows of K columns, two apart, see it: columns 4 * pair - PAD on. */
template <class T, int K> struct pair_row {
    pack<T, 4> four;
    T more; /* the column behind them, or with PAD the one before */
};

template <class T, int K, int PAD>
DEVICE pair_row<T, K> load_pair_row(const pool_args &a, const T *x, i32 row, i32 col, T none)
{
    pair_row<T, K> r = {{{none, none, none, none}}, none};
    i32 extra = PAD ? col - 1 : col + 4;
    if ((u32)row >= (u32)a.h.in)
        return r;
    if (col < a.w.in)
        r.four = load<4>(x + row * a.x.row + col);
    if (K == 3 && (u32)extra < (u32)a.w.in)
        r.more = x[row * a.x.row + extra];
    return r;
}

/* A row's part of both windows. */
template <class T, int MAX, int K, int PAD> DEVICE void take_pair_row(fold<acc<T>, MAX> *f, const pair_row<T, K> &r)
{
    acc<T> v[5] = {get(r.four.v[0]), get(r.four.v[1]), get(r.four.v[2]), get(r.four.v[3]), get(r.more)};
    UNROLL
    for (int w = 0; w < 2; w++) {
        UNROLL
        for (int k = 0; k < K; k++) {
            const int c = 2 * w + k - PAD;
            f[w].take(v[c < 0 ? 4 : c], 0, false);
        }
    }
}

/* K x K windows at stride 2, in rows that 4 columns divide: a thread takes two neighbours, and ROWS of such pairs below each
 * other, whose loads are on the way together. Maxima without places, and means of whole windows. */
template <class T, int MAX, int K, int PAD> DEVICE void pool_pairs(const pool_args &a)
{
    const int ROWS = WK_POOL_PAIRS, LINES = 2 * ROWS + K - 2;
    const T none = put<T>(MAX ? smallest<acc<T>>() : (acc<T>)0);
    for (u32 i = (u32)global_thread(); i < a.walk.items; i += (u32)global_threads()) {
        plane_item at(a.walk, i);
        const T *x = plane_of<const T>(a.x, a.walk, at.plane);
        T *y = (T *)a.y.p + (a.walk.first + at.plane) * a.h.out * a.w.out;
        pair_row<T, K> rows[LINES];
        UNROLL
        for (int r = 0; r < LINES; r++)
            rows[r] = load_pair_row<T, K, PAD>(a, x, at.row * 2 - PAD + r, at.col * 4, none);
        UNROLL
        for (int o = 0; o < ROWS; o++) {
            fold<acc<T>, MAX> f[2] = {{MAX ? smallest<acc<T>>() : 0, 0}, {MAX ? smallest<acc<T>>() : 0, 0}};
            UNROLL
            for (int r = 0; r < K; r++)
                take_pair_row<T, MAX, K, PAD>(f, rows[2 * o + r]);
            UNROLL
            for (int w = 0; w < 2; w++) {
                if (at.row + o < a.h.out && at.col * 2 + w < a.w.out)
                    y[(at.row + o) * a.w.out + at.col * 2 + w] = put<T>(MAX ? f[w].value : f[w].value / (acc<T>)(K * K));
            }
        }
    }
}

/* Large windows: each is folded by a wave, or by the whole block. */
template <class T, int MAX, int BLOCK> DEVICE void pool_wide(const pool_args &a)
{
    typedef acc<T> A;
    const u32 lanes = BLOCK ? 256 : WAVE, mine = BLOCK ? thread_id() : lane_id();
    const u32 each = BLOCK ? 1 : 256 / WAVE;
    SHARED A values[256 / WAVE];
    SHARED u32 places[256 / WAVE];
    for (u32 i = block_id() * each + (BLOCK ? 0 : wave_id()); i < a.walk.items; i += grid_blocks() * each) {
        plane_item at(a.walk, i);
        i32 top = at.row * a.h.stride - a.h.padding, left = at.col * a.w.stride - a.w.padding;
        const T *x = plane_of<const T>(a.x, a.walk, at.plane);
        u32 start = (u32)(window_of(a.h, at.row).begin * a.w.in + window_of(a.w, at.col).begin);
        fold<A, MAX> f = {MAX ? smallest<A>() : 0, start};
        for (u32 k = mine; k < (u32)a.h.kernel * a.kernel_w.d; k += lanes) {
            i32 row = (i32)divide(k, a.kernel_w), r = top + row, q = left + (i32)k - row * a.w.kernel;
            if ((u32)r < (u32)a.h.in && (u32)q < (u32)a.w.in)
                f.take(get(x[r * a.x.row + q]), (u32)(r * a.w.in + q), a.first_nan);
        }
        UNROLL
        for (u32 m = WAVE / 2; m; m /= 2)
            f.join(shuffle_xor(f.value, m), shuffle_xor(f.place, m), a.first_nan);
        if (BLOCK) {
            if (lane_id() == 0) {
                values[wave_id()] = f.value;
                places[wave_id()] = f.place;
            }
            barrier();
            f = {values[0], places[0]};
            for (u32 w = 1; w < 256 / WAVE; w++)
                f.join(values[w], places[w], a.first_nan);
            barrier();
        }
        if (mine == 0)
            store_result<T, MAX>(a, at.plane, at.row, at.col, f);
    }
}

/* ---- gradients: every element of dx gathers from the windows it is in ---- */

/* Says so when the index of window (oh, ow) is not in it; asked for by the window's first element. */
DEVICE void check_index(const pool_args &a, i32 oh, i32 ow, i32 ih, i32 iw, u32 index)
{
    range rows = window_of(a.h, oh), cols = window_of(a.w, ow);
    if (rows.begin != ih || cols.begin != iw || !index_ok(a.report, index, (i64)a.h.in * a.w.in))
        return;
    i32 r = (i32)(index / (u32)a.w.in), q = (i32)(index % (u32)a.w.in);
    if (r < rows.begin || r >= rows.end || q < cols.begin || q >= cols.end)
        *a.astray = 1;
}

template <class T, int MAX>
DEVICE acc<T> gather(const pool_args &a, const T *dy, const u32 *index, range down, range across, i32 ih, i32 iw)
{
    acc<T> sum = 0;
    for (i32 oh = down.begin; oh < down.end; oh++) {
        i32 high = MAX || a.whole ? 1 : counted(a.h, oh, a.exclude_pad);
        for (i32 ow = across.begin; ow < across.end; ow++) {
            acc<T> g = get(dy[oh * a.y.row + ow]);
            if (MAX) {
                u32 at = index[oh * a.indices.row + ow];
                sum += at == (u32)(ih * a.w.in + iw) ? g : 0;
                if (a.astray)
                    check_index(a, oh, ow, ih, iw, at);
            } else {
                sum += a.whole ? g : g / (acc<T>)((i64)high * counted(a.w, ow, a.exclude_pad));
            }
        }
    }
    return !MAX && a.whole ? sum / (acc<T>)((i64)a.h.kernel * a.w.kernel) : sum;
}

template <class T, int MAX> DEVICE void pool_grad(const pool_args &a)
{
    for (u32 i = (u32)global_thread(); i < a.walk.items; i += (u32)global_threads()) {
        plane_item at(a.walk, i);
        i32 end = lesser(at.row + a.walk.rows, a.h.in);
        const T *dy = plane_of<const T>(a.y, a.walk, at.plane);
        const u32 *index = MAX ? plane_of<const u32>(a.indices, a.walk, at.plane) : 0;
        range across = windows_over(a.w, at.col);
        T *dx = (T *)a.x.p + ((a.walk.first + at.plane) * a.h.in + at.row) * a.w.in + at.col;
        for (i32 ih = at.row; ih < end; ih++, dx += a.w.in)
            *dx = put<T>(gather<T, MAX>(a, dy, index, windows_over(a.h, ih), across, ih, at.col));
    }
}

/* The same for small windows: a thread makes STRIDE x STRIDE elements, which are in the same windows but for the
 * first of them: window o reaches block o to o + BACK. */
template <class T, int MAX, int STRIDE, int BACK> DEVICE void pool_grad_blocks(const pool_args &a)
{
    typedef acc<T> A;
    for (u32 i = (u32)global_thread(); i < a.walk.items; i += (u32)global_threads()) {
        plane_item at(a.walk, i);
        const T *dy = plane_of<const T>(a.y, a.walk, at.plane);
        const u32 *index = MAX ? plane_of<const u32>(a.indices, a.walk, at.plane) : 0;
        i32 top = at.row * STRIDE - a.h.padding, left = at.col * STRIDE - a.w.padding;
        A sum[STRIDE][STRIDE] = {};
        UNROLL
        for (int back = 0; back < (BACK + 1) * (BACK + 1); back++) {
            i32 up = back / (BACK + 1), over = back % (BACK + 1), oh = at.row - up, ow = at.col - over;
            if ((u32)oh >= (u32)a.h.out || (u32)ow >= (u32)a.w.out)
                continue;
            A g = get(dy[oh * a.y.row + ow]);
            u32 place = MAX ? index[oh * a.indices.row + ow] : 0;
            if (MAX && back == 0 && a.astray)
                check_index(a, oh, ow, greater(top, 0), greater(left, 0), place);
            if (!MAX && (BACK == 0 || !a.whole))
                g /= (A)((i64)counted(a.h, oh, a.exclude_pad) * counted(a.w, ow, a.exclude_pad));
            UNROLL
            for (int e = 0; e < STRIDE * STRIDE; e++) {
                i32 r = e / STRIDE, q = e % STRIDE;
                bool in = MAX ? place == (u32)((top + r) * a.w.in + left + q)
                              : up * STRIDE + r < a.h.kernel && over * STRIDE + q < a.w.kernel;
                sum[r][q] += in ? g : 0;
            }
        }
        T *dx = (T *)a.x.p + (a.walk.first + at.plane) * (a.h.in * a.w.in);
        UNROLL
        for (int e = 0; e < STRIDE * STRIDE; e++) {
            i32 r = top + e / STRIDE, q = left + e % STRIDE;
            A v = sum[e / STRIDE][e % STRIDE];
            if ((u32)r < (u32)a.h.in && (u32)q < (u32)a.w.in)
                dx[r * a.w.in + q] = put<T>(!MAX && BACK && a.whole ? v / (A)(a.h.kernel * a.w.kernel) : v);
        }
    }
}

/* Given indices that are not those of the windows: every element looks at all of the plane. */
template <class T> DEVICE void pool_astray(const pool_args &a)
{
    if (*a.astray == 0)
        return;
    for (u32 i = (u32)global_thread(); i < a.walk.items; i += (u32)global_threads()) {
        plane_item at(a.walk, i);
        u32 place = (u32)(at.row * a.w.in + at.col);
        const T *dy = plane_of<const T>(a.y, a.walk, at.plane);
        const u32 *index = plane_of<const u32>(a.indices, a.walk, at.plane);
        acc<T> sum = 0;
        for (i32 oh = 0; oh < a.h.out; oh++)
            for (i32 ow = 0; ow < a.w.out; ow++)
                sum += index[oh * a.indices.row + ow] == place ? get(dy[oh * a.y.row + ow]) : 0;
        ((T *)a.x.p)[(a.walk.first + at.plane) * a.h.in * a.w.in + place] = put<T>(sum);
    }
}
