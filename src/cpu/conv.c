/* conv.c: convolutions as products on the GEMM core; see conv_int.h for how. */
#include <stdatomic.h>
#include "conv_int.h"
#include "core/families.h"
#include "core/pool.h"
#include "activation.h"
#include "block.h"
#include "reduce.h"
#include "strided.h"

enum {
    WINDOW_BYTES = 32 << 20, /* images whose windows are held at a time; at least one */
    WHOLE_SMALL = 1 << 21,   /* multiply-adds: up to here a group is not shared among threads, */
    WHOLE_MANY = 16,         /* nor when there are many of them */
};

/* ---- Axes ---- */

/* The map from the image. */
static conv_axis map_axis(const wk_conv_geometry *g, int d)
{
    return (conv_axis){g->map[d], g->stride[d], g->kernel[d], -g->padding[d], g->dilation[d]};
}

/* Every how many taps one of them reaches the same phase. */
static int64_t tap_period(int64_t stride, int64_t dilation)
{
    int64_t a = stride, b = dilation;
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return stride / a;
}

/* The image from the map: pixels phase, phase + stride, ... with the taps tap, tap + period, ... */
static conv_axis image_axis(const wk_conv_geometry *g, int d, int64_t phase, int64_t *tap)
{
    int64_t s = g->stride[d], period = tap_period(s, g->dilation[d]);
    int64_t at = phase + g->padding[d], t = 0;
    conv_axis a = {.count = conv_ceil_div(g->image[d] - phase, s), .step = 1};
    while (t < conv_min(period, g->kernel[d]) && (at - t * g->dilation[d]) % s != 0)
        t++;
    *tap = t;
    if (t == conv_min(period, g->kernel[d]))
        return a;
    a.taps = (g->kernel[d] - 1 - t) / period + 1;
    a.first = (at - t * g->dilation[d]) / s;
    a.hop = -(period * g->dilation[d] / s);
    return a;
}

/* ---- The two sides of a call ---- */

static bool gives_map(const wk_conv_geometry *g)
{
    return g->role == WK_CONV_BACKWARD_WEIGHT || g->transposed == (g->role == WK_CONV_BACKWARD_DATA);
}

/* A 1x1 kernel sees no rows: the pixels of an image are one. */
static void join_pixels(wk_conv_geometry *g)
{
    for (int d = 0; d < 3; d++)
        if (g->kernel[d] != 1 || g->stride[d] != 1 || g->padding[d] != 0 || g->image[d] != g->map[d])
            return;
    int64_t pixels = conv_pixels(g->image);
    memcpy(g->image, (int64_t[3]){1, 1, pixels}, sizeof g->image);
    memcpy(g->map, g->image, sizeof g->map);
}

/* The window on the image (for all but the image from the map, which has one on the map for all phases). */
static bool plan_window(const wk_conv_geometry *g, wk_dtype dtype, conv_window *w)
{
    bool image = gives_map(g);
    *w = (conv_window){.dtype = dtype, .split = image ? g->stride[2] : 1};
    w->channels = image ? g->image_channels : g->map_channels;
    memcpy(w->source, image ? g->image : g->map, sizeof w->source);
    for (int d = 0; d < 3; d++) {
        int64_t reach = (g->kernel[d] - 1) * g->dilation[d], last;
        w->lo[d] = image ? -g->padding[d] : conv_ceil_div(g->padding[d] - reach, g->stride[d]);
        if (__builtin_mul_overflow(g->map[d] - 1, g->stride[d], &last))
            return false;
        last = image ? last + reach - g->padding[d]
                     : conv_floor_div(g->image[d] - 1 + g->padding[d], g->stride[d]);
        w->size[d] = conv_max(last - w->lo[d] + 1, 1);
    }
    return WK_ISA(conv_window_plan)(w);
}

