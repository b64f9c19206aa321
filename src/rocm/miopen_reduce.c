/* miopen_reduce.c: reductions by MIOpen. Neighbouring dims that are all reduced, or all kept, count as one.
 *
 * Of several NaN MIOpen gives the last as the place of the largest: where NaN begins is found by a second reduction. */
#include <stdio.h>
#include "dnn.h"
#include "gpu/families.h"
#include "ops/reduce.h"
#include "wick/ops.h"

enum { MOST = 6 }; /* dims that MIOpen takes */

typedef struct {
    int rank;
    int64_t x[WK_MAX_RANK + 1], y[WK_MAX_RANK + 1];
} extent;

typedef struct {
    extent e;
    miopenReduceTensorOp_t op;
    const wk_tensor *x;
    wk_tensor *y, *indices; /* indices: NULL: not wanted */
} work;

/* Lines up to which f32 holds every place. */
enum { LONGEST = 1 << 24 };

static extent extent_of(const wk_tensor *x, unsigned set)
{
    extent e = {0};
    int before = -1;
    for (int d = 0; d < x->rank; d++) {
        int along = set >> d & 1;
        if (x->shape[d] == 1)
            continue;
        if (along != before) {
            e.x[e.rank] = e.y[e.rank] = 1;
            e.rank++;
        }
        e.x[e.rank - 1] *= x->shape[d];
        e.y[e.rank - 1] = along ? 1 : e.x[e.rank - 1];
        before = along;
    }
    return e;
}

static bool wants_indices(const wk_call *c) { return wk_op_outputs(c->op) > 1 && c->want >> 1 & 1; }

static const char *refuse(const wk_call *c)
{
    const wk_reduce_params *p = c->params;
    unsigned set;
    if (c->dtype == WK_F64 && (strcmp(c->op->name, "norm2") == 0 || strcmp(c->op->name, "mean") == 0))
        return "MIOpen divides and takes roots of f64 in f32";
    if (c->dtype == WK_BF16)
        return "MIOpen has no reduction of bf16"; /* asked for one, it prints */
    const char *why = wk_dnn_refuse(c, WK_DNN_REALS | WK_SET(WK_F64));
    if (why)
        return why;
    if (wk_reduce_dims(c, &p->dims, c->in[0]->rank, &set) != WK_OK)
        return "dims";
    extent e = extent_of(c->in[0], set);
    if (e.rank > MOST)
        return "MIOpen reduces tensors of 6 dims and fewer";
    if (wants_indices(c) && c->in[0]->shape[__builtin_ctz(set)] >= LONGEST)
        return "MIOpen gives the last of several NaN as the place, and the lines are too long to mend that";
    return memcmp(e.x, e.y, sizeof e.x) == 0 ? "there is nothing to reduce" : NULL;
}

static miopenStatus_t destroy(wk_dnn_plan *p) { return wk_miopen.miopenDestroyReduceTensorDescriptor(p->op); }

static miopenStatus_t set_up(miopenHandle_t h, wk_dnn_plan *p, const void *data)
{
    const work *w = data;
    miopenReduceTensorDescriptor_t op;
    WK_DNN_TRY(wk_dnn_tensor(p, 0, w->x->dtype, w->e.rank, w->e.x));
    WK_DNN_TRY(wk_dnn_tensor(p, 1, w->x->dtype, w->e.rank, w->e.y));
    WK_DNN_TRY(wk_miopen.miopenCreateReduceTensorDescriptor(&op));
    p->op = op;
    p->destroy = destroy;
    WK_DNN_TRY(wk_miopen.miopenSetReduceTensorDescriptor(
        op, w->op, w->x->dtype == WK_F64 ? miopenDouble : miopenFloat, MIOPEN_PROPAGATE_NAN,
        w->indices ? MIOPEN_REDUCE_TENSOR_FLATTENED_INDICES : MIOPEN_REDUCE_TENSOR_NO_INDICES,
        MIOPEN_32BIT_INDICES));
    return wk_miopen.miopenGetReductionWorkspaceSize(h, op, p->tensor[0], p->tensor[1], &p->workspace);
}

