/* fake_driver.c: libraries that stand in for a maker's driver and are no good; see broken_gpu.sh. With FAKE_OLD one that
 * lacks most functions, else one whose every call fails. */
int cuInit() { return 0; }
int hipInit() { return 0; }
const char *hipGetErrorString() { return "an error of the fake driver"; }

#ifndef FAKE_OLD
#include "cuda/cuda.h"
#include "rocm/hip.h"
#define cuInit cuInit_declared /* defined above */
#define hipInit hipInit_declared
#define hipGetErrorString hipGetErrorString_declared
#define X(result, name, arguments) \
    result name() { return (result)999; }
WK_CUDA_CALLS(X)
WK_HIP_CALLS(X)
#endif
