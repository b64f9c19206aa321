/* loss.h: the arguments of the loss kernels. */
#ifndef WK_KERNELS_LOSS_H
#define WK_KERNELS_LOSS_H

#include "walk.h"

enum { WK_LOSS_THREADS = 256, WK_STREAM_THREADS = 512, WK_TOTAL_THREADS = 1024 };

/* Classes: rows of x [rows, classes] with a target each. */
typedef struct {
    const void *x, *targets;
    const void *top, *z; /* of the rows: the largest x, 1 / the sum of exp(x - top); NULL for nll_loss */
    void *y;             /* losses of the rows, or of all together */
    double *losses;      /* those of the rows, where y is of all; or NULL */
    void *lse;           /* log(sum(exp(x))) of the rows, in the compute type, or NULL */
    void *dx;            /* packed, or NULL */
    i64 *count;          /* targets that are no padding, where the gradient is divided by it; or NULL */
    i64 rows, classes;
    i64 row, column, target; /* strides of x, of targets */
    i64 padding;
    i64 blocks;
    i64 ahead;          /* class_kept: from a row to that which is asked for meanwhile; 0: to none */
    i32 mean;           /* y is the mean of all */
    wide_divisor tiles; /* of a row, where the gradient is written; class_stream: packs of a row */
    wk_report report;
} class_args;

/* Elements: x and target of one shape. */
typedef struct {
    const void *x, *targets;
    void *y;        /* losses, packed, or NULL */
    double *parts;  /* a sum for each block, or NULL */
    void *dx;       /* packed, or NULL */
    i64 steps;      /* packs of elements */
    walk_dims dims; /* of x and of the targets */
    double scale, delta;
} element_args;

typedef struct {
    const double *parts;
    void *y;
    i64 n;
    double divisor; /* of the total */
} total_args;

#endif
