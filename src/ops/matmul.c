/* matmul.c: front ends of the matrix products. */
#include "matmul.h"
#include <stdlib.h>
#include "wick/matmul.h"

static atomic_int precision = -1; /* -1: not asked the environment yet */

void wk_set_matmul_precision(wk_precision p) { atomic_store(&precision, (int)p); }

wk_precision wk_matmul_precision(void)
{
    int p = atomic_load_explicit(&precision, memory_order_relaxed);
    if (p < 0) {
        const char *text = getenv("WICK_PRECISION");
        p = text && strcmp(text, "fast") == 0 ? WK_PRECISION_FAST : WK_PRECISION_EXACT;
        atomic_store(&precision, p);
    }
    return (wk_precision)p;
}

/* ---- shapes ---- */

/* t as a batch of matrices with the given leading dimensions; a vector becomes a row (or a column). */
static wk_tensor as_matrices(const wk_tensor *t, bool vector_is_row, int rank, const int64_t *lead)
{
    wk_tensor v = wk_tensor_local(t);
    int own = t->rank == 1 ? 0 : t->rank - 2;
    int64_t rows = t->rank > 1 ? t->shape[t->rank - 2] : vector_is_row ? 1 : t->shape[0];
    int64_t cols = t->rank > 1 ? t->shape[t->rank - 1] : vector_is_row ? t->shape[0] : 1;
    int64_t row_stride = t->rank > 1 ? t->strides[t->rank - 2] : vector_is_row ? 0 : t->strides[0];
    int64_t col_stride = t->rank > 1 ? t->strides[t->rank - 1] : vector_is_row ? t->strides[0] : 0;
    for (int i = rank - 1; i >= 0; i--) {
        int from = i - (rank - own);
        bool broadcast = from < 0 || t->shape[from] != lead[i];
        v.strides[i] = broadcast ? 0 : t->strides[from];
        v.shape[i] = lead[i];
    }
    v.rank = rank + 2;
    v.shape[rank] = rows;
    v.shape[rank + 1] = cols;
    v.strides[rank] = row_stride;
    v.strides[rank + 1] = col_stride;
    return v;
}

wk_status wk_matmul_shapes(const wk_call *c, const wk_tensor *a, const wk_tensor *b, wk_matmul_shape *s)
{
    wk_shape_text ta, tb;
    int la = a->rank > 1 ? a->rank - 2 : 0, lb = b->rank > 1 ? b->rank - 2 : 0;
    bool fits = a->rank > 0 && b->rank > 0;
    if (fits) {
        s->m = a->rank > 1 ? a->shape[a->rank - 2] : 1;
        s->n = b->rank > 1 ? b->shape[b->rank - 1] : 1;
        s->k = a->shape[a->rank - 1];
        fits = s->k == b->shape[b->rank > 1 ? b->rank - 2 : 0] &&
               wk_shape_broadcast(la, a->shape, lb, b->shape, &s->rank, s->lead);
    }
    WK_NEED(fits, c, WK_ERR_SHAPE, c->op->in[1].name,
            "expected [.., %s, n] to go with %s's [.., m, %s] = %s, got %s", "k", c->op->in[0].name, "k",
            wk_shape_str(&ta, a->rank, a->shape), wk_shape_str(&tb, b->rank, b->shape));
    s->a = as_matrices(a, true, s->rank, s->lead);
    s->b = as_matrices(b, false, s->rank, s->lead);
    return WK_OK;
}

/* ---- views that kernels work on ---- */

wk_tensor wk_matmul_result(const wk_tensor *t, const wk_matmul_shape *s, int64_t rows, int64_t cols)
{
    wk_tensor v = wk_tensor_local(t);
    v.rank = s->rank + 2;
    memcpy(v.shape, s->lead, sizeof s->lead);
    v.shape[s->rank] = rows;
    v.shape[s->rank + 1] = cols;
    wk_shape_strides(v.rank, v.shape, v.strides);
    return v;
}

wk_tensor wk_flipped(const wk_tensor *t)
{
    wk_tensor v = wk_tensor_local(t);
    int r = t->rank;
    v.shape[r - 1] = t->shape[r - 2];
    v.shape[r - 2] = t->shape[r - 1];
    v.strides[r - 1] = t->strides[r - 2];
    v.strides[r - 2] = t->strides[r - 1];
    return v;
}

