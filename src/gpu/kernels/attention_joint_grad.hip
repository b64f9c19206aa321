/* attention_joint_grad.hip: all gradients of attention of bf16 in one pass, by Hopper's products.
 *
 * A block has keys, with dk and dv in registers, and goes through the queries that see them; then it takes the next keys. Eight waves
 * have the products; one thread has tiles brought, and two have the block's parts of dq added to sums in memory. Who adds after whom is
 * fixed, so that the bits are too: these two wait for their turn, which depends only on keys that were taken before, but for pairs
 * (below). Blocks that find no more keys make dq of the sums, while others still have products: there are seldom as many keys as would
 * fill the device to the end.
 *
 * Operands are f16, of q, k, v and dy after a power of two has brought them where f16 has them: what bf16 has below 2^-25 of the
 * largest element, or 2^-31 where some are far larger than most, is lost. So the weights, which must have an operand's type, are
 * rounded to 11 bits and not to 8. */
#include "attention_matrix.h"
#include "cluster.h"
#include "gate.h"

/* ---- powers of two ---- */

const int WEIGHT_SHIFT = 8; /* of weights: up to 1, and as many below */

struct joint_shifts {
    int q, k, v, dy, s; /* s: of gradients of scores, beyond that of dy . v */
};

DEVICE int shift_of(u32 peak)
{
    int shift = 14 - ((int)(peak >> 23) - 127);
    return peak == 0 ? 0 : shift > 126 ? 126 : shift;
}
/* n, where no row of shifted elements is longer than 2^n. square: of the longest, before the shift. */
DEVICE int length_of(u32 square, int shift, int widest)
{
    int e = (int)(square >> 23) - 127;
    return e > -100 && e < 100 ? ((e + 2) >> 1) + shift : widest;
}
/* From a sample, which saves a pass over all elements: so little that the largest may be 2^6 times as large. */
DEVICE int guess_of(const u32 *peaks, int of) { return shift_of(peaks[WK_SAMPLE_Q + of]) - 6; }
DEVICE bool guessed(const u32 *peaks, int of)
{
    return peaks[WK_SAMPLE_Q + of] && guess_of(peaks, of) <= shift_of(peaks[WK_PEAK_Q + of]);
}
DEVICE int shift_for(const u32 *peaks, int of)
{
    return guessed(peaks, of) ? guess_of(peaks, of) : shift_of(peaks[WK_PEAK_Q + of]);
}
DEVICE joint_shifts shifts_of(const u32 *peaks)
{
    joint_shifts n = {shift_for(peaks, WK_PEAK_Q), shift_for(peaks, WK_PEAK_K), shift_for(peaks, WK_PEAK_V),
                      shift_for(peaks, WK_PEAK_DY), 0};
    n.s = 6 - length_of(peaks[WK_NORM_V], n.v, 19) - length_of(peaks[WK_NORM_DY], n.dy, 19);
    return n;
}
DEVICE f32 power(int n)
{
    n = n < -126 ? -126 : n > 127 ? 127 : n;
    return bit_cast<f32>((u32)(n + 127) << 23);
}
/* v times 2^n, |n| up to 250. */
DEVICE f32 times_power(f32 v, int n) { return v * power(n / 2) * power(n - n / 2); }

/* ---- before ---- */

DEVICE int rounded(int rows) { return (rows + WK_JOINT_ROUND - 1) / WK_JOINT_ROUND * WK_JOINT_ROUND; }

/* Keys of a block and a tile of queries, as they lie in memory and in shared memory. */
template <int D> struct joint_keys {
    f16 k[WK_JOINT_KEYS * D], v[WK_JOINT_KEYS * D];
};
template <int D> struct joint_tile {
    static const int N = D == 64 ? 128 : 64;
    f16 q[N * D], dy[N * D];
    f32 lse[128], delta[128]; /* as the products want them */
};

/* Eight elements of a row, as words: elements by themselves would take a register each. */
template <class T> struct joint_piece {
    u32 w[4];
    MEMBER f32 at(int j) const { return get(T{(unsigned short)(w[j / 2] >> j % 2 * 16)}); }
};

