/* attention_joint_grad.hip: all gradients of attention of bf16 in one pass, by Hopper's products.
 *
 * A block owns keys, with dk and dv in registers, and goes through the queries that see them. Its part of a tile of dq is added to
 * sums in memory; who adds after whom is fixed, so that the bits are too: a wave of its own waits for its turn, and then has the
 * tile added. A block waits only for such as have begun before it.
 *
 * Operands are f16, of q, k, v and dy after a power of two has brought their largest element next to f16's: what bf16 has below
 * 2^-31 of that is lost. So the weights, which must have an operand's type, are rounded to 11 bits and not to 8. */
#include "attention_matrix.h"

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
DEVICE joint_shifts shifts_of(const u32 *peaks)
{
    joint_shifts n = {shift_of(peaks[WK_PEAK_Q]), shift_of(peaks[WK_PEAK_K]), shift_of(peaks[WK_PEAK_V]),
                      shift_of(peaks[WK_PEAK_DY]), 0};
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

template <class T> DEVICE const T *row_of(const attn_view &v, i64 row, int heads, int n)
{
    i64 head = row / n, b = head / heads;
    return (const T *)v.data + b * v.b + (head - b * heads) * v.h + (row - head * n) * v.s;
}

/* Grid y: q, k, v, dy. Rows are read by D / 8 lanes each. */
template <class T, int D> DEVICE void attn_joint_peaks(const attn_joint_args &a)
{
    const int LANES = D / 8, ROWS = 256 / LANES;
    int of = block_id_y(), lane = thread_id() % LANES;
    bool queries = of == WK_PEAK_Q || of == WK_PEAK_DY;
    const attn_view &view = of == WK_PEAK_Q ? a.q : of == WK_PEAK_K ? a.k : of == WK_PEAK_V ? a.v : a.dy;
    int heads = queries ? a.hq : a.hk, n = queries ? a.s : a.t;
    i64 rows = (i64)a.batch * heads * n;
    f32 top = 0, longest = 0;
    for (i64 base = (i64)block_id() * ROWS; base < rows; base += (i64)grid_blocks() * ROWS) {
        i64 row = base + thread_id() / LANES;
        f32 sum = 0;
        if (row < rows) {
            pack<T, 8> v = load<8>(row_of<T>(view, row, heads, n) + lane * 8);
            UNROLL
            for (int j = 0; j < 8; j++) {
                f32 x = get(v.v[j]);
                x = x < 0 ? -x : x;
                x = x < infinity<f32>() ? x : 0;
                top = x > top ? x : top;
                sum += x * x;
            }
        }
        sum = wave_reduce<op_sum, LANES>(sum);
        longest = sum > longest ? sum : longest;
    }
    top = wave_reduce<op_max>(top);
    longest = wave_reduce<op_max>(longest);
    if (lane_id() == 0) {
        atomic_max(a.peaks + of, bit_cast<u32>(top));
        if (of == WK_PEAK_V || of == WK_PEAK_DY)
            atomic_max(a.peaks + (of == WK_PEAK_V ? WK_NORM_V : WK_NORM_DY), bit_cast<u32>(longest));
    }
}

/* Grid y as before: the copies; with dy what is known of each query. */
template <class T, int D> DEVICE void attn_joint_copies(const attn_joint_args &a)
{
    const int LANES = D / 8, ROWS = 256 / LANES;
    int of = block_id_y(), lane = thread_id() % LANES;
    bool queries = of == WK_PEAK_Q || of == WK_PEAK_DY;
    const attn_view &view = of == WK_PEAK_Q ? a.q : of == WK_PEAK_K ? a.k : of == WK_PEAK_V ? a.v : a.dy;
    f16 *to = (f16 *)(of == WK_PEAK_Q ? a.q16 : of == WK_PEAK_K ? a.k16 : of == WK_PEAK_V ? a.v16 : a.dy16);
    int heads = queries ? a.hq : a.hk, n = queries ? a.s : a.t;
    int round = rounded(a.s), padded = of == WK_PEAK_DY ? round : n;
    i64 rows = (i64)a.batch * heads * padded;
    joint_shifts shifts = shifts_of(a.peaks);
    f32 factor = power(shift_of(a.peaks[of]));
    for (i64 base = (i64)block_id() * ROWS; base < rows; base += (i64)grid_blocks() * ROWS) {
        i64 padded_row = base + thread_id() / LANES, head = padded_row / padded, i = padded_row - head * padded;
        i64 row = head * n + i;
        bool there = padded_row < rows && i < n;
        f32 delta = 0;
        if (there) {
            pack<T, 8> v = load<8>(row_of<T>(view, row, heads, n) + lane * 8);
            pack<u32, 4> w;
            UNROLL
            for (int j = 0; j < 4; j++)
                w.v[j] = two_of<f16>(get(v.v[2 * j]) * factor, get(v.v[2 * j + 1]) * factor);
            store<4>((u32 *)(to + row * D + lane * 8), w);
            if (of == WK_PEAK_DY) {
                pack<T, 8> y = load<8>(row_of<T>(a.y, row, heads, n) + lane * 8);
                UNROLL
                for (int j = 0; j < 8; j++)
                    delta += get(y.v[j]) * get(v.v[j]);
            }
        }
        if (of != WK_PEAK_DY)
            continue;
        delta = wave_reduce<op_sum, LANES>(delta);
        if (lane == 0 && padded_row < rows) {
            f32 lse = there ? ((const f32 *)a.lse)[row] : infinity<f32>();
            lse = lse == -infinity<f32>() ? infinity<f32>() : lse;
            a.facts[head * 2 * round + i] = lse * LOG2E - WEIGHT_SHIFT;
            a.facts[(head * 2 + 1) * round + i] = times_power(delta, shifts.v + shifts.dy + shifts.s);
        }
    }
}

/* ---- the pass ---- */

#ifdef WK_HOPPER

template <int D> struct joint_room {
    static const int KEYS = WK_JOINT_KEYS, N = D == 64 ? 128 : 64;
    f16 k[KEYS * D], v[KEYS * D], q[2][N * D], dy[2][N * D], weights[KEYS * N];
    f32 sums[N * D]; /* a tile of dq, as the threads have it */
    f32 facts[2][2][N];
    u64 full, empty; /* of sums */
    u32 number;
};

DEVICE void gate_init(u64 *p, int threads)
{
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(shared_address(p)), "r"(threads) : "memory");
}
DEVICE void gate_arrive(u64 *p)
{
    asm volatile("{.reg .b64 state;\nmbarrier.arrive.shared.b64 state, [%0];}" ::"r"(shared_address(p)) : "memory");
}
DEVICE void gate_wait(u64 *p, u32 phase)
{
    asm volatile("{.reg .pred done;\nagain: mbarrier.try_wait.parity.shared.b64 done, [%0], %1;\n@!done bra again;}" ::"r"(
                     shared_address(p)),
                 "r"(phase)
                 : "memory");
}
DEVICE void proxy_fence() { asm volatile("fence.proxy.async;" ::: "memory"); }
/* Of the waves with products. */
DEVICE void products_barrier() { asm volatile("bar.sync 1, 256;" ::: "memory"); }

