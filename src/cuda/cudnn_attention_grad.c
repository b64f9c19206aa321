/* cudnn_attention_grad.c: gradients of attention by cuDNN, again as a graph: scores and weights are made once more, and
 * five products go with them. Each of two ways to the gradient of the queries has a price. Where the gradient of the
 * scores is kept in memory, it is a product over all keys; a few heads at a time, that memory is bounded. Where it is
 * not, blocks of keys add to the gradient in any order, and its bits differ from run to run: only where the user does
 * without that. Of heads that share a key's it rounds each one's gradients before it adds them, unless they can be taken for
 * one: only where the user allows rounding. */
#include "cudnn_attention.h"
#include "gpu/attention.h"
#include "gpu/runtime.h"
#include "wick/index.h"
#include "wick/matmul.h"
#include "wick/ops.h"

static cudnnBackendDescriptor_t step(wk_cudnn_plan *p, cudnnPointwiseMode_t mode, cudnnBackendDescriptor_t x,
                                     cudnnBackendDescriptor_t b, cudnnBackendDescriptor_t y)
{
    return wk_cudnn_pointwise(
        p, &(wk_cudnn_step){.mode = mode, .compute = CUDNN_DATA_FLOAT, .x = x, .b = b, .y = y});
}

/* The sum over each row of dy y, in memory: two products of the graph need it. */
static cudnnBackendDescriptor_t delta_of(wk_cudnn_plan *p, const wk_cudnn_attention *w,
                                         cudnnBackendDescriptor_t dy)
{
    const int64_t shape[] = {w->b, w->hq, w->s, w->dv};
    cudnnBackendDescriptor_t y = wk_cudnn_attention_map(p, w, WK_ATTN_Y, false);
    cudnnBackendDescriptor_t both =
        step(p, CUDNN_POINTWISE_MUL, dy, y, wk_cudnn_between(p, CUDNN_DATA_FLOAT, 4, shape));
    cudnnBackendDescriptor_t sum =
        wk_cudnn_reduce(p, CUDNN_REDUCE_TENSOR_ADD, both, wk_cudnn_attention_rows(p, w, 0));
    /* the engine is known by this step, where dropout would have its factor */
    return step(p, CUDNN_POINTWISE_MUL, sum, wk_cudnn_number(p, WK_ATTN_ONE, CUDNN_DATA_FLOAT),
                wk_cudnn_attention_rows(p, w, WK_ATTN_DELTA));
}

/* exp(scale q . k^T - lse), with zeros where a key is not seen. */
static cudnnBackendDescriptor_t weights_of(wk_cudnn_plan *p, const wk_cudnn_attention *w,
                                           cudnnBackendDescriptor_t q, cudnnBackendDescriptor_t k,
                                           cudnnBackendDescriptor_t scale)
{
    const int64_t all[] = {w->b, w->hq, w->s, w->t};
    const cudnnDataType_t f32 = CUDNN_DATA_FLOAT;
    cudnnBackendDescriptor_t x = wk_cudnn_product(p, q, k, wk_cudnn_between(p, f32, 4, all));
    x = step(p, CUDNN_POINTWISE_MUL, x, scale, wk_cudnn_between(p, f32, 4, all));
    x = step(p, CUDNN_POINTWISE_SUB, x, wk_cudnn_attention_rows(p, w, WK_ATTN_LSE),
             wk_cudnn_between(p, f32, 4, all));
    x = wk_cudnn_attention_hide(p, w, x);
    return step(p, CUDNN_POINTWISE_EXP, x, NULL, wk_cudnn_between(p, f32, 4, all));
}

/* x^T . rows into dk or dv; of heads that share a key's the sum. What that is made of cuDNN keeps in the dtype: asked for f32
 * it plans, and writes the dtype all the same. */
static void add_key_gradient(wk_cudnn_plan *p, const wk_cudnn_attention *w, int id,
                             cudnnBackendDescriptor_t x, cudnnBackendDescriptor_t rows)
{
    const int64_t turned[] = {w->b, w->hq, w->t, w->s},
                  strides[] = {w->hq * w->s * w->t, w->s * w->t, 1, w->t},
                  each[] = {w->b, w->hq, w->t, id == WK_ATTN_DK ? w->d : w->dv};
    wk_cudnn_tensor t = {.type = wk_cudnn_dtype(w->dtype),
                         .rank = 4,
                         .shape = turned,
                         .strides = strides,
                         .flags = WK_CUDNN_VIRTUAL};
    cudnnBackendDescriptor_t xt = wk_cudnn_turn(p, x, wk_cudnn_tensor_of(p, &t));
    cudnnBackendDescriptor_t y = wk_cudnn_attention_map(p, w, id, false);
    if (w->hq == w->hk)
        wk_cudnn_product(p, xt, rows, y);
    else
        wk_cudnn_reduce(p, CUDNN_REDUCE_TENSOR_ADD,
                        wk_cudnn_product(p, xt, rows, wk_cudnn_between(p, t.type, 4, each)), y);
}

