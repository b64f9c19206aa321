/* norm.h: what front end and kernels of the norms share. */
#ifndef WK_OPS_NORM_H
#define WK_OPS_NORM_H

#include "core/op.h"
#include "wick/norm.h"

typedef struct {
    double eps, momentum;
    int64_t mode; /* wk_batch_norm_mode */
    int64_t groups;
} wk_norm_params;

typedef struct {
    int64_t size;
    double alpha, beta, k;
    int64_t mode; /* wk_lrn_mode */
} wk_lrn_params;

/* x as [n, c, inner], c counting what has statistics of its own. */
typedef struct {
    int64_t n, c, inner;
} wk_batch_shape;

static inline wk_batch_shape wk_batch_shape_of(const wk_tensor *x, int64_t mode)
{
    int end = mode == WK_BATCH_NORM_PER_ACTIVATION ? x->rank : 2;
    return (wk_batch_shape){x->shape[0], wk_shape_count(end - 1, x->shape + 1),
                            wk_shape_count(x->rank - end, x->shape + end)};
}

/* layer, rms and group norm: samples of `groups` groups, each of `channels` channels with a weight of their own,
 * each of `inner` elements. For layer and rms norm a sample is a line and every element is a channel. */
typedef struct {
    int64_t samples, groups, channels, inner;
} wk_group_shape;

static inline wk_group_shape wk_group_shape_of(const wk_tensor *x, bool group_norm, int64_t groups)
{
    if (!group_norm)
        return (wk_group_shape){wk_shape_count(x->rank - 1, x->shape), 1, x->shape[x->rank - 1], 1};
    return (wk_group_shape){x->shape[0], groups, x->shape[1] / groups,
                            wk_shape_count(x->rank - 2, x->shape + 2)};
}

/* What tells layer_norm, rms_norm and the ops with a sum before them apart. */
static inline bool wk_norm_is_rms(const wk_op *op) { return strstr(op->name, "rms_norm") != NULL; }
static inline bool wk_norm_adds(const wk_op *op) { return strncmp(op->name, "add_", 4) == 0; }

#endif
