/* expr.h: the arguments of the kernel of elementwise expressions. */
#ifndef WK_KERNELS_EXPR_H
#define WK_KERNELS_EXPR_H

#include "types.h"

enum { WK_EXPR_MAX = 8 };

typedef struct {
    void *out; /* packed */
    const void *in[WK_EXPR_MAX];
    i64 count;
    i32 constant[WK_EXPR_MAX]; /* the input is one element for a whole pack */
    /* Strided: the shape, innermost dimension first, and each input's strides in elements. */
    i32 rank;
    wk_divisor size[WK_DIMS];
    i64 size64[WK_DIMS];
    i64 stride[WK_EXPR_MAX][WK_DIMS];
} expr_args;

#endif