/* Grid y: q, k, v, dy. A block has N rows of a head at a time, D / 8 lanes a row and four rows a thread. */
template <int D> struct joint_rows {
    static const int LANES = D / 8, STEP = 256 / LANES, N = 4 * STEP;
    static_assert(N == joint_tile<D>::N, "a tile of queries");
    int of, heads, n;
    u32 pieces; /* of a head */
    u32 head;
    int first; /* the thread's first row of that head, and its column */
    int col;
    MEMBER bool queries() const { return of == WK_PEAK_Q || of == WK_PEAK_DY; }
    MEMBER void begin(const attn_joint_args &a)
    {
        of = block_id_y();
        heads = queries() ? a.hq : a.hk;
        n = queries() ? a.s : a.t;
        pieces = (u32)rounded(n) / N;
        col = thread_id() % LANES * 8;
    }
    MEMBER u32 count(const attn_joint_args &a) const { return (u32)(a.batch * heads) * pieces; }
    MEMBER void find(u32 piece)
    {
        head = piece / pieces;
        first = (int)(piece - head * pieces) * N + thread_id() / LANES;
    }
    MEMBER const attn_view &view(const attn_joint_args &a) const
    {
        return of == WK_PEAK_Q ? a.q : of == WK_PEAK_K ? a.k : of == WK_PEAK_V ? a.v : a.dy;
    }
    MEMBER joint_tile<D> &tile(const attn_joint_args &a) const
    {
        return ((joint_tile<D> *)a.tiles16)[(i64)head * pieces + first / N];
    }
    /* Where the rows' copies belong. */
    MEMBER f16 *copy(const attn_joint_args &a) const
    {
        if (queries())
            return of == WK_PEAK_Q ? tile(a).q : tile(a).dy;
        joint_keys<D> &keys = ((joint_keys<D> *)a.keys16)[(i64)head * (rounded(n) / WK_JOINT_KEYS) + first / WK_JOINT_KEYS];
        return of == WK_PEAK_K ? keys.k : keys.v;
    }
    /* The thread's pieces; all on their way before the first is used. */
    template <class T> MEMBER void read(const attn_view &from, joint_piece<T> *v) const
    {
        u32 b = head / (u32)heads;
        const T *at = (const T *)from.data + b * from.b + (head - b * (u32)heads) * from.h + first * from.s + col;
        UNROLL
        for (int e = 0; e < 4; e++) {
            v[e] = {};
            load_words_if(first + e * STEP < n, (const u32 *)(at + e * STEP * from.s), v[e].w);
        }
    }
};

/* The largest elements, and the squares of rows' lengths. */
struct joint_tops {
    f32 top, longest;
    template <class T> MEMBER f32 add(const joint_piece<T> &v)
    {
        f32 sum = 0;
        UNROLL
        for (int j = 0; j < 8; j++) {
            f32 x = v.at(j);
            x = x < 0 ? -x : x;
            x = x < infinity<f32>() ? x : 0;
            top = x > top ? x : top;
            sum += x * x;
        }
        return sum;
    }
};

/* Blocks: q, k, v, dy. The largest of a few elements, from which the copies' shifts are guessed. */
template <class T, int D> DEVICE void attn_joint_sample(const attn_joint_args &a)
{
    joint_rows<D> rows;
    joint_tops tops = {0, 0};
    rows.begin(a);
    const attn_view &from = rows.view(a);
    i64 row = (i64)a.batch * rows.heads * rows.n * thread_id() / 256, head = row / rows.n, b = head / rows.heads;
    const T *at = (const T *)from.data + b * from.b + (head - b * rows.heads) * from.h + (row - head * rows.n) * from.s;
    joint_piece<T> piece = {};
    load_words_if(true, (const u32 *)(at + rows.col), piece.w);
    tops.add(piece);
    f32 top = wave_reduce<op_max>(tops.top);
    if (lane_id() == 0)
        atomic_max(a.peaks + WK_SAMPLE_Q + rows.of, bit_cast<u32>(top));
}

