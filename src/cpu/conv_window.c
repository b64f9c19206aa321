/* conv_window.c: the source of a convolution with its zero padding. */
#include "conv_int.h"
#include "core/pool.h"
#include "block.h"

enum { FILL_BYTES = 32 << 10, ROOM = 1 << 20, FACTOR = 64 };

static bool fits_in_place(const conv_window *w)
{
    bool fits = w->split == 1 && w->dtype == w->source_dtype;
    for (int d = 0; d < 3; d++)
        fits &= w->lo[d] >= 0 && w->lo[d] + w->size[d] <= w->source[d];
    return fits;
}

bool WK_ISA(conv_window_plan)(conv_window *w)
{
    int64_t all[3] = {w->size[0], w->size[1], 0};
    w->in_place = fits_in_place(w);
    if (w->in_place) {
        memcpy(w->lo, (int64_t[3]){0}, sizeof w->lo);
        memcpy(all, w->source, sizeof all);
    } else {
        w->part = conv_ceil_div(w->size[2], w->split);
        all[2] = w->part * w->split;
    }
    /* Far more padding than pixels: a few results far apart, not worth memory for all that lies between. */
    int64_t count = wk_shape_count(3, all), pixels = conv_pixels(w->source);
    if (count < 0 || (count > ROOM && count / FACTOR > pixels))
        return false;
    w->row = all[2];
    w->slab = all[1] * w->row;
    w->channel = all[0] * w->slab;
    w->image = w->channels * w->channel;
    return true;
}

/* One row; src is NULL for a row of padding. */
static void fill_row(const conv_window *w, const char *src, char *dst)
{
    int64_t bytes = (int64_t)wk_bytes(w->dtype), src_bytes = (int64_t)wk_bytes(w->source_dtype);
    for (int64_t r = 0; r < w->split; r++, dst += w->part * bytes) {
        int64_t lo = conv_min(conv_max(conv_ceil_div(-w->lo[2] - r, w->split), 0), w->part);
        int64_t hi = conv_min(conv_max(conv_ceil_div(w->source[2] - w->lo[2] - r, w->split), lo), w->part);
        if (!src)
            hi = lo;
        memset(dst, 0, (size_t)(lo * bytes));
        memset(dst + hi * bytes, 0, (size_t)((w->part - hi) * bytes));
        if (hi == lo)
            continue;
        const char *from = src + (w->lo[2] + r + lo * w->split) * src_bytes;
        if (w->dtype != w->source_dtype)
            WK_ISA(wk_block_load)(w->source_dtype, from, w->split, dst + lo * bytes, hi - lo);
        else if (w->split == 1)
            memcpy(dst + lo * bytes, from, (size_t)((hi - lo) * bytes));
        else
            WK_ISA(wk_block_gather)((size_t)bytes, from, w->split, dst + lo * bytes, hi - lo);
    }
}

void WK_ISA(conv_window_plane)(const conv_window *w, const void *source, char *dst)
{
    int64_t bytes = (int64_t)wk_bytes(w->dtype), src_bytes = (int64_t)wk_bytes(w->source_dtype);
    for (int64_t z = 0; z < w->size[0]; z++)
        for (int64_t y = 0; y < w->size[1]; y++) {
            int64_t sz = z + w->lo[0], sy = y + w->lo[1];
            bool inside = sz >= 0 && sz < w->source[0] && sy >= 0 && sy < w->source[1];
            const char *from = (const char *)source + (sz * w->source[1] + sy) * w->source[2] * src_bytes;
            fill_row(w, inside ? from : NULL, dst + (z * w->slab + y * w->row) * bytes);
        }
}

typedef struct {
    const conv_window *w;
    const char *source;
    int64_t planes, group; /* planes are channels of all images; so many to a task */
} filling;

static void fill_task(void *ctx, int64_t task)
{
    const filling *f = ctx;
    const conv_window *w = f->w;
    int64_t from = conv_pixels(w->source) * (int64_t)wk_bytes(w->source_dtype);
    int64_t to = w->channel * (int64_t)wk_bytes(w->dtype), end = conv_min((task + 1) * f->group, f->planes);
    for (int64_t plane = task * f->group; plane < end; plane++)
        WK_ISA(conv_window_plane)(w, f->source + plane * from, w->data + plane * to);
}

void WK_ISA(conv_window_fill)(conv_window *w, const void *source, int64_t images)
{
    filling f = {w, source, images * w->channels, 1};
    if (w->in_place) {
        w->data = (char *)source;
        return;
    }
    f.group = conv_max(FILL_BYTES / conv_max(w->channel * (int64_t)wk_bytes(w->dtype), 1), 1);
    wk_parallel_for(conv_ceil_div(f.planes, f.group), fill_task, &f);
}
