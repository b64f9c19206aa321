/* attention_matrix_grad.hip: the gradients of attention of f16 and bf16 on matrix units, for heads up to 128 wide. As in
 * attention_grad.hip one kernel does all three: a block owns 64 rows of dq, dk or dv. */
#include "attention_matrix.h"

const f32 LOG2E = 1.44269504088896340736f;

/* What the gradient needs to know of a query. lse is times log2(e), and infinite for a row without keys. */
struct query_facts {
    f32 lse, delta;
    int lo, hi;
};

DEVICE query_facts facts_of(const attn_args &a, const unit &u, u32 row)
{
    query q = query_of(a, u, row);
    if (q.hi == 0)
        return {infinity<f32>(), 0, 0, 0};
    f32 lse = ((const f32 *)a.lse)[q.index];
    return {lse == -infinity<f32>() ? infinity<f32>() : lse * LOG2E, ((const f32 *)a.delta)[q.index], q.lo, q.hi};
}

/* From q . k and dy . v: the weight of (query, key), or for WK_GRAD_Q and WK_GRAD_K the gradient of their product. */
template <class T, int OF, int PLAIN>
DEVICE f32 matrix_gradient(const attn_args &a, const unit &u, const query_facts &f, u32 row, int key, f32 dot, f32 dy_v)
{
    f32 slope = 1, score = dot * (f32)a.scale;
    if (key < f.lo || key >= f.hi)
        return 0;
    if (!PLAIN)
        score = score_of<T>(a, query_of(a, u, row), key, dot, &slope);
    f32 weight = m_exp2_fast(score * LOG2E - f.lse);
    return OF == WK_GRAD_V ? weight : weight * (dy_v - f.delta) * slope;
}

/* The wave's products become weights or gradients of products. own: of its rows, where they are queries; theirs: of the
 * tile's. */
template <class T, int D, int OF, int PLAIN>
DEVICE void matrix_gradients(const attn_args &a, const unit &u, u32 owner0, u32 other0, const query_facts *own,
                             const query_facts *theirs, f32 (*s)[MMA_VALUES], const f32 (*p)[MMA_VALUES])
{
    UNROLL
    for (int n = 0; n < matrix_tile<D>::others / 16; n++)
        UNROLL
        for (int i = 0; i < MMA_VALUES; i++) {
            u32 owner = owner0 + mma_row(mma_slot(i)), other = other0 + n * 16 + mma_col(i);
            query_facts f = OF == WK_GRAD_Q ? own[mma_slot(i)] : theirs[n * 16 + mma_col(i)];
            s[n][i] = matrix_gradient<T, OF, PLAIN>(a, u, f, OF == WK_GRAD_Q ? owner : other,
                                                    (int)(OF == WK_GRAD_Q ? other : owner), s[n][i], p[n][i]);
        }
}

template <class T, int D, int OF>
DEVICE void matrix_grad_store(const attn_args &a, const unit &u, u32 owner0, const f32 (*out)[MMA_VALUES])
{
    int width = OF == WK_GRAD_V ? a.dv : a.d;
    u32 owners = OF == WK_GRAD_Q ? u.rows : u.t;
    i64 first = OF == WK_GRAD_Q ? ((i64)u.batch * a.hq + (i64)u.head * a.group) * u.s : ((i64)u.batch * a.hk + u.head) * u.t;
    UNROLL
    for (int i = 0; i < MMA_VALUES; i++) {
        u32 owner = owner0 + mma_row(mma_slot(i));
        T *to = (T *)a.y + (first + owner) * width;
        UNROLL
        for (int c = 0; c < D / 16; c++) {
            int at = c * 16 + mma_col(i);
            if (owner < owners && at < width)
                to[at] = put<T>(out[c][i] * (OF == WK_GRAD_V ? 1 : (f32)a.scale));
        }
    }
}

