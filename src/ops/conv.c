/* conv.c: front ends of the convolutions and their gradients. */
#include "conv.h"
#include "core/families.h"

enum { MAX_PARAM = INT32_MAX };

/* The table has the three roles of each op in a row. */
enum { OP_conv1d, OP_conv2d, OP_conv3d, OP_conv_transpose1d, OP_conv_transpose2d, ROLES = 3 };
static const int spatial_dims[] = {1, 2, 3, 1, 2};

/* The op's place in the table; what is not there has a conv2d inside. */
static int place_of(const wk_op *op)
{
    enum { COUNT = (OP_conv_transpose2d + 1) * ROLES };
    bool own = op >= wk_ops_conv && op < wk_ops_conv + COUNT;
    return own ? (int)(op - wk_ops_conv) : OP_conv2d * ROLES + WK_CONV_FORWARD;
}
static int base_of(const wk_call *c) { return place_of(c->op) / ROLES; }
static wk_conv_role role_of(const wk_call *c) { return (wk_conv_role)(place_of(c->op) % ROLES); }

/* ---- checks ---- */

static wk_status check_range(const wk_call *c, const char *name, int dims, const int64_t *v, int64_t lo)
{
    for (int i = 0; i < dims; i++)
        WK_NEED(v[i] >= lo && v[i] <= MAX_PARAM, c, WK_ERR_PARAM, name, "expected %lld to %d, got %lld",
                (long long)lo, MAX_PARAM, (long long)v[i]);
    return WK_OK;
}

static wk_status check_options(const wk_call *c, int dims, bool transposed)
{
    const wk_conv_options *o = &WK_PARAMS(c, wk_conv_params)->options;
    WK_TRY(check_range(c, "stride", dims, o->stride, 1));
    WK_TRY(check_range(c, "padding", dims, o->padding, 0));
    WK_TRY(check_range(c, "dilation", dims, o->dilation, 1));
    WK_TRY(check_range(c, "groups", 1, &o->groups, 1));
    if (!transposed)
        return WK_OK;
    WK_TRY(check_range(c, "output_padding", dims, o->output_padding, 0));
    for (int i = 0; i < dims; i++)
        WK_NEED(o->output_padding[i] < o->stride[i] || o->output_padding[i] < o->dilation[i], c, WK_ERR_PARAM,
                "output_padding", "expected less than stride %lld or dilation %lld, got %lld",
                (long long)o->stride[i], (long long)o->dilation[i], (long long)o->output_padding[i]);
    return WK_OK;
}

/* The shape of x and of the weights: of the tensor, or the parameter that stands for it. */
static wk_status find_shape(const wk_call *c, int dims, const char *name, int slot, const int64_t **shape)
{
    if (slot >= 0) {
        *shape = c->in[slot]->shape;
        return wk_call_rank(c, slot, dims + 2, dims + 2);
    }
    const wk_list *size = &WK_PARAMS(c, wk_conv_params)->size;
    wk_shape_text text;
    WK_NEED(size->n == dims + 2, c, WK_ERR_PARAM, name, "expected %d sizes, got %d", dims + 2, (int)size->n);
    WK_NEED(wk_shape_count(dims + 2, size->v) >= 0, c, WK_ERR_PARAM, name,
            "expected sizes of a tensor, got %s", wk_shape_str(&text, dims + 2, size->v));
    *shape = size->v;
    return WK_OK;
}

static wk_status check_channels(const wk_call *c, const char *name, const int64_t *x, const int64_t *w,
                                int64_t groups, bool transposed)
{
    WK_NEED(w[0] % groups == 0, c, WK_ERR_SHAPE, name,
            "expected %s channels that %lld groups divide, got %lld", transposed ? "input" : "output",
            (long long)groups, (long long)w[0]);
    if (transposed)
        WK_NEED(w[0] == x[1], c, WK_ERR_SHAPE, name, "expected %lld input channels as x has, got %lld",
                (long long)x[1], (long long)w[0]);
    else
        WK_NEED(x[1] % groups == 0 && w[1] == x[1] / groups, c, WK_ERR_SHAPE, name,
                "expected x's %lld channels in %lld groups, got %lld a group", (long long)x[1],
                (long long)groups, (long long)w[1]);
    return WK_OK;
}

/* a * b + add, -1 when that does not fit. */
static int64_t times_plus(int64_t a, int64_t b, int64_t add)
{
    int64_t r;
    return __builtin_mul_overflow(a, b, &r) || __builtin_add_overflow(r, add, &r) ? -1 : r;
}

