/* copy.h: what front end and kernels of the copying ops share. */
#ifndef WK_OPS_COPY_H
#define WK_OPS_COPY_H

#include "core/op.h"

typedef struct {
    int64_t rows, cols, src_stride, dst_stride, src_offset, dst_offset;
} wk_copy2d_params;

/* Of cat and stack. */
typedef struct {
    int64_t dim;
} wk_cat_params;

typedef struct {
    int64_t dim, left, right;
    int64_t mode; /* wk_pad_mode */
} wk_pad_params;

typedef struct {
    wk_list dims; /* n = 0: all */
} wk_flip_params;

typedef struct {
    wk_list start;
} wk_slice_params;

typedef struct {
    int64_t depth;
    wk_scalar on, off;
    int64_t dtype;
} wk_one_hot_params;

/* Of tril and triu. */
typedef struct {
    int64_t diagonal;
} wk_triangle_params;

/* A tensor of shape [0], which cat passes over. */
static inline bool wk_cat_skips(const wk_tensor *t) { return t->rank == 1 && t->shape[0] == 0; }

#endif
