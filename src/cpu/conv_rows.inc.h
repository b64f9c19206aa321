/* conv_rows.inc.h: the kernel of conv_rows.c for one kind of packed element. Set before:
 *   PACKED   type of a packed element, 4 bytes like the float of a result
 *   NAME(x)  x with the suffix of this kind
 *   FUNCTION attributes of all functions here (instruction sets beyond those of the file)
 *   MULADD   (acc, a, b): acc + a * b on vectors */

typedef float NAME(vec) __attribute__((vector_size(WK_VEC_BYTES)));
typedef float NAME(uvec) __attribute__((vector_size(WK_VEC_BYTES), aligned(4), may_alias));
typedef PACKED NAME(pvec) __attribute__((vector_size(WK_VEC_BYTES)));
typedef PACKED NAME(upvec) __attribute__((vector_size(WK_VEC_BYTES), aligned(4), may_alias));

/* nv is a constant wherever this is inlined: all loops but that over k unroll, and acc lives in registers. */
FUNCTION static inline __attribute__((always_inline)) void NAME(tile)(const rows_tile *t, int nv)
{
    NAME(vec) acc[GEMM_MR][GEMM_NV];
    UNROLL for (int i = 0; i < GEMM_MR; i++) UNROLL for (int v = 0; v < nv; v++) acc[i][v] = (NAME(vec)){0};
    const PACKED *a = t->a, *window = t->window;
    for (int64_t p = 0; p < t->k; p++, a += GEMM_MR) {
        const PACKED *b = window + t->offsets[p];
        NAME(pvec) bv[GEMM_NV];
        UNROLL for (int v = 0; v < nv; v++) bv[v] = *(const NAME(upvec) *)(b + t->places[v]);
        UNROLL for (int i = 0; i < GEMM_MR; i++)
        {
            NAME(pvec) av = a[i] - (NAME(pvec)){0}; /* to all lanes */
            UNROLL for (int v = 0; v < nv; v++) acc[i][v] = MULADD(acc[i][v], av, bv[v]);
        }
    }
    UNROLL for (int i = 0; i < GEMM_MR; i++) UNROLL for (int v = 0; v < nv; v++)
    {
        NAME(uvec) *out = (NAME(uvec) *)(t->c + i * t->ldc + v * LANES);
        *out = t->add ? acc[i][v] + *out : acc[i][v];
    }
}

FUNCTION static void NAME(run_tile)(const rows_tile *t)
{
    if (t->vectors == GEMM_NV)
        NAME(tile)(t, GEMM_NV);
    else if (t->vectors > 1)
        NAME(tile)(t, 2);
    else
        NAME(tile)(t, 1);
}

#undef PACKED
#undef NAME
#undef FUNCTION
#undef MULADD
