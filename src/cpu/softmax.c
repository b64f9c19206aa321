/* softmax.c: softmax and its gradient, line by line. */
#include <float.h>
#include "ops/softmax.h"
#include "ops/reduce.h"
#include "core/families.h"
#include "wick/softmax.h"
#include "block.h"
#include "lanes.h"
#include "lines.h"

#if defined(__AVX512F__) && defined(__AVX512BW__) /* where lanes are vectors */
#define SUMS_A_B
#define TOGETHER 2 /* vectors of either half of a line */
static inline float lanes_total(wk_lanes v) { return _mm512_reduce_add_ps(v); }
#else
#define SUMS_A_B _Pragma("omp simd reduction(+ : a, b)")
#define TOGETHER 1
static inline float lanes_total(wk_lanes v) { return v; }
#endif

enum {
    WORDS_BLOCK = 2048,
    LANES = sizeof(wk_lanes) / sizeof(float),
    STEP = TOGETHER * LANES,
    FLOATS_TOGETHER = 2, /* lines: more push each other out of the first-level cache, */
    FLOATS_PAST = 8,     /* but what goes past it goes while the next exponentials are worked out */
    WORDS_TOGETHER = 8,
    EXPS_KEPT = 3 /* lines whose exponentials are kept at a time */
};

typedef struct {
    int64_t mode, size; /* of a line */
    bool stream;        /* results go past the cache */
} softmax_ctx;

/* A vector of either half of a line, or of either half of its words. */
typedef struct {
    wk_lanes a, b;
} lanes_two;

static inline lanes_two lanes_get(const float *e, int64_t half)
{
    lanes_two v;
    memcpy(&v.a, e, sizeof v.a);
    memcpy(&v.b, e + half, sizeof v.b);
    return v;
}

static inline void lanes_put(float *e, int64_t half, lanes_two v)
{
    memcpy(e, &v.a, sizeof v.a);
    memcpy(e + half, &v.b, sizeof v.b);
}

/* Floats that a line's exponentials take. */
static inline int64_t kept_floats(int64_t n) { return n + 2 * STEP; }

/* ---- lines of floats ---- */

#include "real_f32.h"
#include "line.inc.h"
#include "softmax.inc.h"

/* line_top, whose four maxima become one before their lanes do. */
#if defined(__AVX512F__) && defined(__AVX512BW__)
static float top_of(const float *x, int64_t n)
{
    const wk_lanes least = _mm512_set1_ps(-INFINITY);
    wk_lanes a = least, b = least, c = least, d = least; /* a NaN leaves them as they are */
    int64_t i = 0;
    for (; i + 4 * LANES <= n; i += 4 * LANES) {
        a = _mm512_max_ps(_mm512_loadu_ps(x + i), a);
        b = _mm512_max_ps(_mm512_loadu_ps(x + i + LANES), b);
        c = _mm512_max_ps(_mm512_loadu_ps(x + i + 2 * LANES), c);
        d = _mm512_max_ps(_mm512_loadu_ps(x + i + 3 * LANES), d);
    }
    for (; i < n; i += LANES) {
        __mmask16 some = n - i < LANES ? (__mmask16)((1 << (n - i)) - 1) : 0xFFFF;
        a = _mm512_max_ps(_mm512_mask_loadu_ps(least, some, x + i), a);
    }
    return _mm512_reduce_max_ps(_mm512_max_ps(_mm512_max_ps(a, b), _mm512_max_ps(c, d)));
}
#else
#define top_of line_top_f32
#endif

static inline lanes_two exp_two_f32(const float *x, int64_t i, int64_t half, float top)
{
    lanes_two v = lanes_get(x + i, half);
    return (lanes_two){wk_lanes_exp_term(v.a - top), wk_lanes_exp_term(v.b - top)};
}

static inline void two_ahead_f32(const float *x, int64_t i, int64_t half)
{
    wk_words_ahead(x + i, 0);
    wk_words_ahead(x + half + i, 0);
}

static inline void two_wanted_f32(float *y, int64_t i, int64_t half)
{
    wk_words_wanted(y + i);
    wk_words_wanted(y + half + i);
}

static inline void two_to_f32(float *y, int64_t i, int64_t half, lanes_two v, float scale, bool stream)
{
    wk_words_store(y + i, wk_words_bits(v.a * scale), stream);
    wk_words_store(y + half + i, wk_words_bits(v.b * scale), stream);
}

#define LOWEST -INFINITY
#include "softmax_lines.inc.h"
#undef LOWEST

static void softmax_floats(void *const *out, const void *const *in, int64_t line, int64_t n, const void *ctx)
{
    const softmax_ctx *c = ctx;
    const float *x = in[0];
    float top[FLOATS_PAST];
    int64_t lines = n / c->size;
    (void)line;
    for (int64_t k = 0; k < lines; k++)
        top[k] = top_of(x + k * c->size, c->size); /* a NaN gets into the sum */
    softmax_lines_f32(x, out[0], top, out[1], lines, c->size, c->stream);
}

/* ---- lines of doubles ---- */

#include "real_f64.h"
#include "line.inc.h"
#include "softmax.inc.h"

/* ---- lines of bf16 as they lie, in words of two ---- */

/* The largest of n elements: their bits grow with those that have no sign; where all have one, the magnitudes are turned
 * over. Of NaN some are larger than infinity, and the others are passed over. */
static float words_top(const uint16_t *x, int64_t n)
{
    for (int16_t flip = 0;; flip = INT16_MAX) {
        int16_t most = INT16_MIN;
#pragma omp simd reduction(max : most)
        for (int64_t i = 0; i < n; i++) {
            int16_t bits = (int16_t)x[i] ^ flip;
            most = bits > most ? bits : most;
        }
        if (most >= 0 || flip)
            return wk_bf16_to_f32((uint16_t)(most ^ flip));
    }
}

