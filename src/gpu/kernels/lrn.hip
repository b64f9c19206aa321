/* lrn.hip: local response norm: y = x d^-beta, d = k + alpha * the sum of x^2 over a window; and its gradient,
 * dx = dy d^-beta - 2 alpha beta x * the sum of dy y / d over the elements that have x in their window. */
#include "device.h"
#include "lrn.h"

DEVICE i64 quotient(i64 n, i64 by, const wk_divisor &v)
{
    return (n | by) < (i64)1 << 31 ? (i64)divide((u32)n, v) : n / by;
}

/* d^-beta; roots are cheaper than a power. */
template <class R> DEVICE R inverse_power(R d, R beta)
{
    if (beta == (R)0.75) {
        if constexpr (sizeof(R) == 4) {
            R r = fast_rsqrt(d);
            if (d > (R)0x1p-100)
                return r * fast_sqrt(r);
        }
        R root = m_sqrt(d);
        return 1 / (root * m_sqrt(root));
    }
    return beta == (R)0.5 ? 1 / m_sqrt(d) : beta == 1 ? 1 / d : m_pow(d, -beta);
}

/* What windows sum up: x^2, or the gradient's dy y / d. */
template <class T, int GRAD> DEVICE acc<T> term(const lrn_args &a, i64 i)
{
    if (GRAD)
        return get(((const T *)a.y)[i]) * get(((const T *)a.dy)[i]) / ((const acc<T> *)a.d)[i];
    acc<T> x = get(((const T *)a.x)[i]);
    return x * x;
}

/* Sums of windows across the columns. */
template <class T, int GRAD> DEVICE void lrn_across(const lrn_args &a)
{
    for (i64 i = global_thread(); i < a.count; i += global_threads()) {
        i64 row = quotient(i, a.cols, a.by_cols) * a.cols, col = i - row;
        i64 first = greater(col - a.before, (i64)0), end = lesser(col + a.after + 1, a.cols);
        acc<T> sum = 0;
        for (i64 k = first; k < end; k++)
            sum += term<T, GRAD>(a, row + k);
        ((acc<T> *)a.out)[i] = sum;
    }
}

/* Windows down the rows. WHAT: 0: out is y; 1: d; 2: dx. */
template <class T, int WHAT> DEVICE void lrn_down(const lrn_args &a)
{
    typedef acc<T> R;
    for (i64 i = global_thread(); i < a.count; i += global_threads()) {
        i64 line = quotient(i, a.cols, a.by_cols), row = line - quotient(line, a.rows, a.by_rows) * a.rows;
        i64 first = greater(row - a.before, (i64)0), end = lesser(row + a.after + 1, a.rows);
        R sum = 0;
        for (i64 k = first; k < end; k++) {
            i64 at = i + (k - row) * a.cols;
            sum += a.across ? ((const R *)a.across)[at] : term<T, WHAT == 2>(a, at);
        }
        if (WHAT == 2) {
            R x = get(((const T *)a.x)[i]), dy = get(((const T *)a.dy)[i]), d = ((const R *)a.d)[i];
            ((T *)a.out)[i] =
                put<T>(dy * inverse_power(d, (R)a.beta) - (R)(2 * a.alpha * a.beta) * x * sum);
            continue;
        }
        R d = (R)a.k + (R)a.alpha * sum;
        if (WHAT == 1)
            ((R *)a.out)[i] = d;
        else
            ((T *)a.out)[i] = put<T>(get(((const T *)a.x)[i]) * inverse_power(d, (R)a.beta));
    }
}

/* The next row into the window, and y of the row in its middle. */
template <class T, int VEC, int SIZE>
DEVICE pack<T, VEC> roll_row(const lrn_args &a, acc<T> (*w)[VEC], const pack<T, VEC> &next)
{
    typedef acc<T> R;
    pack<T, VEC> out;
    UNROLL
    for (int e = 0; e < VEC; e++) {
        R sum = 0;
        UNROLL
        for (int j = 0; j < SIZE; j++) {
            w[j][e] = j + 1 < SIZE ? w[j + 1 < SIZE ? j + 1 : 0][e] : get(next.v[e]);
            sum += w[j][e] * w[j][e];
        }
        out.v[e] = put<T>(w[SIZE / 2][e] * inverse_power((R)a.k + (R)a.alpha * sum, (R)a.beta));
    }
    return out;
}

/* y for windows of SIZE down the rows, which roll through registers: a thread goes down a strip of rows with VEC
 * neighbouring columns, and every element is read once but at the strips' ends. */
template <class T, int VEC, int SIZE> DEVICE void lrn_roll(const lrn_args &a)
{
    typedef acc<T> R;
    const int AFTER = (SIZE - 1) / 2, BEFORE = SIZE / 2;
    i64 packs = a.cols / VEC, tasks = a.count / (a.rows * a.cols) * a.strips * packs;
    for (i64 task = global_thread(); task < tasks; task += global_threads()) {
        i64 line = quotient(task, packs, a.by_cols), unit = quotient(line, a.strips, a.by_strips);
        i64 begin = (line - unit * a.strips) * a.strip, end = lesser(begin + a.strip, a.rows);
        i64 base = unit * a.rows * a.cols + (task - line * packs) * VEC;
        R w[SIZE][VEC]; /* row r - BEFORE + j */
        UNROLL
        for (int j = 0; j < SIZE; j++) {
            i64 r = begin - 1 - BEFORE + j;
            pack<T, VEC> v = {};
            if (j && r >= 0 && r < a.rows)
                v = load<VEC>((const T *)a.x + base + r * a.cols);
            UNROLL
            for (int e = 0; e < VEC; e++)
                w[j][e] = get(v.v[e]);
        }
        for (i64 r0 = begin; r0 < end; r0 += 4) { /* four rows are on their way at a time */
            pack<T, VEC> next[4];
            UNROLL
            for (int k = 0; k < 4; k++) {
                next[k] = {};
                if (r0 + k < end && r0 + k + AFTER < a.rows)
                    next[k] = load<VEC>((const T *)a.x + base + (r0 + k + AFTER) * a.cols);
            }
            UNROLL
            for (int k = 0; k < 4; k++) {
                pack<T, VEC> out = roll_row<T, VEC, SIZE>(a, w, next[k]);
                if (r0 + k < end)
                    store<VEC>((T *)a.out + base + (r0 + k) * a.cols, out);
            }
        }
    }
}
