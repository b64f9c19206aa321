/* bands.c: rows of work cut into bands, each with scratch memory of its own. */
#include <stdatomic.h>
#include "core/memory.h"
#include "core/pool.h"
#include "bands.h"

enum { STACK_BYTES = 48 << 10 };

typedef struct {
    int64_t rows, per_task;
    size_t scratch;
    wk_band_fn fn;
    void *ctx;
    atomic_bool no_memory;
} bands;

static void run_task(void *ctx, int64_t task)
{
    bands *b = ctx;
    _Alignas(64) char small[STACK_BYTES];
    char *scratch = b->scratch <= sizeof small ? small : wk_scratch_alloc(b->scratch);
    if (!scratch) {
        atomic_store(&b->no_memory, true);
        return;
    }
    int64_t begin = task * b->per_task, end = begin + b->per_task < b->rows ? begin + b->per_task : b->rows;
    b->fn(b->ctx, begin, end, scratch);
    if (scratch != small)
        wk_scratch_free(scratch, b->scratch);
}

wk_status WK_ISA(wk_bands_run)(int64_t rows, int64_t per_task, size_t scratch, wk_band_fn fn, void *ctx)
{
    bands b = {.rows = rows, .per_task = per_task, .scratch = scratch, .fn = fn, .ctx = ctx};
    wk_parallel_for((rows + per_task - 1) / per_task, run_task, &b);
    return b.no_memory ? wk_fail(WK_ERR_MEMORY, "out of memory: %zu bytes of scratch", scratch) : WK_OK;
}
