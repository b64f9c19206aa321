/* gemm_kernel.c: the tile kernels for float, double and pairs of bf16. */
#include "gemm_int.h"
#include "core/host.h"

#define REAL float
#define PACKED float
#define ALIGNED sizeof(float)
#define NAME(x) x##_f32
#define FUNCTION
#define MULADD(acc, a, b) ((acc) + (a) * (b))
#include "gemm_kernel.inc.h"

#define REAL double
#define PACKED double
#define ALIGNED sizeof(double)
#define NAME(x) x##_f64
#define FUNCTION
#define MULADD(acc, a, b) ((acc) + (a) * (b))
#include "gemm_kernel.inc.h"

/* What differs among the kernels here. */
#define KERNEL(name, values, direct_a, direct_b) \
    { \
        .tile = run_tile_##name, .bytes = WK_VEC_BYTES / LANES_##name, .lanes = LANES_##name, \
        .rows = GEMM_MR, .vectors = GEMM_NV, .pair = values, .blocks = 1, .step = 1, .a_dtype = direct_a, \
        .b_dtype = direct_b \
    }

const gemm_kernel WK_ISA(gemm_kernel_f32) = KERNEL(f32, 1, WK_F32, WK_F32);
static const gemm_kernel kernel_f64 = KERNEL(f64, 1, WK_F64, WK_F64);

#ifdef __AVX512F__
#include <immintrin.h>

/* A packed element is two bf16 values that follow each other along k: one instruction multiplies and adds both.
 * It takes subnormal inputs and results for zero. */
#define REAL float
#define PACKED int32_t
#define ALIGNED sizeof(uint16_t)
#define NAME(x) x##_bf16
#define FUNCTION __attribute__((target("avx512bf16")))
#define MULADD(acc, a, b) (vec_bf16) _mm512_dpbf16_ps((__m512)(acc), (__m512bh)(a), (__m512bh)(b))
#include "gemm_kernel.inc.h"

static const gemm_kernel kernel_bf16 = KERNEL(bf16, 2, WK_BF16, WK_DTYPE_COUNT);
#endif

#if GEMM_TILES
static bool takes_pairs(const wk_gemm_args *g)
{
    return g->a.dtype == WK_BF16 && (!g->pack_b || g->pack_b_pairs);
}

static bool has_tiles(void)
{
#ifdef WK_SOFT_TILES
    return true;
#else
    return wk_host_has_amx();
#endif
}

/* Products that would leave most of a tile empty are none for AMX. */
static bool takes_tiles(const wk_gemm_args *g) { return g->m >= 12 && g->n >= 12 && g->k >= 16; }

/* The kernel of as many pieces as it takes, of which a f16 has two (but what a caller packs may be any f32); NULL where
 * cutting takes longer than it saves. */
static const gemm_kernel *pieces_kernel(const wk_gemm_args *g)
{
    bool two = g->a.dtype == WK_F16 && !g->pack_b;
    int64_t side = two ? 96 : 128, least = two ? 1 << 20 : 1 << 23;
    if (g->m < side || g->n < side || g->k < 64 || g->k > GEMM_CUT_DEPTH || g->m * g->n * g->k < least)
        return NULL;
    return two ? &WK_ISA(gemm_kernel_two) : &WK_ISA(gemm_kernel_three);
}

/* NULL: none of those. */
static const gemm_kernel *tile_kernel(const wk_gemm_args *g)
{
    if (!has_tiles())
        return NULL;
    if (takes_pairs(g))
        return takes_tiles(g) ? &WK_ISA(gemm_kernel_amx) : NULL;
    return pieces_kernel(g);
}
#endif

const gemm_kernel *WK_ISA(gemm_pick_kernel)(const wk_gemm_args *g)
{
    if (g->c.dtype == WK_F64)
        return &kernel_f64;
#if GEMM_TILES
    const gemm_kernel *tiles = tile_kernel(g);
    if (tiles)
        return tiles;
#endif
#ifdef __AVX512F__
    if (takes_pairs(g) && gemm_has_bf16_pairs())
        return &kernel_bf16;
#endif
    return &WK_ISA(gemm_kernel_f32);
}
