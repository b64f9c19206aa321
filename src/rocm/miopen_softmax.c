/* miopen_softmax.c: softmax and its gradient by MIOpen. */
#include "dnn.h"
#include "gpu/families.h"
#include "ops/reduce.h"
#include "ops/softmax.h"
#include "wick/softmax.h"

static const miopenSoftmaxAlgorithm_t algorithms[] = {
    [WK_SOFTMAX_ACCURATE] = MIOPEN_SOFTMAX_ACCURATE,
    [WK_SOFTMAX_FAST] = MIOPEN_SOFTMAX_FAST,
    [WK_SOFTMAX_LOG] = MIOPEN_SOFTMAX_LOG,
};

typedef struct {
    const wk_tensor *x, *dy;
    wk_tensor *out;
    miopenSoftmaxAlgorithm_t algorithm;
    int64_t shape[4]; /* outer, the dims of a line, inner, 1 */
} work;

static const char *refuse(const wk_call *c)
{
    const wk_softmax_params *p = c->params;
    unsigned set;
    int64_t shape[3];
    if (c->dtype == WK_F16)
        return "MIOpen's softmax adds up f16 in f16";
    const char *why = wk_dnn_refuse(c, WK_SET(WK_F32));
    if (why)
        return why;
    if (wk_reduce_dims(c, &p->dims, c->in[0]->rank, &set) != WK_OK || !wk_softmax_fold(c->in[0], set, shape))
        return "MIOpen's softmax takes dims that are neighbours";
    return NULL;
}

static miopenStatus_t set_up(miopenHandle_t h, wk_dnn_plan *p, const void *data)
{
    const work *w = data;
    (void)h;
    return wk_dnn_tensor(p, 0, w->x->dtype, 4, w->shape);
}

static miopenStatus_t queue(miopenHandle_t h, const wk_dnn_plan *p, void *workspace, const void *data)
{
    const work *w = data;
    miopenTensorDescriptor_t t = p->tensor[0];
    (void)workspace;
    if (w->dy)
        return wk_miopen.miopenSoftmaxBackward_V2(h, &wk_dnn_one, t, wk_ptr(w->x), t, wk_ptr(w->dy),
                                                  &wk_dnn_zero, t, wk_ptr(w->out), w->algorithm,
                                                  MIOPEN_SOFTMAX_MODE_CHANNEL);
    return wk_miopen.miopenSoftmaxForward_V2(h, &wk_dnn_one, t, wk_ptr(w->x), &wk_dnn_zero, t, wk_ptr(w->out),
                                             w->algorithm, MIOPEN_SOFTMAX_MODE_CHANNEL);
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
    wk_dnn_call d = {.call = c, .set_up = set_up, .run = queue, .data = &w};
    wk_key_shape(&d.key, 3, w.shape);
    return wk_dnn_run(&d);
}

const wk_impl wk_rocm_impls_softmax[] = {
    {"softmax", "miopen", run, refuse, NULL},
    {"softmax_backward", "miopen", run, refuse, NULL},
    {0},
};
