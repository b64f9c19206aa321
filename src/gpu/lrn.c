/* lrn.c: local response norm and its gradient on the GPU. */
#include "norm.h"
#include "kernels/lrn.h"

static const wk_kernel across_kernel = {"lrn", "lrn_across", "lrn_args", 256, .types = 1, .ints = 1};
static const wk_kernel down_kernel = {"lrn", "lrn_down", "lrn_args", 256, .types = 1, .ints = 1};
static const wk_kernel strip_kernel = {"lrn", "lrn_strip", "lrn_args", 256, .types = 1, .ints = 3};
static const wk_kernel tile_grad_kernel = {"lrn", "lrn_tile_grad", "lrn_args", 256, .types = 1, .ints = 2};

enum { OUT_Y, OUT_D, OUT_DX };

static void make_args(const wk_call *c, lrn_args *a)
{
    const wk_lrn_params *p = c->params;
    const wk_tensor *x = c->in[0];
    bool within = p->mode == WK_LRN_WITHIN;
    *a = (lrn_args){.x = wk_ptr(x),
                    .count = wk_count(x),
                    .rows = x->shape[within ? 2 : 1],
                    .cols = within ? x->shape[3] : wk_shape_count(x->rank - 2, x->shape + 2),
                    .before = p->size / 2,
                    .after = (p->size - 1) / 2,
                    .alpha = p->alpha / (double)p->size / (within ? (double)p->size : 1),
                    .beta = p->beta,
                    .k = p->k};
    a->by_rows = wk_divisor_if_small(a->rows);
    a->by_cols = wk_divisor_if_small(a->cols);
}

static wk_status launch(const wk_call *c, const wk_kernel *k, int kind, const lrn_args *a)
{
    wk_grid grid = {.x = wk_blocks(a->count, 256, WK_GRID_MAX)};
    return WK_LAUNCH(c, k, WK_INSTANCE(.t = {(unsigned char)c->dtype}, .i = {(short)kind}), grid, *a);
}

/* A tensor of x's shape in the compute type. */
static void *room_like_x(const wk_call *c)
{
    wk_tensor *t = wk_tensor_new(c->device, wk_stat_dtype(c->dtype), c->in[0]->rank, c->in[0]->shape);
    return t ? wk_ptr(t) : NULL;
}

/* Sums windows into out; within the plane across the columns first. */
static wk_status sum_windows(const wk_call *c, lrn_args *a, int what, void *out)
{
    if (WK_PARAMS(c, wk_lrn_params)->mode == WK_LRN_WITHIN) {
        if (!(a->out = room_like_x(c)))
            return wk_error_status();
        WK_TRY(launch(c, &across_kernel, what == OUT_DX, a));
        a->across = a->out;
    }
    a->out = out;
    return launch(c, &down_kernel, what, a);
}

/* y where windows roll through registers. */
static wk_status launch_strips(const wk_call *c, lrn_args *a)
{
    int vec = wk_pack_width(c->dtype, a->cols, (const void *[]){a->x, a->out}, 2);
    i64 across = (a->cols / vec + LRN_ACROSS - 1) / LRN_ACROSS,
        strips = (a->rows + LRN_STRIP - 1) / LRN_STRIP;
    i64 tiles = across * strips * (a->count / (a->rows * a->cols));
    if (tiles >> 30)
        return sum_windows(c, a, OUT_Y, a->out);
    a->by_cols = wk_divisor_of(across);
    a->by_strips = wk_divisor_of(strips);
    a->tiles = (u32)tiles;
    wk_instance instance = {.t = {(unsigned char)c->dtype},
                            .i = {(short)vec, (short)(a->before + a->after + 1), a->beta == 0.75}};
    return WK_LAUNCH(c, &strip_kernel, &instance, ((wk_grid){.x = wk_blocks(tiles, 1, WK_GRID_MAX)}), *a);
}

/* The gradient: all rows of a few columns fit in shared memory. */
static bool fits_tile(const wk_call *c, const lrn_args *a)
{
    const wk_lrn_params *p = c->params;
    i64 tiles = (a->cols + LRN_COLS - 1) / LRN_COLS * (a->count / (a->rows * a->cols));
    return p->mode != WK_LRN_WITHIN && p->size <= LRN_MOST_ROLLED && tiles >> 30 == 0 &&
           a->rows <= (c->dtype == WK_F64 ? LRN_ROWS / 2 : LRN_ROWS);
}

static wk_status launch_tile(const wk_call *c, lrn_args *a)
{
    i64 each = (a->cols + LRN_COLS - 1) / LRN_COLS;
    a->by_cols = wk_divisor_of(each);
    a->tiles = (u32)(each * (a->count / (a->rows * a->cols)));
    wk_instance instance = {.t = {(unsigned char)c->dtype},
                            .i = {(short)WK_PARAMS(c, wk_lrn_params)->size, a->beta == 0.75}};
    return WK_LAUNCH(c, &tile_grad_kernel, &instance, ((wk_grid){.x = wk_blocks(a->tiles, 1, WK_GRID_MAX)}),
                     *a);
}

static wk_status pack_inputs(wk_call *c)
{
    for (int i = 0; i < 3; i++) {
        if (c->in[i] && !(c->in[i] = wk_tensor_packed(c->in[i])))
            return wk_error_status();
    }
    return WK_OK;
}

wk_status wk_gpu_lrn(wk_call *c)
{
    lrn_args a;
    const wk_lrn_params *p = c->params;
    if (wk_count(c->in[0]) == 0)
        return WK_OK;
    WK_TRY(pack_inputs(c));
    make_args(c, &a);
    if (p->mode == WK_LRN_WITHIN || p->size > LRN_MOST_ROLLED)
        return sum_windows(c, &a, OUT_Y, wk_ptr(c->out[0]));
    a.out = wk_ptr(c->out[0]);
    return launch_strips(c, &a);
}

wk_status wk_gpu_lrn_backward(wk_call *c)
{
    lrn_args a;
    void *d;
    if (wk_count(c->in[0]) == 0)
        return WK_OK;
    WK_TRY(pack_inputs(c));
    make_args(c, &a);
    a.y = wk_ptr(c->in[1]);
    a.dy = wk_ptr(c->in[2]);
    if (fits_tile(c, &a)) {
        a.out = wk_ptr(c->out[0]);
        return launch_tile(c, &a);
    }
    if (!(d = room_like_x(c)))
        return wk_error_status();
    WK_TRY(sum_windows(c, &a, OUT_D, d));
    a.across = NULL;
    a.d = d;
    i64 after = a.after; /* the windows as their elements see them */
    a.after = a.before;
    a.before = after;
    return sum_windows(c, &a, OUT_DX, wk_ptr(c->out[0]));
}
