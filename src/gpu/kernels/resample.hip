/* resample.hip: planes of another size, by the nearest element or between neighbours, and the gradients of both. */
#include "planes.hip"
#include "resample.h"

DEVICE i32 nearest_source(const resample_dim &d, i32 o)
{
    if (d.small)
        return (i32)divide((u32)o * (u32)d.in, d.by_out);
    return (i32)((u64)o * (u64)d.in / (u64)d.out);
}

/* y[o] = (1 - t) x[lo] + t x[min(lo + 1, in - 1)]; returns lo. In double for every dtype: lo has to be the same. */
DEVICE i32 linear_source(const resample_dim &d, bool align_corners, i32 o, f64 *t)
{
    f64 at = align_corners ? d.step * o : d.step * (o + 0.5) - 0.5;
    at = at < 0 ? 0 : at;
    i32 lo = at < d.in - 1 ? (i32)at : d.in - 1;
    *t = at - lo < 1 ? at - lo : 1;
    return lo;
}

/* The columns that a thread makes: where they come from and the shares of both neighbours. */
template <class A, int LINEAR, int VEC> struct columns {
    i32 lo[VEC], hi[VEC];
    A left[VEC], right[VEC];
    MEMBER columns(const resample_args &a, i32 ow)
    {
        UNROLL
        for (int i = 0; i < VEC; i++) {
            f64 t = 0;
            lo[i] = LINEAR ? linear_source(a.w, a.align_corners, ow + i, &t) : nearest_source(a.w, ow + i);
            hi[i] = lo[i] + 1 < a.w.in ? lo[i] + 1 : lo[i];
            left[i] = (A)(1 - t);
            right[i] = (A)t;
        }
    }
};

template <class T, int LINEAR, int VEC>
DEVICE pack<T, VEC> make_row(const resample_args &a, const T *x, i32 oh, const columns<acc<T>, LINEAR, VEC> &c)
{
    pack<T, VEC> y;
    if constexpr (LINEAR) {
        typedef acc<T> A;
        f64 t;
        i32 lo = linear_source(a.h, a.align_corners, oh, &t), hi = lo + 1 < a.h.in ? lo + 1 : lo;
        const T *high = x + lo * a.from.row, *low = x + hi * a.from.row;
        A up = (A)(1 - t), down = (A)t;
        UNROLL
        for (int i = 0; i < VEC; i++) {
            A first = up * get(high[c.lo[i]]) + down * get(low[c.lo[i]]);
            A next = up * get(high[c.hi[i]]) + down * get(low[c.hi[i]]);
            y.v[i] = put<T>(c.left[i] * first + c.right[i] * next);
        }
    } else {
        const T *from = x + nearest_source(a.h, oh) * a.from.row;
        UNROLL
        for (int i = 0; i < VEC; i++)
            y.v[i] = from[c.lo[i]];
    }
    return y;
}

/* A thread makes VEC neighbours in a few rows. Nearest: T stands for any dtype of its size. */
template <class T, int LINEAR, int VEC> DEVICE void resample(const resample_args &a)
{
    for (u32 i = (u32)global_thread(); i < a.walk.items; i += (u32)global_threads()) {
        plane_item at(a.walk, i);
        i32 ow = at.col * VEC, end = lesser(at.row + a.walk.rows, a.h.out);
        const T *x = plane_of<const T>(a.from, a.walk, at.plane);
        T *y = (T *)a.to + ((a.walk.first + at.plane) * a.h.out + at.row) * a.w.out + ow;
        columns<acc<T>, LINEAR, VEC> c(a, ow);
        const int EACH = LINEAR ? 1 : 4; /* rows that are on their way at a time */
        for (i32 oh = at.row; oh < end; oh += EACH) {
            pack<T, VEC> rows[EACH];
            UNROLL
            for (int r = 0; r < EACH; r++)
                rows[r] = make_row<T, LINEAR, VEC>(a, x, lesser(oh + r, end - 1), c);
            UNROLL
            for (int r = 0; r < EACH && oh + r < end; r++, y += a.w.out)
                store<VEC>(y, rows[r]);
        }
    }
}

/* ---- gradients: every element of dx gathers from the elements it went into ---- */

