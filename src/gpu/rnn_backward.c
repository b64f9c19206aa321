/* rnn_backward.c: the gradient of recurrent layers on the GPU.
 *
 * From the last layer to the first, from the last step to the first: one kernel makes the gradients of the gates from those
 * of the state, and a product with weight_hh brings them to the state before. Gradients of weights and inputs are then
 * one product over all steps each. */
#include "core/scope.h"
#include "matmul.h"
#include "rnn.h"
#include "wick/ops.h"

static const wk_kernel grad_kernel = {"rnn", "rnn_grad", "rnn_grad_args", 256, .types = 1};
static const wk_kernel mask_kernel = {"rnn", "rnn_mask", "rnn_mask_args", 256, .types = 1};

/* One layer, all directions. */
typedef struct {
    const wk_rnn_run *r;
    int64_t layer;
    rnn_grad_args a;
    wk_tensor *dh, *dc, *sums;            /* [dirs, b, hidden] */
    wk_tensor *dgates, *d_state, *before; /* [dirs, t b, ..]; dgates and d_state are one but for a GRU */
    const wk_tensor *weights;             /* weight_hh: [dirs, gates hidden, hidden] */
} gradient;

/* ---- the steps ---- */

static wk_status prepare(gradient *w, const wk_tensor *reserve, const wk_tensor *dout)
{
    const wk_rnn_run *r = w->r;
    const wk_rnn_sizes *s = &r->s;
    int64_t steps = s->t * s->b, none[1] = {0};
    int64_t gates[3] = {s->dirs, steps, s->gates * s->hidden}, hidden[3] = {s->dirs, steps, s->hidden};
    wk_tensor *h0 = wk_rnn_first_state(r, WK_RNN_H0, w->layer),
              *c0 = wk_rnn_first_state(r, WK_RNN_C0, w->layer);
    w->dh = wk_rnn_first_state(r, WK_RNN_DHN, w->layer);
    w->dc = wk_rnn_first_state(r, WK_RNN_DCN, w->layer);
    w->sums = wk_rnn_new(r, 3, (int64_t[]){s->dirs, s->b, s->hidden}, true);
    w->dgates = wk_rnn_new(r, 3, gates, false);
    w->d_state = r->z.mode == WK_CELL_GRU ? wk_rnn_new(r, 3, gates, false) : w->dgates;
    w->before = wk_rnn_new(r, 3, hidden, false);
    w->weights = wk_rnn_state_weights(r, w->layer);
    if (!h0 || !c0 || !w->dh || !w->dc || !w->sums || !w->d_state || !w->before || !w->weights)
        return wk_error_status();
    wk_tensor g = wk_rnn_part(r, reserve, wk_rnn_gates_at(s, w->layer), 1, none);
    wk_tensor e = wk_rnn_part(r, reserve, wk_rnn_extra_at(s, w->layer), 1, none);
    wk_tensor o = wk_rnn_part(r, reserve, wk_rnn_out_at(s, w->layer), 1, none);
    w->a = (rnn_grad_args){.z = r->z,
                           .gates = wk_ptr(&g),
                           .extra = wk_ptr(&e),
                           .out = wk_ptr(&o),
                           .dir_stride = r->dir_stride,
                           .dout = wk_ptr(dout),
                           .h0 = wk_ptr(h0),
                           .c0 = wk_ptr(c0),
                           .sums = wk_ptr(w->sums),
                           .dh = wk_ptr(w->dh),
                           .dc = wk_ptr(w->dc),
                           .dgates = wk_ptr(w->dgates),
                           .d_state = wk_ptr(w->d_state),
                           .before = wk_ptr(w->before)};
    return WK_OK;
}

/* d_state of one step, [dirs, b, gates hidden]: the second direction's is that of the mirrored time. */
static wk_tensor state_gates(const gradient *w, int64_t step)
{
    const wk_rnn_sizes *s = &w->r->s;
    int64_t all = s->gates * s->hidden, row = s->b * all;
    wk_tensor v = wk_rnn_part(w->r, w->d_state, step * row, 3, (int64_t[]){s->dirs, s->b, all});
    v.strides[0] = s->t * row + (s->t - 1 - 2 * step) * row;
    return v;
}

