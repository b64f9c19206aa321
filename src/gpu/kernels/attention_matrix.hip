/* attention_matrix.hip: attention of f16 and bf16 on matrix units, for heads up to 128 wide. */
#include "attention_matrix.h"

/* Weights are powers of 2: scores carry log2(e). */
const f32 LOG2E = 1.44269504088896340736f, LN2 = 0.69314718055994530942f;

/* What a lane keeps of its rows, by slot. */
template <int D> struct running_rows {
    f32 top[MMA_SLOTS], sum[MMA_SLOTS], out[D / 16][MMA_VALUES];
    int lo[MMA_SLOTS], hi[MMA_SLOTS];
};

/* Products become scores, times log2(e). */
template <class T, int D, int PLAIN>
DEVICE void matrix_scores(const attn_args &a, const unit &u, u32 row0, int k0, int end, const running_rows<D> &r,
                          f32 (*s)[MMA_VALUES])
{
    f32 scale = (f32)a.scale * LOG2E, slope;
    UNROLL
    for (int i = 0; i < MMA_VALUES; i++) {
        int slot = mma_slot(i);
        query q = {0, 0, 0, r.lo[slot], r.hi[slot]};
        if (!PLAIN)
            q = query_of(a, u, row0 + mma_row(slot));
        UNROLL
        for (int n = 0; n < matrix_tile<D>::others / 16; n++) {
            int key = k0 + n * 16 + mma_col(i);
            bool seen = key >= q.lo && key < q.hi && key < end;
            f32 v = PLAIN ? s[n][i] * scale : seen ? score_of<T>(a, q, key, s[n][i], &slope) * LOG2E : 0;
            s[n][i] = seen ? v : -infinity<f32>();
        }
    }
}

/* The running softmax over one more tile: scores become weights. */
template <int D> DEVICE void matrix_soften(f32 (*s)[MMA_VALUES], running_rows<D> *r)
{
    const int N = matrix_tile<D>::others / 16;
    f32 most[MMA_SLOTS], fix[MMA_SLOTS], base[MMA_SLOTS];
    UNROLL
    for (int k = 0; k < MMA_SLOTS; k++)
        most[k] = r->top[k];
    UNROLL
    for (int i = 0; i < MMA_VALUES; i++)
        UNROLL
        for (int n = 0; n < N; n++)
            most[mma_slot(i)] = greater(most[mma_slot(i)], s[n][i]);
    UNROLL
    for (int k = 0; k < MMA_SLOTS; k++) {
        f32 now = mma_row_reduce<op_max>(most[k]), was = r->top[k];
        fix[k] = now != was ? m_exp2_fast(was - now) : 1;
        base[k] = now == -infinity<f32>() ? 0 : now;
        r->top[k] = now;
        r->sum[k] *= fix[k];
    }
    UNROLL
    for (int i = 0; i < MMA_VALUES; i++) {
        int k = mma_slot(i);
        UNROLL
        for (int n = 0; n < N; n++) {
            s[n][i] = m_exp2_fast(s[n][i] - base[k]);
            r->sum[k] += s[n][i];
        }
        UNROLL
        for (int c = 0; c < D / 16; c++)
            r->out[c][i] *= fix[k];
    }
}

template <class T, int D> DEVICE void matrix_drop(const attn_args &a, const unit &u, u32 row0, int k0, f32 (*s)[MMA_VALUES])
{
    UNROLL
    for (int i = 0; i < MMA_VALUES; i++) {
        query q = query_of(a, u, row0 + mma_row(mma_slot(i)));
        UNROLL
        for (int n = 0; n < matrix_tile<D>::others / 16; n++) {
            u32 word = philox_word(a.seed, a.offset, 0, (u64)(q.weight + k0 + n * 16 + mma_col(i)));
            s[n][i] *= word >= a.drop_below ? (f32)a.keep : 0;
        }
    }
}

