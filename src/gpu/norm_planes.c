/* norm_planes.c: norms in passes: sums of pieces of planes, statistics of the sums, a pass that applies them. */
#include "norm.h"

static const wk_kernel measure_kernel = {"norm_planes", "norm_measure", "norm_planes_args",
                                         256,           .types = 1,     .ints = 3};
static const wk_kernel columns_kernel = {"norm_planes", "norm_columns", "norm_columns_args",
                                         256,           .types = 1,     .ints = 1};
/* Without a gradient, with one. */
static const wk_kernel apply_kernel[] = {
    {"norm_planes", "norm_apply", "norm_planes_args", 256, .types = 1, .ints = 3, .blocks = 5},
    {"norm_planes", "norm_apply", "norm_planes_args", 256, .types = 1, .ints = 3},
};
#define FINISH(name) \
    { \
        "norm_planes", name, "norm_finish_args", 256, .types = 1, .blocks = 1 \
    }
static const wk_kernel finish_kernels[] = {
    [WK_FINISH_TRAIN] = FINISH("norm_finish_train"),
    [WK_FINISH_BATCH_GRAD] = FINISH("norm_finish_batch_grad"),
    [WK_FINISH_ROWS] = FINISH("norm_finish_rows"),
    [WK_FINISH_ROWS_GRAD] = FINISH("norm_finish_rows_grad"),
    [WK_FINISH_WEIGHTS] = FINISH("norm_finish_weights"),
};

enum { CHUNK = 1 << 13, LONGEST_CHUNK = 1 << 28, STRIP = 64 };

/* ---- the steps ---- */

/* Chunks as long as they may be while there are enough of them for the device. */
static void cut_planes(const wk_call *c, norm_planes_args *a, i64 planes)
{
    i64 wanted = (i64)wk_gpu_of(c->device)->facts.units * 8, chunk = a->inner * planes / wanted;
    chunk = chunk < CHUNK ? CHUNK : chunk > LONGEST_CHUNK ? LONGEST_CHUNK : chunk / CHUNK * CHUNK;
    a->chunks = (a->inner + chunk - 1) / chunk;
    a->chunk = chunk;
    a->units = planes * a->chunks;
    a->by_chunks = wk_divisor_if_small(a->chunks);
    a->by_inner = wk_divisor_if_small(a->inner);
    a->by_channels = wk_divisor_if_small(a->channels);
}

static double *room_for(const wk_call *c, i64 doubles)
{
    wk_tensor *t = wk_tensor_new(c->device, WK_F64, 1, &doubles);
    return t ? wk_ptr(t) : NULL;
}

wk_status wk_planes_measure(const wk_call *c, norm_planes_args *a, i64 planes, int sums)
{
    cut_planes(c, a, planes);
    i64 n = a->inner < a->chunk ? a->inner : a->chunk;
    int wave = wk_gpu_of(c->device)->facts.wave, lanes = n <= 128 ? 8 : n <= 1024 ? wave : 256;
    int vec = wk_pack_width(c->dtype, a->inner, (const void *[]){a->x, a->dy, a->weight}, 3);
    a->parts = room_for(c, (sums == WK_SUMS_BOTH ? 4 : 2) * a->units);
    if (!a->parts)
        return wk_error_status();
    wk_grid grid = {.x = wk_blocks(a->units, 256 / lanes, WK_GRID_MAX)};
    return WK_LAUNCH(
        c, &measure_kernel,
        WK_INSTANCE(.t = {(unsigned char)c->dtype}, .i = {(short)vec, (short)sums, (short)lanes}), grid, *a);
}

