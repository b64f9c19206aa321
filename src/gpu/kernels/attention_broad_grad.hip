/* attention_broad_grad.hip: the gradients of attention of f32 without matrix units. What a block owns are rows of dq, dk or
 * dv, and nobody else adds to them. Scores are made again tile by tile. */
#include "attention_broad.h"

/* What is known of a query: lse is times log2(e), and infinite for a row without keys. */
struct broad_query {
    f32 lse, delta;
};
DEVICE broad_query broad_query_of(const attn_args &a, const unit &u, u32 row)
{
    query q = query_of(a, u, row);
    if (q.hi == 0) /* beyond the last row, or one without keys */
        return {infinity<f32>(), 0};
    f32 lse = ((const f32 *)a.lse)[q.index];
    return {lse == -infinity<f32>() ? infinity<f32>() : lse * LOG2E, ((const f32 *)a.delta)[q.index]};
}

/* A thread's part of a block. Others are keys for OF == WK_GRAD_Q, else queries. */
template <class S, int TM, int OF, int PLAIN> struct broad_grad_rows {
    static const bool of_q = OF == WK_GRAD_Q;
    static const int TN = S::TN, TC = S::TC, QUERIES = of_q ? TM : TN, KEYS = of_q ? TN : TM;
    broad_query facts[QUERIES];
    f32 out[TM][TC];

    static MEMBER int query_at(int n) { return of_q ? S::owner(n) : S::other(n); }

    MEMBER void take_queries(const attn_args &a, const unit &u, u32 first)
    {
        UNROLL
        for (int n = 0; n < QUERIES; n++)
            facts[n] = broad_query_of(a, u, first + query_at(n));
    }

    /* Products q . k (s) and dy . v (p) become weights, or for WK_GRAD_Q and WK_GRAD_K gradients of the products q . k.
     * all: every query sees every key. */
    MEMBER void weigh(const attn_args &a, const unit &u, u32 first, int key0, bool all, const f32 (*s)[TN],
                      const f32 (*p)[TN], typename S::weights_t *weights) const
    {
        f32 scale = (f32)a.scale * LOG2E;
        UNROLL
        for (int n = 0; n < QUERIES; n++) {
            query q = {};
            if (!PLAIN || !all)
                q = query_of(a, u, first + query_at(n));
            UNROLL
            for (int m = 0; m < KEYS; m++) {
                int i = of_q ? n : m, j = of_q ? m : n, key = key0 + (of_q ? S::other(m) : S::owner(m));
                bool seen = (PLAIN && all) || (key >= q.lo && key < q.hi);
                f32 slope = 1, score = s[i][j] * scale;
                if (!PLAIN)
                    score = seen ? score_of<f32>(a, q, key, s[i][j], &slope) * LOG2E : 0;
                f32 weight = seen ? m_exp2_fast(score - facts[n].lse) : 0;
                if (OF != WK_GRAD_V)
                    weight *= (p[i][j] - facts[n].delta) * slope;
                weights[S::owner(i)][S::other(j)] = weight;
            }
        }
    }
};

/* The first tile of others from `at` on, N apart, that matters to the block. */
template <int OF, int N> DEVICE int next_tile(const attn_args &a, const unit &u, int at, int hi)
{
    while (OF != WK_GRAD_Q && at < hi && !meet(a, u, at, N))
        at += N;
    return at;
}

/* Whether each query of a tile or block sees each key of the other. */
template <int OF, int ROWS, int N> DEVICE bool all_meet(const attn_args &a, const unit &u, int at)
{
    int lo, hi;
    bool of_q = OF == WK_GRAD_Q;
    int key = of_q ? at : (int)u.first, row = of_q ? (int)u.first : at;
    keys_of_all_rows(a, u, row, row + (of_q ? ROWS : N) - 1, &lo, &hi);
    return key >= lo && key + (of_q ? N : ROWS) <= hi;
}

