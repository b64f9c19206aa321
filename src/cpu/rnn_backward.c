/* rnn_backward.c: the gradient of recurrent layers.
 *
 * From the last layer to the first, from the last step to the first: gradients of the gates from those of the state, and
 * the state's before from the gates', a product with weight_hh. Gradients of weights and inputs are then one
 * product over all steps each. */
#include "core/pool.h"
#include "core/scope.h"
#include "wick/random.h"
#include "wick/copy.h"
#include "activation.h"
#include "block.h"
#include "reduce.h"
#include "rnn.h"

enum { TASK_VALUES = 4096 };

/* One direction of one layer; [t, b, ..] and [b, ..] as in the reserve. */
typedef struct {
    const wk_rnn_run *r;
    int64_t layer, dir, step, rows;         /* rows of a task */
    const char *gates, *extra, *out, *dout; /* out and dout: this direction's columns */
    const char *h0, *c0;                    /* zeros where they are absent */
    char *dh, *dc;
    char *dgates, *d_state;  /* the same but for a GRU */
    const wk_tensor *weight; /* weight_hh, and in panels of width columns: */
    char *panels;
    int64_t width, blocks;
} gradient;

#include "real_f32.h"
#include "rnn_backward.inc.h"
#include "real_f64.h"
#include "rnn_backward.inc.h"

static wk_status multiply(const wk_gemm_args *g)
{
    return WK_ISA(wk_gemm)(g) ? WK_OK : wk_fail(WK_ERR_MEMORY, "out of memory for packing the operands");
}

/* ---- the steps ---- */

static int64_t time_of(const gradient *w) { return w->dir ? w->r->s.t - 1 - w->step : w->step; }

static void rows_task(void *ctx, int64_t task)
{
    const gradient *w = ctx;
    int64_t begin = task * w->rows, end = begin + w->rows < w->r->s.b ? begin + w->rows : w->r->s.b;
    for (int64_t row = begin; row < end; row++) {
        if (w->r->compute == WK_COMPUTE_F64)
            backward_row_f64(w, time_of(w), row);
        else
            backward_row_f32(w, time_of(w), row);
    }
}

static int64_t panel_columns(const gradient *w, int64_t block)
{
    int64_t rest = w->r->s.hidden - block * w->width;
    return rest < w->width ? rest : w->width;
}

static void pack_task(void *ctx, int64_t block)
{
    const gradient *w = ctx;
    const wk_rnn_run *r = w->r;
    int64_t hidden = r->s.hidden, all = r->s.gates * hidden;
    wk_mat b = {wk_rnn_at(r, wk_ptr(w->weight), block * w->width), r->dtype, hidden, 1};
    WK_ISA(wk_gemm_panel_pack)
    (all, panel_columns(w, block), b, wk_rnn_at(r, w->panels, block * all * w->width));
}

/* dh += d_state of this step . weight_hh, some columns of it. */
static void product_task(void *ctx, int64_t block)
{
    const gradient *w = ctx;
    const wk_rnn_run *r = w->r;
    int64_t hidden = r->s.hidden, all = r->s.gates * hidden;
    wk_mat a = {wk_rnn_at(r, w->d_state, time_of(w) * r->s.b * all), r->dtype, all, 1};
    wk_mat c = {wk_rnn_at(r, w->dh, block * w->width), r->dtype, hidden, 1};
    WK_ISA(wk_gemm_panel_run)
    (r->s.b, panel_columns(w, block), all, a, wk_rnn_at(r, w->panels, block * all * w->width), c, true);
}

static wk_status run_steps(gradient *w)
{
    const wk_rnn_run *r = w->r;
    const wk_rnn_sizes *s = &r->s;
    WK_TRY(WK_ISA(wk_rnn_values)(r, w->layer, w->dir, WK_RNN_W_HH, &w->weight));
    w->width = WK_ISA(wk_gemm_panel_width)(r->dtype);
    w->blocks = (s->hidden + w->width - 1) / w->width;
    wk_tensor *panels =
        WK_ISA(wk_rnn_new)(r, 3, (int64_t[]){w->blocks, s->gates * s->hidden, w->width}, false);
    if (!panels)
        return wk_error_status();
    w->panels = wk_ptr(panels);
    wk_parallel_for(w->blocks, pack_task, w);
    w->rows = TASK_VALUES / s->hidden + 1;
    for (w->step = s->t - 1; w->step >= 0; w->step--) {
        wk_parallel_for((s->b + w->rows - 1) / w->rows, rows_task, w);
        wk_parallel_for(s->b ? w->blocks : 0, product_task, w);
    }
    return WK_OK;
}

