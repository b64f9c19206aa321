/* block.h: bringing elements into cache-sized blocks and back.
 *
 * The elementwise engine computes on packed blocks in a compute type (see core/dtype.h). These functions
 * fill such a block from memory of any dtype and stride, and write it out. Pointers need an element's
 * alignment only; source and destination do not overlap; nothing outside the named elements is read or
 * written.
 *
 * stream = true writes with non-temporal stores, which pays when the whole output is too large to be found
 * in the cache by its reader. Other threads see them when the wk_parallel_for that the call is in returns. */
#ifndef WK_CPU_BLOCK_H
#define WK_CPU_BLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/dtype.h"
#include "isa.h"

/* n elements of dtype d, stride elements apart (0 repeats one), to the packed compute type of d: exact. */
void WK_ISA(wk_block_load)(wk_dtype d, const void *src, int64_t stride, void *dst, int64_t n);

/* The same to any compute type: what does not fit is rounded to nearest even; a float cut to int64 loses
 * its fraction and saturates, and NaN gives 0. */
void WK_ISA(wk_block_load_as)(wk_compute c, wk_dtype d, const void *src, int64_t stride, void *dst,
                              int64_t n);

/* Packed values of compute type c to packed elements of dtype d. To a float dtype rounds once, to nearest
 * even. To an integer dtype a float loses its fraction and saturates, NaN gives 0, and an int64 wraps. A
 * NaN stays a NaN in all float conversions; which one is not specified. */
void WK_ISA(wk_block_store)(wk_dtype d, wk_compute c, const void *src, void *dst, int64_t n, bool stream);

void WK_ISA(wk_block_copy)(const void *src, void *dst, size_t bytes, bool stream);

/* dst[i] = src[i * stride] for n elements of 1, 2, 4 or 8 bytes. */
void WK_ISA(wk_block_gather)(size_t bytes, const void *src, int64_t stride, void *dst, int64_t n);

/* dst[j * dst_rs + i] = src[i * src_rs + j] for i < rows and j < cols, elements of 1, 2, 4 or 8 bytes.
 *
 * How to split a large one among threads: by rows of src, all columns to each band, since the function
 * walks along the columns and prefetches that way. Bands of a multiple of 256 / bytes rows (whole tiles),
 * starting where dst is aligned to a cache line, keep every line of dst with one thread and written whole;
 * taller bands gain nothing. */
void WK_ISA(wk_block_transpose)(size_t bytes, const void *src, int64_t src_rs, void *dst, int64_t dst_rs,
                                int64_t rows, int64_t cols, bool stream);

#endif
