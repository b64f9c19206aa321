/* random.h: the arguments of the kernels of random numbers and dropout. */
#ifndef WK_KERNELS_RANDOM_H
#define WK_KERNELS_RANDOM_H

#include "types.h"

typedef struct {
    const void *x;  /* dropout: packed */
    const u8 *keep; /* dropout's gradient: the mask, packed; or NULL */
    void *y;        /* packed; dropout: NULL: the mask alone is wanted */
    u8 *mask;       /* dropout: NULL: not wanted */
    i64 count;
    u64 seed, offset, threshold;
    double a, b; /* rand: low, high - low; randn: mean, std; dropout: the scale */
    i32 aligned; /* four neighbours may be moved by one access */
} random_args;

#endif
