/* error.h: errors of the models. Models stand on the public API and on this: a call that fails returns NULL, false or
 * a status, and the first reason stays, for the calling thread, until it is cleared. Nothing here prints or exits. */
#ifndef WM_ERROR_H
#define WM_ERROR_H

#include <wick/wick.h>

/* Records a line "FILE: what was expected, what came"; returns the status. Where the library has an error pending that
 * error is the reason, and its text is put behind the line. A reason that is there already stays. */
wk_status wm_fail(wk_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Whether something went wrong, here or in the library. */
wk_status wm_error_status(void);
/* Its line; "" when nothing did. Valid until the next call on this thread. */
const char *wm_error(void);
/* Forgets it, the library's too. */
void wm_error_clear(void);

#endif
