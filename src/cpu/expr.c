/* expr.c: elementwise expressions: the blocks of all steps stay in the first-level cache. */
#include <pthread.h>
#include "ops/expr.h"
#include "core/families.h"
#include "activation.h"
#include "bands.h"
#include "block.h"
#include "walk.h"

enum { BLOCK = 256, SHORT_BLOCK = 128, BAND_BLOCKS = 64, WIDE = 8 /* bytes of the widest compute type */ };

static wk_block_fn formulas[WK_EXPR_OPS][2];

static void find_formulas(void)
{
    for (int op = 0; op < WK_EXPR_OPS; op++) {
        for (int k = 0; k < 2; k++) {
            const char *name = wk_expr_ops[op].name;
            wk_block_fn fn = WK_ISA(wk_unary_block)(name, (wk_compute)k);
            formulas[op][k] = fn ? fn : WK_ISA(wk_binary_block)(name, (wk_compute)k);
        }
    }
}

typedef struct {
    const wk_expr *e;
    const wk_tensor *const *in;
    wk_tensor *out;
    wk_compute compute;
    wk_walk walk[WK_EXPR_INPUTS];
    bool constant[WK_EXPR_INPUTS];
    uint8_t room[WK_EXPR_NODES]; /* which block of the scratch memory a node's values are in */
    int rooms;
    int64_t count;
    int64_t block; /* elements that go through all nodes at a time */
    bool stream;
} plan;

/* ---- the plan ---- */

/* Every node gets a block; one whose last use is behind serves again. Inputs and numbers keep theirs. */
static void assign_rooms(plan *p)
{
    const wk_expr *e = p->e;
    uint8_t last[WK_EXPR_NODES] = {0}, free_rooms[WK_EXPR_NODES];
    int n_free = 0;
    for (int i = 0; i < e->n_nodes; i++) {
        for (int k = 0; e->nodes[i].op < WK_EXPR_OPS && k < wk_expr_ops[e->nodes[i].op].tensors; k++)
            last[e->nodes[i].in[k]] = (uint8_t)i;
    }
    for (int i = 0; i < e->n_nodes; i++) {
        const wk_expr_node *n = &e->nodes[i];
        p->room[i] = (uint8_t)(n_free > 0 && n->op < WK_EXPR_OPS ? free_rooms[--n_free] : p->rooms++);
        for (int k = 0; n->op < WK_EXPR_OPS && k < wk_expr_ops[n->op].tensors; k++) {
            int from = n->in[k];
            if (e->nodes[from].op < WK_EXPR_OPS && last[from] == i) {
                free_rooms[n_free++] = p->room[from];
                last[from] = WK_EXPR_NODES; /* once, though it may be used twice */
            }
        }
    }
}

static void plan_walks(plan *p)
{
    for (int k = 0; k < p->e->n_inputs; k++) {
        wk_walk *w = &p->walk[k];
        const wk_tensor *t = p->in[k], *out = p->out;
        int64_t strides[1][WK_MAX_RANK];
        int lead = out->rank - t->rank;
        for (int d = 0; d < out->rank; d++)
            strides[0][d] = d < lead || t->shape[d - lead] == 1 ? 0 : t->strides[d - lead];
        memcpy(w->shape, out->shape, sizeof w->shape);
        w->rank = wk_shape_coalesce(out->rank, w->shape, 1, strides);
        memcpy(w->strides, strides[0], sizeof w->strides);
        p->constant[k] = w->rank == 0 || (w->rank == 1 && w->strides[0] == 0);
    }
}

/* ---- blocks ---- */

static void fill_number(const plan *p, double value, void *block)
{
    for (int i = 0; i < BLOCK; i++) {
        if (p->compute == WK_COMPUTE_F64)
            ((double *)block)[i] = value;
        else
            ((float *)block)[i] = (float)value;
    }
}

static const void *fetch(const plan *p, int input, int64_t at, int64_t n, void *room)
{
    const wk_tensor *t = p->in[input];
    wk_compute compute = p->e->conditions >> input & 1 ? WK_COMPUTE_I64 : p->compute;
    return WK_ISA(wk_walk_fetch)(&p->walk[input], t->dtype, wk_ptr(t), compute, at, n, room);
}

