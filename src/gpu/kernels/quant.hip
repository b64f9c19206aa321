/* quant.hip: weights in blocks of few bits: as floats, and multiplied with a few rows of x at the speed of memory.
 *
 * A thread takes eight weights of a block at a time: two runs of four neighbours, which every format has in two words
 * of bytes. */
#include "act.h"
#include "ids.h"
#include "quant.h"

/* Blocks need not begin at multiples of four bytes, but do at multiples of two. */
DEVICE u32 word_at(const u8 *p)
{
    const unsigned short *h = (const unsigned short *)p;
    return h[0] | (u32)h[1] << 16;
}
DEVICE f32 half_at(const u8 *p) { return from_f16({*(const unsigned short *)p}); }

/* Byte i of a word, less OFFSET: exact. */
template <int OFFSET> DEVICE f32 byte_less(u32 word, int i)
{
#ifdef WK_NVIDIA
    u32 u; /* the byte as the last of 2^23's fraction: conversions are slow */
    asm("prmt.b32 %0, %1, %2, %3;" : "=r"(u) : "r"(word), "r"(0x4B000000), "r"(0x7440 | i));
    return bit_cast<f32>(u) - (8388608.0f + OFFSET);
#else
    return (f32)(word >> 8 * i & 255) - OFFSET;
#endif
}

/* Eight weights: scale[i] * (byte of q[i] - OFFSET) - min[i]. */
struct eight {
    u32 q[2];
    f32 scale[2], min[2];
};

/* A format: BLOCK weights in BYTES; the weights of part p are first(p) .. + 3 and the same GAP further on. */
template <int FORMAT> struct format_of;

template <> struct format_of<0> { /* q4_0 */
    static const int BLOCK = 32, BYTES = 18, GAP = 16, OFFSET = 8;
    static const bool MIN = false;
    static MEMBER int first(int part) { return 4 * part; }
    static MEMBER eight load(const u8 *block, int part)
    {
        u32 w = word_at(block + 2 + 4 * part);
        f32 d = half_at(block);
        return {{w & 0x0F0F0F0F, w >> 4 & 0x0F0F0F0F}, {d, d}, {0, 0}};
    }
};

template <> struct format_of<1> { /* q8_0 */
    static const int BLOCK = 32, BYTES = 34, GAP = 16, OFFSET = 128;
    static const bool MIN = false;
    static MEMBER int first(int part) { return 4 * part; }
    static MEMBER eight load(const u8 *block, int part)
    {
        f32 d = half_at(block);
        const u8 *q = block + 2 + 4 * part;
        return {{word_at(q) ^ 0x80808080, word_at(q + 16) ^ 0x80808080}, {d, d}, {0, 0}};
    }
};

template <> struct format_of<2> { /* q4_k: four bytes with both f16, twelve with the scales, then the half bytes */
    static const int BLOCK = 256, BYTES = 144, GAP = 32, OFFSET = 0;
    static const bool MIN = true;
    static MEMBER int first(int part) { return part / 8 * 64 + part % 8 * 4; }
    static MEMBER eight load(const u8 *block, int part)
    {
        int pair = part / 8, by = pair % 2 * 16; /* runs 2 pair and 2 pair + 1 */
        pack<u32, 4> head = ::load<4>((const u32 *)block);
        u32 w = *(const u32 *)(block + 16 + 4 * part);
        u32 a = head.v[1] >> by, b = head.v[2] >> by, c = head.v[3] >> by;
        u32 scale = pair < 2 ? a & 0x3F3F : (c & 0x0F0F) | (a >> 6 & 0x0303) << 4;
        u32 min = pair < 2 ? b & 0x3F3F : (c >> 4 & 0x0F0F) | (b >> 6 & 0x0303) << 4;
        f32 d = from_f16({(unsigned short)head.v[0]}), least = from_f16({(unsigned short)(head.v[0] >> 16)});
        return {{w & 0x0F0F0F0F, w >> 4 & 0x0F0F0F0F},
                {d * byte_less<0>(scale, 0), d * byte_less<0>(scale, 1)},
                {least * byte_less<0>(min, 0), least * byte_less<0>(min, 1)}};
    }
};

template <> struct format_of<3> { /* q6_k: 128 bytes with four bits of two weights, 64 with two of four, scales, f16 */
    static const int BLOCK = 256, BYTES = 210, GAP = 64, OFFSET = 32;
    static const bool MIN = false;
    static MEMBER int first(int part) { return part / 16 * 128 + part % 16 * 4; }
    static MEMBER eight load(const u8 *block, int part)
    {
        int half = part / 16, run = part / 8 % 2; /* runs `run` and run + 2 of the half */
        u32 low = word_at(block + 4 * part), high = word_at(block + 128 + 32 * half + part % 8 * 4) >> 2 * run;
        /* Eight scales to a half, of which four are for the first two runs; signed. */
        const u8 *scale = block + 192 + 4 * half + part / 4;
        f32 d = half_at(block + 208);
        return {{(low & 0x0F0F0F0F) | (high & 0x03030303) << 4, (low >> 4 & 0x0F0F0F0F) | (high >> 4 & 0x03030303) << 4},
                {d * byte_less<128>(scale[0] ^ 128u, 0), d * byte_less<128>(scale[4] ^ 128u, 0)},
                {0, 0}};
    }
};

