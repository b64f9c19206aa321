/* reduce.c: front ends of the reductions and their gradients. */
#include "reduce.h"
#include "wick/reduce.h"

/* ---- checks and outputs ---- */

wk_status wk_reduce_dims(const wk_call *c, const wk_list *dims, int rank, unsigned *set)
{
    *set = dims->n == 0 ? (1u << rank) - 1 : 0;
    for (int i = 0; i < dims->n; i++) {
        int d;
        if (rank == 0 && (dims->v[i] == 0 || dims->v[i] == -1))
            continue; /* a scalar has a dim in name, as in PyTorch */
        WK_TRY(wk_call_dim(c, "dims", dims->v[i], rank, &d));
        WK_NEED(!(*set >> d & 1), c, WK_ERR_PARAM, "dims", "expected each dim once, got %d twice", d);
        *set |= 1u << d;
    }
    return WK_OK;
}

/* The shape that is left, into output i. */
static void reduced_shape(wk_call *c, int i, wk_dtype dtype, unsigned set, bool keepdim)
{
    const wk_tensor *x = c->in[0];
    int64_t shape[WK_MAX_RANK];
    int rank = 0;
    for (int d = 0; d < x->rank; d++) {
        if (!(set >> d & 1))
            shape[rank++] = x->shape[d];
        else if (keepdim)
            shape[rank++] = 1;
    }
    wk_call_out(c, i, dtype, rank, shape);
}

/* Where nothing is a result (the sum of no elements is 0). */
static bool empty_is_fine(const wk_op *op)
{
    static const char *const fine[] = {"sum", "prod", "norm1", "norm2"};
    for (size_t i = 0; i < sizeof fine / sizeof *fine; i++) {
        size_t n = strlen(fine[i]);
        if (strncmp(op->name, fine[i], n) == 0 && (!op->name[n] || op->name[n] == '_'))
            return true;
    }
    return false;
}

static wk_status check_reduce(wk_call *c, unsigned *set)
{
    const wk_tensor *x = c->in[0];
    WK_TRY(wk_reduce_dims(c, &WK_PARAMS(c, wk_reduce_params)->dims, x->rank, set));
    for (int d = 0; d < x->rank && !empty_is_fine(c->op); d++)
        WK_NEED(!(*set >> d & 1) || x->shape[d] > 0, c, WK_ERR_SHAPE, "x",
                "expected a size above 0 in the reduced dim %d, got 0", d);
    return WK_OK;
}

static wk_status infer_reduce(wk_call *c)
{
    const wk_reduce_params *p = c->params;
    unsigned set;
    WK_TRY(check_reduce(c, &set));
    reduced_shape(c, 0, c->dtype, set, p->keepdim);
    return WK_OK;
}

static wk_status infer_extreme(wk_call *c)
{
    const wk_reduce_params *p = c->params;
    unsigned set;
    WK_TRY(infer_reduce(c));
    WK_TRY(check_reduce(c, &set));
    if (set & (set - 1)) /* over several dims there is no index to give */
        c->want &= ~2u;
    reduced_shape(c, 1, WK_U32, set, p->keepdim);
    return WK_OK;
}

static wk_status infer_arg(wk_call *c)
{
    const wk_reduce_params *p = c->params;
    unsigned set;
    WK_NEED(p->dims.n == 1, c, WK_ERR_PARAM, "dim", "expected one dim, got %d", (int)p->dims.n);
    WK_TRY(check_reduce(c, &set));
    reduced_shape(c, 0, WK_U32, set, p->keepdim);
    return WK_OK;
}

static wk_status infer_backward(wk_call *c)
{
    WK_TRY(infer_reduce(c));
    WK_TRY(wk_call_shape(c, 1, c->spec[0].rank, c->spec[0].shape));
    wk_call_out_like(c, 0, c->in[0]);
    return WK_OK;
}

/* ---- the table ---- */

#define SAMPLES(name, ...) static const char *const name[] = {__VA_ARGS__, NULL}

SAMPLES(reduce_samples, "x=T[4,5]", "x=T[4,5] dims=0", "x=T[3,4,5] dims=1 keepdim=1", "x=T[3,4,5] dims=0,-1",
        "x=T[2500] dims=0", "x=T[7,300] dims=1", "x=T[300,7] dims=0", "x=T[] dims=all", "x=T[0,3] dims=1",
        "x=T[20000]", "x=T[2000,32] dims=0", "x=T[6,9,64] dims=0,2", "x=T[130,64] dims=1",
        "x=T[5,40,48] dims=1", "x=T[2,1,2,1,2,1,2,3] dims=0,2,7", "x=T[6]:special");
