/* miopen_pool.c: pooling and its gradient by MIOpen. Planes are channels of one image. */
#include "dnn.h"
#include "gpu/families.h"
#include "ops/pool.h"

typedef struct {
    wk_pool_shape s;
    miopenPoolingMode_t mode;
    const wk_tensor *x, *dy;
    wk_tensor *out; /* y or dx */
} work;

static bool is_global(const wk_call *c) { return strncmp(c->op->name, "global", 6) == 0; }

static const char *refuse(const wk_call *c)
{
    wk_pool_shape s;
    if (strstr(c->op->name, "max_pool"))
        return "MIOpen's maximum passes over NaN";
    if (c->dtype == WK_BF16 && !c->in[1])
        return "MIOpen has no pooling of bf16"; /* asked for one, it prints */
    const char *why = wk_dnn_refuse(c, WK_DNN_REALS);
    if (why)
        return why;
    if (wk_pool_shapes(c, &s) != WK_OK)
        return "sizes";
    const wk_pool_options *p = c->params;
    if (!is_global(c) && !p->exclude_pad && (wk_pool_overhangs(&s.h) || wk_pool_overhangs(&s.w)))
        return "MIOpen counts what lies beyond the padding in a mean";
    return NULL;
}

static miopenStatus_t destroy(wk_dnn_plan *p) { return wk_miopen.miopenDestroyPoolingDescriptor(p->op); }

static miopenStatus_t set_up(miopenHandle_t h, wk_dnn_plan *p, const void *data)
{
    const work *w = data;
    const wk_pool_shape *s = &w->s;
    int window[] = {(int)s->h.kernel, (int)s->w.kernel}, padding[] = {(int)s->h.padding, (int)s->w.padding},
        stride[] = {(int)s->h.stride, (int)s->w.stride};
    miopenPoolingDescriptor_t pool;
    (void)h;
    WK_DNN_TRY(wk_dnn_tensor(p, 0, w->x->dtype, 4, (int64_t[]){1, s->planes, s->h.in, s->w.in}));
    WK_DNN_TRY(wk_dnn_tensor(p, 1, w->x->dtype, 4, (int64_t[]){1, s->planes, s->h.out, s->w.out}));
    WK_DNN_TRY(wk_miopen.miopenCreatePoolingDescriptor(&pool));
    p->op = pool;
    p->destroy = destroy;
    return wk_miopen.miopenSetNdPoolingDescriptor(pool, w->mode, 2, window, padding, stride);
}

/* Of a mean, the gradient looks at neither x nor y; where a pointer is due, any will do. */
static miopenStatus_t queue(miopenHandle_t h, const wk_dnn_plan *p, void *workspace, const void *data)
{
    const work *w = data;
    miopenTensorDescriptor_t x = p->tensor[0], y = p->tensor[1];
    if (!w->dy)
        return wk_miopen.miopenPoolingForward(h, p->op, &wk_dnn_one, x, wk_ptr(w->x), &wk_dnn_zero, y,
                                              wk_ptr(w->out), false, workspace, 0);
    return wk_miopen.miopenPoolingBackward(h, p->op, &wk_dnn_one, y, wk_ptr(w->dy), y, wk_ptr(w->dy), x,
                                           wk_ptr(w->x), &wk_dnn_zero, x, wk_ptr(w->out), workspace);
}

static void fill_key(wk_dnn_call *d, const work *w)
{
    wk_key_add(&d->key, w->mode);
    wk_key_add(&d->key, w->s.planes);
    const wk_pool_dim *dims[] = {&w->s.h, &w->s.w};
    for (int i = 0; i < 2; i++)
        wk_key_shape(
            &d->key, 5,
            (int64_t[]){dims[i]->in, dims[i]->out, dims[i]->kernel, dims[i]->stride, dims[i]->padding});
}

static wk_status run(wk_call *c)
{
    const wk_pool_options *params = c->params;
    bool padded = !is_global(c) && !params->exclude_pad;
    work w = {.out = c->out[0], .x = c->in[0]};
    WK_TRY(wk_pool_shapes(c, &w.s));
    w.mode = padded ? miopenPoolingAverageInclusive : miopenPoolingAverage;
    if (c->in[1])
        w.dy = wk_tensor_packed(c->in[1]);
    else
        w.x = wk_tensor_packed(c->in[0]);
    if (wk_pending())
        return wk_error_status();
    wk_dnn_call d = {.call = c, .set_up = set_up, .run = queue, .data = &w};
    fill_key(&d, &w);
    return wk_dnn_run(&d);
}

#define ROWS(name) {#name, "miopen", run, refuse, NULL}, {#name "_backward", "miopen", run, refuse, NULL},

const wk_impl wk_rocm_impls_pool[] = {
    /* clang-format off */
    ROWS(max_pool1d) ROWS(max_pool2d) ROWS(avg_pool1d) ROWS(avg_pool2d)
    ROWS(global_max_pool2d) ROWS(global_avg_pool2d)
    /* clang-format on */
    {0},
};
