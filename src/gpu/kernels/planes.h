/* planes.h: tensors [n, c, h, w] as planes, and how threads are laid over them. */
#ifndef WK_KERNELS_PLANES_H
#define WK_KERNELS_PLANES_H

#include "types.h"

/* Planes of rows that are walked by one; strides in elements. A plane spans less than 2^31. */
typedef struct {
    void *p;
    i64 n, c;
    i32 row;
} plane_view;

/* A plane has strips x cols items; an item is a few elements below each other. */
typedef struct {
    i64 first; /* plane of this launch */
    u32 items; /* of this launch */
    i32 rows;  /* of an item */
    wk_divisor channels, strips, cols;
} plane_walk;

#endif
