/* loss.hip: losses and their gradients. */
#include "cluster.h"
#include "lines.hip"
#include "loss.h"
#include "walk.hip"

/* ---- totals ---- */

/* The sum of the parts; one block, so that the order is always the same. */
DEVICE f64 sum_parts(const f64 *parts, i64 n)
{
    SHARED f64 room[WK_TOTAL_THREADS / 32];
    f64 s[4] = {0, 0, 0, 0};
    i64 at = thread_id();
    for (; at + 3 * WK_TOTAL_THREADS < n; at += 4 * WK_TOTAL_THREADS) {
        UNROLL
        for (int u = 0; u < 4; u++)
            s[u] += parts[at + u * WK_TOTAL_THREADS];
    }
    for (; at < n; at += WK_TOTAL_THREADS)
        s[0] += parts[at];
    return block_reduce<op_sum, WK_TOTAL_THREADS>((s[0] + s[1]) + (s[2] + s[3]), room);
}

/* y = the sum of the parts over their number. */
template <class T> DEVICE void loss_total(const total_args &a)
{
    f64 total = sum_parts(a.parts, a.n);
    if (thread_id() == 0)
        *(T *)a.y = put<T>(total / a.divisor);
}

/* ---- classes ---- */

/* How many targets are no padding; by one block. */
template <class I> DEVICE i64 used_targets(const class_args &a)
{
    SHARED i64 room[WK_TOTAL_THREADS / 32];
    i64 many = 0;
    UNROLL_BY_4
    for (i64 i = thread_id(); i < a.rows; i += WK_TOTAL_THREADS)
        many += (i64)((const I *)a.targets)[i * a.target] != a.padding;
    return block_reduce<op_sum, WK_TOTAL_THREADS>(many, room);
}

template <class I> DEVICE void count_targets(const class_args &a)
{
    i64 many = used_targets<I>(a);
    if (thread_id() == 0)
        *a.count = many;
}

/* y = the sum of the rows' losses, over the number of targets where the mean is wanted: counted here, beside the sum, unless the
 * gradient has needed it before. */
template <class T, class I> DEVICE void class_total(const class_args &a)
{
    i64 many = a.count ? *a.count : a.mean ? used_targets<I>(a) : 1;
    f64 total = sum_parts(a.losses, a.rows);
    if (thread_id() == 0)
        *(T *)a.y = put<T>(total / (f64)many);
}

template <class A> DEVICE A gradient_scale(const class_args &a)
{
    return a.count && *a.count ? (A)(1 / (f64)*a.count) : 1;
}

template <class T> DEVICE void put_loss(const class_args &a, i64 row, f64 loss)
{
    if (a.losses)
        a.losses[row] = loss;
    else
        ((T *)a.y)[row] = put<T>(loss);
}

/* The loss of each row, and for nll_loss the one element of the gradient (the others are 0 already). */
template <class T, class I> DEVICE void class_rows(const class_args &a)
{
    typedef acc<T> A;
    for (i64 row = global_thread(); row < a.rows; row += global_threads()) {
        i64 target = (i64)((const I *)a.targets)[row * a.target];
        f64 loss = 0;
        A lse = 0;
        if (target != a.padding && index_ok(a.report, target, a.classes)) {
            A x = get(((const T *)a.x)[row * a.row + target * a.column]);
            loss = a.top ? (f64)(((const A *)a.top)[row] - x) - (f64)m_log(((const A *)a.z)[row]) : -(f64)x;
            lse = a.top ? ((const A *)a.top)[row] - m_log(((const A *)a.z)[row]) : 0;
            if (a.dx && !a.top)
                ((T *)a.dx)[row * a.classes + target] = put<T>(-gradient_scale<A>(a));
        }
        put_loss<T>(a, row, loss);
        if (a.lse)
            ((A *)a.lse)[row] = lse;
    }
}

/* e to the x as good as T needs it. */
template <class T> DEVICE acc<T> exp_for(acc<T> x)
{
    if constexpr (sizeof(T) == 2)
        return m_exp_fast(x);
    else
        return m_exp(x);
}

