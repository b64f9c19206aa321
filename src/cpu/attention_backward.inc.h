/* attention_backward.inc.h: the gradients of attention, for REAL. */

typedef struct {
    REAL *q, *q_turned, *dy, *dy_turned; /* the block's rows and their transposes */
    REAL *weights, *ds, *slope; /* [keys, rows]: softmax, gradient of the products, the cap's slope */
    REAL *dq, *dq_turned, *dk, *dv;
    REAL *mask, *mask_turned, *lse, *delta;
    int64_t d, dv_width; /* padded to whole vectors */
} FN(grad_work);

static size_t FN(grad_work_init)(FN(grad_work) * w, const attn_plan *p, char *base)
{
    int64_t lanes = WK_VEC_BYTES / (int64_t)sizeof(REAL), block = ATTN_ROWS * ATTN_KEYS;
    int64_t d = gemm_round_up(p->d, lanes), dv = gemm_round_up(p->dv, lanes);
    size_t at = 0, one = sizeof(REAL);
    w->d = d;
    w->dv_width = dv;
    w->q = attn_take(base, &at, ATTN_ROWS * d, one);
    w->q_turned = attn_take(base, &at, ATTN_ROWS * d, one);
    w->dy = attn_take(base, &at, ATTN_ROWS * dv, one);
    w->dy_turned = attn_take(base, &at, ATTN_ROWS * dv, one);
    w->weights = attn_take(base, &at, block, one);
    w->ds = attn_take(base, &at, block, one);
    w->slope = attn_take(base, &at, block, one);
    w->dq = attn_take(base, &at, ATTN_ROWS * d, one);
    w->dq_turned = attn_take(base, &at, ATTN_ROWS * d, one);
    w->dk = attn_take(base, &at, ATTN_KEYS * d, one);
    w->dv = attn_take(base, &at, ATTN_KEYS * dv, one);
    w->mask = attn_take(base, &at, block, one);
    w->mask_turned = attn_take(base, &at, block, one);
    w->lse = attn_take(base, &at, ATTN_ROWS, one);
    w->delta = attn_take(base, &at, ATTN_ROWS, one);
    return at;
}

/* Brings the block's rows of q, dy, lse and delta in. */
static void FN(grad_load)(const attn_grad_plan *g, const attn_rows *r, FN(grad_work) * w)
{
    const attn_plan *p = &g->p;
    const attn_sequence *q = r->of;
    FN(load_rows)(r, p->dtype, q->q, p->q, p->d, w->d, w->q, w->q_turned);
    FN(load_rows)(r, p->dtype, q->y, p->y, p->dv, w->dv_width, w->dy, w->dy_turned);
    memset(w->lse, 0, ATTN_ROWS * sizeof(REAL));
    memset(w->delta, 0, ATTN_ROWS * sizeof(REAL));
    for (int x = 0; x < r->rows; x++) {
        int64_t row = attn_head(r, x) * q->s + attn_query(r, x);
        REAL lse = ((const REAL *)q->lse)[row];
        w->lse[x] = lse == -INFINITY ? INFINITY : lse; /* a row without keys: all weights 0 */
        w->delta[x] = ((const REAL *)g->delta)[q->index * p->hq * q->s + row];
    }
}

/* Weights and ds of the block's rows for keys [k0, k0 + n): exp(score - lse), and weight (dy . v - delta) times the
 * slope of the cap. km and vm are those keys and values. */
static void FN(grad_scores)(const attn_plan *p, const attn_rows *r, int64_t k0, int64_t n, attn_mat km,
                            attn_mat vm, FN(grad_work) * w)
{
    const gemm_kernel *kernel = WK_ISA(gemm_pick_kernel)(&(wk_gemm_args){.c = {.dtype = WK_REAL_DTYPE}});
    bool capped = p->softcap > 0;
    WK_ISA(attn_product)
    (kernel, n, ATTN_ROWS, p->d, km, w->q_turned, NULL, ATTN_ROWS, w->weights, ATTN_ROWS, false);
    WK_ISA(attn_product)
    (kernel, n, ATTN_ROWS, p->dv, vm, w->dy_turned, NULL, ATTN_ROWS, w->ds, ATTN_ROWS, false);
    FN(finish_scores)(p, r, k0, n, w->weights, capped ? w->slope : NULL, w->mask, w->mask_turned);
    for (int64_t j = 0; j < n; j++) {
        REAL *restrict weight = w->weights + j * ATTN_ROWS, *restrict ds = w->ds + j * ATTN_ROWS;
        const REAL *restrict lse = w->lse, *restrict delta = w->delta;
        for (int x = 0; x < ATTN_ROWS; x++) {
            weight[x] = R_EXP_TERM(weight[x] - lse[x]);
            ds[x] = weight[x] * (ds[x] - delta[x]);
        }
    }
    for (int64_t i = 0; capped && i < n * ATTN_ROWS; i++)
        w->ds[i] *= w->slope[i];
}

