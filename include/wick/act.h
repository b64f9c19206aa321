/* wick/act.h: ops that end in an activation, in one call instead of several: act(op(x) + bias + z).
 *
 * z is a tensor of the result's shape and dtype that is added before the activation (a residual), or NULL. The sum is
 * kept in the compute type where one kernel does it all; f16 and bf16 are rounded between the steps where it is made of
 * other ops. Float. */
#ifndef WICK_ACT_H
#define WICK_ACT_H

#include "conv.h"
#include "matmul.h"
#include "norm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Which one, and its numbers: leaky_relu's slope and elu's alpha in alpha, clamp's ends in alpha and beta. */
typedef struct {
    wk_activation kind;
    double alpha, beta;
} wk_act;

/* act(x + bias + z): bias [x.shape[dim]] lies along dim; bias and z may be NULL. */
WK_API wk_tensor *wk_bias_act(const wk_tensor *x, const wk_tensor *bias, const wk_tensor *z, int64_t dim,
                              wk_act act);
/* Its gradients from x, bias, z (NULL as in the forward) and dy; a place that is NULL is not wanted. z's is dx. */
WK_API wk_status wk_bias_act_backward(const wk_tensor *x, const wk_tensor *bias, const wk_tensor *z,
                                      const wk_tensor *dy, int64_t dim, wk_act act, wk_tensor **dx,
                                      wk_tensor **dbias);

/* silu(gate) * up, the middle of SwiGLU. up has gate's shape; NULL: gate's last dimension holds gate and up, half and
 * half, and the result has half of it. */
WK_API wk_tensor *wk_silu_mul(const wk_tensor *gate, const wk_tensor *up);
/* Its gradients; a place that is NULL is not wanted. Where up is NULL dgate holds both halves and dup is empty. */
WK_API wk_status wk_silu_mul_backward(const wk_tensor *gate, const wk_tensor *up, const wk_tensor *dy,
                                      wk_tensor **dgate, wk_tensor **dup);

/* act(linear(x, weight, bias) + z); bias and z may be NULL. */
WK_API wk_tensor *wk_linear_act(const wk_tensor *x, const wk_tensor *weight, const wk_tensor *bias,
                                const wk_tensor *z, wk_act act);

/* act(conv2d(x, weight, bias) + z); bias, z and options may be NULL. */
WK_API wk_tensor *wk_conv2d_bias_act(const wk_tensor *x, const wk_tensor *weight, const wk_tensor *bias,
                                     const wk_tensor *z, wk_act act, const wk_conv_options *options);

/* act(batch_norm_infer(conv2d(x, weight, bias))): bn_weight, bn_bias, mean and var are those of the batch norm, [c_out],
 * f32 or f64 for f64 data. bias, bn_weight, bn_bias and options may be NULL. */
WK_API wk_tensor *wk_conv2d_bn_act(const wk_tensor *x, const wk_tensor *weight, const wk_tensor *bias,
                                   const wk_tensor *bn_weight, const wk_tensor *bn_bias,
                                   const wk_tensor *mean, const wk_tensor *var, double eps, wk_act act,
                                   const wk_conv_options *options);

/* act(batch_norm_infer(x, weight, bias, mean, var) + z); weight, bias and z may be NULL. */
WK_API wk_tensor *wk_batch_norm_act(const wk_tensor *x, const wk_tensor *weight, const wk_tensor *bias,
                                    const wk_tensor *mean, const wk_tensor *var, const wk_tensor *z,
                                    double eps, wk_batch_norm_mode mode, wk_act act);

#ifdef __cplusplus
}
#endif
#endif
