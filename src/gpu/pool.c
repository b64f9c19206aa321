/* pool.c: pooling and its gradients on the GPU. */
#include "ops/pool.h"
#include "wick/ops.h"
#include "families.h"
#include "kernels/pool.h"
#include "planes.h"

static const wk_kernel pool_windows = {"pool", "pool_windows", "pool_args", 256, .types = 1, .ints = 2};
static const wk_kernel pool_pairs = {"pool", "pool_pairs", "pool_args", 256, .types = 1, .ints = 3};
static const wk_kernel pool_wide = {"pool", "pool_wide", "pool_args", 256, .types = 1, .ints = 2};
static const wk_kernel pool_grad = {"pool", "pool_grad", "pool_args", 256, .types = 1, .ints = 1};
static const wk_kernel pool_grad_blocks = {"pool", "pool_grad_blocks", "pool_args",
                                           256,    .types = 1,         .ints = 3};
static const wk_kernel pool_astray = {"pool", "pool_astray", "pool_args", 256, .types = 1};

typedef struct {
    wk_pool_shape s;
    bool max, global;
    pool_args a;
} plan;

/* ---- what kernels see ---- */

static pool_dim dim_of(const wk_pool_dim *d)
{
    return (pool_dim){.in = (i32)d->in,
                      .out = (i32)d->out,
                      .kernel = (i32)d->kernel,
                      .stride = (i32)d->stride,
                      .padding = (i32)d->padding,
                      .by_stride = wk_divisor_of(d->stride)};
}

static const char *refuse(const wk_call *c)
{
    wk_pool_shape s;
    if (wk_pool_shapes(c, &s) != WK_OK)
        return "sizes";
    const wk_pool_dim *dims[] = {&s.h, &s.w};
    for (int i = 0; i < 2; i++) {
        if (dims[i]->in + 2 * dims[i]->kernel + dims[i]->stride > INT32_MAX)
            return "windows of 2^31 elements and more";
    }
    if (s.h.in * s.w.in > INT32_MAX || s.h.out * s.w.out > INT32_MAX || s.planes > INT32_MAX)
        return "planes of 2^31 elements and more";
    return NULL;
}

/* All elements of each window count in a mean. */
static bool is_whole(const wk_pool_dim *d, bool exclude_pad)
{
    bool cut = (d->out - 1) * d->stride + d->kernel > d->in + 2 * d->padding;
    return !cut && !(exclude_pad && d->padding);
}

static wk_status make_plan(const wk_call *c, plan *p)
{
    const wk_pool_options *o = c->params;
    bool flat = strstr(c->op->name, "1d") != NULL;
    p->max = strstr(c->op->name, "max") != NULL;
    p->global = strncmp(c->op->name, "global", 6) == 0;
    WK_TRY(wk_pool_shapes(c, &p->s));
    pool_args *a = &p->a;
    a->h = dim_of(&p->s.h);
    a->w = dim_of(&p->s.w);
    a->walk.channels = wk_planes_channels(c->in[0], flat);
    a->exclude_pad = !p->global && o->exclude_pad;
    a->whole = is_whole(&p->s.h, a->exclude_pad) && is_whole(&p->s.w, a->exclude_pad);
    a->share = 1 / ((double)p->s.h.kernel * (double)p->s.w.kernel);
    a->first_nan = p->global;
    return WK_OK;
}

static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

/* Planes of high x wide items. */
static wk_status run_planes(const wk_call *c, plan *p, const wk_kernel *k, const wk_instance *instance,
                            int64_t high, int64_t wide, int lanes)
{
    return wk_planes_run(c, k, instance, &p->a, &p->a.walk, (int64_t[]){p->s.planes, high, wide}, lanes);
}

/* ---- forward ---- */

/* Many elements a window and few windows that share them: a wave reads them in order, a thread would hop. */
static bool is_wide(const plan *p)
{
    const wk_pool_dim *h = &p->s.h, *w = &p->s.w;
    int64_t area = h->kernel * w->kernel, windows = p->s.planes * h->out * w->out;
    return area >= 32 && area < INT32_MAX && (w->stride >= 8 || windows < 1 << 14);
}

/* Square windows of 2 or 3 at stride 2 in aligned rows, which two neighbours can share. */
static bool is_paired(const wk_call *c, const plan *p)
{
    const wk_pool_dim *h = &p->s.h, *w = &p->s.w;
    const plane_view *x = &p->a.x;
    bool square = h->kernel == w->kernel && h->stride == 2 && w->stride == 2 && h->padding == w->padding;
    bool shaped = p->max ? !p->a.indices.p && w->kernel - w->padding >= 2 && w->kernel <= 3 && w->padding <= 1
                         : w->kernel == 2 && w->padding == 0 && p->a.whole;
    return square && shaped && w->in % 4 == 0 && x->row % 4 == 0 && x->n % 4 == 0 && x->c % 4 == 0 &&
           (size_t)x->p % (4 * wk_bytes(c->dtype)) == 0;
}

