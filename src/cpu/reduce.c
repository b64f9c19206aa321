/* reduce.c: reductions and their gradients, as runs of the reduction engine and the elementwise one. */
#include <float.h>
#include "ops/reduce.h"
#include "core/families.h"
#include "map.h"
#include "reduce.h"

#include "real_f32.h"
#include "reduce_grad.inc.h"
#include "real_f64.h"
#include "reduce_grad.inc.h"

/* The formula for the call's compute type. */
#define PICK(c, name) (wk_dtypes[(c)->dtype].compute == WK_COMPUTE_F64 ? name##_f64 : name##_f32)

/* What a call reduces: the dims as a set, and how many elements make one result. */
typedef struct {
    unsigned set;
    double count;
    int64_t kept[WK_MAX_RANK]; /* x's shape with the reduced dims as 1 */
} extent;

static extent extent_of(const wk_call *c)
{
    const wk_tensor *x = c->in[0];
    extent e = {.count = 1};
    wk_reduce_dims(c, &WK_PARAMS(c, wk_reduce_params)->dims, x->rank, &e.set); /* checked by the front end */
    for (int d = 0; d < x->rank; d++) {
        bool reduced = e.set >> d & 1;
        e.kept[d] = reduced ? 1 : x->shape[d];
        e.count *= reduced ? (double)x->shape[d] : 1;
    }
    return e;
}

/* A raw reduction of the call's x in the compute dtype, shaped to broadcast against x. NULL with an error. */
static wk_tensor *raw(const wk_call *c, const extent *e, wk_reduction how, const wk_tensor *center)
{
    const wk_tensor *x = c->in[0];
    wk_tensor *y = wk_tensor_new(c->device, wk_compute_dtype(wk_dtypes[x->dtype].compute), x->rank, e->kept);
    if (y && WK_ISA(wk_reduce)(how, x, e->set, center, y, NULL) != WK_OK)
        y = NULL;
    return y;
}

/* out = fn(a, b) elementwise over packed tensors of one count; out may be a. */
static wk_status apply(const wk_call *c, wk_block_fn fn, double count, const wk_tensor *a, const wk_tensor *b,
                       wk_tensor *out)
{
    wk_compute compute = wk_dtypes[c->dtype].compute;
    wk_tensor flat = wk_tensor_local(out); /* out may lack the reduced dims that a still has as 1 */
    flat.rank = a->rank;
    memcpy(flat.shape, a->shape, sizeof flat.shape);
    wk_map m = {.in = {a, b},
                .in_compute = {compute, compute},
                .n_in = b ? 2 : 1,
                .out = &flat,
                .out_compute = compute,
                .fn = fn,
                .params = &count};
    return WK_ISA(wk_map_run)(&m);
}

/* ---- forward ---- */

/* sum, prod, norm1, min, max, amax and their places: one run of the engine. */
static wk_status run_plain(wk_call *c)
{
    extent e = extent_of(c);
    return WK_ISA(wk_reduce)(*(const wk_reduction *)c->impl->data, c->in[0], e.set, NULL, c->out[0],
                             c->out[1]);
}

static wk_status run_arg(wk_call *c)
{
    extent e = extent_of(c);
    return WK_ISA(wk_reduce)(*(const wk_reduction *)c->impl->data, c->in[0], e.set, NULL, NULL, c->out[0]);
}

static wk_status run_mean(wk_call *c)
{
    extent e = extent_of(c);
    wk_tensor *sum = raw(c, &e, WK_R_SUM, NULL);
    return sum ? apply(c, PICK(c, divide), e.count, sum, NULL, c->out[0]) : wk_error_status();
}

static wk_status run_norm2(wk_call *c)
{
    extent e = extent_of(c);
    wk_tensor *sum = raw(c, &e, WK_R_SUM_SQR, NULL);
    return sum ? apply(c, PICK(c, root), e.count, sum, NULL, c->out[0]) : wk_error_status();
}

static wk_tensor *mean_of(const wk_call *c, const extent *e)
{
    wk_tensor *mean = raw(c, e, WK_R_SUM, NULL);
    return mean && apply(c, PICK(c, divide), e->count, mean, NULL, mean) == WK_OK ? mean : NULL;
}

