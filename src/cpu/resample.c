/* resample.c: upsampling and its gradients. */
#include "ops/resample.h"
#include "core/families.h"
#include "core/host.h"
#include "core/memory.h"
#include "bands.h"
#include "block.h"
#include "stream.h"

enum { TASK_ELEMENTS = 1 << 12 };

typedef struct {
    wk_upsample_shape s;
    const wk_tensor *x;           /* packed; dy in a gradient */
    wk_tensor *y;                 /* dx in a gradient */
    const int64_t *h_lo, *w_lo;   /* where each row and column of the result comes from */
    const double *h_t, *w_t;      /* linear: how far it lies on the way to the next one */
    const void *w_left, *w_right; /* linear: the columns' shares of both, of the compute type */
    const int64_t
        *h_first; /* gradient: the first row of the result that comes from row i of x or a later one */
    bool linear, stream;
    int64_t rows;
} plan;

#include "real_f32.h"
#include "resample.inc.h"
#include "real_f64.h"
#include "resample.inc.h"

/* ---- nearest: elements are only moved, so their size is all that matters ---- */

#define SPREAD(type) \
    static void spread_##type(const plan *p, const void *from, void *to) \
    { \
        const type *restrict x = from; \
        type *restrict y = to; \
        const wk_upsample_dim *w = &p->s.w; \
        if (w->out == 2 * w->in) { \
            for (int64_t i = 0; i < w->in; i++) \
                y[2 * i] = y[2 * i + 1] = x[i]; \
        } else { \
            for (int64_t o = 0; o < w->out; o++) \
                y[o] = x[p->w_lo[o]]; \
        } \
    }

SPREAD(uint8_t)
SPREAD(uint16_t)
SPREAD(uint32_t)
SPREAD(uint64_t)

static void spread_row(const plan *p, size_t bytes, const void *x, void *y)
{
    switch (bytes) {
    case 1: spread_uint8_t(p, x, y); break;
    case 2: spread_uint16_t(p, x, y); break;
    case 4: spread_uint32_t(p, x, y); break;
    default: spread_uint64_t(p, x, y); break;
    }
}

/* The row of x that row i of the result repeats, both counted through all planes. */
static inline int64_t source_row(const plan *p, int64_t i)
{
    return i / p->s.h.out * p->s.h.in + p->h_lo[i % p->s.h.out];
}

#if defined(__AVX512BW__)
/* A row of n whole lines at x, each element twice, to `rows` rows at y, out of registers past the cache: what goes through
 * memory on its way makes the stores pause. */
#define DOUBLE(bits) \
    static void double_##bits(const char *x, size_t n, char *y, int64_t rows) \
    { \
        const __m512i quarters = _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7); \
        const int64_t ahead = wk_host_ahead.one; \
        for (size_t k = 0; k < n; k++) { \
            const char *line = x + k * WK_LINE; \
            wk_ask(line, ahead); \
            __m512i v = _mm512_permutexvar_epi64(quarters, _mm512_loadu_si512(line)); \
            __m512i first = _mm512_unpacklo_epi##bits(v, v), second = _mm512_unpackhi_epi##bits(v, v); \
            for (int64_t r = 0; r < rows; r++) { \
                __m512i *to = (__m512i *)(y + ((size_t)r * n + k) * 2 * WK_LINE); \
                _mm512_stream_si512(to, first); \
                _mm512_stream_si512(to + 1, second); \
            } \
        } \
    }

DOUBLE(8)
DOUBLE(16)
DOUBLE(32)
DOUBLE(64)

static bool double_band(const plan *p, int64_t begin, int64_t end)
{
    static void (*const fns[])(const char *, size_t, char *,
                               int64_t) = {[1] = double_8, [2] = double_16, [4] = double_32, [8] = double_64};
    size_t bytes = wk_bytes(p->y->dtype), source = (size_t)p->s.w.in * bytes;
    if (p->s.w.out != 2 * p->s.w.in || source % WK_LINE != 0)
        return false;
    for (int64_t i = begin, rows; i < end; i += rows) {
        int64_t from = source_row(p, i);
        for (rows = 1; i + rows < end && source_row(p, i + rows) == from;)
            rows++;
        fns[bytes]((const char *)wk_ptr(p->x) + (size_t)from * source, source / WK_LINE,
                   (char *)wk_ptr(p->y) + (size_t)i * 2 * source, rows);
    }
    return true;
}
#else
static bool double_band(const plan *p, int64_t begin, int64_t end)
{
    (void)p, (void)begin, (void)end;
    return false;
}
#endif

/* Rows of the result, each made once and repeated. Where rows are whole cache lines a large result is written row by
 * row past the cache; else band by band, from a copy. */
static void nearest_band(const plan *p, int64_t begin, int64_t end, void *buf)
{
    size_t bytes = wk_bytes(p->y->dtype), width = (size_t)p->s.w.out * bytes,
           source = (size_t)p->s.w.in * bytes;
    char *y = (char *)wk_ptr(p->y) + (size_t)begin * width, *out = p->stream ? buf : y;
    bool by_rows = p->stream && width % WK_LINE == 0 && (uintptr_t)y % WK_LINE == 0;
    int64_t last = -1;
    if (by_rows && double_band(p, begin, end))
        return;
    for (int64_t i = begin; i < end; i++) {
        int64_t from = source_row(p, i);
        const char *x = (const char *)wk_ptr(p->x) + (size_t)from * source;
        char *to = by_rows ? out : out + (size_t)(i - begin) * width;
        if (from != last) {
            spread_row(p, bytes, x, to);
            wk_ask_lines(x, p->stream ? source : 0, wk_host_ahead.one); /* later rows */
        } else if (!by_rows) {
            memcpy(to, to - width, width);
        }
        if (by_rows)
            WK_ISA(wk_block_copy)(to, y + (size_t)(i - begin) * width, width, true);
        last = from;
    }
    if (p->stream && !by_rows)
        WK_ISA(wk_block_copy)(out, y, (size_t)(end - begin) * width, true);
}

