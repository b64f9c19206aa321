/* reduce.hip: reductions over any dimensions. A result's state takes up elements one by one and merges with others;
 * rows are walked along the reduced elements, columns across neighbouring results. */
#include "map.hip"
#include "reduce.h"
#include "walk.hip"

/* ---- what is done with the elements ---- */

template <class A> DEVICE A add(A a, A b) { return a + b; }
DEVICE i64 add(i64 a, i64 b) { return (i64)((u64)a + (u64)b); }
template <class A> DEVICE A multiply(A a, A b) { return a * b; }
DEVICE i64 multiply(i64 a, i64 b) { return (i64)((u64)a * (u64)b); }
template <class A> DEVICE A abs_of(A x) { return m_fabs(x); }
DEVICE i64 abs_of(i64 x) { return x < 0 ? (i64)(0 - (u64)x) : x; }

/* One value; t is joined to it, x the element. */
#define FOLD(name, first, term, join, finish) \
    struct r_##name { \
        template <class A> struct state { \
            A v; \
            MEMBER void start() { v = first; } \
            MEMBER void take(A x, u32) \
            { \
                A t = term; \
                v = join; \
            } \
            MEMBER void merge(const state &b) \
            { \
                A t = b.v; \
                v = join; \
            } \
            MEMBER A y(A count) const { return (void)count, finish; } \
            MEMBER void put_z(void *, i64) const {} \
        }; \
    };
FOLD(sum, 0, x, add(v, t), v)
FOLD(mean, 0, x, add(v, t), v / count)
FOLD(norm1, 0, abs_of(x), add(v, t), v)
FOLD(norm2, 0, x *x, add(v, t), m_sqrt(v))
FOLD(min, infinity<A>(), x, min_nan(v, t), v)
FOLD(max, smallest<A>(), x, max_nan(v, t), v)
FOLD(amax, 0, abs_of(x), max_nan(v, t), v)

/* Two 16-bit elements as one, where instructions take them so. */
template <class T> struct pair_of {
    u32 w;
};
#ifdef WK_NVIDIA
#define PAIR(name, type, instruction) \
    DEVICE pair_of<type> name(pair_of<type> a, pair_of<type> b) \
    { \
        pair_of<type> y; \
        asm(instruction " %0, %1, %2;" : "=r"(y.w) : "r"(a.w), "r"(b.w)); \
        return y; \
    }
PAIR(max_nan, f16, "max.NaN.f16x2")
PAIR(max_nan, bf16, "max.NaN.bf16x2")
PAIR(min_nan, f16, "min.NaN.f16x2")
PAIR(min_nan, bf16, "min.NaN.bf16x2")
template <class T> DEVICE pair_of<T> abs_of(pair_of<T> x) { return {x.w & 0x7FFF7FFFu}; }
enum { PAIRS = true };
#else
enum { PAIRS = false };
#endif

/* Formulas whose rows take up whole packs: what is best in a pack, with the pack's number; the place in the pack is looked
 * up at the end, for the one that won. */
template <class F> struct whole_packs {
    static const bool value = false;
};

/* Extremes with the place of the first, or with the number of equal ones. A NaN beats every number; `best` is the
 * better one of v and t. */
