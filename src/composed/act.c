/* act.c: the ops with an activation at their end, made of the op and what follows it. */
#include <stdio.h>
#include "ops/act.h"
#include "composed.h"
#include "core/families.h"
#include "ops/matmul.h"
#include "ops/norm.h"
#include "ops/unary.h"
#include "wick/ops.h"

/* ---- bias_act: sums, then the unary op ---- */

/* A view of bias that broadcasts along the other dimensions of x; NULL with an error. */
static wk_tensor *along(const wk_tensor *bias, const wk_tensor *x, int64_t dim)
{
    wk_tensor *v = wk_tensor_view(bias);
    int at = wk_shape_dim(x->rank, dim);
    if (!v)
        return NULL;
    v->rank = x->rank;
    for (int d = 0; d < x->rank; d++) {
        v->shape[d] = d == at ? bias->shape[0] : 1;
        v->strides[d] = d == at ? bias->strides[0] : 0;
    }
    return v;
}

/* x + bias + z, x itself where there is neither; NULL with an error. */
static const wk_tensor *sum_of(const wk_call *c)
{
    const wk_tensor *x = c->in[0], *z = c->in[WK_BIAS_ACT_Z];
    if (c->in[1])
        x = wk_add(x, along(c->in[1], x, WK_PARAMS(c, wk_act_params)->dim));
    return z && x ? wk_add(x, z) : x;
}

/* The unary op of the activation, or its gradient, into out. */
static wk_status run_unary(const wk_call *c, const char *suffix, const wk_tensor *x, const wk_tensor *dy,
                           wk_tensor *out)
{
    char name[40];
    wk_act act = wk_act_of(c);
    wk_unary_params p = {wk_scalar_of(act.alpha), wk_scalar_of(act.beta), wk_scalar_of(0)};
    snprintf(name, sizeof name, "%s%s", wk_act_name(act.kind), suffix);
    wk_call inner = {.op = wk_op_find(name), .params = &p, .in = {x, dy}, .out = {out}};
    return wk_call_run(&inner);
}

static wk_status run_bias_act(wk_call *c)
{
    const wk_tensor *sum = sum_of(c);
    if (!sum)
        return wk_error_status();
    if (wk_act_of(c).kind == WK_ACT_NONE)
        return wk_copy_into(c->out[0], sum);
    return run_unary(c, "", sum, NULL, c->out[0]);
}

static wk_status run_bias_act_backward(wk_call *c)
{
    const wk_tensor *sum = sum_of(c), *dy = c->in[3];
    if (!sum)
        return wk_error_status();
    WK_TRY(wk_act_of(c).kind == WK_ACT_NONE ? wk_copy_into(c->out[0], dy)
                                            : run_unary(c, "_backward", sum, dy, c->out[0]));
    if (!c->out[1])
        return WK_OK;
    int64_t dims[WK_MAX_RANK];
    int n = 0, at = wk_shape_dim(dy->rank, WK_PARAMS(c, wk_act_params)->dim);
    for (int d = 0; d < dy->rank; d++) {
        if (d != at)
            dims[n++] = d;
    }
    return wk_copy_into(c->out[1],
                        n ? wk_sum(c->out[0], n, dims, false) : wk_reshape(c->out[0], 1, c->out[1]->shape));
}

/* ---- silu_mul ---- */

/* The two halves of t's last dimension. */
static wk_tensor *half(const wk_tensor *t, int which)
{
    int64_t n = t->shape[t->rank - 1] / 2;
    return wk_narrow(t, t->rank - 1, which * n, n);
}

static wk_status run_silu_mul(wk_call *c)
{
    const wk_tensor *gate = c->in[1] ? c->in[0] : half(c->in[0], 0),
                    *up = c->in[1] ? c->in[1] : half(c->in[0], 1);
    const wk_tensor *open = wk_silu(gate);
    wk_call inner = {.op = wk_op_find("mul"), .in = {open, up}, .out = {c->out[0]}};
    return open && up ? wk_call_run(&inner) : wk_error_status();
}

