/* miopen_attention.c: attention and its gradient by MIOpen's problem for multi-head attention: f32, all of q, k and v of
 * one shape. It holds the scores in memory. A causal mask goes in as a bias, which MIOpen takes away from the scores; its
 * gradient has no such thing.
 *
 * The gradient uses streams of MIOpen's own besides, which do not wait for what was queued before: the host does. */
#include <math.h>
#include "core/memory.h"
#include "dnn.h"
#include "gpu/blas.h"
#include "gpu/families.h"
#include "ops/attention.h"
#include "wick/ops.h"

enum {
    BEYOND = 1024, /* numbers behind the bias that MIOpen's kernel reads and does not use */
    DATA = 0,      /* descriptors of the plan */
    STATS,
    SCORES,
    ONE,
    SEED,
};

typedef struct {
    miopenMhaDescriptor_t mha; /* MIOpen has nothing to destroy it */
    miopenProblem_t problem;
    miopenSolution_t solution;
} objects;

typedef struct {
    const wk_call *call;
    const wk_tensor *q, *k, *v, *bias; /* bias: NULL for none */
    const wk_tensor *y, *m, *z;        /* the rows' largest scores, and one over the sums of exponentials */
    const wk_tensor *dy;               /* of the gradient; else NULL */
    wk_tensor *dq, *dk, *dv;
    const wk_tensor *one, *nothing;
    wk_tensor *amax;
    double scale;
} work;

static const char *refuse_any(const wk_call *c, const wk_tensor *mask)
{
    const wk_sdpa_options *p = c->params;
    const wk_tensor *q = c->in[0], *k = c->in[1], *v = c->in[2];
    const char *why = wk_dnn_refuse(c, WK_SET(WK_F32));
    if (why)
        return why;
    if (mask || p->softcap != 0 || p->window != 0)
        return "MIOpen's attention has no masks of the caller's, softcap or window";
    if (!wk_shape_equal(q->rank, q->shape, k->rank, k->shape) ||
        !wk_shape_equal(q->rank, q->shape, v->rank, v->shape))
        return "MIOpen's attention takes q, k and v of one shape";
    return wk_miopen.miopenCreateMhaProblem ? wk_rocblas.missing(wk_gpu_of(c->device))
                                            : "this MIOpen has no attention";
}

static const char *refuse(const wk_call *c) { return refuse_any(c, c->in[3]); }

static const char *refuse_backward(const wk_call *c)
{
    if (WK_PARAMS(c, wk_sdpa_options)->causal)
        return "MIOpen's gradient of attention has no causal mask";
    if (c->device->table->capturing(c->device))
        return "MIOpen's gradient of attention uses streams of its own, which a graph does not see";
    return refuse_any(c, c->in[6]);
}

/* ---- arguments: which tensor is which, once for the problem and once for its run ---- */

typedef struct {
    miopenTensorArgumentId_t id;
    int descriptor;
    const void *buffer;
} argument;

enum { ARGUMENTS = 30 };

static int list_forward(const work *w, argument *list)
{
    const argument own[] = {
        {miopenTensorMhaScaleO, ONE, wk_ptr(w->one)},
        {miopenTensorMhaAmaxO, ONE, wk_ptr(w->amax)},
        {miopenTensorMhaAmaxS, ONE, wk_ptr(w->amax)},
        {miopenTensorMhaBias, SCORES, w->bias ? wk_ptr(w->bias) : NULL},
    };
    memcpy(list, own, sizeof own);
    return (int)(sizeof own / sizeof *own) - !w->bias;
}

static int list_gradients(const work *w, argument *list)
{
    const argument own[] = {
        {miopenTensorMhaDO, DATA, wk_ptr(w->dy)},
        {miopenTensorMhaDescaleO, ONE, wk_ptr(w->one)},
        {miopenTensorMhaDescaleDO, ONE, wk_ptr(w->one)},
        {miopenTensorMhaDescaleDS, ONE, wk_ptr(w->one)},
        {miopenTensorMhaScaleDS, ONE, wk_ptr(w->one)},
        {miopenTensorMhaScaleDQ, ONE, wk_ptr(w->one)},
        {miopenTensorMhaScaleDK, ONE, wk_ptr(w->one)},
        {miopenTensorMhaScaleDV, ONE, wk_ptr(w->one)},
        {miopenTensorMhaDQ, DATA, wk_ptr(w->dq)},
        {miopenTensorMhaDK, DATA, wk_ptr(w->dk)},
        {miopenTensorMhaDV, DATA, wk_ptr(w->dv)},
        {miopenTensorMhaAmaxDQ, ONE, wk_ptr(w->amax)},
        {miopenTensorMhaAmaxDK, ONE, (float *)wk_ptr(w->amax) + 1},
        {miopenTensorMhaAmaxDV, ONE, (float *)wk_ptr(w->amax) + 2},
        {miopenTensorMhaAmaxDS, ONE, (float *)wk_ptr(w->amax) + 3},
    };
    memcpy(list, own, sizeof own);
    return (int)(sizeof own / sizeof *own);
}

