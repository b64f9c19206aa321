/* extreme.inc.h: the place of the extreme of packed floats, whose bits are INT (UINT without a sign).
 *
 * Floats are ordered like their bits taken as sign and magnitude, and minima and maxima of integers know no NaN and do
 * not wait: these are looked for by their magnitude. */

/* Grows from the worst element to the best, both zeros alike. signs: 0 for magnitudes alone, else -1; flip: -1 where
 * the least is best, else 0. */
static inline INT FN(order)(UINT x, INT signs, INT flip)
{
    const UINT sign = (UINT)1 << (8 * sizeof(UINT) - 1);
    INT magnitude = (INT)(x & (UINT)~sign), negative = (INT)((INT)x >> (8 * sizeof(INT) - 1) & signs) ^ flip;
    return (INT)((magnitude ^ negative) - negative);
}

/* The first place where the bits under the mask are `bits`; they are there. By groups of a fixed size: vectors. */
static int64_t FN(find_bits)(const UINT *xs, int64_t n, UINT mask, UINT bits)
{
    enum { GROUP = 128 };
    int64_t at = 0;
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
    while (at + 1 < n && (xs[at] & mask) != bits)
        at++;
    return at;
}

/* The first place of the best among n > 0 elements; a NaN is better than numbers. */
static int64_t FN(find_extreme)(const reduce_plan *p, const void *elements, int64_t n, UINT infinity)
{
    const UINT *xs = elements, sign = (UINT)1 << (8 * sizeof(UINT) - 1), all = (UINT)-1;
    INT signs = p->of_abs ? 0 : -1, flip = p->least ? -1 : 0, best = (INT)sign, largest = 0;
#pragma omp simd reduction(max : best, largest)
    for (int64_t i = 0; i < n; i++) {
        INT order = FN(order)(xs[i], signs, flip), magnitude = (INT)(xs[i] & (UINT)~sign);
        best = order > best ? order : best;
        largest = magnitude > largest ? magnitude : largest;
    }
    if (largest > (INT)infinity) {
        int64_t at = 0;
        while ((xs[at] & (UINT)~sign) <= infinity)
            at++;
        return at;
    }
    INT value = flip ? (INT)-best : best;
    UINT bits = value < 0 ? (UINT)(sign | (UINT)-value) : (UINT)value;
    return FN(find_bits)(xs, n, signs && best ? all : (UINT)~sign, bits);
}

#undef INT
#undef UINT
#undef FN
