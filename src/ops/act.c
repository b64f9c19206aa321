/* act.c: front ends of the ops with an activation at their end. */
#include "act.h"
#include "core/families.h"

#define ACTS \
    "none|relu|gelu|gelu_erf|silu|sigmoid|tanh|softplus|leaky_relu|elu|clamp|relu6|hard_swish|hard_sigmoid|" \
    "mish|abs"

enum {
    OP_bias_act,
    OP_bias_act_backward,
    OP_silu_mul,
    OP_silu_mul_backward,
    OP_linear_act,
    OP_conv2d_bias_act,
    OP_conv2d_bn_act,
    OP_batch_norm_act,
};

const char *wk_act_name(int64_t act)
{
    static const char *const names[] = {
        "none",       "relu", "gelu",  "gelu_erf", "silu",       "sigmoid",      "tanh", "softplus",
        "leaky_relu", "elu",  "clamp", "relu6",    "hard_swish", "hard_sigmoid", "mish", "abs"};
    return names[act];
}

wk_act wk_act_of(const wk_call *c)
{
    const wk_act_params *p = c->params;
    double alpha = p->act == WK_ACT_LEAKY_RELU ? 0.01 : p->act == WK_ACT_CLAMP ? -INFINITY : 1;
    return (wk_act){(wk_activation)p->act, isnan(p->alpha) ? alpha : p->alpha,
                    isnan(p->beta) ? INFINITY : p->beta};
}

wk_status wk_act_finish(const wk_call *c, const wk_tensor *x, const wk_tensor *bias, const wk_tensor *z,
                        int64_t dim, wk_tensor *out)
{
    wk_act_params p = *WK_PARAMS(c, wk_act_params);
    p.dim = dim;
    wk_call finish = {.op = &wk_ops_act[OP_bias_act], .params = &p, .in = {x, bias, z}, .out = {out}};
    return wk_call_run(&finish);
}

/* ---- checks and outputs ---- */

static wk_status check_act(const wk_call *c)
{
    int64_t act = WK_PARAMS(c, wk_act_params)->act;
    WK_NEED(act >= WK_ACT_NONE && act <= WK_ACT_ABS, c, WK_ERR_PARAM, "act",
            "expected one of wk_activation, got %d", (int)act);
    wk_act a = wk_act_of(c);
    WK_NEED(act != WK_ACT_CLAMP || a.alpha <= a.beta, c, WK_ERR_PARAM, "alpha",
            "expected at most beta for clamp, got %g and %g", a.alpha, a.beta);
    return WK_OK;
}

/* The bias of bias_act. */
static wk_status check_bias(const wk_call *c)
{
    const wk_tensor *x = c->in[0];
    int dim;
    if (!c->in[1])
        return WK_OK;
    WK_TRY(wk_call_dim(c, "dim", WK_PARAMS(c, wk_act_params)->dim, x->rank, &dim));
    return wk_call_shape(c, 1, 1, &x->shape[dim]);
}

static wk_status infer_bias_act(wk_call *c)
{
    WK_TRY(check_act(c));
    WK_TRY(check_bias(c));
    wk_call_out_like(c, 0, c->in[0]);
    return c->in[WK_BIAS_ACT_Z] ? wk_call_same_shape(c, WK_BIAS_ACT_Z, 0) : WK_OK;
}

static wk_status infer_bias_act_backward(wk_call *c)
{
    const wk_tensor *x = c->in[0];
    int64_t one = 1;
    int dim = 0;
    WK_TRY(infer_bias_act(c));
    WK_TRY(wk_call_same_shape(c, 3, 0));
    if (x->rank > 0)
        WK_TRY(wk_call_dim(c, "dim", WK_PARAMS(c, wk_act_params)->dim, x->rank, &dim));
    wk_call_out(c, 1, c->dtype, 1, x->rank > 0 ? &x->shape[dim] : &one);
    return WK_OK;
}

