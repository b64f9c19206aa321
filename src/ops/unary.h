/* unary.h: what front end and kernels of the unary ops share. */
#ifndef WK_OPS_UNARY_H
#define WK_OPS_UNARY_H

#include "core/op.h"

/* The numbers of an op, whatever they are called: leaky_relu's slope, affine's mul and add, ... */
typedef struct {
    wk_scalar a, b, c;
} wk_unary_params;

typedef struct {
    int64_t dtype;
} wk_cast_params;

typedef struct {
    wk_list shape;
    int64_t dtype;
    wk_scalar value;
} wk_fill_params;

typedef struct {
    wk_scalar start, stop, step;
    int64_t dtype;
} wk_arange_params;

/* Its numbers are made of integers. */
static inline bool wk_arange_whole(const wk_arange_params *p)
{
    return p->start.f == (double)p->start.i && p->step.f == (double)p->step.i;
}

/* Every unary op without parameters: X(name, dtypes of the forward, summary). */
#define WK_UNARY_PLAIN(X) \
    X(neg, WK_SIGNED, "-x") \
    X(abs, WK_SIGNED, "|x|") \
    X(sign, WK_SIGNED, "-1, 0 or 1; 0 for NaN") \
    X(exp, WK_FLOATS, "e to the x") \
    X(log, WK_FLOATS, "natural logarithm") \
    X(sqrt, WK_FLOATS, "square root") \
    X(rsqrt, WK_FLOATS, "1 / sqrt(x)") \
    X(sqr, WK_FLOATS, "x * x") \
    X(recip, WK_FLOATS, "1 / x") \
    X(sin, WK_FLOATS, "sine") \
    X(cos, WK_FLOATS, "cosine") \
    X(tanh, WK_FLOATS, "hyperbolic tangent") \
    X(erf, WK_FLOATS, "error function") \
    X(floor, WK_FLOATS, "largest integer not above x") \
    X(ceil, WK_FLOATS, "smallest integer not below x") \
    X(round, WK_FLOATS, "nearest integer, half away from zero") \
    X(relu, WK_FLOATS, "max(x, 0)") \
    X(silu, WK_FLOATS, "x * sigmoid(x)") \
    X(sigmoid, WK_FLOATS, "1 / (1 + exp(-x))") \
    X(gelu, WK_FLOATS, "GELU, the tanh form") \
    X(gelu_erf, WK_FLOATS, "GELU, the exact form") \
    X(softplus, WK_FLOATS, "log(1 + exp(x))") \
    X(mish, WK_FLOATS, "x * tanh(softplus(x))") \
    X(hard_swish, WK_FLOATS, "x * min(max(x + 3, 0), 6) / 6") \
    X(hard_sigmoid, WK_FLOATS, "min(max(x + 3, 0), 6) / 6") \
    X(relu6, WK_FLOATS, "min(max(x, 0), 6)")

/* Those with parameters: X(name). Their records are written out in unary.c. */
#define WK_UNARY_WITH_PARAMS(X) X(leaky_relu) X(elu) X(clamp) X(power) X(powf) X(affine)

/* A number of the call in the call's dtype, as the contract asks for affine and fill, for both kinds of compute type. */
void wk_number_in(wk_dtype dtype, const wk_scalar *s, double *f, int64_t *i);
/* The op's three numbers as its formula takes them. */
void wk_unary_numbers(const wk_call *c, double *f, int64_t *i);

#endif
