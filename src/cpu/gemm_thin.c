/* gemm_thin.c: the product of a few rows and a matrix (or of a matrix and a few columns, which is the same
 * transposed). Each element of B is used a few times at most, so the time goes into reading it: nothing is
 * packed, B is read in the order in which it lies in memory, and cut into parts of equal size for the threads.
 *
 * The cut may go through k. Each part then leaves its own sums, which are added up in order at the end. */
#include "gemm_int.h"
#include "core/pool.h"
#include "core/host.h"
#include "stream.h"
#ifdef __F16C__
#include <immintrin.h>
#endif

enum {
    MAX_ROWS = 4,            /* of A, */
    MAX_ROWS_BY_COLUMNS = 8, /* and where packing B would mean to transpose it */
    MIN_K_BY_COLUMNS = 64,   /* columns shorter than this are mostly left-overs beside full vectors */
    THIN_ROWS = 4,           /* of A that are worked on together, */
    THIN_STEP = 4,           /* with so many rows or columns of B */
    PART_BYTES = 512 << 10,  /* of B, in a task, */
    BIG_TASKS = 32,      /* twice that by rows, whose tasks leave sums to be added up, where so many remain */
    ROW_BYTES = 8 << 10, /* of a row of B, in a task: sums of that width stay in the first-level cache */
    STREAM_BYTES = 16 << 10, /* the same where B comes from memory and is read row by row */
    CACHE_BYTES = 64 << 20,  /* of a B that may lie in a cache: less than that */
    APART_BYTES = 4 << 10,   /* of sums of a part, from which on they lie apart */
    SUM_ROWS = 2048,         /* of B, that are added up in turn: more, and rounding adds up too */
    FINISH_COLUMNS = 512     /* in a task that adds up parts */
};

/* y[m, jn] = x[m, kn] . b[kn, jn]; columns: those of b are contiguous, else the rows are. */
typedef struct {
    const void *x, *b;
    void *y;
    int64_t ldx, ldy, rs, cs, kn, jn;
    int m;
    bool columns, from_memory, stream; /* stream: by single rows */
} thin_part;

/* ---- Vectors of the compute type from the dtypes of B ---- */

typedef float vf __attribute__((vector_size(WK_VEC_BYTES)));
typedef float uvf __attribute__((vector_size(WK_VEC_BYTES), aligned(4), may_alias));
typedef double vd __attribute__((vector_size(WK_VEC_BYTES)));
typedef double uvd __attribute__((vector_size(WK_VEC_BYTES), aligned(8), may_alias));
typedef uint32_t vu __attribute__((vector_size(WK_VEC_BYTES)));
typedef uint16_t vh __attribute__((vector_size(WK_VEC_BYTES / 2)));

ALWAYS_INLINE vf load_bf16(const uint16_t *p)
{
#if defined(__AVX512F__) /* in one instruction, where gcc takes the vector apart */
    __m512i h = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)p));
    return (vf)_mm512_slli_epi32(h, 16);
#else
    vh h;
    memcpy(&h, p, sizeof h);
    return (vf)(__builtin_convertvector(h, vu) << 16);
#endif
}

ALWAYS_INLINE vf load_f16(const uint16_t *p)
{
#if defined(__AVX512F__)
    return (vf)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p));
#elif defined(__F16C__)
    return (vf)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p));
#else
    float lanes[WK_VEC_BYTES / sizeof(float)];
    vf v;
    for (size_t i = 0; i < WK_VEC_BYTES / sizeof(float); i++)
        lanes[i] = wk_f16_to_f32(p[i]);
    memcpy(&v, lanes, sizeof v);
    return v;
#endif
}

#define REAL float
#define SOURCE float
#define NAME(x) x##_f32
#define LOAD(p) (*(const uvf *)(p))
#define ONE(p) (*(p))
#include "gemm_thin.inc.h"

#define REAL double
#define SOURCE double
#define NAME(x) x##_f64
#define LOAD(p) (*(const uvd *)(p))
#define ONE(p) (*(p))
#include "gemm_thin.inc.h"

