/* dtype.h: what a dtype is, and conversion of single elements.
 *
 * Every kernel computes in one of three types: float (for f32, f16, bf16), double (f64) and int64_t (all
 * integers: each fits, and cutting a result down to the dtype is exactly the wrapping the contract asks
 * for). So code is written for three types, not for nine dtypes. */
#ifndef WK_CORE_DTYPE_H
#define WK_CORE_DTYPE_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include "wick/core.h"

typedef enum { WK_COMPUTE_F32, WK_COMPUTE_F64, WK_COMPUTE_I64 } wk_compute;

typedef struct {
    const char *name;
    uint8_t bytes; /* of one block */
    uint8_t block; /* elements in a block: 1 for all but the quantised dtypes to come */
    bool is_float, is_signed;
    wk_compute compute;
} wk_dtype_info;

extern const wk_dtype_info wk_dtypes[WK_DTYPE_COUNT];

static inline bool wk_dtype_valid(wk_dtype d) { return (unsigned)d < WK_DTYPE_COUNT; }
static inline bool wk_is_float(wk_dtype d) { return wk_dtypes[d].is_float; }
static inline size_t wk_bytes(wk_dtype d) { return wk_dtypes[d].bytes; }
static inline size_t wk_compute_bytes(wk_compute c) { return c == WK_COMPUTE_F32 ? 4 : 8; }
/* The dtype that holds a compute type as it is. */
static inline wk_dtype wk_compute_dtype(wk_compute c)
{
    return c == WK_COMPUTE_F32 ? WK_F32 : c == WK_COMPUTE_F64 ? WK_F64 : WK_I64;
}

static inline uint32_t wk_float_bits(float f)
{
    uint32_t u;
    memcpy(&u, &f, 4);
    return u;
}

static inline float wk_bits_float(uint32_t u)
{
    float f;
    memcpy(&f, &u, 4);
    return f;
}

static inline uint64_t wk_double_bits(double d)
{
    uint64_t u;
    memcpy(&u, &d, 8);
    return u;
}

static inline double wk_bits_double(uint64_t u)
{
    double d;
    memcpy(&d, &u, 8);
    return d;
}

static inline float wk_bf16_to_f32(uint16_t h) { return wk_bits_float((uint32_t)h << 16); }

/* The bf16 in the upper half, whatever in the lower: to nearest even; a NaN stays a (quiet) NaN. */
static inline uint32_t wk_f32_to_bf16_high(float f)
{
    uint32_t u = wk_float_bits(f), rounded = u + 0x7FFF + ((u >> 16) & 1);
    return f != f ? u | 0x400000 : rounded;
}

/* The two of a word, rounded; what was made of bf16 alone, whose NaN have nothing in the lower half that could carry. */
static inline uint32_t wk_bf16_pair(float low, float high)
{
    uint32_t l = wk_float_bits(low), h = wk_float_bits(high);
    l = (l + 0x7FFF + ((l >> 16) & 1)) >> 16;
    return l | ((h + 0x7FFF + ((h >> 16) & 1)) & 0xFFFF0000);
}

static inline uint16_t wk_f32_to_bf16(float f) { return (uint16_t)(wk_f32_to_bf16_high(f) >> 16); }

static inline float wk_f16_to_f32(uint16_t h)
{
    /* Exponent and fraction moved to their place are the value times 2^-112; the product puts that right for
     * subnormal numbers too. */
    uint32_t sign = (uint32_t)(h & 0x8000) << 16;
    uint32_t rest = (uint32_t)(h & 0x7FFF) << 13;
    uint32_t scaled = wk_float_bits(wk_bits_float(rest) * 0x1p112f);
    return wk_bits_float(sign | (rest >= 0x0F800000 ? rest | 0x7F800000 : scaled));
}

/* To nearest even; overflow gives infinity. */
static inline uint16_t wk_f32_to_f16(float f)
{
    uint32_t u = wk_float_bits(f), sign = (u >> 16) & 0x8000, a = u & 0x7FFFFFFF;
    /* Normal result: rebias and round. Subnormal: adding 0.5 lets the float adder do the rounding. */
    uint32_t normal = (a - 0x38000000 + 0x0FFF + ((a >> 13) & 1)) >> 13;
    uint32_t sub = wk_float_bits(wk_bits_float(a) + 0.5f) - 0x3F000000;
    uint32_t r = a < 0x38800000 ? sub : a >= 0x477FF000 ? 0x7C00 : normal;
    return (uint16_t)(sign | (a > 0x7F800000 ? 0x7E00 : r));
}

/* Rounds once where (float) would round twice: a double that lies on a tie of the target after rounding to
 * float is nudged towards where it came from ("round to odd"). */
static inline float wk_f64_to_f32_odd(double d)
{
    float f = (float)d;
    if ((double)f == d || f != f || isinf(f))
        return f;
    uint32_t u = wk_float_bits(f);
    if (u & 1)
        return f;
    bool grew = fabs((double)f) > fabs(d);
    return wk_bits_float(grew ? u - 1 : u + 1);
}

/* Float to integer: saturates, NaN becomes 0. The bounds are of the integer's own range. */
static inline int64_t wk_saturate(double d, double lo, double hi)
{
    if (d != d)
        return 0;
    if (d <= lo)
        return lo <= -0x1p63 ? INT64_MIN : (int64_t)lo;
    if (d >= hi)
        return hi >= 0x1p63 ? INT64_MAX : (int64_t)hi;
    return (int64_t)d;
}

/* One element as double / int64, and back. For references, file checks and scalars, not for hot loops. */
double wk_load_f64(wk_dtype d, const void *p);
int64_t wk_load_i64(wk_dtype d, const void *p);    /* floats saturate */
void wk_store_f64(wk_dtype d, void *p, double v);  /* integers saturate */
void wk_store_i64(wk_dtype d, void *p, int64_t v); /* integers wrap */

#endif
