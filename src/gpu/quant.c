/* quant.c: the ops on quantised weights on the GPU: few rows of x by a kernel that reads the weights once; for many the
 * weights become floats first, and the rest is linear's. */
#include "ops/quant.h"
#include "families.h"
#include "gpu.h"
#include "ids.h"
#include "kernels/quant.h"
#include "matmul.h"
#include "ops/matmul.h"
#include "wick/ops.h"

static const wk_kernel dot_kernel = {"quant", "quant_dot", "quant_dot_args", 256, .types = 1, .ints = 2};
static const wk_kernel matrix_kernel = {"quant_matrix", "quant_matrix", "quant_dot_args", 256,
                                        .types = 1,     .ints = 2};
static const wk_kernel row_kernel = {"quant_row", "quant_row", "quant_dot_args", WK_QUANT_ROW_THREADS,
                                     .types = 1,  .ints = 1,   .blocks = 1};
static const wk_kernel rows_kernel = {"quant", "quant_rows", "quant_rows_args", 256, .types = 1, .ints = 1};

/* Whether the tensor's bytes begin, and its rows follow each other, at multiples of `bytes`. */
static bool is_aligned(const wk_tensor *t, size_t bytes)
{
    int64_t pitch = t->rank > 1 ? t->strides[t->rank - 2] * (int64_t)wk_bytes(t->dtype) : 0;
    return (size_t)wk_ptr(t) % bytes == 0 && pitch % (int64_t)bytes == 0;
}

/* weight as rows that the kernels can read: whole f16 in place, and words where a format is made of them. */
static const wk_tensor *readable(const wk_call *c, const wk_tensor *weight)
{
    const wk_tensor *w = wk_quant_rows(weight);
    size_t bytes = WK_PARAMS(c, wk_quant_params)->format == WK_Q4_K ? 16 : 2;
    return !w || is_aligned(w, bytes) ? w : wk_copy(w);
}

static int64_t pitch_of(const wk_tensor *w) { return w->rank == 2 ? w->strides[0] : w->shape[w->rank - 1]; }

/* ---- dequantize and qembedding ---- */

static wk_status launch_rows(const wk_call *c, quant_rows_args *a, wk_dtype dtype)
{
    wk_grid grid = {.x = wk_blocks(a->k / 8, 256, WK_GRID_MAX), .y = a->count < 65535 ? a->count : 65535};
    short format = (short)WK_PARAMS(c, wk_quant_params)->format;
    if (a->count == 0 || a->k == 0)
        return WK_OK;
    return WK_LAUNCH(c, &rows_kernel, WK_INSTANCE(.t = {(unsigned char)dtype}, .i = {format}), grid, *a);
}

/* All rows of weight as floats into y. */
static wk_status unpack(const wk_call *c, const wk_tensor *weight, const wk_tensor *y)
{
    const wk_tensor *w = readable(c, weight);
    if (!w)
        return wk_error_status();
    int64_t k = y->shape[y->rank - 1];
    quant_rows_args a = {
        .weight = wk_ptr(w), .pitch = pitch_of(w), .y = wk_ptr(y), .count = k ? wk_count(y) / k : 0, .k = k};
    return launch_rows(c, &a, y->dtype);
}

static wk_status run_dequantize(wk_call *c) { return unpack(c, c->in[0], c->out[0]); }

static wk_status run_qembedding(wk_call *c)
{
    const wk_tensor *w = readable(c, c->in[0]), *ids = wk_tensor_packed(c->in[1]);
    if (!w || !ids)
        return wk_error_status();
    quant_rows_args a = {.weight = wk_ptr(w),
                         .pitch = pitch_of(w),
                         .y = wk_ptr(c->out[0]),
                         .count = wk_count(ids),
                         .k = c->out[0]->shape[c->out[0]->rank - 1],
                         .ids = wk_ptr(ids),
                         .id_bytes = wk_id_bytes(ids->dtype),
                         .limit = w->shape[0],
                         .report = wk_report_of(c, 1)};
    return launch_rows(c, &a, c->out[0]->dtype);
}

/* ---- qlinear ---- */

/* Waves that share a row: as many as keep the device busy, with some steps left for each. */
static int choose_split(const wk_gpu *g, int64_t groups, int64_t k)
{
    int wave = g->facts.wave, most = 256 / wave, split = 1;
    while (split < most && k / 8 / wave / split > 8)
        split *= 2;
    while (split < most && groups * split < 16 * (int64_t)g->facts.units && k / 8 / wave / split > 1)
        split *= 2;
    return split;
}

/* Whether matrix units take the product: 16-bit x, and weights that can be read 16 bytes at a time. */
static bool takes_matrix(const wk_call *c, const wk_tensor *w)
{
    return wk_bytes(c->dtype) == 2 && wk_gpu_has_matrix(wk_gpu_of(c->device)) && is_aligned(w, 16) &&
           pitch_of(w) % 16 == 0;
}

/* Groups of 16 rows; waves that share one: enough for eight on a unit, each with a part of the columns to itself. */
static wk_status launch_matrix(const wk_call *c, quant_dot_args *a)
{
    const wk_gpu *g = wk_gpu_of(c->device);
    int64_t groups = (a->n + 15) / 16, waves = 256 / g->facts.wave;
    for (a->split = 1;
         a->split < waves && groups * a->split * 2 <= 16 * (int64_t)g->facts.units && a->k / a->split > 512;)
        a->split *= 2;
    wk_instance instance = {.t = {(unsigned char)c->dtype},
                            .i = {(short)WK_PARAMS(c, wk_quant_params)->format, a->m <= 8 ? 8 : 16}};
    wk_grid grid = {.x = (groups * a->split + waves - 1) / waves};
    return WK_LAUNCH(c, &matrix_kernel, &instance, grid, *a);
}

