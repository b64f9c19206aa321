/* attention_matrix_grad.hip: the gradients of attention of f16 and bf16, on CDNA also of f32, on matrix units. What a block owns are rows of dq, of dk,
 * of dv, or of both dk and dv, and nobody else adds to them. Scores are made again tile by tile. */
#include "attention_matrix.h"

/* Of a row of the others or of the owners that is a query. lse is times log2(e), and infinite for a row without keys. */
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

/* The others that a block goes through: keys; or queries, head after head. */
struct others_range {
    int lo, hi, heads;
};

/* The queries of a head that see some of the keys [first, last). */
DEVICE void queries_seeing(const attn_args &a, const unit &u, i64 first, i64 last, int *lo, int *hi)
{
    i64 s = u.s, shift = (i64)u.t - s, from = 0, to = s;
    bool windowed = a.window > 0 && a.window < s + u.t;
    if (a.causal)
        from = first - shift;
    else if (windowed)
        from = first - shift - a.window + 1;
    if (windowed)
        to = last + a.window - 1 - shift;
    from = from < 0 ? 0 : from;
    to = to > s ? s : to;
    *lo = (int)(from < to ? from : 0);
    *hi = (int)(from < to ? to : 0);
}

/* A block's shared memory. own1, own2: rows of q and dy, or of k and v; one, two: the others', that is of k and v, or of q
 * and dy; there are several places for each where tiles do not pass through registers. turned: for products that sum over
 * the others, on AMD. */
template <class T, int D, int N, int WAVES, int OF> struct grad_room {
    typedef matrix_shape<D, N, WAVES> M;
    typedef owners<T, D, M::rows> owners_t;
    static const bool kept = owners_t::kept, makes1 = OF != WK_GRAD_V, makes2 = OF == WK_GRAD_V || OF == WK_GRAD_KV;
    static const bool turns = turns_tiles<T>::value;
    static const int turned = turns ? makes1 + makes2 : 0;
    static const int bufs = M::value_bufs, own = M::rows * D, tiles = (2 * bufs + turned) * M::tile;
    T others[kept || tiles > own ? tiles : own]; /* owners that do not stay go there first */
    T owned[kept ? 2 * own : 8];
    f32 lse[3][N], delta[3][N];
    int lo[3][N], hi[3][N]; /* of queries among the others: three tiles' */
    u64 gate;
    MEMBER T *one(int place) { return others + place * M::tile; }
    MEMBER T *two(int place) { return others + (bufs + place) * M::tile; }
    MEMBER T *turned1() { return others + 2 * M::tile; }
    MEMBER T *turned2() { return others + (1 + turned) * M::tile; }
    MEMBER T *own1() { return kept ? owned : others; }
    MEMBER T *own2() { return kept ? owned + own : others; }
};

