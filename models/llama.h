/* llama.h: models of the Llama family (Llama 2 and 3, Mistral, Qwen2, Qwen3) on wick's public API.
 *
 *     wm_llama *model = wm_llama_load("folder", device, WK_DTYPE_COUNT, NULL);
 *     wm_llama_session *s = wm_llama_start(model, 1, 512);
 *     wk_tensor *logits = wm_llama_prompt(s, 0, ids, n, false);       then wm_llama_step for each token
 *
 * generate.h has the loop around it, tokenizer.h the way from text to ids. Errors: error.h. One thread at a time. */
#ifndef WM_LLAMA_H
#define WM_LLAMA_H

#include <stdbool.h>
#include <wick/wick.h>
#include "weights.h"

enum { WM_MAX_STOPS = 16 };

typedef enum { WM_ROPE_PLAIN, WM_ROPE_LINEAR, WM_ROPE_LLAMA3, WM_ROPE_FACTORS } wm_rope_kind;
enum { WM_MAX_FACTORS = 256 };

typedef struct {
    wm_rope_kind kind;
    double theta, factor;
    double low_freq, high_freq, original_context; /* llama3 */
    float factors[WM_MAX_FACTORS];                /* by which each frequency is divided */
} wm_rope;

typedef struct {
    int64_t layers, hidden, heads, kv_heads, head_dim, inner, vocab;
    int64_t context;              /* positions it was made for */
    int64_t window, windows_from; /* layers from windows_from on see that many keys; 0: all */
    double eps;
    wm_rope rope;
    bool tied; /* the output layer is the embedding */
    bool qkv_bias, out_bias, mlp_bias, qk_norm;
    wk_dtype dtype;               /* of its files; WK_DTYPE_COUNT when they do not say */
    uint32_t stops[WM_MAX_STOPS]; /* tokens that end a text */
    int n_stops;
} wm_llama_config;

/* From config.json (and generation_config.json, for the stops); false with an error that names file and key. */
bool wm_llama_read_config(const char *folder, wm_llama_config *c);
/* A shape of known models for measurements: "8b", "1b", "tiny"; false with an error. */
bool wm_llama_named_config(const char *name, wm_llama_config *c);

typedef struct wm_llama wm_llama;

/* Loads config.json and the weights, or a GGUF file, whose quantised weights stay so; dtype WK_DTYPE_COUNT takes the files'. progress may be NULL. NULL with an error. */
wm_llama *wm_llama_load(const char *folder, wk_device *device, wk_dtype dtype, const wm_progress *progress);
/* The same with weights from elsewhere, under the names of Hugging Face. */
wm_llama *wm_llama_from(const wm_llama_config *c, wm_weights *weights, wk_device *device, wk_dtype dtype);
/* With random weights, made on the device. */
wm_llama *wm_llama_random(const wm_llama_config *c, wk_device *device, wk_dtype dtype, int64_t seed);
/* NULL is fine. */
void wm_llama_free(wm_llama *m);
const wm_llama_config *wm_llama_config_of(const wm_llama *m);
wk_device *wm_llama_device(const wm_llama *m);
wk_dtype wm_llama_dtype(const wm_llama *m);
/* Bytes of its weights, and of the part of them that each token reads. */
int64_t wm_llama_bytes(const wm_llama *m, int64_t *per_token);

/* ---- Texts on their way: a KV cache for `batch` texts of up to `capacity` tokens ---- */

typedef struct wm_llama_session wm_llama_session;

/* NULL with an error, which all calls with such a session leave as it is. */
wm_llama_session *wm_llama_start(wm_llama *m, int64_t batch, int64_t capacity);
void wm_llama_end(wm_llama_session *s);
int64_t wm_llama_length(const wm_llama_session *s, int64_t row);

/* Puts n tokens behind those of text `row`; gives the logits, f32 [1, vocab] of the last token or [n, vocab] of all of
 * them, the caller's (or the scope's). NULL with an error: a token outside the vocabulary, a full cache. */
wk_tensor *wm_llama_prompt(wm_llama_session *s, int64_t row, const uint32_t *ids, int64_t n, bool all);
/* One more token for each text; ids has one for each. False with an error. The device works on while this returns. */
bool wm_llama_step(wm_llama_session *s, const uint32_t *ids);
/* Of the last step: the logits f32 [batch, vocab], the session's; the best token of each text, which waits for it. */
const wk_tensor *wm_llama_logits(const wm_llama_session *s);
bool wm_llama_best(wm_llama_session *s, uint32_t *ids);

/* Called by wm_llama_prompt with the hidden states [1, n, hidden] that go into layer 0, 1, ..., and with what the last
 * norm gives as number `layers`; for tests. */
typedef void (*wm_llama_watch)(void *ctx, int64_t layer, const wk_tensor *hidden);
void wm_llama_set_watch(wm_llama_session *s, wm_llama_watch watch, void *ctx);

#endif
