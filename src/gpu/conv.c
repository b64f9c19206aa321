/* conv.c: convolutions and their gradients on the GPU by wick's own kernels. */
#include "conv.h"
#include "ops/act.h"
#include "families.h"
#include "kernels/conv.h"
#include "kernels/depthwise.h"
#include "matmul.h"
#include "ops/act.h"
#include "planes.h"
#include "wick/matmul.h"

static const wk_kernel conv_tiles = {"conv", "conv_tiles", "conv_args", 256, .types = 1, .ints = 3};
static const wk_kernel conv_patch = {"conv_patch", "conv_patch", "conv_args", 256, .types = 1, .ints = 2};
static const wk_kernel conv_phases = {"conv", "conv_phases", "conv_phases_args", 64, .types = 1};
static const wk_kernel conv_sum = {"conv", "conv_sum", "conv_sum_args", 256, .types = 1};
static const wk_kernel depth_map = {"depthwise", "depth_map", "depth_args", 256, .types = 1};
static const wk_kernel depth_3x3 = {"depthwise", "depth_3x3", "depth_args", 256, .types = 1, .ints = 1};
static const wk_kernel depth_image = {"depthwise", "depth_image", "depth_args", 256, .types = 1};
static const wk_kernel depth_weight = {"depthwise", "depth_weight", "depth_sum_args", 256, .types = 1};
static const wk_kernel channel_sum = {"depthwise", "channel_sum", "depth_sum_args", 256, .types = 1};

/* Forms of the tile, as in conv_tile.h. */
enum { NARROW, SMALL, LOW, MIDDLE, LARGE, LOW_LONG };
static const struct {
    int m, n, k;
} shapes[] = {{16, 256, 8}, {64, 64, 16}, {32, 128, 16}, {64, 128, 16}, {128, 128, 8}, {32, 256, 0}};

typedef struct {
    wk_conv_geometry g;
    int way; /* CONV_MAP and its like */
    const wk_tensor *image, *map, *weight, *bias;
    wk_tensor *out;
    conv_end end;
} plan;

static int64_t product(const int64_t v[3]) { return v[0] * v[1] * v[2]; }
static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
static wk_divisor divisor_of(int64_t d) { return wk_divisor_of(d > 0 ? d : 1); }

/* ---- which call is what ---- */

static int way_of(const wk_conv_geometry *g)
{
    if (g->role == WK_CONV_BACKWARD_WEIGHT)
        return CONV_WEIGHT;
    if (g->transposed == (g->role == WK_CONV_BACKWARD_DATA))
        return CONV_MAP;
    return product(g->stride) > 1 ? CONV_PHASES : CONV_IMAGE;
}

/* Kernels count pixels and taps with 31 bits, elements with 64. */
static const char *refuse(const wk_call *c)
{
    wk_conv_geometry g;
    if (wk_conv_geometry_of(c, &g) != WK_OK)
        return "sizes";
    double image = (double)g.n, map = (double)g.n, taps = 1;
    for (int d = 0; d < 3; d++) {
        double reach = (double)g.map[d] * (double)g.stride[d] + (double)g.kernel[d] * (double)g.dilation[d];
        if (reach + 2 * (double)g.padding[d] + (double)g.image[d] > INT32_MAX)
            return "sizes of 2^31 and more";
        image *= (double)g.image[d];
        map *= (double)g.map[d];
        taps *= (double)g.kernel[d];
    }
    if (image > INT32_MAX || map > INT32_MAX || taps * (double)g.image_channels > INT32_MAX ||
        taps * (double)g.map_channels > INT32_MAX)
        return "2^31 pixels and more";
    return NULL;
}

/* Rows of pixels that are not walked by one are copied: every tap would gather them again. */
static const wk_tensor *with_rows(const wk_tensor *t)
{
    int last = t->rank - 1;
    return t->shape[last] > 1 && t->strides[last] != 1 ? wk_tensor_packed(t) : t;
}