bool wk_join_rows(wk_tensor *t)
{
    int64_t strides[1][WK_MAX_RANK], shape[WK_MAX_RANK];
    int last = t->rank - 1;
    memcpy(strides[0], t->strides, sizeof t->strides);
    memcpy(shape, t->shape, sizeof shape);
    int64_t rows = wk_shape_count(last, t->shape);
    /* without elements any stride is right */
    int left = rows && shape[last] ? wk_shape_coalesce(last, shape, 1, strides) : 0;
    if (left > 1)
        return false;
    t->rank = 2;
    t->shape[1] = t->shape[last];
    t->strides[1] = t->strides[last];
    t->shape[0] = rows;
    t->strides[0] = left ? strides[0][0] : 0;
    return true;
}

void wk_join_batch(wk_tensor *a, wk_tensor *b, wk_tensor *y)
{
    wk_tensor tall_a = *a, tall_y = *y;
    int lead = b->rank - 2;
    for (int d = 0; d < lead; d++) {
        if (b->strides[d] && b->shape[d] > 1)
            return;
    }
    if (!wk_join_rows(&tall_a) || !wk_join_rows(&tall_y))
        return;
    *a = tall_a;
    *y = tall_y;
    for (int i = 0; i < 2; i++) {
        b->shape[i] = b->shape[lead + i];
        b->strides[i] = b->strides[lead + i];
    }
    b->rank = 2;
}

wk_status wk_as_rows(const wk_tensor *t, wk_tensor *rows)
{
    *rows = wk_tensor_local(t);
    if (t->rank == 1) {
        rows->rank = 2;
        rows->shape[0] = 1;
        rows->shape[1] = t->shape[0];
        rows->strides[0] = 0;
        rows->strides[1] = t->strides[0];
        return WK_OK;
    }
    if (wk_join_rows(rows))
        return WK_OK;
    const wk_tensor *packed = wk_tensor_packed(t);
    if (!packed)
        return wk_error_status();
    *rows = wk_tensor_local(packed);
    wk_join_rows(rows);
    return WK_OK;
}

/* ---- outputs ---- */

static wk_status infer_matmul(wk_call *c)
{
    wk_matmul_shape s;
    WK_TRY(wk_matmul_shapes(c, c->in[0], c->in[1], &s));
    int64_t shape[WK_MAX_RANK];
    int rank = s.rank;
    memcpy(shape, s.lead, sizeof shape);
    if (c->in[0]->rank > 1)
        shape[rank++] = s.m;
    if (c->in[1]->rank > 1)
        shape[rank++] = s.n;
    wk_call_out(c, 0, c->dtype, rank, shape);
    return WK_OK;
}

static wk_status infer_matmul_backward(wk_call *c)
{
    WK_TRY(infer_matmul(c));
    WK_TRY(wk_call_shape(c, 2, c->spec[0].rank, c->spec[0].shape));
    wk_call_out_like(c, 0, c->in[0]);
    wk_call_out_like(c, 1, c->in[1]);
    return WK_OK;
}

/* The shape of linear's result into output 0. */
static wk_status linear_shape(wk_call *c)
{
    const wk_tensor *x = c->in[0], *w = c->in[1];
    int64_t shape[WK_MAX_RANK];
    WK_TRY(wk_call_rank(c, 0, 1, WK_MAX_RANK));
    WK_TRY(wk_call_rank(c, 1, 2, 2));
    WK_TRY(wk_call_shape(c, 1, 2, (int64_t[]){w->shape[0], x->shape[x->rank - 1]}));
    memcpy(shape, x->shape, sizeof shape);
    shape[x->rank - 1] = w->shape[0];
    wk_call_out(c, 0, c->dtype, x->rank, shape);
    return WK_OK;
}

static wk_status infer_linear(wk_call *c)
{
    int64_t act = WK_PARAMS(c, wk_linear_params)->act;
    WK_NEED(act >= WK_ACT_NONE && act <= WK_ACT_SILU, c, WK_ERR_PARAM, "act",
            "expected one of wk_activation, got %d", (int)act);
    WK_TRY(linear_shape(c));
    return c->in[2] ? wk_call_shape(c, 2, 1, &c->in[1]->shape[0]) : WK_OK;
}

