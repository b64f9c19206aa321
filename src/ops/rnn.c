/* rnn.c: front ends of the recurrent layers. */
#include <stdio.h>
#include "rnn.h"

enum { MAX_LAYERS = 1 << 16 };

wk_rnn_sizes wk_rnn_sizes_of(const wk_call *c)
{
    static const int64_t gates[] = {[WK_LSTM] = 4, [WK_GRU] = 3, [WK_RNN_RELU] = 1, [WK_RNN_TANH] = 1};
    const wk_rnn_options *p = c->params;
    const int64_t *x = c->in[WK_RNN_X]->shape;
    return (wk_rnn_sizes){.t = x[0],
                          .b = x[1],
                          .in = x[2],
                          .hidden = p->hidden,
                          .layers = p->layers,
                          .dirs = p->bidirectional ? 2 : 1,
                          .gates = gates[p->mode],
                          .extra = p->mode == WK_LSTM || p->mode == WK_GRU,
                          .per = p->bias ? 4 : 2};
}

int wk_rnn_weight(const wk_rnn_sizes *s, int64_t layer, int64_t dir, int which)
{
    return which < s->per ? (int)(layer * s->dirs + dir) * s->per + which : -1;
}

int64_t wk_rnn_reserve_count(const wk_rnn_sizes *s)
{
    return wk_shape_count(6, (int64_t[]){s->layers, s->dirs, s->t, s->b, s->hidden, s->gates + s->extra + 1});
}

static const char *tail_name(const void *params, int i, char *buf, size_t room)
{
    static const char *const kinds[] = {"weight_ih", "weight_hh", "bias_ih", "bias_hh"};
    const wk_rnn_options *p = params;
    int per = p->bias ? 4 : 2, dirs = p->bidirectional ? 2 : 1;
    int layer = i / per / dirs;
    int64_t layers = p->layers < 1 ? 1 : p->layers; /* a wrong number is for infer to tell */
    if (i < 0 || layer >= layers || layer >= MAX_LAYERS)
        return NULL;
    snprintf(buf, room, "%s_l%d%s", kinds[i % per], layer, i / per % dirs ? "_reverse" : "");
    return buf;
}

/* ---- checks and outputs ---- */

static wk_status check_params(const wk_call *c)
{
    const wk_rnn_options *p = c->params;
    WK_NEED(p->mode >= WK_LSTM && p->mode <= WK_RNN_TANH, c, WK_ERR_PARAM, "mode",
            "expected one of wk_rnn_mode, got %lld", (long long)p->mode);
    WK_NEED(p->hidden >= 1 && p->hidden <= INT64_MAX / 64, c, WK_ERR_PARAM, "hidden",
            "expected 1 or more, got %lld", (long long)p->hidden);
    WK_NEED(p->layers >= 1 && p->layers <= MAX_LAYERS, c, WK_ERR_PARAM, "layers",
            "expected 1 to %d, got %lld", MAX_LAYERS, (long long)p->layers);
    WK_NEED(p->dropout >= 0 && p->dropout <= 1, c, WK_ERR_PARAM, "dropout",
            "expected a number from 0 to 1, got %g", p->dropout);
    WK_NEED(p->offset >= 0, c, WK_ERR_PARAM, "offset", "expected 0 or more, got %lld", (long long)p->offset);
    return WK_OK;
}

static wk_status check_weights(const wk_call *c, const wk_rnn_sizes *s)
{
    int64_t n = s->layers * s->dirs * s->per, rows = s->gates * s->hidden;
    char buf[48];
    wk_shape_text want, got;
    if (c->n_tail < n) {
        const char *name = tail_name(c->params, c->n_tail, buf, sizeof buf);
        return wk_call_fail(c, WK_ERR_ARGUMENT, name ? name : "weights",
                            "expected %lld weights, got %d: this one is missing", (long long)n, c->n_tail);
    }
    WK_NEED(c->n_tail == n, c, WK_ERR_ARGUMENT, "weights", "expected %lld of them, got %d", (long long)n,
            c->n_tail);
    for (int i = 0; i < n; i++) {
        const wk_tensor *w = c->tail[i];
        int which = i % s->per, rank = which < WK_RNN_B_IH ? 2 : 1;
        int64_t in = i / s->per < s->dirs ? s->in : s->dirs * s->hidden;
        int64_t shape[2] = {rows, which == WK_RNN_W_IH ? in : s->hidden};
        WK_NEED(wk_shape_equal(w->rank, w->shape, rank, shape), c, WK_ERR_SHAPE,
                tail_name(c->params, i, buf, sizeof buf), "expected shape %s, got %s",
                wk_shape_str(&want, rank, shape), wk_shape_str(&got, w->rank, w->shape));
    }
    return WK_OK;
}

