/* attention_matrix.hip: attention of f16 and bf16, on CDNA also of f32, on matrix units. While a tile's weights are made, the products of the
 * next keys and of the values before them are under way. */
#include "attention_matrix.h"

/* Hopper's registers are too few for the sums of wide heads and for masks at once. */
template <int D, int PLAIN> struct is_tight {
#ifdef WK_HOPPER
    static const bool value = D > 128 && !PLAIN;
#else
    static const bool value = false;
#endif
};

/* What a lane keeps of its rows, by slot. Scores are in units whose exponent to the base 2 is a weight's. */
template <int D> struct running_rows {
    f32 top[OWN_SLOTS], sum[OWN_SLOTS], fix[OWN_SLOTS], out[D / 16][MMA_VALUES];
    int lo[OWN_SLOTS], hi[OWN_SLOTS]; /* the keys that the row sees, */
    int all_lo, all_hi;               /* and those that all of the wave's rows see */
};

template <int D> DEVICE void begin_rows(const attn_args &a, const unit &u, u32 row0, int end, running_rows<D> *r)
{
    r->all_lo = 0;
    r->all_hi = end;
    UNROLL
    for (int k = 0; k < OWN_SLOTS; k++) {
        u32 row = row0 + own_row(k);
        query q = query_of(a, u, row);
        bool real = row < u.rows; /* whatever the others become, nobody reads it */
        r->lo[k] = real ? q.lo : 0;
        r->hi[k] = real ? lesser(q.hi, end) : end;
        r->all_lo = greater(r->all_lo, r->lo[k]);
        r->all_hi = lesser(r->all_hi, r->hi[k]);
        r->top[k] = -infinity<f32>();
        r->sum[k] = 0;
    }
    r->all_lo = wave_reduce<op_max>(r->all_lo);
    r->all_hi = wave_reduce<op_min>(r->all_hi);
    UNROLL
    for (int c = 0; c < D / 16; c++)
        UNROLL
        for (int i = 0; i < MMA_VALUES; i++)
            r->out[c][i] = 0;
}

/* Products become scores; PLAIN leaves the scale to their unit. */
template <class T, int D, int N, int PLAIN>
DEVICE void matrix_scores(const attn_args &a, const unit &u, u32 row0, int k0, const running_rows<D> &r, f32 (*s)[MMA_VALUES])
{
    f32 slope;
    if (PLAIN && k0 >= r.all_lo && k0 + N <= r.all_hi)
        return;
    UNROLL
    for (int i = 0; i < MMA_VALUES; i++) {
        int slot = own_slot(i);
        query q = {0, 0, 0, r.lo[slot], r.hi[slot]};
        if (!PLAIN)
            q = query_of(a, u, row0 + own_row(slot));
        UNROLL
        for (int n = 0; n < N / 16; n++) {
            int key = k0 + n * 16 + other_at(i);
            bool seen = key >= r.lo[slot] && key < r.hi[slot] && (PLAIN || key < q.hi);
            if (!PLAIN)
                s[n][i] = seen ? score_of<T>(a, q, key, s[n][i], &slope) * LOG2E : 0;
            s[n][i] = seen ? s[n][i] : -infinity<f32>();
        }
    }
}

/* Weights are 2^RAISED times what they would be: they may grow to 2^8, and f16 ends at 2^16. */
template <class T> struct raised {
    static const int value = loses_small<T>::value ? 7 : 0;
};

/* The running softmax over one more tile: scores become weights. */
template <int D, int N, int RAISED> DEVICE void matrix_soften(f32 (*s)[MMA_VALUES], f32 unit, running_rows<D> *r)
{
    f32 base[OWN_SLOTS], most[OWN_SLOTS];
    UNROLL
    for (int k = 0; k < OWN_SLOTS; k++)
        most[k] = r->top[k];
    UNROLL
    for (int n = 0; n < N / 16; n++)
        UNROLL
        for (int i = 0; i < MMA_VALUES; i++)
            most[own_slot(i)] = max_number(most[own_slot(i)], s[n][i]);
    UNROLL
    for (int k = 0; k < OWN_SLOTS; k++) {
        /* Weights may grow to 2^8 before what was summed so far is scaled down again: that is hardly ever. */
        f32 now = own_reduce<op_max_number>(most[k]), was = r->top[k];
        now = (now - was) * unit > 8 ? now : was;
        r->fix[k] = now != was ? m_exp2_fast((was - now) * unit) : 1;
        base[k] = now == -infinity<f32>() ? 0 : lowered<RAISED>(now * unit);
        r->top[k] = now;
        r->sum[k] *= r->fix[k];
    }
    UNROLL
    for (int n = 0; n < N / 16; n++)
        UNROLL
        for (int i = 0; i < MMA_VALUES; i++) {
            s[n][i] = m_exp2_fast(m_fma(s[n][i], unit, -base[own_slot(i)]));
            r->sum[own_slot(i)] += s[n][i];
        }
}

