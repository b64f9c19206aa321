/* attention_decode.hip: attention of f16 or bf16 of up to 16 rows over many keys (decoding) on matrix units, at the speed of
 * memory: every wave reads keys and values of its own, once for all rows of the unit, straight into operands. The order
 * of a sum's terms and of columns is free, so that a lane's 16 bytes are operands of several products. */
#define BEGINS_ITSELF
#include "attention_matrix.h"

/* 32 columns of 16 rows, from c on, as the operands of two products: the same order for queries and keys. row: where the lane's
 * part begins; left: columns that its row has from there on; left8: those of the row eight further, where a lane has two. */
template <class T> DEVICE void row_operands(const T *row, int c, i64 eight_rows, int left, int left8, fragment<T> *f)
{
#if defined(WK_NVIDIA)
    pack<u32, 4> x = {}, y = {};
    if (left > c)
        x = load_once<4>((const u32 *)(row + c));
    if (left8 > c)
        y = load_once<4>((const u32 *)(row + c + eight_rows));
    UNROLL
    for (int i = 0; i < 4; i++) {
        f[i / 2].w[i % 2 * 2] = x.v[i];
        f[i / 2].w[i % 2 * 2 + 1] = y.v[i];
    }
#else
    const int EACH = MMA_WORDS; /* of the words that a lane reads at once: 2 or all 4 */
    UNROLL
    for (int i = 0; i < 2; i += 4 / EACH) {
        pack<u32, 4> x = {};
        if (left > c + i * 16)
            x = load_once<4>((const u32 *)(row + c + i * 16));
        UNROLL
        for (int j = 0; j < 4; j++)
            f[i + j / EACH].w[j % EACH] = x.v[j];
    }
#endif
}
/* Where a lane's part of them begins. */
#ifdef WK_NVIDIA
DEVICE int part_row() { return lane_id() / 4; }
DEVICE int part_col() { return lane_id() % 4 * 8; }
#else
DEVICE int part_row() { return lane_id() % 16; }
DEVICE int part_col() { return lane_id() / 16 * 8; }
#endif

/* Values: a lane reads eight columns of some keys, which make the operands of COLS / 16 products, each of 16 columns out of
 * COLS. */
#ifdef WK_NVIDIA
enum { MIX_COLS = 64, MIX_KEYS = 4 };
DEVICE int mix_key() { return lane_id() % 4 * 2; } /* the lane's first */
DEVICE int mix_step(int i) { return i % 2 + i / 2 * 8; }
DEVICE int mix_col() { return lane_id() / 4 * 8; }
DEVICE int mixed_col(int j, int other) { return other % 8 * 8 + j * 2 + other / 8; } /* of product j */
#else
enum { MIX_COLS = 128, MIX_KEYS = MMA_WORDS * 2 };
DEVICE int mix_key() { return lane_id() / 16 * MIX_KEYS; }
DEVICE int mix_step(int i) { return i; }
DEVICE int mix_col() { return lane_id() % 16 * 8; }
DEVICE int mixed_col(int j, int other) { return other * 8 + j; }
#endif
const int MIXES = MIX_COLS / 16;

template <class T> DEVICE fragment<T> mix_operand(const pack<u32, 4> *v, int j)
{
    fragment<T> f;
    UNROLL
    for (int i = 0; i < MMA_WORDS; i++) {
#ifdef WK_NVIDIA
        f.w[i] = two_rows(v[i / 2 * 2], v[i / 2 * 2 + 1], j * 2 + i % 2);
#else
        f.w[i] = two_rows(v[i * 2], v[i * 2 + 1], j);
#endif
    }
    return f;
}

/* x, hidden from AMD's compiler: or what a unit's end makes of it is made ahead of all units, and kept in dozens of registers. */
template <class X> DEVICE X hidden(X x)
{
#ifdef WK_AMD
    asm volatile("" : "+v"(x));
#endif
    return x;
}
/* A product's value that is not to be made later: behind the loads of the next tile, which would need registers of their own.
 * CDNA's compiler does not do that, and has such values in other registers. */
DEVICE f32 made_here(f32 x) { return WAVE == 32 ? hidden(x) : x; }

