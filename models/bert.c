/* bert.c: BERT: loading, the encoder, sentence embeddings. */
#include "bert.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "error.h"
#include "wordpiece.h"

enum { BATCH = 32, NAME = 128 };

typedef struct {
    wk_tensor *weight, *bias;
} pair;

typedef struct {
    pair qkv, out, attention_norm, up, down, norm; /* qkv: query, key and value one below the other */
} layer;

struct wm_bert {
    wm_bert_config c;
    wk_device *device;
    wk_dtype dtype;
    wm_wordpiece *tokenizer; /* NULL: random weights */
    wk_tensor *words;        /* [vocab, hidden] */
    wk_tensor *positions;    /* [positions, hidden], the embedding of the first token type added */
    pair norm;
    layer *layers;
    wm_bert_watch watch;
    void *watch_ctx;
};

/* ---- Loading ---- */

/* Where weights come from: a file, whose names begin with `front`, or random numbers. */
typedef struct {
    wm_weights *file;
    const char *front;
    int64_t seed;
} origin;

/* Into a tensor that is there: the file's "front layer name", or normal numbers about `mean`. */
static bool fill(origin *o, wk_tensor *to, const char *of, const char *name, double mean, double deviation)
{
    char full[3 * NAME];
    snprintf(full, sizeof full, "%s%s%s", o->front, of, name);
    if (o->file)
        return wm_weights_into(o->file, full, to);
    wk_tensor *r =
        wk_randn(wk_device_of(to), wk_dtype_of(to), wk_rank(to), wk_shape(to), mean, deviation, ++o->seed, 0);
    wk_status status = wk_copy_into(to, r);
    wk_drop(r);
    return status == WK_OK;
}

static wk_tensor *take(wm_bert *m, origin *o, const char *of, const char *name, int rank,
                       const int64_t *shape, double mean, double deviation)
{
    char full[3 * NAME];
    snprintf(full, sizeof full, "%s%s%s", o->front, of, name);
    return o->file ? wm_weights_get(o->file, full, m->dtype, rank, shape)
                   : wk_randn(m->device, m->dtype, rank, shape, mean, deviation, ++o->seed, 0);
}

static pair take_linear(wm_bert *m, origin *o, const char *of, const char *name, int64_t in, int64_t out)
{
    char full[NAME];
    snprintf(full, sizeof full, "%s%s", of, name);
    return (pair){take(m, o, full, ".weight", 2, (int64_t[]){out, in}, 0, 1 / sqrt((double)in)),
                  take(m, o, full, ".bias", 1, &out, 0, 0)};
}

/* Old files call a norm's weight gamma and its bias beta. */
static pair take_norm(wm_bert *m, origin *o, const char *of, const char *name)
{
    char full[NAME], old[2 * NAME];
    snprintf(full, sizeof full, "%s%s", of, name);
    snprintf(old, sizeof old, "%s%s.gamma", o->front, full);
    bool ancient = o->file && wm_weights_has(o->file, old);
    return (pair){take(m, o, full, ancient ? ".gamma" : ".weight", 1, &m->c.hidden, 1, 0),
                  take(m, o, full, ancient ? ".beta" : ".bias", 1, &m->c.hidden, 0, 0)};
}

static pair take_qkv(wm_bert *m, origin *o, const char *of)
{
    static const char *const names[] = {"attention.self.query", "attention.self.key", "attention.self.value"};
    int64_t h = m->c.hidden;
    char full[NAME];
    pair p = {wk_empty(m->device, m->dtype, 2, (int64_t[]){3 * h, h}),
              wk_empty(m->device, m->dtype, 1, (int64_t[]){3 * h})};
    bool ok = p.weight && p.bias;
    for (int i = 0; ok && i < 3; i++) {
        wk_scope_begin();
        snprintf(full, sizeof full, "%s%s", of, names[i]);
        ok = fill(o, wk_narrow(p.weight, 0, i * h, h), full, ".weight", 0, 1 / sqrt((double)h)) &&
             fill(o, wk_narrow(p.bias, 0, i * h, h), full, ".bias", 0, 0);
        wk_scope_end();
    }
    return p;
}

