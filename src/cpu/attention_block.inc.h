/* attention_block.inc.h: what is done to a block of scores, for REAL. Include after real_f32.h or real_f64.h. */

/* n masks of one row from key k0 on, packed. */
static void FN(mask_row)(const attn_plan *p, const attn_rows *r, int x, int64_t k0, int64_t n, REAL *to)
{
    int64_t at = attn_head(r, x) * p->mask.h + attn_query(r, x) * p->mask.s + k0 * p->mask.d;
    WK_ISA(wk_block_load_as)
    (REAL_COMPUTE, p->mask_dtype, r->of->mask + at * (int64_t)wk_bytes(p->mask_dtype), p->mask.d, to, n);
}

/* s with mask m, n of them. */
static void FN(apply_mask)(REAL *restrict s, const REAL *restrict m, int64_t n, bool keeps)
{
    if (keeps)
        for (int64_t i = 0; i < n; i++)
            s[i] = m[i] != 0 ? s[i] : -INFINITY;
    else
        for (int64_t i = 0; i < n; i++)
            s[i] += m[i];
}

/* Scaled and capped; slope, unless NULL, gets the cap's derivative. */
static void FN(apply_cap)(REAL *restrict s, REAL *restrict slope, int64_t n, REAL scale, REAL cap)
{
    if (cap > 0)
        for (int64_t i = 0; i < n; i++)
            s[i] = R_TANH(s[i] * scale / cap);
    for (int64_t i = 0; slope && cap > 0 && i < n; i++)
        slope[i] = 1 - s[i] * s[i];
    REAL factor = cap > 0 ? cap : scale;
    for (int64_t i = 0; i < n; i++)
        s[i] *= factor;
}

/* Whether some row of the block does not see all keys [k0, k0 + n). */
static inline bool FN(needs_limits)(const attn_rows *r, int64_t k0, int64_t n)
{
    bool needs = false;
    for (int x = 0; x < r->rows; x++)
        needs |= r->see[x].lo > k0 || r->see[x].hi < k0 + n;
    return needs;
}

/* -infinity where row x of transposed scores [n, rows] does not see key k0 + j. */
static void FN(apply_limits)(const attn_rows *r, int64_t k0, int64_t n, REAL *s)
{
    int32_t lo[ATTN_ROWS] = {0}, hi[ATTN_ROWS] = {0};
    for (int x = 0; x < r->rows; x++) {
        int64_t from = r->see[x].lo - k0, to = r->see[x].hi - k0;
        lo[x] = (int32_t)(from < 0 ? 0 : from > n ? n : from);
        hi[x] = (int32_t)(to < 0 ? 0 : to > n ? n : to);
    }
    for (int32_t j = 0; j < n; j++, s += ATTN_ROWS)
        for (int x = 0; x < ATTN_ROWS; x++) {
            REAL seen = s[x], none = -INFINITY;
            s[x] = j < lo[x] ? none : j >= hi[x] ? none : seen;
        }
}

/* Transposed products q . k become scores: scaled, capped, masked, limited. rows and turned are scratch for
 * ATTN_ROWS x n masks each. */
static void FN(finish_scores)(const attn_plan *p, const attn_rows *r, int64_t k0, int64_t n, REAL *s,
                              REAL *slope, REAL *rows, REAL *turned)
{
    FN(apply_cap)(s, slope, n * ATTN_ROWS, (REAL)p->scale, (REAL)p->softcap);
    if (r->of->mask) {
        for (int x = 0; x < r->rows; x++)
            FN(mask_row)(p, r, x, k0, n, rows + x * n);
        WK_ISA(wk_block_transpose)(sizeof(REAL), rows, n, turned, ATTN_ROWS, r->rows, n, false);
        for (int64_t j = 0; j < n; j++)
            FN(apply_mask)(s + j * ATTN_ROWS, turned + j * ATTN_ROWS, r->rows, p->mask_dtype == WK_U8);
    }
    if (FN(needs_limits)(r, k0, n))
        FN(apply_limits)(r, k0, n, s);
}

/* Rows of `width` elements that begin at the block's queries in base, transposed to [width, ATTN_ROWS]; zeros
 * beyond the last row. packed gets them as they are, [rows, pitch], zeros from width to pitch. */
static void FN(load_rows)(const attn_rows *r, wk_dtype dtype, const char *base, attn_strides strides,
                          int64_t width, int64_t pitch, REAL *packed, REAL *turned)
{
    for (int x = 0; x < r->rows; x++) {
        int64_t at = attn_head(r, x) * strides.h + attn_query(r, x) * strides.s;
        REAL *row = packed + x * pitch;
        WK_ISA(wk_block_load)(dtype, base + at * (int64_t)wk_bytes(dtype), strides.d, row, width);
        memset(row + width, 0, (size_t)(pitch - width) * sizeof(REAL));
    }
    if (!turned)
        return;
    WK_ISA(wk_block_transpose)(sizeof(REAL), packed, pitch, turned, ATTN_ROWS, r->rows, width, false);
    for (int64_t i = 0; r->rows < ATTN_ROWS && i < width; i++)
        memset(turned + i * ATTN_ROWS + r->rows, 0, (size_t)(ATTN_ROWS - r->rows) * sizeof(REAL));
}
