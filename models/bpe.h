/* bpe.h: byte-pair encoding: a vocabulary, and pairs of tokens that become one, in the order of their rank. */
#ifndef WM_BPE_H
#define WM_BPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WM_NO_TOKEN = UINT32_MAX };

typedef struct wm_bpe wm_bpe;

/* All of these give NULL or false when memory is short. */
wm_bpe *wm_bpe_new(void);
void wm_bpe_free(wm_bpe *b);
/* A token's text as the encoder sees it; bytes are copied. */
bool wm_bpe_add_token(wm_bpe *b, uint32_t id, const char *text, size_t size);
/* The pair becomes the token; the first added has the best rank. */
bool wm_bpe_add_merge(wm_bpe *b, uint32_t left, uint32_t right, uint32_t token);
/* The same with a rank, the least the best; of pairs of one rank the first in the text is merged first. */
bool wm_bpe_add_ranked(wm_bpe *b, uint32_t left, uint32_t right, uint32_t token, uint32_t rank);
/* WM_NO_TOKEN when there is none. */
uint32_t wm_bpe_find(const wm_bpe *b, const char *text, size_t size);
/* One more than the largest token. */
uint32_t wm_bpe_size(const wm_bpe *b);
/* A token's text, which may hold any bytes; NULL when there is no such token. */
const char *wm_bpe_text(const wm_bpe *b, uint32_t id, size_t *size);

/* Tokens that grow. */
typedef struct {
    uint32_t *ids;
    size_t n, room;
} wm_ids;
bool wm_ids_add(wm_ids *l, uint32_t id);
void wm_ids_free(wm_ids *l);

/* Replaces the tokens from `from` on by what the merges make of them, in O(n log n). */
bool wm_bpe_merge(wm_bpe *b, wm_ids *l, size_t from);

#endif
