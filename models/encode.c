/* encode.c: text to tokens: added tokens are found, what lies between is normalised, cut into pieces, and each piece merged. */
#include <stdlib.h>
#include <string.h>
#include "error.h"
#include "tokenizer_int.h"
#include "unicode.h"

/* ---- normalisation ---- */

static char *prepend(const char *with, const char *text, size_t size, size_t *result)
{
    size_t n = size ? strlen(with) : 0;
    char *out = malloc(size + n + 1);
    if (!out)
        return NULL;
    memcpy(out, with, n);
    memcpy(out + n, text, size);
    *result = size + n;
    out[*result] = 0;
    return out;
}

static char *replace(const char *from, const char *to, const char *text, size_t size, size_t *result)
{
    size_t n = strlen(from), m = strlen(to), found = 0;
    const char *end = text + size, *p = text;
    for (const char *hit; (hit = memmem(p, (size_t)(end - p), from, n)); p = hit + n)
        found++;
    char *out = malloc(size + found * m + 1), *q = out;
    if (!out)
        return NULL;
    p = text;
    for (const char *hit; (hit = memmem(p, (size_t)(end - p), from, n)); p = hit + n) {
        memcpy(q, p, (size_t)(hit - p));
        q += hit - p;
        memcpy(q, to, m);
        q += m;
    }
    memcpy(q, p, (size_t)(end - p));
    q += end - p;
    *q = 0;
    *result = (size_t)(q - out);
    return out;
}

static char *run_step(const wm_step *s, const char *text, size_t size, size_t *result)
{
    switch (s->kind) {
    case WM_STEP_NFC: return wm_nfc(text, size, result);
    case WM_STEP_PREPEND: return prepend(s->to, text, size, result);
    default: return replace(s->from, s->to, text, size, result);
    }
}

char *wm_normalize(const wm_tokenizer *t, const char *text, size_t size, size_t *result)
{
    char *now = malloc(size + 1);
    if (!now)
        return NULL;
    memcpy(now, text, size);
    now[size] = 0;
    *result = size;
    for (int i = 0; now && i < t->n_steps; i++) {
        char *next = run_step(&t->steps[i], now, *result, result);
        free(now);
        now = next;
    }
    return now;
}

/* ---- pieces to tokens ---- */

/* A letter that the vocabulary lacks: its bytes, or the unknown token. */
static bool add_unknown(const wm_tokenizer *t, const char *p, int length, size_t from, wm_ids *ids)
{
    bool all = t->byte_fallback;
    for (int i = 0; i < length && all; i++)
        all = t->bytes[(unsigned char)p[i]] != WM_NO_TOKEN;
    for (int i = 0; i < length && all; i++) {
        if (!wm_ids_add(ids, t->bytes[(unsigned char)p[i]]))
            return false;
    }
    bool again = t->fuse_unknown && ids->n > from && ids->ids[ids->n - 1] == t->unknown;
    return all || t->unknown == WM_NO_TOKEN || again || wm_ids_add(ids, t->unknown);
}

static bool add_letters(const wm_tokenizer *t, const char *p, const char *end, wm_ids *ids)
{
    size_t from = ids->n;
    while (p < end) {
        int length = 1;
        uint32_t id;
        if (t->byte_level) {
            id = t->bytes[(unsigned char)*p];
        } else {
            wm_utf8_get(p, &length);
            id = wm_bpe_find(t->bpe, p, (size_t)length);
        }
        if (!(id != WM_NO_TOKEN ? wm_ids_add(ids, id) : add_unknown(t, p, length, from, ids)))
            return false;
        p += length;
    }
    return true;
}

static bool encode_piece(wm_tokenizer *t, const char *p, const char *end, wm_ids *ids)
{
    size_t from = ids->n;
    uint32_t whole = t->ignore_merges ? wm_bpe_find(t->bpe, p, (size_t)(end - p)) : (uint32_t)WM_NO_TOKEN;
    if (whole != WM_NO_TOKEN)
        return wm_ids_add(ids, whole);
    return add_letters(t, p, end, ids) && wm_bpe_merge(t->bpe, ids, from);
}

/* The piece at p of a text whose spaces are U+2581: up to the next of those. */
static size_t next_word(const char *p, const char *end)
{
    size_t n = sizeof WM_METASPACE - 1, size = (size_t)(end - p);
    const char *hit = size > n ? memmem(p + 1, size - 1, WM_METASPACE, n) : NULL;
    return hit ? (size_t)(hit - p) : size;
}

static bool encode_pieces(wm_tokenizer *t, const char *p, size_t size, wm_ids *ids)
{
    const char *end = p + size;
    while (p < end) {
        size_t n = t->metaspace && t->metaspace_split ? next_word(p, end) : wm_split_next(t->split, p, end);
        if (!encode_piece(t, p, p + n, ids))
            return false;
        p += n;
    }
    return true;
}

