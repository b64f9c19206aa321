/* reduce_engine.c: the one reduction engine: which way to walk, how to cut, and the three compute types. */
#include <float.h>
#include "core/host.h"
#include "core/memory.h"
#include "core/pool.h"
#include "block.h"
#include "reduce.h"
#include "stream.h"
#include "walk.h"

enum {
    BLOCK = 1024,
    CHUNK = 1 << 16,
    TASK_ELEMENTS = 1 << 15,

    COLUMN_BYTES = 16 << 10, /* of a task's sums, */
    LEAST_COLUMNS = 512,
    LEAST_TASKS = 8,
    COLUMN_CHUNK = 512,
    ROWS = 4,
    ROW_START = 512 /* bytes */
};

typedef struct {
    wk_walk kept, reduced; /* of x */
    int64_t outs, n;       /* results; elements of each */
    int64_t chunk, chunks; /* elements of a chunk; chunks of a result */
    int64_t units, tasks;  /* chunks that one task folds, when walking rows */
    int64_t block;         /* elements folded at a time: more where they need not pass through a buffer */
    bool words;            /* packed bf16 to add up: needs no conversion */
    int64_t far;           /* of rows to add up that need none either: bytes to what is asked for; else 0 */
    bool extreme;          /* with its place, */
    bool least, of_abs;    /* of these */
    int64_t columns;       /* of a task, */
    bool by_columns;       /* where neighbouring results lie side by side in memory: walk across them */
    wk_dtype dtype;
    int64_t bytes; /* of an element of x */
    const char *data;
    wk_tensor *out, *indices;
} reduce_plan;

/* The sum of packed bf16 values, two at a time, so that nothing is converted or stored on the way. What follows is asked for:
 * with so little to do for a line the processor is too late for memory by itself. */
static float row_sum_bf16(const char *xs, int64_t n)
{
    typedef uint32_t words __attribute__((vector_size(WK_VEC_BYTES)));
    typedef float floats __attribute__((vector_size(WK_VEC_BYTES)));
    enum { VALUES = WK_VEC_BYTES / 2, AHEAD = 4096 };
    floats s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};
    int64_t i = 0;
    for (; i + 2 * VALUES <= n; i += 2 * VALUES) {
        words v[2];
        memcpy(v, xs + 2 * i, sizeof v);
        wk_ask_lines(xs + 2 * i, sizeof v, AHEAD);
        s0 += (floats)(v[0] << 16);
        s1 += (floats)(v[0] & 0xFFFF0000u);
        s2 += (floats)(v[1] << 16);
        s3 += (floats)(v[1] & 0xFFFF0000u);
    }
    s0 = (s0 + s1) + (s2 + s3);
    float sum = 0;
    for (size_t l = 0; l < sizeof s0 / sizeof sum; l++)
        sum += s0[l];
    for (; i < n; i++) {
        uint16_t x;
        memcpy(&x, xs + 2 * i, 2);
        sum += wk_bf16_to_f32(x);
    }
    return sum;
}

/* Where the extreme of n elements is, for each width of floats; OF_WIDTH: an instruction on lanes of it. */
#define INT int16_t
#define UINT uint16_t
#define OF_WIDTH(name, end) _mm512_##name##16##end
#define FN(name) name##_16
#include "extreme.inc.h"
#define INT int32_t
#define UINT uint32_t
#define OF_WIDTH(name, end) _mm512_##name##32##end
#define FN(name) name##_32
#include "extreme.inc.h"
#define INT int64_t
#define UINT uint64_t
#define OF_WIDTH(name, end) _mm512_##name##64##end
#define FN(name) name##_64
#include "extreme.inc.h"

static int64_t find_extreme(const reduce_plan *p, wk_dtype dtype, const void *xs, int64_t n)
{
    switch (dtype) {
    case WK_F16: return find_extreme_16(p, xs, n, 0x7C00);
    case WK_BF16: return find_extreme_16(p, xs, n, 0x7F80);
    case WK_F32: return find_extreme_32(p, xs, n, 0x7F800000);
    default: return find_extreme_64(p, xs, n, 0x7FF0000000000000);
    }
}

/* Sums of n columns of packed bf16: where the words of a vector have their halves, those of the even columns go before those of
 * the odd ones. */
