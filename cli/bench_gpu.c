/* bench_gpu.c: how `wick bench` measures on GPUs: by the device's own clock, many calls queued at once. */
#include <stdlib.h>
#include "bench_gpu.h"
#include "gpu/map.h"
#include "gpu/runtime.h"
#include "wick/ops.h"
#include "wick/stream.h"

enum { MOST = 200, LAUNCHES = 1000 };

int bench_compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The work of one call between two events; the output is given back at once, for the next call to use. */
static bool queue_one(bench_run run, void *ctx, wk_event *from, wk_event *to)
{
    wk_scope_begin();
    bool good = wk_event_record(from) == WK_OK && run(ctx) == WK_OK && wk_event_record(to) == WK_OK;
    wk_scope_end();
    return good;
}

double bench_events(wk_device *device, double seconds, bench_run run, void *ctx)
{
    wk_event *from[MOST] = {0}, *to[MOST] = {0};
    double times[MOST], result = -1;
    bool good = true;
    for (int i = 0; i < MOST && good; i++)
        good = (from[i] = wk_event_new(device)) && (to[i] = wk_event_new(device));
    for (int i = 0; i < 3 && good; i++) /* kernels compiled, memory allocated */
        good = queue_one(run, ctx, from[0], to[0]);
    good =
        good && wk_sync(device) == WK_OK && queue_one(run, ctx, from[0], to[0]) && wk_sync(device) == WK_OK;
    double one = good ? wk_event_ms(from[0], to[0]) : 1, target = seconds * 1e3 / (one > 1e-3 ? one : 1e-3);
    int n = target < 7 ? 7 : target > MOST ? MOST : (int)target;
    for (int i = 0; i < n && good; i++)
        good = queue_one(run, ctx, from[i], to[i]);
    if (good && wk_sync(device) == WK_OK) {
        for (int i = 0; i < n; i++)
            times[i] = wk_event_ms(from[i], to[i]) * 1e3;
        qsort(times, (size_t)n, sizeof *times, bench_compare);
        result = times[n / 2];
    }
    for (int i = 0; i < MOST; i++) {
        wk_event_drop(from[i]);
        wk_event_drop(to[i]);
    }
    return result;
}

double bench_chain(wk_device *device, double (*now_us)(void), bench_run run, void *ctx)
{
    double best = -1;
    for (int round = 0; round < 5; round++) {
        double start = now_us();
        wk_scope_begin();
        bool good = true;
        for (int i = 0; i < LAUNCHES && good; i++)
            good = run(ctx) == WK_OK;
        good = good && wk_sync(device) == WK_OK;
        wk_scope_end();
        double us = (now_us() - start) / LAUNCHES;
        if (!good)
            return -1;
        best = best < 0 || us < best ? us : best;
    }
    return best;
}

double bench_graph(wk_device *device, double (*now_us)(void), bench_run run, void *ctx)
{
    double best = -1;
    wk_scope_begin();
    bool good = run(ctx) == WK_OK && wk_sync(device) == WK_OK && wk_graph_begin(device) == WK_OK;
    for (int i = 0; i < LAUNCHES && good; i++)
        good = run(ctx) == WK_OK;
    wk_graph *graph = good ? wk_graph_end(device) : NULL;
    for (int round = 0; round < 5 && graph; round++) {
        double start = now_us();
        if (wk_graph_launch(graph) != WK_OK || wk_sync(device) != WK_OK)
            break;
        double us = (now_us() - start) / LAUNCHES;
        best = best < 0 || us < best ? us : best;
    }
    wk_graph_drop(graph);
    wk_scope_end();
    return best;
}

/* x + 1 on 1024 elements, the kernel of the eager case, by the driver's call alone. */
typedef struct {
    wk_gpu *gpu;
    void *function;
    map_args args;
} bare;

static wk_status bare_call(void *ctx)
{
    bare *b = ctx;
    void *list[] = {&b->args};
    const unsigned blocks[3] = {1, 1, 1};
    int code = b->gpu->driver->launch(b->function, blocks, 256, 0, wk_gpu_stream_handle(b->gpu), list);
    return code ? wk_gpu_fail(b->gpu, code, "bare launch") : WK_OK;
}

double bench_bare(wk_device *device, double (*now_us)(void), bool graph)
{
    static const wk_kernel kernel = WK_MAP_KERNEL("unary");
    const wk_instance instance = {
        .formula = "f_affine", .t = {WK_F32, WK_F32, WK_F32, WK_F32}, .i = {1, 4, 0}};
    bare b = {.gpu = wk_gpu_of(device)};
    int64_t n = 1024;
    wk_tensor *x = wk_empty(device, WK_F32, 1, &n), *y = wk_empty(device, WK_F32, 1, &n);
    if (!x || !y || wk_gpu_function(b.gpu, &kernel, &instance, &b.function) != WK_OK)
        return -1;
    b.args = (map_args){.out = wk_ptr(y), .in = {wk_ptr(x)}, .count = n, .f = {1, 1}};
    return (graph ? bench_graph : bench_chain)(device, now_us, bare_call, &b);
}
