/* norm_linear.c: products of one row with weights, rms_norm_linear among them, in one kernel. */
#include "kernels/norm_linear.h"
#include "gpu.h"
#include "matmul.h"
#include "ops/matmul.h"
#include "wick/ops.h"

static const wk_kernel kernel = {"norm_linear", "norm_linear", "norm_linear_args", 256,
                                 .types = 1,    .ints = 1,     .blocks = 2};

enum { X, RESIDUAL, NORM, WEIGHT, BIAS };

/* t, packed and at a multiple of 16 bytes; NULL with an error. */
static const wk_tensor *row_of(const wk_tensor *t)
{
    const wk_tensor *row = wk_tensor_packed(t);
    return row && (size_t)wk_ptr(row) % 16 ? wk_copy(row) : row;
}

/* As many blocks as share the device, all of them with the same number of turns. */
static wk_status launch(const wk_call *c, wk_dtype dtype, bool gated, const norm_linear_args *a)
{
    const wk_gpu *g = wk_gpu_of(c->device);
    int64_t waves = 256 / g->facts.wave, groups = (a->n + waves - 1) / waves,
            most = 2 * (int64_t)g->facts.units;
    int64_t turns = (groups + most - 1) / most;
    wk_grid grid = {.x = (groups + turns - 1) / turns};
    return WK_LAUNCH(c, &kernel, WK_INSTANCE(.t = {(unsigned char)dtype}, .i = {gated}), grid, *a);
}

bool wk_gpu_takes_row(const matmul_args *g, wk_dtype in, wk_dtype out)
{
    return in == out && wk_bytes(in) == 2 && g->m == 1 && g->batch == 1 && g->vec && !g->z && g->c_col == 1 &&
           g->k <= WK_NORM_LINEAR_ROOM && g->n < INT32_MAX / 2;
}

wk_status wk_gpu_row(const wk_call *c, const matmul_args *g, wk_dtype dtype)
{
    norm_linear_args a = {.x = g->a.data,
                          .weight = g->b.data,
                          .pitch = g->b.row,
                          .bias = g->bias,
                          .bias_step = g->bias_col,
                          .y = g->c,
                          .n = (i32)g->n,
                          .k = (i32)g->k,
                          .act = g->act};
    return launch(c, dtype, false, &a);
}

wk_status wk_gpu_norm_linear(wk_call *c)
{
    const wk_norm_linear_params *p = c->params;
    const wk_tensor *x = row_of(c->in[X]), *norm = row_of(c->in[NORM]), *w = c->in[WEIGHT],
                    *bias = c->in[BIAS];
    const wk_tensor *residual = c->in[RESIDUAL] ? row_of(c->in[RESIDUAL]) : NULL;
    if (!x || !norm || (c->in[RESIDUAL] && !residual))
        return wk_error_status();
    norm_linear_args a = {.x = wk_ptr(x),
                          .residual = residual ? wk_ptr(residual) : NULL,
                          .norm = wk_ptr(norm),
                          .weight = wk_ptr(w),
                          .bias = bias ? wk_ptr(bias) : NULL,
                          .bias_step = bias ? bias->strides[0] : 0,
                          .y = wk_ptr(c->out[0]),
                          .sum = c->out[1] ? wk_ptr(c->out[1]) : NULL,
                          .pitch = w->strides[0],
                          .n = (i32)wk_count(c->out[0]),
                          .k = (i32)w->shape[1],
                          .eps = p->eps};
    if (p->gated)
        a.apart = a.n * a.pitch;
    return launch(c, c->dtype, p->gated != 0, &a);
}

const char *wk_gpu_refuse_norm_linear(const wk_call *c)
{
    const wk_tensor *x = c->in[X], *w = c->in[WEIGHT];
    int64_t k = w->shape[1];
    if (wk_bytes(c->dtype) != 2)
        return "a dtype of more than 16 bits";
    if (wk_count(x) != k || k == 0 || w->shape[0] == 0 || w->shape[0] > INT32_MAX / 2)
        return "not one row";
    if (k % 8 || k > WK_NORM_LINEAR_K)
        return "a row that is too long, or no multiple of 8";
    if (w->strides[1] != 1 || w->strides[0] % 8 || (size_t)wk_ptr(w) % 16)
        return "weights that cannot be read 16 bytes at a time";
    return NULL;
}
