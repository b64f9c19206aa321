/* bench_gpu.h: measuring on GPUs. */
#ifndef WICK_CLI_BENCH_GPU_H
#define WICK_CLI_BENCH_GPU_H

#include "core/op.h"

typedef wk_status (*bench_run)(void *ctx);

/* Two doubles, for qsort. */
int bench_compare(const void *a, const void *b);
/* The median time of a call by the device's clock, in microseconds; -1 with an error pending when it cannot run. */
double bench_events(wk_device *device, double seconds, bench_run run, void *ctx);
/* Host and device time of one of a thousand dependent calls, the best of five rounds. */
double bench_chain(wk_device *device, double (*now_us)(void), bench_run run, void *ctx);
/* The same replayed as one graph. */
double bench_graph(wk_device *device, double (*now_us)(void), bench_run run, void *ctx);
/* The one or the other for bare launches of the kernel of the eager case. The tensors belong to the scope. */
double bench_bare(wk_device *device, double (*now_us)(void), bool graph);

#endif