/* What is known of each query of a piece; delta as it is. */
template <class T, int D>
DEVICE void joint_facts(const attn_joint_args &a, const joint_rows<D> &rows, const joint_piece<T> *dy, const joint_piece<T> *y)
{
    joint_tile<D> &tile = rows.tile(a);
    UNROLL
    for (int e = 0; e < 4; e++) {
        f32 delta = 0;
        UNROLL
        for (int j = 0; j < 8; j++)
            delta += y[e].at(j) * dy[e].at(j);
        delta = wave_reduce<op_sum, D / 8>(delta);
        int i = rows.first + e * rows.STEP;
        if (rows.col == 0) {
            f32 lse = i < a.s ? ((const f32 *)a.lse)[(i64)rows.head * a.s + i] : infinity<f32>();
            lse = lse == -infinity<f32>() ? infinity<f32>() : lse;
            tile.lse[i % rows.N] = lse * LOG2E - WEIGHT_SHIFT;
            tile.delta[i % rows.N] = delta;
        }
    }
}

/* A piece's copy. Rows lie as the pass has them in shared memory, tile after tile, with zeros after the last. */
template <class T, int D> DEVICE void joint_copy(const attn_joint_args &a, const joint_rows<D> &rows, const joint_piece<T> *v, f32 factor)
{
    f16 *to = rows.copy(a);
    UNROLL
    for (int e = 0; e < 4; e++) {
        pack<u32, 4> w;
        UNROLL
        for (int j = 0; j < 4; j++)
            w.v[j] = two_of<f16>(v[e].at(2 * j) * factor, v[e].at(2 * j + 1) * factor);
        int i = rows.first + e * rows.STEP;
        int at = rows.queries() ? tile_at<f16, joint_tile<D>::N, D>(i % rows.N, rows.col)
                                : tile_at<f16, WK_JOINT_KEYS, D>(i % WK_JOINT_KEYS, rows.col);
        store<4>((u32 *)(to + at), w);
    }
}

/* The copies, with shifts that are guessed, and whether these will do; with dy what is known of each query. */
template <class T, int D> DEVICE void attn_joint_copies(const attn_joint_args &a)
{
    joint_rows<D> rows;
    joint_tops tops = {0, 0};
    rows.begin(a);
    int of = rows.of;
    f32 factor = power(guess_of(a.peaks, of));
    for (u32 piece = block_id(); piece < rows.count(a); piece += grid_blocks()) {
        joint_piece<T> v[4], y[4];
        rows.find(piece);
        rows.read(rows.view(a), v);
        if (of == WK_PEAK_DY)
            rows.read(a.y, y);
        joint_copy(a, rows, v, factor);
        UNROLL
        for (int e = 0; e < 4; e++) {
            f32 sum = wave_reduce<op_sum, D / 8>(tops.add(v[e]));
            tops.longest = sum > tops.longest ? sum : tops.longest;
        }
        if (of == WK_PEAK_DY)
            joint_facts(a, rows, v, y);
    }
    f32 top = wave_reduce<op_max>(tops.top), longest = wave_reduce<op_max>(tops.longest);
    if (lane_id() == 0) {
        atomic_max(a.peaks + of, bit_cast<u32>(top));
        if (of == WK_PEAK_V || of == WK_PEAK_DY)
            atomic_max(a.peaks + (of == WK_PEAK_V ? WK_NORM_V : WK_NORM_DY), bit_cast<u32>(longest));
    }
}

/* Copies whose shift was not well guessed, once more; delta as the products want it. */
template <class T, int D> DEVICE void attn_joint_mend(const attn_joint_args &a)
{
    joint_rows<D> rows;
    rows.begin(a);
    joint_shifts n = shifts_of(a.peaks);
    if (rows.of == WK_PEAK_DY) {
        const u32 AT_ONCE = 256 / rows.N;
        for (u32 piece = block_id() * AT_ONCE + thread_id() / rows.N; piece < rows.count(a); piece += grid_blocks() * AT_ONCE) {
            f32 *delta = ((joint_tile<D> *)a.tiles16)[piece].delta + thread_id() % rows.N;
            *delta = times_power(*delta, n.v + n.dy + n.s);
        }
    }
    if (guessed(a.peaks, rows.of))
        return;
    f32 factor = power(shift_for(a.peaks, rows.of));
    for (u32 piece = block_id(); piece < rows.count(a); piece += grid_blocks()) {
        joint_piece<T> v[4];
        rows.find(piece);
        rows.read(rows.view(a), v);
        joint_copy(a, rows, v, factor);
    }
}

/* ---- the pass ---- */

#ifdef WK_HOPPER

