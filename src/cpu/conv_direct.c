/* conv_direct.c: convolutions with few channels a group (depthwise ones above all), straight from a window that
 * fits the first-level cache: a row of results is a sum of shifted rows of the source. */
#include <stdatomic.h>
#include "conv_int.h"
#include "core/memory.h"
#include "core/pool.h"
#include "block.h"

enum {
    MAX_ROWS = 4,
#if defined(__AVX512F__) || defined(__aarch64__)
    MAX_VECTORS = 4, /* with MAX_ROWS: half of the registers */
#else
    MAX_VECTORS = 2,
#endif
    MAX_FROM = 8,                       /* channels of a group, of the source */
    MAX_TO = 2,                         /* and of the result; */
    MAX_TO_ONE = 4,                     /* when there is one source channel */
    BAND_BYTES = 24 << 10,              /* of the window of a band of rows */
    MIN_BAND = 8,                       /* rows: bands overlap, and smaller ones would do so too much */
    TASK_VALUES = 1 << 18,              /* multiply-adds of a task, at least */
    SLACK = MAX_VECTORS * WK_VEC_BYTES, /* bytes that may be touched behind the end */
};

/* How rows of results come from a window. Several rows at a time share what they load: then `taps` are those along
 * a column of the kernel, a window's row apart, and there is an offset for each column of the kernel. Else taps is 1
 * and there is an offset for each tap of the kernel. */
typedef struct {
    int64_t taps, columns;
    const int64_t *offsets;
    const void *weights;  /* [columns, taps] */
    int64_t row, out_row; /* strides in elements */
} conv_block;

#include "real_f32.h"
#include "conv_direct.inc.h"
#include "real_f64.h"
#include "conv_direct.inc.h"

bool WK_ISA(conv_direct_takes)(int64_t from, int64_t to)
{
    return from >= 1 && from <= MAX_FROM && to <= (from == 1 ? MAX_TO_ONE : MAX_TO);
}

/* ---- The work, cut into bands of result rows of one slab ---- */

typedef struct {
    const conv_direct *s;
    conv_window window; /* of the first band */
    wk_compute compute;
    int64_t values;               /* bytes of a compute value */
    int64_t taps;                 /* of all source channels */
    int64_t rows, bands;          /* rows of a band, bands of a slab */
    int64_t units, group;         /* bands of all slabs, groups and images, and how many of them are a task */
    int64_t line;                 /* elements of a row of results that is not written in place */
    size_t weights, lines, bytes; /* of a task's memory: weights (twice), rows of results, all */
    int64_t *offsets;             /* of all taps, then of the columns */
    bool columns;                 /* several rows at a time */
    bool joined;                  /* rows of results are neighbours in memory */
    bool in_place;                /* results are written where they belong */
    _Atomic bool failed;
} work;

/* Source positions that the taps of one result reach over. */
static int64_t span_of(const conv_axis *a)
{
    return a->taps ? (a->taps - 1) * (a->hop < 0 ? -a->hop : a->hop) + 1 : 1;
}

static void plan_window(work *k)
{
    const conv_direct *s = k->s;
    const conv_axis *axis = s->axis;
    conv_window *w = &k->window;
    *w =
        (conv_window){.dtype = wk_compute_dtype(k->compute), .source_dtype = s->dtype, .split = axis[2].step};
    memcpy(w->source, s->size, sizeof w->source);
    for (int d = 0; d < 3; d++)
        w->lo[d] = axis[d].first + (axis[d].hop < 0 ? 1 - span_of(&axis[d]) : 0);
    w->size[0] = span_of(&axis[0]);
    w->size[2] = (axis[2].count - 1) * axis[2].step + span_of(&axis[2]);
    w->part = conv_ceil_div(w->size[2], w->split);
    w->row = w->part * w->split;
    int64_t row_bytes = conv_max(w->row * w->size[0] * s->from * k->values, 1); /* 0 without channels */
    int64_t rows = (BAND_BYTES / row_bytes - span_of(&axis[1])) / axis[1].step;
    k->rows = conv_min(conv_max(rows, MIN_BAND), axis[1].count);
    w->size[1] = (k->rows - 1) * axis[1].step + span_of(&axis[1]);
    w->slab = w->size[1] * w->row;
    w->channel = w->size[0] * w->slab;
}

static size_t aligned(int64_t bytes) { return ((size_t)bytes + SLACK + 63) / 64 * 64; }

static void plan_work(work *k)
{
    const conv_direct *s = k->s;
    const conv_axis *axis = s->axis;
    k->compute = wk_dtypes[s->dtype].compute;
    k->values = (int64_t)wk_compute_bytes(k->compute);
    plan_window(k);
    k->taps = s->from * axis[0].taps * axis[1].taps * axis[2].taps;
    k->columns = axis[1].step == 1 && (axis[1].hop == 1 || axis[1].hop == -1) &&
                 (axis[1].taps == 3 || axis[1].taps == 5);
    k->bands = conv_ceil_div(axis[1].count, k->rows);
    k->units = s->images * s->groups * axis[0].count * k->bands;
    k->group = conv_max(TASK_VALUES / conv_max(s->to * k->taps * k->rows * axis[2].count, 1), 1);
    k->in_place = wk_compute_dtype(k->compute) == s->dtype && s->patches->out.pixel == 1 &&
                  axis[2].count * k->values >= WK_VEC_BYTES;
    k->weights = aligned(s->to * k->taps * k->values);
    k->joined = axis[2].count * k->values >= WK_VEC_BYTES && s->patches->out.pixel == 1 &&
                s->patches->out.row == axis[2].count;
    k->line = axis[2].count + (k->joined ? 0 : SLACK / k->values);
    k->lines = aligned(MAX_ROWS * k->line * k->values);
    k->bytes = 2 * k->weights + k->lines + aligned(s->from * k->window.channel * k->values);
}

