/* scan.c: running sums, sorting and the largest k, line by line. */
#include "ops/scan.h"
#include "core/families.h"
#include "core/memory.h"
#include "core/pool.h"
#include "block.h"
#include "lines.h"
#include "sort.h"
#include "strided.h"

enum { TASK_ELEMENTS = 1 << 14, PIECE = 1 << 15, LONG_LINE = 1 << 17 };

/* ---- running sums ---- */

#define T float
#define ACC double
#define FN(name) name##_f32
#include "scan.inc.h"
#define T double
#define ACC double
#define FN(name) name##_f64
#include "scan.inc.h"
#define T int64_t
#define ACC int64_t
#define FN(name) name##_i64
#include "scan.inc.h"

/* The dim as a set of bits; none for a scalar, which is a line of one element. */
static unsigned dim_set(const wk_call *c)
{
    int rank = c->in[0]->rank;
    return rank ? 1u << wk_shape_dim(rank, WK_PARAMS(c, wk_scan_params)->dim) : 0;
}

static wk_status run_sums(wk_call *c, const wk_tensor *x, const wk_line_fn *by_compute)
{
    wk_compute compute = wk_dtypes[c->dtype].compute;
    wk_lines l = {.in = {x},
                  .in_compute = {compute},
                  .n_in = 1,
                  .out = {c->out[0]},
                  .out_compute = {compute},
                  .n_out = 1,
                  .set = dim_set(c),
                  .fn = by_compute[compute]};
    return WK_ISA(wk_lines_run)(&l);
}

static wk_status run_cumsum(wk_call *c)
{
    static const wk_line_fn fns[] = {
        [WK_COMPUTE_F32] = cumsum_f32, [WK_COMPUTE_F64] = cumsum_f64, [WK_COMPUTE_I64] = cumsum_i64};
    return run_sums(c, c->in[0], fns);
}

static wk_status run_cumsum_backward(wk_call *c)
{
    static const wk_line_fn fns[] = {[WK_COMPUTE_F32] = cumsum_back_f32,
                                     [WK_COMPUTE_F64] = cumsum_back_f64,
                                     [WK_COMPUTE_I64] = cumsum_back_i64};
    return run_sums(c, c->in[1], fns);
}

/* ---- keys ---- */

/* How the order asked for changes keys that ascend: bits turned around, and the key of a NaN. */
typedef struct {
    uint64_t flip, nan;
} order;

/* The bits of a float as a number in the same order; both zeros are one. */
static inline uint64_t float_key(uint64_t bits, int width, uint64_t infinity, order o)
{
    uint64_t sign = (uint64_t)1 << (width - 1), all = sign | (sign - 1), magnitude = bits & (sign - 1);
    uint64_t key = bits & sign && magnitude ? ~bits & all : bits | sign;
    return magnitude > infinity ? o.nan & all : key ^ (o.flip & all);
}

/* Pairs of elements [begin, begin + n) of a line; returns the bits in which their keys differ from the first's. */
typedef uint64_t pairs_fn(const void *line, int64_t begin, int64_t n, order o, void *pairs);

#define PAIRS(name, type, pair, make, key_of) \
    static uint64_t pairs_##name(const void *line, int64_t begin, int64_t n, order o, void *pairs) \
    { \
        const type *x = line; \
        pair *p = pairs; \
        uint64_t first, varies = 0; \
        (void)o; \
        { \
            type v = x[0]; \
            first = key_of; \
        } \
        for (int64_t i = begin; i < begin + n; i++) { \
            type v = x[i]; \
            uint64_t key = key_of; \
            varies |= key ^ first; \
            p[i] = make; \
        } \
        return varies; \
    }
#define NARROW key << 32 | (uint64_t)i
#define WIDE \
    (wk_pair64) { key, (uint64_t)i }

