/* pool.h: the arguments of the pooling kernels. */
#ifndef WK_KERNELS_POOL_H
#define WK_KERNELS_POOL_H

#include "types.h"

/* Windows along one dimension. */
typedef struct {
    i32 in, out, kernel, stride, padding;
    wk_divisor by_stride;
} pool_dim;

/* Planes of rows that are walked by one. */
typedef struct {
    void *p;
    i64 n, c, row; /* strides */
} pool_view;

typedef struct {
    pool_view x, y, indices; /* y is dy, x is dx in a gradient; a p of NULL: not there */
    pool_dim h, w;
    i64 first; /* plane */
    u32 items; /* of this launch: strips of `rows` elements down a column, or windows */
    i32 rows;
    wk_divisor channels, strips, cols; /* planes have strips x cols items */
    wk_divisor kernel_w;
    i32 exclude_pad, whole; /* whole: in every mean all elements of the window count */
    i32 first_nan;          /* of several NaN the first is the largest; else the last */
    i32 *astray;            /* set when an index is not in its window; NULL: they all are */
    wk_report report;
} pool_args;

#endif
