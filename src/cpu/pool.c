/* pool.c: pooling and its gradients. */
#include <float.h>
#include "ops/pool.h"
#include "core/families.h"
#include "core/memory.h"
#include "wick/ops.h"
#include "bands.h"
#include "block.h"
#include "stream.h"

enum { TASK_ELEMENTS = 1 << 14, PIECE_ELEMENTS = 1 << 9, POOL_SLACK = 16 };

typedef struct {
    wk_pool_shape s;
    const wk_tensor *x, *y; /* packed; y is dy in a gradient */
    wk_tensor *dx;
    const wk_tensor *indices;
    bool max, exclude_pad, stream;
    bool pairs;             /* windows across as across_pairs takes them */
    bool triples;           /* maxima of 3 by 3 elements of f32 at every second column */
    bool quads;             /* all windows are 2 by 2 elements of f32 that no other has */
    wk_pool_window inner;   /* the results across whose windows lie in the row whole */
    const int64_t *counted; /* of each result across: elements that count */
    int64_t rows;           /* of results, or of dx */
    _Atomic int64_t bad_index;
} pool_plan;

/* Plane i of x, y (or dy) or dx. */
static inline char *pool_plane(const pool_plan *p, const wk_tensor *t, int64_t i)
{
    int64_t elements = t == p->y ? p->s.h.out * p->s.w.out : p->s.h.in * p->s.w.in;
    return (char *)wk_ptr(t) + i * elements * (int64_t)wk_bytes(t->dtype);
}

/* Asks for the rows of x that come into the windows some rows of results later. They may lie behind x, where asking
 * does no harm. */
static inline void pool_prefetch(const pool_plan *p, const char *plane, int64_t row)
{
    enum { AHEAD = 8192, MOST = 4096 };
    int64_t bytes = p->s.w.in * (int64_t)wk_bytes(p->x->dtype), n = bytes * p->s.h.stride;
    uintptr_t at = (uintptr_t)plane + (uintptr_t)(row * bytes + AHEAD);
    for (int64_t i = 0; i < n && i < MOST; i += WK_LINE)
        __builtin_prefetch((const void *)(at + (uintptr_t)i), 0, 2);
}

/* The same for rows that go on where these end, two lines at a time: the processor has room for a few, and waits when it
 * is asked for a row's at once. */
static inline void pool_ahead(const void *p)
{
    enum { AHEAD = 4096 };
    uintptr_t at = (uintptr_t)p + AHEAD;
    __builtin_prefetch((const void *)at, 0, 3);
    __builtin_prefetch((const void *)(at + WK_LINE), 0, 3);
}

/* Values that the steps of a row of results need: two rows of x, and some for each result. */
static inline int64_t pool_scratch(const pool_plan *p)
{
    return 2 * p->s.w.in + 4 * p->s.w.out + 7 * POOL_SLACK;
}

/* The windows that element i is in. */
static inline wk_pool_window pool_windows_over(const wk_pool_dim *d, int64_t i)
{
    int64_t first = i + d->padding - d->kernel + 1, end = (i + d->padding) / d->stride + 1;
    first = first > 0 ? (first + d->stride - 1) / d->stride : 0;
    return (wk_pool_window){first, end < d->out ? end : d->out};
}

/* ---- 3 by 3 in registers ---- */

#ifdef __AVX512F__
enum { WIDE_TRIPLES = true };

/* As largest_f32. */
static inline __m512 largest_of(__m512 a, __m512 b, __m512 c)
{
    __m512 m = _mm512_max_ps(c, _mm512_max_ps(b, a));
    return _mm512_mask_add_ps(m, _mm512_cmp_ps_mask(b, c, _CMP_UNORD_Q), b, c);
}

/* The maxima of 16 columns of three rows, of which n are there. */
static inline __m512 largest_columns(const float *a, int64_t pitch, int64_t n)
{
    __mmask16 there = n >= 16 ? 0xFFFF : n > 0 ? (__mmask16)((1u << n) - 1) : 0;
    return largest_of(_mm512_maskz_loadu_ps(there, a), _mm512_maskz_loadu_ps(there, a + pitch),
                      _mm512_maskz_loadu_ps(there, a + 2 * pitch));
}

/* The maxima of n windows at every second column of the three rows from a on: the last column of one is the first of the
 * next. */
static void wide_triples(const float *a, int64_t pitch, int64_t n, float *y)
{
    const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30),
                  odd = _mm512_add_epi32(even, _mm512_set1_epi32(1));
    int64_t left = 2 * n + 1; /* columns from a on */
    __m512 low = largest_columns(a, pitch, left), high = largest_columns(a + 16, pitch, left - 16);
    __m512 first = _mm512_permutex2var_ps(low, even, high), second = _mm512_permutex2var_ps(low, odd, high);
    for (; n > 0; n -= 16, y += 16) {
        a += 32, left -= 32;
        pool_ahead(a + pitch);
        pool_ahead(a + 2 * pitch);
        low = largest_columns(a, pitch, left), high = largest_columns(a + 16, pitch, left - 16);
        __m512 next = _mm512_permutex2var_ps(low, even, high);
        __m512 third = (__m512)_mm512_alignr_epi32((__m512i)next, (__m512i)first, 1);
        __mmask16 there = n >= 16 ? 0xFFFF : (__mmask16)((1u << n) - 1);
        _mm512_mask_storeu_ps(y, there, largest_of(first, second, third));
        first = next;
        second = _mm512_permutex2var_ps(low, odd, high);
    }
}
#else
enum { WIDE_TRIPLES = false };
static void wide_triples(const float *a, int64_t pitch, int64_t n, float *y)
{
    (void)a, (void)pitch, (void)n, (void)y;
}
#endif

