/* miopen_softmax.c: softmax and its gradient by MIOpen. */
#include "dnn.h"
#include "gpu/families.h"
#include "gpu/vendor_ops.h"
#include "ops/softmax.h"
#include "wick/softmax.h"

static const miopenSoftmaxAlgorithm_t algorithms[] = {
    [WK_SOFTMAX_ACCURATE] = MIOPEN_SOFTMAX_ACCURATE,
    [WK_SOFTMAX_FAST] = MIOPEN_SOFTMAX_FAST,
    [WK_SOFTMAX_LOG] = MIOPEN_SOFTMAX_LOG,
};

typedef struct {
    wk_vendor_unary u;
    miopenSoftmaxAlgorithm_t algorithm;
    int64_t shape[4]; /* outer, the dims of a line, inner, 1 */
} work;

static const char *refuse(const wk_call *c)
{
    int64_t shape[4];
    if (c->dtype == WK_F16)
        return "MIOpen's softmax adds up f16 in f16";
    const char *why = wk_dnn_refuse(c, WK_SET(WK_F32));
    if (why)
        return why;
    return wk_vendor_softmax_shape(c, shape) ? NULL : "MIOpen's softmax takes dims that are neighbours";
}

static miopenStatus_t set_up(miopenHandle_t h, wk_dnn_plan *p, const void *data)
{
    const work *w = data;
    (void)h;
    return wk_dnn_tensor(p, 0, w->u.x->dtype, 4, w->shape);
}

static miopenStatus_t queue(miopenHandle_t h, const wk_dnn_plan *p, void *workspace, const void *data)
{
    const work *w = data;
    miopenTensorDescriptor_t t = p->tensor[0];
    (void)workspace;
    if (w->u.dy)
        return wk_miopen.miopenSoftmaxBackward_V2(h, &wk_dnn_one, t, wk_ptr(w->u.x), t, wk_ptr(w->u.dy),
                                                  &wk_dnn_zero, t, wk_ptr(w->u.out), w->algorithm,
                                                  MIOPEN_SOFTMAX_MODE_CHANNEL);
    return wk_miopen.miopenSoftmaxForward_V2(h, &wk_dnn_one, t, wk_ptr(w->u.x), &wk_dnn_zero, t,
                                             wk_ptr(w->u.out), w->algorithm, MIOPEN_SOFTMAX_MODE_CHANNEL);
}

static wk_status run(wk_call *c)
{
    work w = {.algorithm = algorithms[WK_PARAMS(c, wk_softmax_params)->mode]};
    wk_vendor_softmax_shape(c, w.shape);
    WK_TRY(wk_vendor_unary_of(c, &w.u));
    wk_dnn_call d = {.call = c, .set_up = set_up, .run = queue, .data = &w};
    wk_key_shape(&d.key, 3, w.shape);
    return wk_dnn_run(&d);
}

const wk_impl wk_rocm_impls_softmax[] = {
    {"softmax", "miopen", run, refuse, NULL},
    {"softmax_backward", "miopen", run, refuse, NULL},
    {0},
};
