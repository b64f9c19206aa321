/* rocm.h: ROCm's libraries, loaded. */
#ifndef WK_ROCM_ROCM_H
#define WK_ROCM_ROCM_H

#include "gpu/library.h"
#include "hip.h"

extern wk_library wk_lib_hip, wk_lib_hiprtc, wk_lib_rocblas, wk_lib_miopen;

/* The functions, by their own names: wk_hip.hipMalloc(...). Valid once the driver was loaded. */
#define X(result, name, arguments) result(*name) arguments;
typedef struct {
    WK_HIP_CALLS(X)
} wk_hip_calls;
#undef X
extern wk_hip_calls wk_hip;

#endif
