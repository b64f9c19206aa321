/* miopen_conv.c: convolutions and their gradients by MIOpen, in immediate mode: it is asked for its solutions once, the
 * first that suits is compiled and kept. wk_tune has MIOpen measure them, and its solutions are the call's variants.
 *
 * As in ops/conv.h there are three computations: a transposed convolution is the gradient by the input of a plain one,
 * so no other mode than the plain one is used. A 1-D convolution has a height of 1. */
#include "dnn.h"
#include "gpu/blas.h"
#include "gpu/conv.h"
#include "gpu/families.h"
#include "ops/conv.h"

typedef struct {
    wk_conv_geometry g;
    wk_conv_way way;
    bool no_gemm; /* rocBLAS has no kernels for this device and would end the process */
    int dims;
    int64_t image_shape[5], map_shape[5], weight_shape[5];
    const wk_tensor *image, *map, *weight; /* that which is computed among them */
    uint64_t variant;                      /* the solution to take; 0: the first that suits */
} work;

static const char *refuse(const wk_call *c)
{
    wk_conv_geometry g;
    const char *why = wk_dnn_refuse(c, WK_DNN_REALS);
    if (why)
        return why;
    if (wk_conv_geometry_of(c, &g) != WK_OK)
        return "sizes";
    for (int d = 0; d < 3; d++) {
        int64_t reach = (g.kernel[d] - 1) * g.dilation[d] + 1, padded = g.image[d] + 2 * g.padding[d];
        if (padded > INT32_MAX || reach > INT32_MAX)
            return "sizes of 2^31 and more";
        if ((padded - reach) / g.stride[d] + 1 != g.map[d])
            return "MIOpen takes no output_padding of a stride and more";
    }
    return NULL;
}

/* ---- set-up ---- */

static miopenStatus_t destroy(wk_dnn_plan *p) { return wk_miopen.miopenDestroyConvolutionDescriptor(p->op); }

enum { T_IMAGE, T_MAP, T_WEIGHT };

/* The tensors of a computation in the order MIOpen takes them: two inputs and the result. */
static const unsigned char order[WK_CONV_WAYS][3] = {
    [WK_CONV_TO_MAP] = {T_WEIGHT, T_IMAGE, T_MAP},
    [WK_CONV_TO_IMAGE] = {T_MAP, T_WEIGHT, T_IMAGE},
    [WK_CONV_TO_WEIGHT] = {T_MAP, T_IMAGE, T_WEIGHT},
};

static miopenStatus_t describe(wk_dnn_plan *p, const work *w)
{
    int lead = 3 - w->dims, padding[3], stride[3], dilation[3];
    for (int d = 0; d < w->dims; d++) {
        padding[d] = (int)w->g.padding[lead + d];
        stride[d] = (int)w->g.stride[lead + d];
        dilation[d] = (int)w->g.dilation[lead + d];
    }
    wk_dtype t = w->image->dtype;
    WK_DNN_TRY(wk_dnn_tensor(p, T_IMAGE, t, w->dims + 2, w->image_shape));
    WK_DNN_TRY(wk_dnn_tensor(p, T_MAP, t, w->dims + 2, w->map_shape));
    WK_DNN_TRY(wk_dnn_tensor(p, T_WEIGHT, t, w->dims + 2, w->weight_shape));
    miopenConvolutionDescriptor_t conv;
    WK_DNN_TRY(wk_miopen.miopenCreateConvolutionDescriptor(&conv));
    p->op = conv;
    p->destroy = destroy;
    WK_DNN_TRY(wk_miopen.miopenInitConvolutionNdDescriptor(conv, w->dims, padding, stride, dilation,
                                                           miopenConvolution));
    WK_DNN_TRY(wk_miopen.miopenSetConvolutionGroupCount(conv, (int)w->g.groups));
    /* Else gradients of f16 are computed in bf16 on some devices. */
    WK_DNN_TRY(wk_miopen.miopenSetConvolutionAttribute(conv, MIOPEN_CONVOLUTION_ATTRIB_FP16_ALT_IMPL, 0));
    return wk_miopen.miopenSetConvolutionAttribute(conv, MIOPEN_CONVOLUTION_ATTRIB_DETERMINISTIC, 1);
}