#define REAL float
#define SOURCE uint16_t
#define NAME(x) x##_f16
#define LOAD(p) load_f16(p)
#define ONE(p) wk_f16_to_f32(*(p))
#include "gemm_thin.inc.h"

#define REAL float
#define SOURCE uint16_t
#define NAME(x) x##_bf16
#define LOAD(p) load_bf16(p)
#define ONE(p) wk_bf16_to_f32(*(p))
#include "gemm_thin.inc.h"

#ifdef __AVX512F__
/* Columns of bf16 are multiplied as they are, two values of k in one instruction; x is bf16 too. */
#define BF16_DOT __attribute__((target("avx512bf16")))

static __attribute__((noinline)) void put_pair_sums(const thin_part *t, int64_t j, int cn,
                                                    __m512 acc[][THIN_STEP])
{
    for (int i = 0; i < t->m; i++)
        for (int c = 0; c < cn; c++)
            ((float *)t->y)[i * t->ldy + j + c] = _mm512_reduce_add_ps(acc[i][c]);
}

BF16_DOT ALWAYS_INLINE void dot_pairs(const thin_part *t, int m, int64_t j, int cn)
{
    const uint16_t *b = (const uint16_t *)t->b + j * t->cs, *x = t->x;
    __m512 acc[THIN_ROWS][THIN_STEP];
    for (int i = 0; i < m; i++)
        for (int c = 0; c < cn; c++)
            acc[i][c] = _mm512_setzero_ps();
    for (int64_t p = 0; p < t->kn; p += 32) {
        __mmask32 live = t->kn - p >= 32 ? ~(__mmask32)0 : ((__mmask32)1 << (t->kn - p)) - 1;
        __m512i xv[THIN_ROWS];
        for (int i = 0; i < m; i++)
            xv[i] = _mm512_maskz_loadu_epi16(live, x + i * t->ldx + p);
        for (int c = 0; c < cn; c++) {
            __m512i bv = _mm512_maskz_loadu_epi16(live, b + c * t->cs + p);
            for (int i = 0; i < m; i++)
                acc[i][c] = _mm512_dpbf16_ps(acc[i][c], (__m512bh)xv[i], (__m512bh)bv);
        }
    }
    __m512 kept[THIN_ROWS][THIN_STEP];
    for (int i = 0; i < m; i++)
        for (int c = 0; c < cn; c++)
            kept[i][c] = acc[i][c];
    put_pair_sums(t, j, cn, kept);
}

BF16_DOT ALWAYS_INLINE void dot_all_pairs(const thin_part *t, int m)
{
    int64_t j = 0;
    for (; j + THIN_STEP <= t->jn; j += THIN_STEP)
        dot_pairs(t, m, j, THIN_STEP);
    for (; j < t->jn; j++)
        dot_pairs(t, m, j, 1);
}

BF16_DOT static void part_pairs(const thin_part *t)
{
    switch (t->m) {
    case 1: dot_all_pairs(t, 1); break;
    case 2: dot_all_pairs(t, 2); break;
    case 3: dot_all_pairs(t, 3); break;
    default: dot_all_pairs(t, 4); break;
    }
}
#else
static void part_pairs(const thin_part *t) { (void)t; }
#endif

static void (*pick_part(wk_dtype dtype, bool pairs))(const thin_part *)
{
    if (pairs)
        return part_pairs;
    switch (dtype) {
    case WK_F64: return part_f64;
    case WK_F16: return part_f16;
    case WK_BF16: return part_bf16;
    default: return part_f32;
    }
}

/* ---- The plan ---- */

static wk_mat transpose(wk_mat x)
{
    int64_t rs = x.rs;
    x.rs = x.cs;
    x.cs = rs;
    return x;
}

static wk_gemm_args transpose_product(const wk_gemm_args *g)
{
    wk_gemm_args t = *g;
    t.m = g->n;
    t.n = g->m;
    t.a = transpose(g->b);
    t.b = transpose(g->a);
    t.c = transpose(g->c);
    t.row_bias = g->col_bias;
    t.col_bias = g->row_bias;
    return t;
}

