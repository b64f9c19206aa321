/* llama_layers.c: one pass of tokens through the layers of a Llama-like model. */
#include "llama_layers.h"

/* A linear layer with weights of either kind. */
static wk_tensor *linear(const wk_tensor *x, const wk_tensor *weight, wk_qformat format,
                         const wk_tensor *bias)
{
    return format == WK_QFORMAT_COUNT ? wk_linear(x, weight, bias, WK_ACT_NONE)
                                      : wk_qlinear(x, weight, bias, format, WK_ACT_NONE);
}

/* The states between two layers: their sum so far, and what the last layer adds to it, which goes in with the next norm. */
typedef struct {
    wk_tensor *sum, *more; /* more: NULL before the first layer */
} stream;

/* The norm of the sum with what was to be added, which is then added. */
static wk_tensor *add_norm(stream *s, const wk_tensor *weight, double eps)
{
    wk_tensor *sum = s->sum, *y;
    if (!s->more)
        return wk_rms_norm(sum, weight, eps);
    y = wk_add_rms_norm(s->more, sum, weight, eps, &s->sum);
    s->more = NULL;
    return y;
}

/* The same with the merged layers behind it; gated: silu of one half times the other. */
static wk_tensor *add_norm_linear(stream *s, const wk_tensor *norm, double eps, const wm_joint *j, bool gated)
{
    wk_tensor *sum = s->sum, *more = s->more;
    s->more = NULL;
    return wk_rms_norm_linear(more ? more : sum, more ? sum : NULL, norm, eps, j->weight[0], j->bias[0],
                              gated, more ? &s->sum : NULL);
}

/* Each layer's result for x. */
static void apply(const wm_joint *j, const wk_tensor *x, wk_tensor **y)
{
    for (int i = 0; i < j->n; i++)
        y[i] = linear(x, j->weight[i], j->format[i], j->bias[i]);
}

/* The results for the norm of the states, views on one where the layers are merged. */
static void apply_to_norm(const wm_joint *j, stream *s, const wk_tensor *norm, double eps, wk_tensor **y)
{
    if (!j->merged) {
        apply(j, add_norm(s, norm, eps), y);
        return;
    }
    wk_tensor *all = add_norm_linear(s, norm, eps, j, false);
    int64_t first = 0;
    for (int i = 0; i < j->n; first += j->out[i++])
        y[i] = wk_narrow(all, -1, first, j->out[i]);
}

/* [rows, n, heads * head_dim] as [rows, n, heads, head_dim], with its norm. */
static wk_tensor *as_heads(const wm_pass *p, const wk_tensor *x, int64_t heads, const wk_tensor *norm)
{
    const wm_llama_config *c = &p->model->config;
    wk_tensor *h = wk_reshape(x, 4, (int64_t[]){p->rows, p->n, heads, c->head_dim});
    return norm ? wk_rms_norm(h, norm, c->eps) : h;
}

/* The pass's part of a cache. */
static wk_tensor *rows_of(const wm_pass *p, wk_tensor *cache) { return wk_narrow(cache, 0, p->row, p->rows); }

/* Writes x [rows, n, kv_heads, head_dim] behind what is there. */
static void remember(const wm_pass *p, wk_tensor *cache, const wk_tensor *x)
{
    wk_copy_into(wk_narrow(rows_of(p, cache), 2, p->seen - p->n, p->n), wk_transpose(x, 1, 2));
}

/* Queries and keys turned, keys and values remembered; gives the queries. */
static wk_tensor *turn(const wm_pass *p, int64_t i, const wk_tensor *q, const wk_tensor *k,
                       const wk_tensor *v)
{
    wk_tensor *turned_q = NULL, *turned_k = NULL;
    if (p->place)
        return wk_rope_cache(q, k, v, p->cos, p->sin, rows_of(p, p->keys[i]), rows_of(p, p->values[i]),
                             p->place);
    wk_rope_qk(q, k, p->cos, p->sin, WK_ROPE_THD, &turned_q, &turned_k);
    remember(p, p->keys[i], turned_k);
    remember(p, p->values[i], v);
    return turned_q;
}

