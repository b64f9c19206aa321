/* act.c: ops with an activation at their end on the GPU. */
#include "ops/act.h"
#include "act.h"
#include "families.h"
#include "kernels/act_grad.h"
#include "map.h"
#include "wick/ops.h"

static const wk_kernel kernel = WK_MAP_KERNEL("act");
static const wk_kernel grad_kernel = {"act", "silu_mul_grad", "silu_mul_args", 256, .types = 1, .ints = 1};

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

wk_tensor wk_gpu_bias_over(const wk_tensor *bias, const wk_tensor *x, int64_t dim)
{
    int at = wk_shape_dim(x->rank, dim);
    wk_tensor over = wk_tensor_local(bias);
    over.rank = x->rank;
    for (int d = 0; d < x->rank; d++) {
        over.shape[d] = x->shape[d];
        over.strides[d] = d == at ? bias->strides[0] : 0;
    }
    return over;
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
    wk_tensor over;
    if (bias) {
        over = wk_gpu_bias_over(bias, x, dim);
        m.in[m.n_in++] = &over;
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

/* The second half of the last dimension lies behind the first. */
static void *behind(void *p, const wk_call *c)
{
    const wk_tensor *dy = c->in[2];
    return (char *)p + (size_t)dy->shape[dy->rank - 1] * wk_bytes(c->dtype);
}

static wk_status run_silu_mul_backward(wk_call *c)
{
    const wk_tensor *gate = wk_tensor_packed(c->in[0]), *dy = wk_tensor_packed(c->in[2]);
    const wk_tensor *up = c->in[1] ? wk_tensor_packed(c->in[1]) : gate;
    if (!gate || !dy || !up)
        return wk_error_status();
    bool apart = c->in[1] != NULL;
    i64 n = apart ? wk_count(dy) : dy->shape[dy->rank - 1];
    silu_mul_args a = {.gate = wk_ptr(gate),
                       .up = apart ? wk_ptr(up) : behind(wk_ptr(gate), c),
                       .dy = wk_ptr(dy),
                       .dgate = c->out[0] ? wk_ptr(c->out[0]) : NULL,
                       .dup = apart ? (c->out[1] ? wk_ptr(c->out[1]) : NULL) : NULL,
                       .step = apart ? n : 2 * n};
    if (!apart && a.dgate)
        a.dup = behind(a.dgate, c);
    size_t any = (size_t)a.gate | (size_t)a.up | (size_t)a.dy | (size_t)a.dgate | (size_t)a.dup;
    int vec = (int)(16 / wk_bytes(c->dtype));
    vec = any % 16 || n % vec ? 1 : vec;
    a.packs = wk_count(dy) / vec;
    a.per_row = n / vec;
    /* Rows that follow each other (step = n) may be counted in any way. */
    a.by_row = wk_divisor_of(a.per_row > 0 ? (a.per_row < INT32_MAX ? a.per_row : INT32_MAX) : 1);
    return WK_LAUNCH(c, &grad_kernel, WK_INSTANCE(.t = {(unsigned char)c->dtype}, .i = {(short)vec}),
                     ((wk_grid){.x = wk_blocks(a.packs, 256, WK_GRID_MAX)}), a);
}

const wk_impl wk_gpu_impls_act[] = {
    {"bias_act", "kernel", run_bias_act, NULL, NULL},
    {"silu_mul", "kernel", run_silu_mul, NULL, NULL},
    {"silu_mul_backward", "kernel", run_silu_mul_backward, NULL, NULL},
    {0},
};
