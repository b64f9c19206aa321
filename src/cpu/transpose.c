/* transpose.c: the transposing copy.
 *
 * Both sides of a transpose cannot run along memory at once. It is done in tiles of two cache lines of each row that
 * is read and several of each row that is written: a tile is transposed into a buffer in the L1 cache, from where
 * its rows are written out as whole lines, while the next one is transposed: a burst of stores would keep the processor
 * from reading. Meanwhile the lines of a later tile are prefetched, into L2: rows that lie a power of two apart share a
 * set of the L1 cache, which could not hold them.
 *
 * A tile consists of squares of 16 bytes by as many rows, and so does the buffer; the order of the 16-byte pieces in it is
 * that of the rows to be written, but where one vector holds a whole line: see there. */
#include "block.h"
#include "stream.h"

/* Bytes of a row: of a square, of a tile before and after. */
enum { PIECE = 16, IN = 2 * WK_LINE, OUT = 4 * WK_LINE };
/* Rows of a tile before, at most: lines a power of two apart have to share few sets of the L2 cache. As many as there can be,
 * since memory takes long runs of a row faster than short ones. */
enum { HIGH = 128 };
#define HIGH_OF(bytes) (OUT / (bytes) < HIGH ? OUT / (bytes) : HIGH)
/* How many tiles ahead to prefetch. */
enum { AHEAD = 1 };
/* Whether a tile is written while the next one is transposed. Not where a line is more than one store: reading that
 * fast sends lines off half full. */
enum { LATER = WK_VEC_BYTES >= WK_LINE };

/* For each kind of vectors: ROW, RIGHT and BELOW, how far it is in the buffer from a row of a square to the next one, to the
 * square on the right and to the one below, in the tile before; and SQUARES, how they are declared. */
#ifdef __AVX512F__

/* The squares side by side go together, every operation does the same with all of them. Their rows stay side by side
 * in the buffer, and a row of the tile is put together from pieces when it is written: many small stores would queue up
 * behind those that go past the cache. They are a function of their own: inside a tile's loop there are not registers enough
 * for all the addresses. */
#define ROW(bytes) IN
#define RIGHT(bytes) PIECE
#define BELOW(bytes) (PIECE / (bytes)*IN)
#define SQUARES static __attribute__((noinline))
typedef __m512i vec1, vec2, vec4, vec8;
#define low1 _mm512_unpacklo_epi8
#define high1 _mm512_unpackhi_epi8
#define low2 _mm512_unpacklo_epi16
#define high2 _mm512_unpackhi_epi16
#define low4 _mm512_unpacklo_epi32
#define high4 _mm512_unpackhi_epi32
#define low8 _mm512_unpacklo_epi64
#define high8 _mm512_unpackhi_epi64

/* A row, read once: gcc would rather read a line again for its second use. */
static inline vec1 row_at(const unsigned char *p)
{
    vec1 v = _mm512_loadu_si512(p);
    __asm__("" : "+v"(v));
    return v;
}

#else

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

#define ROW(bytes) (HIGH_OF(bytes) * (bytes))
#define RIGHT(bytes) (PIECE / (bytes)*ROW(bytes))
#define BELOW(bytes) PIECE
#define SQUARES ALWAYS_INLINE

static inline vec1 row_at(const unsigned char *p)
{
    vec1 v;
    memcpy(&v, p, sizeof v);
    return v;
}

#endif

/* Transposes a square of 16-byte rows, pitch bytes apart, or as many side by side as a vector holds. Interleaving row i
 * with row i + half moves the top bit of the row number to the bottom of the column number and shifts the rest; as many
 * rounds as a row number has bits exchange the two. */
