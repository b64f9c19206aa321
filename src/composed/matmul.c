/* matmul.c: products with what is around them, made of the ops one after the other. */
#include "ops/matmul.h"
#include "composed.h"
#include "wick/ops.h"

static wk_status run_norm_linear(wk_call *c)
{
    const wk_norm_linear_params *p = c->params;
    const wk_tensor *x = c->in[0], *residual = c->in[1];
    wk_tensor *sum = c->out[1];
    const wk_tensor *row = residual ? wk_add_rms_norm(x, residual, c->in[2], p->eps, sum ? &sum : NULL)
                                    : wk_rms_norm(x, c->in[2], p->eps);
    if (!row)
        return wk_error_status();
    if (c->out[1])
        WK_TRY(wk_copy_into(c->out[1], residual ? sum : x));
    wk_linear_params none = {WK_ACT_NONE};
    wk_call linear = {.op = wk_op_find("linear"), .params = &none, .in = {row, c->in[3], c->in[4]}};
    linear.out[0] = p->gated ? NULL : c->out[0];
    WK_TRY(wk_call_run(&linear));
    if (!p->gated)
        return WK_OK;
    wk_call gate = {.op = wk_op_find("silu_mul"), .in = {linear.out[0]}, .out = {c->out[0]}};
    return wk_call_run(&gate);
}

const wk_impl wk_composed_matmul[] = {
    {"rms_norm_linear", "composed", run_norm_linear, NULL, NULL},
    {0},
};
