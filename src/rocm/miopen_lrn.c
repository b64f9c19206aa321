/* miopen_lrn.c: local response norm and its gradient by MIOpen. */
#include "dnn.h"
#include "gpu/families.h"
#include "ops/norm.h"

typedef struct {
    const wk_lrn_params *p;
    int64_t shape[4];
    bool backward;
    const wk_tensor *x, *y, *dy;
    wk_tensor *out, *again; /* of the gradient, the forward's result is worked out again, for its workspace */
} work;

static const char *refuse(const wk_call *c)
{
    const wk_lrn_params *p = c->params;
    if (p->size % 2 == 0)
        return "MIOpen's windows of an even size lie elsewhere";
    if (p->k == 0)
        return "MIOpen takes no k of 0";
    if (c->dtype == WK_F16)
        return "MIOpen's LRN computes f16 in f16";
    return wk_dnn_refuse(c, WK_SET(WK_F32));
}

static miopenStatus_t destroy(wk_dnn_plan *p) { return wk_miopen.miopenDestroyLRNDescriptor(p->op); }

static miopenStatus_t set_up(miopenHandle_t h, wk_dnn_plan *p, const void *data)
{
    const work *w = data;
    miopenLRNDescriptor_t op;
    (void)h;
    WK_DNN_TRY(wk_dnn_tensor(p, 0, w->x->dtype, 4, w->shape));
    WK_DNN_TRY(wk_miopen.miopenCreateLRNDescriptor(&op));
    p->op = op;
    p->destroy = destroy;
    if (w->backward)
        WK_DNN_TRY(wk_miopen.miopenLRNGetWorkSpaceSize(p->tensor[0], &p->workspace));
    return wk_miopen.miopenSetLRNDescriptor(
        op, w->p->mode == WK_LRN_CROSS ? miopenLRNCrossChannel : miopenLRNWithinChannel, (unsigned)w->p->size,
        w->p->alpha, w->p->beta, w->p->k);
}

static miopenStatus_t queue(miopenHandle_t h, const wk_dnn_plan *p, void *workspace, const void *data)
{
    const work *w = data;
    miopenTensorDescriptor_t t = p->tensor[0];
    WK_DNN_TRY(wk_miopen.miopenLRNForward(h, p->op, &wk_dnn_one, t, wk_ptr(w->x), &wk_dnn_zero, t,
                                          wk_ptr(w->backward ? w->again : w->out), w->backward, workspace));
    if (!w->backward)
        return miopenStatusSuccess;
    return wk_miopen.miopenLRNBackward(h, p->op, &wk_dnn_one, t, wk_ptr(w->y), t, wk_ptr(w->dy), t,
                                       wk_ptr(w->x), &wk_dnn_zero, t, wk_ptr(w->out), workspace);
}

static wk_status run(wk_call *c)
{
    work w = {.p = c->params, .out = c->out[0], .backward = c->in[1] != NULL};
    const wk_tensor *x = c->in[0];
    memcpy(w.shape, x->shape, 2 * sizeof *x->shape);
    w.shape[2] = w.p->mode == WK_LRN_CROSS ? 1 : x->shape[2];
    w.shape[3] = wk_shape_count(x->rank - 2, x->shape + 2) / w.shape[2];
    w.x = wk_tensor_packed(x);
    if (w.backward) {
        w.y = wk_tensor_packed(c->in[1]);
        w.dy = wk_tensor_packed(c->in[2]);
        w.again = wk_tensor_new(c->device, c->dtype, x->rank, x->shape);
    }
    if (wk_pending())
        return wk_error_status();
    wk_dnn_call d = {.call = c, .set_up = set_up, .run = queue, .data = &w};
    wk_key_shape(&d.key, 4, w.shape);
    wk_key_shape(&d.key, 2, (int64_t[]){w.p->mode, w.p->size});
    wk_key_real(&d.key, w.p->alpha);
    wk_key_real(&d.key, w.p->beta);
    wk_key_real(&d.key, w.p->k);
    return wk_dnn_run(&d);
}

const wk_impl wk_rocm_impls_lrn[] = {
    {"lrn", "miopen", run, refuse, NULL},
    {"lrn_backward", "miopen", run, refuse, NULL},
    {0},
};