template <class T, int D, int OF, int PLAIN, int PARTS> DEVICE void matrix_grad_block(const attn_args &a, const unit &u)
{
    typedef matrix_tile<D> M;
    SHARED alignas(16) T room[2 * M::others * M::pitch], turned[D * M::turned], weights[PARTS * 64 * M::turned];
    SHARED query_facts theirs[M::others];
    SHARED alignas(16) T kept1[M::kept], kept2[M::kept];
    static_assert(!M::resident || sizeof room >= sizeof(T) * 64 * M::pitch, "the owners go there first");
    source<T> qs = queries_of<T>(a, a.q, u), dys = queries_of<T>(a, a.dy, u);
    source<T> ks = keys_of<T>(a.k, u), vs = keys_of<T>(a.v, u);
    const source<T> &own1 = OF == WK_GRAD_Q ? qs : ks, &own2 = OF == WK_GRAD_Q ? dys : vs;
    const source<T> &other1 = OF == WK_GRAD_Q ? ks : qs, &other2 = OF == WK_GRAD_Q ? vs : dys;
    const source<T> &mixed = OF == WK_GRAD_Q ? ks : OF == WK_GRAD_K ? qs : dys;
    u32 owner0 = u.first + wave_id() * 16;
    int lo = 0, hi = (int)u.rows;
    owners<T, D> o1, o2;
    query_facts own[MMA_SLOTS];
    f32 out[D / 16][MMA_VALUES] = {};
    stage<T, D>(own1, u.first, 64, a.d, M::resident ? room : kept1);
    barrier();
    o1.take(M::resident ? room : kept1);
    barrier();
    if (OF != WK_GRAD_V) {
        stage<T, D>(own2, u.first, 64, a.dv, M::resident ? room : kept2);
        barrier();
        o2.take(M::resident ? room : kept2);
    }
    if (OF == WK_GRAD_Q) {
        keys_of_rows(a, u, u.first, u.first + 63, &lo, &hi);
        UNROLL
        for (int k = 0; k < MMA_SLOTS; k++)
            own[k] = facts_of(a, u, owner0 + mma_row(k));
    }
    for (int at = lo; at < hi; at += M::others) {
        f32 s[M::others / 16][MMA_VALUES], p[M::others / 16][MMA_VALUES] = {};
        if (OF != WK_GRAD_Q && !meet(a, u, at, M::others))
            continue;
        barrier();
        stage<T, D>(other1, at, M::others, a.d, room);
        if (OF != WK_GRAD_V)
            stage<T, D>(other2, at, M::others, a.dv, room + M::others * M::pitch);
        stage_turned<T, D>(mixed, at, OF == WK_GRAD_V ? a.dv : a.d, turned);
        if (OF != WK_GRAD_Q && thread_id() < M::others)
            theirs[thread_id()] = facts_of(a, u, at + thread_id());
        barrier();
        matrix_dots<T, D>(o1, room, a.d, s);
        if (OF != WK_GRAD_V)
            matrix_dots<T, D>(o2, room + M::others * M::pitch, a.dv, p);
        matrix_gradients<T, D, OF, PLAIN>(a, u, owner0, at, own, theirs, s, p);
        keep_matrix<T, D, PARTS>(s, weights);
        matrix_add<T, D, PARTS>(weights, turned, OF == WK_GRAD_V ? a.dv : a.d, out);
    }
    matrix_grad_store<T, D, OF>(a, u, owner0, out);
    barrier();
}

/* Blocks: x over units and their blocks of 64 owners; four waves each. PLAIN: no mask and no cap.
 * PARTS: of the weights, see keep_matrix. */
template <class T, int D, int OF, int PLAIN, int PARTS> DEVICE void attn_matrix_grad(const attn_args &a)
{
    for (u32 id = block_id(); id < (u32)a.blocks * (u32)a.units; id += grid_blocks()) {
        unit u;
        if (find_unit(a, id, &u))
            matrix_grad_block<T, D, OF, PLAIN, PARTS>(a, u);
    }
}
