/* pool.c: front ends of pooling. */
#include "pool.h"

/* ---- checks and outputs ---- */

enum { GREATEST = INT32_MAX }; /* of each parameter: no window arithmetic can overflow */

static bool is_1d(const wk_op *op) { return strstr(op->name, "1d") != NULL; }
static bool is_global(const wk_op *op) { return strncmp(op->name, "global", 6) == 0; }

static wk_status check_param(const wk_call *c, const char *name, int64_t v, int64_t lo, int64_t hi)
{
    WK_NEED(v >= lo && v <= hi, c, WK_ERR_PARAM, name, "expected %lld to %lld, got %lld", (long long)lo,
            (long long)hi, (long long)v);
    return WK_OK;
}

/* Windows along a dimension of x, by parameter i. */
static wk_status pool_dim(const wk_call *c, int i, int64_t in, wk_pool_dim *d)
{
    const wk_pool_options *p = c->params;
    d->in = in;
    d->kernel = p->kernel_size[i];
    d->stride = p->stride[i] == WK_ABSENT ? d->kernel : p->stride[i];
    d->padding = p->padding[i];
    WK_TRY(check_param(c, "kernel_size", d->kernel, 1, GREATEST));
    WK_TRY(check_param(c, "stride", d->stride, 1, GREATEST));
    WK_NEED(d->padding >= 0 && d->padding <= d->kernel / 2, c, WK_ERR_PARAM, "padding",
            "expected 0 to half the kernel_size, %lld, got %lld", (long long)(d->kernel / 2),
            (long long)d->padding);
    WK_NEED(in > 0, c, WK_ERR_SHAPE, "x", "expected a plane with elements, got a size of 0");
    int64_t last = in + 2 * d->padding - d->kernel; /* where a last whole window may start */
    WK_NEED(last + (p->ceil ? d->stride - 1 : 0) >= 0, c, WK_ERR_SHAPE, "kernel_size",
            "expected at most %lld, the size of x with its padding, got %lld",
            (long long)(in + 2 * d->padding), (long long)d->kernel);
    d->out = (last + (p->ceil ? d->stride - 1 : 0)) / d->stride + 1;
    if (p->ceil && (d->out - 1) * d->stride >= in + d->padding)
        d->out--;
    return WK_OK;
}

static wk_status global_dim(const wk_call *c, int64_t in, wk_pool_dim *d)
{
    WK_NEED(in > 0, c, WK_ERR_SHAPE, "x", "expected a plane with elements, got a size of 0");
    *d = (wk_pool_dim){.in = in, .out = 1, .kernel = in, .stride = 1};
    return WK_OK;
}

wk_status wk_pool_shapes(const wk_call *c, wk_pool_shape *s)
{
    const wk_tensor *x = c->in[0];
    int flat = is_1d(c->op) ? 1 : 2;
    WK_TRY(wk_call_rank(c, 0, flat + 1, flat + 2));
    s->planes = wk_shape_count(x->rank - flat, x->shape);
    s->h = (wk_pool_dim){.in = 1, .out = 1, .kernel = 1, .stride = 1};
    if (is_global(c->op)) {
        WK_TRY(global_dim(c, x->shape[x->rank - 2], &s->h));
        return global_dim(c, x->shape[x->rank - 1], &s->w);
    }
    const wk_pool_options *p = c->params;
    WK_TRY(check_param(c, "ceil", p->ceil, 0, 1));
    WK_TRY(check_param(c, "exclude_pad", p->exclude_pad, 0, 1));
    if (flat == 2)
        WK_TRY(pool_dim(c, 0, x->shape[x->rank - 2], &s->h));
    return pool_dim(c, flat - 1, x->shape[x->rank - 1], &s->w);
}

static wk_status infer_pool(wk_call *c)
{
    wk_pool_shape s;
    const wk_tensor *x = c->in[0];
    int64_t shape[WK_MAX_RANK];
    WK_TRY(wk_pool_shapes(c, &s));
    memcpy(shape, x->shape, sizeof shape);
    if (!is_1d(c->op))
        shape[x->rank - 2] = s.h.out;
    shape[x->rank - 1] = s.w.out;
    WK_NEED(wk_shape_count(x->rank, shape) >= 0, c, WK_ERR_SHAPE, "padding",
            "expected a result of less than 2^60 elements, got more");
    wk_call_out(c, 0, c->dtype, x->rank, shape);
    return WK_OK;
}

