/* copy.c: moving elements on the GPU. */
#include "copy.h"
#include "families.h"
#include "kernels/copy.h"

static const wk_kernel copy_strided = {"copy", "copy_strided", "copy_args", 256, .types = 1, .ints = 2};
static const wk_kernel copy_tiled = {"copy", "copy_tiled", "copy_args", 256, .types = 1};

/* Source and destination, neighbouring dimensions joined. */
typedef struct {
    int rank;
    int64_t shape[WK_MAX_RANK], strides[2][WK_MAX_RANK]; /* of src, of dst */
    size_t bytes;                                        /* of an element */
    void *ptr[2];
} walk;

/* The dtype that stands for all of its size. */
static wk_dtype by_size(size_t bytes)
{
    return bytes == 1 ? WK_U8 : bytes == 2 ? WK_I16 : bytes == 4 ? WK_U32 : WK_I64;
}

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
        WK_INSTANCE(.t = {(unsigned char)by_size(w->bytes)}, .i = {(short)vec, a.count >= (i64)1 << 31}),
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
    a.col_tiles = wk_divisor_of(col_tiles);
    a.count = (i64)tiles;
    wk_grid grid = {.x = wk_blocks(a.count, 1, WK_GRID_MAX)};
    return WK_LAUNCH(c, &copy_tiled, WK_INSTANCE(.t = {(unsigned char)by_size(w->bytes)}), grid, a);
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

static wk_status run_copy(wk_call *c) { return wk_gpu_copy(c, c->in[0], c->out[0]); }

const wk_impl wk_gpu_impls_copy[] = {
    {"copy", "kernel", run_copy, NULL, NULL},
    {0},
};
