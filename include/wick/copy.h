/* wick/copy.h: copies and ops that move elements without computing. All dtypes. */
#ifndef WICK_COPY_H
#define WICK_COPY_H

#include "core.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The _into forms write into a tensor dst that is there, of any layout but broadcast: a view of a KV cache, say.
 * Inputs may share memory with it; where x is dst itself, only what changes is written. */

/* A packed copy. */
WK_API wk_tensor *wk_copy(const wk_tensor *x);
/* src's elements into dst, of the same shape and dtype. */
WK_API wk_status wk_copy_into(wk_tensor *dst, const wk_tensor *src);

/* dst with rows x cols elements of x written over it, both seen as flat arrays of their elements in row-major order:
 * y[dst_offset + r * dst_stride + c] = x[src_offset + r * src_stride + c]. Rows that overlap are written in
 * order. Fails with WK_ERR_PARAM when a number is negative or a row reaches outside. */
WK_API wk_tensor *wk_copy2d(const wk_tensor *x, const wk_tensor *dst, int64_t rows, int64_t cols,
                            int64_t src_stride, int64_t dst_stride, int64_t src_offset, int64_t dst_offset);
WK_API wk_status wk_copy2d_into(wk_tensor *dst, const wk_tensor *x, int64_t rows, int64_t cols,
                                int64_t src_stride, int64_t dst_stride, int64_t src_offset,
                                int64_t dst_offset);

/* n tensors of one dtype (n at least 1) one after the other along dim; their other sizes are equal. A tensor of
 * shape [0] is passed over. */
WK_API wk_tensor *wk_cat(const wk_tensor *const *tensors, int n, int dim);
/* n tensors of one shape and dtype side by side along a new dim of size n, which is 0 to rank (or counts from the
 * end of the result's dims). */
WK_API wk_tensor *wk_stack(const wk_tensor *const *tensors, int n, int dim);

typedef enum {
    WK_PAD_ZEROS,
    WK_PAD_SAME,    /* repeats the element at the edge */
    WK_PAD_REFLECT, /* goes back from the edge, which is not repeated: less than the size on either side */
} wk_pad_mode;

/* left and right elements more (0 or more) before and after those of dim. */
WK_API wk_tensor *wk_pad(const wk_tensor *x, int dim, int64_t left, int64_t right, wk_pad_mode mode);

/* The elements of n dims (n = 0: all) in the opposite order. */
WK_API wk_tensor *wk_flip(const wk_tensor *x, int n, const int64_t *dims);

/* x with src, of the same rank, written over the part that begins at start, which has a place for each dim. Fails with
 * WK_ERR_PARAM when src reaches outside x. */
WK_API wk_tensor *wk_slice_assign(const wk_tensor *x, const wk_tensor *src, const int64_t *start);
WK_API wk_status wk_slice_assign_into(wk_tensor *dst, const wk_tensor *x, const wk_tensor *src,
                                      const int64_t *start);

/* A line of depth elements for each id (u8, u32, i32 or i64), all off but the one at the id, which is on. -1 and
 * the largest value of the id type give a line of off; any other id outside 0 to depth - 1 is WK_ERR_INDEX. */
WK_API wk_tensor *wk_one_hot(const wk_tensor *ids, int64_t depth, double on, double off, wk_dtype dtype);

/* The lower (upper) triangle of the last two dims: elements (i, j) with j - i <= diagonal (>= diagonal), zeros
 * elsewhere. */
WK_API wk_tensor *wk_tril(const wk_tensor *x, int64_t diagonal);
WK_API wk_tensor *wk_triu(const wk_tensor *x, int64_t diagonal);

#ifdef __cplusplus
}
#endif
#endif
