/* index.c: ops that ids lead, and their gradients, on the GPU.
 *
 * Reading is one kernel. Writing finds for each element of big the last id that leads to it, by an atomic maximum of
 * integers, and lets that one write. Adding gives the same bits every time: either a wave has a line of big to itself
 * and takes its ids in order, or the ids are put into order and the first of each run of equal ones adds all of them. Of
 * few ids along dim a thread looks through all, without memory beside the tensors. Where the caller does not mind the order
 * (wk_set_deterministic) floats are added by atomics. */
#include "ops/index.h"
#include "copy.h"
#include "families.h"
#include "ids.h"
#include "index.h"
#include "kernels/index.h"
#include "order.h"
#include "wick/index.h"

static const wk_kernel gather = {"index",           "index_gather", "index_args",
                                 WK_GATHER_THREADS, .types = 1,     .ints = 2};
static const wk_kernel gather_packs = {"index",    "index_gather", "index_args", WK_GATHER_THREADS,
                                       .types = 1, .ints = 2,      .blocks = 8};
static const wk_kernel find_last = {"index", "index_last", "index_args", 256, .ints = 1};
static const wk_kernel scatter = {"index", "index_scatter", "index_args", 256, .types = 1, .ints = 1};
static const wk_kernel take = {"index", "index_take", "index_args", 256, .types = 1, .ints = 1};
static const wk_kernel make_keys = {"index", "index_keys", "index_args", 256, .ints = 1};
static const wk_kernel add_few = {"index", "index_add_few", "index_args", 256, .types = 1, .ints = 1};
static const wk_kernel add_atomic = {"index", "index_add_atomic", "index_args", 256, .types = 1, .ints = 1};
static const wk_kernel add_wide_rows = {"index",         "index_rows", "runs_args",
                                        WK_RUNS_THREADS, .types = 1,   .ints = 1};
static const wk_kernel add_runs = {"index",    "index_runs", "runs_args", WK_RUNS_THREADS,
                                   .types = 1, .ints = 1,    .blocks = 1};

/* ---- the plan ---- */

/* ids have the rank of small and at most its sizes, or are 1-D and choose slices. */
static wk_index_plan plan_of(const wk_call *c, const wk_tensor *big, const wk_tensor *small,
                             const wk_tensor *ids, bool slices)
{
    wk_index_plan p = {.big = big, .small = small, .ids = ids, .n = 1, .size = 1, .same_ids = true};
    const wk_tensor *walk = slices ? small : ids;
    int64_t flat[WK_MAX_RANK];
    int dim = big->rank ? wk_shape_dim(big->rank, WK_PARAMS(c, wk_index_params)->dim) : -1;
    wk_shape_strides(big->rank, big->shape, flat);
    p.count = wk_count(walk);
    p.rank = walk->rank;
    for (int d = 0; d < p.rank; d++) {
        int64_t id_stride = !slices ? ids->strides[d] : d == dim ? ids->strides[0] : 0;
        int64_t strides[SIDES] = {big->strides[d], small->strides[d], id_stride, flat[d], 0};
        p.shape[d] = walk->shape[d];
        if (d == dim) {
            p.n = walk->shape[d];
            p.size = big->shape[d];
            memcpy(p.along, strides, sizeof strides);
            strides[BIG] = strides[FLAT] = 0;
            strides[PLACE] = 1;
        } else if (id_stride && p.shape[d] > 1) {
            p.same_ids = false;
        }
        for (int s = 0; s < SIDES; s++)
            p.strides[s][d] = strides[s];
    }
    return p;
}

/* Forgets the strides of a side that the kernel does not use, so that more dims can be joined. */
static void ignore(wk_index_plan *p, int side) { memset(p->strides[side], 0, sizeof p->strides[side]); }

static index_args args_of(const wk_call *c, wk_index_plan *p, int ids_slot)
{
    p->rank = wk_shape_coalesce(p->rank, p->shape, SIDES, p->strides);
    index_args a = {.big = wk_ptr(p->big),
                    .small = wk_ptr(p->small),
                    .ids = wk_ptr(p->ids),
                    .count = p->count,
                    .rank = p->rank,
                    .along = p->along[BIG],
                    .flat_along = p->along[FLAT],
                    .limit = p->size,
                    .n = p->n,
                    .id_along = p->along[IDS],
                    .small_along = p->along[SMALL],
                    .id_bytes = wk_id_bytes(p->ids->dtype),
                    .report = wk_report_of(c, ids_slot)};
    i64 *steps[SIDES] = {a.big_step, a.small_step, a.id_step, a.flat_step, a.place_step};
    for (int d = 0; d < p->rank; d++) {
        int from = p->rank - 1 - d; /* innermost first */
        a.size64[d] = p->shape[from];
        a.size[d] = wk_divisor_of(p->shape[from] < (i64)1 << 31 ? p->shape[from] : 1);
        for (int s = 0; s < SIDES; s++)
            steps[s][d] = p->strides[s][from];
    }
    return a;
}

