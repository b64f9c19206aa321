/* copy.c: moving elements on the GPU. */
#include "copy.h"
#include "families.h"
#include "kernels/copy.h"
#include "ops/copy.h"
#include "ops/reduce.h"
#include "pad.h"

static const wk_kernel copy_strided = {"copy", "copy_strided", "copy_args", 256, .types = 1, .ints = 2};
static const wk_kernel copy_tiled = {"copy", "copy_tiled", "copy_args", 256, .types = 1, .ints = 1};

/* Source and destination, neighbouring dimensions joined. */
typedef struct {
    int rank;
    int64_t shape[WK_MAX_RANK], strides[2][WK_MAX_RANK]; /* of src, of dst */
    size_t bytes;                                        /* of an element */
    void *ptr[2];
} walk;

/* Dimensions in the order of dst's strides, largest first, so that writes go through memory. */
static void sort_dims(walk *w)
{
    for (int i = 1; i < w->rank; i++) {
        for (int d = i; d > 0 && w->strides[1][d - 1] < w->strides[1][d]; d--) {
            int64_t *rows[] = {w->shape, w->strides[0], w->strides[1]};
            for (int r = 0; r < 3; r++) {
                int64_t t = rows[r][d];
                rows[r][d] = rows[r][d - 1];
                rows[r][d - 1] = t;
            }
        }
    }
}

static int vector_width(const walk *w)
{
    int vec = (int)(16 / w->bytes), last = w->rank - 1;
    if (w->rank == 0 || w->shape[last] % vec || w->strides[0][last] != 1 || w->strides[1][last] != 1)
        return 1;
    for (int k = 0; k < 2; k++) {
        if ((size_t)w->ptr[k] % 16)
            return 1;
        for (int d = 0; d < last; d++) {
            if (w->strides[k][d] % vec)
                return 1;
        }
    }
    return vec;
}

static void put_dim(copy_args *a, int d, const walk *w, int from)
{
    a->size64[d] = w->shape[from];
    a->size[d] = wk_divisor_of(w->shape[from] < (i64)1 << 31 ? w->shape[from] : 1);
    a->from[d] = w->strides[0][from];
    a->to[d] = w->strides[1][from];
}

static wk_status run_strided(const wk_call *c, const walk *w)
{
    int vec = vector_width(w);
    copy_args a = {.src = w->ptr[0], .dst = w->ptr[1], .count = 1, .rank = w->rank};
    for (int d = 0; d < w->rank; d++) {
        put_dim(&a, d, w, w->rank - 1 - d);
        a.count *= w->shape[d];
    }
    wk_grid grid = {.x = wk_blocks(a.count, 256 * vec, WK_GRID_MAX)};
    return WK_LAUNCH(
        c, &copy_strided,
        WK_INSTANCE(.t = {(unsigned char)wk_gpu_word(w->bytes)}, .i = {(short)vec, wk_gpu_wide(a.count)}),
        grid, a);
}

/* The dimension that src walks by one, when that is another than dst's innermost: a transposition. */
static int turned_dim(const walk *w)
{
    int last = w->rank - 1;
    if (w->rank < 2 || w->strides[1][last] != 1 || w->strides[0][last] <= 1 || w->shape[last] < 8)
        return -1;
    for (int d = 0; d < last; d++) {
        if (w->strides[0][d] == 1 && w->shape[d] >= 8)
            return d;
    }
    return -1;
}

/* Elements a thread moves at once: 16 bytes, or 8 elements, where both sides are aligned to that in every dimension. */
static int tile_vector(const walk *w, int turned)
{
    int vec = w->bytes == 1 ? 8 : (int)(16 / w->bytes), last = w->rank - 1;
    size_t bytes = (size_t)vec * w->bytes;
    if (w->shape[last] % vec || w->shape[turned] % vec || (size_t)w->ptr[0] % bytes ||
        (size_t)w->ptr[1] % bytes)
        return 1;
    for (int d = 0; d < w->rank; d++) {
        if ((d != turned && w->strides[0][d] % vec) || (d != last && w->strides[1][d] % vec))
            return 1;
    }
    return vec;
}

