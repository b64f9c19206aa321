/* error.c: errors of the models: the first line of a thread stays. */
#include "error.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local struct {
    wk_status status;
    char line[1024];
} pending;

wk_status wm_fail(wk_status status, const char *format, ...)
{
    if (pending.status != WK_OK)
        return pending.status;
    va_list args;
    va_start(args, format);
    vsnprintf(pending.line, sizeof pending.line, format, args);
    va_end(args);
    pending.status = status;
    if (wk_error_status() != WK_OK) {
        size_t length = strlen(pending.line);
        snprintf(pending.line + length, sizeof pending.line - length, ": %s", wk_error());
        pending.status = wk_error_status();
    }
    return pending.status;
}

wk_status wm_error_status(void) { return pending.status != WK_OK ? pending.status : wk_error_status(); }

const char *wm_error(void) { return pending.status != WK_OK ? pending.line : wk_error(); }

void wm_error_clear(void)
{
    pending.status = WK_OK;
    pending.line[0] = 0;
    wk_error_clear();
}
