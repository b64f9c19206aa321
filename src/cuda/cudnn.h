/* cudnn.h: the entry points of cuDNN 9 that wick calls; see cuda.h. */
#ifndef WK_CUDA_CUDNN_H
#define WK_CUDA_CUDNN_H

#include <stddef.h>
#include <stdint.h>

#ifndef WK_VENDOR_HEADERS
typedef int cudnnStatus_t, cudnnDataType_t, cudnnBackendDescriptorType_t, cudnnBackendAttributeName_t,
    cudnnBackendAttributeType_t, cudnnBackendHeurMode_t, cudnnBackendNumericalNote_t, cudnnPointwiseMode_t,
    cudnnReduceTensorOp_t, cudnnConvolutionMode_t, cudnnMathType_t, cudnnRNNAlgo_t, cudnnRNNMode_t,
    cudnnRNNBiasMode_t, cudnnDirectionMode_t, cudnnRNNInputMode_t, cudnnRNNDataLayout_t, cudnnForwardMode_t,
    cudnnWgradMode_t, cudnnSoftmaxAlgorithm_t, cudnnSoftmaxMode_t, cudnnPoolingMode_t, cudnnNanPropagation_t,
    cudnnActivationMode_t, cudnnBatchNormMode_t, cudnnLRNMode_t;
typedef void *cudnnBackendDescriptor_t;
typedef struct cudnnTensorStruct *cudnnTensorDescriptor_t;
typedef struct cudnnDropoutStruct *cudnnDropoutDescriptor_t;
typedef struct cudnnPoolingStruct *cudnnPoolingDescriptor_t;
typedef struct cudnnActivationStruct *cudnnActivationDescriptor_t;
typedef struct cudnnLRNStruct *cudnnLRNDescriptor_t;
typedef struct cudnnRNNStruct *cudnnRNNDescriptor_t;
typedef struct cudnnRNNDataStruct *cudnnRNNDataDescriptor_t;
typedef struct cudnnContext *cudnnHandle_t;
typedef struct CUstream_st *cudaStream_t;
#endif

#define WK_CUDNN_CALLS(X) \
    X(size_t, cudnnGetVersion, (void)) \
    X(const char *, cudnnGetErrorString, (cudnnStatus_t)) \
    X(void, cudnnGetLastErrorString, (char *, size_t)) \
    X(cudnnStatus_t, cudnnCreate, (cudnnHandle_t *)) \
    X(cudnnStatus_t, cudnnDestroy, (cudnnHandle_t)) \
    X(cudnnStatus_t, cudnnSetStream, (cudnnHandle_t, cudaStream_t)) \
    X(cudnnStatus_t, cudnnBackendCreateDescriptor, \
      (cudnnBackendDescriptorType_t, cudnnBackendDescriptor_t *)) \
    X(cudnnStatus_t, cudnnBackendDestroyDescriptor, (cudnnBackendDescriptor_t)) \
    X(cudnnStatus_t, cudnnBackendFinalize, (cudnnBackendDescriptor_t)) \
    X(cudnnStatus_t, cudnnBackendSetAttribute, \
      (cudnnBackendDescriptor_t, cudnnBackendAttributeName_t, cudnnBackendAttributeType_t, int64_t, \
       const void *)) \
    X(cudnnStatus_t, cudnnBackendGetAttribute, \
      (cudnnBackendDescriptor_t const, cudnnBackendAttributeName_t, cudnnBackendAttributeType_t, int64_t, \
       int64_t *, void *)) \
    X(cudnnStatus_t, cudnnBackendExecute, (cudnnHandle_t, cudnnBackendDescriptor_t, cudnnBackendDescriptor_t))

