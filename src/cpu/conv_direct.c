/* conv_direct.c: convolutions with few channels a group (depthwise ones above all), straight from a window that
 * fits the first-level cache: a row of results is a sum of shifted rows of the source. */
#include <stdatomic.h>
#include "conv_int.h"
#include "core/memory.h"
#include "core/pool.h"
#include "block.h"

enum {
    MAX_VECTORS = 4,
    MAX_FROM = 8,                       /* channels of a group, of the source */
    MAX_TO = 2,                         /* and of the result; */
    MAX_TO_ONE = 4,                     /* when there is one source channel */
    BAND_BYTES = 24 << 10,              /* of the window of a band of rows */
    MIN_BAND = 8,                       /* rows: bands overlap, and smaller ones would do so too much */
    TASK_VALUES = 1 << 16,              /* multiply-adds of a task, at least */
    SLACK = MAX_VECTORS * WK_VEC_BYTES, /* bytes that may be touched behind the end */
};

#include "real_f32.h"
#include "conv_direct.inc.h"
#include "real_f64.h"
#include "conv_direct.inc.h"

bool WK_ISA(conv_direct_takes)(int64_t from, int64_t to)
{
    return from <= MAX_FROM && to <= (from == 1 ? MAX_TO_ONE : MAX_TO);
}

/* ---- The work, cut into bands of result rows of one slab ---- */

typedef struct {
    const conv_direct *s;
    conv_window window; /* of the first band */
    wk_compute compute;
    int64_t taps;         /* of all source channels */
    int64_t rows, bands;  /* rows of a band, bands of a slab */
    int64_t units, group; /* bands of all slabs, groups and images, and how many of them are a task */
    size_t weights, line,
        channel;      /* bytes of a task's memory: weights, a row of results, a window's channel */
    int64_t *offsets; /* of all taps */
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
    int64_t bytes = w->row * w->size[0] * s->from * (int64_t)wk_compute_bytes(k->compute);
    int64_t rows = (BAND_BYTES / bytes - span_of(&axis[1])) / axis[1].step;
    k->rows = conv_min(conv_max(rows, MIN_BAND), axis[1].count);
    w->size[1] = (k->rows - 1) * axis[1].step + span_of(&axis[1]);
    w->slab = w->size[1] * w->row;
    w->channel = w->size[0] * w->slab;
}

static size_t aligned(int64_t values, wk_compute compute)
{
    return ((size_t)values * wk_compute_bytes(compute) + SLACK + 63) / 64 * 64;
}

static void plan_work(work *k)
{
    const conv_direct *s = k->s;
    const conv_axis *axis = s->axis;
    k->compute = wk_dtypes[s->dtype].compute;
    plan_window(k);
    k->taps = s->from * axis[0].taps * axis[1].taps * axis[2].taps;
    k->bands = conv_ceil_div(axis[1].count, k->rows);
    k->units = s->images * s->groups * axis[0].count * k->bands;
    k->group = conv_max(TASK_VALUES / conv_max(s->to * k->taps * k->rows * axis[2].count, 1), 1);
    k->weights = aligned(s->to * k->taps, k->compute);
    k->line = aligned(axis[2].count, k->compute);
    k->channel = (size_t)k->window.channel * wk_compute_bytes(k->compute);
}

/* Result row y of slab z, from the band's window. */
static void do_row(const work *k, const char *window, const void *weights, int64_t result, char *line,
                   char *dst)
{
    const conv_direct *s = k->s;
    const conv_patches *to = s->patches;
    int64_t n = s->axis[2].count;
    if (k->compute == WK_COMPUTE_F64)
        row_f64((const double *)window, k->offsets, weights, k->taps,
                s->bias ? ((const double *)s->bias)[result] : 0, (double *)line, n);
    else
        row_f32((const float *)window, k->offsets, weights, k->taps,
                s->bias ? ((const float *)s->bias)[result] : 0, (float *)line, n);
    WK_ISA(conv_store_run)(to->out.dtype, line, dst, to->out.pixel, n);
}

/* One band of one group of one image. */
static void do_unit(const work *k, int64_t unit, char *memory)
{
    const conv_direct *s = k->s;
    const conv_axis *axis = s->axis;
    conv_window w = k->window;
    int64_t first = unit % k->bands * k->rows, z = unit / k->bands % axis[0].count;
    int64_t group = unit / k->bands / axis[0].count % s->groups,
            image = unit / k->bands / axis[0].count / s->groups;
    int64_t rows = conv_min(k->rows, axis[1].count - first), values = (int64_t)wk_compute_bytes(k->compute);
    char *line = memory + k->weights, *window = line + k->line;
    WK_ISA(wk_block_load)
    (s->dtype, s->weights + group * s->to * k->taps * (int64_t)wk_bytes(s->dtype), 1, memory,
     s->to * k->taps);
    w.lo[0] += z * axis[0].step;
    w.lo[1] += first * axis[1].step;
    w.size[1] = (rows - 1) * axis[1].step + span_of(&axis[1]);
    for (int64_t c = 0; c < s->from; c++) {
        int64_t plane = (image * s->groups + group) * s->from + c;
        WK_ISA(conv_window_plane)
        (&w, s->source + plane * conv_pixels(s->size) * (int64_t)wk_bytes(s->dtype),
         window + (size_t)c * k->channel);
    }
    for (int64_t i = 0; i < s->to; i++)
        for (int64_t y = 0; y < rows; y++) {
            const conv_patches *to = s->patches;
            int64_t result = group * s->to + i;
            int64_t at = image * to->out.image + result * to->out.channel + z * to->out.slab +
                         (first + y) * to->out.row;
            do_row(k, window + y * axis[1].step * w.row * values, memory + i * k->taps * values, result, line,
                   to->out.data + at * (int64_t)wk_bytes(to->out.dtype));
        }
}

static void task(void *ctx, int64_t i)
{
    work *k = ctx;
    size_t bytes = k->weights + k->line + (size_t)k->s->from * k->channel + SLACK;
    char *memory = wk_block_alloc(bytes);
    if (!memory) {
        atomic_store(&k->failed, true);
        return;
    }
    for (int64_t unit = i * k->group; unit < conv_min((i + 1) * k->group, k->units); unit++)
        do_unit(k, unit, memory);
    wk_block_free(memory, bytes);
}

bool WK_ISA(conv_direct_run)(const conv_direct *s)
{
    work k = {.s = s};
    plan_work(&k);
    k.offsets = wk_alloc((size_t)conv_max(k.taps, 1) * sizeof *k.offsets);
    if (!k.offsets)
        return false;
    WK_ISA(conv_offsets)(&k.window, s->axis, s->from, k.offsets);
    wk_parallel_for(conv_ceil_div(k.units, k.group), task, &k);
    wk_free(k.offsets);
    return !k.failed;
}
