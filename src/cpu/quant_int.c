/* quant_int.c: the dot product of one row of x with quantised weights by integer instructions, where the processor has
 * them (AVX-512 VNNI): as exact as one in f32, at twice the speed.
 *
 * The sums of 4 to 8 products of x's integers (quant_digits.h) with weights are exact, and become floats. */
#include "quant_digits.h"

#ifdef __AVX512F__
enum {
    GROUP = 128,
    AHEAD = 2048, /* bytes of a row that are asked for before they are needed */
};

bool WK_ISA(wk_quant_has_int)(void) { return __builtin_cpu_supports("avx512vnni"); }

/* How many vectors the sums of a group begin with, for weights that are stored with something added: one for all digits
 * together, or one for each. */
QUANT_INLINE int starts_of(int format) { return format == WK_Q8_0 ? DIGITS : format == WK_Q4_K ? 0 : 1; }

/* ---- x ---- */

/* A group is 128 values in two parts of 64; a vector of sums has 16 lanes, and lane l the products of bytes 4l to 4l + 3 of
 * both parts. Values are in the order in which a format's weights come into registers, so that a lane has weights of one
 * scale: where unit u of 8, of the 32 in two groups, goes. */
static int place_of(int format, int u)
{
    int sixteen = u / 2, half = u % 2;
    if (format == WK_Q4_K) /* runs 0, 2, 4, 6 are low bits, the others high ones; a part has a half of each */
        return 2 * (sixteen / 2 % 2 * 8 + sixteen % 2 * 4 + sixteen / 4) + half;
    if (format == WK_Q6_K) /* a part has a half of each sixteen, low bits and high ones in turns */
        return u / 16 * 16 + half * 8 + sixteen % 4 * 2 + sixteen / 4 % 2;
    return u / 16 * 16 + 2 * (sixteen % 2 * 4 + sixteen % 8 / 2) +
           half; /* first halves of four blocks, then last ones */
}

typedef struct {
    __m512i digit[DIGITS]; /* lowest first */
} sums;

VNNI_INLINE __m512i digits_at(const quant_x *x, int64_t group, int part, int digit)
{
    return _mm512_load_si512(x->digits + ((group * 2 + part) * DIGITS + digit) * 64);
}

VNNI_INLINE __m512i start_at(int format, const quant_x *x, int64_t group, int i)
{
    return _mm512_load_si512(x->start + (group * starts_of(format) + i) * 16);
}

VNNI_INLINE sums add_products(sums s, __m512i bytes, const quant_x *x, int64_t group, int part)
{
    for (int d = 0; d < DIGITS; d++)
        s.digit[d] = _mm512_dpbusd_epi32(s.digit[d], bytes, digits_at(x, group, part, d));
    return s;
}

/* The sum over all digits, of products with less than 8 bits: it fits in 32, so that what higher digits give goes into the
 * products of lower ones. */
VNNI_INLINE __m512i products_of(__m512i first, __m512i last, const quant_x *x, int64_t group)
{
    __m512i s = _mm512_setzero_si512();
    for (int d = DIGITS - 1; d >= 0; d--) {
        s = _mm512_dpbusd_epi32(_mm512_slli_epi32(s, 8), first, digits_at(x, group, 0, d));
        s = _mm512_dpbusd_epi32(s, last, digits_at(x, group, 1, d));
    }
    return s;
}

/* Sixteen integers, which go to two places of a pair of groups. */
VNNI_INLINE void put_digits(__m512i v, int first, int second, int8_t *digits)
{
    int8_t *a = digits + first / 8 * DIGITS * 64 + first % 8 * 8;
    int8_t *b = digits + second / 8 * DIGITS * 64 + second % 8 * 8;
    for (int d = 0; d < DIGITS; d++) {
        __m128i bytes = take_digit(&v);
        _mm_storel_epi64((__m128i *)(a + 64 * d), bytes);
        _mm_storel_epi64((__m128i *)(b + 64 * d), _mm_unpackhi_epi64(bytes, bytes));
    }
}

