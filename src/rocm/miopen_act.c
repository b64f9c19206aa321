/* miopen_act.c: MIOpen's fusions: a convolution, its bias or a batch norm, and an activation in one kernel, where it has
 * one. What a plan is made of stands in the order it is computed in. */
#include "core/memory.h"
#include "dnn.h"
#include "gpu/families.h"
#include "ops/act.h"
#include "ops/norm.h"
#include "wick/ops.h"

typedef struct {
    miopenActivationMode_t mode;
    double alpha, beta;
} activation;

typedef struct {
    bool conv, bias, norm;
    wk_conv_geometry g;
    wk_batch_shape s; /* without a convolution */
    activation a;
    double eps;
    const wk_tensor *x, *weight, *b, *scale, *shift, *mean, *var;
    wk_tensor *y;
} work;

/* Of a plan, beside its descriptors. */
typedef struct {
    miopenConvolutionDescriptor_t conv;
    miopenOperatorArgs_t args;
    miopenFusionOpDescriptor_t conv_op, bias_op, norm_op, act_op;
} parts;

enum { T_X, T_Y, T_WEIGHT, T_BIAS, T_STATS };

/* False where MIOpen has no such activation, or not as wick has it. */
static bool activation_of(const wk_call *c, activation *a)
{
    wk_act act = wk_act_of(c);
    *a = (activation){.alpha = act.alpha};
    switch (act.kind) {
    case WK_ACT_RELU:
        *a = (activation){miopenActivationELU, -0.0, 0};
        return true; /* its relu makes NaN of -inf */
    case WK_ACT_ELU: a->mode = miopenActivationELU; return true;
    case WK_ACT_SOFTPLUS: a->mode = miopenActivationSOFTRELU; return true;
    case WK_ACT_TANH: *a = (activation){miopenActivationTANH, 1, 1}; return true;
    case WK_ACT_LEAKY_RELU: a->mode = miopenActivationLEAKYRELU; return true;
    case WK_ACT_SIGMOID: a->mode = miopenActivationLOGISTIC; return true;
    case WK_ACT_ABS: a->mode = miopenActivationABS; return true;
    default: return false;
    }
}

/* The residual that is added before the activation; conv2d_bn_act has none. */
static const wk_tensor *residual(const wk_call *c)
{
    if (strcmp(c->op->name, "conv2d_bn_act") == 0)
        return NULL;
    return c->in[strcmp(c->op->name, "conv2d_bias_act") == 0 ? WK_CONV_ACT_Z : WK_NORM_ACT_Z];
}

static const char *refuse(const wk_call *c)
{
    activation a;
    if (residual(c))
        return "MIOpen's fusions add no z";
    if (!activation_of(c, &a))
        return "MIOpen's fusions have no such activation";
    return wk_dnn_refuse(c, WK_SET(WK_F32) | WK_SET(WK_F16));
}

/* ---- set-up ---- */

static miopenStatus_t destroy(wk_dnn_plan *p)
{
    parts *o = p->extra;
    if (o->args)
        wk_miopen.miopenDestroyOperatorArgs(o->args);
    if (o->conv)
        wk_miopen.miopenDestroyConvolutionDescriptor(o->conv);
    return wk_miopen.miopenDestroyFusionPlan(p->op);
}

static miopenStatus_t describe_conv(wk_dnn_plan *p, parts *o, const work *w)
{
    const wk_conv_geometry *g = &w->g;
    int padding[2], stride[2], dilation[2];
    for (int d = 0; d < 2; d++) {
        padding[d] = (int)g->padding[d + 1];
        stride[d] = (int)g->stride[d + 1];
        dilation[d] = (int)g->dilation[d + 1];
    }
    WK_DNN_TRY(wk_dnn_tensor(p, T_WEIGHT, w->x->dtype, 4, w->weight->shape));
    WK_DNN_TRY(wk_miopen.miopenCreateConvolutionDescriptor(&o->conv));
    WK_DNN_TRY(wk_miopen.miopenInitConvolutionNdDescriptor(o->conv, 2, padding, stride, dilation,
                                                           miopenConvolution));
    WK_DNN_TRY(wk_miopen.miopenSetConvolutionGroupCount(o->conv, (int)g->groups));
    return wk_miopen.miopenCreateOpConvForward(p->op, &o->conv_op, o->conv, p->tensor[T_WEIGHT]);
}

static miopenStatus_t add_ops(wk_dnn_plan *p, parts *o, const work *w, int64_t channels)
{
    const int64_t per_channel[] = {1, channels, 1, 1};
    if (w->conv)
        WK_DNN_TRY(describe_conv(p, o, w));
    if (w->bias) {
        WK_DNN_TRY(wk_dnn_tensor(p, T_BIAS, w->x->dtype, 4, per_channel));
        WK_DNN_TRY(wk_miopen.miopenCreateOpBiasForward(p->op, &o->bias_op, p->tensor[T_BIAS]));
    }
    if (w->norm) {
        WK_DNN_TRY(wk_dnn_tensor(p, T_STATS, WK_F32, 4, per_channel));
        WK_DNN_TRY(wk_miopen.miopenCreateOpBatchNormInference(p->op, &o->norm_op, miopenBNSpatial,
                                                              p->tensor[T_STATS]));
    }
    return wk_miopen.miopenCreateOpActivationForward(p->op, &o->act_op, w->a.mode);
}

