/* cudnn_attention.c: attention by cuDNN, which knows it as a graph of operations: a product, what is done to its
 * elements, a softmax in steps, a product. What lies between is never in memory. */
#include "cudnn_attention.h"
#include "gpu/families.h"
#include "wick/ops.h"

/* ---- parts of graphs ---- */

cudnnBackendDescriptor_t wk_cudnn_attention_map(wk_cudnn_plan *p, const wk_cudnn_attention *w, int id,
                                                bool turned)
{
    bool of_queries = id == WK_ATTN_Q || id == WK_ATTN_Y || id == WK_ATTN_DY || id == WK_ATTN_DQ;
    bool narrow = id == WK_ATTN_Q || id == WK_ATTN_K || id == WK_ATTN_DQ || id == WK_ATTN_DK;
    int64_t heads = of_queries ? w->hq : w->hk, rows = of_queries ? w->s : w->t;
    int64_t width = narrow ? w->d : w->dv;
    const int64_t *st = w->strides[id];
    int64_t shape[] = {w->b, heads, turned ? width : rows, turned ? rows : width};
    int64_t strides[] = {st[0], st[1], turned ? st[3] : st[2], turned ? st[2] : st[3]};
    wk_cudnn_tensor t = {
        .id = id, .type = wk_cudnn_dtype(w->dtype), .rank = 4, .shape = shape, .strides = strides};
    return wk_cudnn_tensor_of(p, &t);
}

cudnnBackendDescriptor_t wk_cudnn_attention_rows(wk_cudnn_plan *p, const wk_cudnn_attention *w, int id)
{
    const int64_t shape[] = {w->b, w->hq, w->s, 1};
    wk_cudnn_tensor t = {
        .id = id, .type = CUDNN_DATA_FLOAT, .rank = 4, .shape = shape, .flags = id ? 0 : WK_CUDNN_VIRTUAL};
    return wk_cudnn_tensor_of(p, &t);
}

/* The query's or the key's number for every score. */
static cudnnBackendDescriptor_t count(wk_cudnn_plan *p, cudnnBackendDescriptor_t scores, const int64_t *shape,
                                      int64_t axis)
{
    return wk_cudnn_pointwise(p, &(wk_cudnn_step){.mode = CUDNN_POINTWISE_GEN_INDEX,
                                                  .compute = CUDNN_DATA_INT32,
                                                  .x = scores,
                                                  .y = wk_cudnn_between(p, CUDNN_DATA_INT32, 4, shape),
                                                  .axis = axis});
}

/* Keys after the query's position; query i stands at i + t - s. */
static cudnnBackendDescriptor_t hide_later(wk_cudnn_plan *p, const wk_cudnn_attention *w,
                                           cudnnBackendDescriptor_t scores, const int64_t *shape)
{
    cudnnBackendDescriptor_t row = count(p, scores, shape, 2);
    if (w->s != w->t) {
        row = wk_cudnn_pointwise(p, &(wk_cudnn_step){CUDNN_POINTWISE_ADD, CUDNN_DATA_INT32, row,
                                                     wk_cudnn_number(p, WK_ATTN_KEYS, CUDNN_DATA_INT32), NULL,
                                                     wk_cudnn_between(p, CUDNN_DATA_INT32, 4, shape), 0});
        row =
            wk_cudnn_pointwise(p, &(wk_cudnn_step){CUDNN_POINTWISE_SUB, CUDNN_DATA_INT32, row,
                                                   wk_cudnn_number(p, WK_ATTN_QUERIES, CUDNN_DATA_INT32),
                                                   NULL, wk_cudnn_between(p, CUDNN_DATA_INT32, 4, shape), 0});
    }
    cudnnBackendDescriptor_t column = count(p, scores, shape, 3);
    cudnnBackendDescriptor_t seen =
        wk_cudnn_pointwise(p, &(wk_cudnn_step){CUDNN_POINTWISE_CMP_GE, CUDNN_DATA_BOOLEAN, row, column, NULL,
                                               wk_cudnn_between(p, CUDNN_DATA_BOOLEAN, 4, shape), 0});
    return wk_cudnn_pointwise(p, &(wk_cudnn_step){CUDNN_POINTWISE_BINARY_SELECT, CUDNN_DATA_FLOAT, scores,
                                                  wk_cudnn_number(p, WK_ATTN_LOWEST, CUDNN_DATA_FLOAT), seen,
                                                  wk_cudnn_between(p, CUDNN_DATA_FLOAT, 4, shape), 0});
}

