/* pieces.c: products of f32 and f16 by tile registers of bf16, which are in software here and, where the machine has some,
 * in its processor, against sums in f64: sizes around those of tiles, every order in memory, numbers from the smallest
 * to the largest, infinite and NaN. */
#include <math.h>
#include <stdlib.h>
#include "core/host.h"
#include "gemm_int.h"
#include "test.h"

/* Elements of A, B and C at most. */
enum { ROOM_A = 130 * 17501, ROOM_B = 800 * 17501, ROOM_C = 130 * 1600 };

/* Where numbers come from. */
typedef enum { USUAL, WIDE, SUBNORMAL, TINY, KINDS } kind;
static const char *const kind_names[] = {"usual", "wide", "subnormal", "tiny"};

typedef struct {
    int64_t m, n, k;
    wk_dtype dtype;
    kind kind;
    float odd; /* 0, or put into A, */
    bool in_b; /* or into B */
} sample;

typedef bool gemm_fn(const wk_gemm_args *g);
#if WK_LEVELS > 1
gemm_fn wk_gemm_avx512;
#endif

static float *a, *b, *c, *before;
static uint64_t state = 7;

static int64_t pick(int64_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)((state >> 33) % (uint64_t)n);
}

/* With all bits that a f32 has; second: of B. */
static float value(kind kind, bool second)
{
    float x = (float)(pick(1 << 24) + 1) * (pick(2) ? 0x1p-24f : -0x1p-24f);
    switch (kind) {
    case WIDE: return ldexpf(x, (int)pick(60) - 30);
    case SUBNORMAL: return second ? x * 0x1p30f : x * 0x1p-127f; /* pieces that only scaling keeps */
    case TINY: return second ? x * 0x1p-60f : x * 0x1p-75f;      /* products that are subnormal */
    default: return x;
    }
}

static void put(void *at, wk_dtype dtype, int64_t i, float x)
{
    if (dtype == WK_F16)
        ((uint16_t *)at)[i] = wk_f32_to_f16(x);
    else
        ((float *)at)[i] = x;
}

static double get(const wk_mat *x, int64_t i, int64_t j)
{
    int64_t at = i * x->rs + j * x->cs;
    return x->dtype == WK_F16 ? (double)wk_f16_to_f32(((const uint16_t *)x->data)[at])
                              : (double)((const float *)x->data)[at];
}

static void fill(const sample *s)
{
    for (int64_t i = 0; i < s->m * s->k; i++)
        put(a, s->dtype, i, value(s->kind, false));
    for (int64_t i = 0; i < s->k * s->n; i++)
        put(b, s->dtype, i, value(s->kind, true));
    for (int64_t i = 0; i < s->m * s->n; i++)
        c[i] = before[i] = value(s->kind, false);
    if (s->odd != 0 && s->in_b)
        put(b, s->dtype, pick(s->k * s->n), s->odd);
    else if (s->odd != 0)
        put(a, s->dtype, pick(s->m * s->k), s->odd);
}

/* B as a caller packs it. */
static void pack(const void *ctx, int64_t p0, int64_t pn, int64_t j0, int64_t jn, int64_t nr, void *dst)
{
    float *out = dst;
    for (int64_t p = p0; p < p0 + pn; p++, out += nr)
        for (int64_t x = 0; x < nr; x++)
            out[x] = x < jn ? (float)get(ctx, p, j0 + x) : 0;
}

/* One of C. A sum is off by the roundings of f32 on the way to it, of which some cancel. */
static bool is_right(const wk_gemm_args *g, int64_t i, int64_t j)
{
    double sum = g->accumulate ? (double)before[i * g->n + j] : 0, size = fabs(sum);
    for (int64_t p = 0; p < g->k; p++) {
        double x = get(&g->a, i, p) * get(&g->b, p, j);
        sum += x;
        size += fabs(x);
    }
    double got = (double)c[i * g->n + j];
    if (isnan(sum) || isinf(sum) || fabs(sum) > 0x1.fffffep127)
        return isnan(sum) ? isnan(got) : isinf(got) && (got > 0) == (sum > 0);
    return fabs(got - sum) <= 0x1p-24 * (2 + sqrt((double)g->k)) * size + 0x1p-148;
}

static int64_t wrong_ones(const wk_gemm_args *g, bool all)
{
    int64_t wrong = 0;
    for (int64_t i = 0; i < g->m; i++)
        for (int64_t j = all ? 0 : pick(7); j < g->n; j += all ? 1 : 1 + pick(11))
            wrong += !is_right(g, i, j);
    return wrong;
}

