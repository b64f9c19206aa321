/* copy.c: ops that move elements without computing: most are copies between views of the two sides. */
#include "ops/copy.h"
#include "ops/reduce.h"
#include "core/families.h"
#include "core/pool.h"
#include "wick/copy.h"
#include "ids.h"
#include "strided.h"

enum { TASK_BYTES = 1 << 17 };

/* A part of a tensor as the copy engine takes it; strides may be 0 or negative on the reading side. */
typedef struct {
    int rank;
    int64_t shape[WK_MAX_RANK], strides[WK_MAX_RANK];
    size_t bytes;
    char *at;
} view;

static view view_of(const wk_tensor *t)
{
    view v = {.rank = t->rank, .bytes = wk_bytes(t->dtype), .at = wk_ptr(t)};
    memcpy(v.shape, t->shape, sizeof v.shape);
    memcpy(v.strides, t->strides, sizeof v.strides);
    return v;
}

/* Elements [begin, begin + n) of a dim. */
static view part_of(view v, int dim, int64_t begin, int64_t n)
{
    v.shape[dim] = n;
    v.at += begin * v.strides[dim] * (int64_t)v.bytes;
    return v;
}

/* The dim read from its last element back to its first. */
static view reversed(view v, int dim)
{
    v.at += (v.shape[dim] - 1) * v.strides[dim] * (int64_t)v.bytes;
    v.strides[dim] = -v.strides[dim];
    return v;
}

static void copy_view(view dst, view src)
{
    WK_ISA(wk_strided_copy)(dst.rank, dst.shape, dst.bytes, src.at, src.strides, dst.at, dst.strides);
}

/* One element, in the bits of the dtype, all over. */
static void fill_view(view dst, const void *element)
{
    view src = {.at = (char *)element};
    copy_view(dst, src);
}

/* x into y, unless y is x itself. */
static void copy_unless_same(const wk_tensor *x, wk_tensor *y)
{
    if (wk_ptr(x) != wk_ptr(y))
        WK_ISA(wk_tensor_copy)(x, y);
}

static wk_status run_copy(wk_call *c)
{
    copy_unless_same(c->in[0], c->out[0]);
    return WK_OK;
}

/* ---- copy2d ---- */

/* Rows that overlap in y go one by one, so that the last one wins. */
static void copy_rows(const wk_tensor *x, wk_tensor *y, const wk_copy2d_params *p)
{
    int64_t bytes = (int64_t)wk_bytes(y->dtype);
    view src = {.at = (char *)wk_ptr(x) + p->src_offset * bytes, .strides = {p->src_stride, 1}};
    view dst = {.rank = 2,
                .shape = {p->rows, p->cols},
                .strides = {p->dst_stride, 1},
                .bytes = (size_t)bytes,
                .at = (char *)wk_ptr(y) + p->dst_offset * bytes};
    if (p->dst_stride >= p->cols) {
        copy_view(dst, src);
        return;
    }
    dst.shape[0] = 1;
    for (int64_t r = 0; r < p->rows && p->cols > 0; r++) {
        copy_view(dst, src);
        src.at += p->src_stride * bytes;
        dst.at += p->dst_stride * bytes;
    }
}

static wk_status run_copy2d(wk_call *c)
{
    const wk_copy2d_params *p = c->params;
    const wk_tensor *x = wk_tensor_packed(c->in[0]), *dst = c->in[1];
    wk_tensor *y = c->out[0], *flat = y;
    if (x && !wk_is_packed(y))
        flat = wk_tensor_new(c->device, y->dtype, y->rank, y->shape);
    if (!x || !flat)
        return wk_error_status();
    copy_unless_same(dst, flat);
    copy_rows(x, flat, p);
    if (flat != y)
        WK_ISA(wk_tensor_copy)(flat, y);
    return WK_OK;
}

/* ---- cat, stack, slice_assign, flip, pad ---- */

static wk_status run_cat(wk_call *c)
{
    view y = view_of(c->out[0]);
    int dim = wk_shape_dim(y.rank, WK_PARAMS(c, wk_cat_params)->dim);
    int64_t begin = 0;
    for (int i = 0; i < c->n_tail; i++) {
        if (wk_cat_skips(c->tail[i]))
            continue;
        view t = view_of(c->tail[i]);
        copy_view(part_of(y, dim, begin, t.shape[dim]), t);
        begin += t.shape[dim];
    }
    return WK_OK;
}

