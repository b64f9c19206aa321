/* index.c: ops that ids lead, and their gradients.
 *
 * All of them pair the elements of a tensor with the shape of ids ("small": the result of gather, the src of
 * scatter) with elements of another ("big") that lie elsewhere along dim. Lines along dim never meet, so they are
 * what threads share; along a line the order of the ids is kept. index_select and index_add are gather and
 * scatter_add with ids that are the same for all lines (stride 0), and whole rows then move at once. */
#include "ops/index.h"
#include "core/families.h"
#include "core/host.h"
#include "core/memory.h"
#include "core/pool.h"
#include "ids.h"
#include "sort.h"
#include "stream.h"
#include "strided.h"

enum {
    CHUNK = 512, /* ids taken at a time */
    BATCH = 64,  /* ids checked at a time */
    TASK_ELEMENTS = 1 << 14,
    PANEL = 1 << 18,    /* elements of a panel of sums */
    APART = 1 << 14,    /* elements, at most, of a line that is made apart */
    PREFETCH = 8 << 10, /* bytes, at most, of a row that are asked for ahead */
};

/* Sums along a line whose ids are read at once. */
#ifdef __OPTIMIZE_SIZE__
enum { ADDED_TOGETHER = 1 };
#else
enum { ADDED_TOGETHER = 8 };
#endif

typedef enum { GATHER, SCATTER, ADD, TAKE } action;
enum { BIG, SMALL, IDS, PLACE, SIDES }; /* PLACE: of an id in the row-major order of ids, for messages */

typedef int64_t loop_fn(void *big, int64_t along, int64_t across, void *small, int64_t step,
                        const int64_t *ids, int64_t n, uint64_t limit, bool holes);
typedef int64_t line_fn(void *big, void *small, const int64_t *ids, int64_t n, uint64_t limit,
                        const char *next, bool stream);
typedef struct {
    loop_fn *by_action[4];
    line_fn *line_by_action[4]; /* NULL: there is none */
    void (*add_row)(void *dst, int64_t dst_step, const void *src, int64_t src_step, int64_t n);
} index_loops;

/* How many ids earlier than an id's turn its memory is asked for, and what goes with it: 16 bytes an id. */
static inline int64_t ids_ahead(void) { return wk_host_ahead.one / 16; }

static inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

static inline bool ids_inside(const int64_t *ids, int n, uint64_t limit)
{
    uint64_t outside = 0;
    for (int i = 0; i < n; i++)
        outside |= (uint64_t)ids[i] >= limit;
    return !outside;
}

#define T uint8_t
#define FN(name) name##_u8
#include "index.inc.h"
#define T uint16_t
#define FN(name) name##_u16
#include "index.inc.h"
#define T uint32_t
#define FN(name) name##_u32
#include "index.inc.h"
#define T uint64_t
#define FN(name) name##_u64
#include "index.inc.h"
#define T float
#define FN(name) name##_f32
#define MOVED_AS(name) name##_u32
#include "index.inc.h"
#define T double
#define FN(name) name##_f64
#define MOVED_AS(name) name##_u64
#include "index.inc.h"

/* Integers of one size add alike, signed or not; f16 and bf16 only move as such, and are added as f32. */
static const index_loops *const loops_of[WK_DTYPE_COUNT] = {
    [WK_F32] = &loops_f32, [WK_F16] = &loops_u16, [WK_BF16] = &loops_u16,
    [WK_F64] = &loops_f64, [WK_U8] = &loops_u8,   [WK_U32] = &loops_u32,
    [WK_I64] = &loops_u64, [WK_I32] = &loops_u32, [WK_I16] = &loops_u16,
};

/* ---- the plan ---- */

typedef struct {
    action what;
    const index_loops *loops;
    wk_dtype dtype, id_dtype;
    int64_t bytes;
    char *data[3];
    int64_t n, size, limit; /* ids of a line; elements of big along dim; ids from here on are no places */
    int64_t along[SIDES];   /* strides along dim */
    int rank; /* of the lines: the other dims, joined where possible, less that of the columns */
    int64_t shape[WK_MAX_RANK], strides[SIDES][WK_MAX_RANK];
    int64_t columns, across[SIDES]; /* lines that are walked side by side; 1 when each is walked by itself */
    bool by_rows;                   /* with ids the same for all columns */
    bool wide;                      /* f16 or bf16 to be added up in f32 */
    bool stream;                    /* what is written goes past the cache */
    const char *start;       /* what big is before: NULL, or packed like big, to be taken line by line */
    int64_t width, blocks;   /* columns of a task; such blocks */
    int64_t length, pieces;  /* ids of a task along dim; such pieces */
    int64_t units, per_task; /* lines x blocks x pieces; how many to a task */
    wk_bad_id bad;
    atomic_bool no_memory;
} plan;

