/* wick/elementwise.h: ops that work on each element by itself. */
#ifndef WICK_ELEMENTWISE_H
#define WICK_ELEMENTWISE_H

#include "core.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- One input ---- */

WK_API wk_tensor *wk_neg(const wk_tensor *x);  /* signed dtypes */
WK_API wk_tensor *wk_abs(const wk_tensor *x);  /* signed dtypes */
WK_API wk_tensor *wk_sign(const wk_tensor *x); /* signed dtypes; 0 for NaN and both zeros */

/* Float dtypes from here on. */
WK_API wk_tensor *wk_exp(const wk_tensor *x);
WK_API wk_tensor *wk_log(const wk_tensor *x);
WK_API wk_tensor *wk_sqrt(const wk_tensor *x);
WK_API wk_tensor *wk_rsqrt(const wk_tensor *x); /* 1 / sqrt(x) */
WK_API wk_tensor *wk_sqr(const wk_tensor *x);   /* x * x */
WK_API wk_tensor *wk_recip(const wk_tensor *x); /* 1 / x */
WK_API wk_tensor *wk_sin(const wk_tensor *x);
WK_API wk_tensor *wk_cos(const wk_tensor *x);
WK_API wk_tensor *wk_tanh(const wk_tensor *x);
WK_API wk_tensor *wk_erf(const wk_tensor *x);
WK_API wk_tensor *wk_floor(const wk_tensor *x);
WK_API wk_tensor *wk_ceil(const wk_tensor *x);
WK_API wk_tensor *wk_round(const wk_tensor *x); /* half away from zero */

/* Activations; a NaN stays a NaN. */
WK_API wk_tensor *wk_relu(const wk_tensor *x);
WK_API wk_tensor *wk_silu(const wk_tensor *x); /* x * sigmoid(x) */
WK_API wk_tensor *wk_sigmoid(const wk_tensor *x);
WK_API wk_tensor *wk_gelu(const wk_tensor *x);     /* the tanh form */
WK_API wk_tensor *wk_gelu_erf(const wk_tensor *x); /* the exact form */
WK_API wk_tensor *wk_softplus(const wk_tensor *x); /* log(1 + exp(x)) */
WK_API wk_tensor *wk_mish(const wk_tensor *x);     /* x * tanh(softplus(x)) */
WK_API wk_tensor *wk_hard_swish(const wk_tensor *x);
WK_API wk_tensor *wk_hard_sigmoid(const wk_tensor *x);
WK_API wk_tensor *wk_relu6(const wk_tensor *x);
WK_API wk_tensor *wk_leaky_relu(const wk_tensor *x, double slope); /* usually 0.01 */
WK_API wk_tensor *wk_elu(const wk_tensor *x, double alpha);        /* usually 1 */

/* All dtypes; -INFINITY or INFINITY leaves an end open. Where min is above max the result is max. */
WK_API wk_tensor *wk_clamp(const wk_tensor *x, double min, double max);
/* (alpha + beta * x) ^ gamma. Float. */
WK_API wk_tensor *wk_power(const wk_tensor *x, double alpha, double beta, double gamma);
/* x ^ e. Float. */
WK_API wk_tensor *wk_powf(const wk_tensor *x, double e);
/* x * mul + add, mul and add converted to x's dtype first. All dtypes. */
WK_API wk_tensor *wk_affine(const wk_tensor *x, double mul, double add);

/* All dtypes to all dtypes. Floats to integers saturate and NaN gives 0; integers to integers wrap. */
WK_API wk_tensor *wk_cast(const wk_tensor *x, wk_dtype dtype);

/* ---- Their gradients: dx from x and dy, with the forward's parameters. Float dtypes. ---- */

WK_API wk_tensor *wk_neg_backward(const wk_tensor *x, const wk_tensor *dy);
WK_API wk_tensor *wk_abs_backward(const wk_tensor *x, const wk_tensor *dy);
WK_API wk_tensor *wk_sign_backward(const wk_tensor *x, const wk_tensor *dy);
WK_API wk_tensor *wk_exp_backward(const wk_tensor *x, const wk_tensor *dy);
WK_API wk_tensor *wk_log_backward(const wk_tensor *x, const wk_tensor *dy);
WK_API wk_tensor *wk_sqrt_backward(const wk_tensor *x, const wk_tensor *dy);
WK_API wk_tensor *wk_rsqrt_backward(const wk_tensor *x, const wk_tensor *dy);
WK_API wk_tensor *wk_sqr_backward(const wk_tensor *x, const wk_tensor *dy);
WK_API wk_tensor *wk_recip_backward(const wk_tensor *x, const wk_tensor *dy);
WK_API wk_tensor *wk_sin_backward(const wk_tensor *x, const wk_tensor *dy);
WK_API wk_tensor *wk_cos_backward(const wk_tensor *x, const wk_tensor *dy);
WK_API wk_tensor *wk_tanh_backward(const wk_tensor *x, const wk_tensor *dy);
WK_API wk_tensor *wk_erf_backward(const wk_tensor *x, const wk_tensor *dy);
WK_API wk_tensor *wk_floor_backward(const wk_tensor *x, const wk_tensor *dy);
WK_API wk_tensor *wk_ceil_backward(const wk_tensor *x, const wk_tensor *dy);
WK_API wk_tensor *wk_round_backward(const wk_tensor *x, const wk_tensor *dy);
WK_API wk_tensor *wk_relu_backward(const wk_tensor *x, const wk_tensor *dy);
WK_API wk_tensor *wk_silu_backward(const wk_tensor *x, const wk_tensor *dy);
WK_API wk_tensor *wk_sigmoid_backward(const wk_tensor *x, const wk_tensor *dy);
WK_API wk_tensor *wk_gelu_backward(const wk_tensor *x, const wk_tensor *dy);
WK_API wk_tensor *wk_gelu_erf_backward(const wk_tensor *x, const wk_tensor *dy);
WK_API wk_tensor *wk_softplus_backward(const wk_tensor *x, const wk_tensor *dy);
WK_API wk_tensor *wk_mish_backward(const wk_tensor *x, const wk_tensor *dy);
WK_API wk_tensor *wk_hard_swish_backward(const wk_tensor *x, const wk_tensor *dy);
WK_API wk_tensor *wk_hard_sigmoid_backward(const wk_tensor *x, const wk_tensor *dy);
WK_API wk_tensor *wk_relu6_backward(const wk_tensor *x, const wk_tensor *dy);
WK_API wk_tensor *wk_leaky_relu_backward(const wk_tensor *x, const wk_tensor *dy, double slope);
WK_API wk_tensor *wk_elu_backward(const wk_tensor *x, const wk_tensor *dy, double alpha);
WK_API wk_tensor *wk_clamp_backward(const wk_tensor *x, const wk_tensor *dy, double min, double max);
WK_API wk_tensor *wk_power_backward(const wk_tensor *x, const wk_tensor *dy, double alpha, double beta,
                                    double gamma);