static wk_status infer_linear_backward(wk_call *c)
{
    WK_TRY(linear_shape(c));
    WK_TRY(wk_call_shape(c, 2, c->spec[0].rank, c->spec[0].shape));
    wk_call_out_like(c, 0, c->in[0]);
    wk_call_out_like(c, 1, c->in[1]);
    wk_call_out(c, 2, c->dtype, 1, &c->in[1]->shape[0]);
    return WK_OK;
}

static wk_status infer_norm_linear(wk_call *c)
{
    const wk_norm_linear_params *p = c->params;
    const wk_tensor *x = c->in[0], *w = c->in[3];
    int64_t shape[WK_MAX_RANK];
    WK_TRY(wk_call_rank(c, 0, 1, WK_MAX_RANK));
    if (c->in[1])
        WK_TRY(wk_call_same_shape(c, 1, 0));
    int64_t k = x->shape[x->rank - 1];
    WK_TRY(wk_call_shape(c, 2, 1, &k));
    WK_TRY(wk_call_rank(c, 3, 2, 2));
    WK_TRY(wk_call_shape(c, 3, 2, (int64_t[]){w->shape[0], k}));
    if (c->in[4])
        WK_TRY(wk_call_shape(c, 4, 1, &w->shape[0]));
    WK_NEED(p->eps >= 0, c, WK_ERR_PARAM, "eps", "expected a number of at least 0, got %g", p->eps);
    WK_NEED(!p->gated || w->shape[0] % 2 == 0, c, WK_ERR_SHAPE, "weight",
            "expected an even number of rows for two halves, got %lld", (long long)w->shape[0]);
    memcpy(shape, x->shape, sizeof shape);
    shape[x->rank - 1] = p->gated ? w->shape[0] / 2 : w->shape[0];
    wk_call_out(c, 0, c->dtype, x->rank, shape);
    wk_call_out_like(c, 1, x);
    return WK_OK;
}

/* ---- the table ---- */

#define SAMPLES(name, ...) static const char *const name[] = {__VA_ARGS__, NULL}

SAMPLES(matmul_samples, "a=T[4,5] b=T[5,3]", "a=T[5] b=T[5]", "a=T[2,3,4] b=T[4]", "a=T[4] b=T[3,4,5]",
        "a=T[2,1,3,4] b=T[5,4,2]", "a=T[33,65] b=T[65,17]", "a=T[3,33,20] b=T[20,40]",
        "a=T[1,300] b=T[300,70]", "a=T[3,0] b=T[0,2]", "a=T[0,3] b=T[3,2]", "a=T[2,64,48] b=T[2,48,64]",
        "a=T[2,3]:special b=T[3,2]", "a=T[20,600]:0..1 b=T[600,20]:0..1",
        "a=T[3,1100]:0..1 b=T[1100,40]:0..1", "a=T[2,70,24] b=T[24,5]");
SAMPLES(matmul_errors, "a=T[2,3] ! b", "a=T[2,3] b=T[2,3] ! b", "a=T[] b=T[2] ! b",
        "a=T[2,3,4] b=T[3,4,5] ! b", "a=i32[2,2] b=i32[2,2] ! dtype", "a=f32[2,2] b=f16[2,2] ! b");
SAMPLES(matmul_backward_samples, "a=T[4,5] b=T[5,3] dy=T[4,3]", "a=T[5] b=T[5] dy=T[]",
        "a=T[2,3,4] b=T[4] dy=T[2,3]", "a=T[4] b=T[3,4,5] dy=T[3,5]", "a=T[2,1,3,4] b=T[5,4,2] dy=T[2,5,3,2]",
        "a=T[3,6,5] b=T[5,4] dy=T[3,6,4]");
SAMPLES(matmul_backward_errors, "a=T[2,3] b=T[3,4] ! dy", "a=T[2,3] b=T[3,4] dy=T[2,3] ! dy");
SAMPLES(linear_samples, "x=T[4,5] weight=T[3,5] bias=T[3]", "x=T[2,3,5] weight=T[4,5]",
        "x=T[5] weight=T[3,5] act=relu", "x=T[4,5] weight=T[3,5] bias=T[3] act=gelu",
        "x=T[33,65] weight=T[17,65] bias=T[17] act=silu", "x=T[0,5] weight=T[3,5]",
        "x=T[2,5] weight=T[3,5] act=gelu_erf", "x=T[6,1100]:0..1 weight=T[9,1100]:0..1 bias=T[9] act=relu",
        "x=T[70,600]:0..1 weight=T[66,600]:0..1 bias=T[66] act=gelu",
        "x=T[1,4104]:0..1 weight=T[9,4104]:0..1 bias=T[9] act=silu", "x=T[3,2056]:0..1 weight=T[9,2056]:0..1",
        "x=T[1,1000]:0..1 weight=T[90,1000]:0..1 bias=T[90] act=gelu", "x=T[40] weight=T[2400,40]",
        "x=T[3,4,0] weight=T[5,0] bias=T[5]");
