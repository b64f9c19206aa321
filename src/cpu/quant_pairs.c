/* quant_pairs.c: many rows of x in bf16 times quantised weights, where the processor multiplies pairs of bf16 (AVX-512
 * BF16), twice as many numbers at a time as in f32.
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
#include "stream.h"

#ifdef __AVX512F__
#define PAIRS_INLINE QUANT_INLINE __attribute__((target("avx512bf16")))

enum {
    ROWS = 8, /* of a tile */
    PANEL = WK_QUANT_PANEL,
    VECTORS = PANEL / QUANT_LANES,
    RUNS = 8, /* that are unpacked at a time */
    DEPTH = RUNS * QUANT_RUN,
    RUN_PAIRS = QUANT_RUN / 2,
    HUGE_BITS = 0x5F80, /* 2^64: sums before they are scaled must not overflow where those after would not */
};

bool WK_ISA(wk_quant_has_pairs)(void) { return gemm_has_bf16_pairs() && !wk_host_has_amx(); }

/* ---- x: tiles of ROWS rows, of which the runs lie one after the other, each row by row ---- */

size_t WK_ISA(wk_quant_pairs_bytes)(int64_t rows, int64_t k)
{
    int64_t tiles = gemm_blocks(rows, ROWS), runs = k / QUANT_RUN;
    return (size_t)(tiles * ROWS * runs) * (QUANT_RUN * sizeof(uint16_t) + sizeof(float));
}

typedef struct {
    const uint16_t *x;
    int64_t rows, runs;
    uint16_t *tiles;
    float *sums; /* of the runs of a row, as tiles have them */
    atomic_bool odd;
} packing;

/* One run of a row; the largest of its numbers, without sign, as bits. */
PAIRS_INLINE unsigned pack_run(const uint16_t *x, uint16_t *dst, float *sum)
{
    __m512i v = _mm512_loadu_si512(x), magnitude = _mm512_and_si512(v, _mm512_set1_epi16(0x7FFF));
    __m512 low = (__m512)_mm512_slli_epi32(v, 16),
           high = (__m512)_mm512_andnot_si512(_mm512_set1_epi32(0xFFFF), v);
    _mm512_store_si512(dst, v);
    *sum = _mm512_reduce_add_ps(_mm512_add_ps(low, high));
    __m512i even = _mm512_and_si512(magnitude, _mm512_set1_epi32(0xFFFF));
    return _mm512_reduce_max_epu32(_mm512_max_epu32(even, _mm512_srli_epi32(magnitude, 16)));
}

__attribute__((target("avx512bf16"))) static void pack_tile(void *ctx, int64_t tile)
{
    packing *s = ctx;
    unsigned largest = 0;
    uint16_t *dst = s->tiles + tile * s->runs * ROWS * QUANT_RUN;
    float *sums = s->sums + tile * s->runs * ROWS;
    int64_t have = gemm_min(ROWS, s->rows - tile * ROWS);
    for (int64_t r = 0; r < s->runs; r++, dst += ROWS * QUANT_RUN, sums += ROWS) {
        for (int64_t i = 0; i < have; i++) {
            const uint16_t *x = s->x + ((tile * ROWS + i) * s->runs + r) * QUANT_RUN;
            unsigned bits = pack_run(x, dst + i * QUANT_RUN, sums + i);
            largest = bits > largest ? bits : largest;
        }
        memset(dst + have * QUANT_RUN, 0, (size_t)((ROWS - have) * QUANT_RUN) * sizeof *dst);
        memset(sums + have, 0, (size_t)(ROWS - have) * sizeof *sums);
    }
    if (largest >= HUGE_BITS)
        atomic_store(&s->odd, true);
}

bool WK_ISA(wk_quant_pairs_pack)(const uint16_t *values, int64_t rows, int64_t k, void *room, quant_pairs *x)
{
    int64_t tiles = gemm_blocks(rows, ROWS);
    *x = (quant_pairs){.tiles = room, .rows = rows, .runs = k / QUANT_RUN};
    packing s = {.x = values, .rows = rows, .runs = x->runs, .tiles = room};
    s.sums = (float *)(void *)(s.tiles + tiles * ROWS * k);
    x->sums = s.sums;
    wk_parallel_for(tiles, pack_tile, &s);
    return !s.odd;
}

