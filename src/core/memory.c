/* memory.c: host memory: records from malloc, tensor blocks from a caching allocator.
 *
 * A fresh large block costs a page fault every 4 KB, which is several times the cost of the op that fills it.
 * So freed blocks are kept in bins, four to a power of two (at most 25 % waste), and large ones ask for huge
 * pages; where there would be too many of them, those that lie there longest are given back. Under a sanitizer every block is a malloc of its exact size, so that overruns are seen. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include "memory.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define EXACT_BLOCKS 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define EXACT_BLOCKS 1
#endif
#endif
#ifndef EXACT_BLOCKS
#define EXACT_BLOCKS 0
#endif

static _Thread_local struct {
    long count, fail_at, burst;
} inject;
static atomic_long live;

void wk_alloc_fail_at(long n, long burst)
{
    inject.count = 0;
    inject.fail_at = n;
    inject.burst = burst;
}

long wk_alloc_count(void) { return inject.count; }
long wk_alloc_live(void) { return atomic_load(&live); }

static bool injected_failure(void)
{
    inject.count++;
    return inject.fail_at && inject.count >= inject.fail_at && inject.count < inject.fail_at + inject.burst;
}

void *wk_alloc(size_t bytes)
{
    void *p = injected_failure() ? NULL : malloc(bytes ? bytes : 1);
    if (p)
        atomic_fetch_add_explicit(&live, 1, memory_order_relaxed);
    return p;
}

void *wk_realloc(void *old, size_t bytes)
{
    if (!old)
        return wk_alloc(bytes);
    return injected_failure() ? NULL : realloc(old, bytes ? bytes : 1);
}

void wk_free(void *p)
{
    if (p)
        atomic_fetch_sub_explicit(&live, 1, memory_order_relaxed);
    free(p);
}

/* ---- blocks ---- */

enum { ALIGN = 64, MIN_SHIFT = 8, BINS = 4 * (48 - MIN_SHIFT), HUGE_PAGE = 2 << 20 };

/* A free block holds its links: to its neighbours in its bin, and to those in the order of being freed. */
typedef struct free_block {
    struct free_block *above, *below, *older, *newer;
    size_t size;
    int bin;
    const void *thread; /* that freed it */
} free_block;

/* A thread by an address of its own. */
static _Thread_local char this_thread;

static struct {
    pthread_mutex_t lock;
    free_block
        *bins[BINS]; /* the top one of each: freed last, so the likeliest to be in a processor's cache */
    free_block *oldest, *newest;
    uint64_t limit;
    wk_memory_stats stats;
} cache = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The most that is kept for reuse: enough for the working set of a large model's activations. */
static const uint64_t max_cached = (uint64_t)4 << 30;

/* The bin whose size is the smallest that holds bytes; its size goes to *size. */
static int bin_of(size_t bytes, size_t *size)
{
    if (bytes <= (size_t)1 << MIN_SHIFT) {
        *size = (size_t)1 << MIN_SHIFT;
        return 0;
    }
    int shift = 63 - __builtin_clzll(bytes - 1); /* 2^shift <= bytes - 1 < 2^(shift + 1) */
    size_t quarter = ((bytes - 1) >> (shift - 2)) & 3;
    *size = ((size_t)1 << shift) + ((quarter + 1) << (shift - 2));
    return 4 * (shift - MIN_SHIFT) + (int)quarter + 1;
}