SAMPLES(linear_errors, "x=T[4,5] ! weight", "x=T[4,5] weight=T[3,4] ! weight",
        "x=T[4,5] weight=T[3,5] bias=T[5] ! bias", "x=T[4,5] weight=T[3,5] act=cube ! act",
        "x=T[] weight=T[3,5] ! x");
SAMPLES(linear_backward_samples, "x=T[4,5] weight=T[3,5] dy=T[4,3]", "x=T[2,3,5] weight=T[4,5] dy=T[2,3,4]",
        "x=T[5] weight=T[3,5] dy=T[3]", "x=T[0,5] weight=T[3,5] dy=T[0,3]",
        "x=T[3,0,5] weight=T[2,5] dy=T[3,0,2]");
SAMPLES(linear_backward_errors, "x=T[4,5] weight=T[3,5] ! dy", "x=T[4,5] weight=T[3,5] dy=T[4,5] ! dy");

SAMPLES(norm_linear_samples, "x=T[4,5] residual=T[4,5] norm=T[5] weight=T[3,5] bias=T[3]",
        "x=T[2,3,8] norm=T[8] weight=T[6,8]:-0.5..0.5 gated=1", "x=T[8] norm=T[8] weight=T[5,8]",
        "x=T[1,264] residual=T[1,264] norm=T[264] weight=T[38,264]:-0.05..0.05 bias=T[38] gated=1",
        "x=T[1,1,4104] residual=T[1,1,4104] norm=T[4104] weight=T[10,4104]:-0.016..0.016 gated=1 eps=0.01",
        "x=T[1,2056] norm=T[2056]:0..1 weight=T[9,2056]:0..1 bias=T[9]",
        "x=T[1,8192] residual=T[1,8192] norm=T[8192]:0..1 weight=T[3,8192]:0..1",
        "x=T[1,8]:special norm=T[8] weight=T[3,8]", "x=T[0,5] norm=T[5] weight=T[3,5]",
        "x=T[1,16] norm=T[16] weight=T[0,16]", "x=T[2,0] norm=T[0] weight=T[4,0] gated=1");
SAMPLES(norm_linear_errors, "norm=T[5] weight=T[3,5] ! x", "x=T[4,5] weight=T[3,5] ! norm",
        "x=T[4,5] norm=T[5] ! weight", "x=T[] norm=T[5] weight=T[3,5] ! x",
        "x=T[4,5] residual=T[5] norm=T[5] weight=T[3,5] ! residual",
        "x=T[4,5] norm=T[4] weight=T[3,5] ! norm", "x=T[4,5] norm=T[5] weight=T[3,4] ! weight",
        "x=T[4,5] norm=T[5] weight=T[3,5] bias=T[5] ! bias",
        "x=T[4,5] norm=T[5] weight=T[3,5] gated=1 ! weight", "x=T[4,5] norm=T[5] weight=T[3,5] eps=-1 ! eps",
        "x=i32[4,5] norm=i32[5] weight=i32[3,5] ! dtype");

enum { OP_matmul, OP_matmul_backward, OP_linear, OP_linear_backward, OP_rms_norm_linear };

