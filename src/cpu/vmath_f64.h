/* vmath_f64.h: the functions of vmath.h that libm lacks in double. */
#ifndef WK_CPU_VMATH_F64_H
#define WK_CPU_VMATH_F64_H

#include <math.h>
#include <stdint.h>
#include "vmath.h"

/* exp(-|x|) never overflows; both ends come out exact. */
static inline double wk_sigmoid_f64(double x)
{
    double e = exp(-fabs(x));
    return (x < 0 ? e : 1) / (1 + e);
}

static inline double wk_silu_f64(double x) { return x * wk_sigmoid_f64(x); }
static inline double wk_gelu_f64(double x)
{
    return x / (1 + exp2(x * (WK_GELU_FIRST + WK_GELU_THIRD * (x * x))));
}
static inline double wk_softplus_f64(double x) { return (x > 0 ? x : 0) + log1p(exp(-fabs(x))); }

static inline void wk_sin_block_f64(const double *x, double *y, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = sin(x[i]);
}

static inline void wk_cos_block_f64(const double *x, double *y, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = cos(x[i]);
}

#endif
