/* ctc.c: the CTC loss by the forward-backward algorithm, one task a sequence. */
#include "core/families.h"
#include "core/memory.h"
#include "core/pool.h"
#include "wick/ctc.h"
#include "wick/softmax.h"
#include "activation.h"
#include "block.h"

enum { CTC_LANES = 16 }; /* states of a vector, at least */

/* One sequence and its memory. x and dx_row are of the compute type. */
typedef struct {
    const void *x;                                  /* step 0; the next is x_row on */
    int64_t states, vectors, steps, classes, x_row; /* vectors: so many hold all states */
    int32_t *label;                                 /* the class of each state */
    double *skip;  /* 0 where state s may follow s - 2, else -infinity; a row of them */
    double *work;  /* three rows */
    double *alpha; /* [steps] rows, two places before it */
    void *dx_row;
    /* Where dx_row goes. */
    wk_dtype dtype;
    char *dx;
    int64_t dx_row_bytes;
} ctc_sequence;

/* Of states, in elements. */
static inline int64_t ctc_row(const ctc_sequence *q) { return q->vectors * CTC_LANES + 2; }

static void ctc_store_row(const ctc_sequence *q, int64_t t)
{
    wk_compute compute = wk_dtypes[q->dtype].compute;
    WK_ISA(wk_block_store)(q->dtype, compute, q->dx_row, q->dx + t * q->dx_row_bytes, q->classes, false);
}

#include "real_f32.h"
#include "ctc.inc.h"
#include "real_f64.h"
#include "ctc.inc.h"

typedef struct {
    const wk_call *c;
    const wk_tensor *x; /* log-probabilities, packed, in the compute type */
    const int64_t *input_lengths, *label_lengths;
    double *losses;
    atomic_bool no_memory;
} batch;

/* Rows [from, to) of dx to one value: 0, or NaN. */
static void fill_rows(const ctc_sequence *q, int64_t from, int64_t to, double value)
{
    size_t bytes = wk_bytes(q->dtype);
    for (int64_t t = from; t < to; t++) {
        for (int64_t i = 0; i < q->classes; i++)
            wk_store_f64(q->dtype, q->dx + t * q->dx_row_bytes + (size_t)i * bytes, value);
    }
}

static int32_t label_at(const wk_tensor *labels, int64_t b, int64_t i)
{
    return ((const int32_t *)wk_ptr(labels))[b * labels->strides[0] + i * labels->strides[1]];
}

/* Cuts q's memory, of which the bytes are returned, 0 when that is too much. memory may be NULL. */
static size_t cut_memory(ctc_sequence *q, char *memory)
{
    int64_t most = INT64_MAX / 64, row = ctc_row(q);
    if (row > most / (q->steps + 5) || q->classes > most)
        return 0;
    size_t doubles = (size_t)row * (size_t)(q->steps + 4) + 2;
    if (memory) {
        q->skip = (double *)memory;
        q->work = q->skip + row;
        q->alpha = q->skip + 4 * row + 2;
        q->dx_row = q->skip + doubles;
        q->label = (int32_t *)(q->skip + doubles + q->classes);
    }
    return (doubles + (size_t)q->classes) * sizeof(double) + (size_t)q->states * sizeof(int32_t);
}

/* The loss of sequence i; and its part of dx where that is possible. */
static double sequence_loss(batch *s, ctc_sequence *q, int64_t i)
{
    const wk_call *c = s->c;
    size_t bytes = cut_memory(q, NULL);
    char *memory = bytes ? wk_block_alloc(bytes) : NULL;
    if (!memory) {
        atomic_store(&s->no_memory, true);
        return NAN;
    }
    cut_memory(q, memory);
    for (int64_t k = 0; k < q->states; k++)
        q->label[k] = k % 2 ? label_at(c->in[1], i, k / 2) : (int32_t)WK_PARAMS(c, wk_ctc_options)->blank;
    /* From a label to the next one past the blank between, unless they are the same. */
    for (int64_t k = 0; k < ctc_row(q); k++)
        q->skip[k] = k % 2 == 1 && k >= 3 && k < q->states && q->label[k] != q->label[k - 2] ? 0 : -INFINITY;
    double loss = s->x->dtype == WK_F64 ? ctc_run_f64(q) : ctc_run_f32(q);
    wk_block_free(memory, bytes);
    return loss;
}

