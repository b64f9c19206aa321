/* lrn.h: the arguments of the kernels of local response norm. */
#ifndef WK_KERNELS_LRN_H
#define WK_KERNELS_LRN_H

#include "types.h"

/* Windows that roll through registers. A block has a strip of rows, LRN_ACROSS packs of columns wide. */
enum { LRN_MOST_ROLLED = 7, LRN_STRIP = 64, LRN_ACROSS = 16 };
/* The gradient: columns and rows of a tile in shared memory, with those around it that its windows see; half the rows in
 * f64. */
enum { LRN_COLS = 32, LRN_ROWS = 128 };

/* Units of rows x cols elements, windows lying down the rows: the channels of a sample, or the rows of a plane, where
 * the windows were summed across the columns before. */
typedef struct {
    const void *x, *y, *dy; /* packed; y and dy in a gradient */
    const void *d;          /* gradient: k + alpha * the windows' sums */
    const void *across;     /* sums across the columns, or NULL: those of the elements themselves */
    void *out;
    i64 count, rows, cols;
    i64 before, after; /* of a window; both below rows or cols */
    wk_divisor by_rows, by_cols;
    u32 tiles; /* in shared memory: in all units; by_cols divides by those side by side, by_strips by the strips of a unit */
    wk_divisor by_strips;
    double alpha, beta, k;
} lrn_args;

#endif
