/* copy.c: front ends of the ops that move elements without computing. */
#include <stdio.h>
#include "copy.h"
#include "reduce.h"
#include "wick/copy.h"

/* ---- checks and outputs ---- */

static wk_status infer_like_first(wk_call *c)
{
    wk_call_out_like(c, 0, c->in[0]);
    return WK_OK;
}

/* An output whose size is the caller's wish may be past counting. */
static wk_status out_of_any_size(wk_call *c, const char *argument, wk_dtype dtype, int rank,
                                 const int64_t *shape)
{
    wk_shape_text text;
    WK_NEED(wk_shape_count(rank, shape) >= 0, c, WK_ERR_PARAM, argument,
            "expected a result of less than 2^60 elements, got %s", wk_shape_str(&text, rank, shape));
    wk_call_out(c, 0, dtype, rank, shape);
    return WK_OK;
}

/* Rows of a flat array of `count` elements: where they begin and end without overflow. */
static wk_status check_rows(const wk_call *c, const char *side, int64_t rows, int64_t cols, int64_t stride,
                            int64_t offset, int64_t count)
{
    char name[16];
    int64_t end;
    snprintf(name, sizeof name, "%s_stride", side);
    WK_NEED(stride >= 0, c, WK_ERR_PARAM, name, "expected 0 or more, got %lld", (long long)stride);
    snprintf(name, sizeof name, "%s_offset", side);
    WK_NEED(offset >= 0, c, WK_ERR_PARAM, name, "expected 0 or more, got %lld", (long long)offset);
    if (rows == 0 || cols == 0)
        return WK_OK;
    bool inside = !__builtin_mul_overflow(rows - 1, stride, &end) &&
                  !__builtin_add_overflow(end, offset, &end) && !__builtin_add_overflow(end, cols, &end) &&
                  end <= count;
    WK_NEED(inside, c, WK_ERR_PARAM, name,
            "expected %lld rows of %lld elements, %lld apart, inside %lld elements, got offset %lld",
            (long long)rows, (long long)cols, (long long)stride, (long long)count, (long long)offset);
    return WK_OK;
}

static wk_status infer_copy2d(wk_call *c)
{
    const wk_copy2d_params *p = c->params;
    WK_NEED(p->rows >= 0, c, WK_ERR_PARAM, "rows", "expected 0 or more, got %lld", (long long)p->rows);
    WK_NEED(p->cols >= 0, c, WK_ERR_PARAM, "cols", "expected 0 or more, got %lld", (long long)p->cols);
    WK_TRY(check_rows(c, "src", p->rows, p->cols, p->src_stride, p->src_offset, wk_count(c->in[0])));
    WK_TRY(check_rows(c, "dst", p->rows, p->cols, p->dst_stride, p->dst_offset, wk_count(c->in[1])));
    wk_call_out_like(c, 0, c->in[1]);
    return WK_OK;
}

static const char *tail_name(const void *params, int i, char *buf, size_t room)
{
    (void)params;
    snprintf(buf, room, "t%d", i);
    return buf;
}

static wk_status tail_shape_fail(const wk_call *c, int i, int like, const char *what)
{
    char name[16];
    wk_shape_text want, got;
    const wk_tensor *t = c->tail[i], *u = c->tail[like];
    return wk_call_fail(c, WK_ERR_SHAPE, tail_name(NULL, i, name, sizeof name),
                        "expected %s t%d's %s, got %s", what, like, wk_shape_str(&want, u->rank, u->shape),
                        wk_shape_str(&got, t->rank, t->shape));
}

static wk_status infer_cat(wk_call *c)
{
    const wk_cat_params *p = c->params;
    int64_t shape[WK_MAX_RANK];
    int first = 0, dim;
    while (first < c->n_tail - 1 && wk_cat_skips(c->tail[first]))
        first++;
    const wk_tensor *t0 = c->tail[first];
    WK_NEED(t0->rank > 0, c, WK_ERR_SHAPE, "t0", "expected rank 1 to %d, got 0", WK_MAX_RANK);
    WK_TRY(wk_call_dim(c, "dim", p->dim, t0->rank, &dim));
    memcpy(shape, t0->shape, sizeof shape);
    for (int i = first + 1; i < c->n_tail; i++) {
        const wk_tensor *t = c->tail[i];
        if (wk_cat_skips(t))
            continue;
        for (int d = 0; d < t0->rank; d++) {
            if (t->rank != t0->rank || (d != dim && t->shape[d] != t0->shape[d]))
                return tail_shape_fail(c, i, first, "but for the dim the sizes of");
        }
        WK_NEED(!__builtin_add_overflow(shape[dim], t->shape[dim], &shape[dim]), c, WK_ERR_SHAPE, "dim",
                "expected a sum of sizes below 2^63");
    }
    return out_of_any_size(c, "dim", c->dtype, t0->rank, shape);
}

