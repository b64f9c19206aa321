/* quant.h: what the CPU's files of quantised weights share: weights of a block, 32 at a time. */
#ifndef WK_CPU_QUANT_H
#define WK_CPU_QUANT_H

#include "ops/quant.h"
#include "isa.h"
#include "stream.h"
#ifdef __AVX2__
#include <immintrin.h>
#endif

#define QUANT_INLINE static inline __attribute__((always_inline))

enum {
    QUANT_RUN = 32,
    QUANT_LANES = WK_VEC_BYTES / 4,
    QUANT_VECS = QUANT_RUN / QUANT_LANES,
    QUANT_BLOCK = 256
};

typedef float qvec __attribute__((vector_size(WK_VEC_BYTES)));
typedef float uqvec __attribute__((vector_size(WK_VEC_BYTES), aligned(4), may_alias));

/* A weight is scale[i / 16] * q - min[i / 32]; all of these are exact in f32. */
typedef struct {
    float scale[QUANT_BLOCK / 16], min[QUANT_BLOCK / 32];
} quant_scales;

QUANT_INLINE int64_t quant_runs_of(int64_t format) { return format == WK_Q4_0 || format == WK_Q8_0 ? 1 : 8; }

QUANT_INLINE uint32_t quant_u32(const uint8_t *p)
{
    uint32_t u;
    memcpy(&u, p, sizeof u);
    return u;
}

QUANT_INLINE float quant_f16(const uint8_t *p)
{
#ifdef __F16C__
    return _cvtsh_ss((uint16_t)(p[0] | p[1] << 8));
#else
    return wk_quant_f16(p);
#endif
}

QUANT_INLINE void quant_read_scales(int format, const uint8_t *block, quant_scales *s)
{
    float d = quant_f16(block + wk_qformats[format].scale_at[0]);
    if (format == WK_Q4_0 || format == WK_Q8_0) {
        s->scale[0] = s->scale[1] = d;
    } else if (format == WK_Q6_K) {
        for (int i = 0; i < 16; i++)
            s->scale[i] = d * (float)(int8_t)block[192 + i];
    } else {
        float least = quant_f16(block + 2);
        uint32_t a = quant_u32(block + 4), b = quant_u32(block + 8), c = quant_u32(block + 12);
        uint32_t scale[2] = {a & 0x3F3F3F3F, (c & 0x0F0F0F0F) | (a >> 6 & 0x03030303) << 4};
        uint32_t min[2] = {b & 0x3F3F3F3F, (c >> 4 & 0x0F0F0F0F) | (b >> 6 & 0x03030303) << 4};
        for (int i = 0; i < 8; i++) {
            s->scale[2 * i] = s->scale[2 * i + 1] = d * (float)(scale[i / 4] >> (i % 4 * 8) & 63);
            s->min[i] = least * (float)(min[i / 4] >> (i % 4 * 8) & 63);
        }
    }
}

/* ---- The numbers q of run r, 32 of them ---- */

#ifdef __AVX2__
typedef __m256i quant_run;

QUANT_INLINE quant_run quant_join(__m128i low, __m128i high)
{
    return _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
}

QUANT_INLINE quant_run quant_nibbles(quant_run bytes, int high)
{
    return _mm256_and_si256(high ? _mm256_srli_epi16(bytes, 4) : bytes, _mm256_set1_epi8(15));
}

QUANT_INLINE quant_run quant_read_run(int format, const uint8_t *block, int r)
{
    if (format == WK_Q4_0) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)(block + 2));
        quant_run q = quant_nibbles(quant_join(bytes, _mm_srli_epi16(bytes, 4)), 0);
        return _mm256_sub_epi8(q, _mm256_set1_epi8(8));
    }
    if (format == WK_Q8_0)
        return _mm256_loadu_si256((const __m256i *)(block + 2));
    if (format == WK_Q4_K)
        return quant_nibbles(_mm256_loadu_si256((const __m256i *)(block + 16 + r / 2 * 32)), r % 2);
    const uint8_t *low = block + r / 4 * 64 + r % 2 * 32, *high = block + 128 + r / 4 * 32;
    quant_run h = _mm256_loadu_si256((const __m256i *)high);
    h = r % 4 < 2 ? _mm256_slli_epi16(h, 4 - r % 4 * 2) : _mm256_srli_epi16(h, r % 4 * 2 - 4);
    quant_run q = _mm256_or_si256(quant_nibbles(_mm256_loadu_si256((const __m256i *)low), r % 4 / 2),
                                  _mm256_and_si256(h, _mm256_set1_epi8(48)));
    return _mm256_sub_epi8(q, _mm256_set1_epi8(32));
}

