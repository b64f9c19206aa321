/* attention_forward.inc.h: attention of one block of queries, for REAL. */

typedef struct {
    REAL *o; /* the result before the division by the sum: [rows, o_rs] */
    int64_t o_rs;
    REAL *top, *sum, *fix; /* of each row: the largest score, the sum of exp(score - top), and what older
                              sums are multiplied with after a block */
    REAL *q, *q_turned, *s, *o_turned, *k, *v, *mask, *mask_turned;
} FN(work);

/* Memory for one task; returns the bytes. */
static size_t FN(work_init)(FN(work) * w, const attn_plan *p, char *base)
{
    int64_t lanes = WK_VEC_BYTES / (int64_t)sizeof(REAL);
    int64_t d = gemm_round_up(p->d, lanes), dv = gemm_round_up(p->dv, lanes);
    size_t at = 0, one = sizeof(REAL);
    w->o_rs = dv;
    w->o = attn_take(base, &at, ATTN_ROWS * dv, one);
    w->top = attn_take(base, &at, ATTN_ROWS, one);
    w->sum = attn_take(base, &at, ATTN_ROWS, one);
    w->fix = attn_take(base, &at, ATTN_ROWS, one);
    w->q = attn_take(base, &at, ATTN_ROWS * d, one);
    w->q_turned = attn_take(base, &at, ATTN_ROWS * d, one);
    w->s = attn_take(base, &at, ATTN_ROWS * ATTN_KEYS, one);
    if (base && p->softcap > 0) /* a cap is taken of columns that no product fills */
        memset(w->s, 0, ATTN_ROWS * ATTN_KEYS * sizeof *w->s);
    w->o_turned = attn_take(base, &at, ATTN_ROWS * dv, one);
    w->k = attn_take(base, &at, ATTN_THIN_KEYS * d, one);
    w->v = attn_take(base, &at, ATTN_THIN_KEYS * dv, one);
    w->mask = attn_take(base, &at, ATTN_ROWS * ATTN_KEYS, one);
    w->mask_turned = attn_take(base, &at, ATTN_ROWS * ATTN_KEYS, one);
    return at;
}

/* The running softmax over one more block: scores s [n, rows] become exp(scale s - top). Returns whether some
 * row's top has grown, and with it fix is not 1. A row without a key so far has top -infinity and sum 0. */
static bool FN(softmax_block)(FN(work) * w, int64_t n, int64_t cols, REAL scale)
{
    int grown = 0;
    REAL tops[ATTN_ROWS];
    for (int x = 0; x < ATTN_ROWS; x++)
        tops[x] = -INFINITY;
    for (int64_t j = 0; j < n; j++)
        for (int64_t x = 0; x < cols; x++)
            tops[x] = w->s[j * ATTN_ROWS + x] > tops[x] ? w->s[j * ATTN_ROWS + x] : tops[x];
    for (int64_t x = 0; x < cols; x += ATTN_LANES) {
        REAL top[ATTN_LANES], sum[ATTN_LANES], fix[ATTN_LANES], *s = w->s + x;
        for (int l = 0; l < ATTN_LANES; l++) {
            REAL was = w->top[x + l], now = tops[x + l] * scale > was ? tops[x + l] * scale : was;
            w->top[x + l] = now;
            fix[l] = now != was ? was - now : 0;
            top[l] = now == -INFINITY ? 0 : now;
            sum[l] = 0;
        }
        for (int l = 0; l < ATTN_LANES; l++) {
            grown |= fix[l] != 0;
            w->fix[x + l] = R_EXP_TERM(fix[l]);
        }
        for (int64_t j = 0; j < n; j++)
            for (int l = 0; l < ATTN_LANES; l++) {
                REAL e = R_EXP_TERM(s[j * ATTN_ROWS + l] * scale - top[l]);
                s[j * ATTN_ROWS + l] = e;
                sum[l] += e;
            }
        for (int l = 0; l < ATTN_LANES; l++)
            w->sum[x + l] = w->sum[x + l] * w->fix[x + l] + sum[l];
    }
    return grown;
}

