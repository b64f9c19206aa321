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

/* Rows that are on their way at a time. */
enum { ROWS = 4 };

template <class T, int VEC> DEVICE void fetch_rows(const T *x, i64 cols, int n, pack<T, VEC> *rows)
{
    UNROLL
    for (int k = 0; k < ROWS; k++, x += cols) {
        rows[k] = {};
        if (k < n)
            rows[k] = load_once<VEC>(x);
    }
}

/* y for windows of SIZE down the rows, which roll through registers: a thread goes down a strip of rows with VEC
 * neighbouring columns, and every element is read once but at the strips' ends. ROOTS: beta is 0.75. */
template <class T, int VEC, int SIZE, int ROOTS> DEVICE void lrn_roll(const lrn_args &a)
{
    typedef acc<T> R;
    const int AFTER = (SIZE - 1) / 2, BEFORE = SIZE / 2;
    i64 packs = a.cols / VEC, tasks = a.count / (a.rows * a.cols) * a.strips * packs;
    for (i64 task = global_thread(); task < tasks; task += global_threads()) {
        i64 line = quotient(task, packs, a.by_cols), unit = quotient(line, a.strips, a.by_strips);
        int begin = (int)((line - unit * a.strips) * a.strip), left = (int)lesser(a.strip, a.rows - begin);
        i64 base = (unit * a.rows + begin) * a.cols + (task - line * packs) * VEC;
        const T *x = (const T *)a.x + base;
        T *y = (T *)a.out + base;
        R w[SIZE][VEC]; /* row r - BEFORE + j */
        UNROLL
        for (int j = 0; j < SIZE; j++) {
            int r = j - 1 - BEFORE;
            pack<T, VEC> v = {};
            if (j && begin + r >= 0 && begin + r < a.rows)
                v = load<VEC>(x + r * a.cols);
            UNROLL
            for (int e = 0; e < VEC; e++)
                w[j][e] = get(v.v[e]);
        }
        int more = (int)lesser((i64)left, a.rows - begin - AFTER); /* rows that come into the window */
        pack<T, VEC> next[ROWS], now[ROWS];
        x += AFTER * a.cols;
        fetch_rows<T, VEC>(x, a.cols, more, next);
        for (; left > 0; left -= ROWS) {
            UNROLL
            for (int k = 0; k < ROWS; k++)
                now[k] = next[k];
            more -= ROWS;
            x += ROWS * a.cols;
            fetch_rows<T, VEC>(x, a.cols, more, next);
            UNROLL
            for (int k = 0; k < ROWS; k++, y += a.cols) {
                pack<T, VEC> out = roll_row<T, VEC, SIZE, ROOTS>(a, w, now[k]);
                if (k < left)
                    store<VEC>(y, out);
            }
        }
    }
}

/* ---- all rows of a few columns in shared memory ---- */

/* A tile's place: this thread's column, and the rows part, part + PARTS, .. that it works on. */
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

/* y for windows of SIZE down the rows. */
template <class T, int SIZE, int ROOTS> DEVICE void lrn_tile(const lrn_args &a)
{
    typedef acc<T> R;
    SHARED tile_rows<R, SIZE> x;
    for (u32 tile = block_id(); tile < a.tiles; tile += grid_blocks()) {
        tile_place p(a, tile);
        bring_rows<T, SIZE>(a, p, x);
        T *y = (T *)a.out + (p.at + p.part * a.cols);
        for (u32 r = p.part; r < (u32)a.rows; r += tile_place::PARTS, y += tile_place::PARTS * a.cols) {
            R d = (R)a.k + (R)a.alpha * x.template sum<1>(p.col, r);
            R v = x.v[r + SIZE / 2][p.col] * (ROOTS ? inverse_roots(d) : inverse_power(d, (R)a.beta));
            if (p.there)
                *y = put<T>(v);
        }
        barrier();
    }
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
