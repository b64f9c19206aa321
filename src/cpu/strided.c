/* strided.c: the one copy between any two layouts. */
#include "core/host.h"
#include "core/pool.h"
#include "block.h"
#include "stream.h"
#include "strided.h"

enum { TASK_ELEMENTS = 1 << 15, SRC = 0, DST = 1 };

/* The walk in the order of dst's memory: its smallest stride is the last dimension. */
typedef struct {
    int rank;
    int64_t shape[WK_MAX_RANK], strides[2][WK_MAX_RANK];
    size_t bytes;
    const char *src;
    char *dst;
    bool stream;
    int column;          /* of a transposing copy: the dimension along which src is packed */
    int64_t band, bands; /* how the last dimension is cut: elements of a piece, pieces */
} plan;

/* Offsets of outer place i: every dimension but the last, and but `column` when there is one. */
static void outer_offsets(const plan *p, int64_t i, int64_t offsets[2])
{
    offsets[SRC] = offsets[DST] = 0;
    for (int d = p->rank - 2; d >= 0; d--) {
        if (d == p->column)
            continue;
        int64_t at = i % p->shape[d];
        i /= p->shape[d];
        offsets[SRC] += at * p->strides[SRC][d];
        offsets[DST] += at * p->strides[DST][d];
    }
}

static void copy_run(size_t bytes, const char *src, int64_t src_stride, char *dst, int64_t dst_stride,
                     int64_t n, bool stream)
{
    if (src_stride == 1 && dst_stride == 1 && stream) {
        wk_stream_copy((unsigned char *)dst, (const unsigned char *)src, (size_t)n * bytes,
                       wk_host_ahead.one);
    } else if (src_stride == 1 && dst_stride == 1) {
        WK_ISA(wk_block_copy)(src, dst, (size_t)n * bytes, false);
    } else if (dst_stride == 1) {
        WK_ISA(wk_block_gather)(bytes, src, src_stride, dst, n);
    } else {
        for (int64_t i = 0; i < n; i++)
            memcpy(dst + i * dst_stride * (int64_t)bytes, src + i * src_stride * (int64_t)bytes, bytes);
    }
}

/* Piece `band` of the last dimension at one outer place. */
static void copy_piece(const plan *p, int64_t outer, int64_t band)
{
    int64_t offsets[2], last = p->rank - 1, b = (int64_t)p->bytes, begin = band * p->band;
    int64_t n = p->shape[last] - begin < p->band ? p->shape[last] - begin : p->band;
    outer_offsets(p, outer, offsets);
    const char *src = p->src + (offsets[SRC] + begin * p->strides[SRC][last]) * b;
    char *dst = p->dst + (offsets[DST] + begin * p->strides[DST][last]) * b;
    if (p->column >= 0)
        WK_ISA(wk_block_transpose)
    (p->bytes, src, p->strides[SRC][last], dst, p->strides[DST][p->column], n, p->shape[p->column],
     p->stream);
    else copy_run(p->bytes, src, p->strides[SRC][last], dst, p->strides[DST][last], n, p->stream);
}

typedef struct {
    const plan *p;
    int64_t pieces, per_task;
} task_ctx;

static void run_task(void *ctx, int64_t task)
{
    const task_ctx *t = ctx;
    for (int64_t i = task * t->per_task; i < (task + 1) * t->per_task && i < t->pieces; i++)
        copy_piece(t->p, i / t->p->bands, i % t->p->bands);
}

/* Sorts the dimensions by dst's strides, the smallest last. */
static void sort_dims(plan *p)
{
    for (int i = 1; i < p->rank; i++) {
        for (int j = i; j > 0 && p->strides[DST][j - 1] < p->strides[DST][j]; j--) {
            int64_t *arrays[3] = {p->shape, p->strides[SRC], p->strides[DST]};
            for (int a = 0; a < 3; a++) {
                int64_t t = arrays[a][j];
                arrays[a][j] = arrays[a][j - 1];
                arrays[a][j - 1] = t;
            }
        }
    }
}

/* A transposing copy: dst packed along the last dimension, src along another one; both long enough for tiles. */
static int find_column(const plan *p)
{
    int last = p->rank - 1;
    if (p->strides[DST][last] != 1 || p->strides[SRC][last] <= 1 || p->shape[last] < 4)
        return -1;
    for (int d = last - 1; d >= 0; d--) {
        if (p->strides[SRC][d] == 1 && p->shape[d] >= 4)
            return d;
    }
    return -1;
}

void WK_ISA(wk_strided_copy)(int rank, const int64_t *shape, size_t bytes, const void *src,
                             const int64_t *src_strides, void *dst, const int64_t *dst_strides)
{
    plan p = {.bytes = bytes, .src = src, .dst = dst};
    int64_t count = wk_shape_count(rank, shape);
    if (count == 0)
        return;
    for (int d = 0; d < rank; d++) { /* dimensions of size 1 would only confuse the order */
        if (shape[d] == 1)
            continue;
        p.shape[p.rank] = shape[d];
        p.strides[SRC][p.rank] = src_strides[d];
        p.strides[DST][p.rank++] = dst_strides[d];
    }
    if (p.rank == 0) {
        memcpy(dst, src, bytes);
        return;
    }
    sort_dims(&p);
    p.rank = wk_shape_coalesce(p.rank, p.shape, 2, p.strides);
    p.column = find_column(&p);
    p.stream = (size_t)count * bytes >= WK_STREAM_BYTES && p.strides[DST][p.rank - 1] == 1;
    int64_t width = p.shape[p.rank - 1];
    p.band = p.column >= 0 ? 256 / (int64_t)bytes : TASK_ELEMENTS;
    p.bands = (width + p.band - 1) / p.band;
    int64_t deep = p.column >= 0 ? p.shape[p.column] : 1, outer = count / width / deep;
    int64_t piece = (width < p.band ? width : p.band) * deep;
    task_ctx t = {&p, outer * p.bands, TASK_ELEMENTS / (piece + 32) + 1};
    wk_parallel_for((t.pieces + t.per_task - 1) / t.per_task, run_task, &t);
}
