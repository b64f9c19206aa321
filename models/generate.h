/* generate.h: texts continued, token by token. */
#ifndef WM_GENERATE_H
#define WM_GENERATE_H

#include "llama.h"
#include "sample.h"

typedef struct {
    const uint32_t *ids;
    int64_t n;
} wm_prompt;

typedef struct {
    int64_t most;      /* new tokens for each text */
    bool ignore_stops; /* go on behind a token that ends a text */
    wm_sampling sampling;
    /* Each new token as it comes, a stop token not among them; false ends the whole. NULL: not wanted. */
    bool (*token)(void *ctx, int64_t row, uint32_t id);
    void *ctx;
} wm_generate_options;

typedef struct {
    int64_t prompt_tokens, new_tokens;     /* of all texts together */
    double prompt_seconds, decode_seconds; /* up to the first tokens; from there on */
} wm_generate_stats;

/* Continues each prompt of a new session, one row for each; false with an error. stats may be NULL. */
bool wm_generate(wm_llama *m, int64_t rows, const wm_prompt *prompts, const wm_generate_options *o,
                 wm_generate_stats *stats);

#endif