#define SQUARE(bytes) \
    SQUARES void square##bytes(const unsigned char *src, int64_t pitch, unsigned char *dst) \
    { \
        enum { LANES = PIECE / bytes }; \
        vec##bytes v[LANES], w[LANES]; \
        for (int i = 0; i < LANES; i++) \
            v[i] = (vec##bytes)row_at(src + i * pitch); \
        for (int bit = 1; bit < LANES; bit *= 2) { \
            for (int i = 0; i < LANES / 2; i++) { \
                w[2 * i] = low##bytes(v[i], v[i + LANES / 2]); \
                w[2 * i + 1] = high##bytes(v[i], v[i + LANES / 2]); \
            } \
            for (int i = 0; i < LANES; i++) \
                v[i] = w[i]; \
        } \
        for (int i = 0; i < LANES; i++) \
            memcpy(dst + i * ROW(bytes), &v[i], sizeof v[i]); \
    }

SQUARE(1)
SQUARE(2)
SQUARE(4)
SQUARE(8)

/* From the buffer: put_line writes a line of a row, whose pieces lie apart bytes from one another, past the cache if so wanted,
 * and put_row the first run bytes of a row to anywhere. */
#ifdef __AVX512F__

static inline __m512i line_of(const unsigned char *from, size_t apart)
{
    __m512i v = _mm512_castsi128_si512(_mm_load_si128((const __m128i *)from));
    v = _mm512_inserti32x4(v, _mm_load_si128((const __m128i *)(from + apart)), 1);
    v = _mm512_inserti32x4(v, _mm_load_si128((const __m128i *)(from + 2 * apart)), 2);
    return _mm512_inserti32x4(v, _mm_load_si128((const __m128i *)(from + 3 * apart)), 3);
}

static inline void put_line(unsigned char *dst, const unsigned char *from, size_t apart, bool stream)
{
    if (stream)
        _mm512_stream_si512((void *)dst, line_of(from, apart));
    else
        _mm512_storeu_si512((void *)dst, line_of(from, apart));
}

static inline void put_row(unsigned char *dst, const unsigned char *from, size_t apart, size_t run)
{
    size_t i = 0;
    for (; i + WK_LINE <= run; i += WK_LINE)
        put_line(dst + i, from + i / PIECE * apart, apart, false);
    if (i < run)
        _mm512_mask_storeu_epi8((void *)(dst + i), ((uint64_t)1 << (run - i)) - 1,
                                line_of(from + i / PIECE * apart, apart));
}

#else

static inline void put_line(unsigned char *dst, const unsigned char *from, size_t apart, bool stream)
{
    (void)apart; /* they don't */
    if (stream)
        wk_stream_line(dst, from);
    else
        memcpy(dst, from, WK_LINE);
}

static inline void put_row(unsigned char *dst, const unsigned char *from, size_t apart, size_t run)
{
    (void)apart;
    memcpy(dst, from, run);
}

#endif

/* A transposed tile and where it goes; where it is NULL there is none. */
typedef struct {
    const unsigned char *tile;
    unsigned char *dst;
    int64_t pitch;
} leaving;

/* n rows of a whole tile, from row r on; past the cache only if they are whole lines there. */
ALWAYS_INLINE void put_rows(leaving l, size_t bytes, size_t r, size_t n, bool stream)
{
    const size_t lanes = PIECE / bytes, apart = BELOW(bytes), run = HIGH_OF(bytes) * bytes;
    unsigned char *dst = l.dst + (int64_t)r * l.pitch;
    for (size_t end = r + n; r < end; r++, dst += l.pitch) {
        const unsigned char *from = l.tile + r % lanes * ROW(bytes) + r / lanes * RIGHT(bytes);
        for (size_t i = 0; i < run; i += WK_LINE)
            put_line(dst + i, from + i / PIECE * apart, apart, stream);
    }
}

/* A tile of which there is less, or whose rows are no whole lines. */
ALWAYS_INLINE void put_part(leaving l, size_t bytes, size_t rows, size_t run, bool stream)
{
    const size_t lanes = PIECE / bytes, apart = BELOW(bytes);
    _Alignas(WK_LINE) unsigned char row[OUT];
    unsigned char *dst = l.dst;
    for (size_t r = 0; r < rows; r++, dst += l.pitch) {
        const unsigned char *from = l.tile + r % lanes * ROW(bytes) + r / lanes * RIGHT(bytes);
        if (!stream) {
            put_row(dst, from, apart, run);
        } else if (apart == PIECE) {
            wk_stream_copy(dst, from, run, 0);
        } else {
            put_row(row, from, apart, run);
            wk_stream_copy(dst, row, run, 0);
        }
    }
}

/* Transposes a tile into the buffer out; rows and cols are rounded up to whole squares. Prefetches the
 * tile that lies ahead bytes further, when ahead is not 0. Each row of squares takes its share of the tile before along. */
#define TILE(bytes) \
    static void tile##bytes(const unsigned char *src, int64_t pitch, unsigned char *out, int64_t rows, \
                            int64_t cols, int64_t ahead, leaving before) \
    { \
        enum { LANES = PIECE / bytes, SIDE = sizeof(vec##bytes) / PIECE, WIDE = IN / bytes }; \
        enum { STEPS = HIGH_OF(bytes) / LANES, SHARE = WIDE > STEPS ? WIDE / STEPS : 1 }; \
        for (int64_t i = 0, step = 0; i < rows; i += LANES, step++, src += LANES * pitch) { \
            for (int64_t k = 0; ahead != 0 && k < LANES; k++) \
                for (int64_t line = 0; line < IN; line += WK_LINE) \
                    __builtin_prefetch(src + k * pitch + ahead + line, 0, 2); \
            for (int64_t j = 0; j < WIDE && j < cols; j += SIDE * LANES) \
                square##bytes(src + j * bytes, pitch, out + step * BELOW(bytes) + j / LANES * RIGHT(bytes)); \
            if (LATER && before.tile && step * WIDE % STEPS == 0) \
                put_rows(before, bytes, (size_t)(step * WIDE / STEPS), SHARE, true); \
        } \
    } \
    static void put##bytes(leaving l, size_t rows, size_t run, bool stream) \
    { \
        if (rows == IN / bytes && run == HIGH_OF(bytes) * bytes && \
            !(stream && ((uintptr_t)l.dst | (uintptr_t)l.pitch) % WK_LINE)) \
            put_rows(l, bytes, 0, rows, stream); \
        else \
            put_part(l, bytes, rows, run, stream); \
    }

TILE(1)
TILE(2)
TILE(4)
TILE(8)

/* What to do with elements of 1, 2, 4 and 8 bytes. */
typedef struct {
    void (*transpose)(const unsigned char *src, int64_t pitch, unsigned char *out, int64_t rows, int64_t cols,
                      int64_t ahead, leaving before);
    void (*put)(leaving l, size_t rows, size_t run, bool stream);
} tile_ways;

static const tile_ways ways_of[] = {{tile1, put1}, {tile2, put2}, {tile4, put4}, {tile8, put8}};

/* A tile at the edge, where whole squares would reach outside: goes through a buffer that holds them. */
static void transpose_edge(const tile_ways *ways, size_t bytes, const unsigned char *src, int64_t pitch,
                           unsigned char *out, int64_t rows, int64_t cols)
{
    _Alignas(WK_LINE) unsigned char in[HIGH * IN];
    for (int64_t i = 0; i < rows; i++)
        memcpy(in + i * IN, src + i * pitch, (size_t)cols * bytes);
    ways->transpose(in, IN, out, rows, cols, 0, (leaving){0});
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
    _Alignas(WK_LINE) unsigned char out[2][HIGH * IN];
    const tile_ways *ways = &ways_of[__builtin_ctzll(bytes)];
    const int64_t size = (int64_t)bytes, high = HIGH_OF(size), wide = IN / size;
    const int64_t pitch = src_rs * size, dst_pitch = dst_rs * size;
    const bool later = LATER && stream && ((uintptr_t)dst | (uintptr_t)dst_pitch) % WK_LINE == 0;
    leaving before = {0};
    for (int64_t i = 0; i < rows; i += high)
        for (int64_t j = 0; j < cols; j += wide) {
            int64_t m = rows - i < high ? rows - i : high, n = cols - j < wide ? cols - j : wide;
            const unsigned char *from = (const unsigned char *)src + i * pitch + j * size;
            unsigned char *tile = before.tile == out[0] ? out[1] : out[0];
            leaving now = {tile, (unsigned char *)dst + j * dst_pitch + i * size, dst_pitch};
            bool whole = m == high && n == wide;
            if (whole) {
                int64_t ahead = prefetch_distance(high, wide, cols - j, rows - i, cols, pitch);
                ways->transpose(from, pitch, tile, m, n, ahead, before);
                before.tile = NULL;
            } else {
                transpose_edge(ways, bytes, from, pitch, tile, m, n);
            }
            if (later && whole)
                before = now;
            else
                ways->put(now, (size_t)n, (size_t)(m * size), stream);
        }
    if (before.tile)
        ways->put(before, (size_t)wide, (size_t)(high * size), stream);
}
