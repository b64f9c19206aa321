/* binary.c: arithmetic on two tensors, comparison, where, and their gradients on the GPU. */
#include "families.h"
#include "map.h"
#include "reduce.h"

static const wk_kernel kernel = WK_MAP_KERNEL("binary");

static wk_status run_map(wk_call *c)
{
    wk_gpu_map m = {.kernel = &kernel,
                    .formula = c->impl->data,
                    .in = {c->in[0], c->in[1], c->in[2]},
                    .n_in = c->in[2] ? 3 : 2,
                    .out = c->out[0],
                    .slot = 1};
    return wk_gpu_map_run(c, &m);
}

/* ---- gradients ---- */

typedef struct {
    const char *formula[2]; /* for a, b */
} gradients;

/* Runs a map whose result has the shape of dy into out, summing over the dimensions out is broadcast over. The values
 * between the two are kept in the compute type: one rounding, at the end. */
static wk_status map_and_sum(const wk_call *c, wk_gpu_map *m, const wk_tensor *dy, wk_tensor *out)
{
    m->out = out;
    if (wk_shape_equal(out->rank, out->shape, dy->rank, dy->shape))
        return wk_gpu_map_run(c, m);
    wk_dtype wide = wk_compute_dtype(wk_dtypes[out->dtype].compute);
    m->out = wk_tensor_new(out->storage->device, wide, dy->rank, dy->shape);
    if (!m->out)
        return wk_error_status();
    WK_TRY(wk_gpu_map_run(c, m));
    return wk_gpu_sum_to(c, m->out, out);
}

static wk_status run_gradients(wk_call *c)
{
    const gradients *g = c->impl->data;
    for (int i = 0; i < 2; i++) {
        wk_gpu_map m = {
            .kernel = &kernel, .formula = g->formula[i], .in = {c->in[0], c->in[1], c->in[2]}, .n_in = 3};
        if (c->out[i])
            WK_TRY(map_and_sum(c, &m, c->in[2], c->out[i]));
    }
    return WK_OK;
}

static wk_status run_where_gradients(wk_call *c)
{
    const gradients *g = c->impl->data;
    for (int i = 0; i < 2; i++) {
        wk_gpu_map m = {.kernel = &kernel, .formula = g->formula[i], .in = {c->in[0], c->in[3]}, .n_in = 2};
        if (c->out[i])
            WK_TRY(map_and_sum(c, &m, c->in[3], c->out[i]));
    }
    return WK_OK;
}

#define ROW(name) {#name, "kernel", run_map, NULL, "f_" #name},
#define GRADIENTS(name, run) \
    {#name "_backward", "kernel", run, NULL, &(const gradients){{"f_" #name "_da", "f_" #name "_db"}}},

const wk_impl wk_gpu_impls_binary[] = {
    /* clang-format off */
    ROW(add) ROW(sub) ROW(mul) ROW(div) ROW(minimum) ROW(maximum) ROW(pow)
    ROW(eq) ROW(ne) ROW(lt) ROW(le) ROW(gt) ROW(ge) ROW(where)
    GRADIENTS(add, run_gradients) GRADIENTS(sub, run_gradients) GRADIENTS(mul, run_gradients)
    GRADIENTS(div, run_gradients) GRADIENTS(minimum, run_gradients) GRADIENTS(maximum, run_gradients)
    GRADIENTS(pow, run_gradients) GRADIENTS(where, run_where_gradients)
    /* clang-format on */
    {0},
};
