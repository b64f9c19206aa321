/* amx.c: products of bf16 matrices by tile registers, which are in software here, against sums in f64: sizes around
 * those of tiles, every order in memory, biases, sums that go on, batches, and patches that the caller packs. Attention
 * over them. */
#include <math.h>
#include <stdlib.h>
#include "attention_int.h"
#include "test.h"

enum { SIDE_MOST = 300, DEPTH_MOST = 2600, ROOM = SIDE_MOST * DEPTH_MOST, BATCH = 3, GUARD = 7 };

static uint16_t *a, *b, *none; /* none: NaN */
static float *c, *before;
static uint64_t state = 1;

static int64_t pick(int64_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)((state >> 33) % (uint64_t)n);
}

static float value(void) { return (float)(pick(257) - 128) / 64; }

static void fill(void)
{
    for (int i = 0; i < ROOM; i++) {
        a[i] = wk_f32_to_bf16(value());
        b[i] = wk_f32_to_bf16(value());
        none[i] = 0x7fff;
    }
}

static double expected(const wk_gemm_args *g, int64_t i, int64_t j, const float *row_bias)
{
    const uint16_t *x = (const uint16_t *)g->a.data + i * g->a.rs,
                   *y = (const uint16_t *)g->b.data + j * g->b.cs;
    double sum = row_bias ? row_bias[i] : 0;
    for (int64_t p = 0; p < g->k; p++)
        sum += (double)wk_bf16_to_f32(x[p * g->a.cs]) * (double)wk_bf16_to_f32(y[p * g->b.rs]);
    return sum + (g->accumulate ? (double)before[i * g->c.rs + j] : 0);
}

/* Compares some of C, and what lies beside it, which must not have changed. */
static bool is_right(const wk_gemm_args *g, const float *row_bias)
{
    const float *out = g->c.data;
    for (int64_t i = 0; i < g->m; i++) {
        for (int64_t j = g->n; j < g->c.rs; j++)
            if (out[i * g->c.rs + j] != before[i * g->c.rs + j])
                return false;
        for (int64_t j = i % 3; j < g->n; j += 1 + pick(5)) {
            double want = expected(g, i, j, row_bias);
            if (!(fabs(out[i * g->c.rs + j] - want) <= 1e-4 + 2e-6 * sqrt((double)g->k) * 40))
                return false;
        }
    }
    return true;
}

static void set_before(int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        c[i] = before[i] = value();
}

/* Columns [j0, j0 + jn) of B as a convolution packs its patches. */
static void pack_pairs(const void *ctx, int64_t p0, int64_t pn, int64_t j0, int64_t jn, int64_t nr, void *dst)
{
    const wk_mat *m = ctx;
    uint32_t *out = dst;
    const uint16_t *from = m->data;
    for (int64_t p = p0; p < p0 + pn; p += 2, out += nr)
        for (int64_t x = 0; x < nr; x++) {
            uint32_t low = x < jn ? from[p * m->rs + (j0 + x) * m->cs] : 0;
            uint32_t high = x < jn && p + 1 < p0 + pn ? from[(p + 1) * m->rs + (j0 + x) * m->cs] : 0;
            out[x] = low | high << 16;
        }
}

static void unused_pack(const void *ctx, int64_t p0, int64_t pn, int64_t j0, int64_t jn, int64_t nr,
                        void *dst)
{
    (void)ctx, (void)p0, (void)pn, (void)j0, (void)jn, (void)nr, (void)dst;
    test_check(false, __FILE__, __LINE__, "pairs are packed by pack_b_pairs");
}

/* Leaves the memory that the product will pack its operands in full of NaN. */
static void soil(wk_gemm_args g)
{
    g.k = gemm_round_up(g.k, 32);
    g.pack_b = g.pack_b_pairs = NULL;
    g.a = (wk_mat){none, WK_BF16, g.k, 1};
    g.b = (wk_mat){none, WK_BF16, g.n, 1};
    wk_gemm_soft(&g);
}