static wk_status make_plan(const wk_call *c, plan *p)
{
    WK_TRY(wk_conv_geometry_of(c, &p->g));
    bool turned = p->g.transposed;
    p->way = way_of(&p->g);
    p->out = c->out[0];
    const wk_tensor *x = with_rows(c->in[0]), *y = NULL;
    if (p->way == CONV_WEIGHT) {
        y = with_rows(c->in[1]);
        p->image = turned ? y : x;
        p->map = turned ? x : y;
        return x && y ? WK_OK : wk_error_status();
    }
    p->weight = wk_tensor_packed(c->in[1]);
    p->bias = p->g.role == WK_CONV_FORWARD && c->in[2] ? wk_tensor_packed(c->in[2]) : NULL;
    p->image = p->way == CONV_MAP ? x : NULL;
    p->map = p->way == CONV_MAP ? NULL : x;
    return x && p->weight ? WK_OK : wk_error_status();
}

/* ---- what kernels see ---- */

static conv_view view_of(const wk_tensor *t, int64_t group_channels)
{
    int dims = t->rank - 2;
    conv_view v = {.p = wk_ptr(t), .n = t->strides[0], .c = t->strides[1]};
    for (int d = 0; d < dims; d++)
        v.s[3 - dims + d] = t->strides[2 + d];
    v.group = group_channels * v.c;
    return v;
}

/* The map from the image; turned: the image from a map made with stride 1. */
static void fill_space(const wk_conv_geometry *g, bool turned, conv_space *s)
{
    const int64_t *size = turned ? g->map : g->image, *pixels = turned ? g->image : g->map;
    for (int d = 0; d < 3; d++) {
        s->axis[d] = (conv_axis){.size = (i32)size[d],
                                 .step = (i32)g->stride[d],
                                 .first = (i32)(turned ? g->padding[d] : -g->padding[d]),
                                 .hop = (i32)(turned ? -g->dilation[d] : g->dilation[d]),
                                 .tap_step = 1,
                                 .pixel_step = 1,
                                 .taps = divisor_of(g->kernel[d]),
                                 .pixels = divisor_of(pixels[d])};
    }
    s->taps = divisor_of(product(g->kernel));
    s->pixels = divisor_of(product(pixels));
}

/* The image from a map made with a stride: pixels and taps of the largest phase. */
static wk_status make_phases(const wk_call *c, const wk_conv_geometry *g, conv_args *a, int64_t *pixels,
                             int64_t *taps)
{
    conv_phases_args p = {.count = 1};
    *pixels = *taps = 1;
    for (int d = 0; d < 3; d++) {
        int64_t phases = smaller(g->stride[d], g->image[d]);
        p.dim[d] =
            (conv_geometry_dim){(i32)g->image[d],   (i32)g->kernel[d],   (i32)g->stride[d],
                                (i32)g->padding[d], (i32)g->dilation[d], (i32)wk_conv_tap_period(g, d)};
        p.size[d] = (i32)g->map[d];
        p.phases[d] = divisor_of(phases);
        p.count *= (u32)phases;
        *pixels *= ceil_div(g->image[d], g->stride[d]);
        *taps *= ceil_div(g->kernel[d], p.dim[d].period);
        a->kernel[d] = (i32)g->kernel[d];
    }
    wk_tensor *spaces = wk_tensor_new(c->device, WK_U8, 2, (int64_t[]){p.count, (int64_t)sizeof(conv_space)});
    if (!spaces)
        return wk_error_status();
    a->phases = divisor_of(p.count);
    a->spaces = p.spaces = wk_ptr(spaces);
    wk_grid grid = {.x = wk_blocks(p.count, 64, WK_GRID_MAX)};
    return WK_LAUNCH(c, &conv_phases, WK_INSTANCE(.t = {WK_U8}), grid, p);
}

/* Rows, columns and depth of the product of one group (and phase). */
typedef struct {
    int64_t m, n, k, batch;
} extent;

