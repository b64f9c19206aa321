/* memory.c: device memory, kept for reuse.
 *
 * A freed block goes onto the stack of its size class in the pool of the stream that used it last: work queued there
 * afterwards may have it at once, without waiting. Every block is one allocation of the driver's, so that trimming
 * gives back everything that is not in use. With WICK_EXACT_ALLOC=1 nothing is kept or rounded: then the emulator
 * and compute-sanitizer see every tensor's exact bounds. */
#include <stdlib.h>
#include "core/memory.h"
#include "runtime.h"

struct wk_arena {
    wk_memory_stats stats;
    uint64_t limit;
    bool exact;
};

enum { SMALLEST = 512 };

/* Eight classes for each doubling from 512 bytes: at most an eighth is wasted. */
static int class_of(size_t bytes)
{
    if (bytes <= SMALLEST)
        return 0;
    int top = 63 - __builtin_clzll((bytes - 1) | 1);
    int eighth = (int)(((bytes - 1) >> (top - 3)) & 7);
    return (top - 9) * 8 + eighth + 1;
}

static size_t class_bytes(int class)
{
    if (class == 0)
        return SMALLEST;
    int top = (class - 1) / 8 + 9, eighth = (class - 1) % 8;
    return ((size_t)1 << top) + ((size_t)(eighth + 1) << (top - 3));
}

wk_status wk_arena_open(wk_gpu *g)
{
    g->arena = wk_alloc(sizeof *g->arena);
    if (!g->arena)
        return wk_fail(WK_ERR_MEMORY, "out of memory opening %s", g->base.name);
    const char *exact = getenv("WICK_EXACT_ALLOC");
    *g->arena = (struct wk_arena){.exact = exact && exact[0] == '1'};
    return WK_OK;
}

bool wk_arena_keeps(const wk_gpu *g) { return !g->arena->exact; }

static void count_use(struct wk_arena *a, size_t bytes)
{
    a->stats.in_use += bytes;
    a->stats.allocations++;
    if (a->stats.in_use > a->stats.peak)
        a->stats.peak = a->stats.in_use;
}

static void free_stack(wk_gpu *g, wk_block_stack *s, size_t bytes)
{
    while (s->n > 0) {
        g->driver->free(s->blocks[--s->n]);
        g->arena->stats.cached -= bytes;
    }
}

/* Gives every kept block back to the driver, which waits for the device itself. Not while a graph is captured. */
static void drop_cached(wk_gpu *g)
{
    for (wk_stream *s = g->streams; s; s = s->next) {
        if (s->graph)
            return;
    }
    for (wk_stream *s = g->streams; s; s = s->next) {
        for (int c = 0; c < WK_SIZE_CLASSES; c++)
            free_stack(g, &s->freed[c], class_bytes(c));
    }
}

static void *ask_driver(wk_gpu *g, size_t bytes)
{
    struct wk_arena *a = g->arena;
    void *p = NULL;
    if (g->driver->enter(g->context) != 0)
        return NULL;
    for (int attempt = 0; attempt < 2; attempt++) {
        bool fits = !a->limit || a->stats.in_use + a->stats.cached + bytes <= a->limit;
        if (fits && g->driver->alloc(&p, bytes) == 0) {
            a->stats.system++;
            return p;
        }
        drop_cached(g);
    }
    return NULL;
}

void *wk_arena_alloc(wk_device *d, size_t bytes, void **stream)
{
    wk_gpu *g = wk_gpu_of(d);
    wk_stream *s = wk_gpu_stream(g);
    struct wk_arena *a = g->arena;
    void *p = NULL;
    *stream = s;
    if (bytes > (size_t)1 << 44)
        return NULL;
    pthread_mutex_lock(&g->lock);
    int class = class_of(bytes);
    size_t real = a->exact ? (bytes ? bytes : 1) : class_bytes(class);
    wk_block_stack *stack = &s->freed[class];
    if (!a->exact && stack->n > 0) {
        p = stack->blocks[--stack->n];
        a->stats.cached -= real;
    } else {
        p = ask_driver(g, real);
    }
    if (p)
        count_use(a, real);
    pthread_mutex_unlock(&g->lock);
    return p;
}

/* False when there is no host memory to note the block in. */
static bool push(wk_block_stack *s, void *p)
{
    if (s->n == s->room) {
        int room = s->room ? s->room * 2 : 8;
        void **blocks = wk_realloc(s->blocks, (size_t)room * sizeof *blocks);
        if (!blocks)
            return false;
        s->blocks = blocks;
        s->room = room;
    }
    s->blocks[s->n++] = p;
    return true;
}

void wk_arena_free(wk_device *d, void *data, size_t bytes, void *stream)
{
    wk_gpu *g = wk_gpu_of(d);
    struct wk_arena *a = g->arena;
    if (!data)
        return;
    pthread_mutex_lock(&g->lock);
    int class = class_of(bytes);
    size_t real = a->exact ? (bytes ? bytes : 1) : class_bytes(class);
    a->stats.in_use -= real;
    wk_stream *s = stream ? stream : g->stream;
    if (!a->exact && push(&s->freed[class], data)) {
        a->stats.cached += real;
    } else {
        g->driver->enter(g->context);
        g->driver->free(data);
    }
    pthread_mutex_unlock(&g->lock);
}

void wk_arena_move(wk_stream *from, wk_stream *to)
{
    wk_gpu *g = from->gpu;
    pthread_mutex_lock(&g->lock);
    for (int c = 0; c < WK_SIZE_CLASSES; c++) {
        wk_block_stack *s = &from->freed[c];
        while (s->n > 0 && push(&to->freed[c], s->blocks[s->n - 1]))
            s->n--;
        free_stack(g, s, class_bytes(c)); /* what could not be noted */
        wk_free(s->blocks);
        *s = (wk_block_stack){0};
    }
    pthread_mutex_unlock(&g->lock);
}

void wk_arena_stats(const wk_device *d, wk_memory_stats *stats)
{
    wk_gpu *g = wk_gpu_of(d);
    pthread_mutex_lock(&g->lock);
    *stats = g->arena->stats;
    pthread_mutex_unlock(&g->lock);
}

void wk_arena_trim(wk_device *d)
{
    wk_gpu *g = wk_gpu_of(d);
    pthread_mutex_lock(&g->lock);
    g->driver->enter(g->context);
    drop_cached(g);
    pthread_mutex_unlock(&g->lock);
}

void wk_arena_limit(wk_device *d, uint64_t bytes)
{
    wk_gpu *g = wk_gpu_of(d);
    pthread_mutex_lock(&g->lock);
    g->arena->limit = bytes;
    if (bytes && g->arena->stats.in_use + g->arena->stats.cached > bytes && g->driver->enter(g->context) == 0)
        drop_cached(g);
    pthread_mutex_unlock(&g->lock);
}
