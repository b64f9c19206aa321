/* driver.c: AMD devices through HIP. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include "gpu/driver.h"
#include "rocm.h"

/* Of ROCm 7, 6 and 5; the plain name is what Python wheels carry. */
static const char *const sonames[] = {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5",
                                      "libamdhip64.so", NULL};
static const char *const folders[] = {"/opt/rocm/lib", "/opt/rocm/lib64", NULL};
wk_library wk_lib_hip = {.name = "libamdhip64",
                         .sonames = sonames,
                         .variable = "WICK_HIP_LIBRARY",
                         .package = "hip-runtime-amd (AMD's), libamdhip64-6 (Debian, Ubuntu)",
                         .folders = folders};
wk_hip_calls wk_hip;

static int count(int *n) { return wk_hip.hipGetDeviceCount(n); }

/* The gfx name stands in the properties alone, whose layout changed with ROCm 6: the newer call where there is one.
 * "gfx90a:sramecc+:xnack-" is cut to what code objects are named by. */
static int arch_name(int ordinal, char *arch, size_t room)
{
    union {
        char bytes[8192]; /* more than any version's struct */
        long long align;
    } properties;
    static const struct {
        const char *call;
        size_t offset;
    } layouts[] = {{"hipGetDevicePropertiesR0600", 1160}, {"hipGetDeviceProperties", 396}};
    for (int i = 0; i < 2; i++) {
        hipError_t (*get)(void *, int) =
            (hipError_t(*)(void *, int))dlsym(wk_lib_hip.handle, layouts[i].call);
        memset(&properties, 0, sizeof properties);
        int code = get ? get(&properties, ordinal) : -1;
        const char *name = properties.bytes + layouts[i].offset;
        if (code == 0 && strncmp(name, "gfx", 3) == 0) {
            snprintf(arch, room, "%.*s", (int)strcspn(name, ":"), name);
            return 0;
        }
    }
    return hipErrorNoDevice;
}

static int open_device(int ordinal, wk_gpu_facts *f, void **context)
{
    int code = arch_name(ordinal, f->arch, sizeof f->arch);
    if (code == 0)
        code = wk_hip.hipDeviceGetName(f->name, sizeof f->name, ordinal);
    if (code == 0)
        code = wk_hip.hipDeviceGetAttribute(&f->wave, hipDeviceAttributeWarpSize, ordinal);
    if (code == 0)
        code = wk_hip.hipDeviceGetAttribute(&f->units, hipDeviceAttributeMultiprocessorCount, ordinal);
    if (code == 0)
        code = wk_hip.hipDeviceGetAttribute(&f->shared_bytes, hipDeviceAttributeMaxSharedMemoryPerBlock,
                                            ordinal);
    if (code == 0)
        code = wk_hip.hipDeviceTotalMem(&f->memory, ordinal);
    *context = (void *)(size_t)(ordinal + 1);
    return code;
}

static int enter(void *context)
{
    int now, ordinal = (int)(size_t)context - 1;
    if (wk_hip.hipGetDevice(&now) == 0 && now == ordinal)
        return 0;
    return wk_hip.hipSetDevice(ordinal);
}

static int memory(size_t *free, size_t *total) { return wk_hip.hipMemGetInfo(free, total); }
static int alloc(void **p, size_t bytes) { return wk_hip.hipMalloc(p, bytes); }
static int release(void *p) { return wk_hip.hipFree(p); }

static int host_alloc(void **host, void **device, size_t bytes)
{
    int code = wk_hip.hipHostMalloc(host, bytes, hipHostMallocMapped);
    return code ? code : wk_hip.hipHostGetDevicePointer(device, *host, 0);
}

static int host_free(void *host) { return wk_hip.hipHostFree(host); }

static int copy(void *dst, const void *src, size_t bytes, wk_copy_way way, void *stream)
{
    static const hipMemcpyKind kinds[] = {hipMemcpyHostToDevice, hipMemcpyDeviceToHost,
                                          hipMemcpyDeviceToDevice};
    return wk_hip.hipMemcpyAsync(dst, src, bytes, kinds[way], stream);
}

static int fill(void *dst, unsigned char byte, size_t bytes, void *stream)
{
    return wk_hip.hipMemsetAsync(dst, byte, bytes, stream);
}

static int stream_new(void **stream)
{
    return wk_hip.hipStreamCreateWithFlags((hipStream_t *)stream, hipStreamNonBlocking);
}

