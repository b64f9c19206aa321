/* ahead.h: brings a model's files into memory ahead of who loads them, or computes with them in place. */
#ifndef WM_AHEAD_H
#define WM_AHEAD_H

typedef struct wm_ahead wm_ahead;

/* Begins with the files of a folder or with the file, in the order of their names, while the caller starts a device. Says
 * nothing of what is missing, since loading will. NULL when memory is short. */
wm_ahead *wm_ahead_start(const char *path);
/* Ends it, finished or not. NULL is fine. */
void wm_ahead_stop(wm_ahead *a);

#endif