/* Which keys a block has, and the tiles of queries that see them.
 *
 * Blocks of a unit that is not causal add in the order of their keys. Those of a causal one have first the keys of a block of the
 * second half, which few queries see, then those of one of the first half: all have as much to do. The second half adds from
 * the last keys on, the first half from the first ones on: so they come to a tile, and nobody waits for long. */
struct joint_walk {
    u32 unit, number, block;
    int first, lo, tiles;
    MEMBER u32 lower(const attn_joint_args &a) const { return a.causal && a.paired ? (u32)a.blocks / 2 : 0; }
    MEMBER void find_unit(const attn_joint_args &a, u32 n)
    {
        u32 each = (u32)a.blocks - lower(a);
        unit = n / each;
        number = n - unit * each;
    }
    /* The block's first keys, and its second; false: it has none. */
    template <int N> MEMBER bool find_keys(const attn_joint_args &a, int part)
    {
        block = !a.causal || part ? number : (u32)a.blocks - 1 - number;
        first = (int)block * WK_JOINT_KEYS;
        lo = a.causal ? first / N : 0;
        tiles = a.tiles;
        return !part || block < lower(a);
    }
    /* How many add to a tile before this block. */
    template <int N> MEMBER u32 turn_at(const attn_joint_args &a, int tile) const
    {
        u32 last = (u32)(tile * N + N - 1) / WK_JOINT_KEYS, half = lower(a);
        last = last < (u32)a.blocks ? last : (u32)a.blocks - 1;
        if (!a.causal)
            return block;
        return block >= half ? last - block : block + (last >= half ? last + 1 - half : 0);
    }
    /* Of a head of the group, among all of q's. */
    MEMBER i64 head_at(const attn_joint_args &a, int head) const
    {
        u32 batch = unit / (u32)a.hk;
        return (i64)batch * a.hq + (i64)(unit - batch * (u32)a.hk) * a.group + head;
    }
};