/* dgate = dy * up * silu'(gate), dup = dy * silu(gate). */
static wk_status run_silu_mul_backward(wk_call *c)
{
    bool apart = c->in[1] != NULL;
    const wk_tensor *gate = apart ? c->in[0] : half(c->in[0], 0), *up = apart ? c->in[1] : half(c->in[0], 1);
    wk_tensor *dgate = apart || !c->out[0] ? c->out[0] : half(c->out[0], 0);
    wk_tensor *dup = apart || !c->out[0] ? c->out[1] : half(c->out[0], 1);
    if (wk_pending())
        return wk_error_status();
    if (dgate)
        WK_TRY(wk_copy_into(dgate, wk_silu_backward(gate, wk_mul(c->in[2], up))));
    return dup && (apart || c->out[0]) ? wk_copy_into(dup, wk_mul(c->in[2], wk_silu(gate))) : WK_OK;
}

/* ---- an op, then bias_act ---- */

static wk_status run_linear_act(wk_call *c)
{
    wk_act act = wk_act_of(c);
    const wk_tensor *z = c->in[WK_LINEAR_ACT_Z];
    bool whole = !z && act.kind <= WK_ACT_SILU;
    wk_linear_params p = {whole ? act.kind : WK_ACT_NONE};
    wk_call inner = {.op = wk_op_find("linear"), .params = &p, .in = {c->in[0], c->in[1], c->in[2]}};
    inner.out[0] = whole ? c->out[0] : NULL;
    WK_TRY(wk_call_run(&inner));
    return whole ? WK_OK : wk_act_finish(c, inner.out[0], NULL, z, -1, c->out[0]);
}

/* conv2d into a tensor of its own, or into y where nothing follows. */
static wk_status convolve(const wk_call *c, wk_tensor **y)
{
    wk_call inner = {.op = wk_op_find("conv2d"),
                     .params = &WK_PARAMS(c, wk_act_params)->conv,
                     .in = {c->in[0], c->in[1], c->in[2]},
                     .out = {*y}};
    WK_TRY(wk_call_run(&inner));
    *y = inner.out[0];
    return WK_OK;
}

static wk_status run_conv_bias_act(wk_call *c)
{
    const wk_tensor *z = c->in[WK_CONV_ACT_Z];
    bool whole = !z && wk_act_of(c).kind == WK_ACT_NONE;
    wk_tensor *y = whole ? c->out[0] : NULL;
    WK_TRY(convolve(c, &y));
    return whole ? WK_OK : wk_act_finish(c, y, NULL, z, 1, c->out[0]);
}

/* batch_norm_act of x with the tensors from in on: weight, bias, mean, var. */
static wk_status normalise(const wk_call *c, const wk_tensor *x, const wk_tensor *const *in)
{
    wk_act_params p = *WK_PARAMS(c, wk_act_params);
    p.mode = WK_BATCH_NORM_SPATIAL;
    wk_call inner = {.op = wk_op_find("batch_norm_act"),
                     .params = &p,
                     .in = {x, in[0], in[1], in[2], in[3]},
                     .out = {c->out[0]}};
    return wk_call_run(&inner);
}

static wk_status run_conv_bn_act(wk_call *c)
{
    wk_tensor *y = NULL;
    WK_TRY(convolve(c, &y));
    return normalise(c, y, c->in + WK_CONV_BN_WEIGHT);
}

static wk_status run_norm_act(wk_call *c)
{
    const wk_act_params *params = c->params;
    const wk_tensor *z = c->in[WK_NORM_ACT_Z];
    bool whole = !z && wk_act_of(c).kind == WK_ACT_NONE;
    wk_norm_params p = {.eps = params->eps, .mode = params->mode};
    wk_call inner = {.op = wk_op_find("batch_norm_infer"), .params = &p};
    memcpy(inner.in, c->in, WK_NORM_ACT_Z * sizeof *inner.in);
    inner.out[0] = whole ? c->out[0] : NULL;
    WK_TRY(wk_call_run(&inner));
    return whole ? WK_OK : wk_act_finish(c, inner.out[0], NULL, z, 1, c->out[0]);
}

const wk_impl wk_composed_act[] = {
    {"bias_act", "composed", run_bias_act, NULL, NULL},
    {"bias_act_backward", "composed", run_bias_act_backward, NULL, NULL},
    {"silu_mul", "composed", run_silu_mul, NULL, NULL},
    {"silu_mul_backward", "composed", run_silu_mul_backward, NULL, NULL},
    {"linear_act", "composed", run_linear_act, NULL, NULL},
    {"conv2d_bias_act", "composed", run_conv_bias_act, NULL, NULL},
    {"conv2d_bn_act", "composed", run_conv_bn_act, NULL, NULL},
    {"batch_norm_act", "composed", run_norm_act, NULL, NULL},
    {0},
};
