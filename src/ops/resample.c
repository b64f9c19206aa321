/* resample.c: front ends of resampling. */
#include "resample.h"

/* ---- checks and outputs ---- */

static bool is_nearest(const wk_op *op) { return strstr(op->name, "nearest") != NULL; }
static bool is_backward(const wk_op *op) { return strstr(op->name, "backward") != NULL; }
static int dims_of(const wk_op *op) { return strstr(op->name, "1d") ? 1 : 2; }

/* A dimension of x of size `in`, by parameter i. */
static wk_status upsample_dim(const wk_call *c, int i, int64_t in, wk_upsample_dim *d)
{
    const wk_upsample_options *o = &WK_PARAMS(c, wk_upsample_params)->o;
    int64_t size = o->output_size[i];
    double scale = o->scale[i];
    bool sized = size != WK_ABSENT, scaled = scale == scale;
    const char *x = is_backward(c->op) ? "input_size" : "x";
    WK_NEED(sized || scaled, c, WK_ERR_PARAM, "size", "expected a size or a scale, got neither");
    WK_NEED(!sized || !scaled || !is_nearest(c->op), c, WK_ERR_PARAM, "size",
            "expected a size or a scale, got both");
    WK_NEED(!sized || size > 0, c, WK_ERR_PARAM, "size", "expected 1 or more, got %lld", (long long)size);
    WK_NEED(!scaled || (scale > 0 && scale < 0x1p60), c, WK_ERR_PARAM, "scale",
            "expected a number above 0, got %g", scale);
    WK_NEED(in > 0, c, WK_ERR_SHAPE, x, "expected a plane with elements, got a size of 0");
    double scaled_size = sized ? 1 : floor((double)in * scale);
    WK_NEED(scaled_size >= 1 && scaled_size < 0x1p60, c, WK_ERR_PARAM, "scale",
            "expected a result of 1 to 2^60 elements, got %g from %lld by %g", scaled_size, (long long)in,
            scale);
    *d = (wk_upsample_dim){.in = in, .out = sized ? size : (int64_t)scaled_size};
    if (o->align_corners)
        d->step = d->out > 1 ? (double)(in - 1) / (double)(d->out - 1) : 0;
    else
        d->step = scaled ? 1 / scale : (double)in / (double)d->out;
    return WK_OK;
}

/* The shape of x: from the input, or of a gradient from the parameter. */
static wk_status input_shape(const wk_call *c, int rank, const int64_t **shape)
{
    if (!is_backward(c->op)) {
        *shape = c->in[0]->shape;
        return wk_call_rank(c, 0, rank, rank);
    }
    const wk_list *size = &WK_PARAMS(c, wk_upsample_params)->input_size;
    wk_shape_text text;
    WK_NEED(size->n == rank && wk_shape_count(rank, size->v) >= 0, c, WK_ERR_PARAM, "input_size",
            "expected %d sizes, the shape of x, got %s", rank, wk_shape_str(&text, (int)size->n, size->v));
    *shape = size->v;
    return WK_OK;
}

wk_status wk_upsample_shapes(const wk_call *c, wk_upsample_shape *s)
{
    int flat = dims_of(c->op);
    const int64_t *in;
    int64_t align = WK_PARAMS(c, wk_upsample_params)->o.align_corners;
    WK_TRY(input_shape(c, 2 + flat, &in));
    WK_NEED(align == 0 || (align == 1 && !is_nearest(c->op)), c, WK_ERR_PARAM, "align_corners",
            is_nearest(c->op) ? "expected 0, got %lld" : "expected 0 or 1, got %lld", (long long)align);
    *s = (wk_upsample_shape){.planes = in[0] * in[1], .h = {1, 1, 1}, .align_corners = align};
    if (flat == 2)
        WK_TRY(upsample_dim(c, 0, in[2], &s->h));
    return upsample_dim(c, flat - 1, in[1 + flat], &s->w);
}