static bool is_wide(const wk_index_plan *p) { return wk_gpu_wide(p->count); }
static unsigned char word_of(const wk_index_plan *p)
{
    return (unsigned char)wk_gpu_word(wk_bytes(p->big->dtype));
}
static wk_grid grid_for(i64 count) { return (wk_grid){.x = wk_blocks(count, 256, WK_GRID_MAX)}; }

/* ---- reading ---- */

/* 16 bytes at once where a whole run of big has one id. */
static int vector_width(const wk_index_plan *p)
{
    int vec = (int)(16 / wk_bytes(p->big->dtype)), last = p->rank - 1;
    if (p->rank == 0 || p->shape[last] % vec || p->strides[BIG][last] != 1 || p->strides[IDS][last] ||
        p->strides[PLACE][last] || p->along[BIG] % vec || (size_t)wk_ptr(p->big) % 16)
        return 1;
    for (int d = 0; d < last; d++) {
        if (p->strides[BIG][d] % vec)
            return 1;
    }
    return vec;
}

/* y is packed. */
static wk_status run_gather(const wk_call *c, const wk_tensor *x, wk_tensor *y, int ids_slot, bool slices)
{
    wk_index_plan p = plan_of(c, x, y, c->in[ids_slot], slices);
    if (p.count == 0)
        return WK_OK;
    if (wk_index_reads_lines(c, &p))
        return wk_index_read_lines(c, &p, ids_slot);
    ignore(&p, SMALL);
    ignore(&p, FLAT);
    index_args a = args_of(c, &p, ids_slot);
    int vec = vector_width(&p);
    /* Packs of bytes, and 64-bit indices, take registers that a full unit does not have. */
    bool full = vec > 1 && vec < 16 && !is_wide(&p);
    return WK_LAUNCH(c, full ? &gather_packs : &gather,
                     WK_INSTANCE(.t = {word_of(&p)}, .i = {(short)vec, is_wide(&p)}),
                     grid_for((a.count + vec * WK_GATHER_STEPS - 1) / (vec * WK_GATHER_STEPS)), a);
}

/* ---- writing ---- */

enum { FEW_IDS = 32 }; /* along dim, that one thread looks through */

/* For each element of big 1 + the place of the last id that leads to it, 0 without. */
static wk_status find_writers(const wk_call *c, wk_index_plan *p, index_args *a)
{
    if (p->n <= FEW_IDS)
        return WK_OK;
    wk_tensor *last = wk_tensor_new(c->device, WK_U32, p->big->rank, p->big->shape);
    if (!last)
        return wk_error_status();
    if (p->n >= UINT32_MAX)
        return wk_call_fail(c, WK_ERR_UNSUPPORTED, "ids", "expected fewer than 2^32 - 1 along dim, got %lld",
                            (long long)p->n);
    a->last = wk_ptr(last);
    WK_TRY(wk_gpu_zero(c, a->last, (size_t)wk_count(last) * sizeof *a->last));
    return WK_LAUNCH(c, &find_last, WK_INSTANCE(.i = {is_wide(p)}), grid_for(a->count), *a);
}

static wk_status run_scatter(const wk_call *c, wk_tensor *y, const wk_tensor *src)
{
    wk_index_plan p = plan_of(c, y, src, c->in[1], false);
    if (p.count == 0)
        return WK_OK;
    index_args a = args_of(c, &p, 1);
    WK_TRY(find_writers(c, &p, &a));
    return WK_LAUNCH(c, &scatter, WK_INSTANCE(.t = {word_of(&p)}, .i = {is_wide(&p)}), grid_for(a.count), a);
}

/* ---- adding ---- */

static wk_status too_many(const wk_call *c, i64 n)
{
    return wk_call_fail(c, WK_ERR_UNSUPPORTED, "ids", "expected to lead to fewer than 2^32 places, got %lld",
                        (long long)n);
}

