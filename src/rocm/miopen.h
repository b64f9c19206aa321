/* miopen.h: the entry points of MIOpen that wick calls; see hip.h. MIOpen's own header is C++: tests/vendor.sh compares
 * this one with it through tests/vendor/miopen.cc. */
#ifndef WK_ROCM_MIOPEN_H
#define WK_ROCM_MIOPEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "hip.h"

#ifndef WK_VENDOR_HEADERS
typedef int miopenStatus_t, miopenDataType_t, miopenConvolutionMode_t, miopenConvolutionAttrib_t,
    miopenConvAlgorithm_t, miopenPoolingMode_t, miopenSoftmaxAlgorithm_t, miopenSoftmaxMode_t,
    miopenBatchNormMode_t, miopenLRNMode_t, miopenActivationMode_t, miopenReduceTensorOp_t,
    miopenNanPropagation_t, miopenReduceTensorIndices_t, miopenIndicesType_t, miopenRNNMode_t,
    miopenRNNInputMode_t, miopenRNNAlgo_t, miopenRNNDirectionMode_t, miopenRNNBiasMode_t, miopenRNNFWDMode_t,
    miopenRNNBaseLayout_t, miopenRNNPaddingMode_t, miopenNormMode_t, miopenCTCLossAlgo_t,
    miopenProblemDirection_t, miopenTensorArgumentId_t, miopenFusionDirection_t, miopenRNGType_t,
    miopenIndexType_t, miopenPoolingWorkspaceIndexMode_t;
typedef hipStream_t miopenAcceleratorQueue_t;
typedef struct miopenHandle *miopenHandle_t;
typedef struct miopenTensorDescriptor *miopenTensorDescriptor_t;
typedef struct miopenSeqTensorDescriptor *miopenSeqTensorDescriptor_t;
typedef struct miopenConvolutionDescriptor *miopenConvolutionDescriptor_t;
typedef struct miopenPoolingDescriptor *miopenPoolingDescriptor_t;
typedef struct miopenLRNDescriptor *miopenLRNDescriptor_t;
typedef struct miopenActivationDescriptor *miopenActivationDescriptor_t;
typedef struct miopenReduceTensorDescriptor *miopenReduceTensorDescriptor_t;
typedef struct miopenRNNDescriptor *miopenRNNDescriptor_t;
typedef struct miopenCTCLossDescriptor *miopenCTCLossDescriptor_t;
typedef struct miopenFusionPlanDescriptor *miopenFusionPlanDescriptor_t;
typedef struct miopenFusionOpDescriptor *miopenFusionOpDescriptor_t;
typedef struct miopenOperatorArgs *miopenOperatorArgs_t;
typedef struct miopenDropoutDescriptor *miopenDropoutDescriptor_t;
typedef struct miopenMhaDescriptor *miopenMhaDescriptor_t;
typedef struct miopenProblem *miopenProblem_t;
typedef struct miopenFindOptions *miopenFindOptions_t;
typedef struct miopenSolution *miopenSolution_t;
struct miopenTensorArgument_t {
    miopenTensorArgumentId_t id;
    miopenTensorDescriptor_t *descriptor;
    void *buffer;
};
typedef struct {
    miopenConvAlgorithm_t fwd_algo;
    float time;
    size_t memory;
} miopenConvAlgoPerf_t;
typedef struct {
    float time;
    size_t workspace_size;
    uint64_t solution_id;
    miopenConvAlgorithm_t algorithm;
} miopenConvSolution_t;
#endif

/* handles and tensors */
#define WK_MIOPEN_CORE_CALLS(X) \
    X(miopenStatus_t, miopenGetVersion, (size_t *, size_t *, size_t *)) \
    X(const char *, miopenGetErrorString, (miopenStatus_t)) \
    X(miopenStatus_t, miopenCreateWithStream, (miopenHandle_t *, miopenAcceleratorQueue_t)) \
    X(miopenStatus_t, miopenSetStream, (miopenHandle_t, miopenAcceleratorQueue_t)) \
    X(miopenStatus_t, miopenCreateTensorDescriptor, (miopenTensorDescriptor_t *)) \
    X(miopenStatus_t, miopenSetTensorDescriptor, \
      (miopenTensorDescriptor_t, miopenDataType_t, int, const int *, const int *)) \
    X(miopenStatus_t, miopenDestroyTensorDescriptor, (miopenTensorDescriptor_t))

