/* order.h: keys put into order on the GPU, for ops that bring equal ids together. */
#ifndef WK_GPU_ORDER_H
#define WK_GPU_ORDER_H

#include "gpu.h"

typedef struct {
    u32 *keys, *places; /* n of each, on the device */
} wk_gpu_pairs;

/* Puts n < 2^32 pairs, whose keys are at most `most`, into the order of the keys; equal ones stay as they were. The
 * pairs may lie elsewhere afterwards, in temporary memory of the call. */
wk_status wk_gpu_order(const wk_call *c, i64 n, u32 most, wk_gpu_pairs *pairs);
/* Temporary room for n pairs. */
wk_status wk_gpu_pairs_new(const wk_call *c, i64 n, wk_gpu_pairs *pairs);

/* The same for a line of ids that are the keys themselves, where they are few; the places are their numbers, and an id that
 * leads nowhere has the key `limit`. */
typedef struct {
    const void *at;
    int bytes; /* see ids.h */
    i64 step, n, limit;
    int slot; /* of the input they are */
} wk_gpu_ids;
enum { WK_GPU_FEW_IDS = 1 << 16 };
wk_status wk_gpu_order_ids(const wk_call *c, const wk_gpu_ids *ids, wk_gpu_pairs *pairs);

#endif
