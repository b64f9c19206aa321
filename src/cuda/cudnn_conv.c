/* cudnn_conv.c: convolutions and their gradients by cuDNN.
 *
 * As in ops/conv.h there are three computations: a transposed convolution is the gradient by the input of a plain one.
 * A 1-D convolution has a height of 1. Tensor cores want the channels of a pixel side by side, so f16 and bf16 are
 * brought into that order before and taken out of it after; wick's transposing copy is faster at that than cuDNN. */
#include "cudnn_conv.h"
#include "gpu/families.h"
#include "wick/matmul.h"
#include "wick/ops.h"

typedef wk_cudnn_conv work;

const char *wk_cudnn_conv_refuse(const wk_call *c)
{
    wk_conv_geometry g;
    const char *why = wk_cudnn_refuse(c, WK_FLOATS);
    if (why)
        return why;
    if (wk_conv_geometry_of(c, &g) != WK_OK)
        return "sizes";
    for (int d = 0; d < 3; d++) {
        int64_t reach = (g.kernel[d] - 1) * g.dilation[d] + 1, padded = g.image[d] + 2 * g.padding[d];
        if (padded > INT32_MAX || reach > INT32_MAX)
            return "sizes of 2^31 and more";
        if ((padded - reach) / g.stride[d] + 1 != g.map[d])
            return "cuDNN takes no output_padding of a stride and more";
    }
    return NULL;
}

static bool each_channel_alone(const wk_conv_geometry *g)
{
    return g->groups > 1 && g->groups == g->image_channels;
}

static bool is_product(const wk_conv_geometry *g) { return g->kernel[0] * g->kernel[1] * g->kernel[2] == 1; }

/* It reads biases and writes maps by eights. */
bool wk_cudnn_conv_ends_well(const wk_conv_geometry *g)
{
    return !is_product(g) && !each_channel_alone(g) && g->map_channels % 8 == 0;
}

/* Where wick's kernel is faster it is left the call, unless cuDNN was asked for. */
static const char *refuse_slower(const wk_call *c)
{
    wk_conv_geometry g;
    const char *why = wk_cudnn_conv_refuse(c);
    if (why || strcmp(wk_forced_impl(), "cudnn") == 0)
        return why;
    bool slower = wk_conv_geometry_of(c, &g) == WK_OK && each_channel_alone(&g) && wk_bytes(c->dtype) > 2;
    return slower ? "wick's kernel is faster" : NULL;
}

/* ---- layouts ---- */

/* t [n, c, ..] seen as [n, .., c]. */
static wk_tensor with_channels_last(const wk_tensor *t)
{
    wk_tensor v = wk_tensor_local(t);
    for (int d = 1; d < t->rank; d++) {
        int from = d + 1 < t->rank ? d + 1 : 1;
        v.shape[d] = t->shape[from];
        v.strides[d] = t->strides[from];
    }
    return v;
}

/* t [n, c, ..] as [n, .., channels], zeros behind its own. */
static void *with_more_channels(const work *w, const wk_tensor *t)
{
    wk_tensor view = with_channels_last(t);
    int64_t shape[WK_MAX_RANK];
    memcpy(shape, view.shape, sizeof shape);
    shape[view.rank - 1] = w->channels;
    wk_tensor *copy = wk_tensor_new(t->storage->device, t->dtype, view.rank, shape);
    if (!copy || wk_gpu_zero(w->call, wk_ptr(copy), (size_t)wk_count(copy) * wk_bytes(copy->dtype)) != WK_OK)
        return NULL;
    wk_tensor part = wk_tensor_local(copy);
    part.shape[view.rank - 1] = view.shape[view.rank - 1];
    return wk_copy_into(&part, &view) == WK_OK ? wk_ptr(copy) : NULL;
}

/* Packed, and at a multiple of 16 bytes: engines read and write that much at once, whatever a descriptor says. */
static bool is_usable(const wk_tensor *t) { return wk_is_packed(t) && (size_t)wk_ptr(t) % 16 == 0; }

