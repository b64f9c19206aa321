/* rnn.c: the forward of recurrent layers on the GPU.
 *
 * The input's part of the gates is one product for all steps. Then each step is a product of the state with weight_hh, of
 * both directions at once, and one kernel for all cells. */
#include "rnn.h"
#include "core/scope.h"
#include "families.h"
#include "matmul.h"
#include "ops/unary.h"
#include "wick/ops.h"

static const wk_kernel cell_kernel = {"rnn", "rnn_cell", "rnn_cell_args", 256, .types = 2};
static const wk_kernel check_kernel = {"rnn", "rnn_check", "rnn_check_args", 256, .types = 1};

/* ---- what the backward uses too ---- */

static wk_status check_lengths(const wk_rnn_run *r)
{
    rnn_check_args a = {.z = r->z, .report = wk_report_of(r->c, WK_RNN_LENGTHS)};
    wk_grid grid = {.x = wk_blocks(r->s.b, 256, WK_GRID_MAX)};
    return r->z.lengths ? WK_LAUNCH(r->c, &check_kernel, WK_INSTANCE(.t = {WK_I32}), grid, a) : WK_OK;
}

wk_status wk_rnn_begin(const wk_call *c, wk_rnn_run *r)
{
    const wk_rnn_options *p = c->params;
    const wk_tensor *lengths = c->in[WK_RNN_LENGTHS];
    wk_rnn_sizes s = wk_rnn_sizes_of(c);
    if (s.t > INT32_MAX || s.b > INT32_MAX || s.dirs * s.b > INT32_MAX / s.hidden)
        return wk_call_fail(c, WK_ERR_UNSUPPORTED, c->device->name, "sizes beyond 2^31");
    *r = (wk_rnn_run){.c = c,
                      .s = s,
                      .dtype = wk_stat_dtype(c->dtype),
                      /* a reserve comes from training */
                      .drops = p->dropout > 0 && (p->training || c->in[WK_RNN_RESERVE]),
                      .dir_stride = s.t * s.b * s.hidden * (s.gates + s.extra),
                      .z = {.t = (i32)s.t,
                            .b = (i32)s.b,
                            .hidden = (i32)s.hidden,
                            .gates = (i32)s.gates,
                            .dirs = (i32)s.dirs,
                            .mode = (i32)p->mode,
                            .lengths = lengths ? wk_ptr(lengths) : NULL,
                            .lengths_stride = lengths ? lengths->strides[0] : 0}};
    return check_lengths(r);
}

wk_grid wk_rnn_grid(const wk_rnn_run *r)
{
    return (wk_grid){.x = wk_blocks(r->s.dirs * r->s.b * r->s.hidden, 256, WK_GRID_MAX)};
}

const wk_tensor *wk_rnn_values(const wk_rnn_run *r, const wk_tensor *t)
{
    return t->dtype == r->dtype ? wk_tensor_packed(t) : wk_cast(t, r->dtype);
}

wk_status wk_rnn_weight_values(const wk_rnn_run *r, int64_t layer, int64_t dir, int which,
                               const wk_tensor **w)
{
    int place = wk_rnn_weight(&r->s, layer, dir, which);
    *w = place < 0 ? NULL : wk_rnn_values(r, r->c->tail[place]);
    return place < 0 || *w ? WK_OK : wk_error_status();
}

wk_tensor *wk_rnn_new(const wk_rnn_run *r, int rank, const int64_t *shape, bool zeros)
{
    wk_tensor *t = wk_tensor_new(r->c->device, r->dtype, rank, shape);
    if (t && zeros && wk_gpu_zero(r->c, wk_ptr(t), (size_t)wk_count(t) * wk_bytes(r->dtype)) != WK_OK)
        return NULL;
    return t;
}

wk_tensor wk_rnn_part(const wk_rnn_run *r, const wk_tensor *t, int64_t first, int rank, const int64_t *shape)
{
    wk_tensor v = wk_tensor_local(t);
    v.offset = t->offset * (int64_t)wk_bytes(t->dtype) / (int64_t)wk_bytes(r->dtype) + first;
    v.dtype = r->dtype;
    v.rank = rank;
    memcpy(v.shape, shape, (size_t)rank * sizeof *shape);
    wk_shape_strides(rank, v.shape, v.strides);
    return v;
}

wk_status wk_rnn_store(const wk_tensor *values, wk_tensor *out)
{
    wk_cast_params p = {.dtype = out->dtype};
    if (wk_ptr(values) == wk_ptr(out))
        return WK_OK;
    wk_call c = {.op = wk_op_find("cast"), .params = &p, .in = {values}, .out = {out}};
    return wk_call_run(&c);
}

