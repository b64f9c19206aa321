/* softmax.hip: softmax and its gradient, in one pass over memory: a line lies in the registers of the threads that
 * share it. */
#include "map.hip"
#include "softmax.h"
#include "walk.hip"

enum { ACCURATE, FAST, LOG }; /* wk_softmax_mode */

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

template <class T, int VEC, int KEEP, int THREADS> DEVICE void softmax_lines(const softmax_args &a)
{
    typedef acc<T> A;
    u32 group = 1u << a.log_group, at = thread_id() & (group - 1), lines = THREADS >> a.log_group, steps = a.steps;
    for (i64 first = (i64)block_id() * lines; first < a.lines; first += (i64)grid_blocks() * lines) {
        i64 line = first + (thread_id() >> a.log_group);
        u32 mine = line < a.lines ? steps : 0;
        walk_offsets to = walk_to(a.kept, line < a.lines ? line : 0);
        A v[KEEP][VEC], top = smallest<A>(), sum = 0;
        fetch_line<VEC, KEEP>(v, (const T *)a.x + to.x, at, group, mine, smallest<A>());
        UNROLL
        for (int j = 0; j < KEEP * VEC; j++)
            top = max_nan(top, v[j / VEC][j % VEC]);
        top = a.mode == FAST ? 0 : line_reduce<op_max, THREADS>(top, group);
        UNROLL
        for (int j = 0; j < KEEP * VEC; j++) {
            A x = v[j / VEC][j % VEC] - top, e = m_exp(x);
            sum += e;
            v[j / VEC][j % VEC] = a.mode == LOG ? x : e;
        }
        sum = line_reduce<op_sum, THREADS>(sum, group);
        A scale = a.mode == LOG ? 1 : 1 / sum, shift = a.mode == LOG ? m_log(sum) : 0;
        UNROLL
        for (int j = 0; j < KEEP * VEC; j++)
            v[j / VEC][j % VEC] = v[j / VEC][j % VEC] * scale - shift;
        store_line<VEC, KEEP>(v, (T *)a.y + to.y, at, group, mine);
    }
}

/* dx = y (dy - sum(y dy)), or dy - exp(y) sum(dy) for the log. */
template <class T, int VEC, int KEEP, int THREADS> DEVICE void softmax_back_lines(const softmax_args &a)
{
    typedef acc<T> A;
    u32 group = 1u << a.log_group, at = thread_id() & (group - 1), lines = THREADS >> a.log_group, steps = a.steps;
    for (i64 first = (i64)block_id() * lines; first < a.lines; first += (i64)grid_blocks() * lines) {
        i64 line = first + (thread_id() >> a.log_group), number = line < a.lines ? line : 0;
        u32 mine = line < a.lines ? steps : 0;
        walk_offsets to = walk_to(a.kept, number);
        A y[KEEP][VEC], dy[KEEP][VEC], sum = 0;
        fetch_line<VEC, KEEP>(y, (const T *)a.x + to.x, at, group, mine, (A)0);
        fetch_line<VEC, KEEP>(dy, (const T *)a.dy + walk_to(a.kept_dy, number).x, at, group, mine, (A)0);
        UNROLL
        for (int j = 0; j < KEEP * VEC; j++)
            sum += a.mode == LOG ? dy[j / VEC][j % VEC] : y[j / VEC][j % VEC] * dy[j / VEC][j % VEC];
        sum = line_reduce<op_sum, THREADS>(sum, group);
        UNROLL
        for (int j = 0; j < KEEP * VEC; j++) {
            A yj = y[j / VEC][j % VEC], dyj = dy[j / VEC][j % VEC];
            y[j / VEC][j % VEC] = a.mode == LOG ? dyj - m_exp(yj) * sum : yj * (dyj - sum);
        }
        store_line<VEC, KEEP>(y, (T *)a.y + to.y, at, group, mine);
    }
}

/* ---- elementwise, from what a reduction has found: lines that do not fit, or of an unusual layout ---- */

#define FORMULA(name, formula) \
    struct f_##name { \
        template <class T0, class T1> using real = acc<T0>; \
        template <class R> static MEMBER R run(R x, R top, R z, const numbers<R> &) { return formula; } \
    };
FORMULA(softmax, m_exp(x - top) * z)
FORMULA(log_softmax, x - top - z)
struct f_fast_softmax {
    template <class T0, class T1> using real = acc<T0>;
    template <class R> static MEMBER R run(R x, R z, const numbers<R> &) { return m_exp(x) * z; }
};
struct f_product {
    template <class T0, class T1> using real = acc<T0>;
    template <class R> static MEMBER R run(R y, R dy, const numbers<R> &) { return y * dy; }
};
#define GRADIENT(name, formula) \
    struct f_##name##_grad { \
        template <class T0, class T1> using real = acc<T0>; \
        template <class R> static MEMBER R run(R y, R dy, R sum, const numbers<R> &) { return formula; } \
    };
GRADIENT(softmax, y *(dy - sum))
GRADIENT(log_softmax, dy - m_exp(y) * sum)
