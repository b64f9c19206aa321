/* miopen_rnn_layers.c: recurrent layers with dropout between them by MIOpen, a layer at a time: of several it would drop by
 * masks of its own, and clear the reserve in which it looks for those it is given. */
#include "core/memory.h"
#include "miopen_rnn.h"
#include "ops/rnn.h"
#include "wick/ops.h"

typedef struct {
    const wk_call *c;
    const wk_rnn_options *p;
    wk_rnn_sizes s;
    int n; /* weights of a layer */
    wk_rnn_options one;
} stack;

static stack stack_of(const wk_call *c)
{
    stack k = {.c = c, .p = c->params, .s = wk_rnn_sizes_of(c)};
    k.n = (int)k.s.dirs * k.s.per;
    k.one = (wk_rnn_options){.size = sizeof k.one,
                             .mode = k.p->mode,
                             .hidden = k.p->hidden,
                             .bidirectional = k.p->bidirectional,
                             .bias = k.p->bias ? 1 : -1};
    return k;
}

/* A layer's part of states [layers * dirs, b, hidden]; NULL stays NULL. */
static wk_tensor *part(const stack *k, const wk_tensor *states, int64_t layer)
{
    return states ? wk_narrow(states, 0, layer * k->s.dirs, k->s.dirs) : NULL;
}

static wk_status put(const stack *k, wk_tensor *states, int64_t layer, const wk_tensor *t)
{
    return states ? wk_copy_into(part(k, states, layer), t) : WK_OK;
}

/* An op inside another falls back to wick's kernels, which here would be all there is. */
static wk_status by_miopen(wk_status status)
{
    if (status == WK_OK && strcmp(wk_last_impl(), "miopen") != 0)
        return wk_fail(WK_ERR_UNSUPPORTED, "MIOpen: it does not take a layer of its own");
    return status;
}

static int64_t offset_behind(const stack *k, int64_t layer)
{
    int64_t blocks = (k->s.t * k->s.b * k->s.dirs * k->s.hidden + 3) / 4;
    return (int64_t)((uint64_t)k->p->offset + (uint64_t)(layer * blocks));
}

/* The result of a layer on x; its last states go to those of the call where `last`. */
static wk_tensor *run_layer(const stack *k, const wk_tensor *x, int64_t layer, bool last)
{
    const wk_call *c = k->c;
    wk_tensor *y = NULL, *hn = NULL, *cn = NULL;
    bool lstm = k->p->mode == WK_LSTM;
    wk_status status = by_miopen(wk_rnn(x, part(k, c->in[WK_RNN_H0], layer), part(k, c->in[WK_RNN_C0], layer),
                                        c->in[WK_RNN_LENGTHS], c->tail + layer * k->n, k->n, &k->one, &y,
                                        last ? &hn : NULL, last && lstm ? &cn : NULL, NULL));
    if (status == WK_OK && last)
        status = put(k, c->out[1], layer, hn);
    if (status == WK_OK && last && lstm)
        status = put(k, c->out[2], layer, cn);
    return status == WK_OK ? y : NULL;
}

wk_status wk_miopen_rnn_layers(const wk_call *c)
{
    stack k = stack_of(c);
    const wk_tensor *x = c->in[WK_RNN_X];
    for (int64_t layer = 0; layer < k.s.layers; layer++) {
        wk_tensor *y = run_layer(&k, x, layer, true);
        bool more = layer + 1 < k.s.layers;
        x = more ? wk_dropout(y, k.p->dropout, k.p->seed, offset_behind(&k, layer), NULL) : y;
    }
    return c->out[0] ? wk_copy_into(c->out[0], x) : wk_error_status();
}

/* The gradient of one layer: dx, of *dy; the others go to the call's outputs. dw has room for a layer's weights. */
static wk_tensor *layer_gradient(const stack *k, const wk_tensor *x, int64_t layer, const wk_tensor *dy,
                                 wk_tensor **dw)
{
    const wk_call *c = k->c;
    wk_tensor *dx = NULL, *dh0 = NULL, *dc0 = NULL;
    bool lstm = k->p->mode == WK_LSTM;
    wk_status status = by_miopen(wk_rnn_backward(
        x, part(k, c->in[WK_RNN_H0], layer), part(k, c->in[WK_RNN_C0], layer), c->in[WK_RNN_LENGTHS],
        c->tail + layer * k->n, k->n, NULL, NULL, dy, part(k, c->in[WK_RNN_DHN], layer),
        part(k, c->in[WK_RNN_DCN], layer), &k->one, &dx, &dh0, lstm ? &dc0 : NULL, dw));
    if (status == WK_OK)
        status = put(k, c->out[1], layer, dh0);
    if (status == WK_OK && lstm)
        status = put(k, c->out[2], layer, dc0);
    for (int i = 0; status == WK_OK && c->tail_out && i < k->n; i++) {
        wk_tensor *to = c->tail_out[layer * k->n + i];
        status = to ? wk_copy_into(to, dw[i]) : WK_OK;
    }
    return status == WK_OK ? dx : NULL;
}

static wk_status run_gradients(const stack *k, const wk_tensor **x, wk_tensor **dw)
{
    const wk_call *c = k->c;
    const wk_rnn_options *p = k->p;
    const wk_tensor *dy = c->in[WK_RNN_DY];
    x[0] = c->in[WK_RNN_X];
    for (int64_t layer = 0; layer + 1 < k->s.layers; layer++)
        x[layer + 1] = wk_dropout(run_layer(k, x[layer], layer, false), p->dropout, p->seed,
                                  offset_behind(k, layer), NULL);
    for (int64_t layer = k->s.layers; layer-- > 0;) {
        dy = layer_gradient(k, x[layer], layer, dy, dw);
        if (layer > 0)
            dy = wk_dropout_backward(dy, NULL, p->dropout, p->seed, offset_behind(k, layer - 1));
    }
    return c->out[0] ? wk_copy_into(c->out[0], dy) : wk_error_status();
}

wk_status wk_miopen_rnn_layers_backward(const wk_call *c)
{
    stack k = stack_of(c);
    size_t inputs = (size_t)k.s.layers * sizeof(wk_tensor *), weights = (size_t)k.n * sizeof(wk_tensor *);
    const wk_tensor **x = wk_alloc(inputs + weights);
    if (!x)
        return wk_fail(WK_ERR_MEMORY, "MIOpen: out of memory");
    wk_status status = run_gradients(&k, x, (wk_tensor **)(x + k.s.layers));
    wk_free(x);
    return status;
}
