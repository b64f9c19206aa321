/* conv_winograd.c: convolutions by kernels of 3x3, 2x2 and 1x3, a step apart, with fewer products (Winograd's way).
 *
 * Two results by two from 4x4 sources take 36 products of a source and a weight. Transformed sources, 4x4 sums of them,
 * times transformed weights, 4x4 as well, are 16 products, whose sums are the four results:
 *
 *     along a line of sources d, weights g, results y
 *     v = d0 - d2, d1 + d2, d2 - d1, d1 - d3
 *     u = g0, (g0 + g1 + g2) / 2, (g0 - g1 + g2) / 2, g2
 *     m = u * v, added up over the channels
 *     y = m0 + m1 + m2, m1 - m2 - m3
 *
 * and the same along columns. With two weights (a kernel of 4x4, two steps apart, is four of those for its gradient):
 *
 *     v = d0 - d1, d1, d1 - d2
 *     u = g0, g0 + g1, g1
 *     y = m0 + m1, m1 - m2
 *
 * Adding up is done on the products, so it makes 16 products of matrices, or 9, or 4 for a line: weights [to, from] by
 * sources [from, tiles]. A task takes a few lines of tiles through all of that, in memory that stays in the cache.
 *
 * Errors are as large as those of adding up in turn, or 1.5 times that at most (64 to 512 channels of normal numbers): sums
 * and differences lose bits, but there are fewer terms. A number that is not finite, though, would reach results that
 * it has no part in: where a result is not finite, the call is done again in another way. */
#include <stdatomic.h>
#include "conv_int.h"
#include "gemm_int.h"
#include "core/memory.h"
#include "core/pool.h"
#include "block.h"

enum {
    LANES = WK_VEC_BYTES / 4,
    SIDE = 4,    /* of the largest tile of sources; one of results is 2 */
    DEPTH = 128, /* channels that are added up at a time: few, for small errors */
    LEAST = 16,  /* channels on both sides: transforming takes as long for each, whatever it is good for */
    MAX_COLUMNS = 128,                   /* tiles in a line of a block */
    SOURCE_BYTES = 512 << 10,            /* of a block's transformed sources, if that can be, */
    MAX_SOURCE_BYTES = 4 * SOURCE_BYTES, /* or else, */
    SUM_BYTES = 512 << 10,               /* and of its sums */
    FEW_TASKS = 32,
    /* What transforming takes, in products of vectors of weights and of sources: */
    SOURCE_COST = 10, /* of a source channel, for each of the parts, */
    RESULT_COST = 8,  /* of a result channel, */
    WEIGHT_COST = 2,  /* of weights */
};

/* A tile of the product takes so long beside its vectors: with few of them it does not keep the processor busy. */
#define TILE_COST .3

typedef float vec __attribute__((vector_size(WK_VEC_BYTES)));
typedef float uvec __attribute__((vector_size(WK_VEC_BYTES), aligned(4), may_alias));
typedef float wvec __attribute__((vector_size(GEMM_MR * 4))); /* a weight for each row of a panel */

#if WK_VEC_BYTES == 64
#define LOW 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define HIGH 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#define EVEN 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30
#define ODD 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31
#elif WK_VEC_BYTES == 32
#define LOW 0, 8, 1, 9, 2, 10, 3, 11
#define HIGH 4, 12, 5, 13, 6, 14, 7, 15
#define EVEN 0, 2, 4, 6, 8, 10, 12, 14
#define ODD 1, 3, 5, 7, 9, 11, 13, 15
#else
#define LOW 0, 4, 1, 5
#define HIGH 2, 6, 3, 7
#define EVEN 0, 2, 4, 6
#define ODD 1, 3, 5, 7
#endif

typedef struct {
    const conv_direct *s;
    int taps[2], side[2], out[2]; /* down and across: weights, sources of a tile, results of a tile */
    int64_t parts;                /* products of matrices: sources of a tile */
    int64_t lo[2];                /* the first source of the first tile; of rows, of columns */
    int64_t tiles[2];             /* of an image */
    int64_t lines;                /* of tiles, of all images */
    int64_t columns, strips;      /* tiles of a line in a block; blocks side by side */
    int64_t rows;                 /* lines of a block */
    int64_t pitch;                /* from one channel to the next in a block's memory; */
    int64_t source, sum;          /* from one of the parts to the next, of sources and of sums */
    int64_t room;                 /* of a row of a line's sources, or of its results */
    int64_t block, shares; /* result channels whose sums are held at a time; tasks they are shared by */
    int64_t panels;        /* of weights, in a group */
    int64_t panel;         /* from one of the parts of a panel to the next */
    float *weights;        /* [groups, panels, parts, from, GEMM_MR] */
    size_t source_bytes, sum_bytes, row_bytes, bytes; /* of a task's memory, and all */
    _Atomic bool failed, odd;
} work;