/* dx = softmax(x) - 1 at the target, times the scale. */
template <class T, class I, int VEC> DEVICE void class_gradient(const class_args &a)
{
    typedef acc<T> A;
    A scale = gradient_scale<A>(a);
    for (i64 block = block_id(); block < a.blocks; block += grid_blocks()) {
        i64 row = divide(block, a.tiles), at = ((block - row * a.tiles.d) * WK_LOSS_THREADS + thread_id()) * VEC;
        i64 target = (i64)((const I *)a.targets)[row * a.target];
        bool used = (u64)target < (u64)a.classes && target != a.padding;
        A top = ((const A *)a.top)[row], part = ((const A *)a.z)[row] * scale;
        if (at >= a.classes)
            continue;
        pack<T, VEC> p = load<VEC>((const T *)a.x + row * a.row + at * a.column);
        UNROLL
        for (int i = 0; i < VEC; i++) {
            A d = exp_for<T>(get(p.v[i]) - top) * part - (at + i == target ? scale : 0);
            p.v[i] = put<T>(used ? d : 0);
        }
        store<VEC>((T *)a.dx + row * a.classes + at, p);
    }
}

/* Losses, and the gradient where it is wanted, of long rows, a block each: what is read a second time comes from the
 * cache. */
template <class T, class I, int VEC> DEVICE void class_stream(const class_args &a)
{
    typedef acc<T> A;
    const int THREADS = WK_STREAM_THREADS, ahead = ahead_of<T, VEC>::packs;
    u32 steps = (u32)a.tiles.d;
    A scale = gradient_scale<A>(a);
    for (i64 row = block_id(); row < a.rows; row += grid_blocks()) {
        i64 target = (i64)((const I *)a.targets)[row * a.target];
        const T *x = (const T *)a.x + row * a.row;
        bool used = target != a.padding && (u64)target < (u64)a.classes;
        A v[ahead][VEC], top, sum, own;
        if constexpr (sizeof(T) == 2 && VEC > 1) {
            sum_exp<A> mine = passing_sum_exp<T, THREADS>(x, steps);
            own = used && thread_id() == 0 ? get(x[target]) : 0; /* while others are summed */
            mine = block_sum_exp<THREADS>(mine);
            top = mine.top;
            sum = mine.sum;
        } else {
            line_sum_exp<VEC, THREADS>(x, steps, true, &top, &sum);
            own = used && thread_id() == 0 ? get(x[target]) : 0;
        }
        if (!used && target != a.padding && thread_id() == 0)
            index_ok(a.report, target, a.classes);
        if (thread_id() == 0) {
            put_loss<T>(a, row, used ? (f64)(top - own) + (f64)m_log(sum) : 0);
            if (a.lse)
                ((A *)a.lse)[row] = used ? top + m_log(sum) : 0;
        }
        A part = used ? scale / sum : 0;
        for (u32 at = thread_id(); a.dx && at < steps; at += ahead * THREADS) {
            fetch_line<VEC, ahead>(v, x, at, THREADS, used ? steps : 0, (A)0);
            UNROLL
            for (int j = 0; j < ahead * VEC; j++) {
                i64 column = (i64)(at + j / VEC * THREADS) * VEC + j % VEC;
                A d = exp_for<T>(v[j / VEC][j % VEC] - top) * part - (column == target ? scale : 0);
                v[j / VEC][j % VEC] = used ? d : 0;
            }
            store_line<VEC, ahead>(v, (T *)a.dx + row * a.classes, at, THREADS, steps);
        }
    }
}

