/* vmath.h - what vector instructions of more than one width are made of.  exp2, log2 and ldexp of a float are in double
 * arithmetic, without calls and branches, so that a loop over lanes becomes vector code.  The error before rounding is
 * below 2^-45: half an ulp, as good as correctly rounded. */
#ifndef ROCM_EMU_VMATH_H
#define ROCM_EMU_VMATH_H
#include "exec.h"
#include <math.h>

#define ROUND_MAGIC 0x1.8p52 /* x + this has the integer nearest to x in its low bits */

static inline float vexp2(float x)
{
    double c = x < -160 ? -160 : x > 130 ? 130 : (double)x; /* there the result is 0 or infinite already */
    double m = c + ROUND_MAGIC, f = c - (m - ROUND_MAGIC);
    double p = 0x1.e8cac7351bb25p-32; /* ln(2)^k / k! for k = 11 to 0 */
    p = __builtin_fma(p, f, 0x1.e4cf5158b8ecap-28);
    p = __builtin_fma(p, f, 0x1.b5253d395e7c4p-24);
    p = __builtin_fma(p, f, 0x1.62c0223a5c824p-20);
    p = __builtin_fma(p, f, 0x1.ffcbfc588b0c7p-17);
    p = __builtin_fma(p, f, 0x1.430912f86c787p-13);
    p = __builtin_fma(p, f, 0x1.5d87fe78a6731p-10);
    p = __builtin_fma(p, f, 0x1.3b2ab6fba4e77p-7);
    p = __builtin_fma(p, f, 0x1.c6b08d704a0c0p-5);
    p = __builtin_fma(p, f, 0x1.ebfbdff82c58fp-3);
    p = __builtin_fma(p, f, 0x1.62e42fefa39efp-1);
    p = __builtin_fma(p, f, 1.0);
    return x != x ? x : (float)(p * u2d((d2u(m) + 1023) << 52));
}

static inline float vlog2(float x)
{
    uint64_t u = d2u((double)x), e = (uint64_t)((int64_t)(u - 0x3fe6a09e667f3bcdu) >> 52); /* against sqrt(1/2) */
    double m = u2d(u - (e << 52)), k = u2d(0x4338000000000000u + e) - ROUND_MAGIC, t = (m - 1) / (m + 1), s = t * t;
    double p = 1.0 / 17; /* log(m) = 2 atanh(t) */
    for (int i = 15; i >= 1; i -= 2)
        p = __builtin_fma(p, s, 1.0 / i);
    double r = __builtin_fma(t * p, 2.8853900817779268147198493620038, k);
    return !(x < INFINITY) ? x : x == 0 ? -INFINITY : x < 0 ? NAN : (float)r;
}

static inline float vldexp(float x, int32_t n)
{
    int64_t k = n < -300 ? -300 : n > 300 ? 300 : n;
    return (float)((double)x * u2d((uint64_t)(k + 1023) << 52));
}

static inline float min_f32(float a, float b)
{
    return a == b ? u2f(f2u(a) | f2u(b)) : (a < b || b != b) ? a : b; /* min(+0, -0) is -0 */
}
static inline float max_f32(float a, float b) { return a == b ? u2f(f2u(a) & f2u(b)) : (a > b || b != b) ? a : b; }
static inline float frexp_mant_f32(float x)
{
    int e;
    return isfinite(x) ? frexpf(x, &e) : x;
}
static inline int32_t frexp_exp_f32(float x)
{
    int e = 0;
    if (isfinite(x))
        frexpf(x, &e);
    return e;
}
/* The quotient n / d where it is no matter of digits. */
static inline bool div_special(double d, double n, double *r)
{
    bool neg = (d2u(d) ^ d2u(n)) >> 63;
    if (n != n || d != d)
        *r = n != n ? n : d;
    else if ((d == 0 && n == 0) || (isinf(d) && isinf(n)))
        *r = NAN;
    else if (d == 0 || isinf(n))
        *r = neg ? -INFINITY : INFINITY;
    else if (isinf(d) || n == 0)
        *r = neg ? -0.0 : 0.0;
    else
        return false;
    return true;
}
#endif
