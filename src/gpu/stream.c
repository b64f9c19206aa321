/* stream.c: queues of work, and the order between them. */
#include <math.h>
#include <time.h>
#include "blas.h"
#include "core/memory.h"
#include "runtime.h"

enum { DEPTH = 16 };

/* The streams this thread has entered, innermost last. */
static _Thread_local struct {
    wk_stream *entered[DEPTH];
    int n;
} thread;

wk_stream *wk_gpu_stream(const wk_gpu *g)
{
    for (int i = thread.n - 1; i >= 0; i--) {
        if (thread.entered[i]->gpu == g)
            return thread.entered[i];
    }
    return g->stream;
}

void *wk_gpu_stream_handle(const wk_gpu *g) { return wk_gpu_stream(g)->handle; }

int wk_gpu_stream_count(wk_gpu *g)
{
    int n = 0;
    pthread_mutex_lock(&g->lock);
    for (const wk_stream *s = g->streams; s; s = s->next)
        n += !s->idle;
    pthread_mutex_unlock(&g->lock);
    return n;
}

/* A record that no stream uses, or a new one. Records stay: storage may point to one long after. */
static wk_stream *take_record(wk_gpu *g)
{
    for (wk_stream *s = g->streams; s; s = s->next) {
        if (s->idle) {
            s->idle = false;
            return s;
        }
    }
    wk_stream *s = wk_alloc(sizeof *s);
    if (!s)
        return NULL;
    *s = (wk_stream){.gpu = g, .next = g->streams};
    pthread_mutex_init(&s->blas_lock, NULL);
    pthread_mutex_init(&s->dnn_lock, NULL);
    g->streams = s;
    return s;
}

static int make_counters(wk_stream *s)
{
    const wk_driver *driver = s->gpu->driver;
    const size_t bytes = WK_GPU_COUNTERS * sizeof(u32);
    int code = s->counters ? 0 : driver->alloc(&s->counters, bytes);
    return code ? code : driver->fill(s->counters, 0, bytes, s->handle);
}

u32 *wk_gpu_counters(const wk_call *c) { return wk_gpu_stream(wk_gpu_of(c->device))->counters; }

wk_stream *wk_stream_make(wk_gpu *g, void *handle)
{
    int code = g->driver->enter(g->context);
    pthread_mutex_lock(&g->lock);
    wk_stream *s = take_record(g);
    pthread_mutex_unlock(&g->lock);
    if (!s) {
        wk_fail(WK_ERR_MEMORY, "stream: out of memory");
        return NULL;
    }
    s->foreign = handle != NULL;
    s->handle = handle;
    s->ran_on = NULL;
    if (code == 0 && !s->event)
        code = g->driver->event_new(&s->event, false);
    if (code == 0 && !handle)
        code = g->driver->stream_new(&s->handle);
    if (code == 0)
        code = make_counters(s);
    if (code == 0)
        return s;
    s->idle = true;
    wk_gpu_fail(g, code, "making a stream");
    return NULL;
}

/* Waiting for all that `earlier` has queued so far is more than the last use of one tensor, but needs no event for
 * each. */
wk_status wk_stream_follow(wk_stream *s, wk_stream *earlier)
{
    wk_gpu *g = s->gpu;
    if (earlier->ran_on)
        earlier = earlier->ran_on;
    if (s == earlier || earlier->graph || earlier->idle)
        return WK_OK;
    int code = g->driver->enter(g->context);
    if (code == 0)
        code = g->driver->event_record(earlier->event, earlier->handle);
    if (code == 0)
        code = g->driver->stream_wait(s->handle, earlier->event);
    return code ? wk_gpu_fail(g, code, "ordering two streams") : WK_OK;
}

wk_status wk_gpu_use(wk_storage *storage)
{
    wk_stream *now = wk_gpu_stream(wk_gpu_of(storage->device)), *last = atomic_load(&storage->stream);
    if (last == now)
        return WK_OK;
    if (now->graph)
        return wk_graph_use(now->graph, storage);
    last = atomic_exchange(&storage->stream, now);
    return last && last != now ? wk_stream_follow(now, last) : WK_OK;
}

/* Another thread that began to use it meanwhile has waited for what was queued here before, and not for this: its stream, which
 * is taken for the last one from now on, does so now. */
wk_status wk_gpu_used(wk_storage *storage)
{
    wk_stream *now = wk_gpu_stream(wk_gpu_of(storage->device)), *last = atomic_load(&storage->stream);
    if (last && last->ran_on)
        last = last->ran_on;
    if (!last || last == now || last->graph || last->idle)
        return WK_OK;
    return wk_stream_follow(last, now);
}

/* ---- the API ---- */

/* Stands for all streams of the CPU, which are none. */
static wk_stream cpu_stream;

static wk_status need(const void *p, const char *call, const char *argument)
{
    return p ? WK_OK : wk_fail(WK_ERR_ARGUMENT, "%s: %s: got NULL", call, argument);
}

wk_stream *wk_stream_new(wk_device *device)
{
    if (wk_pending() || need(device, "stream_new", "device") != WK_OK)
        return NULL;
    return device->kind == WK_KIND_CPU ? &cpu_stream : wk_stream_make(wk_gpu_of(device), NULL);
}

wk_stream *wk_stream_from_handle(wk_device *device, void *handle)
{
    if (wk_pending() || need(device, "stream_from_handle", "device") != WK_OK ||
        need(handle, "stream_from_handle", "handle") != WK_OK)
        return NULL;
    return device->kind == WK_KIND_CPU ? &cpu_stream : wk_stream_make(wk_gpu_of(device), handle);
}