/* convolution */
#define WK_MIOPEN_CONV_CALLS(X) \
    X(miopenStatus_t, miopenCreateConvolutionDescriptor, (miopenConvolutionDescriptor_t *)) \
    X(miopenStatus_t, miopenInitConvolutionNdDescriptor, \
      (miopenConvolutionDescriptor_t, int, const int *, const int *, const int *, miopenConvolutionMode_t)) \
    X(miopenStatus_t, miopenSetConvolutionGroupCount, (miopenConvolutionDescriptor_t, int)) \
    X(miopenStatus_t, miopenSetConvolutionAttribute, \
      (miopenConvolutionDescriptor_t, miopenConvolutionAttrib_t, int)) \
    X(miopenStatus_t, miopenDestroyConvolutionDescriptor, (miopenConvolutionDescriptor_t)) \
    X(miopenStatus_t, miopenConvolutionForwardGetSolution, \
      (miopenHandle_t, miopenTensorDescriptor_t, miopenTensorDescriptor_t, miopenConvolutionDescriptor_t, \
       miopenTensorDescriptor_t, size_t, size_t *, miopenConvSolution_t *)) \
    X(miopenStatus_t, miopenConvolutionForwardCompileSolution, \
      (miopenHandle_t, miopenTensorDescriptor_t, miopenTensorDescriptor_t, miopenConvolutionDescriptor_t, \
       miopenTensorDescriptor_t, uint64_t)) \
    X(miopenStatus_t, miopenConvolutionForwardImmediate, \
      (miopenHandle_t, miopenTensorDescriptor_t, const void *, miopenTensorDescriptor_t, const void *, \
       miopenConvolutionDescriptor_t, miopenTensorDescriptor_t, void *, void *, size_t, uint64_t)) \
    X(miopenStatus_t, miopenConvolutionBackwardDataGetSolution, \
      (miopenHandle_t, miopenTensorDescriptor_t, miopenTensorDescriptor_t, miopenConvolutionDescriptor_t, \
       miopenTensorDescriptor_t, size_t, size_t *, miopenConvSolution_t *)) \
    X(miopenStatus_t, miopenConvolutionBackwardDataCompileSolution, \
      (miopenHandle_t, miopenTensorDescriptor_t, miopenTensorDescriptor_t, miopenConvolutionDescriptor_t, \
       miopenTensorDescriptor_t, uint64_t)) \
    X(miopenStatus_t, miopenConvolutionBackwardDataImmediate, \
      (miopenHandle_t, miopenTensorDescriptor_t, const void *, miopenTensorDescriptor_t, const void *, \
       miopenConvolutionDescriptor_t, miopenTensorDescriptor_t, void *, void *, size_t, uint64_t)) \
    X(miopenStatus_t, miopenConvolutionBackwardWeightsGetSolution, \
      (miopenHandle_t, miopenTensorDescriptor_t, miopenTensorDescriptor_t, miopenConvolutionDescriptor_t, \
       miopenTensorDescriptor_t, size_t, size_t *, miopenConvSolution_t *)) \
    X(miopenStatus_t, miopenConvolutionBackwardWeightsCompileSolution, \
      (miopenHandle_t, miopenTensorDescriptor_t, miopenTensorDescriptor_t, miopenConvolutionDescriptor_t, \
       miopenTensorDescriptor_t, uint64_t)) \
    X(miopenStatus_t, miopenConvolutionBackwardWeightsImmediate, \
      (miopenHandle_t, miopenTensorDescriptor_t, const void *, miopenTensorDescriptor_t, const void *, \
       miopenConvolutionDescriptor_t, miopenTensorDescriptor_t, void *, void *, size_t, uint64_t))

