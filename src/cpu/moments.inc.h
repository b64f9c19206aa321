/* moments.inc.h: mean and variance of packed values, for REAL; after line.inc.h.
 *
 * Stable for a large mean: a block is short enough to be read twice from the first-level cache, the deviations are
 * from a value of the block and then from its mean, kept in two parts, and blocks are merged in double. */

/* Of one block. */
static inline wk_moments FN(block_moments)(const REAL *x, int64_t n)
{
    REAL pivot = isfinite(x[0]) ? x[0] : 0, sum = 0, squares = 0;
    double mean = pivot + (double)FN(line_sum_off)(x, n, pivot) / (double)n;
    REAL hi = (REAL)mean, lo = (REAL)(mean - hi);
#pragma omp simd reduction(+ : sum, squares)
    for (int64_t i = 0; i < n; i++) {
        REAL d = x[i] - hi - lo;
        sum += d;
        squares += d * d;
    }
    double off = isfinite(mean) ? (double)sum / (double)n : 0; /* what rounding has left in the mean */
    return (wk_moments){(double)n, mean + off, (double)squares - off * (double)sum};
}

static wk_moments FN(moments)(const REAL *x, int64_t n)
{
    enum { BLOCK_SIZE = 4096 };
    wk_moments all = {0};
    for (int64_t at = 0; at < n; at += BLOCK_SIZE)
        all = wk_moments_merge(all, FN(block_moments)(x + at, n - at < BLOCK_SIZE ? n - at : BLOCK_SIZE));
    return all;
}
