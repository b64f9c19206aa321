/* map.h: the arguments of the elementwise kernel. */
#ifndef WK_KERNELS_MAP_H
#define WK_KERNELS_MAP_H

#include "types.h"

enum { WK_MAP_MAX = 3 };

typedef struct {
    void *out; /* packed */
    const void *in[WK_MAP_MAX];
    i64 count;
    i32 constant[WK_MAP_MAX]; /* packed kernels: the input is one element */
    /* Strided kernels: the shape, innermost dimension first, and each input's strides in elements. */
    i32 rank;
    wk_divisor size[WK_DIMS];
    i64 size64[WK_DIMS];
    i64 stride[WK_MAP_MAX][WK_DIMS];
    /* What the formula is given beside the elements. */
    double f[3];
    i64 n[3];
    wk_report report;
} map_args;

#endif
