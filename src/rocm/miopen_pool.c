/* miopen_pool.c: pooling and its gradient by MIOpen. Planes are channels of one image.
 *
 * MIOpen's maximum passes over NaN, and starts from the lowest number instead of -inf: which windows hold NaN or nothing
 * else than the lowest, and where, is found by pooling once more, of numbers that stand for such elements. */
#include <stdio.h>
#include "dnn.h"
#include "gpu/families.h"
#include "gpu/vendor_ops.h"
#include "wick/ops.h"

typedef struct {
    wk_pool_shape s;
    miopenPoolingMode_t mode;
    wk_dtype dtype;
    const wk_tensor *x, *dy;
    wk_tensor *out;           /* y or dx */
    const wk_tensor *indices; /* of a maximum: written or, in the gradient, read; NULL: not wanted */
} work;

/* Planes of more elements have places that the numbers of the second pooling cannot hold. */
enum { LARGEST_PLANE = 1 << 22 };

static bool is_global(const wk_call *c) { return strncmp(c->op->name, "global", 6) == 0; }
static bool is_max(const wk_call *c) { return strstr(c->op->name, "max_pool") != NULL; }

static const char *refuse_max(const wk_call *c, const wk_pool_shape *s)
{
    if (s->h.in * s->w.in > LARGEST_PLANE)
        return "MIOpen's maximum passes over NaN, and the planes are too large to mend that";
    if (!is_global(c) && c->in[1] && c->in[2])
        return "MIOpen drops the gradients that indices send out of their windows";
    return NULL;
}

static const char *refuse(const wk_call *c)
{
    wk_pool_shape s;
    if (c->dtype == WK_BF16 && (is_max(c) || !c->in[1]))
        return "MIOpen has no pooling of bf16"; /* asked for one, it prints */
    const char *why = wk_dnn_refuse(c, WK_DNN_REALS);
    if (why)
        return why;
    if (wk_pool_shapes(c, &s) != WK_OK)
        return "sizes";
    if (is_max(c))
        return refuse_max(c, &s);
    const wk_pool_options *p = c->params;
    if (!is_global(c) && !p->exclude_pad && (wk_pool_overhangs(&s.h) || wk_pool_overhangs(&s.w)))
        return "MIOpen counts what lies beyond the padding in a mean";
    return NULL;
}

/* ---- one pooling ---- */

static miopenStatus_t destroy(wk_dnn_plan *p) { return wk_miopen.miopenDestroyPoolingDescriptor(p->op); }

static miopenStatus_t set_up(miopenHandle_t h, wk_dnn_plan *p, const void *data)
{
    const work *w = data;
    const wk_pool_shape *s = &w->s;
    wk_vendor_window v = wk_vendor_window_of(s);
    miopenPoolingDescriptor_t pool;
    (void)h;
    WK_DNN_TRY(wk_dnn_tensor(p, 0, w->dtype, 4, (int64_t[]){1, s->planes, s->h.in, s->w.in}));
    WK_DNN_TRY(wk_dnn_tensor(p, 1, w->dtype, 4, (int64_t[]){1, s->planes, s->h.out, s->w.out}));
    WK_DNN_TRY(wk_miopen.miopenCreatePoolingDescriptor(&pool));
    p->op = pool;
    p->destroy = destroy;
    WK_DNN_TRY(wk_miopen.miopenSetNdPoolingDescriptor(pool, w->mode, 2, v.size, v.padding, v.stride));
    WK_DNN_TRY(
        wk_miopen.miopenSetPoolingIndexType(pool, miopenIndexUint32)); /* after the rest, which resets it */
    return wk_miopen.miopenSetPoolingWorkSpaceIndexMode(pool, miopenPoolingWorkspaceIndexImage);
}

/* The gradient looks at neither x nor y; where a pointer is due, any will do. What MIOpen calls a workspace here are the
 * indices. */
static miopenStatus_t queue(miopenHandle_t h, const wk_dnn_plan *p, void *workspace, const void *data)
{
    const work *w = data;
    miopenTensorDescriptor_t x = p->tensor[0], y = p->tensor[1];
    void *indices = w->indices ? wk_ptr(w->indices) : NULL;
    (void)workspace;
    if (!w->dy)
        return wk_miopen.miopenPoolingForward(h, p->op, &wk_dnn_one, x, wk_ptr(w->x), &wk_dnn_zero, y,
                                              wk_ptr(w->out), indices != NULL, indices,
                                              indices ? (size_t)wk_count(w->indices) * sizeof(uint32_t) : 0);
    return wk_miopen.miopenPoolingBackward(h, p->op, &wk_dnn_one, y, wk_ptr(w->dy), y, wk_ptr(w->dy), x,
                                           wk_ptr(w->x), &wk_dnn_zero, x, wk_ptr(w->out), indices);
}

static wk_status pool(const wk_call *c, const work *w)
{
    if (wk_pending())
        return wk_error_status();
    wk_dnn_call d = {.call = c, .set_up = set_up, .run = queue, .data = w};
    wk_key_shape(&d.key, 2, (int64_t[]){w->mode, w->dtype});
    wk_vendor_pool_key(&d.key, &w->s);
    return wk_dnn_run(&d);
}

static wk_status run_mean(wk_call *c)
{
    const wk_pool_options *params = c->params;
    bool padded = !is_global(c) && !params->exclude_pad;
    work w = {.out = c->out[0], .x = c->in[0], .dtype = c->dtype};
    WK_TRY(wk_pool_shapes(c, &w.s));
    w.mode = padded ? miopenPoolingAverageInclusive : miopenPoolingAverage;
    if (c->in[1])
        w.dy = wk_tensor_packed(c->in[1]);
    else
        w.x = wk_tensor_packed(c->in[0]);
    return pool(c, &w);
}

