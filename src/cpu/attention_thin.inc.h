/* attention_thin.inc.h: attention of a few queries over many keys, for REAL: vectors run along d, and a row of k or
 * v is read once for all queries. */

typedef REAL FN(vec) __attribute__((vector_size(WK_VEC_BYTES)));
typedef REAL FN(uvec) __attribute__((vector_size(WK_VEC_BYTES), aligned(sizeof(REAL)), may_alias));
typedef REAL FN(quarter) __attribute__((vector_size(16))); /* the smallest vector */
enum { FN(VEC) = WK_VEC_BYTES / sizeof(REAL), FN(PIECES) = WK_VEC_BYTES / 16 };

/* A vector's pieces of 16 bytes added up. */
static inline __attribute__((always_inline)) FN(quarter) FN(fold)(const FN(vec) * v)
{
    FN(quarter) piece[FN(PIECES)];
    memcpy(piece, v, sizeof *v);
    for (int half = FN(PIECES) / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++)
            piece[i] += piece[i + half];
    return piece[0];
}

/* The sums of four vectors, to s. */
static inline __attribute__((always_inline)) void FN(sum_four)(const FN(vec) * v, REAL *s)
{
    FN(quarter) a = FN(fold)(&v[0]), b = FN(fold)(&v[1]), c = FN(fold)(&v[2]), d = FN(fold)(&v[3]), four[2];
    SUM_FOUR(a, b, c, d, four);
    memcpy(s, four, 4 * sizeof(REAL));
}

/* s[i, j] = q row i . k row j for mr rows (a constant where this is inlined) and 4 keys, of which n are there; d is
 * whole vectors. */
static inline __attribute__((always_inline)) void FN(dots)(const REAL *q, const REAL *k, int64_t k_rs,
                                                           int64_t n, int64_t d, REAL *s, int mr)
{
    const REAL *key_row[4];
    for (int j = 0; j < 4; j++)
        key_row[j] = k + (j < n ? j : 0) * k_rs;
    FN(vec) acc[THIN_MR][4];
    for (int i = 0; i < mr; i++)
        for (int j = 0; j < 4; j++)
            acc[i][j] = (FN(vec)){0};
    for (int64_t c = 0; c < d; c += FN(VEC)) {
        FN(vec) key[4];
        for (int j = 0; j < 4; j++) {
            key[j] = *(const FN(uvec) *)(key_row[j] + c);
            KEEP(key[j]);
            if (c % (int64_t)(WK_LINE / sizeof(REAL)) == 0)
                __builtin_prefetch(key_row[j] + THIN_AHEAD * k_rs + c, 0, 3);
        }
        for (int i = 0; i < mr; i++) {
            FN(vec) row = *(const FN(uvec) *)(q + i * d + c);
            KEEP(row);
            for (int j = 0; j < 4; j++)
                acc[i][j] += row * key[j];
        }
    }
    for (int i = 0; i < mr; i++)
        FN(sum_four)(acc[i], s + i * ATTN_THIN_KEYS);
}

/* s [rows, n] = q [rows, d] . k [n, d]^T; rows of s are written up to a multiple of 4. */
static void FN(thin_scores)(const REAL *q, attn_mat k, int64_t d, int rows, int64_t n, REAL *s)
{
    for (int64_t j = 0; j < n; j += 4) {
        const REAL *key = (const REAL *)k.data + j * k.rs;
        REAL *to = s + j;
        int x = 0;
        for (; x + THIN_MR <= rows; x += THIN_MR)
            FN(dots)(q + x * d, key, k.rs, n - j, d, to + x * ATTN_THIN_KEYS, THIN_MR);
        for (; x < rows; x++)
            FN(dots)(q + x * d, key, k.rs, n - j, d, to + x * ATTN_THIN_KEYS, 1);
    }
}

/* o[i, c] += sum of weights[i, j] v[j, c] over n keys, for mr rows and nv vectors, both constants. */
static inline __attribute__((always_inline)) void FN(mix)(const REAL *weights, const REAL *v, int64_t v_rs,
                                                          int64_t n, REAL *o, int64_t o_rs, int mr, int nv)
{
    FN(vec) acc[THIN_MR][THIN_NV];
    for (int i = 0; i < mr; i++)
        for (int c = 0; c < nv; c++)
            acc[i][c] = *(const FN(uvec) *)(o + i * o_rs + c * FN(VEC));
    for (int64_t j = 0; j < n; j++) {
        FN(vec) row[THIN_NV];
        for (int c = 0; c < nv; c++) {
            row[c] = *(const FN(uvec) *)(v + j * v_rs + c * FN(VEC));
            KEEP(row[c]);
        }
        for (int i = 0; i < mr; i++) {
            FN(vec) weight = weights[i * ATTN_THIN_KEYS + j] - (FN(vec)){0}; /* to all lanes */
            for (int c = 0; c < nv; c++)
                acc[i][c] += weight * row[c];
        }
    }
    for (int i = 0; i < mr; i++)
        for (int c = 0; c < nv; c++)
            *(FN(uvec) *)(o + i * o_rs + c * FN(VEC)) = acc[i][c];
}