static double var_divisor(const wk_call *c, const extent *e)
{
    return e->count - (double)WK_PARAMS(c, wk_reduce_params)->unbiased;
}

static wk_status run_var(wk_call *c)
{
    extent e = extent_of(c);
    wk_tensor *mean = mean_of(c, &e);
    wk_tensor *sum = mean ? raw(c, &e, WK_R_SUM_SQR, mean) : NULL;
    return sum ? apply(c, PICK(c, divide), var_divisor(c, &e), sum, NULL, c->out[0]) : wk_error_status();
}

/* The largest element is taken out first; an infinite one is left in, where it decides the result anyway. */
static wk_status log_sum_exp_into(wk_call *c, const extent *e, wk_tensor *out)
{
    wk_tensor *center = raw(c, e, WK_R_MAX, NULL);
    if (!center)
        return wk_error_status();
    WK_TRY(apply(c, PICK(c, finite_or_zero), 0, center, NULL, center));
    wk_tensor *sum = raw(c, e, WK_R_SUM_EXP, center);
    return sum ? apply(c, PICK(c, log_plus), 0, sum, center, out) : wk_error_status();
}

static wk_status run_log_sum_exp(wk_call *c)
{
    extent e = extent_of(c);
    return log_sum_exp_into(c, &e, c->out[0]);
}

/* ---- gradients: dx = f(x, y, dy, z), all broadcast to x's shape ---- */

static wk_status gradient(wk_call *c, const extent *e, wk_block_fn fn, double count, const wk_tensor *y,
                          const wk_tensor *z)
{
    wk_compute compute = wk_dtypes[c->dtype].compute;
    const wk_tensor *packed = wk_tensor_packed(c->in[1]);
    wk_tensor *dy = packed ? wk_reshape(packed, c->in[0]->rank, e->kept) : NULL;
    if (!dy)
        return wk_error_status();
    wk_map m = {.in = {c->in[0], y ? y : dy, dy, z ? z : dy},
                .in_compute = {compute, compute, compute, compute},
                .n_in = 4,
                .out = c->out[0],
                .out_compute = compute,
                .fn = fn,
                .params = &count};
    return WK_ISA(wk_map_run)(&m);
}

static wk_status run_sum_backward(wk_call *c)
{
    extent e = extent_of(c);
    return gradient(c, &e, PICK(c, sum_grad), e.count, NULL, NULL);
}

static wk_status run_mean_backward(wk_call *c)
{
    extent e = extent_of(c);
    return gradient(c, &e, PICK(c, mean_grad), e.count, NULL, NULL);
}

static wk_status run_norm1_backward(wk_call *c)
{
    extent e = extent_of(c);
    return gradient(c, &e, PICK(c, norm1_grad), e.count, NULL, NULL);
}

static wk_status run_norm2_backward(wk_call *c)
{
    extent e = extent_of(c);
    wk_tensor *y = raw(c, &e, WK_R_SUM_SQR, NULL);
    if (!y)
        return wk_error_status();
    WK_TRY(apply(c, PICK(c, root), 0, y, NULL, y));
    return gradient(c, &e, PICK(c, norm2_grad), e.count, y, NULL);
}

static wk_status run_var_backward(wk_call *c)
{
    extent e = extent_of(c);
    wk_tensor *mean = mean_of(c, &e);
    return mean ? gradient(c, &e, PICK(c, var_grad), var_divisor(c, &e), mean, NULL) : wk_error_status();
}

static wk_status run_log_sum_exp_backward(wk_call *c)
{
    extent e = extent_of(c);
    wk_tensor *y = raw(c, &e, WK_R_MAX, NULL); /* for its shape and dtype */
    if (!y)
        return wk_error_status();
    WK_TRY(log_sum_exp_into(c, &e, y));
    return gradient(c, &e, PICK(c, log_sum_exp_grad), 0, y, NULL);
}

static wk_status run_prod_backward(wk_call *c)
{
    extent e = extent_of(c);
    wk_tensor *others = raw(c, &e, WK_R_PROD_OTHERS, NULL);
    wk_tensor *zeros = others ? raw(c, &e, WK_R_ZEROS, NULL) : NULL;
    return zeros ? gradient(c, &e, PICK(c, prod_grad), 0, others, zeros) : wk_error_status();
}

