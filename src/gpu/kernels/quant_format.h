/* quant_format.h: how kernels read weights in blocks of few bits.
 *
 * A thread takes eight weights of a block at a time: two runs of four neighbours, which every format has in two words
 * of bytes. */
#ifndef WK_KERNELS_QUANT_FORMAT_H
#define WK_KERNELS_QUANT_FORMAT_H

#include "device.h"

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

template <>
struct format_of<2> { /* q4_k: four bytes with both f16, twelve with the scales, then the half bytes */
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

template <>
struct format_of<3> { /* q6_k: 128 bytes with four bits of two weights, 64 with two of four, scales, f16 */
    static const int BLOCK = 256, BYTES = 210, GAP = 64, OFFSET = 32;
    static const bool MIN = false;
    static MEMBER int first(int part) { return part / 16 * 128 + part % 16 * 4; }
    static MEMBER eight load(const u8 *block, int part)
    {
        int half = part / 16, run = part / 8 % 2; /* runs `run` and run + 2 of the half */
        u32 low = word_at(block + 4 * part),
            high = word_at(block + 128 + 32 * half + part % 8 * 4) >> 2 * run;
        /* Eight scales to a half, of which four are for the first two runs; signed. */
        const u8 *scale = block + 192 + 4 * half + part / 4;
        f32 d = half_at(block + 208);
        return {{(low & 0x0F0F0F0F) | (high & 0x03030303) << 4,
                 (low >> 4 & 0x0F0F0F0F) | (high >> 4 & 0x03030303) << 4},
                {d * byte_less<128>(scale[0] ^ 128u, 0), d * byte_less<128>(scale[4] ^ 128u, 0)},
                {0, 0}};
    }
};

/* Every STEPth part of a row times x, one by one: what infinities and NaNs in x ask for. */
template <int FORMAT, class T> DEVICE f32 plain_dot(const u8 *row, const T *x, i64 k, u32 first, u32 step)
{
    typedef format_of<FORMAT> F;
    const int PARTS = F::BLOCK / 8;
    f32 sum = 0;
    for (u32 u = first; u < (u32)(k / 8); u += step) {
        int part = (int)(u % PARTS);
        eight w = F::load(row + (i64)(u / PARTS) * F::BYTES, part);
        const T *at = x + (i64)(u / PARTS) * F::BLOCK + F::first(part);
        UNROLL
        for (int i = 0; i < 8; i++)
            sum = m_fma(m_fma(byte_less<F::OFFSET>(w.q[i / 4], i % 4), w.scale[i / 4], -w.min[i / 4]),
                        get(at[i / 4 * F::GAP + i % 4]), sum);
    }
    return sum;
}

#endif