/* One wave's rows, over 16 keys at a time. */
template <class T, int D, int ROWS, int PLAIN, int PARTS> struct decode_wave {
    static const int SLOTS = ROWS <= 8 ? 1 : OWN_SLOTS; /* of rows that there are */
    static const int BLOCKS = (D + MIX_COLS - 1) / MIX_COLS;
    static const int RAISED = loses_small<T>::value ? 15 : 0; /* weights are 2^RAISED times what they would be: up to 1 */
    fragment<T> q[D / 16], keys[D / 16];
    pack<u32, 4> values[BLOCKS][MIX_KEYS];
    f32 out[BLOCKS * MIXES][MMA_VALUES];
    f32 top[SLOTS], sum[SLOTS], unit;
    int lo[SLOTS], hi[SLOTS];
    i64 masks[SLOTS];      /* where the rows' masks begin */
    u32 mask[MMA_VALUES]; /* those of a tile as they lie in memory */

    MEMBER void begin(const attn_args &a, const struct unit &u, int end)
    {
        source<T> qs = queries_of<T>(a, a.q, u);
        const T *row = qs.row(part_row()), *row8 = SLOTS > 1 ? qs.row(part_row() + 8) : nullptr;
        unit = PLAIN ? (f32)a.scale * LOG2E : 1;
        UNROLL
        for (int c = 0; c < D; c += 32)
            row_operands<T>(row + part_col(), c, row8 - row, row ? a.d - part_col() : 0, row8 ? a.d - part_col() : 0,
                            &q[c / 16]);
        UNROLL
        for (int k = 0; k < SLOTS; k++) {
            query one = query_of(a, u, own_row(k));
            lo[k] = one.lo;
            hi[k] = lesser(one.hi, end);
            masks[k] = one.mask;
            top[k] = -infinity<f32>();
            sum[k] = 0;
        }
        UNROLL
        for (int c = 0; c < BLOCKS * MIXES; c++)
            UNROLL
            for (int i = 0; i < MMA_VALUES; i++)
                out[c][i] = 0;
    }

    /* Scores become weights. */
    MEMBER void soften(const attn_args &a, int key0, f32 *s)
    {
        f32 most[SLOTS], base[SLOTS], fix[SLOTS], slope;
        UNROLL
        for (int k = 0; k < SLOTS; k++)
            most[k] = top[k];
        UNROLL
        for (int i = 0; i < MMA_VALUES; i++) {
            int key = key0 + other_at(i), k = own_slot(i);
            if (k >= SLOTS)
                continue;
            bool seen = key >= lo[k] && key < hi[k];
            if (!PLAIN)
                s[i] = (scaled<T>(a, s[i], &slope) + mask_value(a, i)) * LOG2E;
            s[i] = seen ? s[i] : -infinity<f32>();
            most[k] = max_number(most[k], s[i]);
        }
        UNROLL
        for (int k = 0; k < SLOTS; k++) {
            f32 now = own_reduce<op_max_number>(most[k]);
            fix[k] = now != top[k] ? m_exp2_fast((top[k] - now) * unit) : 1;
            base[k] = now == -infinity<f32>() ? 0 : lowered<RAISED>(now * unit);
            top[k] = now;
            sum[k] *= fix[k];
        }
        UNROLL
        for (int i = 0; i < MMA_VALUES; i++) {
            int k = own_slot(i);
            s[i] = k < SLOTS ? m_exp2_fast(m_fma(s[i], unit, -base[k % SLOTS])) : 0;
            sum[k % SLOTS] += s[i];
        }
        if (wave_ballot(fix[0] != 1 || fix[SLOTS - 1] != 1) == 0)
            return;
        UNROLL
        for (int c = 0; c < BLOCKS * MIXES; c++)
            UNROLL
            for (int i = 0; i < MMA_VALUES; i++)
                if (own_slot(i) < SLOTS)
                    out[c][i] *= fix[own_slot(i) % SLOTS];
    }

    /* The masks of a tile, all of them on their way before the first is used: keys behind the last are that one's. */
    MEMBER void load_mask(const attn_args &a, int key0)
    {
        i64 at[MMA_VALUES];
        if (PLAIN || a.mask_kind == WK_MASK_NONE)
            return;
        UNROLL
        for (int i = 0; i < MMA_VALUES; i++)
            at[i] = masks[own_slot(i) % SLOTS] + lesser(key0 + other_at(i), a.t - 1) * a.mask.d;
        UNROLL
        for (int i = 0; i < MMA_VALUES; i++)
            if (a.mask_kind == WK_MASK_KEEP && own_slot(i) < SLOTS)
                mask[i] = ((const u8 *)a.mask.data)[at[i]];
        UNROLL
        for (int i = 0; i < MMA_VALUES; i++)
            if (a.mask_kind == WK_MASK_F32 && own_slot(i) < SLOTS)
                mask[i] = ((const u32 *)a.mask.data)[at[i]];
        UNROLL
        for (int i = 0; i < MMA_VALUES; i++)
            if (a.mask_kind == WK_MASK_OWN && own_slot(i) < SLOTS)
                mask[i] = ((const T *)a.mask.data)[at[i]].bits;
    }
    MEMBER f32 mask_value(const attn_args &a, int i) const
    {
        if (a.mask_kind == WK_MASK_NONE)
            return 0;
        f32 added = a.mask_kind == WK_MASK_F32 ? bit_cast<f32>(mask[i]) : get(T{(unsigned short)mask[i]});
        return a.mask_kind != WK_MASK_KEEP ? added : mask[i] ? 0 : -infinity<f32>();
    }
    /* k: the lane's part of the tile's first row; left: keys from there on. */
    MEMBER void load_keys(const attn_args &a, const T *k, int left)
    {
        if (left >= 16 && a.d == D) { /* nothing to ask: they go at once, and not behind what comes next here */
            UNROLL
            for (int c = 0; c < D; c += 32)
                row_operands<T>(k, c, 8 * a.k.s, D, D, &keys[c / 16]);
            return;
        }
        UNROLL
        for (int c = 0; c < D; c += 32)
            row_operands<T>(k, c, 8 * a.k.s, part_row() < left ? a.d - part_col() : 0,
                            part_row() + 8 < left ? a.d - part_col() : 0, &keys[c / 16]);
    }
    MEMBER void load_values(const attn_args &a, const T *v, int left)
    {
        if (left >= 16 && a.dv == BLOCKS * MIX_COLS) {
            UNROLL
            for (int b = 0; b < BLOCKS; b++)
                UNROLL
                for (int i = 0; i < MIX_KEYS; i++)
                    values[b][i] = load_once<4>((const u32 *)(v + mix_step(i) * a.v.s + b * MIX_COLS));
            return;
        }
        UNROLL
        for (int b = 0; b < BLOCKS; b++)
            UNROLL
            for (int i = 0; i < MIX_KEYS; i++) {
                values[b][i] = {};
                if (mix_step(i) < left - mix_key() && b * MIX_COLS < a.dv - mix_col())
                    values[b][i] = load_once<4>((const u32 *)(v + mix_step(i) * a.v.s + b * MIX_COLS));
            }
    }
    MEMBER void dots(f32 *s) const
    {
        f32 more[MMA_VALUES] = {}; /* two sums, so that a product need not wait for the one before it */
        UNROLL
        for (int i = 0; i < MMA_VALUES; i++)
            s[i] = 0;
        UNROLL
        for (int c = 0; c < D / 16; c += 2) {
            mma_own(q[c], keys[c], s);
            mma_own(q[c + 1], keys[c + 1], more);
        }
        UNROLL
        for (int i = 0; i < MMA_VALUES; i++)
            s[i] += more[i];
        s[0] = made_here(s[0]);
    }
    MEMBER void add_values(const f32 *s)
    {
        fragment<T> weights[PARTS];
        own_operand<T, PARTS>(s, weights);
        UNROLL
        for (int b = 0; b < BLOCKS; b++)
            UNROLL
            for (int j = 0; j < MIXES; j++) {
                fragment<T> f = mix_operand<T>(values[b], j);
                UNROLL
                for (int p = 0; p < PARTS; p++)
                    mma_own(weights[p], f, out[b * MIXES + j]);
                out[b * MIXES + j][0] = made_here(out[b * MIXES + j][0]);
            }
    }
};