/* How many blocks add to a tile. */
template <int N> DEVICE u32 all_turns(const attn_joint_args &a, int tile)
{
    u32 seen = (u32)(tile * N + N - 1) / WK_JOINT_KEYS + 1;
    return a.causal && seen < (u32)a.blocks ? seen : (u32)a.blocks;
}

/* Which keys a block has, and the tiles of queries that see them.
 *
 * Blocks of a unit that is not causal add in the order of their keys, and each waits for the one before it all along: blocks of some
 * units begin in turns, so that the one before is ahead. Those of a causal one add from the last keys on: this is how they begin, and
 * each comes to a tile after the others, with nobody to wait for. Pairs, where blocks are few: first the keys of a block of the second
 * half, which few queries see, then those of one of the first half: all have as much to do. The second half adds from the last keys on,
 * the first half from the first ones on: so they come to a tile, and nobody waits for long. */
struct joint_walk {
    u32 unit, block;
    u32 head0; /* the group's first head, among all of q's */
    int lo;    /* the first tile of each head */
    int tiles; /* of all heads */
    MEMBER int first() const { return (int)block * WK_JOINT_KEYS; }
    MEMBER u32 lower(const attn_joint_args &a) const { return a.causal && a.paired ? (u32)a.blocks / 2 : 0; }
    /* A unit's. */
    MEMBER u32 each(const attn_joint_args &a) const { return (u32)a.blocks - lower(a); }
    /* A number's keys, and the second ones of a pair: no tiles, where it has none. */
    template <int N> MEMBER void find(const attn_joint_args &a, u32 number, int part)
    {
        u32 side = lower(a) ? 1 : WK_JOINT_SIDE, set = number / (side * each(a)) * side;
        u32 units_left = (u32)(a.batch * a.hk) - set;
        number -= set * each(a);
        side = side < units_left ? side : units_left;
        unit = set + number % side;
        number /= side;
        block = !a.causal || part ? number : (u32)a.blocks - 1 - number;
        head0 = unit / (u32)a.hk * a.hq + unit % (u32)a.hk * a.group;
        lo = a.causal ? first() / N : 0;
        tiles = part && block >= lower(a) ? 0 : a.group * (a.tiles - lo);
    }
    /* How many add to a tile before this block. */
    template <int N> MEMBER u32 turn_at(const attn_joint_args &a, int tile) const
    {
        u32 last = all_turns<N>(a, tile) - 1, half = lower(a);
        if (!a.causal)
            return block;
        return block >= half ? last - block : block + (last >= half ? last + 1 - half : 0);
    }
};

/* Goes through the tiles of a walk; their numbers, where a head has `each`. */
struct joint_step {
    int tile, left; /* left: with this one */
    u32 at;
    MEMBER void begin(const joint_walk &w, u32 each)
    {
        tile = w.lo;
        left = w.tiles;
        at = w.head0 * each + w.lo;
    }
    MEMBER void go_on(const attn_joint_args &a, const joint_walk &w, u32 each)
    {
        tile++;
        at++;
        left--;
        if (tile == a.tiles) {
            tile = w.lo;
            at += each - a.tiles + w.lo;
        }
    }
};

/* Two places for what comes and goes; gates: of places that are full, and that are empty again. */
template <int D> struct joint_room {
    static const int KEYS = WK_JOINT_KEYS, N = joint_tile<D>::N;
    joint_keys<D> keys;
    joint_tile<D> tile[2];
    f16 slopes[2][KEYS * N]; /* gradients of scores */
    f32 sums[2][N * D];      /* tiles of dq, as the threads have them */
    u64 walk_full[2], walk_empty[2], keys_full, keys_empty, tile_full[2], tile_empty[2], sums_full[2], sums_empty[2];
    int at[2]; /* the tiles' first queries */
    joint_walk walk[2];
    u32 number; /* after the last walk: of tiles of dq */
};

/* Of the waves with products. */
DEVICE void products_barrier() { crew_barrier<256>(); }

/* Until so many have. */
DEVICE void wait_turn(const u32 *turns, u32 turn)
{
    u32 now;
    do {
        asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(now) : "l"(turns) : "memory");
    } while (now != turn);
}

