/* mma.h: products of 16 x 16 tiles of f16 or bf16 on matrix units: MFMA (CDNA), WMMA (RDNA 3 and 4), mma.sync (NVIDIA); on
 * CDNA of f32 too.
 *
 * c += a . b^T: both operands are 16 rows of 16 neighbouring elements (the sum's), so that one function loads either
 * from shared memory. A wave has the tile; a lane's values of c lie at mma_row, mma_col. Values of one row have the same
 * slot and are spread over neighbouring lanes. */
#ifndef WK_KERNELS_MMA_H
#define WK_KERNELS_MMA_H

#include "device.h"

#if defined(WK_NVIDIA)
enum { MMA_WORDS = 4, MMA_VALUES = 8, MMA_SLOTS = 2, MMA_SPREAD = 4 };
#elif WAVE == 64
enum { MMA_WORDS = 2, MMA_VALUES = 4, MMA_SLOTS = 4, MMA_SPREAD = 16 };
#elif defined(__gfx1200__) || defined(__gfx1201__)
#define WK_GFX12
enum { MMA_WORDS = 4, MMA_VALUES = 8, MMA_SLOTS = 8, MMA_SPREAD = 16 };
#else
enum { MMA_WORDS = 8, MMA_VALUES = 8, MMA_SLOTS = 8, MMA_SPREAD = 16 };
#endif

/* The matrix units of gfx90a take f16 below the least normal number, 2^-14, for 0. What kernels make for them is therefore made
 * as large as f16 has room for. */
template <class T> struct loses_small {
    static const bool value = false;
};
#ifdef __gfx90a__
template <> struct loses_small<f16> {
    static const bool value = true;
};
#endif
/* x - N: x as it is where N is 0. */
template <int N> DEVICE f32 lowered(f32 x)
{
    if constexpr (N == 0)
        return x;
    else
        return x - N;
}

template <class T> struct fragment {
    static const int WORDS = sizeof(T) == 4 ? 4 : MMA_WORDS;
    u32 w[WORDS];
};

/* ---- where a lane's values are ---- */

DEVICE int mma_slot(int i) { return MMA_SLOTS == 2 ? i % 4 / 2 : i; }
DEVICE int mma_row(int slot)
{
    int lane = lane_id();
#if defined(WK_NVIDIA)
    return lane / 4 + 8 * slot;
#elif WAVE == 64
    return lane / 16 * 4 + slot;
#elif defined(WK_GFX12)
    return lane / 16 * 8 + slot;
#else
    return lane / 16 + 2 * slot;
#endif
}
DEVICE int mma_col(int i)
{
    int lane = lane_id();
    return MMA_SLOTS == 2 ? i / 4 * 8 + lane % 4 * 2 + i % 2 : lane % 16;
}

/* Over all columns of a row. */
template <class OP> DEVICE f32 mma_row_reduce(f32 v) { return wave_reduce<OP, MMA_SPREAD>(v); }

/* ---- loads ---- */

/* A tile whose first element is *p and whose rows are `pitch` elements apart: a multiple of 8, as is p's place. */
template <class T> DEVICE fragment<T> mma_load(const T *p, int pitch)
{
    static_assert(sizeof(T) == 2, "16-bit elements");
    fragment<T> f;
    int lane = lane_id();
#if defined(WK_NVIDIA)
    const T *at = p + lane / 4 * pitch + lane % 4 * 2;
    f.w[0] = *(const u32 *)at;
    f.w[1] = *(const u32 *)(at + 8 * pitch);
    f.w[2] = *(const u32 *)(at + 8);
    f.w[3] = *(const u32 *)(at + 8 * pitch + 8);
#else
    /* Each lane has a row, or the part of it that its place among those with the same row gives. */
    const int each = MMA_WORDS * 2;
    const u32 *at = (const u32 *)(p + lane % 16 * pitch + (each == 16 ? 0 : lane / 16 * each));
    pack < u32, MMA_WORDS<4 ? MMA_WORDS : 4> part;
    UNROLL
    for (int i = 0; i < MMA_WORDS; i += 4) {
        part = load < MMA_WORDS < 4 ? MMA_WORDS : 4 > (at + i);
        UNROLL
        for (int j = 0; j < 4 && j < MMA_WORDS; j++)
            f.w[i + j] = part.v[j];
    }
#endif
    return f;
}

