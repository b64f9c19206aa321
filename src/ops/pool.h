/* pool.h: what front end and kernels of pooling share. The parameters are wk_pool_options. */
#ifndef WK_OPS_POOL_H
#define WK_OPS_POOL_H

#include "core/op.h"
#include "wick/pool.h"

/* Windows along one dimension. */
typedef struct {
    int64_t in, out, kernel, stride, padding;
} wk_pool_dim;

/* x as planes of h x w elements; the 1d forms have planes of one row. */
typedef struct {
    int64_t planes;
    wk_pool_dim h, w;
} wk_pool_shape;

/* Checks the call's x and parameters and works out the sizes. */
wk_status wk_pool_shapes(const wk_call *c, wk_pool_shape *s);

/* The part of window o that lies in the input: [begin, end), never empty. */
typedef struct {
    int64_t begin, end;
} wk_pool_window;

static inline wk_pool_window wk_pool_window_of(const wk_pool_dim *d, int64_t o)
{
    int64_t start = o * d->stride - d->padding, end = start + d->kernel;
    return (wk_pool_window){start > 0 ? start : 0, end < d->in ? end : d->in};
}

/* A last window that ceil has made reaches beyond the padding. */
static inline bool wk_pool_overhangs(const wk_pool_dim *d)
{
    return (d->out - 1) * d->stride + d->kernel > d->in + 2 * d->padding;
}

/* How many elements of window o count in a mean. Elements beyond the padding, where ceil has rounded up, never do. */
static inline int64_t wk_pool_counted(const wk_pool_dim *d, int64_t o, bool exclude_pad)
{
    wk_pool_window w = wk_pool_window_of(d, o);
    int64_t start = o * d->stride - d->padding, end = start + d->kernel;
    if (exclude_pad)
        return w.end - w.begin;
    return (end < d->in + d->padding ? end : d->in + d->padding) - start;
}

#endif