/* Four lanes exchange words: lane m has the m-th of each afterwards. */
DEVICE void exchange_four(u32 *w)
{
    UNROLL
    for (int bit = 1; bit < 4; bit *= 2) {
        bool upper = lane_id() & bit;
        UNROLL
        for (int i = 0; i < 4; i++)
            if (!(i & bit)) {
                u32 theirs = shuffle_xor(upper ? w[i] : w[i | bit], bit);
                w[i] = upper ? theirs : w[i];
                w[i | bit] = upper ? w[i | bit] : theirs;
            }
    }
}

/* 32 columns of a wave's 16 rows as products have them, times 2^shift and factor, to rows of D columns of which n are there. */
template <class T, int D> DEVICE void store_rows(T *to, int n, const pack<f32, 4> *from, int shift, f32 factor)
{
    UNROLL
    for (int k = 0; k < 2; k++) {
        int row = lane_id() / 4 + k * 8;
        pack<u32, 4> w;
        UNROLL
        for (int j = 0; j < 4; j++) {
            const f32 *two = from[j].v + 2 * k;
            w.v[j] = two_of<T>(times_power(two[0], shift) * factor, times_power(two[1], shift) * factor);
        }
        exchange_four(w.v);
        if (row < n)
            store<4>((u32 *)(to + row * D + lane_id() % 4 * 8), w);
    }
}

template <int D> struct joint_pass {
    typedef joint_room<D> room_t;
    static const int N = room_t::N, KEYS = room_t::KEYS;
    f32 dk[D / 16][MMA_VALUES], dv[D / 16][MMA_VALUES];
    f32 score, slope; /* what products are multiplied with */
    int first, owner0; /* keys: the block's and the wave's */

    /* Products q . k become weights. */
    MEMBER void weigh(const attn_joint_args &a, int at, const f32 *lse, f32 (*s)[MMA_VALUES]) const
    {
        UNROLL
        for (int n = 0; n < N / 16; n++)
            UNROLL
            for (int i = 0; i < MMA_VALUES; i++)
                s[n][i] = m_exp2_fast(m_fma(s[n][i], score, -lse[n * 16 + other_at(i)]));
        bool all = first + KEYS <= a.t && (!a.causal || at >= first + KEYS - 1);
        if (all)
            return;
        UNROLL
        for (int n = 0; n < N / 16; n++)
            UNROLL
            for (int i = 0; i < MMA_VALUES; i++) {
                int key = owner0 + own_row(own_slot(i)), query = at + n * 16 + other_at(i);
                s[n][i] = key < a.t && (!a.causal || key <= query) ? s[n][i] : 0;
            }
    }

    /* Gradients of scores to where the product for dq finds them. */
    MEMBER void keep(const fragment<f16> (*f)[1], f16 *to) const
    {
        int row = wave_id() * 16 + lane_id() % 16;
        UNROLL
        for (int n = 0; n < N / 16; n++)
            asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1,%2,%3,%4};" ::"r"(
                             shared_address(to + tile_at<f16, KEYS, N>(row, n * 16 + lane_id() / 16 * 8))),
                         "r"(f[n][0].w[0]), "r"(f[n][0].w[1]), "r"(f[n][0].w[2]), "r"(f[n][0].w[3])
                         : "memory");
        shared_proxy_fence();
    }

    /* A group of four waves has half of the tile: of its columns, or (D = 64) of its rows. */
    MEMBER void start_dq(const f16 *slopes, const f16 *keys, f32 *c) const
    {
        int half = wave_id() / 4 * (KEYS * 64);
        u64 x = wgmma_place(slopes + (D == 64 ? half : 0), 16), y = wgmma_place(keys + (D == 64 ? 0 : half), 16);
        wgmma_fence();
        UNROLL
        for (int k = 0; k < KEYS / 16; k++)
            wgmma_turned(width_tag<64>(), f16(), c, x + k * 128, y + k * 128, k > 0);
        wgmma_commit();
    }

    /* A tile's part of dq to where it is added from. count: of the block's tiles. */
    MEMBER void pass_on(const f32 (*sums)[MMA_VALUES], u32 count, room_t &room)
    {
        const int place = count & 1;
        if (count > 1)
            gate_wait(&room.sums_empty[place], (count / 2 - 1) & 1);
        UNROLL
        for (int j = 0; j < 8; j++)
            store<4>(room.sums[place] + (wave_id() / 4 * 8 + j) * 512 + thread_id() % 128 * 4,
                     *(const pack<f32, 4> *)&sums[j / 2][j % 2 * 4]);
        shared_proxy_fence();
        gate_arrive(&room.sums_full[place]);
    }

    /* Adds a tile to all three; the products for dk go on afterwards. */
    MEMBER void add_tile(const attn_joint_args &a, u32 count, bool begun, room_t &room)
    {
        f32 s[N / 16][MMA_VALUES], p[N / 16][MMA_VALUES], sums[4][MMA_VALUES];
        fragment<f16> weights[N / 16][1], slopes[N / 16][1];
        const int place = count & 1;
        const joint_tile<D> &tile = room.tile[place];
        owners<f16, D, KEYS> k, v;
        k.tile = room.keys.k;
        v.tile = room.keys.v;
        gate_wait(&room.tile_full[place], count / 2 & 1);
        start_dots<f16, D, N>(k, tile.q, D, s);
        wgmma_wait<1>(); /* the tile before is done with */
        if (begun)
            gate_arrive(&room.tile_empty[place ^ 1]);
        start_dots<f16, D, N>(v, tile.dy, D, p);
        products_wait<1, N / 16>(s);
        weigh(a, room.at[place], tile.lse, s);
        UNROLL
        for (int n = 0; n < N / 16; n++)
            own_operand<f16, 1>(s[n], weights[n]);
        start_add<f16, D, N, 1>(weights, tile.dy, D, dv);
        products_wait<1, N / 16>(p);
        UNROLL
        for (int n = 0; n < N / 16; n++) {
            UNROLL
            for (int i = 0; i < MMA_VALUES; i++)
                p[n][i] = s[n][i] * m_fma(p[n][i], slope, -tile.delta[n * 16 + other_at(i)]);
            own_operand<f16, 1>(p[n], slopes[n]);
        }
        keep(slopes, room.slopes[place]);
        products_barrier();
        start_dq(room.slopes[place], room.keys.k, &sums[0][0]);
        start_add<f16, D, N, 1>(slopes, tile.q, D, dk);
        products_wait<1, 4>(sums);
        pass_on(sums, count, room);
    }
};

