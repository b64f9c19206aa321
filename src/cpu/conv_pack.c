/* conv_pack.c: patches to panels of a product's B, and the product's results to where they belong. */
#include "conv_int.h"
#include "block.h"
#if defined(__F16C__) || defined(__AVX512F__)
#include <immintrin.h>
#endif

/* ---- Columns of the patch matrix as runs of memory ---- */

enum { MAX_RUNS = 64 };

typedef struct {
    int64_t from; /* in the window */
    int32_t to, length;
} run;

typedef struct {
    int64_t image, z, y, x;
} place;

static place place_of(const conv_patches *s, int64_t j)
{
    place at;
    at.x = j % s->count[2];
    j /= s->count[2];
    at.y = j % s->count[1];
    j /= s->count[1];
    at.z = j % s->count[0];
    at.image = j / s->count[0];
    return at;
}

/* To the start of the next row. */
ALWAYS_INLINE void next_row(const conv_patches *s, place *at)
{
    at->x = 0;
    if (++at->y < s->count[1])
        return;
    at->y = 0;
    if (++at->z < s->count[0])
        return;
    at->z = 0;
    at->image++;
}

/* Columns [j, j + n), n up to MAX_RUNS; the number of runs. */
static int find_runs(const conv_patches *s, int64_t j, int64_t n, run *runs)
{
    place at = place_of(s, j);
    int count = 0;
    for (int64_t to = 0; to < n; next_row(s, &at)) {
        int64_t length = conv_min(s->count[2] - at.x, n - to);
        runs[count++] =
            (run){at.image * s->image + at.z * s->slab + at.y * s->row + at.x, (int32_t)to, (int32_t)length};
        to += length;
    }
    return count;
}

void WK_ISA(conv_offsets)(const conv_window *w, const conv_axis *axis, int64_t channels, int64_t *offsets)
{
    for (int64_t c = 0; c < channels; c++)
        for (int64_t z = 0; z < axis[0].taps; z++)
            for (int64_t y = 0; y < axis[1].taps; y++)
                for (int64_t x = 0; x < axis[2].taps; x++)
                    *offsets++ = c * w->channel + (axis[0].first + z * axis[0].hop - w->lo[0]) * w->slab +
                                 (axis[1].first + y * axis[1].hop - w->lo[1]) * w->row +
                                 conv_window_column(w, axis[2].first + x * axis[2].hop - w->lo[2]);
}

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__)
#define MASKED 1
/* The same for vectors of 16 columns that are made of at most two runs each, as they are unless rows are short: by
 * masks, without a branch. A column that lies in neither is 0. */
typedef struct {
    int64_t
        from[2]; /* where column 0 of the vector would be, by the run of the first and of the last column */
    uint16_t mask[2];
} pieces;

enum { LANES = 16, MAX_PIECES = MAX_RUNS / LANES };

/* False when a vector has more than two runs. */
static bool find_pieces(const conv_patches *s, int64_t j, int64_t columns, int64_t nr, pieces *p)
{
    run runs[MAX_RUNS];
    if (nr > MAX_RUNS || nr % LANES != 0)
        return false;
    int n = find_runs(s, j, columns, runs);
    memset(p, 0, MAX_PIECES * sizeof *p);
    for (int i = 0; i < n; i++)
        for (int v = runs[i].to / LANES; v * LANES < runs[i].to + runs[i].length; v++) {
            int side = p[v].mask[0] != 0, lo = runs[i].to - v * LANES, hi = lo + runs[i].length;
            if (p[v].mask[1])
                return false;
            p[v].from[side] = runs[i].from - lo;
            p[v].mask[side] =
                (uint16_t)((hi >= LANES ? 0xFFFFu : (1u << hi) - 1) & ~(lo > 0 ? (1u << lo) - 1 : 0));
        }
    return true;
}

/* Asks for a row of the panel that is packed some rows later. With one tap a channel rows are far apart, which the
 * processor does not foresee; with more of them most of a row has been seen at the last tap. */
enum { AHEAD_ROWS = 16 };

