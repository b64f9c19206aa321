/* cudnn_conv.c: convolutions and their gradients by cuDNN.
 *
 * As in ops/conv.h there are three computations: a transposed convolution is the gradient by the input of a plain one.
 * A 1-D convolution has a height of 1. Tensor cores want the channels of a pixel side by side, so f16 and bf16 are
 * brought into that order before and taken out of it after; wick's transposing copy is faster at that than cuDNN. */
#include "cudnn_plan.h"
#include "gpu/conv.h"
#include "gpu/families.h"
#include "ops/act.h"
#include "wick/matmul.h"
#include "wick/ops.h"

enum { T_IMAGE, T_MAP, T_WEIGHT, TENSORS, T_BIAS = TENSORS, POINTERS };

typedef struct {
    const wk_call *call;
    wk_conv_geometry g;
    wk_conv_way way;
    wk_dtype dtype;
    int dims;
    bool channels_last, fast;
    int64_t channels; /* of the image and the weights, filled up to that; 0: as they are */
    int number;       /* of the configuration to take; 0: the first that works */
    bool bias, relu;  /* at the end of the graph */
    int64_t shape[TENSORS][5], strides[TENSORS][5];
    void *data[POINTERS];
} work;

static const char *refuse(const wk_call *c)
{
    wk_conv_geometry g;
    const char *why = wk_cudnn_refuse(c, WK_FLOATS);
    if (why)
        return why;
    if (wk_conv_geometry_of(c, &g) != WK_OK)
        return "sizes";
    for (int d = 0; d < 3; d++) {
        int64_t reach = (g.kernel[d] - 1) * g.dilation[d] + 1, padded = g.image[d] + 2 * g.padding[d];
        if (padded > INT32_MAX || reach > INT32_MAX)
            return "sizes of 2^31 and more";
        if ((padded - reach) / g.stride[d] + 1 != g.map[d])
            return "cuDNN takes no output_padding of a stride and more";
    }
    return NULL;
}

static bool each_channel_alone(const wk_conv_geometry *g)
{
    return g->groups > 1 && g->groups == g->image_channels;
}

static bool is_product(const wk_conv_geometry *g) { return g->kernel[0] * g->kernel[1] * g->kernel[2] == 1; }

/* Whether cuDNN is fast with the bias in the graph. It reads biases and writes maps by eights. */
static bool ends_well(const wk_conv_geometry *g)
{
    return !is_product(g) && !each_channel_alone(g) && g->map_channels % 8 == 0;
}

/* Where wick's kernel is faster it is left the call, unless cuDNN was asked for. */
static const char *refuse_slower(const wk_call *c)
{
    wk_conv_geometry g;
    const char *why = refuse(c);
    if (why || strcmp(wk_forced_impl(), "cudnn") == 0)
        return why;
    bool slower = wk_conv_geometry_of(c, &g) == WK_OK && each_channel_alone(&g) && wk_bytes(c->dtype) > 2;
    return slower ? "wick's kernel is faster" : NULL;
}

/* ---- set-up ---- */