static wk_status run_few(const wk_call *c, wk_index_plan *p, int ids_slot)
{
    index_args a = args_of(c, p, ids_slot);
    unsigned char dtype = (unsigned char)wk_index_sum_dtype(p->big->dtype);
    return WK_LAUNCH(c, &add_few, WK_INSTANCE(.t = {dtype}, .i = {is_wide(p)}), grid_for(a.count), a);
}

/* Whether the caller has allowed any order, and the device has atomics for the dtype. */
static bool any_order(wk_dtype d) { return !wk_deterministic() && (d == WK_F32 || d == WK_F64); }

static wk_status run_atomic(const wk_call *c, wk_index_plan *p, int ids_slot)
{
    index_args a = args_of(c, p, ids_slot);
    return WK_LAUNCH(c, &add_atomic, WK_INSTANCE(.t = {(unsigned char)p->big->dtype}, .i = {is_wide(p)}),
                     grid_for(a.count), a);
}

/* The ids with what they lead to, of `places` there are, in order. */
static wk_status order_ids(const wk_call *c, wk_index_plan *p, int ids_slot, i64 places, wk_gpu_pairs *pairs)
{
    index_args a = args_of(c, p, ids_slot);
    if (places >= UINT32_MAX || p->count > UINT32_MAX)
        return too_many(c, places > p->count ? places : p->count);
    WK_TRY(wk_gpu_pairs_new(c, p->count, pairs));
    a.keys = pairs->keys;
    a.places = pairs->places;
    a.none = (u32)places;
    WK_TRY(WK_LAUNCH(c, &make_keys, WK_INSTANCE(.i = {is_wide(p)}), grid_for(a.count), a));
    return wk_gpu_order(c, p->count, a.none, pairs);
}

/* The columns of rows in big and small, neighbouring dims joined. */
typedef struct {
    int rank;
    int64_t shape[WK_MAX_RANK], strides[2][WK_MAX_RANK];
    char *at[2];
} columns;

static int columns_at_once(const columns *w, const runs_args *a, wk_dtype dtype)
{
    int vec = (int)(16 / wk_bytes(dtype)), last = w->rank - 1, most = wk_is_float(dtype) ? 8 : 4;
    vec = vec > most ? most : vec; /* more sums do not fit into registers */
    if (w->rank == 0 || w->shape[last] % vec || a->big_along % vec || a->small_along % vec)
        return 1;
    for (int s = 0; s < 2; s++) {
        if (w->strides[s][last] != 1 || (size_t)w->at[s] % ((size_t)vec * wk_bytes(dtype)))
            return 1;
        for (int d = 0; d < last; d++) {
            if (w->strides[s][d] % vec)
                return 1;
        }
    }
    return vec;
}

static wk_status add_columns(const wk_call *c, columns w, wk_dtype dtype, runs_args a)
{
    a.columns = wk_shape_count(w.rank, w.shape);
    if (a.columns >= (i64)1 << 31) { /* in two halves */
        columns rest = w;
        w.shape[0] /= 2;
        rest.shape[0] -= w.shape[0];
        for (int s = 0; s < 2; s++)
            rest.at[s] += w.shape[0] * w.strides[s][0] * (int64_t)wk_bytes(dtype);
        WK_TRY(add_columns(c, w, dtype, a));
        return add_columns(c, rest, dtype, a);
    }
    int vec = columns_at_once(&w, &a, dtype);
    a.big = w.at[0];
    a.small = w.at[1];
    a.rank = w.rank;
    for (int d = 0; d < w.rank; d++) {
        int from = w.rank - 1 - d;
        a.size[d] = wk_divisor_of(w.shape[from]);
        a.big_step[d] = w.strides[0][from];
        a.small_step[d] = w.strides[1][from];
    }
    i64 block = (i64)vec * WK_RUNS_THREADS;
    if (a.columns > block) {
        wk_grid rows = {.x = wk_blocks(a.n, 1, WK_GRID_MAX),
                        .y = wk_blocks(a.columns, block * WK_ROW_PACKS, 65535)};
        return WK_LAUNCH(c, &add_wide_rows,
                         WK_INSTANCE(.t = {(unsigned char)wk_index_sum_dtype(dtype)}, .i = {(short)vec}),
                         rows, a);
    }
    while (a.log_group < 8 && ((i64)vec << a.log_group) < a.columns)
        a.log_group++;
    wk_grid grid = {.x = wk_blocks(a.n, WK_RUNS_THREADS >> a.log_group, WK_GRID_MAX),
                    .y = wk_blocks(a.columns, (i64)vec << a.log_group, 65535)};
    return WK_LAUNCH(c, &add_runs,
                     WK_INSTANCE(.t = {(unsigned char)wk_index_sum_dtype(dtype)}, .i = {(short)vec}), grid,
                     a);
}

