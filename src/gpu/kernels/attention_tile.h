/* attention_tile.h: what attention and its gradients share: units, rows, scores and the two products on tiles.
 *
 * A block owns some rows ("owners"; attn_args has how many) and goes through the rows of the other side ("others") a tile at a time. The
 * dot products of a tile (over the width of a head) become weights in shared memory; these then sum rows of a third
 * matrix into the owners' results. In the forward and for dq owners are queries and others keys; for dk and dv it is
 * the other way round. Without matrix units there are WK_ATTN_ROWS owners, four to a thread: 4 (t / 16) and the three
 * after it. */
#ifndef WK_KERNELS_ATTENTION_TILE_H
#define WK_KERNELS_ATTENTION_TILE_H

#include "attention.h"
#include "philox.h"

/* Others in a tile; fewer where values take more shared memory. */
template <class A> struct tile_of {
    static const int others = sizeof(A) == 8 ? 32 : 64, each = others / 16;
};
const int PITCH = WK_ATTN_ROWS + 4;
const f32 LOG2E = 1.44269504088896340736f, LN2 = 0.69314718055994530942f;

/* ---- units ---- */

struct unit {
    i64 q0, k0;      /* where the sequence begins in q and k, in rows */
    u32 batch, head; /* of the batch; the key head */
    u32 s, t, rows;  /* rows = group * s */
    u32 first;       /* the block's first owner */
};

DEVICE i64 sequence_at(const void *data, i64 i, i64 stride, bool is_signed, i64 total)
{
    u32 v = ((const u32 *)data)[i * stride];
    i64 wide = is_signed ? (i64)(i32)v : (i64)v;
    return wide < 0 ? 0 : wide > total ? total : wide; /* bad ones are reported elsewhere */
}

/* Tile `tile` of a head of all sequences: sequence j has those from its first row's number / owners + j on, which
 * is enough for each and needs no list. */
DEVICE bool find_sequence(const attn_args &a, i64 tile, unit *u)
{
    const attn_sequences &q = a.sequences;
    i64 lo = 0, hi = a.batch;
    while (hi - lo > 1) {
        i64 mid = (lo + hi) / 2;
        i64 from = sequence_at(q.q, mid, q.q_stride, q.q_signed, q.q_total) * a.group / a.owners + mid;
        if (from <= tile)
            lo = mid;
        else
            hi = mid;
    }
    u->q0 = sequence_at(q.q, lo, q.q_stride, q.q_signed, q.q_total);
    u->k0 = sequence_at(q.k, lo, q.k_stride, q.k_signed, q.k_total);
    i64 s = sequence_at(q.q, lo + 1, q.q_stride, q.q_signed, q.q_total) - u->q0;
    i64 t = sequence_at(q.k, lo + 1, q.k_stride, q.k_signed, q.k_total) - u->k0;
    i64 first = (tile - (u->q0 * a.group / a.owners + lo)) * a.owners;
    u->s = s > 0 ? (u32)s : 0;
    u->t = t > 0 ? (u32)t : 0;
    u->rows = u->s * a.group;
    u->batch = 0;
    u->first = (u32)first;
    return first >= 0 && first < u->rows;
}

/* Unit `which` where the batch is a dimension, and the owners of its block `block`. */
DEVICE void unit_of_batch(const attn_args &a, u32 which, u32 block, unit *u)
{
    if (a.causal)
        block = (u32)a.blocks - 1 - block; /* those with the most keys first */
    u->batch = which / (u32)a.hk;
    u->head = which - u->batch * (u32)a.hk;
    u->q0 = u->k0 = 0;
    u->s = (u32)a.s;
    u->t = (u32)a.t;
    u->rows = u->s * (u32)a.group;
    u->first = block * a.owners;
}

/* The unit and the owners of piece `id` of the grid; false when there is nothing to do. */
DEVICE bool find_unit(const attn_args &a, u32 id, unit *u)
{
    u32 block = id % (u32)a.blocks, which = id / (u32)a.blocks;
    if (a.sequences.q) {
        u->head = which;
        return find_sequence(a, block, u);
    }
    unit_of_batch(a, which, block, u);
    return true;
}

/* ---- rows ---- */

/* Rows of a tensor that a unit uses, by number: keys, or queries of several heads (per > 0 rows each). */
template <class T> struct source {
    const T *base;
    i64 h, s, d;
    u32 n, per;
    int wide;
    MEMBER const T *row(u32 r) const
    {
        if (r >= n)
            return nullptr;
        u32 head = per ? r / per : 0;
        return base + (i64)head * h + (i64)(r - head * per) * s;
    }
};

