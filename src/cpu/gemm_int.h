/* gemm_int.h: what the files of the matrix product share, and those that pack or multiply tiles as it does (conv_rows,
 * attention, quant).
 *
 *   gemm.c        the entry points, memory, and the choice between the two ways
 *   gemm_block.c  the usual way: blocks for the caches, packing, tasks
 *   gemm_kernel.c the innermost loops: a tile of C in registers
 *   gemm_amx.c    the same where the processor has registers for whole tiles of bf16
 *   gemm_cut.c    other types for those registers: numbers as sums of bf16
 *   gemm_finish.c from sums to C: biases, activation, rounding
 *   gemm_pack.c   copies panels of A and B into the order in which the kernel reads them
 *   gemm_panel.c  products with a part of B that the caller had packed
 *   gemm_thin.c   the other way: few rows and a large B, where the time goes into reading B once */
#ifndef WK_CPU_GEMM_INT_H
#define WK_CPU_GEMM_INT_H

#include <stddef.h>
#include "core/memory.h"
#include "gemm.h"

/* The kernel holds a tile of GEMM_MR rows by GEMM_NV vectors in registers; a row of B and one value of A must
 * fit beside it, and without fused multiply-add a product too. */
#if defined(__AVX512F__) || defined(__aarch64__)
enum { GEMM_MR = 8, GEMM_NV = 3 };
#elif defined(__AVX2__)
enum { GEMM_MR = 4, GEMM_NV = 3 };
#else
enum { GEMM_MR = 4, GEMM_NV = 2 };
#endif

enum { GEMM_ALIGN = 64, GEMM_SLOTS = 256 };