/* What the waves of a block leave for each other. */
template <int D, int WAVES> struct decode_room {
    f32 top[WAVES][16], sum[WAVES][16], out[WAVES][16][D + 4];
};

/* Row `row` of the result: a lane has EACH columns of it. sum: of the weights; top: the largest score, which they are relative to. */
template <class T, int EACH>
DEVICE void store_row(const attn_args &a, const unit &u, u32 row, const f32 *all, f32 sum, f32 top)
{
    u32 head = row / u.s, i = row - head * u.s, c = hidden(lane_id()) * EACH;
    T *y = (T *)a.y + u.batch * a.y_b + (i64)(head + u.head * a.group) * a.y_h + i * a.y_s;
    UNROLL
    for (int e = 0; e < EACH; e++)
        if (c + e < (u32)a.dv)
            y[c + e] = put<T>(sum == 0 ? 0 : all[e] / sum);
    if (lane_id() == 0 && a.lse)
        ((f32 *)a.lse)[query_of(a, u, row).index] = sum == 0 ? -infinity<f32>() : top + m_log(sum);
}

/* What the waves of a block left, put together: a wave to a row. */
template <class T, int D, int WAVES>
DEVICE void decode_store(const attn_args &a, const unit &u, const decode_room<D, WAVES> &room)
{
    const int EACH = D / WAVE;
    for (u32 row = wave_id(); row < u.rows; row += WAVES) {
        u32 c = hidden(lane_id()) * EACH;
        f32 top = -infinity<f32>(), sum = 0;
        pack<f32, EACH> all = {};
        UNROLL
        for (int w = 0; w < WAVES; w++)
            top = max_number(top, room.top[w][row]);
        UNROLL
        for (int w = 0; w < WAVES; w++) {
            f32 fix = top == -infinity<f32>() ? 1 : m_exp2_fast(room.top[w][row] - top);
            pack<f32, EACH> part = load<EACH>(&room.out[w][row][c]);
            sum += room.sum[w][row] * fix;
            UNROLL
            for (int e = 0; e < EACH; e++)
                all.v[e] += part.v[e] * fix;
        }
        if (a.splits == 1) {
            store_row<T, EACH>(a, u, row, all.v, sum, top * LN2);
            continue;
        }
        i64 at = block_id_z() * a.rows + query_of(a, u, row).index;
        if (c < (u32)a.dv)
            store<EACH>((f32 *)a.part_y + at * a.dv + c, all);
        if (lane_id() == 0) {
            ((f32 *)a.part_top)[at] = top * LN2;
            ((f32 *)a.part_sum)[at] = sum;
        }
    }
}