SAMPLES(sum_samples, "x=T[4,5]", "x=T[4,5] dims=0", "x=T[3,4,5] dims=1 keepdim=1", "x=T[3,4,5] dims=0,-1",
        "x=T[2500] dims=0", "x=T[7,300] dims=1", "x=T[300,7] dims=0", "x=T[]", "x=T[0,3] dims=0", "x=T[0]",
        "x=T[20000]", "x=T[2000,32] dims=0", "x=T[6,9,64] dims=0,2", "x=T[130,64] dims=1",
        "x=T[5,40,48] dims=1", "x=T[2,1,2,1,2,1,2,3] dims=0,2,7", "x=T[6]:special");
SAMPLES(arg_samples, "x=T[4,5] dim=0", "x=T[4,5] dim=-1 keepdim=1", "x=T[3,4,5] dim=1", "x=T[2500] dim=0",
        "x=T[7,300]:-3..3 dim=1", "x=T[300,7]:-3..3 dim=0", "x=T[20000]:-3..3 dim=0",
        "x=T[2000,32]:-3..3 dim=0", "x=T[130,64] dim=1", "x=T[0,3] dim=1", "x=T[6]:special dim=0");
SAMPLES(var_samples, "x=T[4,5] dims=0,1", "x=T[4,5] dims=0", "x=T[3,4,5] dims=1 keepdim=1 unbiased=0",
        "x=T[2500] dims=0", "x=T[7,300]:99..101 dims=1", "x=T[300,7] dims=0", "x=T[20000] dims=0",
        "x=T[2000,32] dims=0", "x=T[130,64] dims=1", "x=T[0,3] dims=1");
SAMPLES(log_sum_exp_samples, "x=T[4,5] dims=0,1", "x=T[3,4,5] dims=1 keepdim=1", "x=T[2500] dims=0",
        "x=T[7,300]:-60..60 dims=1", "x=T[300,7] dims=0", "x=T[20000]:-9..9 dims=0", "x=T[2000,32] dims=0",
        "x=T[130,64] dims=1", "x=T[0,3] dims=1", "x=T[6]:special dims=0");
SAMPLES(log_sum_exp_backward_samples, "x=T[4,5] dy=T[5] dims=0", "x=T[3,4,5] dy=T[3,1,5] dims=1 keepdim=1");
SAMPLES(reduce_errors, "! x", "x=T[3] dims=1 ! dims", "x=T[3,4] dims=0,0 ! dims", "x=T[3] dims=a ! dims");
SAMPLES(float_errors, "! x", "x=T[3] dims=1 ! dims", "x=i32[3] dims=0 ! dtype",
        "x=T[3] dims=0 keepdim=2 ! keepdim");
SAMPLES(extreme_errors, "! x", "x=T[3] dims=1 ! dims", "x=T[0] dims=0 ! x");
SAMPLES(arg_errors, "x=T[3] ! dim", "x=T[3] dim=1 ! dim", "x=T[0] dim=0 ! x", "x=T[3,4] dim=0,1 ! dim");
SAMPLES(backward_samples, "x=T[4,5] dy=T[]", "x=T[4,5] dy=T[5] dims=0",
        "x=T[3,4,5] dy=T[3,1,5] dims=1 keepdim=1", "x=T[3,4,5] dy=T[4] dims=0,-1",
        "x=T[300,7] dy=T[7] dims=0", "x=T[0,3] dy=T[0] dims=1");
SAMPLES(var_backward_samples, "x=T[4,5] dy=T[5] dims=0",
        "x=T[3,4,5] dy=T[3,1,5] dims=1 keepdim=1 unbiased=0");
SAMPLES(backward_errors, "x=T[3] dims=0 ! dy", "x=T[3,4] dy=T[3] dims=0 ! dy",
        "x=i32[3] dy=i32[] dims=0 ! dtype");

#define AT(field) offsetof(wk_reduce_params, field)
#define DIMS \
    { \
        "dims", WK_P_LIST, AT(dims), "all", NULL, 0 \
    }
#define NEED_DIMS \
    { \
        "dims", WK_P_LIST, AT(dims), NULL, NULL, 0 \
    }
#define DIM \
    { \
        "dim", WK_P_LIST, AT(dims), NULL, NULL, 0 \
    }
