/* softmax.hip: softmax and its gradient, in one pass over memory where a line fits into the registers of the threads
 * that share it. */
#include "ahead.h"
#include "lines.hip"
#include "map.hip"
#include "softmax.h"
#include "walk.hip"

enum { ACCURATE, FAST, LOG }; /* wk_softmax_mode */

template <class T, int VEC, int KEEP, int THREADS, int MODE> DEVICE void softmax_lines(const softmax_args &a)
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
        top = MODE == FAST ? 0 : line_reduce<op_max, THREADS>(top, group);
        UNROLL
        for (int j = 0; j < KEEP * VEC; j++) {
            A x = v[j / VEC][j % VEC] - top, e = m_exp_fast(x);
            sum += e;
            v[j / VEC][j % VEC] = MODE == LOG ? x : e;
        }
        sum = line_reduce<op_sum, THREADS>(sum, group);
        A scale = MODE == LOG ? 1 : 1 / sum, shift = MODE == LOG ? m_log(sum) : 0;
        UNROLL
        for (int j = 0; j < KEEP * VEC; j++)
            v[j / VEC][j % VEC] = v[j / VEC][j % VEC] * scale - shift;
        store_line<VEC, KEEP>(v, (T *)a.y + to.y, at, group, mine);
    }
}

/* dx = y (dy - sum(y dy)), or dy - exp(y) sum(dy) for the log. */
template <class T, int VEC, int KEEP, int THREADS, int MODE> DEVICE void softmax_back_lines(const softmax_args &a)
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
            sum += MODE == LOG ? dy[j / VEC][j % VEC] : y[j / VEC][j % VEC] * dy[j / VEC][j % VEC];
        sum = line_reduce<op_sum, THREADS>(sum, group);
        UNROLL
        for (int j = 0; j < KEEP * VEC; j++) {
            A yj = y[j / VEC][j % VEC], dyj = dy[j / VEC][j % VEC];
            y[j / VEC][j % VEC] = MODE == LOG ? dyj - m_exp_fast(yj) * sum : yj * (dyj - sum);
        }
        store_line<VEC, KEEP>(y, (T *)a.y + to.y, at, group, mine);
    }
}

/* What becomes of an element, once the line's sum is known. */
struct softmax_result {
    exp_from e;
    f32 top, scale, shift;
    MEMBER softmax_result(const sum_exp<f32> &total) : e(total.top)
    {
        top = total.top;
        scale = e.mend / total.sum;
        shift = m_log(total.sum);
    }
    MEMBER f32 of(f32 x, i32 mode) const { return mode == LOG ? x - top - shift : e.of(x) * scale; }
};

/* Longer lines, of a block or a cluster each. */
template <class T, int KEEP, int THREADS, int BLOCKS> DEVICE void softmax_kept(const softmax_args &a)
{
    typedef acc<T> A;
    SHARED A all[2][BLOCKS][2];
    kept_line<T, KEEP, THREADS, BLOCKS> x;
    x.steps = (u32)a.steps;
    cluster_begin<BLOCKS>();
    i64 start = block_id() / BLOCKS, clusters = grid_blocks() / BLOCKS;
    for (i64 line = start, turn = 0; line < a.lines; line += clusters, turn++) {
        walk_offsets to = walk_to(a.kept, line);
        x.fetch((const T *)a.x + to.x, put<T>(smallest<A>()));
        sum_exp<A> total = kept_sum_exp(x, a.mode != FAST, all[turn & 1], turn == 0);
        softmax_result f(total);
        UNROLL
        for (int k = 0; k < KEEP; k++) {
            A v[x.VEC];
            x.forget(k);
            UNROLL
            for (int i = 0; i < x.VEC; i++)
                v[i] = f.of(x.value(k, i), a.mode);
            x.store_pack(k, (T *)a.y + to.y, v);
        }
    }
}

#ifdef WK_NVIDIA
/* The sum of parts that others have told of, by all lanes of a wave. */
template <int PARTS> DEVICE sum_exp<f32> merge_parts(const f32 (*parts)[2])
{
    f32 top = lowest<f32>(), sum = 0;
    for (int i = (int)lane_id(); i < PARTS; i += WAVE)
        top = max_number(top, parts[i][0]);
    top = wave_reduce<op_max_number>(top);
    for (int i = (int)lane_id(); i < PARTS; i += WAVE)
        sum += parts[i][1] * m_exp_fast(parts[i][0] - top);
    return {top, wave_reduce<op_sum>(sum)};
}

