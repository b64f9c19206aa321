/* shape.h: arithmetic on shapes and strides. A shape is a rank and an array of sizes; strides count elements. */
#ifndef WK_CORE_SHAPE_H
#define WK_CORE_SHAPE_H

#include <stdbool.h>
#include <stdint.h>
#include "wick/core.h"

/* "[2,3,4]" into buf, for messages; returns buf. */
typedef struct {
    char text[160];
} wk_shape_text;
const char *wk_shape_str(wk_shape_text *buf, int rank, const int64_t *shape);

/* The number of elements; -1 when it does not fit or a size is negative. */
int64_t wk_shape_count(int rank, const int64_t *shape);

void wk_shape_strides(int rank, const int64_t *shape, int64_t *strides);

bool wk_shape_equal(int rank_a, const int64_t *a, int rank_b, const int64_t *b);

/* A dim of [-rank, rank) as one of [0, rank); -1 when it is out of range. */
int wk_shape_dim(int rank, int64_t dim);

/* NumPy's rule: the common shape of a and b; false when there is none. */
bool wk_shape_broadcast(int rank_a, const int64_t *a, int rank_b, const int64_t *b, int *rank,
                        int64_t *shape);

/* Joins neighbouring dimensions that every one of n stride arrays walks in one go, and drops those of size 1;
 * returns the new rank (0 for one element). strides[i] is changed in place beside shape. */
int wk_shape_coalesce(int rank, int64_t *shape, int n, int64_t (*strides)[WK_MAX_RANK]);

#endif