static inline vec load(const float *p) { return *(const uvec *)p; }
static inline void store(float *p, vec v) { *(uvec *)p = v; }

/* ---- The plan ---- */

/* What a product with so many columns takes, in vectors. */
static double vectors_of(int64_t columns)
{
    int64_t vectors = conv_ceil_div(columns, LANES);
    return (double)vectors + TILE_COST * (double)conv_ceil_div(vectors, GEMM_NV);
}

/* n or a little more, an odd number of lines: what is so far apart does not meet in the cache. */
static int64_t odd_lines(int64_t n)
{
    enum { LINE = 64 / 4 };
    return (conv_ceil_div(n, LINE) | 1) * LINE;
}

/* All blocks of so many lines. */
static double all_vectors(const work *k, int64_t rows)
{
    int64_t rest = k->lines % rows;
    return (double)k->strips * ((double)(k->lines / rows) * vectors_of(rows * k->columns) +
                                (rest ? vectors_of(rest * k->columns) : 0));
}

static int64_t blocks_of(const work *k, int64_t rows) { return conv_ceil_div(k->lines, rows) * k->strips; }

static void plan_rows(work *k)
{
    double best = 0;
    for (int64_t rows = 1; rows <= k->lines; rows++) {
        int64_t bytes = k->parts * k->s->from * odd_lines(rows * k->columns) * 4;
        if (rows > 1 && (bytes > MAX_SOURCE_BYTES || rows * k->columns > 2 * MAX_COLUMNS))
            break;
        double tasks = (double)(blocks_of(k, rows) * k->s->groups);
        double cost = all_vectors(k, rows) * (1 + 4 / tasks); /* the last task is waited for */
        if (bytes > SOURCE_BYTES)
            cost *= 1.1;
        if (rows == 1 || cost < best) {
            k->rows = rows;
            best = cost;
        }
    }
}

static void plan_work(work *k)
{
    const conv_direct *s = k->s;
    for (int d = 0; d < 2; d++) {
        const conv_axis *a = &s->axis[d + 1];
        k->taps[d] = (int)a->taps;
        k->out[d] = a->taps > 1 ? 2 : 1;
        k->side[d] = k->taps[d] + k->out[d] - 1;
        k->lo[d] = a->first + (a->hop < 0 ? 1 - a->taps : 0);
        k->tiles[d] = conv_ceil_div(a->count, k->out[d]);
    }
    k->parts = k->side[0] * k->side[1];
    k->lines = s->images * k->tiles[0];
    k->strips = conv_ceil_div(k->tiles[1], MAX_COLUMNS);
    k->columns = conv_ceil_div(k->tiles[1], k->strips);
    if (k->strips > 1) {
        k->columns = gemm_round_up(k->columns, LANES);
        k->strips = conv_ceil_div(k->tiles[1], k->columns);
    }
    plan_rows(k);
    k->pitch = odd_lines(k->rows * k->columns);
    k->room = 2 * gemm_round_up(k->columns, LANES) + LANES;
    k->panels = conv_ceil_div(s->to, GEMM_MR);
    k->panel = odd_lines(s->from * GEMM_MR);
    int64_t most = conv_max(SUM_BYTES / (k->parts * k->pitch * 4), 1), blocks = conv_ceil_div(s->to, most);
    k->block = gemm_round_up(conv_ceil_div(s->to, blocks), GEMM_MR);
    k->shares = blocks_of(k, k->rows) * s->groups < FEW_TASKS ? conv_ceil_div(s->to, k->block) : 1;
    /* A line's last vector may reach into the next channel, and behind the last one. */
    k->source = odd_lines(s->from * k->pitch + LANES);
    k->sum = odd_lines(k->block * k->pitch);
    k->source_bytes = (size_t)(k->parts * k->source) * 4;
    k->sum_bytes = (size_t)(k->parts * k->sum + LANES) * 4;
    k->row_bytes = (size_t)(SIDE * k->rows * k->room) * 4;
    k->bytes = k->source_bytes + k->sum_bytes + 2 * k->row_bytes;
}

