/* unary.c: front ends of the ops on one tensor, their gradients, and of those on none (fill, arange). */
#include "unary.h"
#include "wick/elementwise.h"

/* ---- the numbers of a call ---- */

/* Given as an integer it wraps into an integer dtype, given as a fraction it is cut. */
void wk_number_in(wk_dtype dtype, const wk_scalar *s, double *f, int64_t *i)
{
    char element[8];
    bool whole = s->f == (double)s->i && fabs(s->f) < 0x1p63;
    if (wk_is_float(dtype) || !whole)
        wk_store_f64(dtype, element, s->f);
    else
        wk_store_i64(dtype, element, s->i);
    *f = wk_load_f64(dtype, element);
    *i = wk_is_float(dtype) ? 0 : wk_load_i64(dtype, element);
}

/* clamp's ends: in the dtype, those of integers at most at the ends of its range; where min is above max, max counts. */
static void clamp_ends(wk_dtype dtype, double *f, int64_t *i)
{
    for (int k = 0; k < 2; k++) {
        char element[8];
        wk_store_f64(dtype, element, f[k]);
        f[k] = wk_load_f64(dtype, element);
        if (!wk_is_float(dtype) && dtype != WK_I64) /* i64's are exact already */
            i[k] = wk_load_i64(dtype, element);
    }
    if (f[0] > f[1])
        f[0] = f[1];
    if (i[0] > i[1])
        i[0] = i[1];
}

/* affine and clamp take them in the dtype, the others as they are. */
void wk_unary_numbers(const wk_call *c, double *f, int64_t *i)
{
    const wk_unary_params *p = c->params;
    bool affine = strncmp(c->op->name, "affine", 6) == 0;
    for (int k = 0; k < 3; k++) {
        const wk_scalar *s = !p ? NULL : k == 0 ? &p->a : k == 1 ? &p->b : &p->c;
        f[k] = s ? s->f : 0;
        i[k] = s ? s->i : 0;
        if (s && affine)
            wk_number_in(c->dtype, s, &f[k], &i[k]);
    }
    if (strncmp(c->op->name, "clamp", 5) == 0)
        clamp_ends(c->dtype, f, i);
}

/* ---- checks and outputs ---- */

static wk_status infer_same(wk_call *c)
{
    wk_call_out_like(c, 0, c->in[0]);
    return WK_OK;
}

static wk_status infer_backward(wk_call *c)
{
    WK_TRY(wk_call_same_shape(c, 1, 0));
    return infer_same(c);
}

static wk_status infer_cast(wk_call *c)
{
    wk_dtype dtype = (wk_dtype)WK_PARAMS(c, wk_cast_params)->dtype;
    WK_NEED(wk_dtype_valid(dtype), c, WK_ERR_PARAM, "dtype", "expected a dtype, got %d", (int)dtype);
    wk_call_out(c, 0, dtype, c->in[0]->rank, c->in[0]->shape);
    return WK_OK;
}

static wk_status infer_fill(wk_call *c)
{
    const wk_fill_params *p = WK_PARAMS(c, wk_fill_params);
    wk_shape_text text;
    WK_NEED(wk_dtype_valid((wk_dtype)p->dtype), c, WK_ERR_PARAM, "dtype", "expected a dtype, got %d",
            (int)p->dtype);
    WK_NEED(wk_shape_count((int)p->shape.n, p->shape.v) >= 0, c, WK_ERR_PARAM, "shape",
            "expected sizes of 0 or more and less than 2^60 elements, got %s",
            wk_shape_str(&text, (int)p->shape.n, p->shape.v));
    c->dtype = (wk_dtype)p->dtype;
    wk_call_out(c, 0, c->dtype, (int)p->shape.n, p->shape.v);
    return WK_OK;
}

/* How many steps: whole numbers are counted as such, large i64 are no doubles. */
static double arange_count(const wk_arange_params *p)
{
    if (!wk_arange_whole(p) || p->stop.f != (double)p->stop.i)
        return ceil((p->stop.f - p->start.f) / p->step.f);
    bool up = p->step.i > 0;
    if (up ? p->start.i >= p->stop.i : p->start.i <= p->stop.i)
        return 0;
    uint64_t way =
        up ? (uint64_t)p->stop.i - (uint64_t)p->start.i : (uint64_t)p->start.i - (uint64_t)p->stop.i;
    uint64_t step = up ? (uint64_t)p->step.i : 0 - (uint64_t)p->step.i;
    return (double)((way - 1) / step + 1);
}

