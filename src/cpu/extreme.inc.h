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
        uint64_t zeros = OF_WIDTH(testn_epi, _mask)((__m512i)v, (__m512i)v);
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

#if WK_VEC_BYTES == 64
enum { FN(LANES) = 64 / sizeof(UINT) };

/* The largest, or least, of the lanes without regard to signs, in all of them. */
static inline __m512i FN(fold)(__m512i v, bool largest)
{
    UNROLL for (int step = 0; step < 5; step++)
    {
        __m512i other = step == 0   ? _mm512_shuffle_i64x2(v, v, 0x4E)
                        : step == 1 ? _mm512_shuffle_i64x2(v, v, 0xB1)
                        : step == 2 ? _mm512_shuffle_epi32(v, 0x4E)
                        : step == 3 ? _mm512_shuffle_epi32(v, 0xB1)
                                    : _mm512_rol_epi32(v, 16);
        if (32 >> step >= (int)sizeof(UINT))
            v = largest ? OF_WIDTH(max_epu, )(v, other) : OF_WIDTH(min_epu, )(v, other);
    }
    return v;
}

/* The same of some vectors, not more than a lane can count, and the first place that has the largest. Every lane keeps the
 * number of the vector that its largest came from, so that nothing is searched in the end: that time would be lost for
 * reading. */
static FN(largest) FN(lanes_largest)(FN(order) o, const UINT *xs, int64_t vectors, int64_t *place)
{
    typedef UINT vec __attribute__((vector_size(64)));
    const vec sign = (vec){0} + ((UINT)1 << (8 * sizeof(UINT) - 1));
    __m512i most = (__m512i)sign, far = {0}, from = {0};
    vec number = {0};
    for (int64_t i = 0; i < vectors; i++, number += 1) {
        vec v;
        wk_ask(xs + i * FN(LANES), wk_host_ahead.one);
        memcpy(&v, xs + i * FN(LANES), sizeof v);
        v = (v & o.keep) ^ o.flip;
        from = OF_WIDTH(mask_mov_epi, )(from, OF_WIDTH(cmpgt_epi, _mask)((__m512i)v, most), (__m512i)number);
        most = OF_WIDTH(max_epi, )(most, (__m512i)v);
        far = OF_WIDTH(max_epu, )(far, (__m512i)v);
    }
    const __m512i all = _mm512_set1_epi32(-1);
    vec top = (vec)FN(fold)((__m512i)((vec)most ^ sign), true) ^ sign;
    __m512i first = OF_WIDTH(mask_mov_epi, )(all, OF_WIDTH(cmpeq_epi, _mask)(most, (__m512i)top), from);
    __m512i least = FN(fold)(first, false);
    uint64_t lanes = OF_WIDTH(cmpeq_epi, _mask)(first, least);
    *place = (int64_t)((vec)least)[0] * FN(LANES) + __builtin_ctzll(lanes);
    return (FN(largest)){(INT)top[0], ((vec)FN(fold)(far, true))[0]};
}
#endif

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

/* The first place of the best among n > 0 elements, a block at most; a NaN is better than numbers, and both zeros are alike. */
static int64_t FN(find_extreme)(const reduce_plan *p, const void *elements, int64_t n, UINT infinity)
{
    const UINT *xs = elements, sign = (UINT)1 << (8 * sizeof(UINT) - 1), magnitude = (UINT)~sign;
    const FN(order) o = {p->of_abs ? magnitude : (UINT)-1, p->least ? sign : 0};
    int64_t from = 0, done = 0;
    FN(largest) best = {(INT)sign, 0};
#if WK_VEC_BYTES == 64
    done = n / FN(LANES) * FN(LANES);
    if (done > 0)
        best = FN(lanes_largest)(o, xs, n / FN(LANES), &from);
#endif
    FN(largest) rest = FN(find_largest)(o, xs + done, n - done);
    from = rest.most > best.most ? done : from;
    best.most = rest.most > best.most ? rest.most : best.most;
    best.furthest = rest.furthest > best.furthest ? rest.furthest : best.furthest;
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
#undef OF_WIDTH
#undef FN
