/* pool.c: the thread pool.
 *
 * One parallel region runs at a time; its owner is the thread that got pool.owner. A region is a job (fn, ctx,
 * tasks) and counters from which every thread in it takes task numbers. A worker enters by raising pool.inside
 * and then looking at pool.epoch, which is odd while a region is open; the owner closes the region and then
 * waits until inside is 0. Each side writes its own variable before it reads the other's, so either the worker
 * sees the region closed or the owner sees the worker inside. A worker that wakes up late is thus not waited for.
 *
 * The tasks are cut into as many runs of neighbours as there are threads, each with a counter. A thread takes those of
 * its own run, many at a time at first, and then helps with the others: what it reads is mostly one stretch of memory,
 * which its prefetcher follows.
 *
 * Idle workers watch the epoch for a short while, which makes back-to-back regions cheap, and then sleep. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* sched_getaffinity */
#endif
#include "pool.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { MAX_THREADS = 256, SPIN_NS = 30000, SPINS_PER_CLOCK_READ = 32 };

static struct {
    pthread_mutex_t owner; /* held by the thread whose region runs */

    /* The job: written by the owner while the region is closed. */
    wk_task_fn fn;
    void *ctx;
    int64_t tasks;
    int runs;
    struct {
        _Alignas(64) _Atomic int64_t next; /* the first task that no thread has taken */
    } run[MAX_THREADS];

    _Atomic uint32_t epoch; /* grows at each opening and closing; odd while a region is open */
    _Atomic int inside;     /* workers in the region */
    _Atomic int limit;      /* workers with an index from here on leave */
    _Atomic int sleepers;   /* workers waiting on wake */
    pthread_mutex_t sleep_lock;
    pthread_cond_t wake;

    /* Of the owner. */
    int workers;       /* that exist */
    int workers_aimed; /* how many there should be: not reached when the system gives no more threads */
    pthread_t threads[MAX_THREADS];
} pool = {.owner = PTHREAD_MUTEX_INITIALIZER,
          .sleep_lock = PTHREAD_MUTEX_INITIALIZER,
          .wake = PTHREAD_COND_INITIALIZER};

static _Atomic int threads_wanted; /* 0: not worked out yet */
static _Thread_local bool in_task; /* on this thread a task is running: nested calls run inline */

static void cpu_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("isb" ::: "memory"); /* yield is a no-op on most cores */
#endif
}

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int clamp_threads(long n) { return n < 1 ? 1 : n > MAX_THREADS ? MAX_THREADS : (int)n; }

static int usable_cpus(void)
{
#ifdef __linux__
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        return clamp_threads(CPU_COUNT(&set));
#endif
    return clamp_threads(sysconf(_SC_NPROCESSORS_ONLN));
}

static int default_threads(void)
{
    const char *text = getenv("WICK_THREADS");
    if (text && *text) {
        char *end;
        long n = strtol(text, &end, 10);
        if (*end == '\0' && n > 0)
            return clamp_threads(n);
    }
    return usable_cpus();
}

int wk_pool_threads(void)
{
    int n = atomic_load_explicit(&threads_wanted, memory_order_relaxed);
    if (n == 0) {
        int unset = 0;
        n = default_threads();
        if (!atomic_compare_exchange_strong(&threads_wanted, &unset, n))
            n = unset;
    }
    return n;
}

int wk_pool_width(void) { return in_task ? 1 : wk_pool_threads(); }

/* Only the wish is noted: the owner of the next region makes or ends workers. So this is safe at any time. */
void wk_pool_set_threads(int threads)
{
    atomic_store(&threads_wanted, threads > 0 ? clamp_threads(threads) : usable_cpus());
}

/* Tasks write large results with non-temporal stores, which are not ordered with others: they are complete before
 * anyone hears that the tasks are done. Once here, not once a block, since it waits for memory. */
static void complete_stores(void)
{
#if defined(__SSE2__)
    __builtin_ia32_sfence();
#endif
}

/* The first task of a run; the first few runs are one longer where there is a remainder. */
static int64_t run_begin(int run)
{
    int64_t each = pool.tasks / pool.runs, longer = pool.tasks % pool.runs;
    return run * each + (run < longer ? run : longer);
}

/* Opens the runs of a region; the owner's, before anyone can be inside. */
static void set_runs(int64_t tasks, int threads)
{
    pool.tasks = tasks;
    pool.runs = tasks < threads ? (int)tasks : threads;
    for (int r = 0; r < pool.runs; r++)
        atomic_store_explicit(&pool.run[r].next, run_begin(r), memory_order_relaxed);
}

/* Takes tasks of the run that ends at `end`: *first and the ones behind it. How many; none where that is not above 0. An
 * eighth of what is left at a time, so that there are single ones in the end: an atomic operation waits until all stores
 * before it are done, those past the cache too. */
static int64_t take_some(_Atomic int64_t *next, int64_t end, int64_t *first)
{
    int64_t left = end - atomic_load_explicit(next, memory_order_relaxed), n = left < 8 ? 1 : left / 8;
    if (left <= 0)
        return 0;
    *first = atomic_fetch_add_explicit(next, n, memory_order_relaxed);
    return *first + n < end ? n : end - *first;
}

