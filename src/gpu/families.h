/* families.h: the kernels of wick's own that every family of ops has on GPUs, and what the makers' libraries add. */
#ifndef WK_GPU_FAMILIES_H
#define WK_GPU_FAMILIES_H

#include "core/families.h"

#define X(name) extern const wk_impl wk_gpu_impls_##name[];
WK_FAMILIES(X)
#undef X

/* All of them, NULL-terminated. */
extern const wk_impl *const wk_gpu_families[];

/* By the makers' libraries, tried before wick's own kernels. */
extern const wk_impl wk_rocm_impls_matmul[], wk_cuda_impls_matmul[];

/* By MIOpen: those it does faster than wick's kernels, tried before them; and those bound by memory, where wick's
 * kernels need fewer passes, behind them (for `--impl miopen`). */
/* clang-format off */
#define WK_MIOPEN_FIRST(F) \
    F(rnn) \
    F(conv)
#define WK_MIOPEN_BEHIND(F) \
    F(softmax) \
    F(pool) \
    F(unary) \
    F(batch_norm) \
    F(lrn) \
    F(norm) \
    F(ctc) \
    F(attention) \
    F(act) \
    F(rope) \
    F(random) \
    F(reduce)
/* clang-format on */

#define X(name) extern const wk_impl wk_rocm_impls_##name[];
WK_MIOPEN_FIRST(X)
WK_MIOPEN_BEHIND(X)
#undef X

/* By cuDNN, likewise. */
/* clang-format off */
#define WK_CUDNN_FIRST(F) \
    F(act) \
    F(attention) \
    F(conv) \
    F(rnn)
#define WK_CUDNN_BEHIND(F) \
    F(softmax) \
    F(pool) \
    F(unary) \
    F(batch_norm) \
    F(lrn)
/* clang-format on */

#define X(name) extern const wk_impl wk_cuda_impls_##name[];
WK_CUDNN_FIRST(X)
WK_CUDNN_BEHIND(X)
#undef X

/* The ways a library has for a call beside its usual one; see wk_device_table. */
int wk_gpu_variants(wk_call *c, size_t workspace, uint64_t *list, int room);
int wk_miopen_variants(wk_call *c, size_t workspace, uint64_t *list, int room);
int wk_cudnn_variants(wk_call *c, size_t workspace, uint64_t *list, int room);

#endif
