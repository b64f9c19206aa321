/* resample.h: the arguments of the resampling kernels. */
#ifndef WK_KERNELS_RESAMPLE_H
#define WK_KERNELS_RESAMPLE_H

#include "planes.h"

/* One dimension: step is how far x is walked for one element of the result. */
typedef struct {
    i32 in, out;
    i32 small; /* in * out is below 2^31 */
    wk_divisor by_out;
    double step;
    /* Of a gradient, for each element of the result: where it comes from and the shares of that one and the next; for
     * each element of x, and one more: the first of the result that comes from it or a later one. */
    i32 *lo, *first;
    void *left, *right;
} resample_dim;

typedef struct {
    plane_view from; /* x, or dy */
    void *to;        /* packed */
    resample_dim h, w;
    plane_walk walk; /* items: VEC columns of rows, or elements */
    u32 longest;     /* of the lists */
    i32 align_corners, linear;
} resample_args;

#endif