#define KEEPDIM \
    { \
        "keepdim", WK_P_BOOL, AT(keepdim), "0", NULL, 0 \
    }
#define UNBIASED \
    { \
        "unbiased", WK_P_BOOL, AT(unbiased), "1", NULL, 0 \
    }

enum {
#define INDEX(name) OP_##name, OP_##name##_backward
    INDEX(sum),
    INDEX(mean),
    INDEX(prod),
    INDEX(norm1),
    INDEX(norm2),
    INDEX(min),
    INDEX(max),
    INDEX(amax),
    INDEX(var),
    INDEX(log_sum_exp),
    OP_argmin,
    OP_argmax,
#undef INDEX
};

#define GRADIENT(name_, params_, samples_) \
    [OP_##name_##_backward] = {.name = #name_ "_backward", \
                               .summary = "gradient of " #name_, \
                               .dtypes = WK_FLOATS, \
                               .in = {{"x", 0, 0}, {"dy", 0, 0}}, \
                               .out = {{"dx", 0, 0}}, \
                               .params = WK_PARAM_LIST(UNPACK params_), \
                               .infer = infer_backward, \
                               .samples = samples_, \
                               .errors = backward_errors}
#define UNPACK(...) __VA_ARGS__
#define REDUCE(name_, dtypes_, summary_, samples_, errors_) \
    [OP_##name_] = {.name = #name_, \
                    .summary = summary_, \
                    .dtypes = dtypes_, \
                    .in = {{"x", 0, 0}}, \
                    .out = {{"y", 0, 0}}, \
                    .params = WK_PARAM_LIST(DIMS, KEEPDIM), \
                    .infer = infer_reduce, \
                    .samples = samples_, \
                    .errors = errors_}, \
    GRADIENT(name_, (DIMS, KEEPDIM), backward_samples)
#define EXTREME(name_, dtypes_, summary_) \
    [OP_##name_] = {.name = #name_, \
                    .summary = summary_, \
                    .dtypes = dtypes_, \
                    .in = {{"x", 0, 0}}, \
                    .out = {{"y", 0, 0}, {"indices", WK_OPTIONAL, WK_SET(WK_U32)}}, \
                    .params = WK_PARAM_LIST(DIMS, KEEPDIM), \
                    .infer = infer_extreme, \
                    .samples = reduce_samples, \
                    .errors = extreme_errors}, \
    GRADIENT(name_, (DIMS, KEEPDIM), backward_samples)
#define ARG(name_, summary_) \
    [OP_##name_] = {.name = #name_, \
                    .summary = summary_, \
                    .dtypes = WK_ALL, \
                    .in = {{"x", 0, 0}}, \
                    .out = {{"y", 0, WK_SET(WK_U32)}}, \
                    .params = WK_PARAM_LIST(DIM, KEEPDIM), \
                    .infer = infer_arg, \
                    .samples = arg_samples, \
                    .errors = arg_errors}

wk_op wk_ops_reduce[] = {
    REDUCE(sum, WK_ALL, "sum over dims", sum_samples, reduce_errors),
    REDUCE(mean, WK_FLOATS, "mean over dims", reduce_samples, float_errors),
    REDUCE(prod, WK_ALL, "product over dims", sum_samples, reduce_errors),
    REDUCE(norm1, WK_FLOATS, "sum of |x| over dims", sum_samples, float_errors),
    REDUCE(norm2, WK_FLOATS, "square root of the sum of x^2 over dims", sum_samples, float_errors),
    EXTREME(min, WK_ALL, "smallest over dims, and where it is"),
    EXTREME(max, WK_ALL, "largest over dims, and where it is"),
    EXTREME(amax, WK_ALL, "largest |x| over dims, and where it is"),
    [OP_var] = {.name = "var",
                .summary = "variance over dims",
                .dtypes = WK_FLOATS,
                .in = {{"x", 0, 0}},
                .out = {{"y", 0, 0}},
                .params = WK_PARAM_LIST(NEED_DIMS, KEEPDIM, UNBIASED),
                .infer = infer_reduce,
                .samples = var_samples,
                .errors = float_errors},
    GRADIENT(var, (NEED_DIMS, KEEPDIM, UNBIASED), var_backward_samples),
    [OP_log_sum_exp] = {.name = "log_sum_exp",
                        .summary = "log of the sum of exp(x) over dims",
                        .dtypes = WK_FLOATS,
                        .in = {{"x", 0, 0}},
                        .out = {{"y", 0, 0}},
                        .params = WK_PARAM_LIST(NEED_DIMS, KEEPDIM),
                        .infer = infer_reduce,
                        .samples = log_sum_exp_samples,
                        .errors = float_errors},
    GRADIENT(log_sum_exp, (NEED_DIMS, KEEPDIM), log_sum_exp_backward_samples),
    ARG(argmin, "where the smallest element is"),
    ARG(argmax, "where the largest element is"),
    {0},
};