/* Rows of a head to a tile. */
template <int D, int ROWS> DEVICE void fetch_rows(f16 *tile, const void *from, i64 head, int n, int first)
{
    const int PIECES = D / 8, STEP = 256 / PIECES;
    int row = thread_id() / PIECES, col = thread_id() % PIECES * 8;
    const f16 *at = (const f16 *)from + (head * n + first + row) * D + col;
    UNROLL
    for (int i = 0; i < ROWS / STEP; i++)
        copy_async(tile + tile_at<f16, ROWS, D>(row + i * STEP, col), at + i * STEP * D, first + row + i * STEP < n);
}

template <int D> DEVICE void fetch_queries(const attn_joint_args &a, i64 head, int tile, int place, joint_room<D> &room)
{
    const int N = joint_room<D>::N;
    fetch_rows<D, N>(room.q[place], a.q16, head, a.s, tile * N);
    fetch_rows<D, N>(room.dy[place], a.dy16, head, a.s, tile * N);
    if (thread_id() < N / 2) {
        int which = thread_id() / (N / 4), i = thread_id() % (N / 4) * 4, round = rounded(a.s);
        copy_async(&room.facts[place][which][i], a.facts + (head * 2 + which) * round + tile * N + i, true);
    }
}

template <int D> struct joint_pass {
    typedef joint_room<D> room_t;
    static const int N = room_t::N, KEYS = room_t::KEYS;
    f32 dk[D / 16][MMA_VALUES], dv[D / 16][MMA_VALUES];
    f32 score, slope; /* what products are multiplied with */
    int owner0;

    /* Products q . k become weights. */
    MEMBER void weigh(const attn_joint_args &a, const joint_walk &w, int at, const f32 *lse, f32 (*s)[MMA_VALUES]) const
    {
        UNROLL
        for (int n = 0; n < N / 16; n++)
            UNROLL
            for (int i = 0; i < MMA_VALUES; i++)
                s[n][i] = m_exp2_fast(m_fma(s[n][i], score, -lse[n * 16 + other_at(i)]));
        bool all = w.first + KEYS <= a.t && (!a.causal || at >= w.first + KEYS - 1);
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
        proxy_fence();
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
        if (count > 0)
            gate_wait(&room.empty, (count - 1) & 1);
        UNROLL
        for (int j = 0; j < 8; j++)
            store<4>(room.sums + (wave_id() / 4 * 8 + j) * 512 + thread_id() % 128 * 4,
                     *(const pack<f32, 4> *)&sums[j / 2][j % 2 * 4]);
        proxy_fence();
        gate_arrive(&room.full);
    }

    /* Adds a tile to all three. */
    MEMBER void add_tile(const attn_joint_args &a, const joint_walk &w, int at, u32 count, room_t &room)
    {
        f32 s[N / 16][MMA_VALUES], p[N / 16][MMA_VALUES], sums[4][MMA_VALUES];
        fragment<f16> weights[N / 16][1], slopes[N / 16][1];
        const int place = count & 1;
        const f32 *facts = room.facts[place][0];
        owners<f16, D, KEYS> k, v;
        k.tile = room.k;
        v.tile = room.v;
        start_dots<f16, D, N>(k, room.q[place], D, s);
        start_dots<f16, D, N>(v, room.dy[place], D, p);
        products_wait<1, N / 16>(s);
        weigh(a, w, at, facts, s);
        UNROLL
        for (int n = 0; n < N / 16; n++)
            own_operand<f16, 1>(s[n], weights[n]);
        start_add<f16, D, N, 1>(weights, room.dy[place], D, dv);
        products_wait<1, N / 16>(p);
        UNROLL
        for (int n = 0; n < N / 16; n++) {
            UNROLL
            for (int i = 0; i < MMA_VALUES; i++)
                p[n][i] = s[n][i] * m_fma(p[n][i], slope, -facts[N + n * 16 + other_at(i)]);
            own_operand<f16, 1>(p[n], slopes[n]);
        }
        start_add<f16, D, N, 1>(slopes, room.q[place], D, dk);
        keep(slopes, room.weights);
        products_barrier();
        start_dq(room.weights, room.k, &sums[0][0]);
        products_wait<0, D / 16>(dv);
        products_wait<0, D / 16>(dk);
        products_wait<0, 4>(sums);
        pass_on(sums, count, room);
    }
};

