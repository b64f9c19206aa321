/* conv_end.h: what the results of a convolution end with. */
#ifndef WK_KERNELS_CONV_END_H
#define WK_KERNELS_CONV_END_H

#include "conv.h"
#include "device.h"

/* Result number `at`, with its bias, to where it goes. */
template <class T> DEVICE void put_result(const conv_end &e, void *out, i64 at, acc<T> v)
{
    typedef acc<T> A;
    if (e.some) {
        if (e.z)
            v += get(((const T *)e.z)[at]);
        v = v < 0 ? v * (A)e.slope : v;
        v = v < (A)e.lo ? (A)e.lo : v > (A)e.hi ? (A)e.hi : v;
    }
    ((T *)out)[at] = put<T>(v);
}

#endif