/* One unit of work: where its elements begin. */
typedef struct {
    char *big, *small;
    const char *ids;
    int64_t place, n, width;
    const char *start; /* of the line of big, as plan.start */
    const char
        *next; /* for prefetching: the line of big (or of its start) that comes after this one, if any */
} unit;

static unit unit_at(const plan *p, int64_t i)
{
    int64_t at[SIDES], piece = i % p->pieces, block = i / p->pieces % p->blocks;
    i /= p->pieces * p->blocks;
    for (int s = 0; s < SIDES; s++)
        at[s] = block * p->width * p->across[s] + (s == BIG ? 0 : piece * p->length * p->along[s]);
    for (int d = p->rank - 1; d >= 0; d--) {
        for (int s = 0; s < SIDES; s++)
            at[s] += i % p->shape[d] * p->strides[s][d];
        i /= p->shape[d];
    }
    return (unit){.big = p->data[BIG] + at[BIG] * p->bytes,
                  .start = p->start ? p->start + at[BIG] * p->bytes : NULL,
                  .small = p->data[SMALL] + at[SMALL] * p->bytes,
                  .ids = p->data[IDS] + at[IDS] * (int64_t)wk_bytes(p->id_dtype),
                  .place = at[PLACE],
                  .n = least(p->length, p->n - piece * p->length),
                  .width = least(p->width, p->columns - block * p->width)};
}

/* n ids as int64: where they lie if they are that, else in buf. */
static const int64_t *load_ids(const plan *p, const char *src, int64_t stride, int64_t n, int64_t *buf)
{
    if (p->id_dtype == WK_I64 && stride == 1)
        return (const int64_t *)src;
    WK_ISA(wk_block_load)(p->id_dtype, src, stride, buf, n);
    return buf;
}

/* Those of n ids that are no places become -1, for none, in buf; a bad one is noted. */
static void sift_ids(plan *p, const int64_t *ids, int64_t place, int64_t place_step, int64_t n, int64_t *buf)
{
    int64_t padding = wk_id_padding(p->id_dtype);
    for (int64_t k = 0; k < n; k++) {
        bool inside = ids[k] >= 0 && ids[k] < p->limit;
        if (!inside && ids[k] != padding)
            wk_bad_id_note(&p->bad, place + k * place_step);
        buf[k] = inside ? ids[k] : -1;
    }
}

/* The ids of n rows from place on, sifted where there is anything to sift. */
static const int64_t *row_ids(plan *p, const char *src, int64_t place, int64_t n, int64_t *buf)
{
    const int64_t *ids = load_ids(p, src, p->along[IDS], n, buf);
    if (ids_inside(ids, (int)n, (uint64_t)p->limit))
        return ids;
    sift_ids(p, ids, place, p->along[PLACE], n, buf);
    return buf;
}

/* ---- the three ways through a unit ---- */

/* The CPU cannot foresee where ids lead; memory that will be used next is asked for ahead. */
static void prefetch(const char *at, int64_t bytes)
{
    for (int64_t i = 0; i < least(bytes, PREFETCH); i += WK_LINE)
        __builtin_prefetch(at + i, 0, 3);
}

/* Small's elements as f32 where they are to be added so; else as they are. */
static char *widen(const plan *p, char *small, int64_t *step, int64_t n, float *buf)
{
    if (!p->wide)
        return small;
    WK_ISA(wk_block_load)(p->dtype, small, *step, buf, n);
    *step = 1;
    return (char *)buf;
}