/* Images of one round, and memory for their windows. */
static wk_status make_window(wk_call *c, const wk_conv_geometry *g, conv_window *w, int64_t *images)
{
    *images = g->n;
    if (w->in_place)
        return WK_OK;
    int64_t bytes = w->image * (int64_t)wk_bytes(w->dtype);
    *images = conv_min(conv_max(WINDOW_BYTES / conv_max(bytes, 1), 1), g->n);
    wk_tensor *memory = wk_tensor_new(c->device, w->dtype, 2, (int64_t[]){*images, w->image});
    if (!memory)
        return wk_error_status();
    w->data = wk_ptr(memory);
    return WK_OK;
}

/* ---- Products ---- */

/* The products of all groups for a round of images. */
typedef struct {
    conv_patches patches; /* of the first group, as the product is */
    wk_gemm_args gemm;
    int64_t groups, window_group, out_group, a_group, c_group, bias_group; /* steps in elements */
    _Atomic bool failed;
} products;

static void *moved(const void *p, wk_dtype dtype, int64_t by)
{
    return p ? (char *)p + by * (int64_t)wk_bytes(dtype) : NULL;
}

static void group_task(void *ctx, int64_t i)
{
    products *s = ctx;
    conv_patches patches = s->patches;
    wk_gemm_args g = s->gemm;
    patches.data = moved(patches.data, patches.dtype, i * s->window_group);
    patches.out.data = moved(patches.out.data, patches.out.dtype, i * s->out_group);
    g.pack_ctx = &patches;
    g.a.data = moved(g.a.data, g.a.dtype, i * s->a_group);
    g.c.data = moved(g.c.data, g.c.dtype, i * s->c_group);
    g.row_bias = moved(g.row_bias, wk_stat_dtype(g.c.dtype), i * s->bias_group);
    if (!WK_ISA(wk_gemm)(&g))
        atomic_store(&s->failed, true);
}

static wk_status run_products(products *s)
{
    const wk_gemm_args *g = &s->gemm;
    double work = (double)g->m * (double)g->n * (double)g->k;
    if (work <= WHOLE_SMALL || s->groups >= WHOLE_MANY)
        wk_parallel_for(s->groups, group_task, s);
    else
        for (int64_t i = 0; i < s->groups; i++)
            group_task(s, i);
    return s->failed ? wk_fail(WK_ERR_MEMORY, "out of memory for packing the operands") : WK_OK;
}

/* Offsets of the rows of the patch matrix: channel by channel, tap by tap. */
static void find_offsets(const conv_window *w, const conv_axis *axis, int64_t channels, int64_t *offsets)
{
    for (int64_t c = 0; c < channels; c++)
        for (int64_t z = 0; z < axis[0].taps; z++)
            for (int64_t y = 0; y < axis[1].taps; y++)
                for (int64_t x = 0; x < axis[2].taps; x++)
                    *offsets++ = c * w->channel + (axis[0].first + z * axis[0].hop - w->lo[0]) * w->slab +
                                 (axis[1].first + y * axis[1].hop - w->lo[1]) * w->row +
                                 conv_window_column(w, axis[2].first + x * axis[2].hop - w->lo[2]);
}

/* The patches that axes take from a window. */
static conv_patches make_patches(const conv_window *w, const conv_axis *axis, const int64_t *offsets)
{
    return (conv_patches){.dtype = w->dtype,
                          .data = w->data,
                          .offsets = offsets,
                          .count = {axis[0].count, axis[1].count, axis[2].count},
                          .image = w->image,
                          .slab = axis[0].step * w->slab,
                          .row = axis[1].step * w->row};
}

/* ---- The map from the image, the image from the map ---- */

typedef struct {
    wk_call *call;
    const wk_conv_geometry *g;
    const conv_window *window;
    const void *bias; /* NULL or in the compute type */
    int64_t from, to; /* channels of a group: of the source, of the result */
    int64_t first, images;
    int64_t *offsets; /* room for all channels and taps of a group */
    char *weights;    /* room for a phase's */
} gather;