static void product(int64_t m, int64_t n, int64_t k)
{
    bool fills = m >= 12 && n >= 12 && k >= 16;
    bool a_down = pick(2), b_down = pick(2), packs = fills && pick(3) == 0, biased = pick(2);
    float bias[SIDE_MOST];
    for (int i = 0; i < SIDE_MOST; i++)
        bias[i] = value();
    wk_gemm_args g = {.m = m, .n = n, .k = k, .accumulate = pick(2), .row_bias = biased ? bias : NULL};
    g.a = a_down ? (wk_mat){a, WK_BF16, 1, m} : (wk_mat){a, WK_BF16, k, 1};
    g.b = b_down ? (wk_mat){b, WK_BF16, 1, k} : (wk_mat){b, WK_BF16, n, 1};
    g.c = (wk_mat){c, WK_F32, n + pick(2) * GUARD, 1};
    if (packs) {
        g.pack_b = unused_pack;
        g.pack_b_pairs = pack_pairs;
        g.pack_ctx = &g.b;
    }
    soil(g);
    set_before(m * g.c.rs);
    bool tiles = gemm_pick_kernel_soft(&g) == &gemm_kernel_amx_soft;
    test_check(tiles == fills, __FILE__, __LINE__, "%lld x %lld x %lld goes to the tiles or not",
               (long long)m, (long long)n, (long long)k);
    test_check(wk_gemm_soft(&g) && is_right(&g, g.row_bias), __FILE__, __LINE__,
               "%lld x %lld x %lld, A %s, B %s%s", (long long)m, (long long)n, (long long)k,
               a_down ? "by columns" : "by rows", b_down ? "by columns" : "by rows",
               packs ? ", packed by the caller" : "");
}

static void batch(void)
{
    enum { M = 33, N = 47, K = 65 };
    int64_t at_a[BATCH], at_b[BATCH], at_c[BATCH];
    for (int i = 0; i < BATCH; i++) {
        at_a[i] = i * M * K;
        at_b[i] = (BATCH - 1 - i) * K * N;
        at_c[i] = i * M * N;
    }
    wk_gemm_args g = {
        .m = M, .n = N, .k = K, .a = {a, WK_BF16, K, 1}, .b = {b, WK_BF16, N, 1}, .c = {c, WK_F32, N, 1}};
    set_before(BATCH * M * N);
    CHECK(wk_gemm_batch_soft(&g, BATCH, at_a, at_b, at_c));
    for (int i = 0; i < BATCH; i++) {
        wk_gemm_args one = g;
        one.a.data = a + at_a[i];
        one.b.data = b + at_b[i];
        one.c.data = c + at_c[i];
        test_check(is_right(&one, NULL), __FILE__, __LINE__, "product %d of a batch", i);
    }
}

/* ---- Attention ---- */

static float of(const uint16_t *x, attn_strides at, int64_t h, int64_t i, int64_t c)
{
    return wk_bf16_to_f32(x[h * at.h + i * at.s + c * at.d]);
}

/* Row i of head h of the result, dv values. */
static void attention_row(const attn_plan *p, const attn_sequence *q, int64_t h, int64_t i, double *row)
{
    int64_t kh = h / (p->hq / p->hk);
    wk_key_range see = wk_sdpa_keys(p->causal, p->window, q->s, q->t, i);
    double top = -INFINITY, sum = 0, scores[SIDE_MOST];
    for (int64_t j = see.lo; j < see.hi; j++) {
        scores[j] = 0;
        for (int64_t c = 0; c < p->d; c++)
            scores[j] += p->scale * (double)of((const uint16_t *)q->q, p->q, h, i, c) *
                         (double)of((const uint16_t *)q->k, p->k, kh, j, c);
        top = scores[j] > top ? scores[j] : top;
    }
    for (int64_t c = 0; c < p->dv; c++)
        row[c] = 0;
    for (int64_t j = see.lo; j < see.hi; j++) {
        double e = exp(scores[j] - top);
        sum += e;
        for (int64_t c = 0; c < p->dv; c++)
            row[c] += e * (double)of((const uint16_t *)q->v, p->v, kh, j, c);
    }
    for (int64_t c = 0; c < p->dv && sum > 0; c++)
        row[c] /= sum;
}