/* ---- gradients of the weights ---- */

/* Where to compute what goes to out: out itself where it has the compute type. */
static wk_tensor *values_for(const wk_rnn_run *r, wk_tensor *out)
{
    return out->dtype == r->dtype ? out : WK_ISA(wk_rnn_new)(r, out->rank, out->shape, false);
}

static void store_values(const wk_rnn_run *r, const void *values, int64_t n, wk_tensor *out, int64_t at)
{
    char *to = (char *)wk_ptr(out) + at * (int64_t)wk_bytes(out->dtype);
    if (to != values)
        WK_ISA(wk_block_store)(out->dtype, r->compute, values, to, n, false);
}

/* The gates' gradients where each sequence begins, [b, gates * hidden]: what met h0. */
static wk_tensor *first_gates(const gradient *w)
{
    const wk_rnn_run *r = w->r;
    const wk_rnn_sizes *s = &r->s;
    int64_t all = s->gates * s->hidden;
    wk_tensor *first = WK_ISA(wk_rnn_new)(r, 2, (int64_t[]){s->b, all}, true);
    for (int64_t row = 0; first && row < s->b; row++) {
        int64_t t = !w->dir ? 0 : (r->lengths ? r->lengths[row] : s->t) - 1;
        if (wk_rnn_live(r, t, row))
            memcpy(wk_rnn_at(r, wk_ptr(first), row * all), wk_rnn_at(r, w->d_state, (t * s->b + row) * all),
                   (size_t)(all * r->bytes));
    }
    return first;
}

/* dweight_hh = sum over the steps of d_state^T . (the state before). */
static wk_status weight_hh(const gradient *w, wk_tensor *out)
{
    const wk_rnn_run *r = w->r;
    const wk_rnn_sizes *s = &r->s;
    int64_t all = s->gates * s->hidden, row = s->dirs * s->hidden, b = s->b;
    wk_tensor *values = values_for(r, out);
    if (!values)
        return wk_error_status();
    wk_gemm_args g = {.m = all,
                      .n = s->hidden,
                      .k = s->t > 1 ? (s->t - 1) * b : 0,
                      .a = {wk_rnn_at(r, w->d_state, w->dir || s->t < 2 ? 0 : b * all), r->dtype, 1, all},
                      .b = {wk_rnn_at(r, w->out, w->dir && s->t > 1 ? b * row : 0), r->dtype, row, 1},
                      .c = {wk_ptr(values), r->dtype, s->hidden, 1}};
    WK_TRY(multiply(&g));
    if (r->c->in[WK_RNN_H0]) {
        wk_tensor *first = first_gates(w);
        if (!first)
            return wk_error_status();
        g.k = b;
        g.a.data = wk_ptr(first);
        g.b = (wk_mat){(void *)w->h0, r->dtype, s->hidden, 1};
        g.accumulate = true;
        WK_TRY(multiply(&g));
    }
    store_values(r, wk_ptr(values), wk_count(out), out, 0);
    return WK_OK;
}

/* dweight_ih = dgates^T . in, in [t * b, n]. */
static wk_status weight_ih(const gradient *w, const wk_tensor *in, wk_tensor *out)
{
    const wk_rnn_run *r = w->r;
    int64_t all = r->s.gates * r->s.hidden, n = out->shape[1];
    wk_tensor *values = values_for(r, out);
    if (!values)
        return wk_error_status();
    wk_gemm_args g = {.m = all,
                      .n = n,
                      .k = r->s.t * r->s.b,
                      .a = {w->dgates, r->dtype, 1, all},
                      .b = {wk_ptr(in), r->dtype, n, 1},
                      .c = {wk_ptr(values), r->dtype, n, 1}};
    WK_TRY(multiply(&g));
    store_values(r, wk_ptr(values), wk_count(out), out, 0);
    return WK_OK;
}

static wk_status bias(const gradient *w, const char *dgates, wk_tensor *out)
{
    const wk_rnn_run *r = w->r;
    int64_t shape[2] = {r->s.t * r->s.b, r->s.gates * r->s.hidden};
    wk_tensor *rows = wk_from_pointer(r->c->device, r->dtype, 2, shape, NULL, (void *)dgates, NULL, NULL);
    return rows ? WK_ISA(wk_reduce)(WK_R_SUM, rows, 1, NULL, out, NULL) : wk_error_status();
}