static wk_status infer_arange(wk_call *c)
{
    const wk_arange_params *p = WK_PARAMS(c, wk_arange_params);
    WK_NEED(wk_dtype_valid((wk_dtype)p->dtype), c, WK_ERR_PARAM, "dtype", "expected a dtype, got %d",
            (int)p->dtype);
    WK_NEED(isfinite(p->start.f) && isfinite(p->stop.f), c, WK_ERR_PARAM, "start",
            "expected finite start and stop");
    WK_NEED(isfinite(p->step.f) && p->step.f != 0, c, WK_ERR_PARAM, "step", "expected a finite number but 0");
    double n = arange_count(p);
    WK_NEED(n < 0x1p56, c, WK_ERR_PARAM, "stop", "expected less than 2^56 elements");
    c->dtype = (wk_dtype)p->dtype;
    wk_call_out(c, 0, c->dtype, 1, (int64_t[]){n > 0 ? (int64_t)n : 0});
    return WK_OK;
}

/* ---- the table ---- */

#define SAMPLES(name, ...) static const char *const name[] = {__VA_ARGS__, NULL}

SAMPLES(unary_samples, "x=T[4,5]", "x=T[3,1,7]", "x=T[1025]:0.1..9", "x=T[]", "x=T[0,3]",
        "x=T[2,1,2,1,2,1,2,3]", "x=T[6]:special");
SAMPLES(unary_errors, "! x", "x=i16[3] ! dtype");
SAMPLES(signed_errors, "! x", "x=u8[3] ! dtype");
SAMPLES(backward_samples, "x=T[4,5] dy=T[4,5]", "x=T[1025]:0.1..9 dy=T[1025]", "x=T[] dy=T[]",
        "x=T[0,3] dy=T[0,3]", "x=T[6]:special dy=T[6]");
SAMPLES(backward_errors, "x=T[3] ! dy", "x=T[3] dy=T[4] ! dy", "dy=T[3] ! x", "x=i32[2] dy=i32[2] ! dtype");
SAMPLES(power_backward_errors, "x=T[3] alpha=1 beta=1 gamma=2 ! dy",
        "x=T[3] dy=T[4] alpha=1 beta=1 gamma=2 ! dy", "x=T[3] dy=T[3] alpha=1 beta=1 ! gamma");
SAMPLES(powf_backward_errors, "x=T[3] e=2 ! dy", "x=T[3] dy=T[4] e=2 ! dy", "x=T[3] dy=T[3] ! e");
SAMPLES(affine_backward_errors, "x=T[3] mul=1 add=2 ! dy", "x=T[3] dy=T[4] mul=1 add=1 ! dy",
        "x=T[3] dy=T[3] mul=1 ! add");
SAMPLES(leaky_relu_samples, "x=T[4,5]", "x=T[1025] slope=0.2", "x=T[0]", "x=T[6]:special");
SAMPLES(leaky_relu_backward_samples, "x=T[4,5] dy=T[4,5]", "x=T[1025] dy=T[1025] slope=0.2");
SAMPLES(elu_samples, "x=T[4,5]", "x=T[1025] alpha=0.5", "x=T[0]", "x=T[6]:special");
SAMPLES(elu_backward_samples, "x=T[4,5] dy=T[4,5]", "x=T[1025] dy=T[1025] alpha=0.5");
SAMPLES(clamp_samples, "x=T[4,5] min=-1 max=1", "x=T[1025] min=0", "x=T[7] max=1", "x=T[0] min=1",
        "x=T[300] min=0 max=1", "x=T[6]:special min=0 max=2", "x=T[6]:special min=-1 max=1",
        "x=T[5] min=2 max=1", "x=T[5] min=100000 max=1e30");
SAMPLES(clamp_errors, "x=T[3] min=a ! min", "! x");
SAMPLES(clamp_backward_samples, "x=T[4,5] dy=T[4,5] min=-1 max=1", "x=T[1025] dy=T[1025] min=0.25",
        "x=T[300] dy=T[300] min=0 max=1", "x=T[6]:special dy=T[6] min=0 max=1",
        "x=T[6]:special dy=T[6] min=0", "x=T[5] dy=T[5] min=2 max=-1");
SAMPLES(power_samples, "x=T[4,5]:0.1..4 alpha=1 beta=0.5 gamma=2",
        "x=T[1025]:0.1..4 alpha=0 beta=1 gamma=0.5", "x=T[5]:-3..-1 alpha=0 beta=1 gamma=3");