/* the search for convolutions */
#define WK_MIOPEN_FIND_CALLS(X) \
    X(miopenStatus_t, miopenConvolutionForwardGetWorkSpaceSize, \
      (miopenHandle_t, miopenTensorDescriptor_t, miopenTensorDescriptor_t, miopenConvolutionDescriptor_t, \
       miopenTensorDescriptor_t, size_t *)) \
    X(miopenStatus_t, miopenFindConvolutionForwardAlgorithm, \
      (miopenHandle_t, miopenTensorDescriptor_t, const void *, miopenTensorDescriptor_t, const void *, \
       miopenConvolutionDescriptor_t, miopenTensorDescriptor_t, void *, int, int *, miopenConvAlgoPerf_t *, \
       void *, size_t, bool)) \
    X(miopenStatus_t, miopenConvolutionBackwardDataGetWorkSpaceSize, \
      (miopenHandle_t, miopenTensorDescriptor_t, miopenTensorDescriptor_t, miopenConvolutionDescriptor_t, \
       miopenTensorDescriptor_t, size_t *)) \
    X(miopenStatus_t, miopenFindConvolutionBackwardDataAlgorithm, \
      (miopenHandle_t, miopenTensorDescriptor_t, const void *, miopenTensorDescriptor_t, const void *, \
       miopenConvolutionDescriptor_t, miopenTensorDescriptor_t, void *, int, int *, miopenConvAlgoPerf_t *, \
       void *, size_t, bool)) \
    X(miopenStatus_t, miopenConvolutionBackwardWeightsGetWorkSpaceSize, \
      (miopenHandle_t, miopenTensorDescriptor_t, miopenTensorDescriptor_t, miopenConvolutionDescriptor_t, \
       miopenTensorDescriptor_t, size_t *)) \
    X(miopenStatus_t, miopenFindConvolutionBackwardWeightsAlgorithm, \
      (miopenHandle_t, miopenTensorDescriptor_t, const void *, miopenTensorDescriptor_t, const void *, \
       miopenConvolutionDescriptor_t, miopenTensorDescriptor_t, void *, int, int *, miopenConvAlgoPerf_t *, \
       void *, size_t, bool))

/* pooling */
#define WK_MIOPEN_POOL_CALLS(X) \
    X(miopenStatus_t, miopenCreatePoolingDescriptor, (miopenPoolingDescriptor_t *)) \
    X(miopenStatus_t, miopenSetNdPoolingDescriptor, \
      (miopenPoolingDescriptor_t, miopenPoolingMode_t, int, const int *, const int *, const int *)) \
    X(miopenStatus_t, miopenSetPoolingIndexType, (miopenPoolingDescriptor_t, miopenIndexType_t)) \
    X(miopenStatus_t, miopenSetPoolingWorkSpaceIndexMode, \
      (miopenPoolingDescriptor_t, miopenPoolingWorkspaceIndexMode_t)) \
    X(miopenStatus_t, miopenPoolingForward, \
      (miopenHandle_t, miopenPoolingDescriptor_t, const void *, miopenTensorDescriptor_t, const void *, \
       const void *, miopenTensorDescriptor_t, void *, bool, void *, size_t)) \
    X(miopenStatus_t, miopenPoolingBackward, \
      (miopenHandle_t, miopenPoolingDescriptor_t, const void *, miopenTensorDescriptor_t, const void *, \
       miopenTensorDescriptor_t, const void *, miopenTensorDescriptor_t, const void *, const void *, \
       miopenTensorDescriptor_t, void *, void *)) \
    X(miopenStatus_t, miopenDestroyPoolingDescriptor, (miopenPoolingDescriptor_t))

/* softmax, norms */
#define WK_MIOPEN_NORM_CALLS(X) \
    X(miopenStatus_t, miopenSoftmaxForward_V2, \
      (miopenHandle_t, const void *, miopenTensorDescriptor_t, const void *, const void *, \
       miopenTensorDescriptor_t, void *, miopenSoftmaxAlgorithm_t, miopenSoftmaxMode_t)) \
    X(miopenStatus_t, miopenSoftmaxBackward_V2, \
      (miopenHandle_t, const void *, miopenTensorDescriptor_t, const void *, miopenTensorDescriptor_t, \
       const void *, const void *, miopenTensorDescriptor_t, void *, miopenSoftmaxAlgorithm_t, \
       miopenSoftmaxMode_t)) \
    X(miopenStatus_t, miopenBatchNormalizationForwardInference, \
      (miopenHandle_t, miopenBatchNormMode_t, void *, void *, miopenTensorDescriptor_t, const void *, \
       miopenTensorDescriptor_t, void *, miopenTensorDescriptor_t, void *, void *, void *, void *, double)) \
    X(miopenStatus_t, miopenBatchNormalizationForwardTraining, \
      (miopenHandle_t, miopenBatchNormMode_t, void *, void *, miopenTensorDescriptor_t, const void *, \
       miopenTensorDescriptor_t, void *, miopenTensorDescriptor_t, void *, void *, double, void *, void *, \
       double, void *, void *)) \
    X(miopenStatus_t, miopenBatchNormalizationBackward, \
      (miopenHandle_t, miopenBatchNormMode_t, const void *, const void *, const void *, const void *, \
       miopenTensorDescriptor_t, const void *, miopenTensorDescriptor_t, const void *, \
       miopenTensorDescriptor_t, void *, miopenTensorDescriptor_t, const void *, void *, void *, double, \
       const void *, const void *)) \
    X(miopenStatus_t, miopenCreateLRNDescriptor, (miopenLRNDescriptor_t *)) \
    X(miopenStatus_t, miopenSetLRNDescriptor, \
      (miopenLRNDescriptor_t, miopenLRNMode_t, unsigned int, double, double, double)) \
    X(miopenStatus_t, miopenLRNGetWorkSpaceSize, (miopenTensorDescriptor_t, size_t *)) \
    X(miopenStatus_t, miopenLRNForward, \
      (miopenHandle_t, miopenLRNDescriptor_t, const void *, miopenTensorDescriptor_t, const void *, \
       const void *, miopenTensorDescriptor_t, void *, bool, void *)) \
    X(miopenStatus_t, miopenLRNBackward, \
      (miopenHandle_t, miopenLRNDescriptor_t, const void *, miopenTensorDescriptor_t, const void *, \
       miopenTensorDescriptor_t, const void *, miopenTensorDescriptor_t, const void *, const void *, \
       miopenTensorDescriptor_t, void *, const void *)) \
    X(miopenStatus_t, miopenDestroyLRNDescriptor, (miopenLRNDescriptor_t))

