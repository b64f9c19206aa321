/* attention.hip: softmax(q k^T) v over tiles of keys, with a running maximum and sum; splits put together; the check of
 * sequences laid end to end. */
#include "attention_tile.h"

/* What a thread keeps of its four rows. */
template <class A, int W> struct running {
    A top[4], sum[4], out[4][W / 16];
};

/* The running softmax over one more tile: scores become weights. A row without a key so far has top -infinity. */
template <class A, int EACH, int W> DEVICE void soften(A (*s)[EACH], running<A, W> *r)
{
    UNROLL
    for (int i = 0; i < 4; i++) {
        A most = s[i][0], was = r->top[i];
        UNROLL
        for (int j = 1; j < EACH; j++)
            most = greater(most, s[i][j]);
        most = greater(was, wave_reduce<op_max, 16>(most != most ? -infinity<A>() : most));
        A fix = most != was ? m_exp(was - most) : 1, base = most == -infinity<A>() ? 0 : most, sum = 0;
        r->top[i] = most;
        UNROLL
        for (int j = 0; j < EACH; j++) {
            s[i][j] = m_exp(s[i][j] - base);
            sum += s[i][j];
        }
        r->sum[i] = r->sum[i] * fix + sum;
        UNROLL
        for (int c = 0; c < W / 16; c++)
            r->out[i][c] *= fix;
    }
}

template <class A, int EACH> DEVICE void drop(const attn_args &a, const query *q, int key, A (*s)[EACH])
{
    UNROLL
    for (int i = 0; i < 4; i++)
        UNROLL
        for (int j = 0; j < EACH; j++) {
            u32 word = philox_word(a.seed, a.offset, 0, (u64)(q[i].weight + key + j));
            s[i][j] *= word >= a.drop_below ? (A)a.keep : 0;
        }
}

/* One row, with its sum over all threads, to y and lse or to the split's part. */
template <class T, int W>
DEVICE void store_result(const attn_args &a, const unit &u, u32 row, i64 index, acc<T> top, acc<T> sum, const acc<T> *out)
{
    typedef acc<T> A;
    int col = block_id_y() * W;
    bool first = thread_id() % 16 == 0 && block_id_y() == 0;
    if (a.splits > 1) {
        i64 at = block_id_z() * a.rows + index;
        store_row<A, W>((A *)a.part_y + at * a.dv, col, a.dv, out, (A)1);
        if (first) {
            ((A *)a.part_top)[at] = top;
            ((A *)a.part_sum)[at] = sum;
        }
        return;
    }
    u32 head = row / u.s, at = row - head * u.s;
    T *y = (T *)a.y + u.batch * a.y_b + (i64)(head + u.head * a.group) * a.y_h + (u.q0 + at) * a.y_s;
    store_row<T, W>(y, col, a.dv, out, sum == 0 ? 0 : 1 / sum);
    if (a.lse && first)
        ((A *)a.lse)[index] = sum == 0 ? -infinity<A>() : top + m_log(sum);
}