/* Sixteen of them as floats. */
QUANT_INLINE void quant_floats(quant_run q, int half, qvec *v)
{
    __m128i bytes = half ? _mm256_extracti128_si256(q, 1) : _mm256_castsi256_si128(q);
#ifdef __AVX512F__
    v[0] = (qvec)_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes));
#else
    v[0] = (qvec)_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes));
    v[1] = (qvec)_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(bytes, 8)));
#endif
}
#else
typedef struct {
    int8_t v[QUANT_RUN];
} quant_run;

QUANT_INLINE quant_run quant_read_run(int format, const uint8_t *block, int r)
{
    quant_run q;
    for (int i = 0; i < QUANT_RUN; i++) {
        if (format == WK_Q4_0)
            q.v[i] = (int8_t)((i < 16 ? block[2 + i] & 15 : block[2 + i - 16] >> 4) - 8);
        else if (format == WK_Q8_0)
            q.v[i] = (int8_t)block[2 + i];
        else if (format == WK_Q4_K)
            q.v[i] = (int8_t)(block[16 + r / 2 * 32 + i] >> (r % 2 * 4) & 15);
        else
            q.v[i] = (int8_t)(((block[r / 4 * 64 + r % 2 * 32 + i] >> (r % 4 / 2 * 4) & 15) |
                               (block[128 + r / 4 * 32 + i] >> (r % 4 * 2) & 3) << 4) -
                              32);
    }
    return q;
}

QUANT_INLINE void quant_floats(quant_run q, int half, qvec *v)
{
    float lanes[16];
    for (int i = 0; i < 16; i++)
        lanes[i] = q.v[16 * half + i];
    memcpy(v, lanes, sizeof lanes);
}
#endif

/* ---- Weights ---- */

#ifdef __AVX512F__
/* Sixteen half bytes choose among the sixteen weights there can be. */
QUANT_INLINE qvec quant_choose(const uint8_t *bytes, int high, __m512 weights)
{
    __m512i q = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)bytes));
    return (qvec)_mm512_permutexvar_ps(high ? _mm512_srli_epi32(q, 4) : q, weights);
}