/* An input that only an LSTM has. */
static wk_status check_cell(const wk_call *c, int i)
{
    WK_NEED(!c->in[i] || WK_PARAMS(c, wk_rnn_options)->mode == WK_LSTM, c, WK_ERR_ARGUMENT, c->op->in[i].name,
            "expected none, as the mode is not lstm");
    return WK_OK;
}

static wk_status check_inputs(const wk_call *c, wk_rnn_sizes *s)
{
    WK_TRY(wk_call_rank(c, WK_RNN_X, 3, 3));
    WK_TRY(check_params(c));
    *s = wk_rnn_sizes_of(c);
    int64_t state[3] = {s->layers * s->dirs, s->b, s->hidden};
    WK_TRY(check_cell(c, WK_RNN_C0));
    for (int i = WK_RNN_H0; i <= WK_RNN_C0; i++) {
        if (c->in[i])
            WK_TRY(wk_call_shape(c, i, 3, state));
    }
    if (c->in[WK_RNN_LENGTHS])
        WK_TRY(wk_call_shape(c, WK_RNN_LENGTHS, 1, &s->b));
    WK_TRY(check_weights(c, s));
    /* So that no temporary's size overflows: none is larger than the reserve. */
    WK_NEED(wk_rnn_reserve_count(s) >= 0 && wk_rnn_reserve_count(s) <= INT64_MAX / 64, c, WK_ERR_PARAM,
            "hidden", "expected sizes whose product fits, got %lld", (long long)s->hidden);
    return WK_OK;
}

static wk_status infer_rnn(wk_call *c)
{
    const wk_rnn_options *p = c->params;
    wk_rnn_sizes s;
    WK_TRY(check_inputs(c, &s));
    int64_t state[3] = {s.layers * s.dirs, s.b, s.hidden};
    int64_t bytes = wk_rnn_reserve_count(&s) * (int64_t)wk_bytes(wk_stat_dtype(c->dtype));
    wk_call_out(c, 0, c->dtype, 3, (int64_t[]){s.t, s.b, s.dirs * s.hidden});
    wk_call_out(c, 1, c->dtype, 3, state);
    wk_call_out(c, 2, c->dtype, 3, state);
    wk_call_out(c, 3, WK_U8, 1, &bytes);
    if (p->mode != WK_LSTM)
        c->want &= ~(1u << 2);
    if (!p->training)
        c->want &= ~(1u << 3);
    return WK_OK;
}

static wk_status infer_rnn_backward(wk_call *c)
{
    wk_rnn_sizes s;
    WK_TRY(check_inputs(c, &s));
    int64_t y[3] = {s.t, s.b, s.dirs * s.hidden}, state[3] = {s.layers * s.dirs, s.b, s.hidden};
    int64_t bytes = wk_rnn_reserve_count(&s) * (int64_t)wk_bytes(wk_stat_dtype(c->dtype));
    WK_TRY(check_cell(c, WK_RNN_DCN));
    if (c->in[WK_RNN_Y])
        WK_TRY(wk_call_shape(c, WK_RNN_Y, 3, y));
    if (c->in[WK_RNN_RESERVE])
        WK_TRY(wk_call_shape(c, WK_RNN_RESERVE, 1, &bytes));
    WK_TRY(wk_call_shape(c, WK_RNN_DY, 3, y));
    for (int i = WK_RNN_DHN; i <= WK_RNN_DCN; i++) {
        if (c->in[i])
            WK_TRY(wk_call_shape(c, i, 3, state));
    }
    wk_call_out_like(c, 0, c->in[WK_RNN_X]);
    wk_call_out(c, 1, c->dtype, 3, state);
    wk_call_out(c, 2, c->dtype, 3, state);
    if (WK_PARAMS(c, wk_rnn_options)->mode != WK_LSTM)
        c->want &= ~(1u << 2);
    return WK_OK;
}