static bool by_columns(const wk_gemm_args *g) { return g->b.rs == 1 && (g->b.cs != 1 || g->k > g->n); }

static bool by_pairs(const wk_gemm_args *g)
{
    return by_columns(g) && g->b.dtype == WK_BF16 && g->a.cs == 1 && gemm_has_bf16_pairs();
}

static bool from_memory(const wk_gemm_args *g)
{
    return g->k * g->n * (int64_t)wk_bytes(g->b.dtype) >= CACHE_BYTES;
}

/* One stream is read faster than several, as long as a task takes whole rows and one line of sums stays near. */
static bool streams(const wk_gemm_args *g)
{
    return g->m == 1 && !by_columns(g) && from_memory(g) &&
           g->n * (int64_t)wk_bytes(g->b.dtype) <= STREAM_BYTES;
}

/* Sums of a part of k. Those of streams are read and written all the time, by a thread each: apart from each other, unless parts
 * are so narrow, and therefore many, that the gaps would be larger than what they hold. */
static int64_t part_size(const wk_gemm_args *g)
{
    const int64_t bytes = (int64_t)gemm_compute_bytes(g), gap = (int64_t)WK_SCRATCH_GAP / bytes;
    return g->m * g->n + (streams(g) && g->n * bytes >= APART_BYTES ? gap : 0);
}

static bool takes(const wk_gemm_args *g)
{
    if (g->k == 0 || g->pack_b)
        return false;
    if (by_columns(g))
        return g->m <= MAX_ROWS_BY_COLUMNS && g->k >= MIN_K_BY_COLUMNS;
    return g->m <= MAX_ROWS && g->b.cs == 1;
}

/* Whether A has yet to become contiguous rows of the type that the loops take. */
static bool copies_a(const wk_gemm_args *g)
{
    return !by_pairs(g) && (g->a.cs != 1 || g->a.dtype != (g->c.dtype == WK_F64 ? WK_F64 : WK_F32));
}

/* n in equal blocks of about want. */
static int64_t even(int64_t n, int64_t want) { return gemm_blocks(n, gemm_blocks(n, gemm_max(want, 1))); }

bool WK_ISA(gemm_thin_plan)(gemm_plan *plan, const wk_gemm_args *g)
{
    wk_gemm_args t;
    *plan = (gemm_plan){.thin = true};
    if (!takes(g)) {
        t = transpose_product(g);
        if (!takes(&t))
            return false;
        g = &t;
        plan->transposed = true;
    }
    int64_t size = (int64_t)wk_bytes(g->b.dtype), part = PART_BYTES / size,
            bytes = (int64_t)gemm_compute_bytes(g);
    if (by_columns(g)) {
        plan->kc = even(g->k, part / THIN_STEP);
        plan->nt = gemm_round_up(even(g->n, part / plan->kc), THIN_STEP);
    } else {
        part += g->k * g->n >= 2 * BIG_TASKS * part ? part : 0;
        plan->nt = even(g->n, (streams(g) ? STREAM_BYTES : ROW_BYTES) / size);
        plan->kc = gemm_round_up(even(g->k, gemm_min(part / plan->nt, SUM_ROWS)), THIN_STEP);
    }
    plan->tasks = gemm_blocks(g->k, plan->kc) * gemm_blocks(g->n, plan->nt);
    plan->a_bytes = copies_a(g) ? (size_t)gemm_round_up(g->m * g->k * bytes, GEMM_ALIGN) : 0;
    plan->c_bytes = (size_t)(gemm_blocks(g->k, plan->kc) * part_size(g) * bytes);
    plan->shared = plan->a_bytes + plan->c_bytes;
    return true;
}

/* ---- Running it ---- */

typedef struct {
    const gemm_plan *plan;
    const wk_gemm_args *g;
    void (*part)(const thin_part *);
    const char *x; /* A, or its copy */
    int64_t ldx, x_bytes;
    char *sums; /* [parts of k], part_size apart, [m][n] */
    int64_t k_parts;
} thin;

