/* gemm_cut.c: cuts numbers into pieces of bf16, in the order in which the tile registers take them. A piece is what is
 * nearest to that which the ones before it left: three make up any f32 and two any f16 exactly.
 *
 * The registers take numbers below 2^-126 for zero, as the smallest pieces and products of small numbers are. So
 * all are multiplied by 2^24 first, and sums by 2^-48 in the end: the last bit of the smallest f32 is 2^-125 then, and
 * products that are lost are below 2^-174. What is too large for that, infinite or NaN is odd: the caller is told, and
 * does without pieces. */
#include "gemm_int.h"
#if GEMM_TILES

enum {
    LANES = 16,
    ODD = (127 + 31) << 23 /* the least odd number, 2^31: sums of GEMM_CUT_DEPTH products stay below 2^79 */
};

typedef float floats __attribute__((vector_size(4 * LANES)));
typedef uint32_t words __attribute__((vector_size(4 * LANES)));
typedef uint16_t halves __attribute__((vector_size(2 * LANES)));

/* x scaled, and the sign bits of found set where it is odd. */
ALWAYS_INLINE void load(floats *x, words *found, const float *src)
{
    memcpy(x, src, sizeof *x);
    *found |= ODD - 1 - ((words)*x & 0x7fffffff);
    *x *= GEMM_CUT_SCALE;
}

/* The piece nearest to x, in the upper halves; x is what is left. By pointer, as there are levels that cannot return a
 * vector of this size. */
ALWAYS_INLINE void take_piece(words *piece, floats *x)
{
    *piece = ((words)*x + 0x8000) & 0xffff0000;
    *x -= (floats)*piece;
}

ALWAYS_INLINE bool any(const words *found)
{
    uint32_t all = 0;
    for (int i = 0; i < LANES; i++)
        all |= (*found)[i];
    return all >> 31;
}

/* n values; a piece of theirs is as far behind the one before it. */
ALWAYS_INLINE bool cut_rows(uint16_t *dst, const float *src, int64_t n, int pieces)
{
    words found = {0};
    for (int64_t i = 0; i < n; i += LANES) {
        floats x;
        load(&x, &found, src + i);
        for (int piece = 0; piece < pieces; piece++) {
            words top;
            take_piece(&top, &x);
            halves out = __builtin_convertvector(top >> 16, halves);
            memcpy(dst + piece * n + i, &out, sizeof out);
        }
    }
    return any(&found);
}

/* A row of pairs from two of values, and so on. */
ALWAYS_INLINE bool cut_pairs(uint32_t *dst, const float *src, int64_t width, int pieces)
{
    const int64_t piece_size = GEMM_CUT_STEP / 2 * width;
    words found = {0};
    for (int64_t p = 0; p < GEMM_CUT_STEP; p += 2, src += 2 * width, dst += width)
        for (int64_t i = 0; i < width; i += LANES) {
            floats low, high;
            load(&low, &found, src + i);
            load(&high, &found, src + width + i);
            for (int piece = 0; piece < pieces; piece++) {
                words out, top;
                take_piece(&out, &low);
                take_piece(&top, &high);
                out = out >> 16 | top;
                memcpy(dst + piece * piece_size + i, &out, sizeof out);
            }
        }
    return any(&found);
}

bool WK_ISA(gemm_cut_a_two)(void *dst, const float *src, int64_t rows)
{
    return cut_rows(dst, src, rows * GEMM_CUT_STEP, 2);
}

bool WK_ISA(gemm_cut_a_three)(void *dst, const float *src, int64_t rows)
{
    return cut_rows(dst, src, rows * GEMM_CUT_STEP, 3);
}

bool WK_ISA(gemm_cut_b_two)(void *dst, const float *src, int64_t width)
{
    return cut_pairs(dst, src, width, 2);
}
bool WK_ISA(gemm_cut_b_three)(void *dst, const float *src, int64_t width)
{
    return cut_pairs(dst, src, width, 3);
}
#endif
