/* map.hip: the one elementwise loop: y = F(x0, x1, x2) for packed, constant and strided inputs of any dtype. */
#ifndef WK_KERNELS_MAP_HIP
#define WK_KERNELS_MAP_HIP

#include "device.h"
#include "map.h"

/* The op's numbers in the type it computes in. */
template <class R> struct numbers {
    R a, b, c;
    const wk_report *report;
    MEMBER numbers(R a_, R b_, R c_) : a(a_), b(b_), c(c_), report(nullptr) {}
    MEMBER numbers(const map_args &m) : a((R)m.f[0]), b((R)m.f[1]), c((R)m.f[2]), report(&m.report) {}
};
template <> MEMBER numbers<i64>::numbers(const map_args &m) : a(m.n[0]), b(m.n[1]), c(m.n[2]), report(&m.report) {}

/* N elements of an input, and one value in the place of N. */
template <class T, int N> DEVICE void fetch(const void *p, u32 at, bool same, T *x)
{
    pack<T, N> v;
    if (same) {
        T one = *(const T *)p;
        UNROLL
        for (int i = 0; i < N; i++)
            x[i] = one;
        return;
    }
    v = load<N>((const T *)p + at);
    UNROLL
    for (int i = 0; i < N; i++)
        x[i] = v.v[i];
}

/* VEC elements of the output from number first + mine on. */
template <class F, class TO, class T0, class T1, class T2, int INPUTS, int VEC>
DEVICE void compute(const map_args &a, i64 first, u32 mine, const T0 *x0, const T1 *x1, const T2 *x2)
{
    numbers<typename F::template real<T0, T1>> p(a);
    pack<TO, VEC> y;
    UNROLL
    for (int i = 0; i < VEC; i++) {
        if constexpr (INPUTS == 0)
            y.v[i] = put<TO>(F::run(first + mine + i, p));
        else if constexpr (INPUTS == 1)
            y.v[i] = put<TO>(F::run(get(x0[i]), p));
        else if constexpr (INPUTS == 2)
            y.v[i] = put<TO>(F::run(get(x0[i]), get(x1[i]), p));
        else
            y.v[i] = put<TO>(F::run(get(x0[i]), get(x1[i]), get(x2[i]), p));
    }
    store<VEC>((TO *)a.out + first + mine, y);
}

/* Every input packed, or one element. Where the block begins is kept apart from the thread's place in it, and there is no
 * loop: addresses are then a base that the block shares and an offset of 32 bits. */
template <class F, class TO, class T0, class T1, class T2, int INPUTS, int VEC>
DEVICE void map_packed(const map_args &a)
{
    i64 first = (i64)block_id() * (block_size() * VEC);
    u32 mine = thread_id() * VEC;
    if (mine >= a.count - first)
        return;
    T0 x0[VEC];
    T1 x1[VEC];
    T2 x2[VEC];
    if constexpr (INPUTS == 1) /* never one element for all */
        fetch<T0, VEC>((const T0 *)a.in[0] + first, mine, false, x0);
    if constexpr (INPUTS > 1) {
        fetch<T0, VEC>((const T0 *)a.in[0] + (a.constant[0] ? 0 : first), mine, a.constant[0], x0);
        fetch<T1, VEC>((const T1 *)a.in[1] + (a.constant[1] ? 0 : first), mine, a.constant[1], x1);
    }
    if constexpr (INPUTS > 2)
        fetch<T2, VEC>((const T2 *)a.in[2] + (a.constant[2] ? 0 : first), mine, a.constant[2], x2);
    compute<F, TO, T0, T1, T2, INPUTS, VEC>(a, first, mine, x0, x1, x2);
}

/* Where element `at` of the output lies in each input. */
template <int INPUTS, int WIDE, class ARGS> DEVICE void locate(const ARGS &a, i64 at, i64 *where)
{
    u32 small = (u32)at;
    UNROLL
    for (int k = 0; k < INPUTS; k++)
        where[k] = 0;
    UNROLL
    for (int d = 0; d < WK_DIMS; d++) {
        if (d >= a.rank)
            break;
        i64 i;
        if (WIDE) {
            i64 rest = at / a.size64[d];
            i = at - rest * a.size64[d];
            at = rest;
        } else {
            u32 rest = divide(small, a.size[d]);
            i = small - rest * a.size[d].d;
            small = rest;
        }
        UNROLL
        for (int k = 0; k < INPUTS; k++)
            where[k] += i * a.stride[k][d];
    }
}

/* Any strides; with VEC > 1 the innermost dimension is a multiple of VEC and every input walks it by 0 or 1. */
template <class F, class TO, class T0, class T1, class T2, int INPUTS, int VEC, int WIDE>
DEVICE void map_strided(const map_args &a)
{
    for (i64 at = global_thread() * VEC; at < a.count; at += global_threads() * VEC) {
        T0 x0[VEC];
        T1 x1[VEC];
        T2 x2[VEC];
        i64 where[WK_MAP_MAX];
        locate<INPUTS, WIDE>(a, at, where);
        if constexpr (INPUTS > 0)
            fetch<T0, VEC>((const T0 *)a.in[0] + where[0], 0, VEC > 1 && a.stride[0][0] == 0, x0);
        if constexpr (INPUTS > 1)
            fetch<T1, VEC>((const T1 *)a.in[1] + where[1], 0, VEC > 1 && a.stride[1][0] == 0, x1);
        if constexpr (INPUTS > 2)
            fetch<T2, VEC>((const T2 *)a.in[2] + where[2], 0, VEC > 1 && a.stride[2][0] == 0, x2);
        compute<F, TO, T0, T1, T2, INPUTS, VEC>(a, at, 0, x0, x1, x2);
    }
}

/* Rows that every input walks by 0 or 1: a block is in one of them, whose number is its y, so that nothing is divided. */
template <class F, class TO, class T0, class T1, class T2, int INPUTS, int VEC> DEVICE void map_rows(const map_args &a)
{
    i64 row = block_id_y();
    u32 at = (block_id() * block_size() + thread_id()) * VEC, width = (u32)a.size64[0];
    if (at >= width)
        return;
    T0 x0[VEC];
    T1 x1[VEC];
    T2 x2[VEC];
    if constexpr (INPUTS > 0)
        fetch<T0, VEC>((const T0 *)a.in[0] + row * a.stride[0][1], at, a.stride[0][0] == 0, x0);
    if constexpr (INPUTS > 1)
        fetch<T1, VEC>((const T1 *)a.in[1] + row * a.stride[1][1], at, a.stride[1][0] == 0, x1);
    if constexpr (INPUTS > 2)
        fetch<T2, VEC>((const T2 *)a.in[2] + row * a.stride[2][1], at, a.stride[2][0] == 0, x2);
    compute<F, TO, T0, T1, T2, INPUTS, VEC>(a, row * width, at, x0, x1, x2);
}

/* MODE 0: packed; 1: strided; 2: strided, more than 2^31 elements; 3: rows. */
template <class F, class TO, class T0, class T1, class T2, int INPUTS, int VEC, int MODE>
DEVICE void map(const map_args &a)
{
    if constexpr (MODE == 0)
        map_packed<F, TO, T0, T1, T2, INPUTS, VEC>(a);
    else if constexpr (MODE == 3)
        map_rows<F, TO, T0, T1, T2, INPUTS, VEC>(a);
    else
        map_strided<F, TO, T0, T1, T2, INPUTS, VEC, MODE == 2>(a);
}

#endif