/* A line of a cluster in shared memory, which both passes read. */
template <class T, int KEEP, int THREADS, int LOGS, int BLOCKS> DEVICE void softmax_ahead(const softmax_args &a)
{
    const int WAVES = THREADS / WAVE;
    SHARED cluster_box<BLOCKS, 1, f32> box;
    SHARED f32 room[WAVES][2];
    passing_line<T, KEEP, THREADS, BLOCKS> x;
    walk_offsets to = walk_to(a.kept, block_id() / BLOCKS);
    x.steps = (u32)a.steps;
    x.send_for((const T *)a.x + to.x);
    x.fill_ends(put<T>(smallest<f32>()));
    box.open();
    x.await();
    x.pick_all(0);
    sum_exp<f32> part = kept_sum_exp_wave(x, a.mode != FAST);
    cluster_wait();
    put_wave_sum(part, room);
    if (wave_id() == 0) {
        part = merge_sums<WAVES>(room);
        f32 mine[2] = {part.top, part.sum};
        box.tell(0, mine);
    }
    softmax_result f(merge_parts<BLOCKS>(box.heard(0)));
    UNROLL
    for (int k = 0; k < KEEP; k++) {
        f32 v[x.VEC];
        x.pick(0, k);
        UNROLL
        for (int i = 0; i < x.VEC; i++)
            v[i] = f.of(x.value(k, i), LOGS ? LOG : ACCURATE);
        x.store_pack(k, (T *)a.y + to.y, v);
    }
}
#endif

/* ---- lines that do not fit: read twice by their block, the second time from the cache ---- */

template <class T, int VEC, int THREADS> DEVICE void softmax_stream(const softmax_args &a)
{
    typedef acc<T> A;
    const int ahead = ahead_of<T, VEC>::packs;
    for (i64 line = block_id(); line < a.lines; line += grid_blocks()) {
        walk_offsets to = walk_to(a.kept, line);
        A v[ahead][VEC], top, sum;
        line_sum_exp<VEC, THREADS>((const T *)a.x + to.x, (u32)a.steps, a.mode != FAST, &top, &sum);
        A scale = 1 / sum, shift = m_log(sum);
        for (u32 at = thread_id(); at < (u32)a.steps; at += ahead * THREADS) {
            fetch_line<VEC, ahead>(v, (const T *)a.x + to.x, at, THREADS, (u32)a.steps, (A)0);
            UNROLL
            for (int j = 0; j < ahead * VEC; j++) {
                A x = v[j / VEC][j % VEC] - top;
                v[j / VEC][j % VEC] = a.mode == LOG ? x - shift : m_exp_fast(x) * scale;
            }
            store_line<VEC, ahead>(v, (T *)a.y + to.y, at, THREADS, (u32)a.steps);
        }
    }
}

template <class T, int VEC, int THREADS> DEVICE void softmax_back_stream(const softmax_args &a)
{
    typedef acc<T> A;
    const int ahead = ahead_of<T, VEC>::packs / 2;
    for (i64 line = block_id(); line < a.lines; line += grid_blocks()) {
        walk_offsets to = walk_to(a.kept, line);
        const T *from = (const T *)a.dy + walk_to(a.kept_dy, line).x;
        A y[ahead][VEC], dy[ahead][VEC], sum = 0;
        for (u32 at = thread_id(); at < (u32)a.steps; at += ahead * THREADS) {
            fetch_line<VEC, ahead>(y, (const T *)a.x + to.x, at, THREADS, (u32)a.steps, (A)0);
            fetch_line<VEC, ahead>(dy, from, at, THREADS, (u32)a.steps, (A)0);
            UNROLL
            for (int j = 0; j < ahead * VEC; j++)
                sum += a.mode == LOG ? dy[j / VEC][j % VEC] : y[j / VEC][j % VEC] * dy[j / VEC][j % VEC];
        }
        sum = line_reduce<op_sum, THREADS>(sum, THREADS);
        for (u32 at = thread_id(); at < (u32)a.steps; at += ahead * THREADS) {
            fetch_line<VEC, ahead>(y, (const T *)a.x + to.x, at, THREADS, (u32)a.steps, (A)0);
            fetch_line<VEC, ahead>(dy, from, at, THREADS, (u32)a.steps, (A)0);
            UNROLL
            for (int j = 0; j < ahead * VEC; j++) {
                A yj = y[j / VEC][j % VEC], dyj = dy[j / VEC][j % VEC];
                y[j / VEC][j % VEC] = a.mode == LOG ? dyj - m_exp_fast(yj) * sum : yj * (dyj - sum);
            }
            store_line<VEC, ahead>(y, (T *)a.y + to.y, at, THREADS, (u32)a.steps);
        }
    }
}

