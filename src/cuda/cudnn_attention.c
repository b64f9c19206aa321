/* cudnn_attention.c: attention by cuDNN, which knows it as a graph of operations: a product, what is done to its
 * elements, a softmax in steps, a product. What lies between is never in memory. */
#include "cudnn_plan.h"
#include "gpu/families.h"
#include "ops/attention.h"
#include "wick/ops.h"

/* Tensors by what they are. */
enum { Q = 1, K, V, Y, LSE, SCALE, LOWEST, KEYS, QUERIES, REACH, LOWEST2, IDS };

typedef struct {
    wk_dtype dtype;
    int64_t b, hq, hk, s, t, d, dv;
    int64_t strides[Y + 1][4]; /* of Q, K, V, Y */
    bool causal, lse;
    int number;    /* of the configuration to take; 0: the first that works */
    bool windowed; /* keys too far before the query are not seen either */
    float scale, lowest, reach;
    int32_t keys, queries;
    void *data[IDS];
} work;

/* ---- nodes of the graph ---- */

/* A number that is given at the run. */
static cudnnBackendDescriptor_t number(wk_cudnn_plan *p, int64_t id, cudnnDataType_t type)
{
    static const int64_t ones[] = {1, 1, 1, 1};
    wk_cudnn_tensor t = {
        .id = id, .type = type, .rank = 4, .shape = ones, .strides = ones, .flags = WK_CUDNN_BY_VALUE};
    return wk_cudnn_tensor_of(p, &t);
}

static cudnnBackendDescriptor_t add_reduction(wk_cudnn_plan *p, cudnnReduceTensorOp_t how,
                                              cudnnBackendDescriptor_t x, cudnnBackendDescriptor_t y)
{
    cudnnDataType_t compute = CUDNN_DATA_FLOAT;
    cudnnBackendDescriptor_t d = wk_cudnn_new(p, CUDNN_BACKEND_REDUCTION_DESCRIPTOR, "a reduction");
    wk_cudnn_set(p, d, CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, &how);
    wk_cudnn_set(p, d, CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &compute);
    wk_cudnn_finish(p, d, "a reduction");
    cudnnBackendDescriptor_t op =
        wk_cudnn_new(p, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, "a reduction");
    wk_cudnn_set_descriptor(p, op, CUDNN_ATTR_OPERATION_REDUCTION_DESC, d);
    wk_cudnn_set_descriptor(p, op, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x);
    wk_cudnn_set_descriptor(p, op, CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y);
    wk_cudnn_add(p, op, "a reduction");
    return y;
}

static cudnnBackendDescriptor_t add_product(wk_cudnn_plan *p, cudnnBackendDescriptor_t a,
                                            cudnnBackendDescriptor_t b, cudnnBackendDescriptor_t y)
{
    cudnnDataType_t compute = CUDNN_DATA_FLOAT;
    cudnnBackendDescriptor_t d = wk_cudnn_new(p, CUDNN_BACKEND_MATMUL_DESCRIPTOR, "a product");
    wk_cudnn_set(p, d, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &compute);
    wk_cudnn_finish(p, d, "a product");
    cudnnBackendDescriptor_t op = wk_cudnn_new(p, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, "a product");
    wk_cudnn_set_descriptor(p, op, CUDNN_ATTR_OPERATION_MATMUL_ADESC, a);
    wk_cudnn_set_descriptor(p, op, CUDNN_ATTR_OPERATION_MATMUL_BDESC, b);
    wk_cudnn_set_descriptor(p, op, CUDNN_ATTR_OPERATION_MATMUL_CDESC, y);
    wk_cudnn_set_descriptor(p, op, CUDNN_ATTR_OPERATION_MATMUL_DESC, d);
    wk_cudnn_add(p, op, "a product");
    return y;
}

/* ---- the graph ---- */

