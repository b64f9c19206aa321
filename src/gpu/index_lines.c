/* index_lines.c: reading from and adding to lines along dim that fit into shared memory, on the GPU. */
#include "ids.h"
#include "index.h"
#include "kernels/index.h"

static const wk_kernel gather_kernel = {"index_lines", "lines_gather", "lines_args", WK_LINE_THREADS,
                                        .types = 1,    .ints = 2,      .blocks = 4};
static const wk_kernel add_kernel = {"index_lines", "lines_add", "lines_args", WK_LINE_THREADS,
                                     .types = 1,    .ints = 3,   .blocks = 2};
static const wk_kernel add_short_kernel = {"index_lines", "index_lines", "lines_args", 64,
                                           .types = 1,    .ints = 1,     .blocks = 1};

/* ---- the arguments ---- */

enum { FROM, TO, SRC, ID, STEPS }; /* strides of the lines: from, big, small, ids */

static lines_args args_of(const wk_call *c, const wk_index_plan *p, const wk_tensor *from, int ids_slot)
{
    int rank = 0;
    int64_t shape[WK_MAX_RANK], strides[STEPS][WK_MAX_RANK];
    lines_args a = {.from = from ? wk_ptr(from) : NULL,
                    .big = wk_ptr(p->big),
                    .small = wk_ptr(p->small),
                    .ids = wk_ptr(p->ids),
                    .lines = p->count / p->n,
                    .n = p->n,
                    .size = p->size,
                    .big_along = p->along[BIG],
                    .small_along = p->along[SMALL],
                    .id_along = p->along[IDS],
                    .tiles = wk_divisor_of(1),
                    .id_bytes = wk_id_bytes(p->ids->dtype),
                    .report = wk_report_of(c, ids_slot)};
    for (int d = 0; d < p->rank; d++) {
        if (p->strides[PLACE][d]) {
            a.from_along = from ? from->strides[d] : 0;
            continue;
        }
        shape[rank] = p->shape[d];
        strides[FROM][rank] = from ? from->strides[d] : 0;
        strides[TO][rank] = p->strides[BIG][d];
        strides[SRC][rank] = p->strides[SMALL][d];
        strides[ID][rank++] = p->strides[IDS][d];
    }
    a.rank = wk_shape_coalesce(rank, shape, STEPS, strides);
    i64 *steps[STEPS] = {a.from_step, a.big_step, a.small_step, a.id_step};
    for (int d = 0; d < a.rank; d++) {
        a.shape[d] = wk_divisor_of(shape[a.rank - 1 - d]);
        for (int s = 0; s < STEPS; s++)
            steps[s][d] = strides[s][a.rank - 1 - d];
    }
    return a;
}

/* Every line begins at a multiple of `each` elements, follows memory and is a multiple of that long. */
static bool lines_aligned(const lines_args *a, const void *at, size_t bytes, const i64 *step, i64 along,
                          i64 length, int each)
{
    if (along != 1 || length % each || (size_t)at % ((size_t)each * bytes))
        return false;
    for (int d = 0; d < a->rank; d++) {
        if (step[d] % each)
            return false;
    }
    return true;
}

/* Ids and small ones that are loaded at once. */
static short pair_of(const lines_args *a, const wk_index_plan *p)
{
    bool even = lines_aligned(a, a->ids, wk_bytes(p->ids->dtype), a->id_step, a->id_along, a->n, 2) &&
                lines_aligned(a, a->small, wk_bytes(p->small->dtype), a->small_step, a->small_along, a->n, 2);
    return even ? 2 : 1;
}

static wk_grid block_grid(const lines_args *a)
{
    return (wk_grid){.x = wk_blocks(a->lines * a->tiles.d, 1, WK_GRID_MAX), .threads = WK_LINE_THREADS};
}

/* ---- reading ---- */

enum { BLOCK_LINES = 16, BLOCK_IDS = 1024 }; /* lines, and ids of one, from which on a block takes each */
enum { SMALL_LINE = 1 << 14, LARGE_LINE = 1 << 15 }; /* bytes of a line in shared memory */

static bool lines_for_blocks(const wk_index_plan *p)
{
    return p->n >= BLOCK_IDS && p->count / p->n >= BLOCK_LINES && p->n < (i64)1 << 30 &&
           p->count / p->n < (i64)1 << 31;
}