/* Drops weights [n, rows] of keys from k0 on; weight e of [b, h, s, t] takes word e. */
static void FN(drop)(const attn_plan *p, const attn_rows *r, int64_t k0, int64_t n, REAL *s)
{
    uint32_t words[ATTN_KEYS];
    uint64_t threshold = wk_dropout_threshold(p->dropout);
    REAL kept = (REAL)wk_dropout_scale(p->dropout);
    for (int x = 0; x < r->rows; x++) {
        int64_t row = (r->of->index * p->hq + attn_head(r, x)) * r->of->s + attn_query(r, x);
        wk_random_words(p->seed, p->offset, (uint64_t)(row * r->of->t + k0), n, words);
        for (int64_t j = 0; j < n; j++)
            s[j * ATTN_ROWS + x] *= wk_dropout_keeps(words[j], threshold) ? kept : 0;
    }
}

/* Products k q^T of keys from k0 on become weights exp(score - top), and older sums what the new top makes of them. */
static void FN(weigh)(const attn_plan *p, const attn_rows *r, int64_t k0, int64_t n, int64_t cols,
                      FN(work) * w)
{
    bool plain = !r->of->mask && p->softcap == 0 && p->scale > 0;
    if (!plain)
        FN(finish_scores)(p, r, k0, n, w->s, NULL, w->mask, w->mask_turned);
    else if (FN(needs_limits)(r, k0, n))
        FN(apply_limits)(r, k0, n, w->s);
    if (FN(softmax_block)(w, n, cols, plain ? (REAL)p->scale : 1))
        for (int64_t i = 0; i < p->dv; i++)
            for (int64_t x = 0; x < cols; x++)
                w->o_turned[i * ATTN_ROWS + x] *= w->fix[x];
    if (p->dropout > 0)
        FN(drop)(p, r, k0, n, w->s);
}

static const gemm_kernel *FN(kernel)(void)
{
    return WK_ISA(gemm_pick_kernel)(&(wk_gemm_args){.c = {.dtype = WK_REAL_DTYPE}});
}

/* o^T += v^T weights, for keys from k0 on of the head that v points to. */
static void FN(add_values)(const attn_plan *p, const char *v, int64_t k0, int64_t n, int64_t cols,
                           FN(work) * w)
{
    attn_mat vm = WK_ISA(attn_rows_of)(p->dtype, v, p->v, k0, n, p->dv, 0, w->v);
    attn_mat turned = {vm.data, vm.cs, vm.rs};
    WK_ISA(attn_product)
    (FN(kernel)(), p->dv, cols, n, turned, w->s, NULL, ATTN_ROWS, w->o_turned, ATTN_ROWS, true);
}

/* The usual way: w->o, top and sum of the block's rows over keys [from, to). */
static void FN(attend)(const attn_plan *p, const attn_rows *r, int64_t from, int64_t to, FN(work) * w)
{
    const attn_sequence *q = r->of;
    int64_t bytes = (int64_t)wk_bytes(p->dtype), cols = gemm_round_up(r->rows, ATTN_LANES);
    const char *k = q->k + r->key_head * p->k.h * bytes, *v = q->v + r->key_head * p->v.h * bytes;
    FN(load_rows)(r, p->dtype, q->q, p->q, p->d, p->d, w->q, w->q_turned);
    memset(w->o_turned, 0, (size_t)(p->dv * ATTN_ROWS) * sizeof(REAL));
    for (int64_t k0 = from; k0 < to; k0 += ATTN_KEYS) {
        int64_t n = gemm_min(to - k0, ATTN_KEYS);
        attn_mat km = WK_ISA(attn_rows_of)(p->dtype, k, p->k, k0, n, p->d, 0, w->k);
        WK_ISA(attn_product)
        (FN(kernel)(), n, cols, p->d, km, w->q_turned, NULL, ATTN_ROWS, w->s, ATTN_ROWS, false);
        FN(weigh)(p, r, k0, n, cols, w);
        FN(add_values)(p, v, k0, n, cols, w);
    }
    WK_ISA(wk_block_transpose)
    (sizeof(REAL), w->o_turned, ATTN_ROWS, w->o, w->o_rs, p->dv, r->rows, false);
}

