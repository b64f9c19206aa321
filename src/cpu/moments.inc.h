/* moments.inc.h: mean, variance and mean square of packed elements, for REAL; of the sums of two lines where `more` is
 * the second one (it may be NULL). After twos.inc.h.
 *
 * Stable for a large mean: deviations are from a value of the block, or from 0; where that has turned out to be far from the
 * mean, from the mean, in a second run over the block, which is in the first-level cache by then. Blocks are merged
 * in double. */

#define MOMENTS_BLOCK 4096

/* How far from the mean, in squares of the deviation, a value may be that all deviate from: of eight bits there are more to
 * lose, and from 0 nothing is to be taken off, which pays for a loop of its own where vectors are wide. */
#if ELEMENT_WORDS
#define MOMENTS_FAR 64
#define MOMENTS_START(value) 0
#define MOMENTS_INLINE inline __attribute__((always_inline))
#else
#define MOMENTS_FAR 4
#define MOMENTS_START(value) (value)
#define MOMENTS_INLINE inline
#endif

/* Sums and squares of deviations: two of each, since one vector would wait for its own additions. */
typedef struct {
    FN(two) sum, squares;
} FN(deviations);

static inline void FN(deviate)(FN(deviations) * d, FN(two) v, REAL c)
{
    v.a -= c;
    v.b -= c;
    d->sum.a += v.a;
    d->sum.b += v.b;
    d->squares.a += v.a * v.a;
    d->squares.b += v.b * v.b;
}

/* Of a block, by its deviations from c. */
static MOMENTS_INLINE wk_moments FN(moments_around)(const ELEMENT *x, const ELEMENT *more, int64_t n, REAL c)
{
    FN(deviations) d = {0}, e = {0};
    int64_t i = 0;
    for (; i + 2 * TWO <= n; i += 2 * TWO) {
        FN(deviate)(&d, FN(two_of)(x, more, i), c);
        FN(deviate)(&e, FN(two_of)(x, more, i + TWO), c);
    }
    REAL sum = FN(vec_sum)((d.sum.a + d.sum.b) + (e.sum.a + e.sum.b));
    REAL squares = FN(vec_sum)((d.squares.a + d.squares.b) + (e.squares.a + e.squares.b));
    for (; i < n; i++) {
        REAL v = FN(one_of)(x, more, i) - c;
        sum += v;
        squares += v * v;
    }
    double off = (double)sum * (1 / (double)n); /* a quotient that does not wait for the sum */
    return (wk_moments){(double)n, c + off, (double)squares - off * (double)sum};
}

static inline wk_moments FN(block_moments)(const ELEMENT *x, const ELEMENT *more, int64_t n)
{
    REAL first = FN(one_of)(x, more, 0), finite = isfinite(first) ? first : 0, c = MOMENTS_START(finite);
    wk_moments m = FN(moments_around)(x, more, n, c);
    double off = m.mean - c;
    if (off * off * (double)n <= MOMENTS_FAR * m.m2 && m.m2 < INFINITY)
        return m;
    return FN(moments_around)(x, more, n, isfinite(m.mean) ? (REAL)m.mean : finite);
}

static wk_moments FN(moments)(const ELEMENT *x, const ELEMENT *more, int64_t n)
{
    wk_moments all = {0};
    for (int64_t at = 0; at < n; at += MOMENTS_BLOCK) {
        int64_t m = n - at < MOMENTS_BLOCK ? n - at : MOMENTS_BLOCK;
        all = wk_moments_merge(all, FN(block_moments)(x + at, more ? more + at : NULL, m));
    }
    return all;
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
static double FN(mean_square)(const ELEMENT *x, const ELEMENT *more, int64_t n)
{
    double total = 0;
    for (int64_t at = 0; at < n; at += MOMENTS_BLOCK) {
        int64_t end = n - at < MOMENTS_BLOCK ? n : at + MOMENTS_BLOCK, i = at;
        FN(vec) a = {0}, b = {0}, d = {0}, e = {0};
        for (; i + 2 * TWO <= end; i += 2 * TWO) {
            FN(two) v = FN(two_of)(x, more, i), w = FN(two_of)(x, more, i + TWO);
            a += v.a * v.a;
            b += v.b * v.b;
            d += w.a * w.a;
            e += w.b * w.b;
        }
        REAL sum = FN(vec_sum)((a + b) + (d + e));
        for (; i < end; i++) {
            REAL v = FN(one_of)(x, more, i);
            sum += v * v;
        }
        total += (double)sum;
    }
    return total / (double)n;
}
#pragma GCC diagnostic pop

#undef MOMENTS_BLOCK
#undef MOMENTS_FAR
#undef MOMENTS_START
#undef MOMENTS_INLINE
