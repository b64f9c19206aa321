/* shares.h: gelu of packed bf16 by arithmetic in f16, 32 elements to a vector, where the processor has it.
 *
 * It is x s(x), where the shares s of x and of -x make one: max(x, 0) - Z(|x|) with Z(t) = t s(-t), which is between 0
 * and 0.2. Z is a parabola on each eighth of [0, 4), of numbers in f16, looked up in registers. Results are within 0.62
 * units of bf16's last place: 0.5 is what rounding takes. From 4 on the function is x, below 2^-14 it is x / 2, and below -4 it
 * has so few values that they are in a table. Which way an element goes depends on itself alone. */
#ifndef WK_CPU_SHARES_H
#define WK_CPU_SHARES_H

#include "lanes.h"

/* Compilers that know the instructions. */
#if defined(__AVX512F__) && defined(__AVX512BW__) && \
    (defined(__clang__) ? __clang_major__ >= 16 : __GNUC__ >= 12)
#define WK_SHARES __attribute__((target("avx512fp16")))

/* For each half of [0, 16) the point that its parabola is about, and the coefficients of -Z from the constant up, all times 4,
 * so that no result is too small for f16. Made by tests/shares.py. */
enum { SHARE_ABOUT, SHARE_C0, SHARE_C1, SHARE_C2, SHARE_ROWS };
typedef uint16_t share_table[SHARE_ROWS][32];
/* The function at the bf16 from -4 down; it is -0 behind them. */
enum { SHARE_TAIL = 192 };

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
static const uint16_t gelu_tail[SHARE_TAIL] = {
    0xB893, 0xB87E, 0xB85A, 0xB83B, 0xB820, 0xB809, 0xB7E9, 0xB7C7, 0xB7A9, 0xB78F, 0xB773, 0xB74D, 0xB72D, 0xB712, 0xB6F5, 0xB6CE,
    0xB6AC, 0xB690, 0xB670, 0xB648, 0xB626, 0xB60A, 0xB5E4, 0xB5BD, 0xB59B, 0xB580, 0xB552, 0xB52C, 0xB50D, 0xB4E5, 0xB4BB, 0xB498,
    0xB476, 0xB447, 0xB421, 0xB401, 0xB3D0, 0xB3A7, 0xB386, 0xB355, 0xB32A, 0xB307, 0xB2D6, 0xB2AA, 0xB286, 0xB253, 0xB226, 0xB202,
    0xB1CC, 0xB19F, 0xB178, 0xB140, 0xB115, 0xB0E7, 0xB0B2, 0xB089, 0xB052, 0xB021, 0xAFF6, 0xAFBB, 0xAF8E, 0xAF58, 0xAF23, 0xAEF7,
    0xAEBA, 0xAE8B, 0xAE51, 0xAE1C, 0xADE8, 0xADAD, 0xAD80, 0xAD3D, 0xAD0B, 0xACCD, 0xAC96, 0xAC5C, 0xAC20, 0xABE9, 0xABA9, 0xAB75,
    0xAB31, 0xAAFE, 0xAAB7, 0xAA83, 0xAA3A, 0xAA05, 0xA9BC, 0xA985, 0xA93C, 0xA904, 0xA8BA, 0xA882, 0xA835, 0xA7FC, 0xA7AF, 0xA772,
    0xA727, 0xA6E5, 0xA69D, 0xA657, 0xA612, 0xA5C7, 0xA587, 0xA536, 0xA4F5, 0xA4A5, 0xA45C, 0xA413, 0xA3C3, 0xA382, 0xA32B, 0xA2E2,
    0xA294, 0xA242, 0xA1FD, 0xA1A5, 0xA156, 0xA10A, 0xA0B2, 0xA065, 0xA012, 0x9FBB, 0x9F6E, 0x9F17, 0x9EBE, 0x9E70, 0x9E17, 0x9DBC,
    0x9D6B, 0x9CB5, 0x9C09, 0x9B4E, 0x9A98, 0x99DD, 0x991F, 0x9861, 0x979D, 0x96D9, 0x9613, 0x9545, 0x9482, 0x93A9, 0x92D8, 0x9208,
    0x9129, 0x904F, 0x8F7A, 0x8E94, 0x8DAE, 0x8CC8, 0x8BE2, 0x8AFD, 0x8A0B, 0x8916, 0x881F, 0x8727, 0x862C, 0x852E, 0x842D, 0x832A,
    0x8224, 0x811B, 0x8048, 0x8011, 0x8004, 0x8001, 0x8000, 0x8000, 0x8000, 0x8000, 0x8000, 0x8000, 0x8000, 0x8000, 0x8000, 0x8000,
    0x8000, 0x8000, 0x8000, 0x8000, 0x8000, 0x8000, 0x8000, 0x8000, 0x8000, 0x8000, 0x8000, 0x8000, 0x8000, 0x8000, 0x8000, 0x8000};
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