static void *usable(const wk_tensor *t)
{
    if (is_usable(t))
        return wk_ptr(t);
    wk_tensor *copy = wk_tensor_new(t->storage->device, t->dtype, t->rank, t->shape);
    return copy && wk_copy_into(copy, t) == WK_OK ? wk_ptr(copy) : NULL;
}

/* The address of t's elements in the order that w asks for; NULL with an error. */
static void *ordered(const work *w, const wk_tensor *t)
{
    if (w->channels)
        return with_more_channels(w, t);
    wk_tensor view = w->channels_last ? with_channels_last(t) : wk_tensor_local(t);
    return usable(&view);
}

static void fill_layout(work *w, int i)
{
    const int64_t *shape = w->shape[i];
    int64_t *strides = w->strides[i], step = 1;
    if (!w->channels_last) {
        wk_shape_strides(w->dims + 2, shape, strides);
        return;
    }
    strides[1] = 1;
    step = shape[1];
    for (int d = w->dims + 1; d > 1; d--) {
        strides[d] = step;
        step *= shape[d];
    }
    strides[0] = step;
}

static void fill_shapes(work *w, int dims)
{
    const wk_conv_geometry *g = &w->of_graph;
    w->dims = dims < 2 ? 2 : dims;
    const int64_t heads[][2] = {
        {g->n, g->image_channels}, {g->n, g->map_channels}, {g->map_channels, g->image_channels / g->groups}};
    const int64_t *sizes[] = {g->image, g->map, g->kernel};
    for (int i = 0; i < WK_CONV_TENSORS; i++) {
        memcpy(w->shape[i], heads[i], sizeof heads[i]);
        if (w->channels && i != WK_CONV_MAP)
            w->shape[i][1] = w->channels;
        memcpy(w->shape[i] + 2, sizes[i] + 3 - w->dims, (size_t)w->dims * sizeof(int64_t));
        fill_layout(w, i);
    }
}

static void fill_key(wk_cudnn_call *d, const work *w)
{
    wk_key_add(&d->key, w->g.groups);
    wk_key_add(&d->key, w->channels_last);
    wk_key_add(&d->key, w->fast + 2 * w->turned + 4 * w->fft);
    wk_key_add(&d->key, w->number);
    wk_key_add(&d->key, (int64_t)(w->has << 1) + w->relu);
    for (int i = 0; i < WK_CONV_TENSORS; i++)
        wk_key_shape(&d->key, w->dims + 2, w->shape[i]);
    wk_key_shape(&d->key, 3, w->g.stride);
    wk_key_shape(&d->key, 3, w->of_graph.padding);
    wk_key_shape(&d->key, 3, w->g.dilation);
}

/* ---- calls ---- */

/* The weights with map and image exchanged: [image channels, map channels, taps from the last on]. */
static void *turned_weights(const wk_tensor *t)
{
    wk_tensor v = wk_tensor_local(t);
    v.shape[0] = t->shape[1];
    v.shape[1] = t->shape[0];
    v.strides[0] = t->strides[1];
    v.strides[1] = t->strides[0];
    const wk_tensor *turned = wk_flip(&v, t->rank - 2, (int64_t[]){2, 3, 4});
    return turned ? usable(turned) : NULL;
}

/* The inputs of a call by what they are in its computation. */
static wk_status find_data(const wk_call *c, work *w, int *made)
{
    static const int exchanged[] = {
        [WK_CONV_IMAGE] = WK_CONV_MAP, [WK_CONV_MAP] = WK_CONV_IMAGE, [WK_CONV_WEIGHT] = WK_CONV_WEIGHT};
    wk_conv_way way = wk_conv_way_of(&w->g); /* of the call, not of the graph */
    int first =
        way == WK_CONV_TO_MAP || (way == WK_CONV_TO_WEIGHT && !w->g.transposed) ? WK_CONV_IMAGE : WK_CONV_MAP;
    int second = way != WK_CONV_TO_WEIGHT ? WK_CONV_WEIGHT : exchanged[first];
    *made = way == WK_CONV_TO_WEIGHT ? WK_CONV_WEIGHT : exchanged[first];
    if (w->turned) {
        first = exchanged[first];
        *made = exchanged[*made];
    }
    w->data[first] = ordered(w, c->in[0]);
    w->data[second] = !w->data[first] ? NULL : w->turned ? turned_weights(c->in[1]) : ordered(w, c->in[1]);
    return w->data[second] ? WK_OK : wk_error_status();
}

