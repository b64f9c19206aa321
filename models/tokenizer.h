/* tokenizer.h: text to tokens and back, as a tokenizer.json says: byte-level BPE (Llama 3, Qwen, GPT-2) and
 * SentencePiece-like BPE (Llama 2, Mistral). Tokens are those that Hugging Face's library gives. */
#ifndef WM_TOKENIZER_H
#define WM_TOKENIZER_H

#include "bpe.h"

typedef struct wm_tokenizer wm_tokenizer;

/* Reads folder/tokenizer.json, or what a GGUF file has of one. NULL with an error (error.h) that names what in it is not known. */
wm_tokenizer *wm_tokenizer_open(const char *folder);
/* NULL is fine. */
void wm_tokenizer_close(wm_tokenizer *t);
/* One more than the largest token; at most a model's vocabulary. */
uint32_t wm_tokenizer_size(const wm_tokenizer *t);
/* The token of that text, an added one among them; WM_NO_TOKEN when there is none. */
uint32_t wm_tokenizer_find(const wm_tokenizer *t, const char *text);

/* The text's tokens behind those in ids; with `special` also what the tokenizer puts around a text (a token for its
 * beginning, most often). What is not UTF-8 counts as U+FFFD. False with an error. One thread at a time. */
bool wm_encode(wm_tokenizer *t, const char *text, size_t size, bool special, wm_ids *ids);

/* Tokens as they come, to text that is valid UTF-8: what is incomplete waits for the next token. Special tokens give
 * nothing. */
typedef struct wm_decoder wm_decoder;
wm_decoder *wm_decoder_new(const wm_tokenizer *t);
void wm_decoder_free(wm_decoder *d);
/* The text that a token brings, which stays until the next call; NULL with an error when memory is short. */
const char *wm_decode(wm_decoder *d, uint32_t id);
/* What is left at the end. The decoder may then begin anew. */
const char *wm_decode_end(wm_decoder *d);

#endif