/* Q, K, V or Y; K is taken turned. */
static cudnnBackendDescriptor_t operand(wk_cudnn_plan *p, const work *w, int id)
{
    int64_t heads = id == Q || id == Y ? w->hq : w->hk, rows = id == Q || id == Y ? w->s : w->t;
    int64_t width = id == Q || id == K ? w->d : w->dv;
    const int64_t *st = w->strides[id];
    bool turned = id == K;
    int64_t shape[] = {w->b, heads, turned ? width : rows, turned ? rows : width};
    int64_t strides[] = {st[0], st[1], turned ? st[3] : st[2], turned ? st[2] : st[3]};
    wk_cudnn_tensor t = {
        .id = id, .type = wk_cudnn_dtype(w->dtype), .rank = 4, .shape = shape, .strides = strides};
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

/* Scores of keys after the query's position become -inf; query i stands at i + t - s. */
static cudnnBackendDescriptor_t hide_later(wk_cudnn_plan *p, const work *w, cudnnBackendDescriptor_t scores,
                                           const int64_t *shape)
{
    cudnnBackendDescriptor_t row = count(p, scores, shape, 2);
    if (w->s != w->t) {
        row = wk_cudnn_pointwise(p, &(wk_cudnn_step){CUDNN_POINTWISE_ADD, CUDNN_DATA_INT32, row,
                                                     number(p, KEYS, CUDNN_DATA_INT32), NULL,
                                                     wk_cudnn_between(p, CUDNN_DATA_INT32, 4, shape), 0});
        row = wk_cudnn_pointwise(p, &(wk_cudnn_step){CUDNN_POINTWISE_SUB, CUDNN_DATA_INT32, row,
                                                     number(p, QUERIES, CUDNN_DATA_INT32), NULL,
                                                     wk_cudnn_between(p, CUDNN_DATA_INT32, 4, shape), 0});
    }
    cudnnBackendDescriptor_t column = count(p, scores, shape, 3);
    cudnnBackendDescriptor_t seen =
        wk_cudnn_pointwise(p, &(wk_cudnn_step){CUDNN_POINTWISE_CMP_GE, CUDNN_DATA_BOOLEAN, row, column, NULL,
                                               wk_cudnn_between(p, CUDNN_DATA_BOOLEAN, 4, shape), 0});
    return wk_cudnn_pointwise(p, &(wk_cudnn_step){CUDNN_POINTWISE_BINARY_SELECT, CUDNN_DATA_FLOAT, scores,
                                                  number(p, LOWEST, CUDNN_DATA_FLOAT), seen,
                                                  wk_cudnn_between(p, CUDNN_DATA_FLOAT, 4, shape), 0});
}

/* The same for keys of a window's length and more before it: a key is seen where its number + reach is beyond the
 * query's. */
static cudnnBackendDescriptor_t hide_earlier(wk_cudnn_plan *p, cudnnBackendDescriptor_t scores,
                                             const int64_t *shape)
{
    cudnnBackendDescriptor_t row = count(p, scores, shape, 2), column = count(p, scores, shape, 3);
    column = wk_cudnn_pointwise(p, &(wk_cudnn_step){CUDNN_POINTWISE_ADD, CUDNN_DATA_FLOAT, column,
                                                    number(p, REACH, CUDNN_DATA_FLOAT), NULL,
                                                    wk_cudnn_between(p, CUDNN_DATA_INT32, 4, shape), 0});
    cudnnBackendDescriptor_t seen =
        wk_cudnn_pointwise(p, &(wk_cudnn_step){CUDNN_POINTWISE_CMP_GT, CUDNN_DATA_BOOLEAN, column, row, NULL,
                                               wk_cudnn_between(p, CUDNN_DATA_BOOLEAN, 4, shape), 0});
    return wk_cudnn_pointwise(p, &(wk_cudnn_step){CUDNN_POINTWISE_BINARY_SELECT, CUDNN_DATA_FLOAT, scores,
                                                  number(p, LOWEST2, CUDNN_DATA_FLOAT), seen,
                                                  wk_cudnn_between(p, CUDNN_DATA_FLOAT, 4, shape), 0});
}

static void set_up(cudnnHandle_t handle, wk_cudnn_plan *p, const void *data)
{
    const work *w = data;
    const int64_t all[] = {w->b, w->hq, w->s, w->t}, rows[] = {w->b, w->hq, w->s, 1};
    const cudnnDataType_t f32 = CUDNN_DATA_FLOAT;
    cudnnBackendDescriptor_t q = operand(p, w, Q), k = operand(p, w, K), v = operand(p, w, V);
    cudnnBackendDescriptor_t scores = add_product(p, q, k, wk_cudnn_between(p, f32, 4, all));
    scores = wk_cudnn_pointwise(p, &(wk_cudnn_step){CUDNN_POINTWISE_MUL, f32, scores, number(p, SCALE, f32),
                                                    NULL, wk_cudnn_between(p, f32, 4, all), 0});
    if (w->causal)
        scores = hide_later(p, w, scores, all);
    if (w->windowed)
        scores = hide_earlier(p, scores, all);
    cudnnBackendDescriptor_t top =
        add_reduction(p, CUDNN_REDUCE_TENSOR_MAX, scores, wk_cudnn_between(p, f32, 4, rows));
    cudnnBackendDescriptor_t less =
        wk_cudnn_pointwise(p, &(wk_cudnn_step){CUDNN_POINTWISE_SUB, f32, scores, top, NULL,
                                               wk_cudnn_between(p, f32, 4, all), 0});
    cudnnBackendDescriptor_t e = wk_cudnn_pointwise(
        p, &(wk_cudnn_step){CUDNN_POINTWISE_EXP, f32, less, NULL, NULL, wk_cudnn_between(p, f32, 4, all), 0});
    cudnnBackendDescriptor_t sum =
        add_reduction(p, CUDNN_REDUCE_TENSOR_ADD, e, wk_cudnn_between(p, f32, 4, rows));
    cudnnBackendDescriptor_t log = wk_cudnn_pointwise(
        p, &(wk_cudnn_step){CUDNN_POINTWISE_LOG, f32, sum, NULL, NULL, wk_cudnn_between(p, f32, 4, rows), 0});
    wk_cudnn_tensor lse = {.id = w->lse ? LSE : 0,
                           .type = f32,
                           .rank = 4,
                           .shape = rows,
                           .flags = w->lse ? 0 : WK_CUDNN_VIRTUAL};
    wk_cudnn_pointwise(
        p, &(wk_cudnn_step){CUDNN_POINTWISE_ADD, f32, top, log, NULL, wk_cudnn_tensor_of(p, &lse), 0});
    cudnnBackendDescriptor_t weights =
        wk_cudnn_pointwise(p, &(wk_cudnn_step){CUDNN_POINTWISE_DIV, f32, e, sum, NULL,
                                               wk_cudnn_between(p, wk_cudnn_dtype(w->dtype), 4, all), 0});
    add_product(p, weights, v, operand(p, w, Y));
    wk_cudnn_choose(handle, p, &(wk_cudnn_rules){.number = w->number});
}

static cudnnStatus_t queue(cudnnHandle_t handle, const wk_cudnn_plan *p, void *workspace, const void *data)
{
    const work *w = data;
    int64_t ids[IDS];
    void *pointers[IDS];
    int n = 0;
    for (int id = Q; id < IDS; id++) {
        if (!w->data[id])
            continue;
        ids[n] = id;
        pointers[n++] = w->data[id];
    }
    return wk_cudnn_execute(handle, p, workspace, n, ids, pointers);
}

/* ---- calls ---- */

static const char *refuse(const wk_call *c)
{
    const wk_sdpa_options *o = c->params;
    const char *why = wk_cudnn_refuse(c, WK_SET(WK_F16) | WK_SET(WK_BF16));
    if (why)
        return why;
    const wk_tensor *q = c->in[0], *k = c->in[1], *v = c->in[2];
    if (c->in[3] || o->softcap != 0)
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

static wk_status run(wk_call *c)
{
    const wk_sdpa_options *o = c->params;
    const wk_tensor *in[3];
    for (int i = 0; i < 3; i++) {
        in[i] = usable(c->in[i]);
        if (!in[i])
            return wk_error_status();
    }
    work w = {.dtype = c->dtype,
              .b = in[0]->shape[0],
              .hq = in[0]->shape[1],
              .hk = in[1]->shape[1],
              .s = in[0]->shape[2],
              .t = in[1]->shape[2],
              .d = in[0]->shape[3],
              .dv = in[2]->shape[3],
              .causal = o->causal != 0,
              .lse = c->out[1] != NULL,
              .scale = (float)wk_sdpa_scale(o, in[0]->shape[3]),
              .lowest = -INFINITY};
    w.windowed = o->window > 0 && o->window < w.t; /* a wider one leaves nothing out */
    w.reach = (float)(o->window - (w.t - w.s));
    w.number = (int)c->variant;
    w.keys = (int32_t)w.t;
    w.queries = (int32_t)w.s;
    for (int i = 0; i < 3; i++) {
        take_strides(w.strides[Q + i], in[i]);
        w.data[Q + i] = wk_ptr(in[i]);
    }
    if ((size_t)wk_ptr(c->out[0]) % 16 || (w.lse && (size_t)wk_ptr(c->out[1]) % 16))
        return wk_fail(WK_ERR_UNSUPPORTED, "cuDNN: results have to lie at multiples of 16 bytes");
    take_strides(w.strides[Y], c->out[0]);
    w.data[Y] = wk_ptr(c->out[0]);
    w.data[LSE] = w.lse ? wk_ptr(c->out[1]) : NULL;
    w.data[SCALE] = &w.scale;
    w.data[LOWEST] = w.causal ? &w.lowest : NULL;
    w.data[KEYS] = w.causal && w.s != w.t ? &w.keys : NULL;
    w.data[QUERIES] = w.causal && w.s != w.t ? &w.queries : NULL;
    w.data[REACH] = w.windowed ? &w.reach : NULL;
    w.data[LOWEST2] = w.windowed ? &w.lowest : NULL;
    wk_cudnn_call d = {.call = c, .set_up = set_up, .run = queue, .data = &w};
    for (int i = 0; i < 3; i++) {
        wk_key_shape(&d.key, 4, in[i]->shape);
        wk_key_shape(&d.key, 4, w.strides[Q + i]);
    }
    wk_key_add(&d.key, w.causal);
    wk_key_add(&d.key, w.windowed);
    wk_key_add(&d.key, w.lse);
    wk_key_add(&d.key, w.number);
    return wk_cudnn_run(&d);
}

/* cuDNN compiles a kernel for each call of other sizes, for a third of a second. Calls that take the GPU a millisecond
 * and more come with the same sizes again and again; others are left to wick's kernel, unless cuDNN was asked for. */
static const char *refuse_small(const wk_call *c)
{
    const wk_tensor *q = c->in[0], *k = c->in[1], *v = c->in[2];
    const char *why = refuse(c);
    if (why || strcmp(wk_forced_impl(), "cudnn") == 0 || c->variant)
        return why;
    double products = (double)q->shape[0] * (double)q->shape[1] * (double)q->shape[2] * (double)k->shape[2] *
                      (double)(q->shape[3] + v->shape[3]);
    return products < 2e11 ? "cuDNN would compile for sizes that may not come again" : NULL;
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
    {"sdpa", "cudnn", run, refuse_small, NULL},
    {0},
};