/* A tile of the queries of a head. */
struct joint_step {
    int head, tile;
    MEMBER void go_on(const joint_walk &w)
    {
        tile++;
        if (tile >= w.tiles) {
            tile = w.lo;
            head++;
        }
    }
};

template <int D, class T> DEVICE u32 joint_products(const attn_joint_args &a, const joint_walk &w, u32 count, joint_room<D> &room)
{
    joint_pass<D> pass = {};
    joint_shifts n = shifts_of(a.peaks);
    pass.score = times_power(a.scale * LOG2E, -n.q - n.k);
    pass.slope = power(n.s);
    pass.owner0 = w.first + wave_id() * 16;
    products_barrier(); /* nobody is at the keys before these */
    fetch_rows<D, WK_JOINT_KEYS>(room.k, a.k16, w.unit, a.t, w.first);
    fetch_rows<D, WK_JOINT_KEYS>(room.v, a.v16, w.unit, a.t, w.first);
    joint_step now = {0, w.lo}, later = now;
    fetch_queries<D>(a, w.head_at(a, 0), w.lo, count & 1, room);
    for (; now.head < a.group; count++) {
        copies_wait();
        products_barrier();
        later.go_on(w);
        if (later.head < a.group)
            fetch_queries<D>(a, w.head_at(a, later.head), later.tile, (count & 1) ^ 1, room);
        pass.add_tile(a, w, now.tile * joint_room<D>::N, count, room);
        now = later;
    }
    int of_dk = -(WEIGHT_SHIFT + n.dy + n.v + n.s + n.q), of_dv = -(WEIGHT_SHIFT + n.dy);
    UNROLL
    for (int c = 0; c < D / 16; c++)
        UNROLL
        for (int i = 0; i < MMA_VALUES; i++) {
            pass.dk[c][i] = times_power(pass.dk[c][i], of_dk);
            pass.dv[c][i] = times_power(pass.dv[c][i], of_dv);
        }
    grad_store<T, D>(a.dk, (i64)w.unit * a.t, pass.owner0, a.t, D, a.scale, pass.dk);
    grad_store<T, D>(a.dv, (i64)w.unit * a.t, pass.owner0, a.t, D, 1, pass.dv);
    return count;
}

