/* norm_linear.c: rms_norm_linear of one row on the GPU, in one kernel. */
#include "kernels/norm_linear.h"
#include "gpu.h"
#include "matmul.h"
#include "ops/matmul.h"
#include "wick/ops.h"

static const wk_kernel kernel = {"norm_linear", "norm_linear", "norm_linear_args", 256,
                                 .types = 1,    .ints = 1,     .blocks = 4};

enum { X, RESIDUAL, NORM, WEIGHT, BIAS };

/* t, packed and at a multiple of 16 bytes; NULL with an error. */
static const wk_tensor *row_of(const wk_tensor *t)
{
    const wk_tensor *row = wk_tensor_packed(t);
    return row && (size_t)wk_ptr(row) % 16 ? wk_copy(row) : row;
}

/* As many blocks as share the device, all of them with the same number of turns. */
static int64_t choose_blocks(const wk_gpu *g, int64_t n)
{
    int64_t waves = 256 / g->facts.wave, groups = (n + waves - 1) / waves, most = 4 * (int64_t)g->facts.units;
    int64_t turns = (groups + most - 1) / most;
    return (groups + turns - 1) / turns;
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
    return WK_LAUNCH(c, &kernel, WK_INSTANCE(.t = {(unsigned char)c->dtype}, .i = {p->gated != 0}),
                     ((wk_grid){.x = choose_blocks(wk_gpu_of(c->device), a.n)}), a);
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