/* Results of one phase (at `phase`, every stride-th) with the weights a. */
static wk_status run_phase(const gather *s, const conv_axis *axis, const int64_t *phase,
                           const int64_t *stride, const int64_t *size, wk_mat a)
{
    const wk_tensor *y = s->call->out[0];
    int64_t pixels = conv_pixels(size), slab = size[1] * size[2], groups = s->g->groups;
    int64_t at = (s->first * groups * s->to) * pixels + phase[0] * slab + phase[1] * size[2] + phase[2];
    products p = {.groups = groups, .window_group = s->from * s->window->channel, .bias_group = s->to};
    find_offsets(s->window, axis, s->from, s->offsets);
    p.patches = make_patches(s->window, axis, s->offsets);
    p.gemm.m = s->to;
    p.gemm.n = s->images * conv_pixels(p.patches.count);
    p.gemm.k = s->from * axis[0].taps * axis[1].taps * axis[2].taps;
    p.gemm.a = a;
    p.a_group = s->to * p.gemm.k;
    p.gemm.pack_b = WK_ISA(conv_pick_pack)(y->dtype);
    p.gemm.pack_b_pairs = WK_ISA(conv_pack_pairs);
    p.gemm.row_bias = s->bias;
    if (s->images == 1 && conv_pixels(stride) == 1) {
        p.gemm.c = (wk_mat){moved(wk_ptr(y), y->dtype, at), y->dtype, pixels, 1};
        p.c_group = s->to * pixels;
        return run_products(&p);
    }
    p.gemm.c.dtype = wk_stat_dtype(y->dtype);
    p.gemm.store_c = WK_ISA(conv_store);
    p.out_group = s->to * pixels;
    p.patches.out.dtype = y->dtype;
    p.patches.out.data = moved(wk_ptr(y), y->dtype, at);
    p.patches.out.image = groups * s->to * pixels;
    p.patches.out.channel = pixels;
    p.patches.out.slab = stride[0] * slab;
    p.patches.out.row = stride[1] * size[2];
    p.patches.out.pixel = stride[2];
    return run_products(&p);
}

static wk_status run_map(const gather *s, const wk_tensor *weight)
{
    const wk_conv_geometry *g = s->g;
    conv_axis axis[3] = {map_axis(g, 0), map_axis(g, 1), map_axis(g, 2)};
    int64_t k = s->from * conv_pixels(g->kernel), one[3] = {1, 1, 1};
    return run_phase(s, axis, (int64_t[3]){0}, one, g->map, (wk_mat){wk_ptr(weight), weight->dtype, k, 1});
}

/* The weights of the taps that a phase uses, with the channels turned around: [groups, image channels of a group,
 * map channels of a group, taps]. */
static void phase_weights(const gather *s, const wk_tensor *weight, const conv_axis *axis, const int64_t *tap)
{
    const wk_conv_geometry *g = s->g;
    int64_t all = conv_pixels(g->kernel), area = g->kernel[1] * g->kernel[2];
    int64_t shape[6] = {g->groups, s->to, s->from, axis[0].taps, axis[1].taps, axis[2].taps}, packed[6];
    int64_t strides[6] = {s->from * s->to * all, all, s->to * all};
    for (int d = 0; d < 3; d++)
        strides[3 + d] = tap_period(g->stride[d], g->dilation[d]) * (d == 0   ? area
                                                                     : d == 1 ? g->kernel[2]
                                                                              : 1);
    wk_shape_strides(6, shape, packed);
    int64_t first = tap[0] * area + tap[1] * g->kernel[2] + tap[2];
    if (wk_shape_count(6, shape) > 0)
        WK_ISA(wk_strided_copy)
    (6, shape, wk_bytes(weight->dtype), moved(wk_ptr(weight), weight->dtype, first), strides, s->weights,
     packed);
}