template <int D> DEVICE void matrix_fix(running_rows<D> *r)
{
    if (wave_ballot(r->fix[0] != 1 || r->fix[OWN_SLOTS - 1] != 1) == 0)
        return;
    UNROLL
    for (int c = 0; c < D / 16; c++)
        UNROLL
        for (int i = 0; i < MMA_VALUES; i++)
            r->out[c][i] *= r->fix[own_slot(i)];
}

/* Rows to y and lse, or to the split's part. */
template <class T, int D> DEVICE void matrix_store(const attn_args &a, const unit &u, u32 row0, f32 unit, running_rows<D> *r)
{
    UNROLL
    for (int k = 0; k < OWN_SLOTS; k++) {
        u32 row = row0 + own_row(k);
        f32 sum = own_reduce<op_sum>(r->sum[k]), top = lowered<raised<T>::value>(r->top[k] * unit) * LN2, factor = sum == 0 ? 0 : 1 / sum;
        if (row >= u.rows)
            continue;
        query q = query_of(a, u, row);
        u32 head = row / u.s;
        i64 part = block_id_z() * a.rows + q.index;
        T *y = (T *)a.y + u.batch * a.y_b + (i64)(head + u.head * a.group) * a.y_h + (u.q0 + row - head * u.s) * a.y_s;
        UNROLL
        for (int c = 0; c < D / 16; c++)
            UNROLL
            for (int i = 0; i < MMA_VALUES; i += OWN_RUN) {
                if (own_slot(i) != k)
                    continue;
                if (a.splits > 1)
                    store_run((f32 *)a.part_y + part * a.dv, c * 16 + other_at(i), a.dv, &r->out[c][i], 1);
                else
                    store_run(y, c * 16 + other_at(i), a.dv, &r->out[c][i], factor);
            }
        if (other_at(0) == 0 && a.splits > 1) {
            ((f32 *)a.part_top)[part] = top;
            ((f32 *)a.part_sum)[part] = sum;
        } else if (other_at(0) == 0 && a.lse) {
            ((f32 *)a.lse)[q.index] = sum == 0 ? -infinity<f32>() : top + m_log(sum);
        }
    }
}

/* What a block does with its rows of a unit. */
template <class T, int D, int N, int WAVES, int PLAIN, int PARTS> struct matrix_pass {
    typedef matrix_shape<D, N, WAVES> M;
    running_rows<D> r;
    f32 s[N / 16][MMA_VALUES], unit;
    fragment<T> weights[N / 16][PARTS];

    /* The tile's products, done, become weights; what was summed so far stays to be fixed. */
    MEMBER void soften(const attn_args &a, const struct unit &u, u32 row0, int k0)
    {
        matrix_scores<T, D, N, PLAIN>(a, u, row0, k0, r, s);
        matrix_soften<D, N, raised<T>::value>(s, unit, &r);
    }
    MEMBER void take_weights()
    {
        UNROLL
        for (int n = 0; n < N / 16; n++)
            own_operand<T, PARTS>(s[n], weights[n]);
    }
};

