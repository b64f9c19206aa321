/* reduce.h: what front end and kernels of the reductions share. */
#ifndef WK_OPS_REDUCE_H
#define WK_OPS_REDUCE_H

#include "core/op.h"

typedef struct {
    wk_list dims; /* n = 0: all */
    int64_t keepdim, unbiased;
} wk_reduce_params;

/* The dims of a call as a set of bits; fails for one that is out of range or named twice. */
wk_status wk_reduce_dims(const wk_call *c, const wk_list *dims, int rank, unsigned *set);

#endif
