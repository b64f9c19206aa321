/* gguf.c: a Llama-like model's shape and weights from a GGUF file. */
#include "gguf.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "error.h"
#include "file.h"

enum { NAME = 128, MAX_SIZE = 1 << 24, MAX_LAYERS = 1024 };

bool wm_is_gguf(const char *path)
{
    size_t n = strlen(path);
    return n > 5 && strcmp(path + n - 5, ".gguf") == 0 && !wm_is_folder(path);
}

static bool string_is(const wk_gguf *f, const char *key, const char *text)
{
    size_t size;
    const char *s = wk_gguf_string(f, key, &size);
    return s && size == strlen(text) && memcmp(s, text, size) == 0;
}

/* ---- the shape ---- */

typedef struct {
    const char *path, *arch;
    const wk_gguf *file;
} reader;

/* "llama.block_count" */
static const char *key_of(const reader *r, const char *name, char out[NAME])
{
    snprintf(out, NAME, "%s.%s", r->arch, name);
    return out;
}

static int64_t get_int(const reader *r, const char *name, int64_t lo, int64_t hi, int64_t fallback)
{
    char key[NAME];
    int64_t v = fallback;
    bool there = wk_gguf_int(r->file, key_of(r, name, key), &v);
    if (!there && fallback < lo)
        wm_fail(WK_ERR_FORMAT, "%s: %s is missing", r->path, key);
    else if (there && (v < lo || v > hi))
        wm_fail(WK_ERR_PARAM, "%s: %s: expected %lld to %lld, got %lld", r->path, key, (long long)lo,
                (long long)hi, (long long)v);
    return v < lo || v > hi ? lo : v;
}

static double get_float(const reader *r, const char *name, double fallback)
{
    char key[NAME];
    double v = fallback;
    wk_gguf_float(r->file, key_of(r, name, key), &v);
    return v;
}

static void read_rope(const reader *r, wm_llama_config *c)
{
    char key[NAME];
    c->rope = (wm_rope){.kind = WM_ROPE_PLAIN, .theta = get_float(r, "rope.freq_base", 10000), .factor = 1};
    if (string_is(r->file, key_of(r, "rope.scaling.type", key), "linear")) {
        c->rope.kind = WM_ROPE_LINEAR;
        c->rope.factor = get_float(r, "rope.scaling.factor", 1);
    } else if (wk_gguf_kind_of(r->file, key, NULL) != WK_GGUF_KIND_COUNT &&
               !string_is(r->file, key, "none")) {
        wm_fail(WK_ERR_UNSUPPORTED, "%s: %s: expected none or linear", r->path, key);
    }
    if (!(c->rope.theta > 0) || !(c->rope.factor > 0))
        wm_fail(WK_ERR_PARAM, "%s: expected rope.freq_base and rope.scaling.factor above 0", r->path);
    int64_t i = wk_gguf_find(r->file, "rope_freqs.weight");
    if (i < 0)
        return;
    wk_tensor *t = wk_gguf_dtype(r->file, i) == WK_F32 ? wk_gguf_tensor(r->file, i) : NULL;
    if (!t || wk_count(t) != c->head_dim / 2 || c->head_dim / 2 > WM_MAX_FACTORS) {
        wm_fail(WK_ERR_SHAPE, "%s: tensor 'rope_freqs.weight': expected %lld numbers, at most %d, in f32",
                r->path, (long long)c->head_dim / 2, WM_MAX_FACTORS);
    } else {
        c->rope.kind = WM_ROPE_FACTORS;
        memcpy(c->rope.factors, wk_data(t), (size_t)wk_count(t) * sizeof(float));
    }
    wk_drop(t);
}