/* up in a tensor of its own, or as the second half of gate's last dimension. */
static wk_status infer_silu_mul(wk_call *c)
{
    const wk_tensor *gate = c->in[0];
    int64_t shape[WK_MAX_RANK];
    if (c->in[1])
        WK_TRY(wk_call_same_shape(c, 1, 0));
    else
        WK_TRY(wk_call_rank(c, 0, 1, WK_MAX_RANK));
    memcpy(shape, gate->shape, sizeof shape);
    if (!c->in[1]) {
        WK_NEED(gate->shape[gate->rank - 1] % 2 == 0, c, WK_ERR_SHAPE, "gate",
                "expected an even last dimension where there is no up, got %lld",
                (long long)gate->shape[gate->rank - 1]);
        shape[gate->rank - 1] /= 2;
    }
    wk_call_out(c, 0, c->dtype, gate->rank, shape);
    return WK_OK;
}

static wk_status infer_silu_mul_backward(wk_call *c)
{
    WK_TRY(infer_silu_mul(c));
    WK_TRY(wk_call_shape(c, 2, c->spec[0].rank, c->spec[0].shape));
    wk_call_out_like(c, 0, c->in[0]);
    wk_call_out(c, 1, c->dtype, c->in[1] ? c->in[0]->rank : 1, c->in[1] ? c->in[0]->shape : (int64_t[]){0});
    return WK_OK;
}

static wk_status infer_linear_act(wk_call *c)
{
    const wk_tensor *x = c->in[0], *w = c->in[1];
    int64_t shape[WK_MAX_RANK];
    WK_TRY(check_act(c));
    WK_TRY(wk_call_rank(c, 0, 1, WK_MAX_RANK));
    WK_TRY(wk_call_rank(c, 1, 2, 2));
    WK_TRY(wk_call_shape(c, 1, 2, (int64_t[]){w->shape[0], x->shape[x->rank - 1]}));
    if (c->in[2])
        WK_TRY(wk_call_shape(c, 2, 1, &w->shape[0]));
    memcpy(shape, x->shape, sizeof shape);
    shape[x->rank - 1] = w->shape[0];
    wk_call_out(c, 0, c->dtype, x->rank, shape);
    return c->in[WK_LINEAR_ACT_Z] ? wk_call_shape(c, WK_LINEAR_ACT_Z, x->rank, shape) : WK_OK;
}

static wk_status infer_conv_bias_act(wk_call *c)
{
    WK_TRY(check_act(c));
    WK_TRY(wk_conv_infer(c));
    return c->in[WK_CONV_ACT_Z] ? wk_call_shape(c, WK_CONV_ACT_Z, 4, c->spec[0].shape) : WK_OK;
}

static wk_status check_eps(const wk_call *c)
{
    double eps = WK_PARAMS(c, wk_act_params)->eps;
    WK_NEED(eps >= 0, c, WK_ERR_PARAM, "eps", "expected 0 or more, got %g", eps);
    return WK_OK;
}

static wk_status infer_conv_bn_act(wk_call *c)
{
    WK_TRY(check_act(c));
    WK_TRY(check_eps(c));
    WK_TRY(wk_conv_infer(c));
    for (int i = WK_CONV_BN_WEIGHT; i <= WK_CONV_BN_VAR; i++) {
        if (c->in[i])
            WK_TRY(wk_call_shape(c, i, 1, &c->spec[0].shape[1]));
    }
    return WK_OK;
}

static wk_status infer_norm_act(wk_call *c)
{
    const wk_tensor *x = c->in[0];
    int64_t mode = WK_PARAMS(c, wk_act_params)->mode;
    WK_TRY(check_act(c));
    WK_TRY(check_eps(c));
    WK_TRY(wk_call_rank(c, 0, 2, 5));
    WK_NEED(mode == WK_BATCH_NORM_SPATIAL || mode == WK_BATCH_NORM_PER_ACTIVATION, c, WK_ERR_PARAM, "mode",
            "expected one of wk_batch_norm_mode, got %d", (int)mode);
    for (int i = 1; i < WK_NORM_ACT_Z; i++) {
        if (c->in[i])
            WK_TRY(wk_call_shape(c, i, mode == WK_BATCH_NORM_SPATIAL ? 1 : x->rank - 1, x->shape + 1));
    }
    wk_call_out_like(c, 0, x);
    return c->in[WK_NORM_ACT_Z] ? wk_call_same_shape(c, WK_NORM_ACT_Z, 0) : WK_OK;
}

