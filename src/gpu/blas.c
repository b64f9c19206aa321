/* blas.c: matmul and linear in terms of the products that BLAS libraries know. */
#include "blas.h"
#include "act.h"
#include "copy.h"
#include "ops/act.h"
#include "ops/matmul.h"
#include "runtime.h"
#include "wick/matmul.h"

/* The last two dimensions as BLAS takes them: rows or columns one element apart. */
static bool blas_matrix(const wk_tensor *t, bool *turned, i64 *ld)
{
    i64 rows = t->shape[t->rank - 2], cols = t->shape[t->rank - 1];
    i64 rs = t->strides[t->rank - 2], cs = t->strides[t->rank - 1];
    if ((cs == 1 || cols == 1) && (rs >= cols || rows == 1)) {
        *turned = false;
        *ld = rows == 1 || rs < cols ? (cols > 0 ? cols : 1) : rs;
        return true;
    }
    if ((rs == 1 || rows == 1) && (cs >= rows || cols == 1)) {
        *turned = true;
        *ld = cols == 1 || cs < rows ? (rows > 0 ? rows : 1) : cs;
        return true;
    }
    return false;
}

static const wk_blas *blas_of(const wk_gpu *g)
{
    return g->driver->kind == WK_KIND_ROCM ? &wk_rocblas : &wk_cublas;
}

void wk_blas_detach(wk_stream *s)
{
    wk_gpu *g = s->gpu;
    if (!s->blas || s == g->stream)
        return;
    pthread_mutex_lock(&s->blas_lock);
    if (blas_of(g)->attach(g, s->blas, g->stream->handle) != WK_OK)
        wk_error_clear(); /* it is attached again before it is used */
    s->blas_on = NULL;
    pthread_mutex_unlock(&s->blas_lock);
}

static wk_status product_of(const wk_call *c, const wk_product *p)
{
    wk_gpu *g = wk_gpu_of(c->device);
    const wk_blas *blas = c->impl->data;
    wk_stream *s = wk_gpu_stream(g);
    int code = g->driver->enter(g->context);
    if (code)
        return wk_gpu_fail(g, code, c->op->name);
    pthread_mutex_lock(&s->blas_lock); /* a handle is for one thread at a time */
    wk_status status = s->blas ? WK_OK : blas->open(g, &s->blas);
    if (status == WK_OK && s->blas_on != s->handle) { /* new, or the record has got another stream since */
        status = blas->attach(g, s->blas, s->handle);
        s->blas_on = status == WK_OK ? s->handle : NULL;
    }
    if (status == WK_OK)
        status = (p->ends ? blas->product_to_end : blas->product)(g, s->blas, p);
    pthread_mutex_unlock(&s->blas_lock);
    return status;
}

/* Rows that lie one after the other, each with its elements side by side. */
static bool has_rows(const wk_tensor *t)
{
    return t->strides[1] <= 1 && (t->shape[0] == 1 || t->strides[0] >= t->shape[1]);
}

/* One b for the whole batch: a and y as tall matrices, one product. */
static void join_batch(wk_tensor *a, wk_tensor *b, wk_tensor *y)
{
    wk_tensor tall_a = *a, one = *b, tall_y = *y;
    wk_join_batch(&tall_a, &one, &tall_y);
    if (b->rank == 2 || one.rank > 2 || !has_rows(&tall_a) || !has_rows(&tall_y))
        return;
    *a = tall_a;
    *b = one;
    *y = tall_y;
}

