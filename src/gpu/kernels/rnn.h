/* rnn.h: the arguments of the recurrent layers' kernels. "Values" are of the compute dtype. */
#ifndef WK_KERNELS_RNN_H
#define WK_KERNELS_RNN_H

#include "types.h"

enum { WK_CELL_LSTM, WK_CELL_GRU, WK_CELL_RELU, WK_CELL_TANH }; /* as wk_rnn_mode */

typedef struct {
    i32 t, b, hidden, gates, dirs, mode;
    const i32 *lengths; /* [b], or NULL */
    i64 lengths_stride;
} rnn_sizes;

/* One step of every direction of a layer: row i of the batch at time `step`, or t - 1 - step for the second. */
typedef struct {
    rnn_sizes z;
    i32 step, keep;      /* keep: gates and extra are for the backward */
    void *gates, *extra; /* [t, b, gates hidden]: the input's part comes in; [t, b, hidden] */
    i64 dir_stride;      /* from one direction's gates, and extra, to the next one's */
    const void *sums;    /* [dirs, b, gates hidden]: the state's part of the gates */
    const void *bias_ih[2], *bias_hh[2];
    const void *before; /* [dirs, b, hidden] */
    void *now, *c;
    void *out, *y; /* [t, b, dirs hidden]: as values, in the call's dtype; either may be NULL */
} rnn_cell_args;

typedef struct {
    rnn_sizes z;
    i32 step;
    const void *gates, *extra, *out; /* from the reserve */
    i64 dir_stride;
    const void *dout;    /* [t, b, dirs hidden] */
    const void *h0, *c0; /* [dirs, b, hidden], NULL for zeros */
    const void *sums; /* [dirs, b, hidden]: what came through the gates of the step after; NULL at the last */
    void *dh, *dc;    /* [dirs, b, hidden]: what came past them */
    void *dgates, *d_state; /* [dirs, t, b, gates hidden]: of the gates' sums, of the state's part of them */
    void *before;           /* [dirs, t, b, hidden]: the state before each step */
} rnn_grad_args;

/* x [t, b, n] with zeros from each length on. */
typedef struct {
    rnn_sizes z;
    const void *x;
    void *y;
    i64 n;
} rnn_mask_args;

typedef struct {
    rnn_sizes z;
    wk_report report;
} rnn_check_args;

#endif
