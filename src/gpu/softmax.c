/* softmax.c: softmax and its gradient on the GPU: lines in registers, or a reduction and a map. */
#include "ops/softmax.h"
#include "families.h"
#include "kernels/softmax.h"
#include "map.h"
#include "ops/reduce.h"
#include "reduce.h"
#include "walk.h"
#include "wick/softmax.h"

static const wk_kernel map_kernel = WK_MAP_KERNEL("softmax");

static const wk_kernel kept_kernel = {"softmax",  "softmax_kept", "softmax_args", WK_KEPT_THREADS,
                                      .types = 1, .ints = 3,      .blocks = 2,    .clusters = true};

/* Lines of a cluster. Those that fill small blocks have more of them on a unit. */
#define AHEAD(on_unit) \
    { \
        "softmax", "softmax_ahead", "softmax_args", 128, .types = 1, .ints = 4, .blocks = on_unit, \
                                                         .clusters = true \
    }
static const wk_kernel ahead_kernels[] = {AHEAD(10), AHEAD(6)};

/* Lines in registers, lines that do not fit, and lines side by side. */
typedef struct {
    wk_kernel lines, stream, columns;
} kernels;
#define KERNELS(name) \
    { \
        {"softmax", name "_lines", "softmax_args", 256, .types = 1, .ints = 4}, \
            {"softmax", name "_stream", "softmax_args", 512, .types = 1, .ints = 2}, \
            {"softmax", name "_columns", "softmax_args", 256, .types = 1, .ints = 2}, \
    }
static const kernels forward_kernels = KERNELS("softmax"), backward_kernels = KERNELS("softmax_back");

typedef struct {
    unsigned set;
    int64_t kept[WK_MAX_RANK];     /* x's shape with the dims of the lines as 1 */
    wk_gpu_walk lines, line;       /* of x and y */
    wk_gpu_walk dy_lines, dy_line; /* of dy and y */
    int vec, keep;
    softmax_args a;
} plan;

/* ---- lines in registers ---- */

static bool aligned(const wk_call *c, int vec)
{
    const wk_tensor *all[] = {c->in[0], c->in[1] ? c->in[1] : c->in[0], c->out[0]};
    for (int i = 0; i < 3; i++) {
        if ((size_t)wk_ptr(all[i]) % ((size_t)vec * wk_bytes(c->dtype)))
            return false;
    }
    return true;
}

static bool even_strides(const wk_gpu_walk *w, int vec)
{
    for (int d = 0; d < w->rank; d++) {
        if (w->strides[0][d] % vec || w->strides[1][d] % vec)
            return false;
    }
    return true;
}

/* Splits the dims of x, and of dy for the gradient, into lines and what counts them. */
static void split_dims(const wk_call *c, plan *p)
{
    const wk_tensor *x = c->in[0], *dy = c->in[1] ? c->in[1] : x, *y = c->out[0];
    for (int d = 0; d < x->rank; d++) {
        bool along = p->set >> d & 1;
        p->kept[d] = along ? 1 : x->shape[d];
        wk_gpu_walk_add(along ? &p->line : &p->lines, x->shape[d], x->strides[d], y->strides[d]);
        wk_gpu_walk_add(along ? &p->dy_line : &p->dy_lines, x->shape[d], dy->strides[d], y->strides[d]);
    }
    wk_gpu_walk *walks[] = {&p->lines, &p->line, &p->dy_lines, &p->dy_line};
    for (int i = 0; i < 4; i++)
        wk_gpu_walk_join(walks[i]);
    p->a.lines = wk_gpu_walk_count(&p->lines);
}

/* A line is one run of neighbours in every tensor. */
static bool runs(const wk_gpu_walk *line)
{
    return line->rank == 0 || (line->rank == 1 && line->strides[0][0] == 1 && line->strides[1][0] == 1);
}

/* How many threads share a line, and how many packs each keeps; false when it does not fit. */
static bool plan_line(const wk_call *c, plan *p)
{
    const wk_tensor *dy = c->in[1];
    int64_t n = wk_gpu_walk_count(&p->line);
    int vec = (int)(16 / wk_bytes(c->dtype));
    if (n % vec || !aligned(c, vec) || !even_strides(&p->lines, vec) || !even_strides(&p->dy_lines, vec))
        vec = 1;
    /* Values that a thread can keep without running out of registers; the gradient keeps two lines. */
    int values = (dy ? 16 : 32) / (c->dtype == WK_F64 ? 2 : 1), most = values / vec < 8 ? values / vec : 8;
    int64_t steps = n / vec;
    p->vec = vec;
    /* Lines of 16-bit elements are short in bytes: the fewest threads that can keep one, so that more lines are on
     * their way. */
    bool dense = wk_bytes(c->dtype) == 2 && vec > 1 && steps >= 64;
    while (p->a.log_group < 5 && (dense ? most : 1) << p->a.log_group < steps)
        p->a.log_group++;
    if (steps > 32 * most)
        p->a.log_group = dense && steps <= 128 * most ? 7 : 8;
    p->keep = 1;
    while (p->keep < most && p->keep << p->a.log_group < steps)
        p->keep *= 2;
    p->a.steps = (i32)(steps < 1 << 30 ? steps : 0);
    return steps <= p->keep << p->a.log_group;
}