static void take_embeddings(wm_bert *m, origin *o)
{
    static const char of[] = "embeddings.";
    const wm_bert_config *c = &m->c;
    m->words = take(m, o, of, "word_embeddings.weight", 2, (int64_t[]){c->vocab, c->hidden}, 0, 0.02);
    wk_scope_begin();
    wk_tensor *types =
        take(m, o, of, "token_type_embeddings.weight", 2, (int64_t[]){c->types, c->hidden}, 0, 0.02);
    wk_tensor *positions =
        take(m, o, of, "position_embeddings.weight", 2, (int64_t[]){c->positions, c->hidden}, 0, 0.02);
    if (types && positions)
        positions = wk_add(positions, wk_narrow(types, 0, 0, 1));
    m->positions = wk_retain(positions);
    wk_scope_end();
    m->norm = take_norm(m, o, of, "LayerNorm");
}

static bool take_all(wm_bert *m, origin *o)
{
    const wm_bert_config *c = &m->c;
    char of[NAME];
    take_embeddings(m, o);
    for (int64_t i = 0; i < c->layers && wm_error_status() == WK_OK; i++) {
        layer *l = &m->layers[i];
        snprintf(of, sizeof of, "encoder.layer.%lld.", (long long)i);
        l->qkv = take_qkv(m, o, of);
        l->out = take_linear(m, o, of, "attention.output.dense", c->hidden, c->hidden);
        l->attention_norm = take_norm(m, o, of, "attention.output.LayerNorm");
        l->up = take_linear(m, o, of, "intermediate.dense", c->hidden, c->inner);
        l->down = take_linear(m, o, of, "output.dense", c->inner, c->hidden);
        l->norm = take_norm(m, o, of, "output.LayerNorm");
    }
    return wm_error_status() == WK_OK;
}

static wm_bert *make(const wm_bert_config *c, wk_device *device, wk_dtype dtype)
{
    wm_bert *m = calloc(1, sizeof *m);
    layer *layers = calloc((size_t)c->layers, sizeof *layers);
    if (!m || !layers) {
        free(m);
        free(layers);
        wm_fail(WK_ERR_MEMORY, "bert: not enough memory");
        return NULL;
    }
    *m = (wm_bert){.c = *c, .device = device, .dtype = dtype, .layers = layers};
    return m;
}

static bool open_tokenizer(wm_bert *m, const char *folder)
{
    m->tokenizer = wm_wordpiece_open(folder);
    if (m->tokenizer && (int64_t)wm_wordpiece_size(m->tokenizer) > m->c.vocab)
        wm_fail(WK_ERR_FORMAT, "%s: the tokenizer has %u tokens, the model %lld", folder,
                wm_wordpiece_size(m->tokenizer), (long long)m->c.vocab);
    return wm_error_status() == WK_OK;
}

wm_bert *wm_bert_load(const char *folder, wk_device *device, wk_dtype dtype, const wm_progress *progress)
{
    wm_bert_config c;
    wm_bert *m = wm_bert_read_config(folder, &c) ? make(&c, device, dtype) : NULL;
    if (!m)
        return NULL;
    bool ok = open_tokenizer(m, folder);
    origin o = {.file = ok ? wm_weights_open(folder, device, progress) : NULL, .front = ""};
    if (o.file && wm_weights_has(o.file, "bert.embeddings.word_embeddings.weight"))
        o.front = "bert."; /* a model that was trained for a task has its encoder under that name */
    ok = o.file && take_all(m, &o);
    wm_weights_close(o.file);
    if (ok)
        return m;
    wm_bert_free(m);
    return NULL;
}

wm_bert *wm_bert_random(const wm_bert_config *c, wk_device *device, wk_dtype dtype, int64_t seed)
{
    wm_bert *m = make(c, device, dtype);
    origin o = {.front = "", .seed = seed * 1000};
    if (m && take_all(m, &o))
        return m;
    wm_bert_free(m);
    return NULL;
}

static void drop_pair(pair p)
{
    wk_drop(p.weight);
    wk_drop(p.bias);
}

