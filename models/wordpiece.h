/* wordpiece.h: BERT's tokenizer: text to the numbers of words and pieces of words, the same as Hugging Face's.
 *
 * Text is cleaned of control characters, Chinese characters stand alone, and for uncased models letters become small
 * and lose their accents; then words and punctuation are cut into the longest pieces that the vocabulary has. */
#ifndef WM_WORDPIECE_H
#define WM_WORDPIECE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "bpe.h"
#include "error.h"

typedef struct wm_wordpiece wm_wordpiece;

/* From a model's folder: tokenizer.json, or else vocab.txt and what tokenizer_config.json says of letters. NULL with an
 * error that names the file. */
wm_wordpiece *wm_wordpiece_open(const char *folder);
/* NULL is fine. */
void wm_wordpiece_close(wm_wordpiece *t);

/* How many ids there are: the largest and one. */
uint32_t wm_wordpiece_size(const wm_wordpiece *t);
/* The number of a token; WM_NO_TOKEN, without an error, when there is none. */
uint32_t wm_wordpiece_find(const wm_wordpiece *t, const char *token);
/* What fills up the shorter texts of a batch. */
uint32_t wm_wordpiece_padding(const wm_wordpiece *t);

/* [CLS] text [SEP], the text cut so that there are at most max (0: no limit). size bytes of UTF-8; what is none is left
 * out. Replaces what is in out. */
bool wm_wordpiece_encode(const wm_wordpiece *t, const char *text, size_t size, size_t max, wm_ids *out);

#endif
