/* vmath.h: elementary functions of float, for loops that the compiler vectorises.
 *
 * Each is straight code: both sides of a choice are computed and one is selected, exponents are built from
 * bits, and rounding to an integer is an addition of a large number. So a plain loop over a block becomes
 * vector code at every level, with no intrinsics here.
 *
 * Errors, as the largest found over all floats, are below 2 units in the last place of the exact result,
 * with and without fused multiply-add: products are exact where it matters, and no sum has two products,
 * so that there is one way only to fuse it and an element's result does not depend on its place in the
 * loop. Subnormal arguments and results, infinities, NaN and signed zeros are as in C's math.h; errno and
 * exception flags are not. The polynomials are minimax fits made for wick; beside each stands its error
 * relative to the function. */
#ifndef WK_CPU_VMATH_H
#define WK_CPU_VMATH_H

#include <math.h>
#include <stdint.h>
#include "core/dtype.h"
#include "isa.h"

/* ---- Pieces ---- */

/* Adding and subtracting 1.5 * 2^23 rounds a float below 2^22 to an integer, which the low bits of the sum
 * hold too. The same for double. */
#define WK_ROUND_F32 0x1.8p23f
#define WK_ROUND_F64 0x1.8p52

/* ln 2 in two parts. The first has 15 bits: its product with an exponent is exact. */
#define WK_LN2_HI 0x1.62e4p-1f
#define WK_LN2_LO 0x1.7f7d1cp-20f

static inline float wk_with_sign_of(float magnitude, float sign)
{
    return wk_bits_float(wk_float_bits(magnitude) | (wk_float_bits(sign) & 0x80000000));
}

/* 2^n for n from -126 to 127; some float otherwise. */
static inline float wk_exp2_int(int32_t n) { return wk_bits_float((uint32_t)(n + 127) << 23); }

/* c ? a : b by masks, for choices that GCC would turn into jumps when one side makes the result constant. */
static inline float wk_pick_float(bool c, float a, float b)
{
    uint32_t mask = -(uint32_t)c;
    return wk_bits_float((wk_float_bits(a) & mask) | (wk_float_bits(b) & ~mask));
}

static inline double wk_pick_double(bool c, double a, double b)
{
    uint64_t mask = -(uint64_t)c;
    return wk_bits_double((wk_double_bits(a) & mask) | (wk_double_bits(b) & ~mask));
}

/* x = n ln 2 + r with |r| <= ln 2 / 2, for |x| < 2^15. Returns r. */
static inline float wk_exp_reduce(float x, int32_t *n)
{
    float t = x * 0x1.715476p0f + WK_ROUND_F32;
    float k = t - WK_ROUND_F32;
    *n = (int32_t)(wk_float_bits(t) - wk_float_bits(WK_ROUND_F32));
    return (x - k * WK_LN2_HI) - k * WK_LN2_LO;
}

/* q[0] r^6 + q[1] r^5 + ... + q[6] of a float or a vector of them. */
#define WK_POLY6(r, q0, q1, q2, q3, q4, q5, q6) \
    ((((((q0 * (r) + q1) * (r) + q2) * (r) + q3) * (r) + q4) * (r) + q5) * (r) + q6)

/* e^r for |r| <= ln 2 / 2: 2^-28.0. */
#define WK_EXP_POLY(r) \
    WK_POLY6(r, 0x1.6a23cep-10f, 0x1.123a2p-7f, 0x1.5558f2p-5f, 0x1.555492p-3f, 0x1.fffffcp-2f, 1.0f, 1.0f)

/* 2^r for |r| <= 1 / 2: the same with the powers of ln 2 in the coefficients. */
#define WK_EXP2_POLY(r) \
    WK_POLY6(r, 0x1.414e62p-13f, 0x1.5f043cp-10f, 0x1.3b2e0cp-7f, 0x1.c6af8ap-5f, 0x1.ebfbdcp-3f, \
             0x1.62e43p-1f, 1.0f)

