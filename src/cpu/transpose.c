/* transpose.c: the transposing copy.
 *
 * Both sides of a transpose cannot run along memory at once. It is done in tiles of one cache line of each row that
 * is read and several of each row that is written: a tile is transposed into a buffer in the L1 cache, from where
 * its rows are written out as whole lines, while the next one is transposed: a burst of stores would keep the processor
 * from reading. Meanwhile the lines of a later tile are prefetched, into L2: rows that lie a power of two apart share a
 * set of the L1 cache, which could not hold them. */
#include "block.h"
#include "stream.h"

enum { IN = WK_LINE, OUT = 4 * WK_LINE }; /* bytes of a row of a tile, before and after */
/* Rows of a tile before, at most: that many lines a power of two apart still have room in their few sets of the L2 cache
 * beside others. */
enum { HIGH = 64 };
#define HIGH_OF(bytes) (OUT / (bytes) < HIGH ? OUT / (bytes) : HIGH)
/* How many tiles ahead to prefetch: one is late by a little; odd, so that the other line of a pair comes along. */
enum { AHEAD = 3 };
/* Whether a tile is written while the next one is transposed. Not where a line is more than one store: reading that
 * fast sends lines off half full. */
enum { LATER = WK_VEC_BYTES >= WK_LINE };

#ifdef __AVX512F__

/* Two squares go together, every operation does the same with both halves of 16 bytes; fewer levels than have the
 * instructions, for the same reason. */
enum { SIDE = 2 };
typedef __m256i vec1, vec2, vec4, vec8;
#define low1 _mm256_unpacklo_epi8
#define high1 _mm256_unpackhi_epi8
#define low2 _mm256_unpacklo_epi16
#define high2 _mm256_unpackhi_epi16
#define low4 _mm256_unpacklo_epi32
#define high4 _mm256_unpackhi_epi32
#define low8 _mm256_unpacklo_epi64
#define high8 _mm256_unpackhi_epi64

static inline void put_sides(vec1 v, unsigned char *first, unsigned char *second)
{
    _mm_storeu_si128((__m128i *)first, _mm256_castsi256_si128(v));
    _mm_storeu_si128((__m128i *)second, _mm256_extracti128_si256(v, 1));
}

#else

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

enum { SIDE = 1 };
#define put_sides(v, first, second) memcpy(first, &(v), 16)

#endif

/* Transposes a square of 16-byte rows, pitch bytes apart, or SIDE of them side by side. Interleaving row i with row
 * i + half moves the top bit of the row number to the bottom of the column number and shifts the rest; as many rounds
 * as a row number has bits exchange the two. */
#define SQUARE(bytes) \
    static inline void square##bytes(const unsigned char *src, int64_t pitch, unsigned char *dst) \
    { \
        enum { LANES = 16 / bytes }; \
        vec##bytes v[LANES], w[LANES]; \
        for (int i = 0; i < LANES; i++) \
            memcpy(&v[i], src + i * pitch, sizeof v[i]); \
        for (int bit = 1; bit < LANES; bit *= 2) { \
            for (int i = 0; i < LANES / 2; i++) { \
                w[2 * i] = low##bytes(v[i], v[i + LANES / 2]); \
                w[2 * i + 1] = high##bytes(v[i], v[i + LANES / 2]); \
            } \
            for (int i = 0; i < LANES; i++) \
                v[i] = w[i]; \
        } \
        for (int i = 0; i < LANES; i++) \
            put_sides(v[i], dst + i * OUT, dst + (i + LANES) * OUT); \
    }

SQUARE(1)
SQUARE(2)
SQUARE(4)
SQUARE(8)

/* What of a transposed tile is still to be written. */
typedef struct {
    const unsigned char *tile;
    unsigned char *dst;
    int64_t pitch, rows;
    size_t run;         /* bytes of a row */
    bool stream, lines; /* past the cache; as lines, whole ones */
} leaving;

static leaving leave(const unsigned char *tile, unsigned char *dst, int64_t pitch, int64_t rows, size_t run,
                     bool stream)
{
    return (leaving){tile,
                     dst,
                     pitch,
                     rows,
                     run,
                     stream,
                     stream && ((uintptr_t)dst | (uintptr_t)pitch | run) % WK_LINE == 0};
}