/* n ids that run along dim, or across it; big is reached through the two strides. */
static void run_chunk(plan *p, unit u, char *big, int64_t along, int64_t across, int64_t bytes,
                      const int64_t *strides, int64_t n)
{
    int64_t buf[CHUNK], step = strides[SMALL], done = 0;
    float values[CHUNK];
    const int64_t *ids = load_ids(p, u.ids, strides[IDS], n, buf);
    loop_fn *loop = p->loops->by_action[p->what];
    line_fn *line = p->loops->line_by_action[p->what];
    char *small = widen(p, u.small, &step, n, values);
    int64_t small_bytes = p->wide ? (int64_t)sizeof *values : p->bytes;
    if (line && along == 1 && across == 0 && step == 1)
        done = line(big, small, ids, n, (uint64_t)p->limit, u.next, p->stream);
    else if (p->what != TAKE)
        done = loop(big, along, across, small, step, ids, n, (uint64_t)p->limit, false);
    if (done == n)
        return;
    sift_ids(p, ids + done, u.place + done * strides[PLACE], strides[PLACE], n - done, buf);
    loop(big + done * across * bytes, along, across, small + done * step * small_bytes, step, buf, n - done,
         (uint64_t)p->limit, true);
}

static unit moved(const plan *p, unit u, const int64_t *strides, int64_t by)
{
    u.small += by * strides[SMALL] * p->bytes;
    u.ids += by * strides[IDS] * (int64_t)wk_bytes(p->id_dtype);
    u.place += by * strides[PLACE];
    u.next += by * p->bytes;
    return u;
}

/* One line, in chunks; the last first where the order asks for it. */
static void run_line(plan *p, unit u, char *big, int64_t along, int64_t bytes)
{
    int64_t chunks = (u.n + CHUNK - 1) / CHUNK;
    for (int64_t i = 0; i < chunks; i++) {
        int64_t at = (p->what == TAKE ? chunks - 1 - i : i) * CHUNK;
        run_chunk(p, moved(p, u, p->along, at), big, along, 0, bytes, p->along, least(CHUNK, u.n - at));
    }
}

/* Columns: for each place along dim a run of ids, one for each column. */
static void run_columns(plan *p, unit u, char *big, int64_t along, int64_t across, int64_t bytes)
{
    for (int64_t i = 0; i < u.n; i++) {
        int64_t l = p->what == TAKE ? u.n - 1 - i : i;
        for (int64_t j = 0; j < u.width; j += CHUNK)
            run_chunk(p, moved(p, moved(p, u, p->along, l), p->across, j), big + j * across * bytes, along,
                      across, bytes, p->across, least(CHUNK, u.width - j));
    }
}

/* A packed row past the cache, while the row that comes after it is asked for. */
static void stream_row(char *dst, const char *src, size_t bytes, const char *next)
{
    size_t i = least((int64_t)bytes, (int64_t)(-(uintptr_t)dst % WK_LINE));
    memcpy(dst, src, i);
    for (; i + WK_LINE <= bytes; i += WK_LINE) {
        __builtin_prefetch(next + i, 0, 3);
        wk_stream_line((unsigned char *)dst + i, (const unsigned char *)src + i);
    }
    memcpy(dst + i, src + i, bytes - i);
}

static void copy_row(const plan *p, char *dst, int64_t dst_step, const char *src, int64_t src_step, int64_t n)
{
    if (dst_step != 1)
        for (int64_t k = 0; k < n; k++)
            memcpy(dst + k * dst_step * p->bytes, src + k * src_step * p->bytes, (size_t)p->bytes);
    else
        WK_ISA(wk_block_gather)((size_t)p->bytes, src, src_step, dst, n);
}

/* The row of small at one id; next is the id after it, or the same. */
static void run_row(const plan *p, const unit *u, int64_t id, int64_t next, char *small)
{
    static const int64_t zero;
    int64_t pitch = p->along[BIG] * p->bytes, big_step = p->across[BIG], small_step = p->across[SMALL];
    if (id < 0) {
        if (p->what == GATHER)
            copy_row(p, small, small_step, (const char *)&zero, 0, u->width);
        return;
    }
    char *big = u->big + id * pitch;
    if (p->stream && big_step == 1) {
        stream_row(small, big, (size_t)(u->width * p->bytes), u->big + (next < 0 ? id : next) * pitch);
        return;
    }
    if (big_step == 1 && next >= 0)
        prefetch(u->big + next * pitch, u->width * p->bytes);
    if (p->what == ADD)
        p->loops->add_row(big, big_step, small, small_step, u->width);
    else if (p->what == SCATTER)
        copy_row(p, big, big_step, small, small_step, u->width);
    else
        copy_row(p, small, small_step, big, big_step, u->width);
}

