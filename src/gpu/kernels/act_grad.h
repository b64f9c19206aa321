/* act_grad.h: the arguments of silu_mul's gradient. */
#ifndef WK_KERNELS_ACT_GRAD_H
#define WK_KERNELS_ACT_GRAD_H

#include "types.h"

/* Rows of n elements, packed; those of gate and up, and of their gradients, `step` apart: the two may lie in one row. */
typedef struct {
    const void *gate, *up, *dy;
    void *dgate, *dup;        /* NULL: not wanted */
    i64 packs, per_row, step; /* packs of elements in all, those of a row */
    wk_divisor by_row;
} silu_mul_args;

#endif
