/* moments.inc.h: mean and variance of packed values, for REAL; after line.inc.h.
 *
 * Stable for a large mean: a block is short enough to be read twice from the first-level cache, the deviations are
 * from a value of the block and then from its mean, kept in two parts, and blocks are merged in double. */

static wk_moments FN(moments)(const REAL *x, int64_t n)
{
    enum { BLOCK = 4096 };
    wk_moments all = {0};
    for (int64_t at = 0; at < n; at += BLOCK) {
        int64_t m = n - at < BLOCK ? n - at : BLOCK;
        REAL pivot = isfinite(x[at]) ? x[at] : 0;
        double mean = pivot + (double)FN(line_sum_off)(x + at, m, pivot) / (double)m;
        REAL hi = (REAL)mean, lo = (REAL)(mean - hi);
        wk_moments block = {(double)m, mean, FN(line_sum_sqr_off)(x + at, m, hi, lo)};
        all = wk_moments_merge(all, block);
    }
    return all;
}