/* The same for rows that a block or a cluster keeps. */
template <class T, class I, int KEEP, int THREADS, int BLOCKS> DEVICE void class_kept(const class_args &a)
{
    typedef acc<T> A;
    SHARED A all[2][BLOCKS][2];
    kept_line<T, KEEP, THREADS, BLOCKS> x;
    x.steps = (u32)a.tiles.d;
    cluster_begin<BLOCKS>();
    i64 start = block_id() / BLOCKS, clusters = grid_blocks() / BLOCKS;
    A scale = gradient_scale<A>(a);
    for (i64 row = start, turn = 0; row < a.rows; row += clusters, turn++) {
        i64 target = (i64)((const I *)a.targets)[row * a.target];
        const T *line = (const T *)a.x + row * a.row;
        bool used = target != a.padding && (u64)target < (u64)a.classes, speaks = thread_id() + block_id() % BLOCKS == 0;
        x.fetch(line, put<T>(smallest<A>()));
#ifdef WK_NVIDIA
        if (BLOCKS == 1 && a.ahead && thread_id() == 0 && row + a.ahead < a.rows) /* another block needs it next */
            fetch_ahead(line + a.ahead * a.row, x.steps * 16);
#endif
        A own = speaks && used ? get(line[target]) : 0; /* now, when all wait anyway */
        sum_exp<A> total = kept_sum_exp(x, true, all[turn & 1], turn == 0);
        A top = total.top, sum = total.sum;
        if (!used && target != a.padding && speaks)
            index_ok(a.report, target, a.classes);
        if (speaks) {
            put_loss<T>(a, row, used ? (f64)(top - own) + (f64)m_log(sum) : 0);
            if (a.lse)
                ((A *)a.lse)[row] = used ? top + m_log(sum) : 0;
        }
        const bool FAST = sizeof(T) == 2; /* as exp_for */
        exp_from e(top);
        A part = (FAST ? e.mend : 1) * scale / sum;
        u32 at = used ? (u32)target / x.VEC : x.steps, place = (u32)target % x.VEC;
        UNROLL
        for (int k = 0; a.dx && k < KEEP; k++) {
            A v[x.VEC];
            x.forget(k);
            UNROLL
            for (int i = 0; i < x.VEC; i++)
                v[i] = used ? (FAST ? e.of(x.value(k, i)) : exp_for<T>(x.value(k, i) - top)) * part : 0;
            UNROLL
            for (int i = 0; x.index(k) == at && i < x.VEC; i++)
                v[i] -= i == place ? scale : 0;
            x.store_pack(k, (T *)a.dx + row * a.classes, v);
        }
    }
}

/* ---- elements ---- */

#define ELEMENT_LOSS(name, loss_formula, slope_formula) \
    struct l_##name { \
        template <class R> static MEMBER R loss(R x, R t, R delta) { return (void)delta, loss_formula; } \
        template <class R> static MEMBER R slope(R x, R t, R delta) { return (void)delta, slope_formula; } \
    };
ELEMENT_LOSS(mse_loss, (x - t) * (x - t), 2 * (x - t))
/* With the difference first: what is left of it is small where the loss is. */
ELEMENT_LOSS(bce_with_logits, ((x > 0 ? x : 0) - x * t) + m_log1p(m_exp(-m_fabs(x))), m_sigmoid(x) - t)
ELEMENT_LOSS(huber_loss, m_fabs(x - t) > delta ? delta * (m_fabs(x - t) - delta / 2) : (x - t) * (x - t) / 2,
             x - t > delta ? delta : x - t < -delta ? -delta : x - t)

template <class L, class T, int VEC> DEVICE void element_losses(const element_args &a)
{
    typedef acc<T> A;
    SHARED f64 room[WK_LOSS_THREADS / 32];
    A scale = (A)a.scale, delta = (A)a.delta;
    f64 sum = 0;
    for (i64 at = global_thread(); at < a.steps; at += global_threads()) {
        walk_offsets from = walk_to(a.dims, at);
        pack<T, VEC> x = load<VEC>((const T *)a.x + from.x), t = load<VEC>((const T *)a.targets + from.y), y, dx;
        A losses = 0;
        UNROLL
        for (int i = 0; i < VEC; i++) {
            A loss = L::loss(get(x.v[i]), get(t.v[i]), delta);
            losses += loss;
            y.v[i] = put<T>(loss);
            dx.v[i] = put<T>(L::slope(get(x.v[i]), get(t.v[i]), delta) * scale);
        }
        sum += (f64)losses;
        if (a.y)
            store<VEC>((T *)a.y + at * VEC, y);
        if (a.dx)
            store<VEC>((T *)a.dx + at * VEC, dx);
    }
    if (!a.parts)
        return;
    sum = block_reduce<op_sum, WK_LOSS_THREADS>(sum, room);
    if (thread_id() == 0)
        a.parts[block_id()] = sum;
}
