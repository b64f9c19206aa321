/* norm.c: norms of a sum, made of the sum and the norm. */
#include "ops/norm.h"
#include "composed.h"
#include "wick/ops.h"

static const wk_op *norm_of(const wk_call *c, const char *suffix)
{
    return wk_op_find(wk_norm_is_rms(c->op) ? (*suffix ? "rms_norm_backward" : "rms_norm")
                                            : (*suffix ? "layer_norm_backward" : "layer_norm"));
}

static wk_status run_add_norm(wk_call *c)
{
    wk_call add = {.op = wk_op_find("add"), .in = {c->in[0], c->in[1]}, .out = {c->out[1]}};
    WK_TRY(wk_call_run(&add));
    wk_call norm = {.op = norm_of(c, ""),
                    .params = c->params,
                    .in = {add.out[0], c->in[2], c->in[3]},
                    .out = {c->out[0]}};
    return wk_call_run(&norm);
}

static wk_status run_add_norm_backward(wk_call *c)
{
    const wk_tensor *dsum = c->in[2];
    bool apart = c->out[0] && dsum;
    wk_call norm = {.op = norm_of(c, "_backward"),
                    .params = c->params,
                    .in = {c->in[0], c->in[1], c->in[3]},
                    .out = {apart ? NULL : c->out[0], c->out[1], c->out[2]},
                    .want = apart};
    WK_TRY(wk_call_run(&norm));
    if (!apart)
        return WK_OK;
    wk_call add = {.op = wk_op_find("add"), .in = {norm.out[0], dsum}, .out = {c->out[0]}};
    return wk_call_run(&add);
}

const wk_impl wk_composed_norm[] = {
    {"add_layer_norm", "composed", run_add_norm, NULL, NULL},
    {"add_rms_norm", "composed", run_add_norm, NULL, NULL},
    {"add_layer_norm_backward", "composed", run_add_norm_backward, NULL, NULL},
    {"add_rms_norm_backward", "composed", run_add_norm_backward, NULL, NULL},
    {0},
};
