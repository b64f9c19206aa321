/* llama.c: the weights of a Llama-like model: from files, or random. */
#include "llama.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "error.h"
#include "gguf.h"
#include "llama_int.h"

/* Where weights come from while a model is put together. */
typedef struct {
    wm_llama *m;
    wm_weights *weights; /* NULL: random ones */
    int64_t seed, offset;
} loader;

/* ---- single tensors ---- */

static wk_tensor *random_tensor(loader *l, int rank, const int64_t *shape)
{
    const double spread = 0.02; /* as models are initialised */
    wk_tensor *t = rank == 1
                       ? wk_fill(l->m->device, l->m->dtype, rank, shape, 1)
                       : wk_randn(l->m->device, l->m->dtype, rank, shape, 0, spread, l->seed, l->offset);
    if (t)
        l->offset += (wk_count(t) + 3) / 4;
    return t;
}

static wk_tensor *get(loader *l, const char *name, int rank, const int64_t *shape)
{
    if (wm_error_status() != WK_OK)
        return NULL;
    return l->weights ? wm_weights_get(l->weights, name, l->m->dtype, rank, shape)
                      : random_tensor(l, rank, shape);
}

/* A matrix, which may be quantised. */
static wk_tensor *get_matrix(loader *l, const char *name, int64_t rows, int64_t columns, wk_qformat *format)
{
    *format = WK_QFORMAT_COUNT;
    if (wm_error_status() != WK_OK)
        return NULL;
    return l->weights ? wm_weights_matrix(l->weights, name, l->m->dtype, rows, columns, format)
                      : random_tensor(l, 2, (int64_t[]){rows, columns});
}

enum { NAME = 96 };

/* "model.layers.3.self_attn.q_proj.weight" */
static const char *layer_name(int64_t i, const char *part, const char *kind, char out[NAME])
{
    snprintf(out, NAME, "model.layers.%lld.%s.%s", (long long)i, part, kind);
    return out;
}

static wk_tensor *get_norm(loader *l, int64_t i, const char *part, int64_t size)
{
    char name[NAME];
    return get(l, layer_name(i, part, "weight", name), 1, &size);
}

/* ---- joint layers ---- */

/* What a joint layer is made of. */
typedef struct {
    const char *part[WM_JOINT];
    int64_t out[WM_JOINT], in;
    int n;
    bool bias;
} joint_spec;

/* Rows [first, first + rows) of the merged tensor, from the file. */
static void get_rows(loader *l, const char *name, wk_tensor *all, int64_t first, int64_t rows)
{
    wk_scope_begin();
    wk_tensor *part = wk_narrow(all, 0, first, rows);
    if (part)
        wm_weights_into(l->weights, name, part);
    wk_scope_end();
}

static wk_tensor *get_merged(loader *l, int64_t layer, const joint_spec *s, const char *kind, int rank)
{
    char name[NAME];
    int64_t rows = 0, first = 0;
    for (int i = 0; i < s->n; i++)
        rows += s->out[i];
    if (!l->weights)
        return random_tensor(l, rank, (int64_t[]){rows, s->in});
    wk_tensor *all = wk_empty(l->m->device, l->m->dtype, rank, (int64_t[]){rows, s->in});
    for (int i = 0; all && i < s->n; i++) {
        get_rows(l, layer_name(layer, s->part[i], kind, name), all, first, s->out[i]);
        first += s->out[i];
    }
    return all;
}

static bool is_quantised(const loader *l, int64_t layer, const joint_spec *s)
{
    char name[NAME];
    bool any = false;
    for (int i = 0; i < s->n && l->weights; i++)
        any |=
            wm_weights_format(l->weights, layer_name(layer, s->part[i], "weight", name)) != WK_QFORMAT_COUNT;
    return any;
}

static void get_joint(loader *l, int64_t layer, const joint_spec *s, wm_joint *j)
{
    char name[NAME];
    j->n = s->n;
    memcpy(j->out, s->out, sizeof j->out);
    j->merged = (l->m->gpu || !l->weights) && !is_quantised(l, layer, s);
    if (j->merged) {
        j->format[0] = WK_QFORMAT_COUNT;
        j->weight[0] = get_merged(l, layer, s, "weight", 2);
        j->bias[0] = s->bias ? get_merged(l, layer, s, "bias", 1) : NULL;
        return;
    }
    for (int i = 0; i < s->n; i++) {
        j->weight[i] =
            get_matrix(l, layer_name(layer, s->part[i], "weight", name), s->out[i], s->in, &j->format[i]);
        j->bias[i] = s->bias ? get(l, layer_name(layer, s->part[i], "bias", name), 1, &s->out[i]) : NULL;
    }
}

static void drop_joint(wm_joint *j)
{
    for (int i = 0; i < WM_JOINT; i++) {
        wk_drop(j->weight[i]);
        wk_drop(j->bias[i]);
    }
}

/* ---- the model ---- */

