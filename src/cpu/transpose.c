/* transpose.c: the transposing copy.
 *
 * Both sides of a transpose cannot run along memory at once. It is done in tiles of one cache line of each row that
 * is read and several of each row that is written: a tile is transposed into a buffer in the L1 cache, from where
 * its rows are written out as whole lines. Meanwhile the lines of a later tile are prefetched, into L2: rows that lie a
 * power of two apart share a set of the L1 cache, which could not hold them. */
#include "block.h"
#include "stream.h"

enum { IN = WK_LINE, OUT = 4 * WK_LINE }; /* bytes of a row of a tile, before and after */
/* Rows of a tile before, at most: that many lines a power of two apart still have room in their few sets of the L2 cache
 * beside others. */
enum { HIGH = 64 };
enum { AHEAD = 2 }; /* how many tiles ahead to prefetch: one is too late by a little */

/* Both compilers have a shuffle of two vectors by constant indices, under two names. */
#if defined(__clang__) || __GNUC__ >= 12
#define SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define SHUFFLE(a, b, ...) __builtin_shuffle(a, b, (__typeof__(a)){__VA_ARGS__})
#endif

typedef uint8_t vec1 __attribute__((vector_size(16)));
typedef uint16_t vec2 __attribute__((vector_size(16)));
typedef uint32_t vec4 __attribute__((vector_size(16)));
typedef uint64_t vec8 __attribute__((vector_size(16)));