ALWAYS_INLINE void ask_ahead(const conv_patches *s, const pieces *p, int vectors, int64_t row, int64_t end)
{
    if (!s->apart || row + AHEAD_ROWS >= end)
        return;
    int64_t bytes = (int64_t)wk_bytes(s->dtype);
    for (int v = 0; v < vectors; v++)
        __builtin_prefetch(s->data + (s->offsets[row + AHEAD_ROWS] + p[v].from[0]) * bytes);
}

static void pack_pieces(const conv_patches *s, const pieces *p, int64_t p0, int64_t pn, int64_t nr,
                        float *dst)
{
    int vectors = (int)(nr / LANES);
    for (int64_t row = p0; row < p0 + pn; row++, dst += nr) {
        const float *src = (const float *)s->data + s->offsets[row];
        ask_ahead(s, p, vectors, row, p0 + pn);
        for (int v = 0; v < vectors; v++) {
            __m512 x = _mm512_maskz_loadu_ps(p[v].mask[0], src + p[v].from[0]);
            x = _mm512_mask_loadu_ps(x, p[v].mask[1], src + p[v].from[1]);
            _mm512_storeu_ps(dst + v * LANES, x);
        }
    }
}

/* `two` is a constant wherever this is inlined: whether the vector has a second run. */
ALWAYS_INLINE __m512i load_pieces(const uint16_t *src, const pieces *p, bool two)
{
    __m256i x = _mm256_maskz_loadu_epi16(p->mask[0], src + p->from[0]);
    return _mm512_cvtepu16_epi32(two ? _mm256_mask_loadu_epi16(x, p->mask[1], src + p->from[1]) : x);
}

/* One vector of columns, rows from row to stop, of a panel that goes to end. */
ALWAYS_INLINE void pack_pair_column(const conv_patches *s, const pieces *p, bool two, int64_t row,
                                    int64_t stop, int64_t end, int64_t nr, uint32_t *dst)
{
    const uint16_t *data = (const uint16_t *)s->data;
    for (; row + 1 < stop; row += 2, dst += nr) {
        ask_ahead(s, p, 1, row, end);
        ask_ahead(s, p, 1, row + 1, end);
        __m512i x = load_pieces(data + s->offsets[row], p, two);
        x = _mm512_or_si512(x, _mm512_slli_epi32(load_pieces(data + s->offsets[row + 1], p, two), 16));
        _mm512_storeu_si512(dst, x);
    }
    if (row < stop)
        _mm512_storeu_si512(dst, load_pieces(data + s->offsets[row], p, two));
}

static void pack_pair_pieces(const conv_patches *s, const pieces *p, int64_t p0, int64_t pn, int64_t nr,
                             uint32_t *dst)
{
    /* Rows that have nothing in common come from far away: each of them is to be there still for the next vector. */
    int64_t end = p0 + pn, rows = s->apart ? AHEAD_ROWS : conv_max(pn, 2);
    for (int64_t row = p0; row < end; row += rows, dst += rows / 2 * nr)
        for (int64_t v = 0; v < nr / LANES; v++) {
            int64_t stop = conv_min(row + rows, end);
            if (p[v].mask[1])
                pack_pair_column(s, &p[v], true, row, stop, end, nr, dst + v * LANES);
            else
                pack_pair_column(s, &p[v], false, row, stop, end, nr, dst + v * LANES);
        }
}
#else
#define MASKED 0
#endif

/* ---- Runs ----
 * They are short: the last part is copied as a whole vector that overlaps the one before, not bit by bit. */

ALWAYS_INLINE void copy_ends(char *dst, const char *src, int64_t bytes, size_t n)
{
    memcpy(dst, src, n);
    memcpy(dst + bytes - n, src + bytes - n, n);
}

/* bytes are a multiple of 4. */
ALWAYS_INLINE void copy_run(char *dst, const char *src, int64_t bytes)
{
    for (; bytes > 128; bytes -= 64, dst += 64, src += 64)
        memcpy(dst, src, 64);
    if (bytes >= 64)
        copy_ends(dst, src, bytes, 64);
    else if (bytes >= 32)
        copy_ends(dst, src, bytes, 32);
    else if (bytes >= 16)
        copy_ends(dst, src, bytes, 16);
    else
        for (int64_t i = 0; i < bytes; i += 4)
            memcpy(dst + i, src + i, 4);
}