static int stream_free(void *stream) { return wk_hip.hipStreamDestroy(stream); }
static int stream_sync(void *stream) { return wk_hip.hipStreamSynchronize(stream); }
static int stream_wait(void *stream, void *event) { return wk_hip.hipStreamWaitEvent(stream, event, 0); }

static int event_new(void **event, bool timing)
{
    return wk_hip.hipEventCreateWithFlags((hipEvent_t *)event, timing ? 0 : hipEventDisableTiming);
}

static int event_free(void *event) { return wk_hip.hipEventDestroy(event); }
static int event_record(void *event, void *stream) { return wk_hip.hipEventRecord(event, stream); }
static int event_sync(void *event) { return wk_hip.hipEventSynchronize(event); }
static int event_ms(float *ms, void *from, void *to) { return wk_hip.hipEventElapsedTime(ms, from, to); }

static int module_load(void **module, const void *image)
{
    return wk_hip.hipModuleLoadData((hipModule_t *)module, image);
}

static int module_unload(void *module) { return wk_hip.hipModuleUnload(module); }

static int module_function(void **function, void *module, const char *name)
{
    return wk_hip.hipModuleGetFunction((hipFunction_t *)function, module, name);
}

static int function_facts(void *function, wk_function_facts *f)
{
    int code = wk_hip.hipFuncGetAttribute(&f->registers, HIP_FUNC_ATTRIBUTE_NUM_REGS, function);
    if (code == 0)
        code = wk_hip.hipFuncGetAttribute(&f->shared_bytes, HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function);
    return code ? code
                : wk_hip.hipFuncGetAttribute(&f->local_bytes, HIP_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, function);
}

/* AMD devices give a block all they have without being asked. */
static int function_shared(void *function, int bytes)
{
    (void)function, (void)bytes;
    return 0;
}

static int launch(void *function, const unsigned g[3], unsigned threads, unsigned shared, void *stream,
                  void **args)
{
    return wk_hip.hipModuleLaunchKernel(function, g[0], g[1], g[2], threads, 1, 1, shared, stream, args,
                                        NULL);
}

static int capture_begin(void *stream)
{
    return wk_hip.hipStreamBeginCapture(stream, hipStreamCaptureModeRelaxed);
}

static int capture_end(void *stream, void **graph)
{
    return wk_hip.hipStreamEndCapture(stream, (hipGraph_t *)graph);
}

static int graph_build(void **exec, void *graph)
{
    return wk_hip.hipGraphInstantiateWithFlags((hipGraphExec_t *)exec, graph, 0);
}

static int graph_launch(void *exec, void *stream) { return wk_hip.hipGraphLaunch(exec, stream); }

static int graph_free(void *graph, void *exec)
{
    int code = exec ? wk_hip.hipGraphExecDestroy(exec) : 0;
    int then = graph ? wk_hip.hipGraphDestroy(graph) : 0;
    return code ? code : then;
}

static const char *text(int code) { return wk_hip.hipGetErrorString(code); }

static const wk_driver table = {
    .kind = WK_KIND_ROCM,
    .maker = "rocm",
    .out_of_memory = hipErrorOutOfMemory,
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
    .launch = launch,
    .capture_begin = capture_begin,
    .capture_end = capture_end,
    .graph_build = graph_build,
    .graph_launch = graph_launch,
    .graph_free = graph_free,
};

static bool usable;

static void load(void)
{
    static const wk_symbol symbols[] = {
#define X(result, name, arguments) {#name, (void **)&wk_hip.name},
        WK_HIP_CALLS(X)
#undef X
    };
    wk_library *l = &wk_lib_hip;
    int n = 0, version = 0;
    if (!wk_library_load(l) || !wk_library_symbols(l, symbols, sizeof symbols / sizeof *symbols))
        return;
    int code = wk_hip.hipInit(0);
    if (code == 0)
        code = wk_hip.hipRuntimeGetVersion(&version);
    snprintf(l->version, sizeof l->version, "%d.%d.%d", version / 10000000, version / 100000 % 100,
             version % 100000);
    if (code == 0)
        code = wk_hip.hipGetDeviceCount(&n);
    if (code)
        snprintf(l->trouble, sizeof l->trouble, "%s", wk_hip.hipGetErrorString(code));
    else if (n == 0)
        snprintf(l->trouble, sizeof l->trouble, "no device");
    usable = code == 0 && n > 0;
}

const wk_driver *wk_rocm_driver(const char **why)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    *why = wk_lib_hip.trouble;
    return usable ? &table : NULL;
}
