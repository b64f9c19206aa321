/* quant_matrix.hip: weights in blocks of few bits times up to 16 rows of x, in f16 or bf16, on matrix units. The integers of the
 * weights are operands as they are, exactly; what 16 neighbours add up to is scaled afterwards.
 *
 * A wave owns 16 rows of weights, and brings them through shared memory, where every lane finds its words: blocks lie at any
 * even place, and memory is read in whole lines. */
#include "act.h"
#include "quant.h"
#include "quant_format.h"
#include "tile.h"

const int WAVES = 256 / WAVE;

/* ---- integers as operands ---- */

/* Bytes 2 i and 2 i + 1 of a word as the low bytes of two halves. */
template <int HIGH> DEVICE u32 two_bytes(u32 word, int i)
{
#ifdef WK_NVIDIA
    u32 u;
    asm("prmt.b32 %0, %1, %2, %3;" : "=r"(u) : "r"(word), "r"(HIGH), "r"(i ? 0x4342 : 0x4140));
    return u;
#else
    return __builtin_amdgcn_perm(HIGH, word, i ? 0x04030402 : 0x04010400);
#endif
}

/* Two f16 or bf16 less two others, where that is exact. */
DEVICE u32 less(u32 a, u32 b, f16)
{
#ifdef WK_NVIDIA
    u32 u;
    asm("sub.f16x2 %0, %1, %2;" : "=r"(u) : "r"(a), "r"(b));
    return u;
#else
    typedef _Float16 WK_ATTR(ext_vector_type(2)) two;
    return bit_cast<u32>(bit_cast<two>(a) - bit_cast<two>(b));
#endif
}
DEVICE u32 less(u32 a, u32 b, bf16)
{
#ifdef WK_NVIDIA
    u32 u;
    asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(u) : "r"(a), "r"(0x3F803F80), "r"(b ^ 0x80008000));
    return u;
#else
    f32 low = bit_cast<f32>(a << 16) - bit_cast<f32>(b << 16);
    f32 high = bit_cast<f32>(a & 0xFFFF0000) - bit_cast<f32>(b & 0xFFFF0000);
    return __builtin_amdgcn_perm(bit_cast<u32>(high), bit_cast<u32>(low), 0x07060302);
#endif
}

/* The four bytes of a word less OFFSET as four of T. A byte is the end of the fraction of 1024 (f16), of 128 (bf16). */
template <int OFFSET> DEVICE void integers(u32 word, u32 *w, f16 t)
{
    const u32 zero = 0x6400 + OFFSET;
    UNROLL
    for (int i = 0; i < 2; i++)
        w[i] = less(two_bytes<0x64>(word, i), zero | zero << 16, t);
}
template <int OFFSET> DEVICE void integers(u32 word, u32 *w, bf16 t)
{
    const u32 zero = 0x4300 + OFFSET;
    u32 sign = word & 0x80808080; /* q8_0 only: seven bits, and 128 or nothing to take off */
    UNROLL
    for (int i = 0; i < 2; i++)
        w[i] = OFFSET == 128 ? less(two_bytes<0x43>(word & 0x7F7F7F7F, i), two_bytes<0x43>(sign ^ 0x80808080, i), t)
                             : less(two_bytes<0x43>(word, i), zero | zero << 16, t);
}

DEVICE u32 one_and_one(f16) { return 0x3C003C00; }
DEVICE u32 one_and_one(bf16) { return 0x3F803F80; }

/* ---- where a lane's parts of an operand are ---- */

#if defined(WK_NVIDIA)
enum { SIDES = 2, LANE_PARTS = 1 }; /* two rows of a part; on AMD one row of one part or several */
DEVICE int lane_row() { return lane_id() / 4; }
DEVICE int lane_part() { return lane_id() % 4; }
DEVICE int word_at_side(int side, int, int i) { return side + 2 * i; }
#else
enum { SIDES = 1, LANE_PARTS = MMA_WORDS / 2 };
DEVICE int lane_row() { return lane_id() % 16; }
DEVICE int lane_part() { return LANE_PARTS == 4 ? 0 : lane_id() / 16 * LANE_PARTS; }
DEVICE int word_at_side(int, int part, int i) { return 2 * part + i; }
#endif