ALWAYS_INLINE void run_any_f32(float *dst, const float *src, int64_t length)
{
    copy_run((char *)dst, (const char *)src, length * 4);
}

ALWAYS_INLINE void run_f64(double *dst, const double *src, int64_t length)
{
    copy_run((char *)dst, (const char *)src, length * 8);
}

ALWAYS_INLINE void run_bf16(float *restrict dst, const uint16_t *src, int64_t length)
{
    for (int64_t i = 0; i < length; i++)
        dst[i] = wk_bf16_to_f32(src[i]);
}

ALWAYS_INLINE void run_f16(float *restrict dst, const uint16_t *src, int64_t length)
{
    int64_t i = 0;
#ifdef __F16C__
    for (; i + 8 <= length; i += 8)
        _mm256_storeu_ps(dst + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(src + i))));
#endif
    for (; i < length; i++)
        dst[i] = wk_f16_to_f32(src[i]);
}

#define PACKED float
#define SOURCE float
#define NAME(x) x##_any_f32
#include "conv_pack.inc.h"

static void pack_f32(const void *ctx, int64_t p0, int64_t pn, int64_t j0, int64_t jn, int64_t nr, void *dst)
{
#if MASKED
    pieces p[MAX_PIECES];
    if (find_pieces(ctx, j0, jn, nr, p)) {
        pack_pieces(ctx, p, p0, pn, nr, dst);
        return;
    }
#endif
    pack_any_f32(ctx, p0, pn, j0, jn, nr, dst);
}

#define PACKED double
#define SOURCE double
#define NAME(x) x##_f64
#include "conv_pack.inc.h"

#define PACKED float
#define SOURCE uint16_t
#define NAME(x) x##_f16
#include "conv_pack.inc.h"

#define PACKED float
#define SOURCE uint16_t
#define NAME(x) x##_bf16
#include "conv_pack.inc.h"

wk_gemm_pack_fn WK_ISA(conv_pick_pack)(wk_dtype dtype)
{
    switch (dtype) {
    case WK_F64: return pack_f64;
    case WK_F16: return pack_f16;
    case WK_BF16: return pack_bf16;
    default: return pack_f32;
    }
}

/* ---- Pairs of bf16 ---- */

ALWAYS_INLINE void run_pairs(uint32_t *restrict dst, const uint16_t *first, const uint16_t *second,
                             int64_t length)
{
    for (int64_t i = 0; i < length; i++)
        dst[i] = first[i] | (uint32_t)second[i] << 16;
}

static void run_last(uint32_t *restrict dst, const uint16_t *first, int64_t length)
{
    for (int64_t i = 0; i < length; i++)
        dst[i] = first[i];
}

void WK_ISA(conv_pack_pairs)(const void *ctx, int64_t p0, int64_t pn, int64_t j0, int64_t jn, int64_t nr,
                             void *dst)
{
    const conv_patches *s = ctx;
    const uint16_t *data = (const uint16_t *)s->data;
#if MASKED
    pieces pieces[MAX_PIECES];
    if (find_pieces(s, j0, jn, nr, pieces)) {
        pack_pair_pieces(s, pieces, p0, pn, nr, dst);
        return;
    }
#endif
    run runs[MAX_RUNS];
    for (int64_t j = 0; j < jn; j += MAX_RUNS) {
        int n = find_runs(s, j0 + j, conv_min(jn - j, MAX_RUNS), runs);
        uint32_t *out = (uint32_t *)dst + j;
        for (int64_t p = p0; p < p0 + pn; p += 2, out += nr) {
            const uint16_t *first = data + s->offsets[p];
            for (int i = 0; i < n; i++) {
                if (p + 1 < p0 + pn)
                    run_pairs(out + runs[i].to, first + runs[i].from, data + s->offsets[p + 1] + runs[i].from,
                              runs[i].length);
                else
                    run_last(out + runs[i].to, first + runs[i].from, runs[i].length);
            }
        }
    }
    for (int64_t p = 0; p < (pn + 1) / 2 && jn < nr; p++)
        memset((uint32_t *)dst + p * nr + jn, 0, (size_t)(nr - jn) * sizeof(uint32_t));
}

