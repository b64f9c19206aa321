/* unary.hip: the formulas of the unary ops and their gradients. */
#include "act.h"
#include "map.hip"

/* y from x, with the op's numbers a, b, c. */
#define MAP(name, formula) \
    struct f_##name { \
        template <class T0, class T1> using real = acc<T0>; \
        template <class R> static MEMBER R run(R x, const numbers<R> &p) \
        { \
            R a = p.a, b = p.b, c = p.c; \
            (void)a, (void)b, (void)c; \
            return formula; \
        } \
    };

/* dx = dy * slope(x). */
#define GRAD(name, formula) \
    struct f_##name##_backward { \
        template <class T0, class T1> using real = acc<T0>; \
        template <class R> static MEMBER R run(R x, R dy, const numbers<R> &p) \
        { \
            R a = p.a, b = p.b, c = p.c; \
            (void)a, (void)b, (void)c, (void)x, (void)dy; \
            return formula; \
        } \
    };

/* Integers have these too; sums and products are taken without a sign, where wrapping is defined. */
template <class R> DEVICE R neg_of(R x) { return -x; }
DEVICE i64 neg_of(i64 x) { return (i64)(0 - (u64)x); }
template <class R> DEVICE R abs_of(R x) { return m_fabs(x); }
DEVICE i64 abs_of(i64 x) { return x < 0 ? neg_of(x) : x; }
template <class R> DEVICE R affine_of(R x, R a, R b) { return x * a + b; }
DEVICE i64 affine_of(i64 x, i64 a, i64 b) { return (i64)((u64)x * (u64)a + (u64)b); }

template <class R> DEVICE R sign_of(R x) { return (R)(x > 0) - (R)(x < 0); }

/* The sign is asked for by comparing: where x was f16, ROCm's compiler takes the sign bit, for gfx11, from the other half
 * of a register. */
template <class R> DEVICE R round_of(R x)
{
    R t = m_trunc(x);
    return m_fabs(x - t) >= (R)0.5 ? t + (x < 0 ? (R)-1 : (R)1) : t;
}

/* 1 - tanh(x)^2 without the difference, which loses everything for large x. */
template <class R> DEVICE R tanh_slope(R x)
{
    R e = m_exp(-2 * m_fabs(x));
    return 4 * e / ((1 + e) * (1 + e));
}

template <class R> DEVICE R gelu_slope(R x)
{
    R t = m_tanh(gelu_inner(x));
    R inner_slope = (R)0.79788456080286535588 * (1 + 3 * (R)0.044715 * x * x);
    return (R)0.5 * (1 + t) + (R)0.5 * x * tanh_slope(gelu_inner(x)) * inner_slope;
}

template <class R> DEVICE R gelu_erf_slope(R x)
{
    R density = (R)0.39894228040143267794 * m_exp((R)-0.5 * x * x);
    return (R)0.5 * (1 + m_erf(x * (R)0.70710678118654752440)) + x * density;
}

template <class R> DEVICE R silu_slope(R x)
{
    R s = m_sigmoid(x);
    return s * (1 + x * m_sigmoid(-x));
}

template <class R> DEVICE R mish_slope(R x)
{
    R t = m_tanh(m_softplus(x));
    return t + x * m_sigmoid(x) * tanh_slope(m_softplus(x));
}