/* ---- the table ---- */

#define SAMPLES(name, ...) static const char *const name[] = {__VA_ARGS__, NULL}

/* Weights of one direction of a layer; small numbers keep the gates in the curved part of their functions, and many
 * units from swinging. */
#define LAYER_OF(l, rows, in, hidden, range) \
    " weight_ih_l" l "=T[" rows "," in "]:" range " weight_hh_l" l "=T[" rows "," hidden "]:" range
#define BIASES_OF(l, rows, range) " bias_ih_l" l "=T[" rows "]:" range " bias_hh_l" l "=T[" rows "]:" range
#define LAYER(l, rows, in, hidden) LAYER_OF(l, rows, in, hidden, "-0.5..0.5")
#define BIASES(l, rows) BIASES_OF(l, rows, "-1..1")
#define BIG_LAYER(l, rows, in, hidden) \
    LAYER_OF(l, rows, in, hidden, "-0.2..0.2") BIASES_OF(l, rows, "-0.5..0.5")

#define LSTM_5 LAYER("0", "20", "3", "5") BIASES("0", "20")
#define GRU_5 LAYER("0", "15", "3", "5") BIASES("0", "15")
#define TANH_5 LAYER("0", "5", "3", "5") BIASES("0", "5")
#define GRU_5_BOTH LAYER("0", "15", "3", "5") LAYER("0_reverse", "15", "3", "5")
#define STATE_5 " h0=T[1,2,5] c0=T[1,2,5]"
#define LSTM_BOTH_2 \
    LAYER("0", "20", "3", "5") \
    BIASES("0", "20") \
    LAYER("0_reverse", "20", "3", "5") \
    BIASES("0_reverse", "20") \
    LAYER("1", "20", "10", "5") \
    BIASES("1", "20") LAYER("1_reverse", "20", "10", "5") BIASES("1_reverse", "20")
#define BIG_LSTM BIG_LAYER("0", "260", "40", "65") BIG_LAYER("1", "260", "65", "65")
#define BIG_GRU BIG_LAYER("0", "201", "40", "67")

SAMPLES(rnn_samples, "x=T[4,2,3] hidden=5" LSTM_5, "x=T[4,2,3] hidden=5 training=1" STATE_5 LSTM_5,
        "x=T[4,2,3] mode=gru hidden=5 training=1 h0=T[1,2,5]" GRU_5,
        "x=T[4,2,3] mode=tanh hidden=5 h0=T[1,2,5]" TANH_5, "x=T[4,2,3] mode=relu hidden=5" TANH_5,
        "x=T[6,3,3] mode=gru hidden=5 bidirectional=1 bias=0 lengths=i32[3]:1..7 "
        "h0=T[2,3,5]" GRU_5_BOTH,
        "x=T[6,3,3] hidden=5 layers=2 bidirectional=1 lengths=i32[3]:0..7 h0=T[4,3,5] "
        "c0=T[4,3,5]" LSTM_BOTH_2,
        "x=T[6,3,3] hidden=5 layers=2 bidirectional=1 lengths=i32[3]:2,6,4 h0=T[4,3,5] "
        "c0=T[4,3,5]" LSTM_BOTH_2,
        "x=T[6,3,3] hidden=5 layers=2 bidirectional=1 dropout=0.4 seed=9 offset=5 training=1" LSTM_BOTH_2,
        "x=T[6,3,3] hidden=5 layers=2 bidirectional=1 dropout=0.4 seed=9" LSTM_BOTH_2,
        "x=T[7,19,40] hidden=65 layers=2" BIG_LSTM, "x=T[5,33,40] mode=gru hidden=67" BIG_GRU,
        "x=T[0,2,3] hidden=5" STATE_5 LSTM_5, "x=T[4,0,3] hidden=5 training=1" LSTM_5,
        "x=T[4,2,0] mode=tanh hidden=5" LAYER("0", "5", "0", "5") BIASES("0", "5"));