#define EXTREME(name, first, term, better, best) \
    struct r_##name##_at { \
        template <class A> struct state { \
            A v; \
            u32 at; \
            static MEMBER bool beats(A t, A s) { return t better s || (t != t && s == s); } \
            template <class V> static MEMBER V better_of(V v, V x) \
            { \
                V t = term; \
                return best; \
            } \
            MEMBER bool is_here(A x) const \
            { \
                A t = term; \
                return t == v || (t != t && v != v); \
            } \
            /* Over lanes: the extreme first, which is cheap, then the first place where it is. */ \
            MEMBER void merge_over(u32 group) \
            { \
                A all = v; \
                for (u32 m = group / 2; m; m /= 2) \
                    all = better_of(all, shuffle_xor(all, m)); \
                u32 place = v == all || (v != v && all != all) ? at : ~0u; \
                for (u32 m = group / 2; m; m /= 2) \
                    place = lesser(place, shuffle_xor(place, m)); \
                v = all, at = place; \
            } \
            MEMBER void start() { v = first, at = ~0u; } \
            MEMBER void take(A x, u32 i) \
            { \
                A t = term; \
                bool take = beats(t, v); \
                v = take ? t : v; \
                at = take ? i : at; \
            } \
            /* All is read before one is chosen: a choice between places would keep the states in memory. */ \
            MEMBER void merge(const state &b) \
            { \
                A other = b.v, mine = v; \
                u32 there = b.at, here = at; \
                bool take = beats(other, mine) || (!beats(mine, other) && there < here); \
                v = take ? other : mine; \
                at = take ? there : here; \
            } \
            MEMBER A y(A) const { return v; } \
            /* When nothing has beaten the start, all elements are equal to it. */ \
            MEMBER void put_z(void *z, i64 i) const { ((u32 *)z)[i] = at == ~0u ? 0 : at; } \
        }; \
    }; \
    template <> struct whole_packs<r_##name##_at> { \
        static const bool value = true; \
    }; \
    struct r_##name##_many { \
        template <class A> struct state { \
            A v, many; \
            MEMBER void start() { v = first, many = 0; } \
            MEMBER void take(A x, u32) \
            { \
                A t = term; \
                many = t better v || t != t ? 1 : many + (A)(t == v); \
                v = t better v || t != t ? t : v; \
            } \
            MEMBER void merge(const state &b) \
            { \
                bool take = b.v better v || b.v != b.v; \
                many = take ? b.many : many + (b.v == v ? b.many : 0); \
                v = take ? b.v : v; \
            } \
            MEMBER A y(A) const { return v; } \
            MEMBER void put_z(void *z, i64 i) const { ((A *)z)[i] = many; } \
        }; \
    };
EXTREME(min, infinity<A>(), x, <, min_nan(v, t))
EXTREME(max, smallest<A>(), x, >, max_nan(v, t))
EXTREME(amax, 0, abs_of(x), >, max_nan(v, t))

/* Products are kept in double: the error of each step stays in the result, and parts may leave the range of float. */
template <class A> struct product_of {
    typedef f64 type;
};
template <> struct product_of<i64> {
    typedef i64 type;
};
struct r_prod {
    template <class A> struct state {
        typename product_of<A>::type v;
        MEMBER void start() { v = 1; }
        MEMBER void take(A x, u32) { v = multiply(v, (typename product_of<A>::type)x); }
        MEMBER void merge(const state &b) { v = multiply(v, b.v); }
        MEMBER A y(A) const { return (A)v; }
        MEMBER void put_z(void *, i64) const {}
    };
};

/* The product of what is not 0, and how many are. */
struct r_prod_others {
    template <class A> struct state {
        f64 v, zeros;
        MEMBER void start() { v = 1, zeros = 0; }
        MEMBER void take(A x, u32)
        {
            v *= x == 0 ? 1 : x;
            zeros += x == 0;
        }
        MEMBER void merge(const state &b)
        {
            v *= b.v;
            zeros += b.zeros;
        }
        MEMBER A y(A) const { return (A)v; }
        MEMBER void put_z(void *z, i64 i) const { ((A *)z)[i] = (A)zeros; }
    };
};

/* Mean and squared distances from it, kept up to date (Welford), so that one pass is as good as two. */
struct r_var {
    template <class A> struct state {
        A n, mean, squares;
        MEMBER void start() { n = 0, mean = 0, squares = 0; }
        MEMBER void take(A x, u32)
        {
            A d = x - mean;
            n += 1;
            mean += d / n;
            squares += d * (x - mean);
        }
        MEMBER void merge(const state &b)
        {
            A d = b.mean - mean, all = n + b.n, part = b.n == 0 ? 0 : b.n / all;
            mean += d * part;
            squares += b.squares + d * n * part * d;
            n = all;
        }
        MEMBER A y(A count) const { return squares / count; }
        MEMBER void put_z(void *, i64) const {}
    };
};

