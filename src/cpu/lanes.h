/* lanes.h: elementary functions for results that are rounded to bf16, and loops over packed bf16 that use them.
 *
 * Such a result keeps 8 bits: these functions are good to 2^-12.7, and take half the time of those in vmath.h. Formulas
 * are written on wk_lanes, with operators: a vector of floats where the compiler would not find the instructions by
 * itself (those of AVX-512 that scale by powers of two go to the ends of the range and beyond), else a float, in a loop
 * that the compiler vectorises. Infinities, NaN and signed zeros are as in vmath.h. */
#ifndef WK_CPU_LANES_H
#define WK_CPU_LANES_H

#include "core/host.h"
#include "stream.h"
#include "vmath.h"

/* Words of a float, or of two bf16, whose halves are floats but for a shift and a mask, so that nothing is widened or packed. */
#if defined(__AVX512F__) && defined(__AVX512BW__)
typedef __m512 wk_lanes;
typedef __m512i wk_words;
#else
typedef float wk_lanes;
typedef uint32_t wk_words;
#endif
/* Whether they can be written past the cache: they are a line. */
enum { WK_WORDS_STREAM = sizeof(wk_words) == WK_LINE };
/* A loop on f32 that pays for that alone: the compiler makes the same of a plain one. */
#define WK_WIDE_LANES(function) (WK_WORDS_STREAM ? (function) : NULL)

/* ---- What the two kinds of lanes do differently ---- */

#if defined(__AVX512F__) && defined(__AVX512BW__)

/* x, or bound where x is below it; NaN stays. */
static inline wk_lanes wk_lanes_at_least(wk_lanes x, float bound)
{
    return _mm512_max_ps(_mm512_set1_ps(bound), x);
}
/* a / b: 2^-14. */
static inline wk_lanes wk_lanes_over(wk_lanes a, wk_lanes b) { return a * _mm512_rcp14_ps(b); }

static inline wk_words wk_words_load(const void *p) { return _mm512_loadu_si512(p); }
static inline void wk_words_store(void *p, wk_words w, bool stream)
{
    if (stream)
        _mm512_stream_si512(p, w);
    else
        _mm512_storeu_si512(p, w);
}
/* wk_ask where a loop goes by words that are lines: other levels compute as long as memory takes. */
static inline void wk_words_ahead(const void *p, int64_t bytes) { wk_ask(p, bytes); }
/* Asks for the line at p, to be written soon. */
static inline void wk_words_wanted(void *p) { __builtin_prefetch(p, 1, 3); }
static inline wk_lanes wk_words_lanes(wk_words w) { return _mm512_castsi512_ps(w); }
static inline wk_words wk_words_bits(wk_lanes x) { return _mm512_castps_si512(x); }
static inline wk_words wk_words_all(uint32_t bits) { return _mm512_set1_epi32((int)bits); }
static inline wk_words wk_words_left(wk_words w, wk_words by) { return _mm512_sllv_epi32(w, by); }
static inline wk_lanes wk_words_low(wk_words w) { return _mm512_castsi512_ps(_mm512_slli_epi32(w, 16)); }
static inline wk_lanes wk_words_high(wk_words w)
{
    return _mm512_castsi512_ps(_mm512_and_si512(w, _mm512_set1_epi32((int)0xFFFF0000)));
}

/* As wk_bf16_pair, on both halves of a word at once: what is cut off, plus a half less one, plus the last bit kept
 * carries where it rounds up. An average is a sum with its carry. */
static inline wk_words wk_words_of(wk_lanes low, wk_lanes high)
{
    enum { SELECT = 0xCA }; /* a ? b : c, bit by bit */
    __m512i l = _mm512_castps_si512(low), h = _mm512_castps_si512(high);
    __m512i upper = _mm512_set1_epi32((int)0xFFFF0000), last = _mm512_set1_epi16(1);
    __m512i kept = _mm512_ternarylogic_epi32(upper, h, _mm512_srli_epi32(l, 16), SELECT);
    __m512i cut = _mm512_ternarylogic_epi32(upper, _mm512_slli_epi32(h, 16), l, SELECT);
    __m512i half = _mm512_ternarylogic_epi32(last, kept, _mm512_set1_epi16(0x7FFE), SELECT);
    return _mm512_add_epi16(kept, _mm512_srli_epi16(_mm512_avg_epu16(cut, half), 15));
}