SAMPLES(rnn_errors, "x=T[4,2,3] ! hidden", "hidden=5" LSTM_5 " ! x", "x=T[4,3] hidden=5" LSTM_5 " ! x",
        "x=T[4,2,3] hidden=0" LSTM_5 " ! hidden", "x=T[4,2,3] hidden=9223372036854775807" LSTM_5 " ! hidden",
        "x=T[4,2,3] hidden=5 layers=0" LSTM_5 " ! layers",
        "x=T[4,2,3] hidden=5 layers=9223372036854775807" LSTM_5 " ! layers",
        "x=T[4,2,3] hidden=5 mode=cnn ! mode", "x=T[4,2,3] hidden=5 ! weight_ih_l0",
        "x=T[4,2,3] hidden=5" LAYER("0", "20", "3", "5") " ! bias_ih_l0",
        "x=T[4,2,3] hidden=5 layers=2" LSTM_5 " ! weight_ih_l1",
        "x=T[4,2,3] hidden=6" LSTM_5 " ! weight_ih_l0",
        "x=T[4,2,3] hidden=5 mode=gru" LSTM_5 " ! weight_ih_l0",
        "x=T[4,2,4] hidden=5" LSTM_5 " ! weight_ih_l0",
        "x=T[4,2,3] hidden=5 bias=0" LAYER("0", "20", "3", "4") " ! weight_hh_l0",
        "x=T[4,2,3] hidden=5 h0=T[1,2,4]" LSTM_5 " ! h0", "x=T[4,2,3] hidden=5 c0=T[2,2,5]" LSTM_5 " ! c0",
        "x=T[4,2,3] mode=gru hidden=5 c0=T[1,2,5]" GRU_5 " ! c0",
        "x=T[4,2,3] hidden=5 lengths=i32[3]:1..4" LSTM_5 " ! lengths",
        "x=T[4,2,3] hidden=5 lengths=i64[2]:1..4" LSTM_5 " ! lengths",
        "x=T[4,2,3] hidden=5 lengths=i32[2]:5..6" LSTM_5 " ! lengths",
        "x=T[4,2,3] hidden=5 lengths=i32[2]:-2..-1" LSTM_5 " ! lengths",
        "x=T[4,2,3] hidden=5 dropout=1.5" LSTM_5 " ! dropout",
        "x=T[4,2,3] hidden=5 offset=-1" LSTM_5 " ! offset",
        "x=f32[4,2,3] hidden=5 bias=0 weight_ih_l0=f16[20,3] weight_hh_l0=f32[20,5] ! weight_ih_l0",
        "x=i32[4,2,3] hidden=5" LSTM_5 " ! dtype");
