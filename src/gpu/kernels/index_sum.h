/* index_sum.h: what elements that ids lead to are added up in. */
#ifndef WK_KERNELS_INDEX_SUM_H
#define WK_KERNELS_INDEX_SUM_H

#include "device.h"

/* As on the CPU, but integers as unsigned ones, which wrap, and of 32 bits where that is enough. */
template <class T> struct sum_of {
    typedef u32 type;
};
template <> struct sum_of<f32> {
    typedef f32 type;
};
template <> struct sum_of<f16> : sum_of<f32> {
};
template <> struct sum_of<bf16> : sum_of<f32> {
};
template <> struct sum_of<f64> {
    typedef f64 type;
};
template <> struct sum_of<i64> {
    typedef u64 type;
};
template <class T> using sum = typename sum_of<T>::type;
template <class T> DEVICE sum<T> to_sum(T v) { return (sum<T>)get(v); }
template <class T> DEVICE T from_sum(sum<T> v) { return put<T>((acc<T>)v); }

#endif
