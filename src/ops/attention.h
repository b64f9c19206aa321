/* attention.h: what front ends and kernels of attention share. */
#ifndef WK_OPS_ATTENTION_H
#define WK_OPS_ATTENTION_H

#include "core/op.h"
#include "wick/attention.h"

/* The scale that the parameters ask for; absent is NaN there. */
double wk_sdpa_scale(const wk_sdpa_options *p, int64_t d);

/* The keys [lo, hi) of t that query i of s sees. */
typedef struct {
    int64_t lo, hi;
} wk_key_range;

static inline wk_key_range wk_sdpa_keys(int64_t causal, int64_t window, int64_t s, int64_t t, int64_t i)
{
    int64_t at = i + (t - s); /* the query's position among the keys */
    wk_key_range r = {0, causal ? at + 1 : t};
    if (window > 0 && window < s + t) { /* a wider one leaves nothing out */
        r.lo = at - window + 1;
        r.hi = causal ? r.hi : at + window;
    }
    r.lo = r.lo < 0 ? 0 : r.lo > t ? t : r.lo;
    r.hi = r.hi > t ? t : r.hi < r.lo ? r.lo : r.hi;
    return r;
}

/* A mask seen as [b, hq, s, t]: stride 0 where it is broadcast. It has been checked. */
wk_tensor wk_sdpa_mask(const wk_tensor *mask, int64_t b, int64_t hq, int64_t s, int64_t t);

/* Fails unless cu_seqlens, in host memory, begins with 0, does not decrease and ends with total. i is its slot. */
wk_status wk_sdpa_check_seqlens(const wk_call *c, int i, int64_t total);
/* Its element i, which may be of any stride. */
int64_t wk_sdpa_seqlen(const wk_tensor *cu_seqlens, int64_t i);

#endif