/* activation, reduction */
#define WK_MIOPEN_MAP_CALLS(X) \
    X(miopenStatus_t, miopenCreateActivationDescriptor, (miopenActivationDescriptor_t *)) \
    X(miopenStatus_t, miopenSetActivationDescriptor, \
      (miopenActivationDescriptor_t, miopenActivationMode_t, double, double, double)) \
    X(miopenStatus_t, miopenActivationForward, \
      (miopenHandle_t, miopenActivationDescriptor_t, const void *, miopenTensorDescriptor_t, const void *, \
       const void *, miopenTensorDescriptor_t, void *)) \
    X(miopenStatus_t, miopenActivationBackward, \
      (miopenHandle_t, miopenActivationDescriptor_t, const void *, miopenTensorDescriptor_t, const void *, \
       miopenTensorDescriptor_t, const void *, miopenTensorDescriptor_t, const void *, const void *, \
       miopenTensorDescriptor_t, void *)) \
    X(miopenStatus_t, miopenDestroyActivationDescriptor, (miopenActivationDescriptor_t)) \
    X(miopenStatus_t, miopenCreateReduceTensorDescriptor, (miopenReduceTensorDescriptor_t *)) \
    X(miopenStatus_t, miopenSetReduceTensorDescriptor, \
      (miopenReduceTensorDescriptor_t, miopenReduceTensorOp_t, miopenDataType_t, miopenNanPropagation_t, \
       miopenReduceTensorIndices_t, miopenIndicesType_t)) \
    X(miopenStatus_t, miopenGetReductionWorkspaceSize, \
      (miopenHandle_t, miopenReduceTensorDescriptor_t, miopenTensorDescriptor_t, miopenTensorDescriptor_t, \
       size_t *)) \
    X(miopenStatus_t, miopenReduceTensor, \
      (miopenHandle_t, miopenReduceTensorDescriptor_t, void *, size_t, void *, size_t, const void *, \
       miopenTensorDescriptor_t, const void *, const void *, miopenTensorDescriptor_t, void *)) \
    X(miopenStatus_t, miopenDestroyReduceTensorDescriptor, (miopenReduceTensorDescriptor_t))

