/* random.c: random numbers and dropout on the GPU. */
#include "core/random.h"
#include "ops/random.h"
#include "families.h"
#include "gpu.h"
#include "kernels/random.h"
#include "random.h"

static const wk_kernel uniform_kernel = {"random", "random_uniform", "random_args",
                                         256,      .types = 1,       .exact = true};
static const wk_kernel normal_kernel = {"random", "random_normal", "random_args",
                                        256,      .types = 1,      .exact = true};
static const wk_kernel dropout_kernel = {"random", "random_dropout", "random_args",
                                         256,      .types = 1,       .exact = true};

static wk_status launch(const wk_call *c, const wk_kernel *k, random_args *a)
{
    size_t bytes = 4 * wk_bytes(c->dtype);
    a->aligned = (size_t)a->x % bytes == 0 && (size_t)a->y % bytes == 0 && (size_t)a->keep % 4 == 0 &&
                 (size_t)a->mask % 4 == 0;
    return WK_LAUNCH(c, k, WK_INSTANCE(.t = {(unsigned char)c->dtype}),
                     ((wk_grid){.x = wk_blocks(a->count, 4 * 256, WK_GRID_MAX)}), *a);
}

static wk_status run_numbers(wk_call *c)
{
    const wk_random_params *p = c->params;
    bool uniform = c->impl->data == &uniform_kernel;
    random_args a = {.y = wk_ptr(c->out[0]),
                     .count = wk_count(c->out[0]),
                     .seed = (u64)p->seed,
                     .offset = (u64)p->offset,
                     .a = p->a,
                     .b = uniform ? p->b - p->a : p->b};
    return launch(c, c->impl->data, &a);
}

static wk_status run_dropout(wk_call *c)
{
    const wk_dropout_params *p = c->params;
    const wk_tensor *x = wk_tensor_packed(c->in[0]), *keep = NULL;
    if (!x || (c->in[1] && !(keep = wk_tensor_packed(c->in[1]))))
        return wk_error_status();
    random_args a = {.x = wk_ptr(x),
                     .keep = keep ? wk_ptr(keep) : NULL,
                     .y = wk_ptr(c->out[0]),
                     .mask = c->out[1] ? wk_ptr(c->out[1]) : NULL,
                     .count = wk_count(x),
                     .seed = (u64)p->seed,
                     .offset = (u64)p->offset,
                     .threshold = wk_dropout_threshold(p->p),
                     .b = wk_dropout_scale(p->p)};
    return launch(c, &dropout_kernel, &a);
}

wk_status wk_dropout_mask(const wk_call *c, void *mask, int64_t count)
{
    const wk_dropout_params *p = c->params;
    random_args a = {.mask = mask,
                     .count = count,
                     .seed = (u64)p->seed,
                     .offset = (u64)p->offset,
                     .threshold = wk_dropout_threshold(p->p)};
    return launch(c, &dropout_kernel, &a);
}

const wk_impl wk_gpu_impls_random[] = {
    {"rand", "kernel", run_numbers, NULL, &uniform_kernel},
    {"randn", "kernel", run_numbers, NULL, &normal_kernel},
    {"dropout", "kernel", run_dropout, NULL, NULL},
    {"dropout_backward", "kernel", run_dropout, NULL, NULL},
    {0},
};
