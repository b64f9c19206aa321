/* expr_steps.h: the steps of expressions on f32 and on bf16, which take inputs and give results as they are.
 *
 * They go through bf16 by words, so that a block in f32 has the lower halves of a vector of words before the upper ones:
 * all the same to elementwise formulas. */
#ifndef WK_CPU_EXPR_STEPS_H
#define WK_CPU_EXPR_STEPS_H

#include "ops/expr.h"
#include "lanes.h"

/* The values of a node: elements of bf16, or f32. */
typedef struct {
    void *at;
    bool bf16;
} operand;

enum { PAIR = sizeof(wk_words) / 2 }; /* elements of two vectors of lanes */

static inline int64_t whole_pairs(int64_t n) { return (n + PAIR - 1) / PAIR * PAIR; }

/* How a loop reads an operand, without a choice on the way: words for the lower and the upper lanes of each pair, and
 * what makes floats of them. */
typedef struct {
    const char *lower, *upper;
    int64_t stride; /* from pair to pair, in bytes; 0: the same numbers over and over */
    wk_words shift, mask;
} reader;

static inline reader reader_of(const operand *x)
{
    const char *at = x->at;
    if (x->bf16)
        return (reader){at, at, PAIR * 2, wk_words_all(16), wk_words_all(0xFFFF0000)};
    return (reader){at, at + PAIR * 2, PAIR * 4, wk_words_all(0), wk_words_all(0xFFFFFFFF)};
}

static inline reader reader_of_number(const float *lanes)
{
    return (reader){(const char *)lanes, (const char *)lanes, 0, wk_words_all(0), wk_words_all(0xFFFFFFFF)};
}

static inline wk_lanes read_half(const reader *r, int64_t pair, int half)
{
    wk_words w = wk_words_load((half ? r->upper : r->lower) + pair * r->stride);
    if (half)
        return wk_words_lanes((wk_words)(w & r->mask));
    return wk_words_lanes(wk_words_left(w, r->shift));
}

/* Asks for what will be read a little further. */
static inline void read_ahead(const reader *r, int64_t pair)
{
    wk_words_ahead(r->lower + pair * r->stride, 1536);
    wk_words_ahead(r->upper + pair * r->stride, 1536);
}

static inline void put(const operand *y, int64_t i, wk_lanes low, wk_lanes high, bool near, bool stream)
{
    if (y->bf16) {
        wk_words w = near ? wk_words_near(low, high) : wk_words_of(low, high);
        wk_words_store((uint16_t *)y->at + i, w, stream);
    } else {
        wk_words_store((float *)y->at + i, wk_words_bits(low), stream);
        wk_words_store((float *)y->at + i + PAIR / 2, wk_words_bits(high), stream);
    }
}

/* y = f(a b + c) d + e on n elements, a multiple of PAIR: what f takes and what is done with its result goes along, and
 * not through memory. A place that an expression has nothing for gets a number that changes nothing. */
enum { STEP_A, STEP_B, STEP_C, STEP_D, STEP_E, STEP_PLACES };
typedef void step_fn(const operand *y, const reader r[STEP_PLACES], int64_t n, bool stream);

#define STEP(name, formula, near) \
    static inline wk_lanes name##_half(const reader *r, int64_t i, int half) \
    { \
        wk_lanes x = read_half(&r[STEP_A], i, half) * read_half(&r[STEP_B], i, half) + \
                     read_half(&r[STEP_C], i, half); \
        return (formula)*read_half(&r[STEP_D], i, half) + read_half(&r[STEP_E], i, half); \
    } \
    static void name##_step(const operand *y, const reader *given, int64_t n, bool stream) \
    { \
        const operand to = *y; \
        reader r[STEP_PLACES]; \
        memcpy(r, given, sizeof r); \
        for (int64_t i = 0; i < n / PAIR; i++) { \
            for (int k = 0; k < STEP_PLACES; k++) \
                read_ahead(&r[k], i); \
            wk_lanes low = name##_half(r, i, 0); \
            put(&to, i *PAIR, low, name##_half(r, i, 1), near, stream); \
        } \
    }
STEP(same, x, false)
STEP(relu, wk_lanes_at_least(x, 0), false)
STEP(exp, wk_lanes_exp_f32(x), false)
STEP(gelu, wk_lanes_gelu_f32(x), false)
STEP(silu, wk_lanes_silu_f32(x), false)
STEP(short_exp, wk_lanes_exp(x), true)
STEP(short_gelu, wk_lanes_gelu(x), true)
STEP(short_silu, wk_lanes_silu(x), true)
#undef STEP

/* The step of an op in an expression on f32, or on bf16; NULL: there is none. */
static step_fn *step_of(int op, bool bf16)
{
    switch (op) {
    case WK_EXPR_add:
    case WK_EXPR_sub:
    case WK_EXPR_mul: return same_step;
    case WK_EXPR_relu: return relu_step;
    case WK_EXPR_exp: return bf16 ? short_exp_step : exp_step;
    case WK_EXPR_gelu: return bf16 ? short_gelu_step : gelu_step;
    case WK_EXPR_silu: return bf16 ? short_silu_step : silu_step;
    default: return NULL;
    }
}

#endif
