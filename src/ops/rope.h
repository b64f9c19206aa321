/* rope.h: what front end and kernels of rotary embedding share. */
#ifndef WK_OPS_ROPE_H
#define WK_OPS_ROPE_H

#include "core/op.h"

/* What tells the ops of the family apart; an implementation's data points to one. */
typedef struct {
    bool interleaved; /* pairs are neighbours, not halves */
    bool thd;         /* x is [b, t, h, d] */
    bool backward;    /* turns the other way */
} wk_rope_kind;

#endif