/* ---- the table ---- */

#define SAMPLES(name, ...) static const char *const name[] = {__VA_ARGS__, NULL}

SAMPLES(bias_act_samples, "x=T[4,5] bias=T[5] act=gelu", "x=T[3,2048] bias=T[2048] act=gelu",
        "x=T[4,5] bias=T[5] z=T[4,5] act=gelu_erf", "x=T[2,3,7] bias=T[3] z=T[2,3,7] dim=1 act=silu",
        "x=T[2,3,4,8] bias=T[3] dim=1 act=relu", "x=T[9] act=tanh", "x=T[3,1025] z=T[3,1025] act=sigmoid",
        "x=T[3,33] bias=T[33] act=softplus", "x=T[3,33] bias=T[33] act=leaky_relu",
        "x=T[3,33] bias=T[33] act=leaky_relu alpha=0.3", "x=T[3,33] bias=T[33] act=elu alpha=0.5",
        "x=T[3,32] bias=T[32] act=clamp alpha=-0.5 beta=1", "x=T[3,33] bias=T[33] act=clamp beta=0.5",
        "x=T[3,33] bias=T[33] act=relu6", "x=T[3,33] act=hard_swish", "x=T[3,33] bias=T[33] act=hard_sigmoid",
        "x=T[3,33] bias=T[33] act=mish", "x=T[3,33] bias=T[33] act=abs",
        "x=T[40,256] bias=T[256] z=T[40,256] act=gelu", "x=T[6]:special bias=T[6] act=relu", "x=T[] act=gelu",
        "x=T[4,3] z=T[4,3]", "x=T[0,3] bias=T[3] act=relu", "x=T[3,0] bias=T[0]");
SAMPLES(bias_act_errors, "bias=T[3] ! x", "x=T[4,3] bias=T[4] ! bias", "x=T[4,3] bias=T[3,1] ! bias",
        "x=T[4,3] bias=T[3] dim=2 ! dim", "x=T[4,3] z=T[3,4] ! z", "x=T[4,3] act=cube ! act",
        "x=i32[4,3] ! dtype", "x=T[4,3] bias=i32[3] ! bias", "x=T[4,3] act=clamp alpha=2 beta=1 ! alpha",
        "x=T[4,3] alpha=x ! alpha");
SAMPLES(bias_act_backward_samples, "x=T[4,5] bias=T[5] dy=T[4,5] act=gelu",
        "x=T[4,5] bias=T[5] z=T[4,5] dy=T[4,5] act=gelu_erf",
        "x=T[2,3,7] bias=T[3] dy=T[2,3,7] dim=1 act=silu", "x=T[9] dy=T[9] act=tanh",
        "x=T[3,33] z=T[3,33] dy=T[3,33] act=sigmoid", "x=T[3,5] bias=T[5] dy=T[3,5]",
        "x=T[3,5] bias=T[5] dy=T[3,5] act=elu alpha=0.5", "x=T[0,3] bias=T[3] dy=T[0,3] act=relu",
        "x=T[] dy=T[] act=gelu");
SAMPLES(bias_act_backward_errors, "x=T[4,3] bias=T[3] ! dy", "x=T[4,3] dy=T[3,4] ! dy",
        "x=T[4,3] bias=T[4] dy=T[4,3] ! bias", "x=T[4,3] dy=T[4,3] act=cube ! act");
SAMPLES(silu_mul_samples, "gate=T[4,5] up=T[4,5]", "gate=T[4,10]", "gate=T[3,4096]", "gate=T[3,2,1026]",
        "gate=T[5,512]", "gate=T[1025] up=T[1025]", "gate=T[6]:special up=T[6]", "gate=T[] up=T[]",
        "gate=T[0,4]", "gate=T[3,0]", "gate=T[40,256] up=T[40,256]");
