/* miopen_reduce.c: reductions by MIOpen. Neighbouring dims that are all reduced, or all kept, count as one. */
#include "dnn.h"
#include "gpu/families.h"
#include "ops/reduce.h"

enum { MOST = 6 }; /* dims that MIOpen takes */

typedef struct {
    int rank;
    int64_t x[WK_MAX_RANK + 1], y[WK_MAX_RANK + 1];
} extent;

typedef struct {
    extent e;
    miopenReduceTensorOp_t op;
    const wk_tensor *x;
    wk_tensor *y;
} work;

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

static const char *refuse(const wk_call *c)
{
    const wk_reduce_params *p = c->params;
    unsigned set;
    if (wk_op_outputs(c->op) > 1 && c->want >> 1 & 1)
        return "MIOpen gives the last of several NaN as the place";
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
        MIOPEN_REDUCE_TENSOR_NO_INDICES, MIOPEN_32BIT_INDICES));
    return wk_miopen.miopenGetReductionWorkspaceSize(h, op, p->tensor[0], p->tensor[1], &p->workspace);
}

static miopenStatus_t queue(miopenHandle_t h, const wk_dnn_plan *p, void *workspace, const void *data)
{
    static const double one = 1, zero = 0;
    const work *w = data;
    bool wide = w->x->dtype == WK_F64;
    return wk_miopen.miopenReduceTensor(
        h, p->op, NULL, 0, workspace, p->workspace, wide ? (const void *)&one : &wk_dnn_one, p->tensor[0],
        wk_ptr(w->x), wide ? (const void *)&zero : &wk_dnn_zero, p->tensor[1], wk_ptr(w->y));
}

static wk_status run(wk_call *c)
{
    const wk_reduce_params *params = c->params;
    work w = {.op = *(const miopenReduceTensorOp_t *)c->impl->data, .y = c->out[0]};
    unsigned set;
    WK_TRY(wk_reduce_dims(c, &params->dims, c->in[0]->rank, &set));
    w.e = extent_of(c->in[0], set);
    w.x = wk_tensor_packed(c->in[0]);
    if (!w.x)
        return wk_error_status();
    wk_dnn_call d = {.call = c, .set_up = set_up, .run = queue, .data = &w};
    wk_key_shape(&d.key, w.e.rank, w.e.x);
    wk_key_shape(&d.key, w.e.rank, w.e.y);
    return wk_dnn_run(&d);
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