/* The size of y in one dimension. */
static wk_status find_out(const wk_call *c, const char *name, const wk_conv_options *o, int i,
                          bool transposed, int64_t in, int64_t k, int64_t *out)
{
    int64_t reach = k < 1 ? -1 : times_plus(k - 1, o->dilation[i], 1);
    WK_NEED(reach > 0, c, WK_ERR_SHAPE, name, "expected kernel sizes from 1, got %lld", (long long)k);
    if (!transposed) {
        int64_t padded = in + 2 * o->padding[i];
        WK_NEED(padded >= reach, c, WK_ERR_SHAPE, name,
                "expected a kernel no larger than the padded input %lld, got %lld (dilated)",
                (long long)padded, (long long)reach);
        *out = (padded - reach) / o->stride[i] + 1;
        return WK_OK;
    }
    int64_t spread = in > 0 ? times_plus(in - 1, o->stride[i], reach) : reach - o->stride[i];
    WK_NEED(in == 0 || spread >= 0, c, WK_ERR_SHAPE, name, "expected sizes that fit 64 bits");
    *out = spread - 2 * o->padding[i] + o->output_padding[i];
    WK_NEED(*out >= (in > 0), c, WK_ERR_SHAPE, name,
            "expected an output size of at least %d, got %lld in spatial dim %d", in > 0, (long long)*out, i);
    return WK_OK;
}

int64_t wk_conv_tap_period(const wk_conv_geometry *g, int d)
{
    int64_t a = g->stride[d], b = g->dilation[d];
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return g->stride[d] / a;
}

wk_status wk_conv_geometry_of(const wk_call *c, wk_conv_geometry *g)
{
    const wk_conv_options *o = &WK_PARAMS(c, wk_conv_params)->options;
    int base = base_of(c), dims = spatial_dims[base], lead = 3 - dims;
    wk_conv_role role = role_of(c);
    bool transposed = base >= OP_conv_transpose1d;
    const char *x_name = role == WK_CONV_BACKWARD_DATA ? "input_size" : "x";
    const char *w_name = role == WK_CONV_BACKWARD_WEIGHT ? "kernel_size" : "weight";
    const int64_t *x, *w;
    WK_TRY(check_options(c, dims, transposed));
    WK_TRY(find_shape(c, dims, x_name, role == WK_CONV_BACKWARD_DATA ? -1 : 0, &x));
    WK_TRY(find_shape(c, dims, w_name, role == WK_CONV_BACKWARD_WEIGHT ? -1 : 1, &w));
    WK_TRY(check_channels(c, w_name, x, w, o->groups, transposed));
    *g = (wk_conv_geometry){.role = role, .transposed = transposed, .n = x[0], .groups = o->groups};
    g->map_channels = w[0];
    WK_NEED(!__builtin_mul_overflow(w[1], o->groups, &g->image_channels), c, WK_ERR_SHAPE, w_name,
            "expected channels that fit 64 bits");
    for (int d = 0; d < 3; d++) {
        int i = d - lead;
        int64_t out = 1, in = i < 0 ? 1 : x[2 + i];
        g->kernel[d] = i < 0 ? 1 : w[2 + i];
        g->stride[d] = i < 0 ? 1 : o->stride[i];
        g->padding[d] = i < 0 ? 0 : o->padding[i];
        g->dilation[d] = i < 0 ? 1 : o->dilation[i];
        if (i >= 0)
            WK_TRY(find_out(c, w_name, o, i, transposed, in, w[2 + i], &out));
        g->image[d] = transposed ? out : in;
        g->map[d] = transposed ? in : out;
    }
    return WK_OK;
}

/* ---- outputs ---- */

/* The shape of y. */
static int y_shape(const wk_call *c, const wk_conv_geometry *g, int64_t *shape)
{
    int dims = spatial_dims[base_of(c)];
    shape[0] = g->n;
    shape[1] = g->transposed ? g->image_channels : g->map_channels;
    memcpy(shape + 2, (g->transposed ? g->image : g->map) + 3 - dims, (size_t)dims * sizeof *shape);
    return dims + 2;
}

wk_status wk_conv_infer(wk_call *c)
{
    wk_conv_geometry g;
    int64_t shape[WK_MAX_RANK];
    WK_TRY(wk_conv_geometry_of(c, &g));
    wk_call_out(c, 0, c->dtype, y_shape(c, &g, shape), shape);
    return c->in[2] ? wk_call_shape(c, 2, 1, &shape[1]) : WK_OK;
}

static wk_status infer_backward_data(wk_call *c)
{
    const wk_list *size = &WK_PARAMS(c, wk_conv_params)->size;
    wk_conv_geometry g;
    int64_t shape[WK_MAX_RANK];
    WK_TRY(wk_conv_geometry_of(c, &g));
    WK_TRY(wk_call_shape(c, 0, y_shape(c, &g, shape), shape));
    wk_call_out(c, 0, c->dtype, (int)size->n, size->v);
    return WK_OK;
}

static wk_status infer_backward_weight(wk_call *c)
{
    const wk_list *size = &WK_PARAMS(c, wk_conv_params)->size;
    wk_conv_geometry g;
    int64_t shape[WK_MAX_RANK];
    WK_TRY(wk_conv_geometry_of(c, &g));
    WK_TRY(wk_call_shape(c, 1, y_shape(c, &g, shape), shape));
    wk_call_out(c, 0, c->dtype, (int)size->n, size->v);
    wk_call_out(c, 1, c->dtype, 1, &shape[1]);
    return WK_OK;
}