wk_status wk_columns_measure(const wk_call *c, norm_columns_args *a, int sums, i64 *strips)
{
    i64 tiles = (a->columns + 31) / 32, wanted = (i64)wk_gpu_of(c->device)->facts.units * 8 / tiles + 1;
    a->strip = (a->n_rows + wanted - 1) / wanted;
    a->strip = a->strip < STRIP ? STRIP : a->strip;
    *strips = (a->n_rows + a->strip - 1) / a->strip;
    a->parts = room_for(c, 2 * *strips * a->columns);
    if (!a->parts)
        return wk_error_status();
    return WK_LAUNCH(c, &columns_kernel, WK_INSTANCE(.t = {(unsigned char)c->dtype}, .i = {(short)sums}),
                     ((wk_grid){.x = *strips ? tiles : 0, .y = *strips}), *a);
}

wk_status wk_norm_finish(const wk_call *c, norm_finish_args *a, int kind)
{
    int waves = 256 / wk_gpu_of(c->device)->facts.wave;
    a->by_each = wk_divisor_if_small(a->each);
    a->by_groups = wk_divisor_if_small(a->groups);
    a->by_channels = wk_divisor_if_small(a->channels);
    a->by_chunks = wk_divisor_if_small(a->chunks);
    return WK_LAUNCH(c, &finish_kernels[kind], WK_INSTANCE(.t = {(unsigned char)c->dtype}),
                     ((wk_grid){.x = wk_blocks(a->families, waves, WK_GRID_MAX)}), *a);
}

wk_status wk_planes_apply(const wk_call *c, norm_planes_args *a)
{
    int vec = wk_pack_width(c->dtype, a->count, (const void *[]){a->x, a->dy, a->y}, 3);
    if (a->count == 0)
        return WK_OK;
    a->by_inner = wk_divisor_if_small(a->inner);
    a->by_channels = wk_divisor_if_small(a->channels);
    a->small = ((a->by_rows ? a->count / a->inner : a->channels) | a->inner) >> 30 == 0;
    int weights = WK_WEIGHTS_SINGLY;
    if (a->inner % vec == 0 && !a->weight && !a->bias)
        weights = WK_WEIGHTS_NONE;
    else if (a->by_rows && a->small && !a->ends &&
             wk_pack_width(c->dtype, a->inner, (const void *[]){a->weight, a->bias}, 2) >= vec)
        weights = WK_WEIGHTS_PACKED;
    return WK_LAUNCH(
        c, &apply_kernel[a->dy != NULL],
        WK_INSTANCE(.t = {(unsigned char)c->dtype}, .i = {(short)vec, a->dy != NULL, (short)weights}),
        ((wk_grid){.x = wk_blocks(a->count, 256 * vec * 4, WK_GRID_MAX)}), *a);
}

/* ---- rows in passes ---- */

/* A row of group norm is its channels' planes; one of layer and rms norm is a plane whose elements all have weights, the
 * same in every row. */
typedef struct {
    norm_planes_args a;
    norm_finish_args f;
    i64 planes;
} row_plan;

static wk_status plan_rows(const wk_call *c, const wk_group_shape *s, const wk_tensor *weight, row_plan *p)
{
    bool grouped = s->inner > 1 || s->groups > 1;
    const wk_tensor *x = wk_tensor_packed(c->in[0]);
    if (!x)
        return wk_error_status();
    *p = (row_plan){.planes = s->samples * s->groups * (grouped ? s->channels : 1)};
    p->a = (norm_planes_args){.x = wk_ptr(x),
                              .weight = grouped ? NULL : wk_ptr_or_null(weight),
                              .inner = grouped ? s->inner : s->channels,
                              .channels = grouped ? s->channels : 1,
                              .count = wk_count(x),
                              .by_rows = 1,
                              .centred = strncmp(c->op->name, "rms", 3) != 0};
    p->f = (norm_finish_args){.x = p->a.x,
                              .families = s->samples * s->groups,
                              .outer = 1,
                              .origin_step = s->channels * s->inner,
                              .inverse_count = 1 / (double)(s->channels * s->inner),
                              .eps = WK_PARAMS(c, wk_norm_params)->eps,
                              .weight = grouped ? wk_ptr_or_null(weight) : NULL,
                              .groups = s->groups,
                              .channels = grouped ? s->channels : 0,
                              .centred = p->a.centred};
    return WK_OK;
}

