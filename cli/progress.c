/* progress.c: a progress bar on standard error. */
#include <stdbool.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>
#include "progress.h"

static bool shown;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

void progress_show(int done, int total, const char *what)
{
    static double last;
    enum { WIDTH = 30 };
    if (!isatty(STDERR_FILENO) || total <= 0 || (done < total && now() - last < 0.1))
        return;
    last = now();
    char bar[WIDTH + 1];
    for (int i = 0; i < WIDTH; i++)
        bar[i] = i < done * WIDTH / total ? '#' : ' ';
    bar[WIDTH] = 0;
    fprintf(stderr, "\r[%s] %d/%d %-32.32s", bar, done, total, what);
    fflush(stderr);
    shown = true;
}

void progress_clear(void)
{
    if (shown)
        fprintf(stderr, "\r%*s\r", 80, "");
    shown = false;
}
