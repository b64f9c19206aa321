/* split.c: text cut into pieces as the regular expressions of known tokenizers do. Each alternative of an expression is a
 * function that gives the bytes it takes at p, or 0; the first that takes some wins. */
#include "split.h"
#include <stdbool.h>
#include <string.h>
#include "unicode.h"

static const struct {
    wm_split_kind kind;
    const char *regex;
} known[] = {
    {WM_SPLIT_GPT2, "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"},
    {WM_SPLIT_LLAMA3, "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| "
                      "?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"},
    {WM_SPLIT_QWEN2, "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| "
                     "?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"},
};

wm_split_kind wm_split_find(const char *regex)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(regex, known[i].regex) == 0)
            return known[i].kind;
    }
    return WM_SPLIT_UNKNOWN;
}

/* ---- runs ---- */

static wm_class class_at(const char *p, int *length)
{
    static const char low[] = "\t\n\v\f\r ";
    if ((unsigned char)*p >= 0x80)
        return wm_class_of(wm_utf8_get(p, length));
    *length = 1;
    unsigned char folded = (unsigned char)(*p | 0x20);
    return folded >= 'a' && folded <= 'z' ? WM_LETTER
           : *p >= '0' && *p <= '9'       ? WM_NUMBER
           : *p && memchr(low, *p, 6)     ? WM_SPACE
                                          : WM_OTHER;
}

/* Behind a run of one class, of `most` letters at most. */
static const char *skip(const char *p, const char *end, wm_class class, size_t most)
{
    int length;
    for (; p < end && most > 0 && class_at(p, &length) == class; most--)
        p += length;
    return p;
}

static bool is_newline(char c) { return c == '\n' || c == '\r'; }

/* ---- alternatives ---- */

/* 's 't 'm 'd 're 've 'll; with any_case in capitals too, and the long s is one of them. */
static size_t take_contraction(const char *p, const char *end, bool any_case)
{
    char a[3] = {0};
    if (*p != '\'' || end - p < 2)
        return 0;
    if (any_case && end - p >= 3 && memcmp(p + 1, "\xC5\xBF", 2) == 0)
        return 3;
    for (int i = 0; i < 2 && p + 1 + i < end; i++)
        a[i] = any_case && p[1 + i] >= 'A' && p[1 + i] <= 'Z' ? (char)(p[1 + i] | 0x20) : p[1 + i];
    if (strchr("stmd", a[0]) && a[0])
        return 2;
    return strcmp(a, "re") == 0 || strcmp(a, "ve") == 0 || strcmp(a, "ll") == 0 ? 3 : 0;
}

/* A run of the class behind an optional space. */
static size_t take_run(const char *p, const char *end, wm_class class)
{
    const char *from = p + (*p == ' ' && p + 1 < end), *to = skip(from, end, class, SIZE_MAX);
    return to > from ? (size_t)(to - p) : 0;
}

/* [^\r\n\p{L}\p{N}]?\p{L}+ */
static size_t take_word(const char *p, const char *end)
{
    int length;
    const char *from = p;
    wm_class first = class_at(p, &length);
    if (first != WM_LETTER && first != WM_NUMBER && !is_newline(*p))
        from += length;
    const char *to = skip(from, end, WM_LETTER, SIZE_MAX);
    return to > from ? (size_t)(to - p) : 0;
}

/* ` ?[^\s\p{L}\p{N}]+[\r\n]*` */
static size_t take_signs(const char *p, const char *end)
{
    size_t n = take_run(p, end, WM_OTHER);
    while (n && p + n < end && is_newline(p[n]))
        n++;
    return n;
}

/* White space: with `lines` up to the last newline in it; else all of it, less the last one where a word follows. */
static size_t take_space(const char *p, const char *end, bool lines)
{
    const char *to = p, *last = p, *line = NULL;
    int length;
    while (to < end && class_at(to, &length) == WM_SPACE) {
        last = to;
        to += length;
        line = is_newline(*last) ? to : line;
    }
    if (lines && line)
        return (size_t)(line - p);
    return (size_t)((to < end && last > p ? last : to) - p);
}

size_t wm_split_next(wm_split_kind kind, const char *p, const char *end)
{
    size_t n;
    if (kind == WM_SPLIT_NONE)
        return (size_t)(end - p);
    bool gpt2 = kind == WM_SPLIT_GPT2;
    if ((n = take_contraction(p, end, !gpt2)))
        return n;
    if ((n = gpt2 ? take_run(p, end, WM_LETTER) : take_word(p, end)))
        return n;
    if ((n = gpt2 ? take_run(p, end, WM_NUMBER)
                  : (size_t)(skip(p, end, WM_NUMBER, kind == WM_SPLIT_LLAMA3 ? 3 : 1) - p)))
        return n;
    if ((n = gpt2 ? take_run(p, end, WM_OTHER) : take_signs(p, end)))
        return n;
    return take_space(p, end, !gpt2);
}
