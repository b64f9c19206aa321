/* act.hip: the formulas of what comes before and after an activation. */
#include "act.h"
#include "act_grad.h"
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

/* dgate = dy up silu'(gate) and dup = dy silu(gate): one read of all three. */
template <class T, int VEC> DEVICE void silu_mul_grad(const silu_mul_args &a)
{
    typedef acc<T> R;
    for (i64 p = global_thread(); p < a.packs; p += global_threads()) {
        i64 row = p < (i64)1 << 31 ? (i64)divide((u32)p, a.by_row) : p / a.per_row;
        i64 at = row * a.step + (p - row * a.per_row) * VEC;
        pack<T, VEC> gate = load<VEC>((const T *)a.gate + at), up = load<VEC>((const T *)a.up + at);
        pack<T, VEC> dy = load<VEC>((const T *)a.dy + p * VEC);
        UNROLL
        for (int e = 0; e < VEC; e++) {
            R g = get(gate.v[e]), u = get(up.v[e]), d = get(dy.v[e]), s = m_sigmoid(g);
            gate.v[e] = put<T>(d * u * s * (1 + g * m_sigmoid(-g)));
            up.v[e] = put<T>(d * g * s);
        }
        if (a.dgate)
            store<VEC>((T *)a.dgate + at, gate);
        if (a.dup)
            store<VEC>((T *)a.dup + at, up);
    }
}