static wk_status infer_max_pool(wk_call *c)
{
    WK_TRY(infer_pool(c));
    wk_pool_shape s;
    WK_TRY(wk_pool_shapes(c, &s));
    WK_NEED(!(c->want & 2) || s.h.in * s.w.in - 1 <= UINT32_MAX, c, WK_ERR_SHAPE, "x",
            "expected planes of at most 2^32 elements for u32 indices, got %lld",
            (long long)(s.h.in * s.w.in));
    wk_call_out(c, 1, WK_U32, c->spec[0].rank, c->spec[0].shape);
    return WK_OK;
}

static wk_status infer_backward(wk_call *c)
{
    WK_TRY(infer_pool(c));
    WK_TRY(wk_call_shape(c, 1, c->spec[0].rank, c->spec[0].shape));
    if (c->in[2])
        WK_TRY(wk_call_same_shape(c, 2, 1));
    wk_call_out_like(c, 0, c->in[0]);
    return WK_OK;
}

/* ---- the table ---- */

#define SAMPLES(name, ...) static const char *const name[] = {__VA_ARGS__, NULL}

SAMPLES(pool1d_samples, "x=T[2,3,10] kernel_size=2", "x=T[2,3,11] kernel_size=3 stride=2 padding=1",
        "x=T[3,7] kernel_size=4 stride=3 padding=2 ceil=1", "x=T[1,2,9] kernel_size=1 stride=4 ceil=1",
        "x=T[2,1,700] kernel_size=5 stride=1", "x=T[0,3,8] kernel_size=2", "x=T[2,0,8] kernel_size=2",
        "x=T[1,1,3] kernel_size=7 padding=3 stride=5 ceil=1");
SAMPLES(pool2d_samples, "x=T[2,3,6,8] kernel_size=2", "x=T[2,3,7,9] kernel_size=3 stride=2",
        "x=T[1,2,7,9] kernel_size=3,2 stride=2,1 padding=1", "x=T[3,8,8] kernel_size=3 stride=1 padding=1",
        "x=T[1,2,7,7] kernel_size=3 stride=2 padding=1 ceil=1", "x=T[1,2,6,5] kernel_size=2 stride=3 ceil=1",
        "x=T[2,2,13,41] kernel_size=5,7 stride=4,3 padding=2,3", "x=T[2,3,40,70] kernel_size=3 stride=2",
        "x=T[2,8,131,66] kernel_size=3 stride=1", "x=T[2,2,20,40] kernel_size=9,11 stride=8 padding=4,5",
        "x=T[1,2,66,81]:special kernel_size=64,70 stride=2,5", "x=T[1,3,64,66] kernel_size=2",
        "x=T[0,3,4,4] kernel_size=2", "x=T[1,1,9,9] kernel_size=9,1",
        "x=T[1,1,5,6]:special kernel_size=2 stride=1", "x=T[1,2,3,5]:special kernel_size=1",
        "x=T[2,3,9,12] kernel_size=3 stride=2 padding=1",
        "x=T[1,2,8,16]:special kernel_size=3 stride=2 ceil=1",
        "x=T[1,3,21,45] kernel_size=3 stride=2 padding=1",
        "x=T[1,2,9,40]:special kernel_size=3 stride=1,2 ceil=1",
        "x=T[1,2,7,52]:special kernel_size=3 stride=2", "x=T[1,2,5,37]:special kernel_size=2");
SAMPLES(avg_pool1d_samples, "x=T[2,3,10] kernel_size=2", "x=T[2,3,11] kernel_size=3 stride=2 padding=1",
        "x=T[3,7] kernel_size=4 stride=3 padding=2 ceil=1 count_include_pad=0",
        "x=T[2,1,700] kernel_size=5 stride=1 padding=2 count_include_pad=0", "x=T[0,3,8] kernel_size=2",
        "x=T[1,1,3] kernel_size=7 padding=3 stride=5 ceil=1");
