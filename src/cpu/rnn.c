/* rnn.c: the forward of recurrent layers.
 *
 * The input's part of the gates is one product for all steps. Then, step by step, the state's part is added: its
 * weights are packed once into panels, one for each gate of a block of units, and a task multiplies some rows (sequences)
 * with the panels of one block and finishes these units' cells while all is in the cache. Tasks of a step read
 * the whole state of the step before, so there are two, used in turns. */
#include "core/families.h"
#include "core/pool.h"
#include "core/scope.h"
#include "wick/random.h"
#include "activation.h"
#include "block.h"
#include "rnn.h"

enum { TASK_ROWS = 8, TASKS_WANTED = 16 };

/* One direction of a layer. */
typedef struct {
    char *gates;        /* [t, b, gates * hidden] */
    char *extra;        /* [t, b, hidden] with keep, else [b, hidden] */
    char *out;          /* its columns of [t, b, dirs * hidden] */
    char *state[2], *c; /* [b, hidden] */
    char *before, *now; /* the two states at this step */
    const char *panels; /* [blocks of units][gates][hidden][width] */
    const char *bias_n; /* GRU: b_hn */
    bool reverse, keep; /* keep: for the backward */
} direction;

typedef struct {
    const wk_rnn_run *r;
    direction d[2];
    int64_t width, unit_blocks, rows, row_blocks; /* of a task */
    int64_t step;
} layer;

#include "real_f32.h"
#include "rnn.inc.h"
#include "real_f64.h"
#include "rnn.inc.h"

/* ---- what the backward uses too ---- */

static wk_status no_memory(void) { return wk_fail(WK_ERR_MEMORY, "out of memory for packing the operands"); }

wk_tensor *WK_ISA(wk_rnn_new)(const wk_rnn_run *r, int rank, const int64_t *shape, bool zeros)
{
    wk_tensor *t = wk_tensor_new(r->c->device, r->dtype, rank, shape);
    if (t && zeros)
        memset(wk_ptr(t), 0, (size_t)(wk_count(t) * r->bytes));
    return t;
}

wk_status WK_ISA(wk_rnn_values)(const wk_rnn_run *r, int64_t layer, int64_t dir, int which,
                                const wk_tensor **w)
{
    int place = wk_rnn_weight(&r->s, layer, dir, which);
    *w = place < 0 ? NULL : WK_ISA(wk_compute_copy)(r->c->tail[place]);
    return place < 0 || *w ? WK_OK : wk_error_status();
}

wk_status WK_ISA(wk_rnn_begin)(const wk_call *c, wk_rnn_run *r)
{
    const wk_rnn_options *p = c->params;
    const wk_tensor *lengths = c->in[WK_RNN_LENGTHS];
    wk_compute compute = wk_dtypes[c->dtype].compute;
    *r = (wk_rnn_run){.c = c,
                      .s = wk_rnn_sizes_of(c),
                      .mode = p->mode,
                      .compute = compute,
                      .dtype = wk_compute_dtype(compute),
                      .bytes = (int64_t)wk_compute_bytes(compute),
                      /* a reserve comes from training */
                      .drops = p->dropout > 0 && (p->training || c->in[WK_RNN_RESERVE])};
    if (!lengths)
        return WK_OK;
    wk_tensor *copy = wk_tensor_new(c->device, WK_I64, 1, &r->s.b);
    if (!copy)
        return wk_error_status();
    int64_t *v = wk_ptr(copy);
    WK_ISA(wk_block_load)(WK_I32, wk_ptr(lengths), lengths->strides[0], v, r->s.b);
    for (int64_t i = 0; i < r->s.b; i++)
        WK_NEED(v[i] >= 0 && v[i] <= r->s.t, c, WK_ERR_INDEX, "lengths",
                "expected lengths from 0 to %lld, got %lld at %lld", (long long)r->s.t, (long long)v[i],
                (long long)i);
    r->lengths = v;
    return WK_OK;
}

wk_status WK_ISA(wk_rnn_dropped)(const wk_rnn_run *r, int64_t layer, const wk_tensor *out,
                                 const wk_tensor **next)
{
    const wk_rnn_options *p = r->c->params;
    int64_t blocks = (wk_count(out) + 3) / 4;
    *next = out;
    if (r->drops)
        *next = wk_dropout(out, p->dropout, p->seed,
                           (int64_t)((uint64_t)p->offset + (uint64_t)(layer * blocks)), NULL);
    return *next ? WK_OK : wk_error_status();
}