/* ---- short lines side by side: a thread keeps VEC neighbouring ones ---- */

template <int VEC, int KEEP, class T, class A>
DEVICE void fetch_columns(A (*v)[VEC], const T *x, i64 step, i32 n, A none)
{
    pack<T, VEC> p[KEEP];
    UNROLL
    for (int k = 0; k < KEEP; k++, x += step) {
        if (k < n)
            p[k] = load<VEC>(x);
    }
    UNROLL
    for (int j = 0; j < KEEP * VEC; j++)
        v[j / VEC][j % VEC] = j / VEC < n ? get(p[j / VEC].v[j % VEC]) : none;
}

template <int VEC, int KEEP, class T, class A> DEVICE void store_columns(A (*v)[VEC], T *y, i64 step, i32 n)
{
    UNROLL
    for (int k = 0; k < KEEP; k++, y += step) {
        pack<T, VEC> p;
        UNROLL
        for (int i = 0; i < VEC; i++)
            p.v[i] = put<T>(v[k][i]);
        if (k < n)
            store<VEC>(y, p);
    }
}

template <class T, int VEC, int KEEP> DEVICE void softmax_columns(const softmax_args &a)
{
    typedef acc<T> A;
    for (i64 at = global_thread(); at < a.lines; at += global_threads()) {
        walk_offsets to = walk_to(a.kept, at);
        A v[KEEP][VEC];
        fetch_columns<VEC, KEEP>(v, (const T *)a.x + to.x, a.step_x, a.steps, smallest<A>());
        UNROLL
        for (int i = 0; i < VEC; i++) {
            A top = smallest<A>(), sum = 0;
            UNROLL
            for (int k = 0; k < KEEP; k++)
                top = max_nan(top, v[k][i]);
            top = a.mode == FAST ? 0 : top;
            UNROLL
            for (int k = 0; k < KEEP; k++) {
                A x = v[k][i] - top, e = m_exp_fast(x);
                sum += e;
                v[k][i] = a.mode == LOG ? x : e;
            }
            A scale = a.mode == LOG ? 1 : 1 / sum, shift = a.mode == LOG ? m_log(sum) : 0;
            UNROLL
            for (int k = 0; k < KEEP; k++)
                v[k][i] = v[k][i] * scale - shift;
        }
        store_columns<VEC, KEEP>(v, (T *)a.y + to.y, a.step_y, a.steps);
    }
}

template <class T, int VEC, int KEEP> DEVICE void softmax_back_columns(const softmax_args &a)
{
    typedef acc<T> A;
    for (i64 at = global_thread(); at < a.lines; at += global_threads()) {
        walk_offsets to = walk_to(a.kept, at);
        A y[KEEP][VEC], dy[KEEP][VEC];
        fetch_columns<VEC, KEEP>(y, (const T *)a.x + to.x, a.step_x, a.steps, (A)0);
        fetch_columns<VEC, KEEP>(dy, (const T *)a.dy + walk_to(a.kept_dy, at).x, a.step_dy, a.steps, (A)0);
        UNROLL
        for (int i = 0; i < VEC; i++) {
            A sum = 0;
            UNROLL
            for (int k = 0; k < KEEP; k++)
                sum += a.mode == LOG ? dy[k][i] : y[k][i] * dy[k][i];
            UNROLL
            for (int k = 0; k < KEEP; k++)
                y[k][i] = a.mode == LOG ? dy[k][i] - m_exp_fast(y[k][i]) * sum : y[k][i] * (dy[k][i] - sum);
        }
        store_columns<VEC, KEEP>(y, (T *)a.y + to.y, a.step_y, a.steps);
    }
}

/* ---- elementwise, from what a reduction has found: lines that do not fit, or of an unusual layout ---- */

#define FORMULA(name, formula) \
    struct f_##name { \
        template <class T0, class T1> using real = acc<T0>; \
        template <class R> static MEMBER R run(R x, R top, R z, const numbers<R> &) { return formula; } \
    };
FORMULA(softmax, m_exp_fast(x - top) * z)
FORMULA(log_softmax, x - top - z)
struct f_fast_softmax {
    template <class T0, class T1> using real = acc<T0>;
    template <class R> static MEMBER R run(R x, R z, const numbers<R> &) { return m_exp_fast(x) * z; }
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
GRADIENT(log_softmax, dy - m_exp_fast(y) * sum)