/* What a block does, between its beginning and its end. */
template <class T, int D, int N, int WAVES, int OF, int PLAIN, int PARTS> struct grad_pass {
    typedef matrix_shape<D, N, WAVES> M;
    typedef grad_room<T, D, N, WAVES, OF> room_t;
    static const bool of_q = OF == WK_GRAD_Q;
    f32 grown1, grown2; /* see grow */
    owners<T, D, M::rows> own1, own2;
    incoming<source<T>, T, N, D, M::threads, room_t::turns && room_t::makes1> in1;
    incoming<source<T>, T, N, D, M::threads, room_t::turns && room_t::makes2> in2;
    f32 out1[room_t::makes1 ? D / 16 : 1][MMA_VALUES], out2[room_t::makes2 ? D / 16 : 1][MMA_VALUES];
    query_facts facts[of_q ? OWN_SLOTS : 1]; /* of the owners, or of the next tile's row of this thread */
    u32 owner0;

    MEMBER void take_owners(const attn_args &a, const unit &u, const source<T> &from1, const source<T> &from2, room_t &room)
    {
        incoming<source<T>, T, M::rows, D, M::threads, false> in;
        UNROLL
        for (int which = 0; which < 2; which++) {
            const source<T> &from = which ? from2 : from1;
            in.aim(from, u.first, which ? a.dv : a.d);
            in.fetch(which ? room.own2() : room.own1());
            tiles_arrive(in, which ? room.own2() : room.own1());
            (which ? own2 : own1).take(which ? room.own2() : room.own1());
            if (!room_t::kept)
                barrier();
        }
        UNROLL
        for (int k = 0; of_q && k < OWN_SLOTS; k++)
            facts[k] = facts_of(a, u, owner0 + own_row(k));
    }

    /* The tiles of others from `at` of a head on start on their way. */
    MEMBER void fetch(const attn_args &a, const unit &u, source<T> from1, source<T> from2, int head, int at, int place, room_t &room)
    {
        if (!of_q) { /* within a head rows lie at one distance */
            from1.base += head * from1.h;
            from2.base += head * from2.h;
            from1.n = from2.n = u.s;
            from1.per = from2.per = 0;
            facts[0] = thread_id() < N && at + thread_id() < u.s ? facts_of(a, u, head * u.s + at + thread_id())
                                                                 : query_facts{infinity<f32>(), 0, 0, 0};
        }
        in1.aim(from1, at, a.d);
        in2.aim(from2, at, a.dv);
        in1.fetch(room.one(place));
        in2.fetch(room.two(place));
    }

    MEMBER void keep_facts(int turn, room_t &room) const
    {
        if (!of_q && thread_id() < N) {
            room.lse[turn][thread_id()] = facts[0].lse;
            room.delta[turn][thread_id()] = facts[0].delta;
            room.lo[turn][thread_id()] = facts[0].lo;
            room.hi[turn][thread_id()] = facts[0].hi;
        }
    }

    MEMBER void arrive(int place, tile_gate &gate, room_t &room) const
    {
#ifdef WK_HOPPER
        gate.pass(in1, room.one(place));
#elif defined(WK_NVIDIA)
        copies_wait();
        barrier();
#else
        barrier();
        in1.land_plain(room.one(place));
        if (room_t::makes1 || !room_t::turns)
            in2.land_plain(room.two(place));
        if (room_t::makes1 && room_t::turns)
            in1.land(room.turned1());
        if (room_t::makes2 && room_t::turns)
            in2.land(room.turned2());
        barrier();
#endif
    }

    /* Whether each of the wave's owners sees, or is seen by, all of the tile. */
    MEMBER bool all_seen(const attn_args &a, const unit &u, int at) const
    {
        int lo, hi, none;
        if (of_q) {
            bool all = true;
            UNROLL
            for (int k = 0; k < OWN_SLOTS; k++)
                all = all && at >= facts[of_q ? k : 0].lo && at + N <= facts[of_q ? k : 0].hi;
            return wave_ballot(!all) == 0;
        }
        keys_seen(a, u, at, &none, &hi);
        keys_seen(a, u, at + N - 1, &lo, &none);
        return lo <= (int)owner0 && hi >= (int)owner0 + 16;
    }

    /* Products q . k become weights. slope: of the cap. */
    MEMBER void weigh(const attn_args &a, const unit &u, int head, int at, int turn, const room_t &room, f32 (*s)[MMA_VALUES],
                      f32 (*slope)[MMA_VALUES]) const
    {
        f32 scale = (f32)a.scale * LOG2E;
        bool all = PLAIN && all_seen(a, u, at);
        UNROLL
        for (int n = 0; n < N / 16; n++)
            UNROLL
            for (int i = 0; i < MMA_VALUES; i++) {
                int other = n * 16 + other_at(i), slot = of_q ? own_slot(i) : 0;
                int owner = (int)owner0 + own_row(own_slot(i)), key = of_q ? at + other : owner;
                f32 lse = of_q ? facts[slot].lse : room.lse[turn][other];
                f32 score = s[n][i] * scale;
                if (!PLAIN) {
                    query q = query_of(a, u, of_q ? owner : head * u.s + at + other);
                    slope[n][i] = 1;
                    score = key < q.hi ? score_of<T>(a, q, key, s[n][i], &slope[n][i]) * LOG2E : 0;
                }
                s[n][i] = m_exp2_fast(score - lse);
            }
        if (all)
            return;
        UNROLL
        for (int n = 0; n < N / 16; n++)
            UNROLL
            for (int i = 0; i < MMA_VALUES; i++) {
                int other = n * 16 + other_at(i), slot = of_q ? own_slot(i) : 0;
                int key = of_q ? at + other : (int)owner0 + own_row(own_slot(i));
                int lo = of_q ? facts[slot].lo : room.lo[turn][other], hi = of_q ? facts[slot].hi : room.hi[turn][other];
                s[n][i] = key >= lo && key < hi ? s[n][i] : 0;
            }
    }

    /* Where small numbers would be lost they go to the products as large as the largest so far allows, `grown` times (0: there was
     * none yet); what was summed up keeps step. Returns how many times. */
    static MEMBER f32 grow(const f32 (*v)[MMA_VALUES], f32 &grown, f32 (*out)[MMA_VALUES])
    {
        f32 most = 0;
        UNROLL
        for (int n = 0; n < N / 16; n++)
            UNROLL
            for (int i = 0; i < MMA_VALUES; i++)
                most = max_number(most, m_fabs(v[n][i]) < infinity<f32>() ? m_fabs(v[n][i]) : 0);
        most = wave_reduce<op_max_number>(most);
        if (grown == 0 ? most > 0 : most * grown >= 32768) {
            int up = lesser(14 - ((int)(bit_cast<u32>(most) >> 23) - 127), 100);
            f32 now = bit_cast<f32>((u32)(127 + up) << 23), by = grown == 0 ? 1 : now / grown;
            grown = now;
            UNROLL
            for (int c = 0; c < D / 16; c++)
                UNROLL
                for (int i = 0; i < MMA_VALUES; i++)
                    out[c][i] *= by;
        }
        return grown == 0 ? 1 : grown;
    }
    MEMBER void take_grown(const f32 (*v)[MMA_VALUES], f32 &grown, f32 (*out)[MMA_VALUES], fragment<T> (*f)[PARTS])
    {
        f32 by = grow(v, grown, out);
        UNROLL
        for (int n = 0; n < N / 16; n++) {
            f32 large[MMA_VALUES];
            UNROLL
            for (int i = 0; i < MMA_VALUES; i++)
                large[i] = v[n][i] * by;
            own_operand<T, PARTS>(large, f[n]);
        }
    }

    /* next: whether there is a tile after this one. The last products may still be under way at the end. */
    MEMBER void add_tile(const attn_args &a, const unit &u, int head, int at, int turn, int place, bool next, tile_gate &gate,
                         room_t &room)
    {
        f32 s[N / 16][MMA_VALUES], p[N / 16][MMA_VALUES], slope[PLAIN ? 1 : N / 16][MMA_VALUES];
        fragment<T> weights1[N / 16][PARTS], weights2[N / 16][PARTS];
        start_dots<T, D, N>(own1, room.one(place), a.d, s);
        if (room_t::makes1)
            start_dots<T, D, N>(own2, room.two(place), a.dv, p);
        products_wait<room_t::makes1, N / 16>(s);
        if (next)
            keep_facts(turn < 2 ? turn + 1 : 0, room);
        weigh(a, u, head, at, turn, room, s, slope);
        if (next)
            gate.announce();
        if constexpr (room_t::makes2) {
            if constexpr (loses_small<T>::value) {
                take_grown(s, grown2, out2, weights2);
            } else {
                UNROLL
                for (int n = 0; n < N / 16; n++)
                    own_operand<T, PARTS>(s[n], weights2[n]);
            }
            start_add<T, D, N, PARTS>(weights2, room_t::turns ? room.turned2() : room.two(place), a.dv, out2);
        }
        if constexpr (room_t::makes1) {
            products_before(s[0][0]);
            products_wait<room_t::makes2, N / 16>(p);
            UNROLL
            for (int n = 0; n < N / 16; n++) {
                UNROLL
                for (int i = 0; i < MMA_VALUES; i++) {
                    int other = n * 16 + other_at(i);
                    f32 delta = of_q ? facts[of_q ? own_slot(i) : 0].delta : room.delta[turn][other];
                    p[n][i] = s[n][i] * (p[n][i] - delta) * (PLAIN ? 1 : slope[PLAIN ? 0 : n][i]);
                }
                if constexpr (!loses_small<T>::value)
                    own_operand<T, PARTS>(p[n], weights1[n]);
            }
            if constexpr (loses_small<T>::value)
                take_grown(p, grown1, out1, weights1);
            start_add<T, D, N, PARTS>(weights1, room_t::turns ? room.turned1() : room.one(place), a.d, out1);
        }
        if constexpr (room_t::makes1 && room_t::makes2)
            products_wait<(D <= 64), D / 16>(out2); /* of wider heads: all, for the registers that their weights take */
    }
};