MAP(neg, neg_of(x))
GRAD(neg, -dy)
MAP(abs, abs_of(x))
GRAD(abs, dy * sign_of(x))
MAP(sign, sign_of(x))
GRAD(sign, 0)
MAP(exp, m_exp(x))
GRAD(exp, dy * m_exp(x))
MAP(log, m_log(x))
GRAD(log, dy / x)
MAP(sqrt, m_sqrt(x))
GRAD(sqrt, dy / (2 * m_sqrt(x)))
MAP(rsqrt, 1 / m_sqrt(x))
GRAD(rsqrt, (R)-0.5 * dy / (x * m_sqrt(x)))
MAP(sqr, x *x)
GRAD(sqr, 2 * x * dy)
MAP(recip, 1 / x)
GRAD(recip, -dy / (x * x))
MAP(tanh, m_tanh(x))
GRAD(tanh, dy * tanh_slope(x))
MAP(erf, m_erf(x))
GRAD(erf, dy * (R)1.12837916709551257390 * m_exp(-x * x))
MAP(floor, m_floor(x))
GRAD(floor, 0)
MAP(ceil, m_ceil(x))
GRAD(ceil, 0)
MAP(round, round_of(x))
GRAD(round, 0)
MAP(relu, x < 0 ? 0 : x)
GRAD(relu, x > 0 ? dy : 0)
MAP(silu, act_silu(x))
GRAD(silu, dy * silu_slope(x))
MAP(sigmoid, m_sigmoid(x))
GRAD(sigmoid, dy * m_sigmoid(x) * m_sigmoid(-x))
MAP(gelu, act_gelu(x))
GRAD(gelu, dy * gelu_slope(x))
MAP(gelu_erf, act_gelu_erf(x))
GRAD(gelu_erf, dy * gelu_erf_slope(x))
MAP(softplus, m_softplus(x))
GRAD(softplus, dy * m_sigmoid(x))
MAP(mish, x * m_tanh(m_softplus(x)))
GRAD(mish, dy * mish_slope(x))
MAP(hard_sigmoid, (x < -3 ? 0 : x > 3 ? 6 : x + 3) / 6)
GRAD(hard_sigmoid, x > -3 && x < 3 ? dy / 6 : 0)
MAP(hard_swish, x * (x<-3 ? 0 : x> 3 ? 6 : x + 3) / 6)
GRAD(hard_swish, x <= -3 ? 0 : x >= 3 ? dy : dy * (x / 3 + (R)0.5))
MAP(relu6, x<0 ? 0 : x> 6 ? 6 : x)
GRAD(relu6, x > 0 && x < 6 ? dy : 0)
MAP(leaky_relu, x < 0 ? a * x : x)
GRAD(leaky_relu, x > 0 ? dy : a * dy)
MAP(elu, act_elu(x, a))
GRAD(elu, x > 0 ? dy : dy * a * m_exp(x))
MAP(clamp, x<a ? a : x> b ? b : x)
/* Nothing at the ends themselves, as PyTorch has it; an open end has none. */
GRAD(clamp, (x > a || a == -infinity<R>()) && (x < b || b == infinity<R>()) ? dy : 0)
MAP(affine, affine_of(x, a, b))
GRAD(affine, dy *a)
MAP(power, m_pow(a + b * x, c))
GRAD(power, c == 0 ? 0 : dy * b * c * m_pow(a + b * x, c - 1))
MAP(powf, m_pow(x, a))
GRAD(powf, a == 0 ? 0 : dy * a * m_pow(x, a - 1))
MAP(sin, m_sin(x))
GRAD(sin, dy * m_cos(x))
MAP(cos, m_cos(x))
GRAD(cos, -dy * m_sin(x))

struct f_cast {
    template <class T0, class T1> using real = f32;
    template <class A> static MEMBER A run(A x, const numbers<f32> &) { return x; }
};

/* No input: the element's number. */
struct f_fill_int {
    template <class T0, class T1> using real = i64;
    static MEMBER i64 run(i64, const numbers<i64> &p) { return p.a; }
};
struct f_fill_real {
    template <class T0, class T1> using real = f64;
    static MEMBER f64 run(i64, const numbers<f64> &p) { return p.a; }
};
/* start + i * step from the index itself, so that no error adds up. */
struct f_arange_int {
    template <class T0, class T1> using real = i64;
    static MEMBER i64 run(i64 i, const numbers<i64> &p) { return (i64)((u64)p.a + (u64)i * (u64)p.b); }
};
struct f_arange_real {
    template <class T0, class T1> using real = f64;
    static MEMBER f64 run(i64 i, const numbers<f64> &p) { return p.a + (f64)i * p.b; }
};

#undef MAP
#undef GRAD
