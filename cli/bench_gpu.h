/* bench_gpu.h: measuring on GPUs. */
#ifndef WICK_CLI_BENCH_GPU_H
#define WICK_CLI_BENCH_GPU_H

#include "core/op.h"

typedef wk_status (*bench_run)(void *ctx);

/* Two doubles, for qsort. */
int bench_compare(const void *a, const void *b);
/* The median time of a call by the device's clock, in microseconds; -1 with an error pending when it cannot run. */
double bench_events(wk_device *device, double seconds, bench_run run, void *ctx);
/* Host and device time of one of a thousand dependent calls, the best of some rounds, and of a bare launch of the eager case's
 * kernel, in rounds that take turns with them: us[0] and us[1]; or of nodes of graphs of both. No run: the bare one alone.
 * False with an error pending when one cannot run. */
bool bench_tiny(wk_device *device, double (*now_us)(void), bool graph, bench_run run, void *ctx,
                double us[2]);

#endif