static wk_status fill_product(const wk_call *c, const plan *p, conv_args *a, extent *e)
{
    const wk_conv_geometry *g = &p->g;
    int64_t taps = product(g->kernel), image_c = g->image_channels / g->groups,
            map_c = g->map_channels / g->groups;
    bool weight = p->way == CONV_WEIGHT, turned = p->way == CONV_IMAGE || p->way == CONV_PHASES;
    const int64_t *result = turned ? g->image : g->map;
    const wk_tensor *gathered = turned ? p->map : p->image;
    int64_t pixels = product(result), channels = turned ? map_c : image_c, images = g->n;
    fill_space(g, turned, &a->space);
    if (wk_count(gathered) == 0 || product(g->map) == 0) /* nothing to gather, all padding */
        *(weight ? &images : &channels) = 0;
    a->b = view_of(gathered, channels);
    a->taps = (i32)taps;
    a->images = (i32)images;
    a->channels = (i32)channels;
    a->m = (i32)(turned ? image_c : map_c);
    a->out_c = weight ? channels * taps : pixels;
    a->out_n = pixels * a->m * g->groups;
    a->out_high = (i32)result[1];
    a->out_wide = (i32)result[2];
    *e = weight ? (extent){a->m, channels * taps, images * pixels, g->groups}
                : (extent){a->m, images * pixels, channels * taps, g->groups};
    if (p->way == CONV_PHASES) {
        int64_t phase_taps;
        WK_TRY(make_phases(c, g, a, &pixels, &phase_taps));
        e->n = images * pixels;
        e->k = channels * phase_taps;
        e->batch *= a->phases.d;
    }
    a->a = weight ? view_of(p->map, map_c)
                  : (conv_view){.p = wk_ptr(p->weight), .group = channels * a->m * taps};
    return WK_OK;
}

/* ---- products ---- */

static int64_t tiles_of(const extent *e, int shape)
{
    return ceil_div(e->m, shapes[shape].m) * ceil_div(e->n, shapes[shape].n) * e->batch;
}

/* The most parts that k is worth cutting into. */
static int64_t most_splits(const extent *e, int shape)
{
    enum { LEAST_STEPS = 4, MOST = 1024 };
    return larger(smaller(e->k / (shapes[shape].k * LEAST_STEPS), MOST), 1);
}

/* The largest tile that is not mostly empty and, cut along k, gives work to a good part of the device. */
static int pick_shape(const wk_call *c, const extent *e)
{
    int units = wk_gpu_of(c->device)->facts.units;
    if (e->m <= shapes[NARROW].m && e->n > shapes[SMALL].n)
        return NARROW;
    if (c->dtype == WK_F64 || e->n <= shapes[SMALL].n)
        return SMALL;
    if (e->m <= shapes[LOW].m)
        return LOW;
    bool large = e->m > shapes[MIDDLE].m && 4 * tiles_of(e, LARGE) * most_splits(e, LARGE) >= units;
    return large ? LARGE : MIDDLE;
}

/* Into how many parts k is cut, so that there are blocks for the whole device. */
static int64_t pick_splits(const wk_call *c, const extent *e, int shape, int64_t total)
{
    enum { MOST_BYTES = 1 << 28 };
    int64_t want = (shape >= LOW ? 2 : 4) * (int64_t)wk_gpu_of(c->device)->facts.units;
    int64_t most = smaller(most_splits(e, shape), MOST_BYTES / 8 / larger(total, 1));
    return larger(smaller(want / larger(tiles_of(e, shape), 1), most), 1);
}

static wk_status add_up(const wk_call *c, const wk_tensor *partial, const wk_tensor *bias,
                        const wk_tensor *out, int64_t pixels, const conv_end *end)
{
    conv_sum_args a = {.partial = wk_ptr(partial),
                       .out = wk_ptr(out),
                       .total = wk_count(out),
                       .splits = (i32)partial->shape[0],
                       .pixels = divisor_of(pixels),
                       .channels = divisor_of(bias ? bias->shape[0] : 1),
                       .bias = bias ? wk_ptr(bias) : NULL,
                       .end = *end};
    wk_grid grid = {.x = wk_blocks(a.total, 256, WK_GRID_MAX)};
    return WK_LAUNCH(c, &conv_sum, WK_INSTANCE(.t = {(unsigned char)out->dtype}), grid, a);
}