/* Room for four numbers of every plane. */
static wk_status make_numbers(const wk_call *c, row_plan *p)
{
    wk_tensor *numbers = wk_tensor_new(c->device, wk_stat_dtype(c->dtype), 2, (int64_t[]){p->planes, 4});
    if (!numbers)
        return wk_error_status();
    p->a.numbers = p->f.numbers = wk_ptr(numbers);
    return WK_OK;
}

static void take_parts(row_plan *p)
{
    p->f.parts = p->a.parts;
    p->f.units = p->a.units;
    p->f.each = p->a.channels * p->a.chunks;
    p->f.chunks = p->a.chunks;
}

wk_status wk_gpu_norm_long(const wk_call *c, const wk_group_shape *s, const wk_tensor *weight,
                           const wk_tensor *bias)
{
    row_plan p;
    WK_TRY(plan_rows(c, s, weight, &p));
    WK_TRY(make_numbers(c, &p));
    WK_TRY(wk_planes_measure(c, &p.a, p.planes, WK_SUMS_X));
    take_parts(&p);
    *(p.f.channels ? &p.f.bias : &p.a.bias) = wk_ptr_or_null(bias);
    WK_TRY(wk_norm_finish(c, &p.f, WK_FINISH_ROWS));
    p.a.y = wk_ptr(c->out[0]);
    return wk_planes_apply(c, &p.a);
}

/* dweight and dbias of layer and rms norm: sums down the columns, by the rows' statistics. */
static wk_status element_weights(const wk_call *c, const row_plan *p)
{
    norm_columns_args a = {.x = p->a.x,
                           .dy = p->a.dy,
                           .rows = p->f.rows,
                           .n_rows = p->planes,
                           .columns = p->a.inner,
                           .by_inner = wk_divisor_of(1)};
    i64 strips;
    WK_TRY(wk_columns_measure(c, &a, WK_SUMS_ROWS, &strips));
    return wk_gpu_norm_sum(c, WK_F64, a.parts, strips, a.columns);
}

static wk_status channel_weights(const wk_call *c, const row_plan *p, const wk_group_shape *s)
{
    norm_finish_args f = p->f;
    f.families = s->groups * s->channels;
    f.outer = s->samples;
    f.each = p->a.chunks;
    f.dweight = c->out[1] ? wk_ptr(c->out[1]) : NULL;
    f.dbias = c->out[2] ? wk_ptr(c->out[2]) : NULL;
    return wk_norm_finish(c, &f, WK_FINISH_WEIGHTS);
}

wk_status wk_gpu_norm_long_backward(const wk_call *c, const wk_group_shape *s, const wk_tensor *weight)
{
    row_plan p;
    WK_TRY(plan_rows(c, s, weight, &p));
    const wk_tensor *dy = wk_tensor_packed(c->in[1]);
    if (!dy)
        return wk_error_status();
    p.a.dy = wk_ptr(dy);
    WK_TRY(wk_planes_measure(c, &p.a, p.planes, WK_SUMS_BOTH));
    take_parts(&p);
    if (c->out[0])
        WK_TRY(make_numbers(c, &p));
    if ((c->out[1] || c->out[2]) && !(p.f.rows = room_for(c, 3 * p.f.families)))
        return wk_error_status();
    WK_TRY(wk_norm_finish(c, &p.f, WK_FINISH_ROWS_GRAD));
    if (p.f.rows)
        WK_TRY(p.f.channels ? channel_weights(c, &p, s) : element_weights(c, &p));
    if (!c->out[0])
        return WK_OK;
    p.a.y = wk_ptr(c->out[0]);
    return wk_planes_apply(c, &p.a);
}
