/* binary.c: arithmetic on two tensors, comparison, where, and their gradients on the GPU. */
#include "families.h"
#include "map.h"

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

#define ROW(name) {#name, "kernel", run_map, NULL, "f_" #name},

const wk_impl wk_gpu_impls_binary[] = {
    /* clang-format off */
    ROW(add) ROW(sub) ROW(mul) ROW(div) ROW(minimum) ROW(maximum) ROW(pow)
    ROW(eq) ROW(ne) ROW(lt) ROW(le) ROW(gt) ROW(ge) ROW(where)
    /* clang-format on */
    {0},
};
