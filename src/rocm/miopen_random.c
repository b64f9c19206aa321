/* miopen_random.c: dropout by MIOpen. Its own random numbers differ from wick's, which are the same on every device: wick
 * writes the mask, MIOpen applies it. */
#include "dnn.h"
#include "gpu/families.h"
#include "gpu/random.h"
#include "ops/random.h"

typedef struct {
    double p;
    bool backward;
    const wk_tensor *x, *mask;
    wk_tensor *y;
} work;

static const char *refuse(const wk_call *c)
{
    if (c->dtype == WK_BF16)
        return "MIOpen's dropout takes bf16 for f32";
    return wk_dnn_refuse(c, WK_DNN_REALS);
}

static miopenStatus_t destroy(wk_dnn_plan *p) { return wk_miopen.miopenDestroyDropoutDescriptor(p->op); }

/* With a mask given no generator is started: there are no states. */
static miopenStatus_t set_up(miopenHandle_t h, wk_dnn_plan *p, const void *data)
{
    const work *w = data;
    int64_t count = wk_count(w->x);
    miopenDropoutDescriptor_t op;
    WK_DNN_TRY(wk_dnn_tensor(p, 0, w->x->dtype, 1, &count));
    WK_DNN_TRY(wk_miopen.miopenCreateDropoutDescriptor(&op));
    p->op = op;
    p->destroy = destroy;
    return wk_miopen.miopenRestoreDropoutDescriptor(op, h, (float)w->p, NULL, 0, 0, true, false,
                                                    MIOPEN_RNG_PSEUDO_XORWOW);
}

static miopenStatus_t queue(miopenHandle_t h, const wk_dnn_plan *p, void *workspace, const void *data)
{
    const work *w = data;
    miopenTensorDescriptor_t t = p->tensor[0];
    (void)workspace;
    return (w->backward ? wk_miopen.miopenDropoutBackward : wk_miopen.miopenDropoutForward)(
        h, p->op, t, t, wk_ptr(w->x), t, wk_ptr(w->y), wk_ptr(w->mask), (size_t)wk_count(w->mask));
}

static wk_status run(wk_call *c)
{
    const wk_dropout_params *params = c->params;
    const wk_tensor *x = c->in[0];
    work w = {.p = params->p, .backward = strstr(c->op->name, "backward") != NULL, .y = c->out[0]};
    const wk_tensor *given = w.backward ? c->in[1] : NULL;
    w.x = wk_tensor_packed(x);
    if (given) {
        w.mask = wk_tensor_packed(given);
    } else {
        wk_tensor *made = c->out[1] ? c->out[1] : wk_tensor_new(c->device, WK_U8, x->rank, x->shape);
        if (made)
            WK_TRY(wk_dropout_mask(c, wk_ptr(made), wk_count(made)));
        w.mask = made;
    }
    if (wk_pending())
        return wk_error_status();
    wk_dnn_call d = {.call = c, .set_up = set_up, .run = queue, .data = &w};
    wk_key_add(&d.key, wk_count(w.x));
    wk_key_real(&d.key, w.p);
    return wk_dnn_run(&d);
}

const wk_impl wk_rocm_impls_random[] = {
    {"dropout", "miopen", run, refuse, NULL},
    {"dropout_backward", "miopen", run, refuse, NULL},
    {0},
};
