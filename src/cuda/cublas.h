/* cublas.h: the entry points of cuBLAS that wick calls; see cuda.h. */
#ifndef WK_CUDA_CUBLAS_H
#define WK_CUDA_CUBLAS_H

#include <stddef.h>
#include <stdint.h>

#ifndef WK_VENDOR_HEADERS
typedef int cublasStatus_t, cublasOperation_t, cudaDataType, cublasComputeType_t, cublasGemmAlgo_t,
    libraryPropertyType;
typedef struct cublasContext *cublasHandle_t;
typedef struct CUstream_st *cudaStream_t;
typedef int cublasLtMatmulDescAttributes_t;
typedef struct cublasLtContext *cublasLtHandle_t;
typedef struct cublasLtMatmulDesc *cublasLtMatmulDesc_t;
typedef struct cublasLtMatrixLayout *cublasLtMatrixLayout_t;
typedef struct cublasLtMatmulAlgo cublasLtMatmulAlgo_t;
#endif

#define WK_CUBLAS_CALLS(X) \
    X(cublasStatus_t, cublasCreate_v2, (cublasHandle_t *)) \
    X(cublasStatus_t, cublasGetProperty, (libraryPropertyType, int *)) \
    X(cublasStatus_t, cublasSetStream_v2, (cublasHandle_t, cudaStream_t)) \
    X(cublasStatus_t, cublasSetWorkspace_v2, (cublasHandle_t, void *, size_t)) \
    X(cublasStatus_t, cublasGemmStridedBatchedEx, \
      (cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int, const void *, const void *, \
       cudaDataType, int, long long int, const void *, cudaDataType, int, long long int, const void *, \
       void *, cudaDataType, int, long long int, int, cublasComputeType_t, cublasGemmAlgo_t)) \
    X(cublasStatus_t, cublasGemmEx, \
      (cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int, const void *, const void *, \
       cudaDataType, int, const void *, cudaDataType, int, const void *, void *, cudaDataType, int, \
       cublasComputeType_t, cublasGemmAlgo_t)) \
    X(const char *, cublasGetStatusString, (cublasStatus_t))

/* Of cuBLASLt, which cuBLAS brings along. */
#define WK_CUBLAS_LT_CALLS(X) \
    X(cublasStatus_t, cublasLtMatmulDescCreate, (cublasLtMatmulDesc_t *, cublasComputeType_t, cudaDataType)) \
    X(cublasStatus_t, cublasLtMatmulDescDestroy, (cublasLtMatmulDesc_t)) \
    X(cublasStatus_t, cublasLtMatmulDescSetAttribute, \
      (cublasLtMatmulDesc_t, cublasLtMatmulDescAttributes_t, const void *, size_t)) \
    X(cublasStatus_t, cublasLtMatrixLayoutCreate, \
      (cublasLtMatrixLayout_t *, cudaDataType, uint64_t, uint64_t, int64_t)) \
    X(cublasStatus_t, cublasLtMatrixLayoutDestroy, (cublasLtMatrixLayout_t)) \
    X(cublasStatus_t, cublasLtMatmul, \
      (cublasLtHandle_t, cublasLtMatmulDesc_t, const void *, const void *, cublasLtMatrixLayout_t, \
       const void *, cublasLtMatrixLayout_t, const void *, const void *, cublasLtMatrixLayout_t, void *, \
       cublasLtMatrixLayout_t, const cublasLtMatmulAlgo_t *, void *, size_t, cudaStream_t))

#define WK_CUBLAS_CONSTANTS(X) \
    X(CUBLAS_STATUS_SUCCESS, 0) \
    X(MAJOR_VERSION, 0) \
    X(MINOR_VERSION, 1) \
    X(PATCH_LEVEL, 2) \
    X(CUBLAS_STATUS_NOT_SUPPORTED, 15) \
    X(CUBLAS_OP_N, 0) \
    X(CUBLAS_OP_T, 1) \
    X(CUDA_R_32F, 0) \
    X(CUDA_R_64F, 1) \
    X(CUDA_R_16F, 2) \
    X(CUDA_R_16BF, 14) \
    X(CUBLAS_COMPUTE_32F, 68) \
    X(CUBLAS_COMPUTE_64F, 70) \
    X(CUBLAS_COMPUTE_32F_FAST_TF32, 77) \
    X(CUBLAS_GEMM_DEFAULT, -1) \
    X(CUBLASLT_MATMUL_DESC_TRANSA, 3) \
    X(CUBLASLT_MATMUL_DESC_TRANSB, 4) \
    X(CUBLASLT_MATMUL_DESC_EPILOGUE, 7) \
    X(CUBLASLT_MATMUL_DESC_BIAS_POINTER, 8) \
    X(CUBLASLT_EPILOGUE_DEFAULT, 1) \
    X(CUBLASLT_EPILOGUE_BIAS, 4) \
    X(CUBLASLT_EPILOGUE_GELU, 32) \
    X(CUBLASLT_EPILOGUE_GELU_BIAS, 36)

#ifndef WK_VENDOR_HEADERS
enum {
#define X(name, value) name = value,
    WK_CUBLAS_CONSTANTS(X)
#undef X
};
#endif

#endif
