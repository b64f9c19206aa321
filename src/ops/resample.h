/* resample.h: what front end and kernels of resampling share. */
#ifndef WK_OPS_RESAMPLE_H
#define WK_OPS_RESAMPLE_H

#include "core/op.h"
#include "wick/resample.h"

typedef struct {
    wk_upsample_options o;
    wk_list input_size; /* of a gradient */
} wk_upsample_params;

/* One dimension: step is how far x is walked for one element of the result. */
typedef struct {
    int64_t in, out;
    double step;
} wk_upsample_dim;

/* x as planes of h x w elements; the 1d form has planes of one row. */
typedef struct {
    int64_t planes;
    wk_upsample_dim h, w;
    bool align_corners;
} wk_upsample_shape;

/* Checks x's shape (input_size for a gradient) and the parameters, and works out the sizes. */
wk_status wk_upsample_shapes(const wk_call *c, wk_upsample_shape *s);

/* Nearest: where element o of the result comes from. */
static inline int64_t wk_nearest_source(const wk_upsample_dim *d, int64_t o)
{
    return (int64_t)((__int128)o * d->in / d->out);
}

/* Bilinear: y[o] = (1 - t) x[lo] + t x[min(lo + 1, in - 1)]; returns lo. */
static inline int64_t wk_linear_source(const wk_upsample_dim *d, bool align_corners, int64_t o, double *t)
{
    double at = align_corners ? d->step * (double)o : d->step * ((double)o + 0.5) - 0.5;
    if (at < 0)
        at = 0;
    int64_t lo = at < (double)(d->in - 1) ? (int64_t)at : d->in - 1;
    *t = at - (double)lo < 1 ? at - (double)lo : 1;
    return lo;
}

#endif