static cudnnBackendDescriptor_t describe_window(wk_cudnn_plan *p, const work *w)
{
    cudnnBackendDescriptor_t d = wk_cudnn_new(p, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, "the convolution");
    cudnnDataType_t compute = wk_cudnn_compute(w->dtype);
    cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
    int lead = 3 - w->dims;
    int64_t dims = w->dims;
    wk_cudnn_set(p, d, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &compute);
    wk_cudnn_set(p, d, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
    wk_cudnn_set(p, d, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &dims);
    const struct {
        cudnnBackendAttributeName_t name;
        const int64_t *values;
    } sizes[] = {{CUDNN_ATTR_CONVOLUTION_DILATIONS, w->g.dilation},
                 {CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, w->g.stride},
                 {CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, w->g.padding},
                 {CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, w->g.padding}};
    for (int i = 0; i < 4; i++)
        wk_cudnn_set(p, d, sizes[i].name, CUDNN_TYPE_INT64, dims, sizes[i].values + lead);
    wk_cudnn_finish(p, d, "the convolution");
    return d;
}

static cudnnBackendDescriptor_t tensor_of(wk_cudnn_plan *p, const work *w, int i)
{
    wk_cudnn_tensor t = {.id = 1 + i,
                         .type = wk_cudnn_dtype(w->dtype),
                         .rank = w->dims + 2,
                         .shape = w->shape[i],
                         .strides = w->strides[i]};
    return wk_cudnn_tensor_of(p, &t);
}

/* The map before the end of the graph, which is not in memory. */
static cudnnBackendDescriptor_t sums(wk_cudnn_plan *p, const work *w)
{
    wk_cudnn_tensor t = {.type = wk_cudnn_compute(w->dtype),
                         .rank = w->dims + 2,
                         .shape = w->shape[T_MAP],
                         .strides = w->strides[T_MAP],
                         .flags = WK_CUDNN_VIRTUAL};
    return wk_cudnn_tensor_of(p, &t);
}

/* map = relu(sums + bias), or without relu. */
static void build_end(wk_cudnn_plan *p, const work *w, cudnnBackendDescriptor_t x)
{
    int64_t k = w->shape[T_MAP][1], shape[] = {1, k, 1, 1, 1}, strides[] = {k, 1, k, k, k};
    wk_cudnn_tensor bias = {.id = 1 + T_BIAS,
                            .type = wk_cudnn_dtype(w->dtype),
                            .rank = w->dims + 2,
                            .shape = shape,
                            .strides = strides};
    cudnnBackendDescriptor_t map = tensor_of(p, w, T_MAP);
    wk_cudnn_step add = {.mode = CUDNN_POINTWISE_ADD, .compute = wk_cudnn_compute(w->dtype), .x = x};
    add.b = wk_cudnn_tensor_of(p, &bias);
    add.y = w->relu ? sums(p, w) : map;
    x = wk_cudnn_pointwise(p, &add);
    wk_cudnn_step relu = {.mode = CUDNN_POINTWISE_RELU_FWD, .compute = add.compute, .x = x, .y = map};
    if (w->relu)
        wk_cudnn_pointwise(p, &relu);
}

static void build_graph(wk_cudnn_plan *p, const work *w)
{
    static const struct {
        cudnnBackendDescriptorType_t type;
        cudnnBackendAttributeName_t alpha, beta, window, tensor[TENSORS];
    } ops[WK_CONV_WAYS] = {
        [WK_CONV_TO_MAP] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
                            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA,
                            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                            {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                             CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
                             CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W}},
        [WK_CONV_TO_IMAGE] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
                              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
                              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,
                              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                              {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                               CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
                               CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W}},
        [WK_CONV_TO_WEIGHT] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
                               CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
                               CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA,
                               CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
                               {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
                                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
                                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW}},
    };
    const double one64 = 1, zero64 = 0;
    const float one = 1, zero = 0;
    bool wide = w->dtype == WK_F64;
    cudnnBackendAttributeType_t real = wide ? CUDNN_TYPE_DOUBLE : CUDNN_TYPE_FLOAT;
    cudnnBackendDescriptor_t window = describe_window(p, w),
                             op = wk_cudnn_new(p, ops[w->way].type, "the operation");
    cudnnBackendDescriptor_t before_end = w->bias ? sums(p, w) : NULL;
    for (int i = 0; i < TENSORS; i++)
        wk_cudnn_set_descriptor(p, op, ops[w->way].tensor[i],
                                i == T_MAP && w->bias ? before_end : tensor_of(p, w, i));
    wk_cudnn_set(p, op, ops[w->way].alpha, real, 1, wide ? (const void *)&one64 : &one);
    wk_cudnn_set(p, op, ops[w->way].beta, real, 1, wide ? (const void *)&zero64 : &zero);
    wk_cudnn_set_descriptor(p, op, ops[w->way].window, window);
    wk_cudnn_add(p, op, "the operation");
    if (w->bias)
        build_end(p, w, before_end);
}

static wk_cudnn_rules rules_of(const work *w)
{
    return (wk_cudnn_rules){.true_f32 = w->dtype == WK_F32 && !w->fast, .number = w->number};
}

static void set_up(cudnnHandle_t handle, wk_cudnn_plan *p, const void *data)
{
    const work *w = data;
    wk_cudnn_rules rules = rules_of(w);
    build_graph(p, w);
    wk_cudnn_choose(handle, p, &rules);
}