/* The layer's part of [layers * dirs, b, hidden]. */
static wk_tensor layer_part(const wk_rnn_run *r, const wk_tensor *all, int64_t layer)
{
    wk_tensor v = wk_tensor_local(all);
    v.shape[0] = r->s.dirs;
    v.offset += layer * r->s.dirs * all->strides[0];
    return v;
}

wk_status wk_rnn_store_state(const wk_rnn_run *r, const wk_tensor *values, int64_t layer, wk_tensor *all)
{
    if (!all)
        return WK_OK;
    wk_tensor to = layer_part(r, all, layer);
    return wk_rnn_store(values, &to);
}

wk_tensor *wk_rnn_first_state(const wk_rnn_run *r, int slot, int64_t layer)
{
    const wk_tensor *given = r->c->in[slot];
    wk_tensor *state = wk_rnn_new(r, 3, (int64_t[]){r->s.dirs, r->s.b, r->s.hidden}, !given);
    if (!state || !given)
        return state;
    wk_tensor from = layer_part(r, given, layer);
    return wk_rnn_store(&from, state) == WK_OK ? state : NULL;
}

const wk_tensor *wk_rnn_state_weights(const wk_rnn_run *r, int64_t layer)
{
    int64_t rows = r->s.gates * r->s.hidden, shape[3] = {r->s.dirs, rows, r->s.hidden};
    if (r->s.dirs == 1) {
        const wk_tensor *w = wk_rnn_values(r, r->c->tail[wk_rnn_weight(&r->s, layer, 0, WK_RNN_W_HH)]);
        return w ? wk_reshape(w, 3, shape) : NULL;
    }
    wk_tensor *both = wk_rnn_new(r, 3, shape, false);
    for (int64_t dir = 0; both && dir < r->s.dirs; dir++) {
        wk_tensor to = wk_rnn_part(r, both, dir * rows * r->s.hidden, 2, shape + 1);
        if (wk_rnn_store(r->c->tail[wk_rnn_weight(&r->s, layer, dir, WK_RNN_W_HH)], &to) != WK_OK)
            return NULL;
    }
    return both;
}

const wk_tensor *wk_rnn_dropped(const wk_rnn_run *r, int64_t layer, const wk_tensor *out)
{
    const wk_rnn_options *p = r->c->params;
    int64_t blocks = (wk_count(out) + 3) / 4;
    return r->drops ? wk_dropout(out, p->dropout, p->seed,
                                 (int64_t)((uint64_t)p->offset + (uint64_t)(layer * blocks)), NULL)
                    : out;
}

/* ---- one layer ---- */

/* One layer on its way. */
typedef struct {
    const wk_rnn_run *r;
    rnn_cell_args a;
    wk_tensor *state[2], *c, *sums;
    const wk_tensor *weights; /* weight_hh of all directions, turned: [dirs, hidden, gates hidden] */
} layer;

/* The input's part of the gates, for all steps and directions. */
static wk_status input_gates(layer *y, int64_t l, const wk_tensor *in, const wk_tensor *gates, int64_t first)
{
    const wk_rnn_run *r = y->r;
    const wk_rnn_sizes *s = &r->s;
    int64_t steps = s->t * s->b, rows = s->gates * s->hidden;
    wk_tensor x = wk_rnn_part(r, in, 0, 2, (int64_t[]){steps, in->shape[2]});
    for (int64_t dir = 0; dir < s->dirs; dir++) {
        const wk_tensor *w, *ih, *hh;
        WK_TRY(wk_rnn_weight_values(r, l, dir, WK_RNN_W_IH, &w));
        WK_TRY(wk_rnn_weight_values(r, l, dir, WK_RNN_B_IH, &ih));
        WK_TRY(wk_rnn_weight_values(r, l, dir, WK_RNN_B_HH, &hh));
        y->a.bias_ih[dir] = ih ? wk_ptr(ih) : NULL;
        y->a.bias_hh[dir] = hh ? wk_ptr(hh) : NULL;
        wk_tensor turned = wk_flipped(w);
        wk_tensor to = wk_rnn_part(r, gates, first + dir * y->a.dir_stride, 2, (int64_t[]){steps, rows});
        WK_TRY(wk_matmul_into(&x, &turned, &to));
    }
    return WK_OK;
}

