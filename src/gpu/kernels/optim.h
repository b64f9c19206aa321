/* optim.h: the arguments of the kernels of optimizer steps. */
#ifndef WK_KERNELS_OPTIM_H
#define WK_KERNELS_OPTIM_H

#include "types.h"

typedef struct {
    const void *param, *grad, *m, *v; /* packed; m: SGD's momentum, or NULL */
    void *new_param, *new_m, *new_v;  /* packed; NULL: not wanted. May be the inputs themselves */
    i64 count;
    double lr, decay;    /* SGD; AdamW: rate = lr / (1 - beta1^step), keep = 1 - lr weight_decay */
    double beta1, beta2; /* SGD: the momentum's factor is beta1 */
    double root, eps;    /* sqrt(1 - beta2^step) */
} optim_args;

/* Steps of up to WK_STEPS tensors in place, cut into chunks. */
enum { WK_STEPS = 32, WK_STEP_CHUNK = 4096 };
typedef struct {
    optim_args step; /* its numbers */
    void *param[WK_STEPS], *m[WK_STEPS], *v[WK_STEPS];
    const void *grad[WK_STEPS];
    i64 count[WK_STEPS];
    i64 first[WK_STEPS]; /* the number of each tensor's first chunk; those that are not there have none */
    i64 chunks;
} optim_list_args;

#endif