/* A normalised text between added tokens; `first`: it begins where the whole text does. */
static bool encode_between(wm_tokenizer *t, const char *text, size_t size, bool first, wm_ids *ids)
{
    char *made = NULL;
    if (t->metaspace) {
        made = replace(" ", WM_METASPACE, text, size, &size);
        bool wanted =
            t->metaspace_prepend == WM_PREPEND_ALWAYS || (t->metaspace_prepend == WM_PREPEND_FIRST && first);
        if (made && wanted && strncmp(made, WM_METASPACE, sizeof WM_METASPACE - 1) != 0) {
            char *longer = prepend(WM_METASPACE, made, size, &size);
            free(made);
            made = longer;
        }
    } else if (t->prefix_space && size && text[0] != ' ') {
        made = prepend(" ", text, size, &size);
    } else {
        return encode_pieces(t, text, size, ids);
    }
    bool fine = made && encode_pieces(t, made, size, ids);
    free(made);
    return fine;
}

/* ---- added tokens ---- */

/* The longest added token at p, of those that are looked for in normalised text or of the others. */
static const wm_added *added_at(const wm_tokenizer *t, const char *p, const char *end, bool normalized)
{
    const wm_added *best = NULL;
    for (int i = 0; i < t->n_added; i++) {
        const wm_added *a = &t->added[i];
        const char *text = normalized ? a->normal : a->text;
        if (a->normalized == normalized && a->size && a->size <= (size_t)(end - p) && text[0] == *p &&
            (!best || a->size > best->size) && memcmp(text, p, a->size) == 0)
            best = a;
    }
    return best;
}

static const char *before_spaces(const char *p, const char *begin)
{
    while (p > begin) {
        const char *q = p - 1;
        int length;
        while (q > begin && ((unsigned char)*q & 0xC0) == 0x80)
            q--;
        if (wm_class_of(wm_utf8_get(q, &length)) != WM_SPACE)
            break;
        p = q;
    }
    return p;
}

static const char *behind_spaces(const char *p, const char *end)
{
    int length;
    while (p < end && wm_class_of(wm_utf8_get(p, &length)) == WM_SPACE)
        p += length;
    return p;
}

/* Which bytes an added token of this kind may begin with. */
static void mark_begins(const wm_tokenizer *t, bool normalized, bool begins[WM_BYTES])
{
    memset(begins, 0, WM_BYTES * sizeof *begins);
    for (int i = 0; i < t->n_added; i++) {
        const wm_added *a = &t->added[i];
        if (a->normalized == normalized && a->size)
            begins[(unsigned char)(normalized ? a->normal : a->text)[0]] = true;
    }
}

static bool encode_part(wm_tokenizer *t, const char *text, size_t size, bool first, bool normalized,
                        wm_ids *ids);

/* What lies between added tokens as they are written is normalised and searched for the others; between those it is
 * encoded. */
static bool encode_gap(wm_tokenizer *t, const char *text, size_t size, bool first, bool normalized,
                       wm_ids *ids)
{
    if (size == 0)
        return true;
    if (normalized)
        return encode_between(t, text, size, first, ids);
    char *normal = wm_normalize(t, text, size, &size);
    bool fine = normal && encode_part(t, normal, size, first, true, ids);
    free(normal);
    return fine;
}

static bool encode_part(wm_tokenizer *t, const char *text, size_t size, bool first, bool normalized,
                        wm_ids *ids)
{
    const char *end = text + size, *done = text;
    bool begins[WM_BYTES];
    mark_begins(t, normalized, begins);
    for (const char *p = text; p < end;) {
        const wm_added *a = begins[(unsigned char)*p] ? added_at(t, p, end, normalized) : NULL;
        if (!a) {
            p++;
            continue;
        }
        const char *from = a->lstrip ? before_spaces(p, done) : p;
        p += a->size;
        if (a->rstrip)
            p = behind_spaces(p, end);
        if (!encode_gap(t, done, (size_t)(from - done), first && done == text, normalized, ids) ||
            !wm_ids_add(ids, a->id))
            return false;
        done = p;
    }
    return encode_gap(t, done, (size_t)(end - done), first && done == text, normalized, ids);
}

bool wm_encode(wm_tokenizer *t, const char *text, size_t size, bool special, wm_ids *ids)
{
    bool fine = true;
    char *valid = wm_utf8_repair(text, size, &size);
    for (int i = 0; special && fine && i < t->n_before; i++)
        fine = wm_ids_add(ids, t->before[i]);
    fine = fine && valid && encode_part(t, valid, size, true, false, ids);
    for (int i = 0; special && fine && i < t->n_after; i++)
        fine = wm_ids_add(ids, t->after[i]);
    free(valid);
    if (!fine)
        wm_fail(WK_ERR_MEMORY, "%s: a text of %zu bytes: out of memory", t->path, size);
    return fine;
}