/* ---- the table ---- */

#define SAMPLES(name, ...) static const char *const name[] = {__VA_ARGS__, NULL}

SAMPLES(conv1d_samples, "x=T[2,3,9] weight=T[4,3,3] bias=T[4]",
        "x=T[1,4,11] weight=T[6,2,3] groups=2 stride=2 padding=1",
        "x=T[2,3,12] weight=T[3,1,3] bias=T[3] groups=3 dilation=2 padding=2", "x=T[1,2,5] weight=T[2,2,1]",
        "x=T[1,1,1] weight=T[1,1,3] padding=1", "x=T[0,2,5] weight=T[3,2,2]",
        "x=T[2,0,5] weight=T[3,0,2] bias=T[3]", "x=T[1,2,0] weight=T[2,2,2] padding=1",
        "x=T[1,16,300] weight=T[40,16,3] bias=T[40] padding=1",
        "x=T[1,2,3] weight=T[2,2,3] padding=1000000 stride=1000000", "x=T[1,1,4]:special weight=T[1,1,2]",
        "x=T[1,60,150] weight=T[66,60,7] bias=T[66] padding=3",
        "x=T[1,9,1100] weight=T[10,9,3] bias=T[10] padding=1",
        "x=T[2,32,310] weight=T[40,32,3] bias=T[40] padding=1", "x=T[1,33,1026]:special weight=T[40,33,3]");
SAMPLES(conv1d_errors, "x=T[1,2,5] ! weight", "weight=T[1,2,5] ! x", "x=T[2,5] weight=T[3,2,2] ! x",
        "x=T[1,2,5] weight=T[3,2] ! weight", "x=T[1,2,5] weight=T[3,3,2] ! weight",
        "x=T[1,2,5] weight=T[3,2,6] ! padded", "x=T[1,2,5] weight=T[3,2,0] ! weight",
        "x=T[1,2,5] weight=T[3,2,3] dilation=3 ! padded", "x=T[1,2,5] weight=T[3,1,2] groups=2 ! groups",
        "x=T[1,3,5] weight=T[4,1,2] groups=2 ! groups", "x=T[1,2,5] weight=T[3,2,2] bias=T[2] ! bias",
        "x=T[1,2,5] weight=T[3,2,2] stride=0 ! stride", "x=T[1,2,5] weight=T[3,2,2] stride=1,1 ! stride",
        "x=T[1,2,5] weight=T[3,2,2] padding=-1 ! padding", "x=T[1,2,5] weight=T[3,2,2] dilation=0 ! dilation",
        "x=T[1,2,5] weight=T[3,2,2] groups=0 ! groups", "x=i32[1,2,5] weight=i32[3,2,2] ! dtype",
        "x=f32[1,2,5] weight=f16[3,2,2] ! weight",
        "x=T[1,2,5] weight=T[3,2,2] padding=9223372036854775807 ! padding",
        "x=T[1,2,5] weight=T[3,2,2] output_padding=1 ! output_padding");
SAMPLES(conv2d_samples, "x=T[2,3,7,8] weight=T[5,3,3,3] bias=T[5] padding=1",
        "x=T[1,4,9,7] weight=T[6,2,3,2] groups=2 stride=2,3 padding=1,0",
        "x=T[2,3,10,9] weight=T[4,3,3,2] dilation=2,3 padding=2", "x=T[3,6,5,5] weight=T[4,6,1,1] bias=T[4]",
        "x=T[2,6,9,11] weight=T[6,1,3,3] bias=T[6] groups=6 padding=1",
        "x=T[1,4,9,9] weight=T[8,1,3,3] groups=4 stride=2 padding=1",
        "x=T[1,3,19,20] weight=T[3,1,5,4] groups=3 stride=3,2 padding=2 dilation=1,2",
        "x=T[1,3,31,30] weight=T[20,3,7,7] bias=T[20] stride=2 padding=3",
        "x=T[3,20,13,14] weight=T[24,20,3,3] padding=1", "x=T[2,8,16,16] weight=T[16,8,4,4] stride=4",
        "x=T[0,3,5,5] weight=T[2,3,3,3]", "x=T[1,3,5,5] weight=T[0,3,3,3]",
        "x=T[1,2,1,9] weight=T[2,2,3,2] padding=5,0", "x=T[1,2,3,3]:special weight=T[2,2,2,2]",
        "x=T[1,2,260,130] weight=T[2,1,2,3] groups=2 padding=1 bias=T[2]",
        "x=T[1,9,20,20] weight=T[15,3,3,3] groups=3 padding=1",
        "x=T[2,7,15,17] weight=T[19,7,3,3] bias=T[19] padding=1",
        "x=T[1,10,10,11] weight=T[140,5,2,3] groups=2 padding=1,2 dilation=1,2",
        "x=T[2,9,34,33] weight=T[17,9,3,3] bias=T[17] stride=2 padding=1",
        "x=T[1,4,16,30] weight=T[100,4,3,3] padding=2 dilation=2",
        "x=T[1,18,27,31] weight=T[31,18,3,3] bias=T[31] padding=1",
        "x=T[1,140,16,30] weight=T[16,140,3,3] padding=1", "x=T[8,19,10,18] weight=T[26,19,3,3] padding=1",
        "x=T[1,32,20,24] weight=T[48,16,3,3] groups=2 padding=1",
        "x=T[1,16,6,270] weight=T[16,16,3,3] padding=1",
        "x=T[1,24,20,40]:special weight=T[24,24,3,3] padding=2,0",
        "x=T[1,33,40,41] weight=T[34,33,2,2] bias=T[34]");
