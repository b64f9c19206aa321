/* walk.c: going through the elements of a strided view in order, a block at a time. */
#include "block.h"
#include "walk.h"

/* Elements [i, i + n), converted unless raw: where they lie when that will do, else in buf. */
static inline const void *fetch(const wk_walk *w, wk_dtype dtype, size_t bytes, const void *base, bool raw,
                                wk_compute compute, int64_t i, int64_t n, void *buf)
{
    int64_t inner, size = (int64_t)(raw ? bytes : wk_compute_bytes(compute));
    int64_t width = w->rank ? w->shape[w->rank - 1] : 1, stride = w->rank ? w->strides[w->rank - 1] : 0;
    int64_t offset = wk_walk_offset(w, i, &inner);
    if (stride == 1 && inner + n <= width && (raw || dtype == wk_compute_dtype(compute)))
        return (const char *)base + offset * (int64_t)bytes;
    for (int64_t done = 0; done < n;) {
        int64_t run = width - inner < n - done ? width - inner : n - done;
        const char *from = (const char *)base + offset * (int64_t)bytes;
        char *to = (char *)buf + done * size;
        if (raw)
            WK_ISA(wk_block_gather)(bytes, from, stride, to, run);
        else
            WK_ISA(wk_block_load_as)(compute, dtype, from, stride, to, run);
        done += run;
        if (done < n)
            offset = wk_walk_offset(w, i + done, &inner);
    }
    return buf;
}

const void *WK_ISA(wk_walk_fetch)(const wk_walk *w, wk_dtype dtype, const void *base, wk_compute compute,
                                  int64_t i, int64_t n, void *buf)
{
    return fetch(w, dtype, wk_bytes(dtype), base, false, compute, i, n, buf);
}

const void *WK_ISA(wk_walk_gather)(const wk_walk *w, size_t bytes, const void *base, int64_t i, int64_t n,
                                   void *buf)
{
    return fetch(w, 0, bytes, base, true, 0, i, n, buf);
}