static int list_arguments(const work *w, argument list[ARGUMENTS])
{
    const argument both[] = {
        {miopenTensorMhaQ, DATA, wk_ptr(w->q)},
        {miopenTensorMhaK, DATA, wk_ptr(w->k)},
        {miopenTensorMhaV, DATA, wk_ptr(w->v)},
        {miopenTensorMhaO, DATA, wk_ptr(w->y)},
        {miopenTensorMhaM, STATS, wk_ptr(w->m)},
        {miopenTensorMhaZInv, STATS, wk_ptr(w->z)},
        {miopenTensorMhaDescaleQ, ONE, wk_ptr(w->one)},
        {miopenTensorMhaDescaleK, ONE, wk_ptr(w->one)},
        {miopenTensorMhaDescaleV, ONE, wk_ptr(w->one)},
        {miopenTensorMhaDescaleS, ONE, wk_ptr(w->one)},
        {miopenTensorMhaScaleS, ONE, wk_ptr(w->one)},
        {miopenTensorMhaDropoutProbability, ONE, wk_ptr(w->nothing)},
        {miopenTensorMhaDropoutSeed, SEED, wk_ptr(w->nothing)},
        {miopenTensorMhaDropoutOffset, SEED, wk_ptr(w->nothing)},
    };
    const int n = sizeof both / sizeof *both;
    memcpy(list, both, sizeof both);
    return n + (w->dy ? list_gradients(w, list + n) : list_forward(w, list + n));
}

/* ---- set-up ---- */

static miopenStatus_t destroy(wk_dnn_plan *p)
{
    objects *o = p->extra;
    if (o->solution)
        wk_miopen.miopenDestroySolution(o->solution);
    return wk_miopen.miopenDestroyProblem(o->problem);
}

static miopenStatus_t describe(wk_dnn_plan *p, const work *w)
{
    const int64_t *x = w->q->shape, one[4] = {1, 1, 1, 1};
    WK_DNN_TRY(wk_dnn_tensor(p, DATA, WK_F32, 4, x));
    WK_DNN_TRY(wk_dnn_tensor(p, STATS, WK_F32, 4, (int64_t[]){x[0], x[1], x[2], 1}));
    WK_DNN_TRY(wk_dnn_tensor(p, SCORES, WK_F32, 4, (int64_t[]){x[0], x[1], x[2], x[2]}));
    WK_DNN_TRY(wk_dnn_tensor(p, ONE, WK_F32, 4, one));
    return wk_dnn_tensor(p, SEED, WK_I64, 4, one);
}

static miopenStatus_t set_up(miopenHandle_t h, wk_dnn_plan *p, const void *data)
{
    const work *w = data;
    argument list[ARGUMENTS];
    size_t found = 0;
    objects *o = wk_alloc(sizeof *o);
    if (!o)
        return miopenStatusAllocFailed;
    *o = (objects){0};
    p->extra = o;
    WK_DNN_TRY(describe(p, w));
    WK_DNN_TRY(wk_miopen.miopenCreateMhaDescriptor(&o->mha));
    WK_DNN_TRY(wk_miopen.miopenSetMhaDescriptor(o->mha, (float)w->scale));
    WK_DNN_TRY(wk_miopen.miopenCreateMhaProblem(
        &o->problem, o->mha, w->dy ? miopenProblemDirectionBackward : miopenProblemDirectionForward));
    p->op = o->problem;
    p->destroy = destroy;
    int n = list_arguments(w, list);
    for (int i = 0; i < n; i++)
        WK_DNN_TRY(wk_miopen.miopenSetProblemTensorDescriptor(o->problem, list[i].id,
                                                              p->tensor[list[i].descriptor]));
    WK_DNN_TRY(wk_miopen.miopenFindSolutions(h, o->problem, NULL, &o->solution, &found, 1));
    return found ? wk_miopen.miopenGetSolutionWorkspaceSize(o->solution, &p->workspace)
                 : miopenStatusNotImplemented;
}

