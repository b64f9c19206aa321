/* rope.hip: rotary embedding. A thread turns VEC pairs of the same position in some heads, for which it reads the
 * angles once. */
#include "device.h"
#include "ids.h"
#include "rope.h"

/* y1 = x1 cos - x2 sin, y2 = x1 sin + x2 cos. a and b hold the first and the second of VEC pairs; INTERLEAVED: they are
 * neighbours, and b goes on where a ends. */
template <class T, int VEC, int INTERLEAVED>
DEVICE void turn(pack<T, VEC> &a, pack<T, VEC> &b, const acc<T> *c, const acc<T> *s)
{
    UNROLL
    for (int e = 0; e < VEC; e++) {
        const int at = 2 * e % VEC, next = (2 * e + 1) % VEC;
        T *p = INTERLEAVED ? (2 * e < VEC ? &a.v[at] : &b.v[at]) : &a.v[e];
        T *q = INTERLEAVED ? (2 * e + 1 < VEC ? &a.v[next] : &b.v[next]) : &b.v[e];
        acc<T> x1 = get(*p), x2 = get(*q);
        *p = put<T>(x1 * c[e] - x2 * s[e]);
        *q = put<T>(x1 * s[e] + x2 * c[e]);
    }
}

/* The heads of a thread: all of them are read before the first is written. */
template <class T, int VEC, int INTERLEAVED>
DEVICE void turn_heads(int r, const T *x, i64 x_h, T *y, i64 y_h, int heads, int i, const acc<T> *c, const acc<T> *s)
{
    int first = INTERLEAVED ? 2 * i : i, second = INTERLEAVED ? 2 * i + VEC : i + r;
    pack<T, VEC> p[WK_ROPE_HEADS], q[WK_ROPE_HEADS];
    UNROLL
    for (int k = 0; k < WK_ROPE_HEADS; k++) {
        if (k >= heads)
            continue;
        p[k] = load<VEC>(x + k * x_h + first);
        q[k] = load<VEC>(x + k * x_h + second);
    }
    UNROLL
    for (int k = 0; k < WK_ROPE_HEADS; k++) {
        if (k >= heads)
            continue;
        turn<T, VEC, INTERLEAVED>(p[k], q[k], c, s);
        store<VEC>(y + k * y_h + first, p[k]);
        store<VEC>(y + k * y_h + second, q[k]);
    }
}

/* Whose heads a thread has. */
enum { OF_Q, OF_K, OF_V };
template <class V> DEVICE V of(int which, V q, V k, V v) { return which == OF_Q ? q : which == OF_K ? k : v; }

/* Values of as many heads, which are not turned; read first, too. */
template <class T, int VEC> DEVICE void copy_heads(const rope_args &a, const T *x, T *y, int heads, int i)
{
    pack<T, VEC> p[WK_ROPE_HEADS], q[WK_ROPE_HEADS];
    UNROLL
    for (int k = 0; k < WK_ROPE_HEADS; k++) {
        if (k >= heads)
            continue;
        p[k] = load<VEC>(x + k * a.v_h + i);
        q[k] = load<VEC>(x + k * a.v_h + i + a.r);
    }
    UNROLL
    for (int k = 0; k < WK_ROPE_HEADS; k++) {
        if (k >= heads)
            continue;
        store<VEC>(y + k * a.v_y_h + i, p[k]);
        store<VEC>(y + k * a.v_y_h + i + a.r, q[k]);
    }
}

template <class T, int VEC, int INTERLEAVED> DEVICE void rope(const rope_args &a)
{
    typedef acc<T> R;
    for (i64 task = global_thread(); task < a.tasks; task += global_threads()) {
        i64 rest = task < (i64)1 << 31 ? (i64)divide((u32)task, a.by_per_row) : task / a.per_row;
        int i = (int)(task - rest * a.per_row) * VEC;
        i64 rest2 = rest < (i64)1 << 31 ? (i64)divide((u32)rest, a.by_t) : rest / a.t;
        i64 t = rest - rest2 * a.t;
        i64 b = rest2 < (i64)1 << 31 ? (i64)divide((u32)rest2, a.by_turns) : rest2 / a.turns;
        int turn = (int)(rest2 - b * a.turns), which = turn < a.k_turn ? OF_Q : turn < a.v_turn ? OF_K : OF_V;
        int h = (turn - of(which, 0, a.k_turn, a.v_turn)) * WK_ROPE_HEADS;
        i64 x_h = of(which, a.x_h, a.k_h, a.v_h), y_h = of(which, a.y_h, a.k_y_h, a.v_y_h), to = t;
        if (a.place && which != OF_Q) {
            to = load_id(a.place, a.id_bytes, b);
            if (!id_leads(to, a.id_bytes, a.limit, a.report))
                continue;
        }
        const T *x = (const T *)of(which, a.x, a.k, a.v) + b * of(which, a.x_b, a.k_b, a.v_b) +
                     t * of(which, a.x_t, a.k_t, (i64)0) + h * x_h;
        T *y = (T *)of(which, a.y, a.k_y, a.v_y) + b * of(which, a.y_b, a.k_y_b, a.v_y_b) +
               to * of(which, a.y_t, a.k_y_t, a.v_y_t) + h * y_h;
        int heads = lesser(of(which, a.h, a.k_heads, a.k_heads) - h, (i32)WK_ROPE_HEADS);
        if (which == OF_V) {
            copy_heads<T, VEC>(a, x, y, heads, i);
            continue;
        }
        R c[VEC], s[VEC];
        if (i < a.r) {
            pack<T, VEC> cs = load<VEC>((const T *)a.cos + b * a.cos_b + t * a.cos_t + i);
            pack<T, VEC> sn = load<VEC>((const T *)a.sin + b * a.sin_b + t * a.sin_t + i);
            UNROLL
            for (int e = 0; e < VEC; e++) {
                c[e] = get(cs.v[e]);
                s[e] = (R)a.sign * get(sn.v[e]);
            }
            turn_heads<T, VEC, INTERLEAVED>(a.r, x, x_h, y, y_h, heads, i, c, s);
            continue;
        }
        for (int k = 0; k < heads; k++) /* behind the pairs: at i + r */
            store<VEC>(y + k * y_h + i + a.r, load<VEC>(x + k * x_h + i + a.r));
    }
}
