/* reduce_engine.c: the reduction engine: along rows or across columns, and how results are shared among blocks. */
#include "kernels/reduce.h"
#include "reduce.h"
#include "walk.h"

enum { THREADS = WK_REDUCE_THREADS, LOG_THREADS = 8, MOST_PARTS = 1024 };
_Static_assert(1 << LOG_THREADS == THREADS, "threads of a block");

#define KERNEL(name_, ints_, blocks_) \
    { \
        .file = "reduce", .name = name_, .args = "reduce_args", .threads = THREADS, .formula = true, \
        .types = 2, .ints = ints_, .blocks = blocks_ \
    }
/* Pairs of a value and a place or a number take more registers, as do products of many elements at a time. */
static const wk_kernel rows_kernel = KERNEL("reduce_rows", 1, 0),
                       pair_rows_kernel = KERNEL("reduce_rows", 1, 3),
                       place_rows_kernel = KERNEL("reduce_rows", 1, 6),
                       short_rows_kernel = KERNEL("reduce_rows", 1, 4),
                       columns_kernel = KERNEL("reduce_columns", 1, 0),
                       pair_columns_kernel = KERNEL("reduce_columns", 1, 3),
                       parts_kernel = KERNEL("reduce_parts", 0, 0);

typedef struct {
    const wk_call *c;
    const char *formula;
    const wk_tensor *x;
    wk_tensor *y, *z;
    wk_gpu_walk kept, reduced;
    int64_t outs, n;
    int vec;
    int64_t blocks; /* without parts */
    reduce_args a;
} plan;

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* The dims that stay, with where their results go, and those that are reduced. Their order is free, but for places,
 * which count along one dim. */
static void split_dims(plan *p, unsigned set)
{
    int64_t strides[WK_MAX_RANK], step = 1;
    for (int d = p->x->rank - 1; d >= 0; d--) {
        strides[d] = step;
        step *= set >> d & 1 ? 1 : p->x->shape[d];
    }
    for (int d = 0; d < p->x->rank; d++) {
        bool reduced = set >> d & 1;
        wk_gpu_walk_add(reduced ? &p->reduced : &p->kept, p->x->shape[d], p->x->strides[d],
                        reduced ? 0 : strides[d]);
    }
    /* The second strides of the reduced dims are those of nothing: they must not keep dims apart. */
    memcpy(p->reduced.strides[1], p->reduced.strides[0], sizeof p->reduced.strides[1]);
    wk_gpu_walk_sort(&p->kept);
    wk_gpu_walk_sort(&p->reduced);
    wk_gpu_walk_join(&p->kept);
    wk_gpu_walk_join(&p->reduced);
    p->outs = wk_gpu_walk_count(&p->kept);
    p->n = wk_gpu_walk_count(&p->reduced);
    if (p->n == 0)
        p->reduced = (wk_gpu_walk){0};
}

/* Neighbouring results lie closer together than the elements of one. */
static bool by_columns(const plan *p)
{
    int64_t across = wk_gpu_walk_step(&p->kept), along = wk_gpu_walk_step(&p->reduced);
    return across > 0 && (along == 0 || across < along);
}

/* Elements read at once: 16 bytes of them, where the walk inside and the strides outside allow it. */
static int vector_width(const plan *p, const wk_gpu_walk *inside, const wk_gpu_walk *outside)
{
    int bytes = (int)wk_bytes(p->x->dtype), vec = bytes == 1 ? 8 : 16 / bytes;
    if ((size_t)wk_ptr(p->x) % (size_t)(vec * bytes) || !wk_gpu_walk_vector(inside, vec))
        return 1;
    for (int d = 0; d < outside->rank; d++) {
        if (outside->strides[0][d] % vec)
            return 1;
    }
    return vec;
}

/* Cuts the steps of a result into parts, each of at least `least_steps`, until there are blocks enough. */
static void cut_parts(plan *p, int64_t least_steps)
{
    reduce_args *a = &p->a;
    int64_t enough = 4 * (int64_t)wk_gpu_of(p->c->device)->facts.units;
    int64_t parts = least(least(enough / p->blocks, a->n / least_steps), MOST_PARTS);
    a->n_parts = parts > 1 && p->blocks <= WK_GPU_COUNTERS ? (i32)parts : 1;
    a->chunk = (a->n + a->n_parts - 1) / a->n_parts;
}

/* Results are places as well. */
static bool places(const plan *p) { return strstr(p->formula, "_at") != NULL; }

/* Rows of 16-bit elements, with places, are short in bytes and long to merge: waves take them where there are enough for all. */
static bool rows_of_waves(const plan *p)
{
    return places(p) && p->vec == 8 && wk_bytes(p->x->dtype) == 2 && p->a.n < 8 * THREADS &&
           p->outs >= 16 * (int64_t)wk_gpu_of(p->c->device)->facts.units;
}

static void plan_rows(plan *p)
{
    reduce_args *a = &p->a;
    p->vec = vector_width(p, &p->reduced, &p->kept);
    a->n = p->n / p->vec;
    bool whole_block = (a->n >= 4 * THREADS && !rows_of_waves(p)) || (a->n >= THREADS && p->outs < 1024);
    a->log_group = whole_block ? LOG_THREADS : 0;
    while (!whole_block && a->log_group < 5 && 2 << a->log_group <= a->n)
        a->log_group++;
    p->blocks = wk_blocks(p->outs, THREADS >> a->log_group, WK_GRID_MAX);
    a->chunk = a->n;
    a->n_parts = 1;
    if (whole_block)
        cut_parts(p, 4 * THREADS);
    a->part_out = a->n_parts;
    a->part_next = 1;
}