/* Of 64 places of a table from k on those that `at` has, where mask says so. */
static inline wk_words share_places(wk_words y, __mmask32 mask, wk_words at, const uint16_t *tail, int k)
{
    __mmask32 here = _mm512_mask_cmplt_epu16_mask(mask, at, _mm512_set1_epi16((short)(k + 64)));
    return _mm512_mask_mov_epi16(
        y, here,
        _mm512_permutex2var_epi16(_mm512_loadu_si512(tail + k), at, _mm512_loadu_si512(tail + k + 32)));
}

/* The same at the others. -infinity has no result. */
static inline wk_words share_ends(wk_words x, const uint16_t *tail)
{
    enum { SIGN_OF_SECOND = 0xF8 }; /* a | (b & c), bit by bit */
    const __m512i sign = _mm512_set1_epi16((short)0x8000), four = _mm512_set1_epi16(0x4080),
                  infinity = _mm512_set1_epi16(0x7F80), smallest = _mm512_set1_epi16(0x0100);
    __m512i size = _mm512_andnot_si512(sign, x), at = _mm512_sub_epi16(size, four);
    __mmask32 negative = _mm512_mask_cmple_epu16_mask(_mm512_movepi16_mask(x), size, infinity);
    __m512i y = _mm512_mask_mov_epi16(x, negative, sign);
    if (_mm512_mask_cmpge_epu16_mask(negative, size, _mm512_set1_epi16(0x4080 + 64))) {
        for (int k = SHARE_TAIL - 64; k > 0; k -= 64) /* six bits of `at` count: the right place comes last */
            y = share_places(y, negative, at, tail, k);
        __mmask32 lowest = _mm512_mask_cmpeq_epi16_mask(negative, size, infinity);
        y = _mm512_mask_mov_epi16(y, lowest, _mm512_set1_epi16(0x7FC0));
    }
    y = share_places(y, negative, at, tail, 0);
    /* Half of what is tiny: subnormal numbers have no exponent to lower. */
    __m512i half = _mm512_avg_epu16(size, _mm512_setzero_si512());
    half =
        _mm512_mask_sub_epi16(half, _mm512_cmpge_epu16_mask(size, smallest), size, _mm512_set1_epi16(0x80));
    half = _mm512_ternarylogic_epi32(half, x, sign, SIGN_OF_SECOND);
    return _mm512_mask_mov_epi16(y, _mm512_cmplt_epu16_mask(size, four), half);
}

/* A wk_lanes_fn. */
WK_SHARES static inline wk_words gelu_shares_words(wk_words x, wk_words unused)
{
    __mmask32 others;
    wk_words y = share_words(x, gelu_table, &others);
    (void)unused;
    if (__builtin_expect(others != 0, 0))
        y = _mm512_mask_mov_epi16(y, others, share_ends(x, gelu_tail));
    return y;
}
WK_SHARES WK_LANES_LOOP(gelu_shares, uint16_t, 1, gelu_shares_words, 2, one)

#else
#define gelu_shares NULL
#endif

#endif
