/* families.c: every family's kernels in one list; the libraries both makers' sides can use. */
#include "cuda/cuda_libs.h"
#include "families.h"
#include "library.h"
#include "rocm/rocm.h"

const wk_impl *const wk_gpu_families[] = {
#define X(name) wk_gpu_impls_##name,
    WK_GPU_FAMILIES(X)
#undef X
        NULL};

static wk_library *const libraries[] = {
    &wk_lib_hip, &wk_lib_hiprtc, &wk_lib_rocblas, &wk_lib_cuda, &wk_lib_nvrtc, &wk_lib_cublas, NULL};
wk_library *const *wk_libraries(void) { return libraries; }
