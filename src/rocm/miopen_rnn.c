/* miopen_rnn.c: recurrent layers and their gradients by MIOpen.
 *
 * MIOpen keeps all weights in one block, gate by gate: they are copied there before each call. Its own reserve is no
 * use to wick's kernels, nor theirs to it: a forward that makes one, and a gradient that was given one, are theirs.
 * Lengths are fetched to the host, where it wants them: the device is waited for. What is theirs, or has to wait, is done by
 * MIOpen where it is forced only; the gradient then works out the forward again. */
#include "core/memory.h"
#include "dnn.h"
#include "gpu/blas.h"
#include "gpu/families.h"
#include "gpu/vendor_ops.h"
#include "miopen_rnn.h"
#include "ops/rnn.h"
#include "wick/ops.h"

typedef struct {
    const wk_call *call;
    const wk_rnn_options *p;
    wk_rnn_sizes s;
    bool backward;
    const wk_tensor *x, *h0, *c0, *dy, *dhn, *dcn;
    const wk_tensor **weights; /* packed */
    int *lengths;              /* of each sequence; NULL: all are full */
    wk_tensor *y, *hn, *cn, *dx, *dh0, *dc0;
} work;

/* Kept with the plan. The workspace is cut into parts, each of these many bytes. */
enum { PART_WORK, PART_RESERVE, PART_WEIGHTS, PART_GRADIENTS, PARTS };
typedef struct {
    miopenSeqTensorDescriptor_t x, y;
    size_t part[PARTS];
    size_t offset[]; /* in elements, of each gate of each tensor of the tail */
} extra;

enum { T_STEP, T_STATE, T_SCRATCH };

/* Who gives a reserve has trained. */
static bool drops(const wk_call *c)
{
    const wk_rnn_options *p = c->params;
    return p->dropout > 0 && p->layers > 1 && (p->training || c->in[WK_RNN_RESERVE]);
}

static const char *refuse(const wk_call *c)
{
    bool forced = strcmp(wk_forced_impl(), "miopen") == 0, backward = wk_op_inputs(c->op) > WK_RNN_DY;
    if (c->in[WK_RNN_LENGTHS] && (!forced || c->device->table->capturing(c->device)))
        return "MIOpen takes lengths from the host, which would have to wait";
    if (drops(c) && !forced)
        return "MIOpen drops by masks of its own, and by wick's a layer at a time only";
    if (backward ? c->in[WK_RNN_RESERVE] && !forced : c->want >> 3 & 1)
        return "MIOpen's reserve has another order";
    if (c->dtype == WK_F16)
        return "MIOpen keeps the states of f16 in f16";
    const char *why = wk_dnn_refuse(c, WK_SET(WK_F32));
    return why ? why : wk_rocblas.missing(wk_gpu_of(c->device));
}

/* ---- set-up ---- */

static miopenStatus_t destroy(wk_dnn_plan *p)
{
    extra *e = p->extra;
    if (e && e->x)
        wk_miopen.miopenDestroySeqTensorDescriptor(e->x);
    if (e && e->y)
        wk_miopen.miopenDestroySeqTensorDescriptor(e->y);
    return wk_miopen.miopenDestroyRNNDescriptor(p->op);
}

static miopenStatus_t describe(wk_dnn_plan *p, const work *w)
{
    static const miopenRNNMode_t modes[] = {[WK_LSTM] = miopenLSTM,
                                            [WK_GRU] = miopenGRU,
                                            [WK_RNN_RELU] = miopenRNNRELU,
                                            [WK_RNN_TANH] = miopenRNNTANH};
    const wk_rnn_sizes *s = &w->s;
    wk_dtype t = w->x->dtype;
    miopenRNNDescriptor_t rnn;
    WK_DNN_TRY(wk_miopen.miopenCreateRNNDescriptor(&rnn));
    p->op = rnn;
    p->destroy = destroy;
    WK_DNN_TRY(wk_miopen.miopenSetRNNDescriptor(
        rnn, (int)s->hidden, (int)s->layers, miopenRNNlinear,
        s->dirs == 2 ? miopenRNNbidirection : miopenRNNunidirection, modes[w->p->mode],
        s->per == 4 ? miopenRNNwithBias : miopenRNNNoBias, miopenRNNdefault, wk_dnn_dtype(t)));
    if (w->lengths)
        WK_DNN_TRY(wk_miopen.miopenSetRNNPaddingMode(rnn, miopenRNNIOWithPadding));
    WK_DNN_TRY(wk_dnn_tensor(p, T_STEP, t, 2, (int64_t[]){s->b, s->in}));
    WK_DNN_TRY(wk_dnn_tensor(p, T_STATE, t, 3, (int64_t[]){s->layers * s->dirs, s->b, s->hidden}));
    return wk_dnn_tensor(p, T_SCRATCH, t, 1, (int64_t[]){1});
}

