/* ctc.hip: the CTC loss by the forward-backward algorithm.
 *
 * The labels with a blank before, between and behind them are S = 2 L + 1 states. A block goes through the steps of
 * one sequence, forwards or backwards, a thread for each state; then every step's gradient is on its own.
 * Log-probabilities are doubles, as they become large numbers of which the difference counts; exp and log, of small
 * ones, are acc<T>'s. */
#include "device.h"
#include "ctc.h"

/* log(e^a + e^b + e^c); -infinity when all are. */
template <class R> DEVICE f64 log_sum3(f64 a, f64 b, f64 c)
{
    f64 m = greater(greater(a, b), c);
    m = m == -infinity<f64>() ? 0 : m;
    if constexpr (sizeof(R) == 4)
        return m + (f64)m_log(m_exp((R)(a - m)) + m_exp((R)(b - m)) + m_exp((R)(c - m)));
    R sum = 0;
    ROLLED /* three double exponentials at a time need too many registers */
    for (int i = 0; i < 3; i++)
        sum += m_exp((R)((i == 0 ? a : i == 1 ? b : c) - m));
    return m + (f64)m_log(sum);
}

/* A sequence: its steps and labels, none of both where the lengths are bad. */
struct sequence {
    i64 b, steps, labels, states;
};

DEVICE i64 length_at(const void *p, i64 at, i32 wide) { return wide ? ((const i64 *)p)[at] : ((const i32 *)p)[at]; }

DEVICE sequence sequence_at(const ctc_args &a, i64 b, bool report)
{
    sequence q = {b, length_at(a.input_lengths, b * a.input_step, a.input_wide),
                  length_at(a.label_lengths, b * a.label_step, a.label_wide), 1};
    bool steps_good = (u64)q.steps <= (u64)a.steps, labels_good = (u64)q.labels <= (u64)a.max_labels;
    if (report && !steps_good)
        index_ok(a.report_inputs, q.steps, a.steps + 1);
    if (report && !labels_good)
        index_ok(a.report_counts, q.labels, a.max_labels + 1);
    if (!steps_good || !labels_good)
        q.steps = q.labels = 0;
    q.states = 2 * q.labels + 1;
    return q;
}

/* The class of label i; the blank in place of a bad one. */
DEVICE i32 label_of(const ctc_args &a, const sequence &q, i64 i)
{
    i32 v = a.labels[q.b * a.label_b + i * a.label_i];
    return (u64)(i64)v < (u64)a.classes ? v : a.blank;
}

DEVICE i32 state_class(const ctc_args &a, const sequence &q, i64 s)
{
    return s & 1 ? label_of(a, q, s / 2) : a.blank;
}

template <class T> DEVICE acc<T> log_probability(const ctc_args &a, i64 b, i64 t, i64 label)
{
    acc<T> v = get(((const T *)a.x)[t * a.x_t + b * a.x_b + label * a.x_c]);
    return a.log_sums ? v - ((const acc<T> *)a.log_sums)[t * a.batch + b] : v;
}

/* ---- logits ---- */

/* log(sum(e^x)) of every row: a wave each, which reads few classes once. */
template <class T> DEVICE void ctc_log_sums(const ctc_args &a)
{
    typedef acc<T> R;
    const int HELD = 2;
    bool few = a.classes <= HELD * WAVE;
    i64 rows = a.steps * a.batch;
    for (i64 row = (i64)block_id() * (256 / WAVE) + wave_id(); row < rows;
         row += (i64)grid_blocks() * (256 / WAVE)) {
        i64 t = divide((u32)row, a.by_batch);
        const T *x = (const T *)a.x + t * a.x_t + (row - t * a.batch) * a.x_b;
        R most = smallest<R>(), sum = 0, held[HELD];
        UNROLL
        for (int h = 0; h < HELD; h++) {
            i64 i = h * WAVE + lane_id();
            held[h] = few && i < a.classes ? get(x[i * a.x_c]) : smallest<R>();
            most = max_nan(most, held[h]);
        }
        for (i64 i = lane_id(); !few && i < a.classes; i += WAVE)
            most = max_nan(most, get(x[i * a.x_c]));
        most = wave_reduce<op_max>(most);
        UNROLL
        for (int h = 0; h < HELD; h++)
            sum += few && h * WAVE + lane_id() < a.classes ? m_exp(held[h] - most) : (R)0;
        for (i64 i = lane_id(); !few && i < a.classes; i += WAVE)
            sum += m_exp(get(x[i * a.x_c]) - most);
        sum = wave_reduce<op_sum>(sum);
        if (lane_id() == 0)
            ((R *)a.log_sums)[row] = most + m_log(sum);
    }
}

