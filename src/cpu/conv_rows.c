/* conv_rows.c: convolutions straight from a window of a few rows of the source, which stays in the cache.
 *
 * In the window, the sources that a tap gives to neighbouring results are neighbours, and those of the next row of
 * results follow one pitch later. So for each tap the sources of all results of a block of rows are one run of memory,
 * if the few positions between two rows are worked out too and thrown away: the product of matrices reads them where
 * they are, at an offset for each channel and tap, and no patch is ever copied. With a stride, positions of equal
 * remainder are kept together, in planes of their own; a pair of channels is one element where the processor
 * multiplies pairs of bf16. */
#include <stdatomic.h>
#include "conv_int.h"
#include "gemm_int.h"
#include "core/memory.h"
#include "core/pool.h"
#include "block.h"

enum {
    LANES = WK_VEC_BYTES / 4,
    KC = 192,            /* channels and taps that the kernel adds up at a time: its window is to stay in the
                               * first-level cache, */
    BLOCK_ROWS = 96,     /* result channels: weights for KC in the second-level one, with */
    BLOCK_COLUMNS = 512, /* their sums, and */
    WINDOW_BYTES = 320 << 10,            /* the window, */
    MAX_WINDOW_BYTES = 2 * WINDOW_BYTES, /* if that can be */
    FEW_TASKS = 32,
    COPY_COST = 40, /* of a vector to the window, in products of vectors: it may come from far away */
};

/* c[i][j] (+)= sum over p < k of a[p][i] * window[offsets[p] + place of j], for GEMM_MR rows and up to GEMM_NV vectors
 * of columns. */
typedef struct {
    const void *a, *window;
    const int64_t *offsets, *places; /* of the vectors */
    float *c;
    int64_t ldc, k;
    int vectors;
    bool add;
} rows_tile;

#define PACKED float
#define NAME(x) x##_f32
#define FUNCTION
#define MULADD(acc, a, b) ((acc) + (a) * (b))
#include "conv_rows.inc.h"

#ifdef __AVX512F__
#include <immintrin.h>
#define PACKED int32_t
#define NAME(x) x##_bf16
#define FUNCTION __attribute__((target("avx512bf16")))
#define MULADD(acc, a, b) (vec_bf16) _mm512_dpbf16_ps((__m512)(acc), (__m512bh)(a), (__m512bh)(b))
#include "conv_rows.inc.h"
#endif

typedef struct {
    const conv_direct *s;
    void (*tile)(const rows_tile *t);
    int64_t pair, units,
        taps;            /* channels of a packed element; elements along the channels; taps of a channel */
    int64_t span[3];     /* source positions that the taps of a result reach over */
    int64_t lo[3];       /* the first position of the first result */
    int64_t rows, bands; /* of results: rows of a block, blocks of a slab; columns likewise */
    int64_t columns, strips;
    int64_t phases[2];             /* planes for the remainders of rows and of columns */
    int64_t pitch, plane, channel; /* of the window, in elements */
    int64_t sum_pitch;             /* from one row of sums to the next: as wide, or as in the window */
    int64_t block, parts;  /* result channels whose sums are held at a time; tasks they are shared by */
    int64_t panels, panel; /* of weights, in a group; elements of one */
    int64_t *offsets, *places;
    uint32_t *weights;
    size_t window_bytes, bytes; /* of a task's memory: window, all */
    _Atomic bool failed;
} work;

/* ---- The plan ---- */

static int64_t vectors_of(const work *k, int64_t rows)
{
    return conv_ceil_div((rows - 1) * k->sum_pitch + k->columns, LANES);
}

static int64_t plane_rows(const work *k, int64_t rows)
{
    return conv_ceil_div((rows - 1) * k->s->axis[1].step + k->span[1], k->s->axis[1].step);
}

static int64_t window_elements(const work *k, int64_t rows)
{
    return k->units * k->s->axis[0].taps * k->phases[0] * k->phases[1] * plane_rows(k, rows) * k->pitch;
}

/* Vectors of results that blocks of so many rows work out in a slab. */
static int64_t slab_vectors(const work *k, int64_t rows)
{
    int64_t count = k->s->axis[1].count, rest = count % rows;
    return count / rows * vectors_of(k, rows) + (rest ? vectors_of(k, rest) : 0);
}