/* Rows to y and lse, or to the split's part. */
template <class T, int D> DEVICE void matrix_store(const attn_args &a, const unit &u, u32 row0, running_rows<D> *r)
{
    UNROLL
    for (int k = 0; k < MMA_SLOTS; k++)
        r->sum[k] = mma_row_reduce<op_sum>(r->sum[k]);
    UNROLL
    for (int i = 0; i < MMA_VALUES; i++) {
        int slot = mma_slot(i), col = mma_col(i);
        u32 row = row0 + mma_row(slot);
        f32 sum = r->sum[slot], factor = a.splits > 1 ? 1 : sum == 0 ? 0 : 1 / sum;
        if (row >= u.rows)
            continue;
        query q = query_of(a, u, row);
        u32 head = row / u.s;
        i64 part = block_id_z() * a.rows + q.index;
        T *y = (T *)a.y + u.batch * a.y_b + (i64)(head + u.head * a.group) * a.y_h + (u.q0 + row - head * u.s) * a.y_s;
        UNROLL
        for (int c = 0; c < D / 16; c++) {
            int at = c * 16 + col;
            if (at < a.dv && a.splits > 1)
                ((f32 *)a.part_y)[part * a.dv + at] = r->out[c][i];
            else if (at < a.dv)
                y[at] = put<T>(r->out[c][i] * factor);
        }
        if (col == 0 && a.splits > 1) {
            ((f32 *)a.part_top)[part] = r->top[slot] * LN2;
            ((f32 *)a.part_sum)[part] = sum;
        } else if (col == 0 && a.lse) {
            ((f32 *)a.lse)[q.index] = sum == 0 ? -infinity<f32>() : r->top[slot] * LN2 + m_log(sum);
        }
    }
}

template <class T, int D, int PLAIN, int PARTS> DEVICE void matrix_block(const attn_args &a, const unit &u)
{
    typedef matrix_tile<D> M;
    SHARED alignas(16) T room[M::others * M::pitch + D * M::turned], weights[PARTS * 64 * M::turned];
    SHARED alignas(16) T kept[M::kept];
    static_assert(!M::resident || sizeof room >= sizeof(T) * 64 * M::pitch, "the queries go there first");
    T *queries = M::resident ? room : kept, *keys = room, *values = room + M::others * M::pitch;
    source<T> qs = queries_of<T>(a, a.q, u), ks = keys_of<T>(a.k, u), vs = keys_of<T>(a.v, u);
    u32 row0 = u.first + wave_id() * 16;
    int lo, hi;
    owners<T, D> q;
    running_rows<D> r = {};
    stage<T, D>(qs, u.first, 64, a.d, queries);
    barrier();
    q.take(queries);
    UNROLL
    for (int k = 0; k < MMA_SLOTS; k++) {
        query one = query_of(a, u, row0 + mma_row(k));
        r.lo[k] = one.lo;
        r.hi[k] = one.hi;
        r.top[k] = -infinity<f32>();
    }
    keys_of_rows(a, u, u.first, u.first + 63, &lo, &hi);
    lo = lo > (int)block_id_z() * a.split_keys ? lo : (int)block_id_z() * a.split_keys;
    hi = (int)lesser((i64)hi, (i64)(block_id_z() + 1) * a.split_keys);
    for (int k0 = lo; k0 < hi; k0 += M::others) {
        f32 s[M::others / 16][MMA_VALUES];
        barrier();
        stage<T, D>(ks, k0, M::others, a.d, keys);
        stage_turned<T, D>(vs, k0, a.dv, values);
        barrier();
        matrix_dots<T, D>(q, keys, a.d, s);
        matrix_scores<T, D, PLAIN>(a, u, row0, k0, hi, r, s);
        matrix_soften<D>(s, &r);
        if (!PLAIN && a.drop_below)
            matrix_drop<T, D>(a, u, row0, k0, s);
        keep_matrix<T, D, PARTS>(s, weights);
        matrix_add<T, D, PARTS>(weights, values, a.dv, r.out);
    }
    matrix_store<T, D>(a, u, row0, &r);
    barrier();
}

/* Blocks: x over units and their blocks of 64 rows, z over splits of the keys; four waves each. PLAIN: no mask,
 * no cap, no dropout. PARTS: of the weights, see keep_matrix. */
template <class T, int D, int PLAIN, int PARTS> DEVICE void attn_matrix(const attn_args &a)
{
    for (u32 id = block_id(); id < (u32)a.blocks * (u32)a.units; id += grid_blocks()) {
        unit u;
        if (find_unit(a, id, &u))
            matrix_block<T, D, PLAIN, PARTS>(a, u);
    }
}
