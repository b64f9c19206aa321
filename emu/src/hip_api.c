/* hip_api.c - the HIP entry points for device, modules, launches and occupancy.
 *
 * One device.  A failed launch poisons it: the error comes back from every later launch, copy and
 * synchronisation until hipDeviceReset. */
#define _GNU_SOURCE
#include "hip_api.h"
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static __thread hipError_t last_error;
static hipError_t sticky; /* set by a failed launch */

hipError_t api_return(hipError_t e, const char *who)
{
    if (e != hipSuccess && e != hipErrorNotReady) {
        last_error = e;
        if (emu_cfg.trace)
            emu_log("%s: %s", who, hipGetErrorName(e));
    }
    return e;
}
#define RET(e) return api_return((e), __func__)

hipError_t api_unsupported(const char *name)
{
    emu_log("%s is not implemented", name);
    RET(hipErrorNotSupported);
}
hipError_t api_device_state(void) { return __atomic_load_n(&sticky, __ATOMIC_RELAXED); }
void api_poison(hipError_t e) { __atomic_store_n(&sticky, e, __ATOMIC_RELAXED); }

/* ---- errors --------------------------------------------------------------------------------------------------- */
#define ERRORS(X) \
    X(hipSuccess, "no error") \
    X(hipErrorInvalidValue, "invalid argument") \
    X(hipErrorOutOfMemory, "out of memory") \
    X(hipErrorNotInitialized, "initialization error") \
    X(hipErrorDeinitialized, "driver shutting down") \
    X(hipErrorInvalidConfiguration, "invalid configuration argument") \
    X(hipErrorInvalidPitchValue, "invalid pitch argument") \
    X(hipErrorInvalidSymbol, "invalid device symbol") \
    X(hipErrorInvalidDevicePointer, "invalid device pointer") \
    X(hipErrorInvalidMemcpyDirection, "invalid copy direction for memcpy") \
    X(hipErrorMissingConfiguration, "__global__ function call is not configured") \
    X(hipErrorPriorLaunchFailure, "unspecified launch failure in prior launch") \
    X(hipErrorInvalidDeviceFunction, "invalid device function") \
    X(hipErrorNoDevice, "no ROCm-capable device is detected") \
    X(hipErrorInvalidDevice, "invalid device ordinal") \
    X(hipErrorInvalidImage, "device kernel image is invalid") \
    X(hipErrorInvalidContext, "invalid device context") \
    X(hipErrorNoBinaryForGpu, "no kernel image is available for execution on the device") \
    X(hipErrorInvalidKernelFile, "invalid kernel file") \
    X(hipErrorUnsupportedLimit, "limit is not supported on this architecture") \
    X(hipErrorFileNotFound, "file not found") \
    X(hipErrorSharedObjectSymbolNotFound, "shared object symbol not found") \
    X(hipErrorInvalidHandle, "invalid resource handle") \
    X(hipErrorIllegalState, "the operation cannot be performed in the present state") \
    X(hipErrorNotFound, "named symbol not found") \
    X(hipErrorNotReady, "device not ready") \
    X(hipErrorIllegalAddress, "an illegal memory access was encountered") \
    X(hipErrorLaunchOutOfResources, "too many resources requested for launch") \
    X(hipErrorLaunchTimeOut, "the launch timed out and was terminated") \
    X(hipErrorPeerAccessUnsupported, "peer access is not supported between these two devices") \
    X(hipErrorHostMemoryAlreadyRegistered, "part or all of the requested memory range is already mapped") \
    X(hipErrorHostMemoryNotRegistered, "pointer does not correspond to a registered memory region") \
    X(hipErrorLaunchFailure, "unspecified launch failure") \
    X(hipErrorNotSupported, "operation not supported") \
    X(hipErrorAssert, "device-side assert triggered") \
    X(hipErrorStreamCaptureUnsupported, "operation not permitted when stream is capturing") \
    X(hipErrorStreamCaptureInvalidated, "operation failed due to a previous error during capture") \
    X(hipErrorStreamCaptureMerge, "operation would result in a merge of separate capture sequences") \
    X(hipErrorStreamCaptureUnmatched, "capture was not ended in the same stream as it began") \
    X(hipErrorStreamCaptureUnjoined, "capturing stream has unjoined work") \
    X(hipErrorStreamCaptureIsolation, "dependency created on uncaptured work in another stream") \
    X(hipErrorStreamCaptureImplicit, "operation would make the legacy stream depend on a capturing blocking stream") \
    X(hipErrorCapturedEvent, "operation not permitted on an event last recorded in a capturing stream") \
    X(hipErrorStreamCaptureWrongThread, "attempt to terminate a thread-local capture sequence from another thread") \
    X(hipErrorGraphExecUpdateFailure, "the graph has another shape than the one instantiated") \
    X(hipErrorUnknown, "unknown error")
