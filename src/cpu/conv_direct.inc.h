/* conv_direct.inc.h: one row of results in the compute type REAL. */

typedef REAL FN(vec) __attribute__((vector_size(WK_VEC_BYTES), aligned(sizeof(REAL)), may_alias));

/* nv vectors from x on: a constant wherever this is inlined. */
static inline __attribute__((always_inline)) void FN(vectors)(const REAL *window, const int64_t *offsets,
                                                              const REAL *weights, int64_t taps, REAL bias,
                                                              REAL *out, int nv)
{
    enum { LANES = WK_VEC_BYTES / sizeof(REAL) };
    FN(vec) sum[MAX_VECTORS];
    for (int v = 0; v < nv; v++)
        sum[v] = bias - (FN(vec)){0};
    for (int64_t t = 0; t < taps; t++) {
        const REAL *at = window + offsets[t];
        for (int v = 0; v < nv; v++)
            sum[v] += weights[t] * *(const FN(vec) *)(at + v * LANES);
    }
    for (int v = 0; v < nv; v++)
        *(FN(vec) *)(out + v * LANES) = sum[v];
}

/* out[x] = bias + sum over t of weights[t] * window[offsets[t] + x]. Reads and writes whole vectors behind n, less
 * than MAX_VECTORS of them. */
static void FN(row)(const REAL *window, const int64_t *offsets, const REAL *weights, int64_t taps, REAL bias,
                    REAL *out, int64_t n)
{
    enum { LANES = WK_VEC_BYTES / sizeof(REAL) };
    for (int64_t x = 0; x < n; x += MAX_VECTORS * LANES) {
        int64_t left = n - x;
        if (left <= LANES)
            FN(vectors)(window + x, offsets, weights, taps, bias, out + x, 1);
        else if (left <= 2 * LANES)
            FN(vectors)(window + x, offsets, weights, taps, bias, out + x, 2);
        else
            FN(vectors)(window + x, offsets, weights, taps, bias, out + x, MAX_VECTORS);
    }
}
