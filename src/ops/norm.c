/* norm.c: front ends of the norms. */
#include "norm.h"

/* ---- checks and outputs ---- */

static wk_status check_eps(const wk_call *c)
{
    double eps = WK_PARAMS(c, wk_norm_params)->eps;
    WK_NEED(eps >= 0, c, WK_ERR_PARAM, "eps", "expected 0 or more, got %g", eps);
    return WK_OK;
}

/* Batch norm: x, the mode, and that inputs from `first` on have the shape of statistics, which is left in `shape`. */
static wk_status check_batch(const wk_call *c, int first, int *rank, int64_t *shape)
{
    const wk_tensor *x = c->in[0];
    int64_t mode = WK_PARAMS(c, wk_norm_params)->mode;
    WK_TRY(wk_call_rank(c, 0, 2, 5));
    WK_NEED(mode == WK_BATCH_NORM_SPATIAL || mode == WK_BATCH_NORM_PER_ACTIVATION, c, WK_ERR_PARAM, "mode",
            "expected one of wk_batch_norm_mode, got %d", (int)mode);
    *rank = mode == WK_BATCH_NORM_SPATIAL ? 1 : x->rank - 1;
    memcpy(shape, x->shape + 1, (size_t)*rank * sizeof *shape);
    for (int i = first; i < wk_op_inputs(c->op); i++) {
        if (c->in[i])
            WK_TRY(wk_call_shape(c, i, *rank, shape));
    }
    return WK_OK;
}

static wk_status infer_batch_train(wk_call *c)
{
    int rank;
    int64_t shape[WK_MAX_RANK];
    WK_TRY(check_eps(c));
    WK_TRY(check_batch(c, 1, &rank, shape));
    double momentum = WK_PARAMS(c, wk_norm_params)->momentum;
    WK_NEED(momentum >= 0 && momentum <= 1, c, WK_ERR_PARAM, "momentum", "expected 0 to 1, got %g", momentum);
    wk_batch_shape s = wk_batch_shape_of(c->in[0], WK_PARAMS(c, wk_norm_params)->mode);
    WK_NEED(s.n * s.inner != 1, c, WK_ERR_SHAPE, "x", "expected more than one element a channel, got one");
    wk_call_out_like(c, 0, c->in[0]);
    for (int i = 1; i < 5; i++)
        wk_call_out(c, i, wk_stat_dtype(c->dtype), rank, shape);
    return WK_OK;
}

static wk_status infer_batch_infer(wk_call *c)
{
    int rank;
    int64_t shape[WK_MAX_RANK];
    WK_TRY(check_eps(c));
    WK_TRY(check_batch(c, 1, &rank, shape));
    wk_call_out_like(c, 0, c->in[0]);
    return WK_OK;
}

static wk_status infer_batch_backward(wk_call *c)
{
    int rank;
    int64_t shape[WK_MAX_RANK];
    WK_TRY(wk_call_same_shape(c, 1, 0));
    WK_TRY(check_batch(c, 2, &rank, shape));
    wk_call_out_like(c, 0, c->in[0]);
    wk_call_out(c, 1, wk_stat_dtype(c->dtype), rank, shape);
    wk_call_out(c, 2, wk_stat_dtype(c->dtype), rank, shape);
    return WK_OK;
}

/* layer, rms and group norm: how many channels have weights; inputs from `first` on have that shape. */
static wk_status check_own(const wk_call *c, int first, int64_t *channels)
{
    const wk_tensor *x = c->in[0];
    bool grouped = strncmp(c->op->name, "group", 5) == 0;
    int64_t groups = WK_PARAMS(c, wk_norm_params)->groups;
    WK_TRY(check_eps(c));
    WK_TRY(wk_call_rank(c, 0, grouped ? 2 : 1, WK_MAX_RANK));
    *channels = grouped ? x->shape[1] : x->shape[x->rank - 1];
    WK_NEED(!grouped || (groups > 0 && *channels % groups == 0), c, WK_ERR_PARAM, "groups",
            "expected a divisor of x's %lld channels, got %lld", (long long)*channels, (long long)groups);
    for (int i = first; i < wk_op_inputs(c->op); i++) {
        if (c->in[i])
            WK_TRY(wk_call_shape(c, i, 1, channels));
    }
    return WK_OK;
}

static wk_status infer_own(wk_call *c)
{
    int64_t channels;
    WK_TRY(check_own(c, 1, &channels));
    wk_call_out_like(c, 0, c->in[0]);
    return WK_OK;
}

/* x, residual, weight and bias; y and the sum. */
static wk_status infer_add(wk_call *c)
{
    int64_t channels;
    WK_TRY(check_own(c, 2, &channels));
    WK_TRY(wk_call_same_shape(c, 1, 0));
    wk_call_out_like(c, 0, c->in[0]);
    wk_call_out_like(c, 1, c->in[0]);
    return WK_OK;
}