#include "real_f32.h"
#include "pool.inc.h"
#include "real_f64.h"
#include "pool.inc.h"

/* ---- tasks ---- */

typedef void band_fn(pool_plan *p, int64_t begin, int64_t end, void *buf);

static bool in_f64(const pool_plan *p) { return p->x->dtype == WK_F64; }

/* Rows of results that are stored together: a few, so that the processor reads what the next ones need meanwhile. */
static int64_t piece_rows(const pool_plan *p) { return PIECE_ELEMENTS / (p->s.w.out + 1) + 1; }

static void pool_band(pool_plan *p, int64_t begin, int64_t end, void *buf)
{
    for (int64_t i = begin, rows = piece_rows(p); i < end; i += rows) {
        int64_t stop = i + rows < end ? i + rows : end;
        in_f64(p) ? pool_piece_f64(p, i, stop, buf) : pool_piece_f32(p, i, stop, buf);
    }
}

static void max_band(pool_plan *p, int64_t begin, int64_t end, void *buf)
{
    in_f64(p) ? max_band_f64(p, begin, end, buf) : max_band_f32(p, begin, end, buf);
}

static void avg_grad_band(pool_plan *p, int64_t begin, int64_t end, void *buf)
{
    in_f64(p) ? avg_grad_band_f64(p, begin, end, buf) : avg_grad_band_f32(p, begin, end, buf);
}

static void max_grad_band(pool_plan *p, int64_t begin, int64_t end, void *buf)
{
    for (int64_t i = begin; i < end; i++)
        in_f64(p) ? max_grad_plane_f64(p, i, buf) : max_grad_plane_f32(p, i, buf);
}

typedef struct {
    pool_plan *p;
    band_fn *fn;
} band_ctx;

static void run_band(void *ctx, int64_t begin, int64_t end, void *buf)
{
    const band_ctx *b = ctx;
    b->fn(b->p, begin, end, buf);
}

/* Runs fn over bands of rows. A row costs about `cost` elements; a task needs scratch for `fixed` values and for
 * `each` more a row. */
static wk_status run_bands(pool_plan *p, band_fn *fn, int64_t cost, int64_t fixed, int64_t each)
{
    int64_t per_task = TASK_ELEMENTS / (cost + 1) + 1;
    if (per_task > p->rows)
        per_task = p->rows;
    size_t scratch = (size_t)(fixed + each * per_task) * 8;
    return WK_ISA(wk_bands_run)(p->rows, per_task, scratch, run_band, &(band_ctx){p, fn});
}

static bool is_large(const wk_tensor *t)
{
    return wk_count(t) * (int64_t)wk_bytes(t->dtype) >= WK_STREAM_BYTES;
}

/* ---- forward ---- */

/* The results whose windows lie in the row whole. */
static wk_pool_window inner_windows(const wk_pool_dim *d)
{
    int64_t room = d->in + d->padding - d->kernel;
    wk_pool_window w = {(d->padding + d->stride - 1) / d->stride, room < 0 ? 0 : room / d->stride + 1};
    w.end = w.end < d->out ? w.end : d->out;
    w.begin = w.begin < w.end ? w.begin : w.end;
    return w;
}

/* Whether all windows lie side by side, 2 wide, and in the tensor whole. */
static bool halves(const wk_pool_dim *d)
{
    return d->kernel == 2 && d->stride == 2 && d->padding == 0 && 2 * d->out <= d->in;
}

static wk_status make_plan(wk_call *c, pool_plan *p, bool max)
{
    const wk_pool_options *o = c->params;
    WK_TRY(wk_pool_shapes(c, &p->s));
    p->max = max;
    p->exclude_pad = o && o->exclude_pad;
    p->inner = inner_windows(&p->s.w);
    p->x = wk_tensor_packed(c->in[0]);
    return p->x ? WK_OK : wk_error_status();
}

