/* wick/scan.h: running sums and sorting along a dim. All dtypes. A scalar counts as a line of one element. */
#ifndef WICK_SCAN_H
#define WICK_SCAN_H

#include "core.h"

#ifdef __cplusplus
extern "C" {
#endif

/* y[i] = x[0] + ... + x[i] along dim. Integers keep their dtype and wrap. */
WK_API wk_tensor *wk_cumsum(const wk_tensor *x, int dim);
/* Gradient: dx from x and dy, of one shape. Float. */
WK_API wk_tensor *wk_cumsum_backward(const wk_tensor *x, const wk_tensor *dy, int dim);

/* The lines along dim in ascending order, or descending. Stable; NaN comes last either way. */
WK_API wk_tensor *wk_sort(const wk_tensor *x, int dim, int descending);
/* Where the elements of sort's result are in x, as u32; lines of up to 2^32 elements. */
WK_API wk_tensor *wk_argsort(const wk_tensor *x, int dim, int descending);

/* The k largest along dim (0 to the size), the largest first, into *y, and where they are, as u32, into *indices; either may be
 * NULL: not wanted. The first of equal ones comes first; a NaN is larger than any number. */
WK_API wk_status wk_topk(const wk_tensor *x, int64_t k, int dim, wk_tensor **y, wk_tensor **indices);

#ifdef __cplusplus
}
#endif
#endif
