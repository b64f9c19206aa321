/* map.c: the one strided elementwise loop. */
#include "core/host.h"
#include "core/pool.h"
#include "block.h"
#include "lanes.h"
#include "map.h"
#include "stream.h"
#include "walk.h"

enum { TASK_BLOCKS = 16, GATHER_LIMIT = 1 << 16, PIECE = 128 };

typedef struct {
    const wk_map *m;
    wk_walk walk[WK_MAP_INPUTS];  /* each in the output's order */
    bool constant[WK_MAP_INPUTS]; /* one value for the whole call */
    int64_t count;
    bool stream;
    wk_lanes_fn direct;
} plan;

static const void *fetch(const plan *p, int k, int64_t i, int64_t n, void *buf)
{
    const wk_tensor *t = p->m->in[k];
    return WK_ISA(wk_walk_fetch)(&p->walk[k], t->dtype, wk_ptr(t), p->m->in_compute[k], i, n, buf);
}

/* Elements [first, first + n) of the call straight past the cache. In pieces so short that the processor, which looks a few
 * hundred instructions ahead, computes the next one while it stores this one; the loads of later ones go along with
 * them. */
static void run_pieces(const plan *p, const void *const *in, int64_t first, int64_t n, unsigned char *out)
{
    const wk_map *m = p->m;
    _Alignas(WK_LINE) unsigned char buf[PIECE * 8];
    size_t bytes = wk_bytes(m->out->dtype);
    for (int64_t i = 0; i < n; i += PIECE) {
        int64_t piece = n - i < PIECE ? n - i : PIECE;
        const void *at[WK_MAP_INPUTS];
        for (int k = 0; k < m->n_in; k++) {
            at[k] = (const char *)in[k] + i * (int64_t)wk_compute_bytes(m->in_compute[k]);
            int64_t ahead = (m->n_in > 1 ? wk_host_ahead.several : wk_host_ahead.one) /
                            (int64_t)wk_bytes(m->in[k]->dtype);
            wk_walk_prefetch(&p->walk[k], m->in[k]->dtype, wk_ptr(m->in[k]), first + i + ahead, piece);
        }
        m->fn(buf, at, piece, m->params);
        wk_stream_copy(out + (size_t)i * bytes, buf, (size_t)piece * bytes, 0);
    }
}

static void run_task(void *ctx, int64_t task)
{
    const plan *p = ctx;
    const wk_map *m = p->m;
    _Alignas(64) char in_buf[WK_MAP_INPUTS][WK_BLOCK * 8], out_buf[WK_BLOCK * 8];
    const void *in[WK_MAP_INPUTS];
    int64_t begin = task * TASK_BLOCKS * WK_BLOCK, end = begin + TASK_BLOCKS * WK_BLOCK;
    if (end > p->count)
        end = p->count;
    size_t out_bytes = wk_bytes(m->out->dtype);
    bool direct = m->out->dtype == wk_compute_dtype(m->out_compute);
    for (int k = 0; k < m->n_in; k++) {
        if (p->constant[k])
            in[k] = fetch(p, k, begin, end - begin < WK_BLOCK ? end - begin : WK_BLOCK, in_buf[k]);
    }
    for (int64_t i = begin; i < end; i += WK_BLOCK) {
        int64_t n = end - i < WK_BLOCK ? end - i : WK_BLOCK;
        for (int k = 0; k < m->n_in; k++) {
            if (!p->constant[k])
                in[k] = fetch(p, k, i, n, in_buf[k]);
        }
        char *out = (char *)wk_ptr(m->out) + i * (int64_t)out_bytes;
        if (direct && p->stream && m->fn) {
            run_pieces(p, in, i, n, (unsigned char *)out);
            continue;
        }
        /* Loads of the next block overlap with the work on this one. */
        for (int k = 0; k < m->n_in && p->stream; k++)
            wk_walk_prefetch(&p->walk[k], m->in[k]->dtype, wk_ptr(m->in[k]), i + n, n);
        if (m->fn)
            m->fn(direct ? (void *)out : out_buf, in, n, m->params);
        if (!direct || !m->fn)
            WK_ISA(wk_block_store)(m->out->dtype, m->out_compute, m->fn ? out_buf : in[0], out, n, p->stream);
    }
}

