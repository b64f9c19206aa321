/* cudnn_act.c: convolutions with an activation at their end by cuDNN: bias, batch norm and relu in one graph. A z would have to
 * be brought into the graph's order first, which costs more than adding it after. */
#include "cudnn_conv.h"
#include "gpu/families.h"
#include "ops/act.h"

static bool is_norm(const wk_call *c) { return strcmp(c->op->name, "conv2d_bn_act") == 0; }

wk_cudnn_end wk_cudnn_act_end(const wk_call *c)
{
    wk_cudnn_end e = {.relu = wk_act_of(c).kind == WK_ACT_RELU};
    e.t[WK_CONV_BIAS] = c->in[2];
    if (is_norm(c)) {
        e.eps = (float)WK_PARAMS(c, wk_act_params)->eps;
        e.t[WK_CONV_MEAN] = c->in[WK_CONV_BN_MEAN];
        e.t[WK_CONV_VAR] = c->in[WK_CONV_BN_VAR];
        e.t[WK_CONV_SCALE] = c->in[WK_CONV_BN_WEIGHT];
        e.t[WK_CONV_SHIFT] = c->in[WK_CONV_BN_BIAS];
    }
    return e;
}

static const char *refuse(const wk_call *c)
{
    wk_conv_geometry g;
    wk_activation kind = wk_act_of(c).kind;
    const char *why = wk_cudnn_conv_refuse(c);
    if (why)
        return why;
    if (kind != WK_ACT_RELU && (kind != WK_ACT_NONE || !is_norm(c)))
        return "cuDNN has this in one for relu";
    if (is_norm(c) ? wk_bytes(c->dtype) != 2 : !c->in[2] || c->in[WK_CONV_ACT_Z])
        return is_norm(c) ? "cuDNN has this in one for f16 and bf16"
                          : "cuDNN has this in one for a bias, without z";
    if (wk_conv_geometry_of(c, &g) != WK_OK || !wk_cudnn_conv_ends_well(&g))
        return "cuDNN is slower at this in one";
    return NULL;
}

const wk_impl wk_cuda_impls_act[] = {
    {"conv2d_bias_act", "cudnn", wk_cudnn_conv_run, refuse, NULL},
    {"conv2d_bn_act", "cudnn", wk_cudnn_conv_run, refuse, NULL},
    {0},
};
