/* reduce.h: the one reduction engine of the GPU. */
#ifndef WK_GPU_REDUCE_H
#define WK_GPU_REDUCE_H

#include "gpu.h"

/* x over the dims of set to y (packed, one element for each place of the other dims, of any dtype of x's compute kind).
 * formula: r_sum, r_max, ... of kernels/reduce.hip. count: what a mean or a variance is divided by. z: what the
 * formula gives beside, packed: the u32 places of r_NAME_at (over one dim), the numbers of r_NAME_many and
 * r_prod_others in the compute dtype; else NULL. With r_NAME_at y may be NULL. */
wk_status wk_gpu_reduce(const wk_call *c, const char *formula, const wk_tensor *x, unsigned set, double count,
                        wk_tensor *y, wk_tensor *z);

/* x summed over the dimensions that out (packed) is broadcast over to have x's shape. Adds up in the compute type and
 * rounds once, where out is narrower. */
wk_status wk_gpu_sum_to(const wk_call *c, const wk_tensor *x, wk_tensor *out);

#endif