/* ---- maxima ---- */

/* What stands for an element at place p: positive for NaN, so that the one that counts wins (the last of a window, the
 * first of a whole plane); negative for the lowest number and, below FLOOR, for -inf, so that the first wins; else 0. */
#define FLOOR "-8388608"
static const char key_of[] =
    "where(x != x, %d * p + %d, where(x == -inf, " FLOOR " - 1 - p, where(x <= %.17g, -1 - p, 0)))",
                  value_of[] = "where(k > 0, inf - inf, where(k < " FLOOR ", -inf, y))",
                  place_of[] = "where(k > 0, (k - %d) * %d, where(k < " FLOOR ", " FLOOR
                               " - 1 - k, where(k < 0, -1 - k, i)))";

static wk_tensor *evaluate(const char *text, const wk_tensor *a, const wk_tensor *b)
{
    wk_expr *e = wk_expr_compile(text);
    wk_tensor *y = wk_expr_run(e, (const wk_tensor *[]){a, b}, 2);
    wk_expr_drop(e);
    return y;
}

typedef struct {
    const wk_call *call;
    wk_pool_shape s;
    const wk_tensor *x; /* [planes, h, w] */
    int sign, last;     /* NaN at place p is sign p + last */
} maxima;

/* A pooling of planes; the results are [planes, h, w]. */
static wk_tensor *pool_planes(const maxima *m, const wk_tensor *x, wk_tensor **indices)
{
    const wk_call *c = m->call;
    const int64_t shape[] = {m->s.planes, m->s.h.out, m->s.w.out};
    work w = {.s = m->s, .mode = miopenPoolingMax, .x = x};
    if (!x)
        return NULL;
    w.dtype = x->dtype;
    w.out = wk_tensor_new(c->device, x->dtype, 3, shape);
    if (indices)
        w.indices = *indices = wk_tensor_new(c->device, WK_U32, 3, shape);
    return pool(c, &w) == WK_OK ? w.out : NULL;
}

/* The pooled numbers that stand for what MIOpen's maximum gets wrong. */
static wk_tensor *pool_keys(const maxima *m)
{
    int64_t h = m->s.h.in, w = m->s.w.in;
    char text[200];
    double lowest = m->x->dtype == WK_F16 ? -65504 : -0x1.fffffep127;
    snprintf(text, sizeof text, key_of, m->sign, m->last, lowest);
    wk_tensor *places = wk_arange(m->call->device, WK_F32, 0, (double)(h * w), 1);
    wk_tensor *keys = evaluate(text, wk_cast(m->x, WK_F32), wk_reshape(places, 2, (int64_t[]){h, w}));
    return pool_planes(m, keys, NULL);
}

/* y where that is wanted, [planes, h, w], and *indices likewise. */
static wk_tensor *find_maxima(const wk_call *c, wk_tensor **indices)
{
    maxima m = {.call = c, .sign = 1, .last = 1};
    wk_tensor *places = NULL;
    char text[200];
    if (wk_pool_shapes(c, &m.s) != WK_OK)
        return NULL;
    if (is_global(c)) {
        m.sign = -1;
        m.last = (int)(m.s.h.in * m.s.w.in);
    }
    m.x = wk_reshape(wk_tensor_packed(c->in[0]), 3, (int64_t[]){m.s.planes, m.s.h.in, m.s.w.in});
    wk_tensor *y = pool_planes(&m, m.x, indices ? &places : NULL), *keys = y ? pool_keys(&m) : NULL;
    if (!keys)
        return NULL;
    if (indices) {
        snprintf(text, sizeof text, place_of, m.last, m.sign);
        *indices = wk_cast(evaluate(text, keys, wk_cast(places, WK_F32)), WK_U32);
    }
    return wk_cast(evaluate(value_of, keys, wk_cast(y, WK_F32)), c->dtype);
}

static wk_status copy_planes(wk_tensor *out, const wk_tensor *planes)
{
    return wk_copy_into(out, planes ? wk_reshape(planes, out->rank, out->shape) : NULL);
}

static wk_status run_max(wk_call *c)
{
    wk_tensor *indices = NULL, *to = is_global(c) ? NULL : c->out[1];
    wk_tensor *y = find_maxima(c, to ? &indices : NULL);
    if (!y || (to && !indices))
        return wk_error_status();
    WK_TRY(copy_planes(c->out[0], y));
    return to ? copy_planes(to, indices) : WK_OK;
}

static wk_status run_max_backward(wk_call *c)
{
    work w = {.mode = miopenPoolingMax, .dtype = c->dtype, .x = c->in[0], .out = c->out[0]};
    wk_tensor *indices = NULL;
    WK_TRY(wk_pool_shapes(c, &w.s));
    if (!find_maxima(c, &indices) || !indices)
        return wk_error_status();
    w.indices = indices;
    w.dy = wk_tensor_packed(c->in[1]);
    return pool(c, &w);
}

#define ROWS(name, forward, backward) \
    {#name, "miopen", forward, refuse, NULL}, {#name "_backward", "miopen", backward, refuse, NULL},

const wk_impl wk_rocm_impls_pool[] = {
    /* clang-format off */
    ROWS(max_pool1d, run_max, run_max_backward) ROWS(max_pool2d, run_max, run_max_backward)
    ROWS(avg_pool1d, run_mean, run_mean) ROWS(avg_pool2d, run_mean, run_mean)
    ROWS(global_max_pool2d, run_max, run_max_backward) ROWS(global_avg_pool2d, run_mean, run_mean)
    /* clang-format on */
    {0},
};