static bool packed_results(const plan *p)
{
    const wk_gpu_walk *k = &p->kept;
    if (!p->y || p->z || k->strides[1][k->rank - 1] != 1 ||
        (size_t)wk_ptr(p->y) % ((size_t)p->vec * wk_bytes(p->y->dtype)))
        return false;
    for (int d = 0; d + 1 < k->rank; d++) {
        if (k->strides[1][d] % p->vec)
            return false;
    }
    return true;
}

static void plan_columns(plan *p)
{
    reduce_args *a = &p->a;
    /* With two columns of f64 the exponentials of softmax take more scalar registers than AMD's units have. */
    p->vec = p->x->dtype == WK_F64 ? 1 : vector_width(p, &p->kept, &p->reduced);
    a->n = p->n;
    a->width = wk_gpu_walk_inner(&p->kept);
    a->packed_y = packed_results(p);
    int64_t packs = a->width / p->vec;
    while (1 << a->log_group < packs &&
           (a->log_group < 5 || (a->log_group < LOG_THREADS && 2 * THREADS >> a->log_group > a->n)))
        a->log_group++;
    /* Few elements to a result: a thread takes all of them, and results of all dimensions are one row. */
    int64_t rows = THREADS >> a->log_group, all_packs = p->outs / p->vec;
    if (a->n <= 8 || (a->n < 4 * rows && all_packs >= 16 * THREADS)) {
        a->log_group = LOG_THREADS;
        a->width = p->outs;
        packs = all_packs;
    }
    a->tiles = wk_wide_divisor_of((packs + (1 << a->log_group) - 1) >> a->log_group);
    a->blocks = p->outs / a->width * a->tiles.d;
    p->blocks = least(a->blocks, WK_GRID_MAX);
    cut_parts(p, 8 * (THREADS >> a->log_group));
    a->part_out = 1;
    a->part_next = p->outs;
}

static const wk_kernel *kernel_for_rows(const plan *p)
{
    bool many = places(p) || strcmp(p->formula, "r_prod") == 0;
    if (many && wk_bytes(p->x->dtype) == 2)
        return &short_rows_kernel;
    return places(p) ? &place_rows_kernel : p->z ? &pair_rows_kernel : &rows_kernel;
}

static wk_status launch(plan *p, bool columns)
{
    reduce_args *a = &p->a;
    wk_dtype to = p->y ? p->y->dtype : p->x->dtype;
    wk_instance instance = {
        .formula = p->formula, .t = {(unsigned char)p->x->dtype, (unsigned char)to}, .i = {(short)p->vec}};
    wk_grid grid = {.x = p->blocks, .y = a->n_parts};
    if (a->n_parts > 1) {
        wk_tensor *parts =
            wk_tensor_new(p->c->device, WK_U8, 1, (int64_t[]){p->outs * a->n_parts * WK_REDUCE_STATE});
        if (!parts)
            return wk_error_status();
        a->parts = wk_ptr(parts);
        a->counters = wk_gpu_counters(p->c);
    }
    const wk_kernel *kernel = !columns ? kernel_for_rows(p) : p->z ? &pair_columns_kernel : &columns_kernel;
    WK_TRY(WK_LAUNCH(p->c, kernel, &instance, grid, *a));
    if (!columns || !a->parts)
        return WK_OK;
    instance.i[0] = 0;
    a->log_group = 3;
    grid = (wk_grid){.x = wk_blocks(p->outs, THREADS >> a->log_group, WK_GRID_MAX)};
    return WK_LAUNCH(p->c, &parts_kernel, &instance, grid, *a);
}

wk_status wk_gpu_reduce(const wk_call *c, const char *formula, const wk_tensor *x, unsigned set, double count,
                        wk_tensor *y, wk_tensor *z)
{
    plan p = {.c = c, .formula = formula, .x = x, .y = y, .z = z};
    split_dims(&p, set);
    if (p.outs == 0)
        return WK_OK;
    p.a = (reduce_args){
        .x = wk_ptr(x), .y = y ? wk_ptr(y) : NULL, .z = z ? wk_ptr(z) : NULL, .outs = p.outs, .count = count};
    bool columns = by_columns(&p);
    if (columns)
        plan_columns(&p);
    else
        plan_rows(&p);
    p.a.kept = wk_gpu_walk_dims(&p.kept, 1);
    p.a.reduced = wk_gpu_walk_dims(&p.reduced, columns ? 1 : p.vec);
    return launch(&p, columns);
}

wk_status wk_gpu_sum_to(const wk_call *c, const wk_tensor *x, wk_tensor *out)
{
    int lead = x->rank - out->rank;
    unsigned set = 0;
    for (int d = 0; d < x->rank; d++) {
        if (d < lead || (out->shape[d - lead] == 1 && x->shape[d] != 1))
            set |= 1u << d;
    }
    return wk_gpu_reduce(c, "r_sum", x, set, 1, out, NULL);
}