/* ---- Weights: DEPTH values of PANEL columns ---- */

typedef struct {
    uint32_t pairs[DEPTH / 2][PANEL];
    float scale[RUNS][2][PANEL]; /* of the halves of runs; only Q6_K has two */
    float min[RUNS][PANEL];
    uint16_t column[PANEL][DEPTH];
} panel;

PAIRS_INLINE void unpack_block(int format, const uint8_t *block, int64_t j, int64_t first, panel *b)
{
    quant_scales s;
    quant_read_scales(format, block, &s);
    for (int r = 0; r < wk_qformats[format].block / QUANT_RUN; r++) {
        qvec v[QUANT_VECS];
        quant_run q = quant_read_run(format, block, r);
        quant_floats(q, 0, v);
        quant_floats(q, 1, v + 1);
        __m512bh run = _mm512_cvtne2ps_pbh((__m512)v[1], (__m512)v[0]);
        memcpy(&b->column[j][(first + r) * QUANT_RUN], &run, sizeof run);
        b->scale[first + r][0][j] = s.scale[2 * r];
        b->scale[first + r][1][j] = s.scale[2 * r + 1];
        if (format == WK_Q4_K)
            b->min[first + r][j] = s.min[r];
    }
}

/* Runs [r0, r0 + runs) of `columns` rows of weights; the panel's other columns become zero. */
PAIRS_INLINE void unpack_panel(int format, const uint8_t *blocks, int64_t pitch, int64_t columns, int64_t r0,
                               int64_t runs, panel *b)
{
    const int64_t per_block = wk_qformats[format].block / QUANT_RUN, bytes = wk_qformats[format].bytes;
    for (int64_t j = 0; j < columns; j++) {
        const uint8_t *block = blocks + j * pitch + r0 / per_block * bytes;
        /* A row's next ones: it is read in pieces, which the processor does not foresee. */
        wk_ask_lines(block, (size_t)(RUNS / per_block * bytes), RUNS / per_block * bytes);
        for (int64_t r = 0; r < runs; r += per_block, block += bytes)
            unpack_block(format, block, j, r, b);
    }
    for (int64_t r = 0; r < runs && columns < PANEL; r++) {
        size_t rest = (size_t)(PANEL - columns) * sizeof(float);
        memset(b->scale[r][0] + columns, 0, rest);
        memset(b->scale[r][1] + columns, 0, rest);
        memset(b->min[r] + columns, 0, rest);
    }
    WK_ISA(gemm_pick_packer)(WK_BF16, 2)(b->pairs, PANEL, b->column, DEPTH, 1, columns, runs * QUANT_RUN);
}

/* ---- Products ---- */

/* sums (ROWS of PANEL) += x . weights for `count` pairs of one scale. */
PAIRS_INLINE void add_part(int format, const uint32_t *x, const uint32_t *b, int count, const float *scale,
                           const float *min, const float *x_sum, float *sums)
{
    __m512 t[ROWS][VECTORS];
    UNROLL
    for (int i = 0; i < ROWS; i++)
        UNROLL
    for (int v = 0; v < VECTORS; v++)
        t[i][v] = _mm512_setzero_ps();
    for (int p = 0; p < count; p++) {
        __m512i w[VECTORS];
        UNROLL
        for (int v = 0; v < VECTORS; v++)
            w[v] = _mm512_load_si512(b + p * PANEL + v * QUANT_LANES);
        UNROLL
        for (int i = 0; i < ROWS; i++) {
            __m512i a = _mm512_set1_epi32((int)x[i * RUN_PAIRS + p]);
            UNROLL
            for (int v = 0; v < VECTORS; v++)
                t[i][v] = _mm512_dpbf16_ps(t[i][v], (__m512bh)a, (__m512bh)w[v]);
        }
    }
    UNROLL
    for (int v = 0; v < VECTORS; v++) {
        __m512 s = _mm512_load_ps(scale + v * QUANT_LANES), m = _mm512_setzero_ps();
        if (format == WK_Q4_K)
            m = _mm512_load_ps(min + v * QUANT_LANES);
        UNROLL
        for (int i = 0; i < ROWS; i++) {
            float *y = sums + i * PANEL + v * QUANT_LANES;
            __m512 sum = _mm512_fmadd_ps(t[i][v], s, _mm512_load_ps(y));
            if (format == WK_Q4_K)
                sum = _mm512_fnmadd_ps(_mm512_set1_ps(x_sum[i]), m, sum);
            _mm512_store_ps(y, sum);
        }
    }
    __asm__ volatile(
        "" ::
            : "memory"); /* or sums would be kept beside as well, for which no registers are left */
}