SAMPLES(avg_pool2d_samples, "x=T[2,3,6,8] kernel_size=2", "x=T[2,3,7,9] kernel_size=3 stride=2",
        "x=T[1,2,7,9] kernel_size=3,2 stride=2,1 padding=1 count_include_pad=0",
        "x=T[3,8,8] kernel_size=3 stride=1 padding=1",
        "x=T[1,2,7,7] kernel_size=3 stride=2 padding=1 ceil=1 count_include_pad=0",
        "x=T[1,2,6,5] kernel_size=2 stride=3 ceil=1", "x=T[2,2,13,41] kernel_size=5,7 stride=4,3 padding=2,3",
        "x=T[1,3,64,66] kernel_size=2", "x=T[2,3,40,70] kernel_size=3 stride=2 padding=1",
        "x=T[2,8,131,66] kernel_size=3 stride=1",
        "x=T[2,2,20,40] kernel_size=9,11 stride=8 padding=4,5 count_include_pad=0",
        "x=T[1,2,66,81] kernel_size=64,70 stride=2,5 padding=3,4", "x=T[0,3,4,4] kernel_size=2",
        "x=T[1,1,5,6]:special kernel_size=2 stride=1");
SAMPLES(global_samples, "x=T[2,3,4,5]", "x=T[3,7,1]", "x=T[1,2,40,61]", "x=T[2,2,66,71]", "x=T[1,1,260,257]",
        "x=T[0,3,4,4]", "x=T[2,0,3,3]");
SAMPLES(pool1d_errors, "x=T[2,3,10] ! kernel_size", "kernel_size=2 ! x", "x=T[10] kernel_size=2 ! x",
        "x=T[2,2,3,10] kernel_size=2 ! x", "x=i32[2,3,10] kernel_size=2 ! dtype",
        "x=T[2,3,10] kernel_size=0 ! kernel_size", "x=T[2,3,10] kernel_size=-1 ! kernel_size",
        "x=T[2,3,10] kernel_size=11 ! kernel_size", "x=T[2,3,10] kernel_size=2 stride=0 ! stride",
        "x=T[2,3,10] kernel_size=2 stride=-1 ! stride", "x=T[2,3,10] kernel_size=2 padding=2 ! padding",
        "x=T[2,3,10] kernel_size=2 padding=-1 ! padding", "x=T[2,3,10] kernel_size=2 ceil=2 ! ceil",
        "x=T[2,3,0] kernel_size=2 padding=1 ! x", "x=T[2,3,10] kernel_size=2,2 ! kernel_size");
SAMPLES(pool2d_errors, "x=T[2,3,8,8] ! kernel_size", "kernel_size=2 ! x", "x=T[8,8] kernel_size=2 ! x",
        "x=T[1,1,1,8,8] kernel_size=2 ! x", "x=i64[2,3,8,8] kernel_size=2 ! dtype",
        "x=T[2,3,8,8] kernel_size=2,0 ! kernel_size", "x=T[2,3,8,8] kernel_size=9 ! kernel_size",
        "x=T[2,3,8,8] kernel_size=9223372036854775807 ! kernel_size",
        "x=T[2,3,8,8] kernel_size=2 stride=0 ! stride",
        "x=T[2,3,8,8] kernel_size=2 stride=1,9223372036854775807 ! stride",
        "x=T[2,3,8,8] kernel_size=3 padding=2 ! padding", "x=T[2,3,0,8] kernel_size=2 padding=1 ! x",
        "x=T[2,3,8,8] kernel_size=2,2,2 ! kernel_size");
SAMPLES(avg_pool1d_errors, "x=T[2,3,8] kernel_size=2 count_include_pad=2 ! count_include_pad",
        "x=T[2,3,8] ! kernel_size", "x=T[2,3,8] kernel_size=2 stride=0 ! stride",
        "x=T[2,3,8] kernel_size=3 padding=2 ! padding", "x=u8[2,3,8] kernel_size=2 ! dtype",
        "x=T[8] kernel_size=2 ! x");