static wk_status run_image(const gather *s, const wk_tensor *weight)
{
    const wk_conv_geometry *g = s->g;
    int64_t phase[3], tap[3];
    conv_axis axis[3];
    for (phase[0] = 0; phase[0] < conv_min(g->stride[0], g->image[0]); phase[0]++) {
        axis[0] = image_axis(g, 0, phase[0], &tap[0]);
        for (phase[1] = 0; phase[1] < conv_min(g->stride[1], g->image[1]); phase[1]++) {
            axis[1] = image_axis(g, 1, phase[1], &tap[1]);
            for (phase[2] = 0; phase[2] < conv_min(g->stride[2], g->image[2]); phase[2]++) {
                axis[2] = image_axis(g, 2, phase[2], &tap[2]);
                int64_t k = s->from * axis[0].taps * axis[1].taps * axis[2].taps;
                phase_weights(s, weight, axis, tap);
                WK_TRY(run_phase(s, axis, phase, g->stride, g->image,
                                 (wk_mat){s->weights, weight->dtype, k, 1}));
            }
        }
    }
    return WK_OK;
}

/* Memory for n elements; NULL with an error. */
static void *scratch(wk_call *c, wk_dtype dtype, int64_t n)
{
    wk_tensor *t = wk_tensor_new(c->device, dtype, 1, &n);
    return t ? wk_ptr(t) : NULL;
}

static wk_status run_data(wk_call *c)
{
    wk_conv_geometry g;
    conv_window w;
    int64_t round;
    WK_TRY(wk_conv_geometry_of(c, &g));
    if (wk_count(c->out[0]) == 0)
        return WK_OK;
    join_pixels(&g);
    const wk_tensor *source = wk_tensor_packed(c->in[0]), *weight = wk_tensor_packed(c->in[1]);
    const wk_tensor *bias = c->in[2] ? WK_ISA(wk_compute_copy)(c->in[2]) : NULL;
    if (!source || !weight || wk_pending())
        return wk_error_status();
    bool map = gives_map(&g);
    plan_window(&g, c->dtype, &w);
    WK_TRY(make_window(c, &g, &w, &round));
    gather s = {.call = c, .g = &g, .window = &w, .bias = bias ? wk_ptr(bias) : NULL};
    s.from = (map ? g.image_channels : g.map_channels) / g.groups;
    s.to = (map ? g.map_channels : g.image_channels) / g.groups;
    s.offsets = scratch(c, WK_I64, s.from * conv_pixels(g.kernel));
    s.weights = map ? NULL : scratch(c, weight->dtype, wk_count(weight));
    if (wk_pending())
        return wk_error_status();
    for (s.first = 0; s.first < g.n; s.first += s.images) {
        s.images = conv_min(round, g.n - s.first);
        int64_t at = s.first * w.channels * conv_pixels(w.source);
        WK_ISA(conv_window_fill)(&w, moved(wk_ptr(source), c->dtype, at), s.images);
        WK_TRY(map ? run_map(&s, weight) : run_image(&s, weight));
    }
    return WK_OK;
}

/* ---- The weights from both ---- */

/* [images, channels, pixels] as [channels, images, pixels]. */
static void channels_first(const char *src, char *dst, wk_dtype dtype, int64_t images, int64_t channels,
                           int64_t pixels)
{
    WK_ISA(wk_strided_copy)
    (3, (int64_t[]){channels, images, pixels}, wk_bytes(dtype), src,
     (int64_t[]){pixels, channels * pixels, 1}, dst, (int64_t[]){images * pixels, pixels, 1});
}

