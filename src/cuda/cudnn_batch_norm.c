/* cudnn_batch_norm.c: batch norm and its gradient by cuDNN. x is [n, c, 1, inner]. */
#include "cudnn_plan.h"
#include "gpu/families.h"
#include "gpu/vendor_ops.h"

static const char *refuse(const wk_call *c) { return wk_cudnn_refuse(c, WK_FLOATS); }

static const char *refuse_train(const wk_call *c)
{
    if (c->dtype == WK_F32 || c->dtype == WK_F64)
        return "cuDNN's variance loses too many bits of f32 and f64";
    return refuse(c);
}

static void set_up(cudnnHandle_t h, wk_cudnn_plan *p, const void *data)
{
    const wk_vendor_norm *w = data;
    (void)h;
    wk_cudnn_packed(p, 0, w->x->dtype, 4, (int64_t[]){w->s.n, w->s.c, 1, w->s.inner});
    wk_cudnn_packed(p, 1, wk_stat_dtype(w->x->dtype), 4, (int64_t[]){1, w->s.c, 1, 1});
}

static cudnnStatus_t queue(cudnnHandle_t h, const wk_cudnn_plan *p, void *workspace, const void *data)
{
    const wk_vendor_norm *w = data;
    cudnnTensorDescriptor_t t = p->tensor[0], stat = p->tensor[1];
    cudnnBatchNormMode_t mode = w->s.inner == 1 ? CUDNN_BATCHNORM_PER_ACTIVATION : CUDNN_BATCHNORM_SPATIAL;
    const void *one = wk_cudnn_factor(w->x->dtype, true), *zero = wk_cudnn_factor(w->x->dtype, false);
    (void)workspace;
    if (w->train)
        return wk_cudnn.cudnnBatchNormalizationForwardTraining(
            h, mode, one, zero, t, wk_ptr(w->x), t, wk_ptr(w->out), stat, wk_ptr(w->weight), wk_ptr(w->bias),
            w->momentum, wk_ptr(w->new_mean), wk_ptr(w->new_var), w->eps, wk_ptr(w->save_mean),
            wk_ptr(w->save_invstd));
    if (!w->dy)
        return wk_cudnn.cudnnBatchNormalizationForwardInference(
            h, mode, one, zero, t, wk_ptr(w->x), t, wk_ptr(w->out), stat, wk_ptr(w->weight), wk_ptr(w->bias),
            wk_ptr(w->mean), wk_ptr(w->var), w->eps);
    return wk_cudnn.cudnnBatchNormalizationBackward(
        h, mode, one, zero, one, zero, t, wk_ptr(w->x), t, wk_ptr(w->dy), t, wk_ptr(w->out), stat,
        wk_ptr(w->weight), wk_ptr(w->dweight), wk_ptr(w->dbias), w->eps, wk_ptr(w->mean), wk_ptr(w->var));
}

static wk_status queue_call(const wk_call *c, const wk_vendor_norm *w)
{
    wk_cudnn_call d = {.call = c, .set_up = set_up, .run = queue, .data = w};
    wk_key_shape(&d.key, 3, (int64_t[]){w->s.n, w->s.c, w->s.inner});
    return wk_cudnn_run(&d);
}

static wk_status run_train(wk_call *c)
{
    wk_vendor_norm w;
    WK_TRY(wk_vendor_norm_train(c, &w));
    return queue_call(c, &w);
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

const wk_impl wk_cuda_impls_batch_norm[] = {
    {"batch_norm_train", "cudnn", run_train, refuse_train, NULL},
    {"batch_norm_infer", "cudnn", run_infer, refuse, NULL},
    {"batch_norm_backward", "cudnn", run_backward, refuse, NULL},
    {0},
};