/* x . k into dq; where blocks of keys add to it, by way of a sum in f32. */
static void add_query_gradient(wk_cudnn_plan *p, const wk_cudnn_attention *w, cudnnBackendDescriptor_t x,
                               cudnnBackendDescriptor_t kt)
{
    const int64_t shape[] = {w->b, w->hk, w->t, w->d}, sums[] = {w->b, w->hq, w->s, w->d};
    wk_cudnn_tensor rows = {.type = wk_cudnn_dtype(w->dtype),
                            .rank = 4,
                            .shape = shape,
                            .strides = w->strides[WK_ATTN_K],
                            .flags = WK_CUDNN_VIRTUAL};
    wk_cudnn_tensor sum = {.id = WK_ATTN_DQ_SUM, .type = CUDNN_DATA_FLOAT, .rank = 4, .shape = sums};
    cudnnBackendDescriptor_t k = wk_cudnn_turn(p, kt, wk_cudnn_tensor_of(p, &rows));
    cudnnBackendDescriptor_t dq = wk_cudnn_attention_map(p, w, WK_ATTN_DQ, false);
    if (w->any_order)
        step(p, CUDNN_POINTWISE_IDENTITY, wk_cudnn_product(p, x, k, wk_cudnn_tensor_of(p, &sum)), NULL, dq);
    else
        wk_cudnn_product(p, x, k, dq);
}

static void set_up(cudnnHandle_t handle, wk_cudnn_plan *p, const void *data)
{
    const wk_cudnn_attention *w = data;
    const int64_t all[] = {w->b, w->hq, w->s, w->t};
    const cudnnDataType_t f32 = CUDNN_DATA_FLOAT;
    cudnnBackendDescriptor_t q = wk_cudnn_attention_map(p, w, WK_ATTN_Q, false);
    cudnnBackendDescriptor_t kt = wk_cudnn_attention_map(p, w, WK_ATTN_K, true);
    cudnnBackendDescriptor_t vt = wk_cudnn_attention_map(p, w, WK_ATTN_V, true);
    cudnnBackendDescriptor_t dy = wk_cudnn_attention_map(p, w, WK_ATTN_DY, false);
    cudnnBackendDescriptor_t scale = wk_cudnn_number(p, WK_ATTN_SCALE, f32);
    cudnnBackendDescriptor_t delta = delta_of(p, w, dy);
    cudnnBackendDescriptor_t weights = weights_of(p, w, q, kt, scale);
    add_key_gradient(p, w, WK_ATTN_DV, weights, dy);
    cudnnBackendDescriptor_t x = wk_cudnn_product(p, dy, vt, wk_cudnn_between(p, f32, 4, all));
    x = step(p, CUDNN_POINTWISE_SUB, x, delta, wk_cudnn_between(p, f32, 4, all));
    x = step(p, CUDNN_POINTWISE_MUL, x, weights, wk_cudnn_between(p, f32, 4, all));
    x = step(p, CUDNN_POINTWISE_MUL, x, scale, wk_cudnn_between(p, f32, 4, all));
    add_key_gradient(p, w, WK_ATTN_DK, x, q);
    add_query_gradient(p, w, x, kt);
    wk_cudnn_choose(handle, p, &(wk_cudnn_rules){.number = w->number});
}

/* ---- calls ---- */

enum { MASK = 6, SUMS_ITSELF = 90600, ODD_KEYS = 91600 }; /* from which cuDNN on */

/* How many heads of queries share one of keys. */
static int64_t group_of(const wk_call *c) { return c->in[0]->shape[1] / c->in[1]->shape[1]; }

/* Whether it does not matter which query stands where: those of all heads that share a key's are then queries of one. */
static bool can_fold(const wk_call *c) { return !WK_PARAMS(c, wk_sdpa_options)->causal; }

/* The bytes that the graph keeps for one head of keys: in a fixed order the scores, and of heads that share it each one's
 * gradients. */