/* Whether GEMM gives sums in pieces that are rounded before they are added up: of a data gradient one for each tap, of a
 * weight gradient one for each image. */
static bool rounds_pieces(const work *w)
{
    const int64_t *k = w->g.kernel;
    int64_t pieces = w->way == WK_CONV_TO_IMAGE    ? k[0] * k[1] * k[2]
                     : w->way == WK_CONV_TO_WEIGHT ? w->image_shape[0]
                                                   : 1;
    return w->image->dtype != WK_F32 && pieces > 1;
}

/* MIOpen's naive loops have these numbers in every version (its databases keep them); wick's kernels are faster. Its
 * gradients through GEMM lose the bits that wick promises for f16 and bf16. */
static bool passed_over(const work *w, const miopenConvSolution_t *s)
{
    enum { NAIVE_FIRST = 85, NAIVE_LAST = 87 };
    bool naive = s->solution_id >= NAIVE_FIRST && s->solution_id <= NAIVE_LAST;
    bool gemm = s->algorithm == miopenConvolutionAlgoGEMM;
    bool other = w->variant && s->solution_id != w->variant;
    return naive || other || (gemm && (w->no_gemm || rounds_pieces(w))) ||
           s->workspace_size > wk_workspace_most();
}

enum { SOLUTIONS = 64 };

/* The fastest first, as far as MIOpen knows. */
static miopenStatus_t list_solutions(miopenHandle_t h, const wk_dnn_plan *p, const work *w,
                                     miopenConvSolution_t found[SOLUTIONS], size_t *n)
{
    static const __typeof__(wk_miopen.miopenConvolutionForwardGetSolution) *const calls[WK_CONV_WAYS] = {
        [WK_CONV_TO_MAP] = &wk_miopen.miopenConvolutionForwardGetSolution,
        [WK_CONV_TO_IMAGE] = &wk_miopen.miopenConvolutionBackwardDataGetSolution,
        [WK_CONV_TO_WEIGHT] = &wk_miopen.miopenConvolutionBackwardWeightsGetSolution,
    };
    const unsigned char *o = order[w->way];
    *n = 0;
    return (*calls[w->way])(h, p->tensor[o[0]], p->tensor[o[1]], p->op, p->tensor[o[2]], SOLUTIONS, n, found);
}

static miopenStatus_t set_up(miopenHandle_t h, wk_dnn_plan *p, const void *data)
{
    static const __typeof__(wk_miopen.miopenConvolutionForwardCompileSolution) *const compile[WK_CONV_WAYS] =
        {
            [WK_CONV_TO_MAP] = &wk_miopen.miopenConvolutionForwardCompileSolution,
            [WK_CONV_TO_IMAGE] = &wk_miopen.miopenConvolutionBackwardDataCompileSolution,
            [WK_CONV_TO_WEIGHT] = &wk_miopen.miopenConvolutionBackwardWeightsCompileSolution,
        };
    const work *w = data;
    miopenConvSolution_t found[SOLUTIONS];
    size_t n;
    WK_DNN_TRY(describe(p, w));
    const unsigned char *o = order[w->way];
    WK_DNN_TRY(list_solutions(h, p, w, found, &n));
    for (size_t i = 0; i < n; i++) {
        if (passed_over(w, &found[i]) ||
            (*compile[w->way])(h, p->tensor[o[0]], p->tensor[o[1]], p->op, p->tensor[o[2]],
                               found[i].solution_id) != miopenStatusSuccess)
            continue;
        p->solution = found[i].solution_id;
        p->workspace = found[i].workspace_size;
        return miopenStatusSuccess;
    }
    return miopenStatusNotImplemented;
}