static wk_status infer_stack(wk_call *c)
{
    const wk_cat_params *p = c->params;
    const wk_tensor *t0 = c->tail[0];
    int64_t shape[WK_MAX_RANK];
    int dim;
    WK_NEED(t0->rank < WK_MAX_RANK, c, WK_ERR_SHAPE, "t0", "expected rank 0 to %d, got %d", WK_MAX_RANK - 1,
            t0->rank);
    WK_TRY(wk_call_dim(c, "dim", p->dim, t0->rank + 1, &dim));
    for (int i = 1; i < c->n_tail; i++) {
        if (!wk_shape_equal(c->tail[i]->rank, c->tail[i]->shape, t0->rank, t0->shape))
            return tail_shape_fail(c, i, 0, "the shape of");
    }
    for (int d = 0; d <= t0->rank; d++)
        shape[d] = d < dim ? t0->shape[d] : d == dim ? c->n_tail : t0->shape[d - 1];
    return out_of_any_size(c, "dim", c->dtype, t0->rank + 1, shape);
}

static wk_status infer_pad(wk_call *c)
{
    const wk_pad_params *p = c->params;
    const wk_tensor *x = c->in[0];
    int64_t shape[WK_MAX_RANK], added;
    int dim;
    WK_TRY(wk_call_rank(c, 0, 1, WK_MAX_RANK));
    WK_TRY(wk_call_dim(c, "dim", p->dim, x->rank, &dim));
    WK_NEED(p->mode >= WK_PAD_ZEROS && p->mode <= WK_PAD_REFLECT, c, WK_ERR_PARAM, "mode",
            "expected zeros, same or reflect, got %lld", (long long)p->mode);
    int64_t n = x->shape[dim], most = p->mode == WK_PAD_REFLECT ? (n ? n - 1 : 0) : INT64_MAX;
    WK_NEED(p->left >= 0 && p->left <= most, c, WK_ERR_PARAM, "left", "expected 0 to %lld, got %lld",
            (long long)most, (long long)p->left);
    WK_NEED(p->right >= 0 && p->right <= most, c, WK_ERR_PARAM, "right", "expected 0 to %lld, got %lld",
            (long long)most, (long long)p->right);
    WK_NEED(p->mode == WK_PAD_ZEROS || n > 0 || (p->left == 0 && p->right == 0), c, WK_ERR_SHAPE, "x",
            "expected a size above 0 in dim %d, got 0", dim);
    memcpy(shape, x->shape, sizeof shape);
    WK_NEED(!__builtin_add_overflow(p->left, p->right, &added) &&
                !__builtin_add_overflow(n, added, &shape[dim]),
            c, WK_ERR_PARAM, "right", "expected a size below 2^63, got %lld + %lld + %lld",
            (long long)p->left, (long long)n, (long long)p->right);
    return out_of_any_size(c, "right", c->dtype, x->rank, shape);
}

static wk_status infer_flip(wk_call *c)
{
    unsigned set;
    WK_TRY(wk_reduce_dims(c, &WK_PARAMS(c, wk_flip_params)->dims, c->in[0]->rank, &set));
    return infer_like_first(c);
}

static wk_status infer_slice_assign(wk_call *c)
{
    const wk_list *start = &WK_PARAMS(c, wk_slice_params)->start;
    const wk_tensor *x = c->in[0], *src = c->in[1];
    WK_TRY(wk_call_rank(c, 1, x->rank, x->rank));
    WK_NEED(start->n == x->rank, c, WK_ERR_PARAM, "start", "expected %d numbers, one per dim, got %lld",
            x->rank, (long long)start->n);
    for (int d = 0; d < x->rank; d++) {
        WK_NEED(src->shape[d] <= x->shape[d], c, WK_ERR_SHAPE, "src",
                "expected a size of at most %lld in dim %d, got %lld", (long long)x->shape[d], d,
                (long long)src->shape[d]);
        int64_t room = x->shape[d] - src->shape[d];
        WK_NEED(start->v[d] >= 0 && start->v[d] <= room, c, WK_ERR_PARAM, "start",
                "expected 0 to %lld in dim %d, got %lld", (long long)room, d, (long long)start->v[d]);
    }
    return infer_like_first(c);
}

