/* llama_layers.c: one pass of tokens through the layers of a Llama-like model. */
#include "llama_layers.h"

/* A linear layer with weights of either kind. */
static wk_tensor *linear(const wk_tensor *x, const wk_tensor *weight, wk_qformat format,
                         const wk_tensor *bias)
{
    return format == WK_QFORMAT_COUNT ? wk_linear(x, weight, bias, WK_ACT_NONE)
                                      : wk_qlinear(x, weight, bias, format, WK_ACT_NONE);
}

/* The layers' results for x, views on one where they are merged. */
static void apply(const wm_joint *j, const wk_tensor *x, wk_tensor **y)
{
    if (!j->merged) {
        for (int i = 0; i < j->n; i++)
            y[i] = linear(x, j->weight[i], j->format[i], j->bias[i]);
        return;
    }
    wk_tensor *all = wk_linear(x, j->weight[0], j->bias[0], WK_ACT_NONE);
    int64_t first = 0;
    for (int i = 0; i < j->n; first += j->out[i++])
        y[i] = j->n == 1 ? all : wk_narrow(all, -1, first, j->out[i]);
}

/* [rows, n, heads * head_dim] as [rows, n, heads, head_dim], with its norm. */
static wk_tensor *as_heads(const wm_pass *p, const wk_tensor *x, int64_t heads, const wk_tensor *norm)
{
    const wm_llama_config *c = &p->model->config;
    wk_tensor *h = wk_reshape(x, 4, (int64_t[]){p->rows, p->n, heads, c->head_dim});
    return norm ? wk_rms_norm(h, norm, c->eps) : h;
}

/* Writes x [rows, n, kv_heads, head_dim] into the pass's part of a cache; gives all that is seen of it. */
static wk_tensor *remember(const wm_pass *p, wk_tensor *cache, const wk_tensor *x)
{
    wk_tensor *rows = wk_narrow(cache, 0, p->row, p->rows), *turned = wk_transpose(x, 1, 2);
    wk_tensor *seen = wk_narrow(rows, 2, 0, p->seen);
    if (p->place)
        wk_scatter_into(seen, seen, p->place, turned, 2);
    else
        wk_copy_into(wk_narrow(rows, 2, p->seen - p->n, p->n), turned);
    return seen;
}

static wk_tensor *attend(const wm_pass *p, int64_t i, const wk_tensor *x)
{
    const wm_llama_config *c = &p->model->config;
    const wm_llama_layer *layer = &p->model->layers[i];
    wk_tensor *parts[WM_JOINT], *y;
    apply(&layer->qkv, x, parts);
    wk_tensor *q = wk_rope_thd(as_heads(p, parts[0], c->heads, layer->q_norm), p->cos, p->sin);
    wk_tensor *k = wk_rope_thd(as_heads(p, parts[1], c->kv_heads, layer->k_norm), p->cos, p->sin);
    wk_tensor *keys = remember(p, p->keys[i], k);
    wk_tensor *values = remember(p, p->values[i], as_heads(p, parts[2], c->kv_heads, NULL));
    bool slides = c->window && i >= c->windows_from;
    const wk_tensor *mask = slides ? p->window_mask : p->mask;
    const wk_sdpa_options *options = mask ? NULL : WK_SDPA(.causal = 1, .window = slides ? c->window : 0);
    y = wk_sdpa(wk_transpose(q, 1, 2), keys, values, mask, options, NULL);
    y = wk_reshape(wk_transpose(y, 1, 2), 3, (int64_t[]){p->rows, p->n, c->heads * c->head_dim});
    apply(&layer->out, y, parts);
    return parts[0];
}

static wk_tensor *feed_forward(const wm_llama_layer *layer, const wk_tensor *x)
{
    wk_tensor *parts[WM_JOINT];
    apply(&layer->gate_up, x, parts);
    apply(&layer->down, wk_mul(wk_silu(parts[0]), parts[1]), parts);
    return parts[0];
}

static wk_tensor *run_layer(const wm_pass *p, int64_t i, wk_tensor *x)
{
    const wm_llama_layer *layer = &p->model->layers[i];
    double eps = p->model->config.eps;
    wk_scope_begin();
    x = wk_add(x, attend(p, i, wk_rms_norm(x, layer->attn_norm, eps)));
    x = wk_add(x, feed_forward(layer, wk_rms_norm(x, layer->mlp_norm, eps)));
    return wk_scope_end_keep(x);
}

wk_tensor *wm_llama_run(const wm_pass *p, const wk_tensor *ids)
{
    const wm_llama *m = p->model;
    const wm_llama_config *c = &m->config;
    wk_tensor *x = m->embedding_format == WK_QFORMAT_COUNT
                       ? wk_index_select(m->embedding, ids, 0)
                       : wk_qembedding(m->embedding, ids, m->embedding_format, m->dtype);
    x = wk_reshape(x, 3, (int64_t[]){p->rows, p->n, c->hidden});
    for (int64_t i = 0; i < c->layers && x; i++) {
        if (p->watch)
            p->watch(p->watch_ctx, i, x);
        wk_tensor *before = x;
        x = run_layer(p, i, x);
        wk_drop(before);
    }
    x = wk_rms_norm(x, m->norm, c->eps);
    if (p->watch && x)
        p->watch(p->watch_ctx, c->layers, x);
    return x;
}

wk_tensor *wm_llama_head(const wm_llama *m, const wk_tensor *hidden, wk_tensor **best)
{
    wk_tensor *logits = linear(hidden, m->head, m->head_format, NULL);
    if (best)
        *best = wk_argmax(logits, -1, 0);
    return m->dtype == WK_F32 ? logits : wk_cast(logits, WK_F32);
}