/* The same in a third of the time, but away from 0 from halfway between two bf16: for functions that have no such values,
 * or are not good enough to tell. Bytes change places on another port than shifts do. */
static inline wk_words wk_words_near(wk_lanes low, wk_lanes high)
{
    const __mmask64 lower = 0x3333333333333333; /* bytes of the lower halves */
    const __m512i from = _mm512_set4_epi32(0x0F0E, 0x0B0A, 0x0706, 0x0302), half = _mm512_set1_epi32(0x8000);
    __m512i l = _mm512_add_epi32(_mm512_castps_si512(low), half);
    __m512i h = _mm512_add_epi32(_mm512_castps_si512(high), half);
    return _mm512_mask_shuffle_epi8(h, lower, l, from);
}

/* Numbers of any kind, rounded to bf16 in the upper halves. */
static inline wk_words wk_words_rounded(wk_words w)
{
    __m512i last = _mm512_and_si512(_mm512_srli_epi32(w, 16), _mm512_set1_epi32(1));
    __mmask16 nan = _mm512_cmp_ps_mask(wk_words_lanes(w), wk_words_lanes(w), _CMP_UNORD_Q);
    __m512i rounded = _mm512_add_epi32(_mm512_add_epi32(w, _mm512_set1_epi32(0x7FFF)), last);
    return _mm512_mask_or_epi32(rounded, nan, w, _mm512_set1_epi32(0x400000));
}
/* The upper halves of words, and of those after them. */
static inline wk_words wk_words_uppers(wk_words first, wk_words second)
{
    static const uint16_t upper[32] = {1,  3,  5,  7,  9,  11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31,
                                       33, 35, 37, 39, 41, 43, 45, 47, 49, 51, 53, 55, 57, 59, 61, 63};
    return _mm512_permutex2var_epi16(first, _mm512_loadu_si512(upper), second);
}
/* The bf16 of words of f32, and of those after them. */
static inline wk_words wk_words_narrow(wk_words first, wk_words second)
{
    return wk_words_uppers(wk_words_rounded(first), wk_words_rounded(second));
}

#else

static inline wk_lanes wk_lanes_at_least(wk_lanes x, float bound) { return x < bound ? bound : x; }
static inline wk_lanes wk_lanes_over(wk_lanes a, wk_lanes b) { return a / b; }

static inline wk_words wk_words_load(const void *p)
{
    wk_words w;
    memcpy(&w, p, sizeof w);
    return w;
}
static inline void wk_words_store(void *p, wk_words w, bool stream)
{
    (void)stream;
    memcpy(p, &w, sizeof w);
}
static inline void wk_words_ahead(const void *p, int64_t bytes) { (void)p, (void)bytes; }
static inline void wk_words_wanted(void *p) { (void)p; }
static inline wk_lanes wk_words_lanes(wk_words w) { return wk_bits_float(w); }
static inline wk_words wk_words_bits(wk_lanes x) { return wk_float_bits(x); }
static inline wk_words wk_words_all(uint32_t bits) { return bits; }
static inline wk_words wk_words_left(wk_words w, wk_words by) { return w << by; }
static inline wk_lanes wk_words_low(wk_words w) { return wk_bits_float(w << 16); }
static inline wk_lanes wk_words_high(wk_words w) { return wk_bits_float(w & 0xFFFF0000); }
static inline wk_words wk_words_of(wk_lanes low, wk_lanes high) { return wk_bf16_pair(low, high); }
static inline wk_words wk_words_near(wk_lanes low, wk_lanes high)
{
    return (wk_float_bits(low) + 0x8000) >> 16 | ((wk_float_bits(high) + 0x8000) & 0xFFFF0000);
}
static inline wk_words wk_words_uppers(wk_words first, wk_words second)
{
    return first >> 16 | (second & 0xFFFF0000);
}
static inline wk_words wk_words_narrow(wk_words first, wk_words second)
{
    return wk_f32_to_bf16(wk_bits_float(first)) | (wk_words)wk_f32_to_bf16(wk_bits_float(second)) << 16;
}

