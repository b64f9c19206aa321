/* cudnn_softmax.c: softmax and its gradient by cuDNN. */
#include "cudnn_plan.h"
#include "gpu/families.h"
#include "ops/reduce.h"
#include "ops/softmax.h"
#include "wick/softmax.h"

static const cudnnSoftmaxAlgorithm_t algorithms[] = {
    [WK_SOFTMAX_ACCURATE] = CUDNN_SOFTMAX_ACCURATE,
    [WK_SOFTMAX_FAST] = CUDNN_SOFTMAX_FAST,
    [WK_SOFTMAX_LOG] = CUDNN_SOFTMAX_LOG,
};

typedef struct {
    const wk_tensor *x, *dy;
    wk_tensor *out;
    cudnnSoftmaxAlgorithm_t algorithm;
    int64_t shape[4]; /* outer, the dims of a line, inner, 1 */
} work;

static const char *refuse(const wk_call *c)
{
    const wk_softmax_params *p = c->params;
    unsigned set;
    int64_t shape[3];
    const char *why = wk_cudnn_refuse(c, WK_FLOATS);
    if (why)
        return why;
    if (wk_reduce_dims(c, &p->dims, c->in[0]->rank, &set) != WK_OK || !wk_softmax_fold(c->in[0], set, shape))
        return "cuDNN's softmax takes dims that are neighbours";
    return NULL;
}

static void set_up(cudnnHandle_t h, wk_cudnn_plan *p, const void *data)
{
    const work *w = data;
    (void)h;
    wk_cudnn_packed(p, 0, w->x->dtype, 4, w->shape);
}

static cudnnStatus_t queue(cudnnHandle_t h, const wk_cudnn_plan *p, void *workspace, const void *data)
{
    const work *w = data;
    cudnnTensorDescriptor_t t = p->tensor[0];
    const void *one = wk_cudnn_factor(w->x->dtype, true), *zero = wk_cudnn_factor(w->x->dtype, false);
    (void)workspace;
    if (w->dy)
        return wk_cudnn.cudnnSoftmaxBackward(h, w->algorithm, CUDNN_SOFTMAX_MODE_CHANNEL, one, t,
                                             wk_ptr(w->x), t, wk_ptr(w->dy), zero, t, wk_ptr(w->out));
    return wk_cudnn.cudnnSoftmaxForward(h, w->algorithm, CUDNN_SOFTMAX_MODE_CHANNEL, one, t, wk_ptr(w->x),
                                        zero, t, wk_ptr(w->out));
}

static wk_status run(wk_call *c)
{
    const wk_softmax_params *params = c->params;
    work w = {.out = c->out[0], .algorithm = algorithms[params->mode]};
    unsigned set;
    WK_TRY(wk_reduce_dims(c, &params->dims, c->in[0]->rank, &set));
    wk_softmax_fold(c->in[0], set, w.shape);
    w.shape[3] = 1;
    w.x = wk_tensor_packed(c->in[0]);
    w.dy = c->in[1] ? wk_tensor_packed(c->in[1]) : NULL;
    if (!w.x || (c->in[1] && !w.dy))
        return wk_error_status();
    wk_cudnn_call d = {.call = c, .set_up = set_up, .run = queue, .data = &w};
    wk_key_shape(&d.key, 3, w.shape);
    return wk_cudnn_run(&d);
}

const wk_impl wk_cuda_impls_softmax[] = {
    {"softmax", "cudnn", run, refuse, NULL},
    {"softmax_backward", "cudnn", run, refuse, NULL},
    {0},
};
