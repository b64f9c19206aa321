/* expr.c: elementwise expressions: the blocks of all steps stay in the first-level cache.
 *
 * With vectors that know bf16 (lanes.h) expressions on f32 and on bf16 go by the steps of expr_steps.h, which take inputs
 * and give the result as they are; only ops that have no step get f32 blocks made for them. */
#include <pthread.h>
#include "ops/expr.h"
#include "core/families.h"
#include "activation.h"
#include "bands.h"
#include "block.h"
#include "expr_steps.h"
#include "walk.h"

enum {
    BLOCK = 256,
    SHORT_BLOCK = 128,
    LANES_BYTES = 4096,

    BAND_ELEMENTS = 16384,
    WIDE = 8 /* bytes of the widest compute type */
};

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

/* Numbers for the places of a step, which are otherwise nodes. The first two change nothing. */
enum { ONE = -1, NOTHING = -2 /* -0: a sum with 0 would make 0 of it */, MINUS_ONE = -3, NUMBERS = 3 };

/* A node's step, and what is in its places. */
typedef struct {
    step_fn *fn; /* NULL: the node is done by its formula */
    int16_t in[STEP_PLACES];
    bool joined; /* done by the step of the node that takes it, and has no values of its own */
} node_step;

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
    bool asks; /* steps ask for the inputs' next elements themselves */
    node_step step[WK_EXPR_NODES];
    float numbers[NUMBERS][PAIR / 2]; /* by -1 - number */
    bool packed[WK_EXPR_INPUTS];
    bool lanes; /* by steps on elements as they are, where an op has one */
} plan;

/* ---- the plan ---- */

/* Every node gets a block; one whose last use is behind serves again. Inputs and numbers keep theirs, and so does what
 * is used later than by the node that takes it. */
static void assign_rooms(plan *p)
{
    const wk_expr *e = p->e;
    uint8_t last[WK_EXPR_NODES] = {0}, free_rooms[WK_EXPR_NODES];
    int n_free = 0;
    for (int i = 0; i < e->n_nodes; i++) {
        for (int k = 0; e->nodes[i].op < WK_EXPR_OPS && k < wk_expr_ops[e->nodes[i].op].tensors; k++)
            last[e->nodes[i].in[k]] = p->step[i].joined ? WK_EXPR_NODES : (uint8_t)i;
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
        p->packed[k] = w->rank == 1 && w->strides[0] == 1;
        p->constant[k] = w->rank == 0 || (w->rank == 1 && w->strides[0] == 0);
    }
}

/* ---- blocks ---- */

static void fill_number(const plan *p, double value, void *block)
{
    for (int64_t i = 0; i < p->block; i++) {
        if (p->compute == WK_COMPUTE_F64)
            ((double *)block)[i] = value;
        else
            ((float *)block)[i] = (float)value;
    }
}

/* Elements as they are; where they end within a pair of lanes, zeros follow. The first half of the room is left for the
 * same in f32. */
static operand fetch_raw(const wk_tensor *t, const wk_walk *w, int64_t at, int64_t n, char *room,
                         int64_t block)
{
    size_t bytes = wk_bytes(t->dtype);
    char *buf = room + (size_t)block * sizeof(float);
    const void *x = WK_ISA(wk_walk_gather)(w, bytes, wk_ptr(t), at, n, buf);
    if (n % PAIR != 0 && x != buf)
        memcpy(buf, x, (size_t)n * bytes);
    if (n % PAIR != 0)
        memset(buf + (size_t)n * bytes, 0, (size_t)(PAIR - n % PAIR) * bytes);
    return (operand){n % PAIR != 0 ? buf : (void *)x, t->dtype == WK_BF16};
}

static operand fetch(const plan *p, int input, int64_t at, int64_t n, char *room)
{
    const wk_tensor *t = p->in[input];
    if (p->lanes && p->packed[input] && n % PAIR == 0)
        return (operand){(char *)wk_ptr(t) + at * (int64_t)wk_bytes(t->dtype), t->dtype == WK_BF16};
    if (p->lanes)
        return fetch_raw(t, &p->walk[input], at, n, room, p->block);
    wk_compute compute = p->e->conditions >> input & 1 ? WK_COMPUTE_I64 : p->compute;
    return (operand){
        (void *)WK_ISA(wk_walk_fetch)(&p->walk[input], t->dtype, wk_ptr(t), compute, at, n, room), false};
}

static char *room_of(const plan *p, int node, char *scratch)
{
    return scratch + (size_t)(p->room[node] * p->block) * WIDE;
}

/* What does not change from block to block. */
static void prepare(const plan *p, int64_t begin, int64_t n, char *scratch, operand *values)
{
    for (int i = 0; i < p->e->n_nodes; i++) {
        const wk_expr_node *node = &p->e->nodes[i];
        char *room = room_of(p, i, scratch);
        values[i] = (operand){room, false};
        if (node->op == WK_EXPR_number)
            fill_number(p, node->numbers[0], room);
        if (node->op == WK_EXPR_input && p->constant[node->in[0]])
            values[i] = fetch(p, node->in[0], begin, n, room);
    }
}

