/* wick/random.h: random numbers and dropout.
 *
 * One counter-based generator (Philox 4x32-10) without state: the same seed and offset give the same numbers on every
 * device, for any number of threads, and in every dtype as near as that has them. offset moves on in the stream of a
 * seed: after a call for n numbers, or a mask of n, the first unused one is offset + ceil(n / 4). */
#ifndef WICK_RANDOM_H
#define WICK_RANDOM_H

#include "core.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Uniform numbers from low to high: low + u (high - low) with u from 0 up to, not including, 1. Rounding may give high itself, unless low is 0 and high a power of two. low and high are
 * finite and in order; a float dtype. */
WK_API wk_tensor *wk_rand(wk_device *device, wk_dtype dtype, int rank, const int64_t *shape, double low,
                          double high, int64_t seed, int64_t offset);
/* Normal numbers: mean + std z. std is 0 or more; a float dtype. */
WK_API wk_tensor *wk_randn(wk_device *device, wk_dtype dtype, int rank, const int64_t *shape, double mean,
                           double std, int64_t seed, int64_t offset);

/* Sets elements to 0 with probability p, from 0 to 1, and multiplies the others with 1 / (1 - p). mask (NULL: not
 * wanted) gets 1 where an element stays, u8 of x's shape. Float. */
WK_API wk_tensor *wk_dropout(const wk_tensor *x, double p, int64_t seed, int64_t offset, wk_tensor **mask);
/* Its gradient, with the mask, or with NULL and the forward's seed and offset. */
WK_API wk_tensor *wk_dropout_backward(const wk_tensor *dy, const wk_tensor *mask, double p, int64_t seed,
                                      int64_t offset);

#ifdef __cplusplus
}
#endif
#endif