/* ---- one layer ---- */

/* Rows and columns of a task, by sizes alone. */
static void cut_tasks(layer *y)
{
    const wk_rnn_sizes *s = &y->r->s;
    y->width = WK_ISA(wk_gemm_panel_width)(y->r->dtype);
    y->unit_blocks = (s->hidden + y->width - 1) / y->width;
    int64_t most = (s->b + TASK_ROWS - 1) / TASK_ROWS, want = TASKS_WANTED / (y->unit_blocks * s->dirs) + 1;
    int64_t blocks = want < most ? want : most > 0 ? most : 1;
    y->rows = (s->b + blocks - 1) / blocks;
    y->row_blocks = y->rows ? (s->b + y->rows - 1) / y->rows : 0;
}

static void step_task(void *ctx, int64_t task)
{
    const layer *y = ctx;
    const wk_rnn_run *r = y->r;
    const wk_rnn_sizes *s = &r->s;
    int64_t row = task % y->row_blocks * y->rows, block = task / y->row_blocks % y->unit_blocks;
    const direction *d = &y->d[task / y->row_blocks / y->unit_blocks];
    int64_t t = d->reverse ? s->t - 1 - y->step : y->step, hidden = s->hidden, u0 = block * y->width;
    int64_t rows = s->b - row < y->rows ? s->b - row : y->rows,
            n = hidden - u0 < y->width ? hidden - u0 : y->width;
    int64_t place = t * s->b + row;
    wk_mat a = {wk_rnn_at(r, d->before, row * hidden), r->dtype, hidden, 1};
    for (int64_t k = 0; k < s->gates; k++) {
        wk_mat sum = {wk_rnn_at(r, d->gates, (place * s->gates + k) * hidden + u0), r->dtype,
                      s->gates * hidden, 1};
        wk_mat apart = {wk_rnn_at(r, d->extra, (d->keep ? place : row) * hidden + u0), r->dtype, hidden, 1};
        bool split = r->mode == WK_GRU && k == 2; /* r is to scale the state's part alone */
        WK_ISA(wk_gemm_panel_run)
        (rows, n, hidden, a, wk_rnn_at(r, d->panels, (block * s->gates + k) * hidden * y->width),
         split ? apart : sum, !split);
    }
    for (int64_t i = row; i < row + rows; i++) {
        if (r->compute == WK_COMPUTE_F64)
            forward_row_f64(d, r, t, i, u0, n);
        else
            forward_row_f32(d, r, t, i, u0, n);
    }
}

static void run_steps(layer *y)
{
    const wk_rnn_sizes *s = &y->r->s;
    for (y->step = 0; y->step < s->t; y->step++) {
        for (int k = 0; k < s->dirs; k++) {
            y->d[k].before = y->d[k].state[y->step & 1];
            y->d[k].now = y->d[k].state[(y->step + 1) & 1];
        }
        wk_parallel_for(s->dirs * y->unit_blocks * y->row_blocks, step_task, y);
    }
}

typedef struct {
    const layer *y;
    const wk_tensor *w; /* weight_hh */
    char *panels;
} packing;

static void pack_task(void *ctx, int64_t task)
{
    const packing *p = ctx;
    const wk_rnn_run *r = p->y->r;
    int64_t hidden = r->s.hidden, width = p->y->width, u0 = task / r->s.gates * width;
    int64_t unit = task % r->s.gates * hidden + u0, n = hidden - u0 < width ? hidden - u0 : width;
    wk_mat b = {wk_rnn_at(r, wk_ptr(p->w), unit * hidden), r->dtype, 1, hidden};
    WK_ISA(wk_gemm_panel_pack)(hidden, n, b, wk_rnn_at(r, p->panels, task * hidden * width));
}

static wk_status pack_panels(const layer *y, int64_t l, int64_t dir, direction *d)
{
    const wk_rnn_run *r = y->r;
    int64_t tasks = y->unit_blocks * r->s.gates;
    packing p = {.y = y};
    WK_TRY(WK_ISA(wk_rnn_values)(r, l, dir, WK_RNN_W_HH, &p.w));
    wk_tensor *panels = WK_ISA(wk_rnn_new)(r, 3, (int64_t[]){tasks, r->s.hidden, y->width}, false);
    if (!panels)
        return wk_error_status();
    d->panels = p.panels = wk_ptr(panels);
    wk_parallel_for(tasks, pack_task, &p);
    return WK_OK;
}