/* The sums for weights that are what was added, with the other sign. */
VNNI_INLINE void put_start(int format, const quant_x *x, int64_t group, int32_t *start)
{
    const int added = format == WK_Q4_0 ? 8 : format == WK_Q8_0 ? 128 : 32;
    __m512i bytes = _mm512_set1_epi8((char)added), zero = _mm512_setzero_si512();
    if (format == WK_Q4_0 || format == WK_Q6_K)
        _mm512_store_si512(start, _mm512_sub_epi32(zero, products_of(bytes, bytes, x, group)));
    if (format != WK_Q8_0)
        return;
    sums s = {{zero, zero, zero}};
    s = add_products(add_products(s, bytes, x, group, 0), bytes, x, group, 1);
    for (int d = 0; d < DIGITS; d++)
        _mm512_store_si512(start + 16 * d, _mm512_sub_epi32(zero, s.digit[d]));
}

size_t WK_ISA(wk_quant_x_bytes)(int64_t format, int64_t groups)
{
    size_t of_group = 2 * DIGITS * 64 + (size_t)starts_of((int)format) * 64 + 8 * sizeof(float);
    return (size_t)groups * of_group;
}

VNNI bool WK_ISA(wk_quant_prepare)(int64_t format, const float *values, int64_t groups, void *room,
                                   quant_x *x)
{
    const int64_t bytes = 2 * DIGITS * 64, starts = starts_of((int)format) * 16;
    int8_t *digits = room;
    int32_t *start = (int32_t *)(digits + groups * bytes);
    float *scale = (float *)(start + groups * starts), *sum = scale + groups * 4;
    uint8_t place[32];
    for (int u = 0; u < 32; u++)
        place[u] = (uint8_t)place_of((int)format, u);
    for (int64_t r = 0; r < groups * 4; r++) {
        int8_t *to = digits + r / 8 * 2 * bytes;
        const uint8_t *at = place + r % 8 * 4;
        __m512i v[2];
        if (!to_integers(values + 32 * r, v, scale + r, sum + r))
            return false;
        put_digits(v[0], at[0], at[1], to);
        put_digits(v[1], at[2], at[3], to);
    }
    *x = (quant_x){digits, start, scale, sum};
    for (int64_t g = 0; g < groups; g++)
        put_start((int)format, x, g, start + g * starts);
    return true;
}

/* ---- products ---- */

/* What has been summed of a row; mins: what is to be taken off in the end. */
typedef struct {
    __m512 sum;
    __m256 mins;
} total;

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
VNNI_INLINE __m512 four_scales(const uint8_t *p, int bytes, const float *scale)
{
    __m128i h = _mm_cvtsi32_si128(half_at(p));
    h = _mm_insert_epi16(h, half_at(p + bytes), 1);
    h = _mm_insert_epi16(h, half_at(p + 2 * bytes), 2);
    h = _mm_insert_epi16(h, half_at(p + 3 * bytes), 3);
    return by_four(_mm512_castps128_ps512(_mm_mul_ps(_mm_cvtph_ps(h), _mm_loadu_ps(scale))), 0);
}

/* The f16 numbers that stand `bytes` apart in the 128 bytes from p on, eight at most. */
VNNI_INLINE __m128i halves_of(const uint8_t *p, int bytes)
{
    const short n = (short)(bytes / 2);
    __m128i at = _mm_setr_epi16(0, n, (short)(2 * n), (short)(3 * n), (short)(4 * n), (short)(5 * n),
                                (short)(6 * n), (short)(7 * n));
    return _mm512_castsi512_si128(_mm512_permutex2var_epi16(_mm512_loadu_si512(p), _mm512_castsi128_si512(at),
                                                            _mm512_loadu_si512(p + 64)));
}