/* Rows: one id for a whole row of columns. */
static void run_rows(plan *p, unit u)
{
    int64_t buf[CHUNK];
    for (int64_t at = 0; at < u.n; at += CHUNK) {
        int64_t n = least(CHUNK, u.n - at);
        unit c = moved(p, u, p->along, at);
        const int64_t *ids = row_ids(p, c.ids, c.place, n, buf);
        for (int64_t k = 0; k < n; k++)
            run_row(p, &u, ids[k], ids[k + 1 < n ? k + 1 : k], c.small + k * p->along[SMALL] * p->bytes);
    }
}

/* A line that is not there yet: made apart from its start, in the cache, and written when it is done. */
static void run_line_apart(plan *p, unit u, char *line)
{
    size_t bytes = (size_t)(p->size * p->bytes);
    memcpy(line, u.start, bytes);
    run_line(p, u, line, 1, p->bytes);
    WK_ISA(wk_block_copy)(line, u.big, bytes, p->stream);
}

/* ---- f16 and bf16 added up in f32, from which the results are rounded once ---- */

/* n elements of big, step apart, to floats and back. */
static void load_sums(const plan *p, const char *big, int64_t step, float *sums, int64_t n)
{
    WK_ISA(wk_block_load)(p->dtype, big, step, sums, n);
}

static void store_sums(const plan *p, char *big, int64_t step, const float *sums, int64_t n)
{
    uint16_t rounded[CHUNK];
    for (int64_t i = 0; i < n; i += CHUNK) {
        int64_t m = least(CHUNK, n - i);
        WK_ISA(wk_block_store)(p->dtype, WK_COMPUTE_F32, sums + i, rounded, m, false);
        copy_row(p, big + i * step * p->bytes, step, (const char *)rounded, 1, m);
    }
}

/* sums: a line of big. */
static void run_wide_line(plan *p, unit u, float *sums)
{
    load_sums(p, u.big, p->along[BIG], sums, p->size);
    run_line(p, u, (char *)sums, 1, sizeof *sums);
    store_sums(p, u.big, p->along[BIG], sums, p->size);
}

/* sums: a panel of big, as wide as the unit. */
static void run_wide_columns(plan *p, unit u, float *sums)
{
    int64_t pitch = p->along[BIG] * p->bytes;
    for (int64_t i = 0; i < p->size; i++)
        load_sums(p, u.big + i * pitch, p->across[BIG], sums + i * u.width, u.width);
    run_columns(p, u, (char *)sums, u.width, 1, sizeof *sums);
    for (int64_t i = 0; i < p->size; i++)
        store_sums(p, u.big + i * pitch, p->across[BIG], sums + i * u.width, u.width);
}

/* Rows: in the order of their ids those for one row of big come together, and it is loaded and stored once. */
typedef struct {
    plan *p;
    const wk_pair64 *rows; /* ids and places, sorted */
    int64_t n, chunks;
} row_groups;

enum { GROUPS = 32 }; /* rows of small to a task, those of the last group not counted */

static void add_group(const plan *p, const unit *u, const wk_pair64 *rows, int64_t n)
{
    float sums[CHUNK], values[CHUNK];
    char *big = u->big + (int64_t)rows[0].key * p->along[BIG] * p->bytes;
    for (int64_t j = 0; j < u->width; j += CHUNK) {
        int64_t m = least(CHUNK, u->width - j);
        char *to = big + j * p->across[BIG] * p->bytes;
        load_sums(p, to, p->across[BIG], sums, m);
        for (int64_t k = 0; k < n; k++) {
            int64_t at = (int64_t)rows[k].place * p->along[SMALL] + j * p->across[SMALL];
            load_sums(p, u->small + at * p->bytes, p->across[SMALL], values, m);
            add_row_f32(sums, 1, values, 1, m);
        }
        store_sums(p, to, p->across[BIG], sums, m);
    }
}