/* sum, dy, dsum, weight. */
static wk_status infer_add_backward(wk_call *c)
{
    int64_t channels;
    WK_TRY(wk_call_same_shape(c, 1, 0));
    if (c->in[2])
        WK_TRY(wk_call_same_shape(c, 2, 0));
    WK_TRY(check_own(c, 3, &channels));
    wk_call_out_like(c, 0, c->in[0]);
    for (int i = 1; i < wk_op_outputs(c->op); i++)
        wk_call_out(c, i, c->dtype, 1, &channels);
    return WK_OK;
}

static wk_status infer_own_backward(wk_call *c)
{
    int64_t channels;
    WK_TRY(wk_call_same_shape(c, 1, 0));
    WK_TRY(check_own(c, 2, &channels));
    wk_call_out_like(c, 0, c->in[0]);
    for (int i = 1; i < wk_op_outputs(c->op); i++)
        wk_call_out(c, i, c->dtype, 1, &channels);
    return WK_OK;
}

static wk_status infer_lrn(wk_call *c)
{
    const wk_lrn_params *p = c->params;
    WK_NEED(p->mode == WK_LRN_CROSS || p->mode == WK_LRN_WITHIN, c, WK_ERR_PARAM, "mode",
            "expected one of wk_lrn_mode, got %d", (int)p->mode);
    WK_TRY(p->mode == WK_LRN_CROSS ? wk_call_rank(c, 0, 3, WK_MAX_RANK) : wk_call_rank(c, 0, 4, 4));
    WK_NEED(p->size >= 1 && p->size <= INT32_MAX, c, WK_ERR_PARAM, "size", "expected 1 to %d, got %lld",
            INT32_MAX, (long long)p->size);
    for (int i = 1; i < wk_op_inputs(c->op); i++)
        WK_TRY(wk_call_same_shape(c, i, 0));
    wk_call_out_like(c, 0, c->in[0]);
    return WK_OK;
}

/* ---- the table ---- */

#define SAMPLES(name, ...) static const char *const name[] = {__VA_ARGS__, NULL}

SAMPLES(train_samples, "x=T[4,3]",
        "x=T[2,3,4,5] weight=S[3] bias=S[3] running_mean=S[3] running_var=S[3]:0.5..2",
        "x=T[3,2,40] weight=S[2] momentum=0.3 eps=0.01", "x=T[2,3,4,3,2] running_mean=S[3]",
        "x=T[5,2,3] mode=per_activation weight=S[2,3] bias=S[2,3]",
        "x=T[4,2,3,3] mode=per_activation running_mean=S[2,3,3] running_var=S[2,3,3]:0.5..2",
        "x=T[2,9,50,40]:99..101 bias=S[9]", "x=T[1,2,150,150]:-1..3", "x=T[3,4,15,20]", "x=T[70,33]",
        "x=T[0,3,4]", "x=T[2,0,4]");
SAMPLES(train_errors, "! x", "x=T[4] ! x", "x=T[2,1,1,1,1,1] ! x", "x=T[1,3] ! x",
        "x=T[4,3] weight=S[4] ! weight", "x=T[4,3] bias=S[3,1] ! bias",
        "x=T[4,3] running_var=S[2] ! running_var", "x=T[4,3] eps=-1 ! eps", "x=T[4,3] momentum=2 ! momentum",
        "x=T[4,3] mode=other ! mode", "x=i32[4,3] ! dtype",
        "x=T[4,3,2] mode=per_activation weight=S[3] ! weight", "x=T[4,3] weight=i32[3] ! weight");
SAMPLES(infer_samples, "x=T[4,3] mean=S[3] var=S[3]:0.5..2", "x=T[1,3] mean=S[3] var=S[3]:0.5..2",
        "x=T[2,3,4,5] weight=S[3] bias=S[3] mean=S[3] var=S[3]:0.5..2 eps=0.01",
        "x=T[2,3,7,9] weight=S[3] mean=S[3] var=S[3]:0.5..2",
        "x=T[2,3,4,3,2] bias=S[3] mean=S[3] var=S[3]:0.5..2",
        "x=T[5,2,3] mode=per_activation weight=S[2,3] bias=S[2,3] mean=S[2,3] var=S[2,3]:0.5..2",
        "x=T[1,2,150,150] mean=S[2] var=S[2]:0.5..2", "x=T[0,3,4] mean=S[3] var=S[3]:0.5..2");
SAMPLES(infer_errors, "mean=S[3] var=S[3] ! x", "x=T[4,3] var=S[3] ! mean", "x=T[4,3] mean=S[3] ! var",
        "x=T[4,3] mean=S[4] var=S[3] ! mean", "x=T[3] mean=S[3] var=S[3] ! x",
        "x=T[4,3] mean=S[3] var=S[3] eps=-1 ! eps", "x=T[4,3] mean=i64[3] var=S[3] ! mean");