wk_op wk_ops_matmul[] = {
    [OP_matmul] = {.name = "matmul",
                   .summary = "matrix product, leading dimensions broadcast",
                   .dtypes = WK_FLOATS,
                   .in = {{"a", 0, 0}, {"b", 0, 0}},
                   .out = {{"y", 0, 0}},
                   .infer = infer_matmul,
                   .samples = matmul_samples,
                   .errors = matmul_errors},
    [OP_matmul_backward] = {.name = "matmul_backward",
                            .summary = "gradient of matmul",
                            .dtypes = WK_FLOATS,
                            .in = {{"a", 0, 0}, {"b", 0, 0}, {"dy", 0, 0}},
                            .out = {{"da", WK_SKIP, 0}, {"db", WK_SKIP, 0}},
                            .infer = infer_matmul_backward,
                            .samples = matmul_backward_samples,
                            .errors = matmul_backward_errors},
    [OP_linear] = {.name = "linear",
                   .summary = "act(x . weight^T + bias)",
                   .dtypes = WK_FLOATS,
                   .in = {{"x", 0, 0}, {"weight", 0, 0}, {"bias", WK_OPTIONAL, 0}},
                   .out = {{"y", 0, 0}},
                   .params = WK_PARAM_LIST({"act", WK_P_ENUM, offsetof(wk_linear_params, act), "none",
                                            "none|relu|gelu|gelu_erf|silu", 0}),
                   .infer = infer_linear,
                   .samples = linear_samples,
                   .errors = linear_errors},
    [OP_linear_backward] = {.name = "linear_backward",
                            .summary = "gradient of linear without activation",
                            .dtypes = WK_FLOATS,
                            .in = {{"x", 0, 0}, {"weight", 0, 0}, {"dy", 0, 0}},
                            .out = {{"dx", WK_SKIP, 0}, {"dweight", WK_SKIP, 0}, {"dbias", WK_SKIP, 0}},
                            .infer = infer_linear_backward,
                            .samples = linear_backward_samples,
                            .errors = linear_backward_errors},
    [OP_rms_norm_linear] =
        {.name = "rms_norm_linear",
         .summary = "linear(rms_norm(x + residual)), or silu_mul of it, and the sum",
         .dtypes = WK_FLOATS,
         .in = {{"x", 0, 0},
                {"residual", WK_OPTIONAL, 0},
                {"norm", 0, 0},
                {"weight", 0, 0},
                {"bias", WK_OPTIONAL, 0}},
         .out = {{"y", 0, 0}, {"sum", WK_SKIP, 0}},
         .params = WK_PARAM_LIST({"eps", WK_P_FLOAT, offsetof(wk_norm_linear_params, eps), "1e-5", NULL, 0},
                                 {"gated", WK_P_BOOL, offsetof(wk_norm_linear_params, gated), "0", NULL, 0}),
         .infer = infer_norm_linear,
         .samples = norm_linear_samples,
         .errors = norm_linear_errors},
    {0},
};

/* ---- the API ---- */

wk_tensor *wk_matmul(const wk_tensor *a, const wk_tensor *b)
{
    return wk_call_run1(&(wk_call){.op = &wk_ops_matmul[OP_matmul], .in = {a, b}});
}

wk_tensor *wk_linear(const wk_tensor *x, const wk_tensor *weight, const wk_tensor *bias, wk_activation act)
{
    wk_linear_params p = {act};
    return wk_call_run1(&(wk_call){.op = &wk_ops_matmul[OP_linear], .params = &p, .in = {x, weight, bias}});
}

wk_status wk_matmul_backward(const wk_tensor *a, const wk_tensor *b, const wk_tensor *dy, wk_tensor **da,
                             wk_tensor **db)
{
    return wk_call_run_into(&(wk_call){.op = &wk_ops_matmul[OP_matmul_backward], .in = {a, b, dy}},
                            (wk_tensor * *[]){da, db}, 2);
}

wk_status wk_linear_backward(const wk_tensor *x, const wk_tensor *weight, const wk_tensor *dy, wk_tensor **dx,
                             wk_tensor **dweight, wk_tensor **dbias)
{
    return wk_call_run_into(&(wk_call){.op = &wk_ops_matmul[OP_linear_backward], .in = {x, weight, dy}},
                            (wk_tensor * *[]){dx, dweight, dbias}, 3);
}

wk_tensor *wk_rms_norm_linear(const wk_tensor *x, const wk_tensor *residual, const wk_tensor *norm,
                              double eps, const wk_tensor *weight, const wk_tensor *bias, int gated,
                              wk_tensor **sum)
{
    wk_norm_linear_params p = {eps, gated != 0};
    wk_tensor *y;
    wk_call_run_into(&(wk_call){.op = &wk_ops_matmul[OP_rms_norm_linear],
                                .params = &p,
                                .in = {x, residual, norm, weight, bias}},
                     (wk_tensor * *[]){&y, sum}, 2);
    return y;
}
