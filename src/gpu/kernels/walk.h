/* walk.h: some dimensions of two tensors, walked together. */
#ifndef WK_KERNELS_WALK_H
#define WK_KERNELS_WALK_H

#include "types.h"

/* Innermost dimension first. x and y: strides in elements, of the tensor read and of the one written. */
typedef struct {
    i32 rank;
    i32 wide; /* 2^31 places or more */
    wk_divisor size[WK_DIMS];
    i64 size64[WK_DIMS];
    i64 x[WK_DIMS], y[WK_DIMS];
} walk_dims;

#endif