/* Its memory goes to the default stream, and the record waits for the next stream: storage may point to it yet. */
void wk_stream_drop(wk_stream *s)
{
    if (!s || s == &cpu_stream)
        return;
    wk_gpu *g = s->gpu;
    g->driver->enter(g->context);
    g->driver->stream_sync(s->handle);
    wk_blas_detach(s);
    if (s->dnn)
        s->dnn_detach(s);
    wk_arena_move(s, g->stream);
    if (!s->foreign)
        g->driver->stream_free(s->handle);
    pthread_mutex_lock(&g->lock);
    s->handle = NULL;
    s->idle = true;
    pthread_mutex_unlock(&g->lock);
}

wk_status wk_stream_push(wk_stream *s)
{
    WK_TRY(need(s, "stream_push", "stream"));
    if (thread.n == DEPTH)
        return wk_fail(WK_ERR_ARGUMENT, "stream_push: expected at most %d streams at once", DEPTH);
    thread.entered[thread.n++] = s;
    return WK_OK;
}

void wk_stream_pop(wk_stream *s)
{
    for (int i = thread.n - 1; i >= 0; i--) {
        if (thread.entered[i] != s)
            continue;
        for (; i + 1 < thread.n; i++)
            thread.entered[i] = thread.entered[i + 1];
        thread.n--;
        return;
    }
}

wk_status wk_stream_sync(wk_stream *s)
{
    WK_TRY(need(s, "stream_sync", "stream"));
    if (s == &cpu_stream)
        return WK_OK;
    wk_gpu *g = s->gpu;
    int code = g->driver->enter(g->context);
    if (code == 0)
        code = g->driver->stream_sync(s->handle);
    return code ? wk_gpu_fail(g, code, "waiting for a stream") : wk_gpu_mail(g);
}

void *wk_stream_handle(wk_device *device)
{
    return device && device->kind != WK_KIND_CPU ? wk_gpu_stream_handle(wk_gpu_of(device)) : NULL;
}

/* ---- events ---- */

struct wk_event {
    wk_gpu *gpu; /* NULL on the CPU */
    void *handle;
    double seconds; /* of an event of the CPU; 0 until it is recorded */
};

wk_event *wk_event_new(wk_device *device)
{
    if (wk_pending() || need(device, "event_new", "device") != WK_OK)
        return NULL;
    wk_event *e = wk_alloc(sizeof *e);
    if (!e) {
        wk_fail(WK_ERR_MEMORY, "event_new: out of memory");
        return NULL;
    }
    *e = (wk_event){.gpu = device->kind == WK_KIND_CPU ? NULL : wk_gpu_of(device)};
    int code = e->gpu ? e->gpu->driver->enter(e->gpu->context) : 0;
    if (code == 0 && e->gpu)
        code = e->gpu->driver->event_new(&e->handle, true);
    if (code == 0)
        return e;
    wk_gpu_fail(e->gpu, code, "making an event");
    wk_free(e);
    return NULL;
}

void wk_event_drop(wk_event *e)
{
    if (e && e->gpu) {
        e->gpu->driver->enter(e->gpu->context);
        e->gpu->driver->event_free(e->handle);
    }
    wk_free(e);
}

static wk_status event_call(wk_event *e, const char *call, int (*fn)(void *, void *), bool stream_first)
{
    WK_TRY(need(e, call, "event"));
    if (!e->gpu)
        return WK_OK;
    void *stream = wk_gpu_stream_handle(e->gpu);
    int code = e->gpu->driver->enter(e->gpu->context);
    if (code == 0)
        code = stream_first ? fn(stream, e->handle) : fn(e->handle, stream);
    return code ? wk_gpu_fail(e->gpu, code, call) : WK_OK;
}

wk_status wk_event_record(wk_event *e)
{
    struct timespec t;
    if (e && !e->gpu && clock_gettime(CLOCK_MONOTONIC, &t) == 0)
        e->seconds = (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
    return event_call(e, "event_record", e && e->gpu ? e->gpu->driver->event_record : NULL, false);
}

wk_status wk_event_wait(wk_event *e)
{
    return event_call(e, "event_wait", e && e->gpu ? e->gpu->driver->stream_wait : NULL, true);
}

wk_status wk_event_sync(wk_event *e)
{
    WK_TRY(need(e, "event_sync", "event"));
    if (!e->gpu)
        return WK_OK;
    int code = e->gpu->driver->enter(e->gpu->context);
    if (code == 0)
        code = e->gpu->driver->event_sync(e->handle);
    return code ? wk_gpu_fail(e->gpu, code, "event_sync") : WK_OK;
}

double wk_event_ms(wk_event *from, wk_event *to)
{
    float ms = 0;
    if (need(from, "event_ms", "from") != WK_OK || need(to, "event_ms", "to") != WK_OK)
        return NAN;
    if (from->gpu != to->gpu) {
        wk_fail(WK_ERR_DEVICE, "event_ms: expected two events of one device");
        return NAN;
    }
    if (!from->gpu && from->seconds && to->seconds)
        return (to->seconds - from->seconds) * 1e3;
    if (!from->gpu) {
        wk_fail(WK_ERR_ARGUMENT, "event_ms: expected two recorded events");
        return NAN;
    }
    int code = from->gpu->driver->event_ms(&ms, from->handle, to->handle);
    if (code)
        wk_gpu_fail(from->gpu, code, "event_ms");
    return code ? NAN : (double)ms;
}
