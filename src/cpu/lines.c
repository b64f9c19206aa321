/* lines.c: the engine for ops that work along whole lines of a tensor. */
#include "wick/ops.h"
#include "bands.h"
#include "block.h"
#include "lines.h"
#include "stream.h"
#include "walk.h"

enum { TASK_ELEMENTS = 1 << 14, AHEAD_BYTES = 4 << 20 };

/* Every tensor as [count lines] x [n]: a walk whose line i begins at element i * n. */
typedef struct {
    wk_lines l;
    wk_walk walk[WK_LINE_TENSORS];
    int64_t n, count;
    size_t room;        /* bytes for a line's values */
    bool stream, ahead; /* results go past the cache; inputs are asked for a line ahead */
} plan;

/* Line `line` of input k, in buf where it does not lie as the op wants it. */
static const void *fetch(const plan *p, int k, int64_t line, void *buf)
{
    const wk_tensor *t = p->l.in[k];
    if (p->l.as_is)
        return WK_ISA(wk_walk_gather)(&p->walk[k], wk_bytes(t->dtype), wk_ptr(t), line * p->n, p->n, buf);
    return WK_ISA(wk_walk_fetch)(&p->walk[k], t->dtype, wk_ptr(t), p->l.in_compute[k], line * p->n, p->n,
                                 buf);
}

static bool same_type(const plan *p, int k)
{
    return p->l.as_is || p->l.out[k]->dtype == wk_compute_dtype(p->l.out_compute[k]);
}

static void run_line(const plan *p, int64_t line, char *buf)
{
    const wk_lines *l = &p->l;
    const void *in[WK_LINE_TENSORS];
    void *out[WK_LINE_TENSORS + 1];
    char *to[WK_LINE_TENSORS];
    for (int k = 0; k < l->n_in; k++, buf += p->room) {
        in[k] = fetch(p, k, line, buf);
        /* Loads of the next line overlap with the work on this one. */
        if (p->ahead && !(l->asks && in[k] != buf))
            wk_walk_prefetch(&p->walk[k], l->in[k]->dtype, wk_ptr(l->in[k]), (line + 1) * p->n,
                             p->n < 8192 ? p->n : 8192);
    }
    for (int k = 0; k < l->n_out; k++, buf += p->room) {
        to[k] = (char *)wk_ptr(l->out[k]) + line * p->n * (int64_t)wk_bytes(l->out[k]->dtype);
        out[k] = !p->stream && same_type(p, k) ? to[k] : buf;
    }
    out[l->n_out] = buf;
    l->fn(out, in, line, p->n, l->ctx);
    for (int k = 0; k < l->n_out; k++) {
        wk_dtype dtype = l->out[k]->dtype;
        if (out[k] == to[k])
            continue;
        if (same_type(p, k))
            WK_ISA(wk_block_copy)(out[k], to[k], (size_t)p->n * wk_bytes(dtype), p->stream);
        else
            WK_ISA(wk_block_store)(dtype, l->out_compute[k], out[k], to[k], p->n, p->stream);
    }
}

static void run_lines(void *ctx, int64_t begin, int64_t end, void *buf)
{
    for (int64_t line = begin; line < end; line++)
        run_line(ctx, line, buf);
}

/* How many short lines are handed over at a time: they lie one behind the other. Results that go past the cache do so while
 * the next line is computed, if there is one line at a time. */
static int64_t lines_together(const plan *p)
{
    const wk_lines *l = &p->l;
    int64_t together = p->stream || l->together == 0 ? 1 : l->together;
    for (int k = 0; k < l->n_in; k++) {
        if (p->walk[k].rank != 1 || p->walk[k].strides[0] != 1 || wk_lines_single(l->in[k], p->n))
            return 1;
    }
    while (p->count % together != 0)
        together /= 2;
    return together;
}

static wk_status run_trailing(const wk_lines *l)
{
    const wk_tensor *shape = l->n_in ? l->in[0] : l->out[0];
    plan p = {.l = *l, .n = 1, .count = 1};
    for (int d = 0; d < shape->rank; d++)
        *(l->set >> d & 1 ? &p.n : &p.count) *= shape->shape[d];
    if (p.n * p.count == 0)
        return WK_OK;
    for (int k = 0; k < l->n_in; k++) {
        int64_t strides[1][WK_MAX_RANK];
        memcpy(strides[0], l->in[k]->strides, sizeof strides[0]);
        memcpy(p.walk[k].shape, l->in[k]->shape, sizeof p.walk[k].shape);
        p.walk[k].rank = wk_shape_coalesce(l->in[k]->rank, p.walk[k].shape, 1, strides);
        memcpy(p.walk[k].strides, strides[0], sizeof strides[0]);
    }
    int64_t written = 0, read = 0;
    for (int k = 0; k < l->n_out; k++)
        written += p.n * p.count * (int64_t)wk_bytes(l->out[k]->dtype);
    for (int k = 0; k < l->n_in; k++)
        read += p.n * p.count * (int64_t)wk_bytes(l->in[k]->dtype);
    p.stream = written >= WK_STREAM_BYTES && !l->straight;
    p.ahead = read >= AHEAD_BYTES;
    int64_t together = lines_together(&p);
    p.n *= together;
    p.count /= together;
    size_t value = l->as_is ? wk_bytes(l->in[0]->dtype) : 8; /* of the widest compute type */
    p.room = ((size_t)p.n * value + WK_LINE - 1) / WK_LINE * WK_LINE;
    size_t scratch = p.room * (size_t)(l->n_in + l->n_out) + l->scratch;
    return WK_ISA(wk_bands_run)(p.count, TASK_ELEMENTS / p.n + 1, scratch, run_lines, &p);
}

/* The dims of a line, in their order, last: order[i] is where dim i of the result comes from. */
static bool lines_last(unsigned set, int rank, int *order)
{
    int at = 0;
    for (int which = 0; which < 2; which++) {
        for (int d = 0; d < rank; d++) {
            if ((int)(set >> d & 1) == which)
                order[at++] = d;
        }
    }
    for (int i = 0; i < rank; i++) {
        if (order[i] != i)
            return false;
    }
    return true;
}

/* Lines that are not the innermost dims are brought there by a (tiled, fast) copy, and the results back. */
wk_status WK_ISA(wk_lines_run)(const wk_lines *l)
{
    const wk_tensor *shape = l->n_in ? l->in[0] : l->out[0];
    int order[WK_MAX_RANK], back[WK_MAX_RANK];
    if (lines_last(l->set, shape->rank, order))
        return run_trailing(l);
    wk_lines moved = *l;
    int lines = __builtin_popcount(l->set);
    moved.set = ((1u << lines) - 1) << (shape->rank - lines);
    for (int k = 0; k < l->n_in; k++) {
        const wk_tensor *t = wk_permute(l->in[k], order);
        if (!t || !(moved.in[k] = wk_tensor_packed(t)))
            return wk_error_status();
    }
    for (int i = 0; i < shape->rank; i++)
        back[order[i]] = i;
    for (int k = 0; k < l->n_out; k++) {
        moved.out[k] =
            wk_tensor_new(l->out[k]->storage->device, l->out[k]->dtype, shape->rank, moved.in[0]->shape);
        if (!moved.out[k])
            return wk_error_status();
    }
    WK_TRY(run_trailing(&moved));
    for (int k = 0; k < l->n_out; k++) {
        wk_tensor *t = wk_permute(moved.out[k], back);
        if (!t)
            return wk_error_status();
        WK_TRY(wk_copy_into(l->out[k], t));
    }
    return WK_OK;
}