SAMPLES(silu_mul_errors, "up=T[3] ! gate", "gate=T[3,5] ! gate", "gate=T[] ! gate", "gate=T[3] up=T[4] ! up",
        "gate=i32[4] ! dtype", "gate=f32[4] up=f16[4] ! up");
SAMPLES(silu_mul_backward_samples, "gate=T[4,5] up=T[4,5] dy=T[4,5]", "gate=T[4,10] dy=T[4,5]",
        "gate=T[5,512] dy=T[5,256]", "gate=T[1025] up=T[1025] dy=T[1025]", "gate=T[3,2,18] dy=T[3,2,9]",
        "gate=T[0,4] dy=T[0,2]");
SAMPLES(silu_mul_backward_errors, "gate=T[4,10] ! dy", "gate=T[4,10] dy=T[4,10] ! dy",
        "gate=T[4,5] up=T[4,4] dy=T[4,5] ! up");
SAMPLES(linear_act_samples, "x=T[4,5] weight=T[3,5] bias=T[3] act=gelu",
        "x=T[2,3,5] weight=T[4,5] z=T[2,3,4]", "x=T[5] weight=T[3,5] act=relu",
        "x=T[33,65] weight=T[17,65] bias=T[17] z=T[33,17] act=silu",
        "x=T[6,300]:0..1 weight=T[9,300]:0..1 bias=T[9] z=T[6,9] act=leaky_relu alpha=0.2",
        "x=T[70,600]:0..1 weight=T[66,600]:0..1 bias=T[66] z=T[70,66] act=tanh",
        "x=T[72,64] weight=T[128,64] bias=T[128] z=T[72,128] act=gelu",
        "x=T[72,64] weight=T[128,64] bias=T[128] act=gelu",
        "x=T[72,64] weight=T[128,64] z=T[72,128]:special act=gelu",
        "x=T[16,64] weight=T[24,64] bias=T[24] z=T[16,24]",
        "x=T[16,64] weight=T[24,64] bias=T[24]:special act=gelu",
        "x=T[16,64] weight=T[24,64] bias=T[24]:special act=relu",
        "x=T[1,616]:0..1 weight=T[37,616]:0..1 bias=T[37] z=T[1,37] act=silu",
        "x=T[0,5] weight=T[3,5] act=relu", "x=T[3,0] weight=T[4,0] bias=T[4] z=T[3,4] act=relu");
SAMPLES(linear_act_errors, "x=T[4,5] ! weight", "x=T[4,5] weight=T[3,4] ! weight",
        "x=T[4,5] weight=T[3,5] bias=T[5] ! bias", "x=T[4,5] weight=T[3,5] z=T[4,5] ! z",
        "x=T[4,5] weight=T[3,5] act=cube ! act", "x=T[] weight=T[3,5] ! x");