static cudnnStatus_t queue(cudnnHandle_t handle, const wk_cudnn_plan *p, void *workspace, const void *data)
{
    const work *w = data;
    return wk_cudnn_execute(handle, p, workspace, w->bias ? POINTERS : TENSORS, (int64_t[]){1, 2, 3, 4},
                            w->data);
}

/* ---- layouts ---- */

/* t [n, c, ..] seen as [n, .., c]. */
static wk_tensor with_channels_last(const wk_tensor *t)
{
    wk_tensor v = wk_tensor_local(t);
    for (int d = 1; d < t->rank; d++) {
        int from = d + 1 < t->rank ? d + 1 : 1;
        v.shape[d] = t->shape[from];
        v.strides[d] = t->strides[from];
    }
    return v;
}

/* t [n, c, ..] as [n, .., channels], zeros behind its own. */
static void *with_more_channels(const work *w, const wk_tensor *t)
{
    wk_tensor view = with_channels_last(t);
    int64_t shape[WK_MAX_RANK];
    memcpy(shape, view.shape, sizeof shape);
    shape[view.rank - 1] = w->channels;
    wk_tensor *copy = wk_tensor_new(t->storage->device, t->dtype, view.rank, shape);
    if (!copy || wk_gpu_zero(w->call, wk_ptr(copy), (size_t)wk_count(copy) * wk_bytes(copy->dtype)) != WK_OK)
        return NULL;
    wk_tensor part = wk_tensor_local(copy);
    part.shape[view.rank - 1] = view.shape[view.rank - 1];
    return wk_copy_into(&part, &view) == WK_OK ? wk_ptr(copy) : NULL;
}

/* Packed, and at a multiple of 16 bytes: engines read and write that much at once, whatever a descriptor says. */
static bool is_usable(const wk_tensor *t) { return wk_is_packed(t) && (size_t)wk_ptr(t) % 16 == 0; }

static void *usable(const wk_tensor *t)
{
    if (is_usable(t))
        return wk_ptr(t);
    wk_tensor *copy = wk_tensor_new(t->storage->device, t->dtype, t->rank, t->shape);
    return copy && wk_copy_into(copy, t) == WK_OK ? wk_ptr(copy) : NULL;
}

/* The address of t's elements in the order that w asks for; NULL with an error. */
static void *ordered(const work *w, const wk_tensor *t)
{
    if (w->channels)
        return with_more_channels(w, t);
    wk_tensor view = w->channels_last ? with_channels_last(t) : wk_tensor_local(t);
    return usable(&view);
}

static void fill_layout(work *w, int i)
{
    const int64_t *shape = w->shape[i];
    int64_t *strides = w->strides[i], step = 1;
    if (!w->channels_last) {
        wk_shape_strides(w->dims + 2, shape, strides);
        return;
    }
    strides[1] = 1;
    step = shape[1];
    for (int d = w->dims + 1; d > 1; d--) {
        strides[d] = step;
        step *= shape[d];
    }
    strides[0] = step;
}

static void fill_shapes(work *w, int dims)
{
    const wk_conv_geometry *g = &w->g;
    w->dims = dims < 2 ? 2 : dims;
    const int64_t heads[][2] = {
        {g->n, g->image_channels}, {g->n, g->map_channels}, {g->map_channels, g->image_channels / g->groups}};
    const int64_t *sizes[] = {g->image, g->map, g->kernel};
    for (int i = 0; i < TENSORS; i++) {
        memcpy(w->shape[i], heads[i], sizeof heads[i]);
        if (w->channels && i != T_MAP)
            w->shape[i][1] = w->channels;
        memcpy(w->shape[i] + 2, sizes[i] + 3 - w->dims, (size_t)w->dims * sizeof(int64_t));
        fill_layout(w, i);
    }
}

static void fill_key(wk_cudnn_call *d, const work *w)
{
    wk_key_add(&d->key, w->g.groups);
    wk_key_add(&d->key, w->channels_last);
    wk_key_add(&d->key, w->fast);
    wk_key_add(&d->key, w->number);
    wk_key_add(&d->key, w->bias + 2 * w->relu);
    for (int i = 0; i < TENSORS; i++)
        wk_key_shape(&d->key, w->dims + 2, w->shape[i]);
    wk_key_shape(&d->key, 3, w->g.stride);
    wk_key_shape(&d->key, 3, w->g.padding);
    wk_key_shape(&d->key, 3, w->g.dilation);
}

