/* miopen_norm.c: layer, RMS and group norm by MIOpen, where it is new enough to have them. */
#include "dnn.h"
#include "gpu/families.h"
#include "ops/norm.h"
#include "wick/ops.h"

typedef enum { LAYER, RMS, GROUP } kind;

typedef struct {
    kind kind;
    double eps;
    int64_t groups;
    int64_t shape[3]; /* lines of so many elements; of group norm samples, channels, inner */
    const wk_tensor *x, *weight, *bias, *dy; /* dy: of the gradient, which RMS norm alone has */
    wk_tensor *out, *mean, *invstd, *dweight;
} work;

static const char *refuse_layer(const wk_call *c)
{
    enum { MOST = (1 << 15) - 1 }; /* seen right up to 20000, NaN at 2^15 */
    const wk_tensor *x = c->in[0];
    const char *why = wk_dnn_refuse(c, WK_DNN_REALS);
    if (!why && c->dtype == WK_F16 && x->shape[x->rank - 1] > MOST)
        return "MIOpen counts a row's elements in f16";
    return why || wk_miopen.miopenLayerNormForward ? why : "this MIOpen has no layer norm";
}

static const char *refuse_rms(const wk_call *c)
{
    const char *why = wk_dnn_refuse(c, WK_DNN_REALS);
    return why || wk_miopen.miopenT5LayerNormForward ? why : "this MIOpen has no RMS norm";
}

static const char *refuse_rms_backward(const wk_call *c)
{
    if (c->dtype == WK_F16 || c->dtype == WK_BF16)
        return "MIOpen keeps the inverse deviations, and sums of dweight, in the dtype";
    const char *why = refuse_rms(c);
    return why || wk_miopen.miopenT5LayerNormBackward ? why : "this MIOpen has no gradient of RMS norm";
}

/* Asked for others, it prints. */
static const char *refuse_group(const wk_call *c)
{
    enum { FEWEST = 32, CHANNELS = 64 };
    wk_group_shape s = wk_group_shape_of(c->in[0], true, WK_PARAMS(c, wk_norm_params)->groups);
    const char *why = wk_dnn_refuse(c, WK_DNN_REALS);
    if (why)
        return why;
    if (s.samples * s.groups < FEWEST)
        return "MIOpen's group norm takes 32 groups and more, of all samples together";
    if (s.channels >= CHANNELS)
        return "MIOpen's group norm takes groups of fewer than 64 channels";
    return wk_miopen.miopenGroupNormForward ? NULL : "this MIOpen has no group norm";
}

const wk_tensor *wk_dnn_centred(const wk_tensor *x, int n, const int64_t *dims, const wk_tensor **mean)
{
    *mean = wk_mean(x, n, dims, 1);
    return wk_sub(x, *mean);
}

static miopenStatus_t set_up(miopenHandle_t h, wk_dnn_plan *p, const void *data)
{
    const work *w = data;
    wk_dtype t = w->x->dtype;
    bool group = w->kind == GROUP;
    const int64_t stats[] = {w->shape[0], w->groups};
    (void)h;
    WK_DNN_TRY(wk_dnn_tensor(p, 0, t, group ? 3 : 2, w->shape));
    WK_DNN_TRY(wk_dnn_tensor(p, 1, t, 1, &w->shape[1]));
    return wk_dnn_tensor(p, 2, t, group ? 2 : 1, stats);
}

/* Without a workspace dweight is left unwritten behind the last full group. */
static miopenStatus_t set_up_backward(miopenHandle_t h, wk_dnn_plan *p, const void *data)
{
    enum { WHOLE = 256 };
    const work *w = data;
    WK_DNN_TRY(set_up(h, p, data));
    miopenTensorDescriptor_t x = p->tensor[0], weight = p->tensor[1], stat = p->tensor[2];
    WK_DNN_TRY(wk_miopen.miopenGetT5LayerNormBackwardWorkspaceSize(h, MIOPEN_WEIGHT_BIAS_T5, x, x, weight,
                                                                   stat, x, weight, &p->workspace));
    return p->workspace || w->shape[1] % WHOLE == 0 ? miopenStatusSuccess : miopenStatusNotImplemented;
}

static miopenStatus_t queue(miopenHandle_t h, const wk_dnn_plan *p, void *workspace, const void *data)
{
    const work *w = data;
    miopenTensorDescriptor_t x = p->tensor[0], weight = p->tensor[1], stat = p->tensor[2];
    (void)workspace;
    if (w->kind == LAYER)
        return wk_miopen.miopenLayerNormForward(
            h, MIOPEN_WEIGHT_BIAS, x, wk_ptr(w->x), weight, wk_ptr(w->weight), weight, wk_ptr(w->bias),
            (float)w->eps, 1, x, wk_ptr(w->out), stat, wk_ptr(w->mean), stat, wk_ptr(w->invstd));
    if (w->kind == GROUP)
        return wk_miopen.miopenGroupNormForward(h, MIOPEN_WEIGHT_BIAS, x, wk_ptr(w->x), weight,
                                                wk_ptr(w->weight), weight, wk_ptr(w->bias),
                                                (uint64_t)w->groups, (float)w->eps, x, wk_ptr(w->out), stat,
                                                wk_ptr(w->mean), stat, wk_ptr(w->invstd));
    return wk_miopen.miopenT5LayerNormForward(h, MIOPEN_WEIGHT_BIAS_T5, x, wk_ptr(w->x), weight,
                                              wk_ptr(w->weight), (float)w->eps, x, wk_ptr(w->out), stat,
                                              wk_ptr(w->invstd));
}