static wk_status prepare(layer *y, int64_t l, const wk_tensor *in, const wk_tensor *reserve)
{
    const wk_rnn_run *r = y->r;
    const wk_rnn_sizes *s = &r->s;
    int64_t all = s->t * s->b * s->gates * s->hidden, total = s->dirs * all;
    int64_t shape[3] = {s->dirs, s->b, s->hidden}, sums[3] = {s->dirs, s->b, s->gates * s->hidden};
    const wk_tensor *gates = reserve ? reserve : wk_rnn_new(r, 1, &total, false);
    int64_t first = reserve ? wk_rnn_gates_at(s, l) : 0;
    y->a.dir_stride = reserve ? r->dir_stride : all;
    const wk_tensor *weights = wk_rnn_state_weights(r, l);
    if (!gates || !weights || !(y->weights = wk_transpose(weights, 1, 2)) ||
        !(y->state[0] = wk_rnn_first_state(r, WK_RNN_H0, l)) ||
        !(y->c = wk_rnn_first_state(r, WK_RNN_C0, l)) || !(y->state[1] = wk_rnn_new(r, 3, shape, false)) ||
        !(y->sums = wk_rnn_new(r, 3, sums, false)))
        return wk_error_status();
    wk_tensor g = wk_rnn_part(r, gates, first, 1, (int64_t[]){0}), extra = g;
    y->a.gates = wk_ptr(&g);
    if (reserve) {
        extra = wk_rnn_part(r, gates, wk_rnn_extra_at(s, l), 1, (int64_t[]){0});
        y->a.extra = wk_ptr(&extra);
    }
    y->a.c = wk_ptr(y->c);
    y->a.sums = wk_ptr(y->sums);
    y->a.keep = reserve != NULL;
    return input_gates(y, l, in, gates, first);
}

static wk_status run_steps(layer *y)
{
    const wk_rnn_run *r = y->r;
    unsigned char t[] = {(unsigned char)r->dtype, (unsigned char)r->c->dtype};
    for (y->a.step = 0; y->a.step < r->s.t; y->a.step++) {
        wk_tensor *before = y->state[y->a.step & 1], *now = y->state[(y->a.step + 1) & 1];
        WK_TRY(wk_matmul_into(before, y->weights, y->sums));
        y->a.before = wk_ptr(before);
        y->a.now = wk_ptr(now);
        WK_TRY(WK_LAUNCH(r->c, &cell_kernel, WK_INSTANCE(.t = {t[0], t[1]}), wk_rnn_grid(r), y->a));
    }
    return WK_OK;
}

/* out: the layer's result as values; y: the same in the call's dtype; one of them may be NULL. */
static wk_status run_layer(const wk_rnn_run *r, int64_t l, const wk_tensor *in, const wk_tensor *reserve,
                           const wk_tensor *out, const wk_tensor *result, wk_tensor *hn, wk_tensor *cn)
{
    layer y = {.r = r,
               .a = {.z = r->z, .out = out ? wk_ptr(out) : NULL, .y = result ? wk_ptr(result) : NULL}};
    WK_TRY(prepare(&y, l, in, reserve));
    WK_TRY(run_steps(&y));
    WK_TRY(wk_rnn_store_state(r, y.state[r->s.t & 1], l, hn));
    return wk_rnn_store_state(r, y.c, l, cn);
}

/* ---- all of them ---- */

/* A layer's temporaries go with it. */
static wk_status run_layer_in_scope(const wk_rnn_run *r, int64_t l, const wk_tensor *in,
                                    const wk_tensor *reserve, const wk_tensor *out, const wk_tensor *result,
                                    wk_tensor *hn, wk_tensor *cn)
{
    if (!wk_scope_open())
        return wk_fail(WK_ERR_MEMORY, "out of memory");
    wk_status status = run_layer(r, l, in, reserve, out, result, hn, cn);
    wk_scope_end();
    return status;
}

wk_status wk_rnn_forward(const wk_rnn_run *r, const wk_tensor *reserve, wk_tensor *y, wk_tensor *hn,
                         wk_tensor *cn)
{
    const wk_rnn_sizes *s = &r->s;
    const wk_tensor *in = wk_rnn_values(r, r->c->in[WK_RNN_X]);
    int64_t shape[3] = {s->t, s->b, s->dirs * s->hidden};
    for (int64_t l = 0; in && l < s->layers; l++) {
        bool last = l == s->layers - 1;
        wk_tensor part, *out = NULL;
        if (reserve) {
            part = wk_rnn_part(r, reserve, wk_rnn_out_at(s, l), 3, shape);
            out = &part;
        } else if (!last && !(out = wk_rnn_new(r, 3, shape, false))) {
            return wk_error_status();
        }
        WK_TRY(run_layer_in_scope(r, l, in, reserve, out, last ? y : NULL, hn, cn));
        if (last)
            return WK_OK;
        in = reserve ? wk_tensor_view(out) : out;
        in = in ? wk_rnn_dropped(r, l, in) : NULL;
    }
    return wk_error_status();
}

static wk_status run_rnn(wk_call *c)
{
    wk_rnn_run r;
    WK_TRY(wk_rnn_begin(c, &r));
    return wk_rnn_forward(&r, c->out[3], c->out[0], c->out[1], c->out[2]);
}

const wk_impl wk_gpu_impls_rnn[] = {
    {"rnn", "kernel", run_rnn, NULL, NULL},
    {"rnn_backward", "kernel", wk_rnn_run_backward, NULL, NULL},
    {0},
};
