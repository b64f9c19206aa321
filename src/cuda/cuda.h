/* cuda.h: the entry points of the CUDA driver and NVRTC that wick calls, declared by wick itself: the libraries are
 * found at run time, and nothing of CUDA is needed to build. tests/vendor.sh compiles this list against the real
 * headers (WK_VENDOR_HEADERS) wherever they are installed and fails on any difference. */
#ifndef WK_CUDA_CUDA_H
#define WK_CUDA_CUDA_H

#include <stddef.h>

#ifndef WK_VENDOR_HEADERS
typedef int CUresult, CUdevice, CUdevice_attribute, CUstreamCaptureMode, CUfunction_attribute;
typedef unsigned long long CUdeviceptr, cuuint64_t;
typedef struct CUctx_st *CUcontext;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphExec_st *CUgraphExec;
/* The part of a launch's attributes that wick sets. */
typedef struct {
    int id;
    char pad[4];
    union {
        char bytes[64];
        int programmaticStreamSerializationAllowed;
    } value;
} CUlaunchAttribute;
typedef struct {
    unsigned int gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
    CUstream hStream;
    CUlaunchAttribute *attrs;
    unsigned int numAttrs;
} CUlaunchConfig;
typedef int nvrtcResult;
typedef struct _nvrtcProgram *nvrtcProgram;
#endif

#define WK_CUDA_CALLS(X) \
    X(CUresult, cuInit, (unsigned int)) \
    X(CUresult, cuDriverGetVersion, (int *)) \
    X(CUresult, cuDeviceGetCount, (int *)) \
    X(CUresult, cuDeviceGet, (CUdevice *, int)) \
    X(CUresult, cuDeviceGetName, (char *, int, CUdevice)) \
    X(CUresult, cuDeviceGetAttribute, (int *, CUdevice_attribute, CUdevice)) \
    X(CUresult, cuDeviceTotalMem_v2, (size_t *, CUdevice)) \
    X(CUresult, cuDevicePrimaryCtxRetain, (CUcontext *, CUdevice)) \
    X(CUresult, cuCtxGetCurrent, (CUcontext *)) \
    X(CUresult, cuCtxSetCurrent, (CUcontext)) \
    X(CUresult, cuMemGetInfo_v2, (size_t *, size_t *)) \
    X(CUresult, cuMemAlloc_v2, (CUdeviceptr *, size_t)) \
    X(CUresult, cuMemFree_v2, (CUdeviceptr)) \
    X(CUresult, cuMemHostAlloc, (void **, size_t, unsigned int)) \
    X(CUresult, cuMemFreeHost, (void *)) \
    X(CUresult, cuMemHostGetDevicePointer_v2, (CUdeviceptr *, void *, unsigned int)) \
    X(CUresult, cuMemcpyHtoDAsync_v2, (CUdeviceptr, const void *, size_t, CUstream)) \
    X(CUresult, cuMemcpyDtoHAsync_v2, (void *, CUdeviceptr, size_t, CUstream)) \
    X(CUresult, cuMemcpyDtoDAsync_v2, (CUdeviceptr, CUdeviceptr, size_t, CUstream)) \
    X(CUresult, cuMemsetD8Async, (CUdeviceptr, unsigned char, size_t, CUstream)) \
    X(CUresult, cuStreamCreate, (CUstream *, unsigned int)) \
    X(CUresult, cuStreamDestroy_v2, (CUstream)) \
    X(CUresult, cuStreamSynchronize, (CUstream)) \
    X(CUresult, cuStreamWaitEvent, (CUstream, CUevent, unsigned int)) \
    X(CUresult, cuEventCreate, (CUevent *, unsigned int)) \
    X(CUresult, cuEventDestroy_v2, (CUevent)) \
    X(CUresult, cuEventRecord, (CUevent, CUstream)) \
    X(CUresult, cuEventSynchronize, (CUevent)) \
    X(CUresult, cuEventElapsedTime, (float *, CUevent, CUevent)) \
    X(CUresult, cuModuleLoadData, (CUmodule *, const void *)) \
    X(CUresult, cuModuleUnload, (CUmodule)) \
    X(CUresult, cuModuleGetFunction, (CUfunction *, CUmodule, const char *)) \
    X(CUresult, cuFuncGetAttribute, (int *, CUfunction_attribute, CUfunction)) \
    X(CUresult, cuFuncSetAttribute, (CUfunction, CUfunction_attribute, int)) \
    X(CUresult, cuLaunchKernel, \
      (CUfunction, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int, \
       unsigned int, CUstream, void **, void **)) \
    X(CUresult, cuStreamBeginCapture_v2, (CUstream, CUstreamCaptureMode)) \
    X(CUresult, cuStreamEndCapture, (CUstream, CUgraph *)) \
    X(CUresult, cuGraphInstantiateWithFlags, (CUgraphExec *, CUgraph, unsigned long long)) \
    X(CUresult, cuGraphLaunch, (CUgraphExec, CUstream)) \
    X(CUresult, cuGraphDestroy, (CUgraph)) \
    X(CUresult, cuGraphExecDestroy, (CUgraphExec)) \
    X(CUresult, cuGetErrorString, (CUresult, const char **))

