/* wick/norm.h: normalisation. eps is added to the variance (the mean square for rms_norm), inside the root. */
#ifndef WICK_NORM_H
#define WICK_NORM_H

#include "core.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Batch norm ----
 * x [n, c, ..] of rank 2 to 5. Spatial: statistics of each channel, tensors of shape [c]. Per activation: of each
 * element of a sample over the batch, tensors of shape [c, ..]. weight, bias and statistics are f32, or f64 for
 * f64 data. Float. */
typedef enum { WK_BATCH_NORM_SPATIAL, WK_BATCH_NORM_PER_ACTIVATION } wk_batch_norm_mode;

/* Returns y = (x - mean) / sqrt(var + eps) * weight + bias by the batch's own statistics. weight, bias (NULL: 1 and
 * 0), running_mean, running_var (NULL: 0 and 1) are not changed; the places, each of which may be NULL, get
 *   new_mean, new_var        (1 - momentum) * running + momentum * the batch's, the variance unbiased
 *   save_mean, save_invstd   the batch's mean and 1 / sqrt(var + eps), for the gradient.
 * Each channel needs two elements, or none: then the running statistics stay and save_mean is 0. */
WK_API wk_tensor *wk_batch_norm_train(const wk_tensor *x, const wk_tensor *weight, const wk_tensor *bias,
                                      const wk_tensor *running_mean, const wk_tensor *running_var, double eps,
                                      double momentum, wk_batch_norm_mode mode, wk_tensor **new_mean,
                                      wk_tensor **new_var, wk_tensor **save_mean, wk_tensor **save_invstd);
/* The same formula by given statistics; weight and bias may be NULL. */
WK_API wk_tensor *wk_batch_norm_infer(const wk_tensor *x, const wk_tensor *weight, const wk_tensor *bias,
                                      const wk_tensor *mean, const wk_tensor *var, double eps,
                                      wk_batch_norm_mode mode);
/* Gradients of wk_batch_norm_train; weight may be NULL (ones), and so may a place that is not wanted. */
WK_API wk_status wk_batch_norm_backward(const wk_tensor *x, const wk_tensor *dy, const wk_tensor *weight,
                                        const wk_tensor *save_mean, const wk_tensor *save_invstd,
                                        wk_batch_norm_mode mode, wk_tensor **dx, wk_tensor **dweight,
                                        wk_tensor **dbias);

/* ---- Norms of a sample's own elements: weight and bias are of x's dtype; NULL means 1 and 0. Float. ---- */

/* Along the last dimension; weight and bias have its size. */
WK_API wk_tensor *wk_layer_norm(const wk_tensor *x, const wk_tensor *weight, const wk_tensor *bias,
                                double eps);
/* x / sqrt(mean(x^2) + eps) * weight along the last dimension. */
WK_API wk_tensor *wk_rms_norm(const wk_tensor *x, const wk_tensor *weight, double eps);
/* x [n, c, ..]: over `groups` equal groups of channels; weight and bias are [c]. */
WK_API wk_tensor *wk_group_norm(const wk_tensor *x, const wk_tensor *weight, const wk_tensor *bias,
                                int64_t groups, double eps);

/* Gradients; a place that is NULL is not wanted. dweight and dbias are there without a weight too. */
WK_API wk_status wk_layer_norm_backward(const wk_tensor *x, const wk_tensor *dy, const wk_tensor *weight,
                                        double eps, wk_tensor **dx, wk_tensor **dweight, wk_tensor **dbias);
WK_API wk_status wk_rms_norm_backward(const wk_tensor *x, const wk_tensor *dy, const wk_tensor *weight,
                                      double eps, wk_tensor **dx, wk_tensor **dweight);
WK_API wk_status wk_group_norm_backward(const wk_tensor *x, const wk_tensor *dy, const wk_tensor *weight,
                                        int64_t groups, double eps, wk_tensor **dx, wk_tensor **dweight,
                                        wk_tensor **dbias);

/* layer_norm(x + residual) and rms_norm(x + residual) in one pass. *sum, unless the place is NULL, gets the sum, rounded
 * to the dtype; the norm is taken of the sum before that. */
WK_API wk_tensor *wk_add_layer_norm(const wk_tensor *x, const wk_tensor *residual, const wk_tensor *weight,
                                    const wk_tensor *bias, double eps, wk_tensor **sum);
WK_API wk_tensor *wk_add_rms_norm(const wk_tensor *x, const wk_tensor *residual, const wk_tensor *weight,
                                  double eps, wk_tensor **sum);
/* Gradients from the sum, dy and dsum, the gradient that reaches the sum by other ways (NULL: none). dx is residual's
 * gradient too. */
WK_API wk_status wk_add_layer_norm_backward(const wk_tensor *sum, const wk_tensor *dy, const wk_tensor *dsum,
                                            const wk_tensor *weight, double eps, wk_tensor **dx,
                                            wk_tensor **dweight, wk_tensor **dbias);
WK_API wk_status wk_add_rms_norm_backward(const wk_tensor *sum, const wk_tensor *dy, const wk_tensor *dsum,
                                          const wk_tensor *weight, double eps, wk_tensor **dx,
                                          wk_tensor **dweight);

/* ---- Local response norm ----
 * y = x / (k + alpha * mean(x^2))^beta. CROSS: the mean over `size` neighbouring channels of x [n, c, ..], of rank 3
 * or more; WITHIN: over size x size elements of the plane of x [n, c, h, w]. The window of place i is
 * i - size / 2 .. i + (size - 1) / 2, and what lies outside of x counts as 0. Float. */
typedef enum { WK_LRN_CROSS, WK_LRN_WITHIN } wk_lrn_mode;

WK_API wk_tensor *wk_lrn(const wk_tensor *x, int64_t size, double alpha, double beta, double k,
                         wk_lrn_mode mode);
/* dx from x, the result y and dy. */
WK_API wk_tensor *wk_lrn_backward(const wk_tensor *x, const wk_tensor *y, const wk_tensor *dy, int64_t size,
                                  double alpha, double beta, double k, wk_lrn_mode mode);

#ifdef __cplusplus
}
#endif
#endif