#ifdef WK_NVIDIA
/* Four pieces of 8 x 8 in shared memory; lane i has the address of row i % 8 of piece i / 8. Turned: columns of them. */
DEVICE void matrix_load(u32 *w, const void *row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(w[0]), "=r"(w[1]), "=r"(w[2]), "=r"(w[3])
                 : "r"(shared_address(row))
                 : "memory");
}
DEVICE void matrix_load_turned(u32 *w, const void *row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(w[0]), "=r"(w[1]), "=r"(w[2]), "=r"(w[3])
                 : "r"(shared_address(row))
                 : "memory");
}
#endif

/* ---- products ---- */

#if defined(WK_NVIDIA)
#define WK_MMA(type) \
    asm("mma.sync.aligned.m16n8k16.row.col.f32." type "." type \
        ".f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, " \
        "{%0,%1,%2,%3};" \
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) \
        : "r"(a.w[0]), "r"(a.w[1]), "r"(a.w[2]), "r"(a.w[3]), "r"(b0), "r"(b1))
DEVICE void mma_half(const fragment<f16> &a, u32 b0, u32 b1, f32 *c) { WK_MMA("f16"); }
DEVICE void mma_half(const fragment<bf16> &a, u32 b0, u32 b1, f32 *c) { WK_MMA("bf16"); }
template <class T> DEVICE void mma(const fragment<T> &a, const fragment<T> &b, f32 *c)
{
    mma_half(a, b.w[0], b.w[2], c);
    mma_half(a, b.w[1], b.w[3], c + 4);
}
#else
typedef f32 WK_ATTR(ext_vector_type(MMA_VALUES)) mma_floats;
typedef _Float16 WK_ATTR(ext_vector_type(MMA_WORDS * 2)) mma_f16s;
typedef short WK_ATTR(ext_vector_type(MMA_WORDS * 2)) mma_bf16s;
#if WAVE == 64
#define WK_MMA_F16(a, b, c) __builtin_amdgcn_mfma_f32_16x16x16f16(a, b, c, 0, 0, 0)
#define WK_MMA_BF16(a, b, c) __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(a, b, c, 0, 0, 0)
#elif defined(WK_GFX12)
#define WK_MMA_F16 __builtin_amdgcn_wmma_f32_16x16x16_f16_w32_gfx12
#define WK_MMA_BF16 __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32_gfx12
#else
#define WK_MMA_F16 __builtin_amdgcn_wmma_f32_16x16x16_f16_w32
#define WK_MMA_BF16 __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32
#endif
DEVICE mma_floats mma_vector(const fragment<f16> &a, const fragment<f16> &b, mma_floats c)
{
    return WK_MMA_F16(bit_cast<mma_f16s>(a), bit_cast<mma_f16s>(b), c);
}
DEVICE mma_floats mma_vector(const fragment<bf16> &a, const fragment<bf16> &b, mma_floats c)
{
    return WK_MMA_BF16(bit_cast<mma_bf16s>(a), bit_cast<mma_bf16s>(b), c);
}
#if WAVE == 64 /* products of f32 are exact; element i of all lanes is a product of its own */
DEVICE mma_floats mma_vector(const fragment<f32> &a, const fragment<f32> &b, mma_floats c)
{
    UNROLL
    for (int i = 0; i < 4; i++)
        c = __builtin_amdgcn_mfma_f32_16x16x4f32(bit_cast<f32>(a.w[i]), bit_cast<f32>(b.w[i]), c, 0, 0, 0);
    return c;
}
#endif
template <class T> DEVICE void mma(const fragment<T> &a, const fragment<T> &b, f32 *c)
{
    mma_floats v;
    UNROLL
    for (int i = 0; i < MMA_VALUES; i++)
        v[i] = c[i];
    v = mma_vector(a, b, v);
    UNROLL
    for (int i = 0; i < MMA_VALUES; i++)
        c[i] = v[i];
}
#endif

#endif
