/* cudnn_conv_graph.c: convolutions as cuDNN's graphs: the operation, and what follows it element by element. */
#include "cudnn_conv.h"

static cudnnBackendDescriptor_t describe_window(wk_cudnn_plan *p, const wk_cudnn_conv *w)
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
    } sizes[] = {{CUDNN_ATTR_CONVOLUTION_DILATIONS, w->of_graph.dilation},
                 {CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, w->of_graph.stride},
                 {CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, w->of_graph.padding},
                 {CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, w->of_graph.padding}};
    for (int i = 0; i < 4; i++)
        wk_cudnn_set(p, d, sizes[i].name, CUDNN_TYPE_INT64, dims, sizes[i].values + lead);
    wk_cudnn_finish(p, d, "the convolution");
    return d;
}

static cudnnBackendDescriptor_t tensor_of(wk_cudnn_plan *p, const wk_cudnn_conv *w, int i)
{
    wk_cudnn_tensor t = {.id = 1 + i,
                         .type = wk_cudnn_dtype(w->dtype),
                         .rank = w->dims + 2,
                         .shape = w->shape[i],
                         .strides = w->strides[i]};
    return wk_cudnn_tensor_of(p, &t);
}

/* A map that is not in memory. */
static cudnnBackendDescriptor_t between(wk_cudnn_plan *p, const wk_cudnn_conv *w)
{
    wk_cudnn_tensor t = {.type = wk_cudnn_compute(w->dtype),
                         .rank = w->dims + 2,
                         .shape = w->shape[WK_CONV_MAP],
                         .strides = w->strides[WK_CONV_MAP],
                         .flags = WK_CUDNN_VIRTUAL};
    return wk_cudnn_tensor_of(p, &t);
}

/* ---- the end ---- */

/* A number for each channel of the map; id 0: not in memory. */
static cudnnBackendDescriptor_t of_channels(wk_cudnn_plan *p, const wk_cudnn_conv *w, int64_t id,
                                            cudnnDataType_t type)
{
    int64_t k = w->shape[WK_CONV_MAP][1], shape[] = {1, k, 1, 1, 1}, strides[] = {k, 1, k, k, k};
    wk_cudnn_tensor t = {.id = id,
                         .type = type,
                         .rank = w->dims + 2,
                         .shape = shape,
                         .strides = strides,
                         .flags = id ? 0 : WK_CUDNN_VIRTUAL};
    return wk_cudnn_tensor_of(p, &t);
}

/* 1 / sqrt(var + eps) */
static cudnnBackendDescriptor_t inverse_deviation(wk_cudnn_plan *p, const wk_cudnn_conv *w)
{
    const cudnnDataType_t f32 = CUDNN_DATA_FLOAT;
    wk_cudnn_step add = {.mode = CUDNN_POINTWISE_ADD,
                         .compute = f32,
                         .x = of_channels(p, w, 1 + WK_CONV_VAR, f32),
                         .b = wk_cudnn_number(p, 1 + WK_CONV_EPS, f32),
                         .y = of_channels(p, w, 0, f32)};
    wk_cudnn_step root = {.mode = CUDNN_POINTWISE_RSQRT, .compute = f32, .y = of_channels(p, w, 0, f32)};
    root.x = wk_cudnn_pointwise(p, &add);
    return wk_cudnn_pointwise(p, &root);
}

/* The steps of the end in their order: x = mode(x, b). */
typedef struct {
    cudnnPointwiseMode_t mode;
    cudnnBackendDescriptor_t b;
} end_step;

static int list_end(wk_cudnn_plan *p, const wk_cudnn_conv *w, end_step *steps)
{
    const cudnnDataType_t type = wk_cudnn_dtype(w->dtype), f32 = CUDNN_DATA_FLOAT;
    int n = 0;
    if (wk_conv_has(w, WK_CONV_BIAS))
        steps[n++] = (end_step){CUDNN_POINTWISE_ADD, of_channels(p, w, 1 + WK_CONV_BIAS, type)};
    if (wk_conv_has(w, WK_CONV_MEAN))
        steps[n++] = (end_step){CUDNN_POINTWISE_SUB, of_channels(p, w, 1 + WK_CONV_MEAN, f32)};
    if (wk_conv_has(w, WK_CONV_VAR))
        steps[n++] = (end_step){CUDNN_POINTWISE_MUL, inverse_deviation(p, w)};
    if (wk_conv_has(w, WK_CONV_SCALE))
        steps[n++] = (end_step){CUDNN_POINTWISE_MUL, of_channels(p, w, 1 + WK_CONV_SCALE, f32)};
    if (wk_conv_has(w, WK_CONV_SHIFT))
        steps[n++] = (end_step){CUDNN_POINTWISE_ADD, of_channels(p, w, 1 + WK_CONV_SHIFT, f32)};
    if (w->relu)
        steps[n++] = (end_step){CUDNN_POINTWISE_RELU_FWD, NULL};
    return n;
}

static void build_end(wk_cudnn_plan *p, const wk_cudnn_conv *w, cudnnBackendDescriptor_t x)
{
    end_step steps[WK_CONV_POINTERS];
    int n = list_end(p, w, steps);
    for (int i = 0; i < n; i++) {
        wk_cudnn_step s = {.mode = steps[i].mode, .compute = wk_cudnn_compute(w->dtype), .x = x};
        s.b = steps[i].b;
        s.y = i == n - 1 ? tensor_of(p, w, WK_CONV_MAP) : between(p, w);
        x = wk_cudnn_pointwise(p, &s);
    }
}

/* ---- the graph ---- */

static void build_graph(wk_cudnn_plan *p, const wk_cudnn_conv *w)
{
    static const struct {
        cudnnBackendDescriptorType_t type;
        cudnnBackendAttributeName_t alpha, beta, window, tensor[WK_CONV_TENSORS];
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
    bool ends = w->has || w->relu;
    cudnnBackendDescriptor_t before_end = ends ? between(p, w) : NULL;
    for (int i = 0; i < WK_CONV_TENSORS; i++)
        wk_cudnn_set_descriptor(p, op, ops[w->way].tensor[i],
                                i == WK_CONV_MAP && ends ? before_end : tensor_of(p, w, i));
    wk_cudnn_set(p, op, ops[w->way].alpha, real, 1, wide ? (const void *)&one64 : &one);
    wk_cudnn_set(p, op, ops[w->way].beta, real, 1, wide ? (const void *)&zero64 : &zero);
    wk_cudnn_set_descriptor(p, op, ops[w->way].window, window);
    wk_cudnn_add(p, op, "the operation");
    if (ends)
        build_end(p, w, before_end);
}

static wk_cudnn_rules rules_of(const wk_cudnn_conv *w)
{
    bool true_f32 = w->dtype == WK_F32 && !w->fast;
    return (wk_cudnn_rules){.true_f32 = true_f32, .fft = w->fft, .number = w->number};
}

void wk_cudnn_conv_set_up(cudnnHandle_t handle, wk_cudnn_plan *p, const void *data)
{
    const wk_cudnn_conv *w = data;
    wk_cudnn_rules rules = rules_of(w);
    build_graph(p, w);
    wk_cudnn_choose(handle, p, &rules);
}

void wk_cudnn_conv_list(cudnnHandle_t handle, wk_cudnn_plan *p, const wk_cudnn_conv *w)
{
    wk_cudnn_rules rules = rules_of(w);
    build_graph(p, w);
    wk_cudnn_list(handle, p, &rules);
}
