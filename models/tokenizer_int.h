/* tokenizer_int.h: what a tokenizer.json says, between reading it and using it. */
#ifndef WM_TOKENIZER_INT_H
#define WM_TOKENIZER_INT_H

#include "split.h"
#include "tokenizer.h"

enum { WM_STEPS = 8, WM_AROUND = 8, WM_BYTES = 256 };

/* A step of normalisation. */
typedef enum { WM_STEP_NFC, WM_STEP_PREPEND, WM_STEP_REPLACE } wm_step_kind;
typedef struct {
    wm_step_kind kind;
    char *from, *to; /* what is put in front is in `to` */
} wm_step;

/* A token that is found in the text before anything else. */
typedef struct {
    char *text, *normal; /* as written; as it looks in normalised text */
    size_t size;         /* of the one of both that is looked for */
    uint32_t id;
    bool special, normalized, lstrip, rstrip;
} wm_added;

typedef enum { WM_PREPEND_NEVER, WM_PREPEND_FIRST, WM_PREPEND_ALWAYS } wm_prepend;

struct wm_tokenizer {
    char *path;
    wm_bpe *bpe;
    bool byte_level; /* the vocabulary's texts are bytes */
    bool ignore_merges, byte_fallback, fuse_unknown;
    uint32_t unknown;         /* WM_NO_TOKEN: none */
    uint32_t bytes[WM_BYTES]; /* tokens of single bytes: <0x00> or those of the byte-level alphabet */
    wm_step steps[WM_STEPS];
    int n_steps;
    wm_split_kind split;
    bool prefix_space; /* byte level: a space goes before each text */
    bool metaspace, metaspace_split;
    wm_prepend metaspace_prepend;
    wm_added *added;
    int n_added;
    uint32_t before[WM_AROUND], after[WM_AROUND]; /* tokens around a text */
    int n_before, n_after;
    bool strip_first; /* decoding: the first space goes */
};

/* U+2581, which stands for a space. */
#define WM_METASPACE "\xE2\x96\x81"

/* The byte that a letter of the byte-level alphabet stands for; -1 for any other letter. */
int wm_alphabet_byte(uint32_t c);
/* A token's text as the encoder sees it, in place; returns its length. */
size_t wm_token_bytes(const wm_tokenizer *t, char *text, size_t size);
/* Looks up the tokens of single bytes, once the vocabulary is there. */
void wm_find_bytes(wm_tokenizer *t);
/* A text through the steps, a new string; NULL when memory is short. */
char *wm_normalize(const wm_tokenizer *t, const char *text, size_t size, size_t *result);

#endif