static void run_sequence(void *ctx, int64_t i)
{
    batch *s = ctx;
    const wk_tensor *x = s->x, *dx = s->c->out[1];
    int64_t b = x->shape[1], classes = x->shape[2], labels = s->label_lengths[i], steps = s->input_lengths[i];
    wk_dtype dtype = s->c->dtype;
    ctc_sequence q = {.x = (const char *)wk_ptr(x) + i * classes * (int64_t)wk_bytes(x->dtype),
                      .states = 2 * labels + 1,
                      .vectors = 2 * labels / CTC_LANES + 1,
                      .steps = steps,
                      .classes = classes,
                      .x_row = b * classes,
                      .dtype = dtype,
                      .dx = dx ? (char *)wk_ptr(dx) + i * classes * (int64_t)wk_bytes(dtype) : NULL,
                      .dx_row_bytes = b * classes * (int64_t)wk_bytes(dtype)};
    double loss = labels > steps ? INFINITY : sequence_loss(s, &q, i);
    if (loss == INFINITY) {
        bool zero = WK_PARAMS(s->c, wk_ctc_options)->zero_infinity;
        loss = zero ? 0 : INFINITY;
        if (dx)
            fill_rows(&q, 0, steps, zero ? 0 : NAN);
    }
    s->losses[i] = loss;
    if (dx)
        fill_rows(&q, steps, x->shape[0], 0);
}

/* ---- checks of what the tensors hold ---- */

static wk_status read_lengths(const wk_call *c, int i, int64_t most, int64_t *lengths)
{
    const wk_tensor *t = c->in[i];
    WK_ISA(wk_block_load)(t->dtype, wk_ptr(t), t->strides[0], lengths, t->shape[0]);
    for (int64_t k = 0; k < t->shape[0]; k++)
        WK_NEED(lengths[k] >= 0 && lengths[k] <= most, c, WK_ERR_INDEX, c->op->in[i].name,
                "expected lengths from 0 to %lld, got %lld at %lld", (long long)most, (long long)lengths[k],
                (long long)k);
    return WK_OK;
}

static wk_status check_labels(const wk_call *c, const int64_t *lengths)
{
    const wk_tensor *labels = c->in[1];
    int64_t classes = c->in[0]->shape[2];
    for (int64_t b = 0; b < labels->shape[0]; b++) {
        for (int64_t i = 0; i < lengths[b]; i++) {
            int32_t v = label_at(labels, b, i);
            WK_NEED(v >= 0 && v < classes, c, WK_ERR_INDEX, "labels",
                    "expected classes from 0 to %lld, got %d at %lld,%lld", (long long)classes - 1, v,
                    (long long)b, (long long)i);
        }
    }
    return WK_OK;
}

static wk_status run_batch(wk_call *c, int64_t *input_lengths, int64_t *label_lengths, double *losses)
{
    const wk_ctc_options *p = c->params;
    int64_t b = c->in[0]->shape[1];
    WK_TRY(read_lengths(c, 2, c->in[0]->shape[0], input_lengths));
    WK_TRY(read_lengths(c, 3, c->in[1]->shape[1], label_lengths));
    WK_TRY(check_labels(c, label_lengths));
    const wk_tensor *x = WK_ISA(wk_compute_copy)(c->in[0]);
    if (x && p->logits)
        x = wk_softmax(x, 0, NULL, WK_SOFTMAX_LOG);
    if (!x)
        return wk_error_status();
    batch s = {c, x, input_lengths, label_lengths, losses, false};
    wk_parallel_for(b, run_sequence, &s);
    if (s.no_memory)
        return wk_fail(WK_ERR_MEMORY, "out of memory for the states of a sequence");
    WK_ISA(wk_block_store)(c->dtype, WK_COMPUTE_F64, losses, wk_ptr(c->out[0]), b, false);
    return WK_OK;
}

static wk_status run_ctc(wk_call *c)
{
    int64_t b = c->in[0]->shape[1];
    if (b == 0)
        return WK_OK;
    size_t bytes = (size_t)b * 3 * sizeof(int64_t);
    int64_t *memory = b < INT64_MAX / 64 ? wk_block_alloc(bytes) : NULL;
    if (!memory)
        return wk_fail(WK_ERR_MEMORY, "out of memory for %lld sequences", (long long)b);
    wk_status status = run_batch(c, memory, memory + b, (double *)(memory + 2 * b));
    wk_block_free(memory, bytes);
    return status;
}

const wk_impl WK_ISA(wk_cpu_ctc)[] = {
    {"ctc_loss", "simd", run_ctc, NULL, NULL},
    {0},
};
