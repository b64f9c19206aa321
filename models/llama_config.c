/* llama_config.c: what a Llama-like model looks like, from its config.json or by the name of a size. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "config.h"
#include "error.h"
#include "file.h"
#include "llama.h"

enum { MAX_SIZE = 1 << 24, MAX_LAYERS = 1024 };

/* ---- rotary positions: rope_theta and rope_scaling, or rope_parameters with both ---- */

enum { KEY = 64 };

static const char *member(const char *object, const char *name, char out[KEY])
{
    snprintf(out, KEY, "%s.%s", object, name);
    return out;
}

static void read_llama3(const wm_config *c, const char *object, wm_rope *r)
{
    char key[KEY];
    r->low_freq = wm_config_number(c, member(object, "low_freq_factor", key));
    r->high_freq = wm_config_number(c, member(object, "high_freq_factor", key));
    r->original_context = wm_config_number(c, member(object, "original_max_position_embeddings", key));
    if (wm_error_status() == WK_OK &&
        !(r->high_freq > r->low_freq && r->low_freq > 0 && r->original_context > 0))
        wm_fail(WK_ERR_PARAM, "%s: %s: expected 0 < low_freq_factor < high_freq_factor", wm_config_path(c),
                object);
}

static void read_rope(const wm_config *c, wm_rope *r)
{
    const char *object = wm_config_has(c, "rope_parameters") ? "rope_parameters" : "rope_scaling";
    char key[KEY], kind[32];
    r->theta = wm_config_number_or(c, member(object, "rope_theta", key),
                                   wm_config_number_or(c, "rope_theta", 10000));
    wm_config_string(c, member(object, "rope_type", key), kind, sizeof kind);
    if (!kind[0])
        wm_config_string(c, member(object, "type", key), kind, sizeof kind);
    r->factor = 1;
    if (!kind[0] || strcmp(kind, "default") == 0) {
        r->kind = WM_ROPE_PLAIN;
    } else {
        r->kind = strcmp(kind, "llama3") == 0 ? WM_ROPE_LLAMA3 : WM_ROPE_LINEAR;
        r->factor = wm_config_number(c, member(object, "factor", key));
        if (r->kind == WM_ROPE_LLAMA3)
            read_llama3(c, object, r);
        else if (strcmp(kind, "linear") != 0)
            wm_fail(WK_ERR_UNSUPPORTED, "%s: %s: expected rope_type default, linear or llama3, got '%s'",
                    wm_config_path(c), object, kind);
    }
    if (!(r->theta > 0) || !(r->factor > 0))
        wm_fail(WK_ERR_PARAM, "%s: expected rope_theta and factor above 0", wm_config_path(c));
}

/* ---- windows ---- */

/* From which layer on attention slides: "layer_types" says it for each layer; all sliding ones must come last. */
static int64_t windows_from(const wm_config *c, int64_t layers)
{
    wk_json j;
    wk_json_raw type;
    int64_t n = 0, from = -1;
    if (!wm_config_find(c, "layer_types", &j) || !wk_json_enter(&j, '['))
        return -1;
    while (wk_json_more(&j) && wk_json_string(&j, &type)) {
        bool slides = wk_json_equal(type, "sliding_attention");
        if (slides && from < 0)
            from = n;
        else if (!slides && from >= 0)
            wm_fail(WK_ERR_UNSUPPORTED,
                    "%s: layer_types: expected the layers with sliding attention to come last",
                    wm_config_path(c));
        n++;
    }
    if (n != layers)
        wm_fail(WK_ERR_FORMAT, "%s: layer_types: expected %lld, got %lld", wm_config_path(c),
                (long long)layers, (long long)n);
    return from < 0 ? layers : from;
}

static void read_window(const wm_config *c, bool qwen, wm_llama_config *m)
{
    m->window = wm_config_int_or(c, "sliding_window", 0, INT32_MAX, 0);
    if (qwen && !wm_config_bool_or(c, "use_sliding_window", false))
        m->window = 0;
    m->windows_from = windows_from(c, m->layers);
    if (m->windows_from < 0)
        m->windows_from = qwen ? wm_config_int_or(c, "max_window_layers", 0, MAX_LAYERS, m->layers) : 0;
}

/* ---- the whole ---- */

static void read_sizes(const wm_config *c, wm_llama_config *m)
{
    m->layers = wm_config_int(c, "num_hidden_layers", 1, MAX_LAYERS);
    m->hidden = wm_config_int(c, "hidden_size", 1, MAX_SIZE);
    m->heads = wm_config_int(c, "num_attention_heads", 1, MAX_SIZE);
    m->kv_heads = wm_config_int_or(c, "num_key_value_heads", 1, MAX_SIZE, m->heads);
    m->head_dim = wm_config_int_or(c, "head_dim", 1, 4096, m->hidden / m->heads);
    m->inner = wm_config_int(c, "intermediate_size", 1, MAX_SIZE);
    m->vocab = wm_config_int(c, "vocab_size", 1, MAX_SIZE);
    m->context = wm_config_int_or(c, "max_position_embeddings", 1, INT32_MAX, 2048);
    m->eps = wm_config_number_or(c, "rms_norm_eps", 1e-6);
    if (m->heads % m->kv_heads || m->head_dim % 2)
        wm_fail(WK_ERR_PARAM,
                "%s: expected num_attention_heads (%lld) to be a multiple of num_key_value_heads (%lld) and "
                "head_dim "
                "(%lld) to be even",
                wm_config_path(c), (long long)m->heads, (long long)m->kv_heads, (long long)m->head_dim);
}

