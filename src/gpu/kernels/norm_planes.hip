/* norm_planes.hip: batch norm, and the row norms whose rows no block holds: sums of pieces, statistics from the sums,
 * and a pass that applies them. Sums are doubles around a number nearby, so that no difference of large ones is left. */
#include "device.h"
#include "norm.h"

DEVICE i64 quotient(i64 n, i64 by, const wk_divisor &v)
{
    return (n | by) < (i64)1 << 31 ? (i64)divide((u32)n, v) : n / by;
}

/* What is summed: x - origin and its square; dy and dy (x - origin); all four, in this order. */
enum { SUMS_X = 0, SUMS_DY = 1, SUMS_BOTH = 2 };

/* A few elements' sums, around a number of their own in R, until they are moved to the origin in double. */
template <class R, int SUMS> struct few_sums {
    R s, q, t, u, own;
    int k;

    MEMBER few_sums(R near) : s(0), q(0), t(0), u(0), own(near), k(0) {}
    MEMBER void add(R x, R dy)
    {
        R d = x - own;
        k++;
        s += d;
        q += d * d;
        t += dy;
        u += dy * d;
    }
    MEMBER void move(f64 origin, f64 *total) const
    {
        const int DY = SUMS == SUMS_BOTH ? 2 : 0;
        f64 off = (f64)own - origin;
        bool moved = off != 0; /* else an infinite sum would become NaN */
        if (SUMS != SUMS_DY) {
            total[0] += moved ? s + k * off : (f64)s;
            total[1] += moved ? q + off * (2 * (f64)s + k * off) : (f64)q;
        }
        if (SUMS != SUMS_X) {
            total[DY] += t;
            total[DY + 1] += moved ? u + off * (f64)t : (f64)u;
        }
    }
};

template <int SUMS> DEVICE constexpr int sums_count() { return SUMS == SUMS_BOTH ? 4 : 2; }

/* ---- sums of planes ---- */

template <class T> DEVICE f64 plane_origin(const norm_planes_args &a, i64 plane)
{
    i64 above = quotient(plane, a.channels, a.by_channels), channel = plane - above * a.channels;
    if (a.mean)
        return (f64)((const acc<T> *)a.mean)[channel];
    return a.centred ? (f64)get(((const T *)a.x)[(a.by_rows ? above * a.channels : channel) * a.inner]) : 0;
}

/* Up to four packs of a thread, STEP elements apart. */
template <class T, int VEC, int SUMS, int STEP>
DEVICE void measure_packs(const T *x, const T *dy, const T *weight, int n, bool centred, f64 origin, f64 *total)
{
    typedef acc<T> R;
    pack<T, VEC> xs[4], ds[4], ws[4];
    UNROLL
    for (int p = 0; p < 4; p++) { /* behind the end the first again: no branch between the loads */
        int at = p * STEP < n ? p * STEP : 0;
        xs[p] = load<VEC>(x + at);
        if (SUMS != SUMS_X)
            ds[p] = load<VEC>(dy + at);
        if (SUMS != SUMS_X && weight)
            ws[p] = load<VEC>(weight + at);
    }
    few_sums<R, SUMS> few(centred ? get(xs[0].v[0]) : (R)0);
    UNROLL
    for (int p = 0; p < 4; p++) {
        if (p * STEP >= n)
            continue;
        UNROLL
        for (int e = 0; e < VEC; e++) {
            R d = SUMS == SUMS_X ? (R)0 : get(ds[p].v[e]);
            few.add(get(xs[p].v[e]), SUMS != SUMS_X && weight ? d * get(ws[p].v[e]) : d);
        }
    }
    few.move(origin, total);
}