#endif

/* ---- The functions ---- */

/* 2^x, subnormal results and all: 2^-13.7. What scales in AVX-512 takes the whole part of x by itself. */
#if defined(__AVX512F__) && defined(__AVX512BW__)
static inline wk_lanes wk_lanes_exp2(wk_lanes x)
{
    wk_lanes r = _mm512_reduce_ps(x, _MM_FROUND_TO_NEG_INF); /* x less that */
    wk_lanes q = 0x1.3f96a4p-4f * r + 0x1.cefc4cp-3f;
    q = q * r + 0x1.64444cp-1f;
    return _mm512_scalef_ps(q * r + 0x1.fff632p-1f, x);
}
#else
static inline wk_lanes wk_lanes_exp2(wk_lanes x)
{
    const float *bounds = WK_ISA(wk_exp_bounds);
    x = wk_within(x, bounds[6], bounds[7]);
    float t = x + WK_ROUND_F32, r = x - (t - WK_ROUND_F32);
    int32_t n = (int32_t)(wk_float_bits(t) - wk_float_bits(WK_ROUND_F32)), half = n >> 1;
    wk_lanes q = 0x1.c3f76p-5f * r + 0x1.f0de1ap-3f;
    q = q * r + 0x1.62f31ap-1f;
    return (q * r + 0x1.fff692p-1f) * wk_exp2_int(half) * wk_exp2_int(n - half);
}
#endif

static inline wk_lanes wk_lanes_exp(wk_lanes x) { return wk_lanes_exp2(x * 0x1.715476p0f); }

static inline wk_lanes wk_lanes_silu(wk_lanes x)
{
    return wk_lanes_over(x, 1.0f + wk_lanes_exp2(x * -0x1.715476p0f));
}

/* As wk_geluf, in two halves: the exponent, and what is made of it. */
typedef struct {
    wk_lanes x, u;
} wk_lanes_begun;
static inline wk_lanes_begun wk_lanes_gelu_begin(wk_lanes x)
{
    return (wk_lanes_begun){x, x * ((float)WK_GELU_FIRST + (float)WK_GELU_THIRD * (x * x))};
}
static inline wk_lanes wk_lanes_gelu_end(wk_lanes_begun b)
{
    return wk_lanes_over(b.x, 1.0f + wk_lanes_exp2(b.u));
}
static inline wk_lanes wk_lanes_gelu(wk_lanes x) { return wk_lanes_gelu_end(wk_lanes_gelu_begin(x)); }

/* ---- For results in f32: as in vmath.h, but for the last bit ---- */

#if defined(__AVX512F__) && defined(__AVX512BW__)

/* For -104 and more, NaN, and infinity: what remains of that is NaN, which this instruction scales by 2^infinity to infinity. */
static inline wk_lanes wk_lanes_exp_above(wk_lanes x)
{
    wk_lanes n = (x * 0x1.715476p0f + WK_ROUND_F32) - WK_ROUND_F32;
    wk_lanes r = (x - n * WK_LN2_HI) - n * WK_LN2_LO;
    return _mm512_scalef_ps(WK_EXP_POLY(r), n);
}

/* e^x for x up to 0, or NaN: 2^-22.6, and between 0 and the least normal number where it is below that. x = (16 n + j + r) ln(2) / 16:
 * 2^(j / 16) comes from a table, less the bits that j adds to the exponent when all of 16 n + j is added there, and of e^r four
 * terms will do. */