DEVICE i32 source_of(const resample_args &a, const resample_dim &d, i32 o, f64 *t)
{
    *t = 0;
    return a.linear ? linear_source(d, a.align_corners, o, t) : nearest_source(d, o);
}

/* Place i of a dimension's lists. */
template <class A> DEVICE void tabulate(const resample_args &a, const resample_dim &d, i32 i)
{
    f64 t;
    if (i < d.out) {
        d.lo[i] = source_of(a, d, i, &t);
        ((A *)d.left)[i] = (A)(1 - t);
        ((A *)d.right)[i] = (A)t;
    }
    if (i <= d.in) {
        i32 begin = 0, end = d.out;
        while (begin < end) {
            i32 middle = begin + (end - begin) / 2;
            if (source_of(a, d, middle, &t) < i)
                begin = middle + 1;
            else
                end = middle;
        }
        d.first[i] = begin;
    }
}

template <class T> DEVICE void resample_lists(const resample_args &a)
{
    for (u32 i = (u32)global_thread(); i < a.longest; i += (u32)global_threads()) {
        tabulate<acc<T>>(a, a.h, (i32)i);
        tabulate<acc<T>>(a, a.w, (i32)i);
    }
}

/* What element i of x has of element o of the result. */
template <class A> DEVICE A share_of(const resample_args &a, const resample_dim &d, i32 i, i32 o)
{
    if (!a.linear)
        return 1;
    i32 lo = d.lo[o], hi = lo + 1 < d.in ? lo + 1 : lo;
    return (lo == i ? ((const A *)d.left)[o] : 0) + (hi == i ? ((const A *)d.right)[o] : 0);
}

struct range {
    i32 begin, end;
};
DEVICE range went_into(const resample_args &a, const resample_dim &d, i32 i)
{
    return {d.first[a.linear && i > 0 ? i - 1 : i], d.first[i + 1]};
}

/* Up to so many elements of a row of the result come from a column of x (with a factor of 2 they do): places and shares
 * are kept at hand. */
enum { NEAR = 5 };
template <class A> struct near_columns {
    i32 count; /* 0: more than that */
    i32 at[NEAR];
    A share[NEAR];
    MEMBER near_columns(const resample_args &a, i32 col, range across)
    {
        count = across.end - across.begin;
        count = count <= NEAR ? count : 0;
        UNROLL
        for (int i = 0; i < NEAR; i++) {
            at[i] = i < count ? across.begin + i : across.begin;
            share[i] = i < count ? share_of<A>(a, a.w, col, at[i]) : 0;
        }
    }
};

/* WIDE: a wave makes an element, for large factors; else a thread. */
template <class T, int WIDE> DEVICE void resample_grad(const resample_args &a)
{
    typedef acc<T> A;
    const u32 lanes = WIDE ? WAVE : 1, mine = WIDE ? lane_id() : 0;
    for (u32 i = (u32)global_thread() / lanes; i < a.walk.items; i += (u32)global_threads() / lanes) {
        plane_item at(a.walk, i);
        const T *dy = plane_of<const T>(a.from, a.walk, at.plane);
        range down = went_into(a, a.h, at.row), across = went_into(a, a.w, at.col);
        near_columns<A> near(a, at.col, across);
        A sum = 0;
        for (i32 oh = down.begin; oh < down.end; oh++) {
            const T *row = dy + oh * a.from.row;
            A part = 0;
            if (!WIDE && near.count) {
                UNROLL
                for (int k = 0; k < NEAR; k++) {
                    A g = get(row[near.at[k]]);
                    part += near.share[k] * (k < near.count ? g : 0);
                }
            } else {
                for (i32 ow = across.begin + (i32)mine; ow < across.end; ow += (i32)lanes)
                    part += share_of<A>(a, a.w, at.col, ow) * get(row[ow]);
            }
            sum += share_of<A>(a, a.h, at.row, oh) * part;
        }
        if (WIDE)
            sum = wave_reduce<op_sum>(sum);
        if (mine == 0)
            ((T *)a.to)[((a.walk.first + at.plane) * a.h.in + at.row) * a.w.in + at.col] = put<T>(sum);
    }
}
