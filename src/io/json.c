/* json.c: the JSON reader (RFC 8259, UTF-8 only) and the text writer. */
#include <locale.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../core/memory.h"
#include "json.h"

wk_json wk_json_start(const void *text, size_t size) { return (wk_json){.text = text, .size = size}; }

bool wk_json_fail(wk_json *j, size_t at, const char *reason)
{
    if (!j->reason) {
        j->reason = reason;
        j->at = at;
    }
    return false;
}

char wk_json_peek(wk_json *j)
{
    while (!j->reason && j->at < j->size && memchr(" \t\n\r", j->text[j->at], 4))
        j->at++;
    return j->reason || j->at == j->size ? 0 : j->text[j->at];
}

/* ---- objects and arrays ---- */

bool wk_json_enter(wk_json *j, char open)
{
    if (wk_json_peek(j) != open)
        return wk_json_fail(j, j->at, open == '{' ? "expected an object" : "expected an array");
    if (j->depth == WK_JSON_DEPTH)
        return wk_json_fail(j, j->at, "nested too deep");
    uint32_t bit = 1u << j->depth++;
    j->objects = open == '{' ? j->objects | bit : j->objects & ~bit;
    j->begun &= ~bit;
    j->at++;
    return true;
}

bool wk_json_more(wk_json *j)
{
    char c = wk_json_peek(j);
    if (j->reason || j->depth == 0)
        return false;
    uint32_t bit = 1u << (j->depth - 1);
    bool object = j->objects & bit, begun = j->begun & bit;
    if (c == (object ? '}' : ']')) {
        j->at++;
        j->depth--;
        return false;
    }
    j->begun |= bit;
    if (!begun)
        return c ? true : wk_json_fail(j, j->at, "the text ends too early");
    if (c != ',')
        return wk_json_fail(j, j->at, object ? "expected , or }" : "expected , or ]");
    j->at++;
    return true;
}

bool wk_json_key(wk_json *j, wk_json_raw *key)
{
    if (!wk_json_string(j, key))
        return false;
    if (wk_json_peek(j) != ':')
        return wk_json_fail(j, j->at, "expected :");
    j->at++;
    return true;
}

bool wk_json_end(wk_json *j)
{
    wk_json_peek(j);
    if (!j->reason && j->at < j->size)
        return wk_json_fail(j, j->at, "text behind the value");
    return !j->reason;
}

/* ---- strings ---- */

/* Four hexadecimal digits at p, or -1. */
static int read_hex4(const char *p, const char *end)
{
    int v = 0;
    if (end - p < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        char c = p[i];
        int digit = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                           : -1;
        if (digit < 0)
            return -1;
        v = v * 16 + digit;
    }
    return v;
}

/* The code point of \uXXXX (or of a pair of them) at p, behind the backslash; *length is what it takes up. -1
 * when it is none: no digits, half a pair. */
static long read_unicode(const char *p, const char *end, int *length)
{
    long high = read_hex4(p + 1, end);
    *length = 5;
    if (high < 0xD800 || high > 0xDFFF)
        return high;
    if (high > 0xDBFF || end - p < 11 || p[5] != '\\' || p[6] != 'u')
        return -1;
    long low = read_hex4(p + 7, end);
    *length = 11;
    return low < 0xDC00 || low > 0xDFFF ? -1 : 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
}

/* The bytes of the UTF-8 letter at p; 0 when it is none (cut off, overlong, a surrogate, past U+10FFFF). */
static int utf8_length(const unsigned char *p, const unsigned char *end)
{
    static const long least[] = {0, 0, 0x80, 0x800, 0x10000};
    int n = p[0] < 0x80 ? 1 : p[0] >> 5 == 6 ? 2 : p[0] >> 4 == 14 ? 3 : p[0] >> 3 == 30 ? 4 : 0;
    if (n == 0 || end - p < n)
        return 0;
    long v = n == 1 ? p[0] : p[0] & (0x7F >> n);
    for (int i = 1; i < n; i++) {
        if (p[i] >> 6 != 2)
            return 0;
        v = v << 6 | (p[i] & 0x3F);
    }
    return v < least[n] || v > 0x10FFFF || (v >= 0xD800 && v <= 0xDFFF) ? 0 : n;
}

