/* row_linear.c: linear, linear_act and rms_norm_linear of one row on the GPU: weights are read once, as fast as memory goes. */
#include "kernels/row_linear.h"
#include "gpu.h"
#include "matmul.h"
#include "ops/matmul.h"
#include "wick/ops.h"

/* Registers for two: a block of the next kernel begins beside the last one of this. */
static const wk_kernel kernel = {"row_linear", "row_linear", "row_linear_args", WK_ROW_LINEAR_THREADS,
                                 .types = 1,   .ints = 2,    .blocks = 2};

/* t, packed and at a multiple of 16 bytes; NULL with an error. */
static const wk_tensor *row_of(const wk_tensor *t)
{
    const wk_tensor *row = wk_tensor_packed(t);
    return row && (size_t)wk_ptr(row) % 16 ? wk_copy(row) : row;
}

/* As many blocks as share the device, all of them with the same number of turns. */
static int64_t choose_blocks(const wk_gpu *g, int64_t n)
{
    int64_t waves = WK_ROW_LINEAR_THREADS / g->facts.wave, groups = (n + waves - 1) / waves;
    int64_t most = (g->driver->kind == WK_KIND_CUDA ? 1 : 2) * (int64_t)g->facts.units;
    int64_t turns = (groups + most - 1) / most;
    return (groups + turns - 1) / turns;
}

/* What x and the weights say. */
static row_linear_args args_of(const wk_call *c, const wk_tensor *x, const wk_tensor *w,
                               const wk_tensor *bias)
{
    return (row_linear_args){.x = wk_ptr(x),
                             .weight = wk_ptr(w),
                             .bias = bias ? wk_ptr(bias) : NULL,
                             .bias_step = bias ? bias->strides[0] : 0,
                             .y = wk_ptr(c->out[0]),
                             .pitch = w->strides[0],
                             .n = (i32)wk_count(c->out[0]),
                             .k = (i32)w->shape[1]};
}

/* NVIDIA's shared memory: where weights come to lies behind the row, which is filled up to whole rounds. */
static i32 room_at(int64_t k) { return (i32)((k + 2047) / 2048 * 2048 * 2); }
static i32 shared_for(int64_t k) { return room_at(k) + WK_ROW_LINEAR_THREADS * WK_ROW_LINEAR_DEEP * 16; }

static wk_status launch(const wk_call *c, row_linear_args *a, bool gated)
{
    /* More than half of a multiprocessor's, where kernels begin early: of two blocks on one of them and none on another both
     * would be late. */
    const i32 alone = 116 << 10;
    const wk_gpu *g = wk_gpu_of(c->device);
    wk_grid grid = {.x = choose_blocks(g, a->n)};
    if (g->driver->kind == WK_KIND_CUDA) {
        a->room = room_at(a->k);
        grid.shared = shared_for(a->k);
    }
    if (g->facts.early && grid.shared < alone && alone <= g->facts.shared_bytes)
        grid.shared = alone;
    return WK_LAUNCH(c, &kernel,
                     WK_INSTANCE(.t = {(unsigned char)c->dtype}, .i = {a->norm != NULL, (short)gated}), grid,
                     *a);
}

/* Why weights cannot be read so, or x is not one row; NULL where they can. */
static const char *refuse(const wk_call *c, const wk_tensor *x, const wk_tensor *w, int64_t longest)
{
    int64_t k = w->shape[1];
    if (wk_bytes(c->dtype) != 2)
        return "a dtype of more than 16 bits";
    if (wk_count(x) != k || k == 0 || w->shape[0] == 0 || w->shape[0] > INT32_MAX / 2)
        return "not one row";
    if (k % 8 || k > longest)
        return "a row that is too long, or no multiple of 8";
    const wk_gpu *g = wk_gpu_of(c->device);
    if (g->driver->kind == WK_KIND_CUDA && shared_for(k) > g->facts.shared_bytes - 1024)
        return "a row that takes more shared memory than there is";
    if (w->strides[1] != 1 || w->strides[0] % 8 || (size_t)wk_ptr(w) % 16)
        return "weights that cannot be read 16 bytes at a time";
    return NULL;
}

/* ---- linear, linear_act ---- */

bool wk_gpu_takes_row(const wk_call *c)
{
    const wk_tensor *w = c->in[1];
    /* Few results of a long row: more waves than results have work where the row is cut. */
    bool few = w->shape[1] >= 1024 && w->shape[0] <= 8 * (int64_t)wk_gpu_of(c->device)->facts.units;
    return !few && refuse(c, c->in[0], w, WK_ROW_LINEAR_K) == NULL;
}

wk_status wk_gpu_row_linear(const wk_call *c, const wk_tensor *z, int64_t act)
{
    const wk_tensor *x = row_of(c->in[0]);
    if (!x)
        return wk_error_status();
    row_linear_args a = args_of(c, x, c->in[1], c->in[2]);
    a.z = z ? wk_ptr(z) : NULL;
    a.act = (i32)act;
    return launch(c, &a, false);
}

/* ---- rms_norm_linear ---- */

enum { X, RESIDUAL, NORM, WEIGHT, BIAS };

wk_status wk_gpu_norm_linear(wk_call *c)
{
    const wk_norm_linear_params *p = c->params;
    const wk_tensor *x = row_of(c->in[X]), *norm = row_of(c->in[NORM]);
    const wk_tensor *residual = c->in[RESIDUAL] ? row_of(c->in[RESIDUAL]) : NULL;
    if (!x || !norm || (c->in[RESIDUAL] && !residual))
        return wk_error_status();
    row_linear_args a = args_of(c, x, c->in[WEIGHT], c->in[BIAS]);
    a.residual = residual ? wk_ptr(residual) : NULL;
    a.norm = wk_ptr(norm);
    a.sum = c->out[1] ? wk_ptr(c->out[1]) : NULL;
    a.eps = p->eps;
    if (p->gated)
        a.apart = a.n * a.pitch;
    return launch(c, &a, p->gated != 0);
}

const char *wk_gpu_refuse_norm_linear(const wk_call *c)
{
    return refuse(c, c->in[X], c->in[WEIGHT], WK_ROW_LINEAR_NORM_K);
}