static wk_status run_steps(gradient *w)
{
    const wk_rnn_run *r = w->r;
    for (int64_t step = r->s.t - 1; step >= 0; step--) {
        w->a.step = (i32)step;
        WK_TRY(
            WK_LAUNCH(r->c, &grad_kernel, WK_INSTANCE(.t = {(unsigned char)r->dtype}), wk_rnn_grid(r), w->a));
        wk_tensor gates = state_gates(w, step);
        WK_TRY(wk_matmul_into(&gates, w->weights, w->sums));
    }
    return WK_OK;
}

/* ---- gradients of the weights ---- */

/* One direction's rows [t b, n] of [dirs, t b, n]. */
static wk_tensor direction(const gradient *w, const wk_tensor *t, int64_t dir)
{
    return wk_rnn_part(w->r, t, dir * t->strides[0], 2, t->shape + 1);
}

/* gates^T . rows, to out. */
static wk_status weight(const gradient *w, const wk_tensor *gates, const wk_tensor *rows, wk_tensor *out)
{
    const wk_rnn_run *r = w->r;
    wk_tensor turned = wk_flipped(gates);
    wk_tensor *values = out->dtype == r->dtype ? out : wk_rnn_new(r, 2, out->shape, false);
    if (!values)
        return wk_error_status();
    WK_TRY(wk_matmul_into(&turned, rows, values));
    return wk_rnn_store(values, out);
}

static wk_status bias(const wk_tensor *gates, wk_tensor *out)
{
    wk_tensor *sums = wk_sum(gates, 1, &(int64_t){0}, 0);
    return sums ? wk_rnn_store(sums, out) : wk_error_status();
}

static wk_status weight_gradients(const gradient *w, int64_t dir, const wk_tensor *in)
{
    const wk_rnn_sizes *s = &w->r->s;
    wk_tensor **out = w->r->c->tail_out;
    if (!out)
        return WK_OK;
    wk_tensor dgates = direction(w, w->dgates, dir), d_state = direction(w, w->d_state, dir);
    wk_tensor before = direction(w, w->before, dir);
    wk_tensor x = wk_rnn_part(w->r, in, 0, 2, (int64_t[]){s->t * s->b, in->shape[2]});
    WK_TRY(weight(w, &dgates, &x, out[wk_rnn_weight(s, w->layer, dir, WK_RNN_W_IH)]));
    WK_TRY(weight(w, &d_state, &before, out[wk_rnn_weight(s, w->layer, dir, WK_RNN_W_HH)]));
    if (wk_rnn_weight(s, w->layer, dir, WK_RNN_B_IH) < 0)
        return WK_OK;
    WK_TRY(bias(&dgates, out[wk_rnn_weight(s, w->layer, dir, WK_RNN_B_IH)]));
    return bias(&d_state, out[wk_rnn_weight(s, w->layer, dir, WK_RNN_B_HH)]);
}

/* ---- one layer ---- */

/* a + b, to out. */
static wk_status add_into(const wk_tensor *a, const wk_tensor *b, wk_tensor *out)
{
    wk_call c = {.op = wk_op_find("add"), .in = {a, b}, .out = {out}};
    return wk_call_run(&c);
}

/* The layer's input's gradient from one direction; the second one's is added. */
static wk_status input_gradient(const gradient *w, int64_t dir, wk_tensor *din)
{
    const wk_rnn_run *r = w->r;
    const wk_tensor *weight_ih;
    WK_TRY(wk_rnn_weight_values(r, w->layer, dir, WK_RNN_W_IH, &weight_ih));
    int64_t shape[2] = {r->s.t * r->s.b, din->shape[2]};
    wk_tensor dgates = direction(w, w->dgates, dir), rows = wk_rnn_part(r, din, 0, 2, shape);
    if (dir == 0)
        return wk_matmul_into(&dgates, weight_ih, &rows);
    wk_tensor *more = wk_matmul(&dgates, weight_ih);
    return more ? add_into(&rows, more, &rows) : wk_error_status();
}

