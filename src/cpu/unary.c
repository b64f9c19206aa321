/* unary.c: ops on one tensor, their gradients, and fill and arange. */
#include "ops/unary.h"
#include "core/families.h"
#include "core/host.h"
#include "activation.h"
#include "lanes.h"
#include "map.h"
#include "shares.h"

typedef wk_numbers numbers;

#include "real_f32.h"
#include "unary.inc.h"
#include "real_f64.h"
#include "unary.inc.h"

/* Elements as they are, for what models have most of. */
static inline wk_lanes relu_lanes(wk_lanes x) { return wk_lanes_at_least(x, 0); }
WK_LANES_UNARY(exp_bf16, wk_lanes_exp, wk_words_near, 1)
WK_LANES_HALVES(gelu_bf16, wk_lanes_gelu, wk_words_near)
WK_LANES_UNARY(relu_bf16, relu_lanes, wk_words_of, 1)
WK_LANES_UNARY(silu_bf16, wk_lanes_silu, wk_words_near, 1)
WK_LANES_UNARY_F32(exp_lanes, wk_lanes_exp_f32, 1)
WK_LANES_UNARY_F32(gelu_lanes, wk_lanes_gelu_f32, 2)
WK_LANES_UNARY_F32(silu_lanes, wk_lanes_silu_f32, 1)

/* The ones integers have. Sums and products are taken without a sign, where wrapping is defined. */
#define INTEGER(name, formula) \
    static void name##_i64(void *out, const void *const *in, int64_t n, const void *params) \
    { \
        const int64_t *xs = in[0]; \
        int64_t *ys = out; \
        const numbers *p = params; \
        int64_t a = p->i[0], b = p->i[1]; \
        (void)a, (void)b; \
        WK_INDEPENDENT for (int64_t i = 0; i < n; i++) \
        { \
            int64_t x = xs[i]; \
            ys[i] = formula; \
        } \
    }
INTEGER(neg, (int64_t) - (uint64_t)x)
INTEGER(abs, x < 0 ? (int64_t) - (uint64_t)x : x)
INTEGER(sign, (x > 0) - (x < 0))
INTEGER(clamp, x<a ? a : x> b ? b : x)
INTEGER(affine, (int64_t)((uint64_t)x *(uint64_t)a + (uint64_t)b))
#undef INTEGER

/* A formula for each compute type (NULL where the op takes none such). */
typedef struct {
    wk_block_fn fn[3];
    wk_lanes_fn direct_f32, direct_bf16; /* NULL: there is none */
    wk_lanes_fn by_shares; /* before direct_bf16, where the processor computes in f16; or NULL */
} unary_row;

static wk_status run_map(wk_call *c)
{
    const unary_row *row = c->impl->data;
    wk_compute compute = wk_dtypes[c->dtype].compute;
    numbers n;
    wk_unary_numbers(c, n.f, n.i);
    wk_map m = {.in = {c->in[0], c->in[1]},
                .in_compute = {compute, compute},
                .n_in = c->in[1] ? 2 : 1,
                .out = c->out[0],
                .out_compute = compute,
                .fn = row->fn[compute],
                .direct_f32 = row->direct_f32,
                .direct_bf16 = row->by_shares && wk_host_has_f16() ? row->by_shares : row->direct_bf16,
                .params = &n};
    return WK_ISA(wk_map_run)(&m);
}

/* ---- for other families ---- */

wk_block_fn WK_ISA(wk_activation_block)(int64_t act, wk_compute compute)
{
#define FNS(name) \
    { \
        name##_f32, name##_f64 \
    }
    static const wk_block_fn fns[][2] = {[WK_ACT_RELU] = FNS(relu),
                                         [WK_ACT_GELU] = FNS(gelu),
                                         [WK_ACT_GELU_ERF] = FNS(gelu_erf),
                                         [WK_ACT_SILU] = FNS(silu),
                                         [WK_ACT_SIGMOID] = FNS(sigmoid),
                                         [WK_ACT_TANH] = FNS(tanh),
                                         [WK_ACT_SOFTPLUS] = FNS(softplus),
                                         [WK_ACT_LEAKY_RELU] = FNS(leaky_relu),
                                         [WK_ACT_ELU] = FNS(elu),
                                         [WK_ACT_CLAMP] = FNS(clamp),
                                         [WK_ACT_RELU6] = FNS(relu6),
                                         [WK_ACT_HARD_SWISH] = FNS(hard_swish),
                                         [WK_ACT_HARD_SIGMOID] = FNS(hard_sigmoid),
                                         [WK_ACT_MISH] = FNS(mish),
                                         [WK_ACT_ABS] = FNS(abs)};
#undef FNS
    return act == WK_ACT_NONE ? NULL : fns[act][compute];
}

void WK_ISA(wk_activation_row)(void *row, int64_t n, const void *ctx)
{
    const wk_activation_ctx *act = ctx;
    act->fn(row, (const void *const[]){row}, n, &act->numbers);
}

const wk_tensor *WK_ISA(wk_compute_copy)(const wk_tensor *t)
{
    wk_compute compute = wk_dtypes[t->dtype].compute;
    if (t->dtype == wk_compute_dtype(compute))
        return wk_tensor_packed(t);
    return wk_cast(t, wk_compute_dtype(compute));
}

