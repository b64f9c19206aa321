/* blocks.h: elementwise loops with several results, or with the element's number: dropout, losses, optimizer steps.
 *
 * As map.h, without broadcasting: the engine brings blocks of any layout and dtype to packed values of a compute
 * type and takes the results back; blocks begin at multiples of WK_BLOCK and are shared among threads. */
#ifndef WK_CPU_BLOCKS_H
#define WK_CPU_BLOCKS_H

#include "map.h"

enum { WK_BLOCKS_TENSORS = 4 };

/* Elements [first, first + n): in[k] and out[k] point to n values. out[k] is NULL where that result is not wanted; it
 * may be an input's memory, never a part of it. */
typedef void (*wk_blocks_fn)(void *const *out, const void *const *in, int64_t first, int64_t n, void *ctx);

typedef struct {
    const wk_tensor *in[WK_BLOCKS_TENSORS]; /* of one shape; NULL ones give NULL pointers */
    wk_compute in_compute[WK_BLOCKS_TENSORS];
    wk_tensor *out[WK_BLOCKS_TENSORS]; /* packed, of that shape; may be NULL */
    wk_compute out_compute[WK_BLOCKS_TENSORS];
    int64_t count; /* elements of each */
    wk_blocks_fn fn;
    void *ctx;
} wk_blocks;

/* Runs it. Fails only for want of memory. */
wk_status WK_ISA(wk_blocks_run)(const wk_blocks *b);

#endif