SAMPLES(conv2d_errors, "x=T[1,2,5,5] ! weight", "x=T[1,2,5] weight=T[3,2,2,2] ! x",
        "x=T[1,2,5,5] weight=T[3,2,2] ! weight", "x=T[1,2,5,5] weight=T[3,4,2,2] ! weight",
        "x=T[1,2,5,2] weight=T[3,2,3,3] ! padded", "x=T[1,2,5,5] weight=T[3,2,2,2] stride=1,0 ! stride",
        "x=T[1,2,5,5] weight=T[3,2,2,2] padding=0,-1 ! padding",
        "x=T[1,2,5,5] weight=T[3,2,2,2] dilation=1,2,3 ! dilation",
        "x=T[1,2,5,5] weight=T[3,2,2,2] bias=T[3,1] ! bias", "x=u8[1,2,5,5] weight=u8[3,2,2,2] ! dtype");
SAMPLES(conv3d_samples, "x=T[2,3,4,5,6] weight=T[4,3,2,3,3] bias=T[4] padding=1",
        "x=T[1,4,5,6,5] weight=T[6,2,3,2,3] groups=2 stride=2,1,2 padding=1,0,1",
        "x=T[1,2,7,7,7] weight=T[3,2,2,3,2] dilation=3,2,1", "x=T[2,3,3,4,4] weight=T[5,3,1,1,1]",
        "x=T[1,3,4,6,6] weight=T[3,1,3,3,3] groups=3 padding=1 bias=T[3]",
        "x=T[0,1,3,3,3] weight=T[1,1,2,2,2]", "x=T[1,4,5,18,20] weight=T[9,4,2,3,3] stride=2,1,1 padding=1");
SAMPLES(conv3d_errors, "x=T[1,2,5,5] weight=T[3,2,2,2,2] ! x", "x=T[1,2,5,5,5] weight=T[3,2,2,2] ! weight",
        "x=T[1,2,1,5,5] weight=T[3,2,2,2,2] ! padded",
        "x=T[1,2,5,5,5] weight=T[3,2,2,2,2] stride=2,2 ! stride");
SAMPLES(conv_transpose1d_samples, "x=T[2,3,5] weight=T[3,4,3] bias=T[4]",
        "x=T[1,4,6] weight=T[4,3,4] groups=2 stride=2 padding=1 bias=T[6]",
        "x=T[2,3,4] weight=T[3,2,3] stride=3 output_padding=2 dilation=2",
        "x=T[1,2,3] weight=T[2,2,2] stride=4",
        "x=T[1,3,7] weight=T[3,1,5] groups=3 stride=2 padding=2 output_padding=1",
        "x=T[1,2,5] weight=T[2,2,2] dilation=4 stride=2 output_padding=3", "x=T[0,2,3] weight=T[2,2,2]",
        "x=T[1,0,3] weight=T[0,2,2] bias=T[2]", "x=T[1,2,0] weight=T[2,3,4] stride=2 padding=1",
        "x=T[1,2,0] weight=T[2,3,5] bias=T[3]", "x=T[1,24,150] weight=T[24,20,4] stride=2 padding=1",
        "x=T[1,32,140] weight=T[32,66,16] stride=4 padding=6 bias=T[66]");
SAMPLES(conv_transpose1d_errors, "x=T[1,2,5] ! weight", "x=T[1,2] weight=T[2,2,2] ! x",
        "x=T[1,2,5] weight=T[3,2,2] ! weight", "x=T[1,3,5] weight=T[3,2,2] groups=2 ! groups",
        "x=T[1,2,5] weight=T[2,2,2] padding=4 ! output size",
        "x=T[1,2,5] weight=T[2,2,2] output_padding=1 ! output_padding",
        "x=T[1,2,5] weight=T[2,2,2] output_padding=-1 ! output_padding",
        "x=T[1,2,5] weight=T[2,2,2] bias=T[4] ! bias", "x=T[1,2,5] weight=T[2,2,2] stride=0 ! stride",
        "x=T[1,2,5] weight=T[2,2,0] ! weight");