/* What a slab costs in blocks of so many rows: products, copies to the window, and waiting for the last task. */
static double cost_of(const work *k, int64_t rows)
{
    const conv_direct *s = k->s;
    double bands = (double)conv_ceil_div(s->axis[1].count, rows);
    double tasks = bands * (double)(s->images * s->groups * s->axis[0].count * k->strips);
    double products = (double)slab_vectors(k, rows) * (double)(s->to * k->units * k->taps);
    return (products + COPY_COST * bands * (double)window_elements(k, rows) / LANES) * (1 + 4 / tasks);
}

static void plan_rows(work *k)
{
    int64_t count = k->s->axis[1].count;
    k->rows = 1;
    for (int64_t rows = 2; rows <= count; rows++) {
        if (vectors_of(k, rows) * LANES > BLOCK_COLUMNS || window_elements(k, rows) * 4 > WINDOW_BYTES)
            break;
        if (cost_of(k, rows) < cost_of(k, k->rows))
            k->rows = rows;
    }
    k->bands = conv_ceil_div(count, k->rows);
}

static void plan_axes(work *k)
{
    const conv_axis *axis = k->s->axis;
    for (int d = 0; d < 3; d++) {
        int64_t hop = axis[d].hop < 0 ? -axis[d].hop : axis[d].hop;
        k->span[d] = axis[d].taps ? (axis[d].taps - 1) * hop + 1 : 1;
        k->lo[d] = axis[d].first + (axis[d].hop < 0 ? 1 - k->span[d] : 0);
    }
    for (int d = 0; d < 2; d++)
        k->phases[d] = conv_min(axis[d + 1].step, k->span[d + 1]);
    k->strips = conv_ceil_div(axis[2].count, BLOCK_COLUMNS);
    k->columns = conv_ceil_div(axis[2].count, k->strips);
    if (k->strips > 1)
        k->columns = gemm_round_up(k->columns, LANES);
    k->strips = conv_ceil_div(axis[2].count, k->columns);
    k->pitch = conv_ceil_div((k->columns - 1) * axis[2].step + k->span[2], axis[2].step);
    k->sum_pitch = k->columns % LANES == 0 ? k->columns : k->pitch;
}

static void plan_work(work *k)
{
    const conv_direct *s = k->s;
    k->tile = run_tile_f32;
    k->pair = 1;
#ifdef __AVX512F__
    if (s->dtype == WK_BF16 && gemm_has_bf16_pairs()) {
        k->tile = run_tile_bf16;
        k->pair = 2;
    }
#endif
    k->units = conv_ceil_div(s->from, k->pair);
    k->taps = s->axis[0].taps * s->axis[1].taps * s->axis[2].taps;
    plan_axes(k);
    plan_rows(k);
    k->plane = plane_rows(k, k->rows) * k->pitch;
    k->channel = s->axis[0].taps * k->phases[0] * k->phases[1] * k->plane;
    k->panels = conv_ceil_div(s->to, GEMM_MR);
    k->panel = k->units * k->taps * GEMM_MR;
    int64_t blocks = conv_ceil_div(s->to, BLOCK_ROWS);
    k->block = gemm_round_up(conv_ceil_div(s->to, blocks), GEMM_MR);
    int64_t tasks = s->images * s->groups * s->axis[0].count * k->bands * k->strips;
    k->parts = tasks < FEW_TASKS ? conv_ceil_div(s->to, k->block) : 1;
    /* A vector may reach behind the window; what it finds there is thrown away. */
    k->window_bytes = (size_t)gemm_round_up((k->units * k->channel + GEMM_NV * LANES) * 4, GEMM_ALIGN);
    k->bytes = k->window_bytes + (size_t)(k->block * vectors_of(k, k->rows)) * WK_VEC_BYTES;
}

/* Whether the processor has tile registers for the product over patches: they are worth the copying. */
static bool better_tiles(const conv_direct *s)
{
    const conv_axis *axis = s->axis;
    wk_gemm_args g = {.m = s->to,
                      .n = s->images * axis[0].count * axis[1].count * axis[2].count,
                      .k = s->from * axis[0].taps * axis[1].taps * axis[2].taps,
                      .a.dtype = s->dtype,
                      .c.dtype = WK_F32};
    return WK_ISA(gemm_pick_kernel)(&g)->rows > GEMM_MR;
}

