/* sort.h: sorting and choosing (key, place) pairs.
 *
 * Keys are unsigned numbers in the order wanted; the place breaks ties. So every pair is different, there is one
 * right order, and it does not depend on the way or on threads. Keys of up to 32 bits share a word with the
 * place; wider ones have their own. */
#ifndef WK_CPU_SORT_H
#define WK_CPU_SORT_H

#include <stdint.h>
#include "isa.h"

typedef uint64_t wk_pair32; /* key << 32 | place */
typedef struct {
    uint64_t key;
    uint64_t place;
} wk_pair64;

/* Sorts n pairs of a with the help of b, of the same size; returns the one that holds the result. varies has the bits
 * in which keys differ (more do no harm). Shares long arrays among threads. */
wk_pair32 *WK_ISA(wk_sort32)(wk_pair32 *a, wk_pair32 *b, int64_t n, uint64_t varies);
wk_pair64 *WK_ISA(wk_sort64)(wk_pair64 *a, wk_pair64 *b, int64_t n, uint64_t varies);

/* Moves the k smallest pairs of n to the front, in the order of their places; 0 < k < n. The places of a are in
 * order. */
void WK_ISA(wk_choose32)(wk_pair32 *a, int64_t n, int64_t k);
void WK_ISA(wk_choose64)(wk_pair64 *a, int64_t n, int64_t k);

#endif
