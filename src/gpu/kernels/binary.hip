/* binary.hip: the formulas of the binary ops, comparison and where, and their gradients. */
#include "map.hip"

#define MAP(name, formula) \
    struct f_##name { \
        template <class T0, class T1> using real = acc<T0>; \
        template <class R> static MEMBER R run(R a, R b, const numbers<R> &p) { return formula; } \
    };
#define COMPARE(name, operator) \
    struct f_##name { \
        template <class T0, class T1> using real = acc<T0>; \
        template <class R> static MEMBER i64 run(R a, R b, const numbers<R> &) { return a operator b; } \
    };
/* The gradient for a and for b, each a map of (a, b, dy). */
#define GRAD(name, for_a, for_b) GRAD_OF(name##_da, for_a) GRAD_OF(name##_db, for_b)
#define GRAD_OF(name, formula) \
    struct f_##name { \
        template <class T0, class T1> using real = acc<T0>; \
        template <class R> static MEMBER R run(R a, R b, R dy, const numbers<R> &) { return formula; } \
    };

/* Integers: without a sign, where wrapping is defined. */
template <class R> DEVICE R add_of(R a, R b) { return a + b; }
DEVICE i64 add_of(i64 a, i64 b) { return (i64)((u64)a + (u64)b); }
template <class R> DEVICE R sub_of(R a, R b) { return a - b; }
DEVICE i64 sub_of(i64 a, i64 b) { return (i64)((u64)a - (u64)b); }
template <class R> DEVICE R mul_of(R a, R b) { return a * b; }
DEVICE i64 mul_of(i64 a, i64 b) { return (i64)((u64)a * (u64)b); }
template <class R> DEVICE R div_of(R a, R b, const wk_report *) { return a / b; }
/* A zero divisor is left for the next synchronisation to report; the smallest number by -1 wraps. */
DEVICE i64 div_of(i64 a, i64 b, const wk_report *r)
{
    if (b == 0)
        index_ok(*r, 0, 0);
    return b == 0 ? 0 : b == -1 ? (i64)(0 - (u64)a) : a / b;
}

MAP(add, add_of(a, b))
MAP(sub, sub_of(a, b))
MAP(mul, mul_of(a, b))
MAP(div, div_of(a, b, p.report))
MAP(minimum, min_nan(a, b))
MAP(maximum, max_nan(a, b))
MAP(pow, m_pow(a, b))
COMPARE(eq, ==)
COMPARE(ne, !=)
COMPARE(lt, <)
COMPARE(le, <=)
COMPARE(gt, >)
COMPARE(ge, >=)
GRAD(add, dy, dy)
GRAD(sub, dy, -dy)
GRAD(mul, dy * b, dy * a)
GRAD(div, dy / b, -dy * a / (b * b))
GRAD(minimum, a < b ? dy : a == b ? dy / 2 : 0, b < a ? dy : a == b ? dy / 2 : 0)
GRAD(maximum, a > b ? dy : a == b ? dy / 2 : 0, b > a ? dy : a == b ? dy / 2 : 0)
GRAD(pow, b == 0 ? 0 : dy * b * m_pow(a, b - 1), a == 0 && b >= 0 ? 0 : dy * m_pow(a, b) * m_log(a))

/* Inputs: cond (an integer), a, b. */
struct f_where {
    template <class T0, class T1> using real = acc<T1>;
    template <class R> static MEMBER R run(i64 cond, R a, R b, const numbers<R> &) { return cond ? a : b; }
};
/* Inputs: cond, dy. */
struct f_where_da {
    template <class T0, class T1> using real = acc<T1>;
    template <class R> static MEMBER R run(i64 cond, R dy, const numbers<R> &) { return cond ? dy : 0; }
};
struct f_where_db {
    template <class T0, class T1> using real = acc<T1>;
    template <class R> static MEMBER R run(i64 cond, R dy, const numbers<R> &) { return cond ? 0 : dy; }
};

#undef MAP
#undef GRAD
#undef GRAD_OF
#undef COMPARE