static wk_status infer_upsample(wk_call *c)
{
    wk_upsample_shape s;
    int rank = 2 + dims_of(c->op);
    const int64_t *in;
    WK_TRY(wk_upsample_shapes(c, &s));
    WK_TRY(input_shape(c, rank, &in));
    int64_t shape[4] = {in[0], in[1], s.h.out};
    shape[rank - 1] = s.w.out;
    WK_NEED(wk_shape_count(rank, shape) >= 0, c, WK_ERR_PARAM, "size",
            "expected a result of less than 2^60 elements, got more");
    wk_call_out(c, 0, c->dtype, rank, shape);
    return WK_OK;
}

static wk_status infer_backward(wk_call *c)
{
    const int64_t *in;
    WK_TRY(infer_upsample(c));
    WK_TRY(wk_call_shape(c, 0, c->spec[0].rank, c->spec[0].shape));
    WK_TRY(input_shape(c, 2 + dims_of(c->op), &in));
    wk_call_out(c, 0, c->dtype, 2 + dims_of(c->op), in);
    return WK_OK;
}

/* ---- the table ---- */

#define SAMPLES(name, ...) static const char *const name[] = {__VA_ARGS__, NULL}

SAMPLES(nearest1d_samples, "x=T[2,3,5] size=10", "x=T[2,3,5] scale=2", "x=T[1,2,7] size=4",
        "x=T[1,2,5] scale=1.5", "x=T[1,1,9] size=1", "x=T[2,2,300] size=701", "x=T[0,3,5] scale=2",
        "x=T[2,0,5] size=3");
SAMPLES(nearest2d_samples, "x=T[2,3,4,5] size=8,10", "x=T[2,3,4,5] scale=2", "x=T[1,2,7,6] size=3,4",
        "x=T[1,2,5,5] scale=1.5,2.7", "x=T[1,1,3,4] scale=3", "x=T[2,2,20,33] size=41,70",
        "x=T[1,2,40,60] scale=2", "x=T[2,4,66,44] scale=4,3", "x=T[1,1,2,50000] size=2,50001",
        "x=T[1,1,4,4] size=4", "x=T[0,3,4,5] scale=2", "x=T[1,2,3,3]:special scale=2");
SAMPLES(bilinear_samples, "x=T[2,3,4,5] size=8,10", "x=T[2,3,4,5] scale=2", "x=T[1,2,7,6] size=3,4",
        "x=T[1,2,5,5] scale=1.5,2.7", "x=T[1,2,5,6] scale=2 align_corners=1",
        "x=T[1,1,5,6] size=9,1 align_corners=1", "x=T[1,2,5,5] size=8,9 scale=1.6,1.7", "x=T[1,1,1,1] size=3",
        "x=T[2,2,20,33] size=41,70", "x=T[2,3,66,40] size=91,204", "x=T[1,1,33,20] size=9,7",
        "x=T[0,3,4,5] scale=2", "x=T[1,1,4,4] size=4");
SAMPLES(nearest1d_errors, "size=4 ! x", "x=T[2,3,5] ! size", "x=T[3,5] size=4 ! x", "x=T[2,3,4,5] size=4 ! x",
        "x=T[2,3,5] size=0 ! size", "x=T[2,3,5] size=-1 ! size", "x=T[2,3,5] scale=0 ! scale",
        "x=T[2,3,5] scale=-2 ! scale", "x=T[2,3,5] scale=0.1 ! scale", "x=T[2,3,5] scale=1e30 ! scale",
        "x=T[2,3,5] scale=inf ! scale", "x=T[2,3,5] size=10 scale=2 ! size", "x=T[2,3,0] size=4 ! x",
        "x=T[2,3,5] size=9223372036854775807 ! size", "x=T[2,3,5] size=2,2 ! size");
SAMPLES(nearest2d_errors, "size=4 ! x", "x=T[2,3,5,5] ! size", "x=T[3,5,5] size=4 ! x",
        "x=T[2,3,5,5] size=4,0 ! size", "x=T[2,3,5,5] scale=0 ! scale", "x=T[2,3,5,5] scale=2,nan ! size",
        "x=T[2,3,5,5] size=10 scale=2 ! size", "x=T[2,3,0,5] size=4 ! x",
        "x=T[2,3,5,5] size=4000000000000000000 ! size");