static void run_groups(void *ctx, int64_t task)
{
    const row_groups *g = ctx;
    unit u = unit_at(g->p, task / g->chunks);
    int64_t begin = task % g->chunks * GROUPS, end = least(g->n, begin + GROUPS), next;
    for (int64_t i = begin; i < end; i = next) {
        for (next = i + 1; next < g->n && g->rows[next].key == g->rows[i].key; next++) {
        }
        if (i == begin && i > 0 && g->rows[i].key == g->rows[i - 1].key)
            continue; /* the end of another task's group */
        add_group(g->p, &u, g->rows + i, next - i);
    }
}

static void run_wide_rows(plan *p)
{
    size_t half = (size_t)p->n * sizeof(wk_pair64);
    wk_pair64 *a = wk_block_alloc(2 * half), *b = a + p->n;
    int64_t buf[CHUNK];
    row_groups g = {.p = p};
    uint64_t varies = 0;
    if (!a) {
        atomic_store(&p->no_memory, true);
        return;
    }
    for (int64_t at = 0; at < p->n; at += CHUNK) {
        int64_t n = least(CHUNK, p->n - at);
        const char *src = p->data[IDS] + at * p->along[IDS] * (int64_t)wk_bytes(p->id_dtype);
        const int64_t *ids = row_ids(p, src, at * p->along[PLACE], n, buf);
        for (int64_t k = 0; k < n; k++) {
            if (ids[k] < 0)
                continue;
            a[g.n++] = (wk_pair64){(uint64_t)ids[k], (uint64_t)(at + k)};
            varies |= (uint64_t)ids[k] ^ a[0].key;
        }
    }
    g.rows = WK_ISA(wk_sort64)(a, b, g.n, varies);
    g.chunks = (g.n + GROUPS - 1) / GROUPS;
    wk_parallel_for(p->units * g.chunks, run_groups, &g);
    wk_block_free(a, 2 * half);
}

/* ---- tasks ---- */

/* Bytes of scratch memory that a task needs. */
static size_t scratch_of(const plan *p)
{
    if (p->wide)
        return (size_t)(p->size * p->width) * sizeof(float);
    return p->start ? (size_t)(p->size * p->bytes) : 0;
}

static void run_unit(plan *p, unit u, void *scratch)
{
    if (p->wide)
        (p->columns == 1 ? run_wide_line : run_wide_columns)(p, u, scratch);
    else if (p->start)
        run_line_apart(p, u, scratch);
    else if (p->by_rows)
        run_rows(p, u);
    else if (p->columns == 1)
        run_line(p, u, u.big, p->along[BIG], p->bytes);
    else
        run_columns(p, u, u.big, p->along[BIG], p->across[BIG], p->bytes);
}

static void run_task(void *ctx, int64_t task)
{
    plan *p = ctx;
    size_t bytes = scratch_of(p);
    void *scratch = bytes ? wk_block_alloc(bytes) : NULL;
    if (bytes && !scratch) {
        atomic_store(&p->no_memory, true);
        return;
    }
    int64_t end = least(p->units, (task + 1) * p->per_task);
    for (int64_t i = task * p->per_task; i < end; i++) {
        unit u = unit_at(p, i);
        unit next = i + 1 < end ? unit_at(p, i + 1) : u;
        u.next = p->start ? next.start : next.big;
        run_unit(p, u, scratch);
    }
    wk_block_free(scratch, bytes);
}

/* ---- planning ---- */

/* Takes the last of the joined dims as the columns where big's lie closer together than its elements along dim,
 * and are enough to make a loop. */
static void plan_columns(plan *p)
{
    int last = p->rank - 1;
    bool same_ids = true; /* on all lines */
    p->columns = 1;
    if (p->rank == 0 || p->strides[BIG][last] >= p->along[BIG] || p->shape[last] < 8)
        return;
    for (int d = 0; d < p->rank; d++)
        same_ids &= p->strides[IDS][d] == 0;
    p->by_rows = p->wide ? same_ids : p->strides[IDS][last] == 0 && p->what != TAKE;
    if (p->wide && !p->by_rows && p->size > PANEL) /* a panel would be too large */
        return;
    p->rank--;
    p->columns = p->shape[last];
    for (int s = 0; s < SIDES; s++)
        p->across[s] = p->strides[s][last];
}