VNNI_INLINE __m512 group_q4_0(const uint8_t *p, const quant_x *x, int64_t g, __m512 scales, __m512 sum)
{
    __m512i bytes = four_blocks(p + 2, 18);
    __m512i s = products_of(low_bits(bytes), low_bits(_mm512_srli_epi16(bytes, 4)), x, g);
    s = _mm512_add_epi32(s, start_at(WK_Q4_0, x, g, 0));
    return _mm512_fmadd_ps(_mm512_cvtepi32_ps(s), scales, sum);
}

VNNI_INLINE __m512 pair_q4_0(const uint8_t *p, const quant_x *x, int64_t g, __m512 sum)
{
    __m256 scales = _mm256_mul_ps(_mm256_cvtph_ps(halves_of(p, 18)), _mm256_loadu_ps(x->scale + 4 * g));
    sum = group_q4_0(p, x, g, by_four(_mm512_castps256_ps512(scales), 0), sum);
    return group_q4_0(p + 72, x, g + 1, by_four(_mm512_castps256_ps512(scales), 4), sum);
}

VNNI_INLINE __m512 group_q8_0(const uint8_t *p, const quant_x *x, int64_t g, __m512 sum)
{
    __m512i flip = _mm512_set1_epi8(-128);
    __m512 f[DIGITS];
    sums s = {{start_at(WK_Q8_0, x, g, 0), start_at(WK_Q8_0, x, g, 1), start_at(WK_Q8_0, x, g, 2)}};
    s = add_products(s, _mm512_xor_si512(four_blocks(p + 2, 34), flip), x, g, 0);
    s = add_products(s, _mm512_xor_si512(four_blocks(p + 18, 34), flip), x, g, 1);
    for (int d = 0; d < DIGITS; d++)
        f[d] = _mm512_cvtepi32_ps(s.digit[d]);
    __m512 all = _mm512_fmadd_ps(f[2], _mm512_set1_ps(256), f[1]);
    all = _mm512_fmadd_ps(all, _mm512_set1_ps(256), f[0]);
    __m128 scales = _mm_mul_ps(_mm_cvtph_ps(halves_of(p, 34)), _mm_loadu_ps(x->scale + 4 * g));
    return _mm512_fmadd_ps(all, by_four(_mm512_castps128_ps512(scales), 0), sum);
}

/* f16 number i of the four at p, in all lanes. */
VNNI_INLINE __m256 one_of_four(const uint8_t *p, int i)
{
    __m128 four = _mm_cvtph_ps(_mm_loadl_epi64((const __m128i *)p));
    return _mm256_permutevar8x32_ps(_mm256_castps128_ps256(four), _mm256_set1_epi32(i));
}

VNNI_INLINE total block_q4_k(const uint8_t *p, const quant_x *x, int64_t g, total t)
{
    uint32_t a = quant_u32(p + 4), b = quant_u32(p + 8), c = quant_u32(p + 12);
    uint64_t scale = (a & 0x3F3F3F3F) | (uint64_t)((c & 0x0F0F0F0F) | (a >> 6 & 0x03030303) << 4) << 32;
    uint64_t min = (b & 0x3F3F3F3F) | (uint64_t)((c >> 4 & 0x0F0F0F0F) | (b >> 6 & 0x03030303) << 4) << 32;
    __m256 s = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_cvtsi64_si128((long long)scale)));
    __m256 m = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_cvtsi64_si128((long long)min)));
    s = _mm256_mul_ps(s, one_of_four(p, 0));
    m = _mm256_mul_ps(m, one_of_four(p, 1));
    t.mins = _mm256_fmadd_ps(m, _mm256_loadu_ps(x->sum + 4 * g), t.mins);
    s = _mm256_mul_ps(s, _mm256_loadu_ps(x->scale + 4 * g));
    __m512i low = _mm512_loadu_si512(p + 16), high = _mm512_loadu_si512(p + 80);
    __m512i first = _mm512_shuffle_i64x2(low, high, 0x88), last = _mm512_shuffle_i64x2(low, high, 0xDD);
    for (int odd = 0; odd < 2; odd++) {
        __m512i even_runs = _mm512_setr_epi32(0, 0, 0, 0, 2, 2, 2, 2, 4, 4, 4, 4, 6, 6, 6, 6);
        __m512i run = _mm512_add_epi32(even_runs, _mm512_set1_epi32(odd));
        __m512i z = products_of(low_bits(odd ? _mm512_srli_epi16(first, 4) : first),
                                low_bits(odd ? _mm512_srli_epi16(last, 4) : last), x, g + odd);
        __m512 scales = _mm512_permutexvar_ps(run, _mm512_castps256_ps512(s));
        t.sum = _mm512_fmadd_ps(_mm512_cvtepi32_ps(z), scales, t.sum);
    }
    return t;
}

