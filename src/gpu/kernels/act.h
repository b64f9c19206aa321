/* act.h: the activations that other kernels apply to their results. */
#ifndef WK_KERNELS_ACT_H
#define WK_KERNELS_ACT_H

#include "device.h"

/* tanh's argument in GELU: sqrt(2/pi) (x + 0.044715 x^3). */
template <class R> DEVICE R gelu_inner(R x)
{
    return (R)0.79788456080286535588 * (x + (R)0.044715 * x * x * x);
}

/* x / 2 (1 + tanh(u)) = x sigmoid(2 u): one exponential, and exact in the left tail. */
DEVICE f64 act_gelu(f64 x) { return x / (1 + m_exp(-2 * gelu_inner(x))); }
/* The same with the constants of -2 u and of the step from e to 2 in one. */
DEVICE f32 act_gelu(f32 x)
{
    const f32 first = -2 * 0.79788456080286535588 * 1.44269504088896340736, third = first * 0.044715;
    return x * m_recip(1 + m_exp2_fast(x * (first + third * x * x)));
}
template <class R> DEVICE R act_gelu_erf(R x)
{
    return (R)0.5 * x * (1 + m_erf(x * (R)0.70710678118654752440));
}
template <class R> DEVICE R act_silu(R x) { return x * m_sigmoid(x); }
/* Both sides, without a branch; a NaN stays one. */
template <class R> DEVICE R act_elu(R x, R a)
{
    R below = a * m_expm1_below(x);
    return x <= 0 ? below : x;
}

/* By its number in wk_activation, the same for all threads: the first five, which have no numbers of their own. */
template <class R> DEVICE R activate(int act, R x)
{
    switch (act) {
    case 1: return x < 0 ? 0 : x;
    case 2: return act_gelu(x);
    case 3: return act_gelu_erf(x);
    case 4: return act_silu(x);
    default: return x;
    }
}

/* All of them. */
template <class R> DEVICE R activate(int act, R x, R a, R b)
{
    switch (act) {
    case 5: return m_sigmoid(x);
    case 6: return m_tanh(x);
    case 7: return m_softplus(x);
    case 8: return x < 0 ? a * x : x;
    case 9: return act_elu(x, a);
    case 10: return x < a ? a : x > b ? b : x;
    case 11: return x < 0 ? 0 : x > 6 ? 6 : x;
    case 12: return x * (x < -3 ? 0 : x > 3 ? 6 : x + 3) / 6;
    case 13: return (x < -3 ? 0 : x > 3 ? 6 : x + 3) / 6;
    case 14: return x * m_tanh(m_softplus(x));
    case 15: return m_fabs(x);
    default: return activate(act, x);
    }
}

#endif