SAMPLES(batch_backward_samples, "x=T[4,3] dy=T[4,3] save_mean=S[3] save_invstd=S[3]:0.5..2",
        "x=T[2,3,4,5] dy=T[2,3,4,5] weight=S[3] save_mean=S[3] save_invstd=S[3]:0.5..2",
        "x=T[3,2,40] dy=T[3,2,40] save_mean=S[2] save_invstd=S[2]:0.5..2",
        "x=T[5,2,3] dy=T[5,2,3] mode=per_activation weight=S[2,3] save_mean=S[2,3] save_invstd=S[2,3]:0.5..2",
        "x=T[1,2,150,150] dy=T[1,2,150,150] save_mean=S[2] save_invstd=S[2]:0.5..2",
        "x=T[3,5,8,44] dy=T[3,5,8,44] weight=S[5] save_mean=S[5] save_invstd=S[5]:0.5..2",
        "x=T[0,3,4] dy=T[0,3,4] save_mean=S[3] save_invstd=S[3]");
SAMPLES(batch_backward_errors, "x=T[4,3] save_mean=S[3] save_invstd=S[3] ! dy",
        "x=T[4,3] dy=T[4,3] save_mean=S[3] ! save_invstd",
        "x=T[4,3] dy=T[3,4] save_mean=S[3] save_invstd=S[3] ! dy",
        "x=T[4,3] dy=T[4,3] save_mean=S[4] save_invstd=S[3] ! save_mean",
        "x=T[4,3] dy=T[4,3] weight=S[2] save_mean=S[3] save_invstd=S[3] ! weight");
SAMPLES(layer_samples, "x=T[4,5]", "x=T[6,1032] weight=T[1032] bias=T[1032]", "x=T[21,512] weight=T[512]",
        "x=T[5,768]", "x=T[3,4096] bias=T[4096]", "x=T[3,4,7] weight=T[7] bias=T[7]", "x=T[6] weight=T[6]",
        "x=T[2,3,300] bias=T[300]", "x=T[3,5000] weight=T[5000] eps=0.01", "x=T[40,129]:99..101",
        "x=T[3,1500] weight=T[1500] bias=T[1500]", "x=T[2,20000]:9..10 weight=T[20000] bias=T[20000]",
        "x=T[8,16385] weight=T[16385] bias=T[16385]", "x=T[1,70000]:-1..3 weight=T[70000] bias=T[70000]",
        "x=T[2,32768]:99..101", "x=T[3,2]:special", "x=T[0,3]", "x=T[3,0]", "x=T[2,1]");
SAMPLES(layer_errors, "! x", "x=T[] ! x", "x=T[4,5] weight=T[4] ! weight", "x=T[4,5] bias=T[5,1] ! bias",
        "x=T[4,5] eps=-1 ! eps", "x=u8[4,5] ! dtype", "x=T[4,5] weight=i32[5] ! weight");
SAMPLES(rms_samples, "x=T[4,5]", "x=T[3,4,7] weight=T[7]", "x=T[6] weight=T[6]", "x=T[2,3,300]",
        "x=T[3,5000] weight=T[5000] eps=0.01", "x=T[3,1500]", "x=T[2,20000] weight=T[20000]",
        "x=T[1,70000] weight=T[70000]", "x=T[3,2]:special", "x=T[0,3]", "x=T[3,0]", "x=T[2,1]");
SAMPLES(rms_errors, "! x", "x=T[] ! x", "x=T[4,5] weight=T[4] ! weight", "x=T[4,5] eps=-1 ! eps",
        "x=u8[4,5] ! dtype");
SAMPLES(add_layer_samples, "x=T[4,5] residual=T[4,5]", "x=T[3,4,7] residual=T[3,4,7] weight=T[7] bias=T[7]",
        "x=T[6,1032] residual=T[6,1032] weight=T[1032] bias=T[1032]",
        "x=T[21,512] residual=T[21,512] weight=T[512]", "x=T[3,4096] residual=T[3,4096] bias=T[4096]",
        "x=T[40,129] residual=T[40,129] weight=T[129]", "x=T[3,1500] residual=T[3,1500] eps=0.01",
        "x=T[2,20000] residual=T[2,20000] weight=T[20000] bias=T[20000]", "x=T[3,2]:special residual=T[3,2]",
        "x=T[0,3] residual=T[0,3]", "x=T[3,0] residual=T[3,0]");
SAMPLES(add_rms_samples, "x=T[4,5] residual=T[4,5]", "x=T[3,4,7] residual=T[3,4,7] weight=T[7]",
        "x=T[21,512] residual=T[21,512] weight=T[512]", "x=T[3,4096] residual=T[3,4096] weight=T[4096]",
        "x=T[6,1032] residual=T[6,1032]", "x=T[2,20000] residual=T[2,20000] weight=T[20000] eps=0.01",
        "x=T[3,2]:special residual=T[3,2]", "x=T[0,3] residual=T[0,3]", "x=T[3,0] residual=T[3,0]");
SAMPLES(add_errors, "residual=T[4,5] ! x", "x=T[4,5] ! residual", "x=T[4,5] residual=T[5] ! residual",
        "x=T[] residual=T[] ! x", "x=T[4,5] residual=T[4,5] weight=T[4] ! weight",
        "x=T[4,5] residual=T[4,5] eps=-1 ! eps", "x=u8[4,5] residual=u8[4,5] ! dtype");
