/* reduce.c: reductions and their gradients on the GPU, as runs of the reduction engine and the elementwise one. */
#include "ops/reduce.h"
#include "families.h"
#include "kernels/reduce.h"
#include "map.h"
#include "reduce.h"
#include "walk.h"

static const wk_kernel map_kernel = WK_MAP_KERNEL("reduce");
static const wk_kernel scatter_kernel = {"reduce", "reduce_scatter", "reduce_scatter_args", 256, .types = 1};

/* What a call reduces: the dims as a set, and how many elements make one result. */
typedef struct {
    unsigned set;
    double count, var_count;   /* var_count: what a variance is divided by */
    int64_t kept[WK_MAX_RANK]; /* x's shape with the reduced dims as 1 */
} extent;

static extent extent_of(const wk_call *c)
{
    const wk_tensor *x = c->in[0];
    const wk_reduce_params *p = c->params;
    extent e = {.count = 1};
    wk_reduce_dims(c, &p->dims, x->rank, &e.set); /* checked by the front end */
    for (int d = 0; d < x->rank; d++) {
        bool reduced = e.set >> d & 1;
        e.kept[d] = reduced ? 1 : x->shape[d];
        e.count *= reduced ? (double)x->shape[d] : 1;
    }
    e.var_count = e.count - (double)p->unbiased;
    return e;
}

/* ---- forward ---- */

static wk_status run_plain(wk_call *c)
{
    extent e = extent_of(c);
    return wk_gpu_reduce(c, c->impl->data, c->in[0], e.set, e.count, c->out[0], NULL);
}

static wk_status run_var(wk_call *c)
{
    extent e = extent_of(c);
    return wk_gpu_reduce(c, "r_var", c->in[0], e.set, e.var_count, c->out[0], NULL);
}

/* The formulas of an extreme. */
typedef struct {
    const char *plain, *at, *many, *grad;
} extreme;

static wk_status run_extreme(wk_call *c)
{
    const extreme *f = c->impl->data;
    extent e = extent_of(c);
    return wk_gpu_reduce(c, c->out[1] ? f->at : f->plain, c->in[0], e.set, e.count, c->out[0], c->out[1]);
}

static wk_status run_arg(wk_call *c)
{
    const extreme *f = c->impl->data;
    extent e = extent_of(c);
    return wk_gpu_reduce(c, f->at, c->in[0], e.set, e.count, NULL, c->out[0]);
}

/* ---- gradients ---- */

/* A tensor that broadcasts against x, with the compute dtype. */
static wk_tensor *wide_result(const wk_call *c, const extent *e)
{
    wk_dtype wide = wk_compute_dtype(wk_dtypes[c->dtype].compute);
    return wk_tensor_new(c->device, wide, c->in[0]->rank, e->kept);
}

/* dy in the shape that broadcasts against x. */
static wk_tensor *gradient_of(const wk_call *c, const extent *e)
{
    const wk_tensor *packed = wk_tensor_packed(c->in[1]);
    return packed ? wk_reshape(packed, c->in[0]->rank, e->kept) : NULL;
}

static wk_status apply(const wk_call *c, const char *formula, int n_in, const wk_tensor *x0,
                       const wk_tensor *x1, const wk_tensor *x2, double number, wk_tensor *out)
{
    wk_gpu_map m = {.kernel = &map_kernel,
                    .formula = formula,
                    .in = {x0, x1, x2},
                    .n_in = n_in,
                    .out = out,
                    .f = {number}};
    return wk_gpu_map_run(c, &m);
}

/* sum and mean: dx from dy alone. */
static wk_status run_spread(wk_call *c)
{
    extent e = extent_of(c);
    wk_tensor *dy = gradient_of(c, &e);
    return dy ? apply(c, c->impl->data, 1, dy, NULL, NULL, e.count, c->out[0]) : wk_error_status();
}

static wk_status run_norm1_backward(wk_call *c)
{
    extent e = extent_of(c);
    wk_tensor *dy = gradient_of(c, &e);
    return dy ? apply(c, "f_norm1_grad", 2, c->in[0], dy, NULL, 0, c->out[0]) : wk_error_status();
}

/* Those that need the result, or the mean, of each element's line. */
typedef struct {
    const char *forward, *grad;
} with_result;

static wk_status run_with_result(wk_call *c)
{
    const with_result *f = c->impl->data;
    extent e = extent_of(c);
    wk_tensor *dy = gradient_of(c, &e), *y = wide_result(c, &e);
    if (!dy || !y)
        return wk_error_status();
    WK_TRY(wk_gpu_reduce(c, f->forward, c->in[0], e.set, e.count, y, NULL));
    return apply(c, f->grad, 3, c->in[0], y, dy, e.var_count, c->out[0]);
}

static wk_status run_prod_backward(wk_call *c)
{
    extent e = extent_of(c);
    wk_tensor *dy = gradient_of(c, &e), *others = wide_result(c, &e), *zeros = wide_result(c, &e);
    if (!dy || !others || !zeros)
        return wk_error_status();
    WK_TRY(wk_gpu_reduce(c, "r_prod_others", c->in[0], e.set, e.count, others, zeros));
    WK_TRY(apply(c, "f_prod_part", 3, others, zeros, dy, 0, others));
    return apply(c, "f_prod_grad", 3, c->in[0], others, zeros, 0, c->out[0]);
}