template <class T> DEVICE source<T> queries_of(const attn_args &a, const attn_view &v, const unit &u)
{
    i64 first = (i64)u.head * a.group;
    return {(const T *)v.data + u.batch * v.b + first * v.h + u.q0 * v.s, v.h, v.s, v.d, u.rows, u.s, v.wide};
}
template <class T> DEVICE source<T> keys_of(const attn_view &v, const unit &u)
{
    return {(const T *)v.data + u.batch * v.b + u.head * v.h + u.k0 * v.s, 0, v.s, v.d, u.t, 0, v.wide};
}

/* Four elements of a row from column c on, zeros beyond its width. */
template <class T> DEVICE void four_of(const T *row, const source<T> &from, int c, int width, acc<T> *v)
{
    if (row && from.wide >= 4 && c + 3 < width) {
        pack<T, 4> four = load<4>(row + c);
        UNROLL
        for (int j = 0; j < 4; j++)
            v[j] = get(four.v[j]);
        return;
    }
    UNROLL
    for (int j = 0; j < 4; j++)
        v[j] = row && c + j < width ? get(row[(c + j) * from.d]) : 0;
}

/* What a score needs to know about its query. */
struct query {
    i64 mask;   /* where its masks begin */
    i64 index;  /* among all rows, in the order of lse */
    i64 weight; /* the number of its first weight among all, for dropout */
    int lo, hi; /* the keys it sees */
};

/* The keys [lo, hi) that query i of the unit sees. */
DEVICE void keys_seen(const attn_args &a, const unit &u, i64 i, int *lo, int *hi)
{
    i64 s = u.s, t = u.t, at = i + (t - s), from = 0, to = a.causal ? at + 1 : t;
    if (a.window > 0 && a.window < s + t) {
        from = at - a.window + 1;
        to = a.causal ? to : at + a.window;
    }
    from = from < 0 ? 0 : from > t ? t : from;
    *lo = (int)from;
    *hi = (int)(to > t ? t : to < from ? from : to);
}

DEVICE query query_of(const attn_args &a, const unit &u, u32 r)
{
    query q = {0, 0, 0, 0, 0};
    if (r >= u.rows)
        return q;
    u32 head = r / u.s, i = r - head * u.s;
    head += u.head * a.group;
    q.mask = u.batch * a.mask.b + head * a.mask.h + i * a.mask.s;
    q.index = a.sequences.q ? (u.q0 + i) * a.hq + head : ((i64)u.batch * a.hq + head) * u.s + i;
    q.weight = q.index * u.t;
    keys_seen(a, u, i, &q.lo, &q.hi);
    return q;
}

/* The keys that any of rows [first, last] sees. */
DEVICE void keys_of_rows(const attn_args &a, const unit &u, u32 first, u32 last, int *lo, int *hi)
{
    int none;
    last = last < u.rows ? last : u.rows - 1;
    bool one_head = first / u.s == last / u.s;
    keys_seen(a, u, one_head ? first % u.s : 0, lo, &none);
    keys_seen(a, u, one_head ? last % u.s : u.s - 1, &none, hi);
}

/* Whether some query of a tile sees some of the keys that the block owns. */
DEVICE bool meet(const attn_args &a, const unit &u, u32 row, int others)
{
    int lo, hi;
    keys_of_rows(a, u, row, row + others - 1, &lo, &hi);
    return hi > (int)u.first && lo < (int)u.first + a.owners;
}

/* ---- scores ---- */

template <class T> DEVICE acc<T> mask_at(const attn_args &a, i64 at)
{
    if (a.mask_kind == WK_MASK_KEEP)
        return ((const u8 *)a.mask.data)[at] ? 0 : -infinity<acc<T>>();
    if (a.mask_kind == WK_MASK_F32)
        return ((const f32 *)a.mask.data)[at];
    return get(((const T *)a.mask.data)[at]);
}

/* tanh. For the 16-bit types it is as good as their scores, and an eighth of the instructions. */
template <class T> DEVICE acc<T> capped(acc<T> x)
{
    if constexpr (sizeof(T) == 2)
        return 1 - 2 * m_recip(1 + m_exp_fast(2 * x));
    else
        return m_tanh(x);
}

/* A product q . k scaled and capped. slope: the cap's derivative. */
template <class T> DEVICE acc<T> scaled(const attn_args &a, acc<T> dot, acc<T> *slope)
{
    typedef acc<T> A;
    A cap = (A)a.softcap;
    dot *= (A)a.scale;
    if (cap > 0) {
        dot = capped<T>(dot / cap);
        *slope = 1 - dot * dot;
        dot *= cap;
    }
    return dot;
}

/* It becomes a score: masked and limited too. */
template <class T>
DEVICE acc<T> score_of(const attn_args &a, const query &q, int key, acc<T> dot, acc<T> *slope)
{
    typedef acc<T> A;
    dot = scaled<T>(a, dot, slope);
    if (key < q.lo || key >= q.hi)
        return -infinity<A>();
    return a.mask_kind == WK_MASK_NONE ? dot : dot + mask_at<T>(a, q.mask + key * a.mask.d);
}