SAMPLES(add_backward_samples, "sum=T[4,5] dy=T[4,5]", "sum=T[3,4,7] dy=T[3,4,7] dsum=T[3,4,7] weight=T[7]",
        "sum=T[5,200] dy=T[5,200] dsum=T[5,200] weight=T[200]", "sum=T[300,9] dy=T[300,9] eps=0.01",
        "sum=T[0,3] dy=T[0,3]");
SAMPLES(add_backward_errors, "sum=T[4,5] ! dy", "dy=T[4,5] ! sum", "sum=T[4,5] dy=T[5,4] ! dy",
        "sum=T[4,5] dy=T[4,5] dsum=T[5] ! dsum", "sum=T[4,5] dy=T[4,5] weight=T[4] ! weight");
SAMPLES(group_samples, "x=T[2,6] groups=2", "x=T[2,6,4] groups=3 weight=T[6] bias=T[6]",
        "x=T[2,4,5,6] groups=1 weight=T[4]", "x=T[1,4,3,3] groups=4 bias=T[4] eps=0.01",
        "x=T[2,6,50,40] groups=2", "x=T[1,4,90,100]:5..6 groups=2 weight=T[4] bias=T[4]",
        "x=T[1,34000] groups=2 weight=T[34000] bias=T[34000]",
        "x=T[8,12,9]:20..21 groups=4 weight=T[12] bias=T[12]", "x=T[0,4,3] groups=2", "x=T[2,0,3] groups=2",
        "x=T[2,4,0] groups=2");
SAMPLES(group_errors, "groups=2 ! x", "x=T[2,6] ! groups", "x=T[6] groups=2 ! x",
        "x=T[2,6] groups=4 ! groups", "x=T[2,6] groups=0 ! groups", "x=T[2,6] groups=-2 ! groups",
        "x=T[2,6] groups=2 weight=T[3] ! weight", "x=T[2,6] groups=2 eps=-1 ! eps",
        "x=i64[2,6] groups=2 ! dtype");
SAMPLES(layer_backward_samples, "x=T[4,5] dy=T[4,5]", "x=T[3,4,7] dy=T[3,4,7] weight=T[7]",
        "x=T[3,5000] dy=T[3,5000] weight=T[5000] eps=0.01", "x=T[300,9] dy=T[300,9]",
        "x=T[5,200] dy=T[5,200] weight=T[200]", "x=T[7,512] dy=T[7,512] weight=T[512]",
        "x=T[7,1500] dy=T[7,1500]", "x=T[3,9000]:1..2 dy=T[3,9000] weight=T[9000]", "x=T[0,3] dy=T[0,3]",
        "x=T[3,0] dy=T[3,0]");
SAMPLES(group_backward_samples, "x=T[2,6] dy=T[2,6] groups=2", "x=T[2,6,4] dy=T[2,6,4] groups=3 weight=T[6]",
        "x=T[2,4,5,6] dy=T[2,4,5,6] groups=1 weight=T[4]", "x=T[40,4,3,3] dy=T[40,4,3,3] groups=4 eps=0.01",
        "x=T[2,4,15,20]:3..4 dy=T[2,4,15,20] groups=2",
        "x=T[1,2,100,90] dy=T[1,2,100,90] groups=1 weight=T[2]",
        "x=T[2,18000] dy=T[2,18000] groups=2 weight=T[18000]", "x=T[0,4,3] dy=T[0,4,3] groups=2",
        "x=T[2,4,0] dy=T[2,4,0] groups=2");
SAMPLES(own_backward_errors, "x=T[4,5] ! dy", "x=T[4,5] dy=T[5,4] ! dy",
        "x=T[4,5] dy=T[4,5] weight=T[4] ! weight", "x=T[4,5] dy=T[4,5] eps=-1 ! eps");
SAMPLES(group_backward_errors, "x=T[2,6] groups=2 ! dy", "x=T[2,6] dy=T[2,6] ! groups",
        "x=T[2,6] dy=T[2,6] groups=4 ! groups", "x=T[2,6] dy=T[2,6] groups=2 weight=T[2] ! weight");
SAMPLES(lrn_samples, "x=T[2,7,5] size=5 alpha=0.1 beta=0.75 k=1", "x=T[2,5,3,4] size=4 alpha=1 beta=0.5 k=2",
        "x=T[1,3,4,5] size=9 alpha=0.5 beta=0.75 k=1",
        "x=T[1,2,7,9] size=3 alpha=1 beta=0.75 k=1 mode=within",
        "x=T[1,2,5,4] size=4 alpha=0.3 beta=1 k=2 mode=within",
        "x=T[2,6,30,41] size=5 alpha=0.1 beta=0.75 k=1", "x=T[1,3,1100] size=1 alpha=2 beta=2 k=1",
        "x=T[1,40,6] size=3 alpha=1 beta=0.75 k=1", "x=T[1,13,8] size=11 alpha=1 beta=0.75 k=1",
        "x=T[0,3,4] size=3 alpha=1 beta=1 k=1");