static miopenStatus_t set_up(miopenHandle_t h, wk_dnn_plan *p, const void *data)
{
    const work *w = data;
    const int64_t plane[] = {w->s.n, w->s.c, 1, w->s.inner};
    miopenFusionPlanDescriptor_t fusion;
    parts *o = wk_alloc(sizeof *o);
    if (!o)
        return miopenStatusAllocFailed;
    *o = (parts){0};
    p->extra = o;
    WK_DNN_TRY(wk_dnn_tensor(p, T_X, w->x->dtype, 4, w->conv ? w->x->shape : plane));
    WK_DNN_TRY(wk_dnn_tensor(p, T_Y, w->x->dtype, 4, w->conv ? w->y->shape : plane));
    WK_DNN_TRY(wk_miopen.miopenCreateFusionPlan(&fusion, miopenVerticalFusion, p->tensor[T_X]));
    p->op = fusion;
    p->destroy = destroy;
    WK_DNN_TRY(add_ops(p, o, w, w->conv ? w->y->shape[1] : w->s.c));
    WK_DNN_TRY(wk_miopen.miopenCreateOperatorArgs(&o->args));
    return wk_miopen.miopenCompileFusionPlan(h, fusion);
}

static miopenStatus_t queue(miopenHandle_t h, const wk_dnn_plan *p, void *workspace, const void *data)
{
    const work *w = data;
    const parts *o = p->extra;
    const float *one = &wk_dnn_one, *zero = &wk_dnn_zero;
    (void)workspace;
    if (w->conv)
        WK_DNN_TRY(wk_miopen.miopenSetOpArgsConvForward(o->args, o->conv_op, one, zero, wk_ptr(w->weight)));
    if (w->bias)
        WK_DNN_TRY(wk_miopen.miopenSetOpArgsBiasForward(o->args, o->bias_op, one, zero, wk_ptr(w->b)));
    if (w->norm)
        WK_DNN_TRY(wk_miopen.miopenSetOpArgsBatchNormInference(o->args, o->norm_op, one, zero,
                                                               wk_ptr(w->scale), wk_ptr(w->shift),
                                                               wk_ptr(w->mean), wk_ptr(w->var), w->eps));
    WK_DNN_TRY(
        wk_miopen.miopenSetOpArgsActivForward(o->args, o->act_op, one, zero, w->a.alpha, w->a.beta, 0));
    return wk_miopen.miopenExecuteFusionPlan(h, p->op, p->tensor[T_X], wk_ptr(w->x), p->tensor[T_Y],
                                             wk_ptr(w->y), o->args);
}

/* ---- the calls ---- */

static const wk_tensor *or_filled(const wk_call *c, const wk_tensor *t, int64_t n, wk_dtype dtype,
                                  double value)
{
    return t ? wk_tensor_packed(t) : wk_fill(c->device, dtype, 1, &n, value);
}

/* in: weight, bias, mean and variance of the norm. */
static void take_norm(const wk_call *c, work *w, const wk_tensor *const *in, int64_t channels)
{
    w->norm = true;
    w->eps = WK_PARAMS(c, wk_act_params)->eps;
    w->scale = or_filled(c, in[0], channels, WK_F32, 1);
    w->shift = or_filled(c, in[1], channels, WK_F32, 0);
    w->mean = wk_tensor_packed(in[2]);
    w->var = wk_tensor_packed(in[3]);
}

static wk_status finish(const wk_call *c, work *w)
{
    if (wk_pending())
        return wk_error_status();
    activation_of(c, &w->a);
    wk_dnn_call d = {.call = c, .set_up = set_up, .run = queue, .data = w};
    wk_key_add(&d.key, w->a.mode);
    wk_key_add(&d.key, w->bias);
    if (w->conv) {
        wk_key_shape(&d.key, 4, w->x->shape);
        wk_key_shape(&d.key, 4, w->weight->shape);
        wk_key_add(&d.key, w->g.groups);
        wk_key_shape(&d.key, 3, w->g.stride);
        wk_key_shape(&d.key, 3, w->g.padding);
        wk_key_shape(&d.key, 3, w->g.dilation);
    } else {
        wk_key_shape(&d.key, 3, (int64_t[]){w->s.n, w->s.c, w->s.inner});
    }
    return wk_dnn_run(&d);
}

static wk_status start_conv(const wk_call *c, work *w)
{
    *w = (work){.conv = true, .y = c->out[0]};
    WK_TRY(wk_conv_geometry_of(c, &w->g));
    w->x = wk_tensor_packed(c->in[0]);
    w->weight = wk_tensor_packed(c->in[1]);
    return WK_OK;
}

static wk_status run_conv_bias(wk_call *c)
{
    work w;
    WK_TRY(start_conv(c, &w));
    w.bias = true;
    w.b = or_filled(c, c->in[2], c->out[0]->shape[1], c->dtype, 0);
    return finish(c, &w);
}

static wk_status run_conv_norm(wk_call *c)
{
    work w;
    WK_TRY(start_conv(c, &w));
    w.bias = c->in[2] != NULL;
    w.b = w.bias ? wk_tensor_packed(c->in[2]) : NULL;
    take_norm(c, &w, c->in + WK_CONV_BN_WEIGHT, c->out[0]->shape[1]);
    return finish(c, &w);
}

static wk_status run_norm(wk_call *c)
{
    work w = {.y = c->out[0]};
    w.s = wk_batch_shape_of(c->in[0], (int)WK_PARAMS(c, wk_act_params)->mode);
    w.x = wk_tensor_packed(c->in[0]);
    take_norm(c, &w, c->in + 1, w.s.c);
    return finish(c, &w);
}

const wk_impl wk_rocm_impls_act[] = {
    {"conv2d_bias_act", "miopen", run_conv_bias, refuse, NULL},
    {"conv2d_bn_act", "miopen", run_conv_norm, refuse, NULL},
    {"batch_norm_act", "miopen", run_norm, refuse, NULL},
    {0},
};
