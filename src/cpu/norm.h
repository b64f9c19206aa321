/* norm.h: what the files of the norms share. norm.c has the family's list, and layer, rms and group norm;
 * batch_norm.c and lrn.c the others. */
#ifndef WK_CPU_NORM_H
#define WK_CPU_NORM_H

#include "core/op.h"
#include "isa.h"

wk_status WK_ISA(wk_batch_norm_train)(wk_call *c);
wk_status WK_ISA(wk_batch_norm_infer)(wk_call *c);
wk_status WK_ISA(wk_batch_norm_backward)(wk_call *c);
wk_status WK_ISA(wk_lrn_forward)(wk_call *c);
wk_status WK_ISA(wk_lrn_backward)(wk_call *c);

/* Mean and sum of squared deviations of some elements. */
typedef struct {
    double count, mean, m2;
} wk_moments;

/* Those of two sets of elements taken together. */
static inline wk_moments wk_moments_merge(wk_moments a, wk_moments b)
{
    double n = a.count + b.count, d = b.mean - a.mean;
    if (a.count == 0)
        return b;
    return (wk_moments){n, a.mean + d * (b.count / n), a.m2 + b.m2 + d * d * (a.count * b.count / n)};
}

#endif
