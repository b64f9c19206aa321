/* walk.h: some dimensions of two tensors, walked together. */
#ifndef WK_KERNELS_WALK_H
#define WK_KERNELS_WALK_H

#include "types.h"

/* Division of numbers of up to 50 bits by one that is known at launch, without a call. */
typedef struct {
    i64 d;
    double inverse;
} wide_divisor;

/* Innermost dimension first. x and y: strides in elements, of the tensor read and of the one written. */
typedef struct {
    i32 rank;
    i32 wide; /* 2^31 places or more */
    wk_divisor size[WK_DIMS];
    wide_divisor wide_size[WK_DIMS];
    i64 x[WK_DIMS], y[WK_DIMS];
} walk_dims;

#endif
