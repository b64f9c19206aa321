/* moments.inc.h: mean, variance and mean square of packed values, for REAL.
 *
 * Stable for a large mean: deviations are from a value of the block; where that has turned out to be far from the
 * mean, from the mean, in a second run over the block, which is in the first-level cache by then. Blocks are merged
 * in double. Sums run in vectors, several at a time, since one alone would wait for its own additions. */

#define LANES (WK_VEC_BYTES / (int)sizeof(REAL))
#define MOMENTS_BLOCK 4096

typedef REAL FN(vec) __attribute__((vector_size(WK_VEC_BYTES), aligned(sizeof(REAL)), may_alias));

static inline FN(vec) FN(vec_at)(const REAL *x) { return *(const FN(vec) *)x; }

/* The sum of the lanes, pairwise. */
static inline REAL FN(vec_sum)(FN(vec) v)
{
    REAL lane[LANES];
    memcpy(lane, &v, sizeof v);
    for (int w = LANES / 2; w > 0; w /= 2) {
        for (int i = 0; i < w; i++)
            lane[i] += lane[i + w];
    }
    return lane[0];
}

/* Of a block, by its deviations from c. */
static inline wk_moments FN(moments_around)(const REAL *x, int64_t n, REAL c)
{
    FN(vec) a = {0}, b = {0}, aa = {0}, bb = {0};
    int64_t i = 0;
    for (; i + 2 * LANES <= n; i += 2 * LANES) {
        FN(vec) d = FN(vec_at)(x + i) - c, e = FN(vec_at)(x + i + LANES) - c;
        a += d;
        b += e;
        aa += d * d;
        bb += e * e;
    }
    REAL sum = FN(vec_sum)(a + b), squares = FN(vec_sum)(aa + bb);
    for (; i < n; i++) {
        REAL d = x[i] - c;
        sum += d;
        squares += d * d;
    }
    double off = (double)sum / (double)n;
    return (wk_moments){(double)n, c + off, (double)squares - off * (double)sum};
}

static inline wk_moments FN(block_moments)(const REAL *x, int64_t n)
{
    REAL c = isfinite(x[0]) ? x[0] : 0;
    wk_moments m = FN(moments_around)(x, n, c);
    double off = m.mean - c;
    if (off * off * (double)n > 4 * m.m2 && isfinite(m.mean))
        m = FN(moments_around)(x, n, (REAL)m.mean);
    return m;
}

static wk_moments FN(moments)(const REAL *x, int64_t n)
{
    wk_moments all = {0};
    for (int64_t at = 0; at < n; at += MOMENTS_BLOCK)
        all =
            wk_moments_merge(all, FN(block_moments)(x + at, n - at < MOMENTS_BLOCK ? n - at : MOMENTS_BLOCK));
    return all;
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
static double FN(mean_square)(const REAL *x, int64_t n)
{
    double total = 0;
    for (int64_t at = 0; at < n; at += MOMENTS_BLOCK) {
        int64_t m = n - at < MOMENTS_BLOCK ? n - at : MOMENTS_BLOCK, i = 0;
        const REAL *v = x + at;
        FN(vec) a = {0}, b = {0}, d = {0}, e = {0};
        for (; i + 4 * LANES <= m; i += 4 * LANES) {
            a += FN(vec_at)(v + i) * FN(vec_at)(v + i);
            b += FN(vec_at)(v + i + LANES) * FN(vec_at)(v + i + LANES);
            d += FN(vec_at)(v + i + 2 * LANES) * FN(vec_at)(v + i + 2 * LANES);
            e += FN(vec_at)(v + i + 3 * LANES) * FN(vec_at)(v + i + 3 * LANES);
        }
        REAL sum = FN(vec_sum)((a + b) + (d + e));
        for (; i < m; i++)
            sum += v[i] * v[i];
        total += (double)sum;
    }
    return total / (double)n;
}
#pragma GCC diagnostic pop

#undef LANES
#undef MOMENTS_BLOCK