static wk_status run_tiles(const wk_call *c, const plan *p)
{
    conv_args a = {.out = wk_ptr(p->out),
                   .total = wk_count(p->out),
                   .bias = p->bias ? wk_ptr(p->bias) : NULL,
                   .end = p->end};
    extent e;
    WK_TRY(fill_product(c, p, &a, &e));
    int shape = pick_shape(c, &e);
    int64_t splits = pick_splits(c, &e, shape, a.total);
    a.k_each = (i32)(ceil_div(ceil_div(e.k, splits), shapes[shape].k) * shapes[shape].k);
    splits = larger(ceil_div(e.k, larger(a.k_each, 1)), 1);
    a.m_tiles = divisor_of(ceil_div(e.m, shapes[shape].m));
    a.n_tiles = divisor_of(ceil_div(e.n, shapes[shape].n));
    a.work = (u32)tiles_of(&e, shape);
    wk_tensor *partial = NULL;
    if (splits > 1) {
        partial = wk_tensor_new(c->device, wk_stat_dtype(c->dtype), 2, (int64_t[]){splits, a.total});
        if (!partial)
            return wk_error_status();
        a.partial = wk_ptr(partial);
    }
    wk_instance instance = {.t = {(unsigned char)c->dtype},
                            .i = {(short)p->way, (short)shape, product(p->g.kernel) <= 32}};
    wk_grid grid = {.x = smaller(a.work, WK_GRID_MAX), .z = splits};
    grid.y = ceil_div(a.work, grid.x);
    a.abreast = (u32)grid.x;
    WK_TRY(WK_LAUNCH(c, &conv_tiles, &instance, grid, a));
    return partial ? add_up(c, partial, p->bias, p->out, a.out_c, &p->end) : WK_OK;
}

/* ---- patches of planes ---- */

/* CDNA's multiply f32 too. */
static bool has_f32_matrix(const wk_call *c)
{
    const wk_gpu *g = wk_gpu_of(c->device);
    return g->facts.wave == 64 && wk_gpu_has_matrix(g);
}

/* Columns of what BN pixels of a plane see, when all of that fits; else 0. */
static int64_t patch_wide(const wk_call *c, const plan *p, int shape)
{
    const wk_conv_geometry *g = &p->g;
    const int64_t *out = p->way == CONV_MAP ? g->map : g->image;
    int64_t n = shapes[shape].n, taps = product(g->kernel), pixels = product(out);
    if (p->way > CONV_IMAGE || !has_f32_matrix(c) || c->dtype == WK_F64 || product(g->stride) > 1 ||
        taps < 4 || taps > CONV_PATCH_TAPS || out[0] > 1 || g->kernel[0] > 1 || g->padding[0] > 0)
        return 0;
    int64_t wide = out[2] + (g->kernel[2] - 1) * g->dilation[2];
    int64_t high = smaller((n - 1 + out[2] - 1) / out[2] + 1, out[1]) + (g->kernel[1] - 1) * g->dilation[1];
    bool full = 4 * pixels >= 3 * ceil_div(pixels, n) * n,
         rows = g->map_channels / g->groups > shapes[NARROW].m;
    return full && rows && wide * high <= CONV_PATCH ? wide : 0;
}

/* done: whether there was a form of the tile for it. */
static wk_status run_patch(const wk_call *c, const plan *p, bool *done)
{
    conv_args a = {.out = wk_ptr(p->out), .bias = p->bias ? wk_ptr(p->bias) : NULL, .end = p->end};
    extent e;
    int64_t m = (p->way == CONV_MAP ? p->g.map_channels : p->g.image_channels) / p->g.groups;
    int shape = m <= shapes[LOW_LONG].m ? LOW_LONG : MIDDLE;
    int64_t wide = patch_wide(c, p, shape);
    *done = wide > 0 && m > shapes[NARROW].m;
    if (!*done)
        return WK_OK;
    WK_TRY(fill_product(c, p, &a, &e));
    int64_t tiles = ceil_div(a.out_c, shapes[shape].n);
    a.image_tiles = divisor_of(tiles);
    a.patch_wide = divisor_of(wide);
    a.m_tiles = divisor_of(ceil_div(e.m, shapes[shape].m));
    a.n_tiles = divisor_of(tiles * p->g.n);
    a.work = (u32)((int64_t)a.m_tiles.d * a.n_tiles.d * e.batch);
    wk_grid grid = {.x = smaller(a.work, WK_GRID_MAX)};
    grid.y = ceil_div(a.work, grid.x);
    a.abreast = (u32)grid.x;
    wk_instance instance = {.t = {(unsigned char)c->dtype}, .i = {(short)p->way, (short)shape}};
    return WK_LAUNCH(c, &conv_patch, &instance, grid, a);
}

/* ---- gradients for kernels of one tap: products of the tensors as they are ---- */

