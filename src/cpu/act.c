/* act.c: ops with an activation at their end: on blocks, and behind products. */
#include "ops/act.h"
#include "core/families.h"
#include "wick/ops.h"
#include "activation.h"
#include "lanes.h"
#include "map.h"

/* What bias_act does with a block. */
typedef struct {
    int n_in;
    wk_activation_ctx act;
} finish;

#include "real_f32.h"
#include "act.inc.h"
#include "real_f64.h"
#include "act.inc.h"

static wk_activation_ctx act_of(const wk_call *c)
{
    wk_act act = wk_act_of(c);
    return (wk_activation_ctx){WK_ISA(wk_activation_block)(act.kind, wk_dtypes[c->dtype].compute),
                               {.f = {act.alpha, act.beta}}};
}

/* ---- on blocks ---- */

static inline wk_lanes silu_mul_lanes(wk_lanes gate, wk_lanes up) { return wk_lanes_silu(gate) * up; }
WK_LANES_BINARY(silu_mul_bf16, silu_mul_lanes, wk_words_near, 1, one)

static inline wk_lanes bias_relu_lanes(wk_lanes x, wk_lanes b) { return wk_lanes_at_least(x + b, 0); }
static inline wk_lanes bias_gelu_lanes(wk_lanes x, wk_lanes b) { return wk_lanes_gelu(x + b); }
static inline wk_lanes bias_silu_lanes(wk_lanes x, wk_lanes b) { return wk_lanes_silu(x + b); }
WK_LANES_BINARY(bias_relu_bf16, bias_relu_lanes, wk_words_of, 1, several)
WK_LANES_BINARY(bias_gelu_bf16, bias_gelu_lanes, wk_words_near, 1, one)
WK_LANES_BINARY(bias_silu_bf16, bias_silu_lanes, wk_words_near, 1, one)

static inline wk_lanes bias_gelu_full(wk_lanes x, wk_lanes b) { return wk_lanes_gelu_f32(x + b); }
static inline wk_lanes bias_silu_full(wk_lanes x, wk_lanes b) { return wk_lanes_silu_f32(x + b); }
static inline wk_lanes silu_mul_full(wk_lanes gate, wk_lanes up) { return wk_lanes_silu_f32(gate) * up; }
WK_LANES_BINARY_F32(bias_relu_lanes_f32, bias_relu_lanes, 1, several)
WK_LANES_BINARY_F32(bias_gelu_lanes_f32, bias_gelu_full, 2, one)
WK_LANES_BINARY_F32(bias_silu_lanes_f32, bias_silu_full, 1, one)
WK_LANES_BINARY_F32(silu_mul_lanes_f32, silu_mul_full, 1, one)

static wk_status run_blocks(const wk_call *c, wk_map m, wk_block_fn narrow, wk_block_fn wide)
{
    wk_compute compute = wk_dtypes[c->dtype].compute;
    for (int k = 0; k < m.n_in; k++)
        m.in_compute[k] = compute;
    m.out_compute = compute;
    m.fn = compute == WK_COMPUTE_F64 ? wide : narrow;
    return WK_ISA(wk_map_run)(&m);
}

/* act(x + bias) in one go, for the most frequent activations; the others add first. */
static void join_bias(wk_map *m, wk_activation kind)
{
    switch (kind) {
    case WK_ACT_RELU: m->direct_f32 = bias_relu_lanes_f32, m->direct_bf16 = bias_relu_bf16; break;
    case WK_ACT_GELU: m->direct_f32 = bias_gelu_lanes_f32, m->direct_bf16 = bias_gelu_bf16; break;
    case WK_ACT_SILU: m->direct_f32 = bias_silu_lanes_f32, m->direct_bf16 = bias_silu_bf16; break;
    default: break;
    }
}

static wk_status run_bias_act(wk_call *c)
{
    const wk_tensor *x = c->in[0], *bias = c->in[1], *z = c->in[WK_BIAS_ACT_Z];
    finish f = {.n_in = 1, .act = act_of(c)};
    wk_map m = {.in = {x}, .out = c->out[0], .params = &f};
    wk_tensor spread;
    if (bias) { /* with the strides of the dimension it lies along */
        int at = wk_shape_dim(x->rank, WK_PARAMS(c, wk_act_params)->dim);
        spread = wk_tensor_local(bias);
        spread.rank = x->rank;
        for (int d = 0; d < x->rank; d++) {
            spread.shape[d] = x->shape[d];
            spread.strides[d] = d == at ? bias->strides[0] : 0;
        }
        m.in[f.n_in++] = &spread;
    }
    if (z)
        m.in[f.n_in++] = z;
    m.n_in = f.n_in;
    if (m.n_in == 2)
        join_bias(&m, wk_act_of(c).kind);
    return run_blocks(c, m, bias_act_f32, bias_act_f64);
}

/* The views gate and up of a call. */
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
    wk_map m = {.in = {c->in[0], c->in[1]},
                .n_in = 2,
                .out = c->out[0],
                .direct_f32 = WK_WIDE_LANES(silu_mul_lanes_f32),
                .direct_bf16 = silu_mul_bf16};
    if (!c->in[1]) {
        halves_of(c->in[0], &gate, &up);
        m.in[0] = &gate;
        m.in[1] = &up;
    }
    return run_blocks(c, m, silu_mul_f32, silu_mul_f64);
}

static wk_status run_silu_mul_backward(wk_call *c)
{
    wk_map m = {.in = {c->in[0], c->in[1], c->in[2]}, .n_in = 3, .out = c->out[0]};
    if (c->out[0])
        WK_TRY(run_blocks(c, m, silu_mul_dgate_f32, silu_mul_dgate_f64));
    m = (wk_map){.in = {c->in[0], c->in[2]}, .n_in = 2, .out = c->out[1]};
    return c->out[1] ? run_blocks(c, m, silu_mul_f32, silu_mul_f64) : WK_OK;
}

static const char *refuse_packed(const wk_call *c) { return c->in[1] ? NULL : "gate and up in one tensor"; }

const wk_impl WK_ISA(wk_cpu_act)[] = {
    {"bias_act", "simd", run_bias_act, NULL, NULL},
    {"silu_mul", "simd", run_silu_mul, NULL, NULL},
    {"silu_mul_backward", "simd", run_silu_mul_backward, refuse_packed, NULL},
    {0},
};