SAMPLES(rnn_backward_samples, "x=T[4,2,3] dy=T[4,2,5] hidden=5" LSTM_5,
        "x=T[4,2,3] dy=T[4,2,5] dhn=T[1,2,5] dcn=T[1,2,5] hidden=5" STATE_5 LSTM_5,
        "x=T[4,2,3] dy=T[4,2,5] dhn=T[1,2,5] mode=gru hidden=5 h0=T[1,2,5]" GRU_5,
        "x=T[4,2,3] dy=T[4,2,5] dhn=T[1,2,5] mode=tanh hidden=5 h0=T[1,2,5]" TANH_5,
        "x=T[4,2,3] dy=T[4,2,5] mode=relu hidden=5" TANH_5,
        "x=T[6,3,3] dy=T[6,3,10] mode=gru hidden=5 bidirectional=1 bias=0 lengths=i32[3]:0..7 h0=T[2,3,5] "
        "dhn=T[2,3,5]" GRU_5_BOTH,
        "x=T[6,3,3] dy=T[6,3,10] hidden=5 layers=2 bidirectional=1 lengths=i32[3]:2,6,4 h0=T[4,3,5] "
        "c0=T[4,3,5] dhn=T[4,3,5] dcn=T[4,3,5]" LSTM_BOTH_2,
        "x=T[6,3,3] dy=T[6,3,10] hidden=5 layers=2 bidirectional=1 dropout=0.4 seed=9 training=1 h0=T[4,3,5] "
        "c0=T[4,3,5] "
        "dcn=T[4,3,5]" LSTM_BOTH_2,
        "x=T[3,5,40] dy=T[3,5,65]:0.2..1 hidden=65" BIG_LAYER("0", "260", "40", "65"),
        "x=T[3,5,40] dy=T[3,5,67]:0.2..1 mode=gru hidden=67" BIG_GRU,
        "x=T[0,2,3] y=T[0,2,5] reserve=u8[0] dy=T[0,2,5] hidden=5 training=1" LSTM_5,
        "x=T[4,0,3] y=T[4,0,5] reserve=u8[0] dy=T[4,0,5] hidden=5 training=1" LSTM_5);
SAMPLES(rnn_backward_errors, "x=T[4,2,3] hidden=5" LSTM_5 " ! dy",
        "x=T[4,2,3] dy=T[4,2,4] hidden=5" LSTM_5 " ! dy",
        "x=T[4,2,3] dy=T[4,2,5] y=T[4,2,4] hidden=5" LSTM_5 " ! y",
        "x=T[4,2,3] dy=T[4,2,5] reserve=u8[7] hidden=5" LSTM_5 " ! reserve",
        "x=T[4,2,3] dy=T[4,2,5] dhn=T[2,2,5] hidden=5" LSTM_5 " ! dhn",
        "x=T[4,2,3] dy=T[4,2,5] dcn=T[1,2,4] hidden=5" LSTM_5 " ! dcn",
        "x=T[4,2,3] dy=T[4,2,5] dcn=T[1,2,5] mode=gru hidden=5" GRU_5 " ! dcn",
        "x=T[4,2,3] dy=T[4,2,5] hidden=5 ! weight_ih_l0",
        "x=T[4,2,3] dy=T[4,2,5] hidden=-5" LSTM_5 " ! hidden");

enum { OP_rnn, OP_rnn_backward };

#define FIELD(name, type, value, choices) \
    { \
#name, type, offsetof(wk_rnn_options, name), value, choices, 0 \
    }
#define PARAMS \
    WK_PARAM_LIST(FIELD(mode, WK_P_ENUM, "lstm", "lstm|gru|relu|tanh"), FIELD(hidden, WK_P_INT, NULL, NULL), \
                  FIELD(layers, WK_P_INT, "1", NULL), FIELD(bidirectional, WK_P_BOOL, "0", NULL), \
                  FIELD(bias, WK_P_BOOL, "1", NULL), FIELD(dropout, WK_P_FLOAT, "0", NULL), \
                  FIELD(seed, WK_P_INT, "0", NULL), FIELD(offset, WK_P_INT, "0", NULL), \
                  FIELD(training, WK_P_BOOL, "0", NULL))
#define U8 WK_SET(WK_U8)