/* The sum of exp(x - top), top being the largest x so far. It starts below every number but -infinity, so that no
 * difference of infinities comes up. */
#define SUM_EXP(name, result, beside) \
    struct r_##name { \
        template <class A> struct state { \
            A top, sum; \
            MEMBER void start() { top = lowest<A>(), sum = 0; } \
            MEMBER void join(A x, A of_x) \
            { \
                A d = x == top ? 0 : x - top, e = m_exp(-m_fabs(d)); \
                sum = d > 0 ? sum * e + of_x : sum + of_x * e; \
                top = d > 0 ? x : top; \
            } \
            MEMBER void take(A x, u32) { join(x, 1); } \
            MEMBER void merge(const state &b) { join(b.top, b.sum); } \
            MEMBER A y(A) const { return result; } \
            MEMBER void put_z(void *z, i64 i) const { ((A *)z)[i] = beside; } \
        }; \
    };
SUM_EXP(log_sum_exp, m_log(sum) + top, sum)
/* For softmax and its logarithm; an infinite element makes all of its line NaN. */
SUM_EXP(softmax, top, 1 / sum + (top - top))
SUM_EXP(log_softmax, top, m_log(sum) + (top - top))
FOLD(fast_softmax, 0, m_exp_fast(x), v + t, 1 / v)

/* ---- states between threads ---- */

template <class S> DEVICE S shuffle_state(const S &s, u32 from)
{
    struct words {
        u32 w[sizeof(S) / 4];
    };
    words v = bit_cast<words>(s);
    UNROLL
    for (int i = 0; i < (int)(sizeof(S) / 4); i++)
        v.w[i] = shuffle_word(v.w[i], from);
    return bit_cast<S>(v);
}

/* Over `group` neighbouring lanes, a power of two up to WAVE. */
template <class F, class S> DEVICE void merge_lanes(S &s, u32 group)
{
    if constexpr (whole_packs<F>::value) {
        s.merge_over(group);
    } else {
        for (u32 m = group / 2; m; m /= 2)
            s.merge(shuffle_state(s, lane_id() ^ m));
    }
}

/* Over the block; thread 0 gets the result. */
template <class F, class S> DEVICE void merge_block(S &s)
{
    const u32 waves = WK_REDUCE_THREADS / WAVE;
    SHARED S room[waves];
    merge_lanes<F>(s, WAVE);
    if (lane_id() == 0)
        room[wave_id()] = s;
    barrier();
    if (wave_id() == 0) {
        s = room[lane_id() % waves];
        merge_lanes<F>(s, waves);
    }
    barrier();
}

template <class TO, class S, class A> DEVICE void finish(const reduce_args &a, const S &s, i64 to, A count)
{
    if (a.y)
        ((TO *)a.y)[to] = put<TO>(s.y(count));
    if (a.z)
        s.put_z(a.z, to);
}

/* ---- rows ---- */

/* How the elements of a pack belong to results: they follow each other along the row, into VEC states or, as a whole, into
 * one; or they belong to results side by side. */
enum { ALONG, WHOLE, ACROSS };

/* The best element of a pack. */
template <class S, class T, int VEC> DEVICE acc<T> best_of(const pack<T, VEC> &p)
{
    S s;
    s.start();
    if constexpr (PAIRS && acc_of<T>::is_float && sizeof(T) == 2) {
        struct words {
            pair_of<T> v[VEC / 2];
        };
        words w = bit_cast<words>(p);
        pair_of<T> best = S::better_of(w.v[0], w.v[0]);
        UNROLL
        for (int i = 1; i < VEC / 2; i++)
            best = S::better_of(best, w.v[i]);
        return S::better_of(S::better_of(s.v, half_of<T>(best.w, false)), half_of<T>(best.w, true));
    }
    UNROLL
    for (int i = 0; i < VEC; i++)
        s.v = S::better_of(s.v, get(p.v[i]));
    return s.v;
}

