/* cuda_libs.h: NVIDIA's libraries, loaded. */
#ifndef WK_CUDA_LIBS_H
#define WK_CUDA_LIBS_H

#include "cuda.h"
#include "gpu/library.h"

extern wk_library wk_lib_cuda, wk_lib_nvrtc, wk_lib_cublas, wk_lib_cudnn;

/* The functions, by their own names: wk_cu.cuMemAlloc_v2(...). Valid once the driver was loaded. */
#define X(result, name, arguments) result(*name) arguments;
typedef struct {
    WK_CUDA_CALLS(X)
    WK_CUDA_NEWER_CALLS(X)
} wk_cuda_calls;
#undef X
extern wk_cuda_calls wk_cu;

#endif
