/* miopen_batch_norm.c: batch norm and its gradient by MIOpen. x is [n, c, 1, inner]; statistics are f32. In training x is
 * centred before, in f32 since that rounds, and the means are moved back after. */
#include "dnn.h"
#include "gpu/families.h"
#include "gpu/vendor_ops.h"
#include "wick/ops.h"

static const char *refuse(const wk_call *c) { return wk_dnn_refuse(c, WK_DNN_REALS); }

static miopenStatus_t set_up(miopenHandle_t h, wk_dnn_plan *p, const void *data)
{
    const wk_vendor_norm *w = data;
    (void)h;
    WK_DNN_TRY(wk_dnn_tensor(p, 0, w->x->dtype, 4, (int64_t[]){w->s.n, w->s.c, 1, w->s.inner}));
    return wk_dnn_tensor(p, 1, WK_F32, 4, (int64_t[]){1, w->s.c, 1, 1});
}

static miopenStatus_t queue(miopenHandle_t h, const wk_dnn_plan *p, void *workspace, const void *data)
{
    const wk_vendor_norm *w = data;
    miopenTensorDescriptor_t t = p->tensor[0], stat = p->tensor[1];
    miopenBatchNormMode_t mode = w->s.inner == 1 ? miopenBNPerActivation : miopenBNSpatial;
    float one = 1, zero = 0;
    (void)workspace;
    if (w->train)
        return wk_miopen.miopenBatchNormalizationForwardTraining(
            h, mode, &one, &zero, t, wk_ptr(w->x), t, wk_ptr(w->out), stat, wk_ptr(w->weight),
            wk_ptr(w->bias), w->momentum, wk_ptr(w->new_mean), wk_ptr(w->new_var), w->eps,
            wk_ptr(w->save_mean), wk_ptr(w->save_invstd));
    if (!w->dy)
        return wk_miopen.miopenBatchNormalizationForwardInference(
            h, mode, &one, &zero, t, wk_ptr(w->x), t, wk_ptr(w->out), stat, wk_ptr(w->weight),
            wk_ptr(w->bias), wk_ptr(w->mean), wk_ptr(w->var), w->eps);
    return wk_miopen.miopenBatchNormalizationBackward(
        h, mode, &one, &zero, &one, &zero, t, wk_ptr(w->x), t, wk_ptr(w->dy), t, wk_ptr(w->out), stat,
        wk_ptr(w->weight), wk_ptr(w->dweight), wk_ptr(w->dbias), w->eps, wk_ptr(w->mean), wk_ptr(w->var));
}

static wk_status queue_call(const wk_call *c, const wk_vendor_norm *w)
{
    wk_dnn_call d = {.call = c, .set_up = set_up, .run = queue, .data = w};
    wk_key_shape(&d.key, 3, (int64_t[]){w->s.n, w->s.c, w->s.inner});
    return wk_dnn_run(&d);
}

/* Adds a share of the means that were taken from x to those that MIOpen found. */
static wk_status move_back(wk_tensor *found, const wk_tensor *mean, double share)
{
    wk_tensor *step = wk_affine(mean, share, 0);
    return wk_copy_into(found, wk_add(found, wk_reshape(step, found->rank, found->shape)));
}

static wk_status run_train(wk_call *c)
{
    const wk_tensor *mean = NULL;
    wk_vendor_norm w;
    WK_TRY(wk_vendor_norm_train(c, &w));
    const wk_tensor *planes = wk_reshape(wk_cast(w.x, WK_F32), 3, (int64_t[]){w.s.n, w.s.c, w.s.inner});
    w.x = wk_dnn_centred(planes, 2, (int64_t[]){0, 2}, &mean);
    if (c->dtype != WK_F32)
        w.out = wk_tensor_new(c->device, WK_F32, c->out[0]->rank, c->out[0]->shape);
    if (wk_pending())
        return wk_error_status();
    WK_TRY(queue_call(c, &w));
    if (w.out != c->out[0])
        WK_TRY(wk_copy_into(c->out[0], wk_cast(w.out, c->dtype)));
    if (c->out[1])
        WK_TRY(move_back(c->out[1], mean, w.momentum));
    return c->out[3] ? move_back(c->out[3], mean, 1) : WK_OK;
}

static wk_status run_infer(wk_call *c)
{
    wk_vendor_norm w;
    WK_TRY(wk_vendor_norm_infer(c, &w));
    return queue_call(c, &w);
}

static wk_status run_backward(wk_call *c)
{
    wk_vendor_norm w;
    WK_TRY(wk_vendor_norm_backward(c, &w));
    return queue_call(c, &w);
}

const wk_impl wk_rocm_impls_batch_norm[] = {
    {"batch_norm_train", "miopen", run_train, refuse, NULL},
    {"batch_norm_infer", "miopen", run_infer, refuse, NULL},
    {"batch_norm_backward", "miopen", run_backward, refuse, NULL},
    {0},
};
