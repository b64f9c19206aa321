/* quant_digits.c: many rows of x in floats times weights of four bits, by integer instructions where the processor has them
 * (AVX-512 VNNI).
 *
 * A number of x is three digits (quant_digits.h), and so a product with a weight takes three quarters of what it takes in
 * f32, in which 4 times as many bytes of weights would be read as well. What is added up for one scale is exact, and
 * fits in 32 bits where weights are numbers from -8 to 7: they are stored 8 larger, which is taken off in the end. */
#include "quant_digits.h"
#include <stdatomic.h>
#include "core/pool.h"
#include "gemm_int.h"

#ifdef __AVX512F__
enum {
    ROWS = 8, /* of x in a tile */
    PANEL = WK_QUANT_PANEL,
    VECTORS = PANEL / QUANT_LANES,
    RUNS = WK_QUANT_RUNS,
    DEPTH = RUNS * QUANT_RUN,
    ADDED = 8, /* to weights as they are stored */
    WORDS = QUANT_RUN / 4,
};

static bool has_digits(int64_t format)
{
    return (format == WK_Q4_0 || format == WK_Q4_K) && WK_ISA(wk_quant_has_int)();
}

/* ---- x: tiles of ROWS rows, of which the runs lie one after the other ---- */

typedef struct {
    int8_t digits[DIGITS][ROWS][QUANT_RUN]; /* lowest first */
    int32_t added[ROWS];                    /* what ADDED gives, with the other sign */
    float scale[ROWS], sum[ROWS];
} tile_run;

static size_t x_bytes(int64_t rows, int64_t k)
{
    return (size_t)(gemm_blocks(rows, ROWS) * (k / QUANT_RUN)) * sizeof(tile_run);
}

typedef struct {
    const float *x;
    int64_t rows, runs;
    tile_run *tiles;
    atomic_bool odd;
} packing;

VNNI static bool pack_run(const float *x, int row, tile_run *t)
{
    __m512i v[2];
    if (!to_integers(x, v, &t->scale[row], &t->sum[row]))
        return false;
    t->added[row] = -ADDED * _mm512_reduce_add_epi32(_mm512_add_epi32(v[0], v[1]));
    for (int d = 0; d < DIGITS; d++)
        for (int half = 0; half < 2; half++)
            _mm_store_si128((__m128i *)&t->digits[d][row][half * QUANT_RUN / 2], take_digit(&v[half]));
    return true;
}

static void pack_tile(void *ctx, int64_t tile)
{
    packing *s = ctx;
    tile_run *to = s->tiles + tile * s->runs;
    int64_t have = gemm_min(ROWS, s->rows - tile * ROWS);
    for (int64_t r = 0; r < s->runs; r++) {
        if (have < ROWS)
            memset(to + r, 0, sizeof *to);
        for (int64_t i = 0; i < have; i++)
            if (!pack_run(s->x + ((tile * ROWS + i) * s->runs + r) * QUANT_RUN, (int)i, to + r))
                atomic_store(&s->odd, true);
    }
}

static bool pack(const void *values, int64_t rows, int64_t k, void *room, quant_packed *x)
{
    packing s = {.x = values, .rows = rows, .runs = k / QUANT_RUN, .tiles = room};
    *x = (quant_packed){.tiles = room, .rows = rows, .runs = s.runs};
    wk_parallel_for(gemm_blocks(rows, ROWS), pack_tile, &s);
    return !s.odd;
}

/* ---- Weights: DEPTH values of PANEL columns ---- */

typedef struct {
    uint32_t words[DEPTH / 4][PANEL]; /* of four numbers */
    float scale[RUNS][PANEL], min[RUNS][PANEL];
    uint32_t column[PANEL][DEPTH / 4];
} panel;

