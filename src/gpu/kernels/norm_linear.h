/* norm_linear.h: the arguments of products with one row, or its norm. */
#ifndef WK_KERNELS_NORM_LINEAR_H
#define WK_KERNELS_NORM_LINEAR_H

#include "types.h"

enum {
    WK_NORM_LINEAR_K = 8192,     /* the longest row with a norm: registers hold it */
    WK_NORM_LINEAR_ROOM = 16384, /* and without: shared memory does */
};

/* y [n] = act(weight [n, k] . rms_norm(x + residual) + bias). gated: weight has 2 n rows, and y is silu of the first half times
 * the second. */
typedef struct {
    const void *x, *residual, *norm, *weight, *bias; /* residual, bias: or NULL; norm: NULL for x as it is */
    void *y, *sum;                                   /* sum: x + residual; or NULL */
    i64 pitch;                                       /* elements from row to row of weight */
    i64 apart;                                       /* gated: elements from its first half to the second */
    i64 bias_step;
    i32 n, k;
    i32 act;
    double eps;
} norm_linear_args;

#endif