static wk_status run_tiled(const wk_call *c, const walk *w, int turned, bool *done)
{
    int last = w->rank - 1;
    copy_args a = {.src = w->ptr[0],
                   .dst = w->ptr[1],
                   .rows = w->shape[last],
                   .cols = w->shape[turned],
                   .row_from = w->strides[0][last],
                   .col_to = w->strides[1][turned]};
    i64 row_tiles = (a.rows + WK_COPY_TILE - 1) / WK_COPY_TILE,
        col_tiles = (a.cols + WK_COPY_TILE - 1) / WK_COPY_TILE;
    double tiles = (double)row_tiles * (double)col_tiles;
    for (int d = last - 1; d >= 0; d--) {
        if (d != turned) {
            put_dim(&a, a.rank++, w, d);
            tiles *= (double)w->shape[d];
        }
    }
    *done = tiles < 0x1p31;
    if (!*done)
        return WK_OK;
    a.row_tiles = wk_divisor_of(row_tiles);
    a.log_stripe = col_tiles % 4 == 0 ? 2 : col_tiles % 2 == 0;
    a.stripes = wk_divisor_of(col_tiles >> a.log_stripe);
    a.count = (i64)tiles;
    wk_grid grid = {.x = wk_blocks(a.count, 1, WK_GRID_MAX)};
    return WK_LAUNCH(
        c, &copy_tiled,
        WK_INSTANCE(.t = {(unsigned char)wk_gpu_word(w->bytes)}, .i = {(short)tile_vector(w, turned)}), grid,
        a);
}

static wk_status run_packed(const wk_call *c, const walk *w)
{
    wk_gpu *g = wk_gpu_of(c->device);
    size_t bytes = (w->rank ? (size_t)w->shape[0] : 1) * w->bytes;
    int code = g->driver->enter(g->context);
    if (code == 0)
        code = g->driver->copy(w->ptr[1], w->ptr[0], bytes, WK_COPY_WITHIN, wk_gpu_stream_handle(g));
    return code ? wk_gpu_fail(g, code, "copying") : WK_OK;
}

wk_status wk_gpu_copy(const wk_call *c, const wk_tensor *src, const wk_tensor *dst)
{
    walk w = {.rank = src->rank, .bytes = wk_bytes(src->dtype), .ptr = {wk_ptr(src), wk_ptr(dst)}};
    if (wk_count(src) == 0)
        return WK_OK;
    memcpy(w.shape, src->shape, sizeof w.shape);
    memcpy(w.strides[0], src->strides, sizeof src->strides);
    memcpy(w.strides[1], dst->strides, sizeof dst->strides);
    sort_dims(&w);
    w.rank = wk_shape_coalesce(w.rank, w.shape, 2, w.strides);
    if (w.rank == 0 || (w.rank == 1 && w.strides[0][0] == 1 && w.strides[1][0] == 1))
        return run_packed(c, &w);
    bool done = false;
    int turned = turned_dim(&w);
    if (turned >= 0)
        WK_TRY(run_tiled(c, &w, turned, &done));
    return done ? WK_OK : run_strided(c, &w);
}

/* ---- the ops ---- */

/* x into y, unless y is x itself. */
static wk_status copy_unless_same(const wk_call *c, const wk_tensor *x, const wk_tensor *y)
{
    return wk_ptr(x) == wk_ptr(y) ? WK_OK : wk_gpu_copy(c, x, y);
}

static wk_status run_copy(wk_call *c) { return copy_unless_same(c, c->in[0], c->out[0]); }

/* Rows of a flat tensor, `stride` apart, from element `offset` on. */
static wk_tensor rows_of(const wk_tensor *t, int64_t rows, int64_t cols, int64_t stride, int64_t offset)
{
    wk_tensor v = wk_tensor_local(t);
    v.rank = 2;
    v.shape[0] = rows;
    v.shape[1] = cols;
    v.strides[0] = stride;
    v.strides[1] = 1;
    v.offset += offset;
    return v;
}