/* e^r - 1 = r + r^2 q(r) for |r| <= ln 2 / 2: 2^-31.0. */
static inline float wk_expm1_poly(float r)
{
    float q = 0x1.a17e08p-13f;
    q = q * r + 0x1.6da76cp-10f;
    q = q * r + 0x1.1110acp-7f;
    q = q * r + 0x1.55547p-5f;
    q = q * r + 0x1.555556p-3f;
    q = q * r + 0.5f;
    return r * r * q + r;
}

/* ln(2^k (1 + f)) for 1 + f from sqrt(1/2) to sqrt(2): ln(1 + f) = f - f^2 / 2 + f^3 p(f), 2^-30.3. */
static inline float wk_log_poly(float f, float k)
{
    float p = 0x1.1b4298p-4f;
    p = p * f - 0x1.e2e99ap-4f;
    p = p * f + 0x1.e650a8p-4f;
    p = p * f - 0x1.fb433p-4f;
    p = p * f + 0x1.2332cp-3f;
    p = p * f - 0x1.5562e2p-3f;
    p = p * f + 0x1.99a546p-3f;
    p = p * f - 0x1.ffffeep-3f;
    p = p * f + 0x1.555546p-2f;
    float y = f * f * (p * f - 0.5f) + f;
    return k * WK_LN2_HI + (k * WK_LN2_LO + y);
}

/* x = 2^k m with m from sqrt(1/2) to sqrt(2), for positive normal x. Returns m. */
static inline float wk_log_reduce(float x, int32_t *k)
{
    const uint32_t sqrt_half = 0x3F3504F3;
    uint32_t u = wk_float_bits(x) - sqrt_half;
    *k = (int32_t)u >> 23;
    return wk_bits_float((u & 0x7FFFFF) + sqrt_half);
}

/* ---- Exponentials ---- */

/* x from lo to hi; NaN passes. The bounds come from memory: of constants the compiler would work out the function
 * there and choose between that and the rest, which takes three times as long as a minimum and a maximum. */
static inline float wk_within(float x, float lo, float hi)
{
    float c = x > hi ? hi : x;
    return c < lo ? lo : c;
}

/* Of wk_expf, of wk_exp_termf, of wk_exp2_termf, of wk_lanes_exp2. */
extern const float WK_ISA(wk_exp_bounds)[8];

static inline float wk_expf(float x)
{
    const float *bounds = WK_ISA(wk_exp_bounds);
    int32_t n; /* beyond these bounds the result is infinite or 0 all the same */
    float r = wk_exp_reduce(wk_within(x, bounds[0], bounds[1]), &n), p = WK_EXP_POLY(r);
    /* 2^n in two factors, as n goes from -150 to 128; only the second can round. */
    int32_t half = n >> 1;
    return p * wk_exp2_int(half) * wk_exp2_int(n - half);
}

/* The same in two thirds of the time, but 0 below 2^-126.5 and infinite from 2^127.5 on: for terms of a sum, of which
 * one is about 1. */
static inline float wk_exp_termf(float x)
{
    const float *bounds = WK_ISA(wk_exp_bounds);
    int32_t n; /* from -127 to 128: 2^n is 0 at one end and infinite at the other */
    float r = wk_exp_reduce(wk_within(x, bounds[2], bounds[3]), &n);
    return WK_EXP_POLY(r) * wk_exp2_int(n);
}

/* 2^x with the same ends: for an exponent that is a product anyway, and takes the factor log2(e) in its stride. */
static inline float wk_exp2_termf(float x)
{
    const float *bounds = WK_ISA(wk_exp_bounds);
    x = wk_within(x, bounds[4], bounds[5]);
    float t = x + WK_ROUND_F32;
    int32_t n = (int32_t)(wk_float_bits(t) - wk_float_bits(WK_ROUND_F32));
    float r = x - (t - WK_ROUND_F32);
    return WK_EXP2_POLY(r) * wk_exp2_int(n);
}