SAMPLES(power_errors, "x=T[3] ! alpha", "x=T[3] alpha=1 beta=x gamma=2 ! beta");
SAMPLES(power_backward_samples, "x=T[4,5]:0.1..4 dy=T[4,5] alpha=1 beta=0.5 gamma=2",
        "x=T[1025]:0.1..4 dy=T[1025] alpha=0.5 beta=1 gamma=0.5",
        "x=T[5]:-3..-1 dy=T[5] alpha=0 beta=1 gamma=3");
SAMPLES(powf_samples, "x=T[4,5]:0.1..4 e=2.5", "x=T[1025] e=3", "x=T[4] e=0", "x=T[5]:0.1..4 e=-1.5");
SAMPLES(powf_errors, "x=T[3] ! e", "x=i32[3] e=2 ! dtype");
SAMPLES(powf_backward_samples, "x=T[4,5]:0.1..4 dy=T[4,5] e=2.5", "x=T[1025] dy=T[1025] e=3",
        "x=T[4] dy=T[4] e=0");
SAMPLES(affine_samples, "x=T[4,5] mul=2 add=1", "x=T[1025] mul=-3 add=0", "x=T[0] mul=1 add=1");
SAMPLES(affine_errors, "x=T[3] ! mul", "x=T[3] mul=1 ! add", "mul=1 add=1 ! x");
SAMPLES(affine_backward_samples, "x=T[4,5] dy=T[4,5] mul=2 add=1", "x=T[7] dy=T[7] mul=0.5 add=0");
SAMPLES(cast_samples, "x=T[4,5] dtype=f32", "x=T[4,5] dtype=f16", "x=T[4,5] dtype=bf16",
        "x=T[1025] dtype=f64", "x=T[4,5] dtype=u8", "x=T[4,5] dtype=u32", "x=T[4,5] dtype=i64",
        "x=T[1025] dtype=i32", "x=T[4,5] dtype=i16", "x=T[0] dtype=f16", "x=T[6]:special dtype=i32",
        "x=T[6]:special dtype=bf16");
SAMPLES(cast_errors, "x=T[3] ! dtype", "x=T[3] dtype=f31 ! dtype", "dtype=f32 ! x");
SAMPLES(fill_samples, "shape=3,4 dtype=T value=2", "shape=1025 dtype=T value=7", "shape=0,2 dtype=T value=1",
        "shape= dtype=T value=3");
SAMPLES(fill_errors, "shape=3 dtype=f32 ! value", "shape=-1 dtype=f32 value=1 ! shape",
        "shape=2 dtype=x value=1 ! dtype");
SAMPLES(arange_samples, "start=0 stop=10 dtype=T", "start=1 stop=8 step=3 dtype=T",
        "start=9 stop=0 step=-2 dtype=T", "start=3 stop=3 dtype=T",
        "start=9223372036854775800 stop=9223372036854775807 step=3 dtype=i64");
SAMPLES(arange_errors, "start=0 stop=1 step=0 dtype=f32 ! step", "start=0 dtype=f32 ! stop");

#define AT(field) offsetof(wk_unary_params, field)
#define IN_X \
    { \
        { \
            "x", 0, 0 \
        } \
    }
#define IN_X_DY \
    { \
        {"x", 0, 0}, { "dy", 0, 0 } \
    }
#define OUT_Y \
    { \
        { \
            "y", 0, 0 \
        } \
    }
#define OUT_DX \
    { \
        { \
            "dx", 0, 0 \
        } \
    }
#define SLOPE WK_PARAM_LIST({"slope", WK_P_SCALAR, AT(a), "0.01", NULL, 0})
#define ALPHA WK_PARAM_LIST({"alpha", WK_P_SCALAR, AT(a), "1", NULL, 0})
#define MIN_MAX \
    WK_PARAM_LIST({"min", WK_P_SCALAR, AT(a), "-inf", NULL, 0}, {"max", WK_P_SCALAR, AT(b), "inf", NULL, 0})
#define ALPHA_BETA_GAMMA \
    WK_PARAM_LIST({"alpha", WK_P_SCALAR, AT(a), NULL, NULL, 0}, {"beta", WK_P_SCALAR, AT(b), NULL, NULL, 0}, \
                  {"gamma", WK_P_SCALAR, AT(c), NULL, NULL, 0})
#define EXPONENT WK_PARAM_LIST({"e", WK_P_SCALAR, AT(a), NULL, NULL, 0})
#define MUL_ADD \
    WK_PARAM_LIST({"mul", WK_P_SCALAR, AT(a), NULL, NULL, 0}, {"add", WK_P_SCALAR, AT(b), NULL, NULL, 0})