static bool is_dense(const conv_axis *a)
{
    return a->step == 1 &&
           (a->taps == 1 || ((a->taps == 2 || a->taps == 3) && (a->hop == 1 || a->hop == -1)));
}

/* 3x3, 2x2 or 1x3. */
static bool is_known(const conv_axis *axis)
{
    return is_dense(&axis[1]) && is_dense(&axis[2]) &&
           (axis[1].taps == axis[2].taps ? axis[1].taps > 1 : axis[1].taps == 1 && axis[2].taps == 3);
}

bool WK_ISA(conv_winograd_takes)(const conv_direct *s)
{
    const conv_axis *axis = s->axis;
    bool pairs = s->dtype == WK_BF16 && gemm_has_bf16_pairs();
    if (s->dtype == WK_F64 || pairs || s->from < LEAST || s->to < LEAST || !is_known(axis) ||
        axis[0].count != 1 || axis[0].taps != 1 || axis[0].first != 0 || s->size[0] != 1 || s->images == 0)
        return false;
    work k = {.s = s};
    plan_work(&k);
    double from = (double)s->from, to = (double)s->to, vectors = all_vectors(&k, k.rows);
    double parts = (double)k.parts, taps = (double)(axis[1].taps * axis[2].taps);
    double few = parts * vectors * (from * to + SOURCE_COST * from + RESULT_COST * to) +
                 parts * WEIGHT_COST * from * to;
    double many = taps * (double)(s->images * axis[1].count * axis[2].count) / LANES * from * to;
    return few < 1.3 * many;
}

/* ---- Weights ---- */

ALWAYS_INLINE void weight_side(int taps, const wvec *g, wvec *u, int step)
{
    u[0] = g[0];
    if (taps == 2) {
        u[step] = g[0] + g[1];
        u[2 * step] = g[1];
    } else if (taps == 3) {
        wvec ends = g[0] + g[2];
        u[step] = (ends + g[1]) * .5f;
        u[2 * step] = (ends - g[1]) * .5f;
        u[3 * step] = g[2];
    }
}

/* down and across (taps) are constants wherever this and the like are inlined. */
ALWAYS_INLINE void weight_tile(int down, int across, const wvec *taps, bool flip_y, bool flip_x, float *u,
                               int64_t apart)
{
    const int high = down > 1 ? down + 1 : 1, wide = across + 1;
    wvec rows[3][SIDE], tile[SIDE][SIDE];
    UNROLL for (int i = 0; i < down; i++)
    {
        const wvec *row = taps + across * (flip_y ? down - 1 - i : i);
        wvec g[3];
        UNROLL for (int j = 0; j < across; j++) g[j] = row[flip_x ? across - 1 - j : j];
        weight_side(across, g, rows[i], 1);
    }
    UNROLL for (int j = 0; j < wide; j++)
    {
        wvec g[3];
        UNROLL for (int i = 0; i < down; i++) g[i] = rows[i][j];
        weight_side(down, g, &tile[0][j], SIDE);
    }
    UNROLL for (int e = 0; e < high * wide; e++)
        memcpy(u + e * apart, &tile[e / wide][e % wide], sizeof(wvec));
}

static void weights_task(void *ctx, int64_t task)
{
    work *k = ctx;
    const conv_direct *s = k->s;
    int64_t group = task / k->panels, panel = task % k->panels, first = panel * GEMM_MR,
            kernel = k->taps[0] * k->taps[1], row = s->from * kernel;
    const char *src =
        s->weights + (group * s->to * row + first * s->weight_row) * (int64_t)wk_bytes(s->dtype);
    size_t bytes = (size_t)row * sizeof(wvec);
    wvec *taps = wk_block_alloc(bytes);
    if (!taps) {
        atomic_store(&k->failed, true);
        return;
    }
    WK_ISA(gemm_pick_packer)
    (s->dtype, 1)(taps, GEMM_MR, src, s->weight_row, s->weight_step, conv_min(GEMM_MR, s->to - first), row);
    float *u = k->weights + task * k->parts * k->panel;
    bool flip_y = s->axis[1].hop < 0, flip_x = s->axis[2].hop < 0;
    for (int64_t c = 0; c < s->from; c++) {
        const wvec *g = taps + c * kernel;
        float *at = u + c * GEMM_MR;
        if (kernel == 9)
            weight_tile(3, 3, g, flip_y, flip_x, at, k->panel);
        else if (kernel == 4)
            weight_tile(2, 2, g, flip_y, flip_x, at, k->panel);
        else
            weight_tile(1, 3, g, false, flip_x, at, k->panel);
    }
    wk_block_free(taps, bytes);
}

