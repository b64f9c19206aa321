/* hip.h: the entry points of HIP and hipRTC that wick calls, declared by wick itself: the libraries are found at
 * run time, and nothing of ROCm is needed to build. tests/vendor.sh compiles this list against the real headers
 * (WK_VENDOR_HEADERS) wherever they are installed and fails on any difference. */
#ifndef WK_ROCM_HIP_H
#define WK_ROCM_HIP_H

#include <stddef.h>

#ifndef WK_VENDOR_HEADERS
typedef int hipError_t, hipDevice_t, hipDeviceAttribute_t, hipMemcpyKind, hipStreamCaptureMode,
    hipFunction_attribute;
typedef struct ihipStream_t *hipStream_t;
typedef struct ihipEvent_t *hipEvent_t;
typedef struct ihipModule_t *hipModule_t;
typedef struct ihipModuleSymbol_t *hipFunction_t;
typedef struct ihipGraph *hipGraph_t;
typedef struct hipGraphExec *hipGraphExec_t;
typedef int hiprtcResult;
typedef struct _hiprtcProgram *hiprtcProgram;
#endif

#define WK_HIP_CALLS(X) \
    X(hipError_t, hipInit, (unsigned int)) \
    X(hipError_t, hipRuntimeGetVersion, (int *)) \
    X(hipError_t, hipDriverGetVersion, (int *)) \
    X(hipError_t, hipGetDeviceCount, (int *)) \
    X(hipError_t, hipGetDevice, (int *)) \
    X(hipError_t, hipSetDevice, (int)) \
    X(hipError_t, hipDeviceGetAttribute, (int *, hipDeviceAttribute_t, int)) \
    X(hipError_t, hipDeviceGetName, (char *, int, hipDevice_t)) \
    X(hipError_t, hipDeviceTotalMem, (size_t *, hipDevice_t)) \
    X(hipError_t, hipMemGetInfo, (size_t *, size_t *)) \
    X(hipError_t, hipMalloc, (void **, size_t)) \
    X(hipError_t, hipFree, (void *)) \
    X(hipError_t, hipHostMalloc, (void **, size_t, unsigned int)) \
    X(hipError_t, hipHostFree, (void *)) \
    X(hipError_t, hipHostGetDevicePointer, (void **, void *, unsigned int)) \
    X(hipError_t, hipMemcpyAsync, (void *, const void *, size_t, hipMemcpyKind, hipStream_t)) \
    X(hipError_t, hipMemsetAsync, (void *, int, size_t, hipStream_t)) \
    X(hipError_t, hipStreamCreateWithFlags, (hipStream_t *, unsigned int)) \
    X(hipError_t, hipStreamDestroy, (hipStream_t)) \
    X(hipError_t, hipStreamSynchronize, (hipStream_t)) \
    X(hipError_t, hipStreamWaitEvent, (hipStream_t, hipEvent_t, unsigned int)) \
    X(hipError_t, hipEventCreateWithFlags, (hipEvent_t *, unsigned int)) \
    X(hipError_t, hipEventDestroy, (hipEvent_t)) \
    X(hipError_t, hipEventRecord, (hipEvent_t, hipStream_t)) \
    X(hipError_t, hipEventSynchronize, (hipEvent_t)) \
    X(hipError_t, hipEventElapsedTime, (float *, hipEvent_t, hipEvent_t)) \
    X(hipError_t, hipModuleLoadData, (hipModule_t *, const void *)) \
    X(hipError_t, hipModuleUnload, (hipModule_t)) \
    X(hipError_t, hipModuleGetFunction, (hipFunction_t *, hipModule_t, const char *)) \
    X(hipError_t, hipFuncGetAttribute, (int *, hipFunction_attribute, hipFunction_t)) \
    X(hipError_t, hipModuleLaunchKernel, \
      (hipFunction_t, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int, \
       unsigned int, hipStream_t, void **, void **)) \
    X(hipError_t, hipStreamBeginCapture, (hipStream_t, hipStreamCaptureMode)) \
    X(hipError_t, hipStreamEndCapture, (hipStream_t, hipGraph_t *)) \
    X(hipError_t, hipGraphInstantiateWithFlags, (hipGraphExec_t *, hipGraph_t, unsigned long long)) \
    X(hipError_t, hipGraphLaunch, (hipGraphExec_t, hipStream_t)) \
    X(hipError_t, hipGraphDestroy, (hipGraph_t)) \
    X(hipError_t, hipGraphExecDestroy, (hipGraphExec_t)) \
    X(const char *, hipGetErrorString, (hipError_t))

#define WK_HIPRTC_CALLS(X) \
    X(hiprtcResult, hiprtcVersion, (int *, int *)) \
    X(hiprtcResult, hiprtcCreateProgram, \
      (hiprtcProgram *, const char *, const char *, int, const char **, const char **)) \
    X(hiprtcResult, hiprtcCompileProgram, (hiprtcProgram, int, const char **)) \
    X(hiprtcResult, hiprtcGetCodeSize, (hiprtcProgram, size_t *)) \
    X(hiprtcResult, hiprtcGetCode, (hiprtcProgram, char *)) \
    X(hiprtcResult, hiprtcGetProgramLogSize, (hiprtcProgram, size_t *)) \
    X(hiprtcResult, hiprtcGetProgramLog, (hiprtcProgram, char *)) \
    X(hiprtcResult, hiprtcDestroyProgram, (hiprtcProgram *)) \
    X(const char *, hiprtcGetErrorString, (hiprtcResult))

/* Constants under their own names; the test compares each with the header's. */
#define WK_HIP_CONSTANTS(X) \
    X(hipErrorOutOfMemory, 2) \
    X(hipErrorNoDevice, 100) \
    X(hipMemcpyHostToDevice, 1) \
    X(hipMemcpyDeviceToHost, 2) \
    X(hipMemcpyDeviceToDevice, 3) \
    X(hipStreamNonBlocking, 1) \
    X(hipEventDisableTiming, 2) \
    X(hipHostMallocMapped, 2) \
    X(hipStreamCaptureModeRelaxed, 2) \
    X(HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, 1) \
    X(HIP_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, 3) \
    X(HIP_FUNC_ATTRIBUTE_NUM_REGS, 4) \
    X(hipDeviceAttributeMaxThreadsPerBlock, 56) \
    X(hipDeviceAttributeMultiprocessorCount, 63) \
    X(hipDeviceAttributeMaxSharedMemoryPerBlock, 74) \
    X(hipDeviceAttributeWarpSize, 87)

#ifndef WK_VENDOR_HEADERS
enum {
#define X(name, value) name = value,
    WK_HIP_CONSTANTS(X)
#undef X
};
#endif

#endif
