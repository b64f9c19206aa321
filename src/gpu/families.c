/* families.c: every family's kernels in one list; the libraries both makers' sides can use. */
#include <strings.h>
#include "blas.h"
#include "cuda/cudnn_plan.h"
#include "families.h"
#include "library.h"
#include "driver.h"
#include "rocm/dnn.h"
#include "rtc.h"

const wk_impl *const wk_gpu_families[] = {
#define X(name) wk_gpu_impls_##name,
    WK_FAMILIES(X)
#undef X
        NULL};

static wk_library *const libraries[] = {&wk_lib_hip,    &wk_lib_hiprtc, &wk_lib_rocblas,
                                        &wk_lib_miopen, &wk_lib_cuda,   &wk_lib_nvrtc,
                                        &wk_lib_cublas, &wk_lib_cudnn,  NULL};

wk_library *const *wk_libraries(void)
{
    const char *why;
    wk_rocm_driver(&why);
    wk_cuda_driver(&why);
    wk_rtc_load(&wk_rocm_rtc);
    wk_rtc_load(&wk_cuda_rtc);
    wk_rocblas.load();
    wk_miopen_load();
    wk_cublas.load();
    wk_cudnn_load();
    return libraries;
}

/* Implementations have the names of their libraries, without lib and in small letters. */
const char *wk_library_version(const char *impl)
{
    for (wk_library *const *l = libraries; *l; l++) {
        if (strcasecmp((*l)->name + 3, impl) == 0)
            return (*l)->version;
    }
    return "";
}

int wk_gpu_variants(wk_call *c, size_t workspace, uint64_t *list, int room)
{
    if (strcmp(c->impl->name, "miopen") == 0)
        return wk_miopen_variants(c, workspace, list, room);
    return strcmp(c->impl->name, "cudnn") == 0 ? wk_cudnn_variants(c, workspace, list, room) : 0;
}
