/* scan.hip: running sums along lines, and across them where lines lie side by side. */
#include "scan.h"
#include "walk.hip"

/* Sums that go from tile to tile are kept in double, where floats would lose what is small beside them. */
template <class A> struct carry_of {
    typedef f64 type;
};
template <> struct carry_of<i64> {
    typedef i64 type;
};
template <class T> using carry = typename carry_of<acc<T>>::type;

template <class A> DEVICE A add(A a, A b) { return a + b; }
DEVICE i64 add(i64 a, i64 b) { return (i64)((u64)a + (u64)b); }

struct op_add {
    template <class A> static MEMBER A run(A a, A b) { return add(a, b); }
};

/* The sum of v over the lanes before this one in its group; total gets that of all. */
template <class A> DEVICE A lanes_before(A v, u32 group, A *total)
{
    u32 lane = lane_id() & (group - 1);
    A sum = v;
    for (u32 m = 1; m < group; m *= 2) {
        A below = shuffle(sum, lane_id() - (lane >= m ? m : 0));
        sum = lane >= m ? add(sum, below) : sum;
    }
    A last = shuffle(sum, lane_id() - lane + group - 1), before = shuffle(sum, lane_id() - (lane ? 1 : 0));
    *total = last;
    return lane ? before : 0;
}

/* The same over the block. */
template <class A> DEVICE A threads_before(A v, u32 group, A *total)
{
    SHARED A room[WK_SCAN_THREADS / WAVE];
    if (group <= WAVE)
        return lanes_before(v, group, total);
    A of_wave, before = lanes_before(v, WAVE, &of_wave), sum = 0;
    if (lane_id() == 0)
        room[wave_id()] = of_wave;
    barrier();
    for (u32 i = 0; i < WK_SCAN_THREADS / WAVE; i++) {
        before = i < wave_id() ? add(before, room[i]) : before;
        sum = add(sum, room[i]);
    }
    barrier();
    *total = sum;
    return before;
}

/* What the parts of the line before this one add up to. */
template <class C> DEVICE C parts_before(const cumsum_args &a, i64 line, u32 part)
{
    SHARED C room[WK_SCAN_THREADS / WAVE];
    C sum = 0;
    for (u32 i = thread_id(); i < part; i += WK_SCAN_THREADS)
        sum = add(sum, ((const C *)a.sums)[line * a.n_parts + i]);
    return block_reduce<op_add, WK_SCAN_THREADS>(sum, room);
}

/* The i-th neighbour of a pack, counted from the end that comes first. */
template <class T, int VEC> DEVICE T turned(const pack<T, VEC> &p, int i, bool reverse)
{
    return reverse ? p.v[VEC - 1 - i] : p.v[i];
}

/* 2^log_group threads share a line and take VEC neighbours each. The next pack is on its way while one is added up. */
template <class T, int VEC> DEVICE void cumsum_rows(const cumsum_args &a)
{
    typedef acc<T> A;
    typedef carry<T> C;
    u32 group = 1u << a.log_group, lane = thread_id() & (group - 1), rows = WK_SCAN_THREADS >> a.log_group,
        part = block_id_y();
    i64 begin = part * a.part, end = lesser(a.n, begin + a.part), tile = (i64)group * VEC;
    bool reverse = a.reverse;
    for (i64 first = (i64)block_id() * rows; first < a.lines; first += (i64)grid_blocks() * rows) {
        i64 line = first + (thread_id() >> a.log_group), at = begin + lane * VEC;
        i64 mine = line < a.lines ? end : 0;
        walk_offsets to = walk_to(a.kept, line < a.lines ? line : 0);
        C sum = part && !a.sums_only ? parts_before<C>(a, line, part) : 0;
        pack<T, VEC> next, p;
        if (at < mine)
            next = load<VEC>((const T *)a.x + to.x + (reverse ? a.n - VEC - at : at) * a.step_x);
        for (i64 t = begin; t < end; t += tile, at += tile) {
            A v[VEC], total;
            UNROLL
            for (int i = 0; i < VEC; i++) {
                A x = at < mine ? get(turned(next, i, reverse)) : 0;
                v[i] = i ? add(v[i ? i - 1 : 0], x) : x;
            }
            i64 then = at + tile;
            if (then < mine)
                next = load<VEC>((const T *)a.x + to.x + (reverse ? a.n - VEC - then : then) * a.step_x);
            A before = threads_before(v[VEC - 1], group, &total);
            UNROLL
            for (int i = 0; i < VEC; i++)
                p.v[i] = put<T>((A)add(sum, (C)add(before, reverse ? v[VEC - 1 - i] : v[i])));
            if (at < mine && !a.sums_only)
                store<VEC>((T *)a.y + to.y + (reverse ? a.n - VEC - at : at) * a.step_y, p);
            sum = add(sum, (C)total);
        }
        if (a.sums_only && lane == 0)
            ((C *)a.sums)[line * a.n_parts + part] = sum;
    }
}

/* A thread for each of the lines, which lie side by side. */
template <class T> DEVICE void cumsum_columns(const cumsum_args &a)
{
    typedef carry<T> C;
    const int ahead = 8; /* elements on their way at a time */
    u32 part = block_id_y();
    i64 begin = part * a.part, end = lesser(a.n, begin + a.part);
    for (i64 line = global_thread(); line < a.lines; line += global_threads()) {
        walk_offsets to = walk_to(a.kept, line);
        const T *x = (const T *)a.x + to.x + (a.reverse ? a.n - 1 - begin : begin) * a.step_x;
        T *y = (T *)a.y + to.y + (a.reverse ? a.n - 1 - begin : begin) * a.step_y;
        i64 step_x = a.reverse ? -a.step_x : a.step_x, step_y = a.reverse ? -a.step_y : a.step_y;
        C sum = 0;
        for (u32 i = 0; i < part && !a.sums_only; i++)
            sum = add(sum, ((const C *)a.sums)[line + i * a.lines]);
        for (i64 at = begin; at < end; at += ahead) {
            T v[ahead];
            UNROLL
            for (int i = 0; i < ahead; i++, x += step_x)
                v[i] = at + i < end ? *x : put<T>((acc<T>)0);
            UNROLL
            for (int i = 0; i < ahead; i++, y += step_y) {
                sum = add(sum, (C)get(v[i]));
                if (at + i < end && !a.sums_only)
                    *y = put<T>((acc<T>)sum);
            }
        }
        if (a.sums_only)
            ((C *)a.sums)[line + part * a.lines] = sum;
    }
}
