/* lrn.hip: local response norm: y = x d^-beta, d = k + alpha * the sum of x^2 over a window; and its gradient,
 * dx = dy d^-beta - 2 alpha beta x * the sum of dy y / d over the elements that have x in their window. */
#include "device.h"
#include "lrn.h"

DEVICE i64 quotient(i64 n, i64 by, const wk_divisor &v)
{
    return (n | by) < (i64)1 << 31 ? (i64)divide((u32)n, v) : n / by;
}

/* d^-0.75 as roots, which are cheaper than a power. */
DEVICE f64 inverse_roots(f64 d)
{
    f64 root = m_sqrt(d);
    return 1 / (root * m_sqrt(root));
}
DEVICE f32 inverse_roots(f32 d)
{
    /* The fast roots are not for tiny numbers: those are taken 2^96 times as large, whose power is 2^-72 of it. */
    bool tiny = d < 0x1p-100f;
    f32 r = fast_rsqrt(tiny ? d * 0x1p96f : d), p = r * fast_sqrt(r);
    return tiny ? p * 0x1p72f : p;
}

/* d^-beta */
template <class R> DEVICE R inverse_power(R d, R beta)
{
    if (beta == (R)0.75)
        return inverse_roots(d);
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
template <class T, int VEC, int SIZE, int ROOTS>
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
        R d = (R)a.k + (R)a.alpha * sum;
        out.v[e] = put<T>(w[SIZE / 2][e] * (ROOTS ? inverse_roots(d) : inverse_power(d, (R)a.beta)));
    }
    return out;
}

/* ROWS rows of this thread's columns, from x on, into shared memory; zeros where rows lie outside the unit. */
template <int ROWS, class T, int VEC>
DEVICE void bring_strip(const lrn_args &a, const T *x, i64 row, bool there, pack<T, VEC> (*to)[LRN_ACROSS])
{
    const int DOWN = 256 / LRN_ACROSS, STEPS = (ROWS + DOWN - 1) / DOWN;
    int col = (int)thread_id() % LRN_ACROSS, first = (int)thread_id() / LRN_ACROSS;
    pack<T, VEC> v[STEPS];
    UNROLL
    for (int k = 0; k < STEPS; k++) {
        int r = first + k * DOWN;
        bool here = there && (u64)(row + r) < (u64)a.rows;
        const T *from = x + (here ? row + r : 0) * a.cols;
#ifdef WK_NVIDIA /* no registers: more blocks at once */
        if constexpr (sizeof v[0] == 16) {
            if (r < ROWS)
                copy_async(&to[r][col], from, here);
            continue;
        }
#endif
        v[k] = {};
        if (here && r < ROWS)
            v[k] = load_once<VEC>(from);
    }
#ifdef WK_NVIDIA
    if constexpr (sizeof v[0] == 16) {
        copies_wait();
        return;
    }
#endif
    UNROLL
    for (int k = 0; k < STEPS; k++) {
        if (first + k * DOWN < ROWS)
            to[first + k * DOWN][col] = v[k];
    }
}

/* y for windows of SIZE down the rows. A block has a strip of a unit's rows in shared memory, with those its windows see
 * around it, and a thread rolls down a few of them with VEC neighbouring columns. ROOTS: beta is 0.75. */
template <class T, int VEC, int SIZE, int ROOTS> DEVICE void lrn_strip(const lrn_args &a)
{
    const int ROWS = LRN_STRIP + SIZE - 1, BEFORE = SIZE / 2, EACH = LRN_STRIP * LRN_ACROSS / 256;
    SHARED alignas(16) pack<T, VEC> x[ROWS][LRN_ACROSS];
    int col = (int)thread_id() % LRN_ACROSS, first = (int)thread_id() / LRN_ACROSS * EACH;
    for (u32 tile = block_id(); tile < a.tiles; tile += grid_blocks()) {
        u32 line = divide(tile, a.by_cols), unit = divide(line, a.by_strips);
        i64 at = ((i64)(tile - line * a.by_cols.d) * LRN_ACROSS + col) * VEC, row = (i64)(line - unit * a.by_strips.d) * LRN_STRIP;
        bool there = at < a.cols;
        i64 base = unit * a.rows * a.cols + (there ? at : 0);
        bring_strip<ROWS>(a, (const T *)a.x + base, row - BEFORE, there, x);
        barrier();
        acc<T> w[SIZE][VEC]; /* the first is that of the row before */
        UNROLL
        for (int j = 1; j < SIZE; j++) {
            UNROLL
            for (int e = 0; e < VEC; e++)
                w[j][e] = get(x[first + j - 1][col].v[e]);
        }
        T *y = (T *)a.out + base + (row + first) * a.cols;
        UNROLL
        for (int k = 0; k < EACH; k++, y += a.cols) {
            pack<T, VEC> out = roll_row<T, VEC, SIZE, ROOTS>(a, w, x[first + SIZE - 1 + k][col]);
            if (there && row + first + k < a.rows)
                store<VEC>(y, out);
        }
        barrier();
    }
}

