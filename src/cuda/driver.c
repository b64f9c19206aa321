/* driver.c: NVIDIA devices through the CUDA driver. */
#include <pthread.h>
#include <stdio.h>
#include "cuda_libs.h"
#include "gpu/driver.h"

static const char *const sonames[] = {"libcuda.so.1", NULL};
static const char *const folders[] = {"/usr/lib/wsl/lib", NULL};
wk_library wk_lib_cuda = {.name = "libcuda",
                          .sonames = sonames,
                          .variable = "WICK_CUDA_LIBRARY",
                          .package = "NVIDIA's driver, libcuda1 (Debian)",
                          .folders = folders};
wk_cuda_calls wk_cu;
static int version; /* of CUDA, as the driver knows it: 12030; from there on graphs keep early launches */

static CUdeviceptr address(const void *p) { return (CUdeviceptr)(size_t)p; }

static int count(int *n) { return wk_cu.cuDeviceGetCount(n); }

/* The primary context, which the CUDA runtime and every framework use too. */
static int open_device(int ordinal, wk_gpu_facts *f, void **context)
{
    CUdevice d = 0;
    int major = 0, minor = 0, code = wk_cu.cuDeviceGet(&d, ordinal);
    if (code == 0)
        code = wk_cu.cuDeviceGetName(f->name, sizeof f->name, d);
    if (code == 0)
        code = wk_cu.cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, d);
    if (code == 0)
        code = wk_cu.cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, d);
    if (code == 0)
        code = wk_cu.cuDeviceGetAttribute(&f->wave, CU_DEVICE_ATTRIBUTE_WARP_SIZE, d);
    if (code == 0)
        code = wk_cu.cuDeviceGetAttribute(&f->units, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, d);
    if (code == 0)
        code = wk_cu.cuDeviceGetAttribute(&f->shared_bytes,
                                          CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, d);
    if (code == 0)
        code = wk_cu.cuDeviceTotalMem_v2(&f->memory, d);
    snprintf(f->arch, sizeof f->arch, "sm_%d%d", major, minor);
    f->early = major >= 9 && version >= 12030 && wk_cu.cuLaunchKernelEx;
    return code ? code : wk_cu.cuDevicePrimaryCtxRetain((CUcontext *)context, d);
}

static int enter(void *context)
{
    CUcontext now = NULL;
    if (wk_cu.cuCtxGetCurrent(&now) == 0 && now == context)
        return 0;
    return wk_cu.cuCtxSetCurrent(context);
}

static int memory(size_t *free, size_t *total) { return wk_cu.cuMemGetInfo_v2(free, total); }

static int alloc(void **p, size_t bytes)
{
    CUdeviceptr d = 0;
    int code = wk_cu.cuMemAlloc_v2(&d, bytes);
    *p = (void *)(size_t)d;
    return code;
}

static int release(void *p) { return wk_cu.cuMemFree_v2(address(p)); }

static int host_alloc(void **host, void **device, size_t bytes)
{
    CUdeviceptr d = 0;
    int code = wk_cu.cuMemHostAlloc(host, bytes, CU_MEMHOSTALLOC_DEVICEMAP);
    if (code == 0)
        code = wk_cu.cuMemHostGetDevicePointer_v2(&d, *host, 0);
    *device = (void *)(size_t)d;
    return code;
}

static int host_free(void *host) { return wk_cu.cuMemFreeHost(host); }

static int copy(void *dst, const void *src, size_t bytes, wk_copy_way way, void *stream)
{
    if (way == WK_COPY_UP)
        return wk_cu.cuMemcpyHtoDAsync_v2(address(dst), src, bytes, stream);
    if (way == WK_COPY_DOWN)
        return wk_cu.cuMemcpyDtoHAsync_v2(dst, address(src), bytes, stream);
    return wk_cu.cuMemcpyDtoDAsync_v2(address(dst), address(src), bytes, stream);
}

static int fill(void *dst, unsigned char byte, size_t bytes, void *stream)
{
    return wk_cu.cuMemsetD8Async(address(dst), byte, bytes, stream);
}

static int stream_new(void **stream)
{
    return wk_cu.cuStreamCreate((CUstream *)stream, CU_STREAM_NON_BLOCKING);
}
static int stream_free(void *stream) { return wk_cu.cuStreamDestroy_v2(stream); }
static int stream_sync(void *stream) { return wk_cu.cuStreamSynchronize(stream); }
static int stream_wait(void *stream, void *event) { return wk_cu.cuStreamWaitEvent(stream, event, 0); }

static int event_new(void **event, bool timing)
{
    return wk_cu.cuEventCreate((CUevent *)event, timing ? 0 : CU_EVENT_DISABLE_TIMING);
}

static int event_free(void *event) { return wk_cu.cuEventDestroy_v2(event); }
static int event_record(void *event, void *stream) { return wk_cu.cuEventRecord(event, stream); }
static int event_sync(void *event) { return wk_cu.cuEventSynchronize(event); }
static int event_ms(float *ms, void *from, void *to) { return wk_cu.cuEventElapsedTime(ms, from, to); }

static int module_load(void **module, const void *image)
{
    return wk_cu.cuModuleLoadData((CUmodule *)module, image);
}
static int module_unload(void *module) { return wk_cu.cuModuleUnload(module); }

static int module_function(void **function, void *module, const char *name)
{
    return wk_cu.cuModuleGetFunction((CUfunction *)function, module, name);
}