static wk_status infer_one_hot(wk_call *c)
{
    const wk_one_hot_params *p = c->params;
    int64_t shape[WK_MAX_RANK];
    WK_TRY(wk_call_rank(c, 0, 0, WK_MAX_RANK - 1));
    WK_NEED(wk_dtype_valid((wk_dtype)p->dtype), c, WK_ERR_PARAM, "dtype", "expected a dtype, got %d",
            (int)p->dtype);
    WK_NEED(p->depth >= 0, c, WK_ERR_PARAM, "depth", "expected 0 or more, got %lld", (long long)p->depth);
    memcpy(shape, c->in[0]->shape, sizeof shape);
    shape[c->in[0]->rank] = p->depth;
    c->dtype = (wk_dtype)p->dtype;
    return out_of_any_size(c, "depth", c->dtype, c->in[0]->rank + 1, shape);
}

static wk_status infer_triangle(wk_call *c)
{
    WK_TRY(wk_call_rank(c, 0, 2, WK_MAX_RANK));
    return infer_like_first(c);
}

/* ---- the table ---- */

#define SAMPLES(name, ...) static const char *const name[] = {__VA_ARGS__, NULL}

SAMPLES(copy_samples, "x=T[4,5]", "x=T[3,1,7]", "x=T[70,90]", "x=T[3,40,50]", "x=T[5000]", "x=T[2,72,136]",
        "x=T[]", "x=T[0,3]", "x=T[2,1,2,1,2,1,2,3]", "x=T[6]:special");
SAMPLES(copy_errors, "! x");
SAMPLES(copy2d_samples,
        "x=T[4,5] dst=T[6,7] rows=3 cols=4 src_stride=5 dst_stride=7 src_offset=1 dst_offset=9",
        "x=T[20] dst=T[3,9] rows=3 cols=9 src_stride=0 dst_stride=9 src_offset=11 dst_offset=0",
        "x=T[20] dst=T[20] rows=4 cols=5 src_stride=5 dst_stride=2 src_offset=0 dst_offset=3",
        "x=T[7] dst=T[4] rows=0 cols=9 src_stride=5 dst_stride=2 src_offset=90 dst_offset=3",
        "x=T[300,200] dst=T[220,300] rows=300 cols=120 src_stride=200 dst_stride=220 src_offset=80 "
        "dst_offset=100");
SAMPLES(
    copy2d_errors, "x=T[4] dst=T[4] ! rows",
    "x=T[4] dst=T[9] rows=2 cols=2 src_stride=3 dst_stride=2 src_offset=0 dst_offset=0 ! src_offset",
    "x=T[9] dst=T[4] rows=2 cols=2 src_stride=3 dst_stride=2 src_offset=0 dst_offset=1 ! dst_offset",
    "x=T[4] dst=T[4] rows=4611686018427387904 cols=2 src_stride=8 dst_stride=2 src_offset=0 dst_offset=0 ! "
    "src_offset",
    "x=T[4] dst=T[4] rows=-1 cols=2 src_stride=8 dst_stride=2 src_offset=0 dst_offset=0 ! rows",
    "x=T[4] dst=T[4] rows=1 cols=2 src_stride=1 dst_stride=-2 src_offset=0 dst_offset=0 ! dst_stride",
    "x=f32[4] dst=i32[4] rows=1 cols=2 src_stride=1 dst_stride=2 src_offset=0 dst_offset=0 ! dst");
SAMPLES(cat_samples, "t0=T[4,5] t1=T[2,5] dim=0", "t0=T[4,5] t1=T[4,1] t2=T[4,70] dim=-1",
        "t0=T[2,0,3] t1=T[2,4,3] t2=T[2,0,3] dim=1", "t0=T[0] t1=T[2,3] t2=T[0] t3=T[1,3] dim=0",
        "t0=T[0] t1=T[0] dim=0", "t0=T[5] dim=0", "t0=T[3,100,40] t1=T[3,30,40] dim=1",
        "t0=T[5,32] t1=T[5,16] dim=1", "t0=T[1,2,1,2,1,2,1,2] t1=T[1,2,1,2,1,2,1,2] dim=6");
