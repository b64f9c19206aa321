/* error.c: the calling thread's pending error, and the log. */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "error.h"

static _Thread_local struct {
    wk_status status;
    char message[1024];
} pending;

wk_status wk_fail(wk_status status, const char *format, ...)
{
    if (pending.status != WK_OK)
        return status;
    va_list args;
    va_start(args, format);
    vsnprintf(pending.message, sizeof pending.message, format, args);
    va_end(args);
    pending.status = status;
    return status;
}

void wk_error_context(const char *op)
{
    size_t n = strlen(op), length = strlen(pending.message);
    bool there = strncmp(pending.message, op, n) == 0 && pending.message[n] == ':';
    if (there || n + 2 + length >= sizeof pending.message)
        return;
    memmove(pending.message + n + 2, pending.message, length + 1);
    memcpy(pending.message, op, n);
    memcpy(pending.message + n, ": ", 2);
}

bool wk_pending(void) { return pending.status != WK_OK; }

wk_status wk_error_status(void) { return pending.status; }

const char *wk_error(void) { return pending.message; }

void wk_error_clear(void)
{
    pending.status = WK_OK;
    pending.message[0] = 0;
}

const char *wk_status_name(wk_status status)
{
    static const char *const names[] = {"ok",     "argument", "shape",       "dtype", "param",  "index",
                                        "device", "memory",   "unsupported", "io",    "format", "internal"};
    return (unsigned)status < sizeof names / sizeof *names ? names[status] : "?";
}

static struct {
    pthread_mutex_t lock;
    wk_log_fn fn;
    void *ctx;
} logger = {.lock = PTHREAD_MUTEX_INITIALIZER};

void wk_set_log(wk_log_fn fn, void *ctx)
{
    pthread_mutex_lock(&logger.lock);
    logger.fn = fn;
    logger.ctx = ctx;
    pthread_mutex_unlock(&logger.lock);
}

void wk_say(const char *format, ...)
{
    char line[512];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    pthread_mutex_lock(&logger.lock);
    if (logger.fn)
        logger.fn(logger.ctx, line);
    pthread_mutex_unlock(&logger.lock);
}