/* Six bits: the low four of `low`, two of `high` above them. */
VNNI_INLINE __m512i six_bits(__m512i low, __m512i high)
{
    enum { WHERE_FIRST_IS_SET = 0xCA }; /* the second, otherwise the third */
    __m512i q = _mm512_ternarylogic_epi32(_mm512_set1_epi8(15), low, high, WHERE_FIRST_IS_SET);
    return _mm512_and_si512(q, _mm512_set1_epi8(63));
}

VNNI_INLINE __m512 block_q6_k(const uint8_t *p, const quant_x *x, int64_t g, __m512 sum)
{
    __m512 s = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)(p + 192))));
    __m512i twice = _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
    s = _mm512_mul_ps(s, _mm512_set1_ps(quant_f16(p + 208)));
    __m512 by = _mm512_castps256_ps512(_mm256_loadu_ps(x->scale + 4 * g));
    s = _mm512_mul_ps(s, _mm512_permutexvar_ps(twice, by));
    __m512i left = _mm512_setr_epi64(4, 4, 4, 4, 2, 2, 2, 2),
            right = _mm512_setr_epi64(0, 0, 0, 0, 2, 2, 2, 2);
    for (int half = 0; half < 2; half++) {
        __m512i bytes = _mm512_loadu_si512(p + 64 * half);
        __m512i high = _mm512_broadcast_i64x4(_mm256_loadu_si256((const __m256i *)(p + 128 + 32 * half)));
        __m512i a = six_bits(bytes, _mm512_sllv_epi64(high, left));
        __m512i b = six_bits(_mm512_srli_epi16(bytes, 4), _mm512_srlv_epi64(high, right));
        __m512i at = _mm512_setr_epi32(0, 0, 4, 4, 1, 1, 5, 5, 2, 2, 6, 6, 3, 3, 7, 7);
        __m512i z = products_of(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b), x, g + half);
        z = _mm512_add_epi32(z, start_at(WK_Q6_K, x, g + half, 0));
        __m512 scales = _mm512_permutexvar_ps(_mm512_add_epi32(at, _mm512_set1_epi32(8 * half)), s);
        sum = _mm512_fmadd_ps(_mm512_cvtepi32_ps(z), scales, sum);
    }
    return sum;
}

/* ---- rows ---- */

/* Two groups. */
VNNI_INLINE total add_pair(int format, const uint8_t *p, const quant_x *x, int64_t g, total t)
{
    if (format == WK_Q4_K)
        return block_q4_k(p, x, g, t);
    if (format == WK_Q6_K)
        t.sum = block_q6_k(p, x, g, t.sum);
    else if (format == WK_Q4_0)
        t.sum = pair_q4_0(p, x, g, t.sum);
    else
        t.sum = group_q8_0(p + 4 * 34, x, g + 1, group_q8_0(p, x, g, t.sum));
    return t;
}