wk_op wk_ops_rnn[] = {
    [OP_rnn] = {.name = "rnn",
                .summary = "LSTM, GRU, or a plain recurrent layer",
                .dtypes = WK_FLOATS,
                .in = {{"x", 0, 0},
                       {"h0", WK_OPTIONAL, 0},
                       {"c0", WK_OPTIONAL, 0},
                       {"lengths", WK_OPTIONAL, WK_SET(WK_I32)},
                       {"weights", WK_TAIL, 0}},
                .out = {{"y", WK_SKIP, 0},
                        {"hn", WK_SKIP, 0},
                        {"cn", WK_OPTIONAL, 0},
                        {"reserve", WK_OPTIONAL | WK_OPAQUE, U8}},
                .params = PARAMS,
                .infer = infer_rnn,
                .tail_name = tail_name,
                .samples = rnn_samples,
                .errors = rnn_errors},
    [OP_rnn_backward] = {.name = "rnn_backward",
                         .summary = "gradient of rnn",
                         .dtypes = WK_FLOATS,
                         .in = {{"x", 0, 0},
                                {"h0", WK_OPTIONAL, 0},
                                {"c0", WK_OPTIONAL, 0},
                                {"lengths", WK_OPTIONAL, WK_SET(WK_I32)},
                                {"y", WK_OPTIONAL, 0},
                                {"reserve", WK_OPTIONAL, U8},
                                {"dy", 0, 0},
                                {"dhn", WK_OPTIONAL, 0},
                                {"dcn", WK_OPTIONAL, 0},
                                {"weights", WK_TAIL, 0}},
                         .out = {{"dx", WK_SKIP, 0}, {"dh0", WK_SKIP, 0}, {"dc0", WK_SKIP, 0}},
                         .params = PARAMS,
                         .infer = infer_rnn_backward,
                         .tail_name = tail_name,
                         .samples = rnn_backward_samples,
                         .errors = rnn_backward_errors},
    {0},
};

/* ---- the API ---- */

static wk_status take_options(int op, void *params, const wk_rnn_options *options,
                              const wk_tensor *const *weights, int n_weights)
{
    wk_rnn_options *p = params;
    if (wk_pending())
        return wk_error_status();
    if (n_weights < 0 || (n_weights > 0 && !weights))
        return wk_fail(WK_ERR_ARGUMENT, "%s: weights: expected %d tensors, got none", wk_ops_rnn[op].name,
                       n_weights);
    wk_params_from_options(&wk_ops_rnn[op], params, options, options ? options->size : 0);
    p->bias = p->bias > 0;
    return WK_OK;
}

wk_status wk_rnn(const wk_tensor *x, const wk_tensor *h0, const wk_tensor *c0, const wk_tensor *lengths,
                 const wk_tensor *const *weights, int n_weights, const wk_rnn_options *options, wk_tensor **y,
                 wk_tensor **hn, wk_tensor **cn, wk_tensor **reserve)
{
    _Alignas(8) char p[WK_PARAMS_BYTES];
    wk_tensor **const places[] = {y, hn, cn, reserve};
    for (int i = 0; i < 4; i++) {
        if (places[i])
            *places[i] = NULL;
    }
    WK_TRY(take_options(OP_rnn, p, options, weights, n_weights));
    return wk_call_run_into(&(wk_call){.op = &wk_ops_rnn[OP_rnn],
                                       .params = p,
                                       .in = {x, h0, c0, lengths},
                                       .tail = weights,
                                       .n_tail = n_weights},
                            places, 4);
}

wk_status wk_rnn_backward(const wk_tensor *x, const wk_tensor *h0, const wk_tensor *c0,
                          const wk_tensor *lengths, const wk_tensor *const *weights, int n_weights,
                          const wk_tensor *y, const wk_tensor *reserve, const wk_tensor *dy,
                          const wk_tensor *dhn, const wk_tensor *dcn, const wk_rnn_options *options,
                          wk_tensor **dx, wk_tensor **dh0, wk_tensor **dc0, wk_tensor **dweights)
{
    _Alignas(8) char p[WK_PARAMS_BYTES];
    wk_tensor **const places[] = {dx, dh0, dc0};
    for (int i = 0; i < 3; i++) {
        if (places[i])
            *places[i] = NULL;
    }
    for (int i = 0; dweights && i < n_weights; i++)
        dweights[i] = NULL;
    WK_TRY(take_options(OP_rnn_backward, p, options, weights, n_weights));
    wk_call c = {.op = &wk_ops_rnn[OP_rnn_backward],
                 .params = p,
                 .in = {x, h0, c0, lengths, y, reserve, dy, dhn, dcn},
                 .tail = weights,
                 .n_tail = n_weights,
                 .tail_out = dweights};
    wk_status status = wk_call_run_into(&c, places, 3);
    for (int i = 0; status != WK_OK && dweights && i < n_weights; i++)
        dweights[i] = NULL; /* what was made on the way is gone */
    return status;
}