PAIRS(f32, uint32_t, wk_pair32, NARROW, float_key(v, 32, 0x7F800000, o))
PAIRS(f16, uint16_t, wk_pair32, NARROW, float_key(v, 16, 0x7C00, o))
PAIRS(bf16, uint16_t, wk_pair32, NARROW, float_key(v, 16, 0x7F80, o))
PAIRS(f64, uint64_t, wk_pair64, WIDE, float_key(v, 64, 0x7FF0000000000000, o))
PAIRS(u8, uint8_t, wk_pair32, NARROW, (uint8_t)(v ^ o.flip))
PAIRS(u32, uint32_t, wk_pair32, NARROW, (uint32_t)(v ^ o.flip))
PAIRS(i16, uint16_t, wk_pair32, NARROW, (uint16_t)(v ^ 0x8000 ^ o.flip))
PAIRS(i32, uint32_t, wk_pair32, NARROW, (uint32_t)(v ^ 0x80000000 ^ o.flip))
PAIRS(i64, uint64_t, wk_pair64, WIDE, v ^ 0x8000000000000000 ^ o.flip)

static pairs_fn *const pairs_of[WK_DTYPE_COUNT] = {
    [WK_F32] = pairs_f32, [WK_F16] = pairs_f16, [WK_BF16] = pairs_bf16,
    [WK_F64] = pairs_f64, [WK_U8] = pairs_u8,   [WK_U32] = pairs_u32,
    [WK_I64] = pairs_i64, [WK_I32] = pairs_i32, [WK_I16] = pairs_i16,
};

/* ---- a line ---- */

typedef struct {
    wk_dtype dtype;
    size_t bytes, pair; /* of an element; of a pair */
    const char *x;      /* lines of n elements, packed */
    char *values;       /* lines of k elements: sorted, and where they were; either may be NULL */
    uint32_t *indices;
    int64_t lines, n, k, per_task;
    order order;
    atomic_bool no_memory;
} plan;

typedef struct {
    const plan *p;
    int64_t line;
    void *pairs;
    _Atomic uint64_t varies;
} one_line;

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static const char *line_at(const plan *p, int64_t line) { return p->x + line * p->n * (int64_t)p->bytes; }

static void make_pairs(void *ctx, int64_t task)
{
    one_line *l = ctx;
    int64_t begin = task * PIECE, n = least(PIECE, l->p->n - begin);
    uint64_t varies = pairs_of[l->p->dtype](line_at(l->p, l->line), begin, n, l->p->order, l->pairs);
    atomic_fetch_or(&l->varies, varies);
}

static uint32_t place_of(const one_line *l, int64_t i)
{
    return l->p->pair == sizeof(wk_pair64) ? (uint32_t)((const wk_pair64 *)l->pairs)[i].place
                                           : (uint32_t)((const wk_pair32 *)l->pairs)[i];
}

#define PUT_VALUES(type) \
    for (int64_t i = begin; i < end; i++) \
    ((type *)to)[i] = ((const type *)from)[place_of(l, i)]

static void put_results(void *ctx, int64_t task)
{
    one_line *l = ctx;
    const plan *p = l->p;
    int64_t begin = task * PIECE, end = least(p->k, begin + PIECE);
    if (p->indices) {
        for (int64_t i = begin; i < end; i++)
            p->indices[l->line * p->k + i] = place_of(l, i);
    }
    if (!p->values)
        return;
    const char *from = line_at(p, l->line);
    char *to = p->values + l->line * p->k * (int64_t)p->bytes;
    switch (p->bytes) {
    case 1: PUT_VALUES(uint8_t); break;
    case 2: PUT_VALUES(uint16_t); break;
    case 4: PUT_VALUES(uint32_t); break;
    default: PUT_VALUES(uint64_t); break;
    }
}

/* a and b hold n pairs each. Where only a few are wanted, the rest is left unsorted. */
static void run_line(const plan *p, int64_t line, void *a, void *b)
{
    one_line l = {.p = p, .line = line, .pairs = a};
    int64_t n = p->n;
    bool wide = p->pair == sizeof(wk_pair64);
    wk_parallel_for((n + PIECE - 1) / PIECE, make_pairs, &l);
    if (p->k < n / 4) {
        wide ? WK_ISA(wk_choose64)(a, n, p->k) : WK_ISA(wk_choose32)(a, n, p->k);
        n = p->k;
    }
    l.pairs =
        wide ? (void *)WK_ISA(wk_sort64)(a, b, n, l.varies) : (void *)WK_ISA(wk_sort32)(a, b, n, l.varies);
    wk_parallel_for((p->k + PIECE - 1) / PIECE, put_results, &l);
}

