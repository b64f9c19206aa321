/* attention_pairs.inc.h: attention of one block of queries in bf16, where the processor multiplies pairs of bf16 or whole
 * tiles of them: scores, whose products are exact, and with tiles the products with v too. */

/* The kernel for the block; one of plain floats where there is none of pairs, or the block is too small. */
static const gemm_kernel *pairs_kernel(const attn_plan *p, int64_t rows)
{
    return WK_ISA(gemm_pick_kernel)(&(wk_gemm_args){
        .m = gemm_min(p->d, p->dv), .n = rows, .k = p->d, .a = {.dtype = p->dtype}, .c = {.dtype = WK_F32}});
}

/* Pairs along k of n values, with zeros up to what the kernel reads at once. */
static int64_t pairs_padded(const gemm_kernel *kernel, int64_t n)
{
    return gemm_round_up(gemm_blocks(n, 2), kernel->step);
}

/* dst[p * width + x]: the pair of rows 2p and 2p + 1, column x, of n rows and xn columns. */
static void pack_pairs(const gemm_kernel *kernel, uint32_t *dst, int64_t width, const void *src, int64_t sx,
                       int64_t sp, int64_t xn, int64_t n)
{
    int64_t pairs = gemm_blocks(n, 2);
    WK_ISA(gemm_pick_packer)(WK_BF16, 2)(dst, width, src, sx, sp, xn, n);
    memset(dst + pairs * width, 0, (size_t)((pairs_padded(kernel, n) - pairs) * width) * sizeof *dst);
}

/* The block's queries as pairs along d: [pairs, ATTN_ROWS]. */
static void load_queries(const gemm_kernel *kernel, const attn_plan *p, const attn_rows *r, work_f32 *w)
{
    uint16_t *rows = (uint16_t *)w->q;
    for (int x = 0; x < r->rows; x++) {
        int64_t at = attn_head(r, x) * p->q.h + attn_query(r, x) * p->q.s;
        const uint16_t *from = (const uint16_t *)r->of->q + at;
        if (p->q.d == 1)
            memcpy(rows + x * p->d, from, (size_t)p->d * sizeof *rows);
        else
            for (int64_t i = 0; i < p->d; i++)
                rows[x * p->d + i] = from[i * p->q.d];
    }
    pack_pairs(kernel, (uint32_t *)w->q_turned, ATTN_ROWS, rows, p->d, 1, r->rows, p->d);
}

/* n rows of k as the left operand of k q^T. */
static attn_mat keys_of(const gemm_kernel *kernel, const attn_plan *p, const uint16_t *k, int64_t n,
                        uint32_t *buf)
{
    if (kernel->pack_a) {
        int64_t depth = pairs_padded(kernel, p->d);
        for (int64_t i = 0; i < n; i += kernel->rows)
            kernel->pack_a(buf + i * depth, kernel->rows, k + i * p->k.s, p->k.s, p->k.d,
                           gemm_min(kernel->rows, n - i), p->d);
        return (attn_mat){buf, depth, 1};
    }
    if (p->k.d == 1 && p->d % 2 == 0 && p->k.s % 2 == 0 && (uintptr_t)k % sizeof *buf == 0)
        return (attn_mat){k, p->k.s / 2, 1};
    pack_pairs(kernel, buf, ATTN_KEYS, k, p->k.s, p->k.d, n, p->d);
    return (attn_mat){buf, 1, ATTN_KEYS};
}

/* ---- v^T weights by tiles ---- */

/* v^T of n rows as the left operand. */
static attn_mat values_of(const gemm_kernel *kernel, const attn_plan *p, const uint16_t *v, int64_t n,
                          uint32_t *buf)
{
    int64_t width = gemm_round_up(p->dv, kernel->rows), depth = pairs_padded(kernel, n);
    pack_pairs(kernel, buf, width, v, p->v.d, p->v.s, p->dv, n);
    uint32_t *panels = buf + depth * width, *out = panels;
    gemm_packer turn = WK_ISA(gemm_pick_packer)(WK_F32, 1); /* of any 32 bits */
    for (int64_t i = 0; i < width; i += kernel->rows)
        for (int64_t q = 0; q < depth; q += kernel->step, out += kernel->step * kernel->rows)
            turn(out, kernel->step, buf + q * width + i, width, 1, kernel->step, kernel->rows);
    return (attn_mat){panels, depth, 1};
}