static miopenStatus_t queue(miopenHandle_t h, const wk_dnn_plan *p, void *workspace, const void *data)
{
    static const __typeof__(wk_miopen.miopenConvolutionForwardImmediate) *const calls[WK_CONV_WAYS] = {
        [WK_CONV_TO_MAP] = &wk_miopen.miopenConvolutionForwardImmediate,
        [WK_CONV_TO_IMAGE] = &wk_miopen.miopenConvolutionBackwardDataImmediate,
        [WK_CONV_TO_WEIGHT] = &wk_miopen.miopenConvolutionBackwardWeightsImmediate,
    };
    const work *w = data;
    const wk_tensor *tensors[] = {[T_IMAGE] = w->image, [T_MAP] = w->map, [T_WEIGHT] = w->weight};
    const unsigned char *o = order[w->way];
    return (*calls[w->way])(h, p->tensor[o[0]], wk_ptr(tensors[o[0]]), p->tensor[o[1]], wk_ptr(tensors[o[1]]),
                            p->op, p->tensor[o[2]], wk_ptr(tensors[o[2]]), workspace, p->workspace,
                            p->solution);
}

/* ---- calls ---- */

static void fill_shapes(work *w, int dims)
{
    const wk_conv_geometry *g = &w->g;
    w->dims = dims < 2 ? 2 : dims;
    int64_t *shapes[] = {w->image_shape, w->map_shape, w->weight_shape};
    const int64_t heads[][2] = {
        {g->n, g->image_channels}, {g->n, g->map_channels}, {g->map_channels, g->image_channels / g->groups}};
    const int64_t *sizes[] = {g->image, g->map, g->kernel};
    for (int i = 0; i < 3; i++) {
        memcpy(shapes[i], heads[i], sizeof heads[i]);
        memcpy(shapes[i] + 2, sizes[i] + 3 - w->dims, (size_t)w->dims * sizeof(int64_t));
    }
}

static void fill_key(wk_dnn_call *d, const work *w)
{
    wk_key_add(&d->key, (int64_t)w->variant);
    wk_key_add(&d->key, w->g.groups);
    wk_key_shape(&d->key, w->dims + 2, w->image_shape);
    wk_key_shape(&d->key, w->dims + 2, w->weight_shape);
    wk_key_shape(&d->key, w->dims + 2, w->map_shape);
    wk_key_shape(&d->key, 3, w->g.stride);
    wk_key_shape(&d->key, 3, w->g.padding);
    wk_key_shape(&d->key, 3, w->g.dilation);
}

static wk_status start(const wk_call *c, work *w)
{
    *w = (work){.no_gemm = wk_rocblas.missing(wk_gpu_of(c->device)) != NULL, .variant = c->variant};
    WK_TRY(wk_conv_geometry_of(c, &w->g));
    w->way = wk_conv_way_of(&w->g);
    fill_shapes(w, c->in[0]->rank - 2);
    const wk_tensor *first = wk_tensor_packed(c->in[0]), *second = first ? wk_tensor_packed(c->in[1]) : NULL;
    if (!second)
        return wk_error_status();
    if (w->way == WK_CONV_TO_WEIGHT) {
        w->image = w->g.transposed ? second : first;
        w->map = w->g.transposed ? first : second;
        w->weight = c->out[0];
    } else {
        w->image = w->way == WK_CONV_TO_MAP ? first : c->out[0];
        w->map = w->way == WK_CONV_TO_MAP ? c->out[0] : first;
        w->weight = second;
    }
    return WK_OK;
}

static wk_status run(wk_call *c)
{
    work w;
    WK_TRY(start(c, &w));
    wk_dnn_call d = {.call = c, .set_up = set_up, .run = queue, .data = &w};
    fill_key(&d, &w);
    WK_TRY(wk_dnn_run(&d));
    return w.g.role == WK_CONV_FORWARD && c->in[2] ? wk_conv_add_bias(c) : WK_OK;
}

static wk_status run_weight(wk_call *c)
{
    if (c->out[0])
        WK_TRY(run(c));
    return c->out[1] ? wk_conv_bias_gradient(c) : WK_OK;
}

/* ---- search ---- */

typedef struct {
    work w;
    size_t workspace; /* the most that may be used */
    uint64_t *list;
    int room, *n;
} hunt;