/* ---- cast: the conversion is the engine's ---- */

/* Wide enough for both sides, so that no step of the way rounds: float to float through the wider, integers
 * exactly, float to integer through the float. */
static wk_compute cast_through(wk_dtype from, wk_dtype to)
{
    if (wk_is_float(from) || !wk_is_float(to))
        return wk_dtypes[from].compute;
    bool exact_in_f32 = wk_bytes(from) <= 2;
    return exact_in_f32 && to != WK_F64 ? WK_COMPUTE_F32 : WK_COMPUTE_I64;
}

static wk_status run_cast(wk_call *c)
{
    wk_compute compute = cast_through(c->in[0]->dtype, c->out[0]->dtype);
    wk_map m = {
        .in = {c->in[0]}, .in_compute = {compute}, .n_in = 1, .out = c->out[0], .out_compute = compute};
    return WK_ISA(wk_map_run)(&m);
}

/* ---- fill, arange ---- */

/* One element, over and over. */
static void fill_words(void *out, const void *const *in, int64_t n, const void *params)
{
    const int64_t *word = params;
    int64_t *ys = out;
    (void)in;
    for (int64_t i = 0; i < n; i++)
        ys[i] = *word;
}

static wk_status run_fill(wk_call *c)
{
    const wk_fill_params *p = c->params;
    double f;
    union {
        int64_t i;
        double f;
    } word;
    wk_number_in(c->dtype, &p->value, &f, &word.i);
    if (wk_is_float(c->dtype))
        word.f = f;
    wk_compute compute = wk_is_float(c->dtype) ? WK_COMPUTE_F64 : WK_COMPUTE_I64;
    wk_map m = {.out = c->out[0], .out_compute = compute, .fn = fill_words, .params = &word};
    return WK_ISA(wk_map_run)(&m);
}

/* start + i * step from the index itself, so that no error adds up. */
static wk_status run_arange(wk_call *c)
{
    const wk_arange_params *p = c->params;
    char *out = wk_ptr(c->out[0]);
    size_t bytes = wk_bytes(c->dtype);
    bool whole = wk_arange_whole(p);
    for (int64_t i = 0; i < c->out[0]->shape[0]; i++) {
        if (whole)
            wk_store_i64(c->dtype, out + (size_t)i * bytes,
                         (int64_t)((uint64_t)p->start.i + (uint64_t)i * (uint64_t)p->step.i));
        else
            wk_store_f64(c->dtype, out + (size_t)i * bytes, p->start.f + (double)i * p->step.f);
    }
    return WK_OK;
}

/* ---- the list ---- */

#define ROW_OF(name, integer, ...) \
    {#name, "simd", run_map, NULL, &(const unary_row){{name##_f32, name##_f64, integer}, __VA_ARGS__}}, \
        {#name "_backward", "simd", run_map, NULL, \
         &(const unary_row){.fn = {name##_backward_f32, name##_backward_f64, NULL}}},
#define ROW(name, integer) ROW_OF(name, integer, NULL, NULL, NULL)
#define FLOAT_ROW(name) ROW_OF(name, NULL, NULL, NULL, NULL)
#define DIRECT_ROW(name) ROW_OF(name, NULL, WK_WIDE_LANES(name##_lanes), name##_bf16, NULL)
#define SHARES_ROW(name) ROW_OF(name, NULL, WK_WIDE_LANES(name##_lanes), name##_bf16, name##_shares)

const wk_impl WK_ISA(wk_cpu_unary)[];

wk_block_fn WK_ISA(wk_unary_block)(const char *op, wk_compute compute)
{
    for (const wk_impl *i = WK_ISA(wk_cpu_unary); i->op; i++) {
        if (i->run == run_map && strcmp(i->op, op) == 0)
            return ((const unary_row *)i->data)->fn[compute];
    }
    return NULL;
}

const wk_impl WK_ISA(wk_cpu_unary)[] = {
    /* clang-format off */
    ROW(neg, neg_i64) ROW(abs, abs_i64) ROW(sign, sign_i64) ROW(clamp, clamp_i64) ROW(affine, affine_i64)
    DIRECT_ROW(exp) FLOAT_ROW(log) FLOAT_ROW(sqrt) FLOAT_ROW(rsqrt) FLOAT_ROW(sqr) FLOAT_ROW(recip) FLOAT_ROW(sin)
    FLOAT_ROW(cos) FLOAT_ROW(tanh) FLOAT_ROW(erf) FLOAT_ROW(floor) FLOAT_ROW(ceil) FLOAT_ROW(round) ROW_OF(relu, NULL, NULL, relu_bf16, NULL)
    DIRECT_ROW(silu) FLOAT_ROW(sigmoid) SHARES_ROW(gelu) FLOAT_ROW(gelu_erf) FLOAT_ROW(softplus) FLOAT_ROW(mish)
    FLOAT_ROW(hard_swish) FLOAT_ROW(hard_sigmoid) FLOAT_ROW(relu6) FLOAT_ROW(leaky_relu) FLOAT_ROW(elu)
    FLOAT_ROW(power) FLOAT_ROW(powf)
    /* clang-format on */
    {"cast", "simd", run_cast, NULL, NULL},
    {"fill", "simd", run_fill, NULL, NULL},
    {"arange", "simd", run_arange, NULL, NULL},
    {0},
};
