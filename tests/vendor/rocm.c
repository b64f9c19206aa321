/* rocm.c: wick's own declarations of ROCm's functions against the real headers; see tests/vendor.sh. A declaration
 * that differs from the header's is an error of the compiler. */
#define WK_VENDOR_HEADERS
#include <hip/hip_runtime_api.h>
#include <hip/hiprtc.h>
#include <rocblas/rocblas.h>
#undef rocblas_gemm_strided_batched_ex /* a macro that checks its arguments */
#include "rocm/hip.h"
#include "rocm/rocblas.h"

#define X(result, name, arguments) extern result name arguments;
WK_HIP_CALLS(X)
WK_HIPRTC_CALLS(X)
WK_ROCBLAS_CALLS(X)
#undef X

#define X(name, value) _Static_assert((int)name == value, #name);
WK_HIP_CONSTANTS(X)
WK_ROCBLAS_CONSTANTS(X)
