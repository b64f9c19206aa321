/* rtc.c: NVRTC, which compiles kernels for NVIDIA. */
#include "cuda_libs.h"
#include "gpu/rtc.h"

static const char *const sonames[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", "libnvrtc.so",
                                      NULL};
static const char *const folders[] = {"/usr/local/cuda/lib64", NULL};
wk_library wk_lib_nvrtc = {.name = "libnvrtc",
                           .sonames = sonames,
                           .variable = "WICK_NVRTC_LIBRARY",
                           .package =
                               "cuda-nvrtc-13-0 (NVIDIA's), nvidia-cuda-nvrtc (Python), libnvrtc12 (Debian)",
                           .folders = folders};

#define X(result, name, arguments) #name,
wk_rtc wk_cuda_rtc = {.title = "NVRTC", .library = &wk_lib_nvrtc, .names = {WK_NVRTC_CALLS(X)}};
#undef X