/* n rows of width values, scaled, to rows from `row` on of packed t. */
static void FN(grad_store)(const wk_tensor *t, int64_t row, int64_t n, int64_t width, REAL *from,
                           int64_t pitch, REAL scale)
{
    for (int64_t i = 0; i < n; i++) {
        for (int64_t c = 0; c < width; c++)
            from[i * pitch + c] *= scale;
        WK_ISA(wk_block_store)
        (t->dtype, REAL_COMPUTE, from + i * pitch,
         (char *)wk_ptr(t) + (row + i) * width * (int64_t)wk_bytes(t->dtype), width, false);
    }
}

/* dq of one block of rows: sum over keys of ds k. */
static void FN(grad_q)(const attn_grad_plan *g, const attn_rows *r, char *memory)
{
    const attn_plan *p = &g->p;
    const attn_sequence *q = r->of;
    const gemm_kernel *kernel = WK_ISA(gemm_pick_kernel)(&(wk_gemm_args){.c = {.dtype = WK_REAL_DTYPE}});
    FN(grad_work) w;
    FN(grad_work_init)(&w, p, memory);
    FN(grad_load)(g, r, &w);
    memset(w.dq_turned, 0, (size_t)(p->d * ATTN_ROWS) * sizeof(REAL));
    for (int64_t k0 = r->keys.lo; k0 < r->keys.hi; k0 += ATTN_KEYS) {
        int64_t n = gemm_min(r->keys.hi - k0, ATTN_KEYS);
        attn_mat km = {(const REAL *)q->k + r->key_head * p->k.h + k0 * p->k.s, p->k.s, 1};
        attn_mat vm = {(const REAL *)q->v + r->key_head * p->v.h + k0 * p->v.s, p->v.s, 1};
        FN(grad_scores)(p, r, k0, n, km, vm, &w);
        attn_mat k_turned = {km.data, 1, km.rs};
        WK_ISA(attn_product)
        (kernel, p->d, ATTN_ROWS, n, k_turned, w.ds, NULL, ATTN_ROWS, w.dq_turned, ATTN_ROWS, true);
    }
    WK_ISA(wk_block_transpose)
    (sizeof(REAL), w.dq_turned, ATTN_ROWS, w.dq, w.d, p->d, r->rows, false);
    for (int x = 0; x < r->rows; x++) {
        int64_t row = (q->index * p->hq + attn_head(r, x)) * q->s + attn_query(r, x);
        FN(grad_store)(g->dq, row, 1, p->d, w.dq + x * w.d, w.d, (REAL)p->scale);
    }
}

/* dk and dv of one block of keys: sums over all rows of the heads that use them, in order. */
static void FN(grad_kv)(const attn_grad_plan *g, const attn_sequence *q, int64_t key_head, int64_t k0,
                        char *memory)
{
    const attn_plan *p = &g->p;
    const gemm_kernel *kernel = WK_ISA(gemm_pick_kernel)(&(wk_gemm_args){.c = {.dtype = WK_REAL_DTYPE}});
    int64_t n = gemm_min(q->t - k0, ATTN_KEYS), per_head = q->blocks * (q->whole_groups ? 1 : p->hq / p->hk);
    FN(grad_work) w;
    FN(grad_work_init)(&w, p, memory);
    memset(w.dk, 0, (size_t)(n * w.d) * sizeof(REAL));
    memset(w.dv, 0, (size_t)(n * w.dv_width) * sizeof(REAL));
    attn_mat km = {(const REAL *)q->k + key_head * p->k.h + k0 * p->k.s, p->k.s, 1};
    attn_mat vm = {(const REAL *)q->v + key_head * p->v.h + k0 * p->v.s, p->v.s, 1};
    for (int64_t i = key_head * per_head; i < (key_head + 1) * per_head; i++) {
        attn_rows r = WK_ISA(attn_block)(p, q, i);
        if (r.keys.hi <= k0 || r.keys.lo >= k0 + n)
            continue;
        FN(grad_load)(g, &r, &w);
        FN(grad_scores)(p, &r, k0, n, km, vm, &w);
        attn_mat ds = {w.ds, ATTN_ROWS, 1}, weights = {w.weights, ATTN_ROWS, 1};
        WK_ISA(attn_product)(kernel, n, p->d, r.rows, ds, w.q, NULL, w.d, w.dk, w.d, true);
        WK_ISA(attn_product)
        (kernel, n, p->dv, r.rows, weights, w.dy, NULL, w.dv_width, w.dv, w.dv_width, true);
    }
    int64_t row = (q->index * p->hk + key_head) * q->t + k0;
    if (g->dk)
        FN(grad_store)(g->dk, row, n, p->d, w.dk, w.d, (REAL)p->scale);
    if (g->dv)
        FN(grad_store)(g->dv, row, n, p->dv, w.dv, w.dv_width, 1);
}