/* dweight = map [map channels, pixels of all images] . patches^T, for each group. Rounds add up in `sums`. */
static wk_status sum_weights(wk_call *c, const wk_conv_geometry *g, const wk_tensor *image,
                             const wk_tensor *map, wk_tensor *sums)
{
    conv_window w;
    conv_axis axis[3] = {map_axis(g, 0), map_axis(g, 1), map_axis(g, 2)};
    int64_t round, from = g->image_channels / g->groups, to = g->map_channels / g->groups;
    int64_t pixels = conv_pixels(g->map), columns = from * conv_pixels(g->kernel);
    plan_window(g, c->dtype, &w);
    WK_TRY(make_window(c, g, &w, &round));
    int64_t *offsets = scratch(c, WK_I64, columns);
    char *turned = round > 1 ? scratch(c, c->dtype, round * g->map_channels * pixels) : NULL;
    if (wk_pending())
        return wk_error_status();
    find_offsets(&w, axis, from, offsets);
    products p = {.groups = g->groups, .window_group = from * w.channel, .c_group = to * columns};
    p.gemm = (wk_gemm_args){.m = to,
                            .n = columns,
                            .c = {wk_ptr(sums), sums->dtype, columns, 1},
                            .pack_b = WK_ISA(conv_pack_transposed)};
    int64_t first = 0;
    do { /* once even when there is no image: the sums are 0 */
        int64_t images = conv_min(round, g->n - first);
        char *from_map = moved(wk_ptr(map), c->dtype, first * g->map_channels * pixels);
        WK_ISA(conv_window_fill)
        (&w, moved(wk_ptr(image), c->dtype, first * w.channels * conv_pixels(w.source)), images);
        if (images > 1)
            channels_first(from_map, turned, c->dtype, images, g->map_channels, pixels);
        p.patches = make_patches(&w, axis, offsets);
        p.gemm.k = images * pixels;
        p.gemm.a = (wk_mat){images > 1 ? turned : from_map, c->dtype, images * pixels, 1};
        p.a_group = to * p.gemm.k;
        WK_TRY(run_products(&p));
        p.gemm.accumulate = true;
        first += images;
    } while (first < g->n);
    return WK_OK;
}

static wk_status run_weight(wk_call *c)
{
    wk_conv_geometry g;
    WK_TRY(wk_conv_geometry_of(c, &g));
    wk_tensor *dweight = c->out[0], *dbias = c->out[1];
    if (dbias)
        WK_TRY(WK_ISA(wk_reduce)(WK_R_SUM, c->in[1], ~2u & ((1u << c->in[1]->rank) - 1), NULL, dbias, NULL));
    if (!dweight || wk_count(dweight) == 0)
        return WK_OK;
    join_pixels(&g);
    const wk_tensor *x = wk_tensor_packed(c->in[0]), *dy = wk_tensor_packed(c->in[1]);
    if (!x || !dy)
        return wk_error_status();
    wk_tensor *sums = dweight;
    if (wk_bytes(c->dtype) == 2) /* rounds are not to be rounded one by one */
        sums = wk_tensor_new(c->device, WK_F32, dweight->rank, dweight->shape);
    if (!sums)
        return wk_error_status();
    WK_TRY(sum_weights(c, &g, g.transposed ? dy : x, g.transposed ? x : dy, sums));
    if (sums != dweight)
        WK_ISA(wk_block_store)
        (c->dtype, WK_COMPUTE_F32, wk_ptr(sums), wk_ptr(dweight), wk_count(sums), false);
    return WK_OK;
}

/* ---- the table ---- */

static const char *refuse(const wk_call *c)
{
    wk_conv_geometry g;
    conv_window w;
    if (wk_conv_geometry_of(c, &g) != WK_OK)
        return "bad arguments";
    return plan_window(&g, c->dtype, &w) ? NULL : "far more padding than pixels";
}

#define RECORDS(op) \
    {op, "simd", run_data, refuse, NULL}, {op "_backward_data", "simd", run_data, refuse, NULL}, \
    { \
        op "_backward_weight", "simd", run_weight, refuse, NULL \
    }

const wk_impl WK_ISA(wk_cpu_conv)[] = {
    RECORDS("conv1d"),           RECORDS("conv2d"),           RECORDS("conv3d"),
    RECORDS("conv_transpose1d"), RECORDS("conv_transpose2d"), {0},
};