/* recurrent nets */
#define WK_MIOPEN_RNN_CALLS(X) \
    X(miopenStatus_t, miopenCreateRNNDescriptor, (miopenRNNDescriptor_t *)) \
    X(miopenStatus_t, miopenSetRNNDescriptor, \
      (miopenRNNDescriptor_t, int, int, miopenRNNInputMode_t, miopenRNNDirectionMode_t, miopenRNNMode_t, \
       miopenRNNBiasMode_t, miopenRNNAlgo_t, miopenDataType_t)) \
    X(miopenStatus_t, miopenSetRNNPaddingMode, (miopenRNNDescriptor_t, miopenRNNPaddingMode_t)) \
    X(miopenStatus_t, miopenDestroyRNNDescriptor, (miopenRNNDescriptor_t)) \
    X(miopenStatus_t, miopenCreateSeqTensorDescriptor, (miopenSeqTensorDescriptor_t *)) \
    X(miopenStatus_t, miopenSetRNNDataSeqTensorDescriptor, \
      (miopenSeqTensorDescriptor_t, miopenDataType_t, miopenRNNBaseLayout_t, int, int, int, const int *, \
       void *)) \
    X(miopenStatus_t, miopenDestroySeqTensorDescriptor, (miopenSeqTensorDescriptor_t)) \
    X(miopenStatus_t, miopenGetRNNTempSpaceSizes, \
      (miopenHandle_t, miopenRNNDescriptor_t, miopenSeqTensorDescriptor_t, miopenRNNFWDMode_t, size_t *, \
       size_t *)) \
    X(miopenStatus_t, miopenGetRNNParamsSize, \
      (miopenHandle_t, miopenRNNDescriptor_t, miopenTensorDescriptor_t, size_t *, miopenDataType_t)) \
    X(miopenStatus_t, miopenGetRNNLayerParamOffset, \
      (miopenRNNDescriptor_t, int, miopenTensorDescriptor_t, int, miopenTensorDescriptor_t, size_t *)) \
    X(miopenStatus_t, miopenGetRNNLayerBiasOffset, \
      (miopenRNNDescriptor_t, int, miopenTensorDescriptor_t, int, miopenTensorDescriptor_t, size_t *)) \
    X(miopenStatus_t, miopenRNNForward, \
      (miopenHandle_t, miopenRNNDescriptor_t, miopenRNNFWDMode_t, miopenSeqTensorDescriptor_t, const void *, \
       miopenTensorDescriptor_t, const void *, void *, miopenTensorDescriptor_t, const void *, void *, \
       miopenSeqTensorDescriptor_t, void *, const void *, size_t, void *, size_t, void *, size_t)) \
    X(miopenStatus_t, miopenRNNBackwardSeqData, \
      (miopenHandle_t, miopenRNNDescriptor_t, miopenSeqTensorDescriptor_t, const void *, const void *, \
       miopenTensorDescriptor_t, const void *, const void *, void *, miopenTensorDescriptor_t, const void *, \
       const void *, void *, miopenSeqTensorDescriptor_t, void *, const void *, size_t, void *, size_t, \
       void *, size_t)) \
    X(miopenStatus_t, miopenRNNBackwardWeightsSeqTensor, \
      (miopenHandle_t, miopenRNNDescriptor_t, miopenSeqTensorDescriptor_t, const void *, \
       miopenTensorDescriptor_t, const void *, miopenSeqTensorDescriptor_t, const void *, void *, size_t, \
       void *, size_t, const void *, size_t))

/* CTC loss */
#define WK_MIOPEN_CTC_CALLS(X) \
    X(miopenStatus_t, miopenCreateCTCLossDescriptor, (miopenCTCLossDescriptor_t *)) \
    X(miopenStatus_t, miopenSetCTCLossDescriptor, (miopenCTCLossDescriptor_t, miopenDataType_t, int, bool)) \
    X(miopenStatus_t, miopenDestroyCTCLossDescriptor, (miopenCTCLossDescriptor_t)) \
    X(miopenStatus_t, miopenGetCTCLossWorkspaceSize, \
      (miopenHandle_t, miopenTensorDescriptor_t, miopenTensorDescriptor_t, const int *, const int *, \
       const int *, miopenCTCLossAlgo_t, miopenCTCLossDescriptor_t, size_t *)) \
    X(miopenStatus_t, miopenCTCLoss, \
      (miopenHandle_t, miopenTensorDescriptor_t, const void *, const int *, const int *, const int *, \
       void *, miopenTensorDescriptor_t, void *, miopenCTCLossAlgo_t, miopenCTCLossDescriptor_t, void *, \
       size_t))

/* dropout */
#define WK_MIOPEN_DROPOUT_CALLS(X) \
    X(miopenStatus_t, miopenCreateDropoutDescriptor, (miopenDropoutDescriptor_t *)) \
    X(miopenStatus_t, miopenRestoreDropoutDescriptor, \
      (miopenDropoutDescriptor_t, miopenHandle_t, float, void *, size_t, unsigned long long, bool, bool, \
       miopenRNGType_t)) \
    X(miopenStatus_t, miopenDestroyDropoutDescriptor, (miopenDropoutDescriptor_t)) \
    X(miopenStatus_t, miopenDropoutForward, \
      (miopenHandle_t, miopenDropoutDescriptor_t, miopenTensorDescriptor_t, miopenTensorDescriptor_t, \
       const void *, miopenTensorDescriptor_t, void *, void *, size_t)) \
    X(miopenStatus_t, miopenDropoutBackward, \
      (miopenHandle_t, miopenDropoutDescriptor_t, miopenTensorDescriptor_t, miopenTensorDescriptor_t, \
       const void *, miopenTensorDescriptor_t, void *, void *, size_t))