/* A tensor of pixels as [n, channels, pixels]; false where its dimensions are not one after the other. */
static bool as_matrices(const wk_tensor *t, wk_tensor *m)
{
    *m = *t;
    int64_t pixels = 1;
    for (int d = t->rank - 1; d >= 2; d--) {
        if (t->shape[d] > 1 && t->strides[d] != pixels)
            return false;
        pixels *= t->shape[d];
    }
    m->rank = 3;
    m->shape[2] = pixels;
    m->strides[2] = 1;
    return true;
}

static wk_tensor weight_matrix(const wk_tensor *weight)
{
    wk_tensor m = *weight;
    m.rank = 2;
    m.strides[1] = 1;
    return m;
}

/* Every tap of every pixel is inside, and the same pixel's. Not for results that end with a bias or more: tiles do that on the
 * way. */
static bool is_pointwise(const plan *p)
{
    const wk_conv_geometry *g = &p->g;
    bool one =
        g->role != WK_CONV_FORWARD && g->groups == 1 && product(g->kernel) == 1 && product(g->stride) == 1;
    return one && g->padding[0] == 0 && g->padding[1] == 0 && g->padding[2] == 0 && wk_count(p->out) > 0 &&
           g->image_channels > 0 && g->map_channels > 0 && product(g->map) > 0 && g->n > 0;
}

/* The sum over images of map . image^T, by images where that is less than the images themselves. */
static wk_status pointwise_weight(const wk_call *c, const plan *p, const wk_tensor *map, wk_tensor image,
                                  bool *done)
{
    const wk_conv_geometry *g = &p->g;
    int64_t m = g->map_channels, k = g->image_channels;
    image = wk_flipped(&image);
    *done = g->n == 1 || (c->dtype == wk_stat_dtype(c->dtype) && m * k <= (m + k) * product(g->map));
    if (!*done)
        return WK_OK;
    if (g->n == 1) {
        wk_tensor out = *p->out;
        out.rank = 3;
        memcpy(out.shape, (int64_t[]){1, m, k}, 3 * sizeof *out.shape);
        memcpy(out.strides, (int64_t[]){m * k, k, 1}, 3 * sizeof *out.strides);
        return wk_matmul_into(map, &image, &out);
    }
    wk_tensor *parts = wk_matmul(map, &image);
    return parts ? add_up(c, parts, NULL, p->out, 1, &(conv_end){0}) : wk_error_status();
}

/* done: whether the layouts allowed it. */
static wk_status run_pointwise(const wk_call *c, const plan *p, bool *done)
{
    wk_tensor x, y, weight;
    *done = is_pointwise(p) && as_matrices(p->way == CONV_IMAGE ? p->map : p->image, &x) &&
            as_matrices(p->way == CONV_WEIGHT ? p->map : p->out, &y);
    if (!*done)
        return WK_OK;
    if (p->way == CONV_WEIGHT)
        return pointwise_weight(c, p, &y, x, done);
    weight = weight_matrix(p->weight);
    if (p->way == CONV_IMAGE)
        weight = wk_flipped(&weight);
    return wk_matmul_into(&weight, &x, &y);
}

static wk_status run_product(const wk_call *c, const plan *p)
{
    bool done;
    WK_TRY(run_pointwise(c, p, &done));
    if (done)
        return WK_OK;
    WK_TRY(run_patch(c, p, &done));
    return done ? WK_OK : run_tiles(c, p);
}

/* ---- one image channel a group ---- */

static bool is_depthwise(const wk_conv_geometry *g)
{
    return g->image_channels == g->groups && g->map_channels <= 4 * g->groups;
}

/* The map from the image; turned: the image from the map. */
static void fill_axes(const wk_conv_geometry *g, bool turned, depth_axis *axis)
{
    for (int d = 0; d < 3; d++) {
        axis[d] = (depth_axis){.size = (i32)(turned ? g->map[d] : g->image[d]),
                               .step = turned ? 1 : (i32)g->stride[d],
                               .first = (i32)(turned ? g->padding[d] : -g->padding[d]),
                               .hop = (i32)(turned ? -g->dilation[d] : g->dilation[d]),
                               .taps = (i32)g->kernel[d],
                               .out = (i32)(turned ? g->image[d] : g->map[d]),
                               .by_out = divisor_of(turned ? g->image[d] : g->map[d]),
                               .by_stride = divisor_of(g->stride[d])};
    }
}

