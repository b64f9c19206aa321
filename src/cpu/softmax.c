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
static inline float lanes_total(wk_lanes v) { return _mm512_reduce_add_ps(v); }
#else
#define SUMS_A_B _Pragma("omp simd reduction(+ : a, b)")
static inline float lanes_total(wk_lanes v) { return v; }
#endif

enum { WORDS_BLOCK = 2048, LANES = sizeof(wk_lanes) / sizeof(float), LINES_TOGETHER = 4 };

typedef struct {
    int64_t mode, size; /* of a line */
} softmax_ctx;

#include "real_f32.h"
#include "line.inc.h"

/* line_top, whose four maxima become one before their lanes do, and line_exp, which asks for the line that follows as it
 * goes. */
#if defined(__AVX512F__) && defined(__AVX512BW__)
static float top_of_f32(const float *x, int64_t n)
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

static inline wk_lanes exp_some(const float *x, float *y, __mmask16 some, float c)
{
    wk_lanes e = wk_lanes_exp_above(wk_lanes_at_least(_mm512_maskz_loadu_ps(some, x) - c, -104));
    _mm512_mask_storeu_ps(y, some, e);
    return _mm512_maskz_mov_ps(some, e);
}

static float exp_line_f32(const float *x, float *y, int64_t n, float c)
{
    double total = 0;
    for (int64_t i = 0; i < n;) {
        int64_t end = n - i < WORDS_BLOCK ? n : i + WORDS_BLOCK;
        wk_lanes sum = {0};
        for (; i + LANES <= end; i += LANES) {
            wk_words_ahead(x + i, n * (int64_t)sizeof *x);
            sum += exp_some(x + i, y + i, 0xFFFF, c);
        }
        if (i < end) {
            sum += exp_some(x + i, y + i, (__mmask16)((1 << (end - i)) - 1), c);
            i = end;
        }
        total += (double)lanes_total(sum);
    }
    return (float)total;
}
#else
#define top_of_f32 line_top_f32
#define exp_line_f32 line_exp_f32
#endif

#include "softmax.inc.h"
#include "real_f64.h"
#include "line.inc.h"
#define top_of_f64 line_top_f64
#define exp_line_f64 line_exp_f64
#include "softmax.inc.h"

/* ---- a line of bf16 as it lies, in words of two ---- */

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

static float words_largest(const softmax_ctx *c, const uint16_t *x)
{
    return c->mode == WK_SOFTMAX_ACCURATE ? words_top(x, c->size) : 0; /* a NaN gets into the sum */
}

/* exp(x - c), good to 16 bits but for a factor common to all, to low and high, and the sum: what rounding takes off the
 * multiple of c is the same for all. n is a number of whole lanes. The line that follows is asked for, and so is the place
 * of the result. */
static float words_exp(const uint16_t *x, uint16_t *y, float *restrict low, float *restrict high, int64_t n,
                       float c)
{
    const float log2_e = 0x1.715476p0f, off = c * log2_e;
    double total = 0;
    for (int64_t at = 0; at < n; at += WORDS_BLOCK) {
        int64_t end = n - at < WORDS_BLOCK ? n : at + WORDS_BLOCK;
        wk_lanes a = {0}, b = {0};
        SUMS_A_B for (int64_t i = at; i < end; i += LANES)
        {
            wk_words w = wk_words_load(x + 2 * i);
            wk_words_ahead(x + 2 * i, 4 * n);
            wk_words_wanted(y + 2 * i);
            wk_lanes l = wk_lanes_exp2(wk_words_low(w) * log2_e - off);
            wk_lanes h = wk_lanes_exp2(wk_words_high(w) * log2_e - off);
            memcpy(low + i, &l, sizeof l);
            memcpy(high + i, &h, sizeof h);
            a += l;
            b += h;
        }
        total += (double)lanes_total(a + b);
    }
    return (float)total;
}

static void words_scale(const float *low, const float *high, uint16_t *y, int64_t n, float scale)
{
    WK_INDEPENDENT for (int64_t i = 0; i < n; i += LANES)
    {
        wk_lanes l, h;
        memcpy(&l, low + i, sizeof l);
        memcpy(&h, high + i, sizeof h);
        wk_words_store(y + 2 * i, wk_words_near(l * scale, h * scale), false);
    }
}

/* A line of n elements, in two steps with the sum between them. One that is no number of whole lanes goes through a copy,
 * filled up with what adds nothing. */
typedef struct {
    float *low, *high;
    uint16_t *copy;
    int64_t n, words;
} words_line;