#include "attention_thin.inc.h"

/* ---- Results ---- */

/* Rows of o divided by their sums, to y and lse. */
static void FN(store_rows)(const attn_plan *p, const attn_rows *r, FN(work) * w)
{
    int64_t bytes = (int64_t)wk_bytes(p->y_dtype);
    for (int x = 0; x < r->rows; x++) {
        REAL *row = w->o + x * w->o_rs, sum = w->sum[x], factor = sum == 0 ? 0 : 1 / sum;
        int64_t head = attn_head(r, x), i = attn_query(r, x);
        for (int64_t c = 0; c < p->dv; c++)
            row[c] *= factor;
        WK_ISA(wk_block_store)
        (p->y_dtype, REAL_COMPUTE, row, r->of->y + (head * p->y.h + i * p->y.s) * bytes, p->dv, false);
        if (r->of->lse)
            ((REAL *)r->of->lse)[head * r->of->s + i] = sum == 0 ? -INFINITY : w->top[x] + R_LOG(sum);
    }
}

/* A split's part: rows of dv values, then tops, then sums. */
static void FN(keep_part)(const attn_plan *p, const attn_rows *r, const FN(work) * w, REAL *part)
{
    for (int x = 0; x < r->rows; x++) {
        memcpy(part + x * p->dv, w->o + x * w->o_rs, (size_t)p->dv * sizeof(REAL));
        part[ATTN_ROWS * p->dv + x] = w->top[x];
        part[ATTN_ROWS * (p->dv + 1) + x] = w->sum[x];
    }
}

/* Adds a part to w. */
static void FN(add_part)(const attn_plan *p, const attn_rows *r, FN(work) * w, const REAL *part)
{
    for (int x = 0; x < r->rows; x++) {
        REAL *row = w->o + x * w->o_rs, was = w->top[x], top = part[ATTN_ROWS * p->dv + x];
        REAL now = top > was || top != top ? top : was;
        REAL old = was != now ? R_EXP(was - now) : 1, more = top != now ? R_EXP(top - now) : 1;
        w->top[x] = now;
        w->sum[x] = w->sum[x] * old + part[ATTN_ROWS * (p->dv + 1) + x] * more;
        for (int64_t c = 0; c < p->dv; c++)
            row[c] = row[c] * old + part[x * p->dv + c] * more;
    }
}

/* One task: block r over split `split` of the keys; part is NULL for the only one. */
static void FN(run_rows)(const attn_plan *p, const attn_rows *r, int64_t split, REAL *part, char *memory)
{
    FN(work) w;
    FN(work_init)(&w, p, memory);
    for (int x = 0; x < ATTN_ROWS; x++) {
        w.top[x] = -INFINITY;
        w.sum[x] = 0;
    }
    int64_t size = r->of->split_keys, from = gemm_max(split * size, r->keys.lo);
    int64_t to = gemm_min((split + 1) * size, r->keys.hi);
    if (attn_is_thin(p, r->of))
        FN(attend_thin)(p, r, from, to, &w);
    else if (!attend_pairs(p, r, from, to, &w))
        FN(attend)(p, r, from, to, &w);
    if (part)
        FN(keep_part)(p, r, &w, part);
    else
        FN(store_rows)(p, r, &w);
}

/* The parts of one block put together. */
static void FN(merge_rows)(const attn_plan *p, const attn_rows *r, const char *parts, char *memory)
{
    FN(work) w;
    FN(work_init)(&w, p, memory);
    for (int x = 0; x < ATTN_ROWS; x++) {
        w.top[x] = -INFINITY;
        w.sum[x] = 0;
    }
    memset(w.o, 0, (size_t)(ATTN_ROWS * w.o_rs) * sizeof(REAL));
    for (int64_t i = 0; i < r->of->splits; i++)
        FN(add_part)(p, r, &w, (const REAL *)(parts + (size_t)i * p->part_bytes));
    FN(store_rows)(p, r, &w);
}