static wk_status weight_gradients(const gradient *w, const wk_tensor *in)
{
    const wk_rnn_sizes *s = &w->r->s;
    wk_tensor **out = w->r->c->tail_out;
    if (!out)
        return WK_OK;
    WK_TRY(weight_ih(w, in, out[wk_rnn_weight(s, w->layer, w->dir, WK_RNN_W_IH)]));
    WK_TRY(weight_hh(w, out[wk_rnn_weight(s, w->layer, w->dir, WK_RNN_W_HH)]));
    if (wk_rnn_weight(s, w->layer, w->dir, WK_RNN_B_IH) < 0)
        return WK_OK;
    WK_TRY(bias(w, w->dgates, out[wk_rnn_weight(s, w->layer, w->dir, WK_RNN_B_IH)]));
    return bias(w, w->d_state, out[wk_rnn_weight(s, w->layer, w->dir, WK_RNN_B_HH)]);
}

/* ---- one layer ---- */

/* Part `index` of a tensor of states as values, or zeros; NULL with an error. own: a copy that may be written. */
static char *state_values(const wk_rnn_run *r, int slot, int64_t index, bool own)
{
    int64_t n = r->s.b * r->s.hidden;
    const wk_tensor *given = r->c->in[slot] ? WK_ISA(wk_compute_copy)(r->c->in[slot]) : NULL;
    if (r->c->in[slot] && !given)
        return NULL;
    char *at = given ? wk_rnn_at(r, wk_ptr(given), index * n) : NULL;
    if (given && !own)
        return at;
    wk_tensor *copy = WK_ISA(wk_rnn_new)(r, 2, (int64_t[]){r->s.b, r->s.hidden}, true);
    if (copy && at)
        memcpy(wk_ptr(copy), at, (size_t)(n * r->bytes));
    return copy ? wk_ptr(copy) : NULL;
}

static wk_status prepare(gradient *w, const char *reserve, const wk_tensor *dout)
{
    const wk_rnn_run *r = w->r;
    const wk_rnn_sizes *s = &r->s;
    int64_t index = w->layer * s->dirs + w->dir, shape[2] = {s->t * s->b, s->gates * s->hidden};
    w->gates = wk_rnn_at(r, reserve, wk_rnn_gates_at(s, w->layer, w->dir));
    w->extra = wk_rnn_at(r, reserve, wk_rnn_extra_at(s, w->layer, w->dir));
    w->out = wk_rnn_at(r, reserve, wk_rnn_out_at(s, w->layer) + w->dir * s->hidden);
    w->dout = wk_rnn_at(r, wk_ptr(dout), w->dir * s->hidden);
    wk_tensor *dgates = WK_ISA(wk_rnn_new)(r, 2, shape, false);
    wk_tensor *d_state = dgates && r->mode == WK_GRU ? WK_ISA(wk_rnn_new)(r, 2, shape, false) : dgates;
    if (!d_state || !(w->h0 = state_values(r, WK_RNN_H0, index, false)) ||
        !(w->c0 = state_values(r, WK_RNN_C0, index, false)) ||
        !(w->dh = state_values(r, WK_RNN_DHN, index, true)) ||
        !(w->dc = state_values(r, WK_RNN_DCN, index, true)))
        return wk_error_status();
    w->dgates = wk_ptr(dgates);
    w->d_state = wk_ptr(d_state);
    return WK_OK;
}

/* One direction: weights, first states, and its part of din (NULL: nobody needs it), [t, b, n] values. */
static wk_status run_direction(gradient *w, const char *reserve, const wk_tensor *in, const wk_tensor *dout,
                               wk_tensor *din)
{
    const wk_rnn_run *r = w->r;
    const wk_rnn_sizes *s = &r->s;
    int64_t n = s->b * s->hidden, index = w->layer * s->dirs + w->dir, all = s->gates * s->hidden;
    WK_TRY(prepare(w, reserve, dout));
    WK_TRY(run_steps(w));
    for (int i = 1; i <= 2; i++) {
        if (r->c->out[i])
            store_values(r, i == 1 ? w->dh : w->dc, n, r->c->out[i], index * n);
    }
    WK_TRY(weight_gradients(w, in));
    if (!din)
        return WK_OK;
    const wk_tensor *weight;
    WK_TRY(WK_ISA(wk_rnn_values)(r, w->layer, w->dir, WK_RNN_W_IH, &weight));
    int64_t columns = din->shape[2];
    wk_gemm_args g = {.m = s->t * s->b,
                      .n = columns,
                      .k = all,
                      .a = {w->dgates, r->dtype, all, 1},
                      .b = {wk_ptr(weight), r->dtype, columns, 1},
                      .c = {wk_ptr(din), r->dtype, columns, 1},
                      .accumulate = w->dir > 0};
    return multiply(&g);
}