/* How blocks keep a line, and by which kernel. No blocks: it is too long, or not packed. */
static wk_kept_form kept_form(const wk_call *c, const plan *p, const wk_kernel **kernel)
{
    wk_kept_form f = {0};
    i64 bytes = (i64)p->a.steps * 16;
    if (p->vec == 1 || c->dtype == WK_F64 || c->in[1])
        return f;
    for (int i = bytes & (bytes - 1) ? 1 : 0; i < 2; i++) { /* powers of two fill them */
        *kernel = &ahead_kernels[i];
        f = wk_gpu_ahead(c, *kernel, 8 << i, 1, bytes);
        if (f.blocks)
            return f;
    }
    *kernel = &kept_kernel;
    return wk_gpu_kept(c, bytes);
}

/* A block walks a line that does not fit: where such lines are few, several should share each. */
static bool enough_lines(const wk_call *c, const plan *p)
{
    const wk_kernel *kernel = NULL;
    return kept_form(c, p, &kernel).blocks || p->a.lines >= wk_gpu_of(c->device)->facts.units / 2;
}

static wk_status run_kept(const wk_call *c, const softmax_args *a, const wk_kernel *k, const wk_kept_form *f)
{
    wk_instance i = {.t = {(unsigned char)c->dtype}, .i = {f->packs, f->threads, f->blocks}};
    if (k == &kept_kernel)
        return WK_LAUNCH(c, k, &i, wk_kept_grid(f, a->lines), *a);
    i.i[2] = a->mode == WK_SOFTMAX_LOG, i.i[3] = f->blocks;
    return wk_gpu_launch_ahead(c, k, &i, f, a->lines, a);
}

static wk_status run_lines(wk_call *c, plan *p, const kernels *k, bool fits)
{
    softmax_args *a = &p->a;
    wk_instance instance = {.t = {(unsigned char)c->dtype}, .i = {(short)p->vec, 512}};
    a->kept = wk_gpu_walk_dims(&p->lines, 1);
    a->kept_dy = wk_gpu_walk_dims(&p->dy_lines, 1);
    const wk_kernel *kernel = NULL;
    wk_kept_form kept = kept_form(c, p, &kernel);
    if (!fits && kept.blocks)
        return run_kept(c, a, kernel, &kept);
    if (!fits)
        return WK_LAUNCH(c, &k->stream, &instance, (wk_grid){.x = wk_blocks(a->lines, 1, WK_GRID_MAX)}, *a);
    int threads = a->log_group == 7 ? 128 : 256; /* a line of more than a wave has a block of its own */
    instance.i[1] = (short)p->keep;
    instance.i[2] = (short)threads;
    instance.i[3] = (short)a->mode;
    wk_grid grid = {.x = wk_blocks(a->lines, threads >> a->log_group, WK_GRID_MAX), .threads = threads};
    return WK_LAUNCH(c, &k->lines, &instance, grid, *a);
}

/* ---- lines side by side ---- */

/* A line that one thread can keep, walked by one stride in each tensor. */
static bool short_columns(const wk_call *c, const plan *p)
{
    int64_t most = c->dtype == WK_F64 ? 8 : c->in[1] ? 24 : 32; /* by the registers there are */
    return p->line.rank == 1 && p->dy_line.rank == 1 && p->line.shape[0] <= most;
}