/* Every product of the batch: the innermost leading dimension goes to the library, the others are a loop here. */
static wk_status run_batch(const wk_call *c, wk_product p, const wk_tensor *a, const wk_tensor *b,
                           const wk_tensor *y)
{
    int64_t shape[WK_MAX_RANK], strides[3][WK_MAX_RANK], rounds = 1;
    int lead = y->rank - 2;
    size_t bytes = wk_bytes(p.dtype);
    memcpy(shape, y->shape, sizeof shape);
    memcpy(strides[0], a->strides, sizeof strides[0]);
    memcpy(strides[1], b->strides, sizeof strides[0]);
    memcpy(strides[2], y->strides, sizeof strides[0]);
    int rank = wk_shape_coalesce(lead, shape, 3, strides);
    p.batch = rank ? shape[rank - 1] : 1;
    p.a_stride = rank ? strides[0][rank - 1] : 0;
    p.b_stride = rank ? strides[1][rank - 1] : 0;
    p.y_stride = rank ? strides[2][rank - 1] : 0;
    for (int d = 0; d + 1 < rank; d++)
        rounds *= shape[d];
    for (int64_t r = 0; r < rounds; r++) {
        int64_t at[3] = {0}, rest = r;
        for (int d = rank - 2; d >= 0; rest /= shape[d], d--) {
            for (int k = 0; k < 3; k++)
                at[k] += rest % shape[d] * strides[k][d];
        }
        wk_product one = p;
        one.a = (const char *)p.a + (size_t)at[0] * bytes;
        one.b = (const char *)p.b + (size_t)at[1] * bytes;
        one.y = (char *)p.y + (size_t)at[2] * wk_bytes(p.out);
        WK_TRY(product_of(c, &one));
    }
    return WK_OK;
}

/* Views a, b and packed y of one batch. p: what is added, and how it ends. */
static wk_status multiply(const wk_call *c, wk_tensor a, wk_tensor b, wk_tensor y, wk_product p)
{
    p.dtype = a.dtype;
    p.out = y.dtype;
    if (wk_count(&y) == 0)
        return WK_OK;
    join_batch(&a, &b, &y);
    p.m = y.shape[y.rank - 2];
    p.n = y.shape[y.rank - 1];
    p.k = a.shape[a.rank - 1];
    p.ldy = p.n;
    p.a = wk_ptr(&a);
    p.b = wk_ptr(&b);
    p.y = wk_ptr(&y);
    if (p.k == 0)
        return p.adds ? WK_OK : wk_gpu_zero(c, p.y, (size_t)wk_count(&y) * wk_bytes(y.dtype));
    blas_matrix(&a, &p.a_turned, &p.lda);
    blas_matrix(&b, &p.b_turned, &p.ldb);
    return run_batch(c, p, &a, &b, &y);
}

/* t itself where BLAS takes its layout, else a packed copy. */
static const wk_tensor *usable(const wk_tensor *t)
{
    bool turned;
    i64 ld;
    wk_tensor v = wk_tensor_local(t);
    if (t->rank == 1) { /* a row whose elements lie apart is a column */
        return t->strides[0] > 0 || t->shape[0] == 1 ? t : wk_tensor_packed(t);
    }
    return blas_matrix(&v, &turned, &ld) ? t : wk_tensor_packed(t);
}

static wk_status multiply_into(const wk_call *c, const wk_tensor *a, const wk_tensor *b, wk_tensor *y,
                               const wk_product *how)
{
    wk_matmul_shape s;
    a = usable(a);
    b = a ? usable(b) : NULL;
    if (!b)
        return wk_error_status();
    WK_TRY(wk_matmul_shapes(c, a, b, &s));
    return multiply(c, s.a, s.b, wk_matmul_result(y, &s, s.m, s.n), *how);
}

static const wk_product plain_product, adding_product = {.adds = true};

wk_status wk_blas_run_matmul(wk_call *c)
{
    return multiply_into(c, c->in[0], c->in[1], c->out[0], &plain_product);
}

/* ---- linear: the product, with bias, activation and what is added ---- */

/* y = x . weight^T, y += that, or with an end. */
static wk_status multiply_linear(const wk_call *c, wk_tensor *y, const wk_product *how)
{
    wk_tensor turned = wk_flipped(c->in[1]);
    const wk_tensor *weight = &turned;
    bool is_turned;
    i64 ld;
    if (!blas_matrix(&turned, &is_turned,
                     &ld)) { /* packed before it is turned: a view on the stack cannot be kept */
        const wk_tensor *packed = wk_tensor_packed(c->in[1]);
        if (!packed)
            return wk_error_status();
        turned.storage = packed->storage;
        turned.offset = packed->offset;
        turned.strides[0] = 1;
        turned.strides[1] = packed->shape[1];
    }
    return multiply_into(c, c->in[0], weight, y, how);
}

/* Before the product: y is the bias in every row, or z. */
static wk_status begin_with(const wk_call *c, const wk_tensor *bias, const wk_tensor *z, wk_tensor *y)
{
    if (z)
        return wk_gpu_copy(c, z, y);
    wk_tensor rows = wk_gpu_bias_over(bias, y, -1);
    return wk_gpu_copy(c, &rows, y);
}