typedef uint32_t column_words __attribute__((vector_size(WK_VEC_BYTES)));
typedef float column_floats __attribute__((vector_size(WK_VEC_BYTES), may_alias));
enum { WORD_LANES = WK_VEC_BYTES / 4, WORD_COLUMNS = 2 * WORD_LANES };

/* A row added to them; what follows in the rows to come is asked for, `far` bytes from here. */
static void add_row_bf16(float *sums, const uint16_t *xs, int64_t n, int64_t far)
{
    int64_t i = 0;
    for (; i + WORD_COLUMNS <= n; i += WORD_COLUMNS) {
        column_words v;
        column_floats *to = (column_floats *)(sums + i);
        memcpy(&v, xs + i, sizeof v);
        wk_ask_lines(xs + i, sizeof v, far);
        to[0] += (column_floats)(v << 16);
        to[1] += (column_floats)(v & 0xFFFF0000u);
    }
    for (; i < n; i++)
        sums[i] += wk_bf16_to_f32(xs[i]);
}

/* acc += sums, which become zero. */
static void take_sums_bf16(double *acc, float *sums, int64_t n)
{
    int64_t i = 0;
    for (; i + WORD_COLUMNS <= n; i += WORD_COLUMNS)
        for (int k = 0; k < WORD_LANES; k++) {
            acc[i + 2 * k] += sums[i + k];
            acc[i + 2 * k + 1] += sums[i + WORD_LANES + k];
        }
    for (; i < n; i++)
        acc[i] += sums[i];
    memset(sums, 0, (size_t)n * sizeof *sums);
}

#include "real_f32.h"
#define T float
#define ACC double
#define T_COMPUTE WK_COMPUTE_F32
#define T_ABS fabsf
#define T_EXP wk_expf
#define T_NAN(x) ((x) != (x))
#define T_IS_FLOAT
#define T_MIN (-INFINITY)
#define T_MAX INFINITY
#include "reduce.inc.h"
#undef T
#undef T_COMPUTE
#undef T_ABS
#undef T_EXP

#include "real_f64.h"
#define T double
#define T_COMPUTE WK_COMPUTE_F64
#define T_ABS fabs
#define T_EXP exp
#include "reduce.inc.h"
#undef T
#undef ACC
#undef T_COMPUTE
#undef T_ABS
#undef T_EXP
#undef T_NAN
#undef T_IS_FLOAT
#undef T_MIN
#undef T_MAX

#undef FN
#define FN(name) name##_i64
#define T int64_t
#define ACC int64_t
#define T_COMPUTE WK_COMPUTE_I64
#define T_ABS(x) ((x) < 0 ? -(x) : (x))
#define T_EXP(x) (x) /* there is no such op on integers */
#define T_NAN(x) false
#define T_MIN INT64_MIN
#define T_MAX INT64_MAX
#include "reduce.inc.h"

/* Splits x's dimensions into those that stay and those that are reduced, each joined where possible. */
static void split_dims(const wk_tensor *x, unsigned set, wk_walk *kept, wk_walk *reduced)
{
    int64_t strides[2][1][WK_MAX_RANK];
    wk_walk *walks[2] = {kept, reduced};
    kept->rank = reduced->rank = 0;
    for (int d = 0; d < x->rank; d++) {
        int which = set >> d & 1;
        wk_walk *w = walks[which];
        w->shape[w->rank] = x->shape[d];
        strides[which][0][w->rank++] = x->strides[d];
    }
    for (int i = 0; i < 2; i++) {
        walks[i]->rank = wk_shape_coalesce(walks[i]->rank, walks[i]->shape, 1, strides[i]);
        memcpy(walks[i]->strides, strides[i][0], sizeof walks[i]->strides);
    }
}

static int64_t walk_count(const wk_walk *w) { return wk_shape_count(w->rank, w->shape); }

static int64_t column_tasks(const reduce_plan *p)
{
    int64_t width = p->kept.shape[p->kept.rank - 1];
    return p->outs / width * ((width + p->columns - 1) / p->columns) * p->chunks;
}

/* As many columns to a task as sums of the compute type stay in the first-level cache, less where rows have to be brought to it
 * first, and where there would be few tasks for much work. */
