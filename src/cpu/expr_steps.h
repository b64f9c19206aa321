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

static inline wk_lanes half_of(const operand *x, int64_t i, int half)
{
    if (!x->bf16)
        return wk_words_lanes(wk_words_load((const float *)x->at + i + half * (PAIR / 2)));
    wk_words w = wk_words_load((const uint16_t *)x->at + i);
    return half ? wk_words_high(w) : wk_words_low(w);
}

static inline void put(const operand *y, int64_t i, wk_lanes low, wk_lanes high, bool stream)
{
    if (y->bf16) {
        wk_words_store((uint16_t *)y->at + i, wk_words_of(low, high), stream);
    } else {
        wk_words_store((float *)y->at + i, wk_words_bits(low), stream);
        wk_words_store((float *)y->at + i + PAIR / 2, wk_words_bits(high), stream);
    }
}

/* y = f(x, ..) on n elements, a multiple of PAIR. One operand more than f has is an operation more: what a step gives
 * needs not go through memory then. Places without an operand are NULL. */
typedef void step_fn(const operand *y, const operand *x, int64_t n, bool stream);

#define STEP(name, operands, formula, with_more) \
    static inline wk_lanes name##_half(const operand *x, int64_t i, int half) \
    { \
        wk_lanes a = half_of(&x[0], i, half), b = operands > 1 ? half_of(&x[1], i, half) : a, y = formula; \
        if (x[operands].at) { \
            wk_lanes more = half_of(&x[operands], i, half); \
            y = with_more; \
        } \
        (void)b; \
        return y; \
    } \
    static void name##_step(const operand *y, const operand *x, int64_t n, bool stream) \
    { \
        const operand to = *y, from[3] = {x[0], x[1], x[2]}; \
        for (int64_t i = 0; i < n; i += PAIR) { \
            wk_lanes low = name##_half(from, i, 0); \
            put(&to, i, low, name##_half(from, i, 1), stream); \
        } \
    }
STEP(add, 2, a + b, y + more)
STEP(sub, 2, a - b, y + more)
STEP(mul, 2, a *b, y + more)
STEP(same, 1, a, y *more)
STEP(relu, 1, wk_lanes_at_least(a, 0), y *more)
STEP(exp, 1, wk_lanes_exp_f32(a), y *more)
STEP(gelu, 1, wk_lanes_gelu_f32(a), y *more)
STEP(silu, 1, wk_lanes_silu_f32(a), y *more)
STEP(short_exp, 1, wk_lanes_exp(a), y *more)
STEP(short_gelu, 1, wk_lanes_gelu(a), y *more)
STEP(short_silu, 1, wk_lanes_silu(a), y *more)
#undef STEP

/* The step of an op in an expression on f32, or on bf16; NULL: there is none. */
static step_fn *step_of(int op, bool bf16)
{
    switch (op) {
    case WK_EXPR_add: return add_step;
    case WK_EXPR_sub: return sub_step;
    case WK_EXPR_mul: return mul_step;
    case WK_EXPR_relu: return relu_step;
    case WK_EXPR_exp: return bf16 ? short_exp_step : exp_step;
    case WK_EXPR_gelu: return bf16 ? short_gelu_step : gelu_step;
    case WK_EXPR_silu: return bf16 ? short_silu_step : silu_step;
    default: return NULL;
    }
}

#endif