/* LANES threads (a part of a wave, or the block) sum one chunk of a plane. */
template <class T, int VEC, int SUMS, int LANES> DEVICE void norm_measure(const norm_planes_args &a)
{
    const int PER = 256 / LANES, N = sums_count<SUMS>(), STEP = LANES * VEC;
    SHARED f64 room[256 / WAVE];
    int lane = (int)(thread_id() % LANES);
    for (i64 base = (i64)block_id() * PER; base < a.units; base += (i64)grid_blocks() * PER) {
        i64 unit = base + thread_id() / LANES;
        bool live = unit < a.units;
        unit = live ? unit : a.units - 1;
        i64 plane = quotient(unit, a.chunks, a.by_chunks), begin = (unit - plane * a.chunks) * a.chunk;
        int n = (int)lesser(a.inner - begin, a.chunk);
        f64 total[4] = {0, 0, 0, 0}, origin = plane_origin<T>(a, plane);
        const T *x = (const T *)a.x + plane * a.inner + begin;
        const T *dy = (const T *)a.dy + plane * a.inner + begin;
        const T *weight = a.weight ? (const T *)a.weight + begin : (const T *)0;
        for (int at = lane * VEC; at < n; at += 4 * STEP)
            measure_packs<T, VEC, SUMS, STEP>(x + at, dy + at, weight ? weight + at : weight, n - at, a.centred,
                                              origin, total);
        UNROLL
        for (int i = 0; i < N; i++) {
            if constexpr (LANES <= WAVE)
                total[i] = wave_reduce<op_sum, LANES>(total[i]);
            else
                total[i] = block_reduce<op_sum, LANES>(total[i], room);
            if (lane == 0 && live)
                a.parts[i * a.units + unit] = total[i];
        }
    }
}

/* ---- sums of columns ---- */

/* dy h and dy, h being x normalised by its row's numbers. */
enum { SUMS_ROWS = 3 };

/* A block sums 32 columns of a strip of rows; eight threads share a column. */
template <class T, int SUMS> DEVICE void norm_columns(const norm_columns_args &a)
{
    typedef acc<T> R;
    SHARED f64 room[8][33];
    u32 cx = thread_id() % 32, ry = thread_id() / 32;
    i64 column = (i64)block_id() * 32 + cx, begin = (i64)block_id_y() * a.strip,
        end = lesser(begin + a.strip, a.n_rows);
    f64 total[2] = {0, 0}, origin = 0;
    if (column < a.columns && SUMS != SUMS_ROWS) {
        u32 channel = divide((u32)column, a.by_inner);
        origin = SUMS == SUMS_DY ? (f64)((const R *)a.mean)[channel]
                                 : (f64)get(((const T *)a.x)[(i64)channel * a.by_inner.d]);
    }
    for (i64 row = begin + ry; row < end && column < a.columns; row += 64) {
        const T *x = (const T *)a.x + column, *dy = (const T *)a.dy + column;
        T xs[8], ds[8];
        UNROLL
        for (int i = 0; i < 8; i++) {
            i64 r = row + 8 * i < end ? row + 8 * i : row;
            xs[i] = x[r * a.columns];
            if (SUMS != SUMS_X)
                ds[i] = dy[r * a.columns];
        }
        few_sums<R, SUMS> few(get(xs[0]));
        R dot = 0;
        UNROLL
        for (int i = 0; i < 8; i++) {
            if (row + 8 * i >= end)
                continue;
            R v = get(xs[i]), d = SUMS == SUMS_X ? (R)0 : get(ds[i]);
            few.add(v, d);
            if (SUMS == SUMS_ROWS) {
                const double *numbers = a.rows + 3 * (row + 8 * i);
                R mean = (R)numbers[1], scale = (R)numbers[2];
                dot += d * ((v - mean) * scale + (R)((f64)mean - numbers[1]) * scale);
            }
        }
        if (SUMS == SUMS_ROWS) {
            total[0] += dot;
            total[1] += few.t;
        } else {
            few.move(origin, total);
        }
    }
    UNROLL
    for (int k = 0; k < 2; k++) {
        room[ry][cx] = total[k];
        barrier();
        for (int i = 1; i < 8 && ry == 0; i++)
            total[k] += room[i][cx];
        if (ry == 0 && column < a.columns)
            a.parts[((i64)k * grid_blocks_y() + block_id_y()) * a.columns + column] = total[k];
        barrier();
    }
}

/* ---- statistics: a wave each ---- */

/* Sum `which` of a family's parts. */
DEVICE f64 family_sum(const norm_finish_args &a, i64 family, int which)
{
    f64 sum = 0;
    for (i64 k = lane_id(); k < a.outer * a.each; k += WAVE) {
        i64 outer = quotient(k, a.each, a.by_each);
        sum += a.parts[which * a.units + (outer * a.families + family) * a.each + (k - outer * a.each)];
    }
    return wave_reduce<op_sum>(sum);
}