static void plan_columns(reduce_plan *p, bool as_is)
{
    int64_t rows = p->n < p->chunk ? p->n : p->chunk;
    p->columns = COLUMN_BYTES / (as_is ? 1 : 2) / (int64_t)wk_compute_bytes(wk_dtypes[p->dtype].compute);
    while (p->columns > LEAST_COLUMNS && column_tasks(p) < LEAST_TASKS && p->columns * rows > TASK_ELEMENTS)
        p->columns /= 2;
    p->tasks = column_tasks(p);
}

static bool goes_by_columns(const wk_walk *k, const wk_walk *r)
{
    bool side_by_side = k->rank > 0 && k->strides[k->rank - 1] == 1 && k->shape[k->rank - 1] >= 16;
    return side_by_side && !(r->rank > 0 && r->strides[r->rank - 1] == 1);
}

/* as_is: elements are folded where they lie. */
static void plan_cuts(reduce_plan *p, bool as_is)
{
    p->chunk = p->by_columns ? COLUMN_CHUNK : CHUNK;
    p->chunks = p->n ? (p->n + p->chunk - 1) / p->chunk : 1;
    if (p->by_columns) {
        plan_columns(p, as_is);
        return;
    }
    int64_t unit = p->n < p->chunk ? p->n : p->chunk;
    p->units = TASK_ELEMENTS / (unit + 16) + 1;
    p->tasks = (p->outs * p->chunks + p->units - 1) / p->units;
}

/* Of rows, or of the pieces that are read of them, so many as what is asked for is ahead. */
static int64_t rows_ahead(const reduce_plan *p)
{
    int64_t width = p->kept.shape[p->kept.rank - 1],
            piece = (width < p->columns ? width : p->columns) * p->bytes;
    return (wk_host_ahead.one + piece - 1) / piece;
}

wk_status WK_ISA(wk_reduce)(wk_reduction how, const wk_tensor *x, unsigned set, const wk_tensor *center,
                            wk_tensor *out, wk_tensor *indices)
{
    reduce_plan p = {.dtype = x->dtype,
                     .bytes = (int64_t)wk_bytes(x->dtype),
                     .data = wk_ptr(x),
                     .out = out,
                     .indices = indices};
    split_dims(x, set, &p.kept, &p.reduced);
    p.outs = walk_count(&p.kept);
    p.n = walk_count(&p.reduced);
    if (p.outs == 0)
        return WK_OK;
    bool packed = p.reduced.rank == 1 && p.reduced.strides[0] == 1;
    p.by_columns = goes_by_columns(&p.kept, &p.reduced);
    p.words = how == WK_R_SUM && x->dtype == WK_BF16 && (p.by_columns || packed);
    bool as_is = p.words || x->dtype == wk_compute_dtype(wk_dtypes[x->dtype].compute);
    plan_cuts(&p, as_is);
    if (how == WK_R_SUM && p.by_columns && p.reduced.rank > 0 && as_is)
        p.far = rows_ahead(&p) * p.reduced.strides[p.reduced.rank - 1] * p.bytes;
    p.extreme = how == WK_R_MIN || how == WK_R_MAX || how == WK_R_AMAX;
    p.least = how == WK_R_MIN;
    p.of_abs = how == WK_R_AMAX;
    bool of_bits = p.extreme && wk_dtypes[x->dtype].is_float;
    p.block = packed && (as_is || of_bits) ? 4 * BLOCK : BLOCK;
    switch (wk_dtypes[x->dtype].compute) {
    case WK_COMPUTE_F32: return reduce_f32(&p, how, center);
    case WK_COMPUTE_F64: return reduce_f64(&p, how, center);
    default: return reduce_i64(&p, how, center);
    }
}

wk_status WK_ISA(wk_sum_to)(const wk_tensor *x, wk_tensor *out)
{
    int lead = x->rank - out->rank;
    unsigned set = 0;
    for (int d = 0; d < x->rank; d++) {
        if (d < lead || (out->shape[d - lead] == 1 && x->shape[d] != 1))
            set |= 1u << d;
    }
    return WK_ISA(wk_reduce)(WK_R_SUM, x, set, NULL, out, NULL);
}