static words_line words_line_of(int64_t n, float *scratch)
{
    int64_t words = (n + 2 * LANES - 1) / (2 * LANES) * LANES;
    uint16_t *copy = n == 2 * words ? NULL : (uint16_t *)(scratch + 2 * words);
    return (words_line){scratch, scratch + words, copy, n, words};
}

static float words_line_exp(const words_line *l, const uint16_t *x, uint16_t *y, float largest)
{
    const uint16_t minus_infinity = 0xFF80;
    if (!l->copy)
        return words_exp(x, y, l->low, l->high, l->words, largest);
    memcpy(l->copy, x, (size_t)l->n * sizeof *x);
    for (int64_t i = l->n; i < 2 * l->words; i++)
        l->copy[i] = minus_infinity;
    return words_exp(l->copy, l->copy, l->low, l->high, l->words, largest);
}

static void words_line_scale(const words_line *l, uint16_t *y, float scale)
{
    words_scale(l->low, l->high, l->copy ? l->copy : y, l->words, scale);
    if (l->copy)
        memcpy(y, l->copy, (size_t)l->n * sizeof *y);
}

/* Logarithms want exponentials of all bits; they, and lines whose largest is too large for words_exp, go by floats. */
static void softmax_as_floats(const uint16_t *x, uint16_t *y, const softmax_ctx *c, void *scratch)
{
    WK_ISA(wk_block_load)(WK_BF16, x, 1, scratch, c->size);
    softmax_f32(&scratch, (const void *const *)&scratch, 0, c->size, c);
    WK_ISA(wk_block_store)(WK_BF16, WK_COMPUTE_F32, scratch, y, c->size, false);
}

/* Softmax of some lines. A line's largest element is looked for before the line ahead of it is finished: either begins with
 * a wait for lanes that become one number. */
static void softmax_bf16(void *const *out, const void *const *in, int64_t line, int64_t n, const void *ctx)
{
    const float most = 1024;
    const softmax_ctx *c = ctx;
    const uint16_t *x = in[0];
    uint16_t *y = out[0];
    words_line words = words_line_of(c->size, out[1]);
    float next = words_largest(c, x);
    (void)line;
    for (int64_t size = c->size, left = n; left > 0; left -= size, x += size, y += size) {
        float largest = next, sum = 0;
        bool by_words = c->mode != WK_SOFTMAX_LOG && fabsf(largest) <= most;
        if (by_words)
            sum = words_line_exp(&words, x, y, largest);
        if (left > size)
            next = words_largest(c, x + size);
        if (by_words)
            words_line_scale(&words, y, 1 / sum);
        else
            softmax_as_floats(x, y, c, out[1]);
    }
}

/* ---- the ops ---- */

static wk_status run(wk_call *c, wk_line_fn fn, int n_in, bool as_is)
{
    const wk_softmax_params *p = c->params;
    wk_compute compute = wk_dtypes[c->dtype].compute;
    softmax_ctx ctx = {p->mode, 1};
    wk_lines l = {.in = {c->in[0], c->in[1]},
                  .in_compute = {compute, compute},
                  .n_in = n_in,
                  .out = {c->out[0]},
                  .out_compute = {compute},
                  .n_out = 1,
                  .as_is = as_is,
                  .asks = WK_WORDS_STREAM && n_in == 1 && c->dtype != WK_F64 && p->mode != WK_SOFTMAX_LOG,
                  .together = as_is ? LINES_TOGETHER : 0,
                  .fn = fn,
                  .ctx = &ctx};
    WK_TRY(wk_reduce_dims(c, &p->dims, c->in[0]->rank, &l.set));
    for (int d = 0; d < c->in[0]->rank; d++)
        ctx.size *= l.set >> d & 1 ? c->in[0]->shape[d] : 1;
    l.scratch = as_is ? (size_t)(ctx.size + 2 * LANES) * 8 : 0;
    return WK_ISA(wk_lines_run)(&l);
}

static wk_status run_softmax(wk_call *c)
{
    switch (c->dtype) {
    case WK_BF16: return run(c, softmax_bf16, 1, true);
    case WK_F64: return run(c, softmax_f64, 1, false);
    default: return run(c, softmax_f32, 1, false);
    }
}

static wk_status run_softmax_backward(wk_call *c)
{
    return run(c, c->dtype == WK_F64 ? softmax_backward_f64 : softmax_backward_f32, 2, false);
}

const wk_impl WK_ISA(wk_cpu_softmax)[] = {
    {"softmax", "simd", run_softmax, NULL, NULL},
    {"softmax_backward", "simd", run_softmax_backward, NULL, NULL},
    {0},
};