/* The same where the function takes elements as they are. */
static void run_direct_task(void *ctx, int64_t task)
{
    const plan *p = ctx;
    const wk_map *m = p->m;
    _Alignas(WK_LINE) char in_buf[WK_MAP_INPUTS][WK_BLOCK * 4], out_buf[WK_BLOCK * 4];
    size_t bytes = wk_bytes(m->out->dtype);
    bool straight = !p->stream || (WK_WORDS_STREAM && (uintptr_t)wk_ptr(m->out) % WK_LINE == 0);
    int64_t begin = task * TASK_BLOCKS * WK_BLOCK, end = begin + TASK_BLOCKS * WK_BLOCK;
    for (int64_t i = begin; i < end && i < p->count; i += WK_BLOCK) {
        int64_t n = p->count - i < WK_BLOCK ? p->count - i : WK_BLOCK;
        const void *in[WK_MAP_INPUTS];
        char *y = (char *)wk_ptr(m->out) + (size_t)i * bytes;
        for (int k = 0; k < m->n_in; k++) {
            wk_dtype from = m->in[k]->dtype;
            in[k] = WK_ISA(wk_walk_gather)(&p->walk[k], wk_bytes(from), wk_ptr(m->in[k]), i, n, in_buf[k]);
            if (p->stream && !WK_WORDS_STREAM) /* else by the loop: see lanes.h */
                wk_walk_prefetch(&p->walk[k], from, wk_ptr(m->in[k]), i + n, n);
        }
        p->direct(straight ? y : out_buf, in, n, p->stream && straight);
        if (!straight)
            WK_ISA(wk_block_copy)(out_buf, y, (size_t)n * bytes, true);
    }
}

/* A wk_lanes_fn from f32 to bf16. */
static void narrow(void *out, const void *const *in, int64_t n, bool stream)
{
    enum { HALF = sizeof(wk_words) / sizeof(float), STEP = 2 * HALF };
    const float *x = in[0];
    uint16_t *y = out;
    int64_t i = 0;
    for (; i + STEP <= n; i += STEP) {
        wk_words_ahead(x + i, wk_host_ahead.one), wk_words_ahead(x + i + HALF, wk_host_ahead.one);
        wk_words_store(y + i, wk_words_narrow(wk_words_load(x + i), wk_words_load(x + i + HALF)), stream);
    }
    for (; i < n; i++)
        y[i] = wk_f32_to_bf16(x[i]);
}

/* The function that takes the call's elements as they are, if there is one. */
static wk_lanes_fn direct_of(const wk_map *m)
{
    wk_dtype dtype = m->out->dtype;
    if (!m->fn && dtype == WK_BF16 && m->in[0]->dtype == WK_F32)
        return WK_WIDE_LANES(narrow);
    wk_lanes_fn direct = dtype == WK_F32 ? m->direct_f32 : dtype == WK_BF16 ? m->direct_bf16 : NULL;
    for (int k = 0; k < m->n_in; k++)
        direct = m->in[k]->dtype == dtype ? direct : NULL;
    return direct;
}

/* Strides of t as seen in the shape of the output: 0 for the dimensions it is broadcast over. */
static void broadcast_strides(const wk_tensor *t, const wk_tensor *out, int64_t *strides)
{
    int lead = out->rank - t->rank;
    for (int d = 0; d < out->rank; d++)
        strides[d] = d < lead || t->shape[d - lead] == 1 ? 0 : t->strides[d - lead];
}

/* A large input that is walked across its memory order (a transposed matrix) is cheaper to copy first, through
 * cache-sized tiles, than to gather. */
static bool better_packed(const wk_tensor *t)
{
    if (t->rank < 2 || wk_count(t) < GATHER_LIMIT || t->strides[t->rank - 1] < 2)
        return false;
    for (int d = 0; d + 1 < t->rank; d++) {
        if (t->strides[d] == 1 && t->shape[d] > 1)
            return true;
    }
    return false;
}

wk_status WK_ISA(wk_map_run)(const wk_map *given)
{
    wk_map packed = *given;
    const wk_map *m = &packed;
    for (int k = 0; k < m->n_in; k++) {
        if (better_packed(m->in[k]) && !(packed.in[k] = wk_tensor_packed(m->in[k])))
            return wk_error_status();
    }
    plan p = {.m = m, .count = wk_count(m->out), .direct = direct_of(m)};
    if (p.count == 0)
        return WK_OK;
    for (int k = 0; k < m->n_in; k++) {
        wk_walk *w = &p.walk[k];
        int64_t strides[1][WK_MAX_RANK];
        broadcast_strides(m->in[k], m->out, strides[0]);
        memcpy(w->shape, m->out->shape, sizeof w->shape);
        w->rank = wk_shape_coalesce(m->out->rank, w->shape, 1, strides);
        memcpy(w->strides, strides[0], sizeof w->strides);
        p.constant[k] = w->rank == 0 || (w->rank == 1 && w->strides[0] == 0);
    }
    p.stream = p.count * (int64_t)wk_bytes(m->out->dtype) >= WK_STREAM_BYTES;
    int64_t task = TASK_BLOCKS * WK_BLOCK;
    wk_parallel_for((p.count + task - 1) / task, p.direct ? run_direct_task : run_task, &p);
    return WK_OK;
}
