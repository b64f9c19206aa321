/* rope.c: rotary embedding, row by row. */
#include <float.h>
#include "ops/rope.h"
#include "core/families.h"
#include "activation.h"
#include "bands.h"
#include "block.h"

#include "real_f32.h"
#include "rope.inc.h"
#include "real_f64.h"
#include "rope.inc.h"

enum { TASK_ELEMENTS = 1 << 15 };

typedef void (*turn_fn)(const void *in, const void *cosines, const void *sines, void *out, int64_t r,
                        int sign);

typedef struct {
    const wk_tensor *x;
    const char *cos, *sin; /* packed, in the compute type: [b or 1, t, r] */
    wk_tensor *y;
    int64_t cos_b; /* values from one batch to the next, 0 where all share */
    int64_t t, d, r, rows;
    int t_dim, sign;
    turn_fn turn;
    bool stream, direct_in, direct_out;
} plan;

/* Row `row` of all, which is at `at` of the [b, ., .] rows; buf holds two rows in the compute type, for what is not that
 * already. */
static void run_row(const plan *p, int64_t row, const int64_t at[3], char *buf)
{
    const wk_tensor *x = p->x;
    wk_dtype dtype = x->dtype;
    wk_compute compute = wk_dtypes[dtype].compute;
    int64_t bytes = (int64_t)wk_bytes(dtype), wide = (int64_t)wk_compute_bytes(compute);
    int64_t angle = (at[0] * p->cos_b + at[p->t_dim] * p->r) * wide;
    const char *in = (const char *)wk_ptr(x) +
                     (at[0] * x->strides[0] + at[1] * x->strides[1] + at[2] * x->strides[2]) * bytes;
    char *to = (char *)wk_ptr(p->y) + row * p->d * bytes, *out = p->direct_out ? to : buf + p->d * wide;
    if (!p->direct_in) {
        WK_ISA(wk_block_load)(dtype, in, x->strides[3], buf, p->d);
        in = buf;
    }
    p->turn(in, p->cos + angle, p->sin + angle, out, p->r, p->sign);
    int64_t turned = 2 * p->r * wide, rest = p->d * wide - turned;
    if (rest > 0)
        memcpy(out + turned, in + turned, (size_t)rest);
    if (out != to)
        WK_ISA(wk_block_store)(dtype, compute, out, to, p->d, p->stream);
}

static void run_rows(void *ctx, int64_t begin, int64_t end, void *buf)
{
    const plan *p = ctx;
    const int64_t *shape = p->x->shape;
    int64_t at[3] = {begin / shape[2] / shape[1], begin / shape[2] % shape[1], begin % shape[2]};
    for (int64_t row = begin; row < end; row++) { /* a row takes less time than these divisions */
        run_row(p, row, at, buf);
        for (int d = 2; ++at[d] == shape[d] && d > 0; d--)
            at[d] = 0;
    }
}

/* The first t rows of cos or sin, packed, in the compute type. */
static const char *angles(const wk_tensor *t, int64_t rows)
{
    wk_tensor first = wk_tensor_local(t);
    first.shape[t->rank - 2] = rows;
    const wk_tensor *copy = WK_ISA(wk_compute_copy)(&first);
    return copy ? wk_ptr(copy) : NULL;
}

/* x turned by cos and sin into y. */
static wk_status turn_all(const wk_tensor *x, const wk_tensor *cos, const wk_tensor *sin, wk_tensor *y,
                          const wk_rope_kind *kind)
{
    wk_compute compute = wk_dtypes[x->dtype].compute;
    if (wk_count(y) == 0)
        return WK_OK;
    plan p = {.x = x,
              .y = y,
              .t_dim = kind->thd ? 1 : 2,
              .d = x->shape[3],
              .r = cos->shape[cos->rank - 1],
              .rows = x->shape[0] * x->shape[1] * x->shape[2],
              .sign = kind->backward ? -1 : 1};
    p.t = x->shape[p.t_dim];
    p.cos_b = cos->rank == 3 ? p.t * p.r : 0;
    p.cos = angles(cos, p.t);
    p.sin = angles(sin, p.t);
    if (!p.cos || !p.sin)
        return wk_error_status();
    p.turn = compute == WK_COMPUTE_F64 ? (kind->interleaved ? pairs_f64 : halves_f64)
                                       : (kind->interleaved ? pairs_f32 : halves_f32);
    bool same = x->dtype == wk_compute_dtype(compute);
    p.stream = wk_count(p.y) * (int64_t)wk_bytes(x->dtype) >= WK_STREAM_BYTES;
    p.direct_in = same && (x->strides[3] == 1 || p.d == 1);
    p.direct_out = same && !p.stream;
    size_t scratch = p.direct_in && p.direct_out ? 0 : (size_t)p.d * 16;
    return WK_ISA(wk_bands_run)(p.rows, TASK_ELEMENTS / p.d + 1, scratch, run_rows, &p);
}

static wk_status run_rope(wk_call *c)
{
    wk_rope_kind kind = wk_rope_kind_of(c);
    WK_TRY(turn_all(c->in[0], c->in[1], c->in[2], c->out[0], &kind));
    return c->in[3] ? turn_all(c->in[3], c->in[1], c->in[2], c->out[1], &kind) : WK_OK;
}

#define KIND(...) (&(const wk_rope_kind){__VA_ARGS__})

const wk_impl WK_ISA(wk_cpu_rope)[] = {
    {"rope", "simd", run_rope, NULL, KIND(false, false, false)},
    {"rope_backward", "simd", run_rope, NULL, KIND(false, false, true)},
    {"rope_i", "simd", run_rope, NULL, KIND(true, false, false)},
    {"rope_i_backward", "simd", run_rope, NULL, KIND(true, false, true)},
    {"rope_thd", "simd", run_rope, NULL, KIND(false, true, false)},
    {"rope_thd_backward", "simd", run_rope, NULL, KIND(false, true, true)},
    {"rope_qk", "simd", run_rope, NULL, NULL},
    {0},
};
