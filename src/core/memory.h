/* memory.h: host memory. Every allocation of the library goes through here, so that tests can make any one of
 * them fail. */
#ifndef WK_CORE_MEMORY_H
#define WK_CORE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include "wick/core.h"

/* Small memory for the library's own records; NULL when there is none. Free with wk_free (NULL is fine). */
void *wk_alloc(size_t bytes);
void *wk_realloc(void *old, size_t bytes);
void wk_free(void *p);

/* Memory for tensors and workspaces, aligned to 64 bytes, kept for reuse when freed. bytes must be given back
 * as they were asked for. */
void *wk_block_alloc(size_t bytes);
void wk_block_free(void *p, size_t bytes);

/* Blocks for one task's scratch, a gap before anything else: where a thread stores or loads rows a stride apart, the
 * processor asks for what it takes for the next ones, far behind the last (on Zen 5 up to 128 KiB), and takes those lines away
 * from the thread that they belong to, all the time. */
#define WK_SCRATCH_GAP ((size_t)128 << 10)
void *wk_scratch_alloc(size_t bytes);
void wk_scratch_free(void *p, size_t bytes);

/* Keeps the blocks usable in the child of a fork; called once. */
void wk_block_handle_forks(void);

void wk_block_stats(wk_memory_stats *stats);
void wk_block_trim(void);
void wk_block_limit(uint64_t bytes);

/* For tests: the n-th allocation from now (counting from 1) and `burst` - 1 after it fail; 0 switches that
 * off. Counts allocations of the calling thread only. */
void wk_alloc_fail_at(long n, long burst);
/* For tests: allocations by this thread since wk_alloc_fail_at. */
long wk_alloc_count(void);
/* For tests: records and blocks alive in the process. */
long wk_alloc_live(void);

#endif