/* Kernels of 3 x 3, stride 1 or 2, without dilation. */
static bool is_3x3(const wk_conv_geometry *g)
{
    bool one = g->kernel[0] == 1 && g->stride[0] == 1 && g->padding[0] == 0;
    return one && g->kernel[1] == 3 && g->kernel[2] == 3 && g->dilation[1] == 1 && g->dilation[2] == 1 &&
           g->stride[1] == g->stride[2] && g->stride[1] <= 2;
}

static wk_status run_depthwise(const wk_call *c, const plan *p)
{
    const wk_conv_geometry *g = &p->g;
    bool turned = p->way != CONV_MAP;
    int64_t multiplier = g->map_channels / g->groups, channels = turned ? g->image_channels : g->map_channels;
    depth_args a = {.b = view_of(turned ? p->map : p->image, 1),
                    .weight = wk_ptr(p->weight),
                    .bias = p->bias ? wk_ptr(p->bias) : NULL,
                    .out = wk_ptr(p->out),
                    .multiplier = divisor_of(multiplier),
                    .end = p->end};
    fill_axes(g, turned, a.axis);
    bool three = is_3x3(g) && p->way != CONV_PHASES && !(turned && multiplier > 1);
    if (three && turned) { /* the taps from the last to the first, so that they go up as in the map */
        a.turned = 1;
        a.axis[1].first -= 2;
        a.axis[2].first -= 2;
    }
    a.rows = three ? WK_DEPTH_ROWS : wk_planes_rows(wk_count(p->out), a.axis[1].out);
    int64_t strips = ceil_div(a.axis[1].out, a.rows);
    a.strips = divisor_of(strips);
    a.walk.channels = divisor_of(channels);
    a.walk.rows = 1;
    int64_t size[] = {g->n * channels, a.axis[0].out * strips, a.axis[2].out};
    wk_instance instance = {.t = {(unsigned char)c->dtype}, .i = {three ? (short)a.axis[1].step : 0}};
    bool image = p->way == CONV_PHASES || (turned && multiplier > 1);
    const wk_kernel *k = three ? &depth_3x3 : image ? &depth_image : &depth_map;
    return wk_planes_run(c, k, &instance, &a, &a.walk, size, 1);
}

/* ---- gradients of weights and bias ---- */

/* A block for each channel, and more where channels are few. */
static wk_status run_sums(const wk_call *c, const wk_kernel *k, depth_sum_args *a, const wk_tensor *out)
{
    enum { LEAST = 2048, MOST = 256 };
    int64_t want = 4 * (int64_t)wk_gpu_of(c->device)->facts.units / larger(a->channels, 1);
    int64_t splits = larger(smaller(smaller(want, a->k / LEAST), MOST), 1);
    a->k_each = (u32)(ceil_div(ceil_div(a->k, splits), 256) * 256);
    splits = larger(ceil_div(a->k, larger(a->k_each, 1)), 1);
    wk_tensor *partial = NULL;
    if (splits > 1) {
        partial = wk_tensor_new(c->device, wk_stat_dtype(c->dtype), 2, (int64_t[]){splits, wk_count(out)});
        if (!partial)
            return wk_error_status();
        a->partial = wk_ptr(partial);
    }
    a->out = wk_ptr(out);
    wk_grid grid = {.x = smaller(a->channels, WK_GRID_MAX), .z = splits};
    WK_TRY(WK_LAUNCH(c, k, WK_INSTANCE(.t = {(unsigned char)c->dtype}), grid, *a));
    return partial ? add_up(c, partial, NULL, out, 1, &(conv_end){0}) : WK_OK;
}

static wk_status run_depthwise_weight(const wk_call *c, const plan *p)
{
    const wk_conv_geometry *g = &p->g;
    depth_sum_args a = {.map = view_of(p->map, 1),
                        .image = view_of(p->image, 1),
                        .pixels = divisor_of(product(g->map)),
                        .multiplier = divisor_of(g->map_channels / g->groups),
                        .channels = (u32)g->map_channels,
                        .taps = (u32)product(g->kernel),
                        .k = (u32)(g->n * product(g->map))};
    fill_axes(g, false, a.axis);
    return run_sums(c, &depth_weight, &a, p->out);
}