/* fusion */
#define WK_MIOPEN_FUSION_CALLS(X) \
    X(miopenStatus_t, miopenCreateFusionPlan, \
      (miopenFusionPlanDescriptor_t *, miopenFusionDirection_t, miopenTensorDescriptor_t)) \
    X(miopenStatus_t, miopenDestroyFusionPlan, (miopenFusionPlanDescriptor_t)) \
    X(miopenStatus_t, miopenCompileFusionPlan, (miopenHandle_t, miopenFusionPlanDescriptor_t)) \
    X(miopenStatus_t, miopenCreateOpConvForward, \
      (miopenFusionPlanDescriptor_t, miopenFusionOpDescriptor_t *, miopenConvolutionDescriptor_t, \
       miopenTensorDescriptor_t)) \
    X(miopenStatus_t, miopenCreateOpBiasForward, \
      (miopenFusionPlanDescriptor_t, miopenFusionOpDescriptor_t *, miopenTensorDescriptor_t)) \
    X(miopenStatus_t, miopenCreateOpBatchNormInference, \
      (miopenFusionPlanDescriptor_t, miopenFusionOpDescriptor_t *, miopenBatchNormMode_t, \
       miopenTensorDescriptor_t)) \
    X(miopenStatus_t, miopenCreateOpActivationForward, \
      (miopenFusionPlanDescriptor_t, miopenFusionOpDescriptor_t *, miopenActivationMode_t)) \
    X(miopenStatus_t, miopenCreateOperatorArgs, (miopenOperatorArgs_t *)) \
    X(miopenStatus_t, miopenDestroyOperatorArgs, (miopenOperatorArgs_t)) \
    X(miopenStatus_t, miopenSetOpArgsConvForward, \
      (miopenOperatorArgs_t, miopenFusionOpDescriptor_t, const void *, const void *, const void *)) \
    X(miopenStatus_t, miopenSetOpArgsBiasForward, \
      (miopenOperatorArgs_t, miopenFusionOpDescriptor_t, const void *, const void *, const void *)) \
    X(miopenStatus_t, miopenSetOpArgsBatchNormInference, \
      (miopenOperatorArgs_t, miopenFusionOpDescriptor_t, const void *, const void *, const void *, \
       const void *, const void *, const void *, double)) \
    X(miopenStatus_t, miopenSetOpArgsActivForward, \
      (miopenOperatorArgs_t, miopenFusionOpDescriptor_t, const void *, const void *, double, double, \
       double)) \
    X(miopenStatus_t, miopenExecuteFusionPlan, \
      (miopenHandle_t, miopenFusionPlanDescriptor_t, miopenTensorDescriptor_t, const void *, \
       miopenTensorDescriptor_t, void *, miopenOperatorArgs_t))

/* All of these must be there. */
#define WK_MIOPEN_CALLS(X) \
    WK_MIOPEN_CORE_CALLS(X) \
    WK_MIOPEN_CONV_CALLS(X) \
    WK_MIOPEN_FIND_CALLS(X) \
    WK_MIOPEN_POOL_CALLS(X) \
    WK_MIOPEN_NORM_CALLS(X) \
    WK_MIOPEN_MAP_CALLS(X) \
    WK_MIOPEN_RNN_CALLS(X) \
    WK_MIOPEN_CTC_CALLS(X) \
    WK_MIOPEN_DROPOUT_CALLS(X) \
    WK_MIOPEN_FUSION_CALLS(X)

