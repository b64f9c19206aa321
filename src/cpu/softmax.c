/* softmax.c: softmax and its gradient, line by line. */
#include <float.h>
#include "ops/softmax.h"
#include "ops/reduce.h"
#include "core/families.h"
#include "wick/softmax.h"
#include "block.h"
#include "lanes.h"
#include "lines.h"

#include "real_f32.h"
#include "line.inc.h"
#include "softmax.inc.h"
#include "real_f64.h"
#include "line.inc.h"
#include "softmax.inc.h"

/* ---- a line of bf16 as it lies, in words of two ---- */

#if defined(__AVX512F__) && defined(__AVX512BW__) /* where lanes are vectors */
#define SUMS_A_B
#define LARGEST_A_B
static inline wk_lanes lanes_larger(wk_lanes x, wk_lanes most) { return _mm512_max_ps(x, most); }
static inline float lanes_top(wk_lanes v) { return _mm512_reduce_max_ps(v); }
static inline float lanes_total(wk_lanes v) { return _mm512_reduce_add_ps(v); }
#else
#define SUMS_A_B _Pragma("omp simd reduction(+ : a, b)")
#define LARGEST_A_B _Pragma("omp simd reduction(max : a, b)")
static inline wk_lanes lanes_larger(wk_lanes x, wk_lanes most) { return x > most ? x : most; }
static inline float lanes_top(wk_lanes v) { return v; }
static inline float lanes_total(wk_lanes v) { return v; }
#endif

enum { WORDS_BLOCK = 2048, LANES = sizeof(wk_lanes) / sizeof(float) };

/* The largest of those that are no NaN. n is a number of whole lanes. */
static float words_top(const uint16_t *x, int64_t n)
{
    wk_lanes a = (wk_lanes){0} - INFINITY, b = a;
    LARGEST_A_B for (int64_t i = 0; i < n; i += LANES)
    {
        wk_words w = wk_words_load(x + 2 * i);
        a = lanes_larger(wk_words_low(w), a);
        b = lanes_larger(wk_words_high(w), b);
    }
    return lanes_top(lanes_larger(a, b));
}

/* exp(x - c), good to 16 bits but for a factor common to all, to low and high, and the sum: what rounding takes off the
 * multiple of c is the same for all. n is a number of whole lanes. */
static float words_exp(const uint16_t *x, float *restrict low, float *restrict high, int64_t n, float c)
{
    const float log2_e = 0x1.715476p0f, off = c * log2_e;
    double total = 0;
    for (int64_t at = 0; at < n; at += WORDS_BLOCK) {
        int64_t end = n - at < WORDS_BLOCK ? n : at + WORDS_BLOCK;
        wk_lanes a = {0}, b = {0};
        SUMS_A_B for (int64_t i = at; i < end; i += LANES)
        {
            wk_words w = wk_words_load(x + 2 * i);
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

/* n is a number of whole lanes; y may be x. False, with nothing done, where the largest is too large for words_exp. */
static bool softmax_words(const uint16_t *x, uint16_t *y, int64_t n, int64_t mode, float *scratch)
{
    const float most = 1024;
    float *low = scratch, *high = scratch + n;
    float largest = mode == WK_SOFTMAX_FAST ? 0 : words_top(x, n); /* a NaN gets into the sum */
    if (!(fabsf(largest) <= most))
        return false;
    float scale = 1 / words_exp(x, low, high, n, largest);
    WK_INDEPENDENT for (int64_t i = 0; i < n; i += LANES)
    {
        wk_lanes l, h;
        memcpy(&l, low + i, sizeof l);
        memcpy(&h, high + i, sizeof h);
        wk_words_store(y + 2 * i, wk_words_near(l * scale, h * scale), false);
    }
    return true;
}

/* A line of n elements, filled up with what adds nothing where it is no number of whole lanes. */
static bool softmax_line_words(const uint16_t *x, uint16_t *y, int64_t n, int64_t mode, float *scratch)
{
    const uint16_t minus_infinity = 0xFF80;
    int64_t words = (n + 2 * LANES - 1) / (2 * LANES) * LANES;
    if (n == 2 * words)
        return softmax_words(x, y, words, mode, scratch);
    uint16_t *whole = (uint16_t *)(scratch + 2 * words);
    memcpy(whole, x, (size_t)n * sizeof *whole);
    for (int64_t i = n; i < 2 * words; i++)
        whole[i] = minus_infinity;
    bool done = softmax_words(whole, whole, words, mode, scratch);
    if (done)
        memcpy(y, whole, (size_t)n * sizeof *whole);
    return done;
}

/* Logarithms want exponentials of all bits; they and what is unusual go by floats. */
static void softmax_bf16(void *const *out, const void *const *in, int64_t line, int64_t n, const void *ctx)
{
    int64_t mode = *(const int64_t *)ctx;
    void *scratch = out[1];
    if (mode != WK_SOFTMAX_LOG && softmax_line_words(in[0], out[0], n, mode, scratch))
        return;
    WK_ISA(wk_block_load)(WK_BF16, in[0], 1, scratch, n);
    softmax_f32(&scratch, (const void *const *)&scratch, line, n, ctx);
    WK_ISA(wk_block_store)(WK_BF16, WK_COMPUTE_F32, scratch, out[0], n, false);
}

/* ---- the ops ---- */

static wk_status run(wk_call *c, wk_line_fn fn, int n_in, bool as_is)
{
    const wk_softmax_params *p = c->params;
    wk_compute compute = wk_dtypes[c->dtype].compute;
    wk_lines l = {.in = {c->in[0], c->in[1]},
                  .in_compute = {compute, compute},
                  .n_in = n_in,
                  .out = {c->out[0]},
                  .out_compute = {compute},
                  .n_out = 1,
                  .as_is = as_is,
                  .fn = fn,
                  .ctx = &p->mode};
    WK_TRY(wk_reduce_dims(c, &p->dims, c->in[0]->rank, &l.set));
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
