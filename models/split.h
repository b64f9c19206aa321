/* split.h: text cut into the pieces that byte-level BPE works on, as the regular expressions of known tokenizers do. */
#ifndef WM_SPLIT_H
#define WM_SPLIT_H

#include <stddef.h>

typedef enum {
    WM_SPLIT_NONE,
    WM_SPLIT_GPT2,
    WM_SPLIT_LLAMA3, /* numbers in threes */
    WM_SPLIT_QWEN2,  /* numbers one by one */
    WM_SPLIT_UNKNOWN
} wm_split_kind;

/* Which one a regular expression is; WM_SPLIT_UNKNOWN for all but the three. */
wm_split_kind wm_split_find(const char *regex);
/* The bytes of the piece at the beginning of a valid UTF-8 text that is not empty. */
size_t wm_split_next(wm_split_kind kind, const char *text, const char *end);

#endif
