/* resample.c: upsampling and its gradients on the GPU. */
#include "ops/resample.h"
#include "families.h"
#include "kernels/resample.h"
#include "planes.h"

static const wk_kernel resample = {"resample", "resample", "resample_args", 256, .types = 1, .ints = 2};
static const wk_kernel resample_lists = {"resample", "resample_lists", "resample_args", 256, .types = 1};
static const wk_kernel resample_grad = {"resample", "resample_grad", "resample_args",
                                        256,        .types = 1,      .ints = 1};

typedef struct {
    wk_upsample_shape s;
    resample_args a;
} plan;

static bool is_linear(const wk_call *c) { return strstr(c->op->name, "bilinear") != NULL; }

static const char *refuse(const wk_call *c)
{
    wk_upsample_shape s;
    if (wk_upsample_shapes(c, &s) != WK_OK)
        return "sizes";
    if ((double)s.h.in * (double)s.w.in > INT32_MAX || (double)s.h.out * (double)s.w.out > INT32_MAX ||
        s.planes > INT32_MAX)
        return "planes of 2^31 elements and more";
    return NULL;
}

static resample_dim dim_of(const wk_upsample_dim *d)
{
    return (resample_dim){.in = (i32)d->in,
                          .out = (i32)d->out,
                          .small = d->in * d->out <= INT32_MAX,
                          .by_out = wk_divisor_of(d->out),
                          .step = d->step};
}

static wk_status make_plan(const wk_call *c, plan *p)
{
    const wk_tensor *t = c->in[0];
    resample_args *a = &p->a;
    WK_TRY(wk_upsample_shapes(c, &p->s));
    WK_TRY(wk_planes_view(t, t->rank == 3, &a->from));
    a->to = wk_ptr(c->out[0]);
    a->h = dim_of(&p->s.h);
    a->w = dim_of(&p->s.w);
    a->walk.channels = wk_planes_channels(t, t->rank == 3);
    a->align_corners = p->s.align_corners;
    a->linear = is_linear(c);
    return WK_OK;
}

/* Planes of high x wide items. */
static wk_status run_planes(const wk_call *c, plan *p, const wk_kernel *k, const wk_instance *instance,
                            int64_t high, int64_t wide, int lanes)
{
    return wk_planes_run(c, k, instance, &p->a, &p->a.walk, (int64_t[]){p->s.planes, high, wide}, lanes);
}

/* ---- forward ---- */

/* The dtype that stands for all of its size. */
static wk_dtype by_size(size_t bytes)
{
    return bytes == 1 ? WK_U8 : bytes == 2 ? WK_I16 : bytes == 4 ? WK_U32 : WK_I64;
}

static wk_status run_upsample(wk_call *c)
{
    plan p = {0};
    if (wk_count(c->out[0]) == 0)
        return WK_OK;
    WK_TRY(make_plan(c, &p));
    int64_t high = p.s.h.out, wide = p.s.w.out;
    wk_dtype t = p.a.linear ? c->dtype : by_size(wk_bytes(c->dtype));
    int vec = (int)(16 / wk_bytes(t));
    vec = vec > 4 && p.a.linear ? 4 : vec > 8 ? 8 : vec;
    if (wide % vec || (size_t)p.a.to % ((size_t)vec * wk_bytes(t)))
        vec = 1;
    p.a.walk.rows = wk_planes_rows(p.s.planes * high * wide / vec, high);
    wk_instance instance = {.t = {(unsigned char)t}, .i = {(short)p.a.linear, (short)vec}};
    return run_planes(c, &p, &resample, &instance, (high + p.a.walk.rows - 1) / p.a.walk.rows, wide / vec, 1);
}

/* ---- gradients ---- */

/* Memory for a dimension's lists. */
static wk_status make_lists(const wk_call *c, resample_dim *d)
{
    int64_t in = (int64_t)d->in + 1, out = d->out;
    wk_tensor *lo = wk_tensor_new(c->device, WK_I32, 1, &out),
              *first = wk_tensor_new(c->device, WK_I32, 1, &in);
    wk_tensor *shares = wk_tensor_new(c->device, wk_stat_dtype(c->dtype), 2, (int64_t[]){2, out});
    if (!lo || !first || !shares)
        return wk_error_status();
    d->lo = wk_ptr(lo);
    d->first = wk_ptr(first);
    d->left = wk_ptr(shares);
    d->right = (char *)d->left + (size_t)out * wk_bytes(shares->dtype);
    return WK_OK;
}

static int64_t most_of(const resample_dim *d) { return d->in + 1 > d->out ? d->in + 1 : d->out; }

static wk_status run_backward(wk_call *c)
{
    plan p = {0};
    unsigned char t = (unsigned char)c->dtype;
    if (wk_count(c->out[0]) == 0)
        return WK_OK;
    WK_TRY(make_plan(c, &p));
    WK_TRY(make_lists(c, &p.a.h));
    WK_TRY(make_lists(c, &p.a.w));
    int64_t longest = most_of(&p.a.h) > most_of(&p.a.w) ? most_of(&p.a.h) : most_of(&p.a.w);
    p.a.longest = (u32)longest;
    wk_grid grid = {.x = wk_blocks(longest, 256, WK_GRID_MAX)};
    WK_TRY(WK_LAUNCH(c, &resample_lists, WK_INSTANCE(.t = {t}), grid, p.a));
    p.a.walk.rows = 1;
    bool wide = p.s.w.out / p.s.w.in >= 16;
    return run_planes(c, &p, &resample_grad, WK_INSTANCE(.t = {t}, .i = {wide}), p.s.h.in, p.s.w.in,
                      wide ? wk_gpu_of(c->device)->facts.wave : 1);
}

#define ROW(name) \
    {#name, "kernel", run_upsample, refuse, NULL}, { #name "_backward", "kernel", run_backward, refuse, NULL }

const wk_impl wk_gpu_impls_resample[] = {
    ROW(upsample_nearest1d),
    ROW(upsample_nearest2d),
    ROW(upsample_bilinear2d),
    {0},
};
