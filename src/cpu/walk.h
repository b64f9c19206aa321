/* walk.h: going through the elements of a strided view in order, a block at a time. */
#ifndef WK_CPU_WALK_H
#define WK_CPU_WALK_H

#include "core/tensor.h"
#include "isa.h"

/* A view whose dimensions have been joined where they can be; rank 0 is one element. */
typedef struct {
    int rank;
    int64_t shape[WK_MAX_RANK], strides[WK_MAX_RANK];
} wk_walk;

/* Where element i of the walk is, in elements from the first; *inner is its place in the last dimension. */
static inline int64_t wk_walk_offset(const wk_walk *w, int64_t i, int64_t *inner)
{
    int64_t offset = 0;
    *inner = 0;
    for (int d = w->rank - 1; d >= 0; d--) {
        int64_t rest = d ? i / w->shape[d] : 0, at = i - rest * w->shape[d]; /* a division takes long */
        offset += at * w->strides[d];
        if (d == w->rank - 1)
            *inner = at;
        i = rest;
    }
    return offset;
}

/* Elements [i, i + n) of the walk from base, as packed values of the compute type: where they lie, when that is
 * what they are, else in buf. */
const void *WK_ISA(wk_walk_fetch)(const wk_walk *w, wk_dtype dtype, const void *base, wk_compute compute,
                                  int64_t i, int64_t n, void *buf);

/* The same as they are, whatever they are: elements of so many bytes. */
const void *WK_ISA(wk_walk_gather)(const wk_walk *w, size_t bytes, const void *base, int64_t i, int64_t n,
                                   void *buf);

/* Asks for elements [i, i + n) to be on their way while something else is being done. Only for packed walks, where
 * that is a plain stretch of memory. */
static inline void wk_walk_prefetch(const wk_walk *w, wk_dtype dtype, const void *base, int64_t i, int64_t n)
{
    if (w->rank != 1 || w->strides[0] != 1)
        return;
    int64_t bytes = (int64_t)wk_bytes(dtype), end = (i + n < w->shape[0] ? i + n : w->shape[0]) * bytes;
    for (int64_t at = i * bytes; at < end; at += 64)
        __builtin_prefetch((const char *)base + at, 0, 2);
}

#endif