/* The families of a wave: every lane takes part in each. */
#define EACH_FAMILY(f) \
    for (i64 f = (i64)block_id() * (256 / WAVE) + wave_id(); f < a.families; \
         f += (i64)grid_blocks() * (256 / WAVE))

template <class R> DEVICE R value_or(const void *p, i64 i, R absent) { return p ? ((const R *)p)[i] : absent; }
template <class R> DEVICE void give(void *p, i64 i, f64 v)
{
    if (p)
        ((R *)p)[i] = (R)v;
}

/* y = (x - mean) scale + shift + slope dy, with what rounding cuts off the mean put into the shift. */
template <class R> DEVICE void give_numbers(void *p, i64 i, f64 mean, f64 scale, f64 shift, f64 slope)
{
    R rounded = (R)mean;
    store<4>((R *)p + 4 * i, pack<R, 4>{{rounded, (R)scale, (R)(shift + (rounded - mean) * scale), (R)slope}});
}

template <class T> DEVICE void norm_finish_train(const norm_finish_args &a)
{
    typedef acc<T> R;
    EACH_FAMILY(c)
    {
        f64 sum = family_sum(a, c, 0), squares = family_sum(a, c, 1), n = a.count;
        f64 mean = 0, var = 0, unbiased = 0, momentum = n > 0 ? a.momentum : 0;
        if (n > 0) {
            f64 m2 = greater(squares - sum * sum / n, (f64)0); /* a NaN stays one */
            mean = (f64)get(((const T *)a.x)[c * a.origin_step]) + sum / n;
            var = m2 / n;
            unbiased = n > 1 ? m2 / (n - 1) : 0;
        }
        f64 invstd = 1 / m_sqrt(var + a.eps);
        if (lane_id() != 0)
            continue;
        give<R>(a.new_mean, c,
                (1 - momentum) * (f64)value_or<R>(a.running_mean, c, 0) + momentum * mean);
        give<R>(a.new_var, c,
                (1 - momentum) * (f64)value_or<R>(a.running_var, c, 1) + momentum * unbiased);
        give<R>(a.save_mean, c, mean);
        give<R>(a.save_invstd, c, invstd);
        give_numbers<R>(a.numbers, c, mean, value_or<R>(a.weight, c, 1) * invstd, value_or<R>(a.bias, c, 0), 0);
    }
}

/* With h = (x - mean) invstd: dx = weight invstd (dy - mean(dy) - h mean(dy h)). */
template <class T> DEVICE void norm_finish_batch_grad(const norm_finish_args &a)
{
    typedef acc<T> R;
    EACH_FAMILY(c)
    {
        f64 sum = family_sum(a, c, 0), dot = family_sum(a, c, 1), n = a.count;
        f64 invstd = value_or<R>(a.invstd, c, 1), slope = value_or<R>(a.weight, c, 1) * invstd;
        if (lane_id() != 0)
            continue;
        give<R>(a.dweight, c, dot * invstd);
        give<R>(a.dbias, c, sum);
        if (n > 0)
            give_numbers<R>(a.numbers, c, value_or<R>(a.mean, c, 0), -slope * invstd * invstd * dot / n,
                            -slope * sum / n, slope);
    }
}

/* All of that for a channel that the block's registers hold. */
template <class T, int VEC> DEVICE void norm_channel_grad(const norm_channel_args &a)
{
    typedef acc<T> R;
    SHARED f64 room[256 / WAVE];
    i64 c = block_id();
    R mean = ((const R *)a.mean)[c], t = 0, u = 0;
    f64 invstd = ((const R *)a.invstd)[c], slope = value_or<R>(a.weight, c, 1) * invstd;
    pack<T, VEC> xs[NORM_HELD], ds[NORM_HELD];
    i64 at[NORM_HELD];
    UNROLL
    for (int p = 0; p < NORM_HELD; p++) {
        u32 i = p * 256 + thread_id(), plane = divide(i, a.by_plane);
        at[p] = (plane * a.channels + c) * a.inner + (i - plane * a.by_plane.d) * VEC;
        xs[p] = ds[p] = {};
        if (i < a.packs) {
            xs[p] = load<VEC>((const T *)a.x + at[p]);
            ds[p] = load<VEC>((const T *)a.dy + at[p]);
        }
    }
    UNROLL
    for (int k = 0; k < NORM_HELD * VEC; k++) {
        R dy = get(ds[k / VEC].v[k % VEC]);
        t += dy;
        u += dy * (get(xs[k / VEC].v[k % VEC]) - mean);
    }
    f64 sum = block_reduce<op_sum, 256>((f64)t, room), dot = block_reduce<op_sum, 256>((f64)u, room);
    if (thread_id() == 0) {
        give<R>(a.dweight, c, dot * invstd);
        give<R>(a.dbias, c, sum);
    }
    R scale = (R)(-slope * invstd * invstd * dot / a.count), shift = (R)(-slope * sum / a.count);
    UNROLL
    for (int p = 0; p < NORM_HELD && a.dx; p++) {
        pack<T, VEC> dx;
        UNROLL
        for (int e = 0; e < VEC; e++)
            dx.v[e] = put<T>((get(xs[p].v[e]) - mean) * scale + shift + (R)slope * get(ds[p].v[e]));
        if (p * 256 + thread_id() < a.packs)
            store<VEC>((T *)a.dx + at[p], dx);
    }
}

