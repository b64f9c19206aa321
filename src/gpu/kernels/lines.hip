/* lines.hip: lines that threads share: kept in their registers, or walked by a block. */
#ifndef WK_KERNELS_LINES_HIP
#define WK_KERNELS_LINES_HIP
#include "device.h"

/* Over the `group` threads of a line; every one of them gets the result. */
template <class OP, int THREADS, class A> DEVICE A line_reduce(A v, u32 group)
{
    SHARED A room[THREADS / 32];
    if (group > WAVE)
        return block_reduce<OP, THREADS>(v, room);
    for (u32 m = group / 2; m; m /= 2)
        v = OP::run(v, shuffle_xor(v, m));
    return v;
}

/* A thread's packs of a line, every group-th; `none` stands where the line has ended. */
template <int VEC, int KEEP, class T, class A>
DEVICE void fetch_line(A (*v)[VEC], const T *line, u32 at, u32 group, u32 steps, A none)
{
    pack<T, VEC> p[KEEP];
    UNROLL
    for (int k = 0; k < KEEP; k++) {
        if (at + k * group < steps)
            p[k] = load<VEC>(line + (i64)(at + k * group) * VEC);
    }
    UNROLL
    for (int k = 0; k < KEEP; k++) {
        UNROLL
        for (int i = 0; i < VEC; i++)
            v[k][i] = at + k * group < steps ? get(p[k].v[i]) : none;
    }
}

template <int VEC, int KEEP, class T, class A>
DEVICE void store_line(A (*v)[VEC], T *line, u32 at, u32 group, u32 steps)
{
    UNROLL
    for (int k = 0; k < KEEP; k++) {
        pack<T, VEC> p;
        UNROLL
        for (int i = 0; i < VEC; i++)
            p.v[i] = put<T>(v[k][i]);
        if (at + k * group < steps)
            store<VEC>(line + (i64)(at + k * group) * VEC, p);
    }
}

/* ---- lines that do not fit into registers ---- */

/* Packs that are on their way at a time. */
template <class T, int VEC> struct ahead_of {
    static const int packs = VEC == 1 ? 8 : sizeof(T) == 4 ? 4 : 2;
};

/* The largest element (0, where the sum is not to be shifted) and the sum of exp(x - top), by all threads of the block. */
template <int VEC, int THREADS, class T, class A>
DEVICE void line_sum_exp(const T *line, u32 steps, bool shifted, A *result_top, A *result_sum)
{
    const int ahead = ahead_of<T, VEC>::packs;
    /* It starts below every number but -infinity, so that no difference of infinities comes up. */
    A v[ahead][VEC], top = shifted ? lowest<A>() : 0, sum = 0;
    for (u32 at = thread_id(); at < steps; at += ahead * THREADS) {
        A before = top;
        fetch_line<VEC, ahead>(v, line, at, THREADS, steps, smallest<A>());
        UNROLL
        for (int j = 0; j < ahead * VEC; j++)
            top = shifted ? greater(top, v[j / VEC][j % VEC]) : 0;
        sum *= m_exp_fast(before - top);
        UNROLL
        for (int j = 0; j < ahead * VEC; j++)
            sum += m_exp_fast(v[j / VEC][j % VEC] - top);
    }
    *result_top = line_reduce<op_max, THREADS>(top, THREADS);
    *result_sum = line_reduce<op_sum, THREADS>(sum * m_exp_fast(top - *result_top), THREADS);
}

#endif