static inline float wk_expm1f(float x)
{
    float c = x > 89.0f ? 89.0f : x;
    c = c < -20.0f ? -20.0f : c;
    int32_t n;
    float p = wk_expm1_poly(wk_exp_reduce(c, &n));
    /* 2^n p + (2^n - 1), all halved because 2^128 is no float. */
    float half = wk_exp2_int(n - 1);
    float y = 2.0f * (half * p + (half - 0.5f));
    return fabsf(x) < 0x1p-24f ? x : y;
}

/* 1 / (1 + e^-x), from e = e^-|x|, which cannot overflow and keeps its relative precision at the lower
 * end. With s = e / (1 + e) it is e - e s below 0 and 1 - s above, which rounds better than the quotient:
 * s is small. */
static inline float wk_sigmoidf(float x)
{
    float e = wk_expf(-fabsf(x)), s = e / (1.0f + e);
    float n = x < 0 ? e : 1.0f;
    return n - n * s;
}

/* x sigmoid(x); 0 below -88.7, where it is under 2^-121. */
static inline float wk_siluf(float x) { return x / (1.0f + wk_exp_termf(-x)); }

/* x / 2 (1 + tanh(u)) = x sigmoid(2 u), u = sqrt(2 / pi) (x + 0.044715 x^3): one exponential, and exact in the left tail.
 * The factors are those of -2 u log2(e). */
#define WK_GELU_FIRST -2.3022081981443248891
#define WK_GELU_THIRD -0.1029432395800234874
static inline float wk_geluf(float x)
{
    const float first = (float)WK_GELU_FIRST, third = (float)WK_GELU_THIRD;
    return x / (1.0f + wk_exp2_termf(x * (first + third * (x * x))));
}

static inline float wk_tanhf(float x)
{
    float a = fabsf(x), z = a * a;
    /* Up to 0.625: x + x^3 p(x^2), 2^-31.8. */
    float p = 0x1.173286p-9f;
    p = p * z - 0x1.0baba8p-7f;
    p = p * z + 0x1.638912p-6f;
    p = p * z - 0x1.b9effep-5f;
    p = p * z + 0x1.11107ap-3f;
    p = p * z - 0x1.555554p-2f;
    float small = a * z * p + a;
    /* Above, where the subtraction loses nothing. */
    float large = 1.0f - 2.0f / (1.0f + wk_exp_termf(2.0f * a));
    return wk_with_sign_of(a < 0.625f ? small : large, x);
}

/* ---- Logarithms ---- */

static inline float wk_logf(float x)
{
    bool tiny = x < 0x1p-126f;
    int32_t k;
    float m = wk_log_reduce(tiny ? x * 0x1p24f : x, &k);
    float y = wk_log_poly(m - 1.0f, (float)(tiny ? k - 24 : k));
    y = x > 0 ? y : x == 0 ? -INFINITY : NAN;
    return x < INFINITY ? y : x; /* infinity and NaN */
}

/* The exponent k comes from 1 + x rounded, but f = 2^-k (1 + x) - 1 from x itself, so that nothing of a
 * small x is lost; beyond 2^24 the 1 does not matter. */
static inline float wk_log1pf(float x)
{
    int32_t k;
    float m = wk_log_reduce(1.0f + x, &k);
    float scale = wk_exp2_int(-k);
    float f = k < 25 ? x * scale + (scale - 1.0f) : m - 1.0f;
    float y = wk_log_poly(f, (float)k);
    y = fabsf(x) < 0x1p-24f ? x : y;
    y = x > -1.0f ? y : x == -1.0f ? -INFINITY : NAN;
    return x < INFINITY ? y : x;
}

/* ln(1 + e^x) = max(x, 0) + ln(1 + e), e = e^-|x|: wk_log1pf with the little that e from 0 to 1 needs. */
static inline float wk_softplusf(float x)
{
    float e = wk_expf(-fabsf(x));
    bool high = e > 0x1.a8279ap-2f; /* 1 + e above sqrt(2) */
    float y = wk_log_poly(high ? 0.5f * e - 0.5f : e, high ? 1.0f : 0.0f);
    y = e < 0x1p-24f ? e : y;
    return (x > 0 ? x : 0) + y;
}

/* ---- The error function ---- */

