/* wick/rope.h: rotary position embedding. */
#ifndef WICK_ROPE_H
#define WICK_ROPE_H

#include "core.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Turns pairs of the last dimension of x by the angles whose cosines and sines are given:
 *     y1 = x1 cos - x2 sin,  y2 = x1 sin + x2 cos.
 * cos and sin are [t', r] or [b, t', r], of x's dtype: row i is for position i, t' may exceed t. The first 2 r
 * elements of d are turned, the rest (partial rotary) passes through. Float.
 * WK_ERR_SHAPE when x is not of rank 4, 2 r exceeds d, or there are fewer than t rows. */

/* x [b, h, t, d]; a pair is elements i and i + r. */
WK_API wk_tensor *wk_rope(const wk_tensor *x, const wk_tensor *cos, const wk_tensor *sin);
/* x [b, h, t, d]; a pair is elements 2 i and 2 i + 1. */
WK_API wk_tensor *wk_rope_i(const wk_tensor *x, const wk_tensor *cos, const wk_tensor *sin);
/* x [b, t, h, d]; a pair is elements i and i + r. */
WK_API wk_tensor *wk_rope_thd(const wk_tensor *x, const wk_tensor *cos, const wk_tensor *sin);

/* Gradients: dx from dy, which is turned back. */
WK_API wk_tensor *wk_rope_backward(const wk_tensor *dy, const wk_tensor *cos, const wk_tensor *sin);
WK_API wk_tensor *wk_rope_i_backward(const wk_tensor *dy, const wk_tensor *cos, const wk_tensor *sin);
WK_API wk_tensor *wk_rope_thd_backward(const wk_tensor *dy, const wk_tensor *cos, const wk_tensor *sin);

/* Queries and keys turned by the same angles in one call: q [b, hq, t, d], k [b, hk, t, d] ([b, t, h, d] for THD). The
 * layout says which of the three ops it is. */
typedef enum { WK_ROPE_HALVES, WK_ROPE_INTERLEAVED, WK_ROPE_THD } wk_rope_layout;
WK_API wk_status wk_rope_qk(const wk_tensor *q, const wk_tensor *k, const wk_tensor *cos,
                            const wk_tensor *sin, wk_rope_layout layout, wk_tensor **q_turned,
                            wk_tensor **k_turned);

/* A step of a language model: q [b, t, hq, d] and k [b, t, hk, d] turned as by wk_rope_thd, k and v [b, t, hk, dv] then
 * written into the caches keys [b, hk, places, d] and values [b, hk, places, dv], token j of text i to place[i, j]. The
 * largest id writes nothing; any other that is no place is an error (see wk_scatter). Gives the turned q. */
WK_API wk_tensor *wk_rope_cache(const wk_tensor *q, const wk_tensor *k, const wk_tensor *v,
                                const wk_tensor *cos, const wk_tensor *sin, wk_tensor *keys,
                                wk_tensor *values, const wk_tensor *place);

#ifdef __cplusplus
}
#endif
#endif