/* ---- the API ---- */

/* Fills the parameters; false, with an error pending, when the dims cannot be read. */
static bool reduce_params(wk_reduce_params *p, const char *op, int n, const int64_t *dims, int keepdim,
                          int unbiased)
{
    *p = (wk_reduce_params){.dims.n = n, .keepdim = keepdim != 0, .unbiased = unbiased != 0};
    if (wk_pending())
        return false;
    if (n < 0 || n > WK_MAX_RANK || (n > 0 && !dims)) {
        wk_fail(WK_ERR_PARAM, "%s: dims: expected 0 to %d dims, got %d", op, WK_MAX_RANK, n);
        return false;
    }
    if (n)
        memcpy(p->dims.v, dims, (size_t)n * sizeof *dims);
    return true;
}

static wk_tensor *run_reduce(int op, const wk_tensor *x, const wk_tensor *dy, int n, const int64_t *dims,
                             int keepdim, int unbiased, wk_tensor **indices)
{
    wk_reduce_params p;
    if (indices)
        *indices = NULL;
    if (!reduce_params(&p, wk_ops_reduce[op].name, n, dims, keepdim, unbiased))
        return NULL;
    wk_call c = {.op = &wk_ops_reduce[op], .params = &p, .in = {x, dy}, .want = indices ? 2 : 0};
    if (indices && x && n != 1 && !(n == 0 && x->rank <= 1)) {
        wk_call_fail(&c, WK_ERR_PARAM, "dims", "expected one dim for indices, got %d", n);
        return NULL;
    }
    if (wk_call_run(&c) != WK_OK)
        return NULL;
    if (indices)
        *indices = c.out[1];
    return c.out[0];
}

#define API_REDUCE(name) \
    wk_tensor *wk_##name(const wk_tensor *x, int n, const int64_t *dims, int keepdim) \
    { \
        return run_reduce(OP_##name, x, NULL, n, dims, keepdim, 0, NULL); \
    }
#define API_EXTREME(name) \
    wk_tensor *wk_##name(const wk_tensor *x, int n, const int64_t *dims, int keepdim, wk_tensor **indices) \
    { \
        return run_reduce(OP_##name, x, NULL, n, dims, keepdim, 0, indices); \
    }
#define API_BACKWARD(name) \
    wk_tensor *wk_##name##_backward(const wk_tensor *x, const wk_tensor *dy, int n, const int64_t *dims, \
                                    int keepdim) \
    { \
        return run_reduce(OP_##name##_backward, x, dy, n, dims, keepdim, 0, NULL); \
    }
#define API_ARG(name) \
    wk_tensor *wk_##name(const wk_tensor *x, int dim, int keepdim) \
    { \
        return run_reduce(OP_##name, x, NULL, 1, (int64_t[]){dim}, keepdim, 0, NULL); \
    }
API_REDUCE(sum)
API_REDUCE(mean)
API_REDUCE(prod)
API_REDUCE(norm1)
API_REDUCE(norm2)
API_REDUCE(log_sum_exp)
API_EXTREME(min)
API_EXTREME(max)
API_EXTREME(amax)
API_ARG(argmin)
API_ARG(argmax)
API_BACKWARD(sum)
API_BACKWARD(mean)
API_BACKWARD(prod)
API_BACKWARD(norm1)
API_BACKWARD(norm2)
API_BACKWARD(min)
API_BACKWARD(max)
API_BACKWARD(amax)
API_BACKWARD(log_sum_exp)

wk_tensor *wk_var(const wk_tensor *x, int n, const int64_t *dims, int keepdim, int unbiased)
{
    return run_reduce(OP_var, x, NULL, n, dims, keepdim, unbiased, NULL);
}

wk_tensor *wk_var_backward(const wk_tensor *x, const wk_tensor *dy, int n, const int64_t *dims, int keepdim,
                           int unbiased)
{
    return run_reduce(OP_var_backward, x, dy, n, dims, keepdim, unbiased, NULL);
}