void wm_bert_free(wm_bert *m)
{
    if (!m)
        return;
    for (int64_t i = 0; i < m->c.layers; i++) {
        layer *l = &m->layers[i];
        const pair all[] = {l->qkv, l->out, l->attention_norm, l->up, l->down, l->norm};
        for (size_t k = 0; k < sizeof all / sizeof *all; k++)
            drop_pair(all[k]);
    }
    drop_pair(m->norm);
    wk_drop(m->words);
    wk_drop(m->positions);
    wm_wordpiece_close(m->tokenizer);
    free(m->layers);
    free(m);
}

const wm_bert_config *wm_bert_config_of(const wm_bert *m) { return &m->c; }

int64_t wm_bert_width(const wm_bert *m) { return m->c.hidden; }

void wm_bert_set_watch(wm_bert *m, wm_bert_watch watch, void *ctx)
{
    m->watch = watch;
    m->watch_ctx = ctx;
}

/* ---- The encoder ---- */

static void show(const wm_bert *m, int64_t layer, const wk_tensor *x)
{
    if (m->watch && x)
        m->watch(m->watch_ctx, layer, x);
}

/* norm(x + y). */
static wk_tensor *add_norm(const wm_bert *m, const wk_tensor *x, const wk_tensor *y, pair norm)
{
    return wk_add_layer_norm(x, y, norm.weight, norm.bias, m->c.eps, NULL);
}

static wk_tensor *attention(const wm_bert *m, const layer *l, const wk_tensor *x, const wk_tensor *mask)
{
    int64_t n = wk_dim(x, 0), s = wk_dim(x, 1), heads = m->c.heads, d = m->c.hidden / heads;
    wk_tensor *qkv = wk_linear(x, l->qkv.weight, l->qkv.bias, WK_ACT_NONE);
    /* [n, s, 3, heads, d] seen as three of [n, heads, s, d] */
    qkv = wk_permute(wk_reshape(qkv, 5, (int64_t[]){n, s, 3, heads, d}), (int[]){2, 0, 3, 1, 4});
    wk_tensor *part[3];
    for (int i = 0; i < 3; i++)
        part[i] = wk_squeeze(wk_narrow(qkv, 0, i, 1), 0);
    wk_tensor *y = wk_sdpa(part[0], part[1], part[2], mask, NULL, NULL);
    return wk_reshape(wk_transpose(y, 1, 2), 3, (int64_t[]){n, s, heads * d});
}

static wk_tensor *run_layer(const wm_bert *m, const layer *l, const wk_tensor *x, const wk_tensor *mask)
{
    wk_scope_begin();
    wk_tensor *y = attention(m, l, x, mask);
    x = add_norm(m, x, wk_linear(y, l->out.weight, l->out.bias, WK_ACT_NONE), l->attention_norm);
    y = wk_linear(x, l->up.weight, l->up.bias, m->c.act);
    y = add_norm(m, x, wk_linear(y, l->down.weight, l->down.bias, WK_ACT_NONE), l->norm);
    return wk_scope_end_keep(y);
}

static wk_tensor *embed_ids(const wm_bert *m, const wk_tensor *ids)
{
    int64_t n = wk_dim(ids, 0), s = wk_dim(ids, 1);
    wk_scope_begin();
    wk_tensor *x = wk_index_select(m->words, wk_flatten(ids, 0, 1), 0);
    int64_t shape[] = {n, s, m->c.hidden};
    wk_tensor *places = wk_broadcast(wk_narrow(m->positions, 0, 0, s), 3, shape);
    return wk_scope_end_keep(add_norm(m, wk_reshape(x, 3, shape), places, m->norm));
}

/* The mean of the tokens that count: the mask's row, divided by its sum, times the hidden states. */
static wk_tensor *pool_mean(const wk_tensor *x, const wk_tensor *mask)
{
    int64_t last[] = {-1};
    if (!mask)
        return wk_mean(x, 1, (int64_t[]){1}, 0);
    wk_tensor *share = wk_cast(mask, WK_F32);
    share = wk_div(share, wk_sum(share, 1, last, 1));
    return wk_squeeze(wk_matmul(wk_unsqueeze(share, 1), x), 1);
}

static wk_tensor *pool(const wm_bert *m, const wk_tensor *hidden, const wk_tensor *mask)
{
    wk_tensor *x = wk_cast(hidden, WK_F32);
    x = m->c.pooling == WM_POOL_CLS ? wk_squeeze(wk_narrow(x, 1, 0, 1), 1) : pool_mean(x, mask);
    if (!m->c.normalize)
        return x;
    return wk_div(x, wk_clamp(wk_norm2(x, 1, (int64_t[]){-1}, 1), 1e-12, INFINITY));
}