/* Whole rows: one line of ids for all columns. */
static wk_status add_rows(const wk_call *c, wk_index_plan *p, int ids_slot)
{
    wk_index_plan line = {
        .big = p->big, .small = p->small, .ids = p->ids, .rank = 1, .n = p->n, .size = p->size};
    wk_gpu_pairs pairs;
    line.count = line.shape[0] = p->n;
    line.strides[IDS][0] = p->along[IDS];
    line.along[FLAT] = 1;
    if (p->n <= WK_GPU_FEW_IDS && p->size < UINT32_MAX) {
        wk_gpu_ids ids = {.at = wk_ptr(p->ids),
                          .bytes = wk_id_bytes(p->ids->dtype),
                          .step = p->along[IDS],
                          .n = p->n,
                          .limit = p->size,
                          .slot = ids_slot};
        WK_TRY(wk_gpu_order_ids(c, &ids, &pairs));
    } else {
        WK_TRY(order_ids(c, &line, ids_slot, p->size, &pairs));
    }
    columns w = {.at = {wk_ptr(p->big), wk_ptr(p->small)}};
    for (int d = 0; d < p->rank; d++) {
        if (p->strides[PLACE][d])
            continue;
        w.shape[w.rank] = p->shape[d];
        w.strides[0][w.rank] = p->strides[BIG][d];
        w.strides[1][w.rank++] = p->strides[SMALL][d];
    }
    w.rank = wk_shape_coalesce(w.rank, w.shape, 2, w.strides);
    runs_args a = {.keys = pairs.keys,
                   .places = pairs.places,
                   .n = p->n,
                   .none = (u32)p->size,
                   .big_along = p->along[BIG],
                   .small_along = p->along[SMALL]};
    return add_columns(c, w, p->big->dtype, a);
}

/* Single elements: every id by itself. big is packed. */
static wk_status add_elements(const wk_call *c, wk_index_plan *p, int ids_slot)
{
    wk_tensor cut = wk_tensor_local(p->small);
    wk_gpu_pairs pairs;
    memcpy(cut.shape, p->ids->shape, sizeof cut.shape);
    const wk_tensor *small = wk_is_packed(&cut) ? &cut : NULL;
    if (!small) {
        wk_tensor *packed = wk_tensor_new(c->device, cut.dtype, cut.rank, cut.shape);
        if (!packed)
            return wk_error_status();
        WK_TRY(wk_gpu_copy(c, &cut, packed));
        small = packed;
    }
    i64 places = wk_count(p->big);
    ignore(p, SMALL);
    WK_TRY(order_ids(c, p, ids_slot, places, &pairs));
    columns w = {.at = {wk_ptr(p->big), wk_ptr(small)}};
    runs_args a = {.keys = pairs.keys,
                   .places = pairs.places,
                   .n = p->count,
                   .none = (u32)places,
                   .big_along = 1,
                   .small_along = 1};
    return add_columns(c, w, p->big->dtype, a);
}

/* ---- adding, one way or the other ---- */

/* True when every line of big has ids. */
static bool covers_big(const wk_index_plan *p) { return p->count / p->n == wk_count(p->big) / p->size; }

static wk_status set_before(const wk_call *c, const wk_tensor *x, const wk_tensor *y)
{
    if (!x)
        return wk_gpu_zero(c, wk_ptr(y), (size_t)wk_count(y) * wk_bytes(y->dtype));
    return wk_ptr(x) == wk_ptr(y) ? WK_OK : wk_gpu_copy(c, x, y);
}