SAMPLES(lrn_errors, "size=3 alpha=1 beta=1 k=1 ! x", "x=T[2,7,5] alpha=1 beta=1 k=1 ! size",
        "x=T[2,7,5] size=3 beta=1 k=1 ! alpha", "x=T[7,5] size=3 alpha=1 beta=1 k=1 ! x",
        "x=T[2,7,5] size=3 alpha=1 beta=1 k=1 mode=within ! x", "x=T[2,7,5] size=0 alpha=1 beta=1 k=1 ! size",
        "x=T[2,7,5] size=-3 alpha=1 beta=1 k=1 ! size", "x=i32[2,7,5] size=3 alpha=1 beta=1 k=1 ! dtype",
        "x=T[2,7,5] size=3 alpha=1 beta=1 k=1 mode=both ! mode");
SAMPLES(lrn_backward_samples, "x=T[2,7,5] y=T[2,7,5] dy=T[2,7,5] size=5 alpha=0.1 beta=0.75 k=1",
        "x=T[1,2,7,9] y=T[1,2,7,9] dy=T[1,2,7,9] size=3 alpha=1 beta=0.75 k=1 mode=within",
        "x=T[2,13,70] y=T[2,13,70] dy=T[2,13,70] size=4 alpha=1 beta=0.5 k=2",
        "x=T[1,13,8] y=T[1,13,8] dy=T[1,13,8] size=9 alpha=1 beta=0.75 k=1",
        "x=T[1,130,6] y=T[1,130,6] dy=T[1,130,6] size=3 alpha=1 beta=1 k=1",
        "x=T[0,3,4] y=T[0,3,4] dy=T[0,3,4] size=3 alpha=1 beta=1 k=1");
SAMPLES(lrn_backward_errors, "x=T[2,7,5] y=T[2,7,5] size=5 alpha=1 beta=1 k=1 ! dy",
        "x=T[2,7,5] y=T[2,7] dy=T[2,7,5] size=5 alpha=1 beta=1 k=1 ! y",
        "x=T[2,7,5] y=T[2,7,5] dy=T[2,7,5] alpha=1 beta=1 k=1 ! size");

#define AT(field) offsetof(wk_norm_params, field)
#define EPS \
    { \
        "eps", WK_P_FLOAT, AT(eps), "1e-5", NULL, 0 \
    }
#define MODE \
    { \
        "mode", WK_P_ENUM, AT(mode), "spatial", "spatial|per_activation", 0 \
    }
#define GROUPS \
    { \
        "groups", WK_P_INT, AT(groups), NULL, NULL, 0 \
    }
#define LRN_AT(field) offsetof(wk_lrn_params, field)
#define LRN_PARAMS \
    WK_PARAM_LIST({"size", WK_P_INT, LRN_AT(size), NULL, NULL, 0}, \
                  {"alpha", WK_P_FLOAT, LRN_AT(alpha), NULL, NULL, 0}, \
                  {"beta", WK_P_FLOAT, LRN_AT(beta), NULL, NULL, 0}, \
                  {"k", WK_P_FLOAT, LRN_AT(k), NULL, NULL, 0}, \
                  {"mode", WK_P_ENUM, LRN_AT(mode), "cross", "cross|within", 0})

enum {
    OP_batch_norm_train,
    OP_batch_norm_infer,
    OP_batch_norm_backward,
    OP_layer_norm,
    OP_layer_norm_backward,
    OP_rms_norm,
    OP_rms_norm_backward,
    OP_add_layer_norm,
    OP_add_layer_norm_backward,
    OP_add_rms_norm,
    OP_add_rms_norm_backward,
    OP_group_norm,
    OP_group_norm_backward,
    OP_lrn,
    OP_lrn_backward,
};