static wk_status run_windows(const wk_call *c, plan *p)
{
    const wk_pool_dim *h = &p->s.h, *w = &p->s.w;
    int64_t area = h->kernel * w->kernel;
    unsigned char t = (unsigned char)c->dtype;
    if (p->global || is_wide(p)) {
        bool block = area >= 4096;
        p->a.walk.rows = 1;
        p->a.kernel_w = wk_divisor_of(w->kernel);
        return run_planes(c, p, &pool_wide, WK_INSTANCE(.t = {t}, .i = {p->max, block}), h->out, w->out,
                          block ? 256 : wk_gpu_of(c->device)->facts.wave);
    }
    if (is_paired(c, p)) {
        p->a.walk.rows = WK_POOL_PAIRS;
        return run_planes(c, p, &pool_pairs,
                          WK_INSTANCE(.t = {t}, .i = {p->max ? 2 : 0, (short)w->kernel, (short)w->padding}),
                          (h->out + WK_POOL_PAIRS - 1) / WK_POOL_PAIRS, (w->out + 1) / 2, 1);
    }
    int k = h->kernel == w->kernel && w->kernel <= 3 && w->kernel > 1 ? (int)w->kernel : 0;
    p->a.walk.rows = wk_planes_rows(p->s.planes * h->out * w->out, h->out);
    short fold = !p->max ? 0 : p->a.indices.p ? 1 : 2;
    return run_planes(c, p, &pool_windows, WK_INSTANCE(.t = {t}, .i = {fold, (short)k}),
                      (h->out + p->a.walk.rows - 1) / p->a.walk.rows, w->out, 1);
}

/* Few large planes: a reduction, which shares each among several blocks. */
static wk_status run_reduction(const wk_call *c, bool max)
{
    const int64_t dims[] = {-2, -1};
    wk_tensor *y = max ? wk_max(c->in[0], 2, dims, 1, NULL) : wk_mean(c->in[0], 2, dims, 1);
    return y ? wk_copy_into(c->out[0], y) : wk_error_status();
}

static wk_status run_forward(wk_call *c)
{
    enum { LARGE_PLANE = 1 << 16 };
    plan p = {0};
    WK_TRY(make_plan(c, &p));
    if (p.s.planes == 0)
        return WK_OK;
    if (p.global && p.s.h.in * p.s.w.in >= LARGE_PLANE && p.s.planes < wk_gpu_of(c->device)->facts.units)
        return run_reduction(c, p.max);
    WK_TRY(wk_planes_view(c->in[0], strstr(c->op->name, "1d"), &p.a.x));
    p.a.y.p = wk_ptr(c->out[0]);
    if (p.max && c->out[1])
        p.a.indices.p = wk_ptr(c->out[1]);
    return run_windows(c, &p);
}

/* ---- gradients ---- */

/* Where the largest of each window is: given, or found again. */
static wk_status find_indices(const wk_call *c, plan *p, bool flat)
{
    const wk_tensor *dy = c->in[1], *given = p->global ? NULL : c->in[2];
    if (given) {
        p->a.report = wk_report_of(c, 2);
        return wk_planes_view(given, flat, &p->a.indices);
    }
    wk_tensor *made = wk_tensor_new(c->device, WK_U32, dy->rank, dy->shape);
    plan forward = *p;
    if (!made)
        return wk_error_status();
    WK_TRY(wk_planes_view(c->in[0], flat, &forward.a.x));
    WK_TRY(wk_planes_view(made, flat, &p->a.indices));
    forward.a.indices = p->a.indices;
    return run_windows(c, &forward);
}

/* A flag for given indices that point out of their windows. */
static wk_status make_flag(const wk_call *c, plan *p)
{
    wk_tensor *flag = wk_tensor_new(c->device, WK_I32, 0, NULL);
    if (!flag)
        return wk_error_status();
    p->a.astray = wk_ptr(flag);
    return wk_gpu_zero(c, p->a.astray, sizeof *p->a.astray);
}

static wk_status run_gather(const wk_call *c, plan *p)
{
    const wk_pool_dim *h = &p->s.h, *w = &p->s.w;
    unsigned char t = (unsigned char)c->dtype;
    int64_t stride = w->stride, back = (larger(h->kernel, w->kernel) - 1) / stride;
    if (h->stride == stride && stride <= 2 && back <= (stride == 1 ? 2 : 1)) {
        wk_instance instance = {.t = {t}, .i = {p->max, (short)stride, (short)back}};
        p->a.walk.rows = 1;
        return run_planes(c, p, &pool_grad_blocks, &instance, (h->in - 1 + h->padding) / stride + 1,
                          (w->in - 1 + w->padding) / stride + 1, 1);
    }
    p->a.walk.rows = wk_planes_rows(p->s.planes * h->in * w->in, h->in);
    return run_planes(c, p, &pool_grad, WK_INSTANCE(.t = {t}, .i = {p->max}),
                      (h->in + p->a.walk.rows - 1) / p->a.walk.rows, w->in, 1);
}

static wk_status run_backward(wk_call *c)
{
    plan p = {0};
    bool flat = strstr(c->op->name, "1d"), given = !strstr(c->op->name, "global") && c->in[2];
    WK_TRY(make_plan(c, &p));
    if (p.s.planes == 0)
        return WK_OK;
    if (p.max)
        WK_TRY(find_indices(c, &p, flat));
    if (given)
        WK_TRY(make_flag(c, &p));
    WK_TRY(wk_planes_view(c->in[1], flat, &p.a.y));
    p.a.x.p = wk_ptr(c->out[0]);
    WK_TRY(run_gather(c, &p));
    p.a.walk.rows = 1;
    unsigned char t = (unsigned char)c->dtype;
    return given ? run_planes(c, &p, &pool_astray, WK_INSTANCE(.t = {t}), p.s.h.in, p.s.w.in, 1) : WK_OK;
}

#define ROW(name) \
    {#name, "kernel", run_forward, refuse, NULL}, { #name "_backward", "kernel", run_backward, refuse, NULL }

const wk_impl wk_gpu_impls_pool[] = {
    ROW(max_pool1d),
    ROW(max_pool2d),
    ROW(avg_pool1d),
    ROW(avg_pool2d),
    ROW(global_max_pool2d),
    ROW(global_avg_pool2d),
    {0},
};