/* ---- Sources ---- */

/* A block: lines of tiles, counted through all images, of columns of a group. */
typedef struct {
    int64_t group, line, lines, x, columns;
} place;

static place place_of(const work *k, int64_t i)
{
    place p = {.x = i % k->strips * k->columns};
    i /= k->strips;
    p.group = i % k->s->groups;
    p.line = i / k->s->groups * k->rows;
    p.lines = conv_min(k->rows, k->lines - p.line);
    p.columns = conv_min(k->columns, k->tiles[1] - p.x);
    return p;
}

/* Row y of a channel from position x on, zeros where it has none. */
static void bring_row(const work *k, const char *channel, int64_t y, int64_t x, float *row)
{
    const conv_direct *s = k->s;
    int64_t n = k->room, width = s->size[2], bytes = (int64_t)wk_bytes(s->dtype);
    if (y < 0 || y >= s->size[1]) {
        memset(row, 0, (size_t)n * sizeof *row);
        return;
    }
    int64_t lo = conv_min(conv_max(-x, 0), n), hi = conv_min(conv_max(width - x, lo), n);
    for (int64_t i = 0; i < lo; i++)
        row[i] = 0;
    WK_ISA(conv_copy_values)
    (WK_F32, s->dtype, channel + (y * width + x + lo) * bytes, 1, (char *)(row + lo), hi - lo);
    for (int64_t i = hi; i < n; i++)
        row[i] = 0;
}

/* Asks for the same rows of the next channel: the processor does not foresee a step of a plane. */
static void ask_ahead(const char *rows, int64_t bytes, int64_t plane)
{
    enum { LINE = 64 };
    uintptr_t from = (uintptr_t)rows + (uintptr_t)plane; /* behind the source it does no harm */
    for (int64_t i = 0; i < bytes; i += LINE)
        __builtin_prefetch((const void *)(from + (uintptr_t)i));
}

/* Rows that line r of a block has beside those of the line above: all where an image begins. */
static int64_t new_rows(const work *k, const place *p, int64_t r)
{
    return r == 0 || (p->line + r) % k->tiles[0] == 0 ? k->side[0] : k->out[0];
}

/* The rows of all lines of a channel, one below the other. */
static void bring_channel(const work *k, const place *p, int64_t c, float *rows)
{
    const conv_direct *s = k->s;
    int64_t row = s->size[2] * (int64_t)wk_bytes(s->dtype), plane = s->size[1] * row;
    for (int64_t r = 0; r < p->lines; r++) {
        int64_t image = (p->line + r) / k->tiles[0], n = new_rows(k, p, r);
        int64_t y = k->lo[0] + (p->line + r) % k->tiles[0] * k->out[0] + k->side[0] - n;
        const char *channel = s->source + ((image * s->groups + p->group) * s->from + c) * plane;
        ask_ahead(channel + conv_max(y, 0) * row, n * row, plane);
        for (int64_t i = 0; i < n; i++, rows += k->room)
            bring_row(k, channel, y + i, k->lo[1] + 2 * p->x, rows);
    }
}

ALWAYS_INLINE void source_side(int taps, vec *d, int step)
{
    vec d0 = d[0], d1 = d[step], d2 = d[2 * step];
    if (taps == 2) {
        d[0] = d0 - d1;
        d[2 * step] = d1 - d2;
    } else if (taps == 3) {
        vec d3 = d[3 * step];
        d[0] = d0 - d2;
        d[step] = d1 + d2;
        d[2 * step] = d2 - d1;
        d[3 * step] = d1 - d3;
    }
}

/* A line of n tiles from its rows: part e of the first is at v[e * apart]. */
ALWAYS_INLINE void source_line(int down, int across, const float *rows, int64_t room, int64_t n, float *v,
                               int64_t apart)
{
    const int high = down > 1 ? down + 1 : 1, wide = across + 1;
    for (int64_t t = 0; t < n; t += LANES) {
        vec d[SIDE][SIDE];
        UNROLL for (int i = 0; i < high; i++)
        {
            const float *at = rows + i * room + 2 * t;
            vec a = load(at), b = load(at + LANES), c = load(at + 2), e = load(at + 2 + LANES);
            d[i][0] = SHUFFLE(a, b, EVEN);
            d[i][1] = SHUFFLE(a, b, ODD);
            d[i][2] = SHUFFLE(c, e, EVEN);
            d[i][3] = SHUFFLE(c, e, ODD);
        }
        UNROLL for (int j = 0; j < wide && down > 1; j++) source_side(down, &d[0][j], SIDE);
        UNROLL for (int i = 0; i < high; i++)
        {
            source_side(across, d[i], 1);
            UNROLL for (int j = 0; j < wide; j++) store(v + (i * wide + j) * apart + t, d[i][j]);
        }
    }
}

