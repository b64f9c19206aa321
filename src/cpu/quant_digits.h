/* quant_digits.h: 32 values of x as integers of 24 bits with a scale, for integer instructions (AVX-512 VNNI). An integer is three
 * signed digits to the base 256, which the processor multiplies with weights a byte at a time. */
#ifndef WK_CPU_QUANT_DIGITS_H
#define WK_CPU_QUANT_DIGITS_H

#include "quant.h"

#ifdef __AVX512F__
#define VNNI __attribute__((target("avx512vnni")))
#define VNNI_INLINE QUANT_INLINE VNNI

enum {
    LARGEST = 127 * 65536, /* three digits have it with room for rounding */
    DIGITS = 3,
};

/* 32 values as integers; false when they have no scale, or sums of them, of which minima are taken off, might overflow. */
VNNI_INLINE bool to_integers(const float *x, __m512i v[2], float *scale, float *sum)
{
    const __m512 huge = _mm512_set1_ps(0x1p64f);
    __m512 a = _mm512_loadu_ps(x), b = _mm512_loadu_ps(x + 16), p = _mm512_abs_ps(a), q = _mm512_abs_ps(b);
    bool below = _mm512_cmp_ps_mask(p, huge, _CMP_LT_OQ) == 0xFFFF &&
                 _mm512_cmp_ps_mask(q, huge, _CMP_LT_OQ) == 0xFFFF;
    float top = _mm512_reduce_max_ps(_mm512_max_ps(p, q));
    if (!below || (top > 0 && top < 0x1p-100f))
        return false;
    *scale = top / LARGEST;
    *sum = _mm512_reduce_add_ps(_mm512_add_ps(a, b));
    __m512 by = _mm512_set1_ps(top > 0 ? LARGEST / top : 0);
    v[0] = _mm512_cvtps_epi32(_mm512_mul_ps(a, by));
    v[1] = _mm512_cvtps_epi32(_mm512_mul_ps(b, by));
    return true;
}

/* The lowest digit of each of sixteen; what it leaves stays in v. */
VNNI_INLINE __m128i take_digit(__m512i *v)
{
    __m128i bytes = _mm512_cvtepi32_epi8(*v);
    *v = _mm512_srai_epi32(_mm512_add_epi32(*v, _mm512_set1_epi32(128)), 8);
    return bytes;
}
#endif
#endif
