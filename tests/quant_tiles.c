/* quant_tiles.c: many rows of bf16 and of f32 times quantised weights by tile registers, which are in software here and, where
 * the machine has some, in its processor, or by its instructions for pairs of bf16 and for bytes, against sums in f64: rows
 * and columns around those of a tile and a panel, rows of weights that begin anywhere. */
#include <math.h>
#include <stdlib.h>
#include "core/host.h"
#include "quant.h"
#include "test.h"

enum {
    MOST_ROWS = 33,
    MOST_COLUMNS = WK_QUANT_PANEL * WK_QUANT_PANELS,
    MOST_K = 2304,
    GAP = 7,
    WEIGHTS = 1 << 19
};

/* Ways of a level. */
typedef struct {
    const char *where;
    const quant_many *way;
    void (*unpack)(int64_t format, const uint8_t *blocks, int64_t n, double *dst);
} level;

#define LEVEL(name, where) \
    {where, &wk_quant_pairs_##name, wk_quant_unpack_f64_##name}, \
        {where, &wk_quant_pieces_##name, wk_quant_unpack_f64_##name}, \
    { \
        where, &wk_quant_digits_##name, wk_quant_unpack_f64_##name \
    }

#if WK_LEVELS > 1
extern const quant_many wk_quant_pairs_avx512, wk_quant_pieces_avx512, wk_quant_digits_avx512;
void wk_quant_unpack_f64_avx512(int64_t format, const uint8_t *blocks, int64_t n, double *dst);
#endif

static const level levels[] = {
    LEVEL(soft, "in software"),
#if WK_LEVELS > 1
    LEVEL(avx512, "in the processor"),
#endif
};

static uint16_t x[MOST_ROWS * MOST_K];
static float numbers[MOST_ROWS * MOST_K]; /* x before it is rounded */
static uint8_t weights[WEIGHTS];
static double row[MOST_K];
static uint64_t state = 3;

static int64_t pick(int64_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)((state >> 33) % (uint64_t)n);
}

/* One in 64 is a hundred times as large as the others. */
static float number(void) { return (float)(pick(20001) - 10000) / (pick(64) ? 5000 : 50); }

/* Any bits for integers, and numbers around 0.01 for scales; or all integers the least or largest there is and all of x the
 * same, where sums of integers are as large as they get. */
static void fill(int64_t format, int64_t rows, int64_t k, int64_t columns, int64_t pitch, bool same)
{
    const wk_qformat_info *q = &wk_qformats[format];
    const float value = pick(2) ? 2 : -2;
    const uint8_t byte = pick(2) ? 0xFF : 0;
    for (int64_t i = 0; i < rows * k; i++)
        x[i] = wk_f32_to_bf16(numbers[i] = same ? value : number());
    for (int64_t i = 0; i < columns * pitch; i++)
        weights[i] = same ? byte : (uint8_t)pick(256);
    for (int64_t j = 0; j < columns; j++)
        for (int64_t b = 0; b < k / q->block; b++)
            for (int s = 0; s < 2 && q->scale_at[s] >= 0; s++) {
                uint16_t scale = wk_f32_to_f16((float)(pick(200) - 100) / 5000 + 0.001f);
                memcpy(weights + j * pitch + b * q->bytes + q->scale_at[s], &scale, sizeof scale);
            }
}

/* The largest of a run: what its numbers are rounded by where they become integers. */
static double largest(const float *run)
{
    double top = 0;
    for (int i = 0; i < QUANT_RUN; i++)
        top = fabs((double)run[i]) > top ? fabs((double)run[i]) : top;
    return top;
}

/* What is taken off weight p of a row. */
static double min_of(int64_t format, const uint8_t *blocks, int64_t p)
{
    quant_scales s = {0};
    if (format == WK_Q4_K)
        quant_read_scales(WK_Q4_K, blocks + p / QUANT_BLOCK * wk_qformats[format].bytes, &s);
    return (double)s.min[p % QUANT_BLOCK / QUANT_RUN];
}

/* How many of column j are wrong: in units of the sizes of all that is added up. Where all of it is the same, each sum is
 * rounded the same way. */
static int wrong_in(const level *l, int64_t format, int64_t rows, int64_t k, int64_t j, int64_t pitch,
                    bool same, const float *got)
{
    const bool floats = l->way->dtype == WK_F32;
    int wrong = 0;
    l->unpack(format, weights + j * pitch, k / wk_qformats[format].block, row);
    for (int64_t i = 0; i < rows; i++) {
        double sum = 0, size = 0;
        for (int64_t p = 0; p < k; p++) {
            float value = floats ? numbers[i * k + p] : wk_bf16_to_f32(x[i * k + p]);
            double product = row[p] * (double)value;
            sum += product;
            double rounded = floats ? largest(numbers + i * k + p / QUANT_RUN * QUANT_RUN) / 4 : 0;
            size += fabs(product) + fabs(row[p]) * rounded +
                    fabs(min_of(format, weights + j * pitch, p) * (double)value);
        }
        wrong += !(fabs((double)got[i * WK_QUANT_PANEL] - sum) <= (same ? 1.2e-6 : 4e-7) * size);
    }
    return wrong;
}

static void product(const level *l, int64_t format, int64_t rows, int64_t k, int64_t columns)
{
    const int64_t pitch = k / wk_qformats[format].block * wk_qformats[format].bytes + pick(GAP);
    const bool floats = l->way->dtype == WK_F32, same = pick(3) == 0;
    size_t room = (l->way->x_bytes(rows, k) + 63) / 64 * 64,
           panel = (l->way->panel_bytes(rows, columns) + 63) / 64 * 64;
    char *memory = aligned_alloc(64, room + panel);
    quant_packed packed;
    fill(format, rows, k, columns, pitch, same);
    if (!CHECK(memory && l->way->pack(floats ? (void *)numbers : x, rows, k, memory, &packed)))
        return;
    memset(memory + room, 0xFF, panel);
    const float *got = l->way->panels(format, &packed, weights, pitch, columns, memory + room);
    int wrong = 0;
    for (int64_t j = 0; j < columns; j++)
        wrong += wrong_in(l, format, rows, k, j, pitch, same,
                          got + j / WK_QUANT_PANEL * quant_panel_size(rows) + j % WK_QUANT_PANEL);
    test_check(wrong == 0, __FILE__, __LINE__, "format %d, %s, %s: %lld rows of %lld times %lld: %d wrong",
               (int)format, floats ? "f32" : "bf16", l->where, (long long)rows, (long long)k,
               (long long)columns, wrong);
    free(memory);
}

int main(void)
{
    static const int64_t rows[] = {1, 8, 9, 16, 17, MOST_ROWS}, columns[] = {1, 17, 47, 48, 97, MOST_COLUMNS};
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++)
        for (int64_t format = 0; format < WK_QFORMAT_COUNT; format++) {
            if (!levels[i].way->has(format))
                continue;
            const int64_t block = wk_qformats[format].block, depths[] = {block, 3 * block, 9 * block};
            for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
                for (size_t c = 0; c < sizeof columns / sizeof *columns; c++)
                    product(&levels[i], format, rows[r], depths[(r + c) % 3], columns[c]);
        }
    return test_end();
}
