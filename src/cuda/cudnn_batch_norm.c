/* cudnn_batch_norm.c: batch norm and its gradient by cuDNN. x is [n, c, 1, inner]. */
#include "cudnn_plan.h"
#include "gpu/families.h"
#include "ops/norm.h"
#include "wick/ops.h"

typedef struct {
    wk_batch_shape s;
    double eps, momentum;
    bool train;
    const wk_tensor *x, *dy, *weight, *bias, *mean, *var; /* of the gradient, var is the inverse deviation */
    wk_tensor *out, *dweight, *dbias, *new_mean, *new_var, *save_mean, *save_invstd;
} work;

static const char *refuse(const wk_call *c) { return wk_cudnn_refuse(c, WK_FLOATS); }

static const char *refuse_train(const wk_call *c)
{
    if (c->dtype == WK_F32 || c->dtype == WK_F64)
        return "cuDNN's variance loses too many bits of f32 and f64";
    return refuse(c);
}

static void set_up(cudnnHandle_t h, wk_cudnn_plan *p, const void *data)
{
    const work *w = data;
    (void)h;
    wk_cudnn_packed(p, 0, w->x->dtype, 4, (int64_t[]){w->s.n, w->s.c, 1, w->s.inner});
    wk_cudnn_packed(p, 1, wk_stat_dtype(w->x->dtype), 4, (int64_t[]){1, w->s.c, 1, 1});
}

static void *at(const wk_tensor *t) { return t ? wk_ptr(t) : NULL; }

/* Per activation every element of a sample is a channel of its own: what is left is spatial with planes of one. */
static cudnnStatus_t queue(cudnnHandle_t h, const wk_cudnn_plan *p, void *workspace, const void *data)
{
    const work *w = data;
    cudnnTensorDescriptor_t t = p->tensor[0], stat = p->tensor[1];
    cudnnBatchNormMode_t mode = w->s.inner == 1 ? CUDNN_BATCHNORM_PER_ACTIVATION : CUDNN_BATCHNORM_SPATIAL;
    const void *one = wk_cudnn_factor(w->x->dtype, true), *zero = wk_cudnn_factor(w->x->dtype, false);
    (void)workspace;
    if (w->train)
        return wk_cudnn.cudnnBatchNormalizationForwardTraining(
            h, mode, one, zero, t, wk_ptr(w->x), t, wk_ptr(w->out), stat, at(w->weight), at(w->bias),
            w->momentum, at(w->new_mean), at(w->new_var), w->eps, at(w->save_mean), at(w->save_invstd));
    if (!w->dy)
        return wk_cudnn.cudnnBatchNormalizationForwardInference(h, mode, one, zero, t, wk_ptr(w->x), t,
                                                                wk_ptr(w->out), stat, at(w->weight),
                                                                at(w->bias), at(w->mean), at(w->var), w->eps);
    return wk_cudnn.cudnnBatchNormalizationBackward(
        h, mode, one, zero, one, zero, t, wk_ptr(w->x), t, wk_ptr(w->dy), t, wk_ptr(w->out), stat,
        at(w->weight), at(w->dweight), at(w->dbias), w->eps, at(w->mean), at(w->var));
}

/* ---- what cuDNN must have where wick's callers may leave it out ---- */

static const wk_tensor *or_filled(const wk_call *c, const wk_tensor *t, const work *w, double value)
{
    return t ? wk_tensor_packed(t) : wk_fill(c->device, wk_stat_dtype(c->dtype), 1, &w->s.c, value);
}

static wk_tensor *or_new(const wk_call *c, wk_tensor *t, const work *w)
{
    return t ? t : wk_tensor_new(c->device, wk_stat_dtype(c->dtype), 1, &w->s.c);
}

static wk_status start(const wk_call *c, work *w)
{
    const wk_norm_params *p = c->params;
    *w = (work){.eps = p->eps, .momentum = p->momentum, .out = c->out[0]};
    w->s = wk_batch_shape_of(c->in[0], p->mode);
    w->x = wk_tensor_packed(c->in[0]);
    return w->x ? WK_OK : wk_error_status();
}

static wk_status finish(const wk_call *c, const work *w)
{
    if (wk_pending())
        return wk_error_status();
    wk_cudnn_call d = {.call = c, .set_up = set_up, .run = queue, .data = w};
    wk_key_shape(&d.key, 3, (int64_t[]){w->s.n, w->s.c, w->s.inner});
    return wk_cudnn_run(&d);
}

/* Whatever the shapes. */
static wk_status copy_packed(const wk_call *c, const wk_tensor *to, const wk_tensor *from)
{
    wk_gpu *g = wk_gpu_of(c->device);
    int code = g->driver->enter(g->context);
    if (code == 0)
        code = g->driver->copy(wk_ptr(to), wk_ptr(from), (size_t)wk_count(to) * wk_bytes(to->dtype),
                               WK_COPY_WITHIN, wk_gpu_stream_handle(g));
    return code ? wk_gpu_fail(g, code, "copying statistics") : WK_OK;
}

/* cuDNN moves the running statistics where they are: copies of them. */
static wk_status run_train(wk_call *c)
{
    work w;
    WK_TRY(start(c, &w));
    w.train = true;
    w.weight = or_filled(c, c->in[1], &w, 1);
    w.bias = or_filled(c, c->in[2], &w, 0);
    w.new_mean = or_new(c, c->out[1], &w);
    w.new_var = or_new(c, c->out[2], &w);
    const wk_tensor *mean = or_filled(c, c->in[3], &w, 0), *var = or_filled(c, c->in[4], &w, 1);
    if (wk_pending())
        return wk_error_status();
    WK_TRY(copy_packed(c, w.new_mean, mean));
    WK_TRY(copy_packed(c, w.new_var, var));
    w.save_mean = or_new(c, c->out[3], &w);
    w.save_invstd = or_new(c, c->out[4], &w);
    return finish(c, &w);
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

const wk_impl wk_cuda_impls_batch_norm[] = {
    {"batch_norm_train", "cudnn", run_train, refuse_train, NULL},
    {"batch_norm_infer", "cudnn", run_infer, refuse, NULL},
    {"batch_norm_backward", "cudnn", run_backward, refuse, NULL},
    {0},
};