enum {
#define INDEX(name, ...) OP_##name, OP_##name##_backward,
    WK_UNARY_PLAIN(INDEX) WK_UNARY_WITH_PARAMS(INDEX) OP_cast,
    OP_fill,
    OP_arange,
#undef INDEX
};

wk_op wk_ops_unary[] = {
#define PLAIN(name_, dtypes_, summary_) \
    [OP_##name_] = {.name = #name_, \
                    .summary = summary_, \
                    .dtypes = dtypes_, \
                    .in = IN_X, \
                    .out = OUT_Y, \
                    .infer = infer_same, \
                    .samples = unary_samples, \
                    .errors = dtypes_ == WK_SIGNED ? signed_errors : unary_errors}, \
    [OP_##name_##_backward] = {.name = #name_ "_backward", \
                               .summary = "gradient of " #name_, \
                               .dtypes = WK_FLOATS, \
                               .in = IN_X_DY, \
                               .out = OUT_DX, \
                               .infer = infer_backward, \
                               .samples = backward_samples, \
                               .errors = backward_errors},
    WK_UNARY_PLAIN(PLAIN)
#undef PLAIN
#define WITH_PARAMS(name_, dtypes_, summary_, params_, errors_, backward_errors_) \
    [OP_##name_] = {.name = #name_, \
                    .summary = summary_, \
                    .dtypes = dtypes_, \
                    .in = IN_X, \
                    .out = OUT_Y, \
                    .params = params_, \
                    .infer = infer_same, \
                    .samples = name_##_samples, \
                    .errors = errors_}, \
    [OP_##name_##_backward] = {.name = #name_ "_backward", \
                               .summary = "gradient of " #name_, \
                               .dtypes = WK_FLOATS, \
                               .in = IN_X_DY, \
                               .out = OUT_DX, \
                               .params = params_, \
                               .infer = infer_backward, \
                               .samples = name_##_backward_samples, \
                               .errors = backward_errors_}
        WITH_PARAMS(leaky_relu, WK_FLOATS, "x, or slope * x below 0", SLOPE, unary_errors, backward_errors),
    WITH_PARAMS(elu, WK_FLOATS, "x, or alpha * (exp(x) - 1) below 0", ALPHA, unary_errors, backward_errors),
    WITH_PARAMS(clamp, WK_ALL, "x held between min and max", MIN_MAX, clamp_errors, backward_errors),
    WITH_PARAMS(power, WK_FLOATS, "(alpha + beta * x) ^ gamma", ALPHA_BETA_GAMMA, power_errors,
                power_backward_errors),
    WITH_PARAMS(powf, WK_FLOATS, "x ^ e", EXPONENT, powf_errors, powf_backward_errors),
    WITH_PARAMS(affine, WK_ALL, "x * mul + add", MUL_ADD, affine_errors, affine_backward_errors),
#undef WITH_PARAMS
    [OP_cast] = {.name = "cast",
                 .summary = "to another dtype",
                 .dtypes = WK_ALL,
                 .in = IN_X,
                 .out = {{"y", WK_ANY, 0}},
                 .params =
                     WK_PARAM_LIST({"dtype", WK_P_DTYPE, offsetof(wk_cast_params, dtype), NULL, NULL, 0}),
                 .infer = infer_cast,
                 .samples = cast_samples,
                 .errors = cast_errors},
    [OP_fill] = {.name = "fill",
                 .summary = "one value everywhere",
                 .dtypes = WK_ALL,
                 .out = OUT_Y,
                 .params =
                     WK_PARAM_LIST({"shape", WK_P_LIST, offsetof(wk_fill_params, shape), NULL, NULL, 0},
                                   {"dtype", WK_P_DTYPE, offsetof(wk_fill_params, dtype), NULL, NULL, 0},
                                   {"value", WK_P_SCALAR, offsetof(wk_fill_params, value), NULL, NULL, 0}),
                 .infer = infer_fill,
                 .samples = fill_samples,
                 .errors = fill_errors},
    [OP_arange] = {.name = "arange",
                   .summary = "start, start + step, ... up to stop",
                   .dtypes = WK_ALL,
                   .out = OUT_Y,
                   .params =
                       WK_PARAM_LIST({"start", WK_P_SCALAR, offsetof(wk_arange_params, start), NULL, NULL, 0},
                                     {"stop", WK_P_SCALAR, offsetof(wk_arange_params, stop), NULL, NULL, 0},
                                     {"step", WK_P_SCALAR, offsetof(wk_arange_params, step), "1", NULL, 0},
                                     {"dtype", WK_P_DTYPE, offsetof(wk_arange_params, dtype), NULL, NULL, 0}),
                   .infer = infer_arange,
                   .samples = arange_samples,
                   .errors = arange_errors},
    {0},
};

