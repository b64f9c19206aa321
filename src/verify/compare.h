/* compare.h: two results of one call, and how far apart they may be. */
#ifndef WK_VERIFY_COMPARE_H
#define WK_VERIFY_COMPARE_H

#include "core/tensor.h"

/* How far a result of the dtype may be from the reference: |got - want| over |want| and a share of the output's
 * typical size. One rounding of the dtype, and a little for the order of sums. */
double wk_tolerance(wk_dtype dtype);
/* The same for products on a GPU: more while precision is fast, since tf32's factors have the digits of f16's, and what is
 * f16 or bf16 may be rounded once more on its way. */
double wk_tolerance_gpu(wk_dtype dtype);

typedef struct {
    double
        worst; /* the largest error, in the measure of wk_tolerance; infinity where NaN or infinity differ */
    int64_t place; /* where */
    double got, want;
} wk_comparison;

/* got against want, on any devices: shapes must be the same, dtypes need not. The status is that of the comparison's
 * making, not its outcome. */
wk_status wk_compare(const wk_tensor *got, const wk_tensor *want, wk_comparison *c);

#endif