SAMPLES(conv_transpose2d_samples, "x=T[2,3,4,5] weight=T[3,4,3,3] bias=T[4] padding=1",
        "x=T[1,4,3,4] weight=T[4,3,4,3] groups=2 stride=2,3 padding=1 bias=T[6]",
        "x=T[2,3,3,4] weight=T[3,2,3,2] stride=3,2 output_padding=2,1 dilation=2,1",
        "x=T[1,2,3,3] weight=T[2,2,2,1] stride=4,2", "x=T[2,4,6,7] weight=T[4,1,3,3] groups=4 padding=1",
        "x=T[1,3,5,6] weight=T[3,2,4,4] groups=3 stride=2 padding=1 bias=T[6]",
        "x=T[0,2,3,3] weight=T[2,2,2,2]", "x=T[1,2,3,4] weight=T[2,3,3,3] padding=2",
        "x=T[2,20,9,10] weight=T[20,24,4,4] stride=2 padding=1 bias=T[24]",
        "x=T[1,6,20,20] weight=T[6,3,3,3] stride=2 padding=1",
        "x=T[1,20,27,31] weight=T[20,17,3,3] padding=1 bias=T[17]",
        "x=T[1,32,30,31] weight=T[32,32,4,4] stride=2 padding=1 bias=T[32]");
SAMPLES(conv_transpose2d_errors, "x=T[1,2,5,5] ! weight", "x=T[1,2,5] weight=T[2,2,2,2] ! x",
        "x=T[1,2,5,5] weight=T[3,2,2,2] ! weight", "x=T[1,2,1,5] weight=T[2,2,2,2] padding=1 ! output size",
        "x=T[1,2,5,5] weight=T[2,2,2,2] output_padding=2,0 stride=2 ! output_padding");

SAMPLES(conv1d_data_samples, "dy=T[2,4,7] weight=T[4,3,3] input_size=2,3,9",
        "dy=T[1,6,6] weight=T[6,2,3] groups=2 stride=2 padding=1 input_size=1,4,11",
        "dy=T[1,6,6] weight=T[6,2,3] groups=2 stride=2 padding=1 input_size=1,4,12",
        "dy=T[0,3,4] weight=T[3,2,2] input_size=0,2,5",
        "dy=T[1,2,1] weight=T[2,2,2] stride=7 input_size=1,2,8",
        "dy=T[1,60,150] weight=T[60,66,7] padding=3 input_size=1,66,150",
        "dy=T[1,40,731] weight=T[40,33,3] padding=1 input_size=1,33,731");
SAMPLES(conv1d_data_errors, "dy=T[2,4,7] weight=T[4,3,3] ! input_size",
        "dy=T[2,4,7] weight=T[4,3,3] input_size=2,3 ! input_size",
        "dy=T[2,4,7] weight=T[4,3,3] input_size=2,3,10 ! dy",
        "dy=T[2,4,7] weight=T[4,3,3] input_size=2,3,-9 ! input_size",
        "dy=T[2,4,7] weight=T[4,3,3] input_size=2,4,9 ! weight", "weight=T[4,3,3] input_size=2,3,9 ! dy",
        "dy=T[2,4,7] weight=T[4,3,3] input_size=2,3,4611686018427387904 ! input_size");
SAMPLES(conv2d_data_samples, "dy=T[2,5,7,8] weight=T[5,3,3,3] padding=1 input_size=2,3,7,8",
        "dy=T[1,6,5,2] weight=T[6,2,3,2] groups=2 stride=2,3 padding=1,0 input_size=1,4,9,7",
        "dy=T[2,6,9,11] weight=T[6,1,3,3] groups=6 padding=1 input_size=2,6,9,11",
        "dy=T[1,8,5,5] weight=T[8,1,3,3] groups=4 stride=2 padding=1 input_size=1,4,9,10",
        "dy=T[2,20,12,12] weight=T[20,24,3,3] padding=1 input_size=2,24,12,12",
        "dy=T[1,12,20,20] weight=T[12,5,3,3] groups=2 padding=1 input_size=1,10,20,20",
        "dy=T[2,3,9,10] weight=T[3,1,3,3] groups=3 stride=2 padding=1 input_size=2,3,17,20",
        "dy=T[2,7,15,17] weight=T[7,19,3,3] padding=1 input_size=2,19,15,17",
        "dy=T[2,4,5,6] weight=T[4,6,1,1] input_size=2,6,5,6",
        "dy=T[1,4,9,9] weight=T[4,3,7,7] padding=3 input_size=1,3,9,9",
        "dy=T[1,4,5,5] weight=T[4,3,7,7] stride=2 padding=3 input_size=1,3,9,9",
        "dy=T[1,18,27,31] weight=T[18,26,3,3] padding=1 input_size=1,26,27,31",
        "dy=T[1,33,32,31] weight=T[33,36,3,3] stride=2 padding=1 input_size=1,36,63,62");