const char *hipGetErrorName(hipError_t e)
{
    switch (e) {
#define X(n, s) \
    case n: return #n;
        ERRORS(X)
#undef X
    default: return "hipErrorUnknown";
    }
}
const char *hipGetErrorString(hipError_t e)
{
    switch (e) {
#define X(n, s) \
    case n: return s;
        ERRORS(X)
#undef X
    default: return "unknown error";
    }
}
hipError_t hipDrvGetErrorName(hipError_t e, const char **s)
{
    *s = hipGetErrorName(e);
    return hipSuccess;
}
hipError_t hipDrvGetErrorString(hipError_t e, const char **s)
{
    *s = hipGetErrorString(e);
    return hipSuccess;
}
hipError_t hipGetLastError(void)
{
    hipError_t e = last_error;
    last_error = hipSuccess;
    return e;
}
hipError_t hipExtGetLastError(void) { return hipGetLastError(); }
hipError_t hipPeekAtLastError(void) { return last_error; }

/* ---- the device -------------------------------------------------------------------------------------------------- */
#define CUS emu_cfg.cus
#define DEV(d) \
    do { \
        if ((d) != 0) \
            RET(hipErrorInvalidDevice); \
    } while (0)

hipError_t hipInit(unsigned flags) { RET(flags ? hipErrorInvalidValue : hipSuccess); }
hipError_t hipDriverGetVersion(int *v)
{
    *v = 60443484;
    RET(hipSuccess);
}
hipError_t hipRuntimeGetVersion(int *v)
{
    *v = 60443484;
    RET(hipSuccess);
}
hipError_t hipGetDeviceCount(int *n)
{
    *n = 1;
    RET(hipSuccess);
}
hipError_t hipSetDevice(int d)
{
    DEV(d);
    RET(hipSuccess);
}
hipError_t hipGetDevice(int *d)
{
    *d = 0;
    RET(hipSuccess);
}
hipError_t hipDeviceGet(hipDevice_t *d, int i)
{
    DEV(i);
    *d = 0;
    RET(hipSuccess);
}
hipError_t hipSetValidDevices(int *d, int n)
{
    (void)d, (void)n;
    RET(hipSuccess);
}
hipError_t hipDeviceTotalMem(size_t *n, hipDevice_t d)
{
    DEV(d);
    *n = EMU_TOTAL_MEM;
    RET(hipSuccess);
}
hipError_t hipDeviceSynchronize(void)
{
    hipError_t e = capture_forbids_device_wait();
    RET(e ? e : stream_drain_all());
}
hipError_t hipDeviceReset(void)
{
    (void)!stream_drain_all();
    sticky = last_error = hipSuccess;
    return hipSuccess;
}
hipError_t hipGetDeviceFlags(unsigned *f)
{
    *f = 0;
    RET(hipSuccess);
}
hipError_t hipSetDeviceFlags(unsigned f)
{
    (void)f;
    RET(hipSuccess);
}
hipError_t hipDeviceSetCacheConfig(hipFuncCache_t c)
{
    (void)c;
    RET(hipSuccess);
}
hipError_t hipDeviceGetCacheConfig(hipFuncCache_t *c)
{
    *c = hipFuncCachePreferNone;
    RET(hipSuccess);
}
hipError_t hipDeviceSetSharedMemConfig(hipSharedMemConfig c)
{
    (void)c;
    RET(hipSuccess);
}
hipError_t hipDeviceGetSharedMemConfig(hipSharedMemConfig *c)
{
    *c = hipSharedMemBankSizeFourByte;
    RET(hipSuccess);
}
hipError_t hipDeviceSetLimit(enum hipLimit_t l, size_t v)
{
    (void)l, (void)v;
    RET(hipSuccess);
}
hipError_t hipDeviceGetLimit(size_t *v, enum hipLimit_t l)
{
    (void)l;
    *v = 4 << 20;
    RET(hipSuccess);
}
hipError_t hipDeviceCanAccessPeer(int *can, int a, int b)
{
    (void)a, (void)b;
    *can = 0;
    RET(hipSuccess);
}
hipError_t hipDeviceEnablePeerAccess(int d, unsigned f)
{
    (void)d, (void)f;
    RET(hipErrorInvalidDevice);
}
hipError_t hipDeviceDisablePeerAccess(int d)
{
    (void)d;
    RET(hipErrorInvalidDevice);
}
hipError_t hipDeviceGetStreamPriorityRange(int *lo, int *hi)
{
    if (lo)
        *lo = 1;
    if (hi)
        *hi = -1;
    RET(hipSuccess);
}
hipError_t hipDeviceComputeCapability(int *a, int *b, hipDevice_t d)
{
    DEV(d);
    *a = emu_cfg.gen, *b = 0;
    RET(hipSuccess);
}
hipError_t hipDeviceGetByPCIBusId(int *d, const char *id)
{
    (void)id;
    *d = 0;
    RET(hipSuccess);
}
hipError_t hipDeviceGetPCIBusId(char *s, int n, int d)
{
    DEV(d);
    snprintf(s, (size_t)n, "0000:03:00.0");
    RET(hipSuccess);
}
hipError_t hipDeviceGetName(char *s, int n, hipDevice_t d)
{
    DEV(d);
    snprintf(s, (size_t)n, "rocm-emu %s", emu_cfg.arch);
    RET(hipSuccess);
}
hipError_t hipDeviceGetUuid(hipUUID *u, hipDevice_t d)
{
    DEV(d);
    memset(u, 0, sizeof *u);
    memcpy(u->bytes, "rocm-emu", 8);
    RET(hipSuccess);
}
hipError_t hipProfilerStart(void) { RET(hipSuccess); }
hipError_t hipProfilerStop(void) { RET(hipSuccess); }

