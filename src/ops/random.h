/* random.h: what front end and kernels of random numbers and dropout share. */
#ifndef WK_OPS_RANDOM_H
#define WK_OPS_RANDOM_H

#include "core/op.h"

typedef struct {
    wk_list shape;
    int64_t dtype, seed, offset;
    double a, b; /* rand: low, high; randn: mean, std */
} wk_random_params;

typedef struct {
    double p;
    int64_t seed, offset;
} wk_dropout_params;

#endif
