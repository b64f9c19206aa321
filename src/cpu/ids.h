/* ids.h: reading and checking ids, for the ops that are led by them. */
#ifndef WK_CPU_IDS_H
#define WK_CPU_IDS_H

#include "core/op.h"
#include "block.h"

/* The id that stands for "none": the largest of its dtype. */
static inline int64_t wk_id_padding(wk_dtype d)
{
    return d == WK_U8 ? UINT8_MAX : d == WK_U32 ? UINT32_MAX : d == WK_I32 ? INT32_MAX : INT64_MAX;
}

/* The first id that is out of range, counted in the row-major order of the ids, as threads find them. */
typedef struct {
    _Atomic int64_t at; /* INT64_MAX: none */
} wk_bad_id;

static inline void wk_bad_id_note(wk_bad_id *bad, int64_t at)
{
    int64_t seen = atomic_load_explicit(&bad->at, memory_order_relaxed);
    while (at < seen && !atomic_compare_exchange_weak(&bad->at, &seen, at)) {
    }
}

/* Fails when a bad id was noted, naming its place and value; size is that of the dim it points into. */
static inline wk_status wk_bad_id_status(const wk_call *c, const wk_tensor *ids, const wk_bad_id *bad,
                                         int64_t size)
{
    int64_t at = atomic_load(&bad->at), offset = 0, place[WK_MAX_RANK];
    if (at == INT64_MAX)
        return WK_OK;
    for (int d = ids->rank - 1; d >= 0; d--) {
        place[d] = at % ids->shape[d];
        offset += place[d] * ids->strides[d];
        at /= ids->shape[d];
    }
    const char *p = (const char *)wk_ptr(ids) + offset * (int64_t)wk_bytes(ids->dtype);
    wk_shape_text text;
    return wk_call_fail(c, WK_ERR_INDEX, "ids", "expected 0 to %lld, or %lld for none, got %lld at %s",
                        (long long)size - 1, (long long)wk_id_padding(ids->dtype),
                        (long long)wk_load_i64(ids->dtype, p), wk_shape_str(&text, ids->rank, place));
}

#endif
