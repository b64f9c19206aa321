/* loss.c: losses and their gradients on the GPU. */
#include "ops/loss.h"
#include "families.h"
#include "kernels/loss.h"
#include "reduce.h"
#include "walk.h"
#include "wick/loss.h"

enum { THREADS = WK_LOSS_THREADS };

static const wk_kernel total_kernel = {"loss", "loss_total", "total_args", WK_TOTAL_THREADS, .types = 1};
static const wk_kernel count_kernel = {"loss", "count_targets", "class_args", WK_TOTAL_THREADS, .types = 1};
static const wk_kernel class_total_kernel = {"loss", "class_total", "class_args", WK_TOTAL_THREADS,
                                             .types = 2};
static const wk_kernel rows_kernel = {"loss", "class_rows", "class_args", THREADS, .types = 2};
static const wk_kernel gradient_kernel = {"loss",  "class_gradient", "class_args",
                                          THREADS, .types = 2,       .ints = 1};
static const wk_kernel stream_kernel = {"loss",     "class_stream", "class_args", WK_STREAM_THREADS,
                                        .types = 2, .ints = 1};
static const wk_kernel short_stream_kernel = {"loss",     "class_stream", "class_args", WK_STREAM_THREADS,
                                              .types = 2, .ints = 1,      .blocks = 3};
static const wk_kernel kept_kernel = {"loss",     "class_kept", "class_args", WK_KEPT_THREADS,
                                      .types = 2, .ints = 3,    .blocks = 2,  .clusters = true};
static const wk_kernel element_kernel = {"loss",          "element_losses", "element_args", THREADS,
                                         .formula = true, .types = 1,       .ints = 1};

static bool aligned(const void *p, int vec, wk_dtype dtype)
{
    return (size_t)p % ((size_t)vec * wk_bytes(dtype)) == 0;
}

/* ---- classes ---- */

/* The largest number of an id dtype. */
static int64_t padding_id(wk_dtype dtype)
{
    int bits = 8 * (int)wk_bytes(dtype) - wk_dtypes[dtype].is_signed;
    return (int64_t)(~(uint64_t)0 >> (64 - bits));
}

static void *room_for(const wk_call *c, wk_dtype dtype, int64_t n)
{
    wk_tensor *t = wk_tensor_new(c->device, dtype, 1, (int64_t[]){n ? n : 1});
    return t ? wk_ptr(t) : NULL;
}

/* The largest element of each row and what the exponentials are multiplied with. */
static wk_status row_statistics(wk_call *c, class_args *a)
{
    wk_dtype stat = wk_stat_dtype(c->dtype);
    wk_tensor *top = wk_tensor_new(c->device, stat, 1, &a->rows),
              *z = wk_tensor_new(c->device, stat, 1, &a->rows);
    if (!top || !z)
        return wk_error_status();
    a->top = wk_ptr(top);
    a->z = wk_ptr(z);
    return wk_gpu_reduce(c, "r_softmax", c->in[0], 2, 1, top, z);
}

static int gradient_width(const wk_call *c, const class_args *a)
{
    int vec = (int)(16 / wk_bytes(c->dtype));
    bool even = a->column == 1 && a->row % vec == 0 && a->classes % vec == 0;
    return even && aligned(a->x, vec, c->dtype) && aligned(a->dx, vec, c->dtype) ? vec : 1;
}

static wk_status put_gradient(wk_call *c, class_args *a)
{
    int vec = gradient_width(c, a);
    int64_t tiles = (a->classes + THREADS * vec - 1) / (THREADS * vec);
    a->tiles = wk_wide_divisor_of(tiles);
    a->blocks = a->rows * tiles;
    wk_instance instance = {.t = {(unsigned char)c->dtype, (unsigned char)c->in[1]->dtype},
                            .i = {(short)vec}};
    return WK_LAUNCH(c, &gradient_kernel, &instance, (wk_grid){.x = wk_blocks(a->blocks, 1, WK_GRID_MAX)},
                     *a);
}