/* ---- paths ---- */

/* The way through one sequence. Going back, states and steps are counted from the end, which makes it the same walk. */
struct walk {
    sequence q;
    bool back;
    double *path; /* of the sequence */

    MEMBER i64 state(i64 j) const { return back ? q.states - 1 - j : j; }
    MEMBER i64 step(i64 k) const { return back ? q.steps - 1 - k : k; }
    /* State j may follow j - 2: from a label to the next one past the blank between, unless they are the same. */
    MEMBER bool skips(const ctc_args &a, i64 j) const
    {
        return (j & 1) && j >= 3 && state_class(a, q, state(j)) != state_class(a, q, state(j - 2));
    }
};

/* A thread for each state; rows in shared memory, behind two places of -infinity. */
template <class T> DEVICE f64 walk_short(const ctc_args &a, const walk &w)
{
    typedef acc<T> R;
    SHARED f64 rows[2][WK_CTC_STATES + 2];
    i64 j = thread_id(), n = w.q.states;
    bool in = j < n, skips = in && w.skips(a, j);
    i32 label = in ? state_class(a, w.q, w.state(j)) : a.blank;
    if (j < 2)
        rows[0][j] = rows[1][j] = -infinity<f64>();
    f64 emit = log_probability<T>(a, w.q.b, w.step(0), label);
    for (i64 k = 0; k < w.q.steps; k++) {
        const f64 *before = rows[(k + 1) & 1] + j;
        f64 v = j < 2 ? 0 : -infinity<f64>();
        if (k > 0)
            v = log_sum3<R>(before[2], before[1], skips ? before[0] : -infinity<f64>());
        v += emit;
        rows[k & 1][j + 2] = v;
        if (w.path && in)
            w.path[w.step(k) * a.states + w.state(j)] = v;
        if (k + 1 < w.q.steps)
            emit = log_probability<T>(a, w.q.b, w.step(k + 1), label);
        barrier();
    }
    const f64 *last = rows[(w.q.steps - 1) & 1] + n;
    return log_sum3<R>(last[1], last[0], -infinity<f64>());
}

/* Any number of states; rows are those of the path. */
template <class T> DEVICE f64 walk_long(const ctc_args &a, const walk &w)
{
    typedef acc<T> R;
    i64 n = w.q.states;
    for (i64 k = 0; k < w.q.steps; k++) {
        double *row = w.path + w.step(k) * a.states;
        const double *before = k ? w.path + w.step(k - 1) * a.states : row;
        for (i64 j = thread_id(); j < n; j += block_size()) {
            f64 v = j < 2 ? 0 : -infinity<f64>();
            if (k > 0)
                v = log_sum3<R>(before[w.state(j)], j > 0 ? before[w.state(j - 1)] : -infinity<f64>(),
                                w.skips(a, j) ? before[w.state(j - 2)] : -infinity<f64>());
            row[w.state(j)] = v + (f64)log_probability<T>(a, w.q.b, w.step(k), state_class(a, w.q, w.state(j)));
        }
        barrier();
    }
    const double *last = w.path + w.step(w.q.steps - 1) * a.states;
    return log_sum3<R>(last[w.state(n - 1)], n > 1 ? last[w.state(n - 2)] : -infinity<f64>(), -infinity<f64>());
}