static wk_status run_stack(wk_call *c)
{
    const wk_tensor *y = c->out[0];
    int dim = wk_shape_dim(y->rank, WK_PARAMS(c, wk_cat_params)->dim);
    for (int i = 0; i < c->n_tail; i++) {
        view src = view_of(c->tail[i]), dst = src;
        for (int d = 0; d < src.rank; d++)
            dst.strides[d] = y->strides[d < dim ? d : d + 1];
        dst.at = (char *)wk_ptr(y) + i * y->strides[dim] * (int64_t)src.bytes;
        copy_view(dst, src);
    }
    return WK_OK;
}

static wk_status run_slice_assign(wk_call *c)
{
    const int64_t *start = WK_PARAMS(c, wk_slice_params)->start.v;
    copy_unless_same(c->in[0], c->out[0]);
    view src = view_of(c->in[1]), dst = view_of(c->out[0]);
    if (wk_count(c->in[1]) == 0)
        return WK_OK;
    for (int d = 0; d < src.rank; d++)
        dst = part_of(dst, d, start[d], src.shape[d]);
    copy_view(dst, src);
    return WK_OK;
}

static wk_status run_flip(wk_call *c)
{
    view src = view_of(c->in[0]);
    unsigned set;
    WK_TRY(wk_reduce_dims(c, &WK_PARAMS(c, wk_flip_params)->dims, src.rank, &set));
    if (wk_count(c->out[0]) == 0)
        return WK_OK;
    for (int d = 0; d < src.rank; d++) {
        if (set >> d & 1)
            src = reversed(src, d);
    }
    copy_view(view_of(c->out[0]), src);
    return WK_OK;
}

static wk_status run_pad(wk_call *c)
{
    const wk_pad_params *p = c->params;
    view x = view_of(c->in[0]), y = view_of(c->out[0]);
    int dim = wk_shape_dim(x.rank, p->dim);
    int64_t n = x.shape[dim];
    if (wk_count(c->out[0]) == 0)
        return WK_OK;
    view left = part_of(y, dim, 0, p->left), right = part_of(y, dim, p->left + n, p->right);
    copy_view(part_of(y, dim, p->left, n), x);
    if (p->mode == WK_PAD_ZEROS) {
        fill_view(left, &(int64_t){0});
        fill_view(right, &(int64_t){0});
    } else if (p->mode == WK_PAD_REFLECT) {
        copy_view(left, reversed(part_of(x, dim, 1, p->left), dim));
        copy_view(right, reversed(part_of(x, dim, n - 1 - p->right, p->right), dim));
    } else {
        view first = x, last = part_of(x, dim, n - 1, 1);
        first.strides[dim] = last.strides[dim] = 0;
        copy_view(left, first);
        copy_view(right, last);
    }
    return WK_OK;
}

/* ---- one_hot ---- */

typedef struct {
    const wk_tensor *ids; /* packed */
    wk_tensor *y;
    int64_t count, depth, per_task;
    char on[8];
    wk_bad_id bad;
} one_hot;

static void one_hot_task(void *ctx, int64_t task)
{
    one_hot *o = ctx;
    int64_t begin = task * o->per_task, end = begin + o->per_task < o->count ? begin + o->per_task : o->count;
    int64_t bytes = (int64_t)wk_bytes(o->y->dtype), padding = wk_id_padding(o->ids->dtype);
    for (int64_t i = begin; i < end; i++) {
        int64_t id =
            wk_load_i64(o->ids->dtype, (const char *)wk_ptr(o->ids) + i * (int64_t)wk_bytes(o->ids->dtype));
        if (id >= 0 && id < o->depth && id != padding)
            memcpy((char *)wk_ptr(o->y) + (i * o->depth + id) * bytes, o->on, (size_t)bytes);
        else if (id != -1 && id != padding)
            wk_bad_id_note(&o->bad, i);
    }
}

