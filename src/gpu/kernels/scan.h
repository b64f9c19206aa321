/* scan.h: the arguments of the kernels for running sums and sorting. */
#ifndef WK_KERNELS_SCAN_H
#define WK_KERNELS_SCAN_H

#include "walk.h"

enum { WK_SCAN_THREADS = 256, WK_SORT_THREADS = 256, WK_SORT_TILE = 2048 };

/* Running sums. A line may be cut into parts, whose sums a first run leaves in `sums`. */
typedef struct {
    const void *x;
    void *y;
    void *sums; /* [lines][n_parts]; f64 for floats, else i64 */
    i64 lines, n;
    i64 part; /* elements of a part */
    i32 n_parts;
    i32 sums_only; /* the first run */
    i32 log_group; /* log2 of the threads that share a line: 1 to 32, or all of the block */
    i32 reverse;   /* from the end */
    i64 step_x, step_y;
    walk_dims kept;
} cumsum_args;

/* Sorting: pairs of a key and a place. */
typedef struct {
    const void *x;    /* where keys and values come from */
    const void *from; /* pairs [lines][n], or NULL: made from x */
    void *to;         /* pairs [lines][stride], or NULL: what follows is written */
    void *values;     /* [lines][k], or NULL */
    u32 *indices;     /* the same */
    i64 lines, n, k, stride;
    i64 blocks;
    wide_divisor tiles; /* of a line */
    i64 run;            /* merging: the length of sorted runs, a power of two */
    i32 log_size;       /* tiles: 2^log_size pairs, at least n or WK_SORT_TILE */
    i32 keep;           /* pairs to keep of a tile */
    i32 tile_lines;     /* lines that a block sorts side by side, where they are short */
    u64 flip, nan;      /* bits that turn the order around; the key of a NaN */
    walk_dims kept;     /* x: lines of elements side by side */
} sort_args;

#endif