template <int D, class T>
DEVICE u32 joint_products(const attn_joint_args &a, const joint_shifts &n, const joint_walk &w, u32 walks, u32 count,
                          joint_room<D> &room)
{
    joint_pass<D> pass = {};
    pass.score = times_power(a.scale * LOG2E, -n.q - n.k);
    pass.slope = power(n.s);
    pass.first = w.first();
    pass.owner0 = pass.first + wave_id() * 16;
    gate_wait(&room.keys_full, walks & 1);
    int all = w.tiles, left = all;
    do {
        pass.add_tile(a, count, left < all, room);
        count++;
    } while (--left > 0);
    products_wait<0, D / 16>(pass.dv);
    products_wait<0, D / 16>(pass.dk);
    gate_arrive(&room.tile_empty[(count & 1) ^ 1]);
    gate_arrive(&room.keys_empty);
    int of_dk = -(WEIGHT_SHIFT + n.dy + n.v + n.s + n.q), of_dv = -(WEIGHT_SHIFT + n.dy);
    i64 at = ((i64)w.unit * a.t + pass.owner0) * D;
    UNROLL
    for (int c = 0; c < D / 32; c++) {
        store_rows<T, D>((T *)a.dk + at + c * 32, a.t - pass.owner0, (const pack<f32, 4> *)pass.dk[c * 2], of_dk, a.scale);
        store_rows<T, D>((T *)a.dv + at + c * 32, a.t - pass.owner0, (const pack<f32, 4> *)pass.dv[c * 2], of_dv, 1);
    }
    return count;
}