/* Where rows overlap in y the last one wins: each but the last shows only its first dst_stride elements. */
static wk_status copy_rows(const wk_call *c, const wk_tensor *x, const wk_tensor *y)
{
    const wk_copy2d_params *p = c->params;
    bool overlap = p->dst_stride < p->cols;
    int64_t rows = overlap ? p->rows - 1 : p->rows, shown = overlap ? p->dst_stride : p->cols;
    if (p->rows == 0 || p->cols == 0)
        return WK_OK;
    wk_tensor src = rows_of(x, rows, shown, p->src_stride, p->src_offset);
    wk_tensor dst = rows_of(y, rows, shown, p->dst_stride, p->dst_offset);
    WK_TRY(wk_gpu_copy(c, &src, &dst));
    if (!overlap)
        return WK_OK;
    src = rows_of(x, 1, p->cols, p->cols, p->src_offset + rows * p->src_stride);
    dst = rows_of(y, 1, p->cols, p->cols, p->dst_offset + rows * p->dst_stride);
    return wk_gpu_copy(c, &src, &dst);
}

static wk_status run_copy2d(wk_call *c)
{
    const wk_tensor *x = wk_tensor_packed(c->in[0]), *dst = c->in[1];
    wk_tensor *y = c->out[0], *flat = y;
    if (x && !wk_is_packed(y))
        flat = wk_tensor_new(c->device, y->dtype, y->rank, y->shape);
    if (!x || !flat)
        return wk_error_status();
    WK_TRY(copy_unless_same(c, dst, flat));
    WK_TRY(copy_rows(c, x, flat));
    return flat == y ? WK_OK : wk_gpu_copy(c, flat, y);
}

static wk_status run_cat(wk_call *c)
{
    wk_tensor part = wk_tensor_local(c->out[0]);
    int dim = wk_shape_dim(part.rank, WK_PARAMS(c, wk_cat_params)->dim);
    for (int i = 0; i < c->n_tail; i++) {
        const wk_tensor *t = c->tail[i];
        if (wk_cat_skips(t))
            continue;
        WK_TRY(wk_gpu_copy(c, t, &part));
        part.offset += t->shape[dim] * part.strides[dim];
    }
    return WK_OK;
}

static wk_status run_stack(wk_call *c)
{
    wk_tensor part = wk_tensor_local(c->out[0]);
    int dim = wk_shape_dim(part.rank, WK_PARAMS(c, wk_cat_params)->dim);
    int64_t step = part.strides[dim];
    part.rank--;
    for (int d = dim; d < part.rank; d++)
        part.strides[d] = part.strides[d + 1];
    for (int i = 0; i < c->n_tail; i++) {
        WK_TRY(wk_gpu_copy(c, c->tail[i], &part));
        part.offset += step;
    }
    return WK_OK;
}

static wk_status run_slice_assign(wk_call *c)
{
    const int64_t *start = WK_PARAMS(c, wk_slice_params)->start.v;
    wk_tensor part = wk_tensor_local(c->out[0]);
    WK_TRY(copy_unless_same(c, c->in[0], c->out[0]));
    for (int d = 0; d < part.rank; d++)
        part.offset += start[d] * part.strides[d];
    return wk_gpu_copy(c, c->in[1], &part);
}

/* A reversed dimension is read from its last element on, by a negative stride. */
static wk_status run_flip(wk_call *c)
{
    wk_tensor x = wk_tensor_local(c->in[0]);
    unsigned set;
    WK_TRY(wk_reduce_dims(c, &WK_PARAMS(c, wk_flip_params)->dims, x.rank, &set));
    for (int d = 0; d < x.rank; d++) {
        if (set >> d & 1) {
            x.offset += (x.shape[d] - 1) * x.strides[d];
            x.strides[d] = -x.strides[d];
        }
    }
    return wk_gpu_copy(c, &x, c->out[0]);
}

const wk_impl wk_gpu_impls_copy[] = {
    {"copy", "kernel", run_copy, NULL, NULL},
    {"copy2d", "kernel", run_copy2d, NULL, NULL},
    {"cat", "kernel", run_cat, NULL, NULL},
    {"stack", "kernel", run_stack, NULL, NULL},
    {"pad", "kernel", wk_gpu_pad, NULL, NULL},
    {"flip", "kernel", run_flip, NULL, NULL},
    {"slice_assign", "kernel", run_slice_assign, NULL, NULL},
    {"one_hot", "kernel", wk_gpu_one_hot, NULL, NULL},
    {"tril", "kernel", wk_gpu_triangle, NULL, NULL},
    {"triu", "kernel", wk_gpu_triangle, NULL, "upper"},
    {0},
};
