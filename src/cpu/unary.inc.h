/* unary.inc.h: the formulas of the unary ops and their gradients, for REAL. */

/* y from x, with the op's numbers a, b, c. */
#define MAP(name, formula) \
    static void FN(name)(void *out, const void *const *in, int64_t n, const void *params) \
    { \
        const REAL *xs = in[0]; \
        REAL *ys = out; \
        const numbers *p = params; \
        REAL a = (REAL)p->f[0], b = (REAL)p->f[1], c = (REAL)p->f[2]; \
        (void)a, (void)b, (void)c; \
        WK_INDEPENDENT for (int64_t i = 0; i < n; i++) \
        { \
            REAL x = xs[i]; \
            ys[i] = formula; \
        } \
    }

/* dx = dy * slope(x). */
#define GRAD(name, formula) \
    static void FN(name##_backward)(void *out, const void *const *in, int64_t n, const void *params) \
    { \
        const REAL *xs = in[0], *dys = in[1]; \
        REAL *dxs = out; \
        const numbers *p = params; \
        REAL a = (REAL)p->f[0], b = (REAL)p->f[1], c = (REAL)p->f[2]; \
        (void)a, (void)b, (void)c; \
        WK_INDEPENDENT for (int64_t i = 0; i < n; i++) \
        { \
            REAL x = xs[i], dy = dys[i]; \
            (void)x, (void)dy; \
            dxs[i] = formula; \
        } \
    }

static inline REAL FN(sign_of)(REAL x) { return (REAL)(x > 0) - (REAL)(x < 0); }

static inline REAL FN(round_of)(REAL x)
{
    REAL t = R_TRUNC(x);
    return R_ABS(x - t) >= (REAL)0.5 ? t + R_COPYSIGN(1, x) : t;
}

/* 1 - tanh(x)^2 without the difference, which loses everything for large x. */
static inline REAL FN(tanh_slope)(REAL x)
{
    REAL e = R_EXP(-2 * R_ABS(x));
    return 4 * e / ((1 + e) * (1 + e));
}

/* tanh's argument in GELU: sqrt(2/pi) (x + 0.044715 x^3), and its slope. */
static inline REAL FN(gelu_inner)(REAL x)
{
    return (REAL)0.79788456080286535588 * (x + (REAL)0.044715 * x * x * x);
}

static inline REAL FN(gelu_slope)(REAL x)
{
    REAL t = R_TANH(FN(gelu_inner)(x));
    REAL inner_slope = (REAL)0.79788456080286535588 * (1 + 3 * (REAL)0.044715 * x * x);
    return (REAL)0.5 * (1 + t) + (REAL)0.5 * x * FN(tanh_slope)(FN(gelu_inner)(x)) * inner_slope;
}

static inline REAL FN(gelu_erf_slope)(REAL x)
{
    REAL density = (REAL)0.39894228040143267794 * R_EXP((REAL)-0.5 * x * x);
    return (REAL)0.5 * (1 + R_ERF(x * (REAL)0.70710678118654752440)) + x * density;
}

static inline REAL FN(silu_slope)(REAL x)
{
    REAL s = R_SIGMOID(x);
    return s * (1 + x * R_SIGMOID(-x));
}

static inline REAL FN(mish_slope)(REAL x)
{
    REAL t = R_TANH(R_SOFTPLUS(x));
    return t + x * R_SIGMOID(x) * FN(tanh_slope)(R_SOFTPLUS(x));
}

MAP(neg, -x)
GRAD(neg, -dy)
MAP(abs, R_ABS(x))
GRAD(abs, dy *FN(sign_of)(x))
MAP(sign, FN(sign_of)(x))
GRAD(sign, 0)
MAP(exp, R_EXP(x))
GRAD(exp, dy *R_EXP(x))
MAP(log, R_LOG(x))
GRAD(log, dy / x)
MAP(sqrt, R_SQRT(x))
GRAD(sqrt, dy / (2 * R_SQRT(x)))
MAP(rsqrt, 1 / R_SQRT(x))
GRAD(rsqrt, (REAL)-0.5 * dy / (x * R_SQRT(x)))
MAP(sqr, x *x)
GRAD(sqr, 2 * x * dy)
MAP(recip, 1 / x)
GRAD(recip, -dy / (x * x))
MAP(tanh, R_TANH(x))
GRAD(tanh, dy *FN(tanh_slope)(x))
MAP(erf, R_ERF(x))
GRAD(erf, dy *(REAL)1.12837916709551257390 * R_EXP(-x * x))
MAP(floor, R_FLOOR(x))
GRAD(floor, 0)
MAP(ceil, R_CEIL(x))
GRAD(ceil, 0)
MAP(round, FN(round_of)(x))
GRAD(round, 0)
MAP(relu, x < 0 ? 0 : x)
GRAD(relu, x > 0 ? dy : 0)
MAP(silu, R_SILU(x))
GRAD(silu, dy *FN(silu_slope)(x))
MAP(sigmoid, R_SIGMOID(x))
GRAD(sigmoid, dy *R_SIGMOID(x) * R_SIGMOID(-x))
MAP(gelu, R_GELU(x))
GRAD(gelu, dy *FN(gelu_slope)(x))
MAP(gelu_erf, (REAL)0.5 * x * (1 + R_ERF(x * (REAL)0.70710678118654752440)))
GRAD(gelu_erf, dy *FN(gelu_erf_slope)(x))
MAP(softplus, R_SOFTPLUS(x))
GRAD(softplus, dy *R_SIGMOID(x))
MAP(mish, x *R_TANH(R_SOFTPLUS(x)))
GRAD(mish, dy *FN(mish_slope)(x))
MAP(hard_sigmoid, (x < -3 ? 0 : x > 3 ? 6 : x + 3) / 6)
GRAD(hard_sigmoid, x > -3 && x < 3 ? dy / 6 : 0)
MAP(hard_swish, x *(x<-3 ? 0 : x> 3 ? 6 : x + 3) / 6)
GRAD(hard_swish, x <= -3 ? 0 : x >= 3 ? dy : dy * (x / 3 + (REAL)0.5))
MAP(relu6, x<0 ? 0 : x> 6 ? 6 : x)
GRAD(relu6, x > 0 && x < 6 ? dy : 0)
MAP(leaky_relu, x < 0 ? a * x : x)
GRAD(leaky_relu, x > 0 ? dy : a * dy)
MAP(elu, x > 0 ? x : a * R_EXPM1(x))
GRAD(elu, x > 0 ? dy : dy * a * R_EXP(x))
MAP(clamp, x<a ? a : x> b ? b : x)
/* Nothing at the ends themselves, as PyTorch has it; an open end has none. */
GRAD(clamp, (x > a || a == -INFINITY) && (x < b || b == INFINITY) ? dy : 0)
MAP(affine, x *a + b)
GRAD(affine, dy *a)
MAP(power, R_POW(a + b * x, c))
GRAD(power, c == 0 ? 0 : dy * b * c * R_POW(a + b * x, c - 1))
MAP(powf, R_POW(x, a))
GRAD(powf, a == 0 ? 0 : dy * a * R_POW(x, a - 1))
/* Sine and cosine go by blocks: huge arguments need another way than the rest. */
static void FN(sin)(void *out, const void *const *in, int64_t n, const void *params)
{
    (void)params;
    R_SIN_BLOCK(in[0], out, n);
}

static void FN(cos)(void *out, const void *const *in, int64_t n, const void *params)
{
    (void)params;
    R_COS_BLOCK(in[0], out, n);
}

static void FN(sin_backward)(void *out, const void *const *in, int64_t n, const void *params)
{
    REAL slope[WK_BLOCK], *dx = out;
    const REAL *dy = in[1];
    (void)params;
    R_COS_BLOCK(in[0], slope, n);
    for (int64_t i = 0; i < n; i++)
        dx[i] = dy[i] * slope[i];
}

static void FN(cos_backward)(void *out, const void *const *in, int64_t n, const void *params)
{
    REAL slope[WK_BLOCK], *dx = out;
    const REAL *dy = in[1];
    (void)params;
    R_SIN_BLOCK(in[0], slope, n);
    for (int64_t i = 0; i < n; i++)
        dx[i] = -dy[i] * slope[i];
}

#undef MAP
#undef GRAD
