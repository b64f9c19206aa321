/* rnn.h: what the forward and the backward of the recurrent layers share. */
#ifndef WK_CPU_RNN_H
#define WK_CPU_RNN_H

#include "ops/rnn.h"
#include "gemm.h"

/* A call, brought to the compute type ("values"): f32, or f64 for f64. */
typedef struct {
    const wk_call *c;
    wk_rnn_sizes s;
    int64_t mode;
    wk_compute compute;
    wk_dtype dtype;         /* of values */
    int64_t bytes;          /* of a value */
    const int64_t *lengths; /* [b], or NULL */
    bool drops;             /* between layers */
} wk_rnn_run;

/* Fills it in; reads and checks the lengths. */
wk_status WK_ISA(wk_rnn_begin)(const wk_call *c, wk_rnn_run *r);

/* A weight, packed, as values; *w is NULL for a bias where there are none. */
wk_status WK_ISA(wk_rnn_values)(const wk_rnn_run *r, int64_t layer, int64_t dir, int which,
                                const wk_tensor **w);

/* A packed tensor of values, zeros if asked for; NULL with an error. */
wk_tensor *WK_ISA(wk_rnn_new)(const wk_rnn_run *r, int rank, const int64_t *shape, bool zeros);

/* Computes the layers from x (values). reserve: NULL, or where it goes. Each of the outputs may be NULL. */
wk_status WK_ISA(wk_rnn_forward)(const wk_rnn_run *r, void *reserve, wk_tensor *y, wk_tensor *hn,
                                 wk_tensor *cn);

/* The result of a layer as the next one sees it: with dropout, where there is some (see wk_rnn_options). */
wk_status WK_ISA(wk_rnn_dropped)(const wk_rnn_run *r, int64_t layer, const wk_tensor *out,
                                 const wk_tensor **next);

/* The implementation of rnn_backward. */
wk_status WK_ISA(wk_rnn_run_backward)(wk_call *c);

static inline void *wk_rnn_at(const wk_rnn_run *r, const void *base, int64_t i)
{
    return (char *)base + i * r->bytes;
}

/* Parts of the reserve, by their first value. */
static inline int64_t wk_rnn_gates_at(const wk_rnn_sizes *s, int64_t layer, int64_t dir)
{
    int64_t row = s->t * s->b * s->hidden, one = s->gates + s->extra;
    return row * (layer * s->dirs * (one + 1) + dir * one);
}

static inline int64_t wk_rnn_extra_at(const wk_rnn_sizes *s, int64_t layer, int64_t dir)
{
    return wk_rnn_gates_at(s, layer, dir) + s->t * s->b * s->hidden * s->gates;
}

static inline int64_t wk_rnn_out_at(const wk_rnn_sizes *s, int64_t layer)
{
    return wk_rnn_gates_at(s, layer, s->dirs);
}

/* Whether step t of sequence b counts. */
static inline bool wk_rnn_live(const wk_rnn_run *r, int64_t t, int64_t b)
{
    return t >= 0 && t < (r->lengths ? r->lengths[b] : r->s.t);
}

#endif