static inline int64_t gemm_min(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t gemm_max(int64_t a, int64_t b) { return a > b ? a : b; }
static inline int64_t gemm_blocks(int64_t n, int64_t block) { return (n + block - 1) / block; }
static inline int64_t gemm_round_up(int64_t n, int64_t to) { return gemm_blocks(n, to) * to; }

/* ---- Kernels ---- */

/* One tile: c[i * ldc + j] (+)= sum over p of a[i * a_rs + p * a_ks] * b[p * b_ks + j]. a and b are in packed
 * elements, b readable up to the full vector that holds the last column. */
typedef struct {
    const void *a, *b;
    const void *more; /* NULL, or a second B, whose product with A is added too: by gemm_kernel_amx only */
    void *c;
    int64_t a_rs, a_ks, b_ks, ldc;
    int64_t k;
    int rows, cols; /* 1..GEMM_MR, 1..GEMM_NV * lanes */
    bool add;
} gemm_tile;

/* dst[p * width + x] = src[x * sx + p * sp] for x < xn and p < pn, zeros for x in [xn, width). With pairs, p
 * counts single values of k in pn and sp, and dst has a row for every two. */
typedef void (*gemm_packer)(void *dst, int64_t width, const void *src, int64_t sx, int64_t sp, int64_t xn,
                            int64_t pn);

typedef struct {
    void (*tile)(const gemm_tile *t);
    size_t bytes;      /* of a packed element */
    int lanes;         /* elements in a vector */
    int rows, vectors; /* of a tile */
    int pair;          /* values along k in a packed element: 2 when they are pairs of bf16, else 1 */
    int blocks;        /* how many times the usual size blocks have: a fast kernel waits for memory else */
    int step;          /* packed elements along k that are read at once: panels are filled up with zeros */
    int pieces;        /* into which values of both operands are cut; 0: they are not */
    /* NULL, or cut GEMM_CUT_STEP values along k: rows of them, or for B as many rows of width each, two rows in pairs.
     * True if one is odd: none of its pieces is any good then. */
    bool (*cut_a)(void *dst, const float *src, int64_t rows),
        (*cut_b)(void *dst, const float *src, int64_t width);
    /* That a matrix must have to be read without packing; WK_DTYPE_COUNT: none. Pairs of A are two values of a row. */
    wk_dtype a_dtype, b_dtype;
    gemm_packer pack_a;                /* NULL: A is packed as B is */
    void (*begin)(void), (*end)(void); /* NULL, or around the tiles that a thread works out */
} gemm_kernel;

/* Vectors of the next tile, of those that are left: one alone would not keep the processor busy. */
static inline int gemm_next_vectors(int64_t left)
{
    return left >= GEMM_NV && left != GEMM_NV + 1 ? GEMM_NV : (int)gemm_min(left, 2);
}

static inline int64_t gemm_panel_columns(const gemm_kernel *kernel)
{
    return (int64_t)kernel->vectors * kernel->lanes;
}

#if defined(__AVX512F__) || defined(WK_SOFT_TILES)
#define GEMM_TILES 1 /* this level has kernels for tile registers */
#else
#define GEMM_TILES 0
#endif

static inline int gemm_pieces(const gemm_kernel *kernel) { return GEMM_TILES ? kernel->pieces : 0; }

/* Whether the processor multiplies pairs of bf16, which is no part of any level. */
static inline bool gemm_has_bf16_pairs(void)
{
#ifdef __AVX512F__
    return __builtin_cpu_supports("avx512bf16");
#else
    return false;
#endif
}

#if GEMM_TILES
extern const gemm_kernel WK_ISA(gemm_kernel_amx);
extern const gemm_kernel WK_ISA(gemm_kernel_two), WK_ISA(gemm_kernel_three); /* of so many pieces */
#endif

/* The kernel for this product; never NULL. */
const gemm_kernel *WK_ISA(gemm_pick_kernel)(const wk_gemm_args *g);
/* The one for odd numbers, which those that cut them cannot take. */
extern const gemm_kernel WK_ISA(gemm_kernel_f32);

/* Finishes rows [i0, i0 + mn) and columns [j0, j0 + jn) of C, whose sums are in v, in the compute type: adds C
 * (if it is not in already) and biases, applies act, rounds and stores. v may be C itself. */
void WK_ISA(gemm_finish)(const wk_gemm_args *g, void *v, int64_t ldv, int64_t i0, int64_t mn, int64_t j0,
                         int64_t jn);

static inline size_t gemm_compute_bytes(const wk_gemm_args *g) { return g->c.dtype == WK_F64 ? 8 : 4; }
/* Whether the kernel can add up in C itself. */
static inline bool gemm_c_in_place(const wk_gemm_args *g)
{
    return !g->store_c && g->c.cs == 1 && (g->c.dtype == WK_F32 || g->c.dtype == WK_F64);
}

/* ---- Packing ---- */

gemm_packer WK_ISA(gemm_pick_packer)(wk_dtype dtype, int pair);
/* Two rows of bf16, elements sx apart, become xn pairs. second is NULL behind the last row. */
void WK_ISA(gemm_pair_rows)(uint32_t *restrict dst, const uint16_t *first, const uint16_t *second, int64_t sx,
                            int64_t xn);

/* ---- Pieces ---- */

#define GEMM_CUT_SCALE 0x1p24f
enum {
    GEMM_CUT_STEP = 32,      /* values along k that are cut at a time: one step of the kernel */
    GEMM_CUT_DEPTH = 1 << 17 /* the most along k */
};

/* See gemm_kernel. */
bool WK_ISA(gemm_cut_a_two)(void *dst, const float *src, int64_t rows);
bool WK_ISA(gemm_cut_a_three)(void *dst, const float *src, int64_t rows);
bool WK_ISA(gemm_cut_b_two)(void *dst, const float *src, int64_t width);
bool WK_ISA(gemm_cut_b_three)(void *dst, const float *src, int64_t width);

/* ---- Scratch for tasks ----
 * A task takes a slot for its scratch; there is one for each thread that can be in the region. A thread takes the one that
 * it had last, if it can: that is in its cache. */

/* Bytes of so many slots, with gaps as wk_scratch_alloc has them. */
static inline size_t gemm_slots_bytes(size_t slot, int count)
{
    return slot ? (size_t)count * (slot + WK_SCRATCH_GAP) - WK_SCRATCH_GAP : 0;
}

typedef struct {
    char *base;
    size_t step; /* from one to the next */
    int count;
    struct {
        _Alignas(GEMM_ALIGN) _Atomic int busy;
    } slot[GEMM_SLOTS];
} gemm_slots;

void WK_ISA(gemm_slots_init)(gemm_slots *s, char *base, size_t bytes, int count);
char *WK_ISA(gemm_slot_take)(gemm_slots *s);
void WK_ISA(gemm_slot_give)(gemm_slots *s, char *slot);

/* ---- The two ways ----
 * A plan depends on sizes, strides and dtypes only, so one serves all products of a batch. Running it needs
 * shared + slots * slot bytes of memory and cannot fail. */
typedef struct {
    const gemm_kernel *kernel;
    bool thin, transposed; /* transposed: thin works on C^T = B^T A^T */
    int64_t mt, nt;        /* rows and columns of C in a task */
    int64_t mo, no, ko;    /* of the outer block, for which operands are packed at once */
    int64_t tasks;         /* the most that run at a time */
    int64_t kc;            /* values of k that the kernel adds up at a time; for thin: in a task */
    bool pack_a, share_b, direct_b, c_scratch;
    size_t a_bytes,
        b_bytes; /* of the packed outer blocks; c_bytes the outer block of sums, if it needs one */
    size_t c_bytes;
    size_t shared, slot;
} gemm_plan;

void WK_ISA(gemm_block_plan)(gemm_plan *plan, const wk_gemm_args *g);
void WK_ISA(gemm_block_run)(const gemm_plan *plan, const wk_gemm_args *g, char *memory, int slots);

/* False when the product is none for the thin way. */
bool WK_ISA(gemm_thin_plan)(gemm_plan *plan, const wk_gemm_args *g);
void WK_ISA(gemm_thin_run)(const gemm_plan *plan, const wk_gemm_args *g, char *memory, int slots);

#endif