static wk_status run_forward(wk_call *c, bool max)
{
    pool_plan p = {.y = c->out[0], .indices = max ? c->out[1] : NULL};
    WK_TRY(make_plan(c, &p, max));
    const wk_pool_dim *h = &p.s.h, *w = &p.s.w;
    p.rows = p.s.planes * h->out;
    if (p.rows == 0)
        return WK_OK;
    p.pairs = w->stride == 2 && (w->kernel == 2 || w->kernel == 3);
    p.triples = max && h->kernel == 3 && w->kernel == 3 && w->stride == 2 && c->dtype == WK_F32 &&
                p.inner.end - p.inner.begin >= POOL_SLACK;
    p.quads = halves(h) && halves(w) && c->dtype == WK_F32;
    p.stream = is_large(p.x); /* what is read pushes the results out of the cache */
    int64_t cost = w->in * (h->kernel < h->in ? h->kernel : h->in);
    return p.indices
               ? run_bands(&p, max_band, cost, w->in + w->out, w->out)
               : run_bands(&p, pool_band, cost, pool_scratch(&p) + POOL_SLACK + piece_rows(&p) * w->out, 0);
}

static wk_status run_max_pool(wk_call *c) { return run_forward(c, true); }
static wk_status run_avg_pool(wk_call *c) { return run_forward(c, false); }

/* ---- gradients ---- */

static wk_status run_max_pool_backward(wk_call *c)
{
    pool_plan p = {.dx = c->out[0]};
    WK_TRY(make_plan(c, &p, true));
    p.rows = p.s.planes;
    if (p.rows == 0)
        return WK_OK;
    p.y = wk_tensor_packed(c->in[1]);
    if (!p.y || (c->in[2] && !(p.indices = wk_tensor_packed(c->in[2]))))
        return wk_error_status();
    int64_t plane = p.s.h.in * p.s.w.in, converted = wk_bytes(c->dtype) < 4 ? plane : 0;
    WK_TRY(run_bands(&p, max_grad_band, plane, p.s.w.in + 3 * p.s.w.out + converted, 0));
    WK_NEED(!p.bad_index, c, WK_ERR_INDEX, "indices", "expected places below %lld, got %lld",
            (long long)plane, (long long)p.bad_index - 1);
    return WK_OK;
}

static wk_status run_avg_pool_backward(wk_call *c)
{
    pool_plan p = {.dx = c->out[0]};
    WK_TRY(make_plan(c, &p, false));
    const wk_pool_dim *h = &p.s.h, *w = &p.s.w;
    p.rows = p.s.planes * h->in;
    if (p.rows == 0)
        return WK_OK;
    p.y = wk_tensor_packed(c->in[1]);
    wk_tensor *counted = wk_tensor_new(c->device, WK_I64, 1, &w->out);
    if (!p.y || !counted)
        return wk_error_status();
    int64_t *counts = wk_ptr(counted);
    for (int64_t o = 0; o < w->out; o++)
        counts[o] = wk_pool_counted(w, o, p.exclude_pad);
    p.counted = counts;
    p.stream = is_large(c->out[0]);
    return run_bands(&p, avg_grad_band, w->in * ((h->kernel < h->in ? h->kernel : h->in) / h->stride + 1),
                     2 * w->out, w->in);
}

/* ---- whole planes: reductions ---- */

/* x [.., h, w] as [.., h * w], and dy to go with it. */
static wk_tensor *joined(const wk_tensor *t) { return wk_flatten(t, t->rank - 2, t->rank - 1); }

static wk_status run_global(wk_call *c)
{
    bool max = strstr(c->op->name, "max") != NULL;
    wk_tensor *x = joined(c->in[0]), *out = joined(c->out[0]);
    wk_tensor *y = max ? wk_max(x, 1, (int64_t[]){-1}, 1, NULL) : wk_mean(x, 1, (int64_t[]){-1}, 1);
    return y && out ? wk_copy_into(out, y) : wk_error_status();
}

static wk_status run_global_backward(wk_call *c)
{
    bool max = strstr(c->op->name, "max") != NULL;
    wk_tensor *x = joined(c->in[0]), *dy = joined(c->in[1]), *out = joined(c->out[0]);
    wk_tensor *dx =
        max ? wk_max_backward(x, dy, 1, (int64_t[]){-1}, 1) : wk_mean_backward(x, dy, 1, (int64_t[]){-1}, 1);
    return dx && out ? wk_copy_into(out, dx) : wk_error_status();
}

const wk_impl WK_ISA(wk_cpu_pool)[] = {
    {"max_pool1d", "simd", run_max_pool, NULL, NULL},
    {"max_pool2d", "simd", run_max_pool, NULL, NULL},
    {"avg_pool1d", "simd", run_avg_pool, NULL, NULL},
    {"avg_pool2d", "simd", run_avg_pool, NULL, NULL},
    {"global_max_pool2d", "simd", run_global, NULL, NULL},
    {"global_avg_pool2d", "simd", run_global, NULL, NULL},
    {"max_pool1d_backward", "simd", run_max_pool_backward, NULL, NULL},
    {"max_pool2d_backward", "simd", run_max_pool_backward, NULL, NULL},
    {"avg_pool1d_backward", "simd", run_avg_pool_backward, NULL, NULL},
    {"avg_pool2d_backward", "simd", run_avg_pool_backward, NULL, NULL},
    {"global_max_pool2d_backward", "simd", run_global_backward, NULL, NULL},
    {"global_avg_pool2d_backward", "simd", run_global_backward, NULL, NULL},
    {0},
};
