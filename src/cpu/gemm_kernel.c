/* gemm_kernel.c: the tile kernels for float, double and pairs of bf16. */
#include "gemm_int.h"
#include "core/host.h"

#define REAL float
#define PACKED float
#define NAME(x) x##_f32
#define FUNCTION
#define MULADD(acc, a, b) ((acc) + (a) * (b))
#include "gemm_kernel.inc.h"

#define REAL double
#define PACKED double
#define NAME(x) x##_f64
#define FUNCTION
#define MULADD(acc, a, b) ((acc) + (a) * (b))
#include "gemm_kernel.inc.h"

/* What differs among the kernels here. */
#define KERNEL(name, values, direct) \
    { \
        .tile = run_tile_##name, .bytes = WK_VEC_BYTES / LANES_##name, .lanes = LANES_##name, \
        .rows = GEMM_MR, .vectors = GEMM_NV, .pair = values, .blocks = 1, .step = 1, .dtype = direct \
    }

static const gemm_kernel kernel_f32 = KERNEL(f32, 1, WK_F32);
static const gemm_kernel kernel_f64 = KERNEL(f64, 1, WK_F64);

#ifdef __AVX512F__
#include <immintrin.h>

/* A packed element is two bf16 values that follow each other along k: one instruction multiplies and adds both.
 * It takes subnormal inputs and results for zero. */
#define REAL float
#define PACKED int32_t
#define NAME(x) x##_bf16
#define FUNCTION __attribute__((target("avx512bf16")))
#define MULADD(acc, a, b) (vec_bf16) _mm512_dpbf16_ps((__m512)(acc), (__m512bh)(a), (__m512bh)(b))
#include "gemm_kernel.inc.h"

static const gemm_kernel kernel_bf16 = KERNEL(bf16, 2, WK_DTYPE_COUNT);
#endif

#if defined(__AVX512F__) || defined(WK_SOFT_TILES)
static bool takes_pairs(const wk_gemm_args *g)
{
    return g->a.dtype == WK_BF16 && (!g->pack_b || g->pack_b_pairs);
}

/* Products that would leave most of a tile empty are none for AMX. */
static bool takes_tiles(const wk_gemm_args *g)
{
#ifndef WK_SOFT_TILES
    if (!wk_host_has_amx())
        return false;
#endif
    return g->m >= 12 && g->n >= 12 && g->k >= 16;
}
#endif

const gemm_kernel *WK_ISA(gemm_pick_kernel)(const wk_gemm_args *g)
{
    if (g->c.dtype == WK_F64)
        return &kernel_f64;
#if defined(__AVX512F__) || defined(WK_SOFT_TILES)
    if (takes_pairs(g) && takes_tiles(g))
        return &WK_ISA(gemm_kernel_amx);
#endif
#ifdef __AVX512F__
    if (takes_pairs(g) && gemm_has_bf16_pairs())
        return &kernel_bf16;
#endif
    return &kernel_f32;
}