SAMPLES(cat_errors, "dim=0 ! t0", "t0=T[] dim=0 ! t0", "t0=T[2,3] t1=T[3,2] dim=0 ! t1",
        "t0=T[2,3] t1=T[3] dim=0 ! t1", "t0=T[2] t1=T[3] dim=1 ! dim", "t0=f32[2] t1=i64[3] dim=0 ! t1",
        "t0=T[2] t1=T[3] ! dim");
SAMPLES(stack_samples, "t0=T[4,5] t1=T[4,5] dim=0", "t0=T[4,5] t1=T[4,5] t2=T[4,5] dim=-1",
        "t0=T[4,5] t1=T[4,5] dim=1", "t0=T[] t1=T[] dim=0", "t0=T[0,2] t1=T[0,2] dim=2",
        "t0=T[90,100] t1=T[90,100] dim=2");
SAMPLES(stack_errors, "dim=0 ! t0", "t0=T[2,3] t1=T[3,2] dim=0 ! t1", "t0=T[2] t1=T[2] dim=2 ! dim",
        "t0=T[1,1,1,1,1,1,1,1] dim=0 ! t0", "t0=T[2] t1=T[2] ! dim");
SAMPLES(pad_samples, "x=T[4,5] dim=0 left=1 right=2", "x=T[4,5] dim=1 left=0 right=3",
        "x=T[4,5] dim=-1 left=3 right=7 mode=same", "x=T[4,5] dim=0 left=3 right=2 mode=reflect",
        "x=T[3,4,5] dim=1 left=1 right=3 mode=reflect", "x=T[3,4,5] dim=1 left=9 right=0 mode=same",
        "x=T[0,3] dim=0 left=2 right=1", "x=T[0,3] dim=1 left=2 right=1 mode=reflect",
        "x=T[1] dim=0 left=0 right=0 mode=reflect", "x=T[300,70] dim=1 left=30 right=40 mode=reflect",
        "x=T[3,6,32] dim=1 left=2 right=4 mode=reflect", "x=T[7,16,4] dim=0 left=1 right=2");
SAMPLES(pad_errors, "x=T[3] dim=0 left=1 ! right", "x=T[] dim=0 left=1 right=1 ! x",
        "x=T[3] dim=1 left=1 right=1 ! dim", "x=T[3] dim=0 left=-1 right=1 ! left",
        "x=T[3] dim=0 left=1 right=3 mode=reflect ! right", "x=T[0] dim=0 left=1 right=3 mode=same ! x",
        "x=T[3] dim=0 left=1 right=9223372036854775807 ! right",
        "x=T[3,4] dim=0 left=1 right=4611686018427387904 ! right",
        "x=T[3] dim=0 left=1 right=1 mode=x ! mode");
SAMPLES(flip_samples, "x=T[4,5] dims=0", "x=T[6,32] dims=0", "x=T[4,5] dims=1", "x=T[3,4,5] dims=0,2",
        "x=T[3,4,5] dims=all", "x=T[] dims=all", "x=T[0,3] dims=0", "x=T[200,300] dims=1",
        "x=T[40,30,20] dims=0,1");
SAMPLES(flip_errors, "x=T[3] ! dims", "x=T[3] dims=1 ! dims", "x=T[3,4] dims=0,0 ! dims");
SAMPLES(slice_samples, "x=T[4,5] src=T[2,3] start=1,2", "x=T[4,5] src=T[4,5] start=0,0",
        "x=T[] src=T[] start=", "x=T[7] src=T[0] start=7", "x=T[0,3] src=T[0,2] start=0,1",
        "x=T[90,80,7] src=T[50,60,3] start=40,9,2");
SAMPLES(slice_errors, "x=T[4,5] src=T[2,3] start=1 ! start", "x=T[4,5] src=T[2,3] start=3,0 ! start",
        "x=T[4,5] src=T[2,3] start=0,-1 ! start", "x=T[4,5] src=T[5,3] start=0,0 ! src",
        "x=T[4,5] src=T[2] start=0,0 ! src", "x=f32[4] src=f64[2] start=0 ! src");