/* Keys of a window's length and more before it: a key is seen where its number + reach is beyond the query's. */
static cudnnBackendDescriptor_t hide_earlier(wk_cudnn_plan *p, cudnnBackendDescriptor_t scores,
                                             const int64_t *shape)
{
    cudnnBackendDescriptor_t row = count(p, scores, shape, 2), column = count(p, scores, shape, 3);
    column = wk_cudnn_pointwise(p, &(wk_cudnn_step){CUDNN_POINTWISE_ADD, CUDNN_DATA_FLOAT, column,
                                                    wk_cudnn_number(p, WK_ATTN_REACH, CUDNN_DATA_FLOAT), NULL,
                                                    wk_cudnn_between(p, CUDNN_DATA_INT32, 4, shape), 0});
    cudnnBackendDescriptor_t seen =
        wk_cudnn_pointwise(p, &(wk_cudnn_step){CUDNN_POINTWISE_CMP_GT, CUDNN_DATA_BOOLEAN, column, row, NULL,
                                               wk_cudnn_between(p, CUDNN_DATA_BOOLEAN, 4, shape), 0});
    return wk_cudnn_pointwise(p, &(wk_cudnn_step){CUDNN_POINTWISE_BINARY_SELECT, CUDNN_DATA_FLOAT, scores,
                                                  wk_cudnn_number(p, WK_ATTN_LOWEST2, CUDNN_DATA_FLOAT), seen,
                                                  wk_cudnn_between(p, CUDNN_DATA_FLOAT, 4, shape), 0});
}

cudnnBackendDescriptor_t wk_cudnn_attention_hide(wk_cudnn_plan *p, const wk_cudnn_attention *w,
                                                 cudnnBackendDescriptor_t scores)
{
    const int64_t shape[] = {w->b, w->hq, w->s, w->t};
    if (w->causal)
        scores = hide_later(p, w, scores, shape);
    return w->windowed ? hide_earlier(p, scores, shape) : scores;
}

/* ---- forward ---- */

static void set_up(cudnnHandle_t handle, wk_cudnn_plan *p, const void *data)
{
    const wk_cudnn_attention *w = data;
    const int64_t all[] = {w->b, w->hq, w->s, w->t};
    const cudnnDataType_t f32 = CUDNN_DATA_FLOAT;
    cudnnBackendDescriptor_t q = wk_cudnn_attention_map(p, w, WK_ATTN_Q, false);
    cudnnBackendDescriptor_t k = wk_cudnn_attention_map(p, w, WK_ATTN_K, true);
    cudnnBackendDescriptor_t v = wk_cudnn_attention_map(p, w, WK_ATTN_V, false);
    cudnnBackendDescriptor_t scores = wk_cudnn_product(p, q, k, wk_cudnn_between(p, f32, 4, all));
    scores = wk_cudnn_pointwise(p, &(wk_cudnn_step){CUDNN_POINTWISE_MUL, f32, scores,
                                                    wk_cudnn_number(p, WK_ATTN_SCALE, f32), NULL,
                                                    wk_cudnn_between(p, f32, 4, all), 0});
    scores = wk_cudnn_attention_hide(p, w, scores);
    cudnnBackendDescriptor_t top =
        wk_cudnn_reduce(p, CUDNN_REDUCE_TENSOR_MAX, scores, wk_cudnn_attention_rows(p, w, 0));
    cudnnBackendDescriptor_t less =
        wk_cudnn_pointwise(p, &(wk_cudnn_step){CUDNN_POINTWISE_SUB, f32, scores, top, NULL,
                                               wk_cudnn_between(p, f32, 4, all), 0});
    cudnnBackendDescriptor_t e = wk_cudnn_pointwise(
        p, &(wk_cudnn_step){CUDNN_POINTWISE_EXP, f32, less, NULL, NULL, wk_cudnn_between(p, f32, 4, all), 0});
    cudnnBackendDescriptor_t sum =
        wk_cudnn_reduce(p, CUDNN_REDUCE_TENSOR_ADD, e, wk_cudnn_attention_rows(p, w, 0));
    cudnnBackendDescriptor_t log = wk_cudnn_pointwise(
        p, &(wk_cudnn_step){CUDNN_POINTWISE_LOG, f32, sum, NULL, NULL, wk_cudnn_attention_rows(p, w, 0), 0});
    wk_cudnn_pointwise(p, &(wk_cudnn_step){CUDNN_POINTWISE_ADD, f32, top, log, NULL,
                                           wk_cudnn_attention_rows(p, w, w->lse ? WK_ATTN_LSE : 0), 0});
    cudnnBackendDescriptor_t weights =
        wk_cudnn_pointwise(p, &(wk_cudnn_step){CUDNN_POINTWISE_DIV, f32, e, sum, NULL,
                                               wk_cudnn_between(p, wk_cudnn_dtype(w->dtype), 4, all), 0});
    wk_cudnn_product(p, weights, v, wk_cudnn_attention_map(p, w, WK_ATTN_Y, false));
    wk_cudnn_choose(handle, p, &(wk_cudnn_rules){.number = w->number});
}

