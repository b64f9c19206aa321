/* gemm_amx.c: the tile kernels by the processor's tile registers, which multiply bf16. A tile of C is a square of 2 by
 * 2 of them, 32 rows by 32 columns. Operands are filled up with zeros along k, and their rows to whole registers; B is
 * packed as for the kernel of pairs, A in blocks of 16 pairs, row by row, if it is packed.
 *
 * Numbers of other types are cut into pieces of bf16 (gemm_cut.c): x = x0 + x1 + x2, where x1 is at most 2^-8 and x2
 * 2^-17 of x, so that a product is a sum of products of pieces. Those left out are at most 2^-24 of it, which is half of
 * its last place. */
#include "gemm_int.h"
#if GEMM_TILES
#include "amx.h"

enum { PAIRS = AMX_ROW_BYTES / 4, COLUMNS = AMX_ROW_BYTES / 4, SIDE = 2 * AMX_ROWS };

/* Which of the four there are: down, those of the lower rows; right, those of the columns at the right. Constants
 * wherever they go. */
typedef struct {
    bool down, right;
} square;

ALWAYS_INLINE void load_a(square sq, const uint32_t *a, int64_t pitch)
{
    AMX_LOAD(4, a, pitch);
    if (sq.down)
        AMX_LOAD(5, (const char *)a + AMX_ROWS * pitch, pitch);
}

ALWAYS_INLINE void load_b(square sq, const uint32_t *b, int64_t pitch)
{
    AMX_LOAD(6, b, pitch);
    if (sq.right)
        AMX_LOAD(7, b + COLUMNS, pitch);
}

ALWAYS_INLINE void multiply(square sq)
{
    AMX_MULADD(0, 4, 6);
    if (sq.right)
        AMX_MULADD(1, 4, 7);
    if (sq.down)
        AMX_MULADD(2, 5, 6);
    if (sq.down && sq.right)
        AMX_MULADD(3, 5, 7);
}

ALWAYS_INLINE void zero_sums(void)
{
    AMX_ZERO(0);
    AMX_ZERO(1);
    AMX_ZERO(2);
    AMX_ZERO(3);
}

ALWAYS_INLINE void load_sums(square sq, const float *c, int64_t pitch)
{
    const float *below = c + AMX_ROWS * pitch / (int64_t)sizeof(float);
    AMX_LOAD(0, c, pitch);
    if (sq.right)
        AMX_LOAD(1, c + COLUMNS, pitch);
    if (sq.down)
        AMX_LOAD(2, below, pitch);
    if (sq.down && sq.right)
        AMX_LOAD(3, below + COLUMNS, pitch);
}

ALWAYS_INLINE void store_sums(square sq, float *c, int64_t pitch)
{
    float *below = c + AMX_ROWS * pitch / (int64_t)sizeof(float);
    AMX_STORE(0, c, pitch);
    if (sq.right)
        AMX_STORE(1, c + COLUMNS, pitch);
    if (sq.down)
        AMX_STORE(2, below, pitch);
    if (sq.down && sq.right)
        AMX_STORE(3, below + COLUMNS, pitch);
}

/* Calls work(..., square) for the registers that t fills. */
#define FOR_SQUARE(t, work, ...) \
    do { \
        bool down = (t)->rows > AMX_ROWS, right = (t)->cols > COLUMNS; \
        if (down && right) \
            work(__VA_ARGS__, (square){true, true}); \
        else if (down) \
            work(__VA_ARGS__, (square){true, false}); \
        else if (right) \
            work(__VA_ARGS__, (square){false, true}); \
        else \
            work(__VA_ARGS__, (square){false, false}); \
    } while (0)

/* ---- bf16 ---- */

ALWAYS_INLINE void sum_bf16(const gemm_tile *t, float *c, int64_t pitch, bool add, square sq)
{
    zero_sums();
    if (add)
        load_sums(sq, c, pitch);
    const uint32_t *a = t->a, *b = t->b, *more = t->more;
    int64_t a_pitch = t->a_rs * (int64_t)sizeof *a, b_pitch = t->b_ks * (int64_t)sizeof *b;
    for (int64_t p = 0; p < t->k; p += PAIRS, a += PAIRS * t->a_ks) {
        load_a(sq, a, a_pitch);
        load_b(sq, b + p * t->b_ks, b_pitch);
        multiply(sq);
        if (more) {
            load_b(sq, more + p * t->b_ks, b_pitch);
            multiply(sq);
        }
    }
    store_sums(sq, c, pitch);
}

