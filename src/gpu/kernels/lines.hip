/* lines.hip: lines kept in the registers of the threads that share them. */
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

#endif
