/* conv_window.c: the source of a convolution with its zero padding. */
#include "conv_int.h"
#include "core/pool.h"
#include "block.h"

enum { FILL_BYTES = 32 << 10, FEW_CHANNELS = 32, ROOM = 1 << 20, FACTOR = 64 };

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

/* Rows [first, last) of a channel, counted through its slabs. */
static void fill_rows(const conv_window *w, const void *source, int64_t first, int64_t last, char *dst)
{
    int64_t bytes = (int64_t)wk_bytes(w->dtype);
    for (int64_t r = 0; r < w->split; r++) {
        int64_t lo = conv_min(conv_max(conv_ceil_div(-w->lo[2] - r, w->split), 0), w->part);
        int64_t hi = conv_min(conv_max(conv_ceil_div(w->source[2] - w->lo[2] - r, w->split), lo), w->part);
        for (int64_t i = first; i < last; i++) {
            int64_t z = i / w->size[1], y = i % w->size[1];
            fill_part(w, source, r, z, y, lo, hi, dst + (z * w->slab + y * w->row + r * w->part) * bytes);
        }
    }
}

void WK_ISA(conv_window_plane)(const conv_window *w, const void *source, char *dst)
{
    fill_rows(w, source, 0, w->size[0] * w->size[1], dst);
}

/* A task is a band of rows of some channels of an image. Products are cut by results: where there are few channels, a task
 * has all of them, so that a thread mostly finds what it has brought itself. */
typedef struct {
    const conv_window *w;
    const char *source;
    int64_t channels, rows; /* of a task */
    int64_t groups, bands;  /* of an image: tasks by channels, by rows */
} filling;

static void fill_task(void *ctx, int64_t task)
{
    const filling *f = ctx;
    const conv_window *w = f->w;
    int64_t from = conv_pixels(w->source) * (int64_t)wk_bytes(w->source_dtype);
    int64_t to = w->channel * (int64_t)wk_bytes(w->dtype);
    int64_t first = task % f->bands * f->rows, last = conv_min(first + f->rows, w->size[0] * w->size[1]);
    int64_t unit = task / f->bands, c = unit % f->groups * f->channels;
    for (int64_t end = conv_min(c + f->channels, w->channels); c < end; c++) {
        int64_t plane = unit / f->groups * w->channels + c;
        fill_rows(w, f->source + plane * from, first, last, w->data + plane * to);
    }
}

void WK_ISA(conv_window_fill)(conv_window *w, const void *source, int64_t images)
{
    if (w->in_place) {
        w->data = (char *)source;
        return;
    }
    int64_t plane = conv_max(w->channel * (int64_t)wk_bytes(w->dtype), 1), rows = w->size[0] * w->size[1];
    filling f = {.w = w, .source = source, .channels = conv_max(FILL_BYTES / plane, 1), .rows = rows};
    if (w->channels <= FEW_CHANNELS) {
        f.channels = conv_max(w->channels, 1);
        f.rows = conv_ceil_div(rows, conv_max(w->channels * plane / FILL_BYTES, 1));
    }
    f.groups = conv_ceil_div(w->channels, f.channels);
    f.bands = conv_ceil_div(rows, f.rows);
    wk_parallel_for(images * f.groups * f.bands, fill_task, &f);
}