/* ---- the order of a call ---- */

/* As it is; with the channels of a pixel side by side; with map and image exchanged. The variants of a call are all
 * configurations in each of them. */
enum { PLAIN, LAST, TURNED };

static uint64_t variant_of(int order, int config)
{
    return 1 + (uint64_t)config + (uint64_t)order * WK_CUDNN_CONFIGS;
}

/* Whether a step in the image is one in the map, so that either can be made from the other in the same way. */
static bool can_turn(const work *w)
{
    const wk_conv_geometry *g = &w->g;
    bool can = w->dtype == WK_F32 && w->way != WK_CONV_TO_WEIGHT && g->groups == 1 && !is_product(g);
    for (int d = 0; d < 3; d++)
        can = can && g->stride[d] == 1 && g->padding[d] <= (g->kernel[d] - 1) * g->dilation[d];
    return can;
}

/* Fourier transforms of tiles of 32 pixels pay where there are many of them for the channels (measured on an H200). */
static bool transforms_pay(const work *w)
{
    enum { TILE = 33, FEW = 64 };
    const wk_conv_geometry *g = &w->g;
    int64_t tiles = g->n, most = g->image_channels, least = g->map_channels;
    if (w->dtype != WK_F32 || g->groups > 1 || is_product(g) || g->image[0] > 1 || g->kernel[0] > 1)
        return false;
    if (least > most) {
        most = g->map_channels;
        least = g->image_channels;
    }
    for (int d = 1; d < 3; d++) {
        if (g->stride[d] != 1 || g->dilation[d] != 1 || g->kernel[d] > 5)
            return false;
        tiles *= (g->map[d] + TILE - g->kernel[d] - 1) / (TILE - g->kernel[d]);
    }
    return least >= FEW && tiles >= 2 * most;
}

static void turn(work *w)
{
    wk_conv_geometry *g = &w->of_graph, from = *g;
    g->image_channels = from.map_channels;
    g->map_channels = from.image_channels;
    memcpy(g->image, from.map, sizeof g->image);
    memcpy(g->map, from.image, sizeof g->map);
    for (int d = 0; d < 3; d++)
        g->padding[d] = (g->kernel[d] - 1) * g->dilation[d] - g->padding[d];
    w->way = w->way == WK_CONV_TO_MAP ? WK_CONV_TO_IMAGE : WK_CONV_TO_MAP;
    w->turned = true;
}

/* A product over pixels and a convolution of each channel by itself need no other order. The tensor cores take channels
 * by eights, and fours. In f32 cuDNN has transforms for the image, and is faster without them at the map. */
static void choose_order(work *w, uint64_t variant, bool may_turn)
{
    const wk_conv_geometry *g = &w->g;
    bool pays = !w->fast && transforms_pay(w);
    int order = wk_bytes(w->dtype) == 2 && !is_product(g) && !each_channel_alone(g) ? LAST : PLAIN;
    if (may_turn && !w->fast && can_turn(w) && w->way == (pays ? WK_CONV_TO_MAP : WK_CONV_TO_IMAGE))
        order = TURNED;
    w->fft = pays ? WK_CUDNN_FFT_FIRST : WK_CUDNN_FFT_NONE;
    if (variant) {
        order = (int)((variant - 1) / WK_CUDNN_CONFIGS);
        w->number = 1 + (int)((variant - 1) % WK_CUDNN_CONFIGS);
        w->fft = WK_CUDNN_FFT_TOO;
    }
    w->channels_last = order == LAST;
    if (w->channels_last && w->way == WK_CONV_TO_MAP && g->groups == 1 && g->image_channels % 8)
        w->channels = g->image_channels <= 4 ? 4 : (g->image_channels + 7) / 8 * 8;
    w->of_graph = *g;
    if (order == TURNED)
        turn(w);
}