/* What the thread of this number (the owner is 0) can get. */
static void take_tasks(int thread)
{
    wk_task_fn fn = pool.fn;
    void *ctx = pool.ctx;
    for (int k = 0; k < pool.runs; k++) {
        int r = (thread + k) % pool.runs;
        int64_t first, n, end = run_begin(r + 1);
        while ((n = take_some(&pool.run[r].next, end, &first)) > 0)
            for (int64_t i = first; i < first + n; i++)
                fn(ctx, i);
    }
    complete_stores();
}

static void run_inline(int64_t tasks, wk_task_fn fn, void *ctx)
{
    bool nested = in_task;
    in_task = true;
    for (int64_t i = 0; i < tasks; i++)
        fn(ctx, i);
    in_task = nested;
    complete_stores();
}

/* ---- Workers ---- */

static bool spin_until_epoch_moves(uint32_t seen)
{
    int64_t end = now_ns() + SPIN_NS;
    do {
        for (int i = 0; i < SPINS_PER_CLOCK_READ; i++) {
            if (atomic_load_explicit(&pool.epoch, memory_order_relaxed) != seen)
                return true;
            cpu_pause();
        }
    } while (now_ns() < end);
    return false;
}

static void wait_for_work(uint32_t seen)
{
    if (spin_until_epoch_moves(seen))
        return;
    pthread_mutex_lock(&pool.sleep_lock);
    atomic_fetch_add(&pool.sleepers, 1);
    while (atomic_load(&pool.epoch) == seen)
        pthread_cond_wait(&pool.wake, &pool.sleep_lock);
    atomic_fetch_sub(&pool.sleepers, 1);
    pthread_mutex_unlock(&pool.sleep_lock);
}

static void *worker_main(void *argument)
{
    int index = (int)(intptr_t)argument;
    in_task = true;
    for (;;) {
        atomic_fetch_add(&pool.inside, 1);
        uint32_t epoch = atomic_load(&pool.epoch);
        if (epoch % 2 == 1)
            take_tasks(index + 1);
        atomic_fetch_sub(&pool.inside, 1);
        /* After the epoch: stop_workers lowers the limit and then moves the epoch, so that the one or the other
         * is seen here. */
        if (index >= atomic_load(&pool.limit))
            return NULL;
        wait_for_work(epoch);
    }
}

/* Moves the epoch on, by 1 to open or close a region, and wakes as many sleepers as can be of use. */
static void move_epoch(uint32_t step, int64_t wake)
{
    atomic_fetch_add(&pool.epoch, step);
    int64_t sleepers = wake > 0 ? atomic_load(&pool.sleepers) : 0;
    if (sleepers == 0)
        return;
    pthread_mutex_lock(&pool.sleep_lock);
    if (wake >= sleepers)
        pthread_cond_broadcast(&pool.wake);
    else
        for (int64_t i = 0; i < wake; i++)
            pthread_cond_signal(&pool.wake);
    pthread_mutex_unlock(&pool.sleep_lock);
}

static void start_workers(int aim)
{
    /* Signals belong to the program's own threads. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    atomic_store(&pool.limit, aim);
    while (pool.workers < aim && pthread_create(&pool.threads[pool.workers], NULL, worker_main,
                                                (void *)(intptr_t)pool.workers) == 0)
        pool.workers++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void stop_workers(int aim)
{
    atomic_store(&pool.limit, aim);
    move_epoch(2, MAX_THREADS); /* stays even: there is no job, but the waiting ones look around */
    while (pool.workers > aim)
        pthread_join(pool.threads[--pool.workers], NULL);
}

/* The child of a fork has none of the threads, and whatever they held stays held. */
static void reset_after_fork(void)
{
    pthread_mutex_init(&pool.owner, NULL);
    pthread_mutex_init(&pool.sleep_lock, NULL);
    pthread_cond_init(&pool.wake, NULL);
    atomic_store(&pool.epoch, 0);
    atomic_store(&pool.inside, 0);
    atomic_store(&pool.sleepers, 0);
    pool.workers = pool.workers_aimed = 0;
}

static void set_workers(int aim)
{
    static bool fork_handled; /* the owner's, as everything here */
    if (!fork_handled)
        fork_handled = pthread_atfork(NULL, NULL, reset_after_fork) == 0;
    if (aim > pool.workers)
        start_workers(aim);
    else
        stop_workers(aim);
    pool.workers_aimed = aim;
}

/* ---- Regions ---- */

static void close_region(void)
{
    move_epoch(1, 0);
    int64_t spins = 0;
    while (atomic_load(&pool.inside) != 0) {
        /* Long tasks, or more threads than cores: let others run. */
        if (++spins < 4096)
            cpu_pause();
        else
            sched_yield();
    }
}

void wk_parallel_for(int64_t tasks, wk_task_fn fn, void *ctx)
{
    if (tasks == 1) {
        fn(ctx, 0); /* not a region: calls inside may be parallel */
        complete_stores();
        return;
    }
    int threads = wk_pool_threads();
    if (tasks <= 0)
        return;
    if (threads == 1 || in_task || pthread_mutex_trylock(&pool.owner) != 0) {
        run_inline(tasks, fn, ctx);
        return;
    }
    if (pool.workers_aimed != threads - 1)
        set_workers(threads - 1);

    pool.fn = fn;
    pool.ctx = ctx;
    set_runs(tasks, threads);
    move_epoch(1, tasks - 1);
    in_task = true;
    take_tasks(0);
    in_task = false;
    close_region();
    pthread_mutex_unlock(&pool.owner);
}
