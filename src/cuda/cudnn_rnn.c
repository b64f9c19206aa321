/* cudnn_rnn.c: recurrent layers and their gradients by cuDNN.
 *
 * cuDNN keeps all weights in one block, in PyTorch's order of gates: they are copied there before each call. Its own
 * reserve is no use to wick's kernels, nor theirs to it: a forward that makes one, and a gradient that was given one, are
 * theirs. Lengths are fetched to the host, where it wants them: calls that are short beside the waiting are wick's too.
 *
 * With f16 and bf16 cuDNN would round gates and states at every step. They are computed in f32, on the tensor cores: tf32
 * holds every f16 and bf16, so that only the states lose bits, and only as factors; too many for gradients of f16. cuDNN may
 * turn what was f16 into f16 again for the products, which have the same digits and run twice as fast, where a step's
 * result is a factor and nothing else (a GRU carries it on). Where fast products are allowed they are left to cuDNN as they are. */
#include "core/memory.h"
#include "cudnn_plan.h"
#include "gpu/families.h"
#include "gpu/vendor_ops.h"
#include "ops/rnn.h"
#include "ops/unary.h"
#include "wick/ops.h"

/* The workspace is cut into parts. */
enum { PART_WORK, PART_RESERVE, PARTS };

typedef struct {
    const wk_call *call;
    const wk_rnn_options *p;
    wk_rnn_sizes s;
    wk_dtype dtype; /* that cuDNN sees */
    bool backward, cores;
    const wk_tensor *x, *h0, *c0, *dy, *dhn, *dcn;
    wk_tensor *block, *dblock; /* all weights as cuDNN keeps them, and their gradients */
    int *full, *lengths;       /* of each sequence: all steps; those that count */
    wk_tensor *y, *hn, *cn, *dx, *dh0, *dc0;
    const wk_cudnn_plan *plan;
    char *part[PARTS];
} work;

/* Kept with the plan. */
typedef struct {
    cudnnRNNDescriptor_t rnn;
    cudnnDropoutDescriptor_t none;
    cudnnRNNDataDescriptor_t x, y;
    wk_cudnn_replay replay;
    size_t part[PARTS], weights; /* bytes, weights: of the block */
    int64_t offset[];            /* in elements, of each tensor of the tail */
} layers;

enum { T_STATE, T_MATRIX, T_BIAS };

/* Whether to fetch the lengths is little beside the rest. */
static bool is_long(const wk_call *c)
{
    wk_rnn_sizes s = wk_rnn_sizes_of(c);
    double weights = (double)(s.layers * s.dirs * s.gates * s.hidden) * (double)(s.in + s.hidden);
    return strcmp(wk_forced_impl(), "cudnn") == 0 || weights * (double)s.t * (double)s.b > 1e10;
}

static const char *refuse(const wk_call *c)
{
    const wk_rnn_options *p = c->params;
    if (c->in[WK_RNN_LENGTHS] && (!is_long(c) || c->device->table->capturing(c->device)))
        return "cuDNN takes lengths from the host, which would have to wait";
    if (p->training && p->dropout > 0)
        return "cuDNN's dropout draws other numbers than wick's";
    if (wk_op_inputs(c->op) > WK_RNN_DY ? c->in[WK_RNN_RESERVE] != NULL : (c->want >> 3 & 1))
        return "cuDNN's reserve has another order";
    return wk_cudnn_refuse(c, WK_FLOATS);
}

/* ---- set-up ---- */

static void destroy(wk_cudnn_plan *p)
{
    layers *l = p->op;
    wk_cudnn_replay_free(&l->replay);
    if (l->rnn)
        wk_cudnn.cudnnDestroyRNNDescriptor(l->rnn);
    if (l->none)
        wk_cudnn.cudnnDestroyDropoutDescriptor(l->none);
    if (l->x)
        wk_cudnn.cudnnDestroyRNNDataDescriptor(l->x);
    if (l->y)
        wk_cudnn.cudnnDestroyRNNDataDescriptor(l->y);
    wk_free(l);
}

static bool padded(const work *w) { return w->call->in[WK_RNN_LENGTHS] != NULL; }