SAMPLES(conv2d_data_errors, "dy=T[2,5,7,8] weight=T[5,3,3,3] input_size=2,3,7,8 ! dy",
        "dy=T[2,5,7] weight=T[5,3,3,3] padding=1 input_size=2,3,7,8 ! dy",
        "dy=T[2,5,7,8] weight=T[5,3,3,3] input_size=2,3,2,8 ! padded");
SAMPLES(conv3d_data_samples, "dy=T[2,4,5,5,6] weight=T[4,3,2,3,3] padding=1 input_size=2,3,4,5,6",
        "dy=T[1,6,3,5,3] weight=T[6,2,3,2,3] groups=2 stride=2,1,2 padding=1,0,1 input_size=1,4,5,6,5",
        "dy=T[1,3,4,6,6] weight=T[3,1,3,3,3] groups=3 padding=1 input_size=1,3,4,6,6");
SAMPLES(conv3d_data_errors, "dy=T[2,4,5,5,6] weight=T[4,3,2,3,3] padding=1 input_size=2,3,4,5,7 ! dy");
SAMPLES(conv_transpose1d_data_samples, "dy=T[2,4,7] weight=T[3,4,3] input_size=2,3,5",
        "dy=T[1,6,12] weight=T[4,3,4] groups=2 stride=2 padding=1 input_size=1,4,6",
        "dy=T[1,4,12] weight=T[2,4,2] dilation=4 stride=2 output_padding=3 input_size=1,2,3");
SAMPLES(conv_transpose1d_data_errors, "dy=T[2,4,7] weight=T[3,4,3] input_size=2,3,6 ! dy",
        "dy=T[2,4,7] weight=T[3,4,3] input_size=2,2,5 ! weight");
SAMPLES(conv_transpose2d_data_samples, "dy=T[2,4,4,5] weight=T[3,4,3,3] padding=1 input_size=2,3,4,5",
        "dy=T[1,6,6,10] weight=T[4,3,4,3] groups=2 stride=2,3 padding=1 input_size=1,4,3,4",
        "dy=T[1,12,18,20] weight=T[20,12,4,4] stride=2 padding=1 input_size=1,20,9,10");
SAMPLES(conv_transpose2d_data_errors, "dy=T[2,4,4,5] weight=T[3,4,3,3] input_size=2,3,4,5 ! dy");

SAMPLES(conv1d_weight_samples, "x=T[2,3,9] dy=T[2,4,7] kernel_size=4,3,3",
        "x=T[1,4,11] dy=T[1,6,6] groups=2 stride=2 padding=1 kernel_size=6,2,3",
        "x=T[0,2,5] dy=T[0,3,4] kernel_size=3,2,2",
        "x=T[2,20,150] dy=T[2,24,150] padding=1 kernel_size=24,20,3",
        "x=T[3,20,150] dy=T[3,66,150] padding=3 kernel_size=66,20,7",
        "x=T[1,30,100] dy=T[1,24,100] padding=1 kernel_size=24,30,3");
SAMPLES(conv1d_weight_errors, "x=T[2,3,9] dy=T[2,4,7] ! kernel_size",
        "x=T[2,3,9] dy=T[2,4,7] kernel_size=4,3 ! kernel_size",
        "x=T[2,3,9] dy=T[2,4,7] kernel_size=4,3,4 ! dy", "x=T[2,3,9] kernel_size=4,3,3 ! dy",
        "x=T[2,3,9] dy=T[2,4,7] kernel_size=4,3,-3 ! kernel_size",
        "x=T[2,3,9] dy=T[1,4,7] kernel_size=4,3,3 ! dy",
        "x=T[2,3,9] dy=T[2,4,7] kernel_size=4,3,0 ! kernel_size");
SAMPLES(conv2d_weight_samples, "x=T[2,3,7,8] dy=T[2,5,7,8] padding=1 kernel_size=5,3,3,3",
        "x=T[1,4,9,7] dy=T[1,6,5,2] groups=2 stride=2,3 padding=1,0 kernel_size=6,2,3,2",
        "x=T[2,6,9,11] dy=T[2,6,9,11] groups=6 padding=1 kernel_size=6,1,3,3",
        "x=T[1,4,9,9] dy=T[1,8,5,5] groups=4 stride=2 padding=1 kernel_size=8,1,3,3",
        "x=T[3,6,5,5] dy=T[3,4,5,5] kernel_size=4,6,1,1",
        "x=T[2,16,9,9] dy=T[2,7,9,9] padding=1 kernel_size=7,16,3,3",
        "x=T[2,2,50,50] dy=T[2,4,46,46] groups=2 kernel_size=4,1,5,5",
        "x=T[1,6,5,5] dy=T[1,4,5,5] kernel_size=4,6,1,1",
        "x=T[1,3,9,10] dy=T[1,4,9,10] padding=3 kernel_size=4,3,7,7",
        "x=T[64,2,5,4]:0.5..2 dy=T[64,5,5,4]:0.5..2 kernel_size=5,2,1,1",
        "x=T[48,2,6,5]:0.5..2 dy=T[48,4,4,3]:0.5..2 kernel_size=4,2,3,3");