SAMPLES(one_hot_samples, "ids=i64[5]:0..7 depth=7 dtype=T", "ids=u8[3,4]:0..5 depth=5 on=3 off=2 dtype=T",
        "ids=i32[2,3]:-1..4 depth=4 dtype=T", "ids=u32[]:0..3 depth=3 dtype=T",
        "ids=u32[0,2] depth=3 dtype=T", "ids=i64[0] depth=0 dtype=T", "ids=i64[700]:0..90 depth=90 dtype=T",
        "ids=i32[60]:-1..32 depth=32 dtype=T", "ids=i64[5]:0..7 depth=7");
SAMPLES(one_hot_errors, "ids=i64[5]:0..7 ! depth", "ids=f32[5] depth=3 ! ids",
        "ids=i64[5]:3..5 depth=3 ! ids", "ids=i32[5]:-4..-2 depth=3 ! ids",
        "ids=i32[5]:0..3 depth=-1 ! depth", "ids=i32[1,1,1,1,1,1,1,1]:0..3 depth=4 ! ids",
        "ids=i32[5]:0..3 depth=4611686018427387904 ! depth", "ids=i32[5]:0..3 depth=4 dtype=f31 ! dtype");
SAMPLES(triangle_samples, "x=T[4,5]", "x=T[5,4] diagonal=1", "x=T[5,4] diagonal=-2",
        "x=T[2,3,3] diagonal=9223372036854775807", "x=T[2,3,3] diagonal=-9223372036854775807", "x=T[0,3]",
        "x=T[3,0]", "x=T[3,70,90] diagonal=8", "x=T[3,2]:special", "x=T[2,20,32] diagonal=-3");
SAMPLES(triangle_errors, "! x", "x=T[3] ! x", "x=T[3,3] diagonal=a ! diagonal");

#define INT(type, name_, fallback) \
    { \
#name_, WK_P_INT, offsetof(type, name_), fallback, NULL, 0 \
    }
#define TAIL_SLOT \
    { \
        { \
            "t0", WK_TAIL, 0 \
        } \
    }

enum {
    OP_copy,
    OP_copy2d,
    OP_cat,
    OP_stack,
    OP_pad,
    OP_flip,
    OP_slice_assign,
    OP_one_hot,
    OP_tril,
    OP_triu,
};

#define TRIANGLE(name_, summary_) \
    [OP_##name_] = {.name = #name_, \
                    .summary = summary_, \
                    .dtypes = WK_ALL, \
                    .in = {{"x", 0, 0}}, \
                    .out = {{"y", 0, 0}}, \
                    .params = WK_PARAM_LIST(INT(wk_triangle_params, diagonal, "0")), \
                    .infer = infer_triangle, \
                    .samples = triangle_samples, \
                    .errors = triangle_errors}