static cudnnMathType_t math_of(const work *w)
{
    bool factor_only = w->p->mode == WK_LSTM || w->p->mode == WK_RNN_TANH;
    if (!w->cores)
        return CUDNN_FMA_MATH;
    if (w->dtype != WK_F32)
        return CUDNN_TENSOR_OP_MATH;
    return w->call->dtype == WK_F16 && factor_only ? CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION
                                                   : CUDNN_DEFAULT_MATH;
}

static void describe(cudnnHandle_t h, wk_cudnn_plan *p, layers *l, const work *w)
{
    static const cudnnRNNMode_t modes[] = {[WK_LSTM] = CUDNN_LSTM,
                                           [WK_GRU] = CUDNN_GRU,
                                           [WK_RNN_RELU] = CUDNN_RNN_RELU,
                                           [WK_RNN_TANH] = CUDNN_RNN_TANH};
    const wk_rnn_sizes *s = &w->s;
    wk_dtype t = w->dtype;
    if (wk_cudnn_ok(p, wk_cudnn.cudnnCreateDropoutDescriptor(&l->none), "dropout"))
        wk_cudnn_ok(p, wk_cudnn.cudnnSetDropoutDescriptor(l->none, h, 0, NULL, 0, 0), "dropout");
    if (wk_cudnn_ok(p, wk_cudnn.cudnnCreateRNNDescriptor(&l->rnn), "the layers"))
        wk_cudnn_ok(p,
                    wk_cudnn.cudnnSetRNNDescriptor_v8(
                        l->rnn, CUDNN_RNN_ALGO_STANDARD, modes[w->p->mode],
                        s->per == 4 ? CUDNN_RNN_DOUBLE_BIAS : CUDNN_RNN_NO_BIAS,
                        s->dirs == 2 ? CUDNN_BIDIRECTIONAL : CUDNN_UNIDIRECTIONAL, CUDNN_LINEAR_INPUT,
                        wk_cudnn_dtype(t), wk_cudnn_compute(t), math_of(w), (int32_t)s->in,
                        (int32_t)s->hidden, (int32_t)s->hidden, (int32_t)s->layers, l->none,
                        padded(w) ? CUDNN_RNN_PADDED_IO_ENABLED : 0),
                    "the layers");
    wk_cudnn_packed(p, T_STATE, t, 3, (int64_t[]){s->layers * s->dirs, s->b, s->hidden});
    for (int i = T_MATRIX; i <= T_BIAS; i++)
        wk_cudnn_ok(p, wk_cudnn.cudnnCreateTensorDescriptor(&p->tensor[i]), "a tensor");
}

/* Sequences of these lengths; y is 0 behind them. */
static cudnnStatus_t set_lengths(cudnnRNNDataDescriptor_t d, const work *w, int64_t width, const int *lengths)
{
    double zero = 0; /* of any dtype */
    return wk_cudnn.cudnnSetRNNDataDescriptor(d, wk_cudnn_dtype(w->dtype),
                                              padded(w) ? CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED
                                                        : CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED,
                                              (int)w->s.t, (int)w->s.b, (int)width, lengths, &zero);
}

static cudnnStatus_t set_all_lengths(const layers *l, const work *w, const int *lengths)
{
    cudnnStatus_t status = set_lengths(l->x, w, w->s.in, lengths);
    return status == CUDNN_STATUS_SUCCESS ? set_lengths(l->y, w, w->s.dirs * w->s.hidden, lengths) : status;
}

/* Where each tensor lies in cuDNN's block: its gates one behind the other, which is looked at. */
static void find_offsets(cudnnHandle_t h, wk_cudnn_plan *p, layers *l, const work *w)
{
    const wk_rnn_sizes *s = &w->s;
    char *const base = (char *)4096; /* only counted from */
    for (int i = 0; i < w->call->n_tail && p->status == CUDNN_STATUS_SUCCESS; i++) {
        int layer = i / s->per, which = i % s->per; /* both directions count as layers */
        for (int g = 0; g < s->gates; g++) {
            int id = g + (which % 2 ? (int)s->gates : 0);
            void *matrix = NULL, *bias = NULL;
            if (!wk_cudnn_ok(p,
                             wk_cudnn.cudnnGetRNNWeightParams(h, l->rnn, layer, l->weights, base, id,
                                                              p->tensor[T_MATRIX], &matrix, p->tensor[T_BIAS],
                                                              &bias),
                             "the place of a weight"))
                return;
            int64_t at = ((char *)(which < WK_RNN_B_IH ? matrix : bias) - base) / (int64_t)wk_bytes(w->dtype);
            if (g == 0)
                l->offset[i] = at;
            else if (at != l->offset[i] + g * (wk_count(w->call->tail[i]) / s->gates))
                wk_cudnn_give_up(p, "gates lie apart");
        }
    }
}

