/* loss.c: losses and their gradients. */
#include "core/families.h"
#include "core/memory.h"
#include "ops/loss.h"
#include "wick/loss.h"
#include "block.h"
#include "blocks.h"
#include "lines.h"

typedef struct {
    const int64_t *targets; /* -1 for padding */
    double *losses;         /* of every row */
    double scale;           /* of the gradient */
    bool gradient;
    void *lse; /* of every row, in the compute type; or NULL */
} class_loss;

typedef struct {
    double scale, delta;
    double *sums; /* of every block; NULL: the losses themselves go out */
} element_loss;

#include "real_f32.h"
#include "line.inc.h"
#include "loss.inc.h"
#include "real_f64.h"
#include "line.inc.h"
#include "loss.inc.h"

/* The numbers added up, in order, and divided. The mean over nothing is 0 / 0. */
static void store_total(wk_tensor *y, const double *parts, int64_t n, double count)
{
    double total = 0;
    for (int64_t i = 0; i < n; i++)
        total += parts[i];
    wk_store_f64(y->dtype, wk_ptr(y), total / count);
}

static double gradient_scale(int64_t reduction, int64_t count)
{
    return reduction == WK_REDUCE_MEAN && count > 0 ? 1 / (double)count : 1;
}

/* ---- classes ---- */

/* The largest number of an id dtype. */
static int64_t padding_id(wk_dtype dtype)
{
    int bits = 8 * (int)wk_bytes(dtype) - wk_dtypes[dtype].is_signed;
    return (int64_t)(~(uint64_t)0 >> (64 - bits));
}

/* The targets as int64, -1 for padding; *count gets how many are not. */
static wk_status read_targets(const wk_call *c, int64_t *targets, int64_t *count)
{
    const wk_tensor *t = c->in[1];
    int64_t b = c->in[0]->shape[0], classes = c->in[0]->shape[1], padding = padding_id(t->dtype);
    WK_ISA(wk_block_load)(t->dtype, wk_ptr(t), t->strides[0], targets, b);
    *count = 0;
    for (int64_t i = 0; i < b; i++) {
        if (targets[i] == padding) {
            targets[i] = -1;
            continue;
        }
        WK_NEED(targets[i] >= 0 && targets[i] < classes, c, WK_ERR_INDEX, "target",
                "expected classes from 0 to %lld, or %lld for padding, got %lld at %lld",
                (long long)classes - 1, (long long)padding, (long long)targets[i], (long long)i);
        ++*count;
    }
    return WK_OK;
}

static wk_status class_rows(wk_call *c, int64_t *targets, double *losses)
{
    const wk_loss_params *params = c->params;
    int64_t b = c->in[0]->shape[0], count;
    WK_TRY(read_targets(c, targets, &count));
    class_loss p = {targets, losses, gradient_scale(params->reduction, count), c->out[1] != NULL,
                    c->out[2] ? wk_ptr(c->out[2]) : NULL};
    wk_compute compute = wk_dtypes[c->dtype].compute;
    const wk_line_fn *fns = c->impl->data;
    wk_lines l = {.in = {c->in[0]},
                  .in_compute = {compute},
                  .n_in = 1,
                  .out = {c->out[1]},
                  .out_compute = {compute},
                  .n_out = c->out[1] != NULL,
                  .set = 2,
                  .fn = fns[compute == WK_COMPUTE_F64],
                  .ctx = &p};
    if (c->in[0]->shape[1] == 0) { /* every target is padding */
        memset(losses, 0, (size_t)b * sizeof *losses);
        if (p.lse)
            memset(p.lse, 0, (size_t)b * wk_bytes(c->out[2]->dtype));
    }
    WK_TRY(WK_ISA(wk_lines_run)(&l));
    if (params->reduction == WK_REDUCE_NONE)
        WK_ISA(wk_block_store)(c->dtype, WK_COMPUTE_F64, losses, wk_ptr(c->out[0]), b, false);
    else
        store_total(c->out[0], losses, b, params->reduction == WK_REDUCE_MEAN ? (double)count : 1);
    return WK_OK;
}

static wk_status run_classes(wk_call *c)
{
    int64_t b = c->in[0]->shape[0];
    size_t bytes = (size_t)b * 2 * sizeof(int64_t);
    int64_t *memory = b < INT64_MAX / 32 ? wk_block_alloc(bytes) : NULL;
    if (!memory)
        return wk_fail(WK_ERR_MEMORY, "out of memory for %lld targets", (long long)b);
    wk_status status = class_rows(c, memory, (double *)(memory + b));
    wk_block_free(memory, bytes);
    return status;
}

/* ---- elements ---- */

static wk_status run_elements(wk_call *c)
{
    const wk_loss_params *params = c->params;
    bool none = params->reduction == WK_REDUCE_NONE;
    int64_t count = wk_count(c->in[0]), blocks = (count + WK_BLOCK - 1) / WK_BLOCK;
    size_t bytes = none ? 0 : (size_t)(blocks + 1) * sizeof(double);
    double *sums = none ? NULL : wk_alloc(bytes);
    if (!none && !sums)
        return wk_fail(WK_ERR_MEMORY, "out of memory: %zu bytes", bytes);
    element_loss p = {gradient_scale(params->reduction, count), params->delta, sums};
    wk_compute compute = wk_dtypes[c->dtype].compute;
    const wk_blocks_fn *fns = c->impl->data;
    wk_blocks b = {.in = {c->in[0], c->in[1]},
                   .in_compute = {compute, compute},
                   .out = {none ? c->out[0] : NULL, c->out[1]},
                   .out_compute = {compute, compute},
                   .count = count,
                   .fn = fns[compute == WK_COMPUTE_F64],
                   .ctx = &p};
    wk_status status = WK_ISA(wk_blocks_run)(&b);
    if (!none)
        store_total(c->out[0], sums, blocks, params->reduction == WK_REDUCE_MEAN ? (double)count : 1);
    wk_free(sums);
    return status;
}

#define CLASSES(name) \
    { \
#name, "simd", run_classes, NULL, (const wk_line_fn[]) { name##_f32, name##_f64 } \
    }
#define ELEMENTS(name) \
    { \
#name, "simd", run_elements, NULL, (const wk_blocks_fn[]) { name##_f32, name##_f64 } \
    }

const wk_impl WK_ISA(wk_cpu_loss)[] = {
    CLASSES(cross_entropy),
    CLASSES(nll_loss),
    {"softmax_cross_entropy", "simd", run_classes, NULL,
     (const wk_line_fn[]){cross_entropy_f32, cross_entropy_f64}},
    ELEMENTS(mse_loss),
    ELEMENTS(bce_with_logits),
    ELEMENTS(huber_loss),
    {0},
};