/* Weights, first states and din (NULL: nobody needs it), [t, b, n] values. */
static wk_status run_layer(gradient *w, const wk_tensor *reserve, const wk_tensor *in, const wk_tensor *dout,
                           wk_tensor *din)
{
    const wk_rnn_run *r = w->r;
    WK_TRY(prepare(w, reserve, dout));
    WK_TRY(run_steps(w));
    if (r->c->out[1]) {
        WK_TRY(add_into(w->dh, w->sums, w->dh));
        WK_TRY(wk_rnn_store_state(r, w->dh, w->layer, r->c->out[1]));
    }
    WK_TRY(wk_rnn_store_state(r, w->dc, w->layer, r->c->out[2]));
    for (int64_t dir = 0; dir < r->s.dirs; dir++) {
        WK_TRY(weight_gradients(w, dir, in));
        if (din)
            WK_TRY(input_gradient(w, dir, din));
    }
    return WK_OK;
}

static wk_status run_layer_in_scope(gradient *w, const wk_tensor *reserve, const wk_tensor *in,
                                    const wk_tensor *dout, wk_tensor *din)
{
    if (!wk_scope_open())
        return wk_fail(WK_ERR_MEMORY, "out of memory");
    wk_status status = run_layer(w, reserve, in, dout, din);
    wk_scope_end();
    return status;
}

/* ---- all of them ---- */

/* x as values, 0 from each length on: what is there must not count, not even a NaN times 0. */
static const wk_tensor *input_values(const wk_rnn_run *r)
{
    const wk_tensor *x = wk_rnn_values(r, r->c->in[WK_RNN_X]);
    wk_tensor *copy = x && r->z.lengths ? wk_rnn_new(r, 3, x->shape, false) : NULL;
    if (!x || !r->z.lengths || !copy)
        return r->z.lengths ? copy : x;
    rnn_mask_args a = {.z = r->z, .x = wk_ptr(x), .y = wk_ptr(copy), .n = r->s.in};
    wk_grid grid = {.x = wk_blocks(wk_count(x), 256, WK_GRID_MAX)};
    wk_status status = WK_LAUNCH(r->c, &mask_kernel, WK_INSTANCE(.t = {(unsigned char)r->dtype}), grid, a);
    return status == WK_OK ? copy : NULL;
}

/* The reserve's values; made again where it was not given. */
static const wk_tensor *reserve_values(const wk_rnn_run *r)
{
    const wk_tensor *given = r->c->in[WK_RNN_RESERVE];
    const wk_tensor *packed = given ? wk_tensor_packed(given) : NULL;
    if (packed && packed->offset % (int64_t)wk_bytes(r->dtype))
        packed = wk_copy(packed); /* bytes that lie anywhere */
    if (given)
        return packed;
    int64_t count = wk_rnn_reserve_count(&r->s);
    wk_tensor *made = wk_rnn_new(r, 1, &count, false);
    return made && wk_rnn_forward(r, made, NULL, NULL, NULL) == WK_OK ? made : NULL;
}

/* What layer l saw as its input. */
static const wk_tensor *layer_input(const wk_rnn_run *r, int64_t l, const wk_tensor *reserve)
{
    const wk_rnn_sizes *s = &r->s;
    int64_t shape[3] = {s->t, s->b, s->dirs * s->hidden};
    if (l == 0)
        return input_values(r);
    wk_tensor part = wk_rnn_part(r, reserve, wk_rnn_out_at(s, l - 1), 3, shape);
    const wk_tensor *out = wk_tensor_view(&part);
    return out ? wk_rnn_dropped(r, l - 1, out) : NULL;
}

wk_status wk_rnn_run_backward(wk_call *c)
{
    wk_tensor *dx = c->out[0], *din = NULL;
    wk_rnn_run r;
    WK_TRY(wk_rnn_begin(c, &r));
    const wk_tensor *dout = wk_rnn_values(&r, c->in[WK_RNN_DY]), *reserve = reserve_values(&r);
    if (!dout || !reserve)
        return wk_error_status();
    for (int64_t l = r.s.layers - 1; l >= 0; l--) {
        const wk_tensor *in = layer_input(&r, l, reserve);
        gradient w = {.r = &r, .layer = l};
        if (!in)
            return wk_error_status();
        din = l == 0 && (!dx || dx->dtype == r.dtype) ? dx : wk_rnn_new(&r, 3, in->shape, false);
        if (!din && (l > 0 || dx))
            return wk_error_status();
        WK_TRY(run_layer_in_scope(&w, reserve, in, dout, din));
        if (l > 0 && !(dout = wk_rnn_dropped(&r, l - 1, din)))
            return wk_error_status();
    }
    return dx ? wk_rnn_store(din, dx) : WK_OK;
}