/* Cross entropy of long rows: a block or a cluster keeps one that is needed again for the gradient, or whose elements are so
 * small that it pays to have all of it on its way at once, where rows are few; else a block walks it, where rows are many; else
 * the rows' statistics come first. */
static wk_status put_losses(wk_call *c, class_args *a)
{
    wk_instance instance = {.t = {(unsigned char)c->dtype, (unsigned char)c->in[1]->dtype}};
    bool many = a->rows >= wk_gpu_of(c->device)->facts.units / 2;
    int vec = gradient_width(c, a);
    a->tiles = wk_wide_divisor_of(a->classes / vec);
    wk_kept_form kept = wk_gpu_kept(c, a->classes * (i64)wk_bytes(c->dtype));
    if ((a->dx || (wk_bytes(c->dtype) == 2 && !many)) && a->classes >= 1024 && vec > 1 && kept.blocks &&
        c->dtype != WK_F64) {
        instance.i[0] = kept.packs, instance.i[1] = kept.threads, instance.i[2] = kept.blocks;
        a->ahead = wk_gpu_of(c->device)->facts.units * 5 / 4; /* of two for each unit, as measured */
        return WK_LAUNCH(c, &kept_kernel, &instance, wk_kept_grid(&kept, a->rows), *a);
    }
    if (many && a->classes >= 1024 && a->classes < 1 << 30 && a->column == 1) {
        instance.i[0] = (short)vec;
        const wk_kernel *k = vec > 1 && wk_bytes(c->dtype) == 2 ? &short_stream_kernel : &stream_kernel;
        return WK_LAUNCH(c, k, &instance, (wk_grid){.x = wk_blocks(a->rows, 1, WK_GRID_MAX)}, *a);
    }
    WK_TRY(row_statistics(c, a));
    WK_TRY(
        WK_LAUNCH(c, &rows_kernel, &instance, (wk_grid){.x = wk_blocks(a->rows, THREADS, WK_GRID_MAX)}, *a));
    return a->dx ? put_gradient(c, a) : WK_OK;
}

static wk_status put_nll(wk_call *c, const class_args *a)
{
    wk_instance instance = {.t = {(unsigned char)c->dtype, (unsigned char)c->in[1]->dtype}};
    if (a->dx)
        WK_TRY(wk_gpu_zero(c, a->dx, (size_t)(a->rows * a->classes) * wk_bytes(c->dtype)));
    return WK_LAUNCH(c, &rows_kernel, &instance, (wk_grid){.x = wk_blocks(a->rows, THREADS, WK_GRID_MAX)},
                     *a);
}

static wk_status run_classes(wk_call *c, bool softmax)
{
    const wk_loss_params *params = c->params;
    const wk_tensor *x = c->in[0], *t = c->in[1];
    bool none = params->reduction == WK_REDUCE_NONE, mean = params->reduction == WK_REDUCE_MEAN;
    wk_instance of_ids = {.t = {(unsigned char)t->dtype}},
                of_both = {.t = {(unsigned char)c->dtype, (unsigned char)t->dtype}};
    class_args a = {.x = wk_ptr(x),
                    .targets = wk_ptr(t),
                    .y = wk_ptr(c->out[0]),
                    .dx = c->out[1] ? wk_ptr(c->out[1]) : NULL,
                    .mean = mean,
                    .lse = c->out[2] ? wk_ptr(c->out[2]) : NULL,
                    .rows = x->shape[0],
                    .classes = x->shape[1],
                    .row = x->strides[0],
                    .column = x->strides[1],
                    .target = t->strides[0],
                    .padding = padding_id(t->dtype),
                    .report = wk_report_of(c, 1)};
    if ((!none && !(a.losses = room_for(c, WK_F64, a.rows))) ||
        (mean && a.dx && !(a.count = room_for(c, WK_I64, 1))))
        return wk_error_status();
    if (a.count)
        WK_TRY(WK_LAUNCH(c, &count_kernel, &of_ids, (wk_grid){.x = 1}, a));
    WK_TRY(softmax ? put_losses(c, &a) : put_nll(c, &a));
    return none ? WK_OK : WK_LAUNCH(c, &class_total_kernel, &of_both, (wk_grid){.x = 1}, a);
}

