/* blocks.c: elementwise loops with several results, or with the element's number. */
#include "core/pool.h"
#include "block.h"
#include "blocks.h"
#include "walk.h"

enum { TASK_BLOCKS = 16 };

typedef struct {
    const wk_blocks *b;
    wk_walk walk[WK_BLOCKS_TENSORS];
} plan;

static void run_block(const plan *p, int64_t first, int64_t n)
{
    const wk_blocks *b = p->b;
    _Alignas(64) char in_buf[WK_BLOCKS_TENSORS][WK_BLOCK * 8], out_buf[WK_BLOCKS_TENSORS][WK_BLOCK * 8];
    const void *in[WK_BLOCKS_TENSORS];
    void *out[WK_BLOCKS_TENSORS], *to[WK_BLOCKS_TENSORS];
    bool stream[WK_BLOCKS_TENSORS];
    for (int k = 0; k < WK_BLOCKS_TENSORS; k++)
        in[k] = b->in[k] ? WK_ISA(wk_walk_fetch)(&p->walk[k], b->in[k]->dtype, wk_ptr(b->in[k]),
                                                 b->in_compute[k], first, n, in_buf[k])
                         : NULL;
    for (int k = 0; k < WK_BLOCKS_TENSORS; k++) {
        out[k] = to[k] = NULL;
        if (!b->out[k])
            continue;
        size_t bytes = wk_bytes(b->out[k]->dtype);
        stream[k] = b->count * (int64_t)bytes >= WK_STREAM_BYTES;
        to[k] = (char *)wk_ptr(b->out[k]) + first * (int64_t)bytes;
        bool direct = !stream[k] && b->out[k]->dtype == wk_compute_dtype(b->out_compute[k]);
        out[k] = direct ? to[k] : out_buf[k];
    }
    b->fn(out, in, first, n, b->ctx);
    for (int k = 0; k < WK_BLOCKS_TENSORS; k++) {
        if (out[k] != to[k])
            WK_ISA(wk_block_store)(b->out[k]->dtype, b->out_compute[k], out[k], to[k], n, stream[k]);
    }
}

static void run_task(void *ctx, int64_t task)
{
    const plan *p = ctx;
    int64_t begin = task * TASK_BLOCKS * WK_BLOCK, end = begin + TASK_BLOCKS * WK_BLOCK;
    if (end > p->b->count)
        end = p->b->count;
    for (int64_t i = begin; i < end; i += WK_BLOCK)
        run_block(p, i, end - i < WK_BLOCK ? end - i : WK_BLOCK);
}

wk_status WK_ISA(wk_blocks_run)(const wk_blocks *b)
{
    plan p = {.b = b};
    if (b->count == 0)
        return WK_OK;
    for (int k = 0; k < WK_BLOCKS_TENSORS; k++) {
        const wk_tensor *t = b->in[k];
        if (!t)
            continue;
        wk_walk *w = &p.walk[k];
        int64_t strides[1][WK_MAX_RANK];
        memcpy(strides[0], t->strides, sizeof strides[0]);
        memcpy(w->shape, t->shape, sizeof w->shape);
        w->rank = wk_shape_coalesce(t->rank, w->shape, 1, strides);
        memcpy(w->strides, strides[0], sizeof w->strides);
    }
    int64_t task = TASK_BLOCKS * WK_BLOCK;
    wk_parallel_for((b->count + task - 1) / task, run_task, &p);
    return WK_OK;
}
