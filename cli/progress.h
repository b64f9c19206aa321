/* progress.h: a progress bar on standard error, when that is a terminal. */
#ifndef WICK_CLI_PROGRESS_H
#define WICK_CLI_PROGRESS_H

/* Draws "[####    ] 12/40 conv2d", at most ten times a second. Nothing when standard error is no terminal. */
void progress_show(int done, int total, const char *what);
/* Takes the bar away, so that other output starts on a clean line. */
void progress_clear(void);

#endif