/* One thread has keys and tiles of queries brought. */
template <int D> DEVICE u32 joint_loads(const attn_joint_args &a, const joint_walk &w, u32 walks, u32 count, joint_room<D> &room)
{
    const int N = joint_room<D>::N;
    const u32 each = rounded(a.s) / N;
    const joint_keys<D> *keys = (const joint_keys<D> *)a.keys16 + ((i64)w.unit * (rounded(a.t) / WK_JOINT_KEYS) + w.block);
    if (walks)
        gate_wait(&room.keys_empty, (walks - 1) & 1);
    bulk_fetch(&room.keys, keys, sizeof room.keys, &room.keys_full);
    joint_step step;
    ROLLED
    for (step.begin(w, each); step.left > 0; step.go_on(a, w, each), count++) {
        int place = count & 1;
        if (count > 1)
            gate_wait(&room.tile_empty[place], (count / 2 - 1) & 1);
        room.at[place] = step.tile * N;
        bulk_fetch(&room.tile[place], (const joint_tile<D> *)a.tiles16 + step.at, sizeof room.tile[0], &room.tile_full[place]);
    }
    return count;
}

/* Two threads have the tiles of dq added, each when its turn has come; place: this one's. */
template <int D> DEVICE u32 joint_sums(const attn_joint_args &a, const joint_walk &w, u32 count, u32 place, joint_room<D> &room)
{
    const int N = joint_room<D>::N;
    const u32 BYTES = sizeof room.sums[0];
    joint_step step;
    ROLLED
    for (step.begin(w, a.tiles); step.left > 0; step.go_on(a, w, a.tiles), count++) {
        if ((count & 1) != place)
            continue;
        u32 turn = w.turn_at<N>(a, step.tile);
        wait_turn(a.turns + step.at, turn);
        memory_proxy_fence();
        gate_wait(&room.sums_full[place], count / 2 & 1);
        u32 from = shared_address(room.sums[place]);
        const f32 *to = a.sums + (i64)step.at * (N * D);
        if (turn == 0)
            asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(from), "r"(BYTES)
                         : "memory");
        else
            asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], %2;" ::"l"(to), "r"(from),
                         "r"(BYTES)
                         : "memory");
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
        gate_arrive(&room.sums_empty[place]);
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
        memory_proxy_fence();
        asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(a.turns + step.at) : "memory");
    }
    return count;
}

DEVICE void gates_init(u64 *full, u64 *empty, int filling, int emptying)
{
    for (int i = 0; i < 2; i++) {
        gate_init(full + i, filling);
        gate_init(empty + i, emptying);
    }
}

/* Sums of tiles to dq. */
template <class T, int D> struct joint_end {
    static const int N = joint_tile<D>::N, AT_ONCE = 2; /* tiles, whose sums are all on their way before the first is used */
    int half, shift;

    MEMBER void read(const attn_joint_args &a, u32 at, pack<f32, 4> *v) const
    {
        UNROLL
        for (int j = 0; j < 8; j++)
            v[j] = load<4>(a.sums + (i64)at * (N * D) + (half * 8 + j) * 512 + thread_id() % 128 * 4);
    }
    MEMBER void write(const attn_joint_args &a, u32 at, const pack<f32, 4> *v) const
    {
        u32 head = at / (u32)a.tiles;
        int first = (int)(at - head * a.tiles) * N + wave_id() % 4 * 16 + (D == 64 ? half * 64 : 0);
        T *to = (T *)a.dq + ((i64)head * a.s + first) * D + (D == 64 ? 0 : half * 64);
        UNROLL
        for (int c = 0; c < 2; c++)
            store_rows<T, D>(to + c * 32, a.s - first, v + c * 4, shift, a.scale);
    }
    /* Tiles [from, to), after all have added to them. */
    MEMBER void run(const attn_joint_args &a, u32 from, u32 to)
    {
        joint_shifts n = shifts_of(a.peaks);
        pack<f32, 4> v[AT_ONCE][8];
        u32 mine = from + thread_id();
        shift = -(WEIGHT_SHIFT + n.dy + n.v + n.s + n.k);
        half = wave_id() / 4;
        if (mine < to)
            wait_turn(a.turns + mine, all_turns<N>(a, (int)(mine % (u32)a.tiles)));
        products_barrier();
        for (u32 at = from; at < to; at += AT_ONCE) {
            UNROLL
            for (int e = 0; e < AT_ONCE; e++)
                if (at + e < to)
                    read(a, at + e, v[e]);
            UNROLL
            for (int e = 0; e < AT_ONCE; e++)
                if (at + e < to)
                    write(a, at + e, v[e]);
        }
    }
};