static void source_channel(const work *k, const place *p, const float *rows, float *v)
{
    for (int64_t r = 0; r < p->lines; r++, v += p->columns) {
        rows += r > 0 ? (new_rows(k, p, r) - k->out[0]) * k->room : 0;
        if (k->parts == 16)
            source_line(3, 3, rows, k->room, p->columns, v, k->source);
        else if (k->parts == 9)
            source_line(2, 2, rows, k->room, p->columns, v, k->source);
        else
            source_line(1, 3, rows, k->room, p->columns, v, k->source);
        rows += k->out[0] * k->room;
    }
}

/* Transformed sources of a block. Rows are brought a channel ahead: what was just written is slow to be read at other
 * places. */
static void transform_sources(const work *k, const place *p, float *v, float *const *rows)
{
    int64_t from = k->s->from;
    bring_channel(k, p, 0, rows[0]);
    for (int64_t c = 0; c < from; c++) {
        if (c + 1 < from)
            bring_channel(k, p, c + 1, rows[(c + 1) % 2]);
        source_channel(k, p, rows[c % 2], v + c * k->pitch);
    }
}

/* ---- Products and results ---- */

/* One of the parts: c[n, columns of so many vectors] = u . v, for channels of whole panels. */
static void multiply_part(const work *k, const float *u, const float *v, int64_t vectors, int64_t n, float *c)
{
    int64_t from = k->s->from, depth = conv_ceil_div(from, conv_ceil_div(from, DEPTH));
    for (int64_t at = 0, wide; at < vectors; at += wide) {
        wide = gemm_next_vectors(vectors - at);
        for (int64_t q = 0; q < from; q += depth)
            for (int64_t i = 0; i < n; i += GEMM_MR)
                WK_ISA(gemm_kernel_f32)
                    .tile(&(gemm_tile){.a = u + i / GEMM_MR * k->parts * k->panel + q * GEMM_MR,
                                       .b = v + q * k->pitch + at * LANES,
                                       .c = c + i * k->pitch + at * LANES,
                                       .a_rs = 1,
                                       .a_ks = GEMM_MR,
                                       .b_ks = k->pitch,
                                       .ldc = k->pitch,
                                       .k = conv_min(depth, from - q),
                                       .rows = GEMM_MR,
                                       .cols = (int)(wide * LANES),
                                       .add = q > 0});
    }
}

/* The sums of result channels [first, first + n) of a group. */
static void multiply(const work *k, const place *p, const float *v, int64_t first, int64_t n, float *sums)
{
    const float *u = k->weights + (p->group * k->panels + first / GEMM_MR) * k->parts * k->panel;
    int64_t vectors = conv_ceil_div(p->lines * p->columns, LANES);
    for (int64_t e = 0; e < k->parts; e++)
        multiply_part(k, u + e * k->panel, v + e * k->source, vectors, n, sums + e * k->sum);
}

/* Two results along a side of products, of which the first is m[0], the next m[step]. */
ALWAYS_INLINE void result_side(int taps, const vec *m, int step, vec *first, vec *second)
{
    if (taps == 2) {
        *first = m[0] + m[step];
        *second = m[step] - m[2 * step];
    } else {
        *first = m[0] + m[step] + m[2 * step];
        *second = m[step] - m[2 * step] - m[3 * step];
    }
}

/* The rows of results from a line of n tiles. */
ALWAYS_INLINE void result_line(int down, int across, const float *m, int64_t apart, int64_t n, float bias,
                               float *const *lines)
{
    const int high = down > 1 ? down + 1 : 1, wide = across + 1, out = down > 1 ? 2 : 1;
    for (int64_t t = 0; t < n; t += LANES) {
        vec tile[SIDE][SIDE], s[2][SIDE];
        UNROLL for (int e = 0; e < high * wide; e++) tile[e / wide][e % wide] = load(m + e * apart + t);
        UNROLL for (int j = 0; j < wide; j++)
        {
            if (down > 1)
                result_side(down, &tile[0][j], SIDE, &s[0][j], &s[1][j]);
            else
                s[0][j] = tile[0][j];
        }
        UNROLL for (int i = 0; i < out; i++)
        {
            vec left, right;
            result_side(across, s[i], 1, &left, &right);
            left += bias;
            right += bias;
            store(lines[i] + 2 * t, SHUFFLE(left, right, LOW));
            store(lines[i] + 2 * t + LANES, SHUFFLE(left, right, HIGH));
        }
    }
}