static miopenStatus_t queue(miopenHandle_t h, const wk_dnn_plan *p, void *workspace, const void *data)
{
    const objects *o = p->extra;
    const work *w = data;
    argument list[ARGUMENTS];
    struct miopenTensorArgument_t given[ARGUMENTS];
    int n = list_arguments(w, list);
    if (w->dy && wk_hip.hipStreamSynchronize(wk_gpu_stream_handle(wk_gpu_of(w->call->device))))
        return miopenStatusInternalError;
    for (int i = 0; i < n; i++)
        given[i] = (struct miopenTensorArgument_t){.id = list[i].id, .buffer = (void *)list[i].buffer};
    return wk_miopen.miopenRunSolution(h, o->solution, (size_t)n, given, workspace, p->workspace);
}

/* ---- the call ---- */

/* Infinity above the diagonal of each head. */
static const wk_tensor *causal_bias(const wk_call *c)
{
    const int64_t *x = c->in[0]->shape, shape[4] = {x[0], x[1], x[2], x[2]};
    int64_t n = wk_shape_count(4, shape), room = n + BEYOND;
    wk_tensor *whole = wk_tensor_new(c->device, WK_F32, 1, &room);
    wk_tensor *heads = wk_reshape(wk_narrow(whole, 0, 0, n), 4, shape);
    wk_tensor *upper = wk_triu(wk_fill(c->device, WK_F32, 2, shape + 2, INFINITY), 1);
    return wk_copy_into(heads, wk_broadcast(upper, 4, shape)) == WK_OK ? heads : NULL;
}

/* log of the sum of the exponentials, from their largest and one over their sum relative to it. */
static wk_status put_lse(const wk_call *c, const work *w)
{
    if (!c->out[1])
        return WK_OK;
    return wk_copy_into(c->out[1], wk_sub(w->m, wk_log(w->z)));
}

static wk_status run_work(const wk_call *c, work *w)
{
    const wk_sdpa_options *p = c->params;
    const int64_t *x = c->in[0]->shape, one = 1, few = 4;
    w->call = c;
    w->scale = wk_sdpa_scale(p, x[3]);
    w->q = wk_tensor_packed(c->in[0]);
    w->k = wk_tensor_packed(c->in[1]);
    w->v = wk_tensor_packed(c->in[2]);
    w->one = wk_fill(c->device, WK_F32, 1, &one, 1);
    w->nothing = wk_fill(c->device, WK_F32, 1, &few, 0); /* as f32, and as an i64 */
    w->amax = wk_tensor_new(c->device, WK_F32, 1, &few);
    if (wk_pending())
        return wk_error_status();
    wk_dnn_call d = {.call = c, .set_up = set_up, .run = queue, .data = w};
    wk_key_shape(&d.key, 4, x);
    wk_key_add(&d.key, p->causal);
    wk_key_real(&d.key, w->scale);
    return wk_dnn_run(&d);
}

static wk_status run(wk_call *c)
{
    const wk_sdpa_options *p = c->params;
    const int64_t *x = c->in[0]->shape;
    work w = {.y = c->out[0]};
    w.m = wk_tensor_new(c->device, WK_F32, 3, x);
    w.z = wk_tensor_new(c->device, WK_F32, 3, x);
    w.bias = p->causal ? causal_bias(c) : NULL;
    WK_TRY(run_work(c, &w));
    return put_lse(c, &w);
}

static wk_tensor *or_new(const wk_call *c, wk_tensor *t)
{
    return t ? t : wk_tensor_new(c->device, WK_F32, 4, c->in[0]->shape);
}

/* exp(s - lse) is the probability: with lse for the largest scores the sums are 1. */
static wk_status run_backward(wk_call *c)
{
    work w = {.y = wk_tensor_packed(c->in[3]), .m = wk_tensor_packed(c->in[4])};
    w.dy = wk_tensor_packed(c->in[5]);
    w.z = wk_fill(c->device, WK_F32, 3, c->in[0]->shape, 1);
    w.dq = or_new(c, c->out[0]);
    w.dk = or_new(c, c->out[1]);
    w.dv = or_new(c, c->out[2]);
    return run_work(c, &w);
}

const wk_impl wk_rocm_impls_attention[] = {
    {"sdpa", "miopen", run, refuse, NULL},
    {"sdpa_backward", "miopen", run_backward, refuse_backward, NULL},
    {0},
};
