/* transfer.c: between host and device, through pinned memory.
 *
 * A driver copies from ordinary memory slowly, or waits. So data goes through a ring of pinned chunks: while one is
 * on its way the next is filled, by all threads, since one alone moves a fraction of what the bus does. An upload
 * returns when the last chunk is queued. */
#include <string.h>
#include "core/memory.h"
#include "core/pool.h"
#include "runtime.h"

enum { CHUNKS = 4, CHUNK_BYTES = 2 << 20, PIECE_BYTES = 256 << 10 };

struct wk_staging {
    pthread_mutex_t lock;
    struct {
        char *host;
        void *event;
        bool busy; /* the event was recorded behind a copy that reads it */
    } chunk[CHUNKS];
    int next;
};

static wk_status make_staging(wk_gpu *g)
{
    void *device;
    int code = 0;
    struct wk_staging *s = wk_alloc(sizeof *s);
    if (!s)
        return wk_fail(WK_ERR_MEMORY, "out of memory for copies to %s", g->base.name);
    *s = (struct wk_staging){.next = 0};
    pthread_mutex_init(&s->lock, NULL);
    for (int i = 0; i < CHUNKS && code == 0; i++) {
        code = g->driver->host_alloc((void **)&s->chunk[i].host, &device, CHUNK_BYTES);
        if (code == 0)
            code = g->driver->event_new(&s->chunk[i].event, false);
    }
    if (code == 0) {
        g->staging = s;
        return WK_OK;
    }
    for (int i = 0; i < CHUNKS; i++) {
        if (s->chunk[i].host)
            g->driver->host_free(s->chunk[i].host);
        if (s->chunk[i].event)
            g->driver->event_free(s->chunk[i].event);
    }
    wk_free(s);
    return wk_gpu_fail(g, code, "allocating pinned memory");
}

static wk_status begin(wk_gpu *g, const char *what)
{
    int code = g->driver->enter(g->context);
    if (code)
        return wk_gpu_fail(g, code, what);
    if (wk_gpu_stream(g)->graph)
        return wk_fail(WK_ERR_ARGUMENT, "%s: a graph is being captured: copy before or after it", what);
    pthread_mutex_lock(&g->lock);
    wk_status status = g->staging ? WK_OK : make_staging(g);
    pthread_mutex_unlock(&g->lock);
    return status;
}

/* The next chunk, once the copy that uses it is done. */
static int take_chunk(wk_gpu *g, struct wk_staging *s, int *i)
{
    *i = s->next;
    s->next = (s->next + 1) % CHUNKS;
    int code = s->chunk[*i].busy ? g->driver->event_sync(s->chunk[*i].event) : 0;
    s->chunk[*i].busy = false;
    return code;
}

typedef struct {
    char *dst;
    const char *src;
    size_t bytes;
} host_copy;

static void copy_piece(void *ctx, int64_t piece)
{
    const host_copy *c = ctx;
    size_t at = (size_t)piece * PIECE_BYTES, n = c->bytes - at < PIECE_BYTES ? c->bytes - at : PIECE_BYTES;
    memcpy(c->dst + at, c->src + at, n);
}

static void copy_chunk(void *dst, const void *src, size_t bytes)
{
    host_copy c = {dst, src, bytes};
    wk_parallel_for((int64_t)((bytes + PIECE_BYTES - 1) / PIECE_BYTES), copy_piece, &c);
}

wk_status wk_gpu_upload(wk_device *d, void *dst, const void *host, size_t bytes)
{
    wk_gpu *g = wk_gpu_of(d);
    WK_TRY(begin(g, "from_host"));
    struct wk_staging *s = g->staging;
    void *stream = wk_gpu_stream_handle(g);
    int code = 0;
    pthread_mutex_lock(&s->lock);
    for (size_t at = 0; at < bytes && code == 0;) {
        size_t n = bytes - at < CHUNK_BYTES ? bytes - at : CHUNK_BYTES;
        int i;
        code = take_chunk(g, s, &i);
        if (code)
            break;
        copy_chunk(s->chunk[i].host, (const char *)host + at, n);
        code = g->driver->copy((char *)dst + at, s->chunk[i].host, n, WK_COPY_UP, stream);
        if (code == 0)
            code = g->driver->event_record(s->chunk[i].event, stream);
        s->chunk[i].busy = code == 0;
        at += n;
    }
    pthread_mutex_unlock(&s->lock);
    return code ? wk_gpu_fail(g, code, "copying to the device") : WK_OK;
}

/* Copies are queued up to CHUNKS ahead of the one that is taken out. */
static int download_all(wk_gpu *g, struct wk_staging *s, char *host, const char *src, size_t bytes,
                        void *stream)
{
    size_t chunks = (bytes + CHUNK_BYTES - 1) / CHUNK_BYTES;
    int ring[CHUNKS], code = 0;
    for (size_t k = 0; k < chunks + CHUNKS - 1; k++) {
        if (k < chunks) {
            size_t at = k * CHUNK_BYTES, n = bytes - at < CHUNK_BYTES ? bytes - at : CHUNK_BYTES;
            int *i = &ring[k % CHUNKS];
            if ((code = take_chunk(g, s, i)) ||
                (code = g->driver->copy(s->chunk[*i].host, src + at, n, WK_COPY_DOWN, stream)) ||
                (code = g->driver->event_record(s->chunk[*i].event, stream)))
                return code;
            s->chunk[*i].busy = true;
        }
        if (k + 1 < CHUNKS || k + 1 - CHUNKS >= chunks)
            continue;
        size_t done = k + 1 - CHUNKS, at = done * CHUNK_BYTES;
        int i = ring[done % CHUNKS];
        if ((code = g->driver->event_sync(s->chunk[i].event)))
            return code;
        copy_chunk(host + at, s->chunk[i].host, bytes - at < CHUNK_BYTES ? bytes - at : CHUNK_BYTES);
    }
    return 0;
}

wk_status wk_gpu_download(wk_device *d, void *host, const void *src, size_t bytes)
{
    wk_gpu *g = wk_gpu_of(d);
    WK_TRY(begin(g, "to_host"));
    struct wk_staging *s = g->staging;
    pthread_mutex_lock(&s->lock);
    int code = download_all(g, s, host, src, bytes, wk_gpu_stream_handle(g));
    pthread_mutex_unlock(&s->lock);
    return code ? wk_gpu_fail(g, code, "copying from the device") : wk_gpu_mail(g);
}
