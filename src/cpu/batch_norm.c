/* batch_norm.c: batch norm and its gradient.
 *
 * x is planes of `inner` elements, [n, c, inner]. All three ops are the same walk: measure every plane, work out the
 * numbers of a channel from its planes, apply them to every plane. Where a channel fits the second-level cache all
 * three are done channel by channel and x comes from memory once. Where planes are short (inner of a few
 * elements) x is transposed first, so that a channel is one long plane. */
#include <float.h>
#include "ops/norm.h"
#include "wick/ops.h"
#include "bands.h"
#include "block.h"
#include "map.h"
#include "norm.h"

enum {
    BLOCK = 1024,
    PIECE = 1 << 14,         /* elements of a plane that are worked on at a time */
    SHORT = 32,              /* planes shorter than this are joined */
    CHANNEL_BYTES = 1 << 20, /* of a channel that is done at one go */
    FEW_CHANNELS = 8,        /* too few to share among threads one by one */
};

typedef struct {
    double mean, scale, shift, slope;
} channel;

typedef struct plan plan;
struct plan {
    wk_call *call;
    wk_batch_shape s;
    const wk_tensor *x, *dy; /* packed; dy is NULL but in a gradient */
    wk_tensor *y;            /* dx in a gradient; NULL: not wanted */
    channel *channels;
    double *parts; /* two numbers of each piece of each plane */
    int64_t pieces;
    /* Either may be NULL: there is nothing to measure. */
    void (*measure)(const plan *p, int64_t plane, int64_t piece, void *buf);
    void (*finish)(const plan *p, int64_t c);
    void (*apply)(const plan *p, int64_t plane, int64_t piece, void *buf);
    bool stream;
    size_t scratch;
};

static inline int64_t piece_size(const plan *p, int64_t piece)
{
    int64_t left = p->s.inner - piece * PIECE;
    return left < PIECE ? left : PIECE;
}

static inline double *part_of(const plan *p, int64_t plane, int64_t piece)
{
    return p->parts + (plane * p->pieces + piece) * 2;
}

/* A piece of t in the compute type: where it lies, or in buf. */
static const void *elements_of(const plan *p, const wk_tensor *t, int64_t plane, int64_t piece, void *buf)
{
    const char *from =
        (const char *)wk_ptr(t) + (plane * p->s.inner + piece * PIECE) * (int64_t)wk_bytes(t->dtype);
    if (wk_bytes(t->dtype) >= 4)
        return from;
    WK_ISA(wk_block_load)(t->dtype, from, 1, buf, piece_size(p, piece));
    return buf;
}

#include "real_f32.h"
#include "line.inc.h"
#include "twos.inc.h"
#include "moments.inc.h"
#include "batch_norm.inc.h"
#include "real_f64.h"
#include "line.inc.h"
#include "twos.inc.h"
#include "moments.inc.h"
#include "batch_norm.inc.h"

/* ---- statistics tensors, packed and of the statistics' dtype ---- */

static double stat_get(const wk_tensor *t, int64_t i, double absent)
{
    if (!t)
        return absent;
    return t->dtype == WK_F64 ? ((const double *)wk_ptr(t))[i] : (double)((const float *)wk_ptr(t))[i];
}

static void stat_set(wk_tensor *t, int64_t i, double v)
{
    if (t && t->dtype == WK_F64)
        ((double *)wk_ptr(t))[i] = v;
    else if (t)
        ((float *)wk_ptr(t))[i] = (float)v;
}

/* The call's inputs from `first` on packed, in place of those given. */
static wk_status pack_stats(wk_call *c, int first)
{
    for (int i = first; i < 5; i++) {
        if (c->in[i] && !(c->in[i] = wk_tensor_packed(c->in[i])))
            return wk_error_status();
    }
    return WK_OK;
}

/* ---- what a channel's numbers are ---- */

static void finish_train(const plan *p, int64_t c)
{
    const wk_norm_params *o = p->call->params;
    const wk_tensor *const *in = p->call->in;
    wk_tensor **out = p->call->out;
    wk_moments all = {0};
    for (int64_t n = 0; n < p->s.n; n++) {
        for (int64_t i = 0; i < p->pieces; i++) {
            const double *part = part_of(p, n * p->s.c + c, i);
            all = wk_moments_merge(all, (wk_moments){(double)piece_size(p, i), part[0], part[1]});
        }
    }
    double var = all.count > 0 ? all.m2 / all.count : 0, momentum = all.count > 0 ? o->momentum : 0;
    double unbiased = all.count > 1 ? all.m2 / (all.count - 1) : 0, invstd = 1 / sqrt(var + o->eps);
    stat_set(out[1], c, (1 - momentum) * stat_get(in[3], c, 0) + momentum * all.mean);
    stat_set(out[2], c, (1 - momentum) * stat_get(in[4], c, 1) + momentum * unbiased);
    stat_set(out[3], c, all.mean);
    stat_set(out[4], c, invstd);
    p->channels[c] =
        (channel){.mean = all.mean, .scale = stat_get(in[1], c, 1) * invstd, .shift = stat_get(in[2], c, 0)};
}