wk_op wk_ops_norm[] = {
    [OP_batch_norm_train] = {.name = "batch_norm_train",
                             .summary =
                                 "batch norm by the batch's own statistics, and the running ones moved on",
                             .dtypes = WK_FLOATS,
                             .in = {{"x", 0, 0},
                                    {"weight", WK_OPTIONAL | WK_STAT, 0},
                                    {"bias", WK_OPTIONAL | WK_STAT, 0},
                                    {"running_mean", WK_OPTIONAL | WK_STAT, 0},
                                    {"running_var", WK_OPTIONAL | WK_STAT, 0}},
                             .out = {{"y", 0, 0},
                                     {"new_mean", WK_SKIP | WK_STAT, 0},
                                     {"new_var", WK_SKIP | WK_STAT, 0},
                                     {"save_mean", WK_SKIP | WK_STAT, 0},
                                     {"save_invstd", WK_SKIP | WK_STAT, 0}},
                             .params = WK_PARAM_LIST(
                                 EPS, {"momentum", WK_P_FLOAT, AT(momentum), "0.1", NULL, 0}, MODE),
                             .infer = infer_batch_train,
                             .samples = train_samples,
                             .errors = train_errors},
    [OP_batch_norm_infer] = {.name = "batch_norm_infer",
                             .summary = "batch norm by given statistics",
                             .dtypes = WK_FLOATS,
                             .in = {{"x", 0, 0},
                                    {"weight", WK_OPTIONAL | WK_STAT, 0},
                                    {"bias", WK_OPTIONAL | WK_STAT, 0},
                                    {"mean", WK_STAT, 0},
                                    {"var", WK_STAT, 0}},
                             .out = {{"y", 0, 0}},
                             .params = WK_PARAM_LIST(EPS, MODE),
                             .infer = infer_batch_infer,
                             .samples = infer_samples,
                             .errors = infer_errors},
    [OP_batch_norm_backward] = {.name = "batch_norm_backward",
                                .summary = "gradient of batch_norm_train",
                                .dtypes = WK_FLOATS,
                                .in = {{"x", 0, 0},
                                       {"dy", 0, 0},
                                       {"weight", WK_OPTIONAL | WK_STAT, 0},
                                       {"save_mean", WK_STAT, 0},
                                       {"save_invstd", WK_STAT, 0}},
                                .out = {{"dx", WK_SKIP, 0},
                                        {"dweight", WK_SKIP | WK_STAT, 0},
                                        {"dbias", WK_SKIP | WK_STAT, 0}},
                                .params = WK_PARAM_LIST(MODE),
                                .infer = infer_batch_backward,
                                .samples = batch_backward_samples,
                                .errors = batch_backward_errors},
    [OP_layer_norm] = {.name = "layer_norm",
                       .summary = "each line to mean 0 and variance 1",
                       .dtypes = WK_FLOATS,
                       .in = {{"x", 0, 0}, {"weight", WK_OPTIONAL, 0}, {"bias", WK_OPTIONAL, 0}},
                       .out = {{"y", 0, 0}},
                       .params = WK_PARAM_LIST(EPS),
                       .infer = infer_own,
                       .samples = layer_samples,
                       .errors = layer_errors},
    [OP_layer_norm_backward] = {.name = "layer_norm_backward",
                                .summary = "gradient of layer_norm",
                                .dtypes = WK_FLOATS,
                                .in = {{"x", 0, 0}, {"dy", 0, 0}, {"weight", WK_OPTIONAL, 0}},
                                .out = {{"dx", WK_SKIP, 0}, {"dweight", WK_SKIP, 0}, {"dbias", WK_SKIP, 0}},
                                .params = WK_PARAM_LIST(EPS),
                                .infer = infer_own_backward,
                                .samples = layer_backward_samples,
                                .errors = own_backward_errors},
    [OP_rms_norm] = {.name = "rms_norm",
                     .summary = "each line to mean square 1",
                     .dtypes = WK_FLOATS,
                     .in = {{"x", 0, 0}, {"weight", WK_OPTIONAL, 0}},
                     .out = {{"y", 0, 0}},
                     .params = WK_PARAM_LIST(EPS),
                     .infer = infer_own,
                     .samples = rms_samples,
                     .errors = rms_errors},
    [OP_rms_norm_backward] = {.name = "rms_norm_backward",
                              .summary = "gradient of rms_norm",
                              .dtypes = WK_FLOATS,
                              .in = {{"x", 0, 0}, {"dy", 0, 0}, {"weight", WK_OPTIONAL, 0}},
                              .out = {{"dx", WK_SKIP, 0}, {"dweight", WK_SKIP, 0}},
                              .params = WK_PARAM_LIST(EPS),
                              .infer = infer_own_backward,
                              .samples = layer_backward_samples,
                              .errors = own_backward_errors},
    [OP_add_layer_norm] =
        {.name = "add_layer_norm",
         .summary = "layer_norm(x + residual), and the sum",
         .dtypes = WK_FLOATS,
         .in = {{"x", 0, 0}, {"residual", 0, 0}, {"weight", WK_OPTIONAL, 0}, {"bias", WK_OPTIONAL, 0}},
         .out = {{"y", 0, 0}, {"sum", WK_SKIP, 0}},
         .params = WK_PARAM_LIST(EPS),
         .infer = infer_add,
         .samples = add_layer_samples,
         .errors = add_errors},
    [OP_add_layer_norm_backward] =
        {.name = "add_layer_norm_backward",
         .summary = "gradient of add_layer_norm by x, which is residual's too",
         .dtypes = WK_FLOATS,
         .in = {{"sum", 0, 0}, {"dy", 0, 0}, {"dsum", WK_OPTIONAL, 0}, {"weight", WK_OPTIONAL, 0}},
         .out = {{"dx", WK_SKIP, 0}, {"dweight", WK_SKIP, 0}, {"dbias", WK_SKIP, 0}},
         .params = WK_PARAM_LIST(EPS),
         .infer = infer_add_backward,
         .samples = add_backward_samples,
         .errors = add_backward_errors},
    [OP_add_rms_norm] = {.name = "add_rms_norm",
                         .summary = "rms_norm(x + residual), and the sum",
                         .dtypes = WK_FLOATS,
                         .in = {{"x", 0, 0}, {"residual", 0, 0}, {"weight", WK_OPTIONAL, 0}},
                         .out = {{"y", 0, 0}, {"sum", WK_SKIP, 0}},
                         .params = WK_PARAM_LIST(EPS),
                         .infer = infer_add,
                         .samples = add_rms_samples,
                         .errors = add_errors},
    [OP_add_rms_norm_backward] =
        {.name = "add_rms_norm_backward",
         .summary = "gradient of add_rms_norm by x, which is residual's too",
         .dtypes = WK_FLOATS,
         .in = {{"sum", 0, 0}, {"dy", 0, 0}, {"dsum", WK_OPTIONAL, 0}, {"weight", WK_OPTIONAL, 0}},
         .out = {{"dx", WK_SKIP, 0}, {"dweight", WK_SKIP, 0}},
         .params = WK_PARAM_LIST(EPS),
         .infer = infer_add_backward,
         .samples = add_backward_samples,
         .errors = add_backward_errors},
    [OP_group_norm] = {.name = "group_norm",
                       .summary = "each group of a sample's channels to mean 0 and variance 1",
                       .dtypes = WK_FLOATS,
                       .in = {{"x", 0, 0}, {"weight", WK_OPTIONAL, 0}, {"bias", WK_OPTIONAL, 0}},
                       .out = {{"y", 0, 0}},
                       .params = WK_PARAM_LIST(GROUPS, EPS),
                       .infer = infer_own,
                       .samples = group_samples,
                       .errors = group_errors},
    [OP_group_norm_backward] = {.name = "group_norm_backward",
                                .summary = "gradient of group_norm",
                                .dtypes = WK_FLOATS,
                                .in = {{"x", 0, 0}, {"dy", 0, 0}, {"weight", WK_OPTIONAL, 0}},
                                .out = {{"dx", WK_SKIP, 0}, {"dweight", WK_SKIP, 0}, {"dbias", WK_SKIP, 0}},
                                .params = WK_PARAM_LIST(GROUPS, EPS),
                                .infer = infer_own_backward,
                                .samples = group_backward_samples,
                                .errors = group_backward_errors},
    [OP_lrn] = {.name = "lrn",
                .summary = "x over a power of the mean square of its neighbours",
                .dtypes = WK_FLOATS,
                .in = {{"x", 0, 0}},
                .out = {{"y", 0, 0}},
                .params = LRN_PARAMS,
                .infer = infer_lrn,
                .samples = lrn_samples,
                .errors = lrn_errors},
    [OP_lrn_backward] = {.name = "lrn_backward",
                         .summary = "gradient of lrn",
                         .dtypes = WK_FLOATS,
                         .in = {{"x", 0, 0}, {"y", 0, 0}, {"dy", 0, 0}},
                         .out = {{"dx", 0, 0}},
                         .params = LRN_PARAMS,
                         .infer = infer_lrn,
                         .samples = lrn_backward_samples,
                         .errors = lrn_backward_errors},
    {0},
};