static void set_up(cudnnHandle_t h, wk_cudnn_plan *p, const void *data)
{
    const work *w = data;
    layers *l;
    size_t bytes = sizeof *l + (size_t)w->call->n_tail * sizeof *l->offset;
    l = wk_alloc(bytes);
    if (!l) {
        wk_cudnn_ok(p, CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED, "the layers");
        return;
    }
    memset(l, 0, bytes);
    p->op = l;
    p->destroy = destroy;
    describe(h, p, l, w);
    wk_cudnn_ok(p, wk_cudnn.cudnnCreateRNNDataDescriptor(&l->x), "a sequence");
    wk_cudnn_ok(p, wk_cudnn.cudnnCreateRNNDataDescriptor(&l->y), "a sequence");
    if (p->status != CUDNN_STATUS_SUCCESS || !wk_cudnn_ok(p, set_all_lengths(l, w, w->full), "a sequence"))
        return; /* memory is asked for with all lengths full: other calls of the plan have other lengths */
    cudnnForwardMode_t mode = w->backward ? CUDNN_FWD_MODE_TRAINING : CUDNN_FWD_MODE_INFERENCE;
    wk_cudnn_ok(p,
                wk_cudnn.cudnnGetRNNTempSpaceSizes(h, l->rnn, mode, l->x, &l->part[PART_WORK],
                                                   &l->part[PART_RESERVE]),
                "the size of the workspace");
    wk_cudnn_ok(p, wk_cudnn.cudnnGetRNNWeightSpaceSize(h, l->rnn, &l->weights), "the size of the weights");
    if (l->weights > (size_t)wk_count(w->block) * wk_bytes(w->dtype))
        wk_cudnn_give_up(p, "weights lie apart");
    for (int i = 0; i < PARTS; i++)
        p->workspace += (l->part[i] + 255) / 256 * 256;
    find_offsets(h, p, l, w);
}

/* ---- running ---- */

static void *at(const wk_tensor *t) { return t ? wk_ptr(t) : NULL; }

static wk_status store(const wk_tensor *from, wk_tensor *to)
{
    wk_cast_params p = {.dtype = to ? to->dtype : 0};
    if (!to || from == to)
        return WK_OK;
    return wk_call_run(&(wk_call){.op = wk_op_find("cast"), .params = &p, .in = {from}, .out = {to}});
}

/* Brings all tensors into the block, or the gradients out of theirs. */
static cudnnStatus_t move_weights(const work *w, const layers *l, bool out)
{
    const wk_call *c = w->call;
    wk_status status = WK_OK;
    for (int i = 0; i < c->n_tail && status == WK_OK; i++) {
        wk_tensor inside = wk_tensor_local(out ? w->dblock : w->block);
        inside.rank = c->tail[i]->rank;
        inside.offset += l->offset[i];
        memcpy(inside.shape, c->tail[i]->shape, sizeof inside.shape);
        wk_shape_strides(inside.rank, inside.shape, inside.strides);
        if (!out)
            status = store(c->tail[i], &inside);
        else if (c->tail_out && c->tail_out[i])
            status = store(&inside, c->tail_out[i]);
    }
    return status == WK_OK ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_EXECUTION_FAILED;
}

