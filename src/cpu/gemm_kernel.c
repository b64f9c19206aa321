/* gemm_kernel.c: the tile kernels for float, double and pairs of bf16. */
#include "gemm_int.h"

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

static const gemm_kernel kernel_f32 = {run_tile_f32, sizeof(float), LANES_f32, 1, WK_F32};
static const gemm_kernel kernel_f64 = {run_tile_f64, sizeof(double), LANES_f64, 1, WK_F64};

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

static const gemm_kernel kernel_bf16 = {run_tile_bf16, sizeof(float), LANES_bf16, 2, WK_DTYPE_COUNT};
#endif

const gemm_kernel *WK_ISA(gemm_pick_kernel)(const wk_gemm_args *g)
{
    if (g->c.dtype == WK_F64)
        return &kernel_f64;
#ifdef __AVX512F__
    if (g->a.dtype == WK_BF16 && (!g->pack_b || g->pack_b_pairs) && gemm_has_bf16_pairs())
        return &kernel_bf16;
#endif
    return &kernel_f32;
}