/* Those with descriptors of their own kind. */
#define WK_CUDNN_LAYER_CALLS(X) \
    X(cudnnStatus_t, cudnnCreateTensorDescriptor, (cudnnTensorDescriptor_t *)) \
    X(cudnnStatus_t, cudnnDestroyTensorDescriptor, (cudnnTensorDescriptor_t)) \
    X(cudnnStatus_t, cudnnSetTensorNdDescriptor, \
      (cudnnTensorDescriptor_t, cudnnDataType_t, int, const int[], const int[])) \
    X(cudnnStatus_t, cudnnSoftmaxForward, \
      (cudnnHandle_t, cudnnSoftmaxAlgorithm_t, cudnnSoftmaxMode_t, const void *, \
       const cudnnTensorDescriptor_t, const void *, const void *, const cudnnTensorDescriptor_t, void *)) \
    X(cudnnStatus_t, cudnnSoftmaxBackward, \
      (cudnnHandle_t, cudnnSoftmaxAlgorithm_t, cudnnSoftmaxMode_t, const void *, \
       const cudnnTensorDescriptor_t, const void *, const cudnnTensorDescriptor_t, const void *, \
       const void *, const cudnnTensorDescriptor_t, void *)) \
    X(cudnnStatus_t, cudnnCreatePoolingDescriptor, (cudnnPoolingDescriptor_t *)) \
    X(cudnnStatus_t, cudnnDestroyPoolingDescriptor, (cudnnPoolingDescriptor_t)) \
    X(cudnnStatus_t, cudnnSetPoolingNdDescriptor, \
      (cudnnPoolingDescriptor_t, const cudnnPoolingMode_t, const cudnnNanPropagation_t, int, const int[], \
       const int[], const int[])) \
    X(cudnnStatus_t, cudnnPoolingForward, \
      (cudnnHandle_t, const cudnnPoolingDescriptor_t, const void *, const cudnnTensorDescriptor_t, \
       const void *, const void *, const cudnnTensorDescriptor_t, void *)) \
    X(cudnnStatus_t, cudnnPoolingBackward, \
      (cudnnHandle_t, const cudnnPoolingDescriptor_t, const void *, const cudnnTensorDescriptor_t, \
       const void *, const cudnnTensorDescriptor_t, const void *, const cudnnTensorDescriptor_t, \
       const void *, const void *, const cudnnTensorDescriptor_t, void *)) \
    X(cudnnStatus_t, cudnnCreateActivationDescriptor, (cudnnActivationDescriptor_t *)) \
    X(cudnnStatus_t, cudnnDestroyActivationDescriptor, (cudnnActivationDescriptor_t)) \
    X(cudnnStatus_t, cudnnSetActivationDescriptor, \
      (cudnnActivationDescriptor_t, cudnnActivationMode_t, cudnnNanPropagation_t, double)) \
    X(cudnnStatus_t, cudnnActivationForward, \
      (cudnnHandle_t, cudnnActivationDescriptor_t, const void *, const cudnnTensorDescriptor_t, \
       const void *, const void *, const cudnnTensorDescriptor_t, void *)) \
    X(cudnnStatus_t, cudnnActivationBackward, \
      (cudnnHandle_t, cudnnActivationDescriptor_t, const void *, const cudnnTensorDescriptor_t, \
       const void *, const cudnnTensorDescriptor_t, const void *, const cudnnTensorDescriptor_t, \
       const void *, const void *, const cudnnTensorDescriptor_t, void *)) \
    X(cudnnStatus_t, cudnnCreateLRNDescriptor, (cudnnLRNDescriptor_t *)) \
    X(cudnnStatus_t, cudnnDestroyLRNDescriptor, (cudnnLRNDescriptor_t)) \
    X(cudnnStatus_t, cudnnSetLRNDescriptor, (cudnnLRNDescriptor_t, unsigned, double, double, double)) \
    X(cudnnStatus_t, cudnnLRNCrossChannelForward, \
      (cudnnHandle_t, cudnnLRNDescriptor_t, cudnnLRNMode_t, const void *, const cudnnTensorDescriptor_t, \
       const void *, const void *, const cudnnTensorDescriptor_t, void *)) \
    X(cudnnStatus_t, cudnnBatchNormalizationForwardTraining, \
      (cudnnHandle_t, cudnnBatchNormMode_t, const void *, const void *, const cudnnTensorDescriptor_t, \
       const void *, const cudnnTensorDescriptor_t, void *, const cudnnTensorDescriptor_t, const void *, \
       const void *, double, void *, void *, double, void *, void *)) \
    X(cudnnStatus_t, cudnnBatchNormalizationForwardInference, \
      (cudnnHandle_t, cudnnBatchNormMode_t, const void *, const void *, const cudnnTensorDescriptor_t, \
       const void *, const cudnnTensorDescriptor_t, void *, const cudnnTensorDescriptor_t, const void *, \
       const void *, const void *, const void *, double)) \
    X(cudnnStatus_t, cudnnBatchNormalizationBackward, \
      (cudnnHandle_t, cudnnBatchNormMode_t, const void *, const void *, const void *, const void *, \
       const cudnnTensorDescriptor_t, const void *, const cudnnTensorDescriptor_t, const void *, \
       const cudnnTensorDescriptor_t, void *, const cudnnTensorDescriptor_t, const void *, void *, void *, \
       double, const void *, const void *)) \
    X(cudnnStatus_t, cudnnCreateDropoutDescriptor, (cudnnDropoutDescriptor_t *)) \
    X(cudnnStatus_t, cudnnDestroyDropoutDescriptor, (cudnnDropoutDescriptor_t)) \
    X(cudnnStatus_t, cudnnSetDropoutDescriptor, \
      (cudnnDropoutDescriptor_t, cudnnHandle_t, float, void *, size_t, unsigned long long)) \
    X(cudnnStatus_t, cudnnCreateRNNDescriptor, (cudnnRNNDescriptor_t *)) \
    X(cudnnStatus_t, cudnnDestroyRNNDescriptor, (cudnnRNNDescriptor_t)) \
    X(cudnnStatus_t, cudnnSetRNNDescriptor_v8, \
      (cudnnRNNDescriptor_t, cudnnRNNAlgo_t, cudnnRNNMode_t, cudnnRNNBiasMode_t, cudnnDirectionMode_t, \
       cudnnRNNInputMode_t, cudnnDataType_t, cudnnDataType_t, cudnnMathType_t, int32_t, int32_t, int32_t, \
       int32_t, cudnnDropoutDescriptor_t, uint32_t)) \
    X(cudnnStatus_t, cudnnCreateRNNDataDescriptor, (cudnnRNNDataDescriptor_t *)) \
    X(cudnnStatus_t, cudnnDestroyRNNDataDescriptor, (cudnnRNNDataDescriptor_t)) \
    X(cudnnStatus_t, cudnnSetRNNDataDescriptor, \
      (cudnnRNNDataDescriptor_t, cudnnDataType_t, cudnnRNNDataLayout_t, int, int, int, const int[], void *)) \
    X(cudnnStatus_t, cudnnGetRNNTempSpaceSizes, \
      (cudnnHandle_t, cudnnRNNDescriptor_t, cudnnForwardMode_t, cudnnRNNDataDescriptor_t, size_t *, \
       size_t *)) \
    X(cudnnStatus_t, cudnnGetRNNWeightSpaceSize, (cudnnHandle_t, cudnnRNNDescriptor_t, size_t *)) \
    X(cudnnStatus_t, cudnnGetRNNWeightParams, \
      (cudnnHandle_t, cudnnRNNDescriptor_t, int32_t, size_t, const void *, int32_t, cudnnTensorDescriptor_t, \
       void **, cudnnTensorDescriptor_t, void **)) \
    X(cudnnStatus_t, cudnnRNNForward, \
      (cudnnHandle_t, cudnnRNNDescriptor_t, cudnnForwardMode_t, const int32_t[], cudnnRNNDataDescriptor_t, \
       const void *, cudnnRNNDataDescriptor_t, void *, cudnnTensorDescriptor_t, const void *, void *, \
       cudnnTensorDescriptor_t, const void *, void *, size_t, const void *, size_t, void *, size_t, void *)) \
    X(cudnnStatus_t, cudnnRNNBackwardData_v8, \
      (cudnnHandle_t, cudnnRNNDescriptor_t, const int32_t[], cudnnRNNDataDescriptor_t, const void *, \
       const void *, cudnnRNNDataDescriptor_t, void *, cudnnTensorDescriptor_t, const void *, const void *, \
       void *, cudnnTensorDescriptor_t, const void *, const void *, void *, size_t, const void *, size_t, \
       void *, size_t, void *)) \
    X(cudnnStatus_t, cudnnRNNBackwardWeights_v8, \
      (cudnnHandle_t, cudnnRNNDescriptor_t, cudnnWgradMode_t, const int32_t[], cudnnRNNDataDescriptor_t, \
       const void *, cudnnTensorDescriptor_t, const void *, cudnnRNNDataDescriptor_t, const void *, size_t, \
       void *, size_t, void *, size_t, void *))

