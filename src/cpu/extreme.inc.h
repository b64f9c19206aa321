/* extreme.inc.h: the place of the extreme of packed floats, whose bits are INT (UINT without a sign).
 *
 * Floats are ordered like their bits taken as sign and magnitude, and minima and maxima of integers know no NaN and do
 * not wait. The largest integer is the largest of the floats without a sign, or one of their NaN; without regard to the
 * sign it is that of those with a sign which is furthest from 0, or a NaN of theirs. */

/* The first place where the bits under the mask are `bits`; they are there. What follows the elements is called for meanwhile,
 * as it is mostly the next to be looked at. */
static int64_t FN(find_bits)(const UINT *xs, int64_t n, UINT mask, UINT bits)
{
    int64_t at = 0;
#if WK_VEC_BYTES == 64
    typedef UINT vec __attribute__((vector_size(64)));
    enum { LANES = sizeof(vec) / sizeof(UINT) };
    for (; at + LANES <= n; at += LANES) {
        vec v;
        memcpy(&v, xs + at, sizeof v);
        __builtin_prefetch((const void *)((uintptr_t)(xs + at) + (uintptr_t)n * sizeof *xs), 0, 3);
        v = (v & mask) ^ bits;
        uint64_t zeros = ZEROS((__m512i)v, (__m512i)v);
        if (zeros)
            return at + __builtin_ctzll(zeros);
    }
#else
    enum { GROUP = 128 }; /* a fixed size: vectors */
    for (; at + GROUP <= n; at += GROUP) {
        UINT nearest = (UINT)-1;
#pragma omp simd reduction(min : nearest)
        for (int i = 0; i < GROUP; i++) {
            UINT off = (xs[at + i] & mask) ^ bits;
            nearest = off < nearest ? off : nearest;
        }
        if (nearest == 0)
            break;
    }
#endif
    while (at + 1 < n && (xs[at] & mask) != bits)
        at++;
    return at;
}

/* The least of n > 0: what is nearest to 0 where all have the same sign. */
static UINT FN(nearest_0)(const UINT *xs, int64_t n)
{
    UINT least = (UINT)-1;
#pragma omp simd reduction(min : least)
    for (int64_t i = 0; i < n; i++)
        least = xs[i] < least ? xs[i] : least;
    return least;
}

/* The first place of the best among n > 0 elements; a NaN is better than numbers, and both zeros are alike. */
static int64_t FN(find_extreme)(const reduce_plan *p, const void *elements, int64_t n, UINT infinity)
{
    const UINT *xs = elements, sign = (UINT)1 << (8 * sizeof(UINT) - 1), magnitude = (UINT)~sign;
    INT most = (INT)sign;
    UINT furthest = 0;
#pragma omp simd reduction(max : most, furthest)
    for (int64_t i = 0; i < n; i++) {
        most = (INT)xs[i] > most ? (INT)xs[i] : most;
        furthest = xs[i] > furthest ? xs[i] : furthest;
    }
    if (most > (INT)infinity || furthest > (sign | infinity)) {
        int64_t at = 0;
        while ((xs[at] & magnitude) <= infinity)
            at++;
        return at;
    }
    if (p->of_abs) {
        UINT with = furthest & magnitude, without = most > 0 ? (UINT)most : 0;
        return FN(find_bits)(xs, n, magnitude, furthest >= sign && with > without ? with : without);
    }
    UINT best = p->least ? furthest : (UINT)most;
    if (p->least != (best >= sign)) /* there are none with that sign */
        best = FN(nearest_0)(xs, n);
    UINT mask = best & magnitude ? (UINT)-1 : magnitude;
    return FN(find_bits)(xs, n, mask, best & mask);
}

#undef INT
#undef UINT
#undef ZEROS
#undef FN
