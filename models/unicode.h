/* unicode.h: UTF-8, classes of code points, and Unicode's composed form (NFC), as tokenizers need them. */
#ifndef WM_UNICODE_H
#define WM_UNICODE_H

#include <stddef.h>
#include <stdint.h>

typedef enum { WM_OTHER, WM_LETTER, WM_NUMBER, WM_SPACE } wm_class;
/* \p{L}, \p{N}, \s; everything else is WM_OTHER. */
wm_class wm_class_of(uint32_t c);

/* The letter at p: its bytes (1 to 4) where it is right, 0 where it is cut off by the end, and less than 0 where it is
 * wrong: so many bytes belong to the wrong one. */
int wm_utf8_length(const char *p, const char *end);
/* The code point at p, which is right. */
uint32_t wm_utf8_get(const char *p, int *length);
/* Writes it, up to 4 bytes; returns how many. */
int wm_utf8_put(uint32_t c, char *out);

/* A new string, given back with free: the text with U+FFFD for what is not UTF-8; NULL when memory is short. */
char *wm_utf8_repair(const char *text, size_t size, size_t *result);
/* A new string: valid UTF-8 in the form NFC; NULL when memory is short. */
char *wm_nfc(const char *text, size_t size, size_t *result);

#endif
