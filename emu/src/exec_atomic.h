/* exec_atomic.h - what atomic instructions do to a place in memory, for exec_memory.c. */
#ifndef ROCM_EMU_EXEC_ATOMIC_H
#define ROCM_EMU_EXEC_ATOMIC_H
#include "exec.h"

enum {
    A_SWAP,
    A_CMPSWAP,
    A_ADD,
    A_SUB,
    A_RSUB,
    A_SMIN,
    A_UMIN,
    A_SMAX,
    A_UMAX,
    A_AND,
    A_OR,
    A_XOR,
    A_INC,
    A_DEC,
    A_FADD,
    A_FMIN,
    A_FMAX,
    A_PKADD_F16,
    A_PKADD_BF16,
    A_MSKOR,
    A_X2 = 0x100,
    A_RTN = 0x200,
    A_NEW_FIRST = 0x400
};

static uint32_t atomic32(unsigned op, uint32_t m, uint32_t d, uint32_t cmp)
{
    switch (op) {
    case A_SWAP: return d;
    case A_CMPSWAP: return m == cmp ? d : m;
    case A_ADD: return m + d;
    case A_SUB: return m - d;
    case A_RSUB: return d - m;
    case A_SMIN: return (int32_t)m < (int32_t)d ? m : d;
    case A_UMIN: return m < d ? m : d;
    case A_SMAX: return (int32_t)m > (int32_t)d ? m : d;
    case A_UMAX: return m > d ? m : d;
    case A_AND: return m & d;
    case A_OR: return m | d;
    case A_XOR: return m ^ d;
    case A_INC: return m >= d ? 0 : m + 1;
    case A_DEC: return m == 0 || m > d ? d : m - 1;
    case A_FADD: return f2u(u2f(m) + u2f(d));
    case A_FMIN: return u2f(d) < u2f(m) ? d : m;
    case A_FMAX: return u2f(d) > u2f(m) ? d : m;
    case A_PKADD_F16: return f2h(h2f(m) + h2f(d)) | f2h(h2f(m >> 16) + h2f(d >> 16)) << 16;
    case A_PKADD_BF16: return f2bf(bf2f(m) + bf2f(d)) | f2bf(bf2f(m >> 16) + bf2f(d >> 16)) << 16;
    case A_MSKOR: return (m & ~d) | cmp;
    }
    return m;
}
static uint64_t atomic64(unsigned op, uint64_t m, uint64_t d, uint64_t cmp)
{
    switch (op) {
    case A_SWAP: return d;
    case A_CMPSWAP: return m == cmp ? d : m;
    case A_ADD: return m + d;
    case A_SUB: return m - d;
    case A_RSUB: return d - m;
    case A_SMIN: return (int64_t)m < (int64_t)d ? m : d;
    case A_UMIN: return m < d ? m : d;
    case A_SMAX: return (int64_t)m > (int64_t)d ? m : d;
    case A_UMAX: return m > d ? m : d;
    case A_AND: return m & d;
    case A_OR: return m | d;
    case A_XOR: return m ^ d;
    case A_INC: return m >= d ? 0 : m + 1;
    case A_DEC: return m == 0 || m > d ? d : m - 1;
    case A_FADD: return d2u(u2d(m) + u2d(d));
    case A_FMIN: return u2d(d) < u2d(m) ? d : m;
    case A_FMAX: return u2d(d) > u2d(m) ? d : m;
    case A_MSKOR: return (m & ~d) | cmp;
    }
    return m;
}

/* Other threads run other groups: read-modify-write with a compare-and-swap of the host. */
static void lane_atomic(Wave *w, int l, uint8_t *p, unsigned aux, unsigned data, unsigned cmp, unsigned ret, bool rtn)
{
    unsigned op = aux & 0xff;
    if (aux & A_X2) {
        uint64_t *m = (uint64_t *)p, old = __atomic_load_n(m, __ATOMIC_RELAXED);
        uint64_t d = w->v[data][l] | (uint64_t)w->v[data + 1][l] << 32;
        uint64_t c = op == A_CMPSWAP || op == A_MSKOR ? w->v[cmp][l] | (uint64_t)w->v[cmp + 1][l] << 32 : 0;
        while (
            !__atomic_compare_exchange_n(m, &old, atomic64(op, old, d, c), false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
            ;
        if (rtn)
            w->v[ret][l] = (uint32_t)old, w->v[ret + 1][l] = (uint32_t)(old >> 32);
    } else {
        uint32_t *m = (uint32_t *)p, old = __atomic_load_n(m, __ATOMIC_RELAXED);
        uint32_t d = w->v[data][l], c = op == A_CMPSWAP || op == A_MSKOR ? w->v[cmp][l] : 0;
        while (
            !__atomic_compare_exchange_n(m, &old, atomic32(op, old, d, c), false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
            ;
        if (rtn)
            w->v[ret][l] = old;
    }
}
#endif