/* exp(x - top), good to 16 bits but for a factor common to all: what rounding takes off the multiple of top is the same for
 * all. */
static inline lanes_two exp_two_bf16(const uint16_t *x, int64_t i, int64_t half, float top)
{
    const float log2_e = 0x1.715476p0f, off = top * log2_e;
    wk_words w = wk_words_load(x + 2 * i);
    (void)half;
    return (lanes_two){wk_lanes_exp2(wk_words_low(w) * log2_e - off),
                       wk_lanes_exp2(wk_words_high(w) * log2_e - off)};
}

static inline void two_ahead_bf16(const uint16_t *x, int64_t i, int64_t half)
{
    (void)half;
    wk_words_ahead(x + 2 * i, 0);
}

static inline void two_wanted_bf16(uint16_t *y, int64_t i, int64_t half)
{
    (void)half;
    wk_words_wanted(y + 2 * i);
}

static inline void two_to_bf16(uint16_t *y, int64_t i, int64_t half, lanes_two v, float scale, bool stream)
{
    (void)half;
    wk_words_store(y + 2 * i, wk_words_near(v.a * scale, v.b * scale), stream);
}

#include "real_bf16.h"
#define LOWEST 0xFF80
#include "softmax_lines.inc.h"
#undef LOWEST

/* Logarithms want exponentials of all bits; they, and lines whose largest is too large for a common factor, go by floats. */
static void softmax_as_floats(const uint16_t *x, uint16_t *y, const softmax_ctx *c, void *scratch)
{
    WK_ISA(wk_block_load)(WK_BF16, x, 1, scratch, c->size);
    softmax_f32(&scratch, (const void *const *)&scratch, 0, c->size, c);
    WK_ISA(wk_block_store)(WK_BF16, WK_COMPUTE_F32, scratch, y, c->size, c->stream);
}

static void softmax_bf16(void *const *out, const void *const *in, int64_t line, int64_t n, const void *ctx)
{
    const float most = 1024;
    const softmax_ctx *c = ctx;
    const uint16_t *x = in[0];
    uint16_t *y = out[0];
    float top[WORDS_TOGETHER] = {0};
    int64_t size = c->size, lines = n / size;
    (void)line;
    for (int64_t k = 0; k < lines && c->mode == WK_SOFTMAX_ACCURATE; k++)
        top[k] = words_top(x + k * size, size); /* a NaN gets into the sum */
    /* Lines that go by words one after the other; each goes as it would alone. */
    for (int64_t k = 0, run; k<lines; k += run> 0 ? run : 1) {
        for (run = 0; k + run < lines && c->mode != WK_SOFTMAX_LOG && fabsf(top[k + run]) <= most;)
            run++;
        if (run > 0)
            softmax_lines_bf16(x + k * size, y + k * size, top + k, out[1], run, size, c->stream);
        else
            softmax_as_floats(x + k * size, y + k * size, c, out[1]);
    }
}

/* ---- the ops ---- */

static wk_status run(wk_call *c, wk_line_fn fn, int n_in, int together)
{
    const wk_softmax_params *p = c->params;
    wk_compute compute = wk_dtypes[c->dtype].compute;
    softmax_ctx ctx = {p->mode, 1, false};
    wk_lines l = {.in = {c->in[0], c->in[1]},
                  .in_compute = {compute, compute},
                  .n_in = n_in,
                  .out = {c->out[0]},
                  .out_compute = {compute},
                  .n_out = 1,
                  .as_is = fn == softmax_bf16,
                  .asks = WK_WORDS_STREAM && together > 0,
                  .together = together,
                  .fn = fn,
                  .ctx = &ctx};
    WK_TRY(wk_reduce_dims(c, &p->dims, c->in[0]->rank, &l.set));
    for (int d = 0; d < c->in[0]->rank; d++)
        ctx.size *= l.set >> d & 1 ? c->in[0]->shape[d] : 1;
    bool as_it_lies = WK_WORDS_STREAM && c->dtype != WK_F16, single = wk_lines_single(c->in[0], ctx.size);
    l.straight = ctx.stream = as_it_lies && together > 0 && wk_lines_past(c->out[0], ctx.size);
    if (ctx.stream && c->dtype == WK_F32)
        l.together = FLOATS_PAST;
    l.scratch = together > 0 ? (single ? 1 : EXPS_KEPT) * (size_t)kept_floats(ctx.size) * sizeof(float) : 0;
    return WK_ISA(wk_lines_run)(&l);
}

static wk_status run_softmax(wk_call *c)
{
    const wk_softmax_params *p = c->params;
    switch (c->dtype) {
    case WK_BF16: return run(c, softmax_bf16, 1, WORDS_TOGETHER);
    case WK_F64: return run(c, softmax_f64, 1, 0);
    default:
        return p->mode == WK_SOFTMAX_ACCURATE ? run(c, softmax_floats, 1, FLOATS_TOGETHER)
                                              : run(c, softmax_f32, 1, 0);
    }
}

static wk_status run_softmax_backward(wk_call *c)
{
    return run(c, c->dtype == WK_F64 ? softmax_backward_f64 : softmax_backward_f32, 2, 0);
}

const wk_impl WK_ISA(wk_cpu_softmax)[] = {
    {"softmax", "simd", run_softmax, NULL, NULL},
    {"softmax_backward", "simd", run_softmax_backward, NULL, NULL},
    {0},
};