/* Over one dim the first extreme element gets all of it. */
static wk_status one_extreme(wk_call *c, const extent *e, wk_reduction how)
{
    const wk_tensor *x = c->in[0], *dy = wk_tensor_packed(c->in[1]);
    wk_tensor *places = wk_tensor_new(c->device, WK_U32, x->rank, e->kept);
    if (!dy || !places)
        return wk_error_status();
    WK_TRY(WK_ISA(wk_reduce)(how, x, e->set, NULL, NULL, places));
    int dim = __builtin_ctz(e->set);
    int64_t inner = wk_shape_count(x->rank - dim - 1, x->shape + dim + 1), size = x->shape[dim];
    size_t bytes = wk_bytes(c->dtype);
    const uint32_t *place = wk_ptr(places);
    char *dx = wk_ptr(c->out[0]);
    const char *from = wk_ptr(dy);
    memset(dx, 0, (size_t)wk_count(x) * bytes);
    for (int64_t i = 0; i < wk_count(places); i++) {
        int64_t to = (i / inner * size + place[i]) * inner + i % inner;
        memcpy(dx + (size_t)to * bytes, from + (size_t)i * bytes, bytes);
    }
    return WK_OK;
}

/* Over several dims, and for amax, equal ones share. */
static wk_status run_extreme_backward(wk_call *c)
{
    wk_reduction how = *(const wk_reduction *)c->impl->data;
    extent e = extent_of(c);
    bool one_dim = WK_PARAMS(c, wk_reduce_params)->dims.n == 1 && c->in[0]->rank > 0;
    if (one_dim && how != WK_R_AMAX)
        return one_extreme(c, &e, how);
    wk_tensor *y = raw(c, &e, how, NULL);
    wk_tensor *equal = y ? raw(c, &e, how == WK_R_AMAX ? WK_R_EQUAL_ABS : WK_R_EQUAL, y) : NULL;
    if (!equal)
        return wk_error_status();
    return gradient(c, &e, how == WK_R_AMAX ? PICK(c, amax_grad) : PICK(c, extreme_grad), 0, y, equal);
}

/* ---- the list ---- */

#define HOW(reduction) \
    &(const wk_reduction) { reduction }

const wk_impl WK_ISA(wk_cpu_reduce)[] = {
    {"sum", "simd", run_plain, NULL, HOW(WK_R_SUM)},
    {"prod", "simd", run_plain, NULL, HOW(WK_R_PROD)},
    {"norm1", "simd", run_plain, NULL, HOW(WK_R_SUM_ABS)},
    {"min", "simd", run_plain, NULL, HOW(WK_R_MIN)},
    {"max", "simd", run_plain, NULL, HOW(WK_R_MAX)},
    {"amax", "simd", run_plain, NULL, HOW(WK_R_AMAX)},
    {"argmin", "simd", run_arg, NULL, HOW(WK_R_MIN)},
    {"argmax", "simd", run_arg, NULL, HOW(WK_R_MAX)},
    {"mean", "simd", run_mean, NULL, NULL},
    {"norm2", "simd", run_norm2, NULL, NULL},
    {"var", "simd", run_var, NULL, NULL},
    {"log_sum_exp", "simd", run_log_sum_exp, NULL, NULL},
    {"sum_backward", "simd", run_sum_backward, NULL, NULL},
    {"mean_backward", "simd", run_mean_backward, NULL, NULL},
    {"prod_backward", "simd", run_prod_backward, NULL, NULL},
    {"norm1_backward", "simd", run_norm1_backward, NULL, NULL},
    {"norm2_backward", "simd", run_norm2_backward, NULL, NULL},
    {"min_backward", "simd", run_extreme_backward, NULL, HOW(WK_R_MIN)},
    {"max_backward", "simd", run_extreme_backward, NULL, HOW(WK_R_MAX)},
    {"amax_backward", "simd", run_extreme_backward, NULL, HOW(WK_R_AMAX)},
    {"var_backward", "simd", run_var_backward, NULL, NULL},
    {"log_sum_exp_backward", "simd", run_log_sum_exp_backward, NULL, NULL},
    {0},
};
