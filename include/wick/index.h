/* wick/index.h: ops that ids lead. All dtypes.
 *
 * ids are u8, u32, i32 or i64. The largest value of that dtype (255, 2^32 - 1, 2^31 - 1, 2^63 - 1) stands for
 * none: a read gives 0, a write does not happen. Any other id outside 0 to size - 1 fails with WK_ERR_INDEX and a
 * message that names its place and value; nothing outside a tensor is ever touched. */
#ifndef WICK_INDEX_H
#define WICK_INDEX_H

#include "core.h"

#ifdef __cplusplus
extern "C" {
#endif

/* y[i][j] = x[ids[i][j]][j] for dim 0, and so on; ids has x's rank, and sizes of at most x's in the other dims. */
WK_API wk_tensor *wk_gather(const wk_tensor *x, const wk_tensor *ids, int dim);

/* x with y[ids[i][j]][j] = src[i][j] for dim 0, and so on, for every place of ids. Where ids meet, the last along
 * dim wins. ids has x's and src's rank, and sizes of at most src's and, but for dim, x's. */
WK_API wk_tensor *wk_scatter(const wk_tensor *x, const wk_tensor *ids, const wk_tensor *src, int dim);
/* The same with +=; where ids meet all are added, in f32 for f16 and bf16. */
WK_API wk_tensor *wk_scatter_add(const wk_tensor *x, const wk_tensor *ids, const wk_tensor *src, int dim);

/* y[..][i][..] = x[..][ids[i]][..]: slices of x along dim; ids is 1-D. An embedding lookup is dim 0. */
WK_API wk_tensor *wk_index_select(const wk_tensor *x, const wk_tensor *ids, int dim);
/* x with y[..][ids[i]][..] += src[..][i][..]; ids is 1-D, src of x's shape but for dim. */
WK_API wk_tensor *wk_index_add(const wk_tensor *x, const wk_tensor *ids, const wk_tensor *src, int dim);

/* Sums where ids meet have the same bits on every run. With 0 here a GPU may add floats (f32, f64) in whatever order its
 * threads come, where that is faster: the last bits of index_add, scatter_add and the gradients of index_select and gather
 * then differ from run to run, and those of what cuDNN computes may. For all threads; 1 at the start,
 * unless the environment has WICK_DETERMINISTIC=0. */
WK_API void wk_set_deterministic(int on);
WK_API int wk_deterministic(void);

/* Into dst, of x's shape and dtype and any layout but broadcast. Where x is dst itself nothing is copied and only
 * what changes is written. After a failure for a bad id dst may hold a part of the result. */
WK_API wk_status wk_scatter_into(wk_tensor *dst, const wk_tensor *x, const wk_tensor *ids,
                                 const wk_tensor *src, int dim);
WK_API wk_status wk_scatter_add_into(wk_tensor *dst, const wk_tensor *x, const wk_tensor *ids,
                                     const wk_tensor *src, int dim);
WK_API wk_status wk_index_add_into(wk_tensor *dst, const wk_tensor *x, const wk_tensor *ids,
                                   const wk_tensor *src, int dim);

/* Gradients for x; input_size is its shape, rank numbers. */
WK_API wk_tensor *wk_gather_backward(const wk_tensor *ids, const wk_tensor *dy, int dim, int rank,
                                     const int64_t *input_size);
WK_API wk_tensor *wk_index_select_backward(const wk_tensor *ids, const wk_tensor *dy, int dim, int rank,
                                           const int64_t *input_size);

/* Gradients for x and src into *dx and *dsrc (either may be NULL: not wanted); dsrc has the shape of ids, for
 * index_add that of src. An element of src that another one overwrote has the gradient 0. */
WK_API wk_status wk_scatter_backward(const wk_tensor *ids, const wk_tensor *dy, int dim, wk_tensor **dx,
                                     wk_tensor **dsrc);
WK_API wk_status wk_scatter_add_backward(const wk_tensor *ids, const wk_tensor *dy, int dim, wk_tensor **dx,
                                         wk_tensor **dsrc);
WK_API wk_status wk_index_add_backward(const wk_tensor *ids, const wk_tensor *dy, int dim, wk_tensor **dx,
                                       wk_tensor **dsrc);

#ifdef __cplusplus
}
#endif
#endif