/* A tile that ends within a register is worked out beside C. */
static void run_tile(const gemm_tile *t)
{
    float beside[SIDE * SIDE], *c = t->c;
    if (t->rows % AMX_ROWS == 0 && t->cols % COLUMNS == 0) {
        FOR_SQUARE(t, sum_bf16, t, c, t->ldc * (int64_t)sizeof *c, t->add);
        return;
    }
    FOR_SQUARE(t, sum_bf16, t, beside, SIDE * sizeof *beside, false);
    for (int i = 0; i < t->rows; i++)
        for (int j = 0; j < t->cols; j++)
            c[i * t->ldc + j] = beside[i * SIDE + j] + (t->add ? c[i * t->ldc + j] : 0.0f);
}

/* ---- Pieces ---- */

/* The small products first, all of them, and then the large ones: sums stay small while most is added. Panels are as wide
 * as the square. */
ALWAYS_INLINE void sum_pieces(const gemm_tile *t, int pieces, float *sums)
{
    const square sq = {true, true};
    const int64_t piece = SIDE * PAIRS, pitch = SIDE * sizeof(uint32_t); /* of B; A's is AMX_ROW_BYTES */
    const uint32_t *a = t->a, *b = t->b;
    zero_sums();
    for (int64_t p = 0; p < t->k; p += PAIRS, a += pieces * piece, b += pieces * piece) {
        load_a(sq, a, AMX_ROW_BYTES);
        if (pieces == 3) {
            load_b(sq, b + 2 * piece, pitch);
            multiply(sq);
        }
        load_b(sq, b + piece, pitch);
        multiply(sq);
        load_a(sq, a + piece, AMX_ROW_BYTES);
        multiply(sq);
        load_b(sq, b, pitch);
        multiply(sq);
        if (pieces == 3) {
            load_a(sq, a + 2 * piece, AMX_ROW_BYTES);
            multiply(sq);
        }
    }
    a = t->a, b = t->b;
    for (int64_t p = 0; p < t->k; p += PAIRS, a += pieces * piece, b += pieces * piece) {
        load_a(sq, a, AMX_ROW_BYTES);
        load_b(sq, b, pitch);
        multiply(sq);
    }
    store_sums(sq, sums, SIDE * sizeof *sums);
}

typedef float floats __attribute__((vector_size(AMX_ROW_BYTES)));

/* n columns of a row of sums, scaled back, into C. */
ALWAYS_INLINE void put_row(float *c, const float *sums, int n, bool add)
{
    const float back = 1 / (GEMM_CUT_SCALE * GEMM_CUT_SCALE);
    floats v, before = {0};
    int j = 0;
    for (; j + COLUMNS <= n; j += COLUMNS) {
        memcpy(&v, sums + j, sizeof v);
        if (add)
            memcpy(&before, c + j, sizeof before);
        v = v * back + before;
        memcpy(c + j, &v, sizeof v);
    }
    for (; j < n; j++)
        c[j] = sums[j] * back + (add ? c[j] : 0.0f);
}

ALWAYS_INLINE void run_pieces(const gemm_tile *t, int pieces)
{
    _Alignas(64) float sums[SIDE * SIDE];
    sum_pieces(t, pieces, sums);
    for (int i = 0; i < t->rows; i++)
        put_row((float *)t->c + i * t->ldc, sums + i * SIDE, t->cols, t->add);
}

static void run_two(const gemm_tile *t) { run_pieces(t, 2); }
static void run_three(const gemm_tile *t) { run_pieces(t, 3); }

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

/* What the kernels here have in common. */
#define KERNEL(elements, run, ...) \
    { \
        .tile = run, .bytes = (elements) * sizeof(uint32_t), .rows = SIDE, .pair = 2, .blocks = 2, \
        .step = PAIRS, .a_dtype = WK_DTYPE_COUNT, .b_dtype = WK_DTYPE_COUNT, .begin = amx_begin, \
        .end = amx_end, __VA_ARGS__ \
    }
#define PIECES(n, name) \
    KERNEL(n, run_##name, .lanes = SIDE, .vectors = 1, .pieces = n, .cut_a = WK_ISA(gemm_cut_a_##name), \
           .cut_b = WK_ISA(gemm_cut_b_##name))

const gemm_kernel WK_ISA(gemm_kernel_amx) = KERNEL(1, run_tile, .lanes = COLUMNS, .vectors = 2,
                                                   .pack_a = WK_ISA(gemm_pack_amx));
const gemm_kernel WK_ISA(gemm_kernel_two) = PIECES(2, two);
const gemm_kernel WK_ISA(gemm_kernel_three) = PIECES(3, three);
#endif