/* Weights [n, ATTN_ROWS] as sums of two numbers of bf16, cut off and not rounded: pairs along n of the larger ones, and
 * of the smaller ones. */
static void split_weights(const gemm_kernel *kernel, const float *s, int64_t n, uint32_t *restrict large,
                          uint32_t *restrict small)
{
    const uint32_t upper = 0xffff0000u;
    static const float none[ATTN_ROWS];
    int64_t padded = pairs_padded(kernel, n);
    for (int64_t q = 0; q < padded; q++, large += ATTN_ROWS, small += ATTN_ROWS) {
        const float *even = 2 * q < n ? s + 2 * q * ATTN_ROWS : none;
        const float *odd = 2 * q + 1 < n ? s + (2 * q + 1) * ATTN_ROWS : none;
        for (int x = 0; x < ATTN_ROWS; x++) {
            uint32_t e = wk_float_bits(even[x]), o = wk_float_bits(odd[x]);
            large[x] = e >> 16 | (o & upper);
            e = wk_float_bits(even[x] - wk_bits_float(e & upper));
            o = wk_float_bits(odd[x] - wk_bits_float(o & upper));
            small[x] = e >> 16 | (o & upper);
        }
    }
}

/* o^T += v^T weights, these in two parts, so that nothing is lost beside f32. */
static void add_values(const gemm_kernel *kernel, const attn_plan *p, const uint16_t *v, int64_t n,
                       int64_t cols, work_f32 *w)
{
    uint32_t *large = (uint32_t *)w->mask_turned, *small = (uint32_t *)w->mask;
    attn_mat vm = values_of(kernel, p, v, n, (uint32_t *)w->v);
    split_weights(kernel, w->s, n, large, small);
    WK_ISA(attn_product)
    (kernel, p->dv, cols, gemm_blocks(n, 2), vm, large, ATTN_ROWS, w->o_turned, ATTN_ROWS, true);
    WK_ISA(attn_product)
    (kernel, p->dv, cols, gemm_blocks(n, 2), vm, small, ATTN_ROWS, w->o_turned, ATTN_ROWS, true);
}

static bool attend_pairs(const attn_plan *p, const attn_rows *r, int64_t from, int64_t to, void *work)
{
    work_f32 *w = work;
    const attn_sequence *q = r->of;
    const gemm_kernel *kernel = p->dtype == WK_BF16 ? pairs_kernel(p, r->rows) : NULL;
    if (!kernel || kernel->pair != 2)
        return false;
    int64_t cols = gemm_round_up(r->rows, ATTN_LANES), depth = gemm_blocks(p->d, 2);
    const uint16_t *k = (const uint16_t *)q->k + r->key_head * p->k.h,
                   *v = (const uint16_t *)q->v + r->key_head * p->v.h;
    if (kernel->begin)
        kernel->begin();
    load_queries(kernel, p, r, w);
    memset(w->o_turned, 0, (size_t)(p->dv * ATTN_ROWS) * sizeof(float));
    for (int64_t k0 = from; k0 < to; k0 += ATTN_KEYS) {
        int64_t n = gemm_min(to - k0, ATTN_KEYS);
        attn_mat km = keys_of(kernel, p, k + k0 * p->k.s, n, (uint32_t *)w->k);
        WK_ISA(attn_product)(kernel, n, cols, depth, km, w->q_turned, ATTN_ROWS, w->s, ATTN_ROWS, false);
        weigh_f32(p, r, k0, n, cols, w);
        if (kernel->pack_a)
            add_values(kernel, p, v + k0 * p->v.s, n, cols, w);
        else
            add_values_f32(p, (const char *)v, k0, n, cols, w);
    }
    WK_ISA(wk_block_transpose)
    (sizeof(float), w->o_turned, ATTN_ROWS, w->o, w->o_rs, p->dv, r->rows, false);
    if (kernel->end)
        kernel->end();
    return true;
}