static miopenStatus_t describe_sequence(miopenSeqTensorDescriptor_t *d, const work *w, int64_t width)
{
    int *lengths = wk_alloc((size_t)w->s.b * sizeof *lengths);
    if (!lengths)
        return miopenStatusAllocFailed;
    for (int64_t i = 0; i < w->s.b; i++)
        lengths[i] = w->lengths ? w->lengths[i] : (int)w->s.t;
    miopenStatus_t status = wk_miopen.miopenCreateSeqTensorDescriptor(d);
    if (status == miopenStatusSuccess)
        status = wk_miopen.miopenSetRNNDataSeqTensorDescriptor(
            *d, wk_dnn_dtype(w->x->dtype),
            w->lengths ? miopenRNNDataSeqMajorPadded : miopenRNNDataSeqMajorNotPadded, (int)w->s.t,
            (int)w->s.b, (int)width, lengths, NULL);
    wk_free(lengths);
    return status;
}

/* Where each gate of each tensor lies in MIOpen's block. Its order of gates: LSTM i, f, o, g; GRU z, r, n. */
static miopenStatus_t find_offsets(const wk_dnn_plan *p, const work *w, extra *e)
{
    static const int lstm[] = {0, 1, 3, 2}, gru[] = {1, 0, 2}, plain[] = {0};
    const wk_rnn_sizes *s = &w->s;
    const int *place = w->p->mode == WK_LSTM ? lstm : w->p->mode == WK_GRU ? gru : plain;
    for (int i = 0; i < w->call->n_tail; i++) {
        int layer = i / s->per, which = i % s->per; /* both directions count as layers */
        for (int g = 0; g < s->gates; g++) {
            int id = place[g] + (which % 2 ? (int)s->gates : 0);
            size_t *at = &e->offset[i * s->gates + g];
            miopenTensorDescriptor_t step = p->tensor[T_STEP], scratch = p->tensor[T_SCRATCH];
            WK_DNN_TRY(which < WK_RNN_B_IH
                           ? wk_miopen.miopenGetRNNLayerParamOffset(p->op, layer, step, id, scratch, at)
                           : wk_miopen.miopenGetRNNLayerBiasOffset(p->op, layer, step, id, scratch, at));
        }
    }
    return miopenStatusSuccess;
}

static miopenStatus_t set_up(miopenHandle_t h, wk_dnn_plan *p, const void *data)
{
    const work *w = data;
    WK_DNN_TRY(describe(p, w));
    size_t gates = (size_t)(w->call->n_tail * w->s.gates), bytes = sizeof(extra) + gates * sizeof(size_t);
    extra *e = wk_alloc(bytes);
    if (!e)
        return miopenStatusAllocFailed;
    memset(e, 0, bytes);
    p->extra = e;
    WK_DNN_TRY(describe_sequence(&e->x, w, w->s.in));
    WK_DNN_TRY(describe_sequence(&e->y, w, w->s.dirs * w->s.hidden));
    WK_DNN_TRY(wk_miopen.miopenGetRNNTempSpaceSizes(h, p->op, e->x, miopenRNNTraining, &e->part[PART_WORK],
                                                    &e->part[PART_RESERVE])); /* inference wants both too */
    WK_DNN_TRY(wk_miopen.miopenGetRNNParamsSize(h, p->op, p->tensor[T_STEP], &e->part[PART_WEIGHTS],
                                                wk_dnn_dtype(w->x->dtype)));
    e->part[PART_GRADIENTS] = w->backward ? e->part[PART_WEIGHTS] : 0;
    for (int i = 0; i < PARTS; i++)
        p->workspace += (e->part[i] + 255) / 256 * 256;
    return find_offsets(p, w, e);
}

/* ---- running ---- */

static void *at(const wk_tensor *t) { return t ? wk_ptr(t) : NULL; }