static void result_lines(const work *k, const float *m, int64_t n, float bias, float *const *lines)
{
    if (k->parts == 16)
        result_line(3, 3, m, k->sum, n, bias, lines);
    else if (k->parts == 9)
        result_line(2, 2, m, k->sum, n, bias, lines);
    else
        result_line(1, 3, m, k->sum, n, bias, lines);
}

static bool all_finite(const float *v, int64_t n)
{
    const uint32_t exponent = 0x7f800000;
    uint32_t odd = 0;
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, v + i, sizeof bits);
        odd |= (bits & exponent) == exponent;
    }
    return !odd;
}

/* A result channel of a block. False where a result is not finite. */
static bool finish_channel(const work *k, const place *p, int64_t channel, const float *m,
                           float *const *lines)
{
    const conv_direct *s = k->s;
    const conv_patches *to = s->patches;
    int64_t width = conv_min(2 * p->columns, s->axis[2].count - 2 * p->x),
            bytes = (int64_t)wk_bytes(s->dtype);
    float bias = s->bias ? ((const float *)s->bias)[channel] : 0;
    bool finite = true;
    for (int64_t r = 0; r < p->lines; r++) {
        int64_t image = (p->line + r) / k->tiles[0], y = (p->line + r) % k->tiles[0] * k->out[0];
        int64_t at =
            image * to->out.image + channel * to->out.channel + y * to->out.row + 2 * p->x * to->out.pixel;
        result_lines(k, m + r * p->columns, p->columns, bias, lines);
        for (int64_t i = 0; i < k->out[0] && y + i < s->axis[1].count; i++) {
            finite &= all_finite(lines[i], width);
            if (s->act)
                WK_ISA(wk_activation_row)(lines[i], width, s->act);
            WK_ISA(conv_store_run)
            (to->out.dtype, lines[i], to->out.data + (at + i * to->out.row) * bytes, to->out.pixel, width);
        }
    }
    return finite;
}

static void block_task(void *ctx, int64_t task)
{
    work *k = ctx;
    const conv_direct *s = k->s;
    place p = place_of(k, task / k->shares);
    int64_t blocks = conv_ceil_div(s->to, k->block), part = task % k->shares;
    if (k->odd) /* all will be done again */
        return;
    char *memory = wk_scratch_alloc(k->bytes);
    if (!memory) {
        atomic_store(&k->failed, true);
        return;
    }
    float *v = (float *)memory, *sums = (float *)(memory + k->source_bytes);
    float *rows[2] = {(float *)(memory + k->source_bytes + k->sum_bytes)};
    rows[1] = rows[0] + k->row_bytes / 4;
    transform_sources(k, &p, v, rows);
    bool finite = true;
    for (int64_t b = part * blocks / k->shares; b < (part + 1) * blocks / k->shares; b++) {
        int64_t first = b * k->block, n = conv_min(k->block, s->to - first);
        multiply(k, &p, v, first, n, sums);
        for (int64_t i = 0; i < n; i++)
            finite &= finish_channel(k, &p, p.group * s->to + first + i, sums + i * k->pitch, rows);
    }
    if (!finite)
        atomic_store(&k->odd, true);
    wk_scratch_free(memory, k->bytes);
}

conv_outcome WK_ISA(conv_winograd_run)(const conv_direct *s)
{
    work k = {.s = s};
    plan_work(&k);
    size_t weights = (size_t)(s->groups * k.panels * k.parts * k.panel) * sizeof *k.weights;
    k.weights = wk_block_alloc(weights);
    if (!k.weights)
        return CONV_NO_MEMORY;
    wk_parallel_for(s->groups * k.panels, weights_task, &k);
    if (!k.failed)
        wk_parallel_for(blocks_of(&k, k.rows) * s->groups * k.shares, block_task, &k);
    wk_block_free(k.weights, weights);
    return k.failed ? CONV_NO_MEMORY : k.odd ? CONV_ODD : CONV_DONE;
}
