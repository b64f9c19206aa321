/* pad.h: the arguments of the kernels whose result holds more than its input. */
#ifndef WK_KERNELS_PAD_H
#define WK_KERNELS_PAD_H

#include "types.h"

/* The output is packed and walked in order; the input lies under it with strides of its own. */
typedef struct {
    const void *x;
    void *y;
    i64 count; /* elements of y */
    i32 rank;  /* dimensions, innermost first */
    wk_divisor size[WK_DIMS];
    i64 size64[WK_DIMS];
    i64 from[WK_DIMS];  /* strides of x; of the dimension that is padded 0 */
    i64 place[WK_DIMS]; /* 1 for that dimension, else 0; of a triangle 1 for columns, -1 for rows */
    i64 n, left, step;  /* pad: elements of x along the dimension, those before it, their stride */
    i32 mode;           /* of pad: zeros, same, reflect; of a triangle: 1 for the upper one */
    i64 diagonal;
} pad_args;

typedef struct {
    const void *ids; /* packed */
    void *y;
    i64 rows, depth; /* y: rows x depth */
    i64 wide_row;    /* depth, or 1 where that is 0: then ids are only looked at */
    wk_divisor row;
    u64 on, off;  /* the bits of an element */
    i32 id_bytes; /* see ids.h */
    wk_report report;
} one_hot_args;

#endif