/* y = x + the elements of src at ids; x NULL: zeros, and y is packed. */
static wk_status run_add(const wk_call *c, const wk_tensor *x, wk_tensor *y, const wk_tensor *src,
                         int ids_slot, bool slices)
{
    wk_index_plan p = plan_of(c, y, src, c->in[ids_slot], slices);
    bool few = p.n <= FEW_IDS, lines = p.count && !few && wk_index_adds_lines(&p);
    if (lines && p.size && covers_big(&p))
        return wk_index_add_lines(c, &p, x, ids_slot);
    WK_TRY(set_before(c, x, y));
    if (p.count == 0)
        return WK_OK;
    if (few)
        return run_few(c, &p, ids_slot);
    if (lines)
        return wk_index_add_lines(c, &p, y, ids_slot);
    if (any_order(y->dtype))
        return run_atomic(c, &p, ids_slot);
    if (p.same_ids)
        return add_rows(c, &p, ids_slot);
    if (wk_is_packed(y))
        return add_elements(c, &p, ids_slot);
    wk_tensor *packed = wk_tensor_new(c->device, y->dtype, y->rank, y->shape);
    if (!packed)
        return wk_error_status();
    WK_TRY(wk_gpu_copy(c, y, packed));
    p = plan_of(c, packed, src, c->in[ids_slot], slices);
    WK_TRY(add_elements(c, &p, ids_slot));
    return wk_gpu_copy(c, packed, y);
}

/* ---- the ops ---- */

/* The table's data is not NULL for ops with 1-D ids, which choose slices. */
static const char slices[] = "slices";

static wk_status run_read(wk_call *c) { return run_gather(c, c->in[0], c->out[0], 1, c->impl->data != NULL); }

static wk_status run_write(wk_call *c)
{
    WK_TRY(set_before(c, c->in[0], c->out[0]));
    return run_scatter(c, c->out[0], c->in[2]);
}

static wk_status run_write_add(wk_call *c)
{
    return run_add(c, c->in[0], c->out[0], c->in[2], 1, c->impl->data != NULL);
}

/* What was read from x gets the sum of the gradients of all its readers. */
static wk_status run_read_backward(wk_call *c)
{
    return run_add(c, NULL, c->out[0], c->in[1], 0, c->impl->data != NULL);
}

/* An output, or in the place of one that is not wanted a tensor like it: ids are checked on the way to it. */
static wk_tensor *wanted_or_not(const wk_call *c, int i)
{
    const wk_spec *s = &c->spec[i];
    return c->out[i] ? c->out[i] : wk_tensor_new(c->device, s->dtype, s->rank, s->shape);
}

static wk_status run_add_backward(wk_call *c)
{
    wk_tensor *dsrc = wanted_or_not(c, 1);
    if (!dsrc)
        return wk_error_status();
    if (c->out[0])
        WK_TRY(set_before(c, c->in[1], c->out[0]));
    return run_gather(c, c->in[1], dsrc, 0, c->impl->data != NULL);
}

/* Each gradient goes to the one that wrote the element: the last of src, or x where there is none. */
static wk_status run_scatter_backward(wk_call *c)
{
    const wk_tensor *dy = c->in[1];
    wk_tensor *dx = wanted_or_not(c, 0), *dsrc = dx ? wanted_or_not(c, 1) : NULL;
    if (!dsrc)
        return wk_error_status();
    wk_index_plan p = plan_of(c, dy, dsrc, c->in[0], false);
    WK_TRY(wk_gpu_copy(c, dy, dx));
    if (p.count == 0)
        return WK_OK;
    ignore(&p, SMALL);
    index_args a = args_of(c, &p, 0);
    a.rest = wk_ptr(dx);
    WK_TRY(find_writers(c, &p, &a));
    return WK_LAUNCH(c, &take, WK_INSTANCE(.t = {word_of(&p)}, .i = {is_wide(&p)}), grid_for(a.count), a);
}

const wk_impl wk_gpu_impls_index[] = {
    {"gather", "kernel", run_read, NULL, NULL},
    {"scatter", "kernel", run_write, NULL, NULL},
    {"scatter_add", "kernel", run_write_add, NULL, NULL},
    {"index_select", "kernel", run_read, NULL, slices},
    {"index_add", "kernel", run_write_add, NULL, slices},
    {"gather_backward", "kernel", run_read_backward, NULL, NULL},
    {"index_select_backward", "kernel", run_read_backward, NULL, slices},
    {"scatter_backward", "kernel", run_scatter_backward, NULL, NULL},
    {"scatter_add_backward", "kernel", run_add_backward, NULL, NULL},
    {"index_add_backward", "kernel", run_add_backward, NULL, slices},
    {0},
};
