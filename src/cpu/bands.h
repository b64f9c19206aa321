/* bands.h: rows of work cut into bands, each with scratch memory of its own. */
#ifndef WK_CPU_BANDS_H
#define WK_CPU_BANDS_H

#include "core/error.h"
#include "isa.h"

/* Works on rows [begin, end); scratch is aligned to a cache line and undefined. */
typedef void (*wk_band_fn)(void *ctx, int64_t begin, int64_t end, void *scratch);

/* Calls fn for bands of per_task rows (the last one shorter), on any thread, with so many bytes of scratch each. Fails
 * only for want of memory; some bands may have been done then. */
wk_status WK_ISA(wk_bands_run)(int64_t rows, int64_t per_task, size_t scratch, wk_band_fn fn, void *ctx);

#endif
