/* wick/rnn.h: recurrent layers: LSTM, GRU and plain ones. */
#ifndef WICK_RNN_H
#define WICK_RNN_H

#include "core.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum { WK_LSTM, WK_GRU, WK_RNN_RELU, WK_RNN_TANH } wk_rnn_mode;

/* A field that is zero means its default. */
typedef struct {
    size_t size;           /* set by WK_RNN */
    int64_t mode;          /* wk_rnn_mode; WK_LSTM */
    int64_t hidden;        /* size of the state; must be given */
    int64_t layers;        /* 1 */
    int64_t bidirectional; /* 1: a second direction from the end to the beginning; 0 */
    int64_t bias;          /* 1: with biases; -1: without; 1 */
    double dropout;        /* on the result of every layer but the last, in training; 0 */
    int64_t seed,
        offset; /* of dropout: layer l drops as wk_dropout does at offset + l ceil(t b dirs hidden / 4) */
    int64_t training; /* 1: dropout is applied and a reserve made; 0 */
} wk_rnn_options;
#define WK_RNN(...) (&(wk_rnn_options){.size = sizeof(wk_rnn_options), __VA_ARGS__})

/* x [t, b, in]; h0 and (LSTM) c0 [layers * dirs, b, hidden], NULL for zeros; lengths [b] i32, NULL for t each: steps from
 * a sequence's length on do not count, y is 0 there, and the second direction begins at the length.
 * weights: for each layer, for each direction, weight_ih [gates * hidden, in or dirs * hidden], weight_hh
 * [gates * hidden, hidden] and, with biases, bias_ih and bias_hh [gates * hidden]; gates in PyTorch's order: LSTM i, f, g,
 * o; GRU r, z, n.
 * Results, any of which may be NULL: y [t, b, dirs * hidden]; hn and cn, the last states, of h0's shape; reserve, what
 * wk_rnn_backward needs, u8. *cn is NULL where the mode is not LSTM, *reserve where training is 0. Lengths out of
 * 0..t fail with WK_ERR_INDEX. Float; f16 and bf16 keep states and gates in f32. */
WK_API wk_status wk_rnn(const wk_tensor *x, const wk_tensor *h0, const wk_tensor *c0,
                        const wk_tensor *lengths, const wk_tensor *const *weights, int n_weights,
                        const wk_rnn_options *options, wk_tensor **y, wk_tensor **hn, wk_tensor **cn,
                        wk_tensor **reserve);

/* Gradients. x to weights and options are the forward's; y its result (NULL is fine), reserve its reserve, or NULL: then
 * the forward is computed again. dy is y's gradient, dhn and dcn those of the last states or NULL.
 * dweights: a place for each weight, or NULL. Any other place may be NULL too; *dc0 is NULL where the mode is not LSTM. */
WK_API wk_status wk_rnn_backward(const wk_tensor *x, const wk_tensor *h0, const wk_tensor *c0,
                                 const wk_tensor *lengths, const wk_tensor *const *weights, int n_weights,
                                 const wk_tensor *y, const wk_tensor *reserve, const wk_tensor *dy,
                                 const wk_tensor *dhn, const wk_tensor *dcn, const wk_rnn_options *options,
                                 wk_tensor **dx, wk_tensor **dh0, wk_tensor **dc0, wk_tensor **dweights);

#ifdef __cplusplus
}
#endif
#endif