template <int HOW, class S, class T, int VEC> DEVICE void take_pack(S *s, const pack<T, VEC> &p, u32 place)
{
    if constexpr (HOW == WHOLE) {
        s[0].take(best_of<S>(p), place);
    } else {
        UNROLL
        for (int i = 0; i < VEC; i++)
            s[i].take(get(p.v[i]), HOW == ALONG ? place * VEC + i : place);
    }
}

/* Where the pack lies that is u times `step` behind pack `at`: all as far from each other (then nothing stands between the
 * loads of several), or by a walk. */
struct line_places {
    i64 stride, hop;
    MEMBER line_places(const walk_dims &w, i64 step) : stride(w.x[0]), hop(step * w.x[0]) {}
    MEMBER i64 operator()(i64 at, int u) const { return at * stride + u * hop; }
};
struct walk_places {
    const walk_dims &w;
    i64 step;
    MEMBER walk_places(const walk_dims &dims, i64 step) : w(dims), step(step) {}
    MEMBER i64 operator()(i64 at, int u) const { return walk_to(w, at + u * step).x; }
};

/* Every step-th pack from `at` up to `to` into the states, several of them on their way at a time. */
template <int HOW, class S, class T, int VEC, class P>
DEVICE void fold_places(S *s, const T *x, const P &place, i64 at, i64 to, i64 step)
{
    const int ahead = VEC == 1 || (HOW != ALONG && sizeof(T) == 2) ? 8 : 4;
    for (; at + (ahead - 1) * step < to; at += ahead * step) {
        pack<T, VEC> p[ahead];
        UNROLL
        for (int u = 0; u < ahead; u++)
            p[u] = load_once<VEC>(x + place(at, u));
        UNROLL
        for (int u = 0; u < ahead; u++)
            take_pack<HOW, S, T, VEC>(s, p[u], (u32)(at + u * step));
    }
    for (; at < to; at += step)
        take_pack<HOW, S, T, VEC>(s, load<VEC>(x + place(at, 0)), (u32)at);
}

/* A pack is a step of the walk. */
template <int HOW, class S, class T, int VEC>
DEVICE void fold_packs(S *s, const T *x, const walk_dims &w, i64 at, i64 to, i64 step)
{
    if (w.rank == 1)
        fold_places<HOW, S, T, VEC>(s, x, line_places(w, step), at, to, step);
    else
        fold_places<HOW, S, T, VEC>(s, x, walk_places(w, step), at, to, step);
}

template <int HOW, class S, class T, int VEC>
DEVICE S fold_row(const reduce_args &a, i64 out, i64 from, i64 to, u32 step)
{
    const int states = HOW == WHOLE ? 1 : VEC;
    S s[states];
    UNROLL
    for (int i = 0; i < states; i++)
        s[i].start();
    fold_packs<HOW, S, T, VEC>(s, (const T *)a.x + walk_to(a.kept, out).x, a.reduced, from, to, step);
    UNROLL
    for (int i = 1; i < states; i++)
        s[0].merge(s[i]);
    return s[0];
}

/* From the number of the pack that has the extreme to its first place in there. */
template <class S, class T, int VEC> DEVICE void find_in_pack(const reduce_args &a, i64 out, S &s)
{
    if (s.at == ~0u)
        return;
    pack<T, VEC> p = load<VEC>((const T *)a.x + walk_to(a.kept, out).x + walk_to(a.reduced, s.at).x);
    u32 within = 0;
    UNROLL
    for (int i = VEC - 1; i >= 0; i--)
        within = s.is_here(get(p.v[i])) ? i : within;
    s.at = s.at * VEC + within;
}

/* A row that several blocks share: the last of them merges all parts, whichever it is in the same order. */
template <class F, class S> DEVICE bool gather_parts(const reduce_args &a, i64 out, S &s)
{
    S *parts = (S *)a.parts + out * a.part_out;
    if (thread_id() == 0)
        parts[block_id_y() * a.part_next] = s;
    if (!last_of(a.counters + block_id(), (u32)a.n_parts))
        return false;
    s.start();
    for (i32 i = (i32)thread_id(); i < a.n_parts; i += WK_REDUCE_THREADS)
        s.merge(parts[i * a.part_next]);
    merge_block<F>(s);
    return true;
}

