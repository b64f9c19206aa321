/* norm.c: layer, rms and group norm and their gradients; the family's list. */
#include <float.h>
#include "ops/norm.h"
#include "core/families.h"
#include "core/memory.h"
#include "core/pool.h"
#include "wick/ops.h"
#include "activation.h"
#include "block.h"
#include "lanes.h"
#include "lines.h"
#include "norm.h"

enum { MOST_CHUNKS = 32, PART_ELEMENTS = 1 << 21, GROUPS_TOGETHER = 4, SHORT_BYTES = 2048 };

typedef struct {
    wk_group_shape s;
    bool centred; /* false for rms norm */
    double eps;
    const void *weight, *bias; /* one for every channel, of the compute type; bias may be NULL */
    bool sum;                  /* of an op that adds: the sum is wanted */
    bool stream;               /* results go past the cache from the loop itself */
    bool as_is;                /* lines are bf16 as they lie in memory, not of the compute type */
} norm_ctx;

typedef struct {
    norm_ctx c;
    const wk_tensor *x, *dy; /* packed */
    wk_tensor *dx;           /* NULL: not wanted */
    double *parts;           /* dweight and dbias of each chunk of samples */
    int64_t chunks;
    bool stream;
    atomic_bool no_memory;
} grad_plan;

/* n elements of a packed tensor from a byte on, as values of the compute type: where they lie, or in buf. */
static const void *line_of(const wk_tensor *t, int64_t at, int64_t n, void *buf)
{
    const char *from = (const char *)wk_ptr(t) + at;
    if (wk_bytes(t->dtype) >= 4)
        return from;
    WK_ISA(wk_block_load)(t->dtype, from, 1, buf, n);
    return buf;
}
#define line_of_f32 line_of
#define line_of_f64 line_of

#include "real_f32.h"
#include "line.inc.h"
#include "twos.inc.h"
#include "moments.inc.h"
#include "norm.inc.h"
#include "norm_grad.inc.h"
#include "real_bf16.h"
#include "twos.inc.h"
#include "moments.inc.h"
#include "norm.inc.h"
#include "real_f64.h"
#include "line.inc.h"
#include "twos.inc.h"
#include "moments.inc.h"
#include "norm.inc.h"
#include "norm_grad.inc.h"

/* t packed and in the compute dtype, for lines as they are in their order, group by group; where t is NULL, ones. NULL with
 * an error. */
static const void *values_of(const wk_call *c, const norm_ctx *n, const wk_tensor *t)
{
    int64_t count = n->s.groups * n->s.channels;
    if (!t)
        t = wk_fill(c->device, c->dtype, 1, &count, 1);
    if (!t || !(t = n->as_is ? wk_tensor_packed(t) : WK_ISA(wk_compute_copy)(t)))
        return NULL;
    if (!n->as_is)
        return wk_ptr(t);
    wk_tensor *values = wk_tensor_new(c->device, WK_F32, 1, &count);
    for (int64_t at = 0; values && at < count; at += n->s.channels)
        spread_bf16((const uint16_t *)wk_ptr(t) + at, (float *)wk_ptr(values) + at, n->s.channels);
    return values ? wk_ptr(values) : NULL;
}

static wk_status make_ctx(const wk_call *c, const wk_tensor *weight, const wk_tensor *bias, bool as_is,
                          norm_ctx *n)
{
    const wk_norm_params *p = c->params;
    *n = (norm_ctx){.s = wk_group_shape_of(c->in[0], strncmp(c->op->name, "group", 5) == 0, p->groups),
                    .centred = !wk_norm_is_rms(c->op),
                    .eps = p->eps};
    n->as_is = as_is && n->s.inner == 1;
    n->weight = values_of(c, n, weight);
    if (!n->weight || (bias && !(n->bias = values_of(c, n, bias))))
        return wk_error_status();
    return WK_OK;
}

/* The function for the elements of the call's lines. */
#define PICK(c, n, name) ((n)->as_is ? name##_bf16 : (c)->dtype == WK_F64 ? name##_f64 : name##_f32)

/* Whether all results go past the cache as the loops write them. */
static bool writes_past(const wk_call *c, const norm_ctx *n)
{
    bool as_it_lies = n->as_is || wk_bytes(c->dtype) >= 4;
    if (!WK_WORDS_STREAM || n->s.inner != 1 || !as_it_lies || !wk_lines_past(c->out[0], n->s.channels))
        return false;
    return !n->sum || wk_lines_past(c->out[1], n->s.channels);
}

static wk_status run_norm(wk_call *c)
{
    norm_ctx n;
    if (wk_count(c->out[0]) == 0)
        return WK_OK;
    WK_TRY(make_ctx(c, c->in[1], c->in[2], c->dtype == WK_BF16, &n));
    int64_t shape[2] = {n.s.samples * n.s.groups, n.s.channels * n.s.inner};
    if (wk_is_packed(c->in[0]) && n.s.groups * n.s.inner == 1 && shape[0] % GROUPS_TOGETHER == 0 &&
        shape[1] * (int64_t)wk_bytes(c->dtype) <= SHORT_BYTES) {
        shape[0] /= GROUPS_TOGETHER;
        shape[1] *= GROUPS_TOGETHER;
    }
    wk_tensor *x = wk_reshape(c->in[0], 2, shape), *y = wk_reshape(c->out[0], 2, shape);
    if (!x || !y)
        return wk_error_status();
    wk_compute compute = wk_dtypes[c->dtype].compute;
    n.stream = writes_past(c, &n);
    wk_lines l = {.in = {x},
                  .in_compute = {compute},
                  .n_in = 1,
                  .out = {y},
                  .out_compute = {compute},
                  .n_out = 1,
                  .as_is = n.as_is,
                  .asks = WK_WORDS_STREAM && n.s.inner == 1,
                  .straight = n.stream,
                  .set = 2,
                  .fn = PICK(c, &n, norm_line),
                  .ctx = &n};
    return WK_ISA(wk_lines_run)(&l);
}