bool WK_ISA(conv_rows_takes)(const conv_direct *s)
{
    work k = {.s = s};
    const conv_axis *axis = s->axis;
    if (s->dtype == WK_F64 || s->from == 0 || axis[0].taps * axis[1].taps * axis[2].taps <= 1 ||
        better_tiles(s))
        return false;
    plan_work(&k);
    if (k.units * k.pair * 8 > s->from * 9 || k.window_bytes > MAX_WINDOW_BYTES)
        return false;
    /* Not where much would be thrown away: rows are short, or taps far apart. */
    return slab_vectors(&k, k.rows) * k.strips * LANES * 7 <= axis[1].count * axis[2].count * 8;
}

static void fill_offsets(const work *k)
{
    const conv_axis *axis = k->s->axis;
    int64_t *at = k->offsets;
    for (int64_t u = 0; u < k->units; u++)
        for (int64_t tz = 0; tz < axis[0].taps; tz++)
            for (int64_t ty = 0; ty < axis[1].taps; ty++)
                for (int64_t tx = 0; tx < axis[2].taps; tx++) {
                    int64_t y = axis[1].first + ty * axis[1].hop - k->lo[1];
                    int64_t x = axis[2].first + tx * axis[2].hop - k->lo[2];
                    int64_t phase = (tz * k->phases[0] + y % axis[1].step) * k->phases[1] + x % axis[2].step;
                    *at++ =
                        u * k->channel + phase * k->plane + y / axis[1].step * k->pitch + x / axis[2].step;
                }
}

/* A vector of sums lies in one row where rows are whole vectors; else they are counted through the positions between
 * two rows too. */
static void fill_places(const work *k)
{
    int64_t vectors = vectors_of(k, k->rows), row = k->sum_pitch / LANES;
    for (int64_t v = 0; v < vectors; v++)
        k->places[v] = k->sum_pitch == k->pitch ? v * LANES : v / row * k->pitch + v % row * LANES;
}

/* ---- Weights ---- */

/* A row of weights with pairs of channels as elements. */
static void pair_weights(const work *k, const uint16_t *src, uint32_t *dst)
{
    int64_t step = k->s->weight_step, next = k->taps * step;
    for (int64_t c = 0; c < k->s->from; c += 2, src += 2 * next)
        for (int64_t t = 0; t < k->taps; t++)
            *dst++ = src[t * step] | (c + 1 < k->s->from ? (uint32_t)src[next + t * step] << 16 : 0);
}

static void weights_task(void *ctx, int64_t task)
{
    work *k = ctx;
    const conv_direct *s = k->s;
    int64_t group = task / k->panels, first = task % k->panels * GEMM_MR, row = s->from * k->taps;
    int64_t rows = conv_min(GEMM_MR, s->to - first), packed = k->units * k->taps;
    const char *src =
        s->weights + (group * s->to * row + first * s->weight_row) * (int64_t)wk_bytes(s->dtype);
    uint32_t *dst = k->weights + task * k->panel;
    if (k->pair == 1) {
        WK_ISA(gemm_pick_packer)(s->dtype, 1)(dst, GEMM_MR, src, s->weight_row, s->weight_step, rows, row);
        return;
    }
    uint32_t *pairs = wk_block_alloc((size_t)(rows * packed) * sizeof *pairs);
    if (!pairs) {
        atomic_store(&k->failed, true);
        return;
    }
    for (int64_t i = 0; i < rows; i++)
        pair_weights(k, (const uint16_t *)src + i * s->weight_row, pairs + i * packed);
    WK_ISA(gemm_pick_packer)(WK_F32, 1)(dst, GEMM_MR, pairs, packed, 1, rows, packed);
    wk_block_free(pairs, (size_t)(rows * packed) * sizeof *pairs);
}

/* ---- The window of a block ---- */

/* A block of results: of rows and columns, in a slab of a group of an image. */
typedef struct {
    int64_t image, group, z, y, x, rows, columns;
} place;

/* The positions x, x + step, ... of a row of the source that make a row of a plane; those before lo and from hi on are
 * outside. */
typedef struct {
    int64_t x, lo, hi;
} positions;

static positions positions_from(const work *k, int64_t x)
{
    int64_t step = k->s->axis[2].step;
    int64_t lo = conv_min(conv_max(conv_ceil_div(-x, step), 0), k->pitch);
    return (positions){x, lo, conv_min(conv_max(conv_ceil_div(k->s->size[2] - x, step), lo), k->pitch)};
}