/* One thread has the tiles of dq added, each when its turn has come. */
template <int D> DEVICE u32 joint_sums(const attn_joint_args &a, const joint_walk &w, u32 count, joint_room<D> &room)
{
    const int N = joint_room<D>::N;
    const u32 BYTES = sizeof room.sums, from = shared_address(room.sums);
    for (int head = 0; head < a.group; head++)
        for (int tile = w.lo; tile < w.tiles; tile++, count++) {
            i64 at = w.head_at(a, head) * w.tiles + tile;
            const f32 *to = a.sums + at * (N * D);
            u32 turn = w.turn_at<N>(a, tile), now;
            gate_wait(&room.full, count & 1);
            do {
                asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(now) : "l"(a.turns + at) : "memory");
            } while (now != turn);
            proxy_fence();
            if (turn == 0)
                asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(from), "r"(BYTES)
                             : "memory");
            else
                asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], %2;" ::"l"(to), "r"(from),
                             "r"(BYTES)
                             : "memory");
            asm volatile("cp.async.bulk.commit_group;" ::: "memory");
            asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
            gate_arrive(&room.empty);
            asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
            proxy_fence();
            device_fence();
            asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(a.turns + at) : "memory");
        }
    return count;
}

/* Blocks: units times blocks of keys. */
template <class T, int D> DEVICE void attn_joint_grad(const attn_joint_args &a)
{
    ROOM(bytes, sizeof(joint_room<D>));
    joint_room<D> &room = *(joint_room<D> *)bytes;
    joint_walk w;
    if (thread_id() == 0) {
        gate_init(&room.full, 256);
        gate_init(&room.empty, 1);
        room.number = atomic_next_of_all(a.turns + (i64)a.batch * a.hq * a.tiles);
    }
    barrier();
    w.find_unit(a, room.number);
    u32 count = 0;
    if (wave_id() < 8) { /* the waves with products have nearly all registers */
        asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
        ROLLED
        for (int part = 0; part < 2 && w.find_keys<joint_room<D>::N>(a, part); part++)
            count = joint_products<D, T>(a, w, count, room);
    } else {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
        ROLLED
        for (int part = 0; thread_id() == 256 && part < 2 && w.find_keys<joint_room<D>::N>(a, part); part++)
            count = joint_sums<D>(a, w, count, room);
    }
}
#endif

/* ---- after ---- */

/* The sums as dq; a block has a tile. */
template <class T, int D> DEVICE void attn_joint_end(const attn_joint_args &a)
{
    const int N = D == 64 ? 128 : 64;
    joint_shifts n = shifts_of(a.peaks);
    int shift = -(WEIGHT_SHIFT + n.dy + n.v + n.s + n.k), wave = wave_id() % 4, half = wave_id() / 4;
    for (i64 at = block_id(); at < (i64)a.batch * a.hq * a.tiles; at += grid_blocks()) {
        i64 head = at / a.tiles;
        int first = (int)(at - head * a.tiles) * N + wave * 16 + lane_id() / 4 + (D == 64 ? half * 64 : 0);
        int col = lane_id() % 4 * 2 + (D == 64 ? 0 : half * 64);
        UNROLL
        for (int j = 0; j < 8; j++) {
            pack<f32, 4> v = load<4>(a.sums + at * (N * D) + (half * 8 + j) * 512 + thread_id() % 128 * 4);
            UNROLL
            for (int k = 0; k < 2; k++) {
                int row = first + k * 8;
                pack<T, 2> two;
                UNROLL
                for (int x = 0; x < 2; x++)
                    two.v[x] = put<T>(times_power(v.v[2 * k + x], shift) * a.scale);
                if (row < a.s)
                    store<2>((T *)a.dq + (head * a.s + row) * D + col + j * 8, two);
            }
        }
    }
}