/* The parts of a unit's rows put together: a lane to a split for what all columns share. */
template <class T, int D, int WAVES> DEVICE void decode_join(const attn_args &a, const unit &u)
{
    const int EACH = D / WAVE, MANY = 16; /* parts on their way at once */
    const f32 *tops = (const f32 *)a.part_top, *sums = (const f32 *)a.part_sum;
    for (u32 row = wave_id(); row < u.rows; row += WAVES) {
        i64 at = query_of(a, u, row).index;
        u32 c = lane_id() * EACH < (u32)a.dv ? lane_id() * EACH : 0;
        f32 top = -infinity<f32>(), sum = 0, all[EACH] = {};
        for (int s = (int)lane_id(); s < a.splits; s += WAVE)
            top = max_nan(top, tops[s * a.rows + at]);
        top = wave_reduce<op_max>(top);
        f32 base = top == -infinity<f32>() ? 0 : top;
        for (int s0 = 0; s0 < a.splits; s0 += WAVE) {
            int mine = s0 + (int)lane_id();
            f32 fix = mine < a.splits ? m_exp(tops[mine * a.rows + at] - base) : 0;
            sum += mine < a.splits ? sums[mine * a.rows + at] * fix : 0;
            for (int s1 = s0; s1 < lesser(s0 + WAVE, a.splits); s1 += MANY) {
                pack<f32, EACH> part[MANY];
                UNROLL
                for (int s = 0; s < MANY; s++)
                    part[s] = load<EACH>((const f32 *)a.part_y + (lesser(s1 + s, a.splits - 1) * a.rows + at) * a.dv + c);
                UNROLL
                for (int s = 0; s < MANY; s++) {
                    f32 by = shuffle(fix, (u32)(s1 + s - s0));
                    UNROLL
                    for (int e = 0; e < EACH; e++)
                        all[e] = s1 + s < a.splits ? m_fma(part[s].v[e], by, all[e]) : all[e];
                }
            }
        }
        store_row<T, EACH>(a, u, row, all, wave_reduce<op_sum>(sum), top);
    }
}

