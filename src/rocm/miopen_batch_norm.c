/* miopen_batch_norm.c: batch norm and its gradient by MIOpen. x is [n, c, 1, inner]; statistics are f32. */
#include "dnn.h"
#include "gpu/families.h"
#include "ops/norm.h"
#include "wick/ops.h"

typedef struct {
    wk_batch_shape s;
    double eps;
    const wk_tensor *x, *dy, *weight, *bias, *mean, *var; /* of the gradient, var is the inverse deviation */
    wk_tensor *out, *dweight, *dbias;
} work;

static const char *refuse(const wk_call *c) { return wk_dnn_refuse(c, WK_DNN_REALS); }

static const char *refuse_train(const wk_call *c)
{
    (void)c;
    return "MIOpen's variance, mean(x^2) - mean(x)^2, loses too many bits";
}

static miopenStatus_t set_up(miopenHandle_t h, wk_dnn_plan *p, const void *data)
{
    const work *w = data;
    (void)h;
    WK_DNN_TRY(wk_dnn_tensor(p, 0, w->x->dtype, 4, (int64_t[]){w->s.n, w->s.c, 1, w->s.inner}));
    return wk_dnn_tensor(p, 1, WK_F32, 4, (int64_t[]){1, w->s.c, 1, 1});
}

static void *at(const wk_tensor *t) { return t ? wk_ptr(t) : NULL; }

/* Per activation every element of a sample is a channel of its own: what is left is spatial with planes of one. */
static miopenStatus_t queue(miopenHandle_t h, const wk_dnn_plan *p, void *workspace, const void *data)
{
    const work *w = data;
    miopenTensorDescriptor_t t = p->tensor[0], stat = p->tensor[1];
    miopenBatchNormMode_t mode = w->s.inner == 1 ? miopenBNPerActivation : miopenBNSpatial;
    float one = 1, zero = 0;
    (void)workspace;
    if (!w->dy)
        return wk_miopen.miopenBatchNormalizationForwardInference(
            h, mode, &one, &zero, t, wk_ptr(w->x), t, wk_ptr(w->out), stat, at(w->weight), at(w->bias),
            at(w->mean), at(w->var), w->eps);
    return wk_miopen.miopenBatchNormalizationBackward(
        h, mode, &one, &zero, &one, &zero, t, wk_ptr(w->x), t, wk_ptr(w->dy), t, wk_ptr(w->out), stat,
        at(w->weight), at(w->dweight), at(w->dbias), w->eps, at(w->mean), at(w->var));
}

/* ---- what MIOpen must have where wick's callers may leave it out ---- */

static const wk_tensor *or_filled(const wk_call *c, const wk_tensor *t, const work *w, double value)
{
    return t ? wk_tensor_packed(t) : wk_fill(c->device, WK_F32, 1, &w->s.c, value);
}

static wk_tensor *or_new(const wk_call *c, wk_tensor *t, const work *w)
{
    return t ? t : wk_tensor_new(c->device, WK_F32, 1, &w->s.c);
}

static wk_status start(const wk_call *c, work *w)
{
    const wk_norm_params *p = c->params;
    *w = (work){.eps = p->eps, .out = c->out[0]};
    w->s = wk_batch_shape_of(c->in[0], p->mode);
    w->x = wk_tensor_packed(c->in[0]);
    return w->x ? WK_OK : wk_error_status();
}

static wk_status finish(const wk_call *c, const work *w)
{
    if (wk_pending())
        return wk_error_status();
    wk_dnn_call d = {.call = c, .set_up = set_up, .run = queue, .data = w};
    wk_key_shape(&d.key, 3, (int64_t[]){w->s.n, w->s.c, w->s.inner});
    return wk_dnn_run(&d);
}

static wk_status run_infer(wk_call *c)
{
    work w;
    WK_TRY(start(c, &w));
    w.weight = or_filled(c, c->in[1], &w, 1);
    w.bias = or_filled(c, c->in[2], &w, 0);
    w.mean = wk_tensor_packed(c->in[3]);
    w.var = wk_tensor_packed(c->in[4]);
    return finish(c, &w);
}

static wk_status run_backward(wk_call *c)
{
    work w;
    WK_TRY(start(c, &w));
    w.dy = wk_tensor_packed(c->in[1]);
    w.weight = or_filled(c, c->in[2], &w, 1);
    w.mean = wk_tensor_packed(c->in[3]);
    w.var = wk_tensor_packed(c->in[4]);
    w.out = c->out[0] ? c->out[0] : wk_tensor_new(c->device, c->dtype, c->in[0]->rank, c->in[0]->shape);
    w.dweight = or_new(c, c->out[1], &w);
    w.dbias = or_new(c, c->out[2], &w);
    return finish(c, &w);
}

const wk_impl wk_rocm_impls_batch_norm[] = {
    {"batch_norm_train", "miopen", run_infer, refuse_train, NULL},
    {"batch_norm_infer", "miopen", run_infer, refuse, NULL},
    {"batch_norm_backward", "miopen", run_backward, refuse, NULL},
    {0},
};