/* ---- calls ---- */

/* The inputs of a call by what they are in its computation. */
static wk_status find_data(const wk_call *c, work *w, int *made)
{
    static const int results[WK_CONV_WAYS] = {
        [WK_CONV_TO_MAP] = T_MAP, [WK_CONV_TO_IMAGE] = T_IMAGE, [WK_CONV_TO_WEIGHT] = T_WEIGHT};
    int first =
        w->way == WK_CONV_TO_MAP || (w->way == WK_CONV_TO_WEIGHT && !w->g.transposed) ? T_IMAGE : T_MAP;
    int second = w->way != WK_CONV_TO_WEIGHT ? T_WEIGHT : first == T_IMAGE ? T_MAP : T_IMAGE;
    *made = results[w->way];
    w->data[first] = ordered(w, c->in[0]);
    w->data[second] = w->data[first] ? ordered(w, c->in[1]) : NULL;
    return w->data[second] ? WK_OK : wk_error_status();
}

/* The variants of a call: every configuration in both orders. */
static uint64_t variant_of(bool channels_last, int config)
{
    return 1 + (uint64_t)config + (channels_last ? WK_CUDNN_CONFIGS : 0);
}

/* A product over pixels and a convolution of each channel by itself need no other order. The tensor cores take channels
 * by eights, and fours. */
static void choose_layout(work *w, uint64_t variant)
{
    const wk_conv_geometry *g = &w->g;
    w->channels_last = wk_bytes(w->dtype) == 2 && !is_product(g) && !each_channel_alone(g);
    if (variant) {
        w->channels_last = variant > WK_CUDNN_CONFIGS;
        w->number = 1 + (int)((variant - 1) % WK_CUDNN_CONFIGS);
    }
    if (w->channels_last && w->way == WK_CONV_TO_MAP && g->groups == 1 && g->image_channels % 8)
        w->channels = g->image_channels <= 4 ? 4 : (g->image_channels + 7) / 8 * 8;
}

static wk_status start(const wk_call *c, work *w, uint64_t variant)
{
    *w = (work){.call = c, .dtype = c->dtype, .fast = wk_matmul_precision() == WK_PRECISION_FAST};
    WK_TRY(wk_conv_geometry_of(c, &w->g));
    w->way = wk_conv_way_of(&w->g);
    choose_layout(w, variant);
    fill_shapes(w, c->in[0]->rank - 2);
    return WK_OK;
}

/* Where the result is made: in the output, or beside it in the order of w. */
static wk_status place_result(const wk_call *c, const work *w, wk_tensor *result)
{
    *result = w->channels_last ? with_channels_last(c->out[0]) : wk_tensor_local(c->out[0]);
    if (is_usable(result))
        return WK_OK;
    wk_tensor *temporary = wk_tensor_new(c->device, c->dtype, result->rank, result->shape);
    if (!temporary)
        return wk_error_status();
    *result = wk_tensor_local(temporary);
    return WK_OK;
}

static wk_status convolve(const wk_call *c, work *w)
{
    wk_cudnn_call d = {.call = c, .set_up = set_up, .run = queue, .data = w};
    fill_key(&d, w);
    return wk_cudnn_run(&d);
}

static bool has_bias(const wk_call *c, const work *w) { return w->g.role == WK_CONV_FORWARD && c->in[2]; }

static bool takes_bias(const wk_call *c, const work *w)
{
    return has_bias(c, w) && w->way == WK_CONV_TO_MAP && ends_well(&w->g);
}

/* With the bias in the graph, or without it where there is none for that. */
static wk_status convolve_with_bias(const wk_call *c, work *w)
{
    w->bias = takes_bias(c, w);
    w->data[T_BIAS] = w->bias ? usable(c->in[2]) : NULL;
    if (wk_pending())
        return wk_error_status();
    wk_status status = convolve(c, w);
    if (status != WK_ERR_UNSUPPORTED || !w->bias || w->relu)
        return status;
    wk_error_clear();
    w->bias = false;
    return convolve(c, w);
}