hipError_t hipGetDevicePropertiesR0600(hipDeviceProp_t *p, int d)
{
    if (!p)
        RET(hipErrorInvalidValue);
    DEV(d);
    memset(p, 0, sizeof *p);
    snprintf(p->name, sizeof p->name, "rocm-emu %s", emu_cfg.arch);
    snprintf(p->gcnArchName, sizeof p->gcnArchName, "%s%s", emu_cfg.arch, emu_cfg.gen == 9 ? ":sramecc+:xnack-" : "");
    memcpy(p->uuid.bytes, "rocm-emu", 8);
    p->totalGlobalMem = EMU_TOTAL_MEM;
    p->sharedMemPerBlock = p->sharedMemPerMultiprocessor = p->maxSharedMemoryPerMultiProcessor = 65536;
    p->regsPerBlock = p->regsPerMultiprocessor = 65536;
    p->warpSize = emu_cfg.warp;
    p->memPitch = 0x7fffffff;
    p->maxThreadsPerBlock = 1024;
    p->maxThreadsPerMultiProcessor = emu_cfg.gen >= 10 ? 2048 : 2560;
    p->maxBlocksPerMultiProcessor = 40;
    for (int i = 0; i < 3; i++)
        p->maxThreadsDim[i] = 1024;
    p->maxGridSize[0] = 0x7fffffff;
    p->maxGridSize[1] = p->maxGridSize[2] = 65536;
    p->clockRate = 1725000;
    p->memoryClockRate = 1000000;
    p->memoryBusWidth = 4096;
    p->l2CacheSize = 4 << 20;
    p->totalConstMem = 0x7fffffff;
    p->major = emu_cfg.gen;
    p->multiProcessorCount = CUS;
    p->clockInstructionRate = 25000;
    p->textureAlignment = p->texturePitchAlignment = p->surfaceAlignment = 256;
    p->canMapHostMemory = p->concurrentKernels = p->unifiedAddressing = p->asyncEngineCount = 1;
    p->hostRegisterSupported = p->memoryPoolsSupported = p->streamPrioritiesSupported = 1;
    p->pciBusID = 3;
    p->isLargeBar = 1;
    p->arch.hasGlobalInt32Atomics = p->arch.hasGlobalFloatAtomicExch = p->arch.hasSharedInt32Atomics = 1;
    p->arch.hasSharedFloatAtomicExch = p->arch.hasFloatAtomicAdd = p->arch.hasGlobalInt64Atomics = 1;
    p->arch.hasSharedInt64Atomics = p->arch.hasDoubles = p->arch.hasWarpVote = p->arch.hasWarpBallot = 1;
    p->arch.hasWarpShuffle = p->arch.hasThreadFenceSystem = p->arch.hasSyncThreadsExt = p->arch.has3dGrid = 1;
    RET(hipSuccess);
}