PAIRS_INLINE void add_tile(int format, const uint32_t *x, const float *x_sums, const panel *b, int64_t runs,
                           float *sums)
{
    const int parts = format == WK_Q6_K ? 2 : 1, count = RUN_PAIRS / parts;
    for (int64_t r = 0; r < runs; r++)
        for (int h = 0; h < parts; h++)
            add_part(format, x + r * ROWS * RUN_PAIRS + h * count, b->pairs[r * RUN_PAIRS + h * count], count,
                     b->scale[r][h], b->min[r], x_sums + r * ROWS, sums);
}

PAIRS_INLINE void run_panel(int format, const quant_pairs *x, const uint8_t *blocks, int64_t pitch,
                            int64_t columns, panel *b, float *sums)
{
    for (int64_t r = 0; r < x->runs; r += RUNS) {
        int64_t runs = gemm_min(RUNS, x->runs - r);
        unpack_panel(format, blocks, pitch, columns, r, runs, b);
        for (int64_t t = 0; t * ROWS < x->rows; t++) {
            int64_t at = (t * x->runs + r) * ROWS;
            add_tile(format, (const uint32_t *)x->tiles + at * RUN_PAIRS, x->sums + at, b, runs,
                     sums + t * ROWS * PANEL);
        }
    }
}

#define RUN_PANEL(name, format) \
    __attribute__((target("avx512bf16"))) static void run_##name( \
        const quant_pairs *x, const uint8_t *blocks, int64_t pitch, int64_t columns, panel *b, float *sums) \
    { \
        run_panel(format, x, blocks, pitch, columns, b, sums); \
    }

RUN_PANEL(q4_0, WK_Q4_0)
RUN_PANEL(q8_0, WK_Q8_0)
RUN_PANEL(q4_k, WK_Q4_K)
RUN_PANEL(q6_k, WK_Q6_K)

size_t WK_ISA(wk_quant_panel_bytes)(int64_t rows)
{
    return sizeof(panel) + (size_t)gemm_round_up(rows, ROWS) * PANEL * sizeof(float);
}

float *WK_ISA(wk_quant_panel)(int64_t format, const quant_pairs *x, const uint8_t *blocks, int64_t pitch,
                              int64_t columns, void *room)
{
    panel *b = room;
    float *sums = (float *)(b + 1);
    memset(sums, 0, WK_ISA(wk_quant_panel_bytes)(x->rows) - sizeof *b);
    switch (format) {
    case WK_Q4_0: run_q4_0(x, blocks, pitch, columns, b, sums); break;
    case WK_Q8_0: run_q8_0(x, blocks, pitch, columns, b, sums); break;
    case WK_Q4_K: run_q4_k(x, blocks, pitch, columns, b, sums); break;
    default: run_q6_k(x, blocks, pitch, columns, b, sums);
    }
    return sums;
}
#else
bool WK_ISA(wk_quant_has_pairs)(void) { return false; }

size_t WK_ISA(wk_quant_pairs_bytes)(int64_t rows, int64_t k) { return (size_t)(rows * k); }

bool WK_ISA(wk_quant_pairs_pack)(const uint16_t *values, int64_t rows, int64_t k, void *room, quant_pairs *x)
{
    (void)values, (void)rows, (void)k, (void)room, (void)x;
    return false;
}

size_t WK_ISA(wk_quant_panel_bytes)(int64_t rows) { return (size_t)rows; }

float *WK_ISA(wk_quant_panel)(int64_t format, const quant_pairs *x, const uint8_t *blocks, int64_t pitch,
                              int64_t columns, void *room)
{
    (void)format, (void)x, (void)blocks, (void)pitch, (void)columns;
    return room;
}
#endif