/* The bytes of the letter or escape at p; 0 with a reason when it is neither. */
static int letter_length(const char *p, const char *end, const char **reason)
{
    int length = 0;
    if ((unsigned char)*p < 0x20) {
        *reason = "a control character in a string";
        return 0;
    }
    if (*p != '\\') {
        *reason = "a string that is not UTF-8";
        return utf8_length((const unsigned char *)p, (const unsigned char *)end);
    }
    *reason = "an escape that JSON does not have";
    if (end - p < 2)
        return 0;
    if (p[1] == 'u')
        return read_unicode(p + 1, end, &length) < 0 ? 0 : length + 1;
    return memchr("\"\\/bfnrt", p[1], 8) ? 2 : 0;
}

bool wk_json_string(wk_json *j, wk_json_raw *string)
{
    *string = (wk_json_raw){"", 0};
    if (wk_json_peek(j) != '"')
        return wk_json_fail(j, j->at, "expected a string");
    const char *begin = j->text + j->at + 1, *end = j->text + j->size, *p = begin;
    while (p < end && *p != '"') {
        const char *reason;
        int n = letter_length(p, end, &reason);
        if (n == 0)
            return wk_json_fail(j, (size_t)(p - j->text), reason);
        p += n;
    }
    if (p == end)
        return wk_json_fail(j, j->size, "a string without end");
    *string = (wk_json_raw){begin, (size_t)(p - begin)};
    j->at = (size_t)(p + 1 - j->text);
    return true;
}

static size_t put_utf8(long v, char *out)
{
    if (v < 0x80) {
        out[0] = (char)v;
        return 1;
    }
    int n = v < 0x800 ? 2 : v < 0x10000 ? 3 : 4;
    for (int i = n - 1; i > 0; i--, v >>= 6)
        out[i] = (char)(0x80 | (v & 0x3F));
    out[0] = (char)((0xF00 >> n & 0xFF) | v);
    return (size_t)n;
}

size_t wk_json_unescape(wk_json_raw raw, char *out)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    const char *p = raw.text, *end = p + raw.size;
    size_t n = 0;
    while (p < end) {
        int length = 1;
        if (*p != '\\') {
            out[n++] = *p++;
            continue;
        }
        p++;
        if (*p == 'u')
            n += put_utf8(read_unicode(p, end, &length), out + n);
        else
            out[n++] = to[strchr(from, *p) - from];
        p += length;
    }
    out[n] = 0;
    return n;
}

bool wk_json_equal(wk_json_raw raw, const char *text)
{
    return raw.size == strlen(text) && memcmp(raw.text, text, raw.size) == 0;
}

/* ---- numbers and the rest ---- */

static size_t digits(const wk_json *j, size_t at)
{
    size_t n = 0;
    while (at + n < j->size && j->text[at + n] >= '0' && j->text[at + n] <= '9')
        n++;
    return n;
}

static char letter_at(const wk_json *j, size_t at) { return at < j->size ? j->text[at] : 0; }

/* The end of the number at the cursor, by JSON's grammar; *whole says it has neither fraction nor exponent. 0
 * when there is none. */
static size_t number_end(const wk_json *j, bool *whole)
{
    size_t at = j->at + (letter_at(j, j->at) == '-'), n = digits(j, at);
    if (n == 0 || (n > 1 && j->text[at] == '0'))
        return 0;
    at += n;
    *whole = true;
    if (letter_at(j, at) == '.') {
        *whole = false;
        n = digits(j, ++at);
        if (n == 0)
            return 0;
        at += n;
    }
    if (letter_at(j, at) == 'e' || letter_at(j, at) == 'E') {
        *whole = false;
        at++;
        at += letter_at(j, at) == '+' || letter_at(j, at) == '-';
        n = digits(j, at);
        if (n == 0)
            return 0;
        at += n;
    }
    return at;
}

bool wk_json_int(wk_json *j, int64_t *v)
{
    bool whole = false, negative = wk_json_peek(j) == '-';
    size_t end = j->reason ? 0 : number_end(j, &whole);
    if (end == 0 || !whole)
        return wk_json_fail(j, j->at, "expected an integer");
    *v = 0;
    for (size_t i = j->at + negative; i < end; i++) {
        int64_t digit = j->text[i] - '0';
        if (__builtin_mul_overflow(*v, (int64_t)10, v) ||
            __builtin_add_overflow(*v, negative ? -digit : digit, v))
            return wk_json_fail(j, j->at, "an integer past 64 bits");
    }
    j->at = end;
    return true;
}

