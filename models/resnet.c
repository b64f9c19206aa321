/* resnet.c: ResNets: loading with batch norms folded or kept, and the forward pass. */
#include "resnet.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "error.h"

enum { STAGES = 4, MAX_BLOCKS = 64, NAME = 80 };
static const double EPS = 1e-5;

/* A convolution and the batch norm behind it. Folded: bias is all that is left of that. */
typedef struct {
    wk_tensor *weight, *bias;
    wk_tensor *gamma, *beta, *mean, *var; /* f32; NULL when folded */
    int64_t stride, padding, groups;
    bool product; /* computed as a matrix product */
} conv;

typedef struct {
    conv conv[3], shortcut; /* a shortcut without a weight is the input itself */
} block;

struct wm_resnet {
    wm_resnet_options options;
    conv stem;
    int convs; /* of each block: 2 basic, 3 bottleneck */
    int blocks[STAGES], n_blocks;
    block *block;
    wk_tensor *fc_weight, *fc_bias;
    wm_resnet_watch watch;
    void *watch_ctx;
};

/* ---- Where weights come from: a file, or random numbers ---- */

typedef struct {
    wm_weights *file; /* NULL: random */
    wk_device *device;
    int64_t seed;
} origin;

/* A tensor in that dtype; sizes are the file's where shape has -1. Random ones are normal about `mean`. */
static wk_tensor *take(origin *o, const char *front, const char *name, wk_dtype dtype, int rank,
                       const int64_t *shape, double mean, double deviation)
{
    char full[2 * NAME];
    snprintf(full, sizeof full, "%s.%s", front, name);
    return o->file ? wm_weights_get(o->file, full, dtype, rank, shape)
                   : wk_randn(o->device, dtype, rank, shape, mean, deviation, ++o->seed, 0);
}

/* w (gamma / sqrt(var + eps)), beta - mean gamma / sqrt(var + eps): in f32, rounded once. */
static void fold(conv *c, wk_dtype dtype)
{
    wk_scope_begin();
    wk_tensor *scale = wk_mul(c->gamma, wk_rsqrt(wk_affine(c->var, 1, EPS)));
    wk_tensor *weight = wk_mul(c->weight, wk_reshape(scale, 4, (int64_t[]){-1, 1, 1, 1}));
    wk_tensor *bias = wk_sub(c->beta, wk_mul(c->mean, scale));
    weight = wk_retain(wk_cast(weight, dtype));
    bias = wk_retain(wk_cast(bias, dtype));
    wk_scope_end();
    wk_tensor *gone[] = {c->weight, c->gamma, c->beta, c->mean, c->var};
    for (size_t i = 0; i < sizeof gone / sizeof *gone; i++)
        wk_drop(gone[i]);
    c->weight = weight;
    c->bias = bias;
    c->gamma = c->beta = c->mean = c->var = NULL;
}

/* Takes a convolution [out, in / groups, k, k] and its batch norm. A size of -1 is left to the file, in_channels is what
 * the layer before gives: fewer in the weight means groups. Returns the number of channels that come out. */
static int64_t load_conv(origin *o, const wm_resnet_options *options, conv *c, const char *name,
                         const char *norm, int64_t in_channels, int64_t out, int64_t k, int64_t stride)
{
    wk_dtype dtype = options->keep_batch_norm ? options->dtype : WK_F32;
    int64_t shape[] = {out, o->file ? -1 : in_channels, k, k};
    c->weight = take(o, name, "weight", dtype, 4, shape, 0, sqrt(2.0 / (double)(in_channels * k * k)));
    if (!c->weight)
        return 0;
    int64_t channels = wk_dim(c->weight, 0), inner = wk_dim(c->weight, 1);
    if (inner < 1 || in_channels % inner || channels % (in_channels / inner)) {
        wm_fail(WK_ERR_SHAPE, "%s.weight: takes %lld channels of a layer that gives %lld", name,
                (long long)inner, (long long)in_channels);
        return 0;
    }
    c->stride = stride;
    c->padding = k / 2;
    c->groups = in_channels / inner;
    c->product = k == 1 && c->groups == 1 && o->device != wk_device_open("cpu");
    c->gamma = take(o, norm, "weight", WK_F32, 1, &channels, 1, 0);
    c->beta = take(o, norm, "bias", WK_F32, 1, &channels, 0, 0);
    c->mean = take(o, norm, "running_mean", WK_F32, 1, &channels, 0, 0);
    c->var = take(o, norm, "running_var", WK_F32, 1, &channels, 1, 0);
    if (!options->keep_batch_norm && c->var)
        fold(c, options->dtype);
    return wm_error_status() == WK_OK ? channels : 0;
}

