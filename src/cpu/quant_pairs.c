/* quant_pairs.c: many rows of x in bf16 times quantised weights, where the processor multiplies pairs of bf16 (AVX-512
 * BF16), twice as many numbers at a time as in f32, or tiles of them (AMX): with these rows in f32 too, a number of which
 * is three pieces of bf16 (gemm_cut.c).
 *
 * A weight is a scale times an integer of at most 8 bits, which is exact in bf16, and so are products of those with x in
 * f32: as much is added up as belongs to one scale, and then multiplied by it. What is subtracted from weights (Q4_K)
 * is subtracted as often as the sum of x says. A task works out PANEL columns of a block of rows; it unpacks DEPTH values
 * of each column at a time. */
#include "quant.h"
#include <stdatomic.h>
#include "core/host.h"
#include "core/pool.h"
#include "gemm_int.h"
#include "lanes.h"

#if GEMM_TILES
#include "amx.h"

enum {
    ROWS = AMX_ROWS, /* of x in a tile */
    PANEL = WK_QUANT_PANEL,
    RUNS = WK_QUANT_RUNS,
    DEPTH = RUNS * QUANT_RUN,
    RUN_PAIRS = QUANT_RUN / 2,
    PIECES = 3, /* of an f32 */
    WORDS = sizeof(wk_words) / sizeof(float),
    HUGE_BITS = 0x5F80, /* 2^64: sums before they are scaled must not overflow where those after would not */
};

/* Q6_K has two scales in a run, and half a tile is as dear as a whole one. */
static bool takes_tiles(int64_t format)
{
#ifdef WK_SOFT_TILES
    return format != WK_Q6_K;
#else
    return format != WK_Q6_K && wk_host_has_amx();
#endif
}

static bool has_pairs(int64_t format)
{
    return takes_tiles(format) || (gemm_has_bf16_pairs() && !wk_host_has_amx());
}

/* ---- x: tiles of ROWS rows, of which the runs lie one after the other, each row by row ---- */

static size_t bytes_of(int64_t rows, int64_t k, int pieces)
{
    size_t tiles = (size_t)gemm_blocks(rows, ROWS), runs = (size_t)(k / QUANT_RUN);
    return tiles * ROWS * runs * (QUANT_RUN * (size_t)pieces * sizeof(uint16_t) + sizeof(float));
}

typedef struct {
    const void *x;
    int64_t rows, runs;
    uint16_t *tiles;
    float *sums; /* of the runs of a row, as tiles have them */
    atomic_bool odd;
} packing;

static float sum_of(const float *x)
{
    enum { HALF = QUANT_RUN / 2 };
    float total[HALF];
    for (int i = 0; i < HALF; i++)
        total[i] = x[i] + x[HALF + i];
    for (int n = HALF / 2; n > 0; n /= 2)
        for (int i = 0; i < n; i++)
            total[i] += total[n + i];
    return total[0];
}

/* One run of a row; the largest of its numbers, without sign, as bits. */
static unsigned pack_run(const uint16_t *x, uint16_t *dst, float *sum)
{
    uint16_t largest = 0;
    float values[QUANT_RUN];
    memcpy(dst, x, QUANT_RUN * sizeof *x);
    for (int i = 0; i < QUANT_RUN; i++) {
        uint16_t magnitude = x[i] & 0x7FFF;
        largest = magnitude > largest ? magnitude : largest;
    }
    for (int i = 0; i < QUANT_RUN; i++)
        values[i] = wk_bf16_to_f32(x[i]);
    *sum = sum_of(values);
    return largest;
}

