/* rnn.c: reference recurrent layers, without dropout. */
#include <math.h>
#include "core/memory.h"
#include "ops/rnn.h"
#include "ref.h"

/* One direction of one layer. */
typedef struct {
    const wk_call *c;
    wk_rnn_sizes s;
    int64_t layer, dir, in;  /* in: columns of x */
    const double *x;         /* [t, b, in] */
    double *y;               /* [t, b, dirs * hidden] */
    double *h, *next, *cell; /* [hidden] of one sequence */
    const double *weight[4]; /* by WK_RNN_W_IH and so on; NULL: there are no biases */
} direction;

static void take_weights(direction *d)
{
    for (int which = 0; which < 4; which++) {
        int place = wk_rnn_weight(&d->s, d->layer, d->dir, which);
        d->weight[which] = place < 0 ? NULL : wk_ref_values(d->c->tail[place]);
    }
}

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }

/* Row j of W . v + b. */
static double line(const direction *d, int which_w, int which_b, int64_t j, const double *v, int64_t n)
{
    double sum = d->weight[which_b] ? d->weight[which_b][j] : 0;
    for (int64_t k = 0; k < n; k++)
        sum += d->weight[which_w][j * n + k] * v[k];
    return sum;
}

/* Unit u's new state from x [in] and the state before. */
static double cell(const direction *d, const double *x, int64_t u)
{
    int64_t hidden = d->s.hidden, mode = WK_PARAMS(d->c, wk_rnn_options)->mode;
    double a[4] = {0}, b[4] = {0};
    for (int64_t k = 0; k < d->s.gates; k++) {
        a[k] = line(d, WK_RNN_W_IH, WK_RNN_B_IH, k * hidden + u, x, d->in);
        b[k] = line(d, WK_RNN_W_HH, WK_RNN_B_HH, k * hidden + u, d->h, hidden);
    }
    switch (mode) {
    case WK_LSTM:
        d->cell[u] = sigmoid(a[1] + b[1]) * d->cell[u] + sigmoid(a[0] + b[0]) * tanh(a[2] + b[2]);
        return sigmoid(a[3] + b[3]) * tanh(d->cell[u]);
    case WK_GRU: {
        double r = sigmoid(a[0] + b[0]), z = sigmoid(a[1] + b[1]), n = tanh(a[2] + r * b[2]);
        return (1 - z) * n + z * d->h[u];
    }
    case WK_RNN_RELU: return a[0] + b[0] < 0 ? 0 : a[0] + b[0];
    default: return tanh(a[0] + b[0]);
    }
}

/* One sequence from its first state to its last. */
static void run_sequence(direction *d, int64_t row)
{
    const wk_rnn_sizes *s = &d->s;
    const wk_tensor *const *in = d->c->in;
    int64_t hidden = s->hidden, first = ((d->layer * s->dirs + d->dir) * s->b + row) * hidden;
    int64_t length = in[WK_RNN_LENGTHS] ? (int64_t)wk_ref_get(in[WK_RNN_LENGTHS], row) : s->t;
    for (int64_t u = 0; u < hidden; u++) {
        d->h[u] = in[WK_RNN_H0] ? wk_ref_get(in[WK_RNN_H0], first + u) : 0;
        d->cell[u] = in[WK_RNN_C0] ? wk_ref_get(in[WK_RNN_C0], first + u) : 0;
    }
    for (int64_t i = 0; i < length; i++) {
        int64_t t = d->dir ? length - 1 - i : i;
        for (int64_t u = 0; u < hidden; u++)
            d->next[u] = cell(d, d->x + (t * s->b + row) * d->in, u);
        memcpy(d->h, d->next, (size_t)hidden * sizeof *d->h);
        memcpy(d->y + ((t * s->b + row) * s->dirs + d->dir) * hidden, d->h, (size_t)hidden * sizeof *d->h);
    }
    for (int64_t u = 0; u < hidden; u++) {
        if (d->c->out[1])
            wk_ref_set(d->c->out[1], first + u, d->h[u]);
        if (d->c->out[2])
            wk_ref_set(d->c->out[2], first + u, d->cell[u]);
    }
}

static wk_status check_lengths(const wk_call *c, const wk_rnn_sizes *s)
{
    for (int64_t i = 0; c->in[WK_RNN_LENGTHS] && i < s->b; i++) {
        double v = wk_ref_get(c->in[WK_RNN_LENGTHS], i);
        WK_NEED(v >= 0 && v <= (double)s->t, c, WK_ERR_INDEX, "lengths",
                "expected lengths from 0 to %lld, got %g at %lld", (long long)s->t, v, (long long)i);
    }
    return WK_OK;
}

static wk_status run_rnn(wk_call *c)
{
    wk_rnn_sizes s = wk_rnn_sizes_of(c);
    WK_TRY(check_lengths(c, &s));
    int64_t row = s.in > s.dirs * s.hidden ? s.in : s.dirs * s.hidden, count = s.t * s.b * row;
    wk_tensor *x = wk_tensor_new(c->device, WK_F64, 3, (int64_t[]){s.t, s.b, row});
    wk_tensor *y = x ? wk_tensor_new(c->device, WK_F64, 3, (int64_t[]){s.t, s.b, row}) : NULL;
    wk_tensor *state = y ? wk_tensor_new(c->device, WK_F64, 2, (int64_t[]){3, s.hidden}) : NULL;
    if (!state)
        return wk_error_status();
    double *states = wk_ptr(state);
    direction d = {.c = c, .s = s, .in = s.in, .x = wk_ptr(x), .h = states};
    d.next = states + s.hidden;
    d.cell = d.next + s.hidden;
    for (int64_t i = 0; i < s.t * s.b * s.in; i++)
        ((double *)wk_ptr(x))[i] = wk_ref_get(c->in[WK_RNN_X], i);
    for (d.layer = 0; d.layer < s.layers; d.layer++) {
        d.y = d.x == wk_ptr(x) ? wk_ptr(y) : wk_ptr(x);
        memset(d.y, 0, (size_t)count * sizeof *d.y);
        for (d.dir = 0; d.dir < s.dirs; d.dir++) {
            take_weights(&d);
            for (int64_t b = 0; b < s.b && !wk_pending(); b++)
                run_sequence(&d, b);
        }
        d.x = d.y;
        d.in = s.dirs * s.hidden;
    }
    for (int64_t i = 0; c->out[0] && i < wk_count(c->out[0]); i++)
        wk_ref_set(c->out[0], i, d.y[i]);
    return wk_error_status();
}

static const char *refuse_rnn(const wk_call *c)
{
    const wk_rnn_options *p = c->params;
    if (p->training && p->dropout > 0)
        return "no dropout";
    return c->want >> 3 & 1 ? "no reserve" : NULL;
}

const wk_impl wk_ref_rnn[] = {
    {"rnn", "ref", run_rnn, refuse_rnn, NULL},
    {0},
};