/* Lines of big that follow memory, and are used by so many ids that staging them pays. */
bool wk_index_reads_lines(const wk_call *c, const wk_index_plan *p)
{
    i64 bytes = p->size * (i64)wk_bytes(p->big->dtype), units = wk_gpu_of(c->device)->facts.units;
    return lines_for_blocks(p) && (p->n <= 8192 || p->count / p->n >= units) && p->along[BIG] == 1 &&
           p->along[IDS] && bytes <= LARGE_LINE && p->size <= 4 * p->n;
}

wk_status wk_index_read_lines(const wk_call *c, const wk_index_plan *p, int ids_slot)
{
    lines_args a = args_of(c, p, NULL, ids_slot);
    size_t bytes = wk_bytes(p->big->dtype);
    short room = a.size * (i64)bytes <= SMALL_LINE ? SMALL_LINE / 1024 : LARGE_LINE / 1024;
    a.packed = lines_aligned(&a, a.big, bytes, a.big_step, a.big_along, a.size, (int)(16 / bytes));
    return WK_LAUNCH(c, &gather_kernel,
                     WK_INSTANCE(.t = {(unsigned char)wk_gpu_word(bytes)}, .i = {room, pair_of(&a, p)}),
                     block_grid(&a), a);
}

/* ---- adding ---- */

enum { SUMS = 4096, FEW_SUMS = 1024, MOST_TILES = 8 }; /* of a line in shared memory */

static i64 tiles_of(const wk_index_plan *p) { return p->size <= FEW_SUMS ? 1 : (p->size + SUMS - 1) / SUMS; }

/* Lines are enough to fill the device, or so short that ordering their ids takes longer. Whole rows with elements side
 * by side are better added as such. */
bool wk_index_adds_lines(const wk_index_plan *p)
{
    i64 units = p->n ? p->count / p->n * tiles_of(p) : 0;
    if (tiles_of(p) > MOST_TILES || units >= (i64)1 << 30 || (p->same_ids && p->along[BIG] != 1))
        return false;
    return units >= 512 || p->n <= 2048 || lines_for_blocks(p);
}

static wk_status add_by_blocks(const wk_call *c, const wk_index_plan *p, lines_args *a)
{
    wk_dtype dtype = wk_index_sum_dtype(p->big->dtype);
    size_t bytes = wk_bytes(dtype);
    i64 sums = a->size <= SUMS / 2 || bytes == 8 ? SUMS / 2 : SUMS;
    a->tiles = wk_divisor_of((a->size + sums - 1) / sums);
    a->packed = lines_aligned(a, a->big, bytes, a->big_step, a->big_along, a->size, 4) &&
                (!a->from || lines_aligned(a, a->from, bytes, a->from_step, a->from_along, a->size, 4));
    int wide = bytes == 8 ? 8 : 4,
        most = wk_gpu_of(c->device)->facts.shared_bytes; /* bytes of a sum, of a block */
    bool slotted = wk_is_float(dtype) && wide == 4 && WK_LINE_ROOM(sums, 4, true) <= most;
    wk_grid grid = block_grid(a);
    if (slotted) { /* slots are empty from one line to the next */
        grid.x = wk_blocks(grid.x, 1, 2 * wk_gpu_of(c->device)->facts.units);
        a->counters = wk_gpu_counters(c);
    }
    if (c->device->kind == WK_KIND_CUDA)
        grid.shared = (int)WK_LINE_ROOM(sums, wide, slotted);
    return WK_LAUNCH(c, &add_kernel,
                     WK_INSTANCE(.t = {(unsigned char)dtype}, .i = {(short)sums, pair_of(a, p), slotted}),
                     grid, *a);
}

wk_status wk_index_add_lines(const wk_call *c, const wk_index_plan *p, const wk_tensor *from, int ids_slot)
{
    lines_args a = args_of(c, p, from, ids_slot);
    if (lines_for_blocks(p))
        return add_by_blocks(c, p, &a);
    a.tiles = wk_divisor_of(tiles_of(p));
    wk_grid grid = {.x = wk_blocks(a.lines * tiles_of(p), 1, WK_GRID_MAX),
                    .threads = wk_gpu_of(c->device)->facts.wave};
    return WK_LAUNCH(c, &add_short_kernel,
                     WK_INSTANCE(.t = {(unsigned char)wk_index_sum_dtype(p->big->dtype)},
                                 .i = {p->size <= FEW_SUMS ? FEW_SUMS : SUMS}),
                     grid, a);
}