static wk_dtype read_dtype(const wm_config *c)
{
    char name[16];
    if (!wm_config_string(c, "torch_dtype", name, sizeof name)[0])
        wm_config_string(c, "dtype", name, sizeof name);
    return strcmp(name, "float32") == 0    ? WK_F32
           : strcmp(name, "float16") == 0  ? WK_F16
           : strcmp(name, "bfloat16") == 0 ? WK_BF16
                                           : WK_DTYPE_COUNT;
}

static void read_model(const wm_config *c, wm_llama_config *m)
{
    char type[32], act[32];
    wm_config_string(c, "model_type", type, sizeof type);
    bool llama = strcmp(type, "llama") == 0, mistral = strcmp(type, "mistral") == 0;
    bool qwen2 = strcmp(type, "qwen2") == 0, qwen3 = strcmp(type, "qwen3") == 0;
    if (!llama && !mistral && !qwen2 && !qwen3) {
        wm_fail(WK_ERR_UNSUPPORTED, "%s: model_type: expected llama, mistral, qwen2 or qwen3, got '%s'",
                wm_config_path(c), type);
        return;
    }
    wm_config_string(c, "hidden_act", act, sizeof act);
    if (act[0] && strcmp(act, "silu") != 0)
        wm_fail(WK_ERR_UNSUPPORTED, "%s: hidden_act: expected silu, got '%s'", wm_config_path(c), act);
    read_sizes(c, m);
    read_rope(c, &m->rope);
    if (!llama)
        read_window(c, qwen2 || qwen3, m);
    m->tied = wm_config_bool_or(c, "tie_word_embeddings", false);
    m->out_bias = !qwen2 && !mistral && wm_config_bool_or(c, "attention_bias", false);
    m->qkv_bias = qwen2 || m->out_bias;
    m->mlp_bias = llama && wm_config_bool_or(c, "mlp_bias", false);
    m->qk_norm = qwen3;
    m->dtype = read_dtype(c);
}

/* The tokens that end a text: eos_token_id is one or several. */
static void read_stops(const wm_config *c, wm_llama_config *m)
{
    int64_t ids[WM_MAX_STOPS];
    m->n_stops = wm_config_ints(c, "eos_token_id", 0, UINT32_MAX - 1, ids, WM_MAX_STOPS);
    for (int i = 0; i < m->n_stops; i++)
        m->stops[i] = (uint32_t)ids[i];
}

bool wm_llama_read_config(const char *folder, wm_llama_config *m)
{
    static const char generation[] = "generation_config.json";
    *m = (wm_llama_config){0};
    wm_config *c = wm_config_open(folder, "config.json");
    if (!c)
        return false;
    read_model(c, m);
    read_stops(c, m);
    wm_config_close(c);
    char *path = wm_path(folder, generation);
    c = path && wm_file_exists(path) ? wm_config_open(folder, generation) : NULL;
    if (c && wm_config_has(c, "eos_token_id"))
        read_stops(c, m);
    wm_config_close(c);
    free(path);
    return wm_error_status() == WK_OK;
}

bool wm_llama_named_config(const char *name, wm_llama_config *m)
{
    static const struct {
        const char *name;
        wm_llama_config c;
    } sizes[] = {
        {"8b",
         {.layers = 32,
          .hidden = 4096,
          .heads = 32,
          .kv_heads = 8,
          .head_dim = 128,
          .inner = 14336,
          .vocab = 128256}},
        {"1b",
         {.layers = 16,
          .hidden = 2048,
          .heads = 32,
          .kv_heads = 8,
          .head_dim = 64,
          .inner = 8192,
          .vocab = 128256,
          .tied = true}},
        {"tiny",
         {.layers = 2, .hidden = 64, .heads = 4, .kv_heads = 2, .head_dim = 16, .inner = 96, .vocab = 512}},
    };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        if (strcmp(name, sizes[i].name) == 0) {
            *m = sizes[i].c;
            m->context = 131072;
            m->eps = 1e-5;
            m->rope = (wm_rope){.theta = 500000, .factor = 1};
            m->dtype = WK_DTYPE_COUNT;
            return true;
        }
    }
    wm_fail(WK_ERR_ARGUMENT, "expected a size 8b, 1b or tiny, got '%s'", name);
    return false;
}