QUANT_INLINE void unpack_block(int format, const uint8_t *block, int64_t j, int64_t first, void *to_panel)
{
    panel *b = to_panel;
    quant_scales s;
    quant_read_scales(format, block, &s);
    for (int r = 0; r < quant_runs_of(format); r++) {
        quant_run q = quant_read_run(format, block, r);
        if (format == WK_Q4_0) /* the others are as they were stored */
            q = _mm256_add_epi8(q, _mm256_set1_epi8(ADDED));
        _mm256_store_si256((__m256i *)&b->column[j][(first + r) * WORDS], q);
        b->scale[first + r][j] = s.scale[2 * r];
        if (format == WK_Q4_K)
            b->min[first + r][j] = s.min[r] - ADDED * s.scale[2 * r];
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
    WK_ISA(gemm_pick_packer)(WK_F32, 1)(b->words, PANEL, b->column, DEPTH / 4, 1, columns, runs * WORDS);
}

/* ---- Products ---- */

typedef int32_t ints __attribute__((vector_size(WK_VEC_BYTES)));

/* s = 256 s + one digit of x times the numbers of a run. */
VNNI_INLINE void add_digit(const int8_t (*x)[QUANT_RUN], const uint32_t (*words)[PANEL],
                           ints s[ROWS][VECTORS])
{
    UNROLL
    for (int i = 0; i < ROWS; i++)
        UNROLL
    for (int v = 0; v < VECTORS; v++)
        s[i][v] = s[i][v] << 8;
    for (int k = 0; k < WORDS; k++) {
        __m512i w[VECTORS];
        UNROLL
        for (int v = 0; v < VECTORS; v++)
            w[v] = _mm512_load_si512(&words[k][v * QUANT_LANES]);
        UNROLL
        for (int i = 0; i < ROWS; i++) {
            __m512i a = _mm512_set1_epi32(((const int32_t *)(const void *)x[i])[k]);
            UNROLL
            for (int v = 0; v < VECTORS; v++)
                s[i][v] = (ints)_mm512_dpbusd_epi32((__m512i)s[i][v], w[v], a);
        }
    }
}

/* sums, rows of PANEL, += a tile's run times the panel's run r. */
VNNI_INLINE void add_run(const tile_run *t, const panel *b, int64_t r, bool mins, float *sums)
{
    ints s[ROWS][VECTORS];
    UNROLL
    for (int i = 0; i < ROWS; i++)
        UNROLL
    for (int v = 0; v < VECTORS; v++)
        s[i][v] = (ints){0};
    add_digit(t->digits[2], &b->words[r * WORDS], s);
    add_digit(t->digits[1], &b->words[r * WORDS], s);
    add_digit(t->digits[0], &b->words[r * WORDS], s);
    UNROLL
    for (int v = 0; v < VECTORS; v++) {
        __m512 by = _mm512_load_ps(&b->scale[r][v * QUANT_LANES]), min = _mm512_setzero_ps();
        if (mins)
            min = _mm512_load_ps(&b->min[r][v * QUANT_LANES]);
        UNROLL
        for (int i = 0; i < ROWS; i++) {
            float *y = sums + i * PANEL + v * QUANT_LANES;
            __m512 products = _mm512_cvtepi32_ps((__m512i)(s[i][v] + t->added[i]));
            __m512 scale = _mm512_mul_ps(by, _mm512_set1_ps(t->scale[i]));
            __m512 sum = _mm512_fmadd_ps(products, scale, _mm512_load_ps(y));
            if (mins)
                sum = _mm512_fnmadd_ps(_mm512_set1_ps(t->sum[i]), min, sum);
            _mm512_store_ps(y, sum);
        }
    }
    __asm__ volatile(
        "" ::
            : "memory"); /* or sums would be kept beside as well, for which no registers are left */
}

static size_t panel_bytes(int64_t rows, int64_t columns)
{
    return sizeof(panel) + (size_t)(gemm_blocks(columns, PANEL) * quant_panel_size(rows)) * sizeof(float);
}

VNNI_INLINE float *work_out(int format, const quant_packed *x, const uint8_t *blocks, int64_t pitch,
                            int64_t columns, void *room)
{
    const int64_t bytes = wk_qformats[format].bytes, per_block = quant_runs_of(format);
    panel *b = room;
    float *all = (float *)(b + 1);
    memset(all, 0, panel_bytes(x->rows, columns) - sizeof *b);
    for (int64_t first = 0; first < x->runs; first += RUNS)
        for (int64_t j = 0; j < columns; j += PANEL) {
            int64_t runs = gemm_min(RUNS, x->runs - first);
            unpack_panel(format, blocks + first / per_block * bytes + j * pitch, pitch,
                         gemm_min(PANEL, columns - j), runs, b);
            const tile_run *t = (const tile_run *)x->tiles + first;
            float *sums = all + j / PANEL * quant_panel_size(x->rows);
            for (int64_t i = 0; i < x->rows; i += ROWS, t += x->runs)
                for (int64_t r = 0; r < runs; r++)
                    add_run(t + r, b, r, format == WK_Q4_K, sums + i * PANEL);
        }
    return all;
}

VNNI static float *panels_of(int64_t format, const quant_packed *x, const uint8_t *blocks, int64_t pitch,
                             int64_t columns, void *room)
{
    if (format == WK_Q4_K)
        return work_out(WK_Q4_K, x, blocks, pitch, columns, room);
    return work_out(WK_Q4_0, x, blocks, pitch, columns, room);
}

const quant_many WK_ISA(wk_quant_digits) = {WK_F32, has_digits, x_bytes, pack, panel_bytes, panels_of};
#else
static bool has_none(int64_t format) { return (void)format, false; }
const quant_many WK_ISA(wk_quant_digits) = {.has = has_none};
#endif
