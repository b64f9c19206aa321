/* rope.h: the arguments of the kernel of rotary embedding. */
#ifndef WK_KERNELS_ROPE_H
#define WK_KERNELS_ROPE_H

#include "types.h"

/* A row is the d elements of a head at a position: r pairs are turned, the rest is copied. */
typedef struct {
    const void *x, *cos, *sin;      /* elements of a row lie side by side */
    void *y;                        /* packed */
    i64 x_b, x_h, x_t;              /* strides of x */
    i64 y_b, y_h, y_t;              /* of y */
    i64 cos_b, cos_t, sin_b, sin_t; /* of the angles */
    /* rope_qk: k, whose heads follow x's; NULL in the other ops */
    const void *k;
    void *k_y;
    i64 k_b, k_h, k_t, k_y_b, k_y_h, k_y_t;
    /* rope_cache: v, whose heads follow k's and are only copied; results of k and v go to the places of a cache */
    const void *v;
    void *v_y;
    i64 v_b, v_h, v_y_b, v_y_h, v_y_t;
    const void *place; /* an id for each of the batch */
    i32 id_bytes;
    i64 limit;
    wk_report report;
    i64 tasks;
    i32 h, t, d, r, per_row; /* per_row: threads for a row */
    wk_divisor by_per_row, by_t, by_turns;
    i32 turns; /* heads / WK_ROPE_HEADS, rounded up; those of k behind those of x, those of v behind those of k */
    i32 k_turn, v_turn; /* the first of k's and v's */
    i32 k_heads;
    i32 sign; /* -1 turns back */
} rope_args;

enum { WK_ROPE_HEADS = 4 }; /* a thread's: they share the angles */

#endif