static wk_status run_columns(wk_call *c, plan *p, const kernels *k)
{
    softmax_args *a = &p->a;
    int vec = wk_bytes(c->dtype) == 2 ? 2 : 1; /* four bytes at a time: more would keep too much */
    a->step_x = p->line.strides[0][0];
    a->step_y = p->line.strides[1][0];
    a->step_dy = p->dy_line.strides[0][0];
    a->steps = (i32)p->line.shape[0];
    bool even =
        wk_gpu_walk_vector(&p->lines, vec) && wk_gpu_walk_vector(&p->dy_lines, vec) && aligned(c, vec);
    for (int d = 0; d < p->lines.rank; d++)
        even = even &&
               (d + 1 == p->lines.rank ? p->lines.strides[1][d] == 1 : p->lines.strides[1][d] % vec == 0);
    if (!even || a->step_x % vec || a->step_y % vec || a->step_dy % vec || (c->in[1] && a->steps > 16))
        vec = 1;
    int keep = (a->steps + 7) / 8 * 8;
    a->lines /= vec;
    a->kept = wk_gpu_walk_dims(&p->lines, vec);
    a->kept_dy = wk_gpu_walk_dims(&p->dy_lines, vec);
    return WK_LAUNCH(c, &k->columns,
                     WK_INSTANCE(.t = {(unsigned char)c->dtype}, .i = {(short)vec, (short)keep}),
                     (wk_grid){.x = wk_blocks(a->lines, 256, WK_GRID_MAX)}, *a);
}

/* ---- a reduction and a map ---- */

static wk_status apply(wk_call *c, const char *formula, const wk_tensor *x1, const wk_tensor *x2,
                       wk_tensor *out)
{
    wk_gpu_map m = {
        .kernel = &map_kernel, .formula = formula, .in = {c->in[0], x1, x2}, .n_in = x2 ? 3 : 2, .out = out};
    return wk_gpu_map_run(c, &m);
}

static wk_tensor *wide_new(const wk_call *c, const int64_t *shape)
{
    return wk_tensor_new(c->device, wk_stat_dtype(c->dtype), c->in[0]->rank, shape);
}

static wk_status run_in_two(wk_call *c, const plan *p)
{
    int64_t mode = p->a.mode;
    wk_tensor *top = wide_new(c, p->kept), *z = wide_new(c, p->kept);
    if (!top || !z)
        return wk_error_status();
    if (mode == WK_SOFTMAX_FAST) {
        WK_TRY(wk_gpu_reduce(c, "r_fast_softmax", c->in[0], p->set, 1, z, NULL));
        return apply(c, "f_fast_softmax", z, NULL, c->out[0]);
    }
    bool log = mode == WK_SOFTMAX_LOG;
    WK_TRY(wk_gpu_reduce(c, log ? "r_log_softmax" : "r_softmax", c->in[0], p->set, 1, top, z));
    return apply(c, log ? "f_log_softmax" : "f_softmax", top, z, c->out[0]);
}

static wk_status run_backward_in_two(wk_call *c, const plan *p)
{
    bool log = p->a.mode == WK_SOFTMAX_LOG;
    const wk_tensor *dy = c->in[1], *terms = dy;
    wk_tensor *sum = wide_new(c, p->kept), *products = log ? NULL : wide_new(c, dy->shape);
    if (!sum || (!log && !products))
        return wk_error_status();
    if (!log) {
        WK_TRY(apply(c, "f_product", dy, NULL, products));
        terms = products;
    }
    WK_TRY(wk_gpu_reduce(c, "r_sum", terms, p->set, 1, sum, NULL));
    return apply(c, log ? "f_log_softmax_grad" : "f_softmax_grad", dy, sum, c->out[0]);
}

/* ---- the list ---- */

static wk_status run(wk_call *c, const kernels *k, wk_status (*in_two)(wk_call *, const plan *))
{
    const wk_softmax_params *params = c->params;
    const wk_tensor *x = c->in[0], *dy = c->in[1];
    plan p = {
        .a = {
            .x = wk_ptr(x), .dy = dy ? wk_ptr(dy) : NULL, .y = wk_ptr(c->out[0]), .mode = (i32)params->mode}};
    if (wk_count(x) == 0)
        return WK_OK;
    WK_TRY(wk_reduce_dims(c, &params->dims, x->rank, &p.set));
    split_dims(c, &p);
    if (runs(&p.line) && runs(&p.dy_line)) {
        bool fits = plan_line(c, &p);
        if (fits || (p.a.steps && enough_lines(c, &p)))
            return run_lines(c, &p, k, fits);
    }
    return short_columns(c, &p) ? run_columns(c, &p, k) : in_two(c, &p);
}

static wk_status run_softmax(wk_call *c) { return run(c, &forward_kernels, run_in_two); }
static wk_status run_softmax_backward(wk_call *c) { return run(c, &backward_kernels, run_backward_in_two); }

const wk_impl wk_gpu_impls_softmax[] = {
    {"softmax", "kernel", run_softmax, NULL, NULL},
    {"softmax_backward", "kernel", run_softmax_backward, NULL, NULL},
    {0},
};