hipError_t hipDeviceGetAttribute(int *v, hipDeviceAttribute_t a, int d)
{
    hipDeviceProp_t p;
    if (!v)
        RET(hipErrorInvalidValue);
    DEV(d);
    (void)!hipGetDevicePropertiesR0600(&p, 0);
    switch (a) {
        /* clang-format off */
#define A(n, e) case hipDeviceAttribute##n: *v = (int)(e); break;
        A(WarpSize, p.warpSize) A(MultiprocessorCount, CUS) A(PhysicalMultiProcessorCount, CUS)
        A(MaxThreadsPerBlock, 1024) A(MaxBlockDimX, 1024) A(MaxBlockDimY, 1024) A(MaxBlockDimZ, 1024)
        A(MaxGridDimX, p.maxGridSize[0]) A(MaxGridDimY, p.maxGridSize[1]) A(MaxGridDimZ, p.maxGridSize[2])
        A(MaxSharedMemoryPerBlock, 65536) A(MaxSharedMemoryPerMultiprocessor, 65536)
        A(SharedMemPerMultiprocessor, 65536) A(SharedMemPerBlockOptin, 65536) A(MaxRegistersPerBlock, 65536)
        A(MaxRegistersPerMultiprocessor, 65536) A(ClockRate, p.clockRate) A(MemoryClockRate, p.memoryClockRate)
        A(MemoryBusWidth, p.memoryBusWidth) A(L2CacheSize, p.l2CacheSize)
        A(MaxThreadsPerMultiProcessor, p.maxThreadsPerMultiProcessor) A(MaxBlocksPerMultiProcessor, 40)
        A(ComputeCapabilityMajor, p.major) A(ComputeCapabilityMinor, p.minor) A(PciBusId, p.pciBusID)
        A(ConcurrentKernels, 1) A(UnifiedAddressing, 1) A(CanMapHostMemory, 1) A(AsyncEngineCount, 1)
        A(HostRegisterSupported, 1) A(MemoryPoolsSupported, 1) A(TotalConstantMemory, 0x7fffffff)
        A(MaxPitch, 0x7fffffff) A(TextureAlignment, 256) A(TexturePitchAlignment, 256) A(IsLargeBar, 1)
        A(WallClockRate, 25000) A(ClockInstructionRate, 25000) A(FineGrainSupport, 1) A(TotalGlobalMem, 0x7fffffff)
        A(StreamPrioritiesSupported, 1)
#undef A
            /* clang-format on */
            default : *v = 0;
        break;
    }
    RET(hipSuccess);
}
hipError_t hipChooseDeviceR0600(int *d, const hipDeviceProp_t *p)
{
    (void)p;
    *d = 0;
    RET(hipSuccess);
}