static cudnnStatus_t queue_gradients(cudnnHandle_t h, const work *w)
{
    const layers *l = w->plan->op;
    cudnnTensorDescriptor_t state = w->plan->tensor[T_STATE];
    cudnnStatus_t status = wk_cudnn.cudnnRNNBackwardData_v8(
        h, l->rnn, NULL, l->y, at(w->y), at(w->dy), l->x, at(w->dx), state, at(w->h0), at(w->dhn), at(w->dh0),
        state, at(w->c0), at(w->dcn), at(w->dc0), l->weights, at(w->block), l->part[PART_WORK],
        w->part[PART_WORK], l->part[PART_RESERVE], w->part[PART_RESERVE]);
    if (status != CUDNN_STATUS_SUCCESS)
        return status;
    return wk_cudnn.cudnnRNNBackwardWeights_v8(
        h, l->rnn, CUDNN_WGRAD_MODE_ADD, NULL, l->x, at(w->x), state, at(w->h0), l->y, at(w->y), l->weights,
        at(w->dblock), l->part[PART_WORK], w->part[PART_WORK], l->part[PART_RESERVE], w->part[PART_RESERVE]);
}

static cudnnStatus_t queue_steps(cudnnHandle_t h, const void *data)
{
    const work *w = data;
    const layers *l = w->plan->op;
    cudnnTensorDescriptor_t state = w->plan->tensor[T_STATE];
    cudnnStatus_t status = wk_cudnn.cudnnRNNForward(
        h, l->rnn, w->backward ? CUDNN_FWD_MODE_TRAINING : CUDNN_FWD_MODE_INFERENCE, NULL, l->x, at(w->x),
        l->y, at(w->y), state, at(w->h0), at(w->hn), state, at(w->c0), at(w->cn), l->weights, at(w->block),
        l->part[PART_WORK], w->part[PART_WORK], l->part[PART_RESERVE], w->part[PART_RESERVE]);
    return status == CUDNN_STATUS_SUCCESS && w->backward ? queue_gradients(h, w) : status;
}

/* Whether the host may need longer to launch a step than the GPU for its products; else a replay is no faster. */
static bool launches_count(const work *w)
{
    const wk_rnn_sizes *s = &w->s;
    return w->cores || (double)(s->b * s->gates) * (double)(s->hidden * s->hidden) < 1e8;
}

/* Lengths are the host's, and not the same in the next call. */
static cudnnStatus_t run_steps(cudnnHandle_t h, layers *l, const work *w)
{
    void *const places[WK_CUDNN_PLACES] = {
        at(w->x),     at(w->h0),     at(w->c0),          at(w->dy),
        at(w->dhn),   at(w->dcn),    at(w->y),           at(w->hn),
        at(w->cn),    at(w->dx),     at(w->dh0),         at(w->dc0),
        at(w->block), at(w->dblock), w->part[PART_WORK], w->part[PART_RESERVE]};
    cudnnStatus_t status = padded(w) ? set_all_lengths(l, w, w->lengths) : CUDNN_STATUS_SUCCESS;
    if (status != CUDNN_STATUS_SUCCESS)
        return status;
    if (padded(w) || !launches_count(w))
        return queue_steps(h, w);
    return wk_cudnn_replayed(h, &l->replay, w->call, places, queue_steps, w);
}

static cudnnStatus_t queue(cudnnHandle_t h, const wk_cudnn_plan *p, void *workspace, const void *data)
{
    work w = *(const work *)data;
    layers *l = p->op;
    wk_gpu *g = wk_gpu_of(w.call->device);
    char *next = workspace;
    w.plan = p;
    for (int i = 0; i < PARTS; i++) {
        w.part[i] = l->part[i] ? next : NULL;
        next += (l->part[i] + 255) / 256 * 256;
    }
    /* Gradients are added to what is there. */
    if (w.backward && g->driver->fill(at(w.dblock), 0, l->weights, wk_gpu_stream_handle(g)))
        return CUDNN_STATUS_EXECUTION_FAILED;
    cudnnStatus_t status = move_weights(&w, l, false);
    if (status == CUDNN_STATUS_SUCCESS)
        status = run_steps(h, l, &w);
    return status == CUDNN_STATUS_SUCCESS && w.backward ? move_weights(&w, l, true) : status;
}

/* ---- calls ---- */

/* t packed, in the dtype that cuDNN sees. */
static const wk_tensor *values(const work *w, const wk_tensor *t)
{
    return !t ? NULL : t->dtype == w->dtype ? wk_tensor_packed(t) : wk_cast(t, w->dtype);
}

/* Where a result goes: t itself, or a temporary in cuDNN's dtype. */
static wk_tensor *place(const work *w, wk_tensor *t)
{
    return !t || t->dtype == w->dtype ? t : wk_tensor_new(w->call->device, w->dtype, t->rank, t->shape);
}