/* Copies the gates of all tensors into the block, or out of it. */
static miopenStatus_t move_weights(const work *w, const extra *e, char *block, bool out)
{
    void *stream = wk_gpu_stream_handle(wk_gpu_of(w->call->device));
    for (int i = 0; i < w->call->n_tail; i++) {
        const wk_tensor *t = out ? (w->call->tail_out ? w->call->tail_out[i] : NULL) : w->weights[i];
        if (!t)
            continue;
        size_t size = wk_bytes(t->dtype), bytes = (size_t)(wk_count(t) / w->s.gates) * size;
        for (int64_t g = 0; g < w->s.gates; g++) {
            char *inside = block + e->offset[i * w->s.gates + g] * size;
            char *outside = (char *)wk_ptr(t) + (size_t)g * bytes;
            if (wk_hip.hipMemcpyAsync(out ? outside : inside, out ? inside : outside, bytes,
                                      hipMemcpyDeviceToDevice, stream))
                return miopenStatusInternalError;
        }
    }
    return miopenStatusSuccess;
}

static miopenStatus_t queue_gradients(miopenHandle_t h, const wk_dnn_plan *p, char *const part[PARTS],
                                      const work *w)
{
    const extra *e = p->extra;
    miopenTensorDescriptor_t state = p->tensor[T_STATE];
    void *stream = wk_gpu_stream_handle(wk_gpu_of(w->call->device));
    WK_DNN_TRY(wk_miopen.miopenRNNBackwardSeqData(
        h, p->op, e->y, at(w->y), at(w->dy), state, at(w->h0), at(w->dhn), at(w->dh0), state, at(w->c0),
        at(w->dcn), at(w->dc0), e->x, at(w->dx), part[PART_WEIGHTS], e->part[PART_WEIGHTS], part[PART_WORK],
        e->part[PART_WORK], part[PART_RESERVE], e->part[PART_RESERVE]));
    /* What it finds there is added to. */
    if (wk_hip.hipMemsetAsync(part[PART_GRADIENTS], 0, e->part[PART_GRADIENTS], stream))
        return miopenStatusInternalError;
    WK_DNN_TRY(wk_miopen.miopenRNNBackwardWeightsSeqTensor(
        h, p->op, e->x, at(w->x), state, at(w->h0), e->y, at(w->y), part[PART_GRADIENTS],
        e->part[PART_GRADIENTS], part[PART_WORK], e->part[PART_WORK], part[PART_RESERVE],
        e->part[PART_RESERVE]));
    return move_weights(w, e, part[PART_GRADIENTS], true);
}

static miopenStatus_t queue(miopenHandle_t h, const wk_dnn_plan *p, void *workspace, const void *data)
{
    const work *w = data;
    const extra *e = p->extra;
    miopenTensorDescriptor_t state = p->tensor[T_STATE];
    char *part[PARTS], *next = workspace;
    for (int i = 0; i < PARTS; i++) {
        part[i] = e->part[i] ? next : NULL;
        next += (e->part[i] + 255) / 256 * 256;
    }
    WK_DNN_TRY(move_weights(w, e, part[PART_WEIGHTS], false));
    WK_DNN_TRY(wk_miopen.miopenRNNForward(
        h, p->op, w->backward ? miopenRNNTraining : miopenRNNInference, e->x, at(w->x), state, at(w->h0),
        at(w->hn), state, at(w->c0), at(w->cn), e->y, at(w->y), part[PART_WEIGHTS], e->part[PART_WEIGHTS],
        part[PART_WORK], e->part[PART_WORK], part[PART_RESERVE], e->part[PART_RESERVE]));
    return w->backward ? queue_gradients(h, p, part, w) : miopenStatusSuccess;
}

/* ---- calls ---- */

static const wk_tensor *packed(const wk_tensor *t) { return t ? wk_tensor_packed(t) : NULL; }

/* A first state that is not there makes MIOpen leave out the biases of the first step. */
static const wk_tensor *or_zeros(const wk_call *c, const wk_tensor *t, const wk_rnn_sizes *s)
{
    int64_t shape[] = {s->layers * s->dirs, s->b, s->hidden};
    return t ? wk_tensor_packed(t) : wk_fill(c->device, c->dtype, 3, shape, 0);
}

static wk_tensor *or_new(const wk_call *c, wk_tensor *t, const int64_t shape[3])
{
    return t ? t : wk_tensor_new(c->device, c->dtype, 3, shape);
}

