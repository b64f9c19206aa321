/* conv.c: convolutions as products on the GEMM core; see conv_int.h for how. */
#include <stdatomic.h>
#include "conv_int.h"
#include "ops/act.h"
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

/* The image from the map: pixels phase, phase + stride, ... with the taps tap, tap + period, ... */
static conv_axis image_axis(const wk_conv_geometry *g, int d, int64_t phase, int64_t *tap)
{
    int64_t s = g->stride[d], period = wk_conv_tap_period(g, d);
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
    *w = (conv_window){.dtype = dtype, .source_dtype = dtype, .split = image ? g->stride[2] : 1};
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

/* The patches that axes take from a window. */
static conv_patches make_patches(const conv_window *w, const conv_axis *axis, const int64_t *offsets)
{
    return (conv_patches){.dtype = w->dtype,
                          .data = w->data,
                          .offsets = offsets,
                          .apart = axis[0].taps * axis[1].taps * axis[2].taps == 1,
                          .count = {axis[0].count, axis[1].count, axis[2].count},
                          .image = w->image,
                          .slab = axis[0].step * w->slab,
                          .row = axis[1].step * w->row};
}

/* ---- The map from the image, the image from the map ---- */

typedef enum { BY_PATCHES, BY_ROWS, BY_WINOGRAD, DIRECTLY } way;

typedef struct {
    wk_call *call;
    const wk_conv_geometry *g;
    const void *bias;             /* NULL or in the compute type */
    const wk_activation_ctx *act; /* NULL, or what results end with; not where they are made directly */
    int64_t from, to;             /* channels of a group: of the source, of the result */
    way way;
    const char *source; /* images of this round, from the first-th on */
    int64_t first, images;
    conv_window *window; /* of them, for patches */
    int64_t *offsets;    /* room for all channels and taps of a group */
    char *weights;       /* room for a phase's */
} gather;

/* Results at, at + stride, ... in each dimension of `size`. */
typedef struct {
    conv_axis axis[3];
    int64_t at[3];
    const int64_t *stride, *size;
    char *weights; /* [groups, to, from, taps], packed, or of an image [groups, from, taps, to] */
} phase;

static int64_t taps_of(const phase *f) { return f->axis[0].taps * f->axis[1].taps * f->axis[2].taps; }
/* From the weights of one result channel to the next's, and from one source channel and tap to the next. */
static int64_t weight_row(const gather *s, const phase *f)
{
    return gives_map(s->g) ? s->from * taps_of(f) : 1;
}
static int64_t weight_step(const gather *s) { return gives_map(s->g) ? 1 : s->to; }

/* Where a phase's results go. */
static void set_out(const gather *s, const phase *f, conv_patches *p)
{
    const wk_tensor *y = s->call->out[0];
    int64_t slab = f->size[1] * f->size[2], pixels = f->size[0] * slab;
    p->out.dtype = y->dtype;
    p->out.channel = pixels;
    p->out.image = s->g->groups * s->to * pixels;
    p->out.slab = f->stride[0] * slab;
    p->out.row = f->stride[1] * f->size[2];
    p->out.pixel = f->stride[2];
    p->out.data = moved(wk_ptr(y), y->dtype,
                        s->first * p->out.image + f->at[0] * slab + f->at[1] * f->size[2] + f->at[2]);
}

/* The call as the ways without patches take it; patches is room for where results go. */
static conv_direct without_patches(const gather *s, const phase *f, conv_patches *patches)
{
    conv_direct d = {.dtype = s->call->dtype,
                     .source = s->source,
                     .images = s->images,
                     .groups = s->g->groups,
                     .from = s->from,
                     .to = s->to,
                     .weights = f->weights,
                     .weight_row = weight_row(s, f),
                     .weight_step = weight_step(s),
                     .bias = s->bias,
                     .act = s->act,
                     .patches = patches};
    *patches = (conv_patches){0};
    memcpy(d.axis, f->axis, sizeof d.axis);
    memcpy(d.size, gives_map(s->g) ? s->g->image : s->g->map, sizeof d.size);
    set_out(s, f, patches);
    return d;
}

static wk_status run_without_patches(const gather *s, const phase *f)
{
    conv_patches patches;
    conv_direct d = without_patches(s, f, &patches);
    conv_outcome outcome = CONV_ODD;
    if (s->way == BY_WINOGRAD && WK_ISA(conv_winograd_takes)(&d)) /* not every phase is like the largest */
        outcome = WK_ISA(conv_winograd_run)(&d);
    bool done = outcome == CONV_DONE;
    if (outcome == CONV_ODD)
        done = s->way == DIRECTLY ? WK_ISA(conv_direct_run)(&d) : WK_ISA(conv_rows_run)(&d);
    return done ? WK_OK : wk_fail(WK_ERR_MEMORY, "out of memory for a window");
}

static wk_status run_phase(const gather *s, const phase *f)
{
    if (s->way != BY_PATCHES)
        return run_without_patches(s, f);
    wk_dtype dtype = s->call->dtype;
    products p = {.groups = s->g->groups, .window_group = s->from * s->window->channel, .bias_group = s->to};
    WK_ISA(conv_offsets)(s->window, f->axis, s->from, s->offsets);
    p.patches = make_patches(s->window, f->axis, s->offsets);
    set_out(s, f, &p.patches);
    wk_gemm_args *g = &p.gemm;
    g->m = s->to;
    g->n = s->images * conv_pixels(p.patches.count);
    g->k = s->from * taps_of(f);
    g->a = (wk_mat){f->weights, dtype, weight_row(s, f), weight_step(s)};
    g->row_bias = s->bias;
    g->act = s->act ? WK_ISA(wk_activation_row) : NULL;
    g->act_ctx = s->act;
    g->pack_b = WK_ISA(conv_pick_pack)(dtype);
    g->pack_b_pairs = WK_ISA(conv_pack_pairs);
    p.a_group = s->to * g->k;
    if (s->images == 1 && conv_pixels(f->stride) == 1) { /* results are a matrix as it is */
        g->c = (wk_mat){p.patches.out.data, dtype, p.patches.out.channel, 1};
        p.c_group = s->to * p.patches.out.channel;
    } else {
        g->c.dtype = wk_stat_dtype(dtype);
        g->store_c = WK_ISA(conv_store);
        p.out_group = s->to * p.patches.out.channel;
    }
    return run_products(&p);
}

/* The one phase of a map. */
static phase map_phase(const wk_conv_geometry *g, const wk_tensor *weight)
{
    static const int64_t one[3] = {1, 1, 1};
    return (phase){.axis = {map_axis(g, 0), map_axis(g, 1), map_axis(g, 2)},
                   .stride = one,
                   .size = g->map,
                   .weights = wk_ptr(weight)};
}

static wk_status run_map(const gather *s, const wk_tensor *weight)
{
    phase f = map_phase(s->g, weight);
    return run_phase(s, &f);
}

/* The weights of the taps that a phase uses, with result channels side by side: [groups, map channels of a group, taps,
 * image channels of a group]. */
typedef struct {
    const char *src;
    char *dst;
    size_t bytes;
    int64_t to, kernel, taps[3], steps[3]; /* steps: from one used tap to the next, in elements */
} turning;

/* One map channel. */
static void turn_task(void *ctx, int64_t map)
{
    const turning *t = ctx;
    int64_t bytes = (int64_t)t->bytes, used = t->taps[0] * t->taps[1] * t->taps[2];
    const char *src = t->src + map * t->to * t->kernel * bytes;
    char *dst = t->dst + map * used * t->to * bytes;
    for (int64_t z = 0; z < t->taps[0]; z++)
        for (int64_t y = 0; y < t->taps[1]; y++)
            for (int64_t x = 0; x < t->taps[2]; x++, dst += t->to * bytes)
                WK_ISA(wk_block_gather)
    (t->bytes, src + (z * t->steps[0] + y * t->steps[1] + x * t->steps[2]) * bytes, t->kernel, dst, t->to);
}

static void phase_weights(const gather *s, const wk_tensor *weight, const conv_axis *axis, const int64_t *tap)
{
    const wk_conv_geometry *g = s->g;
    int64_t area = g->kernel[1] * g->kernel[2], first = tap[0] * area + tap[1] * g->kernel[2] + tap[2];
    turning t = {.src = moved(wk_ptr(weight), weight->dtype, first),
                 .dst = s->weights,
                 .bytes = wk_bytes(weight->dtype),
                 .to = s->to,
                 .kernel = g->kernel[0] * area,
                 .taps = {axis[0].taps, axis[1].taps, axis[2].taps},
                 .steps = {area, g->kernel[2], 1}};
    for (int d = 0; d < 3; d++)
        t.steps[d] *= wk_conv_tap_period(g, d);
    wk_parallel_for(g->map_channels, turn_task, &t);
}

static wk_status run_image(const gather *s, const wk_tensor *weight)
{
    const wk_conv_geometry *g = s->g;
    phase f = {.stride = g->stride, .size = g->image, .weights = s->weights};
    int64_t tap[3];
    for (f.at[0] = 0; f.at[0] < conv_min(g->stride[0], g->image[0]); f.at[0]++) {
        f.axis[0] = image_axis(g, 0, f.at[0], &tap[0]);
        for (f.at[1] = 0; f.at[1] < conv_min(g->stride[1], g->image[1]); f.at[1]++) {
            f.axis[1] = image_axis(g, 1, f.at[1], &tap[1]);
            for (f.at[2] = 0; f.at[2] < conv_min(g->stride[2], g->image[2]); f.at[2]++) {
                f.axis[2] = image_axis(g, 2, f.at[2], &tap[2]);
                phase_weights(s, weight, f.axis, tap);
                WK_TRY(run_phase(s, &f));
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

/* The way, by a phase with as many taps as any. */
static way way_of(const gather *s, const wk_tensor *weight)
{
    if (WK_ISA(conv_direct_takes)(s->from, s->to))
        return DIRECTLY;
    const wk_conv_geometry *g = s->g;
    conv_patches patches;
    int64_t tap;
    phase f = map_phase(g, weight);
    if (!gives_map(g)) {
        f = (phase){.stride = g->stride, .size = g->image};
        for (int d = 0; d < 3; d++) {
            int64_t first =
                (g->stride[d] - g->padding[d] % g->stride[d]) % g->stride[d]; /* the one of tap 0 */
            f.axis[d] = image_axis(g, d, conv_min(first, g->image[d] - 1), &tap);
        }
    }
    conv_direct d = without_patches(s, &f, &patches);
    if (WK_ISA(conv_winograd_takes)(&d))
        return BY_WINOGRAD;
    return WK_ISA(conv_rows_takes)(&d) ? BY_ROWS : BY_PATCHES;
}

/* What a gather needs beside its source; the number of images of a round. */
static wk_status make_gather(gather *s, const wk_tensor *weight, int64_t *round)
{
    const wk_conv_geometry *g = s->g;
    bool map = gives_map(g);
    s->from = (map ? g->image_channels : g->map_channels) / g->groups;
    s->to = (map ? g->map_channels : g->image_channels) / g->groups;
    plan_window(g, s->call->dtype, s->window);
    *round = s->images = g->n;
    s->way = way_of(s, weight);
    if (s->way == BY_PATCHES) {
        WK_TRY(make_window(s->call, g, s->window, round));
        s->offsets = scratch(s->call, WK_I64, s->from * conv_pixels(g->kernel));
    }
    if (!map)
        s->weights = scratch(s->call, weight->dtype, wk_count(weight));
    return wk_error_status();
}

static wk_status gather_all(wk_call *c, const wk_activation_ctx *act)
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
    if (wk_pending())
        return wk_error_status();
    gather s = {.call = c, .g = &g, .window = &w, .bias = bias ? wk_ptr(bias) : NULL, .act = act};
    WK_TRY(make_gather(&s, weight, &round));
    for (s.first = 0; s.first < g.n; s.first += s.images) {
        s.images = conv_min(round, g.n - s.first);
        s.source = moved(wk_ptr(source), c->dtype, s.first * w.channels * conv_pixels(w.source));
        if (s.way == BY_PATCHES)
            WK_ISA(conv_window_fill)(&w, s.source, s.images);
        WK_TRY(gives_map(&g) ? run_map(&s, weight) : run_image(&s, weight));
    }
    return WK_OK;
}

static wk_status run_data(wk_call *c) { return gather_all(c, NULL); }

/* conv2d_bias_act, where a product has the last word. */
static wk_status run_conv_act(wk_call *c)
{
    wk_act a = wk_act_of(c);
    wk_activation_ctx act = {.fn = WK_ISA(wk_activation_block)(a.kind, wk_dtypes[c->dtype].compute),
                             .numbers.f = {a.alpha, a.beta}};
    return gather_all(c, act.fn ? &act : NULL);
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
    WK_ISA(conv_offsets)(&w, axis, from, offsets);
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

static const char *refuse_act(const wk_call *c)
{
    wk_conv_geometry g;
    if (c->in[WK_CONV_ACT_Z])
        return "a residual";
    if (wk_conv_geometry_of(c, &g) != WK_OK)
        return "bad arguments";
    bool direct = WK_ISA(conv_direct_takes)(g.image_channels / g.groups, g.map_channels / g.groups);
    return direct ? "a convolution of few channels" : refuse(c);
}

#define RECORDS(op) \
    {op, "simd", run_data, refuse, NULL}, {op "_backward_data", "simd", run_data, refuse, NULL}, \
    { \
        op "_backward_weight", "simd", run_weight, refuse, NULL \
    }

const wk_impl WK_ISA(wk_cpu_conv)[] = {
    RECORDS("conv1d"),
    RECORDS("conv2d"),
    RECORDS("conv3d"),
    RECORDS("conv_transpose1d"),
    RECORDS("conv_transpose2d"),
    {"conv2d_bias_act", "simd", run_conv_act, refuse_act, NULL},
    {0},
};
