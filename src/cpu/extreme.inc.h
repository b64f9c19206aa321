/* extreme.inc.h: the place of the extreme of packed floats, whose bits are INT (UINT without a sign).
 *
 * Floats are ordered like their bits taken as sign and magnitude, and minima and maxima of integers know no NaN and do
 * not wait. The largest integer is the largest of the floats without a sign, or one of their NaN; without regard to the
 * sign it is that of those with a sign which is furthest from 0, or a NaN of theirs. */

/* The first place, from `at` on, where the bits under the mask are `bits`; they are there. */
static int64_t FN(find_bits)(const UINT *xs, int64_t at, int64_t n, UINT mask, UINT bits)
{
#if WK_VEC_BYTES == 64
    typedef UINT vec __attribute__((vector_size(64)));
    enum { LANES = sizeof(vec) / sizeof(UINT) };
    for (; at + LANES <= n; at += LANES) {
        vec v;
        memcpy(&v, xs + at, sizeof v);
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

/* What an element is taken for, so that the largest is wanted: of its bits these are kept, those are flipped. */
typedef struct {
    UINT keep, flip;
} FN(order);

static inline UINT FN(rank)(FN(order) o, UINT x) { return (x & o.keep) ^ o.flip; }

/* The largest of n ranks, with and without regard to the sign. */
typedef struct {
    INT most;
    UINT furthest;
} FN(largest);

static inline __attribute__((always_inline)) FN(largest)
    FN(find_largest)(FN(order) o, const UINT *xs, int64_t n)
{
    INT most = (INT)((UINT)1 << (8 * sizeof(UINT) - 1));
    UINT furthest = 0;
#if WK_VEC_BYTES < 64 /* where there is an instruction for each step gcc does better by itself */
#pragma omp simd reduction(max : most, furthest)
#endif
    for (int64_t i = 0; i < n; i++) {
        UINT x = FN(rank)(o, xs[i]);
        most = (INT)x > most ? (INT)x : most;
        furthest = x > furthest ? x : furthest;
    }
    return (FN(largest)){most, furthest};
}

/* The least of n > 0 ranks: what is nearest to 0 where all have a sign. */
static UINT FN(nearest_0)(FN(order) o, const UINT *xs, int64_t n)
{
    UINT least = (UINT)-1;
#pragma omp simd reduction(min : least)
    for (int64_t i = 0; i < n; i++) {
        UINT x = FN(rank)(o, xs[i]);
        least = x < least ? x : least;
    }
    return least;
}

/* The first place of the best among n > 0 elements; a NaN is better than numbers, and both zeros are alike. Where vectors are
 * faster than memory they are taken in strips, as in the end only the best of these is searched: that time is lost for
 * reading. What follows, mostly the next to be looked at, is asked for early then. */
static int64_t FN(find_extreme)(const reduce_plan *p, const void *elements, int64_t n, UINT infinity)
{
    enum { STRIP = 1024 / sizeof(UINT), AHEAD = 4096 };
    const UINT *xs = elements, sign = (UINT)1 << (8 * sizeof(UINT) - 1), magnitude = (UINT)~sign;
    const FN(order) o = {p->of_abs ? magnitude : (UINT)-1, p->least ? sign : 0};
    const int64_t step = WK_VEC_BYTES == 64 ? STRIP : n;
    FN(largest) best = {(INT)sign, 0};
    int64_t from = 0;
    for (int64_t i = 0; i < n; i += step) {
        bool whole = step == STRIP && n - i >= STRIP;
        for (size_t at = 0; whole && at < STRIP * sizeof *xs; at += WK_LINE)
            __builtin_prefetch((const void *)((uintptr_t)(xs + i) + AHEAD + at), 0, 3);
        FN(largest) l = whole ? FN(find_largest)(o, xs + i, STRIP) : FN(find_largest)(o, xs + i, n - i);
        from = l.most > best.most ? i : from;
        best.most = l.most > best.most ? l.most : best.most;
        best.furthest = l.furthest > best.furthest ? l.furthest : best.furthest;
    }
    if (best.most > (INT)infinity || best.furthest > (sign | infinity)) {
        int64_t at = 0;
        while ((xs[at] & magnitude) <= infinity)
            at++;
        return at;
    }
    if (best.most < 0) /* all have a sign */
        return FN(find_bits)(xs, 0, n, o.keep, FN(nearest_0)(o, xs, n) ^ o.flip);
    if (best.most == 0) /* with a sign it is as good */
        return FN(find_bits)(xs, 0, n, magnitude, 0);
    return FN(find_bits)(xs, from, n, o.keep, (UINT)best.most ^ o.flip);
}

#undef INT
#undef UINT
#undef ZEROS
#undef FN
