/* wick/optim.h: optimizer steps, by PyTorch's formulas.
 *
 * Each has a form that makes new tensors and an _into form that updates param and the state in place. All tensors of a
 * step have one shape. grad has param's dtype; the state (momentum, m, v) any float dtype, so that f16 parameters
 * can have an f32 state. The step is computed in param's compute type: f64 for f64, else f32. Float. */
#ifndef WICK_OPTIM_H
#define WICK_OPTIM_H

#include "core.h"

#ifdef __cplusplus
extern "C" {
#endif

/* g = grad + weight_decay param; buffer = momentum_factor momentum + g; param - lr buffer. momentum may be NULL: at the first
 * step there is no buffer yet and it becomes g (of param's dtype). Either place may be NULL: without momentum nobody needs
 * new_momentum. lr and weight_decay are 0 or more, momentum_factor too; otherwise WK_ERR_PARAM. */
WK_API wk_status wk_sgd_step(const wk_tensor *param, const wk_tensor *grad, const wk_tensor *momentum,
                             double lr, double momentum_factor, double weight_decay, wk_tensor **new_param,
                             wk_tensor **new_momentum);
/* In place; momentum may be NULL only where momentum_factor is 0. A fresh buffer holds zeros. */
WK_API wk_status wk_sgd_step_into(wk_tensor *param, const wk_tensor *grad, wk_tensor *momentum, double lr,
                                  double momentum_factor, double weight_decay);

/* A field that is zero means its default. */
typedef struct {
    size_t size;         /* set by WK_ADAMW */
    double lr;           /* 0.001 */
    double beta1, beta2; /* 0.9, 0.999; from 0 up to, not including, 1 */
    double eps;          /* 1e-8 */
    double weight_decay; /* 0.01; negative: none */
    int64_t step;        /* 1 at the first step; must be given */
} wk_adamw_options;
#define WK_ADAMW(...) (&(wk_adamw_options){.size = sizeof(wk_adamw_options), __VA_ARGS__})

/* param (1 - lr weight_decay) - lr m' / (1 - beta1^step) / (sqrt(v' / (1 - beta2^step)) + eps) with
 * m' = beta1 m + (1 - beta1) grad and v' = beta2 v + (1 - beta2) grad^2. At the first step m and v hold zeros. Any of the
 * three places may be NULL. */
WK_API wk_status wk_adamw_step(const wk_tensor *param, const wk_tensor *grad, const wk_tensor *m,
                               const wk_tensor *v, const wk_adamw_options *options, wk_tensor **new_param,
                               wk_tensor **new_m, wk_tensor **new_v);
WK_API wk_status wk_adamw_step_into(wk_tensor *param, const wk_tensor *grad, wk_tensor *m, wk_tensor *v,
                                    const wk_adamw_options *options);

/* The same steps in place on n parameters at once, a launch for many of them: number i of each list belongs to parameter
 * i. momenta may be NULL where momentum_factor is 0. No tensor may be in the lists twice. A failure may come after some of
 * the steps were done. */
WK_API wk_status wk_sgd_step_list(int n, wk_tensor *const *params, const wk_tensor *const *grads,
                                  wk_tensor *const *momenta, double lr, double momentum_factor,
                                  double weight_decay);
WK_API wk_status wk_adamw_step_list(int n, wk_tensor *const *params, const wk_tensor *const *grads,
                                    wk_tensor *const *m, wk_tensor *const *v,
                                    const wk_adamw_options *options);

#ifdef __cplusplus
}
#endif
#endif