static void pack_tile(void *ctx, int64_t tile)
{
    packing *s = ctx;
    unsigned largest = 0;
    uint16_t *dst = s->tiles + tile * s->runs * ROWS * QUANT_RUN;
    float *sums = s->sums + tile * s->runs * ROWS;
    int64_t have = gemm_min(ROWS, s->rows - tile * ROWS);
    for (int64_t r = 0; r < s->runs; r++, dst += ROWS * QUANT_RUN, sums += ROWS) {
        for (int64_t i = 0; i < have; i++) {
            const uint16_t *x = (const uint16_t *)s->x + ((tile * ROWS + i) * s->runs + r) * QUANT_RUN;
            unsigned bits = pack_run(x, dst + i * QUANT_RUN, sums + i);
            largest = bits > largest ? bits : largest;
        }
        memset(dst + have * QUANT_RUN, 0, (size_t)((ROWS - have) * QUANT_RUN) * sizeof *dst);
        memset(sums + have, 0, (size_t)(ROWS - have) * sizeof *sums);
    }
    if (largest >= HUGE_BITS)
        atomic_store(&s->odd, true);
}

/* The same of f32, each run piece by piece. */
static void cut_tile(void *ctx, int64_t tile)
{
    packing *s = ctx;
    uint16_t *dst = s->tiles + tile * s->runs * PIECES * ROWS * QUANT_RUN;
    float *sums = s->sums + tile * s->runs * ROWS, run[ROWS][QUANT_RUN] = {0};
    const float *x = (const float *)s->x + tile * ROWS * s->runs * QUANT_RUN;
    int64_t have = gemm_min(ROWS, s->rows - tile * ROWS);
    bool odd = false;
    for (int64_t r = 0; r < s->runs; r++, dst += PIECES * ROWS * QUANT_RUN, sums += ROWS) {
        for (int64_t i = 0; i < have; i++)
            memcpy(run[i], x + (i * s->runs + r) * QUANT_RUN, sizeof *run);
        odd |= WK_ISA(gemm_cut_a_three)(dst, *run, ROWS);
        for (int i = 0; i < ROWS; i++)
            sums[i] = sum_of(run[i]);
    }
    if (odd)
        atomic_store(&s->odd, true);
}

static bool pack_as(const void *values, int64_t rows, int64_t k, int pieces, void *room, quant_packed *x)
{
    int64_t tiles = gemm_blocks(rows, ROWS);
    *x = (quant_packed){.tiles = room, .rows = rows, .runs = k / QUANT_RUN, .pieces = pieces};
    packing s = {.x = values, .rows = rows, .runs = x->runs, .tiles = room};
    s.sums = (float *)(void *)(s.tiles + tiles * ROWS * k * pieces);
    x->sums = s.sums;
    wk_parallel_for(tiles, pieces == 1 ? pack_tile : cut_tile, &s);
    return !s.odd;
}

/* ---- Weights: DEPTH values of PANEL columns ---- */

typedef struct {
    uint32_t pairs[DEPTH / 2][PANEL];
    float scale[RUNS][2][PANEL]; /* of the halves of runs; only Q6_K has two */
    float min[RUNS][PANEL];
    uint16_t column[PANEL][DEPTH];
} panel;

QUANT_INLINE void unpack_block(int format, const uint8_t *block, int64_t j, int64_t first, void *to_panel)
{
    panel *b = to_panel;
    quant_scales s;
    quant_read_scales(format, block, &s);
    for (int r = 0; r < quant_runs_of(format); r++) {
        qvec v[QUANT_VECS];
        quant_run q = quant_read_run(format, block, r);
        quant_floats(q, 0, v);
        quant_floats(q, 1, v + QUANT_VECS / 2);
        uint16_t *to = &b->column[j][(first + r) * QUANT_RUN];
        for (int i = 0; i < QUANT_RUN; i += 2 * WORDS) {
            const char *from = (const char *)v + i * (int)sizeof(float);
            wk_words_store(
                to + i, wk_words_uppers(wk_words_load(from), wk_words_load(from + sizeof(wk_words))), false);
        }
        b->scale[first + r][0][j] = s.scale[2 * r];
        b->scale[first + r][1][j] = s.scale[2 * r + 1];
        if (format == WK_Q4_K)
            b->min[first + r][j] = s.min[r];
    }
}