/* The next n rows, or those that are left. */
static inline void write_rows(leaving *l, int64_t n)
{
    n = n < l->rows ? n : l->rows;
    const unsigned char *tile = l->tile;
    unsigned char *dst = l->dst;
    const int64_t pitch = l->pitch;
    const size_t run = l->run;
    l->rows -= n;
    l->tile += n * OUT;
    l->dst += n * pitch;
    for (; n > 0; n--, tile += OUT, dst += pitch) {
        if (l->lines)
            for (size_t i = 0; i < run; i += WK_LINE)
                wk_stream_line(dst + i, tile + i);
        else if (l->stream)
            wk_stream_copy(dst, tile, run);
        else if (run == OUT) /* the common case: moves of a fixed size */
            memcpy(dst, tile, OUT);
        else
            memcpy(dst, tile, run);
    }
}

/* Transposes a tile into the buffer out; rows and cols are rounded up to whole squares. Prefetches the
 * tile that lies ahead bytes further, when ahead is not 0. Each row of squares takes its share of the tile before along. */
#define TILE(bytes) \
    static void tile##bytes(const unsigned char *src, int64_t pitch, unsigned char *out, int64_t rows, \
                            int64_t cols, int64_t ahead, leaving *before) \
    { \
        enum { LANES = 16 / bytes, SHARE = (IN / bytes * LANES + HIGH_OF(bytes) - 1) / HIGH_OF(bytes) }; \
        for (int64_t i = 0; i < rows; i += LANES, src += LANES * pitch) { \
            for (int64_t r = 0; ahead != 0 && r < LANES; r++) \
                __builtin_prefetch(src + r * pitch + ahead, 0, 2); \
            for (int64_t j = 0; j < cols; j += SIDE * LANES) \
                square##bytes(src + j * bytes, pitch, out + j * OUT + i * bytes); \
            write_rows(before, SHARE); \
        } \
    }

TILE(1)
TILE(2)
TILE(4)
TILE(8)

static void transpose_tile(size_t bytes, const unsigned char *src, int64_t pitch, unsigned char *out,
                           int64_t rows, int64_t cols, int64_t ahead, leaving *before)
{
    switch (bytes) {
    case 1: tile1(src, pitch, out, rows, cols, ahead, before); break;
    case 2: tile2(src, pitch, out, rows, cols, ahead, before); break;
    case 4: tile4(src, pitch, out, rows, cols, ahead, before); break;
    default: tile8(src, pitch, out, rows, cols, ahead, before); break;
    }
}

/* A tile at the edge, where whole squares would reach outside: goes through a buffer that holds them. */
static void transpose_edge(size_t bytes, const unsigned char *src, int64_t pitch, unsigned char *out,
                           int64_t rows, int64_t cols, leaving *before)
{
    _Alignas(WK_LINE) unsigned char in[OUT * IN];
    for (int64_t i = 0; i < rows; i++)
        memcpy(in + i * IN, src + i * pitch, (size_t)cols * bytes);
    transpose_tile(bytes, in, IN, out, rows, cols, 0, before);
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
    _Alignas(WK_LINE) unsigned char out[2][IN * OUT];
    const int64_t size = (int64_t)bytes, high = HIGH_OF(size), wide = IN / size, pitch = src_rs * size;
    leaving before = {.rows = 0};
    bool which = false;
    for (int64_t i = 0; i < rows; i += high)
        for (int64_t j = 0; j < cols; j += wide, which = LATER && !which) {
            int64_t m = rows - i < high ? rows - i : high, n = cols - j < wide ? cols - j : wide;
            const unsigned char *from = (const unsigned char *)src + i * pitch + j * size;
            int64_t ahead = prefetch_distance(high, wide, cols - j, rows - i, cols, pitch);
            if (m == high && n == wide)
                transpose_tile(bytes, from, pitch, out[which], m, n, ahead, &before);
            else
                transpose_edge(bytes, from, pitch, out[which], m, n, &before);
            write_rows(&before, before.rows); /* what a smaller tile has left */
            unsigned char *to = (unsigned char *)dst + (j * dst_rs + i) * size;
            before = leave(out[which], to, dst_rs * size, n, (size_t)(m * size), stream);
            if (!LATER)
                write_rows(&before, before.rows);
        }
    write_rows(&before, before.rows);
}