/* Adds up columns [j, j + jn) of the parts, into the first. */
static void add_parts(const thin *s, int64_t j, int64_t jn)
{
    const wk_gemm_args *g = s->g;
    int64_t size = part_size(g);
    for (int64_t i = 0; i < g->m; i++)
        for (int64_t part = 1; part < s->k_parts; part++) {
            int64_t from = part * size + i * g->n + j, to = i * g->n + j;
            if (g->c.dtype == WK_F64)
                for (int64_t e = 0; e < jn; e++)
                    ((double *)s->sums)[to + e] += ((const double *)s->sums)[from + e];
            else
                for (int64_t e = 0; e < jn; e++)
                    ((float *)s->sums)[to + e] += ((const float *)s->sums)[from + e];
        }
}

static void finish_columns(const thin *s, int64_t j, int64_t jn)
{
    add_parts(s, j, jn);
    WK_ISA(gemm_finish)(s->g, s->sums + j * (int64_t)gemm_compute_bytes(s->g), s->g->n, 0, s->g->m, j, jn);
}

static void finish_task(void *ctx, int64_t task)
{
    const thin *s = ctx;
    int64_t j = task * FINISH_COLUMNS;
    finish_columns(s, j, gemm_min(FINISH_COLUMNS, s->g->n - j));
}

static void part_task(void *ctx, int64_t task)
{
    const thin *s = ctx;
    const wk_gemm_args *g = s->g;
    int64_t bytes = (int64_t)gemm_compute_bytes(g), k_part = task % s->k_parts;
    int64_t p = k_part * s->plan->kc, j = task / s->k_parts * s->plan->nt;
    thin_part t = {.columns = by_columns(g), .ldx = s->ldx, .ldy = g->n, .rs = g->b.rs, .cs = g->b.cs};
    t.from_memory = from_memory(g);
    t.stream = streams(g);
    t.kn = gemm_min(s->plan->kc, g->k - p);
    t.jn = gemm_min(s->plan->nt, g->n - j);
    t.b = (const char *)g->b.data + (p * g->b.rs + j * g->b.cs) * (int64_t)wk_bytes(g->b.dtype);
    for (int64_t i = 0; i < g->m; i += THIN_ROWS) { /* later rows find this part of B in the cache */
        t.m = (int)gemm_min(THIN_ROWS, g->m - i);
        t.x = s->x + (i * s->ldx + p) * s->x_bytes;
        t.y = s->sums + (k_part * part_size(g) + i * g->n + j) * bytes;
        s->part(&t);
    }
    if (s->k_parts == 1)
        finish_columns(s, j, t.jn);
}

void WK_ISA(gemm_thin_run)(const gemm_plan *plan, const wk_gemm_args *g, char *memory, int slots)
{
    (void)slots;
    wk_gemm_args turned;
    if (plan->transposed) {
        turned = transpose_product(g);
        g = &turned;
    }
    int64_t bytes = (int64_t)gemm_compute_bytes(g);
    thin s = {.plan = plan, .g = g, .x = g->a.data, .ldx = g->a.rs, .sums = memory + plan->a_bytes};
    s.part = pick_part(g->b.dtype, by_pairs(g));
    s.x_bytes = by_pairs(g) ? (int64_t)sizeof(uint16_t) : bytes;
    s.k_parts = gemm_blocks(g->k, plan->kc);
    if (copies_a(g)) {
        gemm_packer pack = WK_ISA(gemm_pick_packer)(g->a.dtype, 1);
        for (int64_t i = 0; i < g->m; i++)
            pack(memory + i * g->k * bytes, g->k,
                 (const char *)g->a.data + i * g->a.rs * (int64_t)wk_bytes(g->a.dtype), g->a.cs, 0, g->k, 1);
        s.x = memory;
        s.ldx = g->k;
    }
    wk_parallel_for(plan->tasks, part_task, &s);
    if (s.k_parts > 1)
        wk_parallel_for(gemm_blocks(g->n, FINISH_COLUMNS), finish_task, &s);
}