/* Past the lengths MIOpen writes whatever it finds in its workspace. */
static wk_status clear_past(const work *w, wk_tensor *t)
{
    const wk_call *c = w->call;
    wk_tensor *steps = wk_arange(c->device, WK_F32, 0, (double)w->s.t, 1);
    wk_tensor *ends = wk_cast(c->in[WK_RNN_LENGTHS], WK_F32);
    wk_expr *e = wk_expr_compile("where(step < end, y, 0)");
    steps = wk_reshape(steps, 3, (int64_t[]){w->s.t, 1, 1});
    ends = wk_reshape(ends, 3, (int64_t[]){1, w->s.b, 1});
    wk_status status = wk_expr_run_into(t, e, (const wk_tensor *[]){steps, ends, t}, 3);
    wk_expr_drop(e);
    return status;
}

static wk_status run_with(work *w)
{
    const wk_call *c = w->call;
    const wk_rnn_sizes *s = &w->s;
    uint64_t sum = 0; /* of the lengths, which the plan keeps */
    if (c->in[WK_RNN_LENGTHS])
        WK_TRY(wk_vendor_lengths(c, "MIOpen", 1, w->lengths));
    for (int64_t i = 0; w->lengths && i < s->b; i++)
        sum = (sum ^ (uint64_t)w->lengths[i]) * 0x9e3779b97f4a7c15 + (sum >> 29);
    wk_dnn_call d = {.call = c, .set_up = set_up, .run = queue, .data = w};
    wk_key_shape(&d.key, 8,
                 (int64_t[]){s->t, s->b, s->in, s->hidden, s->layers, s->dirs, s->per, w->p->mode});
    wk_key_shape(&d.key, 2, (int64_t[]){w->lengths != NULL, (int64_t)sum});
    WK_TRY(wk_dnn_run(&d));
    return w->lengths ? clear_past(w, w->backward ? w->dx : w->y) : WK_OK;
}

static wk_status run_work(work *w)
{
    const wk_call *c = w->call;
    size_t weights = (size_t)(c->n_tail + 1) * sizeof *w->weights;
    size_t lengths = c->in[WK_RNN_LENGTHS] ? (size_t)w->s.b * sizeof *w->lengths : 0;
    char *memory = wk_alloc(weights + lengths);
    if (!memory)
        return wk_fail(WK_ERR_MEMORY, "MIOpen: out of memory");
    w->weights = (const wk_tensor **)memory;
    w->lengths = lengths ? (int *)(memory + weights) : NULL;
    for (int i = 0; i < c->n_tail; i++)
        w->weights[i] = packed(c->tail[i]);
    wk_status status = wk_pending() ? wk_error_status() : run_with(w);
    wk_free(memory);
    return status;
}

static void start(wk_call *c, work *w)
{
    *w = (work){.call = c, .p = c->params, .s = wk_rnn_sizes_of(c)};
    w->x = packed(c->in[WK_RNN_X]);
    w->h0 = or_zeros(c, c->in[WK_RNN_H0], &w->s);
    w->c0 = w->p->mode == WK_LSTM ? or_zeros(c, c->in[WK_RNN_C0], &w->s) : NULL;
}

static wk_status run(wk_call *c)
{
    work w;
    if (drops(c))
        return wk_miopen_rnn_layers(c);
    start(c, &w);
    w.y = or_new(c, c->out[0], (int64_t[]){w.s.t, w.s.b, w.s.dirs * w.s.hidden});
    w.hn = c->out[1];
    w.cn = c->out[2];
    return run_work(&w);
}

static wk_status run_backward(wk_call *c)
{
    work w;
    if (drops(c))
        return wk_miopen_rnn_layers_backward(c);
    start(c, &w);
    w.backward = true;
    w.y = or_new(c, NULL, (int64_t[]){w.s.t, w.s.b, w.s.dirs * w.s.hidden});
    w.dy = packed(c->in[WK_RNN_DY]);
    w.dhn = packed(c->in[WK_RNN_DHN]);
    w.dcn = packed(c->in[WK_RNN_DCN]);
    w.dx = or_new(c, c->out[0], w.x ? w.x->shape : (int64_t[]){0, 0, 0});
    w.dh0 = c->out[1];
    w.dc0 = c->out[2];
    return run_work(&w);
}

const wk_impl wk_rocm_impls_rnn[] = {
    {"rnn", "miopen", run, refuse, NULL},
    {"rnn_backward", "miopen", run_backward, refuse, NULL},
    {0},
};