static double head_bytes(const wk_call *c)
{
    int64_t s = (c->in[0]->shape[2] + 63) / 64 * 64, t = (c->in[1]->shape[2] + 127) / 128 * 128;
    int64_t group = group_of(c), width = c->in[1]->shape[3] + c->in[2]->shape[3];
    double scores = wk_deterministic() ? (double)s * (double)t * (double)wk_bytes(c->dtype) : 0;
    double gradients = group > 1 ? (double)t * (double)width * (double)wk_bytes(c->dtype) : 0;
    return (double)group * (scores + gradients);
}

/* So many heads of keys fit into the workspace, beside a little. */
static int64_t heads_at_once(const wk_call *c)
{
    double heads = ((double)wk_workspace_most() - (1 << 16)) / (head_bytes(c) + 1);
    return heads > INT32_MAX ? INT32_MAX : (int64_t)heads;
}

const char *wk_cudnn_refuse_sdpa_backward(const wk_call *c)
{
    const char *why = wk_cudnn_attention_refuse(c, MASK);
    if (why)
        return why;
    if (!c->out[0] || !c->out[1] || !c->out[2])
        return "cuDNN makes all three gradients";
    if (c->dtype == WK_F16)
        return "cuDNN rounds the scores' gradients to f16, of which most are subnormal";
    if (c->in[0]->shape[3] > 128 || c->in[2]->shape[3] > 128)
        return "cuDNN takes widths up to 128";
    if (wk_cudnn.cudnnGetVersion() < SUMS_ITSELF)
        return "it takes cuDNN 9.6";
    if (c->in[1]->shape[2] % 128 && wk_cudnn.cudnnGetVersion() < ODD_KEYS)
        return "cuDNN before 9.16 takes keys by 128";
    if (wk_matmul_precision() != WK_PRECISION_FAST)
        return "cuDNN rounds weights and the scores' gradients to bf16 (wk_set_matmul_precision)";
    if (wk_deterministic() && wk_gpu_sdpa_backward_is_joint(c))
        return "in a fixed order wick's own kernel is faster";
    if (heads_at_once(c) < 1)
        return "cuDNN would keep too many scores, or add in no fixed order (wk_set_deterministic)";
    return wk_cudnn_attention_small(c);
}

static wk_status run_graph(const wk_call *c)
{
    enum { Y = 3, LSE, DY };
    wk_cudnn_attention w;
    wk_cudnn_attention_fill(&w, c);
    w.any_order = !wk_deterministic();
    const wk_tensor *lse = wk_tensor_packed(c->in[LSE]);
    const int64_t sums[] = {w.b, w.hq, w.s, w.d};
    wk_tensor *delta = wk_tensor_new(c->device, WK_F32, 3, sums),
              *dq_sum = w.any_order ? wk_tensor_new(c->device, WK_F32, 4, sums) : NULL;
    if (wk_pending())
        return wk_error_status();
    for (int i = 0; i < 3; i++) {
        WK_TRY(wk_cudnn_attention_read(&w, WK_ATTN_Q + i, c->in[i]));
        WK_TRY(wk_cudnn_attention_write(&w, WK_ATTN_DQ + i, c->out[i]));
    }
    WK_TRY(wk_cudnn_attention_read(&w, WK_ATTN_Y, c->in[Y]));
    WK_TRY(wk_cudnn_attention_read(&w, WK_ATTN_DY, c->in[DY]));
    WK_TRY(wk_cudnn_attention_write(&w, WK_ATTN_LSE, lse));
    WK_TRY(wk_cudnn_attention_write(&w, WK_ATTN_DELTA, delta));
    if (dq_sum)
        WK_TRY(wk_cudnn_attention_write(&w, WK_ATTN_DQ_SUM, dq_sum));
    w.data[WK_ATTN_ONE] = &w.one;
    return wk_cudnn_attention_run(c, &w, set_up);
}

/* ---- parts of a call ---- */

enum { INPUTS = 6, OUTPUTS = 3 };
static bool of_keys(int i) { return i == 1 || i == 2; } /* of inputs as of outputs */

/* From the keys' head h of image b on, nh of each of nb images. */
typedef struct {
    int64_t b, nb, h, nh;
} part;

/* group: so many heads there are for one of keys. */
static wk_tensor cut(const wk_tensor *t, const part *p, int64_t group)
{
    wk_tensor v = wk_tensor_local(t);
    v.shape[0] = p->nb;
    v.shape[1] = p->nh * group;
    v.offset += p->b * t->strides[0] + p->h * group * t->strides[1];
    return v;
}