/* contexts: there is one, and it is always current */
static int the_context;
#define CTX ((hipCtx_t)&the_context)
hipError_t hipCtxCreate(hipCtx_t *c, unsigned f, hipDevice_t d)
{
    (void)f;
    DEV(d);
    *c = CTX;
    RET(hipSuccess);
}
hipError_t hipCtxDestroy(hipCtx_t c)
{
    (void)c;
    RET(hipSuccess);
}
hipError_t hipCtxPopCurrent(hipCtx_t *c)
{
    if (c)
        *c = CTX;
    RET(hipSuccess);
}
hipError_t hipCtxPushCurrent(hipCtx_t c)
{
    (void)c;
    RET(hipSuccess);
}
hipError_t hipCtxSetCurrent(hipCtx_t c)
{
    (void)c;
    RET(hipSuccess);
}
hipError_t hipCtxGetCurrent(hipCtx_t *c)
{
    *c = CTX;
    RET(hipSuccess);
}
hipError_t hipCtxGetDevice(hipDevice_t *d)
{
    *d = 0;
    RET(hipSuccess);
}
hipError_t hipCtxGetFlags(unsigned *f)
{
    *f = 0;
    RET(hipSuccess);
}
hipError_t hipCtxSynchronize(void) { return hipDeviceSynchronize(); }
hipError_t hipCtxGetApiVersion(hipCtx_t c, int *v)
{
    (void)c;
    *v = 4;
    RET(hipSuccess);
}
hipError_t hipDevicePrimaryCtxRetain(hipCtx_t *c, hipDevice_t d)
{
    DEV(d);
    *c = CTX;
    RET(hipSuccess);
}
hipError_t hipDevicePrimaryCtxRelease(hipDevice_t d)
{
    DEV(d);
    RET(hipSuccess);
}
hipError_t hipDevicePrimaryCtxReset(hipDevice_t d)
{
    DEV(d);
    RET(hipDeviceReset());
}
hipError_t hipDevicePrimaryCtxSetFlags(hipDevice_t d, unsigned f)
{
    (void)f;
    DEV(d);
    RET(hipSuccess);
}
hipError_t hipDevicePrimaryCtxGetState(hipDevice_t d, unsigned *f, int *on)
{
    DEV(d);
    *f = 0, *on = 1;
    RET(hipSuccess);
}

/* ---- modules and launches -------------------------------------------------------------------------------------------- */
static hipError_t load_module(hipModule_t *out, const void *image, size_t size)
{
    size_t n;
    bool owned;
    const char *why;
    const void *code = bundle_select(image, size, &n, &owned, &why);
    Module *m = code ? module_load(code, n, &why) : NULL;
    if (owned)
        free((void *)code);
    if (!m) {
        emu_log("module: %s", why);
        RET(code ? hipErrorInvalidImage : hipErrorNoBinaryForGpu);
    }
    *out = (hipModule_t)m;
    RET(hipSuccess);
}
hipError_t hipModuleLoadData(hipModule_t *m, const void *image)
{
    if (!m || !image)
        RET(hipErrorInvalidValue);
    return load_module(m, image, 0);
}
hipError_t hipModuleLoadDataEx(hipModule_t *m, const void *image, unsigned n, hipJitOption *o, void **v)
{
    (void)n, (void)o, (void)v;
    return hipModuleLoadData(m, image);
}
hipError_t hipModuleLoad(hipModule_t *m, const char *path)
{
    if (!m || !path)
        RET(hipErrorInvalidValue);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0 || st.st_size < 64) {
        if (fd >= 0)
            close(fd);
        RET(hipErrorFileNotFound);
    }
    void *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (p == MAP_FAILED)
        RET(hipErrorOutOfMemory);
    hipError_t e = load_module(m, p, (size_t)st.st_size);
    munmap(p, (size_t)st.st_size);
    return e;
}
hipError_t hipModuleUnload(hipModule_t m)
{
    if (!m)
        RET(hipErrorInvalidValue);
    (void)!stream_drain_all(); /* its kernels may be queued */
    module_unload((Module *)m);
    RET(hipSuccess);
}
hipError_t hipModuleGetFunction(hipFunction_t *f, hipModule_t m, const char *name)
{
    if (!f || !m || !name)
        RET(hipErrorInvalidValue);
    *f = (hipFunction_t)module_kernel((Module *)m, name);
    RET(*f ? hipSuccess : hipErrorNotFound);
}
hipError_t hipModuleGetGlobal(hipDeviceptr_t *p, size_t *n, hipModule_t m, const char *name)
{
    void *addr;
    size_t size;
    if (!m || !name)
        RET(hipErrorInvalidValue);
    if (!module_global((Module *)m, name, &addr, &size))
        RET(hipErrorNotFound);
    if (p)
        *p = addr;
    if (n)
        *n = size;
    RET(hipSuccess);
}

