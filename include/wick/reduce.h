/* wick/reduce.h: reductions. */
#ifndef WICK_REDUCE_H
#define WICK_REDUCE_H

#include "core.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Over n dims (n = 0: all of them); keepdim keeps them as size 1. Integer sum and prod keep the dtype and wrap;
 * mean, norm1 and norm2 are for floats. Reducing over no elements gives 0 for sum, norm1 and norm2, 1 for prod,
 * and is an error for the others. */
WK_API wk_tensor *wk_sum(const wk_tensor *x, int n, const int64_t *dims, int keepdim);
WK_API wk_tensor *wk_mean(const wk_tensor *x, int n, const int64_t *dims, int keepdim);
WK_API wk_tensor *wk_prod(const wk_tensor *x, int n, const int64_t *dims, int keepdim);
WK_API wk_tensor *wk_norm1(const wk_tensor *x, int n, const int64_t *dims, int keepdim); /* sum of |x| */
WK_API wk_tensor *wk_norm2(const wk_tensor *x, int n, const int64_t *dims,
                           int keepdim); /* sqrt of sum of x^2 */

/* NaN when any element is NaN. indices (u32, NULL when not wanted) needs n == 1 and is the first place of the
 * result. amax is the largest |x|. */
WK_API wk_tensor *wk_min(const wk_tensor *x, int n, const int64_t *dims, int keepdim, wk_tensor **indices);
WK_API wk_tensor *wk_max(const wk_tensor *x, int n, const int64_t *dims, int keepdim, wk_tensor **indices);
WK_API wk_tensor *wk_amax(const wk_tensor *x, int n, const int64_t *dims, int keepdim, wk_tensor **indices);

/* Where the smallest or largest element is, as u32: the first on ties; a NaN wins over numbers. */
WK_API wk_tensor *wk_argmin(const wk_tensor *x, int dim, int keepdim);
WK_API wk_tensor *wk_argmax(const wk_tensor *x, int dim, int keepdim);

/* Two passes; divided by the count less 1 when unbiased. Float. */
WK_API wk_tensor *wk_var(const wk_tensor *x, int n, const int64_t *dims, int keepdim, int unbiased);
/* log(sum(exp(x))), stable. Float. */
WK_API wk_tensor *wk_log_sum_exp(const wk_tensor *x, int n, const int64_t *dims, int keepdim);

/* Gradients: dx from x and dy (of the forward's result shape), with the forward's arguments. min and max over
 * one dim give it to the first extreme element, over several share it among equals, as amax does. Float. */
WK_API wk_tensor *wk_sum_backward(const wk_tensor *x, const wk_tensor *dy, int n, const int64_t *dims,
                                  int keepdim);
WK_API wk_tensor *wk_mean_backward(const wk_tensor *x, const wk_tensor *dy, int n, const int64_t *dims,
                                   int keepdim);
WK_API wk_tensor *wk_prod_backward(const wk_tensor *x, const wk_tensor *dy, int n, const int64_t *dims,
                                   int keepdim);
WK_API wk_tensor *wk_norm1_backward(const wk_tensor *x, const wk_tensor *dy, int n, const int64_t *dims,
                                    int keepdim);
WK_API wk_tensor *wk_norm2_backward(const wk_tensor *x, const wk_tensor *dy, int n, const int64_t *dims,
                                    int keepdim);
WK_API wk_tensor *wk_min_backward(const wk_tensor *x, const wk_tensor *dy, int n, const int64_t *dims,
                                  int keepdim);
WK_API wk_tensor *wk_max_backward(const wk_tensor *x, const wk_tensor *dy, int n, const int64_t *dims,
                                  int keepdim);
WK_API wk_tensor *wk_amax_backward(const wk_tensor *x, const wk_tensor *dy, int n, const int64_t *dims,
                                   int keepdim);
WK_API wk_tensor *wk_log_sum_exp_backward(const wk_tensor *x, const wk_tensor *dy, int n, const int64_t *dims,
                                          int keepdim);
WK_API wk_tensor *wk_var_backward(const wk_tensor *x, const wk_tensor *dy, int n, const int64_t *dims,
                                  int keepdim, int unbiased);

#ifdef __cplusplus
}
#endif
#endif
