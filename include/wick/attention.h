/* wick/attention.h: scaled dot-product attention. */
#ifndef WICK_ATTENTION_H
#define WICK_ATTENTION_H

#include "core.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Which keys a query sees, and how scores are made. Query i of s stands at position i + t - s among the t keys,
 * so that the last query is level with the last key. A field that is 0 has its default. */
typedef struct {
    size_t size;    /* set by WK_SDPA */
    double scale;   /* of the scores; 1 / sqrt(d) */
    int64_t causal; /* 1: no keys after the query's position */
    double softcap; /* c > 0: a score becomes c tanh(score / c), before the mask is added */
    int64_t window; /* w > 0: only keys less than w away from the query's position */
} wk_sdpa_options;
#define WK_SDPA(...) (&(wk_sdpa_options){.size = sizeof(wk_sdpa_options), __VA_ARGS__})

/* softmax(scale q k^T + mask) v for every head; q [b, hq, s, d], k [b, hk, t, d], v [b, hk, t, dv] give
 * [b, hq, s, dv]. hq is a multiple of hk: query head h uses key head h / (hq / hk), which is not copied. Float.
 * mask (NULL: none) broadcasts to [b, hq, s, t]; of q's dtype or f32 it is added to the scores, u8 keeps the
 * keys where it is not 0. A query that sees no key gives 0. The s x t scores are never held in memory.
 * lse (NULL: not wanted) gets the logarithm of each query's sum of exponentials [b, hq, s], in f32, or f64 for
 * f64: what the gradient needs. */
WK_API wk_tensor *wk_sdpa(const wk_tensor *q, const wk_tensor *k, const wk_tensor *v, const wk_tensor *mask,
                          const wk_sdpa_options *options, wk_tensor **lse);

/* Gradients from the forward's inputs and results, with its options; a place that is NULL is not computed.
 * Long sequences of bf16 on NVIDIA's sm_90 (heads of 64 or 128, no mask) are scaled to f16 on the way, whose 11 bits weights
 * keep: elements of q, k, v or dy below 2^-25 of the largest one of that tensor count as 0 there. */
WK_API wk_status wk_sdpa_backward(const wk_tensor *q, const wk_tensor *k, const wk_tensor *v,
                                  const wk_tensor *y, const wk_tensor *lse, const wk_tensor *dy,
                                  const wk_tensor *mask, const wk_sdpa_options *options, wk_tensor **dq,
                                  wk_tensor **dk, wk_tensor **dv);

/* The same for sequences of different lengths laid end to end: q [total_q, hq, d], k [total_k, hk, d] and
 * v [total_k, hk, dv] give [total_q, hq, dv]. Sequence i is rows cu_seqlens_q[i] to cu_seqlens_q[i + 1] of q, and
 * likewise of k and v; both are u32 or i32 of [b + 1], begin with 0, do not decrease and end with the total
 * (WK_ERR_INDEX otherwise). softcap and window of the options are used too. */
WK_API wk_tensor *wk_sdpa_varlen(const wk_tensor *q, const wk_tensor *k, const wk_tensor *v,
                                 const wk_tensor *cu_seqlens_q, const wk_tensor *cu_seqlens_k,
                                 const wk_sdpa_options *options);

typedef struct {
    size_t size;          /* set by WK_MHA */
    int64_t heads;        /* must be given, and divide e */
    int64_t causal;       /* as in wk_sdpa_options */
    double dropout;       /* the share of attention weights set to 0, from 0 to 1 */
    int64_t seed, offset; /* of the random numbers for it */
} wk_mha_options;
#define WK_MHA(...) (&(wk_mha_options){.size = sizeof(wk_mha_options), __VA_ARGS__})

/* Multi-head attention with its projections, as PyTorch's MultiheadAttention with batches first: q [b, s, e], k
 * and v [b, t, e]; in_proj_weight [3 e, e] and in_proj_bias [3 e] hold those of q, k and v one below the other,
 * out_proj_weight is [e, e], out_proj_bias [e]. mask (NULL: none) is as in wk_sdpa and broadcasts to
 * [b, heads, s, t]. Gives [b, s, e]. Float. */
WK_API wk_tensor *wk_mha(const wk_tensor *q, const wk_tensor *k, const wk_tensor *v,
                         const wk_tensor *in_proj_weight, const wk_tensor *in_proj_bias,
                         const wk_tensor *out_proj_weight, const wk_tensor *out_proj_bias,
                         const wk_tensor *mask, const wk_mha_options *options);

#ifdef __cplusplus
}
#endif
#endif
