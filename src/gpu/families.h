/* families.h: the families of ops that have kernels of wick's own on GPUs, once. */
#ifndef WK_GPU_FAMILIES_H
#define WK_GPU_FAMILIES_H

#include "core/families.h"

#define WK_GPU_FAMILIES(F) F(unary) F(binary) F(copy) F(pool) F(resample) F(conv)

#define X(name) extern const wk_impl wk_gpu_impls_##name[];
WK_GPU_FAMILIES(X)
#undef X

/* All of them, NULL-terminated. */
extern const wk_impl *const wk_gpu_families[];
#endif