static inline float wk_erff(float x)
{
    float a = fabsf(x), z = a * a;
    /* Up to 1: x + x p(x^2), 2^-29.6. */
    float p = 0x1.4ae4dp-14f;
    p = p * z - 0x1.a485ecp-11f;
    p = p * z + 0x1.5419f4p-8f;
    p = p * z - 0x1.b7fbb4p-6f;
    p = p * z + 0x1.ce2d2p-4f;
    p = p * z - 0x1.81273ep-2f;
    p = p * z + 0x1.06eba8p-3f;
    float small = a * p + a;
    /* From 1 to 4, where it becomes 1: 1 - e^q(x) with q = ln(1 - erf x), 2^-35. */
    float b = a > 4.0f ? 4.0f : a;
    float q = 0x1.0dd97ap-22f;
    q = q * b - 0x1.a8b5b4p-16f;
    q = q * b + 0x1.e650fp-12f;
    q = q * b - 0x1.18a66ap-8f;
    q = q * b + 0x1.9fb862p-6f;
    q = q * b - 0x1.bcfc3ep-4f;
    q = q * b - 0x1.441dc4p-1f;
    q = q * b - 0x1.21317ap0f;
    q = q * b + 0x1.ac92b6p-13f;
    float large = 1.0f - wk_exp_termf(q);
    return wk_with_sign_of(a < 1.0f ? small : large, x);
}

/* ---- Sine and cosine ---- */

/* Largest |x| that the reduction is made for. */
#define WK_TRIG_MAX 0x1p20f

/* sin(a + quadrants * pi / 2) for 0 <= a <= WK_TRIG_MAX. The multiple of pi / 2 is taken off in double: its
 * first part has 33 bits, so that the product with a number of quadrants below 2^20 is exact. */
static inline float wk_trig(float a, uint32_t quadrants)
{
    double t = (double)a * 0x1.45f306dc9c883p-1 + WK_ROUND_F64;
    double k = t - WK_ROUND_F64;
    float r = (float)(((double)a - k * 0x1.921fb544p0) - k * 0x1.0b4611a626331p-34);
    quadrants += (uint32_t)wk_double_bits(t);
    float z = r * r;
    /* sin r = r + r^3 s(r^2), 2^-36.8; cos r = 1 - r^2 / 2 + r^4 c(r^2), 2^-41.3; |r| <= pi / 4. */
    float s = 0x1.6cb728p-19f;
    s = s * z - 0x1.a00f38p-13f;
    s = s * z + 0x1.111108p-7f;
    s = s * z - 0x1.555556p-3f;
    s = r * z * s + r;
    float c = -0x1.2474c8p-22f;
    c = c * z + 0x1.a012cep-16f;
    c = c * z - 0x1.6c16bcp-10f;
    c = c * z + 0x1.555556p-5f;
    c = z * z * c + (1.0f - 0.5f * z);
    return wk_bits_float(wk_float_bits(quadrants & 1 ? c : s) ^ (quadrants & 2) << 30);
}

/* For |x| <= WK_TRIG_MAX, infinity and NaN. See wk_sin_block. */
static inline float wk_sinf(float x)
{
    float y = wk_trig(fabsf(x), 0);
    return wk_bits_float(wk_float_bits(y) ^ (wk_float_bits(x) & 0x80000000));
}

static inline float wk_cosf(float x) { return wk_trig(fabsf(x), 1); }

/* ---- Power ---- */

/* log2 of a positive finite float, in double: with 2^k m = a, s = (m - 1) / (m + 1), log2 m = s p(s^2),
 * 2^-43.5. The exponent becomes a double by way of the low bits of 2^52. */