/* Of newer drivers, NULL where there is none. */
#define WK_CUDA_NEWER_CALLS(X) \
    X(CUresult, cuLaunchKernelEx, (const CUlaunchConfig *, CUfunction, void **, void **)) \
    X(CUresult, cuOccupancyMaxActiveClusters, (int *, CUfunction, const CUlaunchConfig *))

#define WK_NVRTC_CALLS(X) \
    X(nvrtcResult, nvrtcVersion, (int *, int *)) \
    X(nvrtcResult, nvrtcCreateProgram, \
      (nvrtcProgram *, const char *, const char *, int, const char *const *, const char *const *)) \
    X(nvrtcResult, nvrtcCompileProgram, (nvrtcProgram, int, const char *const *)) \
    X(nvrtcResult, nvrtcGetCUBINSize, (nvrtcProgram, size_t *)) \
    X(nvrtcResult, nvrtcGetCUBIN, (nvrtcProgram, char *)) \
    X(nvrtcResult, nvrtcGetProgramLogSize, (nvrtcProgram, size_t *)) \
    X(nvrtcResult, nvrtcGetProgramLog, (nvrtcProgram, char *)) \
    X(nvrtcResult, nvrtcDestroyProgram, (nvrtcProgram *)) \
    X(const char *, nvrtcGetErrorString, (nvrtcResult))

/* Constants under their own names; the test compares each with the header's. */
#define WK_CUDA_CONSTANTS(X) \
    X(CUDA_ERROR_OUT_OF_MEMORY, 2) \
    X(CUDA_ERROR_NO_DEVICE, 100) \
    X(CUDA_ERROR_NOT_SUPPORTED, 801) \
    X(CU_STREAM_NON_BLOCKING, 1) \
    X(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, 6) \
    X(CU_EVENT_DISABLE_TIMING, 2) \
    X(CU_MEMHOSTALLOC_DEVICEMAP, 2) \
    X(CU_STREAM_CAPTURE_MODE_RELAXED, 2) \
    X(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, 1) \
    X(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, 3) \
    X(CU_FUNC_ATTRIBUTE_NUM_REGS, 4) \
    X(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 8) \
    X(CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 14) \
    X(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1) \
    X(CU_DEVICE_ATTRIBUTE_WARP_SIZE, 10) \
    X(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 16) \
    X(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 75) \
    X(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 76) \
    X(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 97)

#ifndef WK_VENDOR_HEADERS
enum {
#define X(name, value) name = value,
    WK_CUDA_CONSTANTS(X)
#undef X
};
#endif

#endif