QUANT_INLINE __m512 quant_count(float first)
{
    return _mm512_add_ps(_mm512_set1_ps(first),
                         _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
}
#endif

/* Run r of a block. */
QUANT_INLINE void quant_weights(int format, const uint8_t *block, const quant_scales *s, int r, qvec *w)
{
#ifdef __AVX512F__
    if (format == WK_Q4_0) {
        __m512 weights = _mm512_mul_ps(_mm512_set1_ps(s->scale[0]), quant_count(-8));
        w[0] = quant_choose(block + 2, 0, weights);
        w[1] = quant_choose(block + 2, 1, weights);
        return;
    }
    if (format == WK_Q4_K) {
        __m512 weights =
            _mm512_fmsub_ps(_mm512_set1_ps(s->scale[2 * r]), quant_count(0), _mm512_set1_ps(s->min[r]));
        w[0] = quant_choose(block + 16 + r / 2 * 32, r % 2, weights);
        w[1] = quant_choose(block + 16 + r / 2 * 32 + 16, r % 2, weights);
        return;
    }
#endif
    quant_run q = quant_read_run(format, block, r);
    for (int half = 0; half < 2; half++) {
        qvec *v = w + half * QUANT_VECS / 2;
        quant_floats(q, half, v);
        for (int i = 0; i < QUANT_VECS / 2; i++)
            v[i] = format == WK_Q4_K ? v[i] * s->scale[2 * r] - s->min[r] : v[i] * s->scale[2 * r + half];
    }
}

/* ---- What quant_dot.c has ---- */

/* Weights of `blocks` blocks as f32. */
void WK_ISA(wk_quant_unpack)(int64_t format, const uint8_t *blocks, int64_t n, float *dst);
/* The same in f64. */
void WK_ISA(wk_quant_unpack_f64)(int64_t format, const uint8_t *blocks, int64_t n, double *dst);

enum { WK_QUANT_THIN = 4 };
/* y[i] = x[i * ldx ..] . the weights of n blocks, for m (at most WK_QUANT_THIN) rows of x. */
void WK_ISA(wk_quant_dot)(int64_t format, const uint8_t *blocks, int64_t n, const float *x, int64_t ldx,
                          int m, float *y);

/* ---- What quant_int.c has: few rows of x by integer instructions, one at a time ---- */

/* A row of x as integers, in groups of 128 values. */
typedef struct {
    const int8_t *digits;
    const int32_t *start;
    const float *scale, *sum; /* of each 32 */
} quant_x;

/* Whether this processor has them; what follows is for then. */
bool WK_ISA(wk_quant_has_int)(void);
size_t WK_ISA(wk_quant_x_bytes)(int64_t format, int64_t groups);
/* x in `room`, of so many bytes and aligned to a cache line; false when it has numbers that do not go: NaN, infinities, from 2^64
 * on and tiny ones. */
bool WK_ISA(wk_quant_prepare)(int64_t format, const float *values, int64_t groups, void *room, quant_x *x);
/* y[j] = x . row j of weights, `pitch` bytes apart. */
void WK_ISA(wk_quant_dot_int)(int64_t format, const uint8_t *blocks, int64_t pitch, int64_t rows,
                              int64_t groups, const quant_x *x, float *y);

/* ---- Many rows of x ---- */

/* x in the order in which it is read. */
typedef struct {
    const void *tiles;
    const float *sums; /* of each QUANT_RUN, where tiles do not have them */
    int64_t rows, runs;
    int pieces; /* of bf16 that a number is */
} quant_packed;

enum {
    WK_QUANT_PANEL = 48, /* rows of weights that are worked out at a time, */
    WK_QUANT_PANELS = 4, /* and the most of these that go over x together: its cache may be far */
    WK_QUANT_RUNS = 8,   /* of those rows that are unpacked at a time */
    WK_QUANT_TILE = 16,  /* to a multiple of which a panel has rows of x */
};

/* Numbers of a panel of so many rows of x. */
static inline int64_t quant_panel_size(int64_t rows)
{
    return (rows + WK_QUANT_TILE - 1) / WK_QUANT_TILE * WK_QUANT_TILE * WK_QUANT_PANEL;
}

/* A way to multiply them with weights. */
typedef struct {
    wk_dtype dtype;              /* of x */
    bool (*has)(int64_t format); /* whether this processor has instructions for it; the others are for then */
    size_t (*x_bytes)(int64_t rows, int64_t k);
    /* x in `room`, of so many bytes and aligned to a cache line; false when it has numbers that do not go: NaN, infinities, too
     * large or, as integers, too small ones. */
    bool (*pack)(const void *values, int64_t rows, int64_t k, void *room, quant_packed *x);
    size_t (*panel_bytes)(int64_t rows, int64_t columns);
    /* x times `columns` rows of weights, `pitch` bytes apart, in `room`, of so many bytes: returns panels, which have rows of
     * WK_QUANT_PANEL. */
    float *(*panels)(int64_t format, const quant_packed *x, const uint8_t *blocks, int64_t pitch,
                     int64_t columns, void *room);
} quant_many;

/* Calls one(format, block, j, r, panel) for each block of `runs` runs of so many rows of weights; r is its first run. Both are
 * constants where it is called. */
QUANT_INLINE void quant_each_block(
    int format, const uint8_t *blocks, int64_t pitch, int64_t columns, int64_t runs,
    void (*one)(int format, const uint8_t *block, int64_t j, int64_t r, void *panel), void *panel)
{
    const int64_t per_block = quant_runs_of(format), bytes = wk_qformats[format].bytes;
    for (int64_t j = 0; j < columns; j++) {
        const uint8_t *block = blocks + j * pitch;
        /* A row's next ones: it is read in pieces, which the processor does not foresee. */
        wk_ask_lines(block, (size_t)(WK_QUANT_RUNS / per_block * bytes), WK_QUANT_RUNS / per_block * bytes);
        for (int64_t r = 0; r < runs; r += per_block, block += bytes)
            one(format, block, j, r, panel);
    }
}

extern const quant_many WK_ISA(wk_quant_pairs);                           /* x in bf16 */
extern const quant_many WK_ISA(wk_quant_pieces), WK_ISA(wk_quant_digits); /* x in f32 */

#endif