/* The first, or second, halves of two vectors, interleaved. */
static inline vec1 low1(vec1 a, vec1 b)
{
    return SHUFFLE(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
}
static inline vec1 high1(vec1 a, vec1 b)
{
    return SHUFFLE(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
}
static inline vec2 low2(vec2 a, vec2 b) { return SHUFFLE(a, b, 0, 8, 1, 9, 2, 10, 3, 11); }
static inline vec2 high2(vec2 a, vec2 b) { return SHUFFLE(a, b, 4, 12, 5, 13, 6, 14, 7, 15); }
static inline vec4 low4(vec4 a, vec4 b) { return SHUFFLE(a, b, 0, 4, 1, 5); }
static inline vec4 high4(vec4 a, vec4 b) { return SHUFFLE(a, b, 2, 6, 3, 7); }
static inline vec8 low8(vec8 a, vec8 b) { return SHUFFLE(a, b, 0, 2); }
static inline vec8 high8(vec8 a, vec8 b) { return SHUFFLE(a, b, 1, 3); }

/* Transposes a square of 16-byte rows, pitch bytes apart. Interleaving row i with row i + half moves the
 * top bit of the row number to the bottom of the column number and shifts the rest; as many rounds as a
 * row number has bits exchange the two. */
#define SQUARE(bytes) \
    static inline void square##bytes(const unsigned char *src, int64_t pitch, unsigned char *dst) \
    { \
        enum { LANES = 16 / bytes }; \
        vec##bytes v[LANES], w[LANES]; \
        for (int i = 0; i < LANES; i++) \
            memcpy(&v[i], src + i * pitch, 16); \
        for (int bit = 1; bit < LANES; bit *= 2) { \
            for (int i = 0; i < LANES / 2; i++) { \
                w[2 * i] = low##bytes(v[i], v[i + LANES / 2]); \
                w[2 * i + 1] = high##bytes(v[i], v[i + LANES / 2]); \
            } \
            for (int i = 0; i < LANES; i++) \
                v[i] = w[i]; \
        } \
        for (int i = 0; i < LANES; i++) \
            memcpy(dst + i * OUT, &v[i], 16); \
    }

SQUARE(1)
SQUARE(2)
SQUARE(4)
SQUARE(8)

/* Transposes a tile into the buffer out; rows and cols are rounded up to whole squares. Prefetches the
 * tile that lies ahead bytes further, when ahead is not 0. */
#define TILE(bytes) \
    static void tile##bytes(const unsigned char *src, int64_t pitch, unsigned char *out, int64_t rows, \
                            int64_t cols, int64_t ahead) \
    { \
        enum { LANES = 16 / bytes }; \
        for (int64_t i = 0; i < rows; i += LANES, src += LANES * pitch) { \
            for (int64_t r = 0; ahead != 0 && r < LANES; r++) \
                __builtin_prefetch(src + r * pitch + ahead, 0, 2); \
            for (int64_t j = 0; j < cols; j += LANES) \
                square##bytes(src + j * bytes, pitch, out + j * OUT + i * bytes); \
        } \
    }

TILE(1)
TILE(2)
TILE(4)
TILE(8)

static void transpose_tile(size_t bytes, const unsigned char *src, int64_t pitch, unsigned char *out,
                           int64_t rows, int64_t cols, int64_t ahead)
{
    switch (bytes) {
    case 1: tile1(src, pitch, out, rows, cols, ahead); break;
    case 2: tile2(src, pitch, out, rows, cols, ahead); break;
    case 4: tile4(src, pitch, out, rows, cols, ahead); break;
    default: tile8(src, pitch, out, rows, cols, ahead); break;
    }
}

/* A tile at the edge, where whole squares would reach outside: goes through a buffer that holds them. */
static void transpose_edge(size_t bytes, const unsigned char *src, int64_t pitch, unsigned char *out,
                           int64_t rows, int64_t cols)
{
    _Alignas(WK_LINE) unsigned char in[OUT * IN];
    for (int64_t i = 0; i < rows; i++)
        memcpy(in + i * IN, src + i * pitch, (size_t)cols * bytes);
    transpose_tile(bytes, in, IN, out, rows, cols, 0);
}

/* Full rows, the common case, get moves of a fixed size. */
static void write_rows(const unsigned char *tile, unsigned char *dst, int64_t pitch, int64_t rows, size_t run,
                       bool stream)
{
    if (stream)
        for (int64_t i = 0; i < rows; i++)
            wk_stream_copy(dst + i * pitch, tile + i * OUT, run);
    else if (run == OUT)
        for (int64_t i = 0; i < rows; i++)
            memcpy(dst + i * pitch, tile + i * OUT, OUT);
    else
        for (int64_t i = 0; i < rows; i++)
            memcpy(dst + i * pitch, tile + i * OUT, run);
}

/* How far from a tile of these sides the one to prefetch lies, in bytes: some tiles on in the same rows, or in the rows
 * below where a matrix is too narrow for that; 0 for none. right and below are the columns and rows from
 * the tile on. */
static int64_t prefetch_distance(int64_t high, int64_t wide, int64_t right, int64_t below, int64_t cols,
                                 int64_t pitch)
{
    if (right >= (AHEAD + 1) * wide)
        return AHEAD * IN;
    return cols < (AHEAD + 1) * wide && below >= 2 * high ? high * pitch : 0;
}

void WK_ISA(wk_block_transpose)(size_t bytes, const void *src, int64_t src_rs, void *dst, int64_t dst_rs,
                                int64_t rows, int64_t cols, bool stream)
{
    _Alignas(WK_LINE) unsigned char out[IN * OUT];
    const int64_t size = (int64_t)bytes, high = OUT / size < HIGH ? OUT / size : HIGH, wide = IN / size,
                  pitch = src_rs * size;
    for (int64_t i = 0; i < rows; i += high)
        for (int64_t j = 0; j < cols; j += wide) {
            int64_t m = rows - i < high ? rows - i : high, n = cols - j < wide ? cols - j : wide;
            const unsigned char *from = (const unsigned char *)src + i * pitch + j * size;
            int64_t ahead = prefetch_distance(high, wide, cols - j, rows - i, cols, pitch);
            if (m == high && n == wide)
                transpose_tile(bytes, from, pitch, out, m, n, ahead);
            else
                transpose_edge(bytes, from, pitch, out, m, n);
            unsigned char *to = (unsigned char *)dst + (j * dst_rs + i) * size;
            write_rows(out, to, dst_rs * size, n, (size_t)(m * size), stream);
        }
}
