/* bert.h: BERT and the sentence encoders made of it (MiniLM and its like) on wick's public API, from a folder as Hugging
 * Face and sentence-transformers lay it out.
 *
 *     wm_bert *model = wm_bert_load("folder", device, WK_F32, NULL);
 *     float *vectors = malloc(n * wm_bert_width(model) * sizeof(float));
 *     wm_bert_embed(model, n, texts, vectors);
 */
#ifndef WM_BERT_H
#define WM_BERT_H

#include <stdbool.h>
#include <stddef.h>
#include <wick/wick.h>
#include "weights.h"

typedef enum { WM_POOL_MEAN, WM_POOL_CLS } wm_bert_pooling;

typedef struct {
    int64_t layers, hidden, heads, inner, vocab, positions, types;
    double eps;
    wk_activation act;
    /* Of the sentence encoder around it */
    wm_bert_pooling pooling;
    bool normalize;
    int64_t max_tokens; /* of a text, [CLS] and [SEP] among them */
} wm_bert_config;

/* From config.json, and 1_Pooling/config.json and sentence_bert_config.json where they are; embeddings are made of length
 * 1. False with an error that names file and key. */
bool wm_bert_read_config(const char *folder, wm_bert_config *c);
/* all-MiniLM-L6 or BERT base, for measurements: "minilm", "base"; false with an error. */
bool wm_bert_named_config(const char *name, wm_bert_config *c);

typedef struct wm_bert wm_bert;

/* dtype: f32, f16 or bf16. progress may be NULL. NULL with an error. */
wm_bert *wm_bert_load(const char *folder, wk_device *device, wk_dtype dtype, const wm_progress *progress);
/* Random weights, made on the device, and no tokenizer: only wm_bert_run works. */
wm_bert *wm_bert_random(const wm_bert_config *c, wk_device *device, wk_dtype dtype, int64_t seed);
/* NULL is fine. */
void wm_bert_free(wm_bert *m);
const wm_bert_config *wm_bert_config_of(const wm_bert *m);
/* Numbers in an embedding. */
int64_t wm_bert_width(const wm_bert *m);

/* Embeddings of n texts into out, n rows of wm_bert_width floats. Texts go in batches, each padded to its longest. False
 * with an error. */
bool wm_bert_embed(const wm_bert *m, int64_t n, const char *const *texts, float *out);
/* The cosine of the angle between two vectors of n numbers; 0 where one of them is zeros. */
double wm_cosine(int64_t n, const float *a, const float *b);

/* Embeddings f32 [n, width] of ids (u32 or i32 on the model's device) [n, s]; mask u8 [n, s] is 1 where a token counts, or NULL:
 * all do. The caller's, or the scope's. NULL with an error. */
wk_tensor *wm_bert_run(const wm_bert *m, const wk_tensor *ids, const wk_tensor *mask);

/* Called with hidden states [n, s, hidden]: number 0 from the embedding, then from each layer; for tests. */
typedef void (*wm_bert_watch)(void *ctx, int64_t layer, const wk_tensor *hidden);
void wm_bert_set_watch(wm_bert *m, wm_bert_watch watch, void *ctx);

#endif