static inline wk_lanes wk_lanes_exp_term(wk_lanes x)
{
    static const uint32_t powers[16] = {
        0x3F800000, 0x3F7DAAC3, 0x3F7B95C2, 0x3F79C3D3, 0x3F7837F0, 0x3F76F532, 0x3F75FED7, 0x3F75583F,
        0x3F7504F3, 0x3F7508A4, 0x3F75672A, 0x3F76248C, 0x3F7744FD, 0x3F78CCDF, 0x3F7AC0C7, 0x3F7D257D};
    x = wk_lanes_at_least(x, -104);
    wk_lanes t = x * 0x1.715476p4f + WK_ROUND_F32, n = t - WK_ROUND_F32;
    wk_lanes r = (x - n * (WK_LN2_HI / 16)) - n * (WK_LN2_LO / 16);
    wk_words at = wk_words_bits(t), power = _mm512_permutexvar_epi32(at, _mm512_loadu_si512(powers));
    power = _mm512_add_epi32(power, _mm512_slli_epi32(at, 19));
    wk_lanes p = wk_words_lanes(_mm512_max_epi32(power, _mm512_setzero_si512()));
    wk_lanes q = (0x1.555736p-3f * r + 0x1.00022p-1f) * r + 1.0f;
    return p * r * q + p;
}

static inline wk_lanes wk_lanes_exp_f32(wk_lanes x)
{
    return wk_lanes_exp_above(wk_lanes_at_least(_mm512_min_ps(_mm512_set1_ps(89), x), -104)); /* NaN passes */
}

static inline wk_lanes wk_lanes_silu_f32(wk_lanes x) { return x / (1.0f + wk_lanes_exp_f32(-x)); }

static inline wk_lanes wk_lanes_gelu_f32(wk_lanes x)
{
    wk_lanes u = x * ((float)WK_GELU_FIRST + (float)WK_GELU_THIRD * (x * x));
    wk_lanes n = _mm512_roundscale_ps(u, _MM_FROUND_TO_NEAREST_INT), r = u - n;
    return x / (1.0f + _mm512_scalef_ps(WK_EXP2_POLY(r), n));
}

#else

static inline wk_lanes wk_lanes_exp_f32(wk_lanes x) { return wk_expf(x); }
static inline wk_lanes wk_lanes_exp_term(wk_lanes x) { return wk_exp_termf(x); }
static inline wk_lanes wk_lanes_silu_f32(wk_lanes x) { return wk_siluf(x); }
static inline wk_lanes wk_lanes_gelu_f32(wk_lanes x) { return wk_geluf(x); }

#endif

/* ---- Loops over packed bf16 and f32 ---- */

/* A wk_lanes_fn, from a function of words. Vectors of functions with long chains go in twos: their operations wait for each
 * other, and one vector's leave gaps for the other's. The loop asks for the inputs' next lines itself. The last few
 * elements, less than words, go through words of zeros: an element's result does not depend on its place. */
#define WK_LANES_LOOP(name, type, inputs, apply, vectors, ahead) \
    static void name(void *out, const void *const *in, int64_t n, bool stream) \
    { \
        enum { STEP = sizeof(wk_words) / sizeof(type) }; \
        const type *as = in[0], *bs = in[(inputs)-1]; \
        type *ys = out, last[2][STEP] = {{0}}; \
        int64_t whole = n - n % STEP, i = 0, bytes = wk_host_ahead.ahead; \
        for (; WK_WORDS_STREAM && (vectors) == 2 && i + STEP < whole; i += 2 * STEP) { \
            wk_words_ahead(as + i, bytes), wk_words_ahead(as + i + STEP, bytes); \
            if ((inputs) == 2) \
                wk_words_ahead(bs + i, bytes), wk_words_ahead(bs + i + STEP, bytes); \
            wk_words a = wk_words_load(as + i), next = wk_words_load(as + i + STEP); \
            a = apply(a, wk_words_load(bs + i)), next = apply(next, wk_words_load(bs + i + STEP)); \
            wk_words_store(ys + i, a, stream); \
            wk_words_store(ys + i + STEP, next, stream); \
        } \
        WK_INDEPENDENT for (; i < whole; i += STEP) \
        { \
            wk_words_ahead(as + i, bytes); \
            if ((inputs) == 2) \
                wk_words_ahead(bs + i, bytes); \
            wk_words_store(ys + i, apply(wk_words_load(as + i), wk_words_load(bs + i)), stream); \
        } \
        if (whole == n) \
            return; \
        size_t rest = (size_t)(n - whole) * sizeof *ys; \
        memcpy(last[0], as + whole, rest); \
        memcpy(last[1], bs + whole, rest); \
        wk_words_store(last[0], apply(wk_words_load(last[0]), wk_words_load(last[1])), false); \
        memcpy(ys + whole, last[0], rest); \
    }