WK_API wk_tensor *wk_powf_backward(const wk_tensor *x, const wk_tensor *dy, double e);
WK_API wk_tensor *wk_affine_backward(const wk_tensor *x, const wk_tensor *dy, double mul, double add);

/* ---- Two inputs, broadcast as NumPy does. All dtypes, pow float. ---- */

WK_API wk_tensor *wk_add(const wk_tensor *a, const wk_tensor *b);
WK_API wk_tensor *wk_sub(const wk_tensor *a, const wk_tensor *b);
WK_API wk_tensor *wk_mul(const wk_tensor *a, const wk_tensor *b);
/* Integers truncate; an integer divided by zero is an error. */
WK_API wk_tensor *wk_div(const wk_tensor *a, const wk_tensor *b);
/* NaN when either is NaN. */
WK_API wk_tensor *wk_minimum(const wk_tensor *a, const wk_tensor *b);
WK_API wk_tensor *wk_maximum(const wk_tensor *a, const wk_tensor *b);
WK_API wk_tensor *wk_pow(const wk_tensor *a, const wk_tensor *b);

/* Comparisons give u8: 1 or 0. */
WK_API wk_tensor *wk_eq(const wk_tensor *a, const wk_tensor *b);
WK_API wk_tensor *wk_ne(const wk_tensor *a, const wk_tensor *b);
WK_API wk_tensor *wk_lt(const wk_tensor *a, const wk_tensor *b);
WK_API wk_tensor *wk_le(const wk_tensor *a, const wk_tensor *b);
WK_API wk_tensor *wk_gt(const wk_tensor *a, const wk_tensor *b);
WK_API wk_tensor *wk_ge(const wk_tensor *a, const wk_tensor *b);

/* a where cond (u8, u32 or i64) is not zero, b elsewhere; all three broadcast. */
WK_API wk_tensor *wk_where(const wk_tensor *cond, const wk_tensor *a, const wk_tensor *b);

/* Their gradients, summed back over broadcast dimensions; dy has the result's shape. Float dtypes. At a tie
 * minimum and maximum give half to each. da and db may be NULL. */
WK_API wk_status wk_add_backward(const wk_tensor *a, const wk_tensor *b, const wk_tensor *dy, wk_tensor **da,
                                 wk_tensor **db);
WK_API wk_status wk_sub_backward(const wk_tensor *a, const wk_tensor *b, const wk_tensor *dy, wk_tensor **da,
                                 wk_tensor **db);
WK_API wk_status wk_mul_backward(const wk_tensor *a, const wk_tensor *b, const wk_tensor *dy, wk_tensor **da,
                                 wk_tensor **db);
WK_API wk_status wk_div_backward(const wk_tensor *a, const wk_tensor *b, const wk_tensor *dy, wk_tensor **da,
                                 wk_tensor **db);
WK_API wk_status wk_minimum_backward(const wk_tensor *a, const wk_tensor *b, const wk_tensor *dy,
                                     wk_tensor **da, wk_tensor **db);
WK_API wk_status wk_maximum_backward(const wk_tensor *a, const wk_tensor *b, const wk_tensor *dy,
                                     wk_tensor **da, wk_tensor **db);
WK_API wk_status wk_pow_backward(const wk_tensor *a, const wk_tensor *b, const wk_tensor *dy, wk_tensor **da,
                                 wk_tensor **db);
WK_API wk_status wk_where_backward(const wk_tensor *cond, const wk_tensor *a, const wk_tensor *b,
                                   const wk_tensor *dy, wk_tensor **da, wk_tensor **db);

/* ---- No input ---- */

WK_API wk_tensor *wk_fill(wk_device *device, wk_dtype dtype, int rank, const int64_t *shape, double value);
/* Writes value to every element of dst, any layout. */
WK_API wk_status wk_fill_into(wk_tensor *dst, double value);
/* start, start + step, ... while below stop (above, for a negative step). */
WK_API wk_tensor *wk_arange(wk_device *device, wk_dtype dtype, double start, double stop, double step);

#ifdef __cplusplus
}
#endif
#endif