/* A row of a plane from a row of the source. b: the row of the pair's second channel, or NULL. */
static void fill_row(const work *k, const char *a, const char *b, const positions *at, uint32_t *dst)
{
    int64_t step = k->s->axis[2].step, from = (at->x + at->lo * step) * (int64_t)wk_bytes(k->s->dtype);
    for (int64_t i = 0; i < at->lo; i++)
        dst[i] = 0;
    if (k->pair == 2)
        WK_ISA(gemm_pair_rows)
    (dst + at->lo, (const uint16_t *)(a + from), b ? (const uint16_t *)(b + from) : NULL, step,
     at->hi - at->lo);
    else WK_ISA(conv_copy_values)(WK_F32, k->s->dtype, a + from, step, (char *)(dst + at->lo),
                                  at->hi - at->lo);
    for (int64_t i = at->hi; i < k->pitch; i++)
        dst[i] = 0;
}

/* Asks for the positions of a later channel: rows of a few lines each, a plane apart, are not foreseen by the
 * processor. */
static void ask_ahead(const work *k, const char *row, const positions *at)
{
    enum { AHEAD = 8, LINE = 64 };
    int64_t bytes = (int64_t)wk_bytes(k->s->dtype), step = k->s->axis[2].step * bytes;
    uintptr_t from = (uintptr_t)row + (uintptr_t)(AHEAD * k->pair * conv_pixels(k->s->size) * bytes);
    for (int64_t i = at->lo * step; i < at->hi * step; i += LINE) /* behind the source it does no harm */
        __builtin_prefetch((const void *)(from + (uintptr_t)(at->x * bytes + i)));
}

static void fill_plane(const work *k, const place *p, const char *slab, const char *second, int64_t y,
                       int64_t x, uint32_t *dst)
{
    const conv_direct *s = k->s;
    int64_t rows = plane_rows(k, p->rows), row = s->size[2] * (int64_t)wk_bytes(s->dtype);
    positions at = positions_from(k, x);
    for (int64_t r = 0; r < rows; r++, y += s->axis[1].step, dst += k->pitch) {
        if (slab && y >= 0 && y < s->size[1]) {
            ask_ahead(k, slab + y * row, &at);
            fill_row(k, slab + y * row, second ? second + y * row : NULL, &at, dst);
        } else {
            memset(dst, 0, (size_t)k->pitch * sizeof *dst);
        }
    }
}

static void fill_window(const work *k, const place *p, uint32_t *dst)
{
    const conv_direct *s = k->s;
    const conv_axis *axis = s->axis;
    int64_t bytes = (int64_t)wk_bytes(s->dtype), slab = s->size[1] * s->size[2] * bytes;
    int64_t y = k->lo[1] + p->y * axis[1].step, x = k->lo[2] + p->x * axis[2].step;
    for (int64_t c = 0; c < s->from; c += k->pair) {
        const char *plane = s->source + ((p->image * s->groups + p->group) * s->from + c) * s->size[0] * slab;
        const char *second = c + 1 < s->from ? plane + s->size[0] * slab : NULL;
        for (int64_t t = 0; t < axis[0].taps; t++) {
            int64_t z = p->z * axis[0].step + axis[0].first + t * axis[0].hop;
            bool inside = z >= 0 && z < s->size[0];
            for (int64_t i = 0; i < k->phases[0]; i++)
                for (int64_t j = 0; j < k->phases[1]; j++, dst += k->plane)
                    fill_plane(k, p, inside ? plane + z * slab : NULL,
                               inside && second ? second + z * slab : NULL, y + i, x + j, dst);
        }
    }
}

/* ---- Products and results ---- */