/* Newer ones: NULL where the library does not have them. */
#define WK_MIOPEN_BETA_CALLS(X) \
    X(miopenStatus_t, miopenCreateMhaDescriptor, (miopenMhaDescriptor_t *)) \
    X(miopenStatus_t, miopenSetMhaDescriptor, (miopenMhaDescriptor_t, float)) \
    X(miopenStatus_t, miopenCreateMhaProblem, \
      (miopenProblem_t *, miopenMhaDescriptor_t, miopenProblemDirection_t)) \
    X(miopenStatus_t, miopenSetProblemTensorDescriptor, \
      (miopenProblem_t, miopenTensorArgumentId_t, miopenTensorDescriptor_t)) \
    X(miopenStatus_t, miopenDestroyProblem, (miopenProblem_t)) \
    X(miopenStatus_t, miopenFindSolutions, \
      (miopenHandle_t, miopenProblem_t, miopenFindOptions_t, miopenSolution_t *, size_t *, size_t)) \
    X(miopenStatus_t, miopenGetSolutionWorkspaceSize, (miopenSolution_t, size_t *)) \
    X(miopenStatus_t, miopenRunSolution, \
      (miopenHandle_t, miopenSolution_t, size_t, const struct miopenTensorArgument_t *, void *, size_t)) \
    X(miopenStatus_t, miopenDestroySolution, (miopenSolution_t)) \
    X(miopenStatus_t, miopenLayerNormForward, \
      (miopenHandle_t, miopenNormMode_t, miopenTensorDescriptor_t, const void *, miopenTensorDescriptor_t, \
       const void *, miopenTensorDescriptor_t, const void *, float, int32_t, miopenTensorDescriptor_t, \
       void *, miopenTensorDescriptor_t, void *, miopenTensorDescriptor_t, void *)) \
    X(miopenStatus_t, miopenGroupNormForward, \
      (miopenHandle_t, miopenNormMode_t, miopenTensorDescriptor_t, const void *, miopenTensorDescriptor_t, \
       const void *, miopenTensorDescriptor_t, const void *, uint64_t, float, miopenTensorDescriptor_t, \
       void *, miopenTensorDescriptor_t, void *, miopenTensorDescriptor_t, void *)) \
    X(miopenStatus_t, miopenT5LayerNormForward, \
      (miopenHandle_t, miopenNormMode_t, miopenTensorDescriptor_t, const void *, miopenTensorDescriptor_t, \
       const void *, float, miopenTensorDescriptor_t, void *, miopenTensorDescriptor_t, void *)) \
    X(miopenStatus_t, miopenGetT5LayerNormBackwardWorkspaceSize, \
      (miopenHandle_t, miopenNormMode_t, miopenTensorDescriptor_t, miopenTensorDescriptor_t, \
       miopenTensorDescriptor_t, miopenTensorDescriptor_t, miopenTensorDescriptor_t, \
       miopenTensorDescriptor_t, size_t *)) \
    X(miopenStatus_t, miopenT5LayerNormBackward, \
      (miopenHandle_t, miopenNormMode_t, void *, size_t, miopenTensorDescriptor_t, const void *, \
       miopenTensorDescriptor_t, const void *, miopenTensorDescriptor_t, const void *, \
       miopenTensorDescriptor_t, const void *, miopenTensorDescriptor_t, void *, miopenTensorDescriptor_t, \
       void *)) \
    X(miopenStatus_t, miopenRoPEForward, \
      (miopenHandle_t, miopenTensorDescriptor_t, const void *, miopenTensorDescriptor_t, const void *, \
       miopenTensorDescriptor_t, const void *, miopenTensorDescriptor_t, void *)) \
    X(miopenStatus_t, miopenRoPEBackward, \
      (miopenHandle_t, miopenTensorDescriptor_t, const void *, miopenTensorDescriptor_t, const void *, \
       miopenTensorDescriptor_t, const void *, miopenTensorDescriptor_t, void *))