template <class T, int W> DEVICE void forward_block(const attn_args &a, const unit &u)
{
    typedef acc<T> A;
    const int OTHERS = tile_of<A>::others, EACH = tile_of<A>::each;
    SHARED alignas(16) A ta[WK_ATTN_STEP][PITCH], tb[WK_ATTN_STEP][PITCH];
    SHARED alignas(16) A weights[OTHERS][PITCH], tile[WK_ATTN_STEP][W + 4];
    source<T> qs = queries_of<T>(a, a.q, u), ks = keys_of<T>(a.k, u), vs = keys_of<T>(a.v, u);
    running<A, W> r = {};
    query q[4];
    int lo, hi, y = thread_id() / 16 * 4, x = thread_id() % 16 * EACH;
    UNROLL
    for (int i = 0; i < 4; i++) {
        q[i] = query_of(a, u, u.first + y + i);
        r.top[i] = -infinity<A>();
    }
    keys_of_rows(a, u, u.first, u.first + WK_ATTN_ROWS - 1, &lo, &hi);
    lo = lo > (int)block_id_z() * a.split_keys ? lo : (int)block_id_z() * a.split_keys;
    hi = lesser((i64)hi, (i64)(block_id_z() + 1) * a.split_keys);
    for (int k0 = lo; k0 < hi; k0 += OTHERS) {
        A s[4][EACH], slope;
        dot_rows<T, EACH>(qs, u.first, ks, k0, a.d, ta, tb, s);
        UNROLL
        for (int i = 0; i < 4; i++)
            UNROLL
            for (int j = 0; j < EACH; j++) {
                int key = k0 + x + j;
                s[i][j] = key < hi ? score_of<T>(a, q[i], key, s[i][j], &slope) : -infinity<A>();
            }
        soften<A, EACH, W>(s, &r);
        if (a.drop_below)
            drop<A, EACH>(a, q, k0 + x, s);
        keep_weights<EACH>(s, weights);
        add_rows<T, W>(vs, k0, lesser(hi - k0, OTHERS), block_id_y() * W, a.dv, weights, tile, r.out);
    }
    UNROLL
    for (int i = 0; i < 4; i++) {
        A sum = wave_reduce<op_sum, 16>(r.sum[i]);
        if (u.first + y + i < u.rows)
            store_result<T, W>(a, u, u.first + y + i, q[i].index, r.top[i], sum, r.out[i]);
    }
}

/* Blocks: x over units and their blocks of rows, y over W columns of the result each, z over splits of the keys. */
template <class T, int W> DEVICE void attn_forward(const attn_args &a)
{
    for (u32 id = block_id(); id < (u32)a.blocks * (u32)a.units; id += grid_blocks()) {
        unit u;
        if (find_unit(a, id, &u))
            forward_block<T, W>(a, u);
    }
}

/* ---- splits ---- */

/* A wave puts one row's parts together. */
template <class T> DEVICE void attn_join(const attn_join_args &a)
{
    typedef acc<T> A;
    for (i64 row = (i64)block_id() * (256 / WAVE) + wave_id(); row < a.rows; row += (i64)grid_blocks() * (256 / WAVE)) {
        const A *tops = (const A *)a.part_top + row, *sums = (const A *)a.part_sum + row;
        A top = -infinity<A>(), sum = 0;
        for (int i = 0; i < a.splits; i++)
            top = max_nan(top, tops[i * a.rows]);
        A base = top == -infinity<A>() ? 0 : top;
        for (int i = 0; i < a.splits; i++)
            sum += sums[i * a.rows] * m_exp(tops[i * a.rows] - base);
        i64 i0 = row / (a.n1 * a.n2), i1 = row / a.n2 % a.n1, i2 = row % a.n2;
        T *y = (T *)a.y + i0 * a.y0 + i1 * a.y1 + i2 * a.y2;
        A factor = sum == 0 ? 0 : 1 / sum;
        for (int c = lane_id(); c < a.dv; c += WAVE) {
            A v = 0;
            for (int i = 0; i < a.splits; i++)
                v += ((const A *)a.part_y)[(i * a.rows + row) * a.dv + c] * m_exp(tops[i * a.rows] - base);
            y[c] = put<T>(v * factor);
        }
        if (a.lse && lane_id() == 0)
            ((A *)a.lse)[row] = sum == 0 ? -infinity<A>() : top + m_log(sum);
    }
}

/* ---- sequences ---- */

/* They begin with 0, do not decrease and end with the total. T: u32; one instance serves both signs. */
template <class T> DEVICE void attn_check(const attn_check_args &a)
{
    for (i64 i = global_thread(); i < a.count; i += global_threads()) {
        T v = ((const T *)a.data)[i * a.stride], w = i ? ((const T *)a.data)[(i - 1) * a.stride] : 0;
        i64 at = a.is_signed ? (i64)(i32)v : (i64)v, before = a.is_signed ? (i64)(i32)w : (i64)w;
        bool good = at >= before && at <= a.total && (i > 0 || at == 0) && (i + 1 < a.count || at == a.total);
        if (!good)
            index_bad(a.report, at, a.total + 1);
    }
}
