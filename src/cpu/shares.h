/* shares.h: gelu of packed bf16 by arithmetic in f16, 32 elements to a vector, where the processor has it.
 *
 * It is x s(x), where the shares s of x and of -x make one: max(x, 0) - Z(|x|) with Z(t) = t s(-t), which is between 0
 * and 0.2. Z is a parabola on each eighth of [0, 4), of numbers in f16, looked up in registers. Results are within 0.62
 * units of bf16's last place: 0.5 is what rounding takes. Other arguments, NaN too, go the lanes' way: which way an element goes
 * depends on itself alone. */
#ifndef WK_CPU_SHARES_H
#define WK_CPU_SHARES_H

#include "lanes.h"

/* Compilers that know the instructions. */
#if defined(__AVX512F__) && defined(__AVX512BW__) && \
    (defined(__clang__) ? __clang_major__ >= 16 : __GNUC__ >= 12)
#define WK_HAVE_SHARES 1
#define WK_SHARES __attribute__((target("avx512fp16")))

/* For each half of [0, 16) the point that its parabola is about, and the coefficients of -Z from the constant up, all times 4,
 * so that no result is too small for f16. Made by tests/shares.py. */
enum { SHARE_ABOUT, SHARE_C0, SHARE_C1, SHARE_C2, SHARE_ROWS };
typedef uint16_t share_table[SHARE_ROWS][32];

/* clang-format off */
static const share_table gelu_table = {
    {0x0000, 0x3904, 0x3CDA, 0x3E69, 0x4035, 0x4133, 0x4261, 0x434D, 0x441C, 0x449F, 0x455C, 0x459F, 0x461A, 0x469D, 0x471A, 0x479E,
     0x4812, 0x484E, 0x4890, 0x48CF, 0x490D, 0x495C, 0x499E, 0x49CF, 0x4A0D, 0x4A4D, 0x4A8D, 0x4ACD, 0x4B10, 0x4B4D, 0x4B8D, 0x4BCE},
    {0x8000, 0xB464, 0xB764, 0xB86A, 0xB90A, 0xB95D, 0xB96D, 0xB948, 0xB902, 0xB897, 0xB7BF, 0xB735, 0xB638, 0xB535, 0xB450, 0xB2EE,
     0xB16F, 0xB04B, 0xAE7F, 0xACE2, 0xAB3E, 0xA8D0, 0xA6AE, 0xA505, 0xA2DE, 0xA08B, 0x9DDF, 0x9B6A, 0x9877, 0x957E, 0x926F, 0x8F48},
    {0xB800, 0xB604, 0xB440, 0xB24C, 0xAF7A, 0xAA26, 0x24AC, 0x2B89, 0x2DB9, 0x2F2F, 0x3015, 0x3021, 0x3010, 0x2FA7, 0x2EFE, 0x2E2A,
     0x2D45, 0x2C78, 0x2B48, 0x29D9, 0x289C, 0x26A0, 0x24E3, 0x23A7, 0x2185, 0x1FB4, 0x1D40, 0x1AFA, 0x1870, 0x15B5, 0x1305, 0x102B},
    {0x2E5E, 0x2E2A, 0x2DC8, 0x2D3E, 0x2C95, 0x2BB0, 0x2A24, 0x289C, 0x2656, 0x2380, 0x1E2B, 0x93D5, 0x9E69, 0xA11B, 0xA245, 0xA2D1,
     0xA2DE, 0xA28C, 0xA1FA, 0xA142, 0xA07A, 0x9F64, 0x9DEF, 0x9CA2, 0x9B0A, 0x9935, 0x9780, 0x9541, 0x932A, 0x90C0, 0x8E1E, 0x8BA8},
};
/* clang-format on */

/* A row of a table, an element for each place: the five lowest bits of where. */
WK_SHARES static inline __m512h share_row(const uint16_t *row, __m512i where)
{
    return _mm512_castsi512_ph(_mm512_permutexvar_epi16(where, _mm512_loadu_si512(row)));
}

/* The bf16 of the function at those in x whose size is from 2^-14 to below 4; *others is the rest. What a bf16 has besides
 * its sign, less 2^-14's, is then 11 bits, and in f16 the same but for where they start. */
WK_SHARES static inline wk_words share_words(wk_words x, const share_table table, __mmask32 *others)
{
    const __m512h large = _mm512_castsi512_ph(_mm512_set1_epi16(0x6000)); /* 512: its last bit is a half */
    __m512i steps = _mm512_sub_epi16(x, _mm512_set1_epi16(0x3880));
    *others = _mm512_test_epi16_mask(steps, _mm512_set1_epi16(0x7800));
    __m512h t = _mm512_castsi512_ph(_mm512_add_epi16(_mm512_slli_epi16(steps, 3), _mm512_set1_epi16(0x0C00)));
    __m512i where =
        _mm512_castph_si512(_mm512_add_round_ph(t, large, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC));
    __m512h f = _mm512_sub_ph(t, share_row(table[SHARE_ABOUT], where));
    __m512h p = _mm512_fmadd_ph(share_row(table[SHARE_C2], where), f, share_row(table[SHARE_C1], where));
    __m512h first = share_row(table[SHARE_C0], where);
    __mmask32 positive = _mm512_testn_epi16_mask(x, _mm512_set1_epi16((short)0x8000));
    first = _mm512_mask_add_ph(first, positive, first, t);
    /* An eighth of its bits, rounded, is a bf16 with its exponent and its sign elsewhere. */
    __m512i y = _mm512_castph_si512(_mm512_fmadd_ph(p, f, first));
    y = _mm512_and_si512(_mm512_mulhrs_epi16(y, _mm512_set1_epi16(0x1000)), _mm512_set1_epi16((short)0x8FFF));
    return _mm512_add_epi16(y, _mm512_set1_epi16(0x3700));
}

/* A wk_lanes_fn from a table and a function of words for the rest, which is seldom called. */
#define WK_SHARES_UNARY(name, table, otherwise) \
    static __attribute__((noinline)) wk_words name##_others(wk_words x) { return otherwise(x, x); } \
    WK_SHARES static inline wk_words name##_words(wk_words x, wk_words unused) \
    { \
        __mmask32 others; \
        wk_words y = share_words(x, table, &others); \
        (void)unused; \
        if (__builtin_expect(others != 0, 0)) \
            y = _mm512_mask_mov_epi16(y, others, name##_others(x)); \
        return y; \
    } \
    WK_SHARES WK_LANES_LOOP(name, uint16_t, 1, name##_words, 2)

#else
#define WK_HAVE_SHARES 0
#endif

#endif