static void read_sizes(const reader *r, wm_llama_config *c)
{
    int64_t tokens = wk_gguf_length(r->file, "tokenizer.ggml.tokens");
    c->layers = get_int(r, "block_count", 1, MAX_LAYERS, 0);
    c->hidden = get_int(r, "embedding_length", 1, MAX_SIZE, 0);
    c->heads = get_int(r, "attention.head_count", 1, MAX_SIZE, 0);
    c->kv_heads = get_int(r, "attention.head_count_kv", 1, MAX_SIZE, c->heads);
    c->head_dim = get_int(r, "attention.key_length", 1, 4096, c->hidden / c->heads);
    c->inner = get_int(r, "feed_forward_length", 1, MAX_SIZE, 0);
    c->vocab = get_int(r, "vocab_size", 1, MAX_SIZE, tokens);
    c->context = get_int(r, "context_length", 1, INT32_MAX, 2048);
    c->window = get_int(r, "attention.sliding_window", 0, INT32_MAX, 0);
    c->eps = get_float(r, "attention.layer_norm_rms_epsilon", 1e-6);
    if (c->heads % c->kv_heads || c->head_dim % 2)
        wm_fail(WK_ERR_PARAM,
                "%s: expected %lld heads to be a multiple of %lld, and their size %lld to be even", r->path,
                (long long)c->heads, (long long)c->kv_heads, (long long)c->head_dim);
}

static void read_stops(const reader *r, wm_llama_config *c)
{
    static const char *const keys[] = {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id"};
    for (int i = 0; i < 2; i++) {
        int64_t id;
        if (wk_gguf_int(r->file, keys[i], &id) && id >= 0 && id < UINT32_MAX)
            c->stops[c->n_stops++] = (uint32_t)id;
    }
}

/* Mistral's files are of the architecture llama. */
static const char *find_arch(const wk_gguf *f)
{
    static const char *const archs[] = {"llama", "qwen2", "qwen3"};
    for (int i = 0; i < 3; i++) {
        if (string_is(f, "general.architecture", archs[i]))
            return archs[i];
    }
    return NULL;
}

bool wm_gguf_read_config(const char *path, wm_llama_config *c)
{
    *c = (wm_llama_config){.dtype = WK_DTYPE_COUNT};
    wk_gguf *f = wk_gguf_open(path);
    reader r = {path, f ? find_arch(f) : NULL, f};
    if (f && !r.arch)
        wm_fail(WK_ERR_UNSUPPORTED, "%s: general.architecture: expected llama, qwen2 or qwen3", path);
    if (r.arch) {
        int64_t table = wk_gguf_find(f, "token_embd.weight");
        read_sizes(&r, c);
        read_rope(&r, c);
        read_stops(&r, c);
        c->tied = wk_gguf_find(f, "output.weight") < 0;
        c->qkv_bias = wk_gguf_find(f, "blk.0.attn_q.bias") >= 0;
        c->out_bias = wk_gguf_find(f, "blk.0.attn_output.bias") >= 0;
        c->mlp_bias = wk_gguf_find(f, "blk.0.ffn_down.bias") >= 0;
        c->qk_norm = wk_gguf_find(f, "blk.0.attn_q_norm.weight") >= 0;
        c->dtype = wk_gguf_dtype(f, table);
    }
    wk_gguf_close(f);
    return wm_error_status() == WK_OK;
}

/* ---- the weights ---- */

typedef struct {
    wm_source base;
    char *path;
    wk_gguf *file;
    int64_t heads, kv_heads; /* whose queries and keys are to be put into order; 0: they are */
} gguf;

/* "model.layers.3.mlp.up_proj.weight" as "blk.3.ffn_up.weight"; false when there is no such name. */
static bool file_name(const char *name, char out[NAME])
{
    static const char *const names[][2] = {
        {"input_layernorm", "attn_norm"},    {"self_attn.q_proj", "attn_q"},
        {"self_attn.k_proj", "attn_k"},      {"self_attn.v_proj", "attn_v"},
        {"self_attn.o_proj", "attn_output"}, {"self_attn.q_norm", "attn_q_norm"},
        {"self_attn.k_norm", "attn_k_norm"}, {"post_attention_layernorm", "ffn_norm"},
        {"mlp.gate_proj", "ffn_gate"},       {"mlp.up_proj", "ffn_up"},
        {"mlp.down_proj", "ffn_down"},
    };
    static const char *const whole[][2] = {{"model.embed_tokens.weight", "token_embd.weight"},
                                           {"model.norm.weight", "output_norm.weight"},
                                           {"lm_head.weight", "output.weight"}};
    int layer, used = 0;
    for (int i = 0; i < 3; i++) {
        if (strcmp(name, whole[i][0]) == 0)
            return snprintf(out, NAME, "%s", whole[i][1]) < NAME;
    }
    if (sscanf(name, "model.layers.%d.%n", &layer, &used) != 1 || !used)
        return false;
    const char *kind = strrchr(name, '.');
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t n = strlen(names[i][0]);
        if (strncmp(name + used, names[i][0], n) == 0 && name + used + n == kind)
            return snprintf(out, NAME, "blk.%d.%s%s", layer, names[i][1], kind) < NAME;
    }
    return false;
}