static miopenStatus_t set_up_search(miopenHandle_t h, wk_dnn_plan *p, const void *data)
{
    static const __typeof__(wk_miopen.miopenConvolutionForwardGetWorkSpaceSize) *const calls[WK_CONV_WAYS] = {
        [WK_CONV_TO_MAP] = &wk_miopen.miopenConvolutionForwardGetWorkSpaceSize,
        [WK_CONV_TO_IMAGE] = &wk_miopen.miopenConvolutionBackwardDataGetWorkSpaceSize,
        [WK_CONV_TO_WEIGHT] = &wk_miopen.miopenConvolutionBackwardWeightsGetWorkSpaceSize,
    };
    const hunt *s = data;
    WK_DNN_TRY(describe(p, &s->w));
    const unsigned char *o = order[s->w.way];
    WK_DNN_TRY(
        (*calls[s->w.way])(h, p->tensor[o[0]], p->tensor[o[1]], p->op, p->tensor[o[2]], &p->workspace));
    p->workspace = p->workspace < s->workspace ? p->workspace : s->workspace;
    return miopenStatusSuccess;
}

/* MIOpen measures what it has, in its own order of tensors (x before w, unlike elsewhere), and knows the times from then
 * on. */
static miopenStatus_t measure(miopenHandle_t h, const wk_dnn_plan *p, void *workspace, const work *w)
{
    static const __typeof__(wk_miopen.miopenFindConvolutionForwardAlgorithm) *const calls[WK_CONV_WAYS] = {
        [WK_CONV_TO_MAP] = &wk_miopen.miopenFindConvolutionForwardAlgorithm,
        [WK_CONV_TO_IMAGE] = &wk_miopen.miopenFindConvolutionBackwardDataAlgorithm,
        [WK_CONV_TO_WEIGHT] = &wk_miopen.miopenFindConvolutionBackwardWeightsAlgorithm,
    };
    enum { ALGORITHMS = 8 };
    const wk_tensor *tensors[] = {[T_IMAGE] = w->image, [T_MAP] = w->map, [T_WEIGHT] = w->weight};
    miopenConvAlgoPerf_t times[ALGORITHMS];
    int n = 0, first = order[w->way][0], second = order[w->way][1], y = order[w->way][2];
    if (w->way == WK_CONV_TO_MAP) {
        first = T_IMAGE;
        second = T_WEIGHT;
    }
    return (*calls[w->way])(h, p->tensor[first], wk_ptr(tensors[first]), p->tensor[second],
                            wk_ptr(tensors[second]), p->op, p->tensor[y], wk_ptr(tensors[y]), ALGORITHMS, &n,
                            times, workspace, p->workspace, false);
}

static miopenStatus_t search(miopenHandle_t h, const wk_dnn_plan *p, void *workspace, const void *data)
{
    const hunt *s = data;
    miopenConvSolution_t found[SOLUTIONS];
    size_t n;
    WK_DNN_TRY(measure(h, p, workspace, &s->w));
    WK_DNN_TRY(list_solutions(h, p, &s->w, found, &n));
    for (size_t i = 0; i < n && *s->n < s->room; i++) {
        if (!passed_over(&s->w, &found[i]) && found[i].workspace_size <= s->workspace)
            s->list[(*s->n)++] = found[i].solution_id;
    }
    return miopenStatusSuccess;
}

int wk_miopen_variants(wk_call *c, size_t workspace, uint64_t *list, int room)
{
    int n = 0;
    hunt s = {.workspace = workspace, .list = list, .room = room, .n = &n};
    if (c->impl->refuse != refuse || !c->out[0] || start(c, &s.w) != WK_OK)
        return 0;
    wk_dnn_call d = {.call = c, .set_up = set_up_search, .run = search, .data = &s};
    fill_key(&d, &s.w);
    wk_key_add(&d.key, (int64_t)workspace);
    return wk_dnn_run(&d) == WK_OK ? n : 0;
}

#define ROWS(name) \
    {#name, "miopen", run, refuse, NULL}, {#name "_backward_data", "miopen", run, refuse, NULL}, \
        {#name "_backward_weight", "miopen", run_weight, refuse, NULL},

const wk_impl wk_rocm_impls_conv[] = {
    /* clang-format off */
    ROWS(conv1d) ROWS(conv2d) ROWS(conv3d) ROWS(conv_transpose1d) ROWS(conv_transpose2d)
    /* clang-format on */
    {0},
};