/* Heads of widths d and dv, 4 of queries over 2 of keys, [rows, heads, width] or [heads, rows, width] in memory. The
 * result is in f32, which shows what rounding weights to bf16 would cost. */
static void attention(int64_t s, int64_t t, int64_t d, int64_t dv, bool causal)
{
    bool by_rows = pick(2);
    attn_sequence q = {
        .q = (char *)a, .k = (char *)b, .v = (char *)(b + 2 * t * d), .y = (char *)c, .s = s, .t = t};
    attn_plan p = {.dtype = WK_BF16,
                   .y_dtype = WK_F32,
                   .hq = 4,
                   .hk = 2,
                   .d = d,
                   .dv = dv,
                   .scale = 0.3,
                   .causal = causal,
                   .window = causal && pick(2) ? 20 : 0,
                   .n = 1,
                   .sequences = &q};
    p.q = by_rows ? (attn_strides){d, 4 * d, 1} : (attn_strides){s * d, d, 1};
    p.k = by_rows ? (attn_strides){d, 2 * d, 1} : (attn_strides){t * d, d, 1};
    p.v = by_rows ? (attn_strides){1, 2 * dv, 2} : (attn_strides){t * dv, dv, 1};
    p.y = (attn_strides){s * dv, dv, 1};
    CHECK(attn_forward_soft(&p) == WK_OK);
    double worst = 0, row[SIDE_MOST];
    for (int64_t h = 0; h < p.hq; h++)
        for (int64_t i = 0; i < s; i++) {
            attention_row(&p, &q, h, i, row);
            for (int64_t x = 0; x < dv; x++) /* not by fmax, at which GCC 12 for Arm breaks off */
                if (!(fabs(row[x] - (double)c[(h * s + i) * dv + x]) <= worst))
                    worst = fabs(row[x] - (double)c[(h * s + i) * dv + x]);
        }
    /* weights of one bf16 would be off by 4e-3; with fused products, as -march=native has them, it is 3.03e-5 */
    test_check(worst < 4e-5, __FILE__, __LINE__, "%lld queries over %lld keys of %lld and %lld: off by %g",
               (long long)s, (long long)t, (long long)d, (long long)dv, worst);
}

static void attentions(void)
{
    static const int64_t sizes[][4] = {{50, 97, 64, 64},  {97, 50, 33, 17}, {48, 64, 32, 128},
                                       {49, 129, 20, 40}, {70, 33, 65, 12}, {13, 31, 128, 96},
                                       {20, 1, 16, 16},   {60, 60, 15, 64}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int causal = 0; causal < 2; causal++)
            attention(sizes[i][0], sizes[i][1], sizes[i][2], sizes[i][3], causal);
}

int main(void)
{
    a = malloc(ROOM * sizeof *a);
    b = malloc(ROOM * sizeof *b);
    none = malloc(ROOM * sizeof *none);
    c = malloc(ROOM * sizeof *c);
    before = malloc(ROOM * sizeof *before);
    if (!a || !b || !none || !c || !before)
        return 1;
    fill();
    static const int64_t edges[] = {1, 11, 12, 15, 16, 17, 31, 32, 33, 48, 63, 65, 97, 130};
    static const int64_t depths[] = {0, 1, 16, 31, 32, 33, 64, 95, 257};
    for (size_t i = 0; i < sizeof edges / sizeof *edges; i++)
        for (size_t j = 0; j < sizeof edges / sizeof *edges; j++)
            product(edges[i], edges[j], depths[pick(sizeof depths / sizeof *depths)]);
    product(200, 290, 700);
    product(97, 129, DEPTH_MOST - 1); /* more than one outer block along k */
    batch();
    attentions();
    free(a);
    free(b);
    free(none);
    free(c);
    free(before);
    return test_end();
}
