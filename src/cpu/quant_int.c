/* quant_int.c: the dot product of one row of x with quantised weights by integer instructions, where the processor has
 * them (AVX-512 VNNI): as exact as one in f32, at twice the speed.
 *
 * Every 32 values of x become integers of 24 bits and a scale; an integer is three signed digits to the base 256, which
 * the processor multiplies with weights a byte at a time. The sums of 4 to 8 products are exact, and become floats. */
#include "quant.h"

#ifdef __AVX512F__
#define VNNI __attribute__((target("avx512vnni")))
#define VNNI_INLINE QUANT_INLINE VNNI

enum { LARGEST = 127 * 65536 }; /* three digits have it with room for rounding */

/* 128 values of x in two parts of 64, in the order in which a format has its weights. A vector of sums has 16 lanes, and
 * lane l the products of bytes 4l to 4l + 3. */
struct quant_group {
    int8_t digit[2][3][64]; /* lowest first */
    int32_t start[3][16];   /* what the sums begin with, for weights that are stored with something added */
    float scale[4], sum[4]; /* of each 32 */
    float unused[8];
};

bool WK_ISA(wk_quant_has_int)(void) { return __builtin_cpu_supports("avx512vnni"); }

/* ---- x ---- */

/* Which sixteen of the 128 go where. */
static const uint8_t order_of[WK_QFORMAT_COUNT][8] = {
    [WK_Q4_0] = {0, 2, 4, 6, 1, 3, 5, 7},
    [WK_Q8_0] = {0, 2, 4, 6, 1, 3, 5, 7},
    [WK_Q4_K] = {0, 1, 4, 5, 2, 3, 6, 7},
    [WK_Q6_K] = {0, 1, 2, 3, 4, 5, 6, 7},
};

static bool to_integers(const float *x, int32_t *v, float *scale, float *sum)
{
    float top = 0, total = 0;
    bool finite = true;
    for (int i = 0; i < 32; i++) {
        top = fabsf(x[i]) > top ? fabsf(x[i]) : top;
        finite &= fabsf(x[i]) <= 0x1.fffffep127f;
        total += x[i];
    }
    if (!finite || (top > 0 && top < 0x1p-100f)) /* what has no scale */
        return false;
    *scale = top / LARGEST;
    *sum = total;
    float by = top > 0 ? LARGEST / top : 0;
    for (int i = 0; i < 32; i++)
        v[i] = (int32_t)lrintf(x[i] * by);
    return true;
}

static void put_digits(int format, const int32_t *v, struct quant_group *g)
{
    memset(g->start, 0, sizeof g->start);
    for (int i = 0; i < 128; i++) {
        int part = i / 64, at = i % 64;
        int32_t rest = v[order_of[format][i / 16] * 16 + i % 16], all = rest;
        for (int d = 0; d < 3; d++) {
            g->digit[part][d][at] = (int8_t)rest;
            if (format == WK_Q8_0)
                g->start[d][at / 4] -= 128 * (int8_t)rest;
            rest = (rest - (int8_t)rest) >> 8;
        }
        if (format == WK_Q4_0)
            g->start[0][at / 4] -= 8 * all;
        if (format == WK_Q6_K)
            g->start[part][at / 4] -= 32 * all;
    }
}

bool WK_ISA(wk_quant_prepare)(int64_t format, const float *x, int64_t groups, struct quant_group *g)
{
    for (int64_t i = 0; i < groups; i++, g++, x += 128) {
        int32_t v[128];
        for (int r = 0; r < 4; r++)
            if (!to_integers(x + 32 * r, v + 32 * r, &g->scale[r], &g->sum[r]))
                return false;
        put_digits((int)format, v, g);
    }
    return true;
}

/* ---- products ---- */

typedef struct {
    __m512i digit[3];
} sums;

VNNI_INLINE sums add_products(sums s, __m512i bytes, const struct quant_group *g, int part)
{
    for (int d = 0; d < 3; d++)
        s.digit[d] = _mm512_dpbusd_epi32(s.digit[d], bytes, _mm512_load_si512(g->digit[part][d]));
    return s;
}

/* For products with less than 8 bits: the sum fits in 32. */
VNNI_INLINE __m512 sum_of(sums s)
{
    __m512i high = _mm512_add_epi32(s.digit[1], _mm512_slli_epi32(s.digit[2], 8));
    return _mm512_cvtepi32_ps(_mm512_add_epi32(s.digit[0], _mm512_slli_epi32(high, 8)));
}

