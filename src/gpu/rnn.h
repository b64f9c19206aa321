/* rnn.h: what the forward and the backward of the recurrent layers on the GPU share. */
#ifndef WK_GPU_RNN_H
#define WK_GPU_RNN_H

#include "gpu.h"
#include "kernels/rnn.h"
#include "ops/rnn.h"

/* A call, brought to the compute dtype ("values"): f32, or f64 for f64. */
typedef struct {
    const wk_call *c;
    wk_rnn_sizes s;
    wk_dtype dtype; /* of values */
    bool drops;     /* between layers */
    rnn_sizes z;    /* as kernels see them */
    i64 dir_stride; /* in the reserve, from one direction's gates to the next one's */
} wk_rnn_run;

/* Fills it in; has the lengths checked on the device. */
wk_status wk_rnn_begin(const wk_call *c, wk_rnn_run *r);
/* Blocks for one step of all directions. */
wk_grid wk_rnn_grid(const wk_rnn_run *r);

/* t, packed, as values; NULL with an error. */
const wk_tensor *wk_rnn_values(const wk_rnn_run *r, const wk_tensor *t);
/* A weight as values; *w is NULL for a bias where there are none. */
wk_status wk_rnn_weight_values(const wk_rnn_run *r, int64_t layer, int64_t dir, int which,
                               const wk_tensor **w);
/* weight_hh of all directions as values: [dirs, gates hidden, hidden]. */
const wk_tensor *wk_rnn_state_weights(const wk_rnn_run *r, int64_t layer);
/* New values, zeros if asked for; NULL with an error. */
wk_tensor *wk_rnn_new(const wk_rnn_run *r, int rank, const int64_t *shape, bool zeros);
/* A state of the layer as values of its own, [dirs, b, hidden]: input `slot`, or zeros; NULL with an error. */
wk_tensor *wk_rnn_first_state(const wk_rnn_run *r, int slot, int64_t layer);
/* Values from number `first` on in t's memory, packed. */
wk_tensor wk_rnn_part(const wk_rnn_run *r, const wk_tensor *t, int64_t first, int rank, const int64_t *shape);
/* Values to out, converted. */
wk_status wk_rnn_store(const wk_tensor *values, wk_tensor *out);
/* Values to the layer's part of a state of all layers. */
wk_status wk_rnn_store_state(const wk_rnn_run *r, const wk_tensor *values, int64_t layer, wk_tensor *all);

/* Computes the layers. reserve: NULL, or where it goes. Each of the outputs may be NULL. */
wk_status wk_rnn_forward(const wk_rnn_run *r, const wk_tensor *reserve, wk_tensor *y, wk_tensor *hn,
                         wk_tensor *cn);
/* The result of a layer as the next one sees it: with dropout, where there is some. */
const wk_tensor *wk_rnn_dropped(const wk_rnn_run *r, int64_t layer, const wk_tensor *out);

/* The implementation of rnn_backward. */
wk_status wk_rnn_run_backward(wk_call *c);

/* Parts of the reserve, by their first value; see ops/rnn.h. */
static inline int64_t wk_rnn_gates_at(const wk_rnn_sizes *s, int64_t layer)
{
    return s->t * s->b * s->hidden * layer * s->dirs * (s->gates + s->extra + 1);
}
static inline int64_t wk_rnn_extra_at(const wk_rnn_sizes *s, int64_t layer)
{
    return wk_rnn_gates_at(s, layer) + s->t * s->b * s->hidden * s->gates;
}
static inline int64_t wk_rnn_out_at(const wk_rnn_sizes *s, int64_t layer)
{
    return wk_rnn_gates_at(s, layer) + s->t * s->b * s->hidden * s->dirs * (s->gates + s->extra);
}

#endif
