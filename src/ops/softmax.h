/* softmax.h: what front end and kernels of softmax share. */
#ifndef WK_OPS_SOFTMAX_H
#define WK_OPS_SOFTMAX_H

#include "core/op.h"

typedef struct {
    wk_list dims;
    int64_t mode; /* wk_softmax_mode */
} wk_softmax_params;

/* x as [outer, line, inner] of the dims in the set; false when they are not neighbours. */
bool wk_softmax_fold(const wk_tensor *x, unsigned set, int64_t shape[3]);

#endif