static wk_status run_ending(wk_call *c, bool relu)
{
    work w;
    wk_tensor result;
    int made;
    WK_TRY(start(c, &w, c->variant));
    WK_TRY(find_data(c, &w, &made));
    WK_TRY(place_result(c, &w, &result));
    w.data[made] = wk_ptr(&result);
    w.relu = relu;
    WK_TRY(convolve_with_bias(c, &w));
    if (w.data[made] != wk_ptr(c->out[0])) {
        wk_tensor back = w.channels_last ? with_channels_last(c->out[0]) : wk_tensor_local(c->out[0]);
        WK_TRY(wk_copy_into(&back, &result));
    }
    return has_bias(c, &w) && !w.bias ? wk_conv_add_bias(c) : WK_OK;
}

static wk_status run(wk_call *c) { return run_ending(c, false); }

static wk_status run_weight(wk_call *c)
{
    if (c->out[0])
        WK_TRY(run(c));
    return c->out[1] ? wk_conv_bias_gradient(c) : WK_OK;
}

/* ---- search ---- */

typedef struct {
    work w;
    size_t workspace; /* the most that may be used */
    uint64_t *list;
    int room, *n;
} hunt;

static void set_up_search(cudnnHandle_t handle, wk_cudnn_plan *p, const void *data)
{
    const hunt *s = data;
    wk_cudnn_rules rules = rules_of(&s->w);
    build_graph(p, &s->w);
    wk_cudnn_list(handle, p, &rules);
}

static cudnnStatus_t search(cudnnHandle_t handle, const wk_cudnn_plan *p, void *workspace, const void *data)
{
    const hunt *s = data;
    wk_cudnn_plan tried = *p;
    (void)workspace;
    for (int i = 0; i < p->n_configs && *s->n < s->room; i++) {
        if (wk_cudnn_use(handle, &tried, i) && tried.workspace <= s->workspace)
            s->list[(*s->n)++] = variant_of(s->w.channels_last, i);
    }
    if (tried.execution)
        wk_cudnn.cudnnBackendDestroyDescriptor(tried.execution);
    return CUDNN_STATUS_SUCCESS;
}

/* Half of the places for each order; f32 and f64 have one. */
int wk_cudnn_conv_variants(const wk_call *c, size_t workspace, uint64_t *list, int room)
{
    int n = 0;
    bool both = wk_bytes(c->dtype) == 2;
    if (!c->out[0])
        return 0;
    for (int last = both; last >= 0; last--) {
        hunt s = {.workspace = workspace, .list = list, .room = last ? room / 2 : room, .n = &n};
        if (start(c, &s.w, variant_of(last, 0)) != WK_OK)
            break;
        s.w.number = 0;
        s.w.bias = takes_bias(c, &s.w);
        wk_cudnn_call d = {.call = c, .set_up = set_up_search, .run = search, .data = &s};
        fill_key(&d, &s.w);
        wk_key_add(&d.key, -1); /* no plan that runs */
        if (wk_cudnn_run(&d) != WK_OK)
            wk_error_clear();
    }
    return n;
}

#define ROWS(name) \
    {#name, "cudnn", run, refuse_slower, NULL}, {#name "_backward_data", "cudnn", run, refuse_slower, NULL}, \
        {#name "_backward_weight", "cudnn", run_weight, refuse_slower, NULL},

const wk_impl wk_cuda_impls_conv[] = {
    /* clang-format off */
    ROWS(conv1d) ROWS(conv2d) ROWS(conv3d) ROWS(conv_transpose1d) ROWS(conv_transpose2d)
    /* clang-format on */
    {0},
};

/* ---- with an activation at the end ---- */

static const char *refuse_act(const wk_call *c)
{
    wk_conv_geometry g;
    const char *why = refuse(c);
    if (why)
        return why;
    if (wk_act_of(c).kind != WK_ACT_RELU || !c->in[2] || c->in[WK_CONV_ACT_Z])
        return "cuDNN has this in one for a bias and relu, without z";
    if (wk_conv_geometry_of(c, &g) != WK_OK || !ends_well(&g))
        return "cuDNN is slower at this in one";
    return NULL;
}

static wk_status run_act(wk_call *c) { return run_ending(c, true); }

const wk_impl wk_cuda_impls_act[] = {
    {"conv2d_bias_act", "cudnn", run_act, refuse_act, NULL},
    {0},
};
