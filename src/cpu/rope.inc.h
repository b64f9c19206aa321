/* rope.inc.h: one row of rotary embedding, for REAL. x and y do not overlap. */

/* Pairs i, i + r; sign -1 turns back. */
static void FN(halves)(const void *in, const void *cosines, const void *sines, void *out, int64_t r, int sign)
{
    const REAL *restrict x1 = in, *restrict x2 = x1 + r, *restrict c = cosines, *restrict s = sines;
    REAL *restrict y1 = out, *restrict y2 = y1 + r;
    REAL turn = (REAL)sign;
    for (int64_t i = 0; i < r; i++) {
        REAL a = x1[i], b = x2[i], u = turn * s[i];
        y1[i] = a * c[i] - b * u;
        y2[i] = a * u + b * c[i];
    }
}

/* Pairs 2 i, 2 i + 1. */
static void FN(pairs)(const void *in, const void *cosines, const void *sines, void *out, int64_t r, int sign)
{
    const REAL *restrict x = in, *restrict c = cosines, *restrict s = sines;
    REAL *restrict y = out, turn = (REAL)sign;
    for (int64_t i = 0; i < r; i++) {
        REAL a = x[2 * i], b = x[2 * i + 1], u = turn * s[i];
        y[2 * i] = a * c[i] - b * u;
        y[2 * i + 1] = a * u + b * c[i];
    }
}
