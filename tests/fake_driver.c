/* fake_driver.c: libraries that stand in for a maker's driver and are no good; see broken_gpu.sh. With FAKE_OLD one that
 * lacks most functions, with FAKE_TURING one of a GPU that is older than what wick's kernels need, else one whose every call
 * fails. */
int cuInit() { return 0; }
int hipInit() { return 0; }
const char *hipGetErrorString() { return "an error of the fake driver"; }

#ifndef FAKE_OLD
#include "cuda/cuda.h"
#include "rocm/hip.h"
#define cuInit cuInit_declared /* defined above */
#define hipInit hipInit_declared
#define hipGetErrorString hipGetErrorString_declared
#ifdef FAKE_TURING
enum { ANSWER = 0 };
int cuDeviceGetCount(int *n) { return *n = 1, 0; }
int cuDeviceGetAttribute(int *value, int which)
{
    *value = which == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR ? 7 : 5;
    return 0;
}
#define cuDeviceGetCount cuDeviceGetCount_declared
#define cuDeviceGetAttribute cuDeviceGetAttribute_declared
#else
enum { ANSWER = 999 };
#endif
#define X(result, name, arguments) \
    result name() { return (result)ANSWER; }
WK_CUDA_CALLS(X)
WK_HIP_CALLS(X)
#endif
