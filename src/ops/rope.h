/* rope.h: what front end and kernels of rotary embedding share. */
#ifndef WK_OPS_ROPE_H
#define WK_OPS_ROPE_H

#include "core/op.h"
#include "wick/rope.h"

/* What tells the ops of the family apart; an implementation's data points to one. */
typedef struct {
    bool interleaved; /* pairs are neighbours, not halves */
    bool thd;         /* x is [b, t, h, d] */
    bool backward;    /* turns the other way */
} wk_rope_kind;

/* rope_qk: which pairs, which layout. */
typedef struct {
    int64_t layout; /* wk_rope_layout */
} wk_rope_params;

/* The kind of a call: the implementation's data, or by rope_qk's parameter. */
static inline wk_rope_kind wk_rope_kind_of(const wk_call *c)
{
    if (c->impl->data)
        return *(const wk_rope_kind *)c->impl->data;
    int64_t layout = WK_PARAMS(c, wk_rope_params)->layout;
    return (wk_rope_kind){.interleaved = layout == WK_ROPE_INTERLEAVED, .thd = layout == WK_ROPE_THD};
}

#endif