/* ---- calls ---- */

const char *wk_cudnn_attention_refuse(const wk_call *c, int mask)
{
    const wk_sdpa_options *o = c->params;
    const char *why = wk_cudnn_refuse(c, WK_SET(WK_F16) | WK_SET(WK_BF16));
    if (why)
        return why;
    const wk_tensor *q = c->in[0], *k = c->in[1], *v = c->in[2];
    if (c->in[mask] || o->softcap != 0)
        return "by cuDNN without mask and softcap";
    if (o->window > 0 && !o->causal)
        return "by cuDNN with a window that is causal";
    if (q->shape[3] % 8 || v->shape[3] % 8 || q->shape[3] > 256 || v->shape[3] > 256)
        return "cuDNN takes widths that are multiples of 8, up to 256";
    if (o->causal && q->shape[2] > k->shape[2])
        return "queries that see no key";
    if (k->shape[2] >= 1 << 24)
        return "2^24 keys and more";
    return NULL;
}

/* cuDNN compiles a kernel for each call of other sizes, for a third of a second. Calls that take the GPU a millisecond
 * and more come with the same sizes again and again; others are left to wick's kernel, unless cuDNN was asked for. */
const char *wk_cudnn_attention_small(const wk_call *c)
{
    const wk_tensor *q = c->in[0], *k = c->in[1], *v = c->in[2];
    if (strcmp(wk_forced_impl(), "cudnn") == 0 || c->variant)
        return NULL;
    double products = (double)q->shape[0] * (double)q->shape[1] * (double)q->shape[2] * (double)k->shape[2] *
                      (double)(q->shape[3] + v->shape[3]);
    return products < 2e11 ? "cuDNN would compile for sizes that may not come again" : NULL;
}

static const char *refuse(const wk_call *c)
{
    const char *why = wk_cudnn_attention_refuse(c, 3);
    return why ? why : wk_cudnn_attention_small(c);
}

void wk_cudnn_attention_fill(wk_cudnn_attention *w, const wk_call *c)
{
    const wk_sdpa_options *o = c->params;
    const wk_tensor *q = c->in[0], *k = c->in[1], *v = c->in[2];
    *w = (wk_cudnn_attention){.dtype = c->dtype,
                              .b = q->shape[0],
                              .hq = q->shape[1],
                              .hk = k->shape[1],
                              .s = q->shape[2],
                              .t = k->shape[2],
                              .d = q->shape[3],
                              .dv = v->shape[3],
                              .causal = o->causal != 0,
                              .number = (int)c->variant,
                              .scale = (float)wk_sdpa_scale(o, q->shape[3]),
                              .one = 1,
                              .lowest = -INFINITY};
    w->windowed = o->window > 0 && o->window < w->t; /* a wider one leaves nothing out */
    w->reach = (float)(o->window - (w->t - w->s));
    w->keys = (int32_t)w->t;
    w->queries = (int32_t)w->s;
    w->data[WK_ATTN_SCALE] = &w->scale;
    w->data[WK_ATTN_LOWEST] = w->causal ? &w->lowest : NULL;
    w->data[WK_ATTN_KEYS] = w->causal && w->s != w->t ? &w->keys : NULL;
    w->data[WK_ATTN_QUERIES] = w->causal && w->s != w->t ? &w->queries : NULL;
    w->data[WK_ATTN_REACH] = w->windowed ? &w->reach : NULL;
    w->data[WK_ATTN_LOWEST2] = w->windowed ? &w->lowest : NULL;
}

