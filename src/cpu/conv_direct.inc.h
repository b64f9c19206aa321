/* conv_direct.inc.h: a block of results in the compute type REAL. */

typedef REAL FN(vec) __attribute__((vector_size(WK_VEC_BYTES), aligned(sizeof(REAL)), may_alias));
enum { FN(LANES) = WK_VEC_BYTES / sizeof(REAL) };

/* `rows` rows of nv vectors; the last vector is at `last` and may overlap the one before. taps, rows and nv are
 * constants wherever this is inlined, so that the sums live in registers and a vector of the window, once loaded,
 * serves all rows that need it. */
static inline __attribute__((always_inline)) void FN(block)(const conv_block *b, const REAL *window,
                                                            REAL bias, REAL *out, int64_t last, int taps,
                                                            int rows, int nv)
{
    FN(vec) sum[MAX_ROWS][MAX_VECTORS];
    for (int i = 0; i < rows; i++)
        for (int v = 0; v < nv; v++)
            sum[i][v] = bias - (FN(vec)){0};
    const REAL *weights = b->weights;
    for (int64_t column = 0; column < b->columns; column++, weights += taps) {
        const REAL *at = window + b->offsets[column];
        for (int r = 0; r < rows + taps - 1; r++, at += b->row)
            for (int v = 0; v < nv; v++) {
                FN(vec) x = *(const FN(vec) *)(at + (v == nv - 1 ? last : v * FN(LANES)));
                for (int i = 0; i < rows; i++)
                    if (r >= i && r < i + taps)
                        sum[i][v] += weights[r - i] * x;
            }
    }
    for (int i = 0; i < rows; i++)
        for (int v = 0; v < nv; v++)
            *(FN(vec) *)(out + i * b->out_row + (v == nv - 1 ? last : v * FN(LANES))) = sum[i][v];
}

/* Rows of n results; where n is less than a vector, a whole vector is read and written. */
static inline __attribute__((always_inline)) void FN(row_block)(const conv_block *b, const REAL *window,
                                                                REAL bias, REAL *out, int64_t n, int taps,
                                                                int rows)
{
    for (int64_t x = 0; x < n;) {
        int64_t vectors = (n - x + FN(LANES) - 1) / FN(LANES), end = conv_max(n - FN(LANES), 0) - x;
        int nv = vectors >= MAX_VECTORS ? MAX_VECTORS : vectors >= 2 ? 2 : 1;
        int64_t last = conv_min((nv - 1) * FN(LANES), end);
        if (nv == MAX_VECTORS)
            FN(block)(b, window + x, bias, out + x, last, taps, rows, MAX_VECTORS);
        else if (nv == 2)
            FN(block)(b, window + x, bias, out + x, last, taps, rows, 2);
        else
            FN(block)(b, window + x, bias, out + x, last, taps, rows, 1);
        x += nv * FN(LANES);
    }
}

static void FN(rows)(const conv_block *b, const void *window, const void *bias, void *out, int64_t n)
{
    REAL start = bias ? *(const REAL *)bias : 0;
    switch (b->taps) {
    case 3: FN(row_block)(b, window, start, out, n, 3, MAX_ROWS); break;
    case 5: FN(row_block)(b, window, start, out, n, 5, MAX_ROWS); break;
    default: FN(row_block)(b, window, start, out, n, 1, 1); break;
    }
}

/* [columns / width, taps, width] as [columns, taps], the taps backwards if so told. */
static void FN(turn_weights)(const void *from, void *to, int64_t columns, int64_t taps, int64_t width,
                             bool backwards)
{
    for (int64_t c = 0; c < columns; c++)
        for (int64_t t = 0; t < taps; t++)
            ((REAL *)to)[c * taps + (backwards ? taps - 1 - t : t)] =
                ((const REAL *)from)[(c / width * taps + t) * width + c % width];
}
