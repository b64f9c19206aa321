/* pool.h: the arguments of the pooling kernels. */
#ifndef WK_KERNELS_POOL_H
#define WK_KERNELS_POOL_H

#include "planes.h"

enum { WK_POOL_PAIRS = 2 }; /* rows of pairs of windows that a thread takes */

/* Windows along one dimension. */
typedef struct {
    i32 in, out, kernel, stride, padding;
    wk_divisor by_stride;
} pool_dim;

typedef struct {
    plane_view x, y, indices; /* y is dy, x is dx in a gradient; a p of NULL: not there */
    pool_dim h, w;
    plane_walk walk; /* items: strips down a column, or windows */
    wk_divisor kernel_w;
    i32 exclude_pad, whole; /* whole: in every mean all elements of the window count */
    double share;           /* of an element in the mean of a whole window */
    i32 first_nan;          /* of several NaN the first is the largest; else the last */
    i32 *astray;            /* set when an index is not in its window; NULL: they all are */
    wk_report report;
} pool_args;

#endif