/* Sixteen bytes of four blocks. */
VNNI_INLINE __m512i four_blocks(const uint8_t *p, int bytes)
{
    __m256i low =
        quant_join(_mm_loadu_si128((const __m128i *)p), _mm_loadu_si128((const __m128i *)(p + bytes)));
    p += 2 * bytes;
    __m256i high =
        quant_join(_mm_loadu_si128((const __m128i *)p), _mm_loadu_si128((const __m128i *)(p + bytes)));
    return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

VNNI_INLINE __m512i low_bits(__m512i bytes) { return _mm512_and_si512(bytes, _mm512_set1_epi8(15)); }

/* Lanes 4l to 4l + 3 get number `first + l`. */
VNNI_INLINE __m512 by_four(__m512 v, int first)
{
    __m512i at = _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
    return _mm512_permutexvar_ps(_mm512_add_epi32(at, _mm512_set1_epi32(first)), v);
}

VNNI_INLINE uint16_t half_at(const uint8_t *p) { return (uint16_t)(p[0] | p[1] << 8); }

/* The scales of four blocks times x's, for their lanes. */
VNNI_INLINE __m512 four_scales(const uint8_t *p, int bytes, const struct quant_group *g)
{
    __m128i h = _mm_cvtsi32_si128(half_at(p));
    h = _mm_insert_epi16(h, half_at(p + bytes), 1);
    h = _mm_insert_epi16(h, half_at(p + 2 * bytes), 2);
    h = _mm_insert_epi16(h, half_at(p + 3 * bytes), 3);
    return by_four(_mm512_castps128_ps512(_mm_mul_ps(_mm_cvtph_ps(h), _mm_load_ps(g->scale))), 0);
}

VNNI_INLINE __m512 group_q4_0(const uint8_t *p, const struct quant_group *g, __m512 sum)
{
    __m512i bytes = four_blocks(p + 2, 18), zero = _mm512_setzero_si512();
    sums s = {{_mm512_load_si512(g->start[0]), zero, zero}};
    s = add_products(s, low_bits(bytes), g, 0);
    s = add_products(s, low_bits(_mm512_srli_epi16(bytes, 4)), g, 1);
    return _mm512_fmadd_ps(sum_of(s), four_scales(p, 18, g), sum);
}

VNNI_INLINE __m512 group_q8_0(const uint8_t *p, const struct quant_group *g, __m512 sum)
{
    __m512i flip = _mm512_set1_epi8(-128);
    sums s = {
        {_mm512_load_si512(g->start[0]), _mm512_load_si512(g->start[1]), _mm512_load_si512(g->start[2])}};
    s = add_products(s, _mm512_xor_si512(four_blocks(p + 2, 34), flip), g, 0);
    s = add_products(s, _mm512_xor_si512(four_blocks(p + 18, 34), flip), g, 1);
    __m512 all =
        _mm512_fmadd_ps(_mm512_cvtepi32_ps(s.digit[2]), _mm512_set1_ps(256), _mm512_cvtepi32_ps(s.digit[1]));
    all = _mm512_fmadd_ps(all, _mm512_set1_ps(256), _mm512_cvtepi32_ps(s.digit[0]));
    return _mm512_fmadd_ps(all, four_scales(p, 34, g), sum);
}

/* Two groups: a block. mins: what is to be taken off in the end. */
VNNI_INLINE __m512 block_q4_k(const uint8_t *p, const struct quant_group *g, __m512 sum, __m256 *mins)
{
    uint32_t a = quant_u32(p + 4), b = quant_u32(p + 8), c = quant_u32(p + 12);
    uint64_t scale = (a & 0x3F3F3F3F) | (uint64_t)((c & 0x0F0F0F0F) | (a >> 6 & 0x03030303) << 4) << 32;
    uint64_t min = (b & 0x3F3F3F3F) | (uint64_t)((c >> 4 & 0x0F0F0F0F) | (b >> 6 & 0x03030303) << 4) << 32;
    __m256 s = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_cvtsi64_si128((long long)scale)));
    __m256 m = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_cvtsi64_si128((long long)min)));
    s = _mm256_mul_ps(s, _mm256_set1_ps(quant_f16(p)));
    m = _mm256_mul_ps(m, _mm256_set1_ps(quant_f16(p + 2)));
    *mins = _mm256_fmadd_ps(m, _mm256_setr_m128(_mm_load_ps(g[0].sum), _mm_load_ps(g[1].sum)), *mins);
    s = _mm256_mul_ps(s, _mm256_setr_m128(_mm_load_ps(g[0].scale), _mm_load_ps(g[1].scale)));
    __m512i at = _mm512_setr_epi32(0, 0, 0, 0, 0, 0, 0, 0, 2, 2, 2, 2, 2, 2, 2, 2);
    for (int half = 0; half < 2; half++) {
        __m512i bytes = _mm512_loadu_si512(p + 16 + 64 * half);
        for (int part = 0; part < 2; part++) {
            sums z = {{_mm512_setzero_si512(), _mm512_setzero_si512(), _mm512_setzero_si512()}};
            z = add_products(z, low_bits(part ? _mm512_srli_epi16(bytes, 4) : bytes), g + half, part);
            __m512i run = _mm512_add_epi32(at, _mm512_set1_epi32(4 * half + part));
            sum = _mm512_fmadd_ps(sum_of(z), _mm512_permutexvar_ps(run, _mm512_castps256_ps512(s)), sum);
        }
    }
    return sum;
}