static int function_facts(void *function, wk_function_facts *f)
{
    int code = wk_cu.cuFuncGetAttribute(&f->registers, CU_FUNC_ATTRIBUTE_NUM_REGS, function);
    if (code == 0)
        code = wk_cu.cuFuncGetAttribute(&f->shared_bytes, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function);
    return code ? code
                : wk_cu.cuFuncGetAttribute(&f->local_bytes, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, function);
}

/* A block gets more than 48 KB, with what the kernel itself declares, only when asked for beforehand. */
static int function_shared(void *function, int bytes)
{
    return bytes <= 32 << 10
               ? 0
               : wk_cu.cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, bytes);
}

/* The kernel itself says how large its clusters are; more than 8 blocks need leave. */
static int clusters(void *function, unsigned threads, unsigned shared, int *n)
{
    CUlaunchConfig config = {.gridDimX = 1 << 20,
                             .gridDimY = 1,
                             .gridDimZ = 1,
                             .blockDimX = threads,
                             .blockDimY = 1,
                             .blockDimZ = 1,
                             .sharedMemBytes = shared};
    int code = wk_cu.cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1);
    if (code)
        return code;
    return wk_cu.cuOccupancyMaxActiveClusters ? wk_cu.cuOccupancyMaxActiveClusters(n, function, &config)
                                              : CUDA_ERROR_NOT_SUPPORTED;
}

static int launch(void *function, const unsigned g[3], unsigned threads, unsigned shared, void *stream,
                  void **args)
{
    return wk_cu.cuLaunchKernel(function, g[0], g[1], g[2], threads, 1, 1, shared, stream, args, NULL);
}

/* "Programmatic dependent launch": the kernel ahead need not be done, only have begun with all of its blocks. */
static int launch_early(void *function, const unsigned g[3], unsigned threads, unsigned shared, void *stream,
                        void **args)
{
    CUlaunchAttribute attribute = {.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
                                   .value.programmaticStreamSerializationAllowed = 1};
    CUlaunchConfig config = {.gridDimX = g[0],
                             .gridDimY = g[1],
                             .gridDimZ = g[2],
                             .blockDimX = threads,
                             .blockDimY = 1,
                             .blockDimZ = 1,
                             .sharedMemBytes = shared,
                             .hStream = stream,
                             .attrs = &attribute,
                             .numAttrs = 1};
    return wk_cu.cuLaunchKernelEx(&config, function, args, NULL);
}

static int capture_begin(void *stream)
{
    return wk_cu.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED);
}

static int capture_end(void *stream, void **graph)
{
    return wk_cu.cuStreamEndCapture(stream, (CUgraph *)graph);
}

static int graph_build(void **exec, void *graph)
{
    return wk_cu.cuGraphInstantiateWithFlags((CUgraphExec *)exec, graph, 0);
}

static int graph_launch(void *exec, void *stream) { return wk_cu.cuGraphLaunch(exec, stream); }

static int graph_free(void *graph, void *exec)
{
    int code = exec ? wk_cu.cuGraphExecDestroy(exec) : 0;
    int then = graph ? wk_cu.cuGraphDestroy(graph) : 0;
    return code ? code : then;
}

static const char *text(int code)
{
    const char *words = NULL;
    return wk_cu.cuGetErrorString(code, &words) == 0 && words ? words : "unknown error";
}

static const wk_driver table = {
    .kind = WK_KIND_CUDA,
    .maker = "cuda",
    .out_of_memory = CUDA_ERROR_OUT_OF_MEMORY,
    .text = text,
    .count = count,
    .open = open_device,
    .enter = enter,
    .memory = memory,
    .alloc = alloc,
    .free = release,
    .host_alloc = host_alloc,
    .host_free = host_free,
    .copy = copy,
    .fill = fill,
    .stream_new = stream_new,
    .stream_free = stream_free,
    .stream_sync = stream_sync,
    .stream_wait = stream_wait,
    .event_new = event_new,
    .event_free = event_free,
    .event_record = event_record,
    .event_sync = event_sync,
    .event_ms = event_ms,
    .module_load = module_load,
    .module_unload = module_unload,
    .module_function = module_function,
    .function_facts = function_facts,
    .function_shared = function_shared,
    .clusters = clusters,
    .launch = launch,
    .launch_early = launch_early,
    .capture_begin = capture_begin,
    .capture_end = capture_end,
    .graph_build = graph_build,
    .graph_launch = graph_launch,
    .graph_free = graph_free,
};

static bool usable;

static void load(void)
{
#define X(result, name, arguments) {#name, (void **)&wk_cu.name},
    static const wk_symbol symbols[] = {WK_CUDA_CALLS(X)}, newer[] = {WK_CUDA_NEWER_CALLS(X)};
#undef X
    wk_library *l = &wk_lib_cuda;
    int n = 0;
    if (!wk_library_load(l) || !wk_library_symbols(l, symbols, sizeof symbols / sizeof *symbols))
        return;
    wk_library_newer_symbols(l, newer, sizeof newer / sizeof *newer);
    int code = wk_cu.cuInit(0);
    if (wk_cu.cuDriverGetVersion(&version) == 0)
        snprintf(l->version, sizeof l->version, "CUDA %d.%d", version / 1000, version % 1000 / 10);
    if (code == 0)
        code = wk_cu.cuDeviceGetCount(&n);
    if (code)
        snprintf(l->trouble, sizeof l->trouble, "%s", text(code));
    else if (n == 0)
        snprintf(l->trouble, sizeof l->trouble, "no device");
    usable = code == 0 && n > 0;
}

const wk_driver *wk_cuda_driver(const char **why)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    *why = wk_lib_cuda.trouble;
    return usable ? &table : NULL;
}