/* The same for any number of rows. */
static inline __attribute__((always_inline)) void FN(mix_rows)(const REAL *weights, const REAL *v,
                                                               int64_t v_rs, int64_t n, REAL *o, int64_t o_rs,
                                                               int rows, int nv)
{
    int x = 0;
    for (; x + THIN_MR <= rows; x += THIN_MR)
        FN(mix)(weights + x * ATTN_THIN_KEYS, v, v_rs, n, o + x * o_rs, o_rs, THIN_MR, nv);
    for (; x < rows; x++)
        FN(mix)(weights + x * ATTN_THIN_KEYS, v, v_rs, n, o + x * o_rs, o_rs, 1, nv);
}

/* o [rows, width] += weights [rows, n] . v [n, width], a width of whole vectors. */
static void FN(thin_mix)(const REAL *weights, attn_mat v, int64_t n, REAL *o, int64_t width, int rows)
{
    const REAL *from = v.data;
    int64_t c = 0;
    for (; c + THIN_NV * FN(VEC) <= width; c += THIN_NV * FN(VEC))
        FN(mix_rows)(weights, from + c, v.rs, n, o + c, width, rows, THIN_NV);
    for (; c < width; c += FN(VEC))
        FN(mix_rows)(weights, from + c, v.rs, n, o + c, width, rows, 1);
}

/* Row x of the scores, n keys from k0 on: finished, and taken into the running softmax. */
static void FN(thin_row)(const attn_plan *p, const attn_rows *r, int x, int64_t k0, int64_t n, FN(work) * w)
{
    REAL *s = w->s + x * ATTN_THIN_KEYS;
    FN(apply_cap)(s, NULL, n, (REAL)p->scale, (REAL)p->softcap);
    if (r->of->mask) {
        FN(mask_row)(p, r, x, k0, n, w->mask);
        FN(apply_mask)(s, w->mask, n, p->mask_dtype == WK_U8);
    }
    for (int64_t j = 0; j < n && k0 + j < r->see[x].lo; j++)
        s[j] = -INFINITY;
    for (int64_t j = gemm_max(r->see[x].hi - k0, 0); j < n; j++)
        s[j] = -INFINITY;
    REAL was = w->top[x], largest = FN(line_max)(s, n);
    REAL now = largest > was || largest != largest ? largest : was;
    REAL fix = now != was ? R_EXP(was - now) : 1;
    w->top[x] = now;
    w->sum[x] = w->sum[x] * fix + FN(line_exp)(s, s, n, now == -INFINITY ? 0 : now);
    for (int64_t i = 0; fix != 1 && i < w->o_rs; i++)
        w->o[x * w->o_rs + i] *= fix;
}

/* w->o, top and sum of the block's rows over keys [from, to). */
static void FN(attend_thin)(const attn_plan *p, const attn_rows *r, int64_t from, int64_t to, FN(work) * w)
{
    const attn_sequence *q = r->of;
    int64_t bytes = (int64_t)wk_bytes(p->dtype), d = gemm_round_up(p->d, FN(VEC));
    const char *k = q->k + r->key_head * p->k.h * bytes, *v = q->v + r->key_head * p->v.h * bytes;
    FN(load_rows)(r, p->dtype, q->q, p->q, p->d, d, w->q, NULL);
    memset(w->o, 0, (size_t)(r->rows * w->o_rs) * sizeof(REAL));
    for (int64_t k0 = from; k0 < to; k0 += ATTN_THIN_KEYS) {
        int64_t n = gemm_min(to - k0, ATTN_THIN_KEYS);
        attn_mat km = WK_ISA(attn_rows_of)(p->dtype, k, p->k, k0, n, p->d, d, w->k);
        FN(thin_scores)(w->q, km, d, r->rows, n, w->s);
        for (int x = 0; x < r->rows; x++)
            FN(thin_row)(p, r, x, k0, n, w);
        attn_mat vm = WK_ISA(attn_rows_of)(p->dtype, v, p->v, k0, n, p->dv, w->o_rs, w->v);
        FN(thin_mix)(w->s, vm, n, w->o, w->o_rs, r->rows);
    }
}