/* 2^log_group threads share a row; a block's y is the part of the row that it folds. */
template <class F, class T, class TO, int VEC> DEVICE void reduce_rows(const reduce_args &a)
{
    typedef typename F::template state<acc<T>> S;
    const int HOW = VEC > 1 && whole_packs<F>::value ? WHOLE : ALONG;
    u32 group = 1u << a.log_group, mine = thread_id() >> a.log_group, lane = thread_id() & (group - 1),
        rows = WK_REDUCE_THREADS >> a.log_group;
    i64 begin = block_id_y() * a.chunk, end = lesser(a.n, begin + a.chunk);
    for (i64 first = (i64)block_id() * rows; first < a.outs; first += (i64)grid_blocks() * rows) {
        i64 out = first + mine;
        bool there = out < a.outs;
        S s = fold_row<HOW, S, T, VEC>(a, there ? out : 0, begin + lane, there ? end : 0, group);
        if (group > WAVE)
            merge_block<F>(s);
        else
            merge_lanes<F>(s, group);
        if constexpr (HOW == WHOLE) {
            if (there && lane == 0)
                find_in_pack<S, T, VEC>(a, out, s);
        }
        if (a.parts && !gather_parts<F>(a, out, s))
            return;
        if (there && lane == 0)
            finish<TO>(a, s, walk_to(a.kept, out).y, (acc<T>)a.count);
    }
}

/* ---- columns ---- */

/* Down the rows of threads that have the same columns. */
template <class S, int VEC> DEVICE void merge_rows(S *s, u32 log_across)
{
    SHARED S room[WK_REDUCE_THREADS / 2 * VEC];
    u32 rows = WK_REDUCE_THREADS >> log_across, row = thread_id() >> log_across;
    for (u32 half = rows / 2; half; half /= 2) {
        u32 at = (thread_id() - (row >= half ? half << log_across : 0)) * VEC;
        if (row >= half && row < 2 * half) {
            UNROLL
            for (int i = 0; i < VEC; i++)
                room[at + i] = s[i];
        }
        barrier();
        if (row < half) {
            UNROLL
            for (int i = 0; i < VEC; i++)
                s[i].merge(room[at + i]);
        }
        barrier();
    }
}

template <class S, class TO, int VEC, class A>
DEVICE void finish_columns(const reduce_args &a, const S *s, i64 out, A count)
{
    if (a.parts) {
        UNROLL
        for (int i = 0; i < VEC; i++)
            ((S *)a.parts)[(out + i) * a.part_out + block_id_y() * a.part_next] = s[i];
        return;
    }
    i64 to = walk_to(a.kept, out).y;
    if (VEC > 1 && a.packed_y && a.y) {
        pack<TO, VEC> y;
        UNROLL
        for (int i = 0; i < VEC; i++)
            y.v[i] = put<TO>(s[i].y(count));
        store<VEC>((TO *)a.y + to, y);
        return;
    }
    UNROLL
    for (int i = 0; i < VEC; i++)
        finish<TO>(a, s[i], to + i * a.kept.y[0], count);
}