static hipError_t launch(Kernel *k, const uint32_t grid[3], const uint32_t block[3], size_t lds, hipStream_t s,
                         void **params, void **extra)
{
    if (!stream_ok(s))
        RET(hipErrorInvalidHandle);
    if (!k)
        RET(hipErrorInvalidHandle);
    if (api_device_state())
        RET(api_device_state());
    LaunchArgs a = {{grid[0], grid[1], grid[2]}, {block[0], block[1], block[2]}, (uint32_t)lds, params, NULL, 0};
    if (params && extra)
        RET(hipErrorInvalidValue);
    for (int i = 0; extra && extra[i] != HIP_LAUNCH_PARAM_END; i += 2) {
        if (extra[i] == HIP_LAUNCH_PARAM_BUFFER_POINTER)
            a.kernarg = extra[i + 1];
        else if (extra[i] == HIP_LAUNCH_PARAM_BUFFER_SIZE)
            a.kernarg_size = *(size_t *)extra[i + 1];
        else
            RET(hipErrorInvalidValue);
    }
    Prepared *p;
    hipError_t e = (hipError_t)launch_prepare(k, &a, &p);
    RET(e ? e : stream_launch(s, p));
}
/* grid in blocks */
static hipError_t launch_blocks(Kernel *k, dim3 g, dim3 b, size_t lds, hipStream_t s, void **params, void **extra)
{
    uint64_t w[3] = {(uint64_t)g.x * b.x, (uint64_t)g.y * b.y, (uint64_t)g.z * b.z};
    if (w[0] > UINT32_MAX || w[1] > UINT32_MAX || w[2] > UINT32_MAX)
        RET(hipErrorInvalidValue);
    return launch(k, (uint32_t[]){(uint32_t)w[0], (uint32_t)w[1], (uint32_t)w[2]}, (uint32_t[]){b.x, b.y, b.z}, lds, s,
                  params, extra);
}
hipError_t hipModuleLaunchKernel(hipFunction_t f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                                 unsigned bz, unsigned lds, hipStream_t s, void **params, void **extra)
{
    return launch_blocks((Kernel *)f, (dim3){gx, gy, gz}, (dim3){bx, by, bz}, lds, s, params, extra);
}
hipError_t hipModuleLaunchCooperativeKernel(hipFunction_t f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                                            unsigned by, unsigned bz, unsigned lds, hipStream_t s, void **params)
{
    return launch_blocks((Kernel *)f, (dim3){gx, gy, gz}, (dim3){bx, by, bz}, lds, s, params, NULL);
}
hipError_t hipExtModuleLaunchKernel(hipFunction_t f, uint32_t gx, uint32_t gy, uint32_t gz, uint32_t bx, uint32_t by,
                                    uint32_t bz, size_t lds, hipStream_t s, void **params, void **extra,
                                    hipEvent_t start, hipEvent_t stop, uint32_t flags)
{
    (void)flags;
    if (start)
        (void)!hipEventRecord(start, s);
    hipError_t e = launch((Kernel *)f, (uint32_t[]){gx, gy, gz}, (uint32_t[]){bx, by, bz}, lds, s, params, extra);
    if (stop)
        (void)!hipEventRecord(stop, s);
    return e;
}
hipError_t hipHccModuleLaunchKernel(hipFunction_t f, uint32_t gx, uint32_t gy, uint32_t gz, uint32_t bx, uint32_t by,
                                    uint32_t bz, size_t lds, hipStream_t s, void **params, void **extra,
                                    hipEvent_t start, hipEvent_t stop)
{
    return hipExtModuleLaunchKernel(f, gx, gy, gz, bx, by, bz, lds, s, params, extra, start, stop, 0);
}
static Kernel *host_kernel(const void *f)
{
    const char *why;
    Kernel *k = fatbin_kernel(f, &why);
    if (!k)
        emu_log("kernel at %p: %s", f, why);
    return k;
}
hipError_t hipLaunchKernel(const void *f, dim3 g, dim3 b, void **params, size_t lds, hipStream_t s)
{
    Kernel *k = host_kernel(f);
    if (!k)
        RET(hipErrorInvalidDeviceFunction);
    return launch_blocks(k, g, b, lds, s, params, NULL);
}
hipError_t hipLaunchCooperativeKernel(const void *f, dim3 g, dim3 b, void **params, unsigned lds, hipStream_t s)
{
    return hipLaunchKernel(f, g, b, params, lds, s);
}
hipError_t hipExtLaunchKernel(const void *f, dim3 g, dim3 b, void **params, size_t lds, hipStream_t s, hipEvent_t start,
                              hipEvent_t stop, int flags)
{
    (void)flags;
    if (start)
        (void)!hipEventRecord(start, s);
    hipError_t e = hipLaunchKernel(f, g, b, params, lds, s);
    if (stop)
        (void)!hipEventRecord(stop, s);
    return e;
}

