/* matmul.h: matrix products on the GPU, for families that are made of them. */
#ifndef WK_GPU_MATMUL_H
#define WK_GPU_MATMUL_H

#include "gpu.h"
#include "ops/matmul.h"

/* y = act(a . b + bias + z) by wick's own kernels. a, b, y: views with the same leading dimensions (stride 0 where an
 * operand is broadcast), then the matrix; a and b have one dtype, y that or its compute dtype. bias: [n] of y's dtype,
 * or NULL; z: as y, packed like it, or NULL; act: up to WK_ACT_SILU. */
wk_status wk_gpu_product(const wk_call *c, const wk_tensor *a, const wk_tensor *b, const wk_tensor *y,
                         const wk_tensor *bias, const wk_tensor *z, int64_t act);

/* matmul(a, b) into y by whatever implementation is best. */
wk_status wk_matmul_into(const wk_tensor *a, const wk_tensor *b, wk_tensor *y);

/* row_linear.c: linear and linear_act of one row, where wk_gpu_takes_row says so (z: packed, or NULL; act: up to WK_ACT_SILU),
 * and rms_norm_linear. */
bool wk_gpu_takes_row(const wk_call *c);
wk_status wk_gpu_row_linear(const wk_call *c, const wk_tensor *z, int64_t act);
wk_status wk_gpu_norm_linear(wk_call *c);
const char *wk_gpu_refuse_norm_linear(const wk_call *c);

/* Whether the device has the matrix units of kernels/mma.h. */
bool wk_gpu_has_matrix(const wk_gpu *g);

#endif
