/* wick/pool.h: pooling. */
#ifndef WICK_POOL_H
#define WICK_POOL_H

#include "core.h"

#ifdef __cplusplus
extern "C" {
#endif

/* x is [n, c, l] or [c, l] for the 1d forms, which use the first number of each pair, and [n, c, h, w] or [c, h, w]
 * for the 2d ones. A size of the result is floor((in + 2 padding - kernel_size) / stride) + 1; with ceil it is
 * rounded up, without windows that would start in the padding on the right. Float. Write it with
 * WK_POOL(.kernel_size = {3, 3}, .stride = {2, 2}). */
typedef struct {
    size_t size;            /* of this struct; set by WK_POOL */
    int64_t kernel_size[2]; /* must be given */
    int64_t stride[2];      /* 0: the kernel_size */
    int64_t padding[2];     /* at most half the kernel_size */
    int64_t ceil;           /* 1: sizes are rounded up */
    int64_t exclude_pad;    /* avg_pool: 1: elements of the padding do not count in the mean */
} wk_pool_options;
#define WK_POOL(...) (&(wk_pool_options){.size = sizeof(wk_pool_options), __VA_ARGS__})

/* The largest of each window; NaN when one is. indices (NULL: not wanted) gets u32 places of these in the plane,
 * counted row by row: the first of equal ones; a plane then has at most 2^32 elements. */
WK_API wk_tensor *wk_max_pool1d(const wk_tensor *x, const wk_pool_options *options, wk_tensor **indices);
WK_API wk_tensor *wk_max_pool2d(const wk_tensor *x, const wk_pool_options *options, wk_tensor **indices);
/* The mean of each window; the padding counts as zeros. */
WK_API wk_tensor *wk_avg_pool1d(const wk_tensor *x, const wk_pool_options *options);
WK_API wk_tensor *wk_avg_pool2d(const wk_tensor *x, const wk_pool_options *options);
/* Over the whole plane: [n, c, h, w] to [n, c, 1, 1], [c, h, w] to [c, 1, 1]. */
WK_API wk_tensor *wk_global_max_pool2d(const wk_tensor *x);
WK_API wk_tensor *wk_global_avg_pool2d(const wk_tensor *x);

/* dx from x and dy. A window's gradient goes to its largest element, the first of equal ones. indices: what the
 * forward gave, NULL to work them out again; one outside the plane is WK_ERR_INDEX. */
WK_API wk_tensor *wk_max_pool1d_backward(const wk_tensor *x, const wk_tensor *dy, const wk_tensor *indices,
                                         const wk_pool_options *options);
WK_API wk_tensor *wk_max_pool2d_backward(const wk_tensor *x, const wk_tensor *dy, const wk_tensor *indices,
                                         const wk_pool_options *options);
WK_API wk_tensor *wk_avg_pool1d_backward(const wk_tensor *x, const wk_tensor *dy,
                                         const wk_pool_options *options);
WK_API wk_tensor *wk_avg_pool2d_backward(const wk_tensor *x, const wk_tensor *dy,
                                         const wk_pool_options *options);
WK_API wk_tensor *wk_global_max_pool2d_backward(const wk_tensor *x, const wk_tensor *dy);
WK_API wk_tensor *wk_global_avg_pool2d_backward(const wk_tensor *x, const wk_tensor *dy);

#ifdef __cplusplus
}
#endif
#endif