/* Reading may cut the ids of a line; writing must not, and cuts the columns finer instead. */
static void plan_cuts(plan *p)
{
    p->width = p->columns;
    p->length = p->n;
    if (p->what == GATHER) {
        p->width = p->by_rows ? p->columns : least(p->columns, 1024);
        p->length = most(1, TASK_ELEMENTS / p->width);
    } else if (p->columns > 1 && !(p->wide && p->by_rows)) {
        int64_t fit = p->wide ? most(32, PANEL / most(p->size, 1)) : 1024;
        p->width = least(least(fit, CHUNK), most(64, (p->columns / 8 + 31) / 32 * 32));
    }
    p->width = least(p->width, p->columns);
    p->length = least(p->length, p->n);
    p->blocks = (p->columns + p->width - 1) / p->width;
    p->pieces = (p->n + p->length - 1) / p->length;
    p->units = wk_shape_count(p->rank, p->shape) * p->blocks * p->pieces;
    p->per_task = TASK_ELEMENTS / (p->width * p->length + 32) + 1;
}

/* The dims of the walk, that of small cut to ids: dim apart, the others joined where possible. */
static void plan_dims(plan *p, const wk_tensor *big, const wk_tensor *small, const wk_tensor *ids, int dim,
                      bool slices)
{
    const wk_tensor *walk = slices ? small : ids;
    int64_t places[WK_MAX_RANK] = {0};
    if (!slices)
        wk_shape_strides(ids->rank, ids->shape, places);
    for (int d = 0; d < walk->rank; d++) {
        int64_t strides[SIDES] = {big->strides[d], small->strides[d], slices ? 0 : ids->strides[d],
                                  places[d]};
        if (d == dim) {
            p->n = walk->shape[d];
            p->size = big->shape[d];
            memcpy(p->along, strides, sizeof strides);
            continue;
        }
        p->shape[p->rank] = walk->shape[d];
        for (int s = 0; s < SIDES; s++)
            p->strides[s][p->rank] = strides[s];
        p->rank++;
    }
    if (slices) {
        p->along[IDS] = ids->strides[0];
        p->along[PLACE] = 1;
    }
    p->rank = wk_shape_coalesce(p->rank, p->shape, SIDES, p->strides);
}

/* Whether big can be made of its start line by line: all of its lines are walked, and each by itself. */
static bool takes_start(const plan *p, const wk_tensor *big, const wk_tensor *start)
{
    return !p->wide && p->columns == 1 && p->pieces == 1 && p->along[BIG] == 1 && p->size <= APART &&
           p->units * p->size == wk_count(big) && wk_is_packed(start);
}

static void copy_unless_same(const wk_tensor *x, wk_tensor *y)
{
    if (wk_ptr(x) != wk_ptr(y))
        WK_ISA(wk_tensor_copy)(x, y);
}

/* ids have small's rank and at most its sizes; or they are 1-D and choose slices. start: NULL, or what is to be in big,
 * the call's output, before. */
static wk_status run_index(wk_call *c, action what, const wk_tensor *big, const wk_tensor *start,
                           const wk_tensor *small, const wk_tensor *ids, bool slices)
{
    plan p = {.what = what,
              .dtype = big->dtype,
              .id_dtype = ids->dtype,
              .bytes = (int64_t)wk_bytes(big->dtype),
              .data = {wk_ptr(big), wk_ptr(small), wk_ptr(ids)},
              .wide = what == ADD && (big->dtype == WK_F16 || big->dtype == WK_BF16),
              .n = 1, /* of a scalar */
              .size = 1,
              .bad = {INT64_MAX}};
    if (wk_count(slices ? small : ids) == 0) {
        if (start)
            copy_unless_same(start, c->out[0]);
        return WK_OK;
    }
    p.loops = p.wide ? &loops_f32 : loops_of[p.dtype];
    plan_dims(&p, big, small, ids, wk_shape_dim(big->rank, WK_PARAMS(c, wk_index_params)->dim), slices);
    p.limit = least(p.size, wk_id_padding(p.id_dtype));
    plan_columns(&p);
    plan_cuts(&p);
    bool small_packed = p.by_rows ? p.across[SMALL] == 1 : p.columns == 1 && p.along[SMALL] == 1;
    p.stream = what == GATHER && small_packed && wk_count(small) * p.bytes >= WK_STREAM_BYTES;
    if (start && wk_ptr(start) != wk_ptr(big) && takes_start(&p, big, start)) {
        p.start = wk_ptr(start);
        p.stream = wk_count(big) * p.bytes >= WK_STREAM_BYTES;
    } else if (start) {
        copy_unless_same(start, c->out[0]);
    }
    if (p.wide && p.by_rows)
        run_wide_rows(&p);
    else
        wk_parallel_for((p.units + p.per_task - 1) / p.per_task, run_task, &p);
    if (p.no_memory)
        return wk_call_fail(c, WK_ERR_MEMORY, "y", "out of memory for %lld sums", (long long)p.size);
    return wk_bad_id_status(c, ids, &p.bad, p.size);
}

