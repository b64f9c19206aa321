/* cudnn_softmax.c: softmax and its gradient by cuDNN. */
#include "cudnn_plan.h"
#include "gpu/families.h"
#include "gpu/vendor_ops.h"
#include "ops/softmax.h"
#include "wick/softmax.h"

static const cudnnSoftmaxAlgorithm_t algorithms[] = {
    [WK_SOFTMAX_ACCURATE] = CUDNN_SOFTMAX_ACCURATE,
    [WK_SOFTMAX_FAST] = CUDNN_SOFTMAX_ACCURATE, /* its fast one overflows in f16 */
    [WK_SOFTMAX_LOG] = CUDNN_SOFTMAX_LOG,
};

typedef struct {
    wk_vendor_unary u;
    cudnnSoftmaxAlgorithm_t algorithm;
    int64_t shape[4]; /* outer, the dims of a line, inner, 1 */
} work;

static const char *refuse(const wk_call *c)
{
    int64_t shape[4];
    const char *why = wk_cudnn_refuse(c, WK_FLOATS);
    if (why)
        return why;
    return wk_vendor_softmax_shape(c, shape) ? NULL : "cuDNN's softmax takes dims that are neighbours";
}

static void set_up(cudnnHandle_t h, wk_cudnn_plan *p, const void *data)
{
    const work *w = data;
    (void)h;
    wk_cudnn_packed(p, 0, w->u.x->dtype, 4, w->shape);
}

static cudnnStatus_t queue(cudnnHandle_t h, const wk_cudnn_plan *p, void *workspace, const void *data)
{
    const work *w = data;
    cudnnTensorDescriptor_t t = p->tensor[0];
    const void *one = wk_cudnn_factor(w->u.x->dtype, true), *zero = wk_cudnn_factor(w->u.x->dtype, false);
    (void)workspace;
    if (w->u.dy)
        return wk_cudnn.cudnnSoftmaxBackward(h, w->algorithm, CUDNN_SOFTMAX_MODE_CHANNEL, one, t,
                                             wk_ptr(w->u.x), t, wk_ptr(w->u.dy), zero, t, wk_ptr(w->u.out));
    return wk_cudnn.cudnnSoftmaxForward(h, w->algorithm, CUDNN_SOFTMAX_MODE_CHANNEL, one, t, wk_ptr(w->u.x),
                                        zero, t, wk_ptr(w->u.out));
}

static wk_status run(wk_call *c)
{
    work w = {.algorithm = algorithms[WK_PARAMS(c, wk_softmax_params)->mode]};
    wk_vendor_softmax_shape(c, w.shape);
    WK_TRY(wk_vendor_unary_of(c, &w.u));
    wk_cudnn_call d = {.call = c, .set_up = set_up, .run = queue, .data = &w};
    wk_key_shape(&d.key, 3, w.shape);
    return wk_cudnn_run(&d);
}

const wk_impl wk_cuda_impls_softmax[] = {
    {"softmax", "cudnn", run, refuse, NULL},
    {"softmax_backward", "cudnn", run, refuse, NULL},
    {0},
};