static wk_status launch_dot(const wk_call *c, quant_dot_args *a)
{
    const wk_gpu *g = wk_gpu_of(c->device);
    int rows = a->m == 1 ? 1 : a->m <= 4 ? 4 : WK_QUANT_ROWS;
    int together = WK_QUANT_GROUP(WK_PARAMS(c, wk_quant_params)->format, rows);
    int64_t groups = (a->n + together - 1) / together;
    a->split = choose_split(g, groups, a->k);
    int64_t per_block = 256 / g->facts.wave / a->split;
    wk_instance instance = {.t = {(unsigned char)c->dtype},
                            .i = {(short)WK_PARAMS(c, wk_quant_params)->format, (short)rows}};
    return WK_LAUNCH(c, &dot_kernel, &instance, (wk_grid){.x = wk_blocks(groups, per_block, WK_GRID_MAX)},
                     *a);
}

/* What one row of x takes of shared memory: itself as integers, and two units of some rows of weights for each wave. */
static int64_t row_shared(const wk_call *c, int64_t k)
{
    const wk_qformat_info *info = wk_quant_info(c);
    int64_t waves = WK_QUANT_ROW_THREADS / wk_gpu_of(c->device)->facts.wave;
    int64_t unit = WK_QUANT_ROW_UNIT(WK_PARAMS(c, wk_quant_params)->format) / info->block * info->bytes;
    return k / 64 * WK_QUANT_ROW_PAIR + 2 * WK_QUANT_ROW_ROWS * unit * waves;
}

/* Whether products of bytes take the only row of x. */
static bool takes_row(const wk_call *c, const quant_dot_args *a)
{
    const wk_gpu *g = wk_gpu_of(c->device);
    return g->driver->kind == WK_KIND_CUDA && a->m == 1 && a->k % 64 == 0 &&
           row_shared(c, a->k) <= g->facts.shared_bytes - 2048;
}

static wk_status launch_row(const wk_call *c, const quant_dot_args *a)
{
    wk_grid grid = {.x = wk_blocks(a->n, WK_QUANT_ROW_ROWS, wk_gpu_of(c->device)->facts.units),
                    .shared = (int)row_shared(c, a->k)};
    wk_instance instance = {.t = {(unsigned char)c->dtype},
                            .i = {(short)WK_PARAMS(c, wk_quant_params)->format}};
    return WK_LAUNCH(c, &row_kernel, &instance, grid, *a);
}

/* The weights are read once for all rows of x. */
static wk_status run_thin(const wk_call *c, const wk_tensor *w, int64_t m)
{
    const wk_tensor *x = wk_tensor_packed(c->in[0]), *bias = c->in[2];
    if (x && (size_t)wk_ptr(x) % (4 * wk_bytes(x->dtype)))
        x = wk_copy(x);
    if (!x)
        return wk_error_status();
    quant_dot_args a = {.weight = wk_ptr(w),
                        .pitch = pitch_of(w),
                        .x = wk_ptr(x),
                        .y = wk_ptr(c->out[0]),
                        .bias = bias ? wk_ptr(bias) : NULL,
                        .bias_step = bias ? bias->strides[0] : 0,
                        .n = w->shape[0],
                        .k = x->shape[x->rank - 1],
                        .m = (i32)m,
                        .act = (i32)WK_PARAMS(c, wk_quant_params)->act};
    if (!takes_matrix(c, w))
        return launch_dot(c, &a);
    return takes_row(c, &a) ? launch_row(c, &a) : launch_matrix(c, &a);
}

/* linear with the weights as floats. */
static wk_status run_many(wk_call *c)
{
    int64_t shape[2] = {c->in[1]->shape[0], c->in[0]->shape[c->in[0]->rank - 1]};
    wk_tensor *weight = wk_tensor_new(c->device, c->dtype, 2, shape);
    if (!weight)
        return wk_error_status();
    WK_TRY(unpack(c, c->in[1], weight));
    wk_linear_params p = {WK_PARAMS(c, wk_quant_params)->act};
    wk_call linear = {
        .op = wk_op_find("linear"), .params = &p, .in = {c->in[0], weight, c->in[2]}, .out = {c->out[0]}};
    return wk_call_run(&linear);
}

static wk_status run_qlinear(wk_call *c)
{
    int64_t count = wk_count(c->out[0]);
    if (count == 0)
        return WK_OK;
    int64_t m = count / c->in[1]->shape[0];
    int64_t k = c->in[0]->shape[c->in[0]->rank - 1];
    const wk_tensor *w = m <= 16 ? readable(c, c->in[1]) : NULL;
    if (m <= 16 && !w)
        return wk_error_status();
    int64_t most = w && takes_matrix(c, w) ? 16 : WK_QUANT_ROWS;
    bool thin = w && m <= most && k < (int64_t)1 << 30; /* the kernels count in 32 bits */
    return thin ? run_thin(c, w, m) : run_many(c);
}

const wk_impl wk_gpu_impls_quant[] = {
    {"qlinear", "kernel", run_qlinear, NULL, NULL},
    {"dequantize", "kernel", run_dequantize, NULL, NULL},
    {"qembedding", "kernel", run_qembedding, NULL, NULL},
    {0},
};
