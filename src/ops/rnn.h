/* rnn.h: what front end and kernels of the recurrent layers share. Their parameters are wk_rnn_options.
 *
 * The reserve holds values of the compute type (f32, or f64 for f64), packed. For each layer in order:
 *     for each direction:
 *         gates [t, b, gates * hidden]   after their activation: LSTM i, f, g, o; GRU r, z, n; else the new state
 *         extra [t, b, hidden]           LSTM: the cell state; GRU: W_hn h + b_hn; else absent
 *     out [t, b, dirs * hidden]          the layer's result, before dropout
 * Steps beyond a sequence's length are 0 everywhere. */
#ifndef WK_OPS_RNN_H
#define WK_OPS_RNN_H

#include "core/op.h"
#include "wick/rnn.h"

/* Inputs by slot. The tail of weights is the last slot of both. */
enum {
    WK_RNN_X,
    WK_RNN_H0,
    WK_RNN_C0,
    WK_RNN_LENGTHS,
    WK_RNN_Y, /* from here on the backward's */
    WK_RNN_RESERVE,
    WK_RNN_DY,
    WK_RNN_DHN,
    WK_RNN_DCN,
};

/* Weights of one direction of one layer. */
enum { WK_RNN_W_IH, WK_RNN_W_HH, WK_RNN_B_IH, WK_RNN_B_HH };

typedef struct {
    int64_t t, b, in, hidden, layers, dirs;
    int64_t gates; /* 4, 3, 1, 1 */
    int64_t extra; /* rows of hidden beside them in the reserve: 1, 1, 0, 0 */
    int per;       /* weights of one direction of one layer: 4, or 2 without biases */
} wk_rnn_sizes;

wk_rnn_sizes wk_rnn_sizes_of(const wk_call *c);

/* The place in the tail of a weight; -1 for a bias where there are none. */
int wk_rnn_weight(const wk_rnn_sizes *s, int64_t layer, int64_t dir, int which);

/* Values in the reserve; -1 when there are too many. */
int64_t wk_rnn_reserve_count(const wk_rnn_sizes *s);

#endif