/* `runs` runs, from that of `blocks` on, of so many rows of weights; the panel's other columns become zero. */
QUANT_INLINE void unpack_panel(int format, const uint8_t *blocks, int64_t pitch, int64_t columns,
                               int64_t runs, panel *b)
{
    if (columns < PANEL) {
        memset(b->scale, 0, sizeof b->scale);
        memset(b->min, 0, sizeof b->min);
    }
    quant_each_block(format, blocks, pitch, columns, runs, unpack_block, b);
    WK_ISA(gemm_pick_packer)(WK_BF16, 2)(b->pairs, PANEL, b->column, DEPTH, 1, columns, runs * QUANT_RUN);
}

typedef void unpack_fn(const uint8_t *blocks, int64_t pitch, int64_t columns, int64_t runs, panel *b);

#define UNPACK(name, format) \
    static void unpack_##name(const uint8_t *blocks, int64_t pitch, int64_t columns, int64_t runs, panel *b) \
    { \
        unpack_panel(format, blocks, pitch, columns, runs, b); \
    }

UNPACK(q4_0, WK_Q4_0)
UNPACK(q8_0, WK_Q8_0)
UNPACK(q4_k, WK_Q4_K)
UNPACK(q6_k, WK_Q6_K)

/* ---- Products of a tile of x with a panel ---- */

/* `rows` of ROWS are to be worked out; sums are rows of PANEL. */
typedef struct {
    const uint32_t *x;
    const float *x_sums;
    const panel *b;
    int64_t runs;
    int64_t rows;
    float *sums;
} product;

typedef void product_fn(const product *t);

#ifdef __AVX512F__
enum { VECTOR_ROWS = ROWS / 2, VECTORS = PANEL / QUANT_LANES }; /* of sums in registers */

#define PAIRS __attribute__((target("avx512bf16")))

/* sums += x . weights for `count` pairs of run r, from pair p on, of one scale. */
PAIRS QUANT_INLINE void add_part(const product *t, int64_t r, int p, int count, bool mins, int row)
{
    const uint32_t *x = t->x + (r * ROWS + row) * RUN_PAIRS + p, *b = t->b->pairs[r * RUN_PAIRS + p];
    const float *scale = t->b->scale[r][p > 0], *x_sums = t->x_sums + r * ROWS + row;
    float *sums = t->sums + (int64_t)row * PANEL;
    __m512 s[VECTOR_ROWS][VECTORS];
    UNROLL
    for (int i = 0; i < VECTOR_ROWS; i++)
        UNROLL
    for (int v = 0; v < VECTORS; v++)
        s[i][v] = _mm512_setzero_ps();
    for (int k = 0; k < count; k++) {
        __m512i w[VECTORS];
        UNROLL
        for (int v = 0; v < VECTORS; v++)
            w[v] = _mm512_load_si512(b + k * PANEL + v * QUANT_LANES);
        UNROLL
        for (int i = 0; i < VECTOR_ROWS; i++) {
            __m512i a = _mm512_set1_epi32((int)x[i * RUN_PAIRS + k]);
            UNROLL
            for (int v = 0; v < VECTORS; v++)
                s[i][v] = _mm512_dpbf16_ps(s[i][v], (__m512bh)a, (__m512bh)w[v]);
        }
    }
    UNROLL
    for (int v = 0; v < VECTORS; v++) {
        __m512 by = _mm512_load_ps(scale + v * QUANT_LANES), min = _mm512_setzero_ps();
        if (mins)
            min = _mm512_load_ps(t->b->min[r] + v * QUANT_LANES);
        UNROLL
        for (int i = 0; i < VECTOR_ROWS; i++) {
            float *y = sums + i * PANEL + v * QUANT_LANES;
            __m512 sum = _mm512_fmadd_ps(s[i][v], by, _mm512_load_ps(y));
            if (mins)
                sum = _mm512_fnmadd_ps(_mm512_set1_ps(x_sums[i]), min, sum);
            _mm512_store_ps(y, sum);
        }
    }
    __asm__ volatile(
        "" ::
            : "memory"); /* or sums would be kept beside as well, for which no registers are left */
}