/* Over one dim the first extreme element gets all of it. */
static wk_status one_extreme(wk_call *c, const extent *e, const extreme *f)
{
    const wk_tensor *x = c->in[0], *dy = wk_tensor_packed(c->in[1]);
    wk_tensor *places = wk_tensor_new(c->device, WK_U32, x->rank, e->kept);
    if (!dy || !places)
        return wk_error_status();
    WK_TRY(wk_gpu_reduce(c, f->at, x, e->set, e->count, NULL, places));
    int dim = __builtin_ctz(e->set);
    size_t bytes = wk_bytes(c->dtype);
    reduce_scatter_args a = {.dx = wk_ptr(c->out[0]),
                             .dy = wk_ptr(dy),
                             .places = wk_ptr(places),
                             .outs = wk_count(places),
                             .inner =
                                 wk_wide_divisor_of(wk_shape_count(x->rank - dim - 1, x->shape + dim + 1)),
                             .size = x->shape[dim]};
    WK_TRY(wk_gpu_zero(c, a.dx, (size_t)wk_count(x) * bytes));
    wk_dtype by_size = bytes == 2 ? WK_I16 : bytes == 4 ? WK_U32 : WK_I64;
    return WK_LAUNCH(c, &scatter_kernel, WK_INSTANCE(.t = {(unsigned char)by_size}),
                     (wk_grid){.x = wk_blocks(a.outs, 256, WK_GRID_MAX)}, a);
}

/* Over several dims, and for amax, equal ones share. */
static wk_status run_extreme_backward(wk_call *c)
{
    const extreme *f = c->impl->data;
    extent e = extent_of(c);
    bool one_dim = WK_PARAMS(c, wk_reduce_params)->dims.n == 1 && c->in[0]->rank > 0;
    if (wk_count(c->in[0]) == 0)
        return WK_OK;
    if (one_dim && strcmp(f->grad, "f_extreme_grad") == 0)
        return one_extreme(c, &e, f);
    wk_tensor *dy = gradient_of(c, &e), *y = wide_result(c, &e), *many = wide_result(c, &e);
    if (!dy || !y || !many)
        return wk_error_status();
    WK_TRY(wk_gpu_reduce(c, f->many, c->in[0], e.set, e.count, y, many));
    WK_TRY(apply(c, "f_share", 2, many, dy, NULL, 0, many));
    return apply(c, f->grad, 3, c->in[0], y, many, 0, c->out[0]);
}

/* ---- the list ---- */

static const extreme min_formulas = {"r_min", "r_min_at", "r_min_many", "f_extreme_grad"},
                     max_formulas = {"r_max", "r_max_at", "r_max_many", "f_extreme_grad"},
                     amax_formulas = {"r_amax", "r_amax_at", "r_amax_many", "f_amax_grad"};
static const with_result norm2_formulas = {"r_norm2", "f_norm2_grad"},
                         var_formulas = {"r_mean", "f_var_grad"},
                         log_sum_exp_formulas = {"r_log_sum_exp", "f_log_sum_exp_grad"};

const wk_impl wk_gpu_impls_reduce[] = {
    {"sum", "kernel", run_plain, NULL, "r_sum"},
    {"prod", "kernel", run_plain, NULL, "r_prod"},
    {"norm1", "kernel", run_plain, NULL, "r_norm1"},
    {"norm2", "kernel", run_plain, NULL, "r_norm2"},
    {"mean", "kernel", run_plain, NULL, "r_mean"},
    {"log_sum_exp", "kernel", run_plain, NULL, "r_log_sum_exp"},
    {"var", "kernel", run_var, NULL, NULL},
    {"min", "kernel", run_extreme, NULL, &min_formulas},
    {"max", "kernel", run_extreme, NULL, &max_formulas},
    {"amax", "kernel", run_extreme, NULL, &amax_formulas},
    {"argmin", "kernel", run_arg, NULL, &min_formulas},
    {"argmax", "kernel", run_arg, NULL, &max_formulas},
    {"sum_backward", "kernel", run_spread, NULL, "f_sum_grad"},
    {"mean_backward", "kernel", run_spread, NULL, "f_mean_grad"},
    {"prod_backward", "kernel", run_prod_backward, NULL, NULL},
    {"norm1_backward", "kernel", run_norm1_backward, NULL, NULL},
    {"norm2_backward", "kernel", run_with_result, NULL, &norm2_formulas},
    {"var_backward", "kernel", run_with_result, NULL, &var_formulas},
    {"log_sum_exp_backward", "kernel", run_with_result, NULL, &log_sum_exp_formulas},
    {"min_backward", "kernel", run_extreme_backward, NULL, &min_formulas},
    {"max_backward", "kernel", run_extreme_backward, NULL, &max_formulas},
    {"amax_backward", "kernel", run_extreme_backward, NULL, &amax_formulas},
    {0},
};
