/* act.h: what the ops with an activation at their end share on GPUs. */
#ifndef WK_GPU_ACT_H
#define WK_GPU_ACT_H

#include "gpu.h"
#include "wick/act.h"

/* bias [x.shape[dim]] as a view of x's shape. */
wk_tensor wk_gpu_bias_over(const wk_tensor *bias, const wk_tensor *x, int64_t dim);
/* out = act(x + bias + z) in one pass. bias [x.shape[dim]] and z may be NULL; out may be x. */
wk_status wk_gpu_bias_act(const wk_call *c, const wk_tensor *x, const wk_tensor *bias, const wk_tensor *z,
                          int64_t dim, wk_act act, wk_tensor *out);

#endif
