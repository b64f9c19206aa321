/* wordpiece_text.c: cleaning and plain letters for BERT's tokenizer, by tables that tests/models/wordpiece_unicode.py wrote. */
#include "wordpiece_text.h"
#include <stdlib.h>
#include "wordpiece_unicode.h"

#define SPANS(table) (table), sizeof(table) / sizeof *(table)

/* The last span that does not begin after c, or NULL. */
static const struct wm_span *span_at(const struct wm_span *spans, size_t n, uint32_t c)
{
    size_t low = 0, high = n;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (spans[middle].first <= c)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? spans + low - 1 : NULL;
}

static bool within(const struct wm_span *spans, size_t n, uint32_t c)
{
    const struct wm_span *s = span_at(spans, n, c);
    return s && c <= s->last;
}

bool wm_is_space(uint32_t c) { return c == ' ' || within(SPANS(space_spans), c); }

bool wm_is_punctuation(uint32_t c) { return within(SPANS(punctuation_spans), c); }

/* Korean syllables are made of two or three letters by arithmetic. */
static int take_hangul_apart(uint32_t c, uint32_t *out)
{
    uint32_t i = c - 0xAC00;
    out[0] = 0x1100 + i / 588;
    out[1] = 0x1161 + i % 588 / 28;
    out[2] = 0x11A7 + i % 28;
    return i % 28 ? 3 : 2;
}

/* The code point without accents: none, one, or a few. */
static int strip(uint32_t c, uint32_t *out)
{
    if (c >= 0xAC00 && c <= 0xD7A3)
        return take_hangul_apart(c, out);
    if (within(SPANS(accent_spans), c))
        return 0;
    for (size_t i = 0; i < sizeof letter_pairs / sizeof *letter_pairs && letter_pairs[i].from <= c; i++)
        if (letter_pairs[i].from == c) {
            int n = strip(letter_pairs[i].first, out);
            return n + strip(letter_pairs[i].second, out + n);
        }
    const struct wm_span *plain = span_at(SPANS(plain_letters), c);
    out[0] = plain && plain->first == c ? plain->last : c;
    return 1;
}

static int lower(uint32_t c, uint32_t *out)
{
    size_t low = 0, high = sizeof small_shifts / sizeof *small_shifts;
    if (c == 0x130) { /* the one letter that becomes two: a capital I with a dot */
        out[0] = 'i';
        out[1] = 0x307;
        return 2;
    }
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (small_shifts[middle].first <= c)
            low = middle + 1;
        else
            high = middle;
    }
    const struct wm_shift *s = low ? small_shifts + low - 1 : NULL;
    bool found = s && c <= s->last && (c - s->first) % s->step == 0;
    out[0] = found ? (uint32_t)((int32_t)c + s->by) : c;
    return 1;
}

int wm_text_plain(const wm_text_rules *rules, uint32_t c, uint32_t *out)
{
    uint32_t letters[4] = {c};
    int n = 0, count = 1;
    if (c < 0x80 && c > 0x20 && c != 0x7F) { /* most text */
        *out = rules->lower && c >= 'A' && c <= 'Z' ? c + 32 : c;
        return 1;
    }
    if (rules->clean && within(SPANS(removed_spans), c))
        return 0;
    if (wm_is_space(c)) {
        *out = ' ';
        return 1;
    }
    bool apart = rules->chinese && within(SPANS(chinese_spans), c);
    if (apart)
        out[n++] = ' ';
    if (rules->strip)
        count = strip(c, letters);
    for (int i = 0; i < count; i++) {
        if (rules->lower)
            n += lower(letters[i], out + n);
        else
            out[n++] = letters[i];
    }
    if (apart)
        out[n++] = ' ';
    return n;
}