/* ---- the API ---- */

wk_tensor *wk_batch_norm_train(const wk_tensor *x, const wk_tensor *weight, const wk_tensor *bias,
                               const wk_tensor *running_mean, const wk_tensor *running_var, double eps,
                               double momentum, wk_batch_norm_mode mode, wk_tensor **new_mean,
                               wk_tensor **new_var, wk_tensor **save_mean, wk_tensor **save_invstd)
{
    wk_norm_params p = {.eps = eps, .momentum = momentum, .mode = mode};
    wk_tensor *y;
    wk_call_run_into(&(wk_call){.op = &wk_ops_norm[OP_batch_norm_train],
                                .params = &p,
                                .in = {x, weight, bias, running_mean, running_var}},
                     (wk_tensor * *[]){&y, new_mean, new_var, save_mean, save_invstd}, 5);
    return y;
}

wk_tensor *wk_batch_norm_infer(const wk_tensor *x, const wk_tensor *weight, const wk_tensor *bias,
                               const wk_tensor *mean, const wk_tensor *var, double eps,
                               wk_batch_norm_mode mode)
{
    wk_norm_params p = {.eps = eps, .mode = mode};
    return wk_call_run1(&(wk_call){
        .op = &wk_ops_norm[OP_batch_norm_infer], .params = &p, .in = {x, weight, bias, mean, var}});
}

wk_status wk_batch_norm_backward(const wk_tensor *x, const wk_tensor *dy, const wk_tensor *weight,
                                 const wk_tensor *save_mean, const wk_tensor *save_invstd,
                                 wk_batch_norm_mode mode, wk_tensor **dx, wk_tensor **dweight,
                                 wk_tensor **dbias)
{
    wk_norm_params p = {.mode = mode};
    return wk_call_run_into(&(wk_call){.op = &wk_ops_norm[OP_batch_norm_backward],
                                       .params = &p,
                                       .in = {x, dy, weight, save_mean, save_invstd}},
                            (wk_tensor * *[]){dx, dweight, dbias}, 3);
}

static wk_tensor *run_own(int op, const wk_tensor *x, const wk_tensor *weight, const wk_tensor *bias,
                          int64_t groups, double eps)
{
    wk_norm_params p = {.eps = eps, .groups = groups};
    return wk_call_run1(&(wk_call){.op = &wk_ops_norm[op], .params = &p, .in = {x, weight, bias}});
}

wk_tensor *wk_layer_norm(const wk_tensor *x, const wk_tensor *weight, const wk_tensor *bias, double eps)
{
    return run_own(OP_layer_norm, x, weight, bias, 1, eps);
}