static wk_tensor *attend(const wm_pass *p, int64_t i, stream *s)
{
    const wm_llama_config *c = &p->model->config;
    const wm_llama_layer *layer = &p->model->layers[i];
    wk_tensor *parts[WM_JOINT], *q, *y;
    apply_to_norm(&layer->qkv, s, layer->attn_norm, c->eps, parts);
    q = turn(p, i, as_heads(p, parts[0], c->heads, layer->q_norm),
             as_heads(p, parts[1], c->kv_heads, layer->k_norm), as_heads(p, parts[2], c->kv_heads, NULL));
    bool slides = c->window && i >= c->windows_from;
    const wk_tensor *mask = slides ? p->window_mask : p->mask;
    const wk_sdpa_options *options = mask ? NULL : WK_SDPA(.causal = 1, .window = slides ? c->window : 0);
    y = wk_sdpa(wk_transpose(q, 1, 2), wk_narrow(rows_of(p, p->keys[i]), 2, 0, p->seen),
                wk_narrow(rows_of(p, p->values[i]), 2, 0, p->seen), mask, options, NULL);
    y = wk_reshape(wk_transpose(y, 1, 2), 3, (int64_t[]){p->rows, p->n, c->heads * c->head_dim});
    apply(&layer->out, y, parts);
    return parts[0];
}

static wk_tensor *feed_forward(const wm_llama_layer *layer, stream *s, double eps)
{
    wk_tensor *parts[WM_JOINT];
    const wm_joint *j = &layer->gate_up;
    if (j->merged) {
        parts[0] = add_norm_linear(s, layer->mlp_norm, eps, j, true);
    } else {
        apply(j, add_norm(s, layer->mlp_norm, eps), parts);
        parts[0] = wk_silu_mul(parts[0], parts[1]);
    }
    apply(&layer->down, parts[0], parts);
    return parts[0];
}

static void run_layer(const wm_pass *p, int64_t i, stream *s)
{
    const wm_llama_layer *layer = &p->model->layers[i];
    stream before = *s;
    wk_scope_begin();
    s->more = attend(p, i, s);
    s->more = feed_forward(layer, s, p->model->config.eps);
    wk_retain(s->sum);
    wk_retain(s->more);
    wk_scope_end();
    wk_drop(before.sum);
    wk_drop(before.more);
}

wk_tensor *wm_llama_run(const wm_pass *p, const wk_tensor *ids)
{
    const wm_llama *m = p->model;
    const wm_llama_config *c = &m->config;
    wk_scope_begin();
    wk_tensor *x = m->embedding_format == WK_QFORMAT_COUNT
                       ? wk_index_select(m->embedding, ids, 0)
                       : wk_qembedding(m->embedding, ids, m->embedding_format, m->dtype);
    stream s = {.sum = wk_retain(wk_reshape(x, 3, (int64_t[]){p->rows, p->n, c->hidden}))};
    for (int64_t i = 0; i < c->layers; i++) {
        if (p->watch)
            p->watch(p->watch_ctx, i, s.more ? wk_add(s.sum, s.more) : s.sum);
        run_layer(p, i, &s);
    }
    stream last = s;
    x = add_norm(&s, m->norm, c->eps);
    wk_drop(last.sum);
    wk_drop(last.more);
    if (p->watch && x)
        p->watch(p->watch_ctx, c->layers, x);
    return wk_scope_end_keep(x);
}

wk_tensor *wm_llama_head(const wm_llama *m, const wk_tensor *hidden, wk_tensor **best)
{
    wk_tensor *logits = linear(hidden, m->head, m->head_format, NULL);
    if (best)
        *best = wk_argmax(logits, -1, 0);
    return m->dtype == WK_F32 ? logits : wk_cast(logits, WK_F32);
}