static wk_status run_layer(const wk_rnn_run *r, int64_t layer, const char *reserve, const wk_tensor *in,
                           const wk_tensor *dout, wk_tensor *din)
{
    if (!wk_scope_open())
        return wk_fail(WK_ERR_MEMORY, "out of memory");
    wk_status status = WK_OK;
    for (int64_t dir = 0; dir < r->s.dirs && status == WK_OK; dir++) {
        gradient w = {.r = r, .layer = layer, .dir = dir};
        status = run_direction(&w, reserve, in, dout, din);
    }
    wk_scope_end();
    return status;
}

/* ---- all of them ---- */

/* x as values, 0 from each length on: what is there must not count, not even a NaN times 0. */
static const wk_tensor *input_values(const wk_rnn_run *r)
{
    const wk_tensor *x = WK_ISA(wk_compute_copy)(r->c->in[WK_RNN_X]);
    if (!x || !r->lengths)
        return x;
    wk_tensor *copy = wk_copy(x);
    for (int64_t i = 0; copy && i < r->s.t * r->s.b; i++) {
        if (!wk_rnn_live(r, i / r->s.b, i % r->s.b))
            memset(wk_rnn_at(r, wk_ptr(copy), i * r->s.in), 0, (size_t)(r->s.in * r->bytes));
    }
    return copy;
}

/* The reserve's values; made again where it was not given. */
static wk_status reserve_values(const wk_rnn_run *r, const char **values)
{
    const wk_tensor *given = r->c->in[WK_RNN_RESERVE];
    const wk_tensor *packed = given ? wk_tensor_packed(given) : NULL;
    if (packed && (uintptr_t)wk_ptr(packed) % (uintptr_t)r->bytes)
        packed = wk_copy(packed); /* bytes that lie anywhere */
    if (given) {
        *values = packed ? wk_ptr(packed) : NULL;
        return packed ? WK_OK : wk_error_status();
    }
    int64_t count = wk_rnn_reserve_count(&r->s);
    wk_tensor *made = WK_ISA(wk_rnn_new)(r, 1, &count, false);
    if (!made)
        return wk_error_status();
    *values = wk_ptr(made);
    return WK_ISA(wk_rnn_forward)(r, wk_ptr(made), NULL, NULL, NULL);
}

/* What layer l saw as its input. */
static wk_status layer_input(const wk_rnn_run *r, int64_t l, const char *reserve, const wk_tensor **in)
{
    const wk_rnn_sizes *s = &r->s;
    int64_t shape[3] = {s->t, s->b, s->dirs * s->hidden};
    if (l == 0) {
        *in = input_values(r);
        return *in ? WK_OK : wk_error_status();
    }
    const wk_tensor *out = wk_from_pointer(r->c->device, r->dtype, 3, shape, NULL,
                                           wk_rnn_at(r, reserve, wk_rnn_out_at(s, l - 1)), NULL, NULL);
    return out ? WK_ISA(wk_rnn_dropped)(r, l - 1, out, in) : wk_error_status();
}

wk_status WK_ISA(wk_rnn_run_backward)(wk_call *c)
{
    const wk_tensor *dout = WK_ISA(wk_compute_copy)(c->in[WK_RNN_DY]), *in;
    wk_tensor *dx = c->out[0], *din;
    const char *reserve = NULL;
    wk_rnn_run r;
    if (!dout)
        return wk_error_status();
    WK_TRY(WK_ISA(wk_rnn_begin)(c, &r));
    WK_TRY(reserve_values(&r, &reserve));
    for (int64_t l = r.s.layers - 1; l >= 0; l--) {
        WK_TRY(layer_input(&r, l, reserve, &in));
        din = l > 0 ? WK_ISA(wk_rnn_new)(&r, 3, in->shape, false) : dx ? values_for(&r, dx) : NULL;
        if (!din && (l > 0 || dx))
            return wk_error_status();
        WK_TRY(run_layer(&r, l, reserve, in, dout, din));
        if (l > 0)
            WK_TRY(WK_ISA(wk_rnn_dropped)(&r, l - 1, din, &dout));
        else if (dx)
            store_values(&r, wk_ptr(din), wk_count(dx), dx, 0);
    }
    return WK_OK;
}
