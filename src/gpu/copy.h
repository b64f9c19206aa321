/* copy.h: copies between any two layouts, for all families. */
#ifndef WK_GPU_COPY_H
#define WK_GPU_COPY_H

#include "gpu.h"

/* dst and src have one shape and one dtype (or dtypes of one size) and do not overlap. */
wk_status wk_gpu_copy(const wk_call *c, const wk_tensor *src, const wk_tensor *dst);

#endif