template <int D, int ROWS, int TM, int N, int OF, int PLAIN> DEVICE void broad_grad_block(const attn_args &a, const unit &u)
{
    typedef broad_shape<D, ROWS, TM, N> S;
    const bool of_q = OF == WK_GRAD_Q, both = OF != WK_GRAD_V;
    struct room_t {
        typename S::row_t own1[ROWS], own2[both ? ROWS : 1], one[N], two[N];
        typename S::weights_t weights[ROWS];
    };
    ROOM(bytes, sizeof(room_t));
    room_t &room = *(room_t *)bytes;
    source<f32> qs = queries_of<f32>(a, a.q, u), dys = queries_of<f32>(a, a.dy, u);
    source<f32> ks = keys_of<f32>(a.k, u), vs = keys_of<f32>(a.v, u);
    const source<f32> &owners1 = of_q ? qs : ks, &owners2 = of_q ? dys : vs;
    const source<f32> &others1 = of_q ? ks : qs, &others2 = of_q ? vs : dys;
    broad_incoming<ROWS, S::THREADS, S::PITCH> own_in;
    broad_incoming<N, S::THREADS, S::PITCH> in1, in2;
    broad_grad_rows<S, TM, OF, PLAIN> rows = {};
    int at = 0, hi = (int)u.rows, width = both ? a.d : a.dv;
    if (of_q)
        keys_of_rows(a, u, u.first, u.first + ROWS - 1, &at, &hi);
    at = next_tile<OF, N>(a, u, at, hi);
    if (at < hi) {
        in1.fetch(others1, at, a.d, room.one);
        in2.fetch(others2, at, a.dv, room.two);
        own_in.fetch(owners1, u.first, a.d, room.own1);
        own_in.land(owners1, u.first, a.d, room.own1);
        if (both) {
            own_in.fetch(owners2, u.first, a.dv, room.own2);
            own_in.land(owners2, u.first, a.dv, room.own2);
        }
        if (of_q)
            rows.take_queries(a, u, u.first);
    }
    while (at < hi) {
        f32 s[TM][S::TN], p[TM][S::TN];
        int next = next_tile<OF, N>(a, u, at + N, hi);
        in1.land(others1, at, a.d, room.one);
        in2.land(others2, at, a.dv, room.two);
        barrier();
        if (!of_q)
            rows.take_queries(a, u, at);
        S::dots(room.own1, room.one, s);
        if (both)
            S::dots(room.own2, room.two, p);
        rows.weigh(a, u, of_q ? u.first : at, of_q ? at : (int)u.first, all_meet<OF, ROWS, N>(a, u, at), s, p, room.weights);
        wave_sync();
        S::add(room.weights, both ? room.one : room.two, rows.out);
        barrier();
        if (next < hi) {
            in1.fetch(others1, next, a.d, room.one);
            in2.fetch(others2, next, a.dv, room.two);
        }
        at = next;
    }
    u32 owners = of_q ? u.rows : u.t;
    i64 first = of_q ? ((i64)u.batch * a.hq + (i64)u.head * a.group) * u.s : ((i64)u.batch * a.hk + u.head) * u.t;
    UNROLL
    for (int i = 0; i < TM; i++) {
        u32 row = u.first + S::owner(i);
        if (row < owners)
            S::store_row((f32 *)a.y + (first + row) * width, width, rows.out[i], both ? (f32)a.scale : 1);
    }
}

/* Blocks: x over units and their blocks of owners. T: f32. */
template <class T, int D, int ROWS, int TM, int N, int OF, int PLAIN> DEVICE void attn_broad_grad(const attn_args &a)
{
    for (u32 id = block_id(); id < (u32)a.blocks * (u32)a.units; id += grid_blocks()) {
        unit u;
        if (find_unit(a, id, &u))
            broad_grad_block<D, ROWS, TM, N, OF, PLAIN>(a, u);
    }
}