#define WK_MIOPEN_CONSTANTS(X) \
    X(miopenStatusSuccess, 0) \
    X(miopenStatusAllocFailed, 4) \
    X(miopenStatusInternalError, 5) \
    X(miopenStatusNotImplemented, 6) \
    X(miopenStatusUnsupportedOp, 8) \
    X(miopenHalf, 0) \
    X(miopenFloat, 1) \
    X(miopenBFloat16, 5) \
    X(miopenDouble, 6) \
    X(miopenConvolution, 0) \
    X(miopenConvolutionAlgoGEMM, 0) \
    X(MIOPEN_CONVOLUTION_ATTRIB_FP16_ALT_IMPL, 0) \
    X(MIOPEN_CONVOLUTION_ATTRIB_DETERMINISTIC, 1) \
    X(miopenPoolingMax, 0) \
    X(miopenPoolingAverage, 1) \
    X(miopenPoolingAverageInclusive, 2) \
    X(miopenIndexUint32, 2) \
    X(miopenPoolingWorkspaceIndexImage, 1) \
    X(miopenBNPerActivation, 0) \
    X(miopenBNSpatial, 1) \
    X(miopenLRNWithinChannel, 0) \
    X(miopenLRNCrossChannel, 1) \
    X(MIOPEN_SOFTMAX_FAST, 0) \
    X(MIOPEN_SOFTMAX_ACCURATE, 1) \
    X(MIOPEN_SOFTMAX_LOG, 2) \
    X(MIOPEN_SOFTMAX_MODE_INSTANCE, 0) \
    X(MIOPEN_SOFTMAX_MODE_CHANNEL, 1) \
    X(miopenActivationLOGISTIC, 1) \
    X(miopenActivationTANH, 2) \
    X(miopenActivationRELU, 3) \
    X(miopenActivationSOFTRELU, 4) \
    X(miopenActivationABS, 5) \
    X(miopenActivationPOWER, 6) \
    X(miopenActivationCLIPPEDRELU, 7) \
    X(miopenActivationLEAKYRELU, 8) \
    X(miopenActivationELU, 9) \
    X(MIOPEN_REDUCE_TENSOR_ADD, 0) \
    X(MIOPEN_REDUCE_TENSOR_MUL, 1) \
    X(MIOPEN_REDUCE_TENSOR_MIN, 2) \
    X(MIOPEN_REDUCE_TENSOR_MAX, 3) \
    X(MIOPEN_REDUCE_TENSOR_AMAX, 4) \
    X(MIOPEN_REDUCE_TENSOR_AVG, 5) \
    X(MIOPEN_REDUCE_TENSOR_NORM1, 6) \
    X(MIOPEN_REDUCE_TENSOR_NORM2, 7) \
    X(MIOPEN_PROPAGATE_NAN, 1) \
    X(MIOPEN_REDUCE_TENSOR_NO_INDICES, 0) \
    X(MIOPEN_REDUCE_TENSOR_FLATTENED_INDICES, 1) \
    X(MIOPEN_32BIT_INDICES, 0) \
    X(miopenRNNRELU, 0) \
    X(miopenRNNTANH, 1) \
    X(miopenLSTM, 2) \
    X(miopenGRU, 3) \
    X(miopenRNNlinear, 0) \
    X(miopenRNNdefault, 0) \
    X(miopenRNNunidirection, 0) \
    X(miopenRNNbidirection, 1) \
    X(miopenRNNNoBias, 0) \
    X(miopenRNNwithBias, 1) \
    X(miopenRNNTraining, 0) \
    X(miopenRNNInference, 1) \
    X(miopenRNNDataSeqMajorNotPadded, 1) \
    X(miopenRNNDataSeqMajorPadded, 2) \
    X(miopenRNNIOWithPadding, 1) \
    X(MIOPEN_RNG_PSEUDO_XORWOW, 0) \
    X(MIOPEN_CTC_LOSS_ALGO_DETERMINISTIC, 0) \
    X(miopenInt64, 9) \
    X(miopenVerticalFusion, 0) \
    X(miopenProblemDirectionForward, 0) \
    X(miopenProblemDirectionBackward, 1) \
    X(miopenTensorMhaQ, 5) \
    X(miopenTensorMhaK, 4) \
    X(miopenTensorMhaV, 6) \
    X(miopenTensorMhaDescaleK, 7) \
    X(miopenTensorMhaDescaleQ, 8) \
    X(miopenTensorMhaDescaleV, 9) \
    X(miopenTensorMhaDescaleS, 10) \
    X(miopenTensorMhaScaleS, 11) \
    X(miopenTensorMhaScaleO, 12) \
    X(miopenTensorMhaDropoutProbability, 13) \
    X(miopenTensorMhaDropoutSeed, 14) \
    X(miopenTensorMhaDropoutOffset, 15) \
    X(miopenTensorMhaO, 16) \
    X(miopenTensorMhaAmaxO, 17) \
    X(miopenTensorMhaAmaxS, 18) \
    X(miopenTensorMhaM, 19) \
    X(miopenTensorMhaZInv, 20) \
    X(miopenTensorMhaDO, 21) \
    X(miopenTensorMhaDescaleO, 22) \
    X(miopenTensorMhaDescaleDO, 23) \
    X(miopenTensorMhaDescaleDS, 24) \
    X(miopenTensorMhaScaleDS, 25) \
    X(miopenTensorMhaScaleDQ, 26) \
    X(miopenTensorMhaScaleDK, 27) \
    X(miopenTensorMhaScaleDV, 28) \
    X(miopenTensorMhaDQ, 29) \
    X(miopenTensorMhaDK, 30) \
    X(miopenTensorMhaDV, 31) \
    X(miopenTensorMhaAmaxDQ, 32) \
    X(miopenTensorMhaAmaxDK, 33) \
    X(miopenTensorMhaAmaxDV, 34) \
    X(miopenTensorMhaAmaxDS, 35) \
    X(miopenTensorMhaBias, 36) \
    X(MIOPEN_WEIGHT_BIAS, 1) \
    X(MIOPEN_WEIGHT_BIAS_T5, 5)

#ifndef WK_VENDOR_HEADERS
enum {
#define X(name, value) name = value,
    WK_MIOPEN_CONSTANTS(X)
#undef X
};
#endif

#endif