SAMPLES(bilinear_errors, "size=4 ! x", "x=T[2,3,5,5] ! size", "x=T[3,5,5] size=4 ! x",
        "x=T[2,3,5,5] size=4,0 ! size", "x=T[2,3,5,5] scale=0 ! scale", "x=i32[2,3,5,5] size=4 ! dtype",
        "x=T[2,3,5,5] size=4 align_corners=2 ! align_corners", "x=T[2,3,0,5] size=4 ! x");
SAMPLES(nearest1d_backward_samples, "dy=T[2,3,10] input_size=2,3,5 size=10",
        "dy=T[1,2,4] input_size=1,2,7 size=4", "dy=T[1,2,7] input_size=1,2,5 scale=1.5",
        "dy=T[0,3,10] input_size=0,3,5 scale=2", "dy=T[2,2,701] input_size=2,2,300 size=701");
SAMPLES(nearest2d_backward_samples, "dy=T[2,3,8,10] input_size=2,3,4,5 scale=2",
        "dy=T[1,2,3,4] input_size=1,2,7,6 size=3,4", "dy=T[2,2,41,70] input_size=2,2,20,33 size=41,70",
        "dy=T[1,3,5,90] input_size=1,3,2,4 size=5,90", "dy=T[0,3,8,10] input_size=0,3,4,5 scale=2");
SAMPLES(bilinear_backward_samples, "dy=T[2,3,8,10] input_size=2,3,4,5 scale=2",
        "dy=T[1,2,3,4] input_size=1,2,7,6 size=3,4",
        "dy=T[1,2,10,12] input_size=1,2,5,6 scale=2 align_corners=1",
        "dy=T[1,2,8,9] input_size=1,2,5,5 size=8,9 scale=1.6,1.7",
        "dy=T[2,2,41,70] input_size=2,2,20,33 size=41,70", "dy=T[1,3,5,90] input_size=1,3,2,4 size=5,90",
        "dy=T[1,2,10,21] input_size=1,2,5,3 size=10,21", "dy=T[0,3,8,10] input_size=0,3,4,5 scale=2");
SAMPLES(nearest1d_backward_errors, "dy=T[2,3,10] size=10 ! input_size", "input_size=2,3,5 size=10 ! dy",
        "dy=T[2,3,9] input_size=2,3,5 size=10 ! dy", "dy=T[2,3,10] input_size=3,5 size=10 ! input_size",
        "dy=T[2,3,10] input_size=2,3,-5 size=10 ! input_size",
        "dy=T[2,3,10] input_size=2,3,0 size=10 ! input_size",
        "dy=i32[2,3,10] input_size=2,3,5 size=10 ! dtype", "dy=T[2,3,10] input_size=2,3,5 ! size");
SAMPLES(nearest2d_backward_errors, "dy=T[2,3,8,10] size=8,10 ! input_size",
        "dy=T[2,3,8,9] input_size=2,3,4,5 size=8,10 ! dy",
        "dy=T[2,3,8,10] input_size=2,4,5 size=8,10 ! input_size");
SAMPLES(bilinear_backward_errors, "dy=T[2,3,8,10] size=8,10 ! input_size",
        "dy=T[2,3,8,9] input_size=2,3,4,5 size=8,10 ! dy",
        "dy=T[2,3,8,10] input_size=2,4,5 size=8,10 ! input_size");

#define AT(field) offsetof(wk_upsample_params, field)
#define SIZES(n) \
    {"size", WK_P_INTS, AT(o.output_size), "by_scale", NULL, n}, \
    { \
        "scale", WK_P_FLOATS, AT(o.scale), "by_size", NULL, n \
    }
#define ALIGN \
    { \
        "align_corners", WK_P_BOOL, AT(o.align_corners), "0", NULL, 0 \
    }