static wk_status run_cross_entropy(wk_call *c) { return run_classes(c, true); }
static wk_status run_nll_loss(wk_call *c) { return run_classes(c, false); }

/* ---- elements ---- */

/* x and the targets walked together; returns the elements taken at once. */
static int plan_elements(const wk_call *c, wk_gpu_walk *w)
{
    const wk_tensor *x = c->in[0], *t = c->in[1];
    int vec = (int)(16 / wk_bytes(c->dtype));
    for (int d = 0; d < x->rank; d++)
        wk_gpu_walk_add(w, x->shape[d], x->strides[d], t->strides[d]);
    wk_gpu_walk_join(w);
    const wk_tensor *all[] = {x, t, c->out[0], c->out[1]};
    for (int i = 0; i < 4; i++) {
        bool element = i != 2 || WK_PARAMS(c, wk_loss_params)->reduction == WK_REDUCE_NONE;
        if (all[i] && element && !aligned(wk_ptr(all[i]), vec, c->dtype))
            return 1;
    }
    if (!wk_gpu_walk_vector(w, vec) || w->strides[1][w->rank - 1] != 1)
        return 1;
    for (int d = 0; d + 1 < w->rank; d++) {
        if (w->strides[1][d] % vec)
            return 1;
    }
    return vec;
}

static wk_status run_elements(wk_call *c)
{
    const wk_loss_params *params = c->params;
    bool none = params->reduction == WK_REDUCE_NONE, mean = params->reduction == WK_REDUCE_MEAN;
    wk_gpu_walk w = {0};
    int64_t count = wk_count(c->in[0]), enough = 8 * (int64_t)wk_gpu_of(c->device)->facts.units;
    int vec = count ? plan_elements(c, &w) : 1;
    element_args a = {.x = wk_ptr(c->in[0]),
                      .targets = wk_ptr(c->in[1]),
                      .y = none ? wk_ptr(c->out[0]) : NULL,
                      .dx = c->out[1] ? wk_ptr(c->out[1]) : NULL,
                      .steps = count / vec,
                      .scale = mean && count ? 1 / (double)count : 1,
                      .delta = params->delta};
    int64_t blocks = wk_blocks(a.steps, 2 * THREADS, enough);
    if (!none && !(a.parts = room_for(c, WK_F64, blocks)))
        return wk_error_status();
    if (count)
        a.dims = wk_gpu_walk_dims(&w, vec);
    wk_instance instance = {.formula = c->impl->data, .t = {(unsigned char)c->dtype}, .i = {(short)vec}};
    WK_TRY(WK_LAUNCH(c, &element_kernel, &instance, (wk_grid){.x = blocks}, a));
    total_args total = {
        .parts = a.parts, .y = wk_ptr(c->out[0]), .n = blocks, .divisor = mean ? (double)count : 1};
    return none ? WK_OK
                : WK_LAUNCH(c, &total_kernel, WK_INSTANCE(.t = {(unsigned char)c->dtype}), (wk_grid){.x = 1},
                            total);
}

const wk_impl wk_gpu_impls_loss[] = {
    {"cross_entropy", "kernel", run_cross_entropy, NULL, NULL},
    {"softmax_cross_entropy", "kernel", run_cross_entropy, NULL, NULL},
    {"nll_loss", "kernel", run_nll_loss, NULL, NULL},
    {"mse_loss", "kernel", run_elements, NULL, "l_mse_loss"},
    {"bce_with_logits", "kernel", run_elements, NULL, "l_bce_with_logits"},
    {"huber_loss", "kernel", run_elements, NULL, "l_huber_loss"},
    {0},
};
