/* attention_broad.hip: attention of f32 without matrix units. */
#include "attention_broad.h"

/* A thread's part of a block. Scores are in units whose exponent to the base 2 is a weight's; PLAIN leaves the scale to
 * the unit. */
template <class S, int TM, int PLAIN> struct broad_rows {
    static const int TN = S::TN, TC = S::TC;
    f32 unit, top[TM], sum[TM], out[TM][TC];

    MEMBER void begin(const attn_args &a)
    {
        unit = PLAIN ? (f32)a.scale * LOG2E : 1;
        UNROLL
        for (int i = 0; i < TM; i++) {
            top[i] = -infinity<f32>();
            sum[i] = 0;
            UNROLL
            for (int c = 0; c < TC; c++)
                out[i][c] = 0;
        }
    }

    /* Products with keys from k0 on become scores; keys from `end` on are not there. */
    MEMBER void score(const attn_args &a, const struct unit &u, int k0, int end, f32 (*s)[TN]) const
    {
        f32 slope;
        UNROLL
        for (int i = 0; i < TM; i++) {
            u32 row = u.first + S::owner(i);
            query q = {};
            if (PLAIN)
                keys_seen(a, u, row % u.s, &q.lo, &q.hi);
            else
                q = query_of(a, u, row);
            UNROLL
            for (int j = 0; j < TN; j++) {
                int key = k0 + S::other(j);
                bool seen = key >= q.lo && key < q.hi && key < end;
                if (!PLAIN)
                    s[i][j] = seen ? score_of<f32>(a, q, key, s[i][j], &slope) * LOG2E : 0;
                s[i][j] = seen ? s[i][j] : -infinity<f32>();
            }
        }
    }

    /* New tops. Weights may grow to 2^8 before what was summed so far is scaled down again: that is hardly ever. */
    MEMBER void raise(const f32 (*s)[TN])
    {
        f32 now[TM];
        bool higher = false;
        UNROLL
        for (int i = 0; i < TM; i++) {
            f32 most = s[i][0];
            UNROLL
            for (int j = 1; j < TN; j++)
                most = max_number(most, s[i][j]);
            now[i] = wave_reduce<op_max_number, S::X>(most) * unit;
            now[i] = now[i] - top[i] > 8 ? now[i] : top[i];
            higher = higher || now[i] != top[i];
        }
        if (wave_ballot(higher) == 0)
            return;
        UNROLL
        for (int i = 0; i < TM; i++) {
            f32 fix = now[i] != top[i] ? m_exp2_fast(top[i] - now[i]) : 1;
            top[i] = now[i];
            sum[i] *= fix;
            UNROLL
            for (int c = 0; c < TC; c++)
                out[i][c] *= fix;
        }
    }

    MEMBER void weigh(const f32 (*s)[TN], typename S::weights_t *weights)
    {
        UNROLL
        for (int i = 0; i < TM; i++) {
            f32 base = top[i] == -infinity<f32>() ? 0 : top[i];
            UNROLL
            for (int j = 0; j < TN; j++) {
                f32 weight = m_exp2_fast(m_fma(s[i][j], unit, -base));
                sum[i] += weight;
                weights[S::owner(i)][S::other(j)] = weight;
            }
        }
    }

    /* Rows to y and lse, or to the split's part. */
    MEMBER void finish(const attn_args &a, const struct unit &u) const
    {
        bool first = thread_id() % S::X == 0, parts = a.splits > 1;
        UNROLL
        for (int i = 0; i < TM; i++) {
            u32 row = u.first + S::owner(i);
            f32 all = wave_reduce<op_sum, S::X>(sum[i]);
            if (row >= u.rows)
                continue;
            u32 head = row / u.s, r = row - head * u.s;
            i64 index = query_of(a, u, row).index, part = block_id_z() * a.rows + index;
            f32 *y = (f32 *)a.y + u.batch * a.y_b + (i64)(head + u.head * a.group) * a.y_h + (u.q0 + r) * a.y_s;
            if (parts)
                S::store_row((f32 *)a.part_y + part * a.dv, a.dv, out[i], 1);
            else
                S::store_row(y, a.dv, out[i], all == 0 ? 0 : 1 / all);
            if (first && parts) {
                ((f32 *)a.part_top)[part] = top[i] * LN2;
                ((f32 *)a.part_sum)[part] = all;
            } else if (first && a.lse) {
                ((f32 *)a.lse)[index] = all == 0 ? -infinity<f32>() : top[i] * LN2 + m_log(all);
            }
        }
    }
};

template <int D, int ROWS, int TM, int N, int PLAIN> DEVICE void broad_block(const attn_args &a, const unit &u)
{
    typedef broad_shape<D, ROWS, TM, N> S;
    struct room_t {
        typename S::row_t q[ROWS], k[N], v[N];
        typename S::weights_t weights[ROWS];
    };
    ROOM(bytes, sizeof(room_t));
    room_t &room = *(room_t *)bytes;
    source<f32> qs = queries_of<f32>(a, a.q, u), ks = keys_of<f32>(a.k, u), vs = keys_of<f32>(a.v, u);
    broad_rows<S, TM, PLAIN> rows;
    broad_incoming<ROWS, S::THREADS, S::PITCH> q_in;
    broad_incoming<N, S::THREADS, S::PITCH> k_in, v_in;
    int lo, hi, all_lo, all_hi;
    keys_of_rows(a, u, u.first, u.first + ROWS - 1, &lo, &hi);
    keys_of_all_rows(a, u, u.first, u.first + ROWS - 1, &all_lo, &all_hi);
    lo = lo > (int)block_id_z() * a.split_keys ? lo : (int)block_id_z() * a.split_keys;
    hi = (int)lesser((i64)hi, (i64)(block_id_z() + 1) * a.split_keys);
    all_hi = lesser(all_hi, hi);
    rows.begin(a);
    if (lo < hi) {
        q_in.fetch(qs, u.first, a.d, room.q);
        k_in.fetch(ks, lo, a.d, room.k);
        q_in.land(qs, u.first, a.d, room.q);
    }
    for (int k0 = lo; k0 < hi; k0 += N) { /* values come while keys are multiplied, and the next keys with values */
        f32 s[TM][S::TN];
        k_in.land(ks, k0, a.d, room.k);
        barrier();
        v_in.fetch(vs, k0, a.dv, room.v);
        S::dots(room.q, room.k, s);
        if (!PLAIN || k0 < all_lo || k0 + N > all_hi)
            rows.score(a, u, k0, hi, s);
        rows.raise(s);
        rows.weigh(s, room.weights);
        v_in.land(vs, k0, a.dv, room.v);
        barrier();
        if (k0 + N < hi)
            k_in.fetch(ks, k0 + N, a.d, room.k);
        S::add(room.weights, room.v, rows.out);
    }
    rows.finish(a, u);
    barrier(); /* the next rows begin with writes to shared memory */
}

/* Blocks: x over units and their blocks of rows, z over splits of the keys. T: f32. PLAIN: no mask, no cap, a scale above
 * zero. */
template <class T, int D, int ROWS, int TM, int N, int PLAIN> DEVICE void attn_broad(const attn_args &a)
{
    for (u32 id = block_id(); id < (u32)a.blocks * (u32)a.units; id += grid_blocks()) {
        unit u;
        if (find_unit(a, id, &u))
            broad_block<D, ROWS, TM, N, PLAIN>(a, u);
    }
}
