/* error.h: the calling thread's pending error. */
#ifndef WK_CORE_ERROR_H
#define WK_CORE_ERROR_H

#include <stdbool.h>
#include "wick/core.h"

/* Records status and message unless an error is pending already (the first one is the cause), and returns
 * status. */
wk_status wk_fail(wk_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Puts "op: " in front of the pending message unless it begins so. */
void wk_error_context(const char *op);

/* True while an error is pending. */
bool wk_pending(void);

/* Hands a line to the log callback, if there is one. */
void wk_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Leaves the function with the status of a step that failed. */
#define WK_TRY(step) \
    do { \
        wk_status try_status_ = (step); \
        if (try_status_ != WK_OK) \
            return try_status_; \
    } while (0)

#endif