PAIRS QUANT_INLINE void add_parts(const product *t, int parts, bool mins)
{
    const product at = *t;
    const int count = RUN_PAIRS / parts;
    for (int64_t r = 0; r < at.runs; r++)
        for (int row = 0; row < at.rows; row += VECTOR_ROWS)
            UNROLL
    for (int p = 0; p < RUN_PAIRS; p += count)
        add_part(&at, r, p, count, mins, row);
}

PAIRS static void add_runs(const product *t) { add_parts(t, 1, false); }
PAIRS static void add_halves(const product *t) { add_parts(t, 2, false); }
PAIRS static void add_mins(const product *t) { add_parts(t, 1, true); }

static product_fn *vector_product(int64_t format)
{
    return format == WK_Q4_K ? add_mins : format == WK_Q6_K ? add_halves : add_runs;
}
#else
static product_fn *vector_product(int64_t format) { return (void)format, NULL; }
#endif

/* The same by tile registers, one of sums at a time. */

typedef float floats __attribute__((vector_size(AMX_ROW_BYTES)));
enum { COLUMNS = AMX_ROW_BYTES / sizeof(float) };

/* What one run gives, the smallest pieces first; by turns in two sets of registers, that one can be filled while the
 * other is stored. */
#define MULTIPLY_RUN(pieces, x, b, products, SUM, A, OTHER_A, B) \
    do { \
        AMX_ZERO(SUM); \
        AMX_LOAD(B, b, PANEL * sizeof *b); \
        if (pieces == PIECES) { \
            AMX_LOAD(A, x + 2 * ROWS * RUN_PAIRS, AMX_ROW_BYTES); \
            AMX_MULADD(SUM, A, B); \
            AMX_LOAD(OTHER_A, x + ROWS * RUN_PAIRS, AMX_ROW_BYTES); \
            AMX_MULADD(SUM, OTHER_A, B); \
        } \
        AMX_LOAD(A, x, AMX_ROW_BYTES); \
        AMX_MULADD(SUM, A, B); \
        AMX_STORE(SUM, products, sizeof *products); \
    } while (0)

ALWAYS_INLINE void add_run(const product *t, int64_t r, int64_t j, bool second, int pieces, bool mins,
                           floats *sums)
{
    floats products[ROWS], by, min;
    const uint32_t *x = t->x + r * pieces * ROWS * RUN_PAIRS, *b = &t->b->pairs[r * RUN_PAIRS][j];
    if (second)
        MULTIPLY_RUN(pieces, x, b, products, 4, 5, 7, 6);
    else
        MULTIPLY_RUN(pieces, x, b, products, 0, 1, 3, 2);
    memcpy(&by, &t->b->scale[r][0][j], sizeof by);
    if (pieces == PIECES)
        by *= 1 / GEMM_CUT_SCALE;
    if (mins)
        memcpy(&min, &t->b->min[r][j], sizeof min);
    UNROLL
    for (int i = 0; i < ROWS; i++) {
        sums[i] += products[i] * by;
        if (mins)
            sums[i] -= t->x_sums[r * ROWS + i] * min;
    }
}

ALWAYS_INLINE void add_tile(const product *t, int pieces, bool mins)
{
    for (int64_t j = 0; j < PANEL; j += COLUMNS) {
        floats sums[ROWS];
        UNROLL
        for (int i = 0; i < ROWS; i++)
            memcpy(&sums[i], t->sums + i * PANEL + j, sizeof *sums);
        int64_t r = 0;
        for (; r + 2 <= t->runs; r += 2) {
            add_run(t, r, j, false, pieces, mins, sums);
            add_run(t, r + 1, j, true, pieces, mins, sums);
        }
        if (r < t->runs)
            add_run(t, r, j, false, pieces, mins, sums);
        UNROLL
        for (int i = 0; i < ROWS; i++)
            memcpy(t->sums + i * PANEL + j, &sums[i], sizeof *sums);
    }
}

