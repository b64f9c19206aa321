/* gemm_pack.c: copies a panel of a matrix into the order in which the kernel reads it, converting on the way.
 *
 * A panel of A and one of B are packed alike: x counts the rows of A or the columns of B, and runs fastest in
 * the packed panel. What differs is which of x and k is contiguous in memory: if x is, rows are copied; if k
 * is, blocks of 4 by 4 are transposed in registers. */
#include "gemm_int.h"
#ifdef __F16C__
#include <immintrin.h>
#endif

typedef float f32x4 __attribute__((vector_size(16)));
typedef double f64x4 __attribute__((vector_size(32)));
typedef uint16_t u16x4 __attribute__((vector_size(8)));
typedef uint32_t u32x4 __attribute__((vector_size(16)));

/* How far ahead memory is asked for. A panel reads short pieces that are far apart, which the processor does not
 * foresee. Into the second-level cache only: pieces a power of 2 apart would push each other out of the first. */
enum { AHEAD_ROWS = 32, AHEAD_LINES = 4, LINE = 64 };

/* ---- From memory to the packed type, one at a time, four at a time, or a run ---- */

ALWAYS_INLINE float one_f32(const void *p)
{
    float f;
    memcpy(&f, p, sizeof f); /* a pair of bf16 need not be aligned */
    return f;
}
ALWAYS_INLINE double one_f64(const void *p) { return *(const double *)p; }
ALWAYS_INLINE float one_f16(const void *p) { return wk_f16_to_f32(*(const uint16_t *)p); }
ALWAYS_INLINE float one_bf16(const void *p) { return wk_bf16_to_f32(*(const uint16_t *)p); }

/* By pointer: the ABI has no way to return a vector of 32 bytes at the base level. */
ALWAYS_INLINE void four_f32(f32x4 *v, const void *p) { memcpy(v, p, sizeof *v); }
ALWAYS_INLINE void four_f64(f64x4 *v, const void *p) { memcpy(v, p, sizeof *v); }

ALWAYS_INLINE void four_bf16(f32x4 *v, const void *p)
{
    u16x4 h;
    memcpy(&h, p, sizeof h);
    *v = (f32x4)(__builtin_convertvector(h, u32x4) << 16);
}

ALWAYS_INLINE void four_f16(f32x4 *v, const void *p)
{
#ifdef __F16C__
    *v = (f32x4)_mm_cvtph_ps(_mm_loadl_epi64(p));
#else
    const uint16_t *h = p;
    *v = (f32x4){one_f16(h), one_f16(h + 1), one_f16(h + 2), one_f16(h + 3)};
#endif
}

/* Runs are as short as a panel is wide: a call of memcpy with an unknown size costs as much as the copy. */
ALWAYS_INLINE void run_f32(float *dst, const void *src, int64_t n)
{
    const float *in = src;
    int64_t x = 0;
    for (; x + 16 <= n; x += 16)
        memcpy(dst + x, in + x, 16 * sizeof *dst);
    for (; x < n; x++)
        dst[x] = in[x];
}

ALWAYS_INLINE void run_f64(double *dst, const void *src, int64_t n)
{
    const double *in = src;
    int64_t x = 0;
    for (; x + 8 <= n; x += 8)
        memcpy(dst + x, in + x, 8 * sizeof *dst);
    for (; x < n; x++)
        dst[x] = in[x];
}

ALWAYS_INLINE void run_bf16(float *restrict dst, const void *src, int64_t n)
{
    for (int64_t x = 0; x < n; x++)
        dst[x] = one_bf16((const uint16_t *)src + x);
}

ALWAYS_INLINE void run_f16(float *restrict dst, const void *src, int64_t n)
{
    int64_t x = 0;
#ifdef __F16C__
    for (; x + 8 <= n; x += 8)
        _mm256_storeu_ps(dst + x,
                         _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)((const uint16_t *)src + x))));
#endif
    for (; x < n; x++)
        dst[x] = one_f16((const uint16_t *)src + x);
}

ALWAYS_INLINE void prefetch(const void *p, int64_t ahead, int64_t bytes)
{
    uintptr_t at = (uintptr_t)p + (uintptr_t)ahead; /* may lie behind the matrix, where it does no harm */
    for (int64_t i = 0; i < bytes; i += LINE)
        __builtin_prefetch((const void *)(at + (uintptr_t)i), 0, 2);
}

#define PACKED float
#define SOURCE float
#define VEC4 f32x4
#define NAME(x) x##_f32
#include "gemm_pack.inc.h"

#define PACKED double
#define SOURCE double
#define VEC4 f64x4
#define NAME(x) x##_f64
#include "gemm_pack.inc.h"

#define PACKED float
#define SOURCE uint16_t
#define VEC4 f32x4
#define NAME(x) x##_f16
#include "gemm_pack.inc.h"

#define PACKED float
#define SOURCE uint16_t
#define VEC4 f32x4
#define NAME(x) x##_bf16
#include "gemm_pack.inc.h"

/* ---- Pairs of bf16 ---- */

void WK_ISA(gemm_pair_rows)(uint32_t *restrict dst, const uint16_t *first, const uint16_t *second, int64_t sx,
                            int64_t xn)
{
    if (!second)
        for (int64_t x = 0; x < xn; x++)
            dst[x] = first[x * sx];
    else if (sx == 1)
        for (int64_t x = 0; x < xn; x++)
            dst[x] = first[x] | (uint32_t)second[x] << 16;
    else
        for (int64_t x = 0; x < xn; x++)
            dst[x] = first[x * sx] | (uint32_t)second[x * sx] << 16;
}

static void pack_pairs(void *dst, int64_t width, const void *src, int64_t sx, int64_t sp, int64_t xn,
                       int64_t pn)
{
    uint32_t *out = dst;
    const uint16_t *in = src;
    int64_t p = 0;
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    if (sp == 1) {
        /* Pairs lie in memory as the kernel wants them: 32-bit units, as good as floats, to be transposed. */
        p = pn / 2 * 2;
        transpose_f32(dst, width, src, sx * (int64_t)sizeof(uint16_t), xn, p / 2);
    }
#endif
    for (; p < pn; p += 2) {
        uint32_t *row = out + p / 2 * width;
        if (sx == 1) {
            prefetch(in + p * sp, AHEAD_ROWS * sp * 2, xn * 2);
            prefetch(in + p * sp, (AHEAD_ROWS + 1) * sp * 2, xn * 2);
        }
        WK_ISA(gemm_pair_rows)(row, in + p * sp, p + 1 < pn ? in + (p + 1) * sp : NULL, sx, xn);
        for (int64_t x = xn; x < width; x++)
            row[x] = 0;
    }
}

gemm_packer WK_ISA(gemm_pick_packer)(wk_dtype dtype, int pair)
{
    if (pair == 2)
        return pack_pairs;
    switch (dtype) {
    case WK_F64: return pack_f64;
    case WK_F16: return pack_f16;
    case WK_BF16: return pack_bf16;
    default: return pack_f32;
    }
}