/* ---- the gradient ---- */

/* A tile has all rows of a few columns. Its place: this thread's column, and the rows part, part + PARTS, .. that it works on. */
struct tile_place {
    static const u32 PARTS = 256 / LRN_COLS;
    u32 col, part;
    i64 at; /* of the column's first element */
    bool there;

    MEMBER tile_place(const lrn_args &a, u32 tile)
    {
        u32 unit = divide(tile, a.by_cols), first = (tile - unit * a.by_cols.d) * LRN_COLS;
        col = thread_id() % LRN_COLS;
        part = thread_id() / LRN_COLS;
        there = first + col < a.cols;
        at = unit * a.rows * a.cols + (there ? first + col : 0);
    }
};

/* Sums of SIZE rows from each on; what lies around the rows is zero. */
template <class R, int SIZE> struct tile_rows {
    static const int MOST = sizeof(R) == 8 ? LRN_ROWS / 2 : LRN_ROWS;
    R v[MOST + LRN_MOST_ROLLED - 1][LRN_COLS];

    /* Zeros before the rows and behind them. */
    MEMBER void surround(const tile_place &p, i32 rows, int before)
    {
        int zero = (int)p.part;
        if (zero < SIZE - 1)
            v[zero < before ? zero : zero + rows][p.col] = 0;
    }
    template <int SQUARES> MEMBER R sum(u32 col, u32 row) const
    {
        R s = 0;
        UNROLL
        for (int j = 0; j < SIZE; j++) {
            R x = v[row + j][col];
            s += SQUARES ? x * x : x;
        }
        return s;
    }
};

/* x into the tile, with BEFORE zeros above it. */
template <class T, int SIZE>
DEVICE void bring_rows(const lrn_args &a, const tile_place &p, tile_rows<acc<T>, SIZE> &x)
{
    const int BEFORE = SIZE / 2;
    const T *from = (const T *)a.x + (p.at + p.part * a.cols);
    i64 step = tile_place::PARTS * a.cols;
    x.surround(p, (i32)a.rows, BEFORE);
    for (u32 r = p.part; r < (u32)a.rows; r += tile_place::PARTS, from += step)
        x.v[r + BEFORE][p.col] = p.there ? get(*from) : 0;
    barrier();
}

/* The gradient, in one pass: the terms of the second sum lie in shared memory beside x. */
template <class T, int SIZE, int ROOTS> DEVICE void lrn_tile_grad(const lrn_args &a)
{
    typedef acc<T> R;
    const int BEFORE = SIZE / 2, AFTER = SIZE - 1 - BEFORE;
    SHARED tile_rows<R, SIZE> x, terms;
    for (u32 tile = block_id(); tile < a.tiles; tile += grid_blocks()) {
        tile_place p(a, tile);
        bring_rows<T, SIZE>(a, p, x);
        i64 at = p.at + p.part * a.cols, step = tile_place::PARTS * a.cols;
        const T *y = (const T *)a.y + at, *dy = (const T *)a.dy + at;
        terms.surround(p, (i32)a.rows, AFTER); /* the windows as their elements see them */
        for (u32 r = p.part; r < (u32)a.rows; r += tile_place::PARTS, y += step, dy += step) {
            R d = (R)a.k + (R)a.alpha * x.template sum<1>(p.col, r);
            terms.v[r + AFTER][p.col] = p.there ? get(*y) * get(*dy) / d : 0;
        }
        barrier();
        T *dx = (T *)a.out + at;
        dy = (const T *)a.dy + at;
        for (u32 r = p.part; r < (u32)a.rows; r += tile_place::PARTS, dx += step, dy += step) {
            R d = (R)a.k + (R)a.alpha * x.template sum<1>(p.col, r);
            R power = ROOTS ? inverse_roots(d) : inverse_power(d, (R)a.beta);
            R rest = (R)(2 * a.alpha * a.beta) * x.v[r + BEFORE][p.col] * terms.template sum<0>(p.col, r);
            if (p.there)
                *dx = put<T>(get(*dy) * power - rest);
        }
        barrier();
    }
}