SAMPLES(conv2d_weight_errors, "x=T[2,3,7,8] dy=T[2,5,7,8] kernel_size=5,3,3,3 ! dy",
        "x=T[2,3,7,8] dy=T[2,5,7,8] padding=1 kernel_size=5,2,3,3 ! kernel_size");
SAMPLES(conv3d_weight_samples, "x=T[2,3,4,5,6] dy=T[2,4,5,5,6] padding=1 kernel_size=4,3,2,3,3",
        "x=T[1,4,5,6,5] dy=T[1,6,3,5,3] groups=2 stride=2,1,2 padding=1,0,1 kernel_size=6,2,3,2,3",
        "x=T[1,3,4,6,6] dy=T[1,3,4,6,6] groups=3 padding=1 kernel_size=3,1,3,3,3");
SAMPLES(conv3d_weight_errors, "x=T[2,3,4,5,6] dy=T[2,4,5,5,6] padding=1 kernel_size=4,3,2,3,4 ! dy");
SAMPLES(conv_transpose1d_weight_samples, "x=T[2,3,5] dy=T[2,4,7] kernel_size=3,4,3",
        "x=T[1,4,6] dy=T[1,6,12] groups=2 stride=2 padding=1 kernel_size=4,3,4",
        "x=T[1,2,3] dy=T[1,4,12] dilation=4 stride=2 output_padding=3 kernel_size=2,4,2");
SAMPLES(conv_transpose1d_weight_errors, "x=T[2,3,5] dy=T[2,4,7] kernel_size=3,4,2 ! dy",
        "x=T[2,3,5] dy=T[2,4,7] kernel_size=2,4,3 ! kernel_size");
SAMPLES(conv_transpose2d_weight_samples, "x=T[2,3,4,5] dy=T[2,4,4,5] padding=1 kernel_size=3,4,3,3",
        "x=T[1,4,3,4] dy=T[1,6,6,10] groups=2 stride=2,3 padding=1 kernel_size=4,3,4,3");
SAMPLES(conv_transpose2d_weight_errors, "x=T[2,3,4,5] dy=T[2,4,4,5] kernel_size=3,4,3,3 ! dy");

#define OPTION(name, dims, fallback) \
    { \
#name, WK_P_INTS, offsetof(wk_conv_params, options.name), fallback, NULL, dims \
    }
#define OPTIONS(dims) \
    OPTION(stride, dims, "1"), OPTION(padding, dims, "0"), OPTION(dilation, dims, "1"), \
    { \
        "groups", WK_P_INT, offsetof(wk_conv_params, options.groups), "1", NULL, 0 \
    }
#define TRANSPOSED_OPTIONS(dims) OPTIONS(dims), OPTION(output_padding, dims, "0")
#define SIZE(name) \
    { \
        name, WK_P_LIST, offsetof(wk_conv_params, size), NULL, NULL, 0 \
    }

