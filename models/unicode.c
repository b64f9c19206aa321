/* unicode.c: UTF-8, classes of code points, and Unicode's composed form (NFC). */
#include "unicode.h"
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "unicode_table.h"

enum { REPLACEMENT = 0xFFFD };

/* ---- tables ---- */

/* The last change at or before c: a table's values are code points times 2^shift, and what holds from there on. */
static uint32_t value_at(const uint32_t *changes, size_t n, int shift, uint32_t c)
{
    size_t low = 0, high = n;
    while (high - low > 1) {
        size_t middle = (low + high) / 2;
        if (changes[middle] >> shift <= c)
            low = middle;
        else
            high = middle;
    }
    return changes[low] & ((1u << shift) - 1);
}
#define COUNT(a) (sizeof(a) / sizeof *(a))

wm_class wm_class_of(uint32_t c) { return (wm_class)value_at(class_changes, COUNT(class_changes), 2, c); }

static uint32_t combining(uint32_t c)
{
    return c < 0x300 ? 0 : value_at(combining_changes, COUNT(combining_changes), 8, c);
}

/* The row of three that begins with a, and b where that is wanted. */
static const uint32_t *find_row(const uint32_t (*rows)[3], size_t n, uint32_t a, const uint32_t *b)
{
    size_t low = 0, high = n;
    while (low < high) {
        size_t middle = (low + high) / 2;
        const uint32_t *r = rows[middle];
        if (r[0] == a && (!b || r[1] == *b))
            return r;
        if (r[0] < a || (r[0] == a && b && r[1] < *b))
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

/* ---- UTF-8 ---- */

int wm_utf8_length(const char *text, const char *end)
{
    const unsigned char *p = (const unsigned char *)text;
    unsigned char c = p[0], low = 0x80, high = 0xBF; /* bounds of the second byte */
    int n = c < 0x80                 ? 1
            : c >= 0xC2 && c <= 0xDF ? 2
            : c >= 0xE0 && c <= 0xEF ? 3
            : c >= 0xF0 && c <= 0xF4 ? 4
                                     : 0;
    if (n == 0)
        return -1;
    if (c == 0xE0)
        low = 0xA0; /* overlong */
    else if (c == 0xED)
        high = 0x9F; /* a surrogate */
    else if (c == 0xF0)
        low = 0x90;
    else if (c == 0xF4)
        high = 0x8F; /* past U+10FFFF */
    for (int i = 1; i < n; i++, low = 0x80, high = 0xBF) {
        if (text + i == end)
            return 0;
        if (p[i] < low || p[i] > high)
            return -i;
    }
    return n;
}

uint32_t wm_utf8_get(const char *text, int *length)
{
    const unsigned char *p = (const unsigned char *)text;
    int n = p[0] < 0x80 ? 1 : p[0] < 0xE0 ? 2 : p[0] < 0xF0 ? 3 : 4;
    uint32_t c = n == 1 ? p[0] : p[0] & (0x7Fu >> n);
    for (int i = 1; i < n; i++)
        c = c << 6 | (p[i] & 0x3F);
    *length = n;
    return c;
}

int wm_utf8_put(uint32_t c, char *out)
{
    int n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    if (n == 1) {
        out[0] = (char)c;
        return 1;
    }
    for (int i = n - 1; i > 0; i--, c >>= 6)
        out[i] = (char)(0x80 | (c & 0x3F));
    out[0] = (char)((0xF00u >> n & 0xFF) | c);
    return n;
}

char *wm_utf8_repair(const char *text, size_t size, size_t *result)
{
    const char *p = text, *end = text + size;
    char *out = malloc(size * 3 + 1), *q = out;
    while (out && p < end) {
        int n = wm_utf8_length(p, end);
        if (n > 0) {
            memcpy(q, p, (size_t)n);
            q += n;
            p += n;
        } else {
            q += wm_utf8_put(REPLACEMENT, q);
            p = n ? p - n : end;
        }
    }
    if (!out)
        return NULL;
    *q = 0;
    *result = (size_t)(q - out);
    return out;
}

/* ---- NFC: taken apart, marks in order, put together again ---- */

enum {
    S_BASE = 0xAC00,
    L_BASE = 0x1100,
    V_BASE = 0x1161,
    T_BASE = 0x11A7,
    L_COUNT = 19,
    V_COUNT = 21,
    T_COUNT = 28
};

/* Writes the parts of c, four at most; returns how many. */
static int take_apart(uint32_t c, uint32_t *out)
{
    if (c >= S_BASE && c < S_BASE + L_COUNT * V_COUNT * T_COUNT) {
        uint32_t s = c - S_BASE, t = s % T_COUNT;
        out[0] = L_BASE + s / (V_COUNT * T_COUNT);
        out[1] = V_BASE + s / T_COUNT % V_COUNT;
        out[2] = T_BASE + t;
        return t ? 3 : 2;
    }
    const uint32_t *d = c < 0xC0 ? NULL : find_row(decompositions, COUNT(decompositions), c, NULL);
    if (!d) {
        out[0] = c;
        return 1;
    }
    int n = take_apart(d[1], out); /* the second of a pair has no parts of its own */
    if (d[2])
        out[n++] = d[2];
    return n;
}

/* The code point of a pair; 0 when there is none. */
static uint32_t put_together(uint32_t a, uint32_t b)
{
    if (a - L_BASE < L_COUNT && b - V_BASE < V_COUNT)
        return S_BASE + ((a - L_BASE) * V_COUNT + (b - V_BASE)) * T_COUNT;
    if (a >= S_BASE && a < S_BASE + L_COUNT * V_COUNT * T_COUNT && (a - S_BASE) % T_COUNT == 0 &&
        b > T_BASE && b < T_BASE + T_COUNT)
        return a + (b - T_BASE);
    const uint32_t *row = find_row(compositions, COUNT(compositions), a, &b);
    return row ? row[2] : 0;
}

/* A code point with what marks are sorted by, in the high bits: class, then place. */
typedef struct {
    uint64_t order;
    uint32_t c;
} mark;

static int by_order(const void *a, const void *b)
{
    uint64_t x = ((const mark *)a)->order, y = ((const mark *)b)->order;
    return x < y ? -1 : x > y;
}

/* Every run of marks in the order of their classes, equal ones as they stood. */
static void sort_marks(mark *m, size_t n)
{
    for (size_t i = 0, j; i < n; i = j + (j == i)) {
        bool sorted = true;
        for (j = i; j < n && m[j].order >> 32; j++)
            sorted &= j == i || m[j - 1].order <= m[j].order;
        if (!sorted)
            qsort(m + i, j - i, sizeof *m, by_order);
    }
}

/* Puts marks into the starters before them where nothing blocks; returns how many are left. */
static size_t compose(mark *m, size_t n)
{
    size_t kept = 0, starter = SIZE_MAX;
    uint64_t last = 0; /* class of what was kept last behind the starter */
    for (size_t i = 0; i < n; i++) {
        uint64_t class = m[i].order >> 32;
        bool blocked = starter == SIZE_MAX || (kept - starter > 1 && last >= class);
        uint32_t joined = blocked ? 0 : put_together(m[starter].c, m[i].c);
        if (joined) {
            m[starter].c = joined;
            continue;
        }
        if (class == 0)
            starter = kept;
        last = class;
        m[kept++] = m[i];
    }
    return kept;
}

static bool is_plain(const char *text, size_t size) /* nothing at or behind U+0300 */
{
    for (size_t i = 0; i < size; i++) {
        if ((unsigned char)text[i] >= 0xCC)
            return false;
    }
    return true;
}

char *wm_nfc(const char *text, size_t size, size_t *result)
{
    const char *end = text + size;
    bool plain = is_plain(text, size);
    mark *m = plain ? NULL : malloc((size * 4 + 1) * sizeof *m);
    char *out = malloc(plain ? size + 1 : size * 4 * 3 + 1), *q = out;
    size_t n = 0;
    if (!out || (!plain && !m)) {
        free(m);
        free(out);
        return NULL;
    }
    if (plain)
        q = (char *)memcpy(out, text, size) + size;
    for (const char *p = text; !plain && p < end;) {
        uint32_t parts[4];
        int length, k = take_apart(wm_utf8_get(p, &length), parts);
        p += length;
        for (int i = 0; i < k; i++, n++)
            m[n] = (mark){(uint64_t)combining(parts[i]) << 32 | n, parts[i]};
    }
    if (!plain) {
        sort_marks(m, n);
        n = compose(m, n);
    }
    for (size_t i = 0; i < n; i++)
        q += wm_utf8_put(m[i].c, q);
    *q = 0;
    *result = (size_t)(q - out);
    free(m);
    return out;
}