/* All of it in the product itself; WK_ERR_UNSUPPORTED where the library has no such. What is rounded may be cut off at 0
 * after it. */
static wk_status multiply_to_end(const wk_call *c, const wk_tensor *bias, const wk_tensor *z, wk_act act,
                                 wk_tensor *y)
{
    const wk_blas *blas = c->impl->data;
    wk_product p = {.ends = true, .gelu = act.kind == WK_ACT_GELU};
    if (!blas->product_to_end || act.kind > WK_ACT_GELU || c->in[1]->shape[1] == 0)
        return WK_ERR_UNSUPPORTED;
    bias = bias ? wk_tensor_packed(bias) : NULL;
    z = z ? wk_tensor_packed(z) : NULL;
    if (wk_pending())
        return wk_error_status();
    p.bias = bias ? wk_ptr(bias) : NULL;
    p.z = z ? wk_ptr(z) : NULL;
    WK_TRY(multiply_linear(c, y, &p));
    return act.kind == WK_ACT_RELU ? wk_gpu_bias_act(c, y, NULL, NULL, -1, act, y) : WK_OK;
}

/* Elements of 16 bits are rounded once. What is only added can lie there before the product; an activation needs the
 * sum as it was, in f32. */
static wk_status run_linear(wk_call *c, const wk_tensor *z, wk_act act)
{
    wk_tensor *y = c->out[0];
    const wk_tensor *bias = c->in[2];
    bool narrow = wk_bytes(y->dtype) == 2, plain = act.kind == WK_ACT_NONE;
    if (plain && !bias && !z)
        return multiply_linear(c, y, &plain_product);
    if (narrow) {
        wk_status status = multiply_to_end(c, bias, z, act, y);
        if (status != WK_ERR_UNSUPPORTED)
            return status;
        wk_error_clear();
    }
    if (narrow && plain && !(bias && z)) {
        WK_TRY(begin_with(c, bias, z, y));
        return multiply_linear(c, y, &adding_product);
    }
    wk_tensor *sums = narrow ? wk_tensor_new(c->device, WK_F32, y->rank, y->shape) : y;
    if (!sums)
        return wk_error_status();
    WK_TRY(multiply_linear(c, sums, &plain_product));
    return wk_gpu_bias_act(c, sums, bias, z, -1, act, y);
}

wk_status wk_blas_run_linear(wk_call *c)
{
    return run_linear(c, NULL, (wk_act){(wk_activation)WK_PARAMS(c, wk_linear_params)->act, 0, 0});
}

wk_status wk_blas_run_linear_act(wk_call *c) { return run_linear(c, c->in[WK_LINEAR_ACT_Z], wk_act_of(c)); }

/* For one row the weights are only read, once; wick's kernel does that as fast as memory goes. */
static bool is_single_row(const wk_call *c)
{
    const wk_tensor *x = c->in[0], *w = c->in[1];
    i64 vec = 16 / (i64)wk_bytes(w->dtype);
    return wk_bytes(w->dtype) == 2 && wk_count(x) == x->shape[x->rank - 1] && x->strides[x->rank - 1] == 1 &&
           w->strides[1] == 1 && w->strides[0] % vec == 0 && w->shape[1] % vec == 0 && w->shape[0] > 1;
}

const char *wk_blas_refuse_linear(const wk_call *c)
{
    return is_single_row(c) ? "one row, which the kernel does as fast" : wk_blas_refuse(c);
}

const char *wk_blas_refuse(const wk_call *c)
{
    const wk_blas *blas = c->device->kind == WK_KIND_ROCM ? &wk_rocblas : &wk_cublas;
    if (wk_gpu_of(c->device)->driver->plans)
        return "a planning device has no libraries";
    for (int i = 0; i < 2; i++) {
        for (int d = 0; d < c->in[i]->rank; d++) {
            if (c->in[i]->shape[d] >= (i64)1 << 31 || c->in[i]->strides[d] >= (i64)1 << 31)
                return "a size or stride is beyond 2^31";
        }
    }
    return blas->missing(wk_gpu_of(c->device));
}