static void finish_infer(const plan *p, int64_t c)
{
    const wk_tensor *const *in = p->call->in;
    double invstd = 1 / sqrt(stat_get(in[4], c, 1) + WK_PARAMS(p->call, wk_norm_params)->eps);
    p->channels[c] = (channel){.mean = stat_get(in[3], c, 0),
                               .scale = stat_get(in[1], c, 1) * invstd,
                               .shift = stat_get(in[2], c, 0)};
}

/* With h = (x - mean) invstd: dx = weight invstd (dy - mean(dy) - h mean(dy h)). The mean is there already. */
static void finish_grad(const plan *p, int64_t c)
{
    const wk_tensor *const *in = p->call->in;
    double sum = 0, dot = 0, count = (double)(p->s.n * p->s.inner), invstd = stat_get(in[4], c, 1);
    for (int64_t n = 0; n < p->s.n; n++) {
        for (int64_t i = 0; i < p->pieces; i++) {
            const double *part = part_of(p, n * p->s.c + c, i);
            sum += part[0];
            dot += part[1];
        }
    }
    double slope = stat_get(in[2], c, 1) * invstd;
    stat_set(p->call->out[1], c, dot * invstd);
    stat_set(p->call->out[2], c, sum);
    p->channels[c].slope = slope;
    p->channels[c].scale = count > 0 ? -slope * invstd * invstd * dot / count : 0;
    p->channels[c].shift = count > 0 ? -slope * sum / count : 0;
}

/* ---- the walk ---- */

typedef void piece_fn(const plan *p, int64_t plane, int64_t piece, void *buf);

typedef struct {
    plan *p;
    piece_fn *fn;
} task_ctx;

/* Some pieces, counted through all planes. */
static void pieces_band(void *ctx, int64_t begin, int64_t end, void *scratch)
{
    const task_ctx *t = ctx;
    for (int64_t i = begin; i < end; i++)
        t->fn(t->p, i / t->p->pieces, i % t->p->pieces, scratch);
}

/* Some channels, all three steps. */
static void channels_band(void *ctx, int64_t begin, int64_t end, void *scratch)
{
    const plan *p = ctx;
    for (int64_t c = begin; c < end; c++) {
        for (int64_t n = 0; n < p->s.n; n++) {
            for (int64_t i = 0; i < p->pieces; i++)
                p->measure(p, n * p->s.c + c, i, scratch);
        }
        p->finish(p, c);
        for (int64_t n = 0; n < p->s.n && p->y; n++) {
            for (int64_t i = 0; i < p->pieces; i++)
                p->apply(p, n * p->s.c + c, i, scratch);
        }
    }
}

static wk_status run_pieces(plan *p, piece_fn *fn)
{
    int64_t all = p->s.n * p->s.c * p->pieces, per_task = PIECE / (p->s.inner + 1) + 1;
    return WK_ISA(wk_bands_run)(all, per_task, p->scratch, pieces_band, &(task_ctx){p, fn});
}

static wk_status walk(plan *p)
{
    int64_t count = p->s.n * p->s.inner, bytes = (int64_t)wk_bytes(p->x->dtype) * (p->dy ? 2 : 1);
    p->stream = p->y && count * p->s.c * (int64_t)wk_bytes(p->y->dtype) >= WK_STREAM_BYTES;
    /* For converted pieces of x and dy. */
    p->scratch = wk_bytes(p->x->dtype) < 4 ? PIECE * sizeof(float) * 2 : 0;
    if (p->measure && p->s.c >= FEW_CHANNELS && count * bytes <= CHANNEL_BYTES)
        return WK_ISA(wk_bands_run)(p->s.c, PIECE / (count + 1) + 1, p->scratch, channels_band, p);
    if (p->measure)
        WK_TRY(run_pieces(p, p->measure));
    for (int64_t c = 0; c < p->s.c; c++)
        p->finish(p, c);
    return p->y ? run_pieces(p, p->apply) : WK_OK;
}

/* ---- layouts ---- */

/* x [n, c, inner] packed as [c, n, inner]. NULL with an error. */
static wk_tensor *channels_first(const wk_tensor *x, const wk_batch_shape *s)
{
    wk_tensor *t = wk_reshape(x, 3, (int64_t[]){s->n, s->c, s->inner});
    t = t ? wk_transpose(t, 0, 1) : NULL;
    return t ? wk_copy(t) : NULL;
}

/* Memory for the numbers of the channels and of the pieces. */
static wk_status make_room(plan *p)
{
    p->pieces = (p->s.inner + PIECE - 1) / PIECE;
    int64_t numbers[2] = {p->s.c * (int64_t)(sizeof(channel) / sizeof(double)),
                          2 * p->s.n * p->s.c * p->pieces};
    wk_tensor *channels = wk_tensor_new(p->call->device, WK_F64, 1, &numbers[0]);
    wk_tensor *parts = channels ? wk_tensor_new(p->call->device, WK_F64, 1, &numbers[1]) : NULL;
    if (!parts)
        return wk_error_status();
    p->channels = wk_ptr(channels);
    p->parts = wk_ptr(parts);
    for (int64_t c = 0; c < p->s.c; c++) /* a gradient's measure needs the mean, which is an input there */
        p->channels[c] = (channel){.mean = p->dy ? stat_get(p->call->in[3], c, 0) : 0};
    return WK_OK;
}