/* What does not change from block to block. */
static void prepare(const plan *p, int64_t begin, int64_t n, char *scratch, const void **values)
{
    for (int i = 0; i < p->e->n_nodes; i++) {
        const wk_expr_node *node = &p->e->nodes[i];
        values[i] = scratch + (size_t)p->room[i] * BLOCK * WIDE;
        if (node->op == WK_EXPR_number)
            fill_number(p, node->numbers[0], (void *)values[i]);
        if (node->op == WK_EXPR_input && p->constant[node->in[0]])
            values[i] = fetch(p, node->in[0], begin, n, (void *)values[i]);
    }
}

/* n elements from `at` on: the last node's values, in `to` where that is given. */
static const void *compute(const plan *p, int64_t at, int64_t n, char *scratch, const void **values, void *to)
{
    int last = p->e->n_nodes - 1;
    for (int i = 0; i <= last; i++) {
        const wk_expr_node *node = &p->e->nodes[i];
        if (node->op == WK_EXPR_input && !p->constant[node->in[0]])
            values[i] = fetch(p, node->in[0], at, n, scratch + (size_t)p->room[i] * BLOCK * WIDE);
        if (node->op >= WK_EXPR_OPS)
            continue;
        wk_numbers numbers = {.f = {node->numbers[0], node->numbers[1], node->numbers[2]}};
        const void *in[3] = {values[node->in[0]], values[node->in[1]], values[node->in[2]]};
        void *out = i == last && to ? to : (void *)values[i];
        formulas[node->op][p->compute](out, in, n, &numbers);
        if (out == to)
            return to;
    }
    return values[last];
}

static void run_band(void *ctx, int64_t begin, int64_t end, void *scratch)
{
    const plan *p = ctx;
    const void *values[WK_EXPR_NODES];
    bool condition = p->e->nodes[p->e->n_nodes - 1].condition;
    wk_compute out_compute = condition ? WK_COMPUTE_I64 : p->compute;
    bool direct = !p->stream && p->out->dtype == wk_compute_dtype(out_compute);
    size_t bytes = wk_bytes(p->out->dtype);
    int64_t block = p->block, first = begin * block;
    prepare(p, first, p->count - first < block ? p->count - first : block, scratch, values);
    for (int64_t i = begin; i < end; i++) {
        int64_t at = i * block, n = p->count - at < block ? p->count - at : block;
        char *out = (char *)wk_ptr(p->out) + (size_t)at * bytes;
        /* Loads of the next block overlap with the work on this one. */
        for (int k = 0; k < p->e->n_inputs && p->stream; k++)
            wk_walk_prefetch(&p->walk[k], p->in[k]->dtype, wk_ptr(p->in[k]), at + n, n);
        const void *y = compute(p, at, n, scratch, values, direct ? out : NULL);
        if (y != out)
            WK_ISA(wk_block_store)(p->out->dtype, out_compute, y, out, n, p->stream);
    }
}

static wk_status run_expr(wk_call *c)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    wk_expr read;
    plan p = {.e = wk_expr_of(c->params, &read),
              .in = c->tail,
              .out = c->out[0],
              .compute = wk_dtypes[c->dtype].compute,
              .count = wk_count(c->out[0])};
    if (!p.e)
        return wk_error_status();
    if (p.count == 0)
        return WK_OK;
    pthread_once(&once, find_formulas);
    assign_rooms(&p);
    plan_walks(&p);
    p.stream = p.count * (int64_t)wk_bytes(p.out->dtype) >= WK_STREAM_BYTES;
    /* Short ones where nothing is converted: the processor then computes one while it waits for the next one's inputs. */
    p.block = c->dtype == wk_compute_dtype(p.compute) ? SHORT_BLOCK : BLOCK;
    return WK_ISA(wk_bands_run)((p.count + p.block - 1) / p.block, BAND_BLOCKS,
                                (size_t)p.rooms * BLOCK * WIDE, run_band, &p);
}

const wk_impl WK_ISA(wk_cpu_expr)[] = {
    {"expr", "simd", run_expr, NULL, NULL},
    {0},
};
