/* gemm_thin.inc.h: the loops of the thin product for a B of SOURCE, computed in REAL. LOAD(p) reads a vector of
 * the compute type, ONE(p) a single value; NAME(x) is x with the suffix of this kind. */

typedef REAL NAME(vec) __attribute__((vector_size(WK_VEC_BYTES)));
typedef REAL NAME(uvec) __attribute__((vector_size(WK_VEC_BYTES), aligned(sizeof(REAL)), may_alias));

/* y[m, jn] += x[m, kn] . b[kn, jn], for what is left beside the full vectors. */
static __attribute__((noinline)) void NAME(add_rest)(const thin_part *t, int64_t p, int64_t j)
{
    const SOURCE *b = t->b;
    for (int64_t i = 0; i < t->m; i++) {
        const REAL *x = (const REAL *)t->x + i * t->ldx;
        REAL *y = (REAL *)t->y + i * t->ldy;
        for (int64_t jj = j; jj < t->jn; jj++)
            for (int64_t q = p; q < t->kn; q++)
                y[jj] += x[q] * ONE(b + q * t->rs + jj * t->cs);
    }
}

/* y[i, j] += sum of x[i, p] * b[p, j] over rn rows of b, which are contiguous. m and rn are constants. */
ALWAYS_INLINE void NAME(add_rows)(const thin_part *t, int m, int64_t p, int rn, int64_t jn)
{
    const SOURCE *b = (const SOURCE *)t->b + p * t->rs;
    NAME(vec) x[THIN_ROWS][THIN_STEP];
    for (int i = 0; i < m; i++)
        for (int r = 0; r < rn; r++)
            x[i][r] = ((const REAL *)t->x)[i * t->ldx + p + r] - (NAME(vec)){0}; /* to all lanes */
    /* Into the second-level cache, but for a single stream: rows a power of 2 apart would push each other out of the first.
     * Each line is asked for once; where they come from a cache only the first of a row, since the processor keeps up by
     * itself there. */
    const int64_t asked = t->from_memory ? WK_LINE / (int64_t)sizeof(SOURCE) - 1 : -1;
    const int64_t ahead = rn == 1 ? wk_host_ahead.one : 2 * rn * t->rs * (int64_t)sizeof(SOURCE);
    for (int64_t j = 0; j < jn; j += WK_VEC_BYTES / sizeof(REAL)) {
        NAME(vec) row[THIN_STEP];
        for (int r = 0; r < rn; r++)
            row[r] = LOAD(b + r * t->rs + j);
        for (int r = 0; r < rn && (j & asked) == 0; r++) {
            const void *later = (const void *)((uintptr_t)(b + r * t->rs + j) + (uintptr_t)ahead);
            if (rn == 1)
                __builtin_prefetch(later, 0, 3);
            else
                __builtin_prefetch(later, 0, 2);
        }
        for (int i = 0; i < m; i++) {
            NAME(uvec) *y = (NAME(uvec) *)((REAL *)t->y + i * t->ldy + j);
            NAME(vec) sum = *y;
            for (int r = 0; r < rn; r++)
                sum += x[i][r] * row[r];
            *y = sum;
        }
    }
}

ALWAYS_INLINE void NAME(by_rows)(const thin_part *t, int m)
{
    const int64_t lanes = WK_VEC_BYTES / sizeof(REAL), whole = t->jn / lanes * lanes;
    int64_t p = 0;
    for (int i = 0; i < m; i++)
        memset((REAL *)t->y + i * t->ldy, 0, (size_t)t->jn * sizeof(REAL));
    for (; p + THIN_STEP <= t->kn && !t->stream; p += THIN_STEP)
        NAME(add_rows)(t, m, p, THIN_STEP, whole);
    for (; p < t->kn; p++)
        NAME(add_rows)(t, m, p, 1, whole);
    NAME(add_rest)(t, 0, whole);
}

/* y[i, j + c] = the sum of the lanes of acc[i][c], for cn columns. */
static __attribute__((noinline)) void NAME(put_sums)(const thin_part *t, int64_t j, int cn,
                                                     NAME(vec) acc[][THIN_STEP])
{
    for (int i = 0; i < t->m; i++)
        for (int c = 0; c < cn; c++) {
            REAL sum = 0;
            for (size_t l = 0; l < WK_VEC_BYTES / sizeof(REAL); l++)
                sum += acc[i][c][l];
            ((REAL *)t->y)[i * t->ldy + j + c] = sum;
        }
}

/* y[i, j] = sum of x[i, p] * b[p, j] for cn columns of b, which are contiguous. m and cn are constants. */
ALWAYS_INLINE void NAME(dot_columns)(const thin_part *t, int m, int64_t j, int cn, int64_t kn)
{
    const int lanes = WK_VEC_BYTES / sizeof(REAL);
    const SOURCE *b = (const SOURCE *)t->b + j * t->cs;
    NAME(vec) acc[THIN_ROWS][THIN_STEP];
    for (int i = 0; i < m; i++)
        for (int c = 0; c < cn; c++)
            acc[i][c] = (NAME(vec)){0};
    for (int64_t p = 0; p < kn; p += lanes) {
        NAME(vec) x[THIN_ROWS];
        for (int i = 0; i < m; i++)
            x[i] = *(const NAME(uvec) *)((const REAL *)t->x + i * t->ldx + p);
        for (int c = 0; c < cn; c++) {
            NAME(vec) bv = LOAD(b + c * t->cs + p);
            for (int i = 0; i < m; i++)
                acc[i][c] += x[i] * bv;
        }
    }
    NAME(vec) kept[THIN_ROWS][THIN_STEP]; /* acc itself stays in registers, so it must have no address */
    for (int i = 0; i < m; i++)
        for (int c = 0; c < cn; c++)
            kept[i][c] = acc[i][c];
    NAME(put_sums)(t, j, cn, kept);
}

ALWAYS_INLINE void NAME(by_columns)(const thin_part *t, int m)
{
    const int64_t lanes = WK_VEC_BYTES / sizeof(REAL), whole = t->kn / lanes * lanes;
    int64_t j = 0;
    for (; j + THIN_STEP <= t->jn; j += THIN_STEP)
        NAME(dot_columns)(t, m, j, THIN_STEP, whole);
    for (; j < t->jn; j++)
        NAME(dot_columns)(t, m, j, 1, whole);
    NAME(add_rest)(t, whole, 0);
}

static void NAME(part)(const thin_part *t)
{
    switch (t->m) {
    case 1: t->columns ? NAME(by_columns)(t, 1) : NAME(by_rows)(t, 1); break;
    case 2: t->columns ? NAME(by_columns)(t, 2) : NAME(by_rows)(t, 2); break;
    case 3: t->columns ? NAME(by_columns)(t, 3) : NAME(by_rows)(t, 3); break;
    default: t->columns ? NAME(by_columns)(t, 4) : NAME(by_rows)(t, 4); break;
    }
}

#undef REAL
#undef SOURCE
#undef NAME
#undef LOAD
#undef ONE