/* Runs a step; every place is a node, or one of the numbers. */
static void run_step(const plan *p, const node_step *step, const operand *values, operand y, int64_t n,
                     bool stream)
{
    reader r[STEP_PLACES];
    for (int k = 0; k < STEP_PLACES; k++) {
        int from = step->in[k];
        r[k] = from < 0 ? reader_of_number(p->numbers[-1 - from]) : reader_of(&values[from]);
    }
    step->fn(&y, r, n, stream);
}

/* The same values as bf16, or as f32. */
static void convert(const plan *p, operand from, operand to, int64_t n, bool stream)
{
    static const node_step same = {same_step, {0, ONE, NOTHING, ONE, NOTHING}, false};
    run_step(p, &same, &from, to, n, stream);
}

/* A node's values by its formula, in its room or in `to`. */
static operand run_formula(const plan *p, int i, int64_t n, char *scratch, operand *values, operand to,
                           bool stream)
{
    const wk_expr_node *node = &p->e->nodes[i];
    const void *in[3];
    for (int k = 0; k < 3; k++) {
        operand *x = &values[node->in[k]];
        if (WK_WORDS_STREAM && x->bf16 && k < wk_expr_ops[node->op].tensors) {
            operand wide = {room_of(p, node->in[k], scratch), false};
            convert(p, *x, wide, n, false);
            *x = wide;
        }
        in[k] = x->at;
    }
    wk_numbers numbers = {.f = {node->numbers[0], node->numbers[1], node->numbers[2]}};
    void *y = to.bf16 || stream ? room_of(p, i, scratch) : to.at;
    formulas[node->op][p->compute](y, in, n, &numbers);
    return (operand){y, false};
}

/* Loads of the inputs' next elements, to overlap with the work on those that are here. */
static void prefetch(const plan *p, int64_t at, int64_t n)
{
    for (int k = 0; k < p->e->n_inputs; k++)
        wk_walk_prefetch(&p->walk[k], p->in[k]->dtype, wk_ptr(p->in[k]), at, n);
}

/* n elements from `at` on: the last node's values, in `to` where that could be done. */
static operand compute(const plan *p, int64_t at, int64_t n, char *scratch, operand *values, operand to,
                       bool stream)
{
    int last = p->e->n_nodes - 1;
    int64_t filled = p->lanes ? whole_pairs(n) : n;
    if (p->stream && !p->asks)
        prefetch(p, at + n, n);
    for (int i = 0; i <= last; i++) {
        const wk_expr_node *node = &p->e->nodes[i];
        const node_step *step = &p->step[i];
        operand y = i == last ? to : (operand){room_of(p, i, scratch), false};
        if (node->op == WK_EXPR_input && !p->constant[node->in[0]])
            values[i] = fetch(p, node->in[0], at, n, y.at);
        if (node->op >= WK_EXPR_OPS || step->joined)
            continue;
        if (!WK_WORDS_STREAM || !step->fn) {
            values[i] = run_formula(p, i, filled, scratch, values, y, i == last && stream);
            continue;
        }
        run_step(p, step, values, y, filled, i == last && stream);
        values[i] = y;
    }
    return values[last];
}

static void run_band(void *ctx, int64_t begin, int64_t end, void *scratch)
{
    const plan *p = ctx;
    operand values[WK_EXPR_NODES];
    int last = p->e->n_nodes - 1;
    wk_compute out_compute = p->e->nodes[last].condition ? WK_COMPUTE_I64 : p->compute;
    bool as_is = p->lanes || p->out->dtype == wk_compute_dtype(out_compute);
    bool lines = p->lanes && (uintptr_t)wk_ptr(p->out) % WK_LINE == 0;
    size_t bytes = wk_bytes(p->out->dtype);
    int64_t block = p->block, first = begin * block;
    prepare(p, first, p->count - first < block ? p->count - first : block, scratch, values);
    for (int64_t i = begin; i < end; i++) {
        int64_t at = i * block, n = p->count - at < block ? p->count - at : block;
        char *out = (char *)wk_ptr(p->out) + (size_t)at * bytes;
        /* Straight to its place, unless there is less room than whole lanes, or it goes past the cache otherwise. */
        bool straight = as_is && (p->lanes ? n % PAIR == 0 && (lines || !p->stream) : !p->stream);
        operand to = {straight ? out : room_of(p, last, scratch), p->lanes && p->out->dtype == WK_BF16};
        operand y = compute(p, at, n, scratch, values, to, straight && p->stream);
        if (WK_WORDS_STREAM && y.bf16 != to.bf16) {
            convert(p, y, to, whole_pairs(n), straight && p->stream);
            y = to;
        }
        if (y.at != out && as_is)
            WK_ISA(wk_block_copy)(y.at, out, (size_t)n * bytes, p->stream);
        else if (y.at != out)
            WK_ISA(wk_block_store)(p->out->dtype, out_compute, y.at, out, n, p->stream);
    }
}

