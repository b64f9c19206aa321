/* gemm_kernel.inc.h: the tile kernel, included once for each kind of packed element. Set before:
 *   REAL     type of a result
 *   PACKED   type of a packed element, of the same size
 *   ALIGNED  to which those of A are
 *   NAME(x)  x with the suffix of this kind
 *   FUNCTION attributes of all functions here (instruction sets beyond those of the file)
 *   MULADD   (acc, a, b): acc + a * b on vectors */

typedef REAL NAME(vec) __attribute__((vector_size(WK_VEC_BYTES)));
typedef REAL NAME(uvec) __attribute__((vector_size(WK_VEC_BYTES), aligned(sizeof(REAL)), may_alias));
typedef PACKED NAME(pvec) __attribute__((vector_size(WK_VEC_BYTES)));
typedef PACKED NAME(upvec) __attribute__((vector_size(WK_VEC_BYTES), aligned(sizeof(REAL)), may_alias));
typedef PACKED NAME(element) __attribute__((aligned(ALIGNED), may_alias));

enum { NAME(LANES) = WK_VEC_BYTES / sizeof(REAL) };

/* Stores a tile whose last vector is cut off. */
FUNCTION static __attribute__((noinline)) void NAME(store_cut)(const gemm_tile *t,
                                                               const NAME(vec) (*acc)[GEMM_NV])
{
    for (int i = 0; i < t->rows; i++) {
        REAL *c = (REAL *)t->c + i * t->ldc;
        const REAL *sums = (const REAL *)acc[i];
        for (int j = 0; j < t->cols; j++)
            c[j] = t->add ? c[j] + sums[j] : sums[j];
    }
}

/* mr and nv are constants wherever this is inlined: all loops but that over k unroll, and acc lives in
 * registers. A tile of fewer rows repeats row 0 in place of those it lacks. */
FUNCTION static inline __attribute__((always_inline)) void NAME(tile)(const gemm_tile *t, int mr, int nv)
{
    NAME(vec) acc[GEMM_MR][GEMM_NV];
    for (int i = 0; i < mr; i++)
        for (int v = 0; v < nv; v++)
            acc[i][v] = (NAME(vec)){0};
    int64_t row[GEMM_MR];
    for (int i = 0; i < mr; i++)
        row[i] = i < t->rows ? i * t->a_rs : 0;

    REAL *c = t->c;
    for (int i = 0; i < mr; i++)
        for (int v = 0; v < nv; v++)
            __builtin_prefetch(c + (i < t->rows ? i * t->ldc : 0) + v * NAME(LANES), 1);

    const NAME(element) *a = t->a;
    const PACKED *b = t->b;
    int64_t a_ks = t->a_ks, b_ks = t->b_ks;
    for (int64_t p = t->k; p > 0; p--) {
        NAME(pvec) bv[GEMM_NV];
        for (int v = 0; v < nv; v++)
            bv[v] = *(const NAME(upvec) *)(b + v * NAME(LANES));
        for (int i = 0; i < mr; i++) {
            NAME(pvec) av = a[row[i]] - (NAME(pvec)){0}; /* to all lanes */
            for (int v = 0; v < nv; v++)
                acc[i][v] = MULADD(acc[i][v], av, bv[v]);
        }
        a += a_ks;
        b += b_ks;
    }

    if (t->cols != nv * NAME(LANES)) {
        NAME(vec) copy[GEMM_MR][GEMM_NV]; /* acc itself must not have an address */
        for (int i = 0; i < mr; i++)
            for (int v = 0; v < nv; v++)
                copy[i][v] = acc[i][v];
        NAME(store_cut)(t, (const NAME(vec)(*)[GEMM_NV])copy);
        return;
    }
    for (int i = 0; i < mr; i++) {
        if (i >= t->rows)
            return;
        for (int v = 0; v < nv; v++) {
            NAME(uvec) *out = (NAME(uvec) *)(c + i * t->ldc + v * NAME(LANES));
            *out = t->add ? acc[i][v] + *out : acc[i][v];
        }
    }
}

/* Few rows of a whole panel, as recurrent layers have them, are worth a form of their own; few of a part of one are the
 * corner of a matrix. */
FUNCTION static void NAME(run_tile)(const gemm_tile *t)
{
    int64_t vectors = gemm_blocks(t->cols, NAME(LANES));
    if (vectors == 1)
        NAME(tile)(t, GEMM_MR, 1);
    else if (vectors < GEMM_NV)
        NAME(tile)(t, GEMM_MR, GEMM_NV - 1);
    else if (t->rows <= GEMM_MR / 2)
        NAME(tile)(t, GEMM_MR / 2, GEMM_NV);
    else
        NAME(tile)(t, GEMM_MR, GEMM_NV);
}

#undef REAL
#undef PACKED
#undef ALIGNED
#undef NAME
#undef FUNCTION
#undef MULADD
