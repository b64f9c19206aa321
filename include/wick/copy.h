/* wick/copy.h: copies and ops that move elements without computing. */
#ifndef WICK_COPY_H
#define WICK_COPY_H

#include "core.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A packed copy. All dtypes. */
WK_API wk_tensor *wk_copy(const wk_tensor *x);
/* src's elements into dst, of the same shape and dtype and any layout (a view of a KV cache, say). */
WK_API wk_status wk_copy_into(wk_tensor *dst, const wk_tensor *src);

#ifdef __cplusplus
}
#endif
#endif
