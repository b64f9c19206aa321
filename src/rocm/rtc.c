/* rtc.c: hipRTC, which compiles kernels for AMD. */
#include "gpu/rtc.h"
#include "rocm.h"

static const char *const sonames[] = {"libhiprtc.so.7", "libhiprtc.so.6", "libhiprtc.so.5", "libhiprtc.so",
                                      NULL};
static const char *const folders[] = {"/opt/rocm/lib", "/opt/rocm/lib64", NULL};
wk_library wk_lib_hiprtc = {.name = "libhiprtc",
                            .sonames = sonames,
                            .variable = "WICK_HIPRTC_LIBRARY",
                            .package = "hip-runtime-amd (AMD's), libhiprtc6 (Debian, Ubuntu)",
                            .beside = &wk_lib_hip,
                            .folders = folders};

#define X(result, name, arguments) #name,
wk_rtc wk_rocm_rtc = {.title = "hipRTC", .library = &wk_lib_hiprtc, .names = {WK_HIPRTC_CALLS(X)}};
#undef X