bool wk_json_number(wk_json *j, double *v)
{
    char buf[400];
    bool whole;
    wk_json_peek(j);
    size_t end = j->reason ? 0 : number_end(j, &whole), n = end - j->at;
    if (end == 0 || n >= sizeof buf)
        return wk_json_fail(j, j->at, end ? "a number too long" : "expected a number");
    memcpy(buf, j->text + j->at, n);
    buf[n] = 0;
    char *point = strchr(buf, '.'); /* strtod wants the locale's */
    if (point)
        *point = *localeconv()->decimal_point;
    *v = strtod(buf, NULL);
    j->at = end;
    return true;
}

static bool skip_word(wk_json *j, const char *word)
{
    size_t n = strlen(word);
    if (j->size - j->at < n || memcmp(j->text + j->at, word, n) != 0)
        return wk_json_fail(j, j->at, "expected a value");
    j->at += n;
    return true;
}

static bool skip_number(wk_json *j)
{
    bool whole;
    size_t end = number_end(j, &whole);
    if (end == 0)
        return wk_json_fail(j, j->at, "expected a value");
    j->at = end;
    return true;
}

static bool skip_scalar(wk_json *j)
{
    wk_json_raw raw;
    switch (wk_json_peek(j)) {
    case 't': return skip_word(j, "true");
    case 'f': return skip_word(j, "false");
    case 'n': return skip_word(j, "null");
    case '"': return wk_json_string(j, &raw);
    case 0: return wk_json_fail(j, j->at, "the text ends too early");
    default: return skip_number(j);
    }
}

/* Steps into what it meets until it is back where it began, so that depth costs no stack. */
bool wk_json_skip(wk_json *j)
{
    wk_json_raw key;
    int depth = j->depth;
    do {
        char c = wk_json_peek(j);
        if (c == '{' || c == '[')
            wk_json_enter(j, c);
        else
            skip_scalar(j);
        while (!j->reason && j->depth > depth && !wk_json_more(j)) {
        }
        if (!j->reason && j->depth > depth && (j->objects >> (j->depth - 1) & 1))
            wk_json_key(j, &key);
    } while (!j->reason && j->depth > depth);
    return !j->reason;
}

/* ---- writing ---- */

static bool text_reserve(wk_text *t, size_t more)
{
    if (t->failed)
        return false;
    if (t->room - t->size > more)
        return true;
    size_t room = 2 * t->room + more + 256;
    char *data = wk_realloc(t->data, room);
    if (!data) {
        t->failed = true;
        return false;
    }
    t->data = data;
    t->room = room;
    return true;
}

void wk_text_add(wk_text *t, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, args);
    if (n >= 0 && text_reserve(t, (size_t)n)) {
        vsnprintf(t->data + t->size, (size_t)n + 1, format, again);
        t->size += (size_t)n;
    }
    va_end(again);
    va_end(args);
}

void wk_text_string(wk_text *t, const char *string)
{
    static const char special[] = "\"\\\b\f\n\r\t", names[] = "\"\\bfnrt";
    wk_text_add(t, "\"");
    for (const char *p = string; *p;) {
        size_t n = strcspn(p, "\"\\\x01\x02\x03\x04\x05\x06\x07\b\t\n\v\f\r\x0e\x0f\x10\x11\x12\x13\x14\x15"
                              "\x16\x17\x18\x19\x1a\x1b\x1c\x1d\x1e\x1f");
        wk_text_add(t, "%.*s", (int)n, p);
        p += n;
        const char *escape = *p ? strchr(special, *p) : NULL;
        if (escape)
            wk_text_add(t, "\\%c", names[escape - special]);
        else if (*p)
            wk_text_add(t, "\\u%04x", (unsigned char)*p);
        p += *p != 0;
    }
    wk_text_add(t, "\"");
}

void wk_text_free(wk_text *t)
{
    wk_free(t->data);
    *t = (wk_text){0};
}