static int64_t find(const wm_source *s, const char *name)
{
    char in_file[NAME];
    return file_name(name, in_file) ? wk_gguf_find(((const gguf *)s)->file, in_file) : -1;
}

static const char *where(const wm_source *s, int64_t i)
{
    (void)i;
    return ((const gguf *)s)->path;
}

static wk_qformat format(const wm_source *s, int64_t i) { return wk_gguf_format(((const gguf *)s)->file, i); }

/* Files of the architecture llama have the two halves of a head's rows, which turn together, interleaved. */
static wk_tensor *in_order(wk_tensor *t, int64_t heads)
{
    int64_t rows = wk_dim(t, 0), width = wk_rank(t) > 1 ? wk_dim(t, 1) : 1;
    if (rows % (2 * heads))
        return t;
    wk_scope_begin();
    wk_tensor *x = wk_reshape(t, 4, (int64_t[]){heads, rows / heads / 2, 2, width});
    x = wk_reshape(wk_copy(wk_transpose(x, 1, 2)), wk_rank(t), wk_shape(t));
    x = wk_scope_end_keep(x);
    wk_drop(t);
    return x;
}

static bool is_part(const char *name, const char *part) { return strstr(name, part) != NULL; }

static wk_tensor *tensor(wm_source *s, int64_t i)
{
    gguf *g = (gguf *)s;
    const char *name = wk_gguf_name(g->file, i);
    wk_tensor *t = wk_gguf_tensor(g->file, i);
    if (!t || !g->heads)
        return t;
    return is_part(name, ".attn_q.")   ? in_order(t, g->heads)
           : is_part(name, ".attn_k.") ? in_order(t, g->kv_heads)
                                       : t;
}

static void close_file(wm_source *s)
{
    gguf *g = (gguf *)s;
    wk_gguf_close(g->file);
    free(g->path);
    free(g);
}

wm_source *wm_gguf_source(const char *path)
{
    wm_llama_config c;
    if (!wm_gguf_read_config(path, &c))
        return NULL;
    gguf *g = calloc(1, sizeof *g);
    char *copy = strdup(path);
    wk_gguf *f = g && copy ? wk_gguf_open(path) : NULL;
    if (!f) {
        if (wm_error_status() == WK_OK)
            wm_fail(WK_ERR_MEMORY, "%s: out of memory", path);
        free(g);
        free(copy);
        return NULL;
    }
    *g = (gguf){.base = {wk_gguf_count(f), find, where, tensor, wm_pages_copied, close_file, format},
                .path = copy,
                .file = f};
    if (string_is(f, "general.architecture", "llama")) {
        g->heads = c.heads;
        g->kv_heads = c.kv_heads;
    }
    return &g->base;
}