/* Labels of a class as a list, in order; one thread for each label finds its neighbours. */
DEVICE void list_labels(const ctc_args &a, const sequence &q)
{
    for (i64 i = thread_id(); i < q.labels; i += block_size()) {
        i32 label = label_of(a, q, i);
        i64 next = i + 1, before = i - 1;
        while (next < q.labels && label_of(a, q, next) != label)
            next++;
        while (before >= 0 && label_of(a, q, before) != label)
            before--;
        a.next[q.b * a.max_labels + i] = next < q.labels ? (i32)next + 1 : 0;
        if (before < 0)
            a.first[q.b * a.classes + label] = (i32)i + 1;
    }
}

/* x counts sequences; y = 0: forwards, and the loss; 1: backwards. */
template <class T, int LONG> DEVICE void ctc_paths(const ctc_args &a)
{
    for (i64 b = block_id(); b < a.batch; b += grid_blocks()) {
        bool back = block_id_y() == 1, forth = !back;
        walk w = {sequence_at(a, b, forth && thread_id() == 0), back, 0};
        if (a.paths[back])
            w.path = a.paths[back] + b * a.steps * a.states;
        for (i64 i = thread_id(); forth && i < w.q.labels; i += block_size())
            index_ok(a.report_labels, a.labels[b * a.label_b + i * a.label_i], a.classes);
        if (back)
            list_labels(a, w.q);
        f64 p = w.q.labels > w.q.steps ? -infinity<f64>() : 0;
        if (p == 0 && w.q.steps > 0)
            p = LONG ? walk_long<T>(a, w) : walk_short<T>(a, w);
        if (forth && thread_id() == 0) {
            f64 loss = p == -infinity<f64>() && a.zero_infinity ? 0 : -p;
            a.log_probability[b] = p;
            ((T *)a.loss)[b] = put<T>(loss);
        }
        barrier();
    }
}

/* ---- the gradient ---- */

/* The share of all paths that goes through state s, of class `label`, at step t, whose row of x is given. */
template <class T>
DEVICE acc<T> share_of(const ctc_args &a, const sequence &q, i64 t, i64 s, const T *x, acc<T> log_sum, i64 label,
                       f64 log_p)
{
    i64 at = (q.b * a.steps + t) * a.states + s;
    f64 emit = get(x[label * a.x_c]) - log_sum; /* it is in both */
    f64 v = a.paths[0][at] + a.paths[1][at] - emit - log_p;
    return emit == -infinity<f64>() ? (acc<T>)0 : m_exp((acc<T>)v);
}

/* Rows of dx, a wave each: e^x - the shares of the class's states. */
template <class T> DEVICE void ctc_gradient(const ctc_args &a)
{
    typedef acc<T> R;
    i64 rows = a.steps * a.batch;
    for (i64 row = (i64)block_id() * (256 / WAVE) + wave_id(); row < rows;
         row += (i64)grid_blocks() * (256 / WAVE)) {
        i64 t = divide((u32)row, a.by_batch);
        sequence q = sequence_at(a, row - t * a.batch, false);
        const T *x = (const T *)a.x + (t * a.x_t + q.b * a.x_b);
        R log_sum = a.log_sums ? ((const R *)a.log_sums)[row] : (R)0;
        f64 log_p = a.log_probability[q.b];
        bool possible = log_p != -infinity<f64>(), counts = t < q.steps && possible;
        R blank = 0, rest = t < q.steps && !a.zero_infinity ? infinity<R>() - infinity<R>() : (R)0;
        for (i64 s = 2 * lane_id(); counts && s < q.states; s += 2 * WAVE)
            blank += share_of<T>(a, q, t, s, x, log_sum, a.blank, log_p);
        blank = wave_reduce<op_sum>(blank);
        for (i64 i = lane_id(); i < a.classes; i += WAVE) {
            R v = possible ? (R)0 : rest;
            if (counts) {
                R share = i == a.blank ? blank : (R)0;
                for (i32 k = a.first[q.b * a.classes + i]; k; k = a.next[q.b * a.max_labels + k - 1])
                    share += share_of<T>(a, q, t, 2 * k - 1, x, log_sum, i, log_p);
                v = m_exp(get(x[i * a.x_c]) - log_sum) - share;
            }
            ((T *)a.dx)[row * a.classes + i] = put<T>(v);
        }
    }
}
