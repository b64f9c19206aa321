/* rtc.c: compiling kernels at run time, with hipRTC or NVRTC. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/error.h"
#include "core/memory.h"
#include "rtc.h"

static void load(wk_rtc *rtc)
{
    wk_symbol symbols[WK_RTC_CALLS];
    int major = 0, minor = 0;
    for (int i = 0; i < WK_RTC_CALLS; i++)
        symbols[i] = (wk_symbol){rtc->names[i], &rtc->calls.all[i]};
    if (!wk_library_load(rtc->library) || !wk_library_symbols(rtc->library, symbols, WK_RTC_CALLS) ||
        rtc->calls.f.version(&major, &minor) != 0)
        return;
    /* hipRTC has said 9.0 in every ROCm: its file name tells versions apart. */
    char *real = realpath(rtc->library->path, NULL), *slash = real ? strrchr(real, '/') : NULL;
    snprintf(rtc->library->version, sizeof rtc->library->version, "%d.%d", major, minor);
    snprintf(rtc->version, sizeof rtc->version, "%s %s %.40s", rtc->title, rtc->library->version,
             slash ? slash + 1 : "");
    free(real);
    rtc->usable = true;
}

bool wk_rtc_load(wk_rtc *rtc)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    if (!rtc->library->tried)
        load(rtc);
    pthread_mutex_unlock(&lock);
    return rtc->usable;
}

/* The first lines of the compiler's log are the message; all of it goes to the log callback. */
static wk_status fail(const wk_rtc *rtc, const wk_rtc_job *job, int code, void *program)
{
    size_t bytes = 0;
    char *log = NULL;
    if (program && rtc->calls.f.log_size(program, &bytes) == 0 && bytes > 1 && (log = wk_alloc(bytes + 1))) {
        log[0] = log[bytes] = 0;
        rtc->calls.f.log(program, log);
        wk_say("%s: compiling %s: %s", rtc->title, job->name, log);
    }
    wk_status status = wk_fail(WK_ERR_INTERNAL, "%s: compiling %s: %s: %.300s", rtc->title, job->name,
                               rtc->calls.f.error(code), log ? log : "");
    wk_free(log);
    return status;
}

static wk_status take_code(const wk_rtc *rtc, const wk_rtc_job *job, void *program, void **code,
                           size_t *bytes)
{
    int result = rtc->calls.f.code_size(program, bytes);
    if (result)
        return fail(rtc, job, result, program);
    if (!(*code = wk_alloc(*bytes ? *bytes : 1)))
        return wk_fail(WK_ERR_MEMORY, "out of memory: %zu bytes for the kernel %s", *bytes, job->name);
    result = rtc->calls.f.code(program, *code);
    if (result == 0)
        return WK_OK;
    wk_free(*code);
    return fail(rtc, job, result, program);
}

wk_status wk_rtc_compile(wk_rtc *rtc, const wk_rtc_job *job, void **code, size_t *bytes)
{
    void *program = NULL;
    int result = rtc->calls.f.create(&program, job->source, job->name, job->n_headers, job->headers,
                                     job->header_names);
    if (result == 0)
        result = rtc->calls.f.compile(program, job->n_options, job->options);
    wk_status status = result ? fail(rtc, job, result, program) : take_code(rtc, job, program, code, bytes);
    if (program)
        rtc->calls.f.destroy(&program);
    return status;
}
