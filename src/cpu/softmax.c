/* softmax.c: softmax and its gradient, line by line. */
#include <float.h>
#include "ops/softmax.h"
#include "ops/reduce.h"
#include "core/families.h"
#include "wick/softmax.h"
#include "lines.h"

#include "real_f32.h"
#include "line.inc.h"
#include "softmax.inc.h"
#include "real_f64.h"
#include "line.inc.h"
#include "softmax.inc.h"

/* ---- a line of bf16 as it lies ----
 *
 * Each word of n holds two values, which are floats but for a shift and a mask. */

static inline uint32_t word_at(const uint16_t *x, int64_t i)
{
    uint32_t w;
    memcpy(&w, x + 2 * i, sizeof w);
    return w;
}

static inline void put_word(uint16_t *y, int64_t i, uint32_t w) { memcpy(y + 2 * i, &w, sizeof w); }
static inline float low_of(uint32_t w) { return wk_bits_float(w << 16); }
static inline float high_of(uint32_t w) { return wk_bits_float(w & 0xFFFF0000); }

/* The largest of those that are no NaN. */
static float words_top(const uint16_t *x, int64_t n)
{
    float low = -INFINITY, high = -INFINITY;
#pragma omp simd reduction(max : low, high)
    for (int64_t i = 0; i < n; i++) {
        float l = low_of(word_at(x, i)), h = high_of(word_at(x, i));
        low = l > low ? l : low;
        high = h > high ? h : high;
    }
    return low > high ? low : high;
}

/* exp(x - c) to `low` and `high`, and the sum. */
static float words_exp(const uint16_t *x, float *restrict low, float *restrict high, int64_t n, float c)
{
    enum { BLOCK = 2048 };
    double total = 0;
    for (int64_t at = 0; at < n; at += BLOCK) {
        int64_t end = n - at < BLOCK ? n : at + BLOCK;
        float a = 0, b = 0;
#pragma omp simd reduction(+ : a, b)
        for (int64_t i = at; i < end; i++) {
            uint32_t w = word_at(x, i);
            low[i] = wk_exp_termf(low_of(w) - c);
            high[i] = wk_exp_termf(high_of(w) - c);
            a += low[i];
            b += high[i];
        }
        total += (double)(a + b);
    }
    return (float)total;
}

static void softmax_words(const uint16_t *x, uint16_t *y, int64_t n, int64_t mode, float *scratch)
{
    float *restrict low = scratch, *restrict high = scratch + n;
    float largest = mode == WK_SOFTMAX_FAST ? 0 : words_top(x, n); /* a NaN gets into the sum */
    float sum = words_exp(x, low, high, n, largest);
    if (mode == WK_SOFTMAX_LOG) {
        float log_sum = wk_logf(sum);
        WK_INDEPENDENT for (int64_t i = 0; i < n; i++)
        {
            uint32_t w = word_at(x, i);
            put_word(y, i, wk_bf16_pair(low_of(w) - largest - log_sum, high_of(w) - largest - log_sum));
        }
        return;
    }
    float scale = 1 / sum;
    for (int64_t i = 0; i < n; i++)
        put_word(y, i, wk_bf16_pair(low[i] * scale, high[i] * scale));
}

/* An odd line gets a neighbour for its last value, which adds nothing. */
static void softmax_bf16(void *const *out, const void *const *in, int64_t line, int64_t n, const void *ctx)
{
    int64_t mode = *(const int64_t *)ctx, words = (n + 1) / 2;
    float *scratch = out[1];
    (void)line;
    if (n % 2 == 0) {
        softmax_words(in[0], out[0], words, mode, scratch);
        return;
    }
    uint16_t *even = (uint16_t *)(scratch + 2 * words), minus_infinity = 0xFF80;
    memcpy(even, in[0], (size_t)n * sizeof *even);
    even[n] = minus_infinity;
    softmax_words(even, even, words, mode, scratch);
    memcpy(out[0], even, (size_t)n * sizeof *even);
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