SAMPLES(avg_pool2d_errors, "x=T[2,3,8,8] kernel_size=2 count_include_pad=2 ! count_include_pad",
        "x=T[2,3,8,8] ! kernel_size", "x=T[2,3,8,8] kernel_size=2 stride=0 ! stride",
        "x=T[2,3,8,8] kernel_size=3 padding=2 ! padding", "x=u8[2,3,8,8] kernel_size=2 ! dtype",
        "x=T[8,8] kernel_size=2 ! x", "x=T[2,3,8,8] kernel_size=9 ! kernel_size");
SAMPLES(global_errors, "! x", "x=T[4,4] ! x", "x=T[1,1,1,4,4] ! x", "x=T[1,1,0,4] ! x",
        "x=u8[1,1,4,4] ! dtype");
SAMPLES(max_pool1d_backward_samples, "x=T[2,3,10] dy=T[2,3,5] kernel_size=2",
        "x=T[2,3,11] dy=T[2,3,6] kernel_size=3 stride=2 padding=1",
        "x=T[3,7] dy=T[3,3] kernel_size=4 stride=3 padding=2 ceil=1",
        "x=T[1,1,8] dy=T[1,1,4] indices=u32[1,1,4]:0..8 kernel_size=2",
        "x=T[2,5,8] dy=T[2,5,1] indices=u32[2,5,1]:0..8 kernel_size=8",
        "x=T[0,3,8] dy=T[0,3,4] kernel_size=2");
SAMPLES(avg_pool1d_backward_samples, "x=T[2,3,10] dy=T[2,3,5] kernel_size=2",
        "x=T[2,3,11] dy=T[2,3,6] kernel_size=3 stride=2 padding=1",
        "x=T[3,7] dy=T[3,3] kernel_size=4 stride=3 padding=2 ceil=1 count_include_pad=0",
        "x=T[0,3,8] dy=T[0,3,4] kernel_size=2");
SAMPLES(max_pool2d_backward_samples, "x=T[2,3,6,8] dy=T[2,3,3,4] kernel_size=2",
        "x=T[2,3,7,9] dy=T[2,3,3,4] kernel_size=3 stride=2",
        "x=T[1,2,7,7] dy=T[1,2,4,4] kernel_size=3 stride=2 padding=1 ceil=1",
        "x=T[1,2,6,8] dy=T[1,2,3,4] indices=u32[1,2,3,4]:0..48 kernel_size=2",
        "x=T[1,3,64,66] dy=T[1,3,32,33] kernel_size=2",
        "x=T[2,8,131,66] dy=T[2,8,65,33] kernel_size=3,2 stride=2",
        "x=T[0,3,4,4] dy=T[0,3,2,2] kernel_size=2");
SAMPLES(avg_pool2d_backward_samples, "x=T[2,3,6,8] dy=T[2,3,3,4] kernel_size=2",
        "x=T[2,3,7,9] dy=T[2,3,3,4] kernel_size=3 stride=2",
        "x=T[1,2,7,7] dy=T[1,2,4,4] kernel_size=3 stride=2 padding=1 ceil=1 count_include_pad=0",
        "x=T[1,2,7,7] dy=T[1,2,4,4] kernel_size=3 stride=2 padding=1",
        "x=T[1,3,64,66] dy=T[1,3,32,33] kernel_size=2",
        "x=T[2,8,131,66] dy=T[2,8,65,33] kernel_size=3,2 stride=2",
        "x=T[0,3,4,4] dy=T[0,3,2,2] kernel_size=2");
SAMPLES(global_backward_samples, "x=T[2,3,4,5] dy=T[2,3,1,1]", "x=T[3,7,1] dy=T[3,1,1]",
        "x=T[2,2,66,71] dy=T[2,2,1,1]", "x=T[0,3,4,4] dy=T[0,3,1,1]");
SAMPLES(max_pool1d_backward_errors, "x=T[2,3,10] kernel_size=2 ! dy",
        "x=T[2,3,10] dy=T[2,3,4] kernel_size=2 ! dy",
        "x=T[2,3,10] dy=T[2,3,5] indices=u32[2,3,4]:0..2 kernel_size=2 ! indices",
        "x=T[2,3,10] dy=T[2,3,5] indices=u32[2,3,5]:10..12 kernel_size=2 ! indices",
        "x=T[2,3,10] dy=T[2,3,5] indices=i64[2,3,5]:0..2 kernel_size=2 ! indices");
