/* cudnn_lrn.c: local response norm over channels by cuDNN. Its gradient works y out again, wick's takes the one given. */
#include "cudnn_plan.h"
#include "gpu/families.h"
#include "ops/norm.h"
#include "wick/ops.h"

typedef struct {
    const wk_lrn_params *p;
    int64_t shape[4];
    const wk_tensor *x;
    wk_tensor *out;
} work;

static const char *refuse(const wk_call *c)
{
    const wk_lrn_params *p = c->params;
    if (p->mode != WK_LRN_CROSS)
        return "cuDNN's LRN goes over channels";
    if (p->size % 2 == 0 || p->size > 16)
        return "cuDNN takes windows of an odd size, up to 16";
    if (p->k < 1e-5 || p->beta < 0.01)
        return "cuDNN takes a k of 1e-5 and a beta of 0.01 and more";
    return wk_cudnn_refuse(c, WK_FLOATS);
}

static void destroy(wk_cudnn_plan *p) { wk_cudnn.cudnnDestroyLRNDescriptor(p->op); }

static void set_up(cudnnHandle_t h, wk_cudnn_plan *p, const void *data)
{
    const work *w = data;
    cudnnLRNDescriptor_t op = NULL;
    (void)h;
    wk_cudnn_packed(p, 0, w->x->dtype, 4, w->shape);
    if (!wk_cudnn_ok(p, wk_cudnn.cudnnCreateLRNDescriptor(&op), "the norm"))
        return;
    p->op = op;
    p->destroy = destroy;
    wk_cudnn_ok(p, wk_cudnn.cudnnSetLRNDescriptor(op, (unsigned)w->p->size, w->p->alpha, w->p->beta, w->p->k),
                "the norm");
}

static cudnnStatus_t queue(cudnnHandle_t h, const wk_cudnn_plan *p, void *workspace, const void *data)
{
    const work *w = data;
    cudnnTensorDescriptor_t t = p->tensor[0];
    const void *one = wk_cudnn_factor(w->x->dtype, true), *zero = wk_cudnn_factor(w->x->dtype, false);
    (void)workspace;
    return wk_cudnn.cudnnLRNCrossChannelForward(h, p->op, CUDNN_LRN_CROSS_CHANNEL_DIM1, one, t, wk_ptr(w->x),
                                                zero, t, wk_ptr(w->out));
}

static wk_status run(wk_call *c)
{
    work w = {.p = c->params, .out = c->out[0]};
    const wk_tensor *x = c->in[0];
    memcpy(w.shape, x->shape, 2 * sizeof *x->shape);
    w.shape[2] = 1;
    w.shape[3] = wk_shape_count(x->rank - 2, x->shape + 2);
    w.x = wk_tensor_packed(x);
    if (!w.x)
        return wk_error_status();
    wk_cudnn_call d = {.call = c, .set_up = set_up, .run = queue, .data = &w};
    wk_key_shape(&d.key, 4, w.shape);
    wk_key_add(&d.key, w.p->size);
    wk_key_real(&d.key, w.p->alpha);
    wk_key_real(&d.key, w.p->beta);
    wk_key_real(&d.key, w.p->k);
    return wk_cudnn_run(&d);
}

const wk_impl wk_cuda_impls_lrn[] = {
    {"lrn", "cudnn", run, refuse, NULL},
    {0},
};
