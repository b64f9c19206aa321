/* stream.c: queues of work, and the order between them. */
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

wk_status wk_stream_enter(wk_stream *s)
{
    if (thread.n == DEPTH)
        return wk_fail(WK_ERR_ARGUMENT, "stream_push: expected at most %d streams at once", DEPTH);
    thread.entered[thread.n++] = s;
    return WK_OK;
}

void wk_stream_leave(wk_stream *s)
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
    g->streams = s;
    return s;
}

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
        return s;
    s->idle = true;
    wk_gpu_fail(g, code, "making a stream");
    return NULL;
}

void wk_stream_give_back(wk_stream *s)
{
    wk_gpu *g = s->gpu;
    g->driver->enter(g->context);
    if (s->handle)
        g->driver->stream_sync(s->handle);
    wk_arena_move(s, g->stream);
    if (!s->foreign && s->handle)
        g->driver->stream_free(s->handle);
    pthread_mutex_lock(&g->lock);
    s->handle = NULL;
    s->idle = true;
    pthread_mutex_unlock(&g->lock);
}

/* Waiting for all that `earlier` has queued so far is more than the last use of one tensor, but needs no event for
 * each. Nothing waits inside a capture: what a graph reads must be there when it is replayed. */
wk_status wk_stream_follow(wk_stream *s, wk_stream *earlier)
{
    wk_gpu *g = s->gpu;
    if (earlier->ran_on)
        earlier = earlier->ran_on;
    if (s == earlier || s->capturing || earlier->capturing || earlier->idle)
        return WK_OK;
    int code = g->driver->enter(g->context);
    if (code == 0)
        code = g->driver->event_record(earlier->event, earlier->handle);
    if (code == 0)
        code = g->driver->stream_wait(s->handle, earlier->event);
    return code ? wk_gpu_fail(g, code, "ordering two streams") : WK_OK;
}