/* Short planes: the walk over transposed copies, with one plane a channel, and the result back. */
static wk_status walk_transposed(plan *p)
{
    wk_tensor *out = p->y;
    wk_batch_shape s = p->s;
    p->x = channels_first(p->x, &s);
    if (!p->x || (p->dy && !(p->dy = channels_first(p->dy, &s))))
        return wk_error_status();
    if (out && !(p->y = wk_tensor_new(p->call->device, out->dtype, 3, p->x->shape)))
        return wk_error_status();
    p->s = (wk_batch_shape){1, s.c, s.n * s.inner};
    WK_TRY(make_room(p));
    WK_TRY(walk(p));
    wk_tensor *back = out ? wk_transpose(p->y, 0, 1) : NULL;
    wk_tensor *view = back ? wk_reshape(out, 3, back->shape) : NULL;
    if (out && !view)
        return wk_error_status();
    return out ? wk_copy_into(view, back) : WK_OK;
}

static wk_status run(plan *p)
{
    p->s = wk_batch_shape_of(p->call->in[0], WK_PARAMS(p->call, wk_norm_params)->mode);
    p->x = p->call->in[0];
    if (p->s.inner < SHORT && p->s.n > 1)
        return walk_transposed(p);
    p->x = wk_tensor_packed(p->x);
    if (!p->x || (p->dy && !(p->dy = wk_tensor_packed(p->dy))))
        return wk_error_status();
    WK_TRY(make_room(p));
    return walk(p);
}

/* ---- the ops ---- */

#define PICK(c, name) ((c)->dtype == WK_F64 ? name##_f64 : name##_f32)

wk_status WK_ISA(wk_batch_norm_train)(wk_call *c)
{
    WK_TRY(pack_stats(c, 1));
    plan p = {.call = c,
              .y = c->out[0],
              .measure = PICK(c, measure),
              .finish = finish_train,
              .apply = PICK(c, apply)};
    return run(&p);
}

wk_status WK_ISA(wk_batch_norm_backward)(wk_call *c)
{
    WK_TRY(pack_stats(c, 2));
    plan p = {.call = c,
              .dy = c->in[1],
              .y = c->out[0],
              .measure = PICK(c, measure_grad),
              .finish = finish_grad,
              .apply = PICK(c, apply)};
    return run(&p);
}

#define INFER_BLOCK(name, type) \
    static void name(void *out, const void *const *in, int64_t n, const void *params) \
    { \
        const type *x = in[0], *mean = in[1], *scale = in[2], *shift = in[3]; \
        type *y = out; \
        (void)params; \
        for (int64_t i = 0; i < n; i++) \
            y[i] = (x[i] - mean[i]) * scale[i] + shift[i]; \
    }
INFER_BLOCK(infer_f32, float)
INFER_BLOCK(infer_f64, double)

/* Short planes need no transposing here: the channels' numbers are broadcast over x. */
static wk_status infer_by_elements(wk_call *c, const plan *p)
{
    wk_compute compute = wk_dtypes[c->dtype].compute;
    wk_tensor *x = wk_reshape(c->in[0], 3, (int64_t[]){p->s.n, p->s.c, p->s.inner});
    wk_tensor *y = x ? wk_reshape(c->out[0], 3, x->shape) : NULL, *numbers[3] = {0};
    for (int k = 0; k < 3 && y; k++)
        numbers[k] = wk_tensor_new(c->device, wk_stat_dtype(c->dtype), 2, (int64_t[]){p->s.c, 1});
    if (!numbers[0] || !numbers[1] || !numbers[2])
        return wk_error_status();
    for (int64_t i = 0; i < p->s.c; i++) {
        p->finish(p, i);
        stat_set(numbers[0], i, p->channels[i].mean);
        stat_set(numbers[1], i, p->channels[i].scale);
        stat_set(numbers[2], i, p->channels[i].shift);
    }
    wk_map m = {.in = {x, numbers[0], numbers[1], numbers[2]},
                .in_compute = {compute, compute, compute, compute},
                .n_in = 4,
                .out = y,
                .out_compute = compute,
                .fn = PICK(c, infer)};
    return WK_ISA(wk_map_run)(&m);
}

wk_status WK_ISA(wk_batch_norm_infer)(wk_call *c)
{
    WK_TRY(pack_stats(c, 1));
    plan p = {.call = c, .y = c->out[0], .finish = finish_infer, .apply = PICK(c, apply)};
    p.s = wk_batch_shape_of(c->in[0], WK_PARAMS(c, wk_norm_params)->mode);
    if (wk_count(c->out[0]) == 0)
        return WK_OK;
    if (p.s.inner >= SHORT)
        return run(&p);
    WK_TRY(make_room(&p));
    return infer_by_elements(c, &p);
}
