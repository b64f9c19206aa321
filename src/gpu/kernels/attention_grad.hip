/* attention_grad.hip: the gradients of attention, from scores made again tile by tile. One kernel does all three: what a
 * block owns are rows of dq, dk or dv, and nobody else adds to them. */
#include "attention_tile.h"


/* delta = sum(y dy) of every row; a wave has one. */
template <class T> DEVICE void attn_delta(const attn_delta_args &a)
{
    typedef acc<T> A;
    for (i64 row = (i64)block_id() * (256 / WAVE) + wave_id(); row < a.rows; row += (i64)grid_blocks() * (256 / WAVE)) {
        i64 head = row / a.s, i = row - head * a.s, b = head / a.hq;
        head -= b * a.hq;
        const T *y = (const T *)a.y.data + b * a.y.b + head * a.y.h + i * a.y.s;
        const T *dy = (const T *)a.dy.data + b * a.dy.b + head * a.dy.h + i * a.dy.s;
        A sum = 0;
        for (int c = lane_id(); c < a.dv; c += WAVE)
            sum += get(y[c * a.y.d]) * get(dy[c * a.dy.d]);
        sum = wave_reduce<op_sum>(sum);
        if (lane_id() == 0)
            ((A *)a.delta)[row] = sum;
    }
}

/* The weight of (q, key), or for WK_GRAD_Q and WK_GRAD_K the gradient of their product; from q . k and dy . v. */
template <class T, int OF>
DEVICE acc<T> gradient_of(const attn_args &a, const query &q, int key, acc<T> dot, acc<T> dy_v)
{
    typedef acc<T> A;
    A slope = 1;
    if (q.hi == 0) /* beyond the last row, or one without keys */
        return 0;
    A lse = ((const A *)a.lse)[q.index];
    A weight = m_exp(score_of<T>(a, q, key, dot, &slope) - (lse == -infinity<A>() ? infinity<A>() : lse));
    return OF == WK_GRAD_V ? weight : weight * (dy_v - ((const A *)a.delta)[q.index]) * slope;
}

/* The range of others that matter for the block's owners: keys for queries; for keys all queries of the unit. */
template <int OF> DEVICE void others_of(const attn_args &a, const unit &u, int *lo, int *hi)
{
    *lo = 0;
    *hi = (int)u.rows;
    if (OF == WK_GRAD_Q)
        keys_of_rows(a, u, u.first, u.first + WK_ATTN_ROWS - 1, lo, hi);
}

template <class T, int W, int OF> DEVICE void grad_block(const attn_args &a, const unit &u)
{
    typedef acc<T> A;
    const int OTHERS = tile_of<A>::others, EACH = tile_of<A>::each;
    SHARED alignas(16) A ta[WK_ATTN_STEP][PITCH], tb[WK_ATTN_STEP][PITCH];
    SHARED alignas(16) A weights[OTHERS][PITCH], tile[WK_ATTN_STEP][W + 4];
    source<T> qs = queries_of<T>(a, a.q, u), dys = queries_of<T>(a, a.dy, u);
    source<T> ks = keys_of<T>(a.k, u), vs = keys_of<T>(a.v, u);
    int lo, hi, y = thread_id() / 16 * 4, x = thread_id() % 16 * EACH;
    int col = block_id_y() * W, width = OF == WK_GRAD_V ? a.dv : a.d;
    A out[4][W / 16] = {};
    others_of<OF>(a, u, &lo, &hi);
    for (int at = lo; at < hi; at += OTHERS) {
        if (OF != WK_GRAD_Q && !meet(a, u, at, OTHERS))
            continue;
        A s[4][EACH], p[4][EACH] = {};
        if (OF == WK_GRAD_Q)
            dot_rows<T, EACH>(qs, u.first, ks, at, a.d, ta, tb, s);
        else
            dot_rows<T, EACH>(ks, u.first, qs, at, a.d, ta, tb, s);
        if (OF == WK_GRAD_Q)
            dot_rows<T, EACH>(dys, u.first, vs, at, a.dv, ta, tb, p);
        else if (OF == WK_GRAD_K)
            dot_rows<T, EACH>(vs, u.first, dys, at, a.dv, ta, tb, p);
        UNROLL
        for (int n = 0; n < (OF == WK_GRAD_Q ? 4 : EACH); n++) { /* queries */
            query q = query_of(a, u, OF == WK_GRAD_Q ? u.first + y + n : at + x + n);
            UNROLL
            for (int m = 0; m < (OF == WK_GRAD_Q ? EACH : 4); m++) { /* keys */
                int key = OF == WK_GRAD_Q ? at + x + m : (int)u.first + y + m;
                A *v = OF == WK_GRAD_Q ? &s[n][m] : &s[m][n];
                *v = gradient_of<T, OF>(a, q, key, *v, OF == WK_GRAD_Q ? p[n][m] : p[m][n]);
            }
        }
        keep_weights<EACH>(s, weights);
        const source<T> &rows = OF == WK_GRAD_Q ? ks : OF == WK_GRAD_K ? qs : dys;
        add_rows<T, W>(rows, at, lesser(hi - at, OTHERS), col, width, weights, tile, out);
    }
    u32 owners = OF == WK_GRAD_Q ? u.rows : u.t;
    i64 first = OF == WK_GRAD_Q ? ((i64)u.batch * a.hq + (i64)u.head * a.group) * u.s : ((i64)u.batch * a.hk + u.head) * u.t;
    UNROLL
    for (int i = 0; i < 4; i++)
        if (u.first + y + i < owners)
            store_row<T, W>((T *)a.y + (first + u.first + y + i) * width, col, width, out[i],
                            OF == WK_GRAD_V ? (A)1 : (A)a.scale);
}

template <class T, int W, int OF> DEVICE void attn_grad(const attn_args &a)
{
    for (u32 id = block_id(); id < (u32)a.blocks * (u32)a.units; id += grid_blocks()) {
        unit u;
        if (find_unit(a, id, &u))
            grad_block<T, W, OF>(a, u);
    }
}
