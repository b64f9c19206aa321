/* miopen_batch_norm.c: batch norm and its gradient by MIOpen. x is [n, c, 1, inner]; statistics are f32. In training x is
 * centred before, in f32 since that rounds, and the means are moved back after. */
#include "dnn.h"
#include "gpu/families.h"
#include "ops/norm.h"
#include "wick/ops.h"

typedef struct {
    wk_batch_shape s;
    bool train;
    double eps, momentum;
    const wk_tensor *x, *dy, *weight, *bias, *mean, *var; /* of the gradient, var is the inverse deviation */
    wk_tensor *out, *dweight, *dbias;
    wk_tensor *new_mean, *new_var, *save_mean, *save_invstd; /* of training */
} work;

static const char *refuse(const wk_call *c) { return wk_dnn_refuse(c, WK_DNN_REALS); }

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
    if (w->train)
        return wk_miopen.miopenBatchNormalizationForwardTraining(
            h, mode, &one, &zero, t, wk_ptr(w->x), t, wk_ptr(w->out), stat, at(w->weight), at(w->bias),
            w->momentum, at(w->new_mean), at(w->new_var), w->eps, at(w->save_mean), at(w->save_invstd));
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

/* The running statistics, which MIOpen moves on where they are. */
static wk_tensor *running(const wk_call *c, wk_tensor *out, const wk_tensor *t, const work *w, double value)
{
    wk_tensor *copy = or_new(c, out, w);
    if (!copy)
        return NULL;
    if (!t)
        return wk_fill_into(copy, value) == WK_OK ? copy : NULL;
    return wk_copy_into(copy, wk_tensor_packed(t)) == WK_OK ? copy : NULL;
}

/* Adds a share of the means that were taken from x to those that MIOpen found. */
static wk_status move_back(wk_tensor *found, const wk_tensor *mean, double share)
{
    wk_tensor *step = wk_affine(mean, share, 0);
    return wk_copy_into(found, wk_add(found, wk_reshape(step, found->rank, found->shape)));
}

static wk_status run_train(wk_call *c)
{
    const wk_norm_params *p = c->params;
    const wk_tensor *mean = NULL;
    work w;
    WK_TRY(start(c, &w));
    w.train = true;
    w.momentum = p->momentum;
    const wk_tensor *planes = wk_reshape(wk_cast(w.x, WK_F32), 3, (int64_t[]){w.s.n, w.s.c, w.s.inner});
    w.x = wk_dnn_centred(planes, 2, (int64_t[]){0, 2}, &mean);
    if (c->dtype != WK_F32)
        w.out = wk_tensor_new(c->device, WK_F32, c->out[0]->rank, c->out[0]->shape);
    w.weight = or_filled(c, c->in[1], &w, 1);
    w.bias = or_filled(c, c->in[2], &w, 0);
    w.new_mean = running(c, c->out[1], c->in[3], &w, 0);
    w.new_var = running(c, c->out[2], c->in[4], &w, 1);
    w.save_mean = or_new(c, c->out[3], &w);
    w.save_invstd = or_new(c, c->out[4], &w);
    WK_TRY(finish(c, &w));
    if (w.out != c->out[0])
        WK_TRY(wk_copy_into(c->out[0], wk_cast(w.out, c->dtype)));
    if (c->out[1])
        WK_TRY(move_back(c->out[1], mean, p->momentum));
    return c->out[3] ? move_back(c->out[3], mean, 1) : WK_OK;
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
    {"batch_norm_train", "miopen", run_train, refuse, NULL},
    {"batch_norm_infer", "miopen", run_infer, refuse, NULL},
    {"batch_norm_backward", "miopen", run_backward, refuse, NULL},
    {0},
};