/* The sums of channels [first, first + n) of the group; rows of them are ldc apart. */
static void sum_block(const work *k, const place *p, const uint32_t *window, int64_t first, int64_t n,
                      float *sums, int64_t ldc)
{
    const uint32_t *weights = k->weights + (p->group * k->panels + first / GEMM_MR) * k->panel;
    int64_t depth = k->units * k->taps, vectors = vectors_of(k, p->rows), q = 0;
    int64_t kc = conv_ceil_div(depth, conv_max(conv_ceil_div(depth, KC + KC / 4), 1));
    do { /* once even where there is nothing to add up */
        for (int64_t v = 0; v < vectors;) {
            int wide = gemm_next_vectors(vectors - v);
            for (int64_t i = 0; i < n; i += GEMM_MR)
                k->tile(&(rows_tile){.a = weights + i / GEMM_MR * k->panel + q * GEMM_MR,
                                     .window = window,
                                     .offsets = k->offsets + q,
                                     .places = k->places + v,
                                     .c = sums + i * ldc + v * LANES,
                                     .ldc = ldc,
                                     .k = conv_min(kc, depth - q),
                                     .vectors = wide,
                                     .add = q > 0});
            v += wide;
        }
        q += kc;
    } while (q < depth);
}

/* Rows of one result channel: bias, activation, rounding. */
static void finish_channel(const work *k, const place *p, int64_t channel, float *sums)
{
    const conv_direct *s = k->s;
    const conv_patches *to = s->patches;
    int64_t at = p->image * to->out.image + channel * to->out.channel + p->z * to->out.slab +
                 p->y * to->out.row + p->x * to->out.pixel;
    char *dst = to->out.data + at * (int64_t)wk_bytes(to->out.dtype);
    float bias = s->bias ? ((const float *)s->bias)[channel] : 0;
    for (int64_t r = 0; r < p->rows; r++, sums += k->sum_pitch) {
        for (int64_t i = 0; s->bias && i < p->columns; i++)
            sums[i] += bias;
        if (s->act)
            WK_ISA(wk_activation_row)(sums, p->columns, s->act);
        WK_ISA(conv_store_run)
        (to->out.dtype, sums, dst + r * to->out.row * (int64_t)wk_bytes(to->out.dtype), to->out.pixel,
         p->columns);
    }
}

static place place_of(const work *k, int64_t i)
{
    const conv_direct *s = k->s;
    const conv_axis *axis = s->axis;
    place p;
    p.x = i % k->strips * k->columns;
    i /= k->strips;
    p.y = i % k->bands * k->rows;
    i /= k->bands;
    p.z = i % axis[0].count;
    i /= axis[0].count;
    p.group = i % s->groups;
    p.image = i / s->groups;
    p.rows = conv_min(k->rows, axis[1].count - p.y);
    p.columns = conv_min(k->columns, axis[2].count - p.x);
    return p;
}

static void rows_task(void *ctx, int64_t task)
{
    work *k = ctx;
    const conv_direct *s = k->s;
    place p = place_of(k, task / k->parts);
    int64_t blocks = conv_ceil_div(s->to, k->block), part = task % k->parts;
    char *memory = wk_scratch_alloc(k->bytes);
    if (!memory) {
        atomic_store(&k->failed, true);
        return;
    }
    float *sums = (float *)(memory + k->window_bytes);
    int64_t ldc = vectors_of(k, p.rows) * LANES;
    fill_window(k, &p, (uint32_t *)memory);
    for (int64_t b = part * blocks / k->parts; b < (part + 1) * blocks / k->parts; b++) {
        int64_t first = b * k->block, n = conv_min(k->block, s->to - first);
        sum_block(k, &p, (const uint32_t *)memory, first, n, sums, ldc);
        for (int64_t i = 0; i < n; i++)
            finish_channel(k, &p, p.group * s->to + first + i, sums + i * ldc);
    }
    wk_scratch_free(memory, k->bytes);
}

bool WK_ISA(conv_rows_run)(const conv_direct *s)
{
    work k = {.s = s};
    plan_work(&k);
    size_t offsets = (size_t)(k.units * k.taps + vectors_of(&k, k.rows)) * sizeof *k.offsets;
    size_t weights = (size_t)(s->groups * k.panels * k.panel) * sizeof *k.weights;
    k.offsets = wk_alloc(offsets);
    k.weights = wk_block_alloc(weights);
    if (k.offsets && k.weights) {
        k.places = k.offsets + k.units * k.taps;
        fill_offsets(&k);
        fill_places(&k);
        if (k.panel)
            wk_parallel_for(s->groups * k.panels, weights_task, &k);
        if (!k.failed)
            wk_parallel_for(s->images * s->groups * s->axis[0].count * k.bands * k.strips * k.parts,
                            rows_task, &k);
    }
    bool done = k.offsets && k.weights && !k.failed;
    wk_block_free(k.weights, weights);
    wk_free(k.offsets);
    return done;
}