/* The state before the first step, [b, hidden], to `to`. */
static wk_status first_state(const wk_rnn_run *r, int slot, int64_t index, char *to)
{
    int64_t n = r->s.b * r->s.hidden;
    memset(to, 0, (size_t)(n * r->bytes));
    if (!r->c->in[slot])
        return WK_OK;
    const wk_tensor *all = WK_ISA(wk_compute_copy)(r->c->in[slot]);
    if (!all)
        return wk_error_status();
    memcpy(to, wk_rnn_at(r, wk_ptr(all), index * n), (size_t)(n * r->bytes));
    return WK_OK;
}

/* gates = in . weight_ih^T + biases, for all steps; and the bias that a GRU adds later. */
static wk_status input_gates(const wk_rnn_run *r, int64_t l, int64_t dir, const wk_tensor *in, direction *d)
{
    const wk_rnn_sizes *s = &r->s;
    const wk_tensor *w, *ih, *hh;
    int64_t rows = s->gates * s->hidden, k = in->shape[2];
    WK_TRY(WK_ISA(wk_rnn_values)(r, l, dir, WK_RNN_W_IH, &w));
    WK_TRY(WK_ISA(wk_rnn_values)(r, l, dir, WK_RNN_B_IH, &ih));
    WK_TRY(WK_ISA(wk_rnn_values)(r, l, dir, WK_RNN_B_HH, &hh));
    wk_tensor *bias = WK_ISA(wk_rnn_new)(r, 1, &rows, true),
              *bias_n = WK_ISA(wk_rnn_new)(r, 1, &s->hidden, true);
    if (!bias || !bias_n)
        return wk_error_status();
    if (ih && r->compute == WK_COMPUTE_F64)
        join_biases_f64(r, wk_ptr(ih), wk_ptr(hh), wk_ptr(bias), wk_ptr(bias_n));
    else if (ih)
        join_biases_f32(r, wk_ptr(ih), wk_ptr(hh), wk_ptr(bias), wk_ptr(bias_n));
    d->bias_n = wk_ptr(bias_n);
    wk_gemm_args g = {.m = s->t * s->b,
                      .n = rows,
                      .k = k,
                      .a = {wk_ptr(in), r->dtype, k, 1},
                      .b = {wk_ptr(w), r->dtype, 1, k},
                      .c = {d->gates, r->dtype, rows, 1},
                      .col_bias = wk_ptr(bias)};
    return WK_ISA(wk_gemm)(&g) ? WK_OK : no_memory();
}

static wk_status prepare(layer *y, int64_t l, int64_t dir, const wk_tensor *in, char *reserve,
                         const wk_tensor *out)
{
    const wk_rnn_run *r = y->r;
    const wk_rnn_sizes *s = &r->s;
    direction *d = &y->d[dir];
    *d = (direction){.keep = reserve != NULL, .reverse = dir == 1};
    d->out = wk_rnn_at(r, wk_ptr(out), dir * s->hidden);
    wk_tensor *states = WK_ISA(wk_rnn_new)(r, 3, (int64_t[]){4, s->b, s->hidden}, false);
    if (!states)
        return wk_error_status();
    int64_t n = s->b * s->hidden;
    d->state[0] = wk_ptr(states);
    d->state[1] = wk_rnn_at(r, d->state[0], n);
    d->c = wk_rnn_at(r, d->state[0], 2 * n);
    d->extra = wk_rnn_at(r, d->state[0], 3 * n);
    WK_TRY(first_state(r, WK_RNN_H0, l * s->dirs + dir, d->state[0]));
    WK_TRY(first_state(r, WK_RNN_C0, l * s->dirs + dir, d->c));
    if (reserve) {
        d->gates = wk_rnn_at(r, reserve, wk_rnn_gates_at(s, l, dir));
        d->extra = wk_rnn_at(r, reserve, wk_rnn_extra_at(s, l, dir));
    } else {
        wk_tensor *gates = WK_ISA(wk_rnn_new)(r, 2, (int64_t[]){s->t * s->b, s->gates * s->hidden}, false);
        if (!gates)
            return wk_error_status();
        d->gates = wk_ptr(gates);
    }
    WK_TRY(pack_panels(y, l, dir, d));
    return input_gates(r, l, dir, in, d);
}