SAMPLES(max_pool2d_backward_errors, "x=T[2,3,8,8] kernel_size=2 ! dy",
        "x=T[2,3,8,8] dy=T[2,3,4,3] kernel_size=2 ! dy",
        "x=T[1,1,4,4] dy=T[1,1,2,2] indices=u32[1,1,2,2]:16..20 kernel_size=2 ! indices");
SAMPLES(avg_pool1d_backward_errors, "x=T[2,3,10] kernel_size=2 ! dy",
        "x=T[2,3,10] dy=T[2,3,4] kernel_size=2 ! dy", "x=T[2,3,10] dy=T[2,3,4] ! kernel_size");
SAMPLES(avg_pool2d_backward_errors, "x=T[2,3,8,8] kernel_size=2 ! dy",
        "x=T[2,3,8,8] dy=T[2,3,4,3] kernel_size=2 ! dy", "x=T[2,3,8,8] dy=T[2,3,4,4] ! kernel_size");
SAMPLES(global_backward_errors, "x=T[2,3,4,5] ! dy", "x=T[2,3,4,5] dy=T[2,3] ! dy",
        "x=T[2,3,0,5] dy=T[2,3,1,1] ! x");

enum {
#define INDEX(name) OP_##name, OP_##name##_backward
    INDEX(max_pool1d),
    INDEX(max_pool2d),
    INDEX(avg_pool1d),
    INDEX(avg_pool2d),
    INDEX(global_max_pool2d),
    INDEX(global_avg_pool2d),
#undef INDEX
};

#define AT(field) offsetof(wk_pool_options, field)
/* The parameters of windows along n dimensions. */
#define WINDOWS(n) \
    {"kernel_size", WK_P_INTS, AT(kernel_size), NULL, NULL, n}, \
        {"stride", WK_P_INTS, AT(stride), "kernel_size", NULL, n}, \
        {"padding", WK_P_INTS, AT(padding), "0", NULL, n}, \
    { \
        "ceil", WK_P_BOOL, AT(ceil), "0", NULL, 0 \
    }
/* Kept as its opposite, so that a zero in the options is the default. */
#define INCLUDE_PAD \
    { \
        "count_include_pad", WK_P_ENUM, AT(exclude_pad), "1", "1|0", 0 \
    }