/* ---- weights through shared memory ---- */

/* UNIT weights of a row at a time, in LINES of 16 bytes; rows are PITCH bytes apart, so that lanes meet different banks. */
template <int FORMAT> struct unit_of {
    typedef format_of<FORMAT> F;
    static const int UNIT = FORMAT == 0 || FORMAT == 2 ? 512 : 256, BYTES = UNIT / F::BLOCK * F::BYTES;
    static const int LINES = (BYTES + (BYTES % 16 ? 14 : 0) + 15) / 16;
    static const int PITCH = FORMAT == 0 || FORMAT == 2 ? 304 : FORMAT == 1 ? 272 : 240;
    static const int EACH = (16 * LINES + WAVE - 1) / WAVE; /* lines that a lane brings */
};

template <int FORMAT> struct courier {
    typedef unit_of<FORMAT> U;
    pack<u32, 4> line[U::EACH];

    /* Of unit u of the rows that begin at `weight`, of which `rows` are there. */
    MEMBER void fetch(const quant_dot_args &a, const u8 *weight, int rows, u32 u)
    {
        u32 begin = u * U::BYTES / 16 * 16, end = (u32)(a.k / U::F::BLOCK) * U::F::BYTES;
        UNROLL
        for (int e = 0; e < U::EACH; e++) {
            u32 n = e * WAVE + lane_id(), row = n / U::LINES, at = begin + n % U::LINES * 16;
            line[e] = {};
            if (row < (u32)rows && at < end)
                line[e] = load_once<4>((const u32 *)(weight + row * a.pitch + at));
        }
    }
    MEMBER void leave(u8 *room) const
    {
        UNROLL
        for (int e = 0; e < U::EACH; e++) {
            u32 n = e * WAVE + lane_id(), row = n / U::LINES;
            if (row < 16)
                store<4>((u32 *)(room + row * U::PITCH + n % U::LINES * 16), line[e]);
        }
    }
};

/* ---- products ---- */

/* c += own . other^T; four values are those of the first eight others. */
template <int VALUES, class T> DEVICE void multiply(const fragment<T> &own, const fragment<T> &other, f32 *c)
{
#ifdef WK_NVIDIA
    if (VALUES == 4) {
        mma_half(own, other.w[0], other.w[2], c);
        return;
    }
#endif
    mma_own(own, other, c);
}

/* 32 columns: two runs of 16 of them. */
template <class T, int FORMAT, int VALUES>
DEVICE void add_columns(const u8 *room, const T *const *x, int block, int group, f32 *acc)
{
    typedef format_of<FORMAT> F;
    typedef unit_of<FORMAT> U;
    fragment<T> own[2], other[2], ones;
    f32 scale[SIDES][2], min[SIDES][2];
    UNROLL
    for (int p = 0; p < LANE_PARTS; p++) {
        int part = 4 * group + lane_part() + p;
        UNROLL
        for (int side = 0; side < SIDES; side++) {
            eight w = F::load(room + side * 8 * U::PITCH + block * F::BYTES, part);
            UNROLL
            for (int h = 0; h < 2; h++) {
                u32 two[2];
                integers<F::OFFSET>(w.q[h], two, T());
                pack<u32, 2> xs = {};
                if (VALUES > 4 || side == 0)
                    xs = load<2>((const u32 *)(x[side] + block * F::BLOCK + F::first(part) + h * F::GAP));
                UNROLL
                for (int i = 0; i < 2; i++) {
                    own[h].w[word_at_side(side, p, i)] = two[i];
                    other[h].w[word_at_side(side, p, i)] = xs.v[i];
                }
                scale[side][h] = w.scale[h];
                min[side][h] = w.min[h];
            }
        }
    }
    UNROLL
    for (int i = 0; i < MMA_WORDS; i++)
        ones.w[i] = one_and_one(T());
    const bool together = FORMAT < 2; /* both runs have one scale */
    f32 c[VALUES], all[VALUES];
    UNROLL
    for (int h = 0; h < 2; h++) {
        UNROLL
        for (int i = 0; i < VALUES; i++)
            c[i] = together && h ? c[i] : 0, all[i] = 0;
        multiply<VALUES>(own[h], other[h], c);
        if (F::MIN)
            multiply<VALUES>(ones, other[h], all);
        UNROLL
        for (int i = 0; i < VALUES; i++) {
            if (!together || h)
                acc[i] = m_fma(scale[own_slot(i)][h], c[i], acc[i]);
            if (F::MIN)
                acc[i] = m_fma(-min[own_slot(i)][h], all[i], acc[i]);
        }
    }
}

