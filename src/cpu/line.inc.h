/* line.inc.h: sums and the like over n packed values, for REAL: the building blocks of softmax, norms, attention
 * and losses. Include after real_f32.h or real_f64.h.
 *
 * A sum runs in interleaved lanes (so that vectors can be used), and lanes are emptied into a double every few
 * thousand elements, so that a long line of floats loses nothing. */

#define LINE_LANES (4 * WK_VEC_BYTES / (int)sizeof(REAL))
#define LINE_BLOCK 4096

/* The lanes' values combined pairwise. */
#define LINE_FOLD(part, combine) \
    for (int w = LINE_LANES / 2; w > 0; w /= 2) { \
        for (int l = 0; l < w; l++) { \
            REAL s = part[l], t = part[l + w]; \
            part[l] = combine; \
        } \
    }

/* A function that adds up `term`, which may use i, over i < n. */
#define LINE_SUM(name, arguments, term) \
    static inline REAL FN(name) arguments \
    { \
        double total = 0; \
        for (int64_t at = 0; at < n; at += LINE_BLOCK) { \
            int64_t end = n - at < LINE_BLOCK ? n : at + LINE_BLOCK, \
                    whole = at + (end - at) / LINE_LANES * LINE_LANES; \
            REAL part[LINE_LANES] = {0}; \
            for (int64_t j = at; j < whole; j += LINE_LANES) { \
                for (int l = 0; l < LINE_LANES; l++) { \
                    int64_t i = j + l; \
                    part[l] += term; \
                } \
            } \
            for (int64_t i = whole; i < end; i++) \
                part[i - whole] += term; \
            LINE_FOLD(part, s + t) \
            total += (double)part[0]; \
        } \
        return (REAL)total; \
    }

/* Functions that a file does not use are no defect of it. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"

LINE_SUM(line_sum, (const REAL *x, int64_t n), x[i])
LINE_SUM(line_sum_sqr, (const REAL *x, int64_t n, REAL c), (x[i] - c) * (x[i] - c))
LINE_SUM(line_sum_exp, (const REAL *x, int64_t n, REAL c), R_EXP(x[i] - c))
LINE_SUM(line_dot, (const REAL *x, const REAL *y, int64_t n), x[i] * y[i])

/* exp(x - c) to y, and the sum; y may be x. */
static inline REAL FN(line_exp)(const REAL *x, REAL *y, int64_t n, REAL c)
{
    _Pragma("GCC ivdep") for (int64_t i = 0; i < n; i++) y[i] = R_EXP(x[i] - c);
    return FN(line_sum)(y, n);
}

/* The largest; NaN when one is. -infinity for an empty line. */
static inline REAL FN(line_max)(const REAL *x, int64_t n)
{
    REAL part[LINE_LANES];
    int64_t whole = n / LINE_LANES * LINE_LANES;
    for (int l = 0; l < LINE_LANES; l++)
        part[l] = -INFINITY;
    for (int64_t j = 0; j < whole; j += LINE_LANES) {
        for (int l = 0; l < LINE_LANES; l++)
            part[l] = x[j + l] > part[l] || x[j + l] != x[j + l] ? x[j + l] : part[l];
    }
    for (int64_t i = whole; i < n; i++)
        part[i - whole] = x[i] > part[i - whole] || x[i] != x[i] ? x[i] : part[i - whole];
    LINE_FOLD(part, t > s || t != t ? t : s)
    return part[0];
}

#pragma GCC diagnostic pop

#undef LINE_LANES
#undef LINE_BLOCK
#undef LINE_FOLD
#undef LINE_SUM
