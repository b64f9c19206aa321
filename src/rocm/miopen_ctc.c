/* miopen_ctc.c: the CTC loss and its gradient by MIOpen. Labels and lengths are fetched to the host, where it wants
 * them: the device is waited for. */
#include "core/memory.h"
#include "dnn.h"
#include "gpu/families.h"
#include "gpu/runtime.h"
#include "wick/ctc.h"

typedef struct {
    const wk_tensor *x;
    wk_tensor *loss, *dx;
    int64_t blank, t, b, classes, room; /* labels [b, room] on the device */
    int *labels;                        /* one sequence after the other */
    int *label_lengths, *input_lengths;
} work;

/* Steps up to which the gradient is as right as wick promises. */
enum { SHORT = 16 };

static const char *refuse(const wk_call *c)
{
    const wk_ctc_options *p = c->params;
    if (!p->logits)
        return "MIOpen's CTC loss normalises x itself";
    if (c->want >> 1 & 1 && c->in[0]->shape[0] > SHORT)
        return "MIOpen adds up logarithms in f32, and the gradient loses digits with every step";
    if (c->device->table->capturing(c->device))
        return "MIOpen's CTC loss has to wait for the labels";
    return wk_dnn_refuse(c, WK_SET(WK_F32));
}

static miopenStatus_t destroy(wk_dnn_plan *p) { return wk_miopen.miopenDestroyCTCLossDescriptor(p->op); }

static miopenStatus_t set_up(miopenHandle_t h, wk_dnn_plan *p, const void *data)
{
    const work *w = data;
    miopenCTCLossDescriptor_t op;
    WK_DNN_TRY(wk_dnn_tensor(p, 0, WK_F32, 3, w->x->shape));
    WK_DNN_TRY(wk_miopen.miopenCreateCTCLossDescriptor(&op));
    p->op = op;
    p->destroy = destroy;
    WK_DNN_TRY(wk_miopen.miopenSetCTCLossDescriptor(op, miopenFloat, (int)w->blank, true));
    return wk_miopen.miopenGetCTCLossWorkspaceSize(h, p->tensor[0], p->tensor[0], w->labels, w->label_lengths,
                                                   w->input_lengths, MIOPEN_CTC_LOSS_ALGO_DETERMINISTIC, op,
                                                   &p->workspace);
}

static miopenStatus_t queue(miopenHandle_t h, const wk_dnn_plan *p, void *workspace, const void *data)
{
    const work *w = data;
    return wk_miopen.miopenCTCLoss(h, p->tensor[0], wk_ptr(w->x), w->labels, w->label_lengths,
                                   w->input_lengths, wk_ptr(w->loss), p->tensor[0], wk_ptr(w->dx),
                                   MIOPEN_CTC_LOSS_ALGO_DETERMINISTIC, p->op, workspace, p->workspace);
}

/* ---- from the device ---- */

/* The values of a tensor of i32 or i64 as ints; `raw` has room for them in its own dtype. */
static wk_status fetch(const wk_call *c, const wk_tensor *t, void *raw, int *values)
{
    const wk_tensor *packed = wk_tensor_packed(t);
    int64_t n = wk_count(t);
    if (!packed)
        return wk_error_status();
    WK_TRY(wk_gpu_download(c->device, raw, wk_ptr(packed), (size_t)n * wk_bytes(t->dtype)));
    for (int64_t i = 0; i < n; i++)
        values[i] = t->dtype == WK_I64 ? (int)wk_saturate((double)((int64_t *)raw)[i], -0x1p31, 0x1p31)
                                       : ((int32_t *)raw)[i];
    return WK_OK;
}

/* Whether MIOpen takes the values; what is out of range is for wick's kernel to tell. */
static bool fits(const work *w, const int *all)
{
    for (int64_t i = 0; i < w->b; i++) {
        const int *labels = all + i * w->room;
        int n = w->label_lengths[i], repeats = 0;
        if (n < 1 || n > w->room || w->input_lengths[i] > w->t)
            return false;
        for (int k = 0; k < n; k++) {
            repeats += k > 0 && labels[k] == labels[k - 1];
            if (labels[k] < 0 || labels[k] >= w->classes || labels[k] == w->blank)
                return false;
        }
        if (n + repeats > w->input_lengths[i])
            return false;
    }
    return true;
}

static wk_status fetch_all(const wk_call *c, work *w, void *raw, int *all)
{
    WK_TRY(fetch(c, c->in[2], raw, w->input_lengths));
    WK_TRY(fetch(c, c->in[3], raw, w->label_lengths));
    WK_TRY(fetch(c, c->in[1], raw, all));
    if (!fits(w, all))
        return wk_fail(WK_ERR_UNSUPPORTED, "MIOpen takes no empty labels, blanks among them, or impossible "
                                           "alignments");
    int *next = w->labels;
    for (int64_t i = 0; i < w->b; i++) {
        memcpy(next, all + i * w->room, (size_t)w->label_lengths[i] * sizeof *next);
        next += w->label_lengths[i];
    }
    return WK_OK;
}

/* ---- the call ---- */

static wk_status run_with(const wk_call *c, work *w, int *memory, size_t labels, size_t lengths)
{
    w->labels = memory + labels;
    w->label_lengths = w->labels + labels;
    w->input_lengths = w->label_lengths + lengths;
    WK_TRY(fetch_all(c, w, w->input_lengths + lengths, memory));
    wk_dnn_call d = {.call = c, .set_up = set_up, .run = queue, .data = w};
    wk_key_shape(&d.key, 3, w->x->shape);
    wk_key_add(&d.key, w->blank);
    int64_t sum = 0; /* of what MIOpen's workspace depends on */
    for (int64_t i = 0; i < w->b; i++)
        sum = (int64_t)((uint64_t)sum * 0x9e3779b97f4a7c15 + (uint64_t)w->label_lengths[i] * 65599 +
                        (uint64_t)w->input_lengths[i]);
    wk_key_add(&d.key, sum);
    return wk_dnn_run(&d);
}

static wk_status run(wk_call *c)
{
    const wk_ctc_options *p = c->params;
    const int64_t *x = c->in[0]->shape;
    work w = {.loss = c->out[0], .blank = p->blank, .t = x[0], .b = x[1], .classes = x[2]};
    w.room = c->in[1]->shape[1];
    w.x = wk_tensor_packed(c->in[0]);
    w.dx = c->out[1] ? c->out[1] : wk_tensor_new(c->device, c->dtype, 3, x);
    if (wk_pending())
        return wk_error_status();
    WK_TRY(
        wk_gpu_zero(c, wk_ptr(w.dx), (size_t)wk_count(w.dx) * sizeof(float))); /* steps that do not count */
    /* All labels as they come, those that count, both lengths, and room for one tensor in its own dtype; even numbers
     * keep an i64 aligned. */
    size_t labels = (size_t)(w.b * w.room + 1) / 2 * 2, lengths = (size_t)(w.b + 1) / 2 * 2;
    int *memory = wk_alloc((3 * labels + 4 * lengths) * sizeof *memory);
    if (!memory)
        return wk_fail(WK_ERR_MEMORY, "MIOpen: out of memory");
    wk_status status = run_with(c, &w, memory, labels, lengths);
    wk_free(memory);
    return status;
}

const wk_impl wk_rocm_impls_ctc[] = {
    {"ctc_loss", "miopen", run, refuse, NULL},
    {0},
};
