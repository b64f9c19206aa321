/* gemm_amx.c: the tile kernel for bf16 by the processor's tile registers. A tile of C is 2 by 2 of them, 32 rows by 32
 * columns. Both operands are filled up with zeros along k, and their rows to whole registers; B is packed as for the
 * kernel of pairs, A in blocks of 16 pairs, row by row, if it is packed. */
#include "gemm_int.h"
#if defined(__AVX512F__) || defined(WK_SOFT_TILES)
#include "amx.h"

enum { PAIRS = AMX_ROW_BYTES / 4, COLUMNS = AMX_ROW_BYTES / 4, SIDE = 2 * AMX_ROWS };

/* The products with 16 pairs of B. */
static inline __attribute__((always_inline)) void step(const uint32_t *b, int64_t pitch, bool down,
                                                       bool right)
{
    AMX_LOAD(6, b, pitch);
    AMX_MULADD(0, 4, 6);
    if (right) {
        AMX_LOAD(7, b + COLUMNS, pitch);
        AMX_MULADD(1, 4, 7);
    }
    if (down)
        AMX_MULADD(2, 5, 6);
    if (down && right)
        AMX_MULADD(3, 5, 7);
}

/* Which of the four there are: down, those of the lower rows; right, those of the columns at the right. */
static inline __attribute__((always_inline)) void multiply(const gemm_tile *t, float *c, int64_t pitch,
                                                           bool add, bool down, bool right)
{
    float *below = c + AMX_ROWS * pitch / (int64_t)sizeof(float);
    AMX_ZERO(0);
    AMX_ZERO(1);
    AMX_ZERO(2);
    AMX_ZERO(3);
    if (add) {
        AMX_LOAD(0, c, pitch);
        if (right)
            AMX_LOAD(1, c + COLUMNS, pitch);
        if (down)
            AMX_LOAD(2, below, pitch);
        if (down && right)
            AMX_LOAD(3, below + COLUMNS, pitch);
    }
    const uint32_t *a = t->a, *b = t->b, *more = t->more;
    int64_t a_pitch = t->a_rs * (int64_t)sizeof *a, b_pitch = t->b_ks * (int64_t)sizeof *b;
    for (int64_t p = 0; p < t->k; p += PAIRS, a += PAIRS * t->a_ks) {
        AMX_LOAD(4, a, a_pitch);
        if (down)
            AMX_LOAD(5, a + AMX_ROWS * t->a_rs, a_pitch);
        step(b + p * t->b_ks, b_pitch, down, right);
        if (more)
            step(more + p * t->b_ks, b_pitch, down, right);
    }
    AMX_STORE(0, c, pitch);
    if (right)
        AMX_STORE(1, c + COLUMNS, pitch);
    if (down)
        AMX_STORE(2, below, pitch);
    if (down && right)
        AMX_STORE(3, below + COLUMNS, pitch);
}

static void multiply_any(const gemm_tile *t, float *c, int64_t pitch, bool add)
{
    bool down = t->rows > AMX_ROWS, right = t->cols > COLUMNS;
    if (down && right)
        multiply(t, c, pitch, add, true, true);
    else if (down)
        multiply(t, c, pitch, add, true, false);
    else if (right)
        multiply(t, c, pitch, add, false, true);
    else
        multiply(t, c, pitch, add, false, false);
}

/* A tile that ends within a register is worked out beside C. */
static void run_tile(const gemm_tile *t)
{
    float beside[SIDE * SIDE], *c = t->c;
    if (t->rows % AMX_ROWS == 0 && t->cols % COLUMNS == 0) {
        multiply_any(t, c, t->ldc * (int64_t)sizeof *c, t->add);
        return;
    }
    multiply_any(t, beside, SIDE * sizeof *beside, false);
    for (int i = 0; i < t->rows; i++)
        for (int j = 0; j < t->cols; j++)
            c[i * t->ldc + j] = beside[i * SIDE + j] + (t->add ? c[i * t->ldc + j] : 0.0f);
}

/* ---- Packing A ---- */

/* One row of a block: pairs along k, sp apart, of which there are pn values. */
static void pack_row(uint32_t *dst, const uint16_t *src, int64_t sp, int64_t pn)
{
    if (sp == 1 && pn == 2 * PAIRS) {
        memcpy(dst, src, 2 * PAIRS * sizeof *src);
        return;
    }
    for (int64_t p = 0; p < PAIRS; p++) {
        uint32_t low = 2 * p < pn ? src[2 * p * sp] : 0, high = 2 * p + 1 < pn ? src[(2 * p + 1) * sp] : 0;
        dst[p] = low | high << 16;
    }
}

void WK_ISA(gemm_pack_amx)(void *dst, int64_t width, const void *src, int64_t sx, int64_t sp, int64_t xn,
                           int64_t pn)
{
    uint32_t *out = dst;
    const uint16_t *in = src;
    for (int64_t p = 0; p < pn; p += 2 * PAIRS, in += 2 * PAIRS * sp)
        for (int64_t x = 0; x < width; x++, out += PAIRS)
            if (x < xn)
                pack_row(out, in + x * sx, sp, gemm_min(2 * PAIRS, pn - p));
            else
                memset(out, 0, PAIRS * sizeof *out);
}

const gemm_kernel WK_ISA(gemm_kernel_amx) = {.tile = run_tile,
                                             .bytes = sizeof(float),
                                             .lanes = COLUMNS,
                                             .rows = SIDE,
                                             .vectors = 2,
                                             .pair = 2,
                                             .blocks = 2,
                                             .step = PAIRS,
                                             .dtype = WK_DTYPE_COUNT,
                                             .pack_a = WK_ISA(gemm_pack_amx),
                                             .begin = amx_begin,
                                             .end = amx_end};
#endif
