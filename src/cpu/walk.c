/* walk.c: going through the elements of a strided view in order, a block at a time. */
#include "block.h"
#include "walk.h"

const void *WK_ISA(wk_walk_fetch)(const wk_walk *w, wk_dtype dtype, const void *base, wk_compute compute,
                                  int64_t i, int64_t n, void *buf)
{
    int64_t bytes = (int64_t)wk_bytes(dtype), inner;
    int64_t width = w->rank ? w->shape[w->rank - 1] : 1, stride = w->rank ? w->strides[w->rank - 1] : 0;
    int64_t offset = wk_walk_offset(w, i, &inner);
    if (stride == 1 && inner + n <= width && dtype == wk_compute_dtype(compute))
        return (const char *)base + offset * bytes;
    for (int64_t done = 0; done < n;) {
        int64_t run = width - inner < n - done ? width - inner : n - done;
        WK_ISA(wk_block_load_as)
        (compute, dtype, (const char *)base + offset * bytes, stride,
         (char *)buf + done * (int64_t)wk_compute_bytes(compute), run);
        done += run;
        if (done < n)
            offset = wk_walk_offset(w, i + done, &inner);
    }
    return buf;
}

const void *WK_ISA(wk_walk_gather)(const wk_walk *w, size_t bytes, const void *base, int64_t i, int64_t n,
                                   void *buf)
{
    int64_t inner;
    int64_t width = w->rank ? w->shape[w->rank - 1] : 1, stride = w->rank ? w->strides[w->rank - 1] : 0;
    int64_t offset = wk_walk_offset(w, i, &inner);
    if (stride == 1 && inner + n <= width)
        return (const char *)base + offset * (int64_t)bytes;
    for (int64_t done = 0; done < n;) {
        int64_t run = width - inner < n - done ? width - inner : n - done;
        WK_ISA(wk_block_gather)
        (bytes, (const char *)base + offset * (int64_t)bytes, stride, (char *)buf + (size_t)done * bytes,
         run);
        done += run;
        if (done < n)
            offset = wk_walk_offset(w, i + done, &inner);
    }
    return buf;
}