/* Whether the expression is one of f32, or of bf16, from end to end. */
static bool takes_lanes(const plan *p)
{
    const wk_expr *e = p->e;
    wk_dtype dtype = p->out->dtype;
    bool takes = (dtype == WK_F32 || dtype == WK_BF16) && e->nodes[e->n_nodes - 1].op < WK_EXPR_OPS;
    for (int i = 0; i < e->n_nodes; i++)
        takes = takes && !e->nodes[i].condition;
    for (int k = 0; k < e->n_inputs; k++)
        takes = takes && p->in[k]->dtype == dtype;
    return takes;
}

/* The place of a step that its result's sum or product with something else can take, or the function of it; none: -1.
 * What has been put behind the function stays behind it. */
static int free_place(const node_step *s, int op)
{
    bool no_product = s->in[STEP_D] == ONE, no_sum = s->in[STEP_E] == NOTHING;
    if (op == WK_EXPR_add)
        return no_sum ? STEP_E : -1;
    if (op == WK_EXPR_mul)
        return no_product && no_sum ? STEP_D : -1;
    return op != WK_EXPR_sub && s->fn == same_step && no_product && no_sum ? STEP_A : -1;
}

/* Lets a node's step go on from that of a node it takes, where nothing else takes that. */
static void join(plan *p, int i, const uint8_t *uses)
{
    const wk_expr_node *node = &p->e->nodes[i];
    for (int k = 0; k < wk_expr_ops[node->op].tensors; k++) {
        node_step *s = &p->step[node->in[k]];
        int place = s->fn && uses[node->in[k]] == 1 ? free_place(s, node->op) : -1;
        if (place < 0)
            continue;
        step_fn *fn = p->step[i].fn;
        p->step[i] = *s;
        s->joined = true;
        if (place == STEP_A) /* the function of what s has made */
            p->step[i].fn = fn;
        else if (place == STEP_E && s->in[STEP_C] == NOTHING && s->fn == same_step && s->in[STEP_D] == ONE)
            p->step[i].in[STEP_C] = node->in[1 - k]; /* the other places are left for what comes */
        else
            p->step[i].in[place] = node->in[1 - k];
        return;
    }
}

/* A step of its own. */
static node_step lone_step(const wk_expr_node *node, bool bf16)
{
    node_step s = {step_of(node->op, bf16), {node->in[0], ONE, NOTHING, ONE, NOTHING}, false};
    if (node->op == WK_EXPR_mul)
        s.in[STEP_B] = node->in[1];
    if (node->op == WK_EXPR_add)
        s.in[STEP_C] = node->in[1];
    if (node->op == WK_EXPR_sub) {
        s.in[STEP_A] = node->in[1];
        s.in[STEP_B] = MINUS_ONE;
        s.in[STEP_C] = node->in[0];
    }
    return s;
}

static void plan_steps(plan *p)
{
    uint8_t uses[WK_EXPR_NODES] = {0};
    const wk_expr *e = p->e;
    for (int i = 0; i < e->n_nodes; i++) {
        const wk_expr_node *node = &e->nodes[i];
        for (int k = 0; node->op < WK_EXPR_OPS && k < wk_expr_ops[node->op].tensors; k++)
            uses[node->in[k]] = (uint8_t)(uses[node->in[k]] + (uses[node->in[k]] < 2));
    }
    for (int i = 0; i < e->n_nodes; i++) {
        const wk_expr_node *node = &e->nodes[i];
        if (node->op >= WK_EXPR_OPS)
            continue;
        p->step[i] = lone_step(node, p->out->dtype == WK_BF16);
        if (p->step[i].fn)
            join(p, i, uses);
        p->asks |= p->step[i].fn != NULL;
    }
    for (int i = 0; i < PAIR / 2; i++) {
        p->numbers[-1 - ONE][i] = 1.0f;
        p->numbers[-1 - NOTHING][i] = -0.0f;
        p->numbers[-1 - MINUS_ONE][i] = -1.0f;
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
    p.lanes = WK_WORDS_STREAM && takes_lanes(&p);
    /* Short ones where nothing is converted: the processor then computes one while it waits for the next one's inputs. */
    p.block = p.lanes                                   ? LANES_BYTES / (int64_t)wk_bytes(c->dtype)
              : c->dtype == wk_compute_dtype(p.compute) ? SHORT_BLOCK
                                                        : BLOCK;
    if (WK_WORDS_STREAM && p.lanes)
        plan_steps(&p);
    assign_rooms(&p);
    plan_walks(&p);
    p.stream = p.count * (int64_t)wk_bytes(p.out->dtype) >= WK_STREAM_BYTES;
    return WK_ISA(wk_bands_run)((p.count + p.block - 1) / p.block, BAND_ELEMENTS / p.block,
                                (size_t)(p.rooms * p.block) * WIDE, run_band, &p);
}

const wk_impl WK_ISA(wk_cpu_expr)[] = {
    {"expr", "simd", run_expr, NULL, NULL},
    {0},
};