static wk_status run_bias(const wk_call *c, const plan *p, const wk_tensor *out)
{
    const wk_conv_geometry *g = &p->g;
    const int64_t *size = g->transposed ? g->image : g->map;
    depth_sum_args a = {.map = view_of(g->transposed ? p->image : p->map, 1),
                        .pixels = divisor_of(product(size)),
                        .channels = (u32)out->shape[0],
                        .taps = 1,
                        .k = (u32)(g->n * product(size))};
    fill_axes(g, g->transposed, a.axis);
    return run_sums(c, &channel_sum, &a, out);
}

/* ---- calls ---- */

static wk_status run_conv(wk_call *c)
{
    plan p = {0};
    if (wk_count(c->out[0]) == 0)
        return WK_OK;
    WK_TRY(make_plan(c, &p));
    return is_depthwise(&p.g) ? run_depthwise(c, &p) : run_product(c, &p);
}

static wk_status run_weight(wk_call *c)
{
    plan p = {0};
    WK_TRY(make_plan(c, &p));
    if (p.out && wk_count(p.out) > 0)
        WK_TRY(is_depthwise(&p.g) ? run_depthwise_weight(c, &p) : run_product(c, &p));
    return c->out[1] && wk_count(c->out[1]) > 0 ? run_bias(c, &p, c->out[1]) : WK_OK;
}

/* ---- conv2d_bias_act: activations that are straight lines ---- */

static bool end_of(wk_act act, conv_end *end)
{
    *end = (conv_end){.slope = 1, .lo = -INFINITY, .hi = INFINITY, .some = 1};
    switch (act.kind) {
    case WK_ACT_NONE: break;
    case WK_ACT_RELU: end->lo = 0; break;
    case WK_ACT_RELU6: end->lo = 0, end->hi = 6; break;
    case WK_ACT_LEAKY_RELU: end->slope = act.alpha; break;
    case WK_ACT_CLAMP: end->lo = act.alpha, end->hi = act.beta; break;
    default: return false;
    }
    return true;
}

static const char *refuse_act(const wk_call *c)
{
    conv_end end;
    const char *reason;
    wk_call plain = {.op = wk_op_find("conv2d"),
                     .params = &WK_PARAMS(c, wk_act_params)->conv,
                     .in = {c->in[0], c->in[1], c->in[2]},
                     .dtype = c->dtype,
                     .device = c->device};
    if (!end_of(wk_act_of(c), &end))
        return "an activation that convolutions do not end with";
    const wk_impl *best = wk_call_pick(&plain, &reason);
    return best && best->run != run_conv ? "conv2d has a faster implementation" : refuse(c);
}

static wk_status run_conv_act(wk_call *c)
{
    plan p = {0};
    const wk_tensor *given = c->in[WK_CONV_ACT_Z], *z = given ? wk_tensor_packed(given) : NULL;
    if (wk_count(c->out[0]) == 0)
        return WK_OK;
    if (given && !z)
        return wk_error_status();
    end_of(wk_act_of(c), &p.end);
    p.end.z = z ? wk_ptr(z) : NULL;
    WK_TRY(make_plan(c, &p));
    return is_depthwise(&p.g) ? run_depthwise(c, &p) : run_product(c, &p);
}

/* ---- for the libraries ---- */

wk_status wk_conv_add_bias(const wk_call *c)
{
    const wk_act_params none = {.act = WK_ACT_NONE, .dim = 1};
    return wk_call_run(&(wk_call){
        .op = wk_op_find("bias_act"), .params = &none, .in = {c->out[0], c->in[2]}, .out = {c->out[0]}});
}

wk_status wk_conv_bias_gradient(const wk_call *c)
{
    plan p = {0};
    WK_TRY(make_plan(c, &p));
    return wk_count(c->out[1]) > 0 ? run_bias(c, &p, c->out[1]) : WK_OK;
}

#define ROWS(name) \
    {#name, "kernel", run_conv, refuse, NULL}, {#name "_backward_data", "kernel", run_conv, refuse, NULL}, \
        {#name "_backward_weight", "kernel", run_weight, refuse, NULL},

const wk_impl wk_gpu_impls_conv[] = {
    /* clang-format off */
    ROWS(conv1d) ROWS(conv2d) ROWS(conv3d) ROWS(conv_transpose1d) ROWS(conv_transpose2d)
    /* clang-format on */
    {"conv2d_bias_act", "kernel", run_conv_act, refuse_act, NULL},
    {0},
};