SAMPLES(conv_bias_act_samples, "x=T[2,3,7,8] weight=T[5,3,3,3] bias=T[5] padding=1 act=relu",
        "x=T[1,9,18,19] weight=T[10,9,3,3] bias=T[10] padding=1 act=silu",
        "x=T[2,3,7,8] weight=T[5,3,3,3] bias=T[5] z=T[2,5,7,8] padding=1 act=relu",
        "x=T[1,4,9,7] weight=T[6,2,3,2] groups=2 stride=2,3 padding=1,0 bias=T[6] act=silu",
        "x=T[2,6,9,11] weight=T[6,1,3,3] groups=6 padding=1 bias=T[6] act=relu6",
        "x=T[2,6,9,11] weight=T[6,1,3,3] groups=6 padding=1 z=T[2,6,9,11] act=gelu",
        "x=T[3,6,5,5] weight=T[4,6,1,1] act=leaky_relu alpha=0.1",
        "x=T[1,16,12,12] weight=T[20,16,3,3] bias=T[20] padding=1 act=clamp alpha=-1 beta=2",
        "x=T[1,24,12,12] weight=T[66,24,3,3] z=T[1,66,12,12] padding=1 act=elu",
        "x=T[1,16,25,41] weight=T[24,16,3,3] bias=T[24] padding=1 act=relu",
        "x=T[1,6,15,17] weight=T[20,6,3,3] bias=T[20] z=T[1,20,15,17] padding=1 act=leaky_relu alpha=0.2",
        "x=T[2,8,9,7] weight=T[16,8,3,3] bias=T[16] padding=1 act=relu",
        "x=T[2,5,9,9] weight=T[16,5,3,3] bias=T[16] z=T[2,16,4,4] stride=2 act=relu",
        "x=T[1,16,6,7] weight=T[24,16,3,3] z=T[1,24,6,7] padding=1",
        "x=T[2,2,6,6] weight=T[3,2,3,3] dilation=2 bias=T[3]", "x=T[0,2,5,5] weight=T[3,2,2,2] act=relu",
        "x=T[2,0,5,5] weight=T[3,0,2,2] bias=T[3] act=relu");
SAMPLES(conv_bias_act_errors, "x=T[1,2,5,5] ! weight", "x=T[1,2,5] weight=T[3,2,2,2] ! x",
        "x=T[1,2,5,5] weight=T[3,3,2,2] ! weight", "x=T[1,2,5,5] weight=T[3,2,6,2] ! padded",
        "x=T[1,2,5,5] weight=T[3,2,2,2] bias=T[2] ! bias", "x=T[1,2,5,5] weight=T[3,2,2,2] z=T[1,3,5,5] ! z",
        "x=T[1,2,5,5] weight=T[3,2,2,2] act=cube ! act", "x=T[1,2,5,5] weight=T[3,2,2,2] stride=0 ! stride",
        "x=T[1,3,5,5] weight=T[4,1,2,2] groups=2 ! groups");
SAMPLES(
    conv_bn_act_samples, "x=T[2,3,7,8] weight=T[5,3,3,3] mean=S[5] var=S[5]:0.5..2 padding=1 act=relu",
    "x=T[2,3,7,8] weight=T[5,3,3,3] bias=T[5] bn_weight=S[5] bn_bias=S[5] mean=S[5] var=S[5]:0.5..2 "
    "padding=1 "
    "act=silu eps=0.01",
    "x=T[1,4,9,7] weight=T[6,2,3,2] groups=2 stride=2,3 bn_weight=S[6] bn_bias=S[6] mean=S[6] "
    "var=S[6]:0.5..2 "
    "act=leaky_relu",
    "x=T[2,6,9,11] weight=T[6,1,3,3] groups=6 padding=1 bn_bias=S[6] mean=S[6] var=S[6]:0.5..2 act=relu6",
    "x=T[0,2,5,5] weight=T[3,2,2,2] mean=S[3] var=S[3] act=relu",
    "x=T[2,8,9,7] weight=T[16,8,3,3] bias=T[16] bn_weight=S[16] bn_bias=S[16] mean=S[16] var=S[16]:0.5..2 "
    "padding=1 act=relu eps=0.01",
    "x=T[1,5,8,8] weight=T[8,5,3,3] mean=S[8] var=S[8]:0.5..2 stride=2 act=relu",
    "x=T[1,24,12,12] weight=T[66,24,3,3] bn_weight=S[66] bn_bias=S[66] mean=S[66] var=S[66]:0.5..2 "
    "padding=1");
SAMPLES(conv_bn_act_errors, "x=T[1,2,5,5] weight=T[3,2,2,2] var=S[3] ! mean",
        "x=T[1,2,5,5] weight=T[3,2,2,2] mean=S[3] ! var",
        "x=T[1,2,5,5] weight=T[3,2,2,2] mean=S[2] var=S[3] ! mean",
        "x=T[1,2,5,5] weight=T[3,2,2,2] bn_weight=S[2] mean=S[3] var=S[3] ! bn_weight",
        "x=T[1,2,5,5] weight=T[3,2,2,2] mean=S[3] var=S[3] eps=-1 ! eps",
        "x=T[1,2,5,5] weight=T[3,2,2,2] mean=i32[3] var=S[3] ! mean");