/* t itself where cuDNN takes its layout: elements of a row side by side, rows at multiples of 16 bytes. */
static const wk_tensor *usable(const wk_tensor *t)
{
    bool good = t->strides[3] == 1 && (size_t)wk_ptr(t) % 16 == 0;
    for (int d = 0; d < 3; d++)
        good = good && (t->shape[d] == 1 || (t->strides[d] > 0 && t->strides[d] % 8 == 0));
    if (good)
        return t;
    wk_tensor *copy = wk_tensor_new(t->storage->device, t->dtype, 4, t->shape);
    return copy && wk_copy_into(copy, t) == WK_OK ? copy : NULL;
}

/* A dimension of size 1 has the stride it would have if packed: others confuse cuDNN. */
static void take_strides(int64_t *strides, const wk_tensor *t)
{
    int64_t step = t->shape[3];
    for (int d = 3; d >= 0; d--)
        strides[d] = t->shape[d] == 1 ? (d == 3 ? 1 : step) : t->strides[d];
    for (int d = 2; d >= 0; d--) {
        if (t->shape[d] == 1)
            strides[d] = strides[d + 1] * t->shape[d + 1];
    }
}

wk_status wk_cudnn_attention_read(wk_cudnn_attention *w, int id, const wk_tensor *t)
{
    t = usable(t);
    return t ? wk_cudnn_attention_write(w, id, t) : wk_error_status();
}

wk_status wk_cudnn_attention_write(wk_cudnn_attention *w, int id, const wk_tensor *t)
{
    if ((size_t)wk_ptr(t) % 16)
        return wk_fail(WK_ERR_UNSUPPORTED, "cuDNN: results have to lie at multiples of 16 bytes");
    if (id < WK_ATTN_MAPS)
        take_strides(w->strides[id], t);
    w->data[id] = wk_ptr(t);
    return WK_OK;
}

static cudnnStatus_t queue(cudnnHandle_t handle, const wk_cudnn_plan *p, void *workspace, const void *data)
{
    const wk_cudnn_attention *w = data;
    int64_t ids[WK_ATTN_IDS];
    void *pointers[WK_ATTN_IDS];
    int n = 0;
    for (int id = WK_ATTN_Q; id < WK_ATTN_IDS; id++) {
        if (!w->data[id])
            continue;
        ids[n] = id;
        pointers[n++] = w->data[id];
    }
    return wk_cudnn_execute(handle, p, workspace, n, ids, pointers);
}

wk_status wk_cudnn_attention_run(const wk_call *c, wk_cudnn_attention *w,
                                 void (*set_up)(cudnnHandle_t, wk_cudnn_plan *, const void *))
{
    wk_cudnn_call d = {.call = c, .set_up = set_up, .run = queue, .data = w};
    for (int i = 0; i < 3; i++)
        wk_key_shape(&d.key, 4, c->in[i]->shape);
    for (int id = WK_ATTN_Q; id < WK_ATTN_MAPS; id++) {
        if (w->data[id])
            wk_key_shape(&d.key, 4, w->strides[id]);
    }
    wk_key_add(&d.key, w->causal);
    wk_key_add(&d.key, w->windowed);
    wk_key_add(&d.key, w->lse);
    wk_key_add(&d.key, w->number);
    return wk_cudnn_run(&d);
}

static wk_status run(wk_call *c)
{
    wk_cudnn_attention w;
    wk_cudnn_attention_fill(&w, c);
    for (int i = 0; i < 3; i++)
        WK_TRY(wk_cudnn_attention_read(&w, WK_ATTN_Q + i, c->in[i]));
    WK_TRY(wk_cudnn_attention_write(&w, WK_ATTN_Y, c->out[0]));
    w.lse = c->out[1] != NULL;
    if (w.lse)
        WK_TRY(wk_cudnn_attention_write(&w, WK_ATTN_LSE, c->out[1]));
    return wk_cudnn_attention_run(c, &w, set_up);
}

/* The first configurations; their workspaces are a few bytes. */
int wk_cudnn_attention_variants(uint64_t *list, int room)
{
    int n = 0;
    while (n < 3 && n < room) {
        list[n] = 1 + (uint64_t)n;
        n++;
    }
    return n;
}

const wk_impl wk_cuda_impls_attention[] = {
    {"sdpa", "cudnn", run, refuse, NULL},
    {"sdpa_backward", "cudnn", wk_cudnn_run_sdpa_backward, wk_cudnn_refuse_sdpa_backward, NULL},
    {0},
};