wk_op wk_ops_copy[] = {
    [OP_copy] = {.name = "copy",
                 .summary = "any layout to packed",
                 .dtypes = WK_ALL,
                 .in = {{"x", 0, 0}},
                 .out = {{"y", 0, 0}},
                 .infer = infer_like_first,
                 .any_output = true,
                 .samples = copy_samples,
                 .errors = copy_errors},
    [OP_copy2d] = {.name = "copy2d",
                   .summary = "rows of one flat array over those of another",
                   .dtypes = WK_ALL,
                   .in = {{"x", 0, 0}, {"dst", WK_UPDATE, 0}},
                   .out = {{"y", 0, 0}},
                   .any_output = true,
                   .params = WK_PARAM_LIST(
                       INT(wk_copy2d_params, rows, NULL), INT(wk_copy2d_params, cols, NULL),
                       INT(wk_copy2d_params, src_stride, NULL), INT(wk_copy2d_params, dst_stride, NULL),
                       INT(wk_copy2d_params, src_offset, NULL), INT(wk_copy2d_params, dst_offset, NULL)),
                   .infer = infer_copy2d,
                   .samples = copy2d_samples,
                   .errors = copy2d_errors},
    [OP_cat] = {.name = "cat",
                .summary = "tensors one after the other along a dim",
                .dtypes = WK_ALL,
                .in = TAIL_SLOT,
                .out = {{"y", 0, 0}},
                .params = WK_PARAM_LIST(INT(wk_cat_params, dim, NULL)),
                .infer = infer_cat,
                .tail_name = tail_name,
                .samples = cat_samples,
                .errors = cat_errors},
    [OP_stack] = {.name = "stack",
                  .summary = "tensors side by side along a new dim",
                  .dtypes = WK_ALL,
                  .in = TAIL_SLOT,
                  .out = {{"y", 0, 0}},
                  .params = WK_PARAM_LIST(INT(wk_cat_params, dim, NULL)),
                  .infer = infer_stack,
                  .tail_name = tail_name,
                  .samples = stack_samples,
                  .errors = stack_errors},
    [OP_pad] = {.name = "pad",
                .summary = "more elements before and after a dim",
                .dtypes = WK_ALL,
                .in = {{"x", 0, 0}},
                .out = {{"y", 0, 0}},
                .params = WK_PARAM_LIST(
                    INT(wk_pad_params, dim, NULL), INT(wk_pad_params, left, NULL),
                    INT(wk_pad_params, right, NULL),
                    {"mode", WK_P_ENUM, offsetof(wk_pad_params, mode), "zeros", "zeros|same|reflect", 0}),
                .infer = infer_pad,
                .samples = pad_samples,
                .errors = pad_errors},
    [OP_flip] = {.name = "flip",
                 .summary = "dims in the opposite order",
                 .dtypes = WK_ALL,
                 .in = {{"x", 0, 0}},
                 .out = {{"y", 0, 0}},
                 .params = WK_PARAM_LIST({"dims", WK_P_LIST, offsetof(wk_flip_params, dims), NULL, NULL, 0}),
                 .infer = infer_flip,
                 .samples = flip_samples,
                 .errors = flip_errors},
    [OP_slice_assign] = {.name = "slice_assign",
                         .summary = "src written over a part of x",
                         .dtypes = WK_ALL,
                         .in = {{"x", WK_UPDATE, 0}, {"src", 0, 0}},
                         .out = {{"y", 0, 0}},
                         .any_output = true,
                         .params = WK_PARAM_LIST(
                             {"start", WK_P_LIST, offsetof(wk_slice_params, start), NULL, NULL, 0}),
                         .infer = infer_slice_assign,
                         .samples = slice_samples,
                         .errors = slice_errors},
    [OP_one_hot] = {.name = "one_hot",
                    .summary = "on at the place of each id, off elsewhere",
                    .dtypes = WK_ALL,
                    .in = {{"ids", 0, WK_IDS}},
                    .out = {{"y", WK_ANY, 0}},
                    .params = WK_PARAM_LIST(
                        INT(wk_one_hot_params, depth, NULL),
                        {"on", WK_P_SCALAR, offsetof(wk_one_hot_params, on), "1", NULL, 0},
                        {"off", WK_P_SCALAR, offsetof(wk_one_hot_params, off), "0", NULL, 0},
                        {"dtype", WK_P_DTYPE, offsetof(wk_one_hot_params, dtype), "f32", NULL, 0}),
                    .infer = infer_one_hot,
                    .samples = one_hot_samples,
                    .errors = one_hot_errors},
    TRIANGLE(tril, "the lower triangle, zeros above"),
    TRIANGLE(triu, "the upper triangle, zeros below"),
    {0},
};

/* ---- the API ---- */

static wk_status run_into(wk_call c, wk_tensor *dst)
{
    if (wk_pending())
        return wk_error_status();
    if (!dst)
        return wk_call_fail(&c, WK_ERR_ARGUMENT, "dst", "expected a tensor, got NULL");
    c.out[0] = dst;
    return wk_call_run(&c);
}

wk_tensor *wk_copy(const wk_tensor *x)
{
    return wk_call_run1(&(wk_call){.op = &wk_ops_copy[OP_copy], .in = {x}});
}

wk_status wk_copy_into(wk_tensor *dst, const wk_tensor *src)
{
    return run_into((wk_call){.op = &wk_ops_copy[OP_copy], .in = {src}}, dst);
}

wk_tensor *wk_copy2d(const wk_tensor *x, const wk_tensor *dst, int64_t rows, int64_t cols, int64_t src_stride,
                     int64_t dst_stride, int64_t src_offset, int64_t dst_offset)
{
    wk_copy2d_params p = {rows, cols, src_stride, dst_stride, src_offset, dst_offset};
    return wk_call_run1(&(wk_call){.op = &wk_ops_copy[OP_copy2d], .params = &p, .in = {x, dst}});
}

