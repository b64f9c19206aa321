/* cudnn.c: cuDNN plans convolutions for an H200 that is not there: every graph that wick builds has an engine, and the
 * engines keep wick's promises. Skipped where there is no cuDNN, or one that does not plan without a GPU. */
#define wk_cuda_impls_act tested_impls_act
#define wk_cuda_impls_conv tested_impls_conv
#define wk_cudnn_conv_variants tested_variants
#include "../src/cuda/cudnn_conv.c"
#include "test.h"

enum {
    DEVICEPROP_DESCRIPTOR = 38,
    DEVICEPROP_JSON = 2702,
    ENGINEHEUR_DEVICEPROP = 204,
    EXECUTION_PLAN_DEVICEPROP = 407,
    TYPE_CHAR = 24
};

static const char h200[] =
    "{\"deviceName\":\"H200\",\"deviceVer\":900,\"driverVer\":13000,\"cudaDeviceId\":0,\"pciDeviceId\":0,"
    "\"multiProcessorCount\":132,\"smCountOrigin\":0,\"warpSize\":32,\"regsPerBlock\":65536,"
    "\"maxRegistersPerSM\":65536,\"maxSharedMemoryPerBlock\":49152,\"maxSharedMemoryPerBlockOptin\":232448,"
    "\"reservedSharedMemoryPerBlock\":1024,\"maxCtasPerSM\":32,\"maxThreadsPerBlock\":1024,"
    "\"maxThreadsPerSM\":2048,\"maxBlockSize\":[1024,1024,64],\"maxGridSize\":[2147483647,65535,65535],"
    "\"isTccDriver\":0,\"supportCoopLaunch\":1,\"totalGlobalMem\":150000000000,\"smClockRateKHz\":1980000,"
    "\"memClockRateKHz\":3201000,\"memoryBusWidth\":6144,\"l2CacheSize\":62914560}";

static cudnnBackendDescriptor_t device;
static __typeof__(wk_cudnn.cudnnBackendSetAttribute) really_set;

/* The device in the place of the handle, which cannot be had without a GPU. */
static cudnnStatus_t set_for_device(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                                    cudnnBackendAttributeType_t type, int64_t n, const void *values)
{
    if (name == CUDNN_ATTR_OPERATIONGRAPH_HANDLE)
        return CUDNN_STATUS_SUCCESS;
    if (name == CUDNN_ATTR_EXECUTION_PLAN_HANDLE)
        return really_set(d, EXECUTION_PLAN_DEVICEPROP, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &device);
    cudnnStatus_t status =
        name == CUDNN_ATTR_ENGINEHEUR_MODE
            ? really_set(d, ENGINEHEUR_DEVICEPROP, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &device)
            : CUDNN_STATUS_SUCCESS;
    return status == CUDNN_STATUS_SUCCESS ? really_set(d, name, type, n, values) : status;
}

static bool open_device(void)
{
    if (!wk_cudnn_load() ||
        wk_cudnn.cudnnBackendCreateDescriptor(DEVICEPROP_DESCRIPTOR, &device) != CUDNN_STATUS_SUCCESS ||
        wk_cudnn.cudnnBackendSetAttribute(device, DEVICEPROP_JSON, TYPE_CHAR, sizeof h200 - 1, h200) !=
            CUDNN_STATUS_SUCCESS ||
        wk_cudnn.cudnnBackendFinalize(device) != CUDNN_STATUS_SUCCESS)
        return false;
    really_set = wk_cudnn.cudnnBackendSetAttribute;
    wk_cudnn.cudnnBackendSetAttribute = set_for_device;
    return true;
}

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

static work work_of(const layer *l, wk_dtype dtype, wk_conv_way way)
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
    choose_layout(&w, 0);
    fill_shapes(&w, l->dims);
    return w;
}

/* The numerical notes of a configuration's engine, as bits. */
static unsigned notes_of(cudnnBackendDescriptor_t config)
{
    enum { MOST = 32 };
    cudnnBackendNumericalNote_t notes[MOST];
    cudnnBackendDescriptor_t engine = NULL;
    int64_t n = 0;
    unsigned set = 0;
    wk_cudnn.cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINE_DESCRIPTOR, &engine);
    wk_cudnn.cudnnBackendGetAttribute(config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                                      &n, &engine);
    n = 0;
    wk_cudnn.cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                      MOST, &n, notes);
    for (int64_t i = 0; i < n; i++)
        set |= 1u << notes[i];
    wk_cudnn.cudnnBackendDestroyDescriptor(engine);
    return set;
}

static void test_layer(const layer *l, wk_dtype dtype, wk_conv_way way, bool bias, bool relu)
{
    static wk_cudnn_plan p;
    work w = work_of(l, dtype, way);
    w.bias = bias;
    w.relu = relu;
    p = (wk_cudnn_plan){0};
    set_up(NULL, &p, &w);
    test_check(p.status == CUDNN_STATUS_SUCCESS, __FILE__, __LINE__, "%s, %s, way %d: %s", l->name,
               wk_dtype_name(dtype), (int)way, p.trouble);
    for (int i = 0; i < p.n_configs; i++) {
        unsigned notes = notes_of(p.configs[i]);
        CHECK(!(notes >> CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC & 1));
        CHECK(dtype != WK_F32 || !(notes >> CUDNN_NUMERICAL_NOTE_TENSOR_CORE & 1));
    }
    if (p.execution)
        wk_cudnn.cudnnBackendDestroyDescriptor(p.execution);
    while (p.n_configs > 0)
        wk_cudnn.cudnnBackendDestroyDescriptor(p.configs[--p.n_configs]);
    while (p.n_made > 0)
        wk_cudnn.cudnnBackendDestroyDescriptor(p.made[--p.n_made]);
}

/* A variant says which configuration, in which order. */
static void test_variants(void)
{
    work w = work_of(&all[0], WK_F16, WK_CONV_TO_MAP);
    for (int last = 0; last < 2; last++) {
        choose_layout(&w, variant_of(last, 5));
        CHECK_EQ(w.channels_last, last);
        CHECK_EQ(w.number, 6);
    }
}

int main(void)
{
    test_variants();
    if (!open_device()) {
        SKIP("cuDNN does not plan here");
        return test_end();
    }
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        for (int way = WK_CONV_TO_MAP; way < WK_CONV_WAYS; way++) {
            test_layer(&all[i], WK_F32, way, false, false);
            test_layer(&all[i], WK_F16, way, false, false);
            test_layer(&all[i], WK_BF16, way, false, false);
        }
        for (int relu = 0; relu < 2; relu++) {
            test_layer(&all[i], WK_F32, WK_CONV_TO_MAP, true, relu);
            test_layer(&all[i], WK_F16, WK_CONV_TO_MAP, true, relu);
        }
    }
    test_layer(&all[0], WK_F64, WK_CONV_TO_MAP, false, false);
    return test_end();
}