static wk_status run_part(const wk_call *c, const part *p)
{
    wk_call of_part = *c;
    wk_tensor in[INPUTS], out[OUTPUTS];
    int64_t group = group_of(c);
    for (int i = 0; i < INPUTS; i++) {
        in[i] = cut(c->in[i], p, of_keys(i) ? 1 : group);
        of_part.in[i] = &in[i];
    }
    for (int i = 0; i < OUTPUTS; i++) {
        out[i] = cut(c->out[i], p, of_keys(i) ? 1 : group);
        of_part.out[i] = &out[i];
    }
    wk_scope_begin(); /* the next part uses the same memory */
    wk_status status = run_graph(&of_part);
    wk_scope_end();
    return status;
}

/* ---- heads that share a key's ---- */

/* t [b, heads, s, ..] as [b, heads / group, group s, ..]; false where its heads do not lie one behind the other. */
static bool fold(wk_tensor *view, const wk_tensor *t, int64_t group)
{
    *view = wk_tensor_local(t);
    view->shape[1] /= group;
    view->shape[2] *= group;
    view->strides[1] *= group;
    return t->strides[1] == t->shape[2] * t->strides[2];
}

/* The call with as many heads of queries as of keys; views are of its inputs and of dq. */
static wk_status fold_call(wk_call *c, wk_tensor *views, wk_tensor *dq)
{
    int64_t group = group_of(c);
    for (int i = 0; i < INPUTS; i++) {
        if (of_keys(i))
            continue;
        if (!fold(&views[i], c->in[i], group)) {
            const wk_tensor *packed = wk_copy(c->in[i]);
            if (!packed)
                return wk_error_status();
            fold(&views[i], packed, group);
        }
        c->in[i] = &views[i];
    }
    if (!fold(dq, c->out[0], group))
        return wk_fail(WK_ERR_UNSUPPORTED, "cuDNN: heads of dq have to lie one behind the other");
    c->out[0] = dq;
    return WK_OK;
}

/* ---- all of it ---- */

/* Where all heads of a tensor lie at one distance, they count as those of one image: parts are cut more evenly. */
static void join_images(wk_call *c, wk_tensor *views)
{
    for (int i = 0; i < INPUTS + OUTPUTS; i++) {
        const wk_tensor *t = i < INPUTS ? c->in[i] : c->out[i - INPUTS];
        if (t->strides[0] != t->shape[1] * t->strides[1])
            return;
        views[i] = wk_tensor_local(t);
        views[i].shape[1] *= t->shape[0];
        views[i].shape[0] = 1;
    }
    for (int i = 0; i < INPUTS; i++)
        c->in[i] = &views[i];
    for (int i = 0; i < OUTPUTS; i++)
        c->out[i] = &views[INPUTS + i];
}

/* So many heads of keys at a time, every other time on the queue beside, where there is one. */
static wk_status run_parts(const wk_call *c, int64_t fit, wk_stream *beside)
{
    int64_t batch = c->in[1]->shape[0], heads = c->in[1]->shape[1], cuts = (heads + fit - 1) / fit;
    cuts += beside && cuts % 2; /* as many on each queue */
    int64_t images = fit / heads > 1 ? fit / heads : 1, each = (heads + cuts - 1) / cuts, turn = 0;
    part p;
    for (p.b = 0; p.b < batch; p.b += images) {
        p.nb = images < batch - p.b ? images : batch - p.b;
        for (p.h = 0; p.h < heads; p.h += each) {
            bool other = beside && turn++ % 2;
            p.nh = each < heads - p.h ? each : heads - p.h;
            if (other)
                WK_TRY(wk_stream_push(beside));
            wk_status status = run_part(c, &p);
            if (other)
                wk_stream_pop(beside);
            WK_TRY(status);
        }
    }
    return WK_OK;
}

/* So many heads at a time as have room. Two queues share that room: while the last blocks of a part run on one, those of
 * the next begin on the other. */
wk_status wk_cudnn_run_sdpa_backward(wk_call *c)
{
    wk_call joined = *c;
    wk_tensor folded[INPUTS], dq, views[INPUTS + OUTPUTS];
    wk_stream *now = wk_gpu_stream(wk_gpu_of(c->device)), *beside = NULL;
    if (group_of(c) > 1 && can_fold(c))
        WK_TRY(fold_call(&joined, folded, &dq));
    int64_t fit = heads_at_once(&joined);
    if (fit >= c->in[1]->shape[0] * c->in[1]->shape[1])
        return run_graph(&joined);
    join_images(&joined, views);
    if (fit > 1 && !now->graph) {
        WK_TRY(wk_cudnn_beside(now, &beside));
        WK_TRY(wk_stream_follow(beside, now));
        fit /= 2;
    }
    wk_status status = run_parts(&joined, fit, beside);
    wk_status done = beside ? wk_stream_follow(now, beside) : WK_OK;
    return status == WK_OK ? done : status;
}