/* ---- What the model is made of ---- */

static void count_blocks(wm_resnet *m, const wm_weights *w)
{
    char name[NAME];
    m->convs = wm_weights_has(w, "layer1.0.conv3.weight") ? 3 : 2;
    for (int s = 0; s < STAGES; s++) {
        do
            snprintf(name, sizeof name, "layer%d.%d.conv1.weight", s + 1, m->blocks[s]);
        while (wm_weights_has(w, name) && ++m->blocks[s] < MAX_BLOCKS);
        m->n_blocks += m->blocks[s];
    }
}

static bool named_blocks(wm_resnet *m, int depth)
{
    static const struct {
        int depth, convs, blocks[STAGES];
    } known[] = {{18, 2, {2, 2, 2, 2}},
                 {34, 2, {3, 4, 6, 3}},
                 {50, 3, {3, 4, 6, 3}},
                 {101, 3, {3, 4, 23, 3}},
                 {152, 3, {3, 8, 36, 3}}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].depth == depth) {
            m->convs = known[i].convs;
            memcpy(m->blocks, known[i].blocks, sizeof m->blocks);
            for (int s = 0; s < STAGES; s++)
                m->n_blocks += m->blocks[s];
            return true;
        }
    wm_fail(WK_ERR_PARAM, "resnet: expected a depth of 18, 34, 50, 101 or 152, got %d", depth);
    return false;
}

/* One block; stride 2 lies on the 3 x 3 convolution. Sizes are the file's, or those of the paper. */
static int64_t load_block(wm_resnet *m, origin *o, block *b, int stage, int i, int64_t in)
{
    char front[NAME / 2], name[NAME], norm[NAME];
    int64_t stride = stage > 0 && i == 0 ? 2 : 1, width = o->file ? -1 : 64 << stage, channels = in;
    snprintf(front, sizeof front, "layer%d.%d", stage + 1, i);
    for (int k = 0; k < m->convs && (k == 0 || channels); k++) {
        bool wide = m->convs == 2 || k == 1;
        int64_t out = o->file ? -1 : k == 2 ? 4 * width : width;
        snprintf(name, sizeof name, "%s.conv%d", front, k + 1);
        snprintf(norm, sizeof norm, "%s.bn%d", front, k + 1);
        channels = load_conv(o, &m->options, &b->conv[k], name, norm, channels, out, wide ? 3 : 1,
                             k == (m->convs == 2 ? 0 : 1) ? stride : 1);
    }
    snprintf(name, sizeof name, "%s.downsample.0", front);
    snprintf(norm, sizeof norm, "%s.downsample.0.weight", front);
    bool shortcut = o->file ? wm_weights_has(o->file, norm) : channels != in || stride > 1;
    snprintf(norm, sizeof norm, "%s.downsample.1", front);
    if (channels && shortcut &&
        load_conv(o, &m->options, &b->shortcut, name, norm, in, channels, 1, stride) == 0)
        return 0;
    if (channels && !shortcut && (channels != in || stride > 1)) {
        wm_fail(WK_ERR_FORMAT, "%s: its shape changes, but %s.weight is missing", front, name);
        return 0;
    }
    return channels;
}