/* the <<<...>>> of compiled code */
typedef struct {
    dim3 grid, block;
    size_t lds;
    hipStream_t stream;
} CallConfig;
static __thread CallConfig calls[16];
static __thread int ncalls;
hipError_t __hipPushCallConfiguration(dim3 g, dim3 b, size_t lds, hipStream_t s)
{
    if (ncalls == 16)
        RET(hipErrorInvalidValue);
    calls[ncalls++] = (CallConfig){g, b, lds, s};
    RET(hipSuccess);
}
hipError_t __hipPopCallConfiguration(dim3 *g, dim3 *b, size_t *lds, hipStream_t *s)
{
    if (!ncalls)
        RET(hipErrorMissingConfiguration);
    CallConfig c = calls[--ncalls];
    *g = c.grid, *b = c.block, *lds = c.lds, *s = c.stream;
    RET(hipSuccess);
}

/* ---- kernel attributes and occupancy -------------------------------------------------------------------------------- */
hipError_t hipFuncGetAttribute(int *v, hipFunction_attribute a, hipFunction_t f)
{
    const Kernel *k = (const Kernel *)f;
    if (!k || !v)
        RET(hipErrorInvalidHandle);
    switch (a) {
    case HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *v = (int)k->max_wg; break;
    case HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: *v = (int)k->lds_size; break;
    case HIP_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES: *v = (int)k->scratch_size; break;
    case HIP_FUNC_ATTRIBUTE_NUM_REGS: *v = (int)k->vgprs; break;
    case HIP_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: *v = 65536 - (int)k->lds_size; break;
    default: *v = 0; break;
    }
    RET(hipSuccess);
}
hipError_t hipFuncGetAttributes(struct hipFuncAttributes *a, const void *f)
{
    const Kernel *k = host_kernel(f);
    if (!k || !a)
        RET(hipErrorInvalidDeviceFunction);
    memset(a, 0, sizeof *a);
    a->maxThreadsPerBlock = (int)k->max_wg;
    a->sharedSizeBytes = k->lds_size;
    a->localSizeBytes = k->scratch_size;
    a->numRegs = (int)k->vgprs;
    a->maxDynamicSharedSizeBytes = 65536 - (int)k->lds_size;
    RET(hipSuccess);
}
hipError_t hipFuncSetAttribute(const void *f, hipFuncAttribute a, int v)
{
    (void)f, (void)a, (void)v;
    RET(hipSuccess);
}
hipError_t hipFuncSetCacheConfig(const void *f, hipFuncCache_t c)
{
    (void)f, (void)c;
    RET(hipSuccess);
}
hipError_t hipFuncSetSharedMemConfig(const void *f, hipSharedMemConfig c)
{
    (void)f, (void)c;
    RET(hipSuccess);
}

