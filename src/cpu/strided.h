/* strided.h: the one copy between any two layouts. */
#ifndef WK_CPU_STRIDED_H
#define WK_CPU_STRIDED_H

#include "core/tensor.h"
#include "isa.h"

/* src's elements to dst: two views of one shape and element size that do not overlap, either of any strides (dst
 * without stride 0). Transposed views go through cache-sized tiles. */
void WK_ISA(wk_strided_copy)(int rank, const int64_t *shape, size_t bytes, const void *src,
                             const int64_t *src_strides, void *dst, const int64_t *dst_strides);

/* The same for tensors. */
static inline void WK_ISA(wk_tensor_copy)(const wk_tensor *src, wk_tensor *dst)
{
    WK_ISA(wk_strided_copy)
    (src->rank, src->shape, wk_bytes(src->dtype), wk_ptr(src), src->strides, wk_ptr(dst), dst->strides);
}

#endif