static bool load_layers(wm_resnet *m, origin *o)
{
    wk_dtype dtype = m->options.dtype;
    int64_t channels = load_conv(o, &m->options, &m->stem, "conv1", "bn1", 3, o->file ? -1 : 64, 7, 2);
    m->stem.padding = 3;
    m->block = calloc((size_t)m->n_blocks + 1, sizeof *m->block);
    if (!m->block) {
        wm_fail(WK_ERR_MEMORY, "resnet: not enough memory");
        return false;
    }
    for (int s = 0, n = 0; s < STAGES; s++)
        for (int i = 0; i < m->blocks[s] && channels; i++, n++)
            channels = load_block(m, o, &m->block[n], s, i, channels);
    if (!channels)
        return false;
    int64_t shape[] = {o->file ? -1 : 1000, channels};
    m->fc_weight = take(o, "fc", "weight", dtype, 2, shape, 0, 1 / sqrt((double)channels));
    shape[0] = m->fc_weight ? wk_dim(m->fc_weight, 0) : 0;
    m->fc_bias = take(o, "fc", "bias", dtype, 1, shape, 0, 0);
    return wm_error_status() == WK_OK;
}

static wm_resnet *make(const wm_resnet_options *options)
{
    wm_resnet *m = calloc(1, sizeof *m);
    if (m)
        m->options = *options;
    else
        wm_fail(WK_ERR_MEMORY, "resnet: not enough memory");
    return m;
}

wm_resnet *wm_resnet_load(const char *path, wk_device *device, const wm_resnet_options *options,
                          const wm_progress *progress)
{
    wm_resnet *m = make(options);
    origin o = {.file = m ? wm_weights_open(path, device, progress) : NULL, .device = device};
    bool ok = o.file != NULL;
    if (ok) {
        count_blocks(m, o.file);
        for (int s = 0; s < STAGES; s++)
            ok = ok && m->blocks[s] > 0;
        if (!ok)
            wm_fail(WK_ERR_FORMAT, "%s: no ResNet: expected layer1.0.conv1.weight to layer4.0.conv1.weight",
                    path);
    }
    ok = ok && load_layers(m, &o);
    wm_weights_close(o.file);
    if (ok)
        return m;
    wm_resnet_free(m);
    return NULL;
}

wm_resnet *wm_resnet_random(int depth, wk_device *device, const wm_resnet_options *options, int64_t seed)
{
    wm_resnet *m = make(options);
    origin o = {.device = device, .seed = seed * 1000};
    if (m && named_blocks(m, depth) && load_layers(m, &o))
        return m;
    wm_resnet_free(m);
    return NULL;
}

static void drop_conv(conv *c)
{
    wk_tensor *all[] = {c->weight, c->bias, c->gamma, c->beta, c->mean, c->var};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        wk_drop(all[i]);
}

void wm_resnet_free(wm_resnet *m)
{
    if (!m)
        return;
    drop_conv(&m->stem);
    for (int i = 0; m->block && i < m->n_blocks; i++) {
        for (int k = 0; k < m->convs; k++)
            drop_conv(&m->block[i].conv[k]);
        drop_conv(&m->block[i].shortcut);
    }
    wk_drop(m->fc_weight);
    wk_drop(m->fc_bias);
    free(m->block);
    free(m);
}

int wm_resnet_depth(const wm_resnet *m) { return m->n_blocks * m->convs + 2; }

int64_t wm_resnet_classes(const wm_resnet *m) { return wk_dim(m->fc_weight, 0); }

void wm_resnet_set_watch(wm_resnet *m, wm_resnet_watch watch, void *ctx)
{
    m->watch = watch;
    m->watch_ctx = ctx;
}

/* ---- The forward pass ---- */

static void show(const wm_resnet *m, const char *name, const wk_tensor *y)
{
    if (m->watch && y)
        m->watch(m->watch_ctx, name, y);
}

