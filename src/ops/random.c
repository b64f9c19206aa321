/* random.c: front ends of random numbers and dropout. */
#include "random.h"
#include "wick/random.h"

/* ---- checks and outputs ---- */

static wk_status check_offset(const wk_call *c, int64_t offset)
{
    WK_NEED(offset >= 0, c, WK_ERR_PARAM, "offset", "expected 0 or more, got %lld", (long long)offset);
    return WK_OK;
}

static wk_status infer_numbers(wk_call *c)
{
    const wk_random_params *p = c->params;
    wk_shape_text text;
    wk_dtype dtype = (wk_dtype)p->dtype;
    WK_NEED(wk_dtype_valid(dtype) && wk_is_float(dtype), c, WK_ERR_DTYPE, "dtype",
            "expected dtype f32, f16, bf16 or f64, got %s", wk_dtype_name(dtype));
    WK_NEED(wk_shape_count((int)p->shape.n, p->shape.v) >= 0, c, WK_ERR_PARAM, "shape",
            "expected sizes of 0 or more and less than 2^60 elements, got %s",
            wk_shape_str(&text, (int)p->shape.n, p->shape.v));
    WK_TRY(check_offset(c, p->offset));
    c->dtype = dtype;
    wk_call_out(c, 0, dtype, (int)p->shape.n, p->shape.v);
    return WK_OK;
}

/* The largest number of a float dtype. */
static double largest(wk_dtype dtype)
{
    switch (dtype) {
    case WK_F16: return 65504;
    case WK_BF16: return 0x1.fep127;
    case WK_F64: return 0x1.fffffffffffffp1023;
    default: return 0x1.fffffep127;
    }
}

static wk_status infer_rand(wk_call *c)
{
    const wk_random_params *p = c->params;
    WK_TRY(infer_numbers(c));
    double most = largest(c->dtype);
    WK_NEED(fabs(p->a) <= most, c, WK_ERR_PARAM, "low", "expected a finite number of %s, got %g",
            wk_dtype_name(c->dtype), p->a);
    WK_NEED(fabs(p->b) <= most && p->b >= p->a, c, WK_ERR_PARAM, "high",
            "expected a finite number of %s, not below low = %g, got %g", wk_dtype_name(c->dtype), p->a,
            p->b);
    WK_NEED(p->b - p->a <= most, c, WK_ERR_PARAM, "high", "expected high - low to be finite in %s",
            wk_dtype_name(c->dtype));
    return WK_OK;
}

static wk_status infer_randn(wk_call *c)
{
    const wk_random_params *p = c->params;
    WK_TRY(infer_numbers(c));
    WK_NEED(isfinite(p->a), c, WK_ERR_PARAM, "mean", "expected a finite number, got %g", p->a);
    WK_NEED(isfinite(p->b) && p->b >= 0, c, WK_ERR_PARAM, "std", "expected a number of 0 or more, got %g",
            p->b);
    return WK_OK;
}

static wk_status infer_dropout(wk_call *c)
{
    const wk_dropout_params *p = c->params;
    WK_NEED(p->p >= 0 && p->p <= 1, c, WK_ERR_PARAM, "p", "expected a number from 0 to 1, got %g", p->p);
    WK_TRY(check_offset(c, p->offset));
    wk_call_out_like(c, 0, c->in[0]);
    return WK_OK;
}

static wk_status infer_dropout_forward(wk_call *c)
{
    WK_TRY(infer_dropout(c));
    wk_call_out(c, 1, WK_U8, c->in[0]->rank, c->in[0]->shape);
    return WK_OK;
}

static wk_status infer_dropout_backward(wk_call *c)
{
    if (c->in[1])
        WK_TRY(wk_call_same_shape(c, 1, 0));
    return infer_dropout(c);
}

/* ---- the table ---- */

#define SAMPLES(name, ...) static const char *const name[] = {__VA_ARGS__, NULL}

SAMPLES(rand_samples, "shape=3,5 dtype=T seed=1", "shape=1025 dtype=T seed=-7 offset=3",
        "shape=20000 dtype=T seed=1234567890123", "shape=7 dtype=T seed=2 low=-3 high=5",
        "shape=4 dtype=T seed=2 low=2 high=2", "shape=0,2 dtype=T seed=1", "shape= dtype=T seed=1",
        "shape=5 dtype=T seed=1 offset=9223372036854775807");
