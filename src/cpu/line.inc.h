/* line.inc.h: sums and the like over n packed values, for REAL: the building blocks of softmax, norms, attention
 * and losses. Include after real_f32.h or real_f64.h.
 *
 * `omp simd reduction` lets the compiler add in vector lanes, in an order that the build fixes once and for all. A long
 * sum of floats is emptied into a double every few thousand elements, so that it loses nothing. */

#define LINE_BLOCK 4096

/* A function that adds up `term`, which may use i, over i < n. */
#define LINE_SUM(name, arguments, term) \
    static inline REAL FN(name) arguments \
    { \
        double total = 0; \
        for (int64_t at = 0; at < n; at += LINE_BLOCK) { \
            int64_t end = n - at < LINE_BLOCK ? n : at + LINE_BLOCK; \
            REAL sum = 0; \
            _Pragma("omp simd reduction(+ : sum)") for (int64_t i = at; i < end; i++) sum += term; \
            total += (double)sum; \
        } \
        return (REAL)total; \
    }

/* Functions that a file does not use are no defect of it. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"

LINE_SUM(line_sum, (const REAL *x, int64_t n), x[i])
LINE_SUM(line_sum_sqr, (const REAL *x, int64_t n, REAL c), (x[i] - c) * (x[i] - c))
LINE_SUM(line_sum_exp, (const REAL *x, int64_t n, REAL c), R_EXP_TERM(x[i] - c))
LINE_SUM(line_dot, (const REAL *x, const REAL *y, int64_t n), x[i] * y[i])

/* exp(x - c) to y, and the sum; y may be x. */
static inline REAL FN(line_exp)(const REAL *x, REAL *y, int64_t n, REAL c)
{
    double total = 0;
    for (int64_t at = 0; at < n; at += LINE_BLOCK) {
        int64_t end = n - at < LINE_BLOCK ? n : at + LINE_BLOCK;
        REAL sum = 0;
#pragma omp simd reduction(+ : sum)
        for (int64_t i = at; i < end; i++) {
            REAL e = R_EXP_TERM(x[i] - c);
            y[i] = e;
            sum += e;
        }
        total += (double)sum;
    }
    return (REAL)total;
}

/* The largest of those that are no NaN; -infinity where there is none. By halves, which may overlap: one maximum would wait
 * for itself. */
static inline REAL FN(line_top)(const REAL *x, int64_t n)
{
    int64_t half = (n + 1) / 2;
    const REAL *last = x + n - half;
    REAL a = -INFINITY, b = a;
#pragma omp simd reduction(max : a, b)
    for (int64_t i = 0; i < half; i++) {
        a = x[i] > a ? x[i] : a;
        b = last[i] > b ? last[i] : b;
    }
    return a > b ? a : b;
}

/* The largest; NaN when one is. -infinity for an empty line. */
static inline REAL FN(line_max)(const REAL *x, int64_t n)
{
    REAL largest = -INFINITY;
    int nan = 0;
#pragma omp simd reduction(max : largest) reduction(| : nan)
    for (int64_t i = 0; i < n; i++) {
        largest = x[i] > largest ? x[i] : largest;
        nan |= x[i] != x[i];
    }
    return nan ? (REAL)NAN : largest;
}

#pragma GCC diagnostic pop

#undef LINE_BLOCK
#undef LINE_SUM
