/* wick/matmul.h: matrix products. */
#ifndef WICK_MATMUL_H
#define WICK_MATMUL_H

#include "core.h"

#ifdef __cplusplus
extern "C" {
#endif

/* a [.., m, k] times b [.., k, n] gives [.., m, n]. Leading dimensions broadcast; a 1-D operand is a vector, whose
 * dimension the result lacks. Transposed and padded operands are used where they lie. Float. */
WK_API wk_tensor *wk_matmul(const wk_tensor *a, const wk_tensor *b);

/* Activations at the end of an op: the ones of elementwise.h. wk_linear takes those up to WK_ACT_SILU, the ops of act.h
 * all of them. */
typedef enum {
    WK_ACT_NONE,
    WK_ACT_RELU,
    WK_ACT_GELU,
    WK_ACT_GELU_ERF,
    WK_ACT_SILU,
    WK_ACT_SIGMOID,
    WK_ACT_TANH,
    WK_ACT_SOFTPLUS,
    WK_ACT_LEAKY_RELU, /* alpha: the slope */
    WK_ACT_ELU,        /* alpha */
    WK_ACT_CLAMP,      /* alpha: min, beta: max */
    WK_ACT_RELU6,
    WK_ACT_HARD_SWISH,
    WK_ACT_HARD_SIGMOID,
    WK_ACT_MISH,
    WK_ACT_ABS
} wk_activation;

/* act(x [.., in] . weight [out, in]^T + bias [out]); bias may be NULL. Float. */
WK_API wk_tensor *wk_linear(const wk_tensor *x, const wk_tensor *weight, const wk_tensor *bias,
                            wk_activation act);

/* What the layers of a language model begin with: linear of rms_norm(x + residual, norm, eps), without an activation. gated:
 * weight and bias have two halves, and the result is wk_silu_mul of them, [.., out / 2]. residual and bias may be NULL;
 * sum, where it is not NULL, gets x + residual. Float. */
WK_API wk_tensor *wk_rms_norm_linear(const wk_tensor *x, const wk_tensor *residual, const wk_tensor *norm,
                                     double eps, const wk_tensor *weight, const wk_tensor *bias, int gated,
                                     wk_tensor **sum);

/* Gradients; a place that is NULL is not computed. */
WK_API wk_status wk_matmul_backward(const wk_tensor *a, const wk_tensor *b, const wk_tensor *dy,
                                    wk_tensor **da, wk_tensor **db);
/* Of linear without an activation. */
WK_API wk_status wk_linear_backward(const wk_tensor *x, const wk_tensor *weight, const wk_tensor *dy,
                                    wk_tensor **dx, wk_tensor **dweight, wk_tensor **dbias);

/* How exact products, those of convolutions, attention and recurrent layers too, have to be on devices with faster,
 * coarser units: the default keeps f32 in f32; FAST allows tf32 for f32, half-precision accumulation for f16, and that what
 * lies between the products of attention's gradients is rounded to the dtype. (cuDNN's forward rounds weights always.)
 * Process-wide; the CPU is always exact. WICK_PRECISION=fast in the environment is FAST. */
typedef enum { WK_PRECISION_EXACT, WK_PRECISION_FAST } wk_precision;
WK_API void wk_set_matmul_precision(wk_precision precision);
WK_API wk_precision wk_matmul_precision(void);

#ifdef __cplusplus
}
#endif
#endif