/* ---- few rows of x ---- */

/* sum += the eight weights times eight of x. */
template <class F, class A> DEVICE A add_eight(const eight &w, const A *x, A sum)
{
    UNROLL
    for (int h = 0; h < 2; h++) {
        A part = 0;
        UNROLL
        for (int j = 0; j < 4; j++) {
            A q = (A)byte_less<F::OFFSET>(w.q[h], j);
            if (F::MIN)
                sum = m_fma(m_fma(q, (A)w.scale[h], -(A)w.min[h]), x[4 * h + j], sum);
            else
                part = m_fma(q, x[4 * h + j], part);
        }
        if (!F::MIN)
            sum = m_fma((A)w.scale[h], part, sum);
    }
    return sum;
}

template <class T> DEVICE void load_eight(const T *x, int gap, acc<T> *v)
{
    UNROLL
    for (int h = 0; h < 2; h++) {
        pack<T, 4> four = load<4>(x + h * gap);
        UNROLL
        for (int j = 0; j < 4; j++)
            v[4 * h + j] = get(four.v[j]);
    }
}

/* A group of ROWS rows of weights has a.split waves, which share its columns. */
template <class T, int FORMAT, int M> DEVICE void quant_dot(const quant_dot_args &a)
{
    typedef acc<T> A;
    typedef format_of<FORMAT> F;
    const int ROWS = WK_QUANT_GROUP(FORMAT, M), WAVES = 256 / WAVE, PARTS = F::BLOCK / 8;
    SHARED A room[WAVES][ROWS * M];
    u32 lane = lane_id(), wave = wave_id(), groups = WAVES / a.split, share = wave % a.split;
    for (i64 g = (i64)block_id() * groups; g * ROWS < a.n; g += (i64)grid_blocks() * groups) {
        i64 row0 = (g + wave / a.split) * ROWS;
        A sum[ROWS][M] = {};
        const u8 *rows[ROWS];
        UNROLL
        for (int r = 0; r < ROWS; r++)
            rows[r] = a.weight + lesser(row0 + r, a.n - 1) * a.pitch;
        u32 units = row0 < a.n ? (u32)(a.k / 8) : 0; /* the host sees that they fit */
        for (u32 u = share * WAVE + lane; u < units; u += a.split * WAVE) {
            u32 block = u / PARTS;
            int part = (int)(u % PARTS);
            eight w[ROWS];
            UNROLL
            for (int r = 0; r < ROWS; r++)
                w[r] = F::load(rows[r] + block * F::BYTES, part);
            UNROLL
            for (int i = 0; i < M; i++) {
                A x[8];
                load_eight((const T *)a.x + lesser(i, a.m - 1) * a.k + block * F::BLOCK + F::first(part), F::GAP, x);
                UNROLL
                for (int r = 0; r < ROWS; r++)
                    sum[r][i] = add_eight<F>(w[r], x, sum[r][i]);
            }
        }
        A mine = 0;
        UNROLL
        for (int r = 0; r < ROWS; r++)
            UNROLL
            for (int i = 0; i < M; i++) {
                A all = wave_reduce<op_sum>(sum[r][i]);
                mine = lane == (u32)(r * M + i) ? all : mine;
            }
        if (lane < ROWS * M)
            room[wave][lane] = mine;
        barrier();
        i64 row = row0 + lane / M, i = lane % M;
        if (share == 0 && lane < ROWS * M && row < a.n && i < a.m) {
            for (u32 s = 1; s < (u32)a.split; s++)
                mine += room[wave + s][lane];
            if (a.bias)
                mine += get(((const T *)a.bias)[row * a.bias_step]);
            ((T *)a.y)[i * a.n + row] = put<T>(activate(a.act, mine));
        }
        barrier();
    }
}

/* ---- weights as floats ---- */

/* Blocks: x along a row, y over rows. */
template <class T, int FORMAT> DEVICE void quant_rows(const quant_rows_args &a)
{
    typedef acc<T> A;
    typedef format_of<FORMAT> F;
    const int PARTS = F::BLOCK / 8;
    for (i64 row = block_id_y(); row < a.count; row += grid_blocks_y()) {
        i64 from = a.ids ? load_id(a.ids, a.id_bytes, row) : row;
        bool there = !a.ids || id_leads(from, a.id_bytes, a.limit, a.report);
        for (i64 u = global_thread(); u < a.k / 8; u += global_threads()) {
            i64 block = u / PARTS;
            int part = (int)(u % PARTS);
            T *y = (T *)a.y + row * a.k + block * F::BLOCK + F::first(part);
            eight w = {};
            if (there)
                w = F::load(a.weight + from * a.pitch + block * F::BYTES, part);
            UNROLL
            for (int h = 0; h < 2; h++) {
                pack<T, 4> four;
                UNROLL
                for (int j = 0; j < 4; j++)
                    four.v[j] = put<T>(m_fma((A)byte_less<F::OFFSET>(w.q[h], j), (A)w.scale[h], -(A)w.min[h]));
                store<4>(y + h * F::GAP, four);
            }
        }
    }
}