static void tiles_of_one(const product *t) { add_tile(t, 1, false); }
static void tiles_of_one_mins(const product *t) { add_tile(t, 1, true); }
static void tiles_of_three(const product *t) { add_tile(t, PIECES, false); }
static void tiles_of_three_mins(const product *t) { add_tile(t, PIECES, true); }

static product_fn *tile_product(int64_t format, int pieces)
{
    if (pieces == 1)
        return format == WK_Q4_K ? tiles_of_one_mins : tiles_of_one;
    return format == WK_Q4_K ? tiles_of_three_mins : tiles_of_three;
}

/* ---- Panels of columns ---- */

static size_t panel_bytes(int64_t rows, int64_t columns)
{
    return sizeof(panel) + (size_t)(gemm_blocks(columns, PANEL) * quant_panel_size(rows)) * sizeof(float);
}

/* sums += x times the panel's runs, of which `first` is x's. */
static void add_panel(const panel *b, const quant_packed *x, int64_t first, int64_t runs, product_fn *add,
                      float *sums)
{
    product t = {.b = b, .runs = runs};
    for (int64_t i = 0; i < x->rows; i += ROWS) {
        t.x = (const uint32_t *)x->tiles + (i * x->runs + first * ROWS) * x->pieces * RUN_PAIRS;
        t.x_sums = x->sums + i * x->runs + first * ROWS;
        t.rows = gemm_min(ROWS, x->rows - i);
        t.sums = sums + i * PANEL;
        add(&t);
    }
}

static float *panels_of(int64_t format, const quant_packed *x, const uint8_t *blocks, int64_t pitch,
                        int64_t columns, void *room)
{
    static unpack_fn *const unpack[] = {
        [WK_Q4_0] = unpack_q4_0, [WK_Q8_0] = unpack_q8_0, [WK_Q4_K] = unpack_q4_k, [WK_Q6_K] = unpack_q6_k};
    const bool tiles = takes_tiles(format);
    product_fn *add = tiles ? tile_product(format, x->pieces) : vector_product(format);
    const int64_t bytes = wk_qformats[format].bytes, per_block = quant_runs_of(format);
    panel *b = room;
    float *sums = (float *)(b + 1);
    memset(sums, 0, panel_bytes(x->rows, columns) - sizeof *b);
    if (tiles)
        amx_begin();
    for (int64_t r = 0; r < x->runs; r += RUNS)
        for (int64_t j = 0; j < columns; j += PANEL) {
            int64_t runs = gemm_min(RUNS, x->runs - r);
            unpack[format](blocks + r / per_block * bytes + j * pitch, pitch, gemm_min(PANEL, columns - j),
                           runs, b);
            add_panel(b, x, r, runs, add, sums + j / PANEL * quant_panel_size(x->rows));
        }
    if (tiles)
        amx_end();
    return sums;
}

/* ---- The two ways ---- */

static size_t pairs_bytes(int64_t rows, int64_t k) { return bytes_of(rows, k, 1); }
static size_t pieces_bytes(int64_t rows, int64_t k) { return bytes_of(rows, k, PIECES); }

static bool pack_pairs(const void *values, int64_t rows, int64_t k, void *room, quant_packed *x)
{
    return pack_as(values, rows, k, 1, room, x);
}

static bool pack_pieces(const void *values, int64_t rows, int64_t k, void *room, quant_packed *x)
{
    return pack_as(values, rows, k, PIECES, room, x);
}

const quant_many WK_ISA(wk_quant_pairs) = {WK_BF16,    has_pairs,   pairs_bytes,
                                           pack_pairs, panel_bytes, panels_of};
const quant_many WK_ISA(wk_quant_pieces) = {WK_F32,      takes_tiles, pieces_bytes,
                                            pack_pieces, panel_bytes, panels_of};
#else
static bool has_none(int64_t format) { return (void)format, false; }
const quant_many WK_ISA(wk_quant_pairs) = {.has = has_none}, WK_ISA(wk_quant_pieces) = {.has = has_none};
#endif