static wk_status run_add_norm(wk_call *c)
{
    norm_ctx n;
    if (wk_count(c->out[0]) == 0)
        return WK_OK;
    WK_TRY(make_ctx(c, c->in[2], c->in[3], c->dtype == WK_BF16, &n));
    n.sum = c->out[1] != NULL;
    n.stream = writes_past(c, &n);
    wk_compute compute = wk_dtypes[c->dtype].compute;
    wk_lines l = {.in = {c->in[0], c->in[1]},
                  .in_compute = {compute, compute},
                  .n_in = 2,
                  .out = {c->out[0], c->out[1]},
                  .out_compute = {compute, compute},
                  .n_out = c->out[1] ? 2 : 1,
                  .as_is = n.as_is,
                  .asks = WK_WORDS_STREAM && n.s.inner == 1,
                  .straight = n.stream,
                  .set = 1u << (c->in[0]->rank - 1),
                  .fn = PICK(c, &n, add_norm_line),
                  .ctx = &n};
    return WK_ISA(wk_lines_run)(&l);
}

/* ---- gradients ---- */

/* Samples are cut into chunks, each with sums of its own, which are added up in order at the end. A task is one
 * group of a chunk's samples. */
static void run_grad_task(void *ctx, int64_t task)
{
    grad_plan *p = ctx;
    const wk_group_shape *s = &p->c.s;
    int64_t chunk = task / s->groups, all = s->groups * s->channels;
    int64_t begin = chunk * s->samples / p->chunks, end = (chunk + 1) * s->samples / p->chunks;
    size_t bytes = (size_t)(s->channels * s->inner) * 4 * 8;
    void *buf = wk_scratch_alloc(bytes);
    if (!buf) {
        atomic_store(&p->no_memory, true);
        return;
    }
    double *dweight = p->parts + chunk * 2 * all, *dbias = dweight + all;
    if (p->x->dtype == WK_F64)
        grad_task_f64(p, task % s->groups, begin, end, dweight, dbias, buf);
    else
        grad_task_f32(p, task % s->groups, begin, end, dweight, dbias, buf);
    wk_scratch_free(buf, bytes);
}

/* Sums of the chunks into the first one's place. */
static void add_parts(const grad_plan *p, int64_t n)
{
    for (int64_t k = 1; k < p->chunks; k++) {
        for (int64_t i = 0; i < n; i++)
            p->parts[i] += p->parts[k * n + i];
    }
}

static wk_status run_norm_backward(wk_call *c)
{
    grad_plan p = {.dx = c->out[0], .chunks = 1};
    WK_TRY(make_ctx(c, c->in[2], NULL, false, &p.c));
    int64_t channels = p.c.s.groups * p.c.s.channels, fit = PART_ELEMENTS / (channels + 1) + 1;
    if (channels == 0)
        return WK_OK;
    fit = fit < MOST_CHUNKS ? fit : MOST_CHUNKS;
    p.chunks = p.c.s.samples < fit ? p.c.s.samples : fit;
    p.chunks = p.chunks > 0 ? p.chunks : 1;
    p.x = wk_tensor_packed(c->in[0]);
    p.dy = p.x ? wk_tensor_packed(c->in[1]) : NULL;
    wk_tensor *parts = p.dy ? wk_tensor_new(c->device, WK_F64, 2, (int64_t[]){p.chunks, 2 * channels}) : NULL;
    if (!parts)
        return wk_error_status();
    p.parts = wk_ptr(parts);
    memset(p.parts, 0, (size_t)wk_count(parts) * sizeof(double));
    p.stream = wk_count(p.x) * (int64_t)wk_bytes(c->dtype) >= WK_STREAM_BYTES;
    if (wk_count(p.x) > 0)
        wk_parallel_for(p.chunks * p.c.s.groups, run_grad_task, &p);
    if (p.no_memory)
        return wk_fail(WK_ERR_MEMORY, "out of memory for a group of %lld elements",
                       (long long)(p.c.s.channels * p.c.s.inner));
    add_parts(&p, 2 * channels);
    for (int i = 1; i < 3; i++) {
        if (c->out[i])
            WK_ISA(wk_block_store)
        (c->dtype, WK_COMPUTE_F64, p.parts + (i - 1) * channels, wk_ptr(c->out[i]), channels, false);
    }
    return WK_OK;
}

const wk_impl WK_ISA(wk_cpu_norm)[] = {
    {"batch_norm_train", "simd", WK_ISA(wk_batch_norm_train), NULL, NULL},
    {"batch_norm_infer", "simd", WK_ISA(wk_batch_norm_infer), NULL, NULL},
    {"batch_norm_backward", "simd", WK_ISA(wk_batch_norm_backward), NULL, NULL},
    {"layer_norm", "simd", run_norm, NULL, NULL},
    {"rms_norm", "simd", run_norm, NULL, NULL},
    {"group_norm", "simd", run_norm, NULL, NULL},
    {"add_layer_norm", "simd", run_add_norm, NULL, NULL},
    {"add_rms_norm", "simd", run_add_norm, NULL, NULL},
    {"layer_norm_backward", "simd", run_norm_backward, NULL, NULL},
    {"rms_norm_backward", "simd", run_norm_backward, NULL, NULL},
    {"group_norm_backward", "simd", run_norm_backward, NULL, NULL},
    {"lrn", "simd", WK_ISA(wk_lrn_forward), NULL, NULL},
    {"lrn_backward", "simd", WK_ISA(wk_lrn_backward), NULL, NULL},
    {0},
};
