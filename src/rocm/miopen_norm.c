/* miopen_norm.c: layer and RMS norm by MIOpen, where it is new enough to have them. */
#include "dnn.h"
#include "gpu/families.h"
#include "ops/norm.h"
#include "wick/elementwise.h"

typedef struct {
    bool layer; /* else RMS, which has neither bias nor mean */
    double eps;
    int64_t shape[2]; /* lines of so many elements */
    const wk_tensor *x, *weight, *bias;
    wk_tensor *out, *mean, *invstd;
} work;

static const char *refuse_layer(const wk_call *c)
{
    if (c->dtype == WK_F32 || c->dtype == WK_F16) /* bf16 has fewer bits than are lost */
        return "MIOpen's variance, mean(x^2) - mean(x)^2, loses too many bits";
    const char *why = wk_dnn_refuse(c, WK_DNN_REALS);
    return why || wk_miopen.miopenLayerNormForward ? why : "this MIOpen has no layer norm";
}

static const char *refuse_rms(const wk_call *c)
{
    const char *why = wk_dnn_refuse(c, WK_DNN_REALS);
    return why || wk_miopen.miopenT5LayerNormForward ? why : "this MIOpen has no RMS norm";
}

static const char *refuse_rms_backward(const wk_call *c)
{
    (void)c;
    return "MIOpen's gradient of RMS norm leaves parts of dweight unwritten";
}

static const char *refuse_group(const wk_call *c)
{
    (void)c;
    return "MIOpen takes few shapes of group norm and prints about the others";
}

static miopenStatus_t set_up(miopenHandle_t h, wk_dnn_plan *p, const void *data)
{
    const work *w = data;
    wk_dtype t = w->x->dtype;
    (void)h;
    WK_DNN_TRY(wk_dnn_tensor(p, 0, t, 2, w->shape));
    WK_DNN_TRY(wk_dnn_tensor(p, 1, t, 1, &w->shape[1]));
    return wk_dnn_tensor(p, 2, t, 1, &w->shape[0]);
}

static miopenStatus_t queue(miopenHandle_t h, const wk_dnn_plan *p, void *workspace, const void *data)
{
    const work *w = data;
    miopenTensorDescriptor_t x = p->tensor[0], weight = p->tensor[1], stat = p->tensor[2];
    (void)workspace;
    if (w->layer)
        return wk_miopen.miopenLayerNormForward(
            h, MIOPEN_WEIGHT_BIAS, x, wk_ptr(w->x), weight, wk_ptr(w->weight), weight, wk_ptr(w->bias),
            (float)w->eps, 1, x, wk_ptr(w->out), stat, wk_ptr(w->mean), stat, wk_ptr(w->invstd));
    return wk_miopen.miopenT5LayerNormForward(h, MIOPEN_WEIGHT_BIAS_T5, x, wk_ptr(w->x), weight,
                                              wk_ptr(w->weight), (float)w->eps, x, wk_ptr(w->out), stat,
                                              wk_ptr(w->invstd));
}

static const wk_tensor *or_filled(const wk_call *c, const wk_tensor *t, int64_t n, double value)
{
    return t ? wk_tensor_packed(t) : wk_fill(c->device, c->dtype, 1, &n, value);
}

static wk_status run(wk_call *c)
{
    const wk_norm_params *params = c->params;
    wk_group_shape s = wk_group_shape_of(c->in[0], false, 1);
    work w = {.layer = strncmp(c->op->name, "layer", 5) == 0,
              .eps = params->eps,
              .shape = {s.samples, s.channels},
              .out = c->out[0],
              .x = wk_tensor_packed(c->in[0])};
    w.weight = or_filled(c, c->in[1], s.channels, 1);
    w.invstd = wk_tensor_new(c->device, c->dtype, 1, &s.samples);
    if (w.layer) {
        w.bias = or_filled(c, c->in[2], s.channels, 0);
        w.mean = wk_tensor_new(c->device, c->dtype, 1, &s.samples);
    }
    if (wk_pending())
        return wk_error_status();
    wk_dnn_call d = {.call = c, .set_up = set_up, .run = queue, .data = &w};
    wk_key_shape(&d.key, 2, w.shape);
    return wk_dnn_run(&d);
}

const wk_impl wk_rocm_impls_norm[] = {
    {"layer_norm", "miopen", run, refuse_layer, NULL},
    {"rms_norm", "miopen", run, refuse_rms, NULL},
    {"rms_norm_backward", "miopen", run, refuse_rms_backward, NULL},
    {"group_norm", "miopen", run, refuse_group, NULL},
    {0},
};