/* From a function of one, or of two lanes; round is wk_words_of or wk_words_near, vectors how many go together, 1 or 2. */
#define WK_LANES_UNARY(name, function, round, vectors) \
    static inline wk_words name##_words(wk_words a, wk_words unused) \
    { \
        (void)unused; \
        return round(function(wk_words_low(a)), function(wk_words_high(a))); \
    } \
    WK_LANES_LOOP(name, uint16_t, 1, name##_words, vectors, one)

/* The same of a function in two halves, on bf16: where lanes are vectors the second half of some is done beside the first of
 * the next. Its chain of operations, each of which waits for the one before, is longer than what the processor looks ahead. */
#if defined(__AVX512F__) && defined(__AVX512BW__)
#define WK_LANES_HALVES(name, function, round) \
    WK_LANES_UNARY(name##_rest, function, round, 1) \
    static void name(void *out, const void *const *in, int64_t n, bool stream) \
    { \
        enum { STEP = sizeof(wk_words) / sizeof(uint16_t) }; \
        const uint16_t *as = in[0]; \
        uint16_t *ys = out; \
        int64_t whole = n - n % (2 * STEP), bytes = wk_host_ahead.one; \
        wk_lanes_begun v[4] = {{{0}, {0}}}; \
        for (int64_t i = -2 * STEP; i < whole; i += 2 * STEP) { \
            wk_lanes y[4]; \
            UNROLL for (int k = 0; k < 4; k++) y[k] = function##_end(v[k]); \
            int64_t next = i + 2 * STEP < whole ? i + 2 * STEP : 0; \
            UNROLL for (int k = 0; k < 2 && whole > 0; k++) \
            { \
                wk_words_ahead(as + next + k * STEP, bytes); \
                wk_words w = wk_words_load(as + next + k * STEP); \
                v[2 * k] = function##_begin(wk_words_low(w)); \
                v[2 * k + 1] = function##_begin(wk_words_high(w)); \
            } \
            UNROLL for (int k = 0; k < 2 && i >= 0; k++) \
                wk_words_store(ys + i + k * STEP, round(y[2 * k], y[2 * k + 1]), stream); \
        } \
        const void *rest = as + whole; \
        if (whole < n) \
            name##_rest(ys + whole, &rest, n - whole, stream); \
    }
#else
#define WK_LANES_HALVES(name, function, round) WK_LANES_UNARY(name, function, round, 1)
#endif

#define WK_LANES_BINARY(name, function, round, vectors, ahead) \
    static inline wk_words name##_words(wk_words a, wk_words b) \
    { \
        return round(function(wk_words_low(a), wk_words_low(b)), \
                     function(wk_words_high(a), wk_words_high(b))); \
    } \
    WK_LANES_LOOP(name, uint16_t, 2, name##_words, vectors, ahead)

/* The same on f32. */
#define WK_LANES_UNARY_F32(name, function, vectors) \
    static inline wk_words name##_words(wk_words a, wk_words unused) \
    { \
        (void)unused; \
        return wk_words_bits(function(wk_words_lanes(a))); \
    } \
    WK_LANES_LOOP(name, float, 1, name##_words, vectors, one)

#define WK_LANES_BINARY_F32(name, function, vectors, ahead) \
    static inline wk_words name##_words(wk_words a, wk_words b) \
    { \
        return wk_words_bits(function(wk_words_lanes(a), wk_words_lanes(b))); \
    } \
    WK_LANES_LOOP(name, float, 2, name##_words, vectors, ahead)

#endif
