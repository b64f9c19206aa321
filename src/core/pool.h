/* pool.h: the thread pool.
 *
 * Work is cut into tasks by its size alone, never by the number of threads, so that a result has the same
 * bits however many threads there are. A task must not call back into wk_parallel_for expecting
 * parallelism: a nested call runs its tasks in order on the calling thread. */
#ifndef WK_CORE_POOL_H
#define WK_CORE_POOL_H

#include <stdint.h>

typedef void (*wk_task_fn)(void *ctx, int64_t task);

/* Calls fn(ctx, i) once for every i in [0, tasks), on any thread in any order, and returns when all are done.
 * Cheap (no locks) when tasks <= 1 or the pool has one thread. A single task is a plain call: what it calls may
 * be parallel. */
void wk_parallel_for(int64_t tasks, wk_task_fn fn, void *ctx);

/* How many threads (the caller among them) share the work; at least 1. */
int wk_pool_threads(void);

/* How many threads can take part in a call made here: the same, or 1 inside a task. */
int wk_pool_width(void);

/* Sets the number of threads; 0 means the number of CPUs this process may use. Called by wk_set_num_threads. */
void wk_pool_set_threads(int threads);

#endif
