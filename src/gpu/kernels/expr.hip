/* expr.hip: an elementwise expression as one loop. Its formula is written by gpu/expr.c, of the formulas of the ops. */
#include "expr.h"
#include "unary.hip"
#include "binary.hip"

/* T: the dtype of values, C: that of conditions. MODE 0: packed; 1: strided; 2: strided, more than 2^31 elements. */
template <class F, class TO, class T, class C, int VEC, int MODE> DEVICE void expr(const expr_args &a)
{
    for (i64 at = global_thread() * VEC; at < a.count; at += global_threads() * VEC) {
        i64 where[F::INPUTS];
        typename F::template inputs<T, C, VEC> x;
        pack<TO, VEC> y;
        if constexpr (MODE == 0) {
            UNROLL
            for (int k = 0; k < F::INPUTS; k++)
                where[k] = a.constant[k] ? 0 : at;
        } else {
            locate<F::INPUTS, MODE == 2>(a, at, where);
        }
        x.bring(a, where);
        UNROLL
        for (int i = 0; i < VEC; i++)
            y.v[i] = put<TO>(x.template run<acc<T>>(i));
        store<VEC>((TO *)a.out + at, y);
    }
}
