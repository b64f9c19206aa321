/* rtc.h: compiling kernels at run time. hipRTC and NVRTC have the same functions under two names; neither needs a
 * GPU. */
#ifndef WK_GPU_RTC_H
#define WK_GPU_RTC_H

#include <stdbool.h>
#include "library.h"
#include "wick/core.h"

typedef struct {
    const char *name; /* for messages */
    const char *source;
    const char *const *headers, *const *header_names;
    int n_headers;
    const char *const *options;
    int n_options;
} wk_rtc_job;

/* Both makers' functions, in the order of WK_HIPRTC_CALLS and WK_NVRTC_CALLS. */
enum { WK_RTC_CALLS = 9 };
typedef union {
    void *all[WK_RTC_CALLS];
    struct {
        int (*version)(int *major, int *minor);
        int (*create)(void **program, const char *source, const char *name, int headers,
                      const char *const *texts, const char *const *names);
        int (*compile)(void *program, int options, const char *const *option);
        int (*code_size)(void *program, size_t *bytes);
        int (*code)(void *program, char *code);
        int (*log_size)(void *program, size_t *bytes);
        int (*log)(void *program, char *text);
        int (*destroy)(void **program);
        const char *(*error)(int code);
    } f;
} wk_rtc_calls;

typedef struct {
    const char *title; /* "hipRTC" */
    wk_library *library;
    const char *names[WK_RTC_CALLS];
    wk_rtc_calls calls;
    bool usable;
    char version[96]; /* "hipRTC 9.0 libhiprtc.so.6.4.43484": part of the key of what is compiled */
} wk_rtc;

extern wk_rtc wk_rocm_rtc, wk_cuda_rtc;

/* Loads it, once; false when it is not to be had: library->trouble says why. */
bool wk_rtc_load(wk_rtc *rtc);
/* The code object, from wk_alloc. */
wk_status wk_rtc_compile(wk_rtc *rtc, const wk_rtc_job *job, void **code, size_t *bytes);

#endif