static miopenStatus_t queue(miopenHandle_t h, const wk_dnn_plan *p, void *workspace, const void *data)
{
    static const double one = 1, zero = 0;
    const work *w = data;
    bool wide = w->x->dtype == WK_F64;
    return wk_miopen.miopenReduceTensor(h, p->op, w->indices ? wk_ptr(w->indices) : NULL,
                                        w->indices ? (size_t)wk_count(w->indices) * sizeof(uint32_t) : 0,
                                        workspace, p->workspace, wide ? (const void *)&one : &wk_dnn_one,
                                        p->tensor[0], wk_ptr(w->x), wide ? (const void *)&zero : &wk_dnn_zero,
                                        p->tensor[1], wk_ptr(w->y));
}

static wk_status reduce(const wk_call *c, const work *w)
{
    if (wk_pending())
        return wk_error_status();
    wk_dnn_call d = {.call = c, .set_up = set_up, .run = queue, .data = w};
    wk_key_shape(&d.key, 3, (int64_t[]){w->op, w->x->dtype, w->indices != NULL});
    wk_key_shape(&d.key, w->e.rank, w->e.x);
    wk_key_shape(&d.key, w->e.rank, w->e.y);
    return wk_dnn_run(&d);
}

/* The places of the first NaN of each line, counted from its end; 0 where there is none. `line` is the dim of the lines
 * in the extent. */
static wk_tensor *first_nan(const wk_call *c, const work *w, int line)
{
    int64_t n = w->e.x[line], shape[MOST];
    for (int d = 0; d < w->e.rank; d++)
        shape[d] = d == line ? n : 1;
    wk_tensor *from_end = wk_reshape(wk_arange(c->device, WK_F32, (double)n, 0, -1), w->e.rank, shape);
    wk_expr *e = wk_expr_compile("where(x != x, p, 0)");
    wk_tensor *x = wk_reshape(wk_cast(w->x, WK_F32), w->e.rank, w->e.x);
    work again = {.e = w->e, .op = MIOPEN_REDUCE_TENSOR_MAX};
    again.x = wk_expr_run(e, (const wk_tensor *[]){x, from_end}, 2);
    again.y = wk_tensor_new(c->device, WK_F32, c->out[1]->rank, c->out[1]->shape);
    wk_expr_drop(e);
    return reduce(c, &again) == WK_OK ? again.y : NULL;
}

static wk_status mend_indices(const wk_call *c, const work *w)
{
    char text[64];
    int line = 0;
    while (w->e.x[line] == w->e.y[line])
        line++;
    snprintf(text, sizeof text, "where(k > 0, %lld - k, i)", (long long)w->e.x[line]);
    wk_tensor *k = first_nan(c, w, line);
    wk_expr *e = k ? wk_expr_compile(text) : NULL;
    wk_tensor *places = wk_expr_run(e, (const wk_tensor *[]){k, wk_cast(w->indices, WK_F32)}, 2);
    wk_expr_drop(e);
    return wk_copy_into(w->indices, wk_cast(places, WK_U32));
}

static wk_status run(wk_call *c)
{
    const wk_reduce_params *params = c->params;
    work w = {.op = *(const miopenReduceTensorOp_t *)c->impl->data, .y = c->out[0]};
    unsigned set;
    WK_TRY(wk_reduce_dims(c, &params->dims, c->in[0]->rank, &set));
    w.e = extent_of(c->in[0], set);
    w.x = wk_tensor_packed(c->in[0]);
    w.indices = wants_indices(c) ? c->out[1] : NULL;
    WK_TRY(reduce(c, &w));
    return w.indices ? mend_indices(c, &w) : WK_OK;
}

static const miopenReduceTensorOp_t add = MIOPEN_REDUCE_TENSOR_ADD, mul = MIOPEN_REDUCE_TENSOR_MUL,
                                    avg = MIOPEN_REDUCE_TENSOR_AVG, abs_sum = MIOPEN_REDUCE_TENSOR_NORM1,
                                    root = MIOPEN_REDUCE_TENSOR_NORM2, least = MIOPEN_REDUCE_TENSOR_MIN,
                                    most = MIOPEN_REDUCE_TENSOR_MAX, abs_most = MIOPEN_REDUCE_TENSOR_AMAX;

const wk_impl wk_rocm_impls_reduce[] = {
    {"sum", "miopen", run, refuse, &add},
    {"prod", "miopen", run, refuse, &mul},
    {"mean", "miopen", run, refuse, &avg},
    {"norm1", "miopen", run, refuse, &abs_sum},
    {"norm2", "miopen", run, refuse, &root},
    {"min", "miopen", run, refuse, &least},
    {"max", "miopen", run, refuse, &most},
    {"amax", "miopen", run, refuse, &abs_most},
    {0},
};