wk_status wk_copy2d_into(wk_tensor *dst, const wk_tensor *x, int64_t rows, int64_t cols, int64_t src_stride,
                         int64_t dst_stride, int64_t src_offset, int64_t dst_offset)
{
    wk_copy2d_params p = {rows, cols, src_stride, dst_stride, src_offset, dst_offset};
    return run_into((wk_call){.op = &wk_ops_copy[OP_copy2d], .params = &p, .in = {x, dst}}, dst);
}

static wk_tensor *run_cat(int op, const wk_tensor *const *tensors, int n, int dim)
{
    wk_cat_params p = {dim};
    wk_call c = {.op = &wk_ops_copy[op], .params = &p, .tail = tensors, .n_tail = n};
    if (wk_pending())
        return NULL;
    if (n < 1 || !tensors) {
        wk_call_fail(&c, WK_ERR_ARGUMENT, "tensors", "expected at least 1, got %d", tensors ? n : 0);
        return NULL;
    }
    return wk_call_run1(&c);
}

wk_tensor *wk_cat(const wk_tensor *const *tensors, int n, int dim)
{
    return run_cat(OP_cat, tensors, n, dim);
}
wk_tensor *wk_stack(const wk_tensor *const *tensors, int n, int dim)
{
    return run_cat(OP_stack, tensors, n, dim);
}

wk_tensor *wk_pad(const wk_tensor *x, int dim, int64_t left, int64_t right, wk_pad_mode mode)
{
    wk_pad_params p = {dim, left, right, mode};
    return wk_call_run1(&(wk_call){.op = &wk_ops_copy[OP_pad], .params = &p, .in = {x}});
}

wk_tensor *wk_flip(const wk_tensor *x, int n, const int64_t *dims)
{
    wk_flip_params p = {.dims.n = n};
    wk_call c = {.op = &wk_ops_copy[OP_flip], .params = &p, .in = {x}};
    if (wk_pending())
        return NULL;
    if (n < 0 || n > WK_MAX_RANK || (n > 0 && !dims)) {
        wk_call_fail(&c, WK_ERR_PARAM, "dims", "expected 0 to %d dims, got %d", WK_MAX_RANK, n);
        return NULL;
    }
    if (n > 0)
        memcpy(p.dims.v, dims, (size_t)n * sizeof *dims);
    return wk_call_run1(&c);
}

/* start as a list; a NULL one, which only a rank of 0 may have, as an empty list. */
static wk_slice_params slice_params(const wk_tensor *x, const int64_t *start)
{
    wk_slice_params p = {0};
    if (x && start) {
        p.start.n = x->rank;
        memcpy(p.start.v, start, (size_t)x->rank * sizeof *start);
    }
    return p;
}

wk_tensor *wk_slice_assign(const wk_tensor *x, const wk_tensor *src, const int64_t *start)
{
    wk_slice_params p = slice_params(x, start);
    return wk_call_run1(&(wk_call){.op = &wk_ops_copy[OP_slice_assign], .params = &p, .in = {x, src}});
}

wk_status wk_slice_assign_into(wk_tensor *dst, const wk_tensor *x, const wk_tensor *src, const int64_t *start)
{
    wk_slice_params p = slice_params(x, start);
    return run_into((wk_call){.op = &wk_ops_copy[OP_slice_assign], .params = &p, .in = {x, src}}, dst);
}

wk_tensor *wk_one_hot(const wk_tensor *ids, int64_t depth, double on, double off, wk_dtype dtype)
{
    wk_one_hot_params p = {depth, wk_scalar_of(on), wk_scalar_of(off), dtype};
    return wk_call_run1(&(wk_call){.op = &wk_ops_copy[OP_one_hot], .params = &p, .in = {ids}});
}

wk_tensor *wk_tril(const wk_tensor *x, int64_t diagonal)
{
    wk_triangle_params p = {diagonal};
    return wk_call_run1(&(wk_call){.op = &wk_ops_copy[OP_tril], .params = &p, .in = {x}});
}

wk_tensor *wk_triu(const wk_tensor *x, int64_t diagonal)
{
    wk_triangle_params p = {diagonal};
    return wk_call_run1(&(wk_call){.op = &wk_ops_copy[OP_triu], .params = &p, .in = {x}});
}