template <class T, int D, int ROWS, int WAVES, int PLAIN, int PARTS> DEVICE void decode_unit(const attn_args &a, const unit &u)
{
    typedef decode_room<D, WAVES> room_t;
    ROOM(bytes, sizeof(room_t));
    room_t &room = *(room_t *)bytes;
    source<T> ks = keys_of<T>(a.k, u), vs = keys_of<T>(a.v, u);
    decode_wave<T, D, ROWS, PLAIN, PARTS> wave;
    int lo, hi, w = wave_id();
    keys_of_rows(a, u, 0, u.rows - 1, &lo, &hi);
    lo = lo > (int)block_id_z() * a.split_keys ? lo : (int)block_id_z() * a.split_keys;
    hi = (int)lesser((i64)hi, (i64)(block_id_z() + 1) * a.split_keys);
    wave.begin(a, u, hi);
    /* Blocks begin at different places of their keys and go round: where all read at the same distance from addresses that are
     * alike, some channels of the memory wait for others. */
    const int STEP = WAVES * 16;
    int tiles = hi > lo ? (hi - lo + STEP - 1) / STEP : 0, tile = (int)((u64)block_id() * tiles / (u32)a.units);
    int first = lo + w * 16, key0 = first + tile * STEP;
    const T *k0 = ks.base + (i64)(first + part_row()) * ks.s + part_col(), *k = k0 + (i64)tile * STEP * ks.s;
    const T *v0 = vs.base + (i64)(first + mix_key()) * vs.s + mix_col(), *v = v0 + (i64)tile * STEP * vs.s;
    wave.load_keys(a, k, hi - key0);
    wave.load_mask(a, key0);
    wave.load_values(a, v, hi - key0);
    for (int i = 0; i < tiles; i++) {
        f32 s[MMA_VALUES];
        bool around = tile + 1 == tiles;
        int next = around ? first : key0 + STEP, left = i + 1 < tiles ? hi - next : 0;
        tile = around ? 0 : tile + 1;
        k = around ? k0 : k + STEP * ks.s; /* the next tile is on its way while this one is worked on */
        v = around ? v0 : v + STEP * vs.s;
        wave.dots(s);
        wave.load_keys(a, k, left);
        wave.soften(a, key0, s);
        wave.load_mask(a, next);
        wave.add_values(s);
        wave.load_values(a, v, left);
        key0 = next;
    }
    UNROLL
    for (int k = 0; k < wave.SLOTS; k++) {
        f32 sum = own_reduce<op_sum>(wave.sum[k]);
        if (other_at(0) == 0) {
            room.top[w][own_row(k)] = lowered<wave.RAISED>(wave.top[k] * wave.unit);
            room.sum[w][own_row(k)] = sum;
        }
    }
    int zero = hidden(0);
    UNROLL
    for (int c = 0; c < wave.BLOCKS * MIXES; c++)
        UNROLL
        for (int i = 0; i < MMA_VALUES; i++) {
            int col = c / MIXES * MIX_COLS + mixed_col(c % MIXES, other_at(i) + zero);
            if (col < D && own_slot(i) < wave.SLOTS)
                room.out[w][own_row(own_slot(i))][col] = wave.out[c][i];
        }
    barrier();
    decode_store<T, D, WAVES>(a, u, room);
    barrier();
}

/* The block's first keys and values come nearer while the kernel ahead may still write the last of them. */
template <class T> DEVICE void fetch_keys(const attn_args &a)
{
    unit u;
    unit_of_batch(a, block_id(), 0, &u);
    int key = (int)(block_id_z() * a.split_keys + thread_id());
    if (a.split_keys > (int)block_size() || (int)thread_id() >= a.split_keys || key >= a.t)
        return; /* of many keys those that are read first are not the first */
    fetch_ahead(keys_of<T>(a.k, u).row((u32)key), a.d * sizeof(T));
    fetch_ahead(keys_of<T>(a.v, u).row((u32)key), a.dv * sizeof(T));
}

/* Blocks: x over units of up to ROWS (8, 16) rows, no sequences; z over splits of the keys; WAVES waves. Rows of k and v can be
 * read 16 bytes at a time. PLAIN and PARTS as for attn_matrix. */
template <class T, int D, int ROWS, int WAVES, int PLAIN, int PARTS> DEVICE void attn_decode(const attn_args &a)
{
    let_next_begin();
    fetch_keys<T>(a);
    wait_for_inputs();
    for (u32 id = block_id(); id < (u32)a.units; id += grid_blocks()) {
        unit u;
        unit_of_batch(a, id, 0, &u);
        decode_unit<T, D, ROWS, WAVES, PLAIN, PARTS>(a, u);
        if (a.counters && last_of(a.counters + id, (u32)a.splits))
            decode_join<T, D, WAVES>(a, u);
    }
}
