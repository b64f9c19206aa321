/* pool.c: reference pooling. */
#include <math.h>
#include "ops/pool.h"
#include "ref.h"

typedef struct {
    double largest, sum;
    int64_t place; /* of the largest, in the plane */
} window;

/* Window (oh, ow) of a plane. */
static window fold(const wk_tensor *x, const wk_pool_shape *s, int64_t plane, int64_t oh, int64_t ow)
{
    wk_pool_window h = wk_pool_window_of(&s->h, oh), w = wk_pool_window_of(&s->w, ow);
    window r = {.largest = -INFINITY, .place = h.begin * s->w.in + w.begin};
    for (int64_t i = h.begin; i < h.end; i++) {
        for (int64_t j = w.begin; j < w.end; j++) {
            int64_t at = i * s->w.in + j;
            double v = wk_ref_get(x, plane * s->h.in * s->w.in + at);
            r.sum += v;
            if (v > r.largest || v != v) {
                r.largest = v;
                r.place = at;
            }
        }
    }
    return r;
}

static wk_status run_pool(wk_call *c)
{
    wk_pool_shape s;
    const wk_pool_options *o = c->params;
    bool max = strstr(c->op->name, "max") != NULL, global = strncmp(c->op->name, "global", 6) == 0;
    bool exclude = !global && o->exclude_pad;
    WK_TRY(wk_pool_shapes(c, &s));
    for (int64_t y = 0; y < s.planes * s.h.out * s.w.out; y++) {
        int64_t oh = y / s.w.out % s.h.out, ow = y % s.w.out;
        window r = fold(c->in[0], &s, y / (s.h.out * s.w.out), oh, ow);
        double counted = (double)(wk_pool_counted(&s.h, oh, exclude) * wk_pool_counted(&s.w, ow, exclude));
        wk_ref_set(c->out[0], y, max ? r.largest : r.sum / counted);
        if (max && c->out[1])
            wk_ref_set(c->out[1], y, (double)r.place);
    }
    return WK_OK;
}

const wk_impl wk_ref_pool[] = {
    {"max_pool1d", "ref", run_pool, NULL, NULL},
    {"max_pool2d", "ref", run_pool, NULL, NULL},
    {"avg_pool1d", "ref", run_pool, NULL, NULL},
    {"avg_pool2d", "ref", run_pool, NULL, NULL},
    {"global_max_pool2d", "ref", run_pool, NULL, NULL},
    {"global_avg_pool2d", "ref", run_pool, NULL, NULL},
    {0},
};
