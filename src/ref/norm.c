/* norm.c: reference norms. */
#include <math.h>
#include "ops/norm.h"
#include "ref.h"

static double get_or(const wk_tensor *t, int64_t i, double absent) { return t ? wk_ref_get(t, i) : absent; }

static void set_if(wk_tensor *t, int64_t i, double v)
{
    if (t)
        wk_ref_set(t, i, v);
}

/* ---- batch norm: x is [n, c, inner] ---- */

/* Element i of channel c. */
static int64_t channel_place(const wk_batch_shape *s, int64_t c, int64_t i)
{
    return (i / s->inner * s->c + c) * s->inner + i % s->inner;
}

static void apply(wk_call *call, const wk_batch_shape *s, int64_t c, double mean, double var)
{
    double invstd = 1 / sqrt(var + WK_PARAMS(call, wk_norm_params)->eps);
    double scale = get_or(call->in[1], c, 1) * invstd, shift = get_or(call->in[2], c, 0);
    for (int64_t i = 0; i < s->n * s->inner; i++) {
        int64_t at = channel_place(s, c, i);
        wk_ref_set(call->out[0], at, (wk_ref_get(call->in[0], at) - mean) * scale + shift);
    }
}

static wk_status run_batch_train(wk_call *call)
{
    const wk_norm_params *p = call->params;
    wk_batch_shape s = wk_batch_shape_of(call->in[0], p->mode);
    int64_t n = s.n * s.inner;
    double momentum = n ? p->momentum : 0;
    for (int64_t c = 0; c < s.c; c++) {
        double sum = 0, squares = 0; /* sums of differences: exact where all elements are equal */
        for (int64_t i = 0; i < n; i++)
            sum += wk_ref_get(call->in[0], channel_place(&s, c, i)) -
                   wk_ref_get(call->in[0], channel_place(&s, c, 0));
        double mean = n ? wk_ref_get(call->in[0], channel_place(&s, c, 0)) + sum / (double)n : 0;
        for (int64_t i = 0; i < n; i++) {
            double d = wk_ref_get(call->in[0], channel_place(&s, c, i)) - mean;
            squares += d * d;
        }
        double var = n ? squares / (double)n : 0, unbiased = n > 1 ? squares / (double)(n - 1) : 0;
        set_if(call->out[1], c, (1 - momentum) * get_or(call->in[3], c, 0) + momentum * mean);
        set_if(call->out[2], c, (1 - momentum) * get_or(call->in[4], c, 1) + momentum * unbiased);
        set_if(call->out[3], c, mean);
        set_if(call->out[4], c, 1 / sqrt(var + p->eps));
        apply(call, &s, c, mean, var);
    }
    return WK_OK;
}

static wk_status run_batch_infer(wk_call *call)
{
    wk_batch_shape s = wk_batch_shape_of(call->in[0], WK_PARAMS(call, wk_norm_params)->mode);
    for (int64_t c = 0; c < s.c; c++)
        apply(call, &s, c, wk_ref_get(call->in[3], c), wk_ref_get(call->in[4], c));
    return WK_OK;
}

/* ---- layer, rms and group norm ---- */

static wk_status run_own(wk_call *c)
{
    const wk_norm_params *p = c->params;
    bool rms = strncmp(c->op->name, "rms", 3) == 0, grouped = strncmp(c->op->name, "group", 5) == 0;
    wk_group_shape s = wk_group_shape_of(c->in[0], grouped, p->groups);
    int64_t n = s.channels * s.inner;
    for (int64_t g = 0; g < s.samples * s.groups && n > 0; g++) {
        double mean = 0, squares = 0;
        for (int64_t i = 0; i < n && !rms; i++)
            mean += wk_ref_get(c->in[0], g * n + i) / (double)n;
        for (int64_t i = 0; i < n; i++) {
            double d = wk_ref_get(c->in[0], g * n + i) - mean;
            squares += d * d;
        }
        double invstd = 1 / sqrt(squares / (double)n + p->eps);
        for (int64_t i = 0; i < n; i++) {
            int64_t channel = g % s.groups * s.channels + i / s.inner;
            double v = (wk_ref_get(c->in[0], g * n + i) - mean) * invstd;
            wk_ref_set(c->out[0], g * n + i, v * get_or(c->in[1], channel, 1) + get_or(c->in[2], channel, 0));
        }
    }
    return WK_OK;
}

/* ---- local response norm ---- */

/* Sum of x^2 over the window of place i among n, the places `step` elements apart; at is that of place i. */
static double window_sum(const wk_tensor *x, int64_t size, int64_t i, int64_t n, int64_t at, int64_t step)
{
    double sum = 0;
    for (int64_t k = i - size / 2; k <= i + (size - 1) / 2; k++) {
        double v = k >= 0 && k < n ? wk_ref_get(x, at + (k - i) * step) : 0;
        sum += v * v;
    }
    return sum;
}

static wk_status run_lrn(wk_call *c)
{
    const wk_lrn_params *p = c->params;
    const wk_tensor *x = c->in[0];
    int64_t inner = wk_shape_count(x->rank - 2, x->shape + 2), size = p->size;
    for (int64_t at = 0; at < wk_count(x); at++) {
        double sum = 0, mean;
        if (p->mode == WK_LRN_CROSS) {
            mean = window_sum(x, size, at / inner % x->shape[1], x->shape[1], at, inner) / (double)size;
        } else {
            int64_t h = x->shape[2], w = x->shape[3], row = at / w % h;
            for (int64_t r = row - size / 2; r <= row + (size - 1) / 2; r++)
                sum += r >= 0 && r < h ? window_sum(x, size, at % w, w, at + (r - row) * w, 1) : 0;
            mean = sum / ((double)size * (double)size);
        }
        wk_ref_set(c->out[0], at, wk_ref_get(x, at) / pow(p->k + p->alpha * mean, p->beta));
    }
    return WK_OK;
}

const wk_impl wk_ref_norm[] = {
    {"batch_norm_train", "ref", run_batch_train, NULL, NULL},
    {"batch_norm_infer", "ref", run_batch_infer, NULL, NULL},
    {"layer_norm", "ref", run_own, NULL, NULL},
    {"rms_norm", "ref", run_own, NULL, NULL},
    {"group_norm", "ref", run_own, NULL, NULL},
    {"lrn", "ref", run_lrn, NULL, NULL},
    {0},
};
