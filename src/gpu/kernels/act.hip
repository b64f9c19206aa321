/* act.hip: the formulas of what comes before and after an activation. */
#include "act.h"
#include "map.hip"

/* The inputs added up, then the activation. */
template <int ACT> struct f_bias_act {
    template <class T0, class T1> using real = acc<T0>;
    template <class R> static MEMBER R run(R x, const numbers<R> &p) { return activate(ACT, x, p.a, p.b); }
    template <class R> static MEMBER R run(R x, R bias, const numbers<R> &p) { return run(x + bias, p); }
    template <class R> static MEMBER R run(R x, R bias, R z, const numbers<R> &p) { return run(x + bias + z, p); }
};

struct f_silu_mul {
    template <class T0, class T1> using real = acc<T0>;
    template <class R> static MEMBER R run(R gate, R up, const numbers<R> &) { return act_silu(gate) * up; }
};

struct f_silu_mul_dgate {
    template <class T0, class T1> using real = acc<T0>;
    template <class R> static MEMBER R run(R gate, R up, R dy, const numbers<R> &)
    {
        R s = m_sigmoid(gate);
        return dy * up * s * (1 + gate * m_sigmoid(-gate));
    }
};