SAMPLES(norm_act_samples, "x=T[4,3] mean=S[3] var=S[3]:0.5..2 act=relu",
        "x=T[2,3,4,5] weight=S[3] bias=S[3] mean=S[3] var=S[3]:0.5..2 z=T[2,3,4,5] act=relu eps=0.01",
        "x=T[2,3,7,9] weight=S[3] mean=S[3] var=S[3]:0.5..2 act=silu",
        "x=T[2,3,4,3,2] bias=S[3] mean=S[3] var=S[3]:0.5..2 z=T[2,3,4,3,2] act=elu",
        "x=T[5,2,3] mode=per_activation weight=S[2,3] bias=S[2,3] mean=S[2,3] var=S[2,3]:0.5..2 act=tanh",
        "x=T[5,2,3] mode=per_activation weight=S[2,3] mean=S[2,3] var=S[2,3]:0.5..2 z=T[5,2,3] act=gelu",
        "x=T[1,2,150,150] mean=S[2] var=S[2]:0.5..2 act=leaky_relu alpha=0.2",
        "x=T[2,3]:special mean=S[3] var=S[3]:0.5..2 act=relu",
        "x=T[0,3,4] mean=S[3] var=S[3]:0.5..2 act=relu");
SAMPLES(norm_act_errors, "mean=S[3] var=S[3] ! x", "x=T[4,3] var=S[3] ! mean",
        "x=T[4,3] mean=S[4] var=S[3] ! mean", "x=T[4,3] mean=S[3] var=S[3] eps=-1 ! eps",
        "x=T[4,3] mean=S[3] var=S[3] z=T[3,4] ! z", "x=T[4,3] mean=S[3] var=S[3] act=cube ! act",
        "x=T[3] mean=S[3] var=S[3] ! x", "x=T[4,3] mean=S[3] var=S[3] mode=other ! mode");

#define AT(field) offsetof(wk_act_params, field)
/* clang-format off */
#define ACT \
    {"act", WK_P_ENUM, AT(act), "none", ACTS, 0}, {"alpha", WK_P_FLOAT, AT(alpha), "by_act", NULL, 0}, \
    {"beta", WK_P_FLOAT, AT(beta), "inf", NULL, 0}
#define EPS {"eps", WK_P_FLOAT, AT(eps), "1e-5", NULL, 0}
#define DIM {"dim", WK_P_INT, AT(dim), "-1", NULL, 0}
#define OPTION(name, fallback) {#name, WK_P_INTS, AT(conv.options.name), fallback, NULL, 2}
#define CONV \
    OPTION(stride, "1"), OPTION(padding, "0"), OPTION(dilation, "1"), \
    {"groups", WK_P_INT, AT(conv.options.groups), "1", NULL, 0}
/* clang-format on */