static bool ends_in_act(const wk_call *c) { return strstr(c->op->name, "_act") != NULL; }

static wk_status start(const wk_call *c, work *w, uint64_t variant)
{
    *w = (work){.call = c, .dtype = c->dtype, .fast = wk_matmul_precision() == WK_PRECISION_FAST};
    WK_TRY(wk_conv_geometry_of(c, &w->g));
    w->way = wk_conv_way_of(&w->g);
    choose_order(w, variant, !ends_in_act(c));
    fill_shapes(w, c->in[0]->rank - 2);
    return WK_OK;
}

/* Where the result is made: in the output, or beside it in the order of w. */
static wk_status place_result(const wk_call *c, const work *w, wk_tensor *result)
{
    *result = w->channels_last ? with_channels_last(c->out[0]) : wk_tensor_local(c->out[0]);
    if (is_usable(result))
        return WK_OK;
    wk_tensor *temporary = wk_tensor_new(c->device, c->dtype, result->rank, result->shape);
    if (!temporary)
        return wk_error_status();
    *result = wk_tensor_local(temporary);
    return WK_OK;
}

static cudnnStatus_t queue(cudnnHandle_t handle, const wk_cudnn_plan *p, void *workspace, const void *data)
{
    const work *w = data;
    int64_t ids[WK_CONV_POINTERS];
    void *pointers[WK_CONV_POINTERS];
    int n = 0;
    for (int i = 0; i < WK_CONV_POINTERS; i++) {
        if (i >= WK_CONV_TENSORS && !wk_conv_has(w, i))
            continue;
        ids[n] = 1 + i;
        pointers[n++] = w->data[i];
    }
    return wk_cudnn_execute(handle, p, workspace, n, ids, pointers);
}

static wk_status convolve(const wk_call *c, work *w)
{
    wk_cudnn_call d = {.call = c, .set_up = wk_cudnn_conv_set_up, .run = queue, .data = w};
    fill_key(&d, w);
    return wk_cudnn_run(&d);
}

static bool has_bias(const wk_call *c, const work *w) { return w->g.role == WK_CONV_FORWARD && c->in[2]; }

/* What stands at the end of the graph: of a convolution its bias, where that is fast. */
static wk_cudnn_end choose_end(const wk_call *c, work *w)
{
    wk_cudnn_end end = {0};
    if (ends_in_act(c))
        end = wk_cudnn_act_end(c);
    else if (has_bias(c, w) && w->way == WK_CONV_TO_MAP && wk_cudnn_conv_ends_well(&w->of_graph))
        end.t[WK_CONV_BIAS] = c->in[2];
    for (int i = WK_CONV_TENSORS; i < WK_CONV_POINTERS; i++)
        w->has |= end.t[i] ? 1u << i : 0;
    w->has |= wk_conv_has(w, WK_CONV_VAR) ? 1u << WK_CONV_EPS : 0;
    w->relu = end.relu;
    w->eps = end.eps;
    return end;
}

/* With the end in the graph; of a convolution without it, where cuDNN has no such graph. */
static wk_status convolve_to_end(const wk_call *c, work *w)
{
    wk_cudnn_end end = choose_end(c, w);
    for (int i = WK_CONV_TENSORS; i < WK_CONV_POINTERS; i++) {
        if (end.t[i])
            w->data[i] = usable(end.t[i]);
    }
    w->data[WK_CONV_EPS] = &w->eps;
    if (wk_pending())
        return wk_error_status();
    wk_status status = convolve(c, w);
    if (status != WK_ERR_UNSUPPORTED || !w->has || ends_in_act(c))
        return status;
    wk_error_clear();
    w->has = 0;
    return convolve(c, w);
}