/* The last of an odd number, which formats with blocks of 32 can have. */
VNNI_INLINE float finish(int format, const uint8_t *p, const quant_x *x, int64_t g, bool odd, total t)
{
    if (odd && format == WK_Q4_0)
        t.sum = group_q4_0(p, x, g, four_scales(p, 18, x->scale + 4 * g), t.sum);
    else if (odd && format == WK_Q8_0)
        t.sum = group_q8_0(p, x, g, t.sum);
    return _mm512_reduce_add_ps(_mm512_sub_ps(t.sum, _mm512_zextps256_ps512(t.mins)));
}

/* One row, or four that are `far` bytes apart. */
VNNI_INLINE void dot(int format, bool four, const uint8_t *p, int64_t far, int64_t groups, const quant_x *x,
                     float *y, int64_t y_far)
{
    const int64_t bytes = 2 * GROUP / wk_qformats[format].block * wk_qformats[format].bytes;
    const total none = {_mm512_setzero_ps(), _mm256_setzero_ps()};
    total a = none, b = none, c = none, d = none;
    int64_t g = 0;
    for (; g + 2 <= groups; g += 2, p += bytes) {
        for (int64_t i = 0; i < bytes; i += 64)
            for (int r = 0; r < (four ? 4 : 1); r++)
                __builtin_prefetch(p + r * far + AHEAD + i, 0, 3);
        a = add_pair(format, p, x, g, a);
        if (four) {
            b = add_pair(format, p + far, x, g, b);
            c = add_pair(format, p + 2 * far, x, g, c);
            d = add_pair(format, p + 3 * far, x, g, d);
        }
    }
    y[0] = finish(format, p, x, g, g < groups, a);
    if (four) {
        y[y_far] = finish(format, p + far, x, g, g < groups, b);
        y[2 * y_far] = finish(format, p + 2 * far, x, g, g < groups, c);
        y[3 * y_far] = finish(format, p + 3 * far, x, g, g < groups, d);
    }
}

/* Four rows at a time share what is read of x. They are far apart: the processor reads ahead in each of them, but not in
 * neighbours that lie in a page; nor does it read ahead far enough for blocks of 8 bits. */
VNNI_INLINE void dot_rows(int format, const uint8_t *p, int64_t pitch, int64_t rows, int64_t groups,
                          const quant_x *x, float *y)
{
    int64_t part = rows / 4;
    for (int64_t j = 0; j < part; j++)
        dot(format, true, p + j * pitch, part * pitch, groups, x, y + j, part);
    for (int64_t j = 4 * part; j < rows; j++)
        dot(format, false, p + j * pitch, 0, groups, x, y + j, 0);
}

VNNI void WK_ISA(wk_quant_dot_int)(int64_t format, const uint8_t *blocks, int64_t pitch, int64_t rows,
                                   int64_t groups, const quant_x *x, float *y)
{
    switch (format) {
    case WK_Q4_0: dot_rows(WK_Q4_0, blocks, pitch, rows, groups, x, y); break;
    case WK_Q8_0: dot_rows(WK_Q8_0, blocks, pitch, rows, groups, x, y); break;
    case WK_Q4_K: dot_rows(WK_Q4_K, blocks, pitch, rows, groups, x, y); break;
    default: dot_rows(WK_Q6_K, blocks, pitch, rows, groups, x, y);
    }
}
#else
bool WK_ISA(wk_quant_has_int)(void) { return false; }
size_t WK_ISA(wk_quant_x_bytes)(int64_t format, int64_t groups) { return (void)format, (void)groups, 0; }

bool WK_ISA(wk_quant_prepare)(int64_t format, const float *values, int64_t groups, void *room, quant_x *x)
{
    (void)format, (void)values, (void)groups, (void)room, (void)x;
    return false;
}

void WK_ISA(wk_quant_dot_int)(int64_t format, const uint8_t *blocks, int64_t pitch, int64_t rows,
                              int64_t groups, const quant_x *x, float *y)
{
    (void)format, (void)blocks, (void)pitch, (void)rows, (void)groups, (void)x, (void)y;
}
#endif