static void store_scalar(wk_dtype dtype, void *p, wk_scalar v)
{
    if (wk_is_float(dtype))
        wk_store_f64(dtype, p, v.f);
    else
        wk_store_i64(dtype, p, v.i);
}

static wk_status run_one_hot(wk_call *c)
{
    const wk_one_hot_params *p = c->params;
    one_hot o = {.ids = wk_tensor_packed(c->in[0]), .y = c->out[0], .depth = p->depth, .bad = {INT64_MAX}};
    char off[8];
    if (!o.ids)
        return wk_error_status();
    store_scalar(o.y->dtype, o.on, p->on);
    store_scalar(o.y->dtype, off, p->off);
    fill_view(view_of(o.y), off);
    o.count = wk_count(o.ids);
    o.per_task = 1 << 12;
    wk_parallel_for((o.count + o.per_task - 1) / o.per_task, one_hot_task, &o);
    return wk_bad_id_status(c, o.ids, &o.bad, p->depth);
}

/* ---- tril, triu ---- */

typedef struct {
    view x; /* its last dim packed */
    char *y;
    int64_t rows, cols, count; /* of a matrix; rows of all matrices */
    int64_t diagonal, per_task;
    bool upper;
} triangle;

static void triangle_task(void *ctx, int64_t task)
{
    const triangle *t = ctx;
    int64_t begin = task * t->per_task, end = begin + t->per_task < t->count ? begin + t->per_task : t->count;
    int64_t bytes = (int64_t)t->x.bytes;
    for (int64_t row = begin; row < end; row++) {
        int64_t edge = row % t->rows + t->diagonal + !t->upper, offset = 0, at = row;
        edge = edge < 0 ? 0 : edge > t->cols ? t->cols : edge; /* where one half of the row ends */
        for (int d = t->x.rank - 2; d >= 0; d--) {
            offset += at % t->x.shape[d] * t->x.strides[d];
            at /= t->x.shape[d];
        }
        const char *src = t->x.at + offset * bytes;
        char *dst = t->y + row * t->cols * bytes;
        size_t head = (size_t)(edge * bytes), rest = (size_t)((t->cols - edge) * bytes);
        if (t->upper) {
            memset(dst, 0, head);
            memcpy(dst + head, src + head, rest);
        } else {
            memcpy(dst, src, head);
            memset(dst + head, 0, rest);
        }
    }
}

static wk_status run_triangle(wk_call *c)
{
    const wk_tensor *x = c->in[0];
    int64_t rows = x->shape[x->rank - 2], cols = x->shape[x->rank - 1], count = wk_count(x);
    if (count == 0)
        return WK_OK;
    if (x->strides[x->rank - 1] != 1 && !(x = wk_tensor_packed(x)))
        return wk_error_status();
    int64_t diagonal = WK_PARAMS(c, wk_triangle_params)->diagonal;
    diagonal = diagonal < -rows ? -rows : diagonal > cols ? cols : diagonal;
    triangle t = {.x = view_of(x),
                  .y = wk_ptr(c->out[0]),
                  .rows = rows,
                  .cols = cols,
                  .count = count / cols,
                  .diagonal = diagonal,
                  .per_task = TASK_BYTES / (cols * (int64_t)wk_bytes(x->dtype) + 64) + 1,
                  .upper = c->impl->data != NULL};
    wk_parallel_for((t.count + t.per_task - 1) / t.per_task, triangle_task, &t);
    return WK_OK;
}

const wk_impl WK_ISA(wk_cpu_copy)[] = {
    {"copy", "simd", run_copy, NULL, NULL},
    {"copy2d", "simd", run_copy2d, NULL, NULL},
    {"cat", "simd", run_cat, NULL, NULL},
    {"stack", "simd", run_stack, NULL, NULL},
    {"pad", "simd", run_pad, NULL, NULL},
    {"flip", "simd", run_flip, NULL, NULL},
    {"slice_assign", "simd", run_slice_assign, NULL, NULL},
    {"one_hot", "simd", run_one_hot, NULL, NULL},
    {"tril", "simd", run_triangle, NULL, NULL},
    {"triu", "simd", run_triangle, NULL, "upper"},
    {0},
};