/* A row's origin, mean and scale. */
template <class T> DEVICE void row_numbers(const norm_finish_args &a, i64 row, f64 *origin, f64 *mean, f64 *scale)
{
    f64 sum = family_sum(a, row, 0), squares = family_sum(a, row, 1), share = sum * a.inverse_count;
    *origin = a.centred ? (f64)get(((const T *)a.x)[row * a.origin_step]) : 0;
    *mean = a.centred ? *origin + share : 0;
    f64 m2 = a.centred ? greater(squares - sum * share, (f64)0) : squares; /* a NaN stays one */
    *scale = 1 / m_sqrt(m2 * a.inverse_count + a.eps);
}

template <class T> DEVICE void norm_finish_rows(const norm_finish_args &a)
{
    typedef acc<T> R;
    EACH_FAMILY(row)
    {
        f64 origin, mean, scale;
        row_numbers<T>(a, row, &origin, &mean, &scale);
        i64 first = (row - quotient(row, a.groups, a.by_groups) * a.groups) * a.channels;
        if (a.channels == 0 && lane_id() == 0)
            give_numbers<R>(a.numbers, row, mean, scale, 0, 0);
        for (i64 k = lane_id(); k < a.channels; k += WAVE) {
            f64 w = a.weight ? get(((const T *)a.weight)[first + k]) : (R)1;
            f64 b = a.bias ? get(((const T *)a.bias)[first + k]) : (R)0;
            give_numbers<R>(a.numbers, row * a.channels + k, mean, scale * w, b, 0);
        }
    }
}

/* With g = dy weight: dx = scale (g - mean(g) - h mean(g h)). */
template <class T> DEVICE void norm_finish_rows_grad(const norm_finish_args &a)
{
    typedef acc<T> R;
    EACH_FAMILY(row)
    {
        f64 origin, mean, scale, sum_g = 0, sum_gx = 0;
        row_numbers<T>(a, row, &origin, &mean, &scale);
        i64 first = (row - quotient(row, a.groups, a.by_groups) * a.groups) * a.channels;
        const T *weight = a.channels ? (const T *)a.weight : (const T *)0;
        for (i64 k = lane_id(); k < a.each; k += WAVE) {
            f64 w = weight ? get(weight[first + quotient(k, a.chunks, a.by_chunks)]) : (R)1;
            const double *part = a.parts + row * a.each + k;
            sum_g += w * part[2 * a.units];
            sum_gx += w * part[3 * a.units];
        }
        sum_g = wave_reduce<op_sum>(sum_g);
        sum_gx = wave_reduce<op_sum>(sum_gx);
        f64 mean_g = a.centred ? sum_g * a.inverse_count : 0;
        f64 mean_gh = scale * (sum_gx - (mean - origin) * sum_g) * a.inverse_count;
        if (a.rows && lane_id() == 0) {
            a.rows[3 * row] = origin;
            a.rows[3 * row + 1] = mean;
            a.rows[3 * row + 2] = scale;
        }
        if (a.numbers && a.channels == 0 && lane_id() == 0)
            give_numbers<R>(a.numbers, row, mean, -scale * scale * mean_gh, -scale * mean_g, scale);
        for (i64 k = lane_id(); a.numbers && k < a.channels; k += WAVE)
            give_numbers<R>(a.numbers, row * a.channels + k, mean, -scale * scale * mean_gh, -scale * mean_g,
                            scale * (weight ? get(weight[first + k]) : (R)1));
    }
}

