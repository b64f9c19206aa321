/* copy.h: copies between any two layouts, for all families. */
#ifndef WK_GPU_COPY_H
#define WK_GPU_COPY_H

#include "gpu.h"

/* The dtype that stands in kernels for all of its size. */
static inline wk_dtype wk_gpu_word(size_t bytes)
{
    return bytes == 1 ? WK_U8 : bytes == 2 ? WK_I16 : bytes == 4 ? WK_U32 : WK_I64;
}

/* dst and src have one shape and one dtype (or dtypes of one size) and do not overlap.
 * Strides of src may be negative. */
wk_status wk_gpu_copy(const wk_call *c, const wk_tensor *src, const wk_tensor *dst);

#endif
