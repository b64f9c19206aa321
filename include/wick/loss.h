/* wick/loss.h: losses, each with its gradient.
 *
 * y is the mean or the sum of the elements' losses (rank 0), or all of them. dx (NULL: not wanted) is the gradient of
 * the sum of y with respect to x, of x's shape. The mean over nothing is NaN. Float. */
#ifndef WICK_LOSS_H
#define WICK_LOSS_H

#include "core.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum { WK_REDUCE_MEAN, WK_REDUCE_SUM, WK_REDUCE_NONE } wk_loss_reduction;

/* -log(softmax(x)[target]) for x [b, c] and target [b], class numbers of any id dtype (u8, u32, i32, i64). The largest
 * number of that dtype is padding: its row has loss and gradient 0 and is not counted by the mean. Any other target
 * outside of [0, c) fails with WK_ERR_INDEX. Without reduction y is [b]. */
WK_API wk_tensor *wk_cross_entropy(const wk_tensor *x, const wk_tensor *target, wk_loss_reduction reduction,
                                   wk_tensor **dx);
/* The same, and log(sum(exp(x))) of each row, [b] of f32 (f64 for f64 data), 0 in rows of padding: what a later pass
 * needs to make softmax(x) again. Either place may be NULL. */
WK_API wk_tensor *wk_softmax_cross_entropy(const wk_tensor *x, const wk_tensor *target,
                                           wk_loss_reduction reduction, wk_tensor **dx, wk_tensor **lse);
/* cross_entropy for log-probabilities: -x[target]. */
WK_API wk_tensor *wk_nll_loss(const wk_tensor *x, const wk_tensor *target, wk_loss_reduction reduction,
                              wk_tensor **dx);

/* (x - target)^2; target has x's shape and dtype here and below. */
WK_API wk_tensor *wk_mse_loss(const wk_tensor *x, const wk_tensor *target, wk_loss_reduction reduction,
                              wk_tensor **dx);
/* Binary cross entropy of sigmoid(x) with the probability target. */
WK_API wk_tensor *wk_bce_with_logits(const wk_tensor *x, const wk_tensor *target, wk_loss_reduction reduction,
                                     wk_tensor **dx);
/* d^2 / 2 for d = |x - target| up to delta, delta (d - delta / 2) beyond; delta is above 0. */
WK_API wk_tensor *wk_huber_loss(const wk_tensor *x, const wk_tensor *target, double delta,
                                wk_loss_reduction reduction, wk_tensor **dx);

#ifdef __cplusplus
}
#endif
#endif
