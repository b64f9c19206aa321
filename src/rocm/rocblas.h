/* rocblas.h: the entry points of rocBLAS that wick calls; see hip.h. */
#ifndef WK_ROCM_ROCBLAS_H
#define WK_ROCM_ROCBLAS_H

#include <stddef.h>
#include <stdint.h>

#ifndef WK_VENDOR_HEADERS
typedef int rocblas_status, rocblas_operation, rocblas_datatype, rocblas_gemm_algo, rocblas_atomics_mode;
typedef int32_t rocblas_int;
typedef int64_t rocblas_stride;
typedef struct _rocblas_handle *rocblas_handle;
#endif

#define WK_ROCBLAS_CALLS(X) \
    X(rocblas_status, rocblas_get_version_string, (char *, size_t)) \
    X(rocblas_status, rocblas_create_handle, (rocblas_handle *)) \
    X(rocblas_status, rocblas_set_stream, (rocblas_handle, hipStream_t)) \
    X(rocblas_status, rocblas_set_atomics_mode, (rocblas_handle, rocblas_atomics_mode)) \
    X(rocblas_status, rocblas_gemm_strided_batched_ex, \
      (rocblas_handle, rocblas_operation, rocblas_operation, rocblas_int, rocblas_int, rocblas_int, \
       const void *, const void *, rocblas_datatype, rocblas_int, rocblas_stride, const void *, \
       rocblas_datatype, rocblas_int, rocblas_stride, const void *, const void *, rocblas_datatype, \
       rocblas_int, rocblas_stride, void *, rocblas_datatype, rocblas_int, rocblas_stride, rocblas_int, \
       rocblas_datatype, rocblas_gemm_algo, int32_t, uint32_t)) \
    X(const char *, rocblas_status_to_string, (rocblas_status))

#define WK_ROCBLAS_CONSTANTS(X) \
    X(rocblas_status_success, 0) \
    X(rocblas_status_not_implemented, 2) \
    X(rocblas_operation_none, 111) \
    X(rocblas_operation_transpose, 112) \
    X(rocblas_datatype_f16_r, 150) \
    X(rocblas_datatype_f32_r, 151) \
    X(rocblas_datatype_f64_r, 152) \
    X(rocblas_datatype_bf16_r, 168) \
    X(rocblas_gemm_algo_standard, 0) \
    X(rocblas_atomics_not_allowed, 0)

#ifndef WK_VENDOR_HEADERS
enum {
#define X(name, value) name = value,
    WK_ROCBLAS_CONSTANTS(X)
#undef X
};
#endif

#endif
