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
template <class R> DEVICE R act_gelu(R x) { return x * m_recip(1 + m_exp(-2 * gelu_inner(x))); }
template <class R> DEVICE R act_gelu_erf(R x)
{
    return (R)0.5 * x * (1 + m_erf(x * (R)0.70710678118654752440));
}
template <class R> DEVICE R act_silu(R x) { return x * m_sigmoid(x); }

/* By its number in wk_activation, the same for all threads. */
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

#endif
