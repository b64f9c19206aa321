/* batch_norm.c: batch norm and its gradient on the GPU: x is [n, c, inner]. Long planes are summed plane by plane,
 * short ones (a few elements of a channel between those of the next) down the columns of [n, c * inner]. */
#include "norm.h"
#include "ops/act.h"

enum { SHORT = 8 };

typedef struct {
    wk_batch_shape s;
    norm_planes_args a;
    norm_finish_args f;
} plan;

/* The call's inputs from `first` on packed, in place of those given. */
static wk_status pack_inputs(wk_call *c, int first)
{
    for (int i = first; i < 5; i++) {
        if (c->in[i] && !(c->in[i] = wk_tensor_packed(c->in[i])))
            return wk_error_status();
    }
    return WK_OK;
}

static void make_plan(const wk_call *c, const wk_tensor *dy, wk_tensor *y, plan *p)
{
    const wk_norm_params *o = c->params;
    *p = (plan){.s = wk_batch_shape_of(c->in[0], o->mode)};
    p->a = (norm_planes_args){.x = wk_ptr(c->in[0]),
                              .dy = wk_ptr_or_null(dy),
                              .y = y ? wk_ptr(y) : NULL,
                              .inner = p->s.inner,
                              .channels = p->s.c,
                              .count = wk_count(c->in[0]),
                              .centred = 1,
                              .eps = o->eps};
    p->f = (norm_finish_args){.x = p->a.x,
                              .families = p->s.c,
                              .origin_step = p->s.inner,
                              .count = (double)(p->s.n * p->s.inner),
                              .eps = o->eps,
                              .momentum = o->momentum};
}

static wk_status measure(const wk_call *c, plan *p, int sums)
{
    wk_tensor *numbers = wk_tensor_new(c->device, wk_stat_dtype(c->dtype), 2, (int64_t[]){p->s.c, 4});
    if (!numbers)
        return wk_error_status();
    p->a.numbers = p->f.numbers = wk_ptr(numbers);
    i64 columns = p->s.c * p->s.inner;
    if (p->a.count == 0) /* statistics of nothing */
        return WK_OK;
    if (p->s.inner < SHORT && columns < (i64)1 << 31) {
        norm_columns_args a = {.x = p->a.x,
                               .dy = p->a.dy,
                               .mean = p->a.mean,
                               .n_rows = p->s.n,
                               .columns = columns,
                               .by_inner = wk_divisor_of(p->s.inner)};
        WK_TRY(wk_columns_measure(c, &a, sums, &p->f.outer));
        p->f.parts = a.parts;
        p->f.units = p->f.outer * columns;
        p->f.each = p->s.inner;
        return WK_OK;
    }
    WK_TRY(wk_planes_measure(c, &p->a, p->s.n * p->s.c, sums));
    p->f.parts = p->a.parts;
    p->f.units = p->a.units;
    p->f.outer = p->s.n;
    p->f.each = p->a.chunks;
    return WK_OK;
}

static void *target(wk_tensor *t) { return t ? wk_ptr(t) : NULL; }

wk_status wk_gpu_batch_norm_train(wk_call *c)
{
    plan p;
    WK_TRY(pack_inputs(c, 0));
    make_plan(c, NULL, c->out[0], &p);
    WK_TRY(measure(c, &p, WK_SUMS_X));
    p.f.weight = wk_ptr_or_null(c->in[1]);
    p.f.bias = wk_ptr_or_null(c->in[2]);
    p.f.running_mean = wk_ptr_or_null(c->in[3]);
    p.f.running_var = wk_ptr_or_null(c->in[4]);
    p.f.new_mean = target(c->out[1]);
    p.f.new_var = target(c->out[2]);
    p.f.save_mean = target(c->out[3]);
    p.f.save_invstd = target(c->out[4]);
    WK_TRY(wk_norm_finish(c, &p.f, WK_FINISH_TRAIN));
    return wk_planes_apply(c, &p.a);
}