wk_status wk_cudnn_conv_run(wk_call *c)
{
    work w;
    wk_tensor result;
    int made;
    WK_TRY(start(c, &w, c->variant));
    WK_TRY(find_data(c, &w, &made));
    WK_TRY(place_result(c, &w, &result));
    w.data[made] = wk_ptr(&result);
    WK_TRY(convolve_to_end(c, &w));
    if (w.data[made] != wk_ptr(c->out[0])) {
        wk_tensor back = w.channels_last ? with_channels_last(c->out[0]) : wk_tensor_local(c->out[0]);
        WK_TRY(wk_copy_into(&back, &result));
    }
    return has_bias(c, &w) && !w.has ? wk_conv_add_bias(c) : WK_OK;
}

static wk_status run_weight(wk_call *c)
{
    if (c->out[0])
        WK_TRY(wk_cudnn_conv_run(c));
    return c->out[1] ? wk_conv_bias_gradient(c) : WK_OK;
}

/* ---- search ---- */

typedef struct {
    work w;
    int order;
    size_t workspace; /* the most that may be used */
    uint64_t *list;
    int room, *n;
} hunt;

static void set_up_search(cudnnHandle_t handle, wk_cudnn_plan *p, const void *data)
{
    const hunt *s = data;
    wk_cudnn_conv_list(handle, p, &s->w);
}

static cudnnStatus_t search(cudnnHandle_t handle, const wk_cudnn_plan *p, void *workspace, const void *data)
{
    const hunt *s = data;
    wk_cudnn_plan tried = *p;
    (void)workspace;
    for (int i = 0; i < p->n_configs && *s->n < s->room; i++) {
        if (wk_cudnn_use(handle, &tried, i) && tried.workspace <= s->workspace)
            s->list[(*s->n)++] = variant_of(s->order, i);
    }
    if (tried.execution)
        wk_cudnn.cudnnBackendDestroyDescriptor(tried.execution);
    return CUDNN_STATUS_SUCCESS;
}

static void search_order(const wk_call *c, hunt *s, int order)
{
    if (start(c, &s->w, variant_of(order, 0)) != WK_OK)
        return;
    s->w.number = 0;
    s->order = order;
    choose_end(c, &s->w);
    wk_cudnn_call d = {.call = c, .set_up = set_up_search, .run = search, .data = s};
    fill_key(&d, &s->w);
    wk_key_add(&d.key, -1); /* no plan that runs */
    if (wk_cudnn_run(&d) != WK_OK)
        wk_error_clear();
}

/* Half of the places for each order, where there are two. */
int wk_cudnn_conv_variants(const wk_call *c, size_t workspace, uint64_t *list, int room)
{
    int n = 0;
    work w;
    if (!c->out[0] || start(c, &w, variant_of(PLAIN, 0)) != WK_OK)
        return 0;
    bool turns = can_turn(&w) && !ends_in_act(c), two = turns || wk_bytes(c->dtype) == 2;
    hunt s = {.workspace = workspace, .list = list, .room = two ? room / 2 : room, .n = &n};
    if (two)
        search_order(c, &s, turns ? TURNED : LAST);
    s.room = room;
    search_order(c, &s, PLAIN);
    return n;
}

#define ROWS(name) \
    {#name, "cudnn", wk_cudnn_conv_run, refuse_slower, NULL}, \
        {#name "_backward_data", "cudnn", wk_cudnn_conv_run, refuse_slower, NULL}, \
        {#name "_backward_weight", "cudnn", run_weight, refuse_slower, NULL},

const wk_impl wk_cuda_impls_conv[] = {
    /* clang-format off */
    ROWS(conv1d) ROWS(conv2d) ROWS(conv3d) ROWS(conv_transpose1d) ROWS(conv_transpose2d)
    /* clang-format on */
    {0},
};