wk_op wk_ops_act[] = {
    [OP_bias_act] = {.name = "bias_act",
                     .summary = "act(x + bias + z)",
                     .dtypes = WK_FLOATS,
                     .in = {{"x", 0, 0}, {"bias", WK_OPTIONAL, 0}, {"z", WK_OPTIONAL, 0}},
                     .out = {{"y", 0, 0}},
                     .params = WK_PARAM_LIST(DIM, ACT),
                     .infer = infer_bias_act,
                     .samples = bias_act_samples,
                     .errors = bias_act_errors},
    [OP_bias_act_backward] =
        {.name = "bias_act_backward",
         .summary = "gradient of bias_act",
         .dtypes = WK_FLOATS,
         .in = {{"x", 0, 0}, {"bias", WK_OPTIONAL, 0}, {"z", WK_OPTIONAL, 0}, {"dy", 0, 0}},
         .out = {{"dx", 0, 0}, {"dbias", WK_SKIP, 0}},
         .params = WK_PARAM_LIST(DIM, ACT),
         .infer = infer_bias_act_backward,
         .samples = bias_act_backward_samples,
         .errors = bias_act_backward_errors},
    [OP_silu_mul] = {.name = "silu_mul",
                     .summary =
                         "silu(gate) * up, the middle of SwiGLU; without up gate holds both, half and half",
                     .dtypes = WK_FLOATS,
                     .in = {{"gate", 0, 0}, {"up", WK_OPTIONAL, 0}},
                     .out = {{"y", 0, 0}},
                     .infer = infer_silu_mul,
                     .samples = silu_mul_samples,
                     .errors = silu_mul_errors},
    [OP_silu_mul_backward] = {.name = "silu_mul_backward",
                              .summary = "gradient of silu_mul",
                              .dtypes = WK_FLOATS,
                              .in = {{"gate", 0, 0}, {"up", WK_OPTIONAL, 0}, {"dy", 0, 0}},
                              .out = {{"dgate", WK_SKIP, 0}, {"dup", WK_SKIP, 0}},
                              .infer = infer_silu_mul_backward,
                              .samples = silu_mul_backward_samples,
                              .errors = silu_mul_backward_errors},
    [OP_linear_act] = {.name = "linear_act",
                       .summary = "act(x . weight^T + bias + z)",
                       .dtypes = WK_FLOATS,
                       .in = {{"x", 0, 0}, {"weight", 0, 0}, {"bias", WK_OPTIONAL, 0}, {"z", WK_OPTIONAL, 0}},
                       .out = {{"y", 0, 0}},
                       .params = WK_PARAM_LIST(ACT),
                       .infer = infer_linear_act,
                       .samples = linear_act_samples,
                       .errors = linear_act_errors},
    [OP_conv2d_bias_act] =
        {.name = "conv2d_bias_act",
         .summary = "act(conv2d(x, weight, bias) + z)",
         .dtypes = WK_FLOATS,
         .in = {{"x", 0, 0}, {"weight", 0, 0}, {"bias", WK_OPTIONAL, 0}, {"z", WK_OPTIONAL, 0}},
         .out = {{"y", 0, 0}},
         .params = WK_PARAM_LIST(CONV, ACT),
         .infer = infer_conv_bias_act,
         .samples = conv_bias_act_samples,
         .errors = conv_bias_act_errors},
    [OP_conv2d_bn_act] = {.name = "conv2d_bn_act",
                          .summary = "act(batch_norm_infer(conv2d(x, weight, bias)))",
                          .dtypes = WK_FLOATS,
                          .in = {{"x", 0, 0},
                                 {"weight", 0, 0},
                                 {"bias", WK_OPTIONAL, 0},
                                 {"bn_weight", WK_OPTIONAL | WK_STAT, 0},
                                 {"bn_bias", WK_OPTIONAL | WK_STAT, 0},
                                 {"mean", WK_STAT, 0},
                                 {"var", WK_STAT, 0}},
                          .out = {{"y", 0, 0}},
                          .params = WK_PARAM_LIST(CONV, EPS, ACT),
                          .infer = infer_conv_bn_act,
                          .samples = conv_bn_act_samples,
                          .errors = conv_bn_act_errors},
    [OP_batch_norm_act] = {.name = "batch_norm_act",
                           .summary = "act(batch_norm_infer(x, weight, bias, mean, var) + z)",
                           .dtypes = WK_FLOATS,
                           .in = {{"x", 0, 0},
                                  {"weight", WK_OPTIONAL | WK_STAT, 0},
                                  {"bias", WK_OPTIONAL | WK_STAT, 0},
                                  {"mean", WK_STAT, 0},
                                  {"var", WK_STAT, 0},
                                  {"z", WK_OPTIONAL, 0}},
                           .out = {{"y", 0, 0}},
                           .params = WK_PARAM_LIST(
                               EPS, {"mode", WK_P_ENUM, AT(mode), "spatial", "spatial|per_activation", 0},
                               ACT),
                           .infer = infer_norm_act,
                           .samples = norm_act_samples,
                           .errors = norm_act_errors},
    {0},
};

