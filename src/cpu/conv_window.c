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

/* ---- Filling ----
 * Rows are short, and calls for a few bytes each would take longer than the bytes. */

enum { LINE = 64 };

static inline void copy_bytes(char *dst, const char *src, int64_t n)
{
    if (n < LINE) {
        memcpy(dst, src, (size_t)n);
        return;
    }
    for (int64_t i = 0; i < n - LINE; i += LINE)
        memcpy(dst + i, src + i, LINE);
    memcpy(dst + n - LINE, src + n - LINE, LINE);
}

/* Every second of the source's. */
static inline void copy_halves(uint32_t *restrict dst, const uint32_t *restrict src, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        dst[i] = src[2 * i];
}

static inline void widen(uint32_t *restrict dst, const uint16_t *restrict src, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        dst[i] = (uint32_t)src[i] << 16;
}

void WK_ISA(conv_copy_values)(wk_dtype dtype, wk_dtype source, const char *src, int64_t step, char *dst,
                              int64_t n)
{
    if (dtype == source && step == 1)
        copy_bytes(dst, src, n * (int64_t)wk_bytes(dtype));
    else if (dtype == source && step == 2 && wk_bytes(dtype) == sizeof(uint32_t))
        copy_halves((uint32_t *)dst, (const uint32_t *)src, n);
    else if (dtype == source)
        WK_ISA(wk_block_gather)(wk_bytes(dtype), src, step, dst, n);
    else if (source == WK_BF16 && step == 1)
        widen((uint32_t *)dst, (const uint16_t *)src, n);
    else
        WK_ISA(wk_block_load)(source, src, step, dst, n);
}

/* Zeros before lo and from hi to n, bytes; what lies between is written afterwards. */
static inline void clear_ends(char *dst, int64_t lo, int64_t hi, int64_t n)
{
    if (n >= LINE && lo <= LINE && n - hi <= LINE) {
        memset(dst, 0, LINE);
        memset(dst + n - LINE, 0, LINE);
        return;
    }
    memset(dst, 0, (size_t)lo);
    memset(dst + hi, 0, (size_t)(n - hi));
}

/* Part r of row y of slab z, whose values from lo up to hi are the source's. */
static inline void fill_part(const conv_window *w, const char *source, int64_t r, int64_t z, int64_t y,
                             int64_t lo, int64_t hi, char *dst)
{
    int64_t bytes = (int64_t)wk_bytes(w->dtype), sz = z + w->lo[0], sy = y + w->lo[1];
    if (sz < 0 || sz >= w->source[0] || sy < 0 || sy >= w->source[1] || lo == hi) {
        memset(dst, 0, (size_t)(w->part * bytes));
        return;
    }
    int64_t from = (sz * w->source[1] + sy) * w->source[2] + w->lo[2] + r + lo * w->split;
    clear_ends(dst, lo * bytes, hi * bytes, w->part * bytes);
    WK_ISA(conv_copy_values)
    (w->dtype, w->source_dtype, source + from * (int64_t)wk_bytes(w->source_dtype), w->split,
     dst + lo * bytes, hi - lo);
}

void WK_ISA(conv_window_plane)(const conv_window *w, const void *source, char *dst)
{
    int64_t bytes = (int64_t)wk_bytes(w->dtype);
    for (int64_t r = 0; r < w->split; r++) {
        int64_t lo = conv_min(conv_max(conv_ceil_div(-w->lo[2] - r, w->split), 0), w->part);
        int64_t hi = conv_min(conv_max(conv_ceil_div(w->source[2] - w->lo[2] - r, w->split), lo), w->part);
        for (int64_t z = 0; z < w->size[0]; z++)
            for (int64_t y = 0; y < w->size[1]; y++)
                fill_part(w, source, r, z, y, lo, hi, dst + (z * w->slab + y * w->row + r * w->part) * bytes);
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
