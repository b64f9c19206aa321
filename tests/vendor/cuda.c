/* cuda.c: wick's own declarations of CUDA's functions against the real headers; see tests/vendor.sh. A declaration
 * that differs from the header's is an error of the compiler. */
#define WK_VENDOR_HEADERS
#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda.h>
#include <nvrtc.h>
#include "cuda/cublas.h"
#include "cuda/cuda.h"

#define X(result, name, arguments) extern result name arguments;
WK_CUDA_CALLS(X)
WK_CUDA_NEWER_CALLS(X)
WK_NVRTC_CALLS(X)
WK_CUBLAS_CALLS(X)
WK_CUBLAS_LT_CALLS(X)
#undef X

#define X(name, value) _Static_assert((int)name == value, #name);
WK_CUDA_CONSTANTS(X)
WK_CUBLAS_CONSTANTS(X)