/* ---- tasks ---- */

typedef void band_fn(const plan *p, int64_t begin, int64_t end, void *buf);

typedef struct {
    const plan *p;
    band_fn *fn;
} band_ctx;

static void run_band(void *ctx, int64_t begin, int64_t end, void *buf)
{
    const band_ctx *b = ctx;
    b->fn(b->p, begin, end, buf);
}

/* Runs fn over bands of the rows of y. A task needs scratch for `fixed` values and for its rows. */
static wk_status run_bands(plan *p, band_fn *fn, int64_t fixed)
{
    int64_t width = p->y->shape[p->y->rank - 1];
    p->rows = wk_count(p->y) / width;
    p->stream = wk_count(p->y) * (int64_t)wk_bytes(p->y->dtype) >= WK_STREAM_BYTES;
    int64_t per_task = TASK_ELEMENTS / width + 1;
    size_t scratch = (size_t)(fixed + width * per_task) * 8;
    return WK_ISA(wk_bands_run)(p->rows, per_task, scratch, run_band, &(band_ctx){p, fn});
}

/* ---- maps ---- */

/* Where each element along a dimension comes from; *t is NULL for nearest. NULL with an error. */
static const int64_t *make_map(const wk_call *c, const wk_upsample_dim *d, bool align_corners,
                               const double **t)
{
    wk_tensor *lo = wk_tensor_new(c->device, WK_I64, 1, &d->out);
    wk_tensor *part = lo && t ? wk_tensor_new(c->device, WK_F64, 1, &d->out) : NULL;
    if (!lo || (t && !part))
        return NULL;
    int64_t *from = wk_ptr(lo);
    double *fraction = part ? wk_ptr(part) : NULL;
    for (int64_t o = 0; o < d->out; o++)
        from[o] = part ? wk_linear_source(d, align_corners, o, &fraction[o]) : wk_nearest_source(d, o);
    if (t)
        *t = fraction;
    return from;
}

/* first[i]: the first element of the result with lo >= i, for i up to and with in. */
static const int64_t *make_first(const wk_call *c, const wk_upsample_dim *d, const int64_t *lo)
{
    wk_tensor *t = wk_tensor_new(c->device, WK_I64, 1, (int64_t[]){d->in + 1});
    if (!t)
        return NULL;
    int64_t *first = wk_ptr(t), o = 0;
    for (int64_t i = 0; i <= d->in; i++) {
        while (o < d->out && lo[o] < i)
            o++;
        first[i] = o;
    }
    return first;
}

static wk_status make_shares(const wk_call *c, plan *p)
{
    wk_tensor *t = wk_tensor_new(c->device, wk_stat_dtype(c->dtype), 2, (int64_t[]){2, p->s.w.out});
    if (!t)
        return wk_error_status();
    char *left = wk_ptr(t), *right = left + p->s.w.out * (int64_t)wk_bytes(t->dtype);
    c->dtype == WK_F64 ? shares_f64(p->w_t, p->s.w.out, left, right)
                       : shares_f32(p->w_t, p->s.w.out, left, right);
    p->w_left = left;
    p->w_right = right;
    return WK_OK;
}

static wk_status make_plan(wk_call *c, plan *p)
{
    p->linear = strstr(c->op->name, "bilinear") != NULL;
    p->y = c->out[0];
    WK_TRY(wk_upsample_shapes(c, &p->s));
    p->x = wk_tensor_packed(c->in[0]);
    p->h_lo = p->x ? make_map(c, &p->s.h, p->s.align_corners, p->linear ? &p->h_t : NULL) : NULL;
    p->w_lo = p->h_lo ? make_map(c, &p->s.w, p->s.align_corners, p->linear ? &p->w_t : NULL) : NULL;
    if (!p->w_lo)
        return wk_error_status();
    return p->linear ? make_shares(c, p) : WK_OK;
}

static wk_status run_upsample(wk_call *c)
{
    plan p = {0};
    if (wk_count(c->out[0]) == 0)
        return WK_OK;
    WK_TRY(make_plan(c, &p));
    if (!p.linear)
        return run_bands(&p, nearest_band, 0);
    return run_bands(&p, c->dtype == WK_F64 ? bilinear_band_f64 : bilinear_band_f32, 3 * p.s.w.in + 1);
}

static wk_status run_backward(wk_call *c)
{
    plan p = {0};
    if (wk_count(c->out[0]) == 0)
        return WK_OK;
    WK_TRY(make_plan(c, &p));
    if (!(p.h_first = make_first(c, &p.s.h, p.h_lo)))
        return wk_error_status();
    return run_bands(&p, c->dtype == WK_F64 ? grad_band_f64 : grad_band_f32, 2 * p.s.w.out);
}

const wk_impl WK_ISA(wk_cpu_resample)[] = {
    {"upsample_nearest1d", "simd", run_upsample, NULL, NULL},
    {"upsample_nearest2d", "simd", run_upsample, NULL, NULL},
    {"upsample_bilinear2d", "simd", run_upsample, NULL, NULL},
    {"upsample_nearest1d_backward", "simd", run_backward, NULL, NULL},
    {"upsample_nearest2d_backward", "simd", run_backward, NULL, NULL},
    {"upsample_bilinear2d_backward", "simd", run_backward, NULL, NULL},
    {0},
};