/* The forward comes first, for the inverse deviations; its result goes where dx will be. */
static miopenStatus_t queue_backward(miopenHandle_t h, const wk_dnn_plan *p, void *workspace,
                                     const void *data)
{
    const work *w = data;
    miopenTensorDescriptor_t x = p->tensor[0], weight = p->tensor[1], stat = p->tensor[2];
    WK_DNN_TRY(queue(h, p, NULL, data));
    return wk_miopen.miopenT5LayerNormBackward(
        h, MIOPEN_WEIGHT_BIAS_T5, workspace, p->workspace, x, wk_ptr(w->dy), x, wk_ptr(w->x), weight,
        wk_ptr(w->weight), stat, wk_ptr(w->invstd), x, wk_ptr(w->out), weight, wk_ptr(w->dweight));
}

static const wk_tensor *or_filled(const wk_call *c, const wk_tensor *t, int64_t n, double value)
{
    return t ? wk_tensor_packed(t) : wk_fill(c->device, c->dtype, 1, &n, value);
}

static wk_status run_work(const wk_call *c, work *w)
{
    const int64_t stats = w->shape[0] * w->groups;
    w->eps = WK_PARAMS(c, wk_norm_params)->eps;
    w->weight = or_filled(c, c->in[w->dy ? 2 : 1], w->shape[1], 1);
    w->invstd = wk_tensor_new(c->device, c->dtype, 1, &stats);
    if (w->kind != RMS) {
        w->bias = or_filled(c, c->in[2], w->shape[1], 0);
        w->mean = wk_tensor_new(c->device, c->dtype, 1, &stats);
    }
    if (wk_pending())
        return wk_error_status();
    wk_dnn_call d = {.call = c, .set_up = set_up, .run = queue, .data = w};
    if (w->dy) {
        d.set_up = set_up_backward;
        d.run = queue_backward;
    }
    wk_key_shape(&d.key, 3, w->shape);
    wk_key_add(&d.key, w->groups);
    return wk_dnn_run(&d);
}

static wk_status run_lines(wk_call *c)
{
    wk_group_shape s = wk_group_shape_of(c->in[0], false, 1);
    work w = {.kind = wk_norm_is_rms(c->op) ? RMS : LAYER,
              .groups = 1,
              .shape = {s.samples, s.channels, 1},
              .out = c->out[0]};
    const wk_tensor *mean;
    w.x = wk_tensor_packed(c->in[0]);
    if (w.kind == LAYER)
        w.x = wk_dnn_centred(w.x, 1, (int64_t[]){-1}, &mean);
    return run_work(c, &w);
}

static wk_status run_rms_backward(wk_call *c)
{
    const wk_tensor *x = c->in[0];
    wk_group_shape s = wk_group_shape_of(x, false, 1);
    work w = {.kind = RMS, .groups = 1, .shape = {s.samples, s.channels, 1}};
    w.x = wk_tensor_packed(x);
    w.dy = wk_tensor_packed(c->in[1]);
    w.out = c->out[0] ? c->out[0] : wk_tensor_new(c->device, c->dtype, x->rank, x->shape);
    w.dweight = c->out[1] ? c->out[1] : wk_tensor_new(c->device, c->dtype, 1, &s.channels);
    return wk_pending() ? wk_error_status() : run_work(c, &w);
}

static wk_status run_group(wk_call *c)
{
    wk_group_shape s = wk_group_shape_of(c->in[0], true, WK_PARAMS(c, wk_norm_params)->groups);
    work w = {.kind = GROUP,
              .groups = s.groups,
              .shape = {s.samples, s.groups * s.channels, s.inner},
              .out = c->out[0]};
    const wk_tensor *packed = wk_tensor_packed(c->in[0]), *mean;
    w.x = wk_reshape(packed, 3, (int64_t[]){s.samples, s.groups, s.channels * s.inner});
    w.x = wk_dnn_centred(w.x, 1, (int64_t[]){-1}, &mean);
    return run_work(c, &w);
}

const wk_impl wk_rocm_impls_norm[] = {
    {"layer_norm", "miopen", run_lines, refuse_layer, NULL},
    {"rms_norm", "miopen", run_lines, refuse_rms, NULL},
    {"rms_norm_backward", "miopen", run_rms_backward, refuse_rms_backward, NULL},
    {"group_norm", "miopen", run_group, refuse_group, NULL},
    {0},
};
