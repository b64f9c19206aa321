/* pad.hip: pad, tril, triu and one_hot: results that hold more than their input. T stands for any dtype of its size. */
#include "pad.h"
#include "ids.h"

/* Where element `at` of y would lie in x, and its place along the dimensions that matter. */
template <int WIDE> DEVICE void locate(const pad_args &a, i64 at, i64 *from, i64 *place)
{
    u32 small = (u32)at;
    *from = *place = 0;
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
        *from += i * a.from[d];
        *place += i * a.place[d];
    }
}

/* The element of x that stands at place i along the padded dimension; -1: none, a zero. */
DEVICE i64 padded(const pad_args &a, i64 i)
{
    i -= a.left;
    if ((u64)i < (u64)a.n)
        return i;
    if (a.mode == 0)
        return -1;
    if (a.mode == 1)
        return i < 0 ? 0 : a.n - 1;
    return i < 0 ? -i : 2 * (a.n - 1) - i;
}

/* VEC > 1: the innermost dimension is not the padded one, is walked by one in x and is a multiple of VEC. */
template <class T, int VEC, int WIDE> DEVICE void pad(const pad_args &a)
{
    for (i64 at = global_thread() * VEC; at < a.count; at += global_threads() * VEC) {
        i64 from, place;
        locate<WIDE>(a, at, &from, &place);
        i64 i = padded(a, place);
        pack<T, VEC> v = {};
        if (i >= 0)
            v = load<VEC>((const T *)a.x + from + i * a.step);
        store<VEC>((T *)a.y + at, v);
    }
}

/* Element (row, col) is kept where col - row is at most the diagonal, or at least that. What is not kept is not read.
 * VEC > 1: columns are a multiple of VEC and walked by one. */
template <class T, int VEC, int WIDE> DEVICE void triangle(const pad_args &a)
{
    for (i64 at = global_thread() * VEC; at < a.count; at += global_threads() * VEC) {
        i64 from, place;
        locate<WIDE>(a, at, &from, &place);
        i64 first = place, last = place + VEC - 1; /* col - row */
        pack<T, VEC> v = {};
        if (a.mode ? last >= a.diagonal : first <= a.diagonal)
            v = load<VEC>((const T *)a.x + from);
        UNROLL
        for (int k = 0; k < VEC; k++) {
            i64 offset = first + k;
            v.v[k] = (a.mode ? offset >= a.diagonal : offset <= a.diagonal) ? v.v[k] : (T)0;
        }
        store<VEC>((T *)a.y + at, v);
    }
}

/* VEC > 1: the depth is a multiple of VEC. */
template <class T, int VEC, int WIDE> DEVICE void one_hot(const one_hot_args &a)
{
    i64 count = a.rows * a.wide_row;
    for (i64 at = global_thread() * VEC; at < count; at += global_threads() * VEC) {
        i64 row = WIDE ? at / a.wide_row : (i64)divide((u32)at, a.row), col = at - row * a.wide_row;
        i64 id = load_id(a.ids, a.id_bytes, row);
        if (id == -1 || !id_leads(id, a.id_bytes, a.depth, a.report))
            id = -1;
        if (a.depth == 0)
            continue;
        pack<T, VEC> v;
        UNROLL
        for (int k = 0; k < VEC; k++)
            v.v[k] = (T)(col + k == id ? a.on : a.off);
        store<VEC>((T *)a.y + at, v);
    }
}
