/* pad.c: pad, tril, triu and one_hot on the GPU: results that hold more than their input. */
#include "pad.h"
#include "copy.h"
#include "ids.h"
#include "kernels/pad.h"
#include "ops/copy.h"
#include "wick/copy.h"

static const wk_kernel pad = {"pad", "pad", "pad_args", 256, .types = 1, .ints = 2};
static const wk_kernel triangle = {"pad", "triangle", "pad_args", 256, .types = 1, .ints = 2};
static const wk_kernel one_hot = {"pad", "one_hot", "one_hot_args", 256, .types = 1, .ints = 2};

/* y's shape beside x's strides and the weights of places, neighbouring dimensions joined. */
enum { FROM, PLACE, SIDES };
typedef struct {
    int rank;
    int64_t shape[WK_MAX_RANK], strides[SIDES][WK_MAX_RANK];
} walk;

/* Elements a thread takes at once: the innermost dimension has no place of its own (`step` 0) or one by one. */
static int vector_width(const walk *w, const wk_tensor *x, int64_t step, int64_t apart)
{
    size_t bytes = wk_bytes(x->dtype);
    int vec = (int)(16 / bytes), last = w->rank - 1;
    if (w->rank == 0 || w->shape[last] % vec || w->strides[FROM][last] != 1 ||
        w->strides[PLACE][last] != step || apart % vec || (size_t)wk_ptr(x) % 16)
        return 1;
    for (int d = 0; d < last; d++) {
        if (w->strides[FROM][d] % vec)
            return 1;
    }
    return vec;
}

static wk_status launch(const wk_call *c, const wk_kernel *kernel, walk *w, int vec, pad_args *a)
{
    a->x = wk_ptr(c->in[0]);
    a->y = wk_ptr(c->out[0]);
    a->count = wk_count(c->out[0]);
    a->rank = w->rank;
    for (int d = 0; d < w->rank; d++) {
        int from = w->rank - 1 - d; /* innermost first */
        a->size64[d] = w->shape[from];
        a->size[d] = wk_divisor_of(w->shape[from] < (i64)1 << 31 ? w->shape[from] : 1);
        a->from[d] = w->strides[FROM][from];
        a->place[d] = w->strides[PLACE][from];
    }
    unsigned char dtype = (unsigned char)wk_gpu_word(wk_bytes(c->dtype));
    wk_grid grid = {.x = wk_blocks(a->count, (i64)kernel->threads * vec, WK_GRID_MAX)};
    return WK_LAUNCH(c, kernel, WK_INSTANCE(.t = {dtype}, .i = {(short)vec, wk_gpu_wide(a->count)}), grid,
                     *a);
}

wk_status wk_gpu_pad(wk_call *c)
{
    const wk_pad_params *p = c->params;
    const wk_tensor *x = c->in[0], *y = c->out[0];
    int dim = wk_shape_dim(x->rank, p->dim);
    pad_args a = {.n = x->shape[dim], .left = p->left, .step = x->strides[dim]};
    walk w = {0};
    a.mode = p->mode == WK_PAD_ZEROS ? 0 : p->mode == WK_PAD_SAME ? 1 : 2;
    if (wk_count(y) == 0)
        return WK_OK;
    memcpy(w.shape, y->shape, sizeof w.shape);
    memcpy(w.strides[FROM], x->strides, sizeof w.strides[FROM]);
    w.strides[FROM][dim] = 0;
    w.strides[PLACE][dim] = 1;
    w.rank = wk_shape_coalesce(y->rank, w.shape, SIDES, w.strides);
    return launch(c, &pad, &w, vector_width(&w, x, 0, a.step), &a);
}

wk_status wk_gpu_triangle(wk_call *c)
{
    const wk_tensor *x = c->in[0];
    int rank = x->rank;
    int64_t rows = x->shape[rank - 2], cols = x->shape[rank - 1];
    int64_t diagonal = WK_PARAMS(c, wk_triangle_params)->diagonal;
    pad_args a = {.mode = c->impl->data != NULL};
    walk w = {0};
    if (wk_count(x) == 0)
        return WK_OK;
    a.diagonal = diagonal < -rows ? -rows : diagonal > cols ? cols : diagonal;
    memcpy(w.shape, x->shape, sizeof w.shape);
    memcpy(w.strides[FROM], x->strides, sizeof w.strides[FROM]);
    w.strides[PLACE][rank - 1] = 1;
    w.strides[PLACE][rank - 2] = -1;
    w.rank = wk_shape_coalesce(rank, w.shape, SIDES, w.strides);
    return launch(c, &triangle, &w, vector_width(&w, x, 1, 0), &a);
}

/* The bits of a number in the dtype. */
static u64 bits_of(wk_dtype dtype, wk_scalar v)
{
    u64 bits = 0;
    if (wk_is_float(dtype))
        wk_store_f64(dtype, &bits, v.f);
    else
        wk_store_i64(dtype, &bits, v.i);
    return bits;
}

wk_status wk_gpu_one_hot(wk_call *c)
{
    const wk_one_hot_params *p = c->params;
    const wk_tensor *ids = wk_tensor_packed(c->in[0]);
    if (!ids)
        return wk_error_status();
    wk_dtype dtype = c->out[0]->dtype;
    one_hot_args a = {.ids = wk_ptr(ids),
                      .y = wk_ptr(c->out[0]),
                      .rows = wk_count(ids),
                      .depth = p->depth,
                      .wide_row = p->depth ? p->depth : 1,
                      .on = bits_of(dtype, p->on),
                      .off = bits_of(dtype, p->off),
                      .id_bytes = wk_id_bytes(ids->dtype),
                      .report = wk_report_of(c, 0)};
    i64 count = a.rows * a.wide_row;
    bool wide = wk_gpu_wide(count);
    int most = (int)(16 / wk_bytes(dtype)), vec = p->depth && p->depth % most == 0 ? most : 1;
    a.row = wk_divisor_of(wide ? 1 : a.wide_row);
    unsigned char word = (unsigned char)wk_gpu_word(wk_bytes(dtype));
    wk_grid grid = {.x = wk_blocks(count, (i64)one_hot.threads * vec, WK_GRID_MAX)};
    return WK_LAUNCH(c, &one_hot, WK_INSTANCE(.t = {word}, .i = {(short)vec, wide}), grid, a);
}