/* waves a SIMD can hold by VGPRs, blocks a CU can hold by waves and LDS (the rules of gfx9) */
static int occupancy(const Kernel *k, int block, size_t dyn)
{
    unsigned vgprs = k->vgprs ? (k->vgprs + 3) & ~3u : 4, waves = 256 / vgprs > 10 ? 10 : 256 / vgprs;
    unsigned per_block = ((unsigned)block + 63) / 64, blocks = waves * 4 / per_block;
    size_t lds = k->lds_size + dyn;
    if (lds && 65536 / lds < blocks)
        blocks = (unsigned)(65536 / lds);
    return (int)blocks;
}
hipError_t hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(int *n, hipFunction_t f, int block, size_t dyn)
{
    if (!n || !f || block <= 0)
        RET(hipErrorInvalidValue);
    *n = occupancy((const Kernel *)f, block, dyn);
    RET(hipSuccess);
}
hipError_t hipModuleOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *n, hipFunction_t f, int block, size_t dyn,
                                                                       unsigned flags)
{
    (void)flags;
    return hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(n, f, block, dyn);
}
hipError_t hipOccupancyMaxActiveBlocksPerMultiprocessor(int *n, const void *f, int block, size_t dyn)
{
    return hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(n, (hipFunction_t)host_kernel(f), block, dyn);
}
hipError_t hipOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *n, const void *f, int block, size_t dyn,
                                                                 unsigned flags)
{
    (void)flags;
    return hipOccupancyMaxActiveBlocksPerMultiprocessor(n, f, block, dyn);
}
static hipError_t potential_block(int *grid, int *block, const Kernel *k, size_t dyn, int limit)
{
    if (!k || !grid || !block)
        RET(hipErrorInvalidValue);
    *block = k->max_wg ? (int)k->max_wg : 1024;
    if (limit > 0 && limit < *block)
        *block = limit;
    *grid = CUS * occupancy(k, *block, dyn);
    RET(hipSuccess);
}
hipError_t hipModuleOccupancyMaxPotentialBlockSize(int *g, int *b, hipFunction_t f, size_t dyn, int limit)
{
    return potential_block(g, b, (const Kernel *)f, dyn, limit);
}
hipError_t hipModuleOccupancyMaxPotentialBlockSizeWithFlags(int *g, int *b, hipFunction_t f, size_t dyn, int limit,
                                                            unsigned flags)
{
    (void)flags;
    return potential_block(g, b, (const Kernel *)f, dyn, limit);
}
hipError_t hipOccupancyMaxPotentialBlockSize(int *g, int *b, const void *f, size_t dyn, int limit)
{
    return potential_block(g, b, host_kernel(f), dyn, limit);
}

/* ---- names and look-ups ------------------------------------------------------------------------------------------------ */
const char *hipKernelNameRef(const hipFunction_t f) { return f ? ((const Kernel *)f)->name : NULL; }
const char *hipKernelNameRefByPtr(const void *f, hipStream_t s)
{
    (void)s;
    const char *why;
    const Kernel *k = fatbin_kernel(f, &why);
    return k ? k->name : NULL;
}
const char *hipApiName(uint32_t id)
{
    (void)id;
    return "unknown";
}
hipError_t hipGetFuncBySymbol(hipFunction_t *f, const void *sym)
{
    *f = (hipFunction_t)host_kernel(sym);
    RET(*f ? hipSuccess : hipErrorInvalidDeviceFunction);
}
hipError_t hipGetProcAddress(const char *name, void **fn, int version, uint64_t flags,
                             hipDriverProcAddressQueryResult *st)
{
    (void)version, (void)flags;
    *fn = dlsym(RTLD_DEFAULT, name);
    if (st)
        *st = *fn ? HIP_GET_PROC_ADDRESS_SUCCESS : HIP_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    RET(*fn ? hipSuccess : hipErrorInvalidValue);
}