wk_tensor *wm_bert_run(const wm_bert *m, const wk_tensor *ids, const wk_tensor *mask)
{
    wk_scope_begin();
    const wk_tensor *keys = mask ? wk_unsqueeze(wk_unsqueeze(mask, 1), 1) : NULL; /* [n, 1, 1, s] */
    wk_tensor *x = embed_ids(m, ids);
    show(m, 0, x);
    for (int64_t i = 0; i < m->c.layers; i++) {
        wk_tensor *y = run_layer(m, &m->layers[i], x, keys);
        wk_drop(x);
        x = y;
        show(m, i + 1, x);
    }
    x = pool(m, x, mask);
    if (!x)
        wm_fail(WK_ERR_INTERNAL, "bert");
    return wk_scope_end_keep(x);
}

/* ---- Texts ---- */

/* The ids of some texts, filled up to the longest, and which of them count. */
typedef struct {
    int64_t n, s;
    uint32_t *ids;
    uint8_t *mask;
} batch;

static bool make_batch(const wm_bert *m, int64_t n, const char *const *texts, batch *b)
{
    wm_ids ids[BATCH] = {{0}};
    size_t longest = 0;
    bool ok = true;
    for (int64_t i = 0; i < n && ok; i++) {
        ok = wm_wordpiece_encode(m->tokenizer, texts[i], strlen(texts[i]), (size_t)m->c.max_tokens, &ids[i]);
        longest = ids[i].n > longest ? ids[i].n : longest;
    }
    *b = (batch){n, (int64_t)longest, malloc((size_t)n * longest * sizeof *b->ids),
                 calloc((size_t)n, longest)};
    if (ok && (!b->ids || !b->mask)) {
        wm_fail(WK_ERR_MEMORY, "bert: not enough memory for a batch of texts");
        ok = false;
    }
    for (size_t i = 0; ok && i < (size_t)n * longest; i++)
        b->ids[i] = wm_wordpiece_padding(m->tokenizer);
    for (int64_t i = 0; i < n; i++) {
        if (ok) {
            memcpy(b->ids + (size_t)i * longest, ids[i].ids, ids[i].n * sizeof *b->ids);
            memset(b->mask + (size_t)i * longest, 1, ids[i].n);
        }
        wm_ids_free(&ids[i]);
    }
    return ok;
}

static bool run_batch(const wm_bert *m, const batch *b, float *out)
{
    int64_t shape[] = {b->n, b->s};
    bool full = !memchr(b->mask, 0, (size_t)(b->n * b->s));
    wk_scope_begin();
    wk_tensor *ids = wk_from_host(m->device, WK_U32, 2, shape, b->ids);
    wk_tensor *mask = full ? NULL : wk_from_host(m->device, WK_U8, 2, shape, b->mask);
    wk_tensor *y = wm_bert_run(m, ids, mask);
    bool ok = y && wk_to_host(y, out) == WK_OK;
    wk_scope_end();
    return ok || (wm_fail(WK_ERR_INTERNAL, "bert"), false);
}

bool wm_bert_embed(const wm_bert *m, int64_t n, const char *const *texts, float *out)
{
    bool ok = m->tokenizer != NULL;
    if (!ok)
        wm_fail(WK_ERR_ARGUMENT, "bert: a model of random weights has no tokenizer");
    for (int64_t i = 0; ok && i < n; i += BATCH) {
        batch b;
        ok = make_batch(m, n - i < BATCH ? n - i : BATCH, texts + i, &b) &&
             run_batch(m, &b, out + i * m->c.hidden);
        free(b.ids);
        free(b.mask);
    }
    return ok;
}

double wm_cosine(int64_t n, const float *a, const float *b)
{
    double ab = 0, aa = 0, bb = 0;
    for (int64_t i = 0; i < n; i++) {
        ab += (double)a[i] * b[i];
        aa += (double)a[i] * a[i];
        bb += (double)b[i] * b[i];
    }
    return aa > 0 && bb > 0 ? ab / sqrt(aa * bb) : 0;
}
