/* norm_linear.h: the arguments of products with the norm of one row. */
#ifndef WK_KERNELS_NORM_LINEAR_H
#define WK_KERNELS_NORM_LINEAR_H

#include "types.h"

enum { WK_NORM_LINEAR_K = 8192 }; /* the longest row: shared memory holds it */

/* y [n] = weight [n, k] . rms_norm(x + residual) + bias. gated: weight has 2 n rows, and y is silu of the first half times
 * the second. */
typedef struct {
    const void *x, *residual, *norm, *weight, *bias; /* residual, bias: or NULL */
    void *y, *sum;                                   /* sum: x + residual; or NULL */
    i64 pitch;                                       /* elements from row to row of weight */
    i64 apart;                                       /* gated: elements from its first half to the second */
    i64 bias_step;
    i32 n, k;
    double eps;
} norm_linear_args;

#endif
