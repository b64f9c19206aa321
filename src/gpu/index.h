/* index.h: what the indexing ops share. */
#ifndef WK_GPU_INDEX_H
#define WK_GPU_INDEX_H

#include "copy.h"

enum { BIG, SMALL, IDS, FLAT, PLACE, SIDES }; /* FLAT: big as if it were packed; PLACE: along dim */

typedef struct {
    const wk_tensor *big, *small, *ids;
    int rank; /* the dims of small, cut to those of ids; neighbours joined where possible */
    int64_t shape[WK_MAX_RANK], strides[SIDES][WK_MAX_RANK]; /* big's along dim: 0 */
    int64_t count, n, size, along[SIDES];                    /* elements; ids, elements of big along dim */
    bool same_ids;                                           /* for all lines along dim */
} wk_index_plan;

/* What stands for a dtype in sums: integers of one size add alike. */
static inline wk_dtype wk_index_sum_dtype(wk_dtype d)
{
    return wk_is_float(d) ? d : wk_gpu_word(wk_bytes(d));
}

/* index_lines.c: lines along dim, a block or a wave for each. Whether that is the best way, and the way itself. */
bool wk_index_reads_lines(const wk_call *c, const wk_index_plan *p);
wk_status wk_index_read_lines(const wk_call *c, const wk_index_plan *p, int ids_slot);
bool wk_index_adds_lines(const wk_index_plan *p);
/* from: the values before, of big's shape; NULL for zeros. */
wk_status wk_index_add_lines(const wk_call *c, const wk_index_plan *p, const wk_tensor *from, int ids_slot);

#endif
