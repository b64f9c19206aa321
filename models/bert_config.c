/* bert_config.c: what a BERT model's JSON files say. */
#include <stdlib.h>
#include <string.h>
#include "bert.h"
#include "config.h"
#include "error.h"
#include "file.h"

static const int64_t MOST = 1 << 24;

static wk_activation read_activation(const wm_config *c)
{
    static const struct {
        const char *name;
        wk_activation act;
    } known[] = {{"gelu", WK_ACT_GELU_ERF},
                 {"gelu_new", WK_ACT_GELU},
                 {"gelu_pytorch_tanh", WK_ACT_GELU},
                 {"relu", WK_ACT_RELU}};
    char name[64];
    wm_config_string(c, "hidden_act", name, sizeof name);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(name, known[i].name))
            return known[i].act;
    wm_fail(WK_ERR_UNSUPPORTED, "%s: hidden_act: unknown activation '%s'", wm_config_path(c), name);
    return WK_ACT_NONE;
}

static void expect(const wm_config *c, const char *key, const char *value)
{
    char text[64];
    if (strcmp(wm_config_string(c, key, text, sizeof text), value))
        wm_fail(WK_ERR_UNSUPPORTED, "%s: %s: expected '%s', got '%s'", wm_config_path(c), key, value, text);
}

static bool read_bert(const char *folder, wm_bert_config *b)
{
    wm_config *c = wm_config_open(folder, "config.json");
    if (!c)
        return false;
    expect(c, "model_type", "bert");
    if (wm_config_has(c, "position_embedding_type"))
        expect(c, "position_embedding_type", "absolute");
    b->layers = wm_config_int(c, "num_hidden_layers", 1, 1000);
    b->hidden = wm_config_int(c, "hidden_size", 1, MOST);
    b->heads = wm_config_int(c, "num_attention_heads", 1, b->hidden);
    b->inner = wm_config_int(c, "intermediate_size", 1, MOST);
    b->vocab = wm_config_int(c, "vocab_size", 1, MOST);
    b->positions = wm_config_int(c, "max_position_embeddings", 2, MOST);
    b->types = wm_config_int_or(c, "type_vocab_size", 1, MOST, 2);
    b->eps = wm_config_number_or(c, "layer_norm_eps", 1e-12);
    b->act = read_activation(c);
    if (wm_error_status() == WK_OK && b->hidden % b->heads)
        wm_fail(WK_ERR_FORMAT, "%s: hidden_size %lld is no multiple of num_attention_heads %lld",
                wm_config_path(c), (long long)b->hidden, (long long)b->heads);
    wm_config_close(c);
    return wm_error_status() == WK_OK;
}

/* A file that need not be there: NULL, without an error, when it is not. */
static wm_config *open_optional(const char *folder, const char *name)
{
    char *path = wm_path(folder, name);
    bool there = path && wm_file_exists(path);
    free(path);
    return there ? wm_config_open(folder, name) : NULL;
}

static void read_pooling(const char *folder, wm_bert_config *b)
{
    static const char *const refused[] = {"pooling_mode_max_tokens", "pooling_mode_mean_sqrt_len_tokens",
                                          "pooling_mode_weightedmean_tokens", "pooling_mode_lasttoken"};
    wm_config *c = open_optional(folder, "1_Pooling/config.json");
    b->pooling = WM_POOL_MEAN;
    if (!c)
        return;
    if (wm_config_bool_or(c, "pooling_mode_cls_token", false))
        b->pooling = WM_POOL_CLS;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (wm_config_bool_or(c, refused[i], false))
            wm_fail(WK_ERR_UNSUPPORTED, "%s: %s: only the mean and the first token are supported",
                    wm_config_path(c), refused[i]);
    wm_config_close(c);
}

bool wm_bert_read_config(const char *folder, wm_bert_config *b)
{
    *b = (wm_bert_config){.normalize = true};
    if (!read_bert(folder, b))
        return false;
    read_pooling(folder, b);
    b->max_tokens = b->positions;
    wm_config *c = open_optional(folder, "sentence_bert_config.json");
    if (c)
        b->max_tokens = wm_config_int_or(c, "max_seq_length", 2, b->positions, b->positions);
    wm_config_close(c);
    return wm_error_status() == WK_OK;
}

bool wm_bert_named_config(const char *name, wm_bert_config *b)
{
    *b = (wm_bert_config){.layers = 6,
                          .hidden = 384,
                          .heads = 12,
                          .inner = 1536,
                          .vocab = 30522,
                          .positions = 512,
                          .types = 2,
                          .eps = 1e-12,
                          .act = WK_ACT_GELU_ERF,
                          .normalize = true,
                          .max_tokens = 256};
    if (!strcmp(name, "minilm"))
        return true;
    b->layers = 12;
    b->hidden = 768;
    b->inner = 3072;
    b->max_tokens = 512;
    if (!strcmp(name, "base"))
        return true;
    wm_fail(WK_ERR_PARAM, "bert: expected minilm or base, got '%s'", name);
    return false;
}