/* A task's memory. */
typedef struct {
    char *weights, *turned, *lines, *window;
} memory;

/* The band's window, and the group's weights. */
static void load_unit(const work *k, int64_t image, int64_t group, const conv_window *w, const memory *m)
{
    const conv_direct *s = k->s;
    int64_t bytes = (int64_t)wk_bytes(s->dtype), taps = s->to * k->taps;
    for (int64_t c = 0; c < s->from; c++) {
        int64_t plane = (image * s->groups + group) * s->from + c;
        WK_ISA(conv_window_plane)
        (w, s->source + plane * conv_pixels(s->size) * bytes, m->window + c * w->channel * k->values);
    }
    for (int64_t i = 0; i < s->to; i++)
        WK_ISA(wk_block_load)
    (s->dtype, s->weights + (group * taps + i * s->weight_row) * bytes, s->weight_step,
     m->weights + i * k->taps * k->values, k->taps);
    if (k->columns) {
        const conv_axis *y = &s->axis[1];
        (k->compute == WK_COMPUTE_F64 ? turn_weights_f64 : turn_weights_f32)(
            m->weights, m->turned, taps / y->taps, y->taps, s->axis[2].taps, y->hop < 0);
    }
}

/* Up to MAX_ROWS rows of result i of the group, from the row of the window at `window`; those that were done. */
static int64_t do_rows(const work *k, const memory *m, const char *window, int64_t group, int64_t i,
                       int64_t left, char *dst)
{
    const conv_direct *s = k->s;
    const conv_patches *to = s->patches;
    int64_t n = s->axis[2].count, y_taps = s->axis[1].taps, result = group * s->to + i;
    bool several = k->columns && left >= MAX_ROWS;
    conv_block b = {.taps = several ? y_taps : 1,
                    .columns = several ? k->taps / y_taps : k->taps,
                    .offsets = several ? k->offsets + k->taps : k->offsets,
                    .weights = (several ? m->turned : m->weights) + i * k->taps * k->values,
                    .row = k->window.row,
                    .out_row = k->in_place ? to->out.row : k->line};
    const char *bias = s->bias ? (const char *)s->bias + result * k->values : NULL;
    (k->compute == WK_COMPUTE_F64 ? rows_f64 : rows_f32)(&b, window, bias, k->in_place ? dst : m->lines, n);
    int64_t rows = several ? MAX_ROWS : 1, bytes = (int64_t)wk_bytes(to->out.dtype);
    if (k->joined && !k->in_place)
        WK_ISA(conv_store_run)(to->out.dtype, m->lines, dst, 1, rows * n);
    for (int64_t r = 0; r < rows && !k->joined && !k->in_place; r++)
        WK_ISA(conv_store_run)
    (to->out.dtype, m->lines + r * k->line * k->values, dst + r * to->out.row * bytes, to->out.pixel, n);
    return rows;
}

/* One band of one group of one image. */
static void do_unit(const work *k, int64_t unit, const memory *m)
{
    const conv_direct *s = k->s;
    const conv_axis *axis = s->axis;
    const conv_patches *to = s->patches;
    int64_t first = unit % k->bands * k->rows, slab = unit / k->bands, z = slab % axis[0].count;
    int64_t group = slab / axis[0].count % s->groups, image = slab / axis[0].count / s->groups;
    int64_t rows = conv_min(k->rows, axis[1].count - first);
    conv_window w = k->window;
    w.lo[0] += z * axis[0].step;
    w.lo[1] += first * axis[1].step;
    w.size[1] = (rows - 1) * axis[1].step + span_of(&axis[1]);
    load_unit(k, image, group, &w, m);
    for (int64_t i = 0; i < s->to; i++)
        for (int64_t y = 0; y < rows;) {
            int64_t at = image * to->out.image + (group * s->to + i) * to->out.channel + z * to->out.slab +
                         (first + y) * to->out.row;
            y += do_rows(k, m, m->window + y * axis[1].step * w.row * k->values, group, i, rows - y,
                         to->out.data + at * (int64_t)wk_bytes(to->out.dtype));
        }
}

static void task(void *ctx, int64_t i)
{
    work *k = ctx;
    char *all = wk_scratch_alloc(k->bytes);
    if (!all) {
        atomic_store(&k->failed, true);
        return;
    }
    memory m = {.weights = all, .turned = all + k->weights, .lines = all + 2 * k->weights};
    m.window = m.lines + k->lines;
    for (int64_t unit = i * k->group; unit < conv_min((i + 1) * k->group, k->units); unit++)
        do_unit(k, unit, &m);
    wk_scratch_free(all, k->bytes);
}

bool WK_ISA(conv_direct_run)(const conv_direct *s)
{
    work k = {.s = s};
    plan_work(&k);
    k.offsets = wk_alloc((size_t)conv_max(2 * k.taps, 1) * sizeof *k.offsets);
    if (!k.offsets)
        return false;
    WK_ISA(conv_offsets)(&k.window, s->axis, s->from, k.offsets);
    if (k.columns) {
        conv_axis top[3] = {s->axis[0], {.taps = 1, .first = k.window.lo[1]}, s->axis[2]};
        WK_ISA(conv_offsets)(&k.window, top, s->from, k.offsets + k.taps);
    }
    wk_parallel_for(conv_ceil_div(k.units, k.group), task, &k);
    wk_free(k.offsets);
    return !k.failed;
}
