/* ctc.c: the CTC loss on the GPU. */
#include "families.h"
#include "gpu.h"
#include "kernels/ctc.h"
#include "wick/ctc.h"

static const wk_kernel sums_kernel = {"ctc", "ctc_log_sums", "ctc_args", 256, .types = 1};
static const wk_kernel paths_kernel = {"ctc", "ctc_paths", "ctc_args", WK_CTC_STATES, .types = 1, .ints = 1};
static const wk_kernel long_kernel = {"ctc", "ctc_paths", "ctc_args", 512, .types = 1, .ints = 1};
static const wk_kernel gradient_kernel = {"ctc", "ctc_gradient", "ctc_args", 256, .types = 1, .blocks = 1};

static void take_tensors(const wk_call *c, ctc_args *a)
{
    const wk_ctc_options *p = c->params;
    const wk_tensor *x = c->in[0], *labels = c->in[1], *inputs = c->in[2], *counts = c->in[3];
    *a = (ctc_args){.x = wk_ptr(x),
                    .x_t = x->strides[0],
                    .x_b = x->strides[1],
                    .x_c = x->strides[2],
                    .steps = x->shape[0],
                    .batch = x->shape[1],
                    .classes = x->shape[2],
                    .labels = wk_ptr(labels),
                    .label_b = labels->strides[0],
                    .label_i = labels->strides[1],
                    .max_labels = labels->shape[1],
                    .input_lengths = wk_ptr(inputs),
                    .label_lengths = wk_ptr(counts),
                    .input_step = inputs->strides[0],
                    .label_step = counts->strides[0],
                    .input_wide = inputs->dtype == WK_I64,
                    .label_wide = counts->dtype == WK_I64,
                    .blank = (i32)p->blank,
                    .zero_infinity = (i32)p->zero_infinity,
                    .by_batch = wk_divisor_of(x->shape[1]),
                    .states = 2 * labels->shape[1] + 1,
                    .loss = wk_ptr(c->out[0]),
                    .dx = c->out[1] ? wk_ptr(c->out[1]) : NULL,
                    .report_labels = wk_report_of(c, 1),
                    .report_inputs = wk_report_of(c, 2),
                    .report_counts = wk_report_of(c, 3)};
}

static wk_status make_room(const wk_call *c, wk_dtype dtype, int64_t n, int64_t m, void *place)
{
    wk_tensor *t = wk_tensor_new(c->device, dtype, 2, (int64_t[]){n, m});
    if (!t)
        return wk_error_status();
    void *p = wk_ptr(t);
    memcpy(place, &p, sizeof p);
    return WK_OK;
}

/* The states of all steps are kept for a gradient, or where a block does not hold a step's. */
static wk_status make_rooms(const wk_call *c, ctc_args *a)
{
    WK_TRY(make_room(c, WK_F64, a->batch, 1, &a->log_probability));
    if (WK_PARAMS(c, wk_ctc_options)->logits)
        WK_TRY(make_room(c, wk_stat_dtype(c->dtype), a->steps, a->batch, &a->log_sums));
    if (a->dx || a->states > WK_CTC_STATES)
        WK_TRY(make_room(c, WK_F64, a->batch * a->steps, a->states, &a->paths[0]));
    if (!a->dx)
        return WK_OK;
    WK_TRY(make_room(c, WK_F64, a->batch * a->steps, a->states, &a->paths[1]));
    WK_TRY(make_room(c, WK_I32, a->batch, a->max_labels, &a->next));
    WK_TRY(make_room(c, WK_I32, a->batch, a->classes, &a->first));
    return wk_gpu_zero(c, a->first, (size_t)(a->batch * a->classes) * sizeof(i32));
}

static wk_status run_ctc(wk_call *c)
{
    ctc_args a;
    if (c->in[0]->shape[1] == 0)
        return WK_OK;
    take_tensors(c, &a);
    WK_TRY(make_rooms(c, &a));
    int wave = wk_gpu_of(c->device)->facts.wave;
    bool long_rows = a.states > WK_CTC_STATES;
    wk_grid by_rows = {.x = wk_blocks(a.steps * a.batch, 256 / wave, WK_GRID_MAX)};
    wk_grid by_sequences = {.x = wk_blocks(a.batch, 1, WK_GRID_MAX),
                            .y = a.dx ? 2 : 1,
                            .threads = long_rows ? 0 : (int)((a.states + wave - 1) / wave * wave)};
    if (a.log_sums)
        WK_TRY(WK_LAUNCH(c, &sums_kernel, WK_INSTANCE(.t = {(unsigned char)c->dtype}), by_rows, a));
    WK_TRY(WK_LAUNCH(c, long_rows ? &long_kernel : &paths_kernel,
                     WK_INSTANCE(.t = {(unsigned char)c->dtype}, .i = {long_rows}), by_sequences, a));
    if (!a.dx)
        return WK_OK;
    return WK_LAUNCH(c, &gradient_kernel, WK_INSTANCE(.t = {(unsigned char)c->dtype}), by_rows, a);
}

static const char *refuse_huge(const wk_call *c)
{
    const wk_tensor *x = c->in[0];
    return x->shape[1] > 0 && x->shape[0] > INT32_MAX / x->shape[1] ? "2^31 rows of x or more" : NULL;
}

const wk_impl wk_gpu_impls_ctc[] = {
    {"ctc_loss", "kernel", run_ctc, refuse_huge, NULL},
    {0},
};
