/* cudnn.c: cuDNN plans convolutions for an H200 that is not there: every graph that wick builds has an engine, and the
 * engines keep wick's promises. Skipped where there is no cuDNN, or one that does not plan without a GPU. */
#define wk_cuda_impls_conv tested_impls_conv
#define wk_cudnn_conv_variants tested_variants
#define wk_cudnn_conv_refuse tested_refuse
#define wk_cudnn_conv_ends_well tested_ends_well
#define wk_cudnn_conv_run tested_run
#include "../src/cuda/cudnn_conv.c"
#include "cudnn_plans.h"

/* A square convolution; dims of the window. */
typedef struct {
    const char *name;
    int dims;
    int64_t n, channels, size, maps, kernel, stride, padding, dilation, groups;
} layer;

static const layer all[] = {
    {"resnet 3x3", 2, 64, 64, 56, 64, 3, 1, 1, 1, 1}, {"resnet 1x1", 2, 64, 256, 56, 64, 1, 1, 0, 1, 1},
    {"stem", 2, 8, 3, 224, 64, 7, 2, 3, 1, 1},        {"channels alone", 2, 8, 128, 56, 128, 3, 1, 1, 1, 128},
    {"groups", 2, 2, 12, 9, 8, 3, 2, 1, 1, 4},        {"dilation", 2, 2, 6, 20, 5, 3, 1, 2, 2, 1},
    {"volume", 3, 2, 3, 7, 4, 3, 1, 1, 1, 1},
};

static const layer deep = {"deep", 2, 4, 320, 64, 320, 3, 1, 1, 1, 1};

static work work_of(const layer *l, wk_dtype dtype, wk_conv_way way, bool may_turn)
{
    work w = {.dtype = dtype, .way = way};
    w.g = (wk_conv_geometry){
        .n = l->n, .groups = l->groups, .image_channels = l->channels, .map_channels = l->maps};
    for (int d = 0; d < 3; d++) {
        bool used = d >= 3 - l->dims;
        w.g.image[d] = used ? l->size : 1;
        w.g.kernel[d] = used ? l->kernel : 1;
        w.g.stride[d] = used ? l->stride : 1;
        w.g.dilation[d] = used ? l->dilation : 1;
        w.g.padding[d] = used ? l->padding : 0;
        w.g.map[d] =
            (w.g.image[d] + 2 * w.g.padding[d] - (w.g.kernel[d] - 1) * w.g.dilation[d] - 1) / w.g.stride[d] +
            1;
    }
    choose_order(&w, 0, may_turn);
    fill_shapes(&w, l->dims);
    return w;
}

enum {
    BIAS = 1 << WK_CONV_BIAS,
    NORM = 1 << WK_CONV_MEAN | 1 << WK_CONV_VAR | 1 << WK_CONV_EPS | 1 << WK_CONV_SCALE | 1 << WK_CONV_SHIFT
};

static void test_layer(const layer *l, wk_dtype dtype, wk_conv_way way, unsigned has, bool relu)
{
    static wk_cudnn_plan p;
    work w = work_of(l, dtype, way, !has && !relu);
    w.has = has;
    w.relu = relu;
    p = (wk_cudnn_plan){0};
    wk_cudnn_conv_set_up(NULL, &p, &w);
    test_check(p.status == CUDNN_STATUS_SUCCESS, __FILE__, __LINE__, "%s, %s, way %d, end %x: %s", l->name,
               wk_dtype_name(dtype), (int)way, has, p.trouble);
    for (int i = 0; i < p.n_configs; i++) {
        unsigned notes = wk_cudnn_notes(p.configs[i]);
        CHECK(!(notes >> CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC & 1));
        CHECK(dtype != WK_F32 || !(notes >> CUDNN_NUMERICAL_NOTE_TENSOR_CORE & 1));
    }
    wk_cudnn_plan_clear(&p);
}

/* A variant says which configuration, in which order. */
static void test_variants(void)
{
    for (int order = PLAIN; order <= LAST; order++) {
        work w = work_of(&all[0], WK_F16, WK_CONV_TO_MAP, true);
        choose_order(&w, variant_of(order, 5), true);
        CHECK_EQ(w.channels_last, order == LAST);
        CHECK_EQ(w.number, 6);
    }
}

/* In f32 the map and the image are exchanged where cuDNN is the faster for it. */
static void test_turns(void)
{
    for (int way = WK_CONV_TO_MAP; way <= WK_CONV_TO_IMAGE; way++) {
        work many = work_of(&all[0], WK_F32, way, true), few = work_of(&deep, WK_F32, way, true);
        CHECK_EQ(many.way, WK_CONV_TO_IMAGE);
        CHECK_EQ(many.fft, WK_CUDNN_FFT_FIRST);
        CHECK_EQ(few.way, WK_CONV_TO_MAP);
        CHECK_EQ(few.fft, WK_CUDNN_FFT_NONE);
    }
    work strided = work_of(&all[2], WK_F32, WK_CONV_TO_IMAGE, true);
    CHECK(!strided.turned);
}

int main(void)
{
    test_variants();
    test_turns();
    if (!open_device()) {
        SKIP("cuDNN does not plan here");
        return test_end();
    }
    bool makes_kernels = has_driver();
    if (!makes_kernels)
        SKIP("cuDNN makes no kernels here");
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        for (int way = WK_CONV_TO_MAP; way < WK_CONV_WAYS; way++) {
            test_layer(&all[i], WK_F32, way, 0, false);
            test_layer(&all[i], WK_F16, way, 0, false);
            test_layer(&all[i], WK_BF16, way, 0, false);
        }
        for (int relu = 0; relu < 2; relu++) {
            test_layer(&all[i], WK_F32, WK_CONV_TO_MAP, BIAS, relu);
            test_layer(&all[i], WK_F16, WK_CONV_TO_MAP, BIAS, relu);
            work w = work_of(&all[i], WK_F16, WK_CONV_TO_MAP, false);
            if (!makes_kernels || all[i].dims != 2 || all[i].groups > 1 || !wk_cudnn_conv_ends_well(&w.g))
                continue;
            test_layer(&all[i], WK_F16, WK_CONV_TO_MAP, NORM, relu);
            test_layer(&all[i], WK_BF16, WK_CONV_TO_MAP, BIAS | NORM, relu);
        }
    }
    test_layer(&all[0], WK_F64, WK_CONV_TO_MAP, 0, false);
    return test_end();
}