/* A result of this shape that nobody asked for. */
static wk_tensor *or_new(const work *w, wk_tensor *t, const int64_t shape[3])
{
    return t ? place(w, t) : wk_tensor_new(w->call->device, w->dtype, 3, shape);
}

static wk_status run_with(work *w)
{
    const wk_call *c = w->call;
    const wk_rnn_sizes *s = &w->s;
    enum { GAP = 64 }; /* room for aligned starts */
    int64_t count = 0;
    for (int i = 0; i < c->n_tail; i++)
        count += wk_count(c->tail[i]) + GAP;
    w->block = wk_tensor_new(c->device, w->dtype, 1, &count);
    w->dblock = w->backward ? wk_tensor_new(c->device, w->dtype, 1, &count) : NULL;
    for (int64_t i = 0; i < s->b; i++)
        w->full[i] = (int)s->t;
    if (padded(w) && !wk_pending())
        WK_TRY(wk_vendor_lengths(c, "cuDNN", 0, w->lengths));
    if (wk_pending())
        return wk_error_status();
    wk_cudnn_call d = {.call = c, .set_up = set_up, .run = queue, .data = w};
    wk_key_shape(&d.key, 11,
                 (int64_t[]){s->t, s->b, s->in, s->hidden, s->layers, s->dirs, s->per, w->p->mode, w->dtype,
                             w->cores, padded(w)});
    return wk_cudnn_run(&d);
}

static wk_status run_work(work *w)
{
    w->full = wk_alloc(2 * (size_t)w->s.b * sizeof *w->full);
    w->lengths = w->full ? w->full + w->s.b : NULL;
    wk_status status = w->full ? run_with(w) : wk_fail(WK_ERR_MEMORY, "cuDNN: out of memory");
    wk_free(w->full);
    return status;
}

static void start(wk_call *c, work *w, bool backward)
{
    bool half = wk_bytes(c->dtype) == 2, fast = wk_matmul_precision() == WK_PRECISION_FAST;
    bool coarse = c->dtype == WK_BF16 || (c->dtype == WK_F16 && !backward);
    *w = (work){.call = c,
                .p = c->params,
                .s = wk_rnn_sizes_of(c),
                .dtype = half && !fast ? WK_F32 : c->dtype,
                .backward = backward,
                .cores = coarse || (fast && c->dtype != WK_F64)};
    w->x = values(w, c->in[WK_RNN_X]);
    w->h0 = values(w, c->in[WK_RNN_H0]);
    w->c0 = w->p->mode == WK_LSTM ? values(w, c->in[WK_RNN_C0]) : NULL;
}

static wk_status run(wk_call *c)
{
    work w;
    start(c, &w, false);
    w.y = or_new(&w, c->out[0], (int64_t[]){w.s.t, w.s.b, w.s.dirs * w.s.hidden});
    w.hn = place(&w, c->out[1]);
    w.cn = place(&w, c->out[2]);
    WK_TRY(run_work(&w));
    WK_TRY(store(w.y, c->out[0]));
    WK_TRY(store(w.hn, c->out[1]));
    return store(w.cn, c->out[2]);
}

static wk_status run_backward(wk_call *c)
{
    work w;
    start(c, &w, true);
    w.y = or_new(&w, NULL, (int64_t[]){w.s.t, w.s.b, w.s.dirs * w.s.hidden});
    w.dy = values(&w, c->in[WK_RNN_DY]);
    w.dhn = values(&w, c->in[WK_RNN_DHN]);
    w.dcn = values(&w, c->in[WK_RNN_DCN]);
    w.dx = or_new(&w, c->out[0], c->in[WK_RNN_X]->shape);
    w.dh0 = place(&w, c->out[1]);
    w.dc0 = place(&w, c->out[2]);
    WK_TRY(run_work(&w));
    WK_TRY(store(w.dx, c->out[0]));
    WK_TRY(store(w.dh0, c->out[1]));
    return store(w.dc0, c->out[2]);
}

const wk_impl wk_cuda_impls_rnn[] = {
    {"rnn", "cudnn", run, refuse, NULL},
    {"rnn_backward", "cudnn", run_backward, refuse, NULL},
    {0},
};