/* One kernel where a block holds a channel. done: whether it does. */
static wk_status backward_held(const wk_call *c, const plan *p, bool *done)
{
    static const wk_kernel kernel = {"norm_planes", "norm_channel_grad", "norm_channel_args",
                                     256,           .types = 1,          .ints = 1};
    norm_channel_args a = {.x = p->a.x,
                           .dy = p->a.dy,
                           .mean = wk_ptr(c->in[3]),
                           .invstd = wk_ptr(c->in[4]),
                           .weight = wk_ptr_or_null(c->in[2]),
                           .dx = target(c->out[0]),
                           .dweight = target(c->out[1]),
                           .dbias = target(c->out[2]),
                           .channels = p->s.c,
                           .inner = p->s.inner,
                           .count = p->f.count};
    int vec = wk_pack_width(c->dtype, a.inner, (const void *[]){a.x, a.dy, a.dx}, 3);
    *done = p->a.count > 0 && p->s.inner >= SHORT && p->s.c <= WK_GRID_MAX &&
            p->s.n * p->s.inner <= (i64)NORM_HELD * 256 * vec;
    if (!*done)
        return WK_OK;
    a.packs = (u32)(p->s.n * p->s.inner / vec);
    a.by_plane = wk_divisor_of(p->s.inner / vec);
    return WK_LAUNCH(c, &kernel, WK_INSTANCE(.t = {(unsigned char)c->dtype}, .i = {(short)vec}),
                     ((wk_grid){.x = p->s.c}), a);
}

wk_status wk_gpu_batch_norm_backward(wk_call *c)
{
    plan p;
    bool done;
    WK_TRY(pack_inputs(c, 0));
    make_plan(c, c->in[1], c->out[0], &p);
    WK_TRY(backward_held(c, &p, &done));
    if (done)
        return WK_OK;
    p.a.mean = p.f.mean = wk_ptr(c->in[3]);
    WK_TRY(measure(c, &p, WK_SUMS_DY));
    p.f.weight = wk_ptr_or_null(c->in[2]);
    p.f.invstd = wk_ptr(c->in[4]);
    p.f.dweight = target(c->out[1]);
    p.f.dbias = target(c->out[2]);
    WK_TRY(wk_norm_finish(c, &p.f, WK_FINISH_BATCH_GRAD));
    return c->out[0] ? wk_planes_apply(c, &p.a) : WK_OK;
}

wk_status wk_gpu_batch_norm_infer(wk_call *c)
{
    plan p;
    WK_TRY(pack_inputs(c, 0));
    make_plan(c, NULL, c->out[0], &p);
    p.a.scale = wk_ptr_or_null(c->in[1]);
    p.a.shift = wk_ptr_or_null(c->in[2]);
    p.a.mean = wk_ptr(c->in[3]);
    p.a.var = wk_ptr(c->in[4]);
    return wk_planes_apply(c, &p.a);
}

/* ---- batch_norm_act: activations that are straight lines ---- */

static bool end_with(wk_act act, norm_planes_args *a)
{
    a->ends = act.kind != WK_ACT_NONE;
    a->slope = 1;
    a->lo = -INFINITY;
    a->hi = INFINITY;
    switch (act.kind) {
    case WK_ACT_NONE: break;
    case WK_ACT_RELU: a->lo = 0; break;
    case WK_ACT_RELU6: a->lo = 0, a->hi = 6; break;
    case WK_ACT_LEAKY_RELU: a->slope = act.alpha; break;
    case WK_ACT_CLAMP: a->lo = act.alpha, a->hi = act.beta; break;
    default: return false;
    }
    return true;
}

const char *wk_gpu_batch_norm_act_refuse(const wk_call *c)
{
    norm_planes_args a;
    return end_with(wk_act_of(c), &a) ? NULL : "an activation that batch norm does not end with";
}

wk_status wk_gpu_batch_norm_act(wk_call *c)
{
    const wk_act_params *o = c->params;
    const wk_tensor *given = c->in[WK_NORM_ACT_Z], *z = given ? wk_tensor_packed(given) : NULL;
    if (given && !z)
        return wk_error_status();
    WK_TRY(pack_inputs(c, 0));
    wk_batch_shape s = wk_batch_shape_of(c->in[0], o->mode);
    norm_planes_args a = {.x = wk_ptr(c->in[0]),
                          .dy = wk_ptr_or_null(z),
                          .y = wk_ptr(c->out[0]),
                          .inner = s.inner,
                          .channels = s.c,
                          .count = wk_count(c->in[0]),
                          .centred = 1,
                          .eps = o->eps,
                          .scale = wk_ptr_or_null(c->in[1]),
                          .shift = wk_ptr_or_null(c->in[2]),
                          .mean = wk_ptr(c->in[3]),
                          .var = wk_ptr(c->in[4])};
    end_with(wk_act_of(c), &a);
    return wk_planes_apply(c, &a);
}