SAMPLES(rand_errors, "shape=3 dtype=f32 ! seed", "dtype=f32 seed=1 ! shape", "shape=3 seed=1 ! dtype",
        "shape=-1 dtype=f32 seed=1 ! shape", "shape=3 dtype=i32 seed=1 ! dtype",
        "shape=3 dtype=f32 seed=1 low=2 high=1 ! high", "shape=3 dtype=f32 seed=1 low=nan ! low",
        "shape=3 dtype=f16 seed=1 high=1e6 ! high", "shape=3 dtype=f32 seed=1 low=-3e38 high=3e38 ! high",
        "shape=3 dtype=f32 seed=1 offset=-1 ! offset",
        "shape=4294967296,4294967296 dtype=f32 seed=1 ! shape");
SAMPLES(randn_samples, "shape=3,5 dtype=T seed=1", "shape=1025 dtype=T seed=-7 offset=3",
        "shape=20001 dtype=T seed=9", "shape=7 dtype=T seed=2 mean=3 std=0.5", "shape=4 dtype=T seed=2 std=0",
        "shape=0,2 dtype=T seed=1");
SAMPLES(randn_errors, "shape=3 dtype=f32 ! seed", "shape=3 dtype=u8 seed=1 ! dtype",
        "shape=3 dtype=f32 seed=1 std=-1 ! std", "shape=3 dtype=f32 seed=1 mean=inf ! mean",
        "shape=3 dtype=f32 seed=1 offset=-1 ! offset");
SAMPLES(dropout_samples, "x=T[4,5] p=0.5 seed=1", "x=T[3,1001] p=0.1 seed=77 offset=12",
        "x=T[20003] p=0.9 seed=-3", "x=T[9] p=0 seed=1", "x=T[9] p=1 seed=1", "x=T[] p=0.5 seed=1",
        "x=T[0,3] p=0.5 seed=1", "x=T[6]:special p=0.25 seed=4");
SAMPLES(dropout_errors, "p=0.5 seed=1 ! x", "x=T[3] seed=1 ! p", "x=T[3] p=0.5 ! seed",
        "x=T[3] p=1.5 seed=1 ! p", "x=T[3] p=-0.1 seed=1 ! p", "x=T[3] p=nan seed=1 ! p",
        "x=i32[3] p=0.5 seed=1 ! dtype", "x=T[3] p=0.5 seed=1 offset=-4 ! offset");
SAMPLES(dropout_backward_samples, "dy=T[4,5] p=0.5 seed=1", "dy=T[20003] p=0.3 seed=5 offset=2",
        "dy=T[4,5] mask=u8[4,5]:0..2 p=0.5 seed=1", "dy=T[9] p=0 seed=1", "dy=T[9] p=1 seed=1",
        "dy=T[3,2000] mask=u8[3,2000]:0..2 p=0.25 seed=1", "dy=T[0] p=0.5 seed=1");
SAMPLES(dropout_backward_errors, "p=0.5 seed=1 ! dy", "dy=T[3] seed=1 ! p",
        "dy=T[3] mask=u8[4] p=0.5 seed=1 ! mask", "dy=T[3] mask=i32[3] p=0.5 seed=1 ! mask",
        "dy=T[3] p=2 seed=1 ! p");

enum { OP_rand, OP_randn, OP_dropout, OP_dropout_backward };

#define NUMBER_PARAMS(a_name, a_value, b_name, b_value) \
    WK_PARAM_LIST({"shape", WK_P_LIST, offsetof(wk_random_params, shape), NULL, NULL, 0}, \
                  {"dtype", WK_P_DTYPE, offsetof(wk_random_params, dtype), NULL, NULL, 0}, \
                  {"seed", WK_P_INT, offsetof(wk_random_params, seed), NULL, NULL, 0}, \
                  {"offset", WK_P_INT, offsetof(wk_random_params, offset), "0", NULL, 0}, \
                  {a_name, WK_P_FLOAT, offsetof(wk_random_params, a), a_value, NULL, 0}, \
                  {b_name, WK_P_FLOAT, offsetof(wk_random_params, b), b_value, NULL, 0})
