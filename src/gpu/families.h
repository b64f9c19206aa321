/* families.h: the families of ops that have kernels of wick's own on GPUs, once. */
#ifndef WK_GPU_FAMILIES_H
#define WK_GPU_FAMILIES_H

#include "core/families.h"

/* clang-format off */
#define WK_GPU_FAMILIES(F) \
    F(unary) \
    F(binary) \
    F(reduce) \
    F(matmul) \
    F(copy) \
    F(softmax) \
    F(rope) \
    F(attention) \
    F(random) \
    F(loss) \
    F(ctc) \
    F(optim) \
    F(conv) \
    F(pool) \
    F(resample) \
    F(norm) \
    F(index) \
    F(scan) \
    F(rnn) \
    /* clang-format on */

#define X(name) extern const wk_impl wk_gpu_impls_##name[];
WK_GPU_FAMILIES(X)
#undef X

/* All of them, NULL-terminated. */
extern const wk_impl *const wk_gpu_families[];

/* By the makers' libraries, tried before wick's own kernels. */
extern const wk_impl wk_rocm_impls_matmul[], wk_cuda_impls_matmul[];

#endif
