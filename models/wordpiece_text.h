/* wordpiece_text.h: text as BERT's tokenizer sees it before words are cut into pieces: one code point after the other,
 * cleaned and made plain. */
#ifndef WM_WORDPIECE_TEXT_H
#define WM_WORDPIECE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    bool clean, chinese, strip, lower;
} wm_text_rules;

/* What becomes of a code point: up to 8 code points in out, where 0x20 stands for any white space; returns how many. */
int wm_text_plain(const wm_text_rules *rules, uint32_t c, uint32_t *out);

bool wm_is_space(uint32_t c);
bool wm_is_punctuation(uint32_t c);

#endif
