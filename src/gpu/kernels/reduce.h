/* reduce.h: the arguments of the reduction kernels. */
#ifndef WK_KERNELS_REDUCE_H
#define WK_KERNELS_REDUCE_H

#include "walk.h"

enum { WK_REDUCE_THREADS = 256, WK_REDUCE_STATE = 24 /* bytes the largest state has */ };

typedef struct {
    const void *x;
    void *y, *z;   /* the result, and beside it the place or the number of extremes; either may be NULL */
    void *parts;   /* states [outs][n_parts] by the strides below, where several blocks share a result */
    u32 *counters; /* of the blocks along x: how many along y have done their part */
    i64 outs, n;   /* results; steps of each (rows: packs of elements, columns: elements) */
    i64 chunk;     /* steps of a part */
    i64 part_out, part_next; /* strides of parts */
    i32 n_parts;
    i32 log_group; /* log2 of the threads that share a row (1 to 32, or all), or that lie along a row of columns */
    wide_divisor tiles; /* columns: blocks that lie side by side along the width */
    i64 blocks, width;  /* all blocks; neighbouring results */
    i32 packed_y;       /* columns: results lie side by side, aligned for packs */
    walk_dims kept, reduced;
    double count; /* what a mean is divided by */
} reduce_args;

typedef struct {
    void *dx;
    const void *dy;
    const u32 *places;
    i64 outs, size;
    wide_divisor inner;
} reduce_scatter_args;

#endif