/* 2^log_group threads lie along a row, VEC columns each; the block's other threads take other rows. */
template <class F, class T, class TO, int VEC> DEVICE void reduce_columns(const reduce_args &a)
{
    typedef typename F::template state<acc<T>> S;
    u32 across = 1u << a.log_group, row = thread_id() >> a.log_group, rows = WK_REDUCE_THREADS >> a.log_group;
    i64 tile = (i64)across * VEC;
    i64 begin = block_id_y() * a.chunk, end = lesser(a.n, begin + a.chunk);
    for (i64 t = block_id(); t < a.blocks; t += grid_blocks()) {
        i64 outer = divide(t, a.tiles), column = (t - outer * a.tiles.d) * tile + (thread_id() & (across - 1)) * VEC;
        bool there = column < a.width;
        i64 out = outer * a.width + (there ? column : 0);
        S s[VEC];
        UNROLL
        for (int i = 0; i < VEC; i++)
            s[i].start();
        fold_packs<ACROSS, S, T, VEC>(s, (const T *)a.x + walk_to(a.kept, out).x, a.reduced, begin + row, there ? end : 0,
                                     rows);
        merge_rows<S, VEC>(s, a.log_group);
        if (there && row == 0)
            finish_columns<S, TO, VEC>(a, s, out, (acc<T>)a.count);
    }
}

/* ---- parts of columns ---- */

/* 2^log_group threads merge the parts of a result. */
template <class F, class T, class TO> DEVICE void reduce_parts(const reduce_args &a)
{
    typedef typename F::template state<acc<T>> S;
    u32 group = 1u << a.log_group, lane = thread_id() & (group - 1), rows = WK_REDUCE_THREADS >> a.log_group;
    for (i64 first = (i64)block_id() * rows; first < a.outs; first += (i64)grid_blocks() * rows) {
        i64 out = first + (thread_id() >> a.log_group);
        S s;
        s.start();
        for (i32 i = lane; i < a.n_parts && out < a.outs; i += group)
            s.merge(((const S *)a.parts)[out * a.part_out + i * a.part_next]);
        merge_lanes<F>(s, group);
        if (lane == 0 && out < a.outs)
            finish<TO>(a, s, walk_to(a.kept, out).y, (acc<T>)a.count);
    }
}

/* ---- gradients ---- */

/* dx from x, a raw result y and dy, all seen in x's shape. */
#define GRAD2(name, formula) \
    struct f_##name { \
        template <class T0, class T1> using real = acc<T0>; \
        template <class R> static MEMBER R run(R x, R dy, const numbers<R> &p) { return (void)p, formula; } \
    };
#define GRAD3(name, formula) \
    struct f_##name { \
        template <class T0, class T1> using real = acc<T0>; \
        template <class R> static MEMBER R run(R x, R y, R dy, const numbers<R> &p) { return (void)p, formula; } \
    };

template <class R> DEVICE R sign_of(R x) { return (R)(x > 0) - (R)(x < 0); }

struct f_sum_grad {
    template <class T0, class T1> using real = acc<T0>;
    template <class R> static MEMBER R run(R dy, const numbers<R> &) { return dy; }
};
struct f_mean_grad {
    template <class T0, class T1> using real = acc<T0>;
    template <class R> static MEMBER R run(R dy, const numbers<R> &p) { return dy / p.a; }
};
GRAD2(norm1_grad, dy *sign_of(x))
GRAD3(norm2_grad, y == 0 ? 0 : dy * x / y)
GRAD3(log_sum_exp_grad, dy *m_exp(x - y))
GRAD3(var_grad, dy * 2 * (x - y) / p.a)
/* Of the extremes that share dy: x, the extreme, and dy over their number. */
GRAD2(share, dy / x)
GRAD3(extreme_grad, x == y ? dy : 0)
GRAD3(amax_grad, m_fabs(x) == y ? dy * sign_of(x) : 0)
/* prod: from the product of what is not 0, how many are, and dy, the product with dy where it is needed at all; then
 * x, that product, the number of zeros. */
GRAD3(prod_part, y <= 1 ? dy * x : 0)
GRAD3(prod_grad, x != 0 ? (dy == 0 ? y / x : 0) : y)

/* dx, zero so far, gets dy at the place of each result's extreme. */
template <class T> DEVICE void reduce_scatter(const reduce_scatter_args &a)
{
    for (i64 i = global_thread(); i < a.outs; i += global_threads()) {
        i64 outer = divide(i, a.inner);
        ((T *)a.dx)[(outer * a.size + a.places[i]) * a.inner.d + (i - outer * a.inner.d)] = ((const T *)a.dy)[i];
    }
}
