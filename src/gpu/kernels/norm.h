/* norm.h: the arguments of the norms' kernels. */
#ifndef WK_KERNELS_NORM_H
#define WK_KERNELS_NORM_H

#include "types.h"

/* ---- norm.hip ---- */

/* Rows that registers hold: samples of `groups` rows of n elements each. */
typedef struct {
    const void *x, *dy;        /* samples x_step and dy_step elements apart, each packed */
    const void *weight, *bias; /* one for every channel of all groups; NULL: 1 and 0 */
    const void *z; /* added to x first, samples dy_step elements apart; only where kernels are made for it */
    void *y;       /* packed; dx in a gradient, NULL: not wanted */
    void *sum;     /* x + z, packed, or NULL */
    void *parts;   /* gradient: [2][n_parts][groups * n], shares of dweight and dbias; or NULL */
    i64 samples, rows, x_step, dy_step, n_parts;
    i64 ahead;               /* from a row to that which is asked for meanwhile; 0: to none */
    i32 groups, n, channels; /* channels: of a row, each of n / channels elements */
    i32 whole;               /* no pack has elements of two channels */
    i32 centred;             /* 0 for rms norm */
    wk_divisor by_groups, by_inner;
    double eps, inverse_n;
} norm_rows_args;

/* Parts, [arrays][parts][columns], summed to out[array][column]. */
typedef struct {
    const void *parts;
    void *out[2]; /* NULL: not wanted */
    i64 n_parts, columns;
} norm_sum_args;

/* ---- norm_planes.hip ---- */

/* Planes of `inner` elements, cut into chunks. Of [n, c, inner] the n planes of a channel share statistics (batch norm),
 * or `channels` neighbouring planes do (rows of the other norms). */
typedef struct {
    const void *x, *dy; /* packed */
    void *y;
    const void *weight, *bias; /* one for each element of a plane, or NULL */
    const void *numbers;       /* apply: four for every plane or channel: mean, scale, shift, slope */
    /* Batch norm. measure: dy's sums are around this mean; apply: by given statistics, when there is a var. */
    const void *mean, *var, *scale, *shift;
    double *parts; /* [sums][units], a unit being a chunk of a plane */
    i64 inner, channels, units, count, chunks, chunk;
    wk_divisor by_inner, by_channels, by_chunks;
    i32 by_rows; /* `channels` neighbours share statistics, not every channels-th plane */
    i32 centred; /* 0: deviations from 0 */
    i32 small;   /* planes and places are below 2^30 */
    double eps;
    /* batch_norm_act: y ends with + dy (a residual), times slope below 0, held between lo and hi. */
    i32 ends;
    double slope, lo, hi;
} norm_planes_args;
/* Weights and biases of elements: read one by one; absent; or of rows, read as many at a time as x. */
enum { WK_WEIGHTS_SINGLY, WK_WEIGHTS_NONE, WK_WEIGHTS_PACKED };

/* The gradient of batch norm where registers of a block hold a channel, up to so many packs a thread. */
enum { NORM_HELD = 4 };
typedef struct {
    const void *x, *dy, *mean, *invstd, *weight; /* packed; weight may be NULL */
    void *dx, *dweight, *dbias;                  /* NULL: not wanted */
    i64 channels, inner;
    double count;
    u32 packs;           /* of a channel */
    wk_divisor by_plane; /* packs of a plane */
} norm_channel_args;

/* Sums of [rows, columns] down the columns. */
typedef struct {
    const void *x, *dy; /* packed */
    const void *mean;   /* of each channel: dy's sums are around it */
    const double *rows; /* three for every row: origin, mean, scale */
    double *parts;      /* [2][strips][columns] */
    i64 n_rows, columns, strip;
    wk_divisor by_inner; /* neighbouring columns are a channel */
} norm_columns_args;

/* From parts to statistics. Parts of a family, of which all share statistics, are
 * (k * families + family) * each + i for k < outer, i < each; x[family * origin_step] is their origin. */
typedef struct {
    const double *parts; /* [sums][units] */
    i64 units, families, outer, each, origin_step;
    wk_divisor by_each;
    const void *x;
    double count, inverse_count, eps, momentum;
    const void *weight, *bias, *running_mean, *running_var, *invstd, *mean; /* each may be NULL */
    void *new_mean, *new_var, *save_mean, *save_invstd, *dweight, *dbias;   /* NULL: not wanted */
    void *numbers;                                                          /* as above */
    /* Rows: a family is a row, one of `groups` of a sample, and has `channels` channels with a weight each, of
     * `chunks` parts each; 0 channels: every element has a weight, which the sums hold already. */
    i64 groups, channels, chunks;
    wk_divisor by_groups, by_channels, by_chunks;
    i32 centred;
    double *rows; /* as above */
} norm_finish_args;

#endif