/* ---- the API ---- */

static wk_act_params params_of(wk_act act)
{
    return (wk_act_params){.act = act.kind, .alpha = act.alpha, .beta = act.beta};
}

wk_tensor *wk_bias_act(const wk_tensor *x, const wk_tensor *bias, const wk_tensor *z, int64_t dim, wk_act act)
{
    wk_act_params p = params_of(act);
    p.dim = dim;
    return wk_call_run1(&(wk_call){.op = &wk_ops_act[OP_bias_act], .params = &p, .in = {x, bias, z}});
}

wk_status wk_bias_act_backward(const wk_tensor *x, const wk_tensor *bias, const wk_tensor *z,
                               const wk_tensor *dy, int64_t dim, wk_act act, wk_tensor **dx,
                               wk_tensor **dbias)
{
    wk_act_params p = params_of(act);
    p.dim = dim;
    return wk_call_run_into(
        &(wk_call){.op = &wk_ops_act[OP_bias_act_backward], .params = &p, .in = {x, bias, z, dy}},
        (wk_tensor * *[]){dx, dbias}, 2);
}

wk_tensor *wk_silu_mul(const wk_tensor *gate, const wk_tensor *up)
{
    return wk_call_run1(&(wk_call){.op = &wk_ops_act[OP_silu_mul], .in = {gate, up}});
}

wk_status wk_silu_mul_backward(const wk_tensor *gate, const wk_tensor *up, const wk_tensor *dy,
                               wk_tensor **dgate, wk_tensor **dup)
{
    return wk_call_run_into(&(wk_call){.op = &wk_ops_act[OP_silu_mul_backward], .in = {gate, up, dy}},
                            (wk_tensor * *[]){dgate, dup}, 2);
}

wk_tensor *wk_linear_act(const wk_tensor *x, const wk_tensor *weight, const wk_tensor *bias,
                         const wk_tensor *z, wk_act act)
{
    wk_act_params p = params_of(act);
    return wk_call_run1(
        &(wk_call){.op = &wk_ops_act[OP_linear_act], .params = &p, .in = {x, weight, bias, z}});
}

wk_tensor *wk_conv2d_bias_act(const wk_tensor *x, const wk_tensor *weight, const wk_tensor *bias,
                              const wk_tensor *z, wk_act act, const wk_conv_options *options)
{
    wk_act_params p = params_of(act);
    const wk_op *op = &wk_ops_act[OP_conv2d_bias_act];
    if (!wk_conv_take_options(op, &p.conv, options))
        return NULL;
    return wk_call_run1(&(wk_call){.op = op, .params = &p, .in = {x, weight, bias, z}});
}

wk_tensor *wk_conv2d_bn_act(const wk_tensor *x, const wk_tensor *weight, const wk_tensor *bias,
                            const wk_tensor *bn_weight, const wk_tensor *bn_bias, const wk_tensor *mean,
                            const wk_tensor *var, double eps, wk_act act, const wk_conv_options *options)
{
    wk_act_params p = params_of(act);
    const wk_op *op = &wk_ops_act[OP_conv2d_bn_act];
    p.eps = eps;
    if (!wk_conv_take_options(op, &p.conv, options))
        return NULL;
    return wk_call_run1(
        &(wk_call){.op = op, .params = &p, .in = {x, weight, bias, bn_weight, bn_bias, mean, var}});
}

wk_tensor *wk_batch_norm_act(const wk_tensor *x, const wk_tensor *weight, const wk_tensor *bias,
                             const wk_tensor *mean, const wk_tensor *var, const wk_tensor *z, double eps,
                             wk_batch_norm_mode mode, wk_act act)
{
    wk_act_params p = params_of(act);
    p.eps = eps;
    p.mode = mode;
    return wk_call_run1(&(wk_call){
        .op = &wk_ops_act[OP_batch_norm_act], .params = &p, .in = {x, weight, bias, mean, var, z}});
}