#define WK_CUDNN_CONSTANTS(X) \
    X(CUDNN_STATUS_SUCCESS, 0) \
    X(CUDNN_STATUS_BAD_PARAM, 2000) \
    X(CUDNN_STATUS_NOT_SUPPORTED, 3000) \
    X(CUDNN_STATUS_INTERNAL_ERROR, 4000) \
    X(CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED, 4003) \
    X(CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED, 4004) \
    X(CUDNN_STATUS_EXECUTION_FAILED, 5000) \
    X(CUDNN_DATA_FLOAT, 0) \
    X(CUDNN_DATA_DOUBLE, 1) \
    X(CUDNN_DATA_HALF, 2) \
    X(CUDNN_DATA_INT32, 4) \
    X(CUDNN_DATA_BFLOAT16, 9) \
    X(CUDNN_DATA_BOOLEAN, 11) \
    X(CUDNN_CROSS_CORRELATION, 1) \
    X(CUDNN_HEUR_MODE_B, 1) \
    X(CUDNN_HEUR_MODE_FALLBACK, 2) \
    X(CUDNN_HEUR_MODE_A, 3) \
    X(CUDNN_NUMERICAL_NOTE_TENSOR_CORE, 0) \
    X(CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS, 1) \
    X(CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION, 2) \
    X(CUDNN_NUMERICAL_NOTE_FFT, 3) \
    X(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC, 4) \
    X(CUDNN_NUMERICAL_NOTE_WINOGRAD, 5) \
    X(CUDNN_POINTWISE_ADD, 0) \
    X(CUDNN_POINTWISE_MUL, 1) \
    X(CUDNN_POINTWISE_DIV, 6) \
    X(CUDNN_POINTWISE_SUB, 9) \
    X(CUDNN_POINTWISE_EXP, 13) \
    X(CUDNN_POINTWISE_LOG, 15) \
    X(CUDNN_POINTWISE_RSQRT, 17) \
    X(CUDNN_POINTWISE_IDENTITY, 21) \
    X(CUDNN_POINTWISE_RELU_FWD, 100) \
    X(CUDNN_POINTWISE_CMP_GT, 302) \
    X(CUDNN_POINTWISE_CMP_GE, 303) \
    X(CUDNN_POINTWISE_GEN_INDEX, 501) \
    X(CUDNN_POINTWISE_BINARY_SELECT, 601) \
    X(CUDNN_SOFTMAX_ACCURATE, 1) \
    X(CUDNN_SOFTMAX_LOG, 2) \
    X(CUDNN_SOFTMAX_MODE_CHANNEL, 1) \
    X(CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING, 1) \
    X(CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING, 2) \
    X(CUDNN_PROPAGATE_NAN, 1) \
    X(CUDNN_ACTIVATION_SIGMOID, 0) \
    X(CUDNN_ACTIVATION_RELU, 1) \
    X(CUDNN_ACTIVATION_TANH, 2) \
    X(CUDNN_ACTIVATION_CLIPPED_RELU, 3) \
    X(CUDNN_ACTIVATION_ELU, 4) \
    X(CUDNN_LRN_CROSS_CHANNEL_DIM1, 0) \
    X(CUDNN_BATCHNORM_PER_ACTIVATION, 0) \
    X(CUDNN_BATCHNORM_SPATIAL, 1) \
    X(CUDNN_DEFAULT_MATH, 0) \
    X(CUDNN_TENSOR_OP_MATH, 1) \
    X(CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION, 2) \
    X(CUDNN_FMA_MATH, 3) \
    X(CUDNN_RNN_ALGO_STANDARD, 0) \
    X(CUDNN_RNN_RELU, 0) \
    X(CUDNN_RNN_TANH, 1) \
    X(CUDNN_LSTM, 2) \
    X(CUDNN_GRU, 3) \
    X(CUDNN_RNN_NO_BIAS, 0) \
    X(CUDNN_RNN_DOUBLE_BIAS, 2) \
    X(CUDNN_UNIDIRECTIONAL, 0) \
    X(CUDNN_BIDIRECTIONAL, 1) \
    X(CUDNN_LINEAR_INPUT, 0) \
    X(CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED, 0) \
    X(CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED, 1) \
    X(CUDNN_RNN_PADDED_IO_ENABLED, 1) \
    X(CUDNN_FWD_MODE_INFERENCE, 0) \
    X(CUDNN_FWD_MODE_TRAINING, 1) \
    X(CUDNN_WGRAD_MODE_ADD, 0) \
    X(CUDNN_REDUCE_TENSOR_ADD, 0) \
    X(CUDNN_REDUCE_TENSOR_MAX, 3)