#define INPUT_SIZE \
    { \
        "input_size", WK_P_LIST, AT(input_size), NULL, NULL, 0 \
    }

enum {
#define INDEX(name) OP_##name, OP_##name##_backward
    INDEX(upsample_nearest1d),
    INDEX(upsample_nearest2d),
    INDEX(upsample_bilinear2d),
#undef INDEX
};

#define UPSAMPLE(name_, dtypes_, summary_, params_, samples_) \
    [OP_##name_] = {.name = #name_, \
                    .summary = summary_, \
                    .dtypes = dtypes_, \
                    .in = {{"x", 0, 0}}, \
                    .out = {{"y", 0, 0}}, \
                    .params = WK_PARAM_LIST(UNPACK params_), \
                    .infer = infer_upsample, \
                    .samples = samples_##_samples, \
                    .errors = samples_##_errors}, \
    [OP_##name_##_backward] = {.name = #name_ "_backward", \
                               .summary = "gradient of " #name_, \
                               .dtypes = WK_FLOATS, \
                               .in = {{"dy", 0, 0}}, \
                               .out = {{"dx", 0, 0}}, \
                               .params = WK_PARAM_LIST(INPUT_SIZE, UNPACK params_), \
                               .infer = infer_backward, \
                               .samples = samples_##_backward_samples, \
                               .errors = samples_##_backward_errors}
#define UNPACK(...) __VA_ARGS__

wk_op wk_ops_resample[] = {
    UPSAMPLE(upsample_nearest1d, WK_ALL, "lines of another length, by the nearest element", (SIZES(1)),
             nearest1d),
    UPSAMPLE(upsample_nearest2d, WK_ALL, "planes of another size, by the nearest element", (SIZES(2)),
             nearest2d),
    UPSAMPLE(upsample_bilinear2d, WK_FLOATS, "planes of another size, between the nearest elements",
             (SIZES(2), ALIGN), bilinear),
    {0},
};

/* ---- the API ---- */

/* Parameters as the op's record fills them. */
typedef union {
    wk_upsample_params p;
    char room[WK_PARAMS_BYTES];
} params;

static wk_tensor *run_upsample(int op, const wk_tensor *x, const wk_upsample_options *options)
{
    params p;
    wk_params_from_options(&wk_ops_resample[op], &p, options, options ? options->size : 0);
    return wk_call_run1(&(wk_call){.op = &wk_ops_resample[op], .params = &p, .in = {x}});
}

static wk_tensor *run_backward(int op, const wk_tensor *dy, int rank, const int64_t *input_size,
                               const wk_upsample_options *options)
{
    params p;
    if (wk_pending())
        return NULL;
    if (rank < 0 || rank > WK_MAX_RANK || (rank > 0 && !input_size)) {
        wk_fail(WK_ERR_PARAM, "%s: input_size: expected the sizes of x, got %d", wk_ops_resample[op].name,
                rank);
        return NULL;
    }
    size_t size = options ? options->size : 0; /* input_size lies behind the options */
    wk_params_from_options(&wk_ops_resample[op], &p, options,
                           size < sizeof *options ? size : sizeof *options);
    p.p.input_size.n = rank;
    if (rank)
        memcpy(p.p.input_size.v, input_size, (size_t)rank * sizeof *input_size);
    return wk_call_run1(&(wk_call){.op = &wk_ops_resample[op], .params = &p, .in = {dy}});
}

#define API(name) \
    wk_tensor *wk_##name(const wk_tensor *x, const wk_upsample_options *options) \
    { \
        return run_upsample(OP_##name, x, options); \
    } \
    wk_tensor *wk_##name##_backward(const wk_tensor *dy, int rank, const int64_t *input_size, \
                                    const wk_upsample_options *options) \
    { \
        return run_backward(OP_##name##_backward, dy, rank, input_size, options); \
    }
API(upsample_nearest1d)
API(upsample_nearest2d)
API(upsample_bilinear2d)
