/* unary.c: ops on one tensor, their gradients, cast, fill and arange on the GPU. */
#include "ops/unary.h"
#include "families.h"
#include "map.h"

static const wk_kernel kernel = WK_MAP_KERNEL("unary");

static wk_status run_map(wk_call *c)
{
    wk_gpu_map m = {.kernel = &kernel,
                    .formula = c->impl->data,
                    .in = {c->in[0], c->in[1]},
                    .n_in = c->in[1] ? 2 : 1,
                    .out = c->out[0]};
    wk_unary_numbers(c, m.f, m.n);
    return wk_gpu_map_run(c, &m);
}

static wk_status run_cast(wk_call *c)
{
    wk_gpu_map m = {.kernel = &kernel, .formula = "f_cast", .in = {c->in[0]}, .n_in = 1, .out = c->out[0]};
    return wk_gpu_map_run(c, &m);
}

static wk_status run_fill(wk_call *c)
{
    const wk_fill_params *p = c->params;
    wk_gpu_map m = {.kernel = &kernel, .out = c->out[0]};
    m.formula = wk_is_float(c->dtype) ? "f_fill_real" : "f_fill_int";
    wk_number_in(c->dtype, &p->value, &m.f[0], &m.n[0]);
    return wk_gpu_map_run(c, &m);
}

static wk_status run_arange(wk_call *c)
{
    const wk_arange_params *p = c->params;
    bool whole = wk_arange_whole(p);
    wk_gpu_map m = {.kernel = &kernel,
                    .formula = whole ? "f_arange_int" : "f_arange_real",
                    .out = c->out[0],
                    .f = {p->start.f, p->step.f},
                    .n = {p->start.i, p->step.i}};
    return wk_gpu_map_run(c, &m);
}

#define ROW(name) \
    {#name, "kernel", run_map, NULL, "f_" #name}, \
        {#name "_backward", "kernel", run_map, NULL, "f_" #name "_backward"},
#define PLAIN(name, dtypes, summary) ROW(name)

const wk_impl wk_gpu_impls_unary[] = {
    /* clang-format off */
    WK_UNARY_PLAIN(PLAIN) WK_UNARY_WITH_PARAMS(ROW)
    /* clang-format on */
    {"cast", "kernel", run_cast, NULL, NULL},
    {"fill", "kernel", run_fill, NULL, NULL},
    {"arange", "kernel", run_arange, NULL, NULL},
    {0},
};