template <class T, int D, int N, int WAVES, int OF, int PLAIN, int PARTS>
DEVICE void grad_block(const attn_args &a, const unit &u)
{
    typedef grad_pass<T, D, N, WAVES, OF, PLAIN, PARTS> pass_t;
    typedef typename pass_t::room_t room_t;
    ROOM(bytes, sizeof(room_t));
    room_t &room = *(room_t *)bytes;
    source<T> qs = queries_of<T>(a, a.q, u), dys = queries_of<T>(a, a.dy, u);
    source<T> ks = keys_of<T>(a.k, u), vs = keys_of<T>(a.v, u);
    const source<T> &others1 = pass_t::of_q ? ks : qs, &others2 = pass_t::of_q ? vs : dys;
    const int ROWS = pass_t::M::rows;
    int lo, hi, heads = pass_t::of_q ? 1 : a.group, place = 0, turn = 0;
    tile_gate gate;
    pass_t pass = {};
    pass.owner0 = u.first + wave_id() * 16;
    if (pass_t::of_q)
        keys_of_rows(a, u, u.first, u.first + ROWS - 1, &lo, &hi);
    else
        queries_seeing(a, u, u.first, lesser((i64)u.first + ROWS, (i64)u.t), &lo, &hi);
    if (lo < hi) {
        pass.take_owners(a, u, pass_t::of_q ? qs : ks, pass_t::of_q ? dys : vs, room);
        gate.open(&room.gate, pass_t::M::threads);
        pass.fetch(a, u, others1, others2, 0, lo, 0, room);
        pass.keep_facts(0, room);
        gate.announce();
        for (int head = 0, at = lo; head < heads;) {
            int next = at + N < hi ? at + N : lo, next_head = at + N < hi ? head : head + 1;
            int after = place + 1 < room_t::bufs ? place + 1 : 0;
            pass.arrive(place, gate, room);
            if (next_head < heads)
                pass.fetch(a, u, others1, others2, next_head, next, after, room);
            pass.add_tile(a, u, head, at, room_t::bufs == 3 ? place : turn, place, next_head < heads, gate, room);
            head = next_head;
            at = next;
            place = after;
            turn = turn < 2 ? turn + 1 : 0;
        }
        products_wait<0, room_t::makes1 ? D / 16 : 1>(pass.out1);
        products_wait<0, room_t::makes2 ? D / 16 : 1>(pass.out2);
        gate.close();
    }
    i64 q0 = ((i64)u.batch * a.hq + (i64)u.head * a.group) * u.s, k0 = ((i64)u.batch * a.hk + u.head) * u.t;
    f32 lower1 = loses_small<T>::value && pass.grown1 != 0 ? 1 / pass.grown1 : 1;
    f32 lower2 = loses_small<T>::value && pass.grown2 != 0 ? 1 / pass.grown2 : 1;
    if constexpr (room_t::makes1)
        grad_store<T, D>(a.y, pass_t::of_q ? q0 : k0, pass.owner0, pass_t::of_q ? u.rows : u.t, a.d,
                         (f32)a.scale * lower1, pass.out1);
    if constexpr (room_t::makes2)
        grad_store<T, D>(a.y2, k0, pass.owner0, u.t, a.dv, lower2, pass.out2);
}

/* Blocks: x over units and their blocks of owners. PLAIN: no mask and no cap. PARTS: of the weights, see own_operand. */
template <class T, int D, int N, int WAVES, int OF, int PLAIN, int PARTS> DEVICE void attn_matrix_grad(const attn_args &a)
{
    for (u32 id = block_id(); id < (u32)a.blocks * (u32)a.units; id += grid_blocks()) {
        unit u;
        if (find_unit(a, id, &u))
            grad_block<T, D, N, WAVES, OF, PLAIN, PARTS>(a, u);
    }
}