static inline double wk_log2_double(double a)
{
    const uint64_t sqrt_half = 0x3FE6A09E667F3BCD, bias = 1023ull << 52;
    uint64_t u = wk_double_bits(a) - sqrt_half;
    double k = wk_bits_double(((u + bias) >> 52) | 0x4330000000000000) - (0x1p52 + 1023);
    double m = wk_bits_double((u & 0xFFFFFFFFFFFFF) + sqrt_half);
    double s = (m - 1) / (m + 1), z = s * s;
    double p = 0x1.21b85a251101fp-2;
    p = p * z + 0x1.4794d39ad22b4p-2;
    p = p * z + 0x1.a61a31e8530b7p-2;
    p = p * z + 0x1.2776c28f60464p-1;
    p = p * z + 0x1.ec709dc53fbc9p-1;
    p = p * z + 0x1.71547652b824fp1;
    return s * p + k;
}

/* 2^t for |t| < 1000: 2^-34.5. */
static inline double wk_exp2_double(double t)
{
    double shifted = t + WK_ROUND_F64, r = t - (shifted - WK_ROUND_F64);
    double p = 0x1.fe175558dd997p-17;
    p = p * r + 0x1.446a43b114fap-13;
    p = p * r + 0x1.5d8a71096dfbcp-10;
    p = p * r + 0x1.3b29dc1486e9cp-7;
    p = p * r + 0x1.c6b08aae561a2p-5;
    p = p * r + 0x1.ebfbe0a4f2cbdp-3;
    p = p * r + 0x1.62e42ff116c0dp-1;
    p = p * r + 0x1.ffffffffab9afp-1;
    return p * wk_bits_double((wk_double_bits(shifted) + 1023) << 52);
}

/* x^y = 2^(y log2 |x|) in double, rounded once at the end; then the signs and the special cases of C's
 * pow. The one function here that GCC leaves scalar for SSE2, which has no 64-bit comparison. */
static inline float wk_pow_f32(float x, float y)
{
    float a = fabsf(x);
    double lg = wk_log2_double(a);
    lg = wk_pick_double(a == 0, -INFINITY, lg);
    lg = wk_pick_double(a < INFINITY, lg, a); /* infinity and NaN stay */
    double t = y * lg;
    t = wk_pick_double(t > 200, 200, t);
    t = wk_pick_double(t < -200, -200, t);
    float r = (float)wk_exp2_double(t);
    /* Whether y is an integer, and odd: from 2^24 on all are even, and infinity counts as such. */
    float small_y = wk_pick_float(fabsf(y) < 0x1p24f, y, 0);
    int32_t whole = (int32_t)small_y;
    bool integer = (float)whole == small_y;
    uint32_t sign = wk_float_bits(x) & ((uint32_t)whole & integer) << 31;
    r = wk_bits_float(wk_float_bits(r) | sign);
    r = wk_pick_float((x < 0) & (a < INFINITY) & !integer, NAN, r);
    bool one = (y == 0) | (x == 1.0f) | ((x == -1.0f) & (fabsf(y) == INFINITY));
    return wk_pick_float(one, 1.0f, r);
}

/* ---- Sine and cosine of any float, by blocks ---- */

static inline bool wk_block_exceeds(const float *x, int64_t n, float limit)
{
    int exceeds = 0;
    for (int64_t i = 0; i < n; i++)
        exceeds |= fabsf(x[i]) > limit;
    return exceeds;
}

/* y[i] = sin(x[i]); y may be x. Huge arguments are left to the C library, one by one: what an element
 * becomes does not depend on its neighbours. */
static inline void wk_sin_block(const float *x, float *y, int64_t n)
{
    if (wk_block_exceeds(x, n, WK_TRIG_MAX))
        for (int64_t i = 0; i < n; i++)
            y[i] = fabsf(x[i]) > WK_TRIG_MAX ? sinf(x[i]) : wk_sinf(x[i]);
    else
        for (int64_t i = 0; i < n; i++)
            y[i] = wk_sinf(x[i]);
}

static inline void wk_cos_block(const float *x, float *y, int64_t n)
{
    if (wk_block_exceeds(x, n, WK_TRIG_MAX))
        for (int64_t i = 0; i < n; i++)
            y[i] = fabsf(x[i]) > WK_TRIG_MAX ? cosf(x[i]) : wk_cosf(x[i]);
    else
        for (int64_t i = 0; i < n; i++)
            y[i] = wk_cosf(x[i]);
}

#endif