/* dweight and dbias of a channel of group norm from its planes' sums. */
template <class T> DEVICE void norm_finish_weights(const norm_finish_args &a)
{
    EACH_FAMILY(c)
    {
        i64 group = quotient(c, a.channels, a.by_channels);
        f64 dweight = 0, dbias = 0;
        for (i64 k = lane_id(); k < a.outer * a.each; k += WAVE) {
            i64 sample = quotient(k, a.each, a.by_each);
            const double *part = a.parts + (sample * a.families + c) * a.each + (k - sample * a.each);
            const double *row = a.rows + 3 * (sample * a.groups + group);
            f64 t = part[2 * a.units], u = part[3 * a.units];
            dweight += row[2] * (u - (row[1] - row[0]) * t);
            dbias += t;
        }
        dweight = wave_reduce<op_sum>(dweight);
        dbias = wave_reduce<op_sum>(dbias);
        if (lane_id() == 0 && a.dweight)
            ((T *)a.dweight)[c] = put<T>(dweight);
        if (lane_id() == 0 && a.dbias)
            ((T *)a.dbias)[c] = put<T>(dbias);
    }
}

/* ---- applying ---- */

template <class R> struct plane_numbers {
    R mean, scale, shift, slope;
};

template <class R> DEVICE plane_numbers<R> kept_numbers(const norm_planes_args &a, i64 c)
{
    pack<R, 4> v = load<4>((const R *)a.numbers + 4 * c);
    return {v.v[0], v.v[1], v.v[2], v.v[3]};
}

template <class R> DEVICE plane_numbers<R> numbers_of(const norm_planes_args &a, i64 c)
{
    if (a.var) {
        R invstd = 1 / m_sqrt(((const R *)a.var)[c] + (R)a.eps);
        return {((const R *)a.mean)[c], a.scale ? ((const R *)a.scale)[c] * invstd : invstd,
                a.shift ? ((const R *)a.shift)[c] : (R)0, 1};
    }
    return kept_numbers<R>(a, c);
}

/* Where a tile of elements starts: whose numbers are the plane's, and the place in it. */
struct tile_start {
    i64 plane, place;

    MEMBER tile_start(const norm_planes_args &a, i64 base)
    {
        plane = quotient(base, a.inner, a.by_inner);
        place = base - plane * a.inner;
        if (!a.by_rows)
            plane -= quotient(plane, a.channels, a.by_channels) * a.channels;
    }
    /* The same of element `off` of the tile; and of rows, of which and of whose elements are fewer than 2^30. */
    MEMBER u32 row_at(const norm_planes_args &a, int off, u32 *place_there) const
    {
        u32 at = (u32)place + off, q = divide(at, a.by_inner);
        *place_there = at - q * a.by_inner.d;
        return (u32)plane + q;
    }
    MEMBER i64 plane_at(const norm_planes_args &a, int off, i64 *place_there) const
    {
        if (a.small) {
            u32 at = (u32)place + off, q = divide(at, a.by_inner), c = (u32)plane + q;
            *place_there = at - q * a.by_inner.d;
            return a.by_rows ? c : c - divide(c, a.by_channels) * a.by_channels.d;
        }
        i64 at = place + off, q = a.inner >> 30 ? at >= a.inner : divide((u32)at, a.by_inner);
        *place_there = at - q * a.inner;
        return a.by_rows || plane + q < a.channels ? plane + q : plane + q - a.channels; /* q is far less */
    }
};

/* On AMD the numbers are loaded once for those packs of a thread that follow each other in a plane; elsewhere such loads are
 * cheaper than a branch between them. */
#ifdef WK_AMD
enum { KEEP = 1 };
#else
enum { KEEP = 0 };
#endif
template <class R> struct held_numbers {
    plane_numbers<R> m;
    i64 plane;
    MEMBER held_numbers() : plane(-1) {}
    MEMBER void of(const norm_planes_args &a, i64 c)
    {
        if (!KEEP || c != plane)
            m = numbers_of<R>(a, c);
        plane = c;
    }
};

/* y = ((x - mean) scale + shift) weight + bias; GRAD: dx = (x - mean) scale + shift + slope weight dy. WEIGHTS: how
 * elements come to weights of their own, if at all; unless they come singly, a pack is of one plane. By given statistics
 * the slope is 1: dy is a residual. */