/* A group of 16 rows of weights has a.split waves, which share its columns. M: rows of x, 8 or 16. */
template <class T, int FORMAT, int M> DEVICE void quant_matrix(const quant_dot_args &a)
{
    typedef format_of<FORMAT> F;
    typedef unit_of<FORMAT> U;
    const int VALUES = MMA_VALUES == 8 && SIDES == 2 && M == 8 ? 4 : MMA_VALUES, GROUPS = F::BLOCK / 32;
    SHARED alignas(16) u8 rooms[WAVES][16 * U::PITCH];
    SHARED f32 sums[WAVES][16][17];
    u32 wave = wave_id(), share = wave % a.split, groups = WAVES / a.split;
    u8 *room = rooms[wave];
    i64 row0 = ((i64)block_id() * groups + wave / a.split) * 16;
    int rows = (int)lesser(greater(a.n - row0, (i64)0), (i64)16);
    u32 units = rows ? (u32)((a.k + U::UNIT - 1) / U::UNIT) : 0;
    const u8 *weight = a.weight + row0 * a.pitch, *mine = room + lane_row() * U::PITCH;
    f32 acc[VALUES] = {};
    courier<FORMAT> next;
    if (share < units)
        next.fetch(a, weight, rows, share);
    for (u32 u = share; u < units; u += a.split) {
        wave_sync();
        next.leave(room);
        wave_sync();
        if (u + a.split < units)
            next.fetch(a, weight, rows, u + a.split);
        const T *x[SIDES];
        UNROLL
        for (int side = 0; side < SIDES; side++)
            x[side] = (const T *)a.x + lesser((i64)(lane_row() + 8 * side), (i64)a.m - 1) * a.k + (i64)u * U::UNIT;
        int steps = (int)lesser((i64)U::UNIT, a.k - (i64)u * U::UNIT) / 32;
        UNROLL_BY_4
        for (int s = 0; s < steps; s++) {
            add_columns<T, FORMAT, VALUES>(mine + u * U::BYTES % 16, x, s / GROUPS, s % GROUPS, acc);
            if constexpr (FORMAT == 2 && M == 16)
                asm volatile("" ::: "memory"); /* one step after the other: registers are short */
        }
    }
    UNROLL
    for (int i = 0; i < VALUES; i++)
        sums[wave][own_row(own_slot(i))][other_at(i)] = acc[i];
    barrier();
    for (u32 e = share * WAVE + lane_id(); e < 16 * M; e += a.split * WAVE) {
        u32 i = e / 16, row = e % 16;
        if (row >= (u32)rows || i >= (u32)a.m)
            continue;
        f32 v = 0;
        for (u32 s = 0; s < (u32)a.split; s++)
            v += sums[wave - share + s][row][i];
        if (F::MIN && !(m_fabs(v) < infinity<f32>())) /* products with infinities, taken apart, are NaNs */
            v = plain_dot<FORMAT>(a.weight + (row0 + row) * a.pitch, (const T *)a.x + i * a.k, a.k, 0, 1);
        if (a.bias)
            v += get(((const T *)a.bias)[(row0 + row) * a.bias_step]);
        ((T *)a.y)[i * a.n + row0 + row] = put<T>(activate(a.act, v));
    }
}
