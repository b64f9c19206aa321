/* wick/expr.h: elementwise expressions as one op: memory is read once and written once, whatever happens between.
 *
 *     wk_expr *e = wk_expr_compile("gelu(a*b + c)*d");
 *     wk_tensor *y = wk_expr_run(e, (const wk_tensor *[]){a, b, c, d}, 4);
 *
 * In an expression stand
 *   names         the inputs, in the order in which they first appear: float tensors of one dtype that broadcast
 *   numbers       1, 0.5, 1e-3, inf
 *   a + b, a - b, a * b, a / b, -a, ( )
 *   a < b, a <= b, a > b, a >= b, a == b, a != b   conditions, for where; as the result of the expression u8
 *   f(a)          every op of elementwise.h with one input: exp(a), gelu(a), ...
 *   f(a, numbers) those with numbers: leaky_relu(a) or leaky_relu(a, 0.01), elu(a) or elu(a, 1), clamp(a, min, max),
 *                 power(a, alpha, beta, gamma), powf(a, e), affine(a, mul, add)
 *   f(a, b)       add, sub, mul, div, minimum, maximum, pow, eq, ne, lt, le, gt, ge
 *   where(c, a, b)  c a condition, or a name: then that input is u8, u32 or i64
 * All of it is computed in the compute type (f32 for f16 and bf16) and rounded once, at the end. On GPUs an expression
 * is compiled when it first meets its dtypes, and kept in the cache like every kernel. */
#ifndef WICK_EXPR_H
#define WICK_EXPR_H

#include "core.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A compiled expression; not tied to a device, and used by any number of threads at once. */
typedef struct wk_expr wk_expr;

/* NULL, with WK_ERR_PARAM and what was expected where, for a text that does not read; up to 8 inputs, 96 steps. */
WK_API wk_expr *wk_expr_compile(const char *text);
/* Frees it; NULL is no error. */
WK_API void wk_expr_drop(wk_expr *e);

/* How many inputs it has, and the name of one (NULL past the last). */
WK_API int wk_expr_inputs(const wk_expr *e);
WK_API const char *wk_expr_input(const wk_expr *e, int i);

/* The result for n inputs, in that order. */
WK_API wk_tensor *wk_expr_run(const wk_expr *e, const wk_tensor *const *inputs, int n);
/* The same into a tensor of the result's shape and dtype. */
WK_API wk_status wk_expr_run_into(wk_tensor *dst, const wk_expr *e, const wk_tensor *const *inputs, int n);

#ifdef __cplusplus
}
#endif
#endif
