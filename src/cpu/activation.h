/* activation.h: what the unary ops lend to other families. */
#ifndef WK_CPU_ACTIVATION_H
#define WK_CPU_ACTIVATION_H

#include "map.h"
#include "wick/ops.h"

/* The formula of a wk_activation for a float compute type; NULL for WK_ACT_NONE. */
wk_block_fn WK_ISA(wk_activation_block)(int64_t act, wk_compute compute);

/* The formula of an op of the unary or the binary family for a compute type, by its name; NULL: there is none such. */
wk_block_fn WK_ISA(wk_unary_block)(const char *op, wk_compute compute);
wk_block_fn WK_ISA(wk_binary_block)(const char *op, wk_compute compute);

/* The numbers of a unary op as the formulas take them (their params), for both kinds of compute type. */
typedef struct {
    double f[3];
    int64_t i[3];
} wk_numbers;

/* That formula in place, in the form wk_gemm_args takes; ctx is a wk_activation_ctx. */
typedef struct {
    wk_block_fn fn;
    wk_numbers numbers;
} wk_activation_ctx;
void WK_ISA(wk_activation_row)(void *row, int64_t n, const void *ctx);

/* t packed and in its compute dtype (f32 for f16 and bf16): t itself where it is that already. Owned by the
 * innermost scope. NULL with an error. */
const wk_tensor *WK_ISA(wk_compute_copy)(const wk_tensor *t);

#endif