static void *system_alloc(size_t size)
{
    if (size < HUGE_PAGE)
        return aligned_alloc(ALIGN, size);
    void *p = aligned_alloc(HUGE_PAGE, (size + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE);
    if (p)
        madvise(p, size, MADV_HUGEPAGE);
    return p;
}

static void push_locked(void *p, int bin, size_t size)
{
    free_block *f = p;
    *f = (free_block){
        .below = cache.bins[bin], .older = cache.newest, .size = size, .bin = bin, .thread = &this_thread};
    if (f->below)
        f->below->above = f;
    *(f->older ? &f->older->newer : &cache.oldest) = f;
    cache.bins[bin] = cache.newest = f;
    cache.stats.cached += size;
}

static void unlink_locked(free_block *f)
{
    *(f->above ? &f->above->below : &cache.bins[f->bin]) = f->below;
    if (f->below)
        f->below->above = f->above;
    *(f->newer ? &f->newer->older : &cache.newest) = f->older;
    *(f->older ? &f->older->newer : &cache.oldest) = f->newer;
    cache.stats.cached -= f->size;
}

/* Gives back the blocks that were freed first, until no more than so many bytes are kept. */
static void shrink_locked(uint64_t bytes)
{
    while (cache.oldest && cache.stats.cached > bytes) {
        free_block *f = cache.oldest;
        unlink_locked(f);
        free(f);
    }
}

/* Whether the limit has room for so many bytes more, if need be after giving back what is kept. */
static bool fits_locked(size_t size)
{
    uint64_t needed = cache.stats.in_use + size;
    if (cache.limit && needed + cache.stats.cached > cache.limit)
        shrink_locked(needed < cache.limit ? cache.limit - needed : 0);
    return !cache.limit || needed <= cache.limit;
}

/* A block of the bin that this thread had last, if one is near the top, since its lines are in this processor's cache and
 * else in another's; or the top one. NULL: none is free. */
static free_block *pick_locked(int bin)
{
    enum { NEAR = 16 };
    free_block *f = cache.bins[bin];
    for (int i = 0; f && i < NEAR; i++, f = f->below)
        if (f->thread == &this_thread)
            return f;
    return cache.bins[bin];
}

/* A block of the bin: from the cache, else from the system, which gets back what is cached before it is asked
 * in vain. */
static void *take_locked(int bin, size_t size)
{
    free_block *f = pick_locked(bin);
    if (f) {
        unlink_locked(f);
        return f;
    }
    if (!fits_locked(size))
        return NULL;
    cache.stats.system++;
    void *p = system_alloc(size);
    if (!p && cache.oldest) {
        shrink_locked(0);
        p = system_alloc(size);
    }
    return p;
}

void *wk_block_alloc(size_t bytes)
{
    if (injected_failure() || bytes > PTRDIFF_MAX / 2)
        return NULL;
    size_t size;
    int bin = bin_of(bytes, &size);
    if (EXACT_BLOCKS)
        size = (bytes + ALIGN - 1) / ALIGN * ALIGN + (bytes ? 0 : ALIGN);
    if (bin >= BINS)
        return NULL;
    pthread_mutex_lock(&cache.lock);
    void *p = take_locked(bin, size);
    if (p) {
        cache.stats.allocations++;
        cache.stats.in_use += size;
        if (cache.stats.in_use > cache.stats.peak)
            cache.stats.peak = cache.stats.in_use;
        atomic_fetch_add_explicit(&live, 1, memory_order_relaxed);
    }
    pthread_mutex_unlock(&cache.lock);
    return p;
}

void wk_block_free(void *p, size_t bytes)
{
    if (!p)
        return;
    size_t size;
    int bin = bin_of(bytes, &size);
    if (EXACT_BLOCKS)
        size = (bytes + ALIGN - 1) / ALIGN * ALIGN + (bytes ? 0 : ALIGN);
    pthread_mutex_lock(&cache.lock);
    cache.stats.in_use -= size;
    bool keep = !EXACT_BLOCKS && size <= max_cached;
    if (keep) {
        shrink_locked(max_cached - size);
        push_locked(p, bin, size);
    }
    pthread_mutex_unlock(&cache.lock);
    if (!keep)
        free(p);
    atomic_fetch_sub_explicit(&live, 1, memory_order_relaxed);
}

/* Where blocks are exact, so that accesses behind them are found, the gap would hide those. */
static size_t with_gap(size_t bytes) { return EXACT_BLOCKS ? bytes : bytes + WK_SCRATCH_GAP; }

void *wk_scratch_alloc(size_t bytes)
{
    return bytes > PTRDIFF_MAX / 2 ? NULL : wk_block_alloc(with_gap(bytes));
}

void wk_scratch_free(void *p, size_t bytes) { wk_block_free(p, with_gap(bytes)); }

/* Another thread may be in here when the process forks: its lock would stay locked in the child. */
static void lock_cache(void) { pthread_mutex_lock(&cache.lock); }
static void unlock_cache(void) { pthread_mutex_unlock(&cache.lock); }
void wk_block_handle_forks(void) { pthread_atfork(lock_cache, unlock_cache, unlock_cache); }

void wk_block_stats(wk_memory_stats *stats)
{
    pthread_mutex_lock(&cache.lock);
    *stats = cache.stats;
    pthread_mutex_unlock(&cache.lock);
}

void wk_block_trim(void)
{
    pthread_mutex_lock(&cache.lock);
    shrink_locked(0);
    pthread_mutex_unlock(&cache.lock);
}

void wk_block_limit(uint64_t bytes)
{
    pthread_mutex_lock(&cache.lock);
    cache.limit = bytes;
    fits_locked(0);
    pthread_mutex_unlock(&cache.lock);
}
