/* walk.h: dimensions of a tensor split into those that make lines and those that count them, for kernels that work
 * along lines. */
#ifndef WK_GPU_WALK_H
#define WK_GPU_WALK_H

#include "gpu.h"
#include "kernels/walk.h"

typedef struct {
    int rank;
    int64_t shape[WK_MAX_RANK], strides[2][WK_MAX_RANK]; /* of the tensor read, of the one written */
} wk_gpu_walk;

/* Takes up one more dimension, inside of those taken before. */
void wk_gpu_walk_add(wk_gpu_walk *w, int64_t size, int64_t x, int64_t y);
/* The dimensions in the order of the strides of the tensor read: the smallest innermost, broadcast ones outermost. */
void wk_gpu_walk_sort(wk_gpu_walk *w);
/* Joins what can be joined. */
void wk_gpu_walk_join(wk_gpu_walk *w);
int64_t wk_gpu_walk_count(const wk_gpu_walk *w);
/* Size and stride (of the tensor read) of the innermost dimension; 1 and 0 when there is none. */
int64_t wk_gpu_walk_inner(const wk_gpu_walk *w);
int64_t wk_gpu_walk_step(const wk_gpu_walk *w);
/* True when lines of the innermost dimension can be read by `vec` elements of t, which is what is read. */
bool wk_gpu_walk_vector(const wk_gpu_walk *w, int vec);
wide_divisor wk_wide_divisor_of(int64_t d);
/* For the kernel, `vec` elements of the innermost dimension as one place. */
walk_dims wk_gpu_walk_dims(const wk_gpu_walk *w, int vec);

#endif
