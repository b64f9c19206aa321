/* resample.c: reference upsampling. */
#include "ops/resample.h"
#include "ref.h"

/* The row of a plane between its elements: column ow of row i. */
static double across(const wk_tensor *x, const wk_upsample_shape *s, int64_t row, int64_t ow)
{
    double t;
    int64_t lo = wk_linear_source(&s->w, s->align_corners, ow, &t), hi = lo + 1 < s->w.in ? lo + 1 : lo;
    return (1 - t) * wk_ref_get(x, row * s->w.in + lo) + t * wk_ref_get(x, row * s->w.in + hi);
}

static wk_status run_upsample(wk_call *c)
{
    wk_upsample_shape s;
    bool nearest = strstr(c->op->name, "nearest") != NULL;
    WK_TRY(wk_upsample_shapes(c, &s));
    for (int64_t y = 0; y < s.planes * s.h.out * s.w.out; y++) {
        int64_t first = y / (s.h.out * s.w.out) * s.h.in, oh = y / s.w.out % s.h.out, ow = y % s.w.out;
        if (nearest) {
            int64_t row = first + wk_nearest_source(&s.h, oh);
            wk_ref_move(c->out[0], y, c->in[0], row * s.w.in + wk_nearest_source(&s.w, ow));
            continue;
        }
        double t;
        int64_t lo = wk_linear_source(&s.h, s.align_corners, oh, &t), hi = lo + 1 < s.h.in ? lo + 1 : lo;
        double v = (1 - t) * across(c->in[0], &s, first + lo, ow) + t * across(c->in[0], &s, first + hi, ow);
        wk_ref_set(c->out[0], y, v);
    }
    return WK_OK;
}

const wk_impl wk_ref_resample[] = {
    {"upsample_nearest1d", "ref", run_upsample, NULL, NULL},
    {"upsample_nearest2d", "ref", run_upsample, NULL, NULL},
    {"upsample_bilinear2d", "ref", run_upsample, NULL, NULL},
    {0},
};