#define MAX_POOL(name_, n) \
    [OP_##name_] = {.name = #name_, \
                    .summary = "the largest of each window, and where it is", \
                    .dtypes = WK_FLOATS, \
                    .in = {{"x", 0, 0}}, \
                    .out = {{"y", 0, 0}, {"indices", WK_OPTIONAL | WK_SKIP, WK_SET(WK_U32)}}, \
                    .params = WK_PARAM_LIST(WINDOWS(n)), \
                    .infer = infer_max_pool, \
                    .samples = pool##n##d_samples, \
                    .errors = pool##n##d_errors}, \
    [OP_##name_##_backward] = {.name = #name_ "_backward", \
                               .summary = "gradient of " #name_, \
                               .dtypes = WK_FLOATS, \
                               .in = {{"x", 0, 0}, {"dy", 0, 0}, {"indices", WK_OPTIONAL, WK_SET(WK_U32)}}, \
                               .out = {{"dx", 0, 0}}, \
                               .params = WK_PARAM_LIST(WINDOWS(n)), \
                               .infer = infer_backward, \
                               .samples = name_##_backward_samples, \
                               .errors = name_##_backward_errors}
#define AVG_POOL(name_, n) \
    [OP_##name_] = {.name = #name_, \
                    .summary = "the mean of each window", \
                    .dtypes = WK_FLOATS, \
                    .in = {{"x", 0, 0}}, \
                    .out = {{"y", 0, 0}}, \
                    .params = WK_PARAM_LIST(WINDOWS(n), INCLUDE_PAD), \
                    .infer = infer_pool, \
                    .samples = name_##_samples, \
                    .errors = name_##_errors}, \
    [OP_##name_##_backward] = {.name = #name_ "_backward", \
                               .summary = "gradient of " #name_, \
                               .dtypes = WK_FLOATS, \
                               .in = {{"x", 0, 0}, {"dy", 0, 0}}, \
                               .out = {{"dx", 0, 0}}, \
                               .params = WK_PARAM_LIST(WINDOWS(n), INCLUDE_PAD), \
                               .infer = infer_backward, \
                               .samples = name_##_backward_samples, \
                               .errors = name_##_backward_errors}
#define GLOBAL_POOL(name_, summary_) \
    [OP_##name_] = {.name = #name_, \
                    .summary = summary_, \
                    .dtypes = WK_FLOATS, \
                    .in = {{"x", 0, 0}}, \
                    .out = {{"y", 0, 0}}, \
                    .infer = infer_pool, \
                    .samples = global_samples, \
                    .errors = global_errors}, \
    [OP_##name_##_backward] = {.name = #name_ "_backward", \
                               .summary = "gradient of " #name_, \
                               .dtypes = WK_FLOATS, \
                               .in = {{"x", 0, 0}, {"dy", 0, 0}}, \
                               .out = {{"dx", 0, 0}}, \
                               .infer = infer_backward, \
                               .samples = global_backward_samples, \
                               .errors = global_backward_errors}

wk_op wk_ops_pool[] = {
    MAX_POOL(max_pool1d, 1),
    MAX_POOL(max_pool2d, 2),
    AVG_POOL(avg_pool1d, 1),
    AVG_POOL(avg_pool2d, 2),
    GLOBAL_POOL(global_max_pool2d, "the largest of each plane"),
    GLOBAL_POOL(global_avg_pool2d, "the mean of each plane"),
    {0},
};

/* ---- the API ---- */

/* Parameters as the op's record fills them. */
typedef union {
    wk_pool_options options;
    char room[WK_PARAMS_BYTES];
} params;

static wk_tensor *run_pool(int op, const wk_tensor *x, const wk_tensor *dy, const wk_tensor *indices,
                           const wk_pool_options *options, wk_tensor **indices_out)
{
    params p;
    wk_params_from_options(&wk_ops_pool[op], &p, options, options ? options->size : 0);
    wk_call c = {.op = &wk_ops_pool[op], .params = &p, .in = {x, dy, indices}, .want = indices_out ? 2 : 0};
    wk_tensor *y = wk_call_run1(&c);
    if (indices_out)
        *indices_out = c.out[1];
    return y;
}

#define API_MAX(name) \
    wk_tensor *wk_##name(const wk_tensor *x, const wk_pool_options *options, wk_tensor **indices) \
    { \
        return run_pool(OP_##name, x, NULL, NULL, options, indices); \
    } \
    wk_tensor *wk_##name##_backward(const wk_tensor *x, const wk_tensor *dy, const wk_tensor *indices, \
                                    const wk_pool_options *options) \
    { \
        return run_pool(OP_##name##_backward, x, dy, indices, options, NULL); \
    }
#define API_AVG(name) \
    wk_tensor *wk_##name(const wk_tensor *x, const wk_pool_options *options) \
    { \
        return run_pool(OP_##name, x, NULL, NULL, options, NULL); \
    } \
    wk_tensor *wk_##name##_backward(const wk_tensor *x, const wk_tensor *dy, const wk_pool_options *options) \
    { \
        return run_pool(OP_##name##_backward, x, dy, NULL, options, NULL); \
    }
#define API_GLOBAL(name) \
    wk_tensor *wk_##name(const wk_tensor *x) { return run_pool(OP_##name, x, NULL, NULL, NULL, NULL); } \
    wk_tensor *wk_##name##_backward(const wk_tensor *x, const wk_tensor *dy) \
    { \
        return run_pool(OP_##name##_backward, x, dy, NULL, NULL, NULL); \
    }
API_MAX(max_pool1d)
API_MAX(max_pool2d)
API_AVG(avg_pool1d)
API_AVG(avg_pool2d)
API_GLOBAL(global_max_pool2d)
API_GLOBAL(global_avg_pool2d)