#define DROPOUT_PARAMS \
    WK_PARAM_LIST({"p", WK_P_FLOAT, offsetof(wk_dropout_params, p), NULL, NULL, 0}, \
                  {"seed", WK_P_INT, offsetof(wk_dropout_params, seed), NULL, NULL, 0}, \
                  {"offset", WK_P_INT, offsetof(wk_dropout_params, offset), "0", NULL, 0})

wk_op wk_ops_random[] = {
    [OP_rand] = {.name = "rand",
                 .summary = "uniform numbers from low to high",
                 .dtypes = WK_FLOATS,
                 .out = {{"y", 0, 0}},
                 .params = NUMBER_PARAMS("low", "0", "high", "1"),
                 .infer = infer_rand,
                 .samples = rand_samples,
                 .errors = rand_errors},
    [OP_randn] = {.name = "randn",
                  .summary = "normal numbers",
                  .dtypes = WK_FLOATS,
                  .out = {{"y", 0, 0}},
                  .params = NUMBER_PARAMS("mean", "0", "std", "1"),
                  .infer = infer_randn,
                  .samples = randn_samples,
                  .errors = randn_errors},
    [OP_dropout] = {.name = "dropout",
                    .summary = "0 with probability p, else x / (1 - p)",
                    .dtypes = WK_FLOATS,
                    .in = {{"x", 0, 0}},
                    .out = {{"y", 0, 0}, {"mask", WK_OPTIONAL, WK_SET(WK_U8)}},
                    .params = DROPOUT_PARAMS,
                    .infer = infer_dropout_forward,
                    .samples = dropout_samples,
                    .errors = dropout_errors},
    [OP_dropout_backward] = {.name = "dropout_backward",
                             .summary = "gradient of dropout",
                             .dtypes = WK_FLOATS,
                             .in = {{"dy", 0, 0}, {"mask", WK_OPTIONAL, WK_SET(WK_U8)}},
                             .out = {{"dx", 0, 0}},
                             .params = DROPOUT_PARAMS,
                             .infer = infer_dropout_backward,
                             .samples = dropout_backward_samples,
                             .errors = dropout_backward_errors},
    {0},
};

/* ---- the API ---- */

static wk_tensor *run_numbers(int op, wk_device *device, int rank, const int64_t *shape, wk_random_params p)
{
    if (wk_pending())
        return NULL;
    if (rank < 0 || rank > WK_MAX_RANK || (rank > 0 && !shape)) {
        wk_fail(WK_ERR_SHAPE, "%s: shape: expected rank 0 to %d and its sizes, got rank %d",
                wk_ops_random[op].name, WK_MAX_RANK, rank);
        return NULL;
    }
    p.shape.n = rank;
    for (int i = 0; i < rank; i++)
        p.shape.v[i] = shape[i];
    return wk_call_run1(&(wk_call){.op = &wk_ops_random[op], .params = &p, .device = device});
}

wk_tensor *wk_rand(wk_device *device, wk_dtype dtype, int rank, const int64_t *shape, double low, double high,
                   int64_t seed, int64_t offset)
{
    return run_numbers(
        OP_rand, device, rank, shape,
        (wk_random_params){.dtype = (int64_t)dtype, .seed = seed, .offset = offset, .a = low, .b = high});
}

wk_tensor *wk_randn(wk_device *device, wk_dtype dtype, int rank, const int64_t *shape, double mean,
                    double std, int64_t seed, int64_t offset)
{
    return run_numbers(
        OP_randn, device, rank, shape,
        (wk_random_params){.dtype = (int64_t)dtype, .seed = seed, .offset = offset, .a = mean, .b = std});
}

wk_tensor *wk_dropout(const wk_tensor *x, double p, int64_t seed, int64_t offset, wk_tensor **mask)
{
    wk_dropout_params params = {p, seed, offset};
    wk_tensor *y;
    wk_call_run_into(&(wk_call){.op = &wk_ops_random[OP_dropout], .params = &params, .in = {x}},
                     (wk_tensor * *const[]){&y, mask}, 2);
    return y;
}

wk_tensor *wk_dropout_backward(const wk_tensor *dy, const wk_tensor *mask, double p, int64_t seed,
                               int64_t offset)
{
    wk_dropout_params params = {p, seed, offset};
    return wk_call_run1(
        &(wk_call){.op = &wk_ops_random[OP_dropout_backward], .params = &params, .in = {dy, mask}});
}
