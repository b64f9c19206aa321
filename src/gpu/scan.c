/* scan.c: running sums on the GPU. */
#include "ops/scan.h"
#include "families.h"
#include "kernels/scan.h"
#include "sort.h"
#include "walk.h"

enum { THREADS = WK_SCAN_THREADS, LOG_THREADS = 8, MOST_PARTS = 1024 };
_Static_assert(1 << LOG_THREADS == THREADS, "threads of a block");

static const wk_kernel rows_kernel = {"scan", "cumsum_rows", "cumsum_args", THREADS, .types = 1, .ints = 1};
static const wk_kernel columns_kernel = {"scan", "cumsum_columns", "cumsum_args", THREADS, .types = 1};

typedef struct {
    const wk_tensor *x;
    wk_tensor *y;
    wk_gpu_walk kept;
    bool columns;
    int vec;
    int64_t blocks; /* without parts */
    cumsum_args a;
} plan;

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* The dim whose lines are summed; a scalar is a line of one element. */
static void split_dims(plan *p, int64_t given)
{
    const wk_tensor *x = p->x;
    int dim = x->rank ? wk_shape_dim(x->rank, given) : -1;
    p->a.n = p->a.step_x = p->a.step_y = 1;
    for (int d = 0; d < x->rank; d++) {
        if (d != dim) {
            wk_gpu_walk_add(&p->kept, x->shape[d], x->strides[d], p->y->strides[d]);
            continue;
        }
        p->a.n = x->shape[d];
        p->a.step_x = x->strides[d];
        p->a.step_y = p->y->strides[d];
    }
    wk_gpu_walk_sort(&p->kept);
    wk_gpu_walk_join(&p->kept);
    p->a.lines = wk_gpu_walk_count(&p->kept);
    int64_t across = wk_gpu_walk_step(&p->kept);
    p->columns = across > 0 && across < p->a.step_x;
}

static int vector_width(const plan *p)
{
    int bytes = (int)wk_bytes(p->x->dtype), vec = bytes == 1 ? 8 : 16 / bytes;
    size_t aligned = (size_t)(vec * bytes);
    if (p->a.n % vec || p->a.step_x != 1 || p->a.step_y != 1 || (size_t)wk_ptr(p->x) % aligned ||
        (size_t)wk_ptr(p->y) % aligned)
        return 1;
    for (int d = 0; d < p->kept.rank; d++) {
        if (p->kept.strides[0][d] % vec || p->kept.strides[1][d] % vec)
            return 1;
    }
    return vec;
}

static void plan_walk(const wk_call *c, plan *p)
{
    cumsum_args *a = &p->a;
    p->vec = p->columns ? 1 : vector_width(p);
    int64_t packs = a->n / p->vec, least_part = 64;
    a->log_group = packs > 8 * 32 ? LOG_THREADS : 0;
    while (a->log_group < 5 && 1 << a->log_group < packs)
        a->log_group++;
    p->blocks = wk_blocks(a->lines, p->columns ? THREADS : THREADS >> a->log_group, WK_GRID_MAX);
    if (!p->columns)
        least_part = a->log_group < LOG_THREADS ? a->n + 1 : 4 * THREADS * p->vec;
    int64_t enough = 8 * (int64_t)wk_gpu_of(c->device)->facts.units;
    int64_t parts = least(least(enough / p->blocks, a->n / least_part), MOST_PARTS);
    if (parts < 3) /* two parts read twice and gain nothing */
        parts = 1;
    int64_t part = (a->n + parts - 1) / parts, unit = p->columns ? 1 : THREADS * p->vec;
    a->part = (part + unit - 1) / unit * unit;
    a->n_parts = (i32)((a->n + a->part - 1) / a->part);
}

static wk_status launch(wk_call *c, const plan *p)
{
    wk_instance instance = {.t = {(unsigned char)p->x->dtype}, .i = {p->columns ? 0 : (short)p->vec}};
    wk_grid grid = {.x = p->blocks, .y = p->a.n_parts};
    return WK_LAUNCH(c, p->columns ? &columns_kernel : &rows_kernel, &instance, grid, p->a);
}

static wk_status run_sums(wk_call *c, const wk_tensor *x, bool reverse)
{
    plan p = {.x = x, .y = c->out[0], .a = {.x = wk_ptr(x), .y = wk_ptr(c->out[0]), .reverse = reverse}};
    if (wk_count(x) == 0)
        return WK_OK;
    split_dims(&p, WK_PARAMS(c, wk_scan_params)->dim);
    plan_walk(c, &p);
    p.a.kept = wk_gpu_walk_dims(&p.kept, 1);
    if (p.a.n_parts > 1) {
        wk_tensor *sums = wk_tensor_new(c->device, WK_F64, 2, (int64_t[]){p.a.lines, p.a.n_parts});
        if (!sums)
            return wk_error_status();
        p.a.sums = wk_ptr(sums);
        p.a.sums_only = 1;
        WK_TRY(launch(c, &p));
        p.a.sums_only = 0;
    }
    return launch(c, &p);
}

static wk_status run_cumsum(wk_call *c) { return run_sums(c, c->in[0], false); }
static wk_status run_cumsum_backward(wk_call *c) { return run_sums(c, c->in[1], true); }

const wk_impl wk_gpu_impls_scan[] = {
    {"cumsum", "kernel", run_cumsum, NULL, NULL},
    {"cumsum_backward", "kernel", run_cumsum_backward, NULL, NULL},
    {"sort", "kernel", wk_gpu_run_sort, NULL, NULL},
    {"argsort", "kernel", wk_gpu_run_argsort, NULL, NULL},
    {"topk", "kernel", wk_gpu_run_topk, NULL, NULL},
    {0},
};