/* [b, hidden] values to a part of hn or cn. */
static void store_state(const wk_rnn_run *r, const char *state, int64_t index, wk_tensor *to)
{
    int64_t n = r->s.b * r->s.hidden;
    if (to)
        WK_ISA(wk_block_store)
    (to->dtype, r->compute, state, (char *)wk_ptr(to) + index * n * (int64_t)wk_bytes(to->dtype), n, false);
}

static wk_status run_layer(const wk_rnn_run *r, int64_t l, const wk_tensor *in, char *reserve,
                           const wk_tensor *out, wk_tensor *hn, wk_tensor *cn)
{
    layer y = {.r = r};
    cut_tasks(&y);
    for (int64_t dir = 0; dir < r->s.dirs; dir++)
        WK_TRY(prepare(&y, l, dir, in, reserve, out));
    run_steps(&y);
    for (int64_t dir = 0; dir < r->s.dirs; dir++) {
        store_state(r, y.d[dir].state[r->s.t & 1], l * r->s.dirs + dir, hn);
        store_state(r, y.d[dir].c, l * r->s.dirs + dir, cn);
    }
    return WK_OK;
}

/* ---- all of them ---- */

/* A layer's temporaries go with it. */
static wk_status run_layer_in_scope(const wk_rnn_run *r, int64_t l, const wk_tensor *in, char *reserve,
                                    const wk_tensor *out, wk_tensor *hn, wk_tensor *cn)
{
    if (!wk_scope_open())
        return wk_fail(WK_ERR_MEMORY, "out of memory");
    wk_status status = run_layer(r, l, in, reserve, out, hn, cn);
    wk_scope_end();
    return status;
}

/* Where a layer's result goes: into the reserve, into y where that can be, or into memory of its own. */
static wk_tensor *layer_out(const wk_rnn_run *r, int64_t l, char *reserve, wk_tensor *y)
{
    const wk_rnn_sizes *s = &r->s;
    int64_t shape[3] = {s->t, s->b, s->dirs * s->hidden};
    if (reserve)
        return wk_from_pointer(r->c->device, r->dtype, 3, shape, NULL,
                               wk_rnn_at(r, reserve, wk_rnn_out_at(s, l)), NULL, NULL);
    if (l == s->layers - 1 && y && y->dtype == r->dtype)
        return y;
    return WK_ISA(wk_rnn_new)(r, 3, shape, false);
}

wk_status WK_ISA(wk_rnn_forward)(const wk_rnn_run *r, void *reserve, wk_tensor *y, wk_tensor *hn,
                                 wk_tensor *cn)
{
    const wk_tensor *in = WK_ISA(wk_compute_copy)(r->c->in[WK_RNN_X]), *out = NULL;
    if (!in)
        return wk_error_status();
    for (int64_t l = 0; l < r->s.layers; l++) {
        if (!(out = layer_out(r, l, reserve, y)))
            return wk_error_status();
        WK_TRY(run_layer_in_scope(r, l, in, reserve, out, hn, cn));
        in = out;
        if (l < r->s.layers - 1)
            WK_TRY(WK_ISA(wk_rnn_dropped)(r, l, out, &in));
    }
    if (y && wk_ptr(y) != wk_ptr(out))
        WK_ISA(wk_block_store)(y->dtype, r->compute, wk_ptr(out), wk_ptr(y), wk_count(y), false);
    return WK_OK;
}

static wk_status run_rnn(wk_call *c)
{
    wk_rnn_run r;
    WK_TRY(WK_ISA(wk_rnn_begin)(c, &r));
    return WK_ISA(wk_rnn_forward)(&r, c->out[3] ? wk_ptr(c->out[3]) : NULL, c->out[0], c->out[1], c->out[2]);
}

const wk_impl WK_ISA(wk_cpu_rnn)[] = {
    {"rnn", "simd", run_rnn, NULL, NULL},
    {"rnn_backward", "simd", WK_ISA(wk_rnn_run_backward), NULL, NULL},
    {0},
};
