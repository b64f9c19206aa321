/* softmax.h: the arguments of the softmax kernels. */
#ifndef WK_KERNELS_SOFTMAX_H
#define WK_KERNELS_SOFTMAX_H

#include "walk.h"

typedef struct {
    const void *x;
    const void *dy; /* of the gradient, whose x is y and whose y is dx */
    void *y;
    i64 lines;
    i32 steps; /* packs of a line; elements of it, where lines lie side by side and `lines` counts packs of those */
    i32 log_group;               /* log2 of the threads that share a line: 1 to 32, or all of the block */
    i32 mode;                    /* wk_softmax_mode */
    walk_dims kept, kept_dy;     /* from a line's number to where it begins in x and y, in dy and y */
    i64 step_x, step_dy, step_y; /* from element to element of a line, where lines lie side by side */
} softmax_args;

#endif