/* The three records of an op; what follows are its parameters. */
#define RECORDS(op, what, ...) \
    [OP_##op * ROLES + \
        WK_CONV_FORWARD] = {.name = #op, \
                            .summary = what, \
                            .dtypes = WK_FLOATS, \
                            .in = {{"x", 0, 0}, {"weight", 0, 0}, {"bias", WK_OPTIONAL, 0}}, \
                            .out = {{"y", 0, 0}}, \
                            .params = WK_PARAM_LIST(__VA_ARGS__), \
                            .infer = wk_conv_infer, \
                            .samples = op##_samples, \
                            .errors = op##_errors}, \
        [OP_##op * ROLES + \
            WK_CONV_BACKWARD_DATA] = {.name = #op "_backward_data", \
                                      .summary = "gradient of " #op " by its input", \
                                      .dtypes = WK_FLOATS, \
                                      .in = {{"dy", 0, 0}, {"weight", 0, 0}}, \
                                      .out = {{"dx", 0, 0}}, \
                                      .params = WK_PARAM_LIST(__VA_ARGS__, SIZE("input_size")), \
                                      .infer = infer_backward_data, \
                                      .samples = op##_data_samples, \
                                      .errors = op##_data_errors}, \
        [OP_##op * ROLES + \
            WK_CONV_BACKWARD_WEIGHT] = {.name = #op "_backward_weight", \
                                        .summary = "gradient of " #op " by its weights and bias", \
                                        .dtypes = WK_FLOATS, \
                                        .in = {{"x", 0, 0}, {"dy", 0, 0}}, \
                                        .out = {{"dweight", WK_SKIP, 0}, {"dbias", WK_SKIP, 0}}, \
                                        .params = WK_PARAM_LIST(__VA_ARGS__, SIZE("kernel_size")), \
                                        .infer = infer_backward_weight, \
                                        .samples = op##_weight_samples, \
                                        .errors = op##_weight_errors}

wk_op wk_ops_conv[] = {
    RECORDS(conv1d, "convolution over one dimension", OPTIONS(1)),
    RECORDS(conv2d, "convolution over two dimensions", OPTIONS(2)),
    RECORDS(conv3d, "convolution over three dimensions", OPTIONS(3)),
    RECORDS(conv_transpose1d, "transposed convolution over one dimension", TRANSPOSED_OPTIONS(1)),
    RECORDS(conv_transpose2d, "transposed convolution over two dimensions", TRANSPOSED_OPTIONS(2)),
    {0},
};

/* ---- the API ---- */

bool wk_conv_take_options(const wk_op *op, wk_conv_params *p, const wk_conv_options *options)
{
    char all[WK_PARAMS_BYTES];
    size_t size = !options ? 0 : options->size < sizeof *options ? options->size : sizeof *options;
    if (wk_pending())
        return false;
    wk_params_from_options(op, all, options, size);
    memcpy(p, all, sizeof *p);
    bool transposed = place_of(op) / ROLES >= OP_conv_transpose1d;
    for (int i = 0; options && !transposed && i < 3; i++) {
        if (size == sizeof *options && options->output_padding[i]) {
            wk_fail(WK_ERR_PARAM, "%s: output_padding: expected 0, got %lld", op->name,
                    (long long)options->output_padding[i]);
            return false;
        }
    }
    return true;
}

static bool take_size(const wk_op *op, wk_conv_params *p, const char *name, int rank, const int64_t *shape)
{
    if (rank < 0 || rank > WK_MAX_RANK || !shape) {
        wk_fail(WK_ERR_PARAM, "%s: %s: expected a shape, got rank %d%s", op->name, name, rank,
                shape ? "" : " and NULL");
        return false;
    }
    p->size.n = rank;
    memcpy(p->size.v, shape, (size_t)rank * sizeof *shape);
    return true;
}

static wk_tensor *forward(int base, const wk_tensor *x, const wk_tensor *weight, const wk_tensor *bias,
                          const wk_conv_options *options)
{
    const wk_op *op = &wk_ops_conv[base * ROLES + WK_CONV_FORWARD];
    wk_conv_params p;
    if (!wk_conv_take_options(op, &p, options))
        return NULL;
    return wk_call_run1(&(wk_call){.op = op, .params = &p, .in = {x, weight, bias}});
}

static wk_tensor *backward_data(int base, const wk_tensor *dy, const wk_tensor *weight, int rank,
                                const int64_t *shape, const wk_conv_options *options)
{
    const wk_op *op = &wk_ops_conv[base * ROLES + WK_CONV_BACKWARD_DATA];
    wk_conv_params p;
    if (!wk_conv_take_options(op, &p, options) || !take_size(op, &p, "input_size", rank, shape))
        return NULL;
    return wk_call_run1(&(wk_call){.op = op, .params = &p, .in = {dy, weight}});
}

static wk_status backward_weight(int base, const wk_tensor *x, const wk_tensor *dy, int rank,
                                 const int64_t *shape, const wk_conv_options *options, wk_tensor **dweight,
                                 wk_tensor **dbias)
{
    const wk_op *op = &wk_ops_conv[base * ROLES + WK_CONV_BACKWARD_WEIGHT];
    wk_conv_params p;
    if (dweight)
        *dweight = NULL;
    if (dbias)
        *dbias = NULL;
    if (!wk_conv_take_options(op, &p, options) || !take_size(op, &p, "kernel_size", rank, shape))
        return wk_error_status();
    return wk_call_run_into(&(wk_call){.op = op, .params = &p, .in = {x, dy}},
                            (wk_tensor * *[]){dweight, dbias}, 2);
}

#define API(name) \
    wk_tensor *wk_##name(const wk_tensor *x, const wk_tensor *weight, const wk_tensor *bias, \
                         const wk_conv_options *options) \
    { \
        return forward(OP_##name, x, weight, bias, options); \
    } \
    wk_tensor *wk_##name##_backward_data(const wk_tensor *dy, const wk_tensor *weight, int rank, \
                                         const int64_t *input_shape, const wk_conv_options *options) \
    { \
        return backward_data(OP_##name, dy, weight, rank, input_shape, options); \
    } \
    wk_status wk_##name##_backward_weight(const wk_tensor *x, const wk_tensor *dy, int rank, \
                                          const int64_t *kernel_shape, const wk_conv_options *options, \
                                          wk_tensor **dweight, wk_tensor **dbias) \
    { \
        return backward_weight(OP_##name, x, dy, rank, kernel_shape, options, dweight, dbias); \
    }

API(conv1d)
API(conv2d)
API(conv3d)
API(conv_transpose1d)
API(conv_transpose2d)