static void product(gemm_fn *gemm, const char *where, sample s)
{
    bool a_down = pick(2), b_down = pick(2), packs = pick(3) == 0;
    fill(&s);
    wk_gemm_args g = {.m = s.m, .n = s.n, .k = s.k, .accumulate = pick(2), .c = {c, WK_F32, s.n, 1}};
    g.a = a_down ? (wk_mat){a, s.dtype, 1, s.m} : (wk_mat){a, s.dtype, s.k, 1};
    g.b = b_down ? (wk_mat){b, s.dtype, 1, s.k} : (wk_mat){b, s.dtype, s.n, 1};
    g.pack_b = packs ? pack : NULL;
    g.pack_ctx = &g.b;
    const gemm_kernel *expected =
        s.dtype == WK_F16 && !packs ? &gemm_kernel_two_soft : &gemm_kernel_three_soft;
    if (s.m < 96)
        expected = &gemm_kernel_f32_soft;
    CHECK(gemm_pick_kernel_soft(&g) == expected);
    int64_t wrong = gemm(&g) ? wrong_ones(&g, s.odd != 0) : -1;
    test_check(wrong == 0, __FILE__, __LINE__,
               "%s: %lld x %lld x %lld of %s, %s numbers and %g, A %s, B %s%s%s: %lld wrong", where,
               (long long)s.m, (long long)s.n, (long long)s.k, wk_dtype_name(s.dtype), kind_names[s.kind],
               (double)s.odd, a_down ? "by columns" : "by rows", b_down ? "by columns" : "by rows",
               packs ? ", packed by the caller" : "", g.accumulate ? ", added to C" : "", (long long)wrong);
}

static void products(gemm_fn *gemm, const char *where, size_t step)
{
    static const int64_t sizes[][3] = {{128, 512, 128}, {130, 517, 129}, {201, 331, 131},
                                       {161, 131, 401}, {290, 200, 150}, {129, 133, 2599}};
    static const float odd[] = {INFINITY, -INFINITY, NAN, 3e38f, 0x1p31f};
    for (size_t i = step - 1; i < sizeof sizes / sizeof *sizes; i += step) {
        const int64_t *size = sizes[i];
        for (kind kind = USUAL; kind < (size[2] < 1000 ? KINDS : WIDE); kind++) /* all of it takes long */
            product(gemm, where, (sample){size[0], size[1], size[2], WK_F32, kind, 0, false});
        product(gemm, where, (sample){size[0], size[1], size[2], WK_F16, USUAL, 0, false});
        for (int in_b = 0; in_b < 2; in_b++) {
            product(gemm, where, (sample){size[0], size[1], size[2], WK_F16, USUAL, INFINITY, in_b});
            product(gemm, where, (sample){size[0], size[1], size[2], WK_F32, USUAL, odd[i % 5], in_b});
        }
    }
}

/* B in more than one outer block: A is packed once for all, and odd in all, or again where it is deeper than a block. */
static void wide(gemm_fn *gemm, const char *where, int64_t m, const int64_t (*sizes)[2])
{
    product(gemm, where, (sample){m, sizes[0][0], sizes[0][1], WK_F32, USUAL, INFINITY, false});
    product(gemm, where, (sample){m, sizes[1][0], sizes[1][1], WK_F32, USUAL, 0, false});
}

/* What is not worth cutting, or too deep for the scale. */
static void others(void)
{
    wk_mat any = {.dtype = WK_F32};
    wk_gemm_args g = {.m = 127, .n = 2048, .k = 64, .a = any, .b = any, .c = any};
    CHECK(gemm_pick_kernel_soft(&g) == &gemm_kernel_f32_soft);
    g.m = 128;
    CHECK(gemm_pick_kernel_soft(&g) == &gemm_kernel_three_soft);
    g.n = 512;
    CHECK(gemm_pick_kernel_soft(&g) == &gemm_kernel_f32_soft);
    g.k = GEMM_CUT_DEPTH;
    CHECK(gemm_pick_kernel_soft(&g) == &gemm_kernel_three_soft);
    g.k++;
    CHECK(gemm_pick_kernel_soft(&g) == &gemm_kernel_f32_soft);
}

int main(void)
{
    a = malloc(ROOM_A * sizeof *a);
    b = malloc(ROOM_B * sizeof *b);
    c = malloc(ROOM_C * sizeof *c);
    before = malloc(ROOM_C * sizeof *before);
    if (!a || !b || !c || !before)
        return 1;
    others();
    products(wk_gemm_soft, "in software", 2); /* which is slow */
    wide(wk_gemm_soft, "in software, not cut", 40, (const int64_t[][2]){{2300, 1000}, {1800, 2599}});
#if WK_LEVELS > 1
    if (wk_host_has_amx()) {
        products(wk_gemm_avx512, "in the processor", 1);
        wide(wk_gemm_avx512, "in the processor", 130, (const int64_t[][2]){{1600, 1000}, {800, 17501}});
    }
#endif
    free(a);
    free(b);
    free(c);
    free(before);
    return test_end();
}