/* ---- products ---- */

/* sum[i][j] = the thread's owner i . its other j, over `width` columns. Rows are those from `a0` and `b0` on. */
template <class T, int EACH>
DEVICE void dot_rows(const source<T> &a, u32 a0, const source<T> &b, u32 b0, int width, acc<T> (*ta)[PITCH],
                     acc<T> (*tb)[PITCH], acc<T> (*sum)[EACH])
{
    typedef acc<T> A;
    int t = thread_id(), row = t / 4, c = t % 4 * 4, y = t / 16 * 4, x = t % 16 * EACH;
    const T *pa = a.row(a0 + row), *pb = row < EACH * 16 ? b.row(b0 + row) : nullptr;
    A va[4], vb[4];
    UNROLL
    for (int i = 0; i < 4; i++)
        UNROLL
    for (int j = 0; j < EACH; j++)
        sum[i][j] = 0;
    four_of(pa, a, c, width, va);
    four_of(pb, b, c, width, vb);
    for (int c0 = 0; c0 < width; c0 += WK_ATTN_STEP) {
        barrier();
        UNROLL
        for (int j = 0; j < 4; j++) {
            ta[c + j][row] = va[j];
            tb[c + j][row] = vb[j];
        }
        barrier();
        if (c0 + WK_ATTN_STEP < width) { /* on its way while this tile is multiplied */
            four_of(pa, a, c0 + WK_ATTN_STEP + c, width, va);
            four_of(pb, b, c0 + WK_ATTN_STEP + c, width, vb);
        }
        UNROLL_BY_4
        for (int k = 0; k < WK_ATTN_STEP; k++)
            UNROLL
        for (int i = 0; i < 4; i++)
            UNROLL
        for (int j = 0; j < EACH; j++)
            sum[i][j] = m_fma(ta[k][y + i], tb[k][x + j], sum[i][j]);
    }
}

/* Weights of the thread's owners and others go to shared memory as [other][owner]. */
template <int EACH, class A> DEVICE void keep_weights(const A (*w)[EACH], A (*room)[PITCH])
{
    int y = thread_id() / 16 * 4, x = thread_id() % 16 * EACH;
    UNROLL
    for (int j = 0; j < EACH; j++)
        UNROLL
    for (int i = 0; i < 4; i++)
        room[x + j][y + i] = w[i][j];
}

/* out[i][..] += the sum over n others from b0 on of weight[other][owner i] * row[other], for W columns from `col` on.
 * A thread has columns 64 c + 4 (t % 16) and the three after, in out[i][4 c ..]. Ends with a barrier. */
template <class T, int W>
DEVICE void add_rows(const source<T> &b, u32 b0, int n, int col, int width, acc<T> (*weight)[PITCH],
                     acc<T> (*tile)[W + 4], acc<T> (*out)[W / 16])
{
    typedef acc<T> A;
    int t = thread_id(), y = t / 16 * 4, x = t % 16 * 4;
    for (int k0 = 0; k0 < n; k0 += WK_ATTN_STEP) {
        UNROLL
        for (int g = 0; g < W / 64; g++) {
            int e = t + 256 * g, k = e / (W / 4), c = e % (W / 4) * 4;
            A v[4];
            four_of(b.row(b0 + k0 + k), b, col + c, width, v);
            UNROLL
            for (int j = 0; j < 4; j++)
                tile[k][c + j] = v[j];
        }
        barrier();
        UNROLL_BY_4
        for (int k = 0; k < WK_ATTN_STEP; k++) {
            A w[4];
            UNROLL
            for (int i = 0; i < 4; i++)
                w[i] = weight[k0 + k][y + i];
            UNROLL
            for (int c = 0; c < W / 64; c++)
                UNROLL
            for (int j = 0; j < 4; j++) {
                A v = tile[k][64 * c + x + j];
                UNROLL
                for (int i = 0; i < 4; i++)
                    out[i][4 * c + j] = m_fma(w[i], v, out[i][4 * c + j]);
            }
        }
        barrier();
    }
}

/* The thread's part of one owner's row to `row` of the result. */
template <class T, int W, class A> DEVICE void store_row(T *row, int col, int width, const A *v, A factor)
{
    int x = thread_id() % 16 * 4;
    UNROLL
    for (int c = 0; c < W / 64; c++)
        UNROLL
    for (int j = 0; j < 4; j++) {
        int at = col + 64 * c + x + j;
        if (at < width)
            row[at] = put<T>(v[4 * c + j] * factor);
    }
}

#endif