/* ---- the ops ---- */

/* How the ops differ: the table's data points to one of these. */
typedef struct {
    action what;
    bool slices; /* 1-D ids */
} kind;

static const kind elements[] = {{GATHER, false}, {SCATTER, false}, {ADD, false}, {TAKE, false}};
static const kind slices[] = {{GATHER, true}, {SCATTER, true}, {ADD, true}};

static wk_status run_read(wk_call *c)
{
    const kind *k = c->impl->data;
    return run_index(c, GATHER, c->in[0], NULL, c->out[0], c->in[1], k->slices);
}

static wk_status run_write(wk_call *c)
{
    const kind *k = c->impl->data;
    return run_index(c, k->what, c->out[0], c->in[0], c->in[2], c->in[1], k->slices);
}

/* What was read from x gets the sum of the gradients of all its readers. */
static wk_status run_read_backward(wk_call *c)
{
    const kind *k = c->impl->data;
    wk_tensor *dx = c->out[0];
    static const int64_t zero, none[WK_MAX_RANK];
    WK_ISA(wk_strided_copy)
    (dx->rank, dx->shape, wk_bytes(dx->dtype), &zero, none, wk_ptr(dx), dx->strides);
    return run_index(c, ADD, dx, NULL, c->in[1], c->in[0], k->slices);
}

/* An output, or in the place of one that is not wanted a tensor like it: ids are checked on the way to it. */
static wk_tensor *wanted_or_not(const wk_call *c, int i)
{
    const wk_spec *s = &c->spec[i];
    return c->out[i] ? c->out[i] : wk_tensor_new(c->device, s->dtype, s->rank, s->shape);
}

static wk_status run_add_backward(wk_call *c)
{
    const kind *k = c->impl->data;
    wk_tensor *dsrc = wanted_or_not(c, 1);
    if (!dsrc)
        return wk_error_status();
    if (c->out[0])
        WK_ISA(wk_tensor_copy)(c->in[1], c->out[0]);
    return run_index(c, GATHER, c->in[1], NULL, dsrc, c->in[0], k->slices);
}

/* Each gradient goes to the one that wrote the element: the last of src, or x where there is none. */
static wk_status run_scatter_backward(wk_call *c)
{
    wk_tensor *dx = wanted_or_not(c, 0), *dsrc = dx ? wanted_or_not(c, 1) : NULL;
    if (!dsrc)
        return wk_error_status();
    WK_ISA(wk_tensor_copy)(c->in[1], dx);
    return run_index(c, TAKE, dx, NULL, dsrc, c->in[0], false);
}

const wk_impl WK_ISA(wk_cpu_index)[] = {
    {"gather", "simd", run_read, NULL, &elements[GATHER]},
    {"scatter", "simd", run_write, NULL, &elements[SCATTER]},
    {"scatter_add", "simd", run_write, NULL, &elements[ADD]},
    {"index_select", "simd", run_read, NULL, &slices[GATHER]},
    {"index_add", "simd", run_write, NULL, &slices[ADD]},
    {"gather_backward", "simd", run_read_backward, NULL, &elements[ADD]},
    {"index_select_backward", "simd", run_read_backward, NULL, &slices[ADD]},
    {"scatter_backward", "simd", run_scatter_backward, NULL, &elements[TAKE]},
    {"scatter_add_backward", "simd", run_add_backward, NULL, &elements[ADD]},
    {"index_add_backward", "simd", run_add_backward, NULL, &slices[ADD]},
    {0},
};
