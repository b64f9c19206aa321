/* graph.c: sequences of ops, recorded and replayed.
 *
 * A recording runs on a stream of its own. Since memory that is freed belongs to the pool of the stream that used it
 * last, everything the recorded ops use or free stays with that stream, and so with the graph: a later op elsewhere
 * cannot be given memory that a replay writes. */
#include "core/memory.h"
#include "runtime.h"

/* Memory from outside that the ops use, and what used it before they were recorded: the first launch waits for that. */
typedef struct {
    wk_storage *storage;
    wk_stream *before; /* NULL once that is done */
} outside;

struct wk_graph {
    wk_gpu *gpu;
    wk_stream *stream; /* recorded on; owns the memory between the ops */
    void *graph, *exec;
    outside *kept;
    int n, room;
};

wk_status wk_graph_use(wk_graph *graph, wk_storage *s)
{
    if (graph->n == graph->room) {
        int room = graph->room ? graph->room * 2 : 16;
        outside *kept = wk_realloc(graph->kept, (size_t)room * sizeof *kept);
        if (!kept)
            return wk_fail(WK_ERR_MEMORY, "graph: out of memory");
        graph->kept = kept;
        graph->room = room;
    }
    atomic_fetch_add(&s->refs, 1);
    graph->kept[graph->n++] = (outside){s, atomic_exchange(&s->stream, graph->stream)};
    return WK_OK;
}

static wk_status check_device(const wk_device *device, const char *call)
{
    if (!device)
        return wk_fail(WK_ERR_ARGUMENT, "%s: device: expected a device, got NULL", call);
    if (device->kind == WK_KIND_CPU)
        return wk_fail(WK_ERR_UNSUPPORTED, "%s: device: expected a GPU, got %s", call, device->name);
    return WK_OK;
}

wk_status wk_graph_begin(wk_device *device)
{
    if (wk_pending())
        return wk_error_status();
    WK_TRY(check_device(device, "graph_begin"));
    wk_gpu *g = wk_gpu_of(device);
    if (!wk_arena_keeps(g)) /* a replay would use memory that is gone */
        return wk_fail(WK_ERR_UNSUPPORTED,
                       "graph_begin: device: nothing is recorded with WICK_EXACT_ALLOC=1");
    wk_stream *before = wk_gpu_stream(g);
    if (before->graph)
        return wk_fail(WK_ERR_ARGUMENT, "graph_begin: a graph is being recorded on this thread already");
    wk_graph *graph = wk_alloc(sizeof *graph);
    if (!graph)
        return wk_fail(WK_ERR_MEMORY, "graph_begin: out of memory");
    *graph = (wk_graph){.gpu = g, .stream = wk_stream_make(g, NULL)};
    wk_status status = graph->stream ? wk_stream_push(graph->stream) : wk_error_status();
    if (status == WK_OK) {
        int code = g->driver->capture_begin(graph->stream->handle);
        if (code == 0) {
            graph->stream->graph = graph;
            return WK_OK;
        }
        status = wk_gpu_fail(g, code, "beginning to record a graph");
        wk_stream_pop(graph->stream);
    }
    wk_stream_drop(graph->stream);
    wk_free(graph);
    return status;
}

wk_graph *wk_graph_end(wk_device *device)
{
    bool failed_before = wk_pending();
    if (check_device(device, "graph_end") != WK_OK)
        return NULL;
    wk_gpu *g = wk_gpu_of(device);
    wk_stream *s = wk_gpu_stream(g);
    wk_graph *graph = s->graph;
    if (!graph) {
        wk_fail(WK_ERR_ARGUMENT, "graph_end: no graph is being recorded on this thread");
        return NULL;
    }
    int code = g->driver->enter(g->context);
    if (code == 0)
        code = g->driver->capture_end(s->handle, &graph->graph);
    s->graph = NULL;
    wk_stream_pop(s);
    if (code == 0 && !failed_before)
        code = g->driver->graph_build(&graph->exec, graph->graph);
    if (code)
        wk_gpu_fail(g, code, "recording a graph");
    if (code == 0 && !failed_before)
        return graph;
    wk_graph_drop(graph);
    return NULL;
}

/* Inputs may have been written on another stream, before the recording or since the last replay. */
static wk_status order_inputs(wk_graph *graph, wk_stream *now)
{
    for (int i = 0; i < graph->n; i++) {
        outside *o = &graph->kept[i];
        wk_stream *last = atomic_exchange(&o->storage->stream, graph->stream);
        if (last && last != now)
            WK_TRY(wk_stream_follow(now, last));
        if (o->before && o->before != now)
            WK_TRY(wk_stream_follow(now, o->before));
        o->before = NULL;
    }
    return wk_stream_follow(now, graph->stream);
}

wk_status wk_graph_launch(wk_graph *graph)
{
    if (wk_pending())
        return wk_error_status();
    if (!graph)
        return wk_fail(WK_ERR_ARGUMENT, "graph_launch: graph: got NULL");
    wk_gpu *g = graph->gpu;
    wk_stream *now = wk_gpu_stream(g);
    if (now->graph)
        return wk_fail(WK_ERR_ARGUMENT, "graph_launch: a graph is being recorded: end it first");
    WK_TRY(order_inputs(graph, now));
    int code = g->driver->enter(g->context);
    if (code == 0)
        code = g->driver->graph_launch(graph->exec, now->handle);
    graph->stream->ran_on = now; /* who uses a result waits for that stream */
    return code ? wk_gpu_fail(g, code, "launching a graph") : WK_OK;
}

void wk_graph_drop(wk_graph *graph)
{
    if (!graph)
        return;
    wk_gpu *g = graph->gpu;
    g->driver->enter(g->context);
    if (graph->stream->ran_on)
        g->driver->stream_sync(graph->stream->ran_on->handle);
    g->driver->graph_free(graph->graph, graph->exec);
    graph->stream->ran_on = NULL;
    for (int i = 0; i < graph->n; i++)
        wk_storage_drop(graph->kept[i].storage);
    wk_stream_drop(graph->stream);
    wk_free(graph->kept);
    wk_free(graph);
}