/* ---- who does what ---- */

DEVICE u32 next_number(const attn_joint_args &a) { return atomic_next_of_all(a.turns + (i64)a.batch * a.hq * a.tiles); }
/* Numbers: units times blocks of keys, or pairs of these; then tiles of dq, WK_JOINT_END each. */
DEVICE u32 with_products(const attn_joint_args &a)
{
    joint_walk w;
    return w.each(a) * (u32)(a.batch * a.hk);
}

/* The thread that loads finds the walks of one number after the other; but a block with a pair has no other number: it might be that of
 * a pair which the first one waits for. The last walk has no tiles. */
template <int D> DEVICE void joint_load_all(const attn_joint_args &a, joint_room<D> &room)
{
    u32 number = next_number(a), count = 0, part = 0;
    ROLLED
    for (u32 walks = 0;; walks++) {
        joint_walk &w = room.walk[walks & 1];
        if (walks > 1)
            gate_wait(&room.walk_empty[walks & 1], (walks / 2 - 1) & 1);
        w.tiles = 0;
        if (number < with_products(a))
            w.find<joint_room<D>::N>(a, number, part);
        room.number = part ? ~0u : number;
        gate_arrive(&room.walk_full[walks & 1]);
        if (!w.tiles)
            return;
        count = joint_loads<D>(a, w, walks, count, room);
        if (!a.paired)
            number = next_number(a);
        else if (part)
            number = ~0u;
        else
            part = 1;
    }
}

/* Two threads have tiles of dq added. */
template <int D> DEVICE void joint_sum_all(const attn_joint_args &a, u32 place, joint_room<D> &room)
{
    u32 count = 0;
    ROLLED
    for (u32 walks = 0;; walks++) {
        gate_wait(&room.walk_full[walks & 1], walks / 2 & 1);
        const joint_walk &w = room.walk[walks & 1];
        if (!w.tiles)
            return;
        count = joint_sums<D>(a, w, count, place, room);
        gate_arrive(&room.walk_empty[walks & 1]);
    }
}

/* The waves with products, which end dq afterwards. */
template <class T, int D> DEVICE void joint_multiply_all(const attn_joint_args &a, joint_room<D> &room)
{
    joint_shifts n = shifts_of(a.peaks);
    u32 count = 0;
    ROLLED
    for (u32 walks = 0;; walks++) {
        gate_wait(&room.walk_full[walks & 1], walks / 2 & 1);
        const joint_walk &w = room.walk[walks & 1];
        if (!w.tiles)
            break;
        count = joint_products<D, T>(a, n, w, walks, count, room);
        gate_arrive(&room.walk_empty[walks & 1]);
    }
    joint_end<T, D> end;
    const u32 tiles = (u32)(a.batch * a.hq * a.tiles), products = with_products(a);
    ROLLED
    for (u32 number = room.number; number != ~0u && (number - products) * WK_JOINT_END < tiles;) {
        u32 from = (number - products) * WK_JOINT_END;
        end.run(a, from, from + WK_JOINT_END < tiles ? from + WK_JOINT_END : tiles);
        if (a.paired)
            return;
        products_barrier();
        if (thread_id() == 0)
            room.number = next_number(a);
        products_barrier();
        number = room.number;
    }
}

template <class T, int D> DEVICE void attn_joint_grad(const attn_joint_args &a)
{
    ROOM(bytes, sizeof(joint_room<D>));
    joint_room<D> &room = *(joint_room<D> *)bytes;
    if (thread_id() == 0) {
        gate_init(&room.keys_full, 1);
        gate_init(&room.keys_empty, 256);
        gates_init(room.walk_full, room.walk_empty, 1, 256 + 2);
        gates_init(room.tile_full, room.tile_empty, 1, 256);
        gates_init(room.sums_full, room.sums_empty, 256, 1);
        proxy_fence();
    }
    barrier();
    if (wave_id() < 8) { /* the waves with products have nearly all registers */
        asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
        joint_multiply_all<T, D>(a, room);
    } else {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
        if (wave_id() > 10 || lane_id() > 0)
            return;
        if (wave_id() == 10)
            joint_load_all<D>(a, room);
        else
            joint_sum_all<D>(a, wave_id() - 8, room);
    }
}
#endif