/* A convolution of 1 x 1 as what it is, a product over the channels: GPUs' libraries are two to three times as fast at
 * that, with the channels where they lie. */
static wk_tensor *run_product(const conv *c, const wk_tensor *x)
{
    int64_t s = c->stride, out = wk_dim(c->weight, 0);
    int64_t shape[] = {wk_dim(x, 0), wk_dim(x, 1), (wk_dim(x, 2) + s - 1) / s, (wk_dim(x, 3) + s - 1) / s};
    if (s > 1 && x) {
        const int64_t *at = wk_strides(x);
        x = wk_as_strided(x, 4, shape, (int64_t[]){at[0], at[1], s * at[2], s * at[3]}, 0);
    }
    wk_tensor *y = wk_matmul(wk_reshape(c->weight, 2, (int64_t[]){out, shape[1]}),
                             wk_reshape(x, 3, (int64_t[]){shape[0], shape[1], shape[2] * shape[3]}));
    return wk_reshape(y, 4, (int64_t[]){shape[0], out, shape[2], shape[3]});
}

/* relu(norm(conv(x)) + z) of a layer; z may be NULL, relu false leaves that out. */
static wk_tensor *run_conv(const conv *c, const wk_tensor *x, const wk_tensor *z, bool relu)
{
    wk_act act = {.kind = relu ? WK_ACT_RELU : WK_ACT_NONE};
    wk_conv_options *options =
        WK_CONV(.stride = {c->stride, c->stride}, .padding = {c->padding, c->padding}, .groups = c->groups);
    if (!c->gamma && !c->product)
        return wk_conv2d_bias_act(x, c->weight, c->bias, z, act, options);
    wk_tensor *y = c->product ? run_product(c, x) : wk_conv2d(x, c->weight, NULL, options);
    return c->gamma
               ? wk_batch_norm_act(y, c->gamma, c->beta, c->mean, c->var, z, EPS, WK_BATCH_NORM_SPATIAL, act)
               : wk_bias_act(y, c->bias, z, 1, act);
}

/* The scope of a block frees what is between its convolutions. */
static wk_tensor *run_block(const wm_resnet *m, const block *b, const wk_tensor *x)
{
    wk_scope_begin();
    const wk_tensor *z = b->shortcut.weight ? run_conv(&b->shortcut, x, NULL, false) : x, *y = x;
    for (int k = 0; k < m->convs; k++) {
        bool last = k + 1 == m->convs;
        y = run_conv(&b->conv[k], y, last ? z : NULL, true);
    }
    return wk_scope_end_keep((wk_tensor *)y);
}

static wk_tensor *run_stem(const wm_resnet *m, const wk_tensor *images)
{
    wk_scope_begin();
    wk_tensor *y = run_conv(&m->stem, images, NULL, true);
    show(m, "conv1", y);
    y = wk_max_pool2d(y, WK_POOL(.kernel_size = {3, 3}, .stride = {2, 2}, .padding = {1, 1}), NULL);
    return wk_scope_end_keep(y);
}

wk_tensor *wm_resnet_run(const wm_resnet *m, const wk_tensor *images)
{
    char name[NAME];
    wk_scope_begin();
    wk_tensor *x = run_stem(m, images);
    for (int s = 0, n = 0; s < STAGES; s++)
        for (int i = 0; i < m->blocks[s]; i++, n++) {
            wk_tensor *y = run_block(m, &m->block[n], x);
            wk_drop(x);
            x = y;
            snprintf(name, sizeof name, "layer%d.%d", s + 1, i);
            show(m, name, x);
        }
    x = wk_flatten(wk_global_avg_pool2d(x), 1, 3);
    show(m, "avgpool", x);
    x = wk_cast(wk_linear(x, m->fc_weight, m->fc_bias, WK_ACT_NONE), WK_F32);
    show(m, "fc", x);
    if (!x)
        wm_fail(WK_ERR_INTERNAL, "resnet");
    return wk_scope_end_keep(x);
}
