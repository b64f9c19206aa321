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

/* n rows of k as the left operand of k q^T: where they lie, if they can be read there as a whole. */
static attn_mat keys_of(const gemm_kernel *kernel, const attn_plan *p, const uint16_t *k, int64_t n,
                        uint32_t *buf)
{
    bool tiles = kernel->pack_a != NULL, whole = tiles ? p->d % 32 == 0 && n % 16 == 0 : p->d % 2 == 0;
    if (p->k.d == 1 && whole && p->k.s % 2 == 0 && (uintptr_t)k % sizeof *buf == 0)
        return (attn_mat){k, p->k.s / 2, 1};
    if (!tiles) {
        pack_pairs(kernel, buf, ATTN_KEYS, k, p->k.s, p->k.d, n, p->d);
        return (attn_mat){buf, 1, ATTN_KEYS};
    }
    int64_t depth = pairs_padded(kernel, p->d);
    memset(buf, 0, (size_t)(ATTN_KEYS * depth) * sizeof *buf);
    for (int64_t i = 0; i < n; i++)
        WK_ISA(wk_block_gather)(sizeof *k, k + i * p->k.s, p->k.d, buf + i * depth, p->d);
    return (attn_mat){buf, depth, 1};
}

/* ---- v^T weights by tiles ----
 * v^T is the left operand: [dv, ATTN_KEYS] for each block of keys, made once for all queries; filled up with zeros. */

static int64_t value_elements(const attn_plan *p) { return gemm_round_up(p->dv, 32) * ATTN_KEYS; }

static bool has_values(const attn_plan *p, const attn_sequence *q)
{
    return p->dtype == WK_BF16 && pairs_kernel(p, ATTN_ROWS)->pack_a && !attn_is_thin(p, q);
}

static size_t values_bytes(const attn_plan *p)
{
    int64_t blocks = 0;
    for (int64_t i = 0; i < p->n; i++)
        if (has_values(p, &p->sequences[i]))
            blocks += p->hk * gemm_blocks(p->sequences[i].t, ATTN_KEYS);
    return (size_t)(blocks * value_elements(p)) * sizeof(uint16_t);
}

typedef struct {
    const attn_plan *p;
    const attn_sequence *of;
    uint16_t *values;
} turning;

static void turn_task(void *ctx, int64_t i)
{
    const turning *s = ctx;
    const attn_strides *v = &s->p->v;
    int64_t blocks = gemm_blocks(s->of->t, ATTN_KEYS), k0 = i % blocks * ATTN_KEYS, dv = s->p->dv;
    int64_t n = gemm_min(s->of->t - k0, ATTN_KEYS), elements = value_elements(s->p);
    const uint16_t *src = (const uint16_t *)s->of->v + i / blocks * v->h + k0 * v->s;
    uint16_t *dst = s->values + i * elements;
    if (n < ATTN_KEYS || dv * ATTN_KEYS < elements)
        memset(dst, 0, (size_t)elements * sizeof *dst);
    if (v->d == 1)
        WK_ISA(wk_block_transpose)(sizeof *dst, src, v->s, dst, ATTN_KEYS, n, dv, false);
    for (int64_t c = 0; v->d != 1 && c < dv; c++)
        WK_ISA(wk_block_gather)(sizeof *dst, src + c * v->d, v->s, dst + c * ATTN_KEYS, n);
}

static void turn_values(attn_plan *p)
{
    uint16_t *values = (uint16_t *)p->value_memory;
    for (int64_t i = 0; i < p->n; i++) {
        attn_sequence *q = &p->sequences[i];
        int64_t blocks = p->hk * gemm_blocks(q->t, ATTN_KEYS);
        if (!has_values(p, q))
            continue;
        wk_parallel_for(blocks, turn_task, &(turning){p, q, values});
        q->values = values;
        values += blocks * value_elements(p);
    }
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

/* Scores' products of n keys from k0 on. */
static void multiply_keys(const gemm_kernel *kernel, const attn_plan *p, const attn_rows *r, int64_t k0,
                          int64_t n, int64_t cols, work_f32 *w)
{
    const uint16_t *k = (const uint16_t *)r->of->k + r->key_head * p->k.h + k0 * p->k.s;
    attn_mat km = keys_of(kernel, p, k, n, (uint32_t *)w->k);
    WK_ISA(attn_product)
    (kernel, n, cols, gemm_blocks(p->d, 2), km, w->q_turned, NULL, ATTN_ROWS, w->s, ATTN_ROWS, false);
}

/* The blocks of keys by tiles. A register takes long to see what was stored just before: the next block's products are
 * made between the weights of one and their products with v. */
static void attend_tiles(const gemm_kernel *kernel, const attn_plan *p, const attn_rows *r, int64_t from,
                         int64_t to, int64_t cols, work_f32 *w)
{
    uint32_t *large = (uint32_t *)w->mask_turned, *small = (uint32_t *)w->mask;
    const uint16_t *values =
        r->of->values + r->key_head * gemm_blocks(r->of->t, ATTN_KEYS) * value_elements(p);
    float *other = w->v;
    kernel->begin();
    if (p->softcap > 0)
        memcpy(other, w->s, ATTN_ROWS * ATTN_KEYS * sizeof *other);
    /* By the blocks of v^T: what is before the first key is beyond every row's limits. */
    for (int64_t k0 = from / ATTN_KEYS * ATTN_KEYS, n; k0 < to; k0 += n) {
        n = gemm_min(to - k0, ATTN_KEYS);
        if (k0 <= from)
            multiply_keys(kernel, p, r, k0, n, cols, w);
        weigh_f32(p, r, k0, n, cols, w);
        split_weights(kernel, w->s, n, large, small);
        float *s = w->s;
        w->s = other;
        other = s;
        if (k0 + n < to)
            multiply_keys(kernel, p, r, k0 + n, gemm_min(to - k0 - n, ATTN_KEYS), cols, w);
        attn_mat vm = {values + k0 / ATTN_KEYS * value_elements(p), ATTN_KEYS / 2, 1};
        /* Weights in two parts: nothing is lost beside f32. */
        WK_ISA(attn_product)
        (kernel, p->dv, cols, gemm_blocks(n, 2), vm, large, small, ATTN_ROWS, w->o_turned, ATTN_ROWS, true);
    }
    kernel->end();
}

static bool attend_pairs(const attn_plan *p, const attn_rows *r, int64_t from, int64_t to, void *work)
{
    work_f32 *w = work;
    const gemm_kernel *kernel = p->dtype == WK_BF16 ? pairs_kernel(p, r->rows) : NULL;
    if (!kernel || kernel->pair != 2)
        return false;
    int64_t cols = gemm_round_up(r->rows, ATTN_LANES);
    const char *v = r->of->v + r->key_head * p->v.h * (int64_t)sizeof(uint16_t);
    load_queries(kernel, p, r, w);
    memset(w->o_turned, 0, (size_t)(p->dv * ATTN_ROWS) * sizeof(float));
    if (kernel->pack_a)
        attend_tiles(kernel, p, r, from, to, cols, w);
    for (int64_t k0 = from; !kernel->pack_a && k0 < to; k0 += ATTN_KEYS) {
        int64_t n = gemm_min(to - k0, ATTN_KEYS);
        multiply_keys(kernel, p, r, k0, n, cols, w);
        weigh_f32(p, r, k0, n, cols, w);
        add_values_f32(p, v, k0, n, cols, w);
    }
    WK_ISA(wk_block_transpose)
    (sizeof(float), w->o_turned, ATTN_ROWS, w->o, w->o_rs, p->dv, r->rows, false);
    return true;
}