static void run_lines(void *ctx, int64_t task)
{
    plan *p = ctx;
    size_t half = (size_t)p->n * p->pair;
    _Alignas(16) char small[16 << 10];
    char *buf = 2 * half <= sizeof small ? small : wk_scratch_alloc(2 * half);
    if (!buf) {
        atomic_store(&p->no_memory, true);
        return;
    }
    int64_t end = least(p->lines, (task + 1) * p->per_task);
    for (int64_t line = task * p->per_task; line < end; line++)
        run_line(p, line, buf, buf + half);
    if (buf != small)
        wk_scratch_free(buf, 2 * half);
}

/* Few long lines are taken one after the other, each shared among threads; many are shared among them whole. */
static wk_status run_plan(wk_call *c, plan *p)
{
    if (p->lines * p->k == 0)
        return WK_OK;
    bool few = p->lines < 8 && p->n >= LONG_LINE;
    p->per_task = few ? p->lines : TASK_ELEMENTS / (p->n + 16) + 1;
    if (few)
        run_lines(p, 0);
    else
        wk_parallel_for((p->lines + p->per_task - 1) / p->per_task, run_lines, p);
    return p->no_memory ? wk_call_fail(c, WK_ERR_MEMORY, "x", "out of memory for lines of %lld elements",
                                       (long long)p->n)
                        : WK_OK;
}

/* ---- lines along any dim ---- */

static wk_status run_sorting(wk_call *c, bool descending, bool nan_first, wk_tensor *values,
                             wk_tensor *indices)
{
    const wk_tensor *x = c->in[0], *out = values ? values : indices;
    int dim = wk_shape_dim(x->rank, WK_PARAMS(c, wk_scan_params)->dim), forth[WK_MAX_RANK], back[WK_MAX_RANK];
    bool is_last = x->rank == 0 || dim == x->rank - 1;
    if (!out || wk_count(out) == 0)
        return WK_OK;
    wk_scan_dim_last(x->rank, dim, forth, back);
    const wk_tensor *view = is_last ? x : wk_permute(x, forth),
                    *packed = view ? wk_tensor_packed(view) : NULL;
    wk_tensor *outs[2] = {values, indices}, *to[2];
    for (int i = 0; i < 2; i++) {
        to[i] = wk_scan_lines(outs[i], forth, is_last);
        if (!packed || (outs[i] && !to[i]))
            return wk_error_status();
    }
    plan p = {.dtype = x->dtype,
              .bytes = wk_bytes(x->dtype),
              .pair = wk_bytes(x->dtype) == 8 ? sizeof(wk_pair64) : sizeof(wk_pair32),
              .x = wk_ptr(packed),
              .values = to[0] ? wk_ptr(to[0]) : NULL,
              .indices = to[1] ? wk_ptr(to[1]) : NULL,
              .n = x->rank ? x->shape[dim] : 1,
              .k = x->rank ? out->shape[dim] : 1,
              .order = {descending ? UINT64_MAX : 0, nan_first ? 0 : UINT64_MAX}};
    p.lines = wk_count(x) / p.n;
    WK_TRY(run_plan(c, &p));
    for (int i = 0; i < 2 && !is_last; i++) {
        wk_tensor *moved = to[i] ? wk_permute(to[i], back) : NULL;
        if (to[i] && !moved)
            return wk_error_status();
        if (moved)
            WK_ISA(wk_tensor_copy)(moved, outs[i]);
    }
    return WK_OK;
}

static wk_status run_sort(wk_call *c)
{
    return run_sorting(c, WK_PARAMS(c, wk_scan_params)->descending, false, c->out[0], NULL);
}

static wk_status run_argsort(wk_call *c)
{
    return run_sorting(c, WK_PARAMS(c, wk_scan_params)->descending, false, NULL, c->out[0]);
}

static wk_status run_topk(wk_call *c) { return run_sorting(c, true, true, c->out[0], c->out[1]); }

const wk_impl WK_ISA(wk_cpu_scan)[] = {
    {"cumsum", "simd", run_cumsum, NULL, NULL}, {"cumsum_backward", "simd", run_cumsum_backward, NULL, NULL},
    {"sort", "simd", run_sort, NULL, NULL},     {"argsort", "simd", run_argsort, NULL, NULL},
    {"topk", "simd", run_topk, NULL, NULL},     {0},
};
