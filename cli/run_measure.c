/* run_measure.c: how long a model takes for a batch. */
#include "run_measure.h"
#include <stdlib.h>
#include <time.h>

enum { WARM = 3, STRETCHES = 5 };

bool run_seconds(const char *command, const char *text, double *seconds)
{
    char *end;
    *seconds = strtod(text, &end);
    if (end != text && !*end && *seconds >= 0 && *seconds <= 3600)
        return true;
    args_usage(command, "--seconds: expected a number from 0 to 3600, got '%s'", text);
    return false;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Milliseconds a pass, of n passes with one wait at their end; negative when one failed. */
static double stretch(const run_options *o, int n, run_pass pass, void *ctx)
{
    double start = now();
    for (int i = 0; i < n; i++)
        if (run_stopped() || !pass(ctx))
            return -1;
    return wk_sync(o->device) == WK_OK ? (now() - start) / n * 1e3 : -1;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int run_measure(const run_options *o, const char *what, int64_t batch, double seconds, run_pass pass,
                void *ctx)
{
    double ms[STRETCHES], once = stretch(o, WARM, pass, ctx);
    if (once >= 0)
        once = stretch(o, 1, pass, ctx);
    double fit = once > 0 ? seconds * 1e3 / STRETCHES / once : 1;
    for (int i = 0; i < STRETCHES; i++) {
        ms[i] = once < 0 ? -1 : stretch(o, fit > 1 ? (int)fit : 1, pass, ctx);
        if (ms[i] < 0)
            return run_error();
    }
    qsort(ms, STRETCHES, sizeof *ms, by_size);
    double median = ms[STRETCHES / 2];
    wk_text t = {0};
    if (o->json)
        wk_text_add(&t,
                    "{\"model\":\"%s\",\"device\":\"%s\",\"dtype\":\"%s\",\"batch\":%lld,\"ms\":%.4f,"
                    "\"ms_min\":%.4f,\"per_second\":%.1f}\n",
                    what, wk_device_name(o->device), wk_dtype_name(o->dtype), (long long)batch, median, ms[0],
                    (double)batch * 1e3 / median);
    else
        wk_text_add(&t, "%s, %s, %s, batch %lld: %.3f ms a batch, %.1f a second\n", what,
                    wk_device_name(o->device), wk_dtype_name(o->dtype), (long long)batch, median,
                    (double)batch * 1e3 / median);
    return args_print(&t);
}
