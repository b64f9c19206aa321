/* row_linear.h: the arguments of products of one row with weights. */
#ifndef WK_KERNELS_ROW_LINEAR_H
#define WK_KERNELS_ROW_LINEAR_H

#include "types.h"

enum {
    WK_ROW_LINEAR_K = 16384,     /* the longest row: shared memory holds it */
    WK_ROW_LINEAR_NORM_K = 8192, /* the longest whose norm is made: registers hold it too */
    WK_ROW_LINEAR_THREADS = 512,
    WK_ROW_LINEAR_DEEP = 8, /* packs of 16 bytes that a thread has on their way */
};

/* y [n] = act(weight [n, k] . x + bias + z), or, with a norm, weight . rms_norm(x + residual) + bias. gated: weight has 2 n
 * rows, and y is silu of the first half times the second. */
typedef struct {
    const void *x, *residual, *norm, *weight, *bias, *z; /* all but x and weight: or NULL */
    void *y, *sum;                                       /* sum: x + residual; or NULL */
    i64 pitch;                                           /* elements from row to row of weight */
    i64 apart; /* gated: elements from its first half to the second */
    i64 bias_step;
    i32 n, k;
    i32 act;
    i32 room; /* NVIDIA: where weights come to, in shared memory, behind the row */
    double eps;
} row_linear_args;

#endif