/* Kinds of descriptors, names and types of their attributes. */
#define WK_CUDNN_BACKEND_CONSTANTS(X) \
    X(CUDNN_BACKEND_POINTWISE_DESCRIPTOR, 0) \
    X(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, 1) \
    X(CUDNN_BACKEND_ENGINE_DESCRIPTOR, 2) \
    X(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, 3) \
    X(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, 4) \
    X(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, 5) \
    X(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, 10) \
    X(CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR, 11) \
    X(CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR, 12) \
    X(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, 13) \
    X(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, 15) \
    X(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, 16) \
    X(CUDNN_BACKEND_TENSOR_DESCRIPTOR, 17) \
    X(CUDNN_BACKEND_MATMUL_DESCRIPTOR, 18) \
    X(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, 19) \
    X(CUDNN_BACKEND_REDUCTION_DESCRIPTOR, 21) \
    X(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, 22) \
    X(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR, 31) \
    X(CUDNN_TYPE_HANDLE, 0) \
    X(CUDNN_TYPE_DATA_TYPE, 1) \
    X(CUDNN_TYPE_BOOLEAN, 2) \
    X(CUDNN_TYPE_INT64, 3) \
    X(CUDNN_TYPE_FLOAT, 4) \
    X(CUDNN_TYPE_DOUBLE, 5) \
    X(CUDNN_TYPE_VOID_PTR, 6) \
    X(CUDNN_TYPE_CONVOLUTION_MODE, 7) \
    X(CUDNN_TYPE_HEUR_MODE, 8) \
    X(CUDNN_TYPE_NAN_PROPOGATION, 10) \
    X(CUDNN_TYPE_NUMERICAL_NOTE, 11) \
    X(CUDNN_TYPE_POINTWISE_MODE, 14) \
    X(CUDNN_TYPE_BACKEND_DESCRIPTOR, 15) \
    X(CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 18) \
    X(CUDNN_ATTR_POINTWISE_MODE, 0) \
    X(CUDNN_ATTR_POINTWISE_MATH_PREC, 1) \
    X(CUDNN_ATTR_POINTWISE_NAN_PROPAGATION, 2) \
    X(CUDNN_ATTR_POINTWISE_AXIS, 9) \
    X(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, 100) \
    X(CUDNN_ATTR_CONVOLUTION_CONV_MODE, 101) \
    X(CUDNN_ATTR_CONVOLUTION_DILATIONS, 102) \
    X(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, 103) \
    X(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, 104) \
    X(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, 105) \
    X(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, 106) \
    X(CUDNN_ATTR_ENGINEHEUR_MODE, 200) \
    X(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, 201) \
    X(CUDNN_ATTR_ENGINEHEUR_RESULTS, 202) \
    X(CUDNN_ATTR_ENGINECFG_ENGINE, 300) \
    X(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, 400) \
    X(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, 401) \
    X(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, 402) \
    X(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, 700) \
    X(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, 701) \
    X(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, 702) \
    X(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, 703) \
    X(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, 704) \
    X(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, 705) \
    X(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, 706) \
    X(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA, 707) \
    X(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, 708) \
    X(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, 709) \
    X(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, 710) \
    X(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, 711) \
    X(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, 712) \
    X(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA, 713) \
    X(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, 714) \
    X(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, 715) \
    X(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, 716) \
    X(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY, 717) \
    X(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, 750) \
    X(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, 751) \
    X(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, 752) \
    X(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, 753) \
    X(CUDNN_ATTR_OPERATION_POINTWISE_TDESC, 758) \
    X(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, 800) \
    X(CUDNN_ATTR_OPERATIONGRAPH_OPS, 801) \
    X(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 900) \
    X(CUDNN_ATTR_TENSOR_DATA_TYPE, 901) \
    X(CUDNN_ATTR_TENSOR_DIMENSIONS, 902) \
    X(CUDNN_ATTR_TENSOR_STRIDES, 903) \
    X(CUDNN_ATTR_TENSOR_UNIQUE_ID, 906) \
    X(CUDNN_ATTR_TENSOR_IS_VIRTUAL, 907) \
    X(CUDNN_ATTR_TENSOR_IS_BY_VALUE, 908) \
    X(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, 1000) \
    X(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, 1001) \
    X(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, 1003) \
    X(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, 1301) \
    X(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, 1303) \
    X(CUDNN_ATTR_MATMUL_COMP_TYPE, 1500) \
    X(CUDNN_ATTR_OPERATION_MATMUL_ADESC, 1520) \
    X(CUDNN_ATTR_OPERATION_MATMUL_BDESC, 1521) \
    X(CUDNN_ATTR_OPERATION_MATMUL_CDESC, 1522) \
    X(CUDNN_ATTR_OPERATION_MATMUL_DESC, 1523) \
    X(CUDNN_ATTR_REDUCTION_OPERATOR, 1600) \
    X(CUDNN_ATTR_REDUCTION_COMP_TYPE, 1601) \
    X(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, 1610) \
    X(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, 1611) \
    X(CUDNN_ATTR_OPERATION_REDUCTION_DESC, 1612) \
    X(CUDNN_ATTR_OPERATION_RESHAPE_XDESC, 2200) \
    X(CUDNN_ATTR_OPERATION_RESHAPE_YDESC, 2201)

#ifndef WK_VENDOR_HEADERS
enum {
#define X(name, value) name = value,
    WK_CUDNN_CONSTANTS(X) WK_CUDNN_BACKEND_CONSTANTS(X)
#undef X
};
#endif

#endif
