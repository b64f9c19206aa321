/* copy.h: the arguments of the copying kernels. */
#ifndef WK_KERNELS_COPY_H
#define WK_KERNELS_COPY_H

#include "types.h"

typedef struct {
    const void *src;
    void *dst;
    i64 count; /* elements; of the tiled kernel: tiles */
    i32 rank;  /* dimensions, innermost first; of the tiled kernel: those around the tile */
    wk_divisor size[WK_DIMS];
    i64 size64[WK_DIMS];
    i64 from[WK_DIMS], to[WK_DIMS]; /* strides */
    /* The tiled kernel: rows are walked by one in dst, columns by one in src. */
    i64 rows, cols, row_from, col_to;
    wk_divisor row_tiles, stripes; /* stripes of 2^log_stripe columns of tiles */
    i32 log_stripe;
} copy_args;

enum { WK_COPY_TILE = 64 };

#endif
