/* bench_gpu.c: how `wick bench` measures on GPUs: by the device's own clock, many calls queued at once. */
#include <math.h>
#include <stdlib.h>
#include "bench_gpu.h"
#include "gpu/map.h"
#include "gpu/runtime.h"
#include "wick/ops.h"
#include "wick/stream.h"

enum { MOST = 200, LAUNCHES = 1000, ROUNDS = 9 };

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

/* Readies the call. The tensors belong to the scope. */
static bool make_bare(wk_device *device, bare *b)
{
    static const wk_kernel kernel = WK_MAP_KERNEL("unary");
    const wk_instance instance = {
        .formula = "f_affine", .t = {WK_F32, WK_F32, WK_F32, WK_F32}, .i = {1, 4, 0}};
    int64_t n = 1024;
    wk_tensor *x = wk_empty(device, WK_F32, 1, &n), *y = wk_empty(device, WK_F32, 1, &n);
    *b = (bare){.gpu = wk_gpu_of(device)};
    if (!x || !y || wk_gpu_function(b->gpu, &kernel, &instance, &b->function) != WK_OK)
        return false;
    b->args = (map_args){.out = wk_ptr(y), .in = {wk_ptr(x)}, .count = n, .f = {1, 1}};
    return true;
}

/* A thousand calls, or a graph of them. */
typedef struct {
    bench_run run; /* NULL: none */
    void *ctx;
    wk_graph *graph;
} chain;

static bool call_all(const chain *c)
{
    bool good = true;
    for (int i = 0; i < LAUNCHES && good; i++)
        good = c->run(c->ctx) == WK_OK;
    return good;
}

static bool record(wk_device *device, chain *c)
{
    bool good = c->run(c->ctx) == WK_OK && wk_sync(device) == WK_OK && wk_graph_begin(device) == WK_OK;
    c->graph = good && call_all(c) ? wk_graph_end(device) : NULL;
    return c->graph != NULL;
}

/* Microseconds a call; -1 when it failed. */
static double run_round(wk_device *device, double (*now_us)(void), const chain *c)
{
    double start = now_us();
    wk_scope_begin();
    bool good = c->graph ? wk_graph_launch(c->graph) == WK_OK : call_all(c);
    good = good && wk_sync(device) == WK_OK;
    wk_scope_end();
    return good ? (now_us() - start) / LAUNCHES : -1;
}

bool bench_tiny(wk_device *device, double (*now_us)(void), bool graph, bench_run run, void *ctx, double us[2])
{
    bare b;
    wk_scope_begin();
    bool good = make_bare(device, &b);
    chain chains[2] = {{.run = run, .ctx = ctx}, {.run = bare_call, .ctx = &b}};
    for (int i = 0; i < 2 && good && graph; i++)
        good = !chains[i].run || record(device, &chains[i]);
    us[0] = us[1] = INFINITY;
    for (int i = 0; i < 2 * ROUNDS && good; i++) {
        double now = chains[i % 2].run ? run_round(device, now_us, &chains[i % 2]) : 0;
        good = now >= 0;
        us[i % 2] = now < us[i % 2] ? now : us[i % 2];
    }
    wk_graph_drop(chains[0].graph);
    wk_graph_drop(chains[1].graph);
    wk_scope_end();
    return good;
}
