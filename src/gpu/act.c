/* act.c: ops with an activation at their end on the GPU. */
#include "ops/act.h"
#include "act.h"
#include "families.h"
#include "map.h"
#include "wick/ops.h"

static const wk_kernel kernel = WK_MAP_KERNEL("act");

/* ---- elementwise ---- */

static const char *bias_act_formula(int64_t act)
{
    static const char *const formulas[] = {
        "f_bias_act<0>",  "f_bias_act<1>",  "f_bias_act<2>",  "f_bias_act<3>",
        "f_bias_act<4>",  "f_bias_act<5>",  "f_bias_act<6>",  "f_bias_act<7>",
        "f_bias_act<8>",  "f_bias_act<9>",  "f_bias_act<10>", "f_bias_act<11>",
        "f_bias_act<12>", "f_bias_act<13>", "f_bias_act<14>", "f_bias_act<15>"};
    return formulas[act];
}

wk_status wk_gpu_bias_act(const wk_call *c, const wk_tensor *x, const wk_tensor *bias, const wk_tensor *z,
                          int64_t dim, wk_act act, wk_tensor *out)
{
    wk_gpu_map m = {.kernel = &kernel,
                    .formula = bias_act_formula(act.kind),
                    .in = {x},
                    .n_in = 1,
                    .out = out,
                    .f = {act.alpha, act.beta}};
    wk_tensor spread;
    if (bias) { /* with the strides of the dimension it lies along */
        int at = wk_shape_dim(x->rank, dim);
        spread = wk_tensor_local(bias);
        spread.rank = x->rank;
        for (int d = 0; d < x->rank; d++) {
            spread.shape[d] = x->shape[d];
            spread.strides[d] = d == at ? bias->strides[0] : 0;
        }
        m.in[m.n_in++] = &spread;
    }
    if (z)
        m.in[m.n_in++] = z;
    return wk_gpu_map_run(c, &m);
}

static wk_status run_bias_act(wk_call *c)
{
    return wk_gpu_bias_act(c, c->in[0], c->in[1], c->in[WK_BIAS_ACT_Z], WK_PARAMS(c, wk_act_params)->dim,
                           wk_act_of(c), c->out[0]);
}

/* The views gate and up of one tensor. */
static void halves_of(const wk_tensor *t, wk_tensor *first, wk_tensor *second)
{
    *first = wk_tensor_local(t);
    int64_t n = first->shape[t->rank - 1] /= 2;
    *second = *first;
    second->offset += n * t->strides[t->rank - 1];
}

static wk_status run_silu_mul(wk_call *c)
{
    wk_tensor gate, up;
    wk_gpu_map m = {
        .kernel = &kernel, .formula = "f_silu_mul", .in = {c->in[0], c->in[1]}, .n_in = 2, .out = c->out[0]};
    if (!c->in[1]) {
        halves_of(c->in[0], &gate, &up);
        m.in[0] = &gate;
        m.in[1] = &up;
    }
    return wk_gpu_map_run(c, &m);
}

static wk_status run_silu_mul_backward(wk_call *c)
{
    wk_gpu_map m = {.kernel = &kernel,
                    .formula = "f_silu_mul_dgate",
                    .in = {c->in[0], c->in[1], c->in[2]},
                    .n_in = 3,
                    .out = c->out[0]};
    if (c->out[0])
        WK_TRY(wk_gpu_map_run(c, &m));
    m = (wk_gpu_map){
        .kernel = &kernel, .formula = "f_silu_mul", .in = {c->in[0], c->in[2]}, .n_in = 2, .out = c->out[1]};
    return c->out[1] ? wk_gpu_map_run(c, &m) : WK_OK;
}

static const char *refuse_packed(const wk_call *c) { return c->in[1] ? NULL : "gate and up in one tensor"; }

const wk_impl wk_gpu_impls_act[] = {
    {"bias_act", "kernel", run_bias_act, NULL, NULL},
    {"silu_mul", "kernel", run_silu_mul, NULL, NULL},
    {"silu_mul_backward", "kernel", run_silu_mul_backward, refuse_packed, NULL},
    {0},
};