/* ---- Transposed ---- */

enum { TURN_ROWS = 32, TURN_COLUMNS = 64 };

/* Blocks of patches as they are, then turned around. Rows of B are result pixels, columns channels and taps. */
void WK_ISA(conv_pack_transposed)(const void *ctx, int64_t p0, int64_t pn, int64_t j0, int64_t jn, int64_t nr,
                                  void *dst)
{
    const conv_patches *s = ctx;
    wk_gemm_pack_fn pack = WK_ISA(conv_pick_pack)(s->dtype);
    size_t bytes = s->dtype == WK_F64 ? sizeof(double) : sizeof(float);
    double block[TURN_ROWS * TURN_COLUMNS];
    for (int64_t p = 0; p < pn; p += TURN_COLUMNS)
        for (int64_t j = 0; j < jn; j += TURN_ROWS) {
            int64_t columns = conv_min(TURN_COLUMNS, pn - p), rows = conv_min(TURN_ROWS, jn - j);
            pack(ctx, j0 + j, rows, p0 + p, columns, TURN_COLUMNS, block);
            WK_ISA(wk_block_transpose)
            (bytes, block, TURN_COLUMNS, (char *)dst + (p * nr + j) * (int64_t)bytes, nr, rows, columns,
             false);
        }
    for (int64_t p = 0; p < pn && jn < nr; p++)
        memset((char *)dst + (p * nr + jn) * (int64_t)bytes, 0, (size_t)(nr - jn) * bytes);
}

/* ---- Results ---- */

void WK_ISA(conv_store_run)(wk_dtype dtype, const void *v, char *dst, int64_t step, int64_t n)
{
    const float *f = v;
    if (step == 1) {
        WK_ISA(wk_block_store)(dtype, wk_dtypes[dtype].compute, v, dst, n, false);
        return;
    }
    switch (dtype) {
    case WK_F64:
        for (int64_t i = 0; i < n; i++)
            ((double *)dst)[i * step] = ((const double *)v)[i];
        break;
    case WK_F16:
        for (int64_t i = 0; i < n; i++)
            ((uint16_t *)dst)[i * step] = wk_f32_to_f16(f[i]);
        break;
    case WK_BF16:
        for (int64_t i = 0; i < n; i++)
            ((uint16_t *)dst)[i * step] = wk_f32_to_bf16(f[i]);
        break;
    default:
        for (int64_t i = 0; i < n; i++)
            ((float *)dst)[i * step] = f[i];
    }
}

void WK_ISA(conv_store)(const void *ctx, int64_t i, int64_t j0, int64_t n, const void *v)
{
    const conv_patches *s = ctx;
    wk_compute compute = wk_dtypes[s->out.dtype].compute;
    int64_t bytes = (int64_t)wk_bytes(s->out.dtype), rows = s->count[0] * s->count[1];
    bool joined = s->out.pixel == 1 && s->out.row == s->count[2] && s->out.slab == s->count[1] * s->count[2];
    place at = place_of(s, j0);
    while (n > 0) {
        int64_t length = s->count[2] - at.x;
        if (joined) /* to the end of the image */
            length = (rows - (at.z * s->count[1] + at.y)) * s->count[2] - at.x;
        length = conv_min(length, n);
        char *dst = s->out.data + (at.image * s->out.image + i * s->out.channel + at.z * s->out.slab +
                                   at.y * s->out.row + at.x * s->out.pixel) *
                                      bytes;
        WK_ISA(conv_store_run)(s->out.dtype, v, dst, s->out.pixel, length);
        v = (const char *)v + length * (int64_t)wk_compute_bytes(compute);
        n -= length;
        if (joined)
            at = (place){at.image + 1, 0, 0, 0};
        else
            next_row(s, &at);
    }
}
