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

#endif