template <class T, int D, int N, int WAVES, int PLAIN, int PARTS>
DEVICE void matrix_block(const attn_args &a, const unit &u)
{
    typedef matrix_shape<D, N, WAVES> M;
    typedef owners<T, D, M::rows> owners_t;
    const int TILES = M::bufs + M::value_bufs, QUERIES = M::rows * D;
    const int ELEMENTS = owners_t::kept ? TILES * M::tile + QUERIES : TILES * M::tile > QUERIES ? TILES * M::tile : QUERIES;
    ROOM(room, ELEMENTS * sizeof(T) + 16);
    T *keys = (T *)room, *values = keys + M::bufs * M::tile, *queries = owners_t::kept ? keys + TILES * M::tile : keys;
    source<T> qs = queries_of<T>(a, a.q, u), ks = keys_of<T>(a.k, u), vs = keys_of<T>(a.v, u);
    u32 row0 = u.first + wave_id() * 16;
    int lo, hi, odd = 0, place = 0; /* of the keys, of the values */
    tile_gate gate;
    owners_t q;
    incoming<source<T>, T, M::rows, D, M::threads, false> q_in;
    incoming<source<T>, T, N, D, M::threads, false> k_in;
    incoming<source<T>, T, N, D, M::threads, turns_tiles<T>::value> v_in;
    matrix_pass<T, D, N, WAVES, PLAIN, PARTS> pass;
    keys_of_rows(a, u, u.first, u.first + M::rows - 1, &lo, &hi);
    lo = lo > (int)block_id_z() * a.split_keys ? lo : (int)block_id_z() * a.split_keys;
    hi = (int)lesser((i64)hi, (i64)(block_id_z() + 1) * a.split_keys);
    pass.unit = PLAIN ? (f32)a.scale * LOG2E : 1;
    begin_rows<D>(a, u, row0, hi, &pass.r);
    if (lo < hi) {
        q_in.aim(qs, u.first, a.d);
        k_in.aim(ks, lo, a.d);
        v_in.aim(vs, lo, a.dv);
        q_in.fetch(queries);
        if (owners_t::kept) {
            k_in.fetch(keys);
            tiles_arrive(q_in, queries, k_in, keys);
            q.take(queries);
        } else {
            tiles_arrive(q_in, queries);
            q.take(queries);
            barrier();
            k_in.fetch(keys);
            tiles_arrive(k_in, keys);
        }
        gate.open((u64 *)(keys + ELEMENTS), M::threads);
        v_in.fetch(values);
        if (lo + N < hi)
            k_in.fetch(keys + (M::bufs - 1) * M::tile);
        start_dots<T, D, N>(q, keys, a.d, pass.s);
        products_wait<0, N / 16>(pass.s);
        gate.announce();
        pass.soften(a, u, row0, lo);
        pass.take_weights();
        for (int k0 = lo; k0 + N < hi; k0 += N) { /* in flight: the values of k0 and the keys after them */
            int after = place + 1 < M::value_bufs ? place + 1 : 0;
            T *now = values + place * M::tile, *next = keys + (M::bufs - 1) * (1 - odd) * M::tile;
            gate.pass(k_in, next, v_in, now);
            v_in.fetch(values + after * M::tile);
            if (k0 + 2 * N < hi)
                k_in.fetch(keys + (M::bufs - 1) * odd * M::tile);
            start_dots<T, D, N>(q, next, a.d, pass.s);
            start_add<T, D, N, PARTS>(pass.weights, now, a.dv, pass.r.out);
            products_wait<1, N / 16>(pass.s);
            if constexpr (is_tight<D, PLAIN>::value) /* what scores take here is held by the products' operands */
                products_wait<0, D / 16>(pass.r.out);
            pass.soften(a, u, row0, k0 + N);
            gate.announce();
            products_before(pass.r.sum[0] + pass.r.sum[OWN_SLOTS - 1]);
            products_wait<0, D / 16>(pass.r.out);
            matrix_fix<D>(&pass.r);
            pass.take_weights();
            odd = 1 - odd;
            place = after;
        }
        T *now = values + place * M::tile;
        gate.pass(v_in, now);
        start_add<T, D, N, PARTS>(pass.weights, now, a.dv, pass.r.out);
        products_wait<0, D / 16>(pass.r.out);
        gate.close();
    }
    matrix_store<T, D>(a, u, row0, pass.unit, &pass.r);
}

/* Blocks: x and y over units and their blocks of rows, each once; z over splits of the keys. PLAIN: no mask, no cap, a scale above zero. PARTS: of the weights, see own_operand. */
template <class T, int D, int N, int WAVES, int PLAIN, int PARTS> DEVICE void attn_matrix(const attn_args &a)
{
    unit u;
    u32 id = block_id_y() * grid_blocks() + block_id();
    if (id >= (u32)a.blocks * (u32)a.units || !find_unit(a, id, &u))
        return;
    if constexpr (is_tight<D, PLAIN>::value) {
        SHARED unit kept;
        if (thread_id() == 0)
            kept = u;
        barrier();
        matrix_block<T, D, N, WAVES, PLAIN, PARTS>(a, kept);
    } else {
        matrix_block<T, D, N, WAVES, PLAIN, PARTS>(a, u);
    }
}