wk_tensor *wk_rms_norm(const wk_tensor *x, const wk_tensor *weight, double eps)
{
    return run_own(OP_rms_norm, x, weight, NULL, 1, eps);
}

wk_tensor *wk_group_norm(const wk_tensor *x, const wk_tensor *weight, const wk_tensor *bias, int64_t groups,
                         double eps)
{
    return run_own(OP_group_norm, x, weight, bias, groups, eps);
}

static wk_status run_own_backward(int op, const wk_tensor *x, const wk_tensor *dy, const wk_tensor *weight,
                                  int64_t groups, double eps, wk_tensor **dx, wk_tensor **dweight,
                                  wk_tensor **dbias)
{
    wk_norm_params p = {.eps = eps, .groups = groups};
    return wk_call_run_into(&(wk_call){.op = &wk_ops_norm[op], .params = &p, .in = {x, dy, weight}},
                            (wk_tensor * *[]){dx, dweight, dbias}, 3);
}

wk_status wk_layer_norm_backward(const wk_tensor *x, const wk_tensor *dy, const wk_tensor *weight, double eps,
                                 wk_tensor **dx, wk_tensor **dweight, wk_tensor **dbias)
{
    return run_own_backward(OP_layer_norm_backward, x, dy, weight, 1, eps, dx, dweight, dbias);
}

wk_status wk_rms_norm_backward(const wk_tensor *x, const wk_tensor *dy, const wk_tensor *weight, double eps,
                               wk_tensor **dx, wk_tensor **dweight)
{
    return run_own_backward(OP_rms_norm_backward, x, dy, weight, 1, eps, dx, dweight, NULL);
}

wk_status wk_group_norm_backward(const wk_tensor *x, const wk_tensor *dy, const wk_tensor *weight,
                                 int64_t groups, double eps, wk_tensor **dx, wk_tensor **dweight,
                                 wk_tensor **dbias)
{
    return run_own_backward(OP_group_norm_backward, x, dy, weight, groups, eps, dx, dweight, dbias);
}

static wk_tensor *run_add(int op, const wk_tensor *x, const wk_tensor *residual, const wk_tensor *weight,
                          const wk_tensor *bias, double eps, wk_tensor **sum)
{
    wk_norm_params p = {.eps = eps, .groups = 1};
    wk_tensor *y;
    wk_call_run_into(&(wk_call){.op = &wk_ops_norm[op], .params = &p, .in = {x, residual, weight, bias}},
                     (wk_tensor * *[]){&y, sum}, 2);
    return y;
}

wk_tensor *wk_add_layer_norm(const wk_tensor *x, const wk_tensor *residual, const wk_tensor *weight,
                             const wk_tensor *bias, double eps, wk_tensor **sum)
{
    return run_add(OP_add_layer_norm, x, residual, weight, bias, eps, sum);
}

wk_tensor *wk_add_rms_norm(const wk_tensor *x, const wk_tensor *residual, const wk_tensor *weight, double eps,
                           wk_tensor **sum)
{
    return run_add(OP_add_rms_norm, x, residual, weight, NULL, eps, sum);
}

static wk_status run_add_backward(int op, const wk_tensor *sum, const wk_tensor *dy, const wk_tensor *dsum,
                                  const wk_tensor *weight, double eps, wk_tensor **dx, wk_tensor **dweight,
                                  wk_tensor **dbias)
{
    wk_norm_params p = {.eps = eps, .groups = 1};
    return wk_call_run_into(&(wk_call){.op = &wk_ops_norm[op], .params = &p, .in = {sum, dy, dsum, weight}},
                            (wk_tensor * *[]){dx, dweight, dbias}, 3);
}

wk_status wk_add_layer_norm_backward(const wk_tensor *sum, const wk_tensor *dy, const wk_tensor *dsum,
                                     const wk_tensor *weight, double eps, wk_tensor **dx, wk_tensor **dweight,
                                     wk_tensor **dbias)
{
    return run_add_backward(OP_add_layer_norm_backward, sum, dy, dsum, weight, eps, dx, dweight, dbias);
}

wk_status wk_add_rms_norm_backward(const wk_tensor *sum, const wk_tensor *dy, const wk_tensor *dsum,
                                   const wk_tensor *weight, double eps, wk_tensor **dx, wk_tensor **dweight)
{
    return run_add_backward(OP_add_rms_norm_backward, sum, dy, dsum, weight, eps, dx, dweight, NULL);
}

wk_tensor *wk_lrn(const wk_tensor *x, int64_t size, double alpha, double beta, double k, wk_lrn_mode mode)
{
    wk_lrn_params p = {size, alpha, beta, k, mode};
    return wk_call_run1(&(wk_call){.op = &wk_ops_norm[OP_lrn], .params = &p, .in = {x}});
}

wk_tensor *wk_lrn_backward(const wk_tensor *x, const wk_tensor *y, const wk_tensor *dy, int64_t size,
                           double alpha, double beta, double k, wk_lrn_mode mode)
{
    wk_lrn_params p = {size, alpha, beta, k, mode};
    return wk_call_run1(&(wk_call){.op = &wk_ops_norm[OP_lrn_backward], .params = &p, .in = {x, y, dy}});
}
