/* random.c: random numbers and dropout. What a word means is said in core/random.h; the build compiles this file
 * without fused multiply-adds, as that asks for. */
#include "core/random.h"
#include "core/families.h"
#include "ops/random.h"
#include "blocks.h"

/* ---- rand, randn ---- */

typedef struct {
    uint64_t seed, offset;
    double a, b;
    int cut; /* the bits of a float that the dtype lacks */
} numbers;

static void rand_f32(void *const *out, const void *const *in, int64_t first, int64_t n, void *ctx)
{
    const numbers *p = ctx;
    float *y = out[0], low = (float)p->a, range = (float)(p->b - p->a);
    uint32_t w[WK_BLOCK];
    (void)in;
    wk_random_words(p->seed, p->offset, (uint64_t)first, n, w);
    for (int64_t i = 0; i < n; i++)
        y[i] = wk_cut_f32(low + wk_uniform_f32(w[i]) * range, p->cut);
}

static void rand_f64(void *const *out, const void *const *in, int64_t first, int64_t n, void *ctx)
{
    const numbers *p = ctx;
    double *y = out[0], low = p->a, range = p->b - p->a;
    uint32_t w[2][WK_BLOCK];
    (void)in;
    for (uint32_t plane = 0; plane < 2; plane++)
        wk_plane_words(p->seed, p->offset, plane, (uint64_t)first, n, w[plane]);
    for (int64_t i = 0; i < n; i++)
        y[i] = low + wk_uniform_f64(w[0][i], w[1][i]) * range;
}

static void randn_f32(void *const *out, const void *const *in, int64_t first, int64_t n, void *ctx)
{
    const numbers *p = ctx;
    uint32_t w[WK_BLOCK];
    float y[WK_BLOCK];
    (void)in;
    int64_t pairs = (n + 1) / 2;
    wk_random_words(p->seed, p->offset, (uint64_t)first, 2 * pairs, w);
    for (int64_t j = 0; j < pairs; j++) {
        double z[2];
        wk_normals_f32(w + 2 * j, z);
        y[2 * j] = (float)(p->a + p->b * z[0]);
        y[2 * j + 1] = (float)(p->a + p->b * z[1]);
    }
    memcpy(out[0], y, (size_t)n * sizeof *y);
}

static void randn_f64(void *const *out, const void *const *in, int64_t first, int64_t n, void *ctx)
{
    const numbers *p = ctx;
    uint32_t w[2][WK_BLOCK];
    double y[WK_BLOCK];
    (void)in;
    int64_t pairs = (n + 1) / 2;
    for (uint32_t plane = 0; plane < 2; plane++)
        wk_plane_words(p->seed, p->offset, plane, (uint64_t)first, 2 * pairs, w[plane]);
    for (int64_t j = 0; j < pairs; j++) {
        double z[2];
        wk_normals_f64(w[0] + 2 * j, w[1] + 2 * j, z);
        y[2 * j] = p->a + p->b * z[0];
        y[2 * j + 1] = p->a + p->b * z[1];
    }
    memcpy(out[0], y, (size_t)n * sizeof *y);
}

static wk_status run_numbers(wk_call *c, wk_blocks_fn f32, wk_blocks_fn f64)
{
    const wk_random_params *p = c->params;
    wk_compute compute = wk_dtypes[c->dtype].compute;
    numbers ctx = {.seed = (uint64_t)p->seed,
                   .offset = (uint64_t)p->offset,
                   .a = p->a,
                   .b = p->b,
                   .cut = c->dtype == WK_F16    ? 13
                          : c->dtype == WK_BF16 ? 16
                                                : 0};
    wk_blocks b = {.out = {c->out[0]},
                   .out_compute = {compute},
                   .count = wk_count(c->out[0]),
                   .fn = compute == WK_COMPUTE_F64 ? f64 : f32,
                   .ctx = &ctx};
    return WK_ISA(wk_blocks_run)(&b);
}

static wk_status run_rand(wk_call *c) { return run_numbers(c, rand_f32, rand_f64); }
static wk_status run_randn(wk_call *c) { return run_numbers(c, randn_f32, randn_f64); }

/* ---- dropout ---- */

typedef struct {
    uint64_t seed, offset, threshold;
    double scale;
    uint8_t *mask; /* of the whole tensor; NULL: not wanted */
} dropout;

/* Which of the block's elements stay: from the mask where there is one, else by the generator. */
static void make_keep(const dropout *p, const int64_t *mask, int64_t first, int64_t n, uint32_t *keep)
{
    if (mask) {
        for (int64_t i = 0; i < n; i++)
            keep[i] = mask[i] != 0;
    } else if (p->threshold >> 32) {
        memset(keep, 0, (size_t)n * sizeof *keep);
    } else {
        uint32_t threshold = (uint32_t)p->threshold;
        wk_random_words(p->seed, p->offset, (uint64_t)first, n, keep);
        for (int64_t i = 0; i < n; i++)
            keep[i] = keep[i] >= threshold;
    }
    for (int64_t i = 0; p->mask && i < n; i++)
        p->mask[first + i] = (uint8_t)keep[i];
}

static void dropout_f32(void *const *out, const void *const *in, int64_t first, int64_t n, void *ctx)
{
    const dropout *p = ctx;
    const float *x = in[0];
    float *y = out[0], scale = (float)p->scale;
    uint32_t keep[WK_BLOCK];
    make_keep(p, in[1], first, n, keep);
    for (int64_t i = 0; i < n; i++)
        y[i] = keep[i] ? x[i] * scale : 0;
}

static void dropout_f64(void *const *out, const void *const *in, int64_t first, int64_t n, void *ctx)
{
    const dropout *p = ctx;
    const double *x = in[0];
    double *y = out[0];
    uint32_t keep[WK_BLOCK];
    make_keep(p, in[1], first, n, keep);
    for (int64_t i = 0; i < n; i++)
        y[i] = keep[i] ? x[i] * p->scale : 0;
}

static wk_status run_dropout(wk_call *c)
{
    const wk_dropout_params *p = c->params;
    wk_compute compute = wk_dtypes[c->dtype].compute;
    dropout ctx = {.seed = (uint64_t)p->seed,
                   .offset = (uint64_t)p->offset,
                   .threshold = wk_dropout_threshold(p->p),
                   .scale = wk_dropout_scale(p->p),
                   .mask = c->out[1] ? wk_ptr(c->out[1]) : NULL};
    wk_blocks b = {.in = {c->in[0], c->in[1]}, /* the backward's second input is the mask */
                   .in_compute = {compute, WK_COMPUTE_I64},
                   .out = {c->out[0]},
                   .out_compute = {compute},
                   .count = wk_count(c->out[0]),
                   .fn = compute == WK_COMPUTE_F64 ? dropout_f64 : dropout_f32,
                   .ctx = &ctx};
    return WK_ISA(wk_blocks_run)(&b);
}

const wk_impl WK_ISA(wk_cpu_random)[] = {
    {"rand", "simd", run_rand, NULL, NULL},
    {"randn", "simd", run_randn, NULL, NULL},
    {"dropout", "simd", run_dropout, NULL, NULL},
    {"dropout_backward", "simd", run_dropout, NULL, NULL},
    {0},
};
