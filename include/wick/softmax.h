/* wick/softmax.h: softmax. */
#ifndef WICK_SOFTMAX_H
#define WICK_SOFTMAX_H

#include "core.h"

#ifdef __cplusplus
extern "C" {
#endif

/* FAST leaves out the subtraction of the largest element: it overflows where exp(x) does. LOG gives log(softmax). */
typedef enum { WK_SOFTMAX_ACCURATE, WK_SOFTMAX_FAST, WK_SOFTMAX_LOG } wk_softmax_mode;

/* Over n dims taken together (n = 0: the last one). Float. */
WK_API wk_tensor *wk_softmax(const wk_tensor *x, int n, const int64_t *dims, wk_softmax_mode mode);
/* dx from the result y and dy. */
WK_API wk_tensor *wk_softmax_backward(const wk_tensor *y, const wk_tensor *dy, int n, const int64_t *dims,
                                      wk_softmax_mode mode);

#ifdef __cplusplus
}
#endif
#endif