static void load_layer(loader *l, int64_t i, wm_llama_layer *layer)
{
    const wm_llama_config *c = &l->m->config;
    int64_t q = c->heads * c->head_dim, kv = c->kv_heads * c->head_dim;
    joint_spec qkv = {
        {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"}, {q, kv, kv}, c->hidden, 3, c->qkv_bias};
    joint_spec out = {{"self_attn.o_proj"}, {c->hidden}, q, 1, c->out_bias};
    joint_spec gate_up = {{"mlp.gate_proj", "mlp.up_proj"}, {c->inner, c->inner}, c->hidden, 2, c->mlp_bias};
    joint_spec down = {{"mlp.down_proj"}, {c->hidden}, c->inner, 1, c->mlp_bias};
    layer->attn_norm = get_norm(l, i, "input_layernorm", c->hidden);
    get_joint(l, i, &qkv, &layer->qkv);
    layer->q_norm = c->qk_norm ? get_norm(l, i, "self_attn.q_norm", c->head_dim) : NULL;
    layer->k_norm = c->qk_norm ? get_norm(l, i, "self_attn.k_norm", c->head_dim) : NULL;
    get_joint(l, i, &out, &layer->out);
    layer->mlp_norm = get_norm(l, i, "post_attention_layernorm", c->hidden);
    get_joint(l, i, &gate_up, &layer->gate_up);
    get_joint(l, i, &down, &layer->down);
}

static void load_all(loader *l)
{
    wm_llama *m = l->m;
    const wm_llama_config *c = &m->config;
    m->embedding = get_matrix(l, "model.embed_tokens.weight", c->vocab, c->hidden, &m->embedding_format);
    for (int64_t i = 0; i < c->layers && wm_error_status() == WK_OK; i++)
        load_layer(l, i, &m->layers[i]);
    m->norm = get(l, "model.norm.weight", 1, &c->hidden);
    m->head_format = m->embedding_format;
    m->head = c->tied ? wk_retain(m->embedding)
                      : get_matrix(l, "lm_head.weight", c->vocab, c->hidden, &m->head_format);
}

static wm_llama *make(const wm_llama_config *c, wm_weights *weights, wk_device *device, wk_dtype dtype,
                      int64_t seed)
{
    wm_llama *m = calloc(1, sizeof *m);
    wm_llama_layer *layers = calloc((size_t)c->layers, sizeof *layers);
    if (!m || !layers) {
        wm_fail(WK_ERR_MEMORY, "llama: out of memory");
        free(m);
        free(layers);
        return NULL;
    }
    *m = (wm_llama){.config = *c, .device = device, .layers = layers};
    m->gpu = strcmp(wk_device_name(device), "cpu") != 0;
    m->dtype = dtype != WK_DTYPE_COUNT      ? dtype
               : c->dtype != WK_DTYPE_COUNT ? c->dtype
               : m->gpu                     ? WK_BF16
                                            : WK_F32;
    load_all(&(loader){.m = m, .weights = weights, .seed = seed});
    wk_memory_trim(device); /* what loading took on the way */
    if (wm_error_status() == WK_OK && wk_sync(device) == WK_OK)
        return m;
    wm_llama_free(m);
    return NULL;
}

wm_llama *wm_llama_from(const wm_llama_config *c, wm_weights *weights, wk_device *device, wk_dtype dtype)
{
    return make(c, weights, device, dtype, 0);
}

wm_llama *wm_llama_random(const wm_llama_config *c, wk_device *device, wk_dtype dtype, int64_t seed)
{
    return make(c, NULL, device, dtype, seed);
}

wm_llama *wm_llama_load(const char *folder, wk_device *device, wk_dtype dtype, const wm_progress *progress)
{
    wm_llama_config c;
    bool gguf = wm_is_gguf(folder);
    if (!(gguf ? wm_gguf_read_config(folder, &c) : wm_llama_read_config(folder, &c)))
        return NULL;
    wm_weights *weights = gguf ? wm_weights_over(folder, wm_gguf_source(folder), device, progress)
                               : wm_weights_open(folder, device, progress);
    wm_llama *m = weights ? wm_llama_from(&c, weights, device, dtype) : NULL;
    wm_weights_close(weights);
    return m;
}

void wm_llama_free(wm_llama *m)
{
    if (!m)
        return;
    for (int64_t i = 0; i < m->config.layers; i++) {
        wm_llama_layer *layer = &m->layers[i];
        wk_drop(layer->attn_norm);
        wk_drop(layer->mlp_norm);
        wk_drop(layer->q_norm);
        wk_drop(layer->k_norm);
        drop_joint(&layer->qkv);
        drop_joint(&layer->out);
        drop_joint(&layer->gate_up);
        drop_joint(&layer->down);
    }
    wk_drop(m->embedding);
    wk_drop(m->norm);
    wk_drop(m->head);
    free(m->layers);
    free(m);
}

const wm_llama_config *wm_llama_config_of(const wm_llama *m) { return &m->config; }
wk_device *wm_llama_device(const wm_llama *m) { return m->device; }
wk_dtype wm_llama_dtype(const wm_llama *m) { return m->dtype; }

static int64_t bytes_of(const wk_tensor *t)
{
    return t ? wk_count(t) * (int64_t)wk_dtype_size(wk_dtype_of(t)) : 0;
}

static int64_t joint_bytes(const wm_joint *j)
{
    int64_t n = 0;
    for (int i = 0; i < WM_JOINT; i++)
        n += bytes_of(j->weight[i]) + bytes_of(j->bias[i]);
    return n;
}

int64_t wm_llama_bytes(const wm_llama *m, int64_t *per_token)
{
    int64_t n = bytes_of(m->norm) + bytes_of(m->head);
    for (int64_t i = 0; i < m->config.layers; i++) {
        const wm_llama_layer *l = &m->layers[i];
        n += bytes_of(l->attn_norm) + bytes_of(l->mlp_norm) + joint_bytes(&l->qkv) + joint_bytes(&l->out) +
             joint_bytes(&l->gate_up) + joint_bytes(&l->down);
    }
    if (per_token)
        *per_token = n;
    return n + (m->head == m->embedding ? 0 : bytes_of(m->embedding));
}