template <class T, int VEC, int GRAD, int WEIGHTS>
DEVICE pack<T, VEC> apply_pack(const norm_planes_args &a, const tile_start &start, int off, const pack<T, VEC> &x,
                               const pack<T, VEC> &dy, held_numbers<acc<T>> &kept)
{
    typedef acc<T> R;
    pack<T, VEC> y;
    i64 place;
    kept.of(a, start.plane_at(a, off, &place));
    UNROLL
    for (int e = 0; e < VEC; e++) {
        if (WEIGHTS == WK_WEIGHTS_SINGLY && e)
            kept.of(a, start.plane_at(a, off + e, &place));
        const plane_numbers<R> &m = kept.m;
        R v = (get(x.v[e]) - m.mean) * m.scale + m.shift;
        R w = WEIGHTS == WK_WEIGHTS_SINGLY && a.weight ? get(((const T *)a.weight)[place]) : (R)1;
        if (GRAD)
            v += m.slope * w * get(dy.v[e]);
        else if (WEIGHTS == WK_WEIGHTS_SINGLY)
            v = v * w + (a.bias ? get(((const T *)a.bias)[place]) : (R)0);
        if (a.ends) {
            v = v < 0 ? v * (R)a.slope : v;
            v = v < (R)a.lo ? (R)a.lo : v > (R)a.hi ? (R)a.hi : v;
        }
        y.v[e] = put<T>(v);
    }
    return y;
}

/* The same of rows whose weights are read as packs. */
template <class T, int VEC, int GRAD>
DEVICE pack<T, VEC> apply_row_pack(const norm_planes_args &a, const tile_start &start, int off, const pack<T, VEC> &x,
                                   const pack<T, VEC> &dy)
{
    typedef acc<T> R;
    pack<T, VEC> y, w = {}, b = {};
    u32 place;
    plane_numbers<R> m = kept_numbers<R>(a, start.row_at(a, off, &place));
    if (a.weight)
        w = load<VEC>((const T *)a.weight + place);
    if (a.bias)
        b = load<VEC>((const T *)a.bias + place);
    UNROLL
    for (int e = 0; e < VEC; e++) {
        R v = (get(x.v[e]) - m.mean) * m.scale + m.shift, factor = a.weight ? get(w.v[e]) : (R)1;
        y.v[e] = put<T>(GRAD ? v + m.slope * factor * get(dy.v[e]) : v * factor + get(b.v[e]));
    }
    return y;
}

/* Number p of a thread's packs: a wave's follow each other where the numbers are kept, else a block's. */
enum { PACKS = 4 };
DEVICE int pack_of(int p)
{
    u32 wave = thread_id() / WAVE, lane = thread_id() % WAVE;
    return (int)(KEEP ? (wave * PACKS + p) * WAVE + lane : p * 256 + thread_id());
}

template <class T, int VEC, int GRAD, int WEIGHTS> DEVICE void norm_apply(const norm_planes_args &a)
{
    const int TILE = 256 * VEC * PACKS;
    i64 tiles = (a.count + TILE - 1) / TILE;
    for (i64 t = block_id(); t < tiles; t += grid_blocks()) {
        i64 base = (tiles - 1 - t) * TILE; /* from the end, which caches have from the pass before */
        int left = (int)lesser(a.count - base, (i64)TILE);
        const T *x = (const T *)a.x + base, *dy = (const T *)a.dy + base;
        pack<T, VEC> xs[PACKS], ds[PACKS];
        UNROLL
        for (int p = 0; p < PACKS; p++) {
            int off = pack_of(p) * VEC, at = off < left ? off : 0;
            xs[p] = load<VEC>(x + at);
            if (GRAD)
                ds[p] = load<VEC>(dy + at);
        }
        tile_start start(a, base);
        held_numbers<acc<T>> kept;
        UNROLL
        for (int p = 0; p < PACKS; p++) {
            int off = pack_of(p) * VEC;
            if (off >= left)
                continue;
            if constexpr (WEIGHTS == WK_WEIGHTS_PACKED)
                store<VEC>((T *)a.y + base + off, apply_row_pack<T, VEC, GRAD>(a, start, off, xs[p], ds[p]));
            else
                store<VEC>((T *)a.y + base + off, apply_pack<T, VEC, GRAD, WEIGHTS>(a, start, off, xs[p], ds[p], kept));
        }
    }
}