VNNI_INLINE __m512 block_q6_k(const uint8_t *p, const struct quant_group *g, __m512 sum)
{
    __m512 s = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)(p + 192))));
    __m256 by = _mm256_setr_m128(_mm_load_ps(g[0].scale), _mm_load_ps(g[1].scale));
    __m512i twice = _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
    s = _mm512_mul_ps(s, _mm512_set1_ps(quant_f16(p + 208)));
    s = _mm512_mul_ps(s, _mm512_permutexvar_ps(twice, _mm512_castps256_ps512(by)));
    __m512i left = _mm512_setr_epi64(4, 4, 4, 4, 2, 2, 2, 2),
            right = _mm512_setr_epi64(0, 0, 0, 0, 2, 2, 2, 2);
    for (int half = 0; half < 2; half++) {
        __m512i bytes = _mm512_loadu_si512(p + 64 * half), zero = _mm512_setzero_si512();
        __m512i high = _mm512_broadcast_i64x4(_mm256_loadu_si256((const __m256i *)(p + 128 + 32 * half)));
        for (int part = 0; part < 2; part++) {
            __m512i h = part ? _mm512_srlv_epi64(high, right) : _mm512_sllv_epi64(high, left);
            __m512i q = _mm512_or_si512(low_bits(part ? _mm512_srli_epi16(bytes, 4) : bytes),
                                        _mm512_and_si512(h, _mm512_set1_epi8(48)));
            sums z = {{_mm512_load_si512(g[half].start[part]), zero, zero}};
            z = add_products(z, q, g + half, part);
            sum = _mm512_fmadd_ps(sum_of(z), by_four(s, 8 * half + 4 * part), sum);
        }
    }
    return sum;
}

VNNI float WK_ISA(wk_quant_dot_int)(int64_t format, const uint8_t *blocks, int64_t groups,
                                    const struct quant_group *g)
{
    __m512 sum = _mm512_setzero_ps();
    __m256 mins = _mm256_setzero_ps();
    const struct quant_group *end = g + groups;
    if (format == WK_Q4_0)
        for (; g < end; g++, blocks += 4 * 18)
            sum = group_q4_0(blocks, g, sum);
    else if (format == WK_Q8_0)
        for (; g < end; g++, blocks += 4 * 34)
            sum = group_q8_0(blocks, g, sum);
    else if (format == WK_Q4_K)
        for (; g < end; g += 2, blocks += 144)
            sum = block_q4_k(blocks, g, sum, &mins);
    else
        for (; g < end; g += 2, blocks += 210)
            sum = block_q6_k(blocks, g, sum);
    return _mm512_reduce_add_ps(_mm512_sub_ps(sum, _mm512_zextps256_ps512(mins)));
}

size_t WK_ISA(wk_quant_group_bytes)(void) { return sizeof(struct quant_group); }
#else
bool WK_ISA(wk_quant_has_int)(void) { return false; }
size_t WK_ISA(wk_quant_group_bytes)(void) { return 0; }

bool WK_ISA(wk_quant_prepare)(int64_t format, const float *x, int64_t groups, struct quant_group *g)
{
    (void)format, (void)x, (void)groups, (void)g;
    return false;
}

float WK_ISA(wk_quant_dot_int)(int64_t format, const uint8_t *blocks, int64_t groups,
                               const struct quant_group *g)
{
    (void)format, (void)blocks, (void)groups, (void)g;
    return 0;
}
#endif
