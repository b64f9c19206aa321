/* gemm.h: the one matrix-product core, under matmul, linear, convolution, RNN and attention. */
#ifndef WK_CPU_GEMM_H
#define WK_CPU_GEMM_H

#include <stdbool.h>
#include <stdint.h>
#include "core/dtype.h"
#include "isa.h"

/* A matrix in memory: element (i, j) is at data[i * rs + j * cs], counted in elements of the dtype. */
typedef struct {
    void *data;
    wk_dtype dtype;
    int64_t rs, cs;
} wk_mat;

/* Packs columns [j0, j0 + jn) of rows [p0, p0 + pn) of B, row by row: dst[(p - p0) * nr + (j - j0)], in the
 * compute type (float, or double for f64), columns from jn to nr filled with zeros. Lets a convolution feed
 * the product with patches of the image without ever holding the patch matrix. Called from several threads. */
typedef void (*wk_gemm_pack_fn)(const void *ctx, int64_t p0, int64_t pn, int64_t j0, int64_t jn, int64_t nr,
                                void *dst);

/* C[m, n] = act(A[m, k] . B[k, n] + C * accumulate + row_bias[i] + col_bias[j]).
 * Computes in f64 when c.dtype is f64 and in f32 otherwise; a, b and c are of one dtype, except that c may be
 * f32 beside f16 or bf16 operands, or f16 or bf16 beside f32 ones. Rounds once, at the end. m, n and k may be 0 (k = 0 gives bias alone). */
typedef struct {
    int64_t m, n, k;
    wk_mat a, b, c;
    wk_gemm_pack_fn pack_b; /* NULL: B is b */
    /* Beside pack_b where A is bf16, for processors that multiply pairs: dst[(p - p0) / 2 * nr + j - j0] is an
     * uint32_t with row p, an even one, in its lower half and row p + 1 (0 behind the last) in its upper half. */
    wk_gemm_pack_fn pack_b_pairs;
    /* Beside pack_b: takes n finished values of row i from column j0 on, in the compute type, in place of C, of which
     * only the dtype is looked at: f64 or not. */
    void (*store_c)(const void *ctx, int64_t i, int64_t j0, int64_t n, const void *v);
    const void *pack_ctx;            /* of all three */
    const void *row_bias, *col_bias; /* NULL or m, n values in the compute type */
    bool accumulate;                 /* add to what C holds */
    void (*act)(void *row, int64_t n,
                const void *ctx); /* NULL, or applied in place to finished values, n at a
                                                           time, in the compute type, before rounding */
    const void *act_ctx;
} wk_gemm_args;

/* One product, shared among the pool's threads. Returns false when memory for packing is missing; C is then
 * unchanged. The same bits for any number of threads. */
bool WK_ISA(wk_gemm)(const wk_gemm_args *g);

/* A batch of products: product i uses a, b, c moved on by a_offsets[i], ... elements. What differs from calling wk_gemm
 * in a loop is that small products are spread over the threads whole. */
bool WK_ISA(wk_gemm_batch)(const wk_gemm_args *g, int64_t batch, const int64_t *a_offsets,
                           const int64_t *b_offsets, const int64_t *c_offsets);

/* ---- Small products with one B over and over (a recurrent layer's weights), packed once ----
 * All of them f32, or all f64. */

/* The columns of a panel. */
int64_t WK_ISA(wk_gemm_panel_width)(wk_dtype dtype);
/* b [k, n], n at most that width, into panel: k * width elements. */
void WK_ISA(wk_gemm_panel_pack)(int64_t k, int64_t n, wk_mat b, void *panel);
/* C[m, n] = A[m, k] . panel, added to what C holds if add is set; c.cs is 1. Runs on the calling thread. */
void WK_ISA(wk_gemm_panel_run)(int64_t m, int64_t n, int64_t k, wk_mat a, const void *panel, wk_mat c,
                               bool add);

#endif