/* ---- the API ---- */

static wk_tensor *run_unary(int op, const wk_tensor *x, const wk_tensor *dy, const void *params)
{
    return wk_call_run1(&(wk_call){.op = &wk_ops_unary[op], .params = params, .in = {x, dy}});
}

#define API_PLAIN(name, ...) \
    wk_tensor *wk_##name(const wk_tensor *x) { return run_unary(OP_##name, x, NULL, NULL); } \
    wk_tensor *wk_##name##_backward(const wk_tensor *x, const wk_tensor *dy) \
    { \
        return run_unary(OP_##name##_backward, x, dy, NULL); \
    }
WK_UNARY_PLAIN(API_PLAIN)

static wk_unary_params numbers(double a, double b, double c)
{
    return (wk_unary_params){wk_scalar_of(a), wk_scalar_of(b), wk_scalar_of(c)};
}

#define API_NUMBERS(name, arguments, a, b, c) \
    wk_tensor *wk_##name(const wk_tensor *x, UNPACK arguments) \
    { \
        wk_unary_params p = numbers(a, b, c); \
        return run_unary(OP_##name, x, NULL, &p); \
    } \
    wk_tensor *wk_##name##_backward(const wk_tensor *x, const wk_tensor *dy, UNPACK arguments) \
    { \
        wk_unary_params p = numbers(a, b, c); \
        return run_unary(OP_##name##_backward, x, dy, &p); \
    }
#define UNPACK(...) __VA_ARGS__
API_NUMBERS(leaky_relu, (double slope), slope, 0, 0)
API_NUMBERS(elu, (double alpha), alpha, 0, 0)
API_NUMBERS(clamp, (double min, double max), min, max, 0)
API_NUMBERS(power, (double alpha, double beta, double gamma), alpha, beta, gamma)
API_NUMBERS(powf, (double e), e, 0, 0)
API_NUMBERS(affine, (double mul, double add), mul, add, 0)

wk_tensor *wk_cast(const wk_tensor *x, wk_dtype dtype)
{
    wk_cast_params p = {(int64_t)dtype};
    return run_unary(OP_cast, x, NULL, &p);
}

static wk_status need_shape(const char *op, int rank, const int64_t *shape)
{
    if (rank >= 0 && rank <= WK_MAX_RANK && (rank == 0 || shape))
        return WK_OK;
    return wk_fail(WK_ERR_SHAPE, "%s: shape: expected rank 0 to %d and its sizes, got rank %d", op,
                   WK_MAX_RANK, rank);
}

wk_tensor *wk_fill(wk_device *device, wk_dtype dtype, int rank, const int64_t *shape, double value)
{
    if (wk_pending() || need_shape("fill", rank, shape) != WK_OK)
        return NULL;
    wk_fill_params p = {.shape.n = rank, .dtype = (int64_t)dtype, .value = wk_scalar_of(value)};
    if (rank > 0)
        memcpy(p.shape.v, shape, (size_t)rank * sizeof *shape);
    return wk_call_run1(&(wk_call){.op = &wk_ops_unary[OP_fill], .params = &p, .device = device});
}

wk_status wk_fill_into(wk_tensor *dst, double value)
{
    if (wk_pending())
        return wk_error_status();
    if (!dst)
        return wk_fail(WK_ERR_ARGUMENT, "fill: dst: expected a tensor, got NULL");
    wk_fill_params p = {.shape.n = dst->rank, .dtype = (int64_t)dst->dtype, .value = wk_scalar_of(value)};
    memcpy(p.shape.v, dst->shape, sizeof dst->shape);
    return wk_call_run(
        &(wk_call){.op = &wk_ops_unary[OP_fill], .params = &p, .device = dst->storage->device, .out = {dst}});
}

wk_tensor *wk_arange(wk_device *device, wk_dtype dtype, double start, double stop, double step)
{
    wk_arange_params p = {wk_scalar_of(start), wk_scalar_of(stop), wk_scalar_of(step), (int64_t)dtype};
    return wk_call_run1(&(wk_call){.op = &wk_ops_unary[OP_arange], .params = &p, .device = device});
}
