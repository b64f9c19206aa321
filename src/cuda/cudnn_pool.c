/* cudnn_pool.c: means of windows by cuDNN, and their gradient. Planes are channels of one image. Its maximum is left
 * alone: where all of a window is -inf it gives the lowest finite number. So is the gradient of that: it goes by what equals
 * the maximum, and which of several equal ones gets dy is not promised, where wick's first one does. */
#include "cudnn_plan.h"
#include "gpu/families.h"
#include "gpu/vendor_ops.h"

typedef struct {
    wk_pool_shape s;
    cudnnPoolingMode_t mode;
    const wk_tensor *x, *dy;
    wk_tensor *out; /* y or dx */
} work;

static bool is_global(const wk_call *c) { return strncmp(c->op->name, "global", 6) == 0; }

static const char *refuse(const wk_call *c)
{
    wk_pool_shape s;
    const char *why = wk_cudnn_refuse(c, WK_FLOATS);
    if (why)
        return why;
    if (wk_pool_shapes(c, &s) != WK_OK)
        return "sizes";
    return wk_pool_overhangs(&s.h) || wk_pool_overhangs(&s.w) ? "cuDNN's windows end with the padding" : NULL;
}

static void destroy(wk_cudnn_plan *p) { wk_cudnn.cudnnDestroyPoolingDescriptor(p->op); }

static void set_up(cudnnHandle_t h, wk_cudnn_plan *p, const void *data)
{
    const work *w = data;
    const wk_pool_shape *s = &w->s;
    wk_vendor_window v = wk_vendor_window_of(s);
    cudnnPoolingDescriptor_t pool = NULL;
    (void)h;
    wk_cudnn_packed(p, 0, w->x->dtype, 4, (int64_t[]){1, s->planes, s->h.in, s->w.in});
    wk_cudnn_packed(p, 1, w->x->dtype, 4, (int64_t[]){1, s->planes, s->h.out, s->w.out});
    if (!wk_cudnn_ok(p, wk_cudnn.cudnnCreatePoolingDescriptor(&pool), "the window"))
        return;
    p->op = pool;
    p->destroy = destroy;
    wk_cudnn_ok(p,
                wk_cudnn.cudnnSetPoolingNdDescriptor(pool, w->mode, CUDNN_PROPAGATE_NAN, 2, v.size, v.padding,
                                                     v.stride),
                "the window");
}

/* Of a mean, the gradient looks at neither x nor y; where a pointer is due, any will do. */
static cudnnStatus_t queue(cudnnHandle_t h, const wk_cudnn_plan *p, void *workspace, const void *data)
{
    const work *w = data;
    cudnnTensorDescriptor_t x = p->tensor[0], y = p->tensor[1];
    const void *one = wk_cudnn_factor(w->x->dtype, true), *zero = wk_cudnn_factor(w->x->dtype, false);
    (void)workspace;
    if (!w->dy)
        return wk_cudnn.cudnnPoolingForward(h, p->op, one, x, wk_ptr(w->x), zero, y, wk_ptr(w->out));
    return wk_cudnn.cudnnPoolingBackward(h, p->op, one, y, wk_ptr(w->dy), y, wk_ptr(w->dy), x, wk_ptr(w->x),
                                         zero, x, wk_ptr(w->out));
}

static wk_status run(wk_call *c)
{
    const wk_pool_options *params = c->params;
    bool padded = !is_global(c) && !params->exclude_pad;
    work w = {.out = c->out[0], .x = c->in[0]};
    WK_TRY(wk_pool_shapes(c, &w.s));
    w.mode =
        padded ? CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING : CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING;
    if (c->in[1])
        w.dy = wk_tensor_packed(c->in[1]);
    else
        w.x = wk_tensor_packed(c->in[0]);
    if (wk_pending())
        return wk_error_status();
    wk_cudnn_call d = {.call = c, .set_up = set_up, .run = queue, .data = &w};
    wk_key_add(&d.key, w.mode);
    wk_vendor_pool_key(&d.key, &w.s);
    return wk_cudnn_run(&d);
}

#define ROWS(name) {#name, "cudnn", run, refuse, NULL}, {#name "_backward", "cudnn", run, refuse, NULL},

const wk_impl wk_cuda_impls_pool[] = {
    /* clang-format off */
    ROWS(avg_pool1d) ROWS(avg_pool2d) ROWS(global_avg_pool2d)
    /* clang-format on */
    {0},
};
