/* conv.c: reference convolutions: the three computations of ops/conv.h as plain loops in f64. */
#include "ops/conv.h"
#include "ref.h"

/* One value of the weights with all it joins: pixel o of the map and pixel i of the image, both as [d, h, w]. */
typedef struct {
    const wk_conv_geometry *g;
    const double *image, *map, *weight; /* the one that is computed is NULL */
} operands;

static int64_t flat(const int64_t *size, const int64_t *at)
{
    return (at[0] * size[1] + at[1]) * size[2] + at[2];
}

static void unflat(const int64_t *size, int64_t i, int64_t *at)
{
    at[2] = i % size[2];
    at[1] = i / size[2] % size[1];
    at[0] = i / size[2] / size[1];
}

/* Where tap t puts pixel o of the map in the image; false when that is padding. */
static bool to_image(const wk_conv_geometry *g, const int64_t *o, const int64_t *t, int64_t *i)
{
    bool inside = true;
    for (int d = 0; d < 3; d++) {
        i[d] = o[d] * g->stride[d] - g->padding[d] + t[d] * g->dilation[d];
        inside &= i[d] >= 0 && i[d] < g->image[d];
    }
    return inside;
}

/* The pixel o of the map that meets pixel i of the image at tap t; false when there is none. */
static bool to_map(const wk_conv_geometry *g, const int64_t *i, const int64_t *t, int64_t *o)
{
    for (int d = 0; d < 3; d++) {
        int64_t at = i[d] + g->padding[d] - t[d] * g->dilation[d];
        if (at < 0 || at % g->stride[d] != 0 || at / g->stride[d] >= g->map[d])
            return false;
        o[d] = at / g->stride[d];
    }
    return true;
}

static int64_t pixels(const int64_t *size) { return size[0] * size[1] * size[2]; }

/* One pixel of the map: the sum over the taps and a group's image channels. */
static double map_value(const operands *v, int64_t n, int64_t channel, const int64_t *o)
{
    const wk_conv_geometry *g = v->g;
    int64_t per_group = g->image_channels / g->groups,
            first = channel / (g->map_channels / g->groups) * per_group;
    int64_t taps = pixels(g->kernel), size = pixels(g->image), t[3], i[3];
    double sum = 0;
    for (int64_t tap = 0; tap < taps; tap++) {
        unflat(g->kernel, tap, t);
        if (!to_image(g, o, t, i))
            continue;
        const double *image = v->image + (n * g->image_channels + first) * size + flat(g->image, i);
        for (int64_t c = 0; c < per_group; c++)
            sum += v->weight[(channel * per_group + c) * taps + tap] * image[c * size];
    }
    return sum;
}

/* One pixel of the image: the sum over the taps that reach it and a group's map channels. */
static double image_value(const operands *v, int64_t n, int64_t channel, const int64_t *i)
{
    const wk_conv_geometry *g = v->g;
    int64_t per_group = g->image_channels / g->groups, maps = g->map_channels / g->groups;
    int64_t first = channel / per_group * maps, taps = pixels(g->kernel), size = pixels(g->map), t[3], o[3];
    double sum = 0;
    for (int64_t tap = 0; tap < taps; tap++) {
        unflat(g->kernel, tap, t);
        if (!to_map(g, i, t, o))
            continue;
        const double *map = v->map + n * g->map_channels * size + flat(g->map, o);
        for (int64_t c = first; c < first + maps; c++)
            sum += v->weight[(c * per_group + channel % per_group) * taps + tap] * map[c * size];
    }
    return sum;
}

/* One value of the weights: the sum over images and the pixels of the map. */
static double weight_value(const operands *v, int64_t map_channel, int64_t c, const int64_t *t)
{
    const wk_conv_geometry *g = v->g;
    int64_t per_group = g->image_channels / g->groups;
    int64_t channel = map_channel / (g->map_channels / g->groups) * per_group + c, o[3], i[3];
    double sum = 0;
    for (int64_t n = 0; n < g->n; n++)
        for (int64_t p = 0; p < pixels(g->map); p++) {
            unflat(g->map, p, o);
            if (to_image(g, o, t, i))
                sum += v->map[(n * g->map_channels + map_channel) * pixels(g->map) + p] *
                       v->image[(n * g->image_channels + channel) * pixels(g->image) + flat(g->image, i)];
        }
    return sum;
}

static wk_status run_data(wk_call *c)
{
    wk_conv_geometry g;
    WK_TRY(wk_conv_geometry_of(c, &g));
    bool to_map_side = g.transposed == (g.role == WK_CONV_BACKWARD_DATA);
    const double *x = wk_ref_values(c->in[0]);
    operands v = {&g, to_map_side ? x : NULL, to_map_side ? NULL : x, wk_ref_values(c->in[1])};
    if (wk_pending())
        return wk_error_status();
    const int64_t *size = to_map_side ? g.map : g.image;
    int64_t channels = to_map_side ? g.map_channels : g.image_channels, at[3];
    for (int64_t y = 0; y < wk_count(c->out[0]); y++) {
        int64_t channel = y / pixels(size) % channels, n = y / pixels(size) / channels;
        unflat(size, y % pixels(size), at);
        double sum = to_map_side ? map_value(&v, n, channel, at) : image_value(&v, n, channel, at);
        wk_ref_set(c->out[0], y, c->in[2] ? sum + wk_ref_get(c->in[2], channel) : sum);
    }
    return WK_OK;
}

static wk_status run_weight(wk_call *c)
{
    wk_conv_geometry g;
    WK_TRY(wk_conv_geometry_of(c, &g));
    const double *x = wk_ref_values(c->in[0]), *dy = wk_ref_values(c->in[1]);
    operands v = {&g, g.transposed ? dy : x, g.transposed ? x : dy, NULL};
    if (wk_pending())
        return wk_error_status();
    int64_t per_group = g.image_channels / g.groups, taps = pixels(g.kernel), t[3];
    for (int64_t w = 0; c->out[0] && w < wk_count(c->out[0]); w++) {
        unflat(g.kernel, w % taps, t);
        wk_ref_set(c->out[0], w, weight_value(&v, w / taps / per_group, w / taps % per_group, t));
    }
    int64_t channels = c->in[1]->shape[1], size = pixels(g.transposed ? g.image : g.map);
    for (int64_t b = 0; c->out[1] && b < channels; b++) {
        double sum = 0;
        for (int64_t p = 0; p < g.n * size; p++)
            sum += dy[(p / size * channels + b) * size + p % size];
        wk_ref_set(c->out[1], b, sum);
    }
    return WK_OK;
}

#define RECORDS(op) \
    {op, "ref", run_data, NULL, NULL}, {op "_backward_data", "ref", run_data, NULL, NULL}, \
    { \
        op "_backward_weight", "ref", run_weight, NULL, NULL \
    }

const wk_impl wk_ref_conv[] = {
    RECORDS("conv1d"),           RECORDS("conv2d"),           RECORDS("conv3d"),
    RECORDS("conv_transpose1d"), RECORDS("conv_transpose2d"), {0},
};
