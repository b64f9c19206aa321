/* tokenizer.c: reading a tokenizer.json. Each part of it is an object with a "type"; what has no counterpart here is refused
 * by name, since other tokens than the reference's are worse than none. */
#include "tokenizer.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "config.h"
#include "error.h"
#include "gguf.h"
#include "tokenizer_int.h"
#include "unicode.h"

enum { MAX_ID = 1 << 21 }; /* far above any vocabulary: a table has a place for each */

/* ---- JSON: the file is known to be right, so that a copy of the reader at a value is enough to look into it ---- */

static bool find(wk_json at, const char *key, wk_json *out)
{
    wk_json_raw name;
    if (wk_json_peek(&at) != '{' || !wk_json_enter(&at, '{'))
        return false;
    while (wk_json_more(&at) && wk_json_key(&at, &name)) {
        if (wk_json_equal(name, key)) {
            *out = at;
            return wk_json_peek(out) != 'n';
        }
        wk_json_skip(&at);
    }
    return false;
}

static bool is_true(wk_json at, const char *key)
{
    wk_json v;
    return find(at, key, &v) && wk_json_peek(&v) == 't';
}

/* A string member into a new string; NULL when it is missing. */
static char *get_string(wk_json at, const char *key)
{
    wk_json v;
    wk_json_raw raw;
    if (!find(at, key, &v) || !wk_json_string(&v, &raw))
        return NULL;
    char *out = malloc(raw.size + 1);
    if (out)
        wk_json_unescape(raw, out);
    else
        wm_fail(WK_ERR_MEMORY, "tokenizer: out of memory");
    return out;
}

static bool string_is(wk_json at, const char *key, const char *text)
{
    wk_json v;
    wk_json_raw raw;
    return find(at, key, &v) && wk_json_string(&v, &raw) && wk_json_equal(raw, text);
}

/* Whether the object is of that "type". */
static bool is_type(wk_json at, const char *type) { return string_is(at, "type", type); }

static bool refuse(const wm_tokenizer *t, const char *part, wk_json at)
{
    char *type = get_string(at, "type");
    wm_fail(WK_ERR_UNSUPPORTED, "%s: %s: '%s' is not one that wick knows, or not with these settings",
            t->path, part, type ? type : "?");
    free(type);
    return false;
}

/* Calls read with the object, or with each of those in a "Sequence", whose array is called `list`. */
typedef bool (*part_reader)(wm_tokenizer *t, wk_json at);

static bool read_parts(wm_tokenizer *t, wk_json at, const char *list, part_reader read)
{
    wk_json items;
    if (!is_type(at, "Sequence") || !find(at, list, &items))
        return read(t, at);
    wk_json_enter(&items, '[');
    while (wk_json_more(&items)) {
        if (!read_parts(t, items, list, read))
            return false;
        wk_json_skip(&items);
    }
    return true;
}

/* ---- normalizer, pre_tokenizer, decoder, post_processor ---- */

static bool read_normalizer(wm_tokenizer *t, wk_json at)
{
    wk_json pattern;
    wm_step s = {0};
    if (is_type(at, "NFC")) {
        s.kind = WM_STEP_NFC;
    } else if (is_type(at, "Prepend")) {
        s = (wm_step){.kind = WM_STEP_PREPEND, .to = get_string(at, "prepend")};
    } else if (is_type(at, "Replace") && find(at, "pattern", &pattern)) {
        s = (wm_step){
            .kind = WM_STEP_REPLACE, .from = get_string(pattern, "String"), .to = get_string(at, "content")};
    } else {
        return refuse(t, "normalizer", at);
    }
    bool whole = s.kind == WM_STEP_NFC || (s.to && (s.kind == WM_STEP_PREPEND || (s.from && s.from[0])));
    if (whole && t->n_steps < WM_STEPS) {
        t->steps[t->n_steps++] = s;
        return true;
    }
    free(s.from);
    free(s.to);
    return refuse(t, "normalizer", at);
}

static bool read_split(wm_tokenizer *t, wk_json at)
{
    wk_json pattern;
    bool inverted = is_true(at, "invert");
    char *regex = find(at, "pattern", &pattern) ? get_string(pattern, "Regex") : NULL;
    t->split = regex && t->split == WM_SPLIT_NONE ? wm_split_find(regex) : WM_SPLIT_UNKNOWN;
    if (t->split == WM_SPLIT_UNKNOWN)
        wm_fail(WK_ERR_UNSUPPORTED,
                "%s: pre_tokenizer: expected the regular expression of GPT-2, Llama 3 or Qwen2, got '%s'",
                t->path, regex ? regex : "");
    free(regex);
    /* The pieces are the matches, either way. */
    if (!(inverted ? string_is(at, "behavior", "Removed") : string_is(at, "behavior", "Isolated")))
        return refuse(t, "pre_tokenizer", at);
    return t->split != WM_SPLIT_UNKNOWN;
}

/* "prepend_scheme", or in older files "add_prefix_space". */
static wm_prepend read_prepend(wk_json at)
{
    wk_json v;
    if (find(at, "prepend_scheme", &v))
        return string_is(at, "prepend_scheme", "never")   ? WM_PREPEND_NEVER
               : string_is(at, "prepend_scheme", "first") ? WM_PREPEND_FIRST
                                                          : WM_PREPEND_ALWAYS;
    return !find(at, "add_prefix_space", &v) || is_true(at, "add_prefix_space") ? WM_PREPEND_ALWAYS
                                                                                : WM_PREPEND_NEVER;
}

static bool read_pre_tokenizer(wm_tokenizer *t, wk_json at)
{
    wk_json v;
    if (is_type(at, "Split"))
        return read_split(t, at);
    if (is_type(at, "ByteLevel")) {
        t->byte_level = true;
        t->prefix_space = is_true(at, "add_prefix_space");
        if (find(at, "use_regex", &v) && !is_true(at, "use_regex"))
            return true;
        t->split = t->split == WM_SPLIT_NONE ? WM_SPLIT_GPT2 : WM_SPLIT_UNKNOWN;
        return t->split == WM_SPLIT_GPT2 || refuse(t, "pre_tokenizer", at);
    }
    if (!is_type(at, "Metaspace") || !string_is(at, "replacement", WM_METASPACE))
        return refuse(t, "pre_tokenizer", at);
    t->metaspace = true;
    t->metaspace_prepend = read_prepend(at);
    t->metaspace_split = !find(at, "split", &v) || is_true(at, "split");
    return true;
}

static bool read_decoder(wm_tokenizer *t, wk_json at)
{
    static const char *const plain[] = {"ByteLevel", "Replace", "ByteFallback", "Fuse"};
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) {
        if (is_type(at, plain[i]))
            return true;
    }
    if (is_type(at, "Strip"))
        t->strip_first = string_is(at, "content", " ");
    else if (is_type(at, "Metaspace"))
        t->strip_first = read_prepend(at) != WM_PREPEND_NEVER;
    else
        return refuse(t, "decoder", at);
    return true;
}

/* Adds the ids of a special token of a template. */
static bool add_around(wm_tokenizer *t, wk_json at, wk_json item, uint32_t *ids, int *n)
{
    wk_json special, token, list;
    int64_t id;
    char *name = get_string(item, "id");
    bool known = name && find(at, "special_tokens", &special) && find(special, name, &token) &&
                 find(token, "ids", &list) && wk_json_enter(&list, '[');
    free(name);
    if (!known)
        return refuse(t, "post_processor", at);
    while (wk_json_more(&list)) {
        if (!wk_json_int(&list, &id) || id < 0 || id >= UINT32_MAX || *n == WM_AROUND)
            return refuse(t, "post_processor", at);
        ids[(*n)++] = (uint32_t)id;
    }
    return true;
}

static bool read_post_processor(wm_tokenizer *t, wk_json at)
{
    wk_json items, item;
    bool behind = false;
    if (is_type(at, "ByteLevel")) /* concerns offsets only */
        return true;
    if (!is_type(at, "TemplateProcessing") || !find(at, "single", &items) || !wk_json_enter(&items, '['))
        return refuse(t, "post_processor", at);
    while (wk_json_more(&items)) {
        if (find(items, "Sequence", &item))
            behind = true;
        else if (!find(items, "SpecialToken", &item) ||
                 !add_around(t, at, item, behind ? t->after : t->before, behind ? &t->n_after : &t->n_before))
            return false;
        wk_json_skip(&items);
    }
    return true;
}

/* ---- the model: vocabulary and merges ---- */

/* GPT-2's alphabet: bytes that can be printed stand for themselves, the others for letters from U+0100 on. */
static bool stands_for_itself(uint32_t c)
{
    return (c >= '!' && c <= '~') || (c >= 0xA1 && c <= 0xAC) || (c >= 0xAE && c <= 0xFF);
}

int wm_alphabet_byte(uint32_t c)
{
    if (c < 0x100)
        return stands_for_itself(c) ? (int)c : -1;
    int left = (int)c - 0x100;
    for (int b = 0; b < WM_BYTES && left >= 0; b++) {
        if (!stands_for_itself((uint32_t)b) && left-- == 0)
            return b;
    }
    return -1;
}

/* Text outside of the alphabet stays. */
size_t wm_token_bytes(const wm_tokenizer *t, char *text, size_t size)
{
    size_t n = 0;
    if (!t->byte_level)
        return size;
    for (size_t i = 0; i < size;) {
        int length;
        if (wm_alphabet_byte(wm_utf8_get(text + i, &length)) < 0)
            return size;
        i += (size_t)length;
    }
    for (size_t i = 0; i < size;) {
        int length, byte = wm_alphabet_byte(wm_utf8_get(text + i, &length));
        i += (size_t)length;
        text[n++] = (char)byte;
    }
    return n;
}

/* A text that is read again and again. */
typedef struct {
    char *text;
    size_t size, room;
} buffer;

/* The string with its escapes undone, behind what is in the buffer when `more`. */
static bool fill(const wm_tokenizer *t, buffer *b, wk_json_raw raw, bool more)
{
    size_t at = more ? b->size : 0;
    if (at + raw.size + 1 > b->room) {
        size_t room = (at + raw.size + 1) * 2;
        char *text = realloc(b->text, room);
        if (!text)
            return wm_fail(WK_ERR_MEMORY, "%s: out of memory", t->path), false;
        b->text = text;
        b->room = room;
    }
    b->size = at + wm_token_bytes(t, b->text + at, wk_json_unescape(raw, b->text + at));
    return true;
}

static bool read_vocabulary(wm_tokenizer *t, wk_json vocab, buffer *b)
{
    wk_json_raw key;
    int64_t id;
    wk_json_enter(&vocab, '{');
    while (wk_json_more(&vocab)) {
        if (!wk_json_key(&vocab, &key) || !wk_json_int(&vocab, &id) || id < 0 || id >= MAX_ID)
            return wm_fail(WK_ERR_FORMAT, "%s: byte %zu: vocab: expected a token's number", t->path,
                           vocab.at),
                   false;
        if (!fill(t, b, key, false))
            return false;
        if (!wm_bpe_add_token(t->bpe, (uint32_t)id, b->text, b->size))
            return wm_fail(WK_ERR_MEMORY, "%s: out of memory", t->path), false;
    }
    return true;
}

/* The two halves of a merge: ["a", "b"], or "a b". */
static bool read_pair(wk_json *j, wk_json_raw *left, wk_json_raw *right)
{
    if (wk_json_peek(j) == '[')
        return wk_json_enter(j, '[') && wk_json_more(j) && wk_json_string(j, left) && wk_json_more(j) &&
               wk_json_string(j, right) && !wk_json_more(j);
    const char *space = wk_json_string(j, left) ? memchr(left->text, ' ', left->size) : NULL;
    if (!space)
        return false;
    *right = (wk_json_raw){space + 1, (size_t)(left->text + left->size - space - 1)};
    left->size = (size_t)(space - left->text);
    return true;
}

static bool add_merge(wm_tokenizer *t, wk_json_raw left, wk_json_raw right, buffer *b)
{
    if (!fill(t, b, left, false))
        return false;
    size_t half = b->size;
    uint32_t first = wm_bpe_find(t->bpe, b->text, half);
    if (!fill(t, b, right, true))
        return false;
    uint32_t second = wm_bpe_find(t->bpe, b->text + half, b->size - half);
    uint32_t both = wm_bpe_find(t->bpe, b->text, b->size);
    if (first == WM_NO_TOKEN || second == WM_NO_TOKEN || both == WM_NO_TOKEN)
        return wm_fail(WK_ERR_FORMAT,
                       "%s: merges: '%.*s' and '%.*s' are not in the vocabulary, or not what they become",
                       t->path, (int)left.size, left.text, (int)right.size, right.text),
               false;
    if (!wm_bpe_add_merge(t->bpe, first, second, both))
        return wm_fail(WK_ERR_MEMORY, "%s: out of memory", t->path), false;
    return true;
}

static bool read_merges(wm_tokenizer *t, wk_json merges, buffer *b)
{
    wk_json_raw left, right;
    wk_json_enter(&merges, '[');
    while (wk_json_more(&merges)) {
        if (!read_pair(&merges, &left, &right))
            return wm_fail(WK_ERR_FORMAT, "%s: byte %zu: merges: expected pairs of tokens", t->path,
                           merges.at),
                   false;
        if (!add_merge(t, left, right, b))
            return false;
    }
    return true;
}

void wm_find_bytes(wm_tokenizer *t)
{
    for (int i = 0; i < WM_BYTES; i++) {
        char name[8] = {(char)i};
        size_t size = t->byte_level ? 1 : (size_t)snprintf(name, sizeof name, "<0x%02X>", (unsigned)i);
        t->bytes[i] = wm_bpe_find(t->bpe, name, size);
    }
}

static bool is_empty(wk_json at, const char *key)
{
    wk_json v;
    return !find(at, key, &v) || string_is(at, key, "");
}

static bool read_model(wm_tokenizer *t, wk_json at)
{
    wk_json vocab, merges, type, dropout;
    buffer b = {0};
    if ((find(at, "type", &type) && !is_type(at, "BPE")) || !find(at, "vocab", &vocab) ||
        wk_json_peek(&vocab) != '{' || !find(at, "merges", &merges) || wk_json_peek(&merges) != '[' ||
        find(at, "dropout", &dropout) || !is_empty(at, "continuing_subword_prefix") ||
        !is_empty(at, "end_of_word_suffix"))
        return refuse(t, "model", at);
    t->ignore_merges = is_true(at, "ignore_merges");
    t->byte_fallback = is_true(at, "byte_fallback");
    t->fuse_unknown = is_true(at, "fuse_unk");
    bool fine = read_vocabulary(t, vocab, &b) && read_merges(t, merges, &b);
    free(b.text);
    char *unknown = get_string(at, "unk_token");
    if (unknown)
        t->unknown = wm_bpe_find(t->bpe, unknown, strlen(unknown));
    free(unknown);
    wm_find_bytes(t);
    return fine;
}

/* ---- added tokens ---- */

static bool read_added(wm_tokenizer *t, wk_json at)
{
    wk_json v;
    int64_t id = -1;
    wm_added a = {.special = is_true(at, "special"),
                  .normalized = is_true(at, "normalized"),
                  .lstrip = is_true(at, "lstrip"),
                  .rstrip = is_true(at, "rstrip")};
    if (!find(at, "id", &v) || !wk_json_int(&v, &id) || id < 0 || id >= MAX_ID || is_true(at, "single_word"))
        return wm_fail(WK_ERR_UNSUPPORTED, "%s: added_tokens: expected an id, and single_word to be false",
                       t->path),
               false;
    a.id = (uint32_t)id;
    a.text = get_string(at, "content");
    if (!a.text)
        return wm_fail(WK_ERR_FORMAT, "%s: added_tokens: %u has no content", t->path, a.id), false;
    a.size = strlen(a.text);
    a.normal = a.normalized ? wm_normalize(t, a.text, a.size, &a.size) : NULL;
    t->added[t->n_added++] = a;
    if (a.normalized && !a.normal)
        return wm_fail(WK_ERR_MEMORY, "%s: out of memory", t->path), false;
    return true;
}

static bool read_all_added(wm_tokenizer *t, wk_json list)
{
    wk_json counted = list;
    size_t n = 0;
    wk_json_enter(&counted, '[');
    for (; wk_json_more(&counted); n++)
        wk_json_skip(&counted);
    t->added = calloc(n + 1, sizeof *t->added);
    if (!t->added)
        return wm_fail(WK_ERR_MEMORY, "%s: out of memory", t->path), false;
    wk_json_enter(&list, '[');
    while (wk_json_more(&list)) {
        if (!read_added(t, list))
            return false;
        wk_json_skip(&list);
    }
    return true;
}

/* ---- the whole ---- */

static bool read_tokenizer(wm_tokenizer *t, const wm_config *c)
{
    wk_json v;
    if (wm_config_find(c, "normalizer", &v) && !read_parts(t, v, "normalizers", read_normalizer))
        return false;
    if (wm_config_find(c, "pre_tokenizer", &v) && !read_parts(t, v, "pretokenizers", read_pre_tokenizer))
        return false;
    if (t->split != WM_SPLIT_NONE && !t->byte_level)
        return wm_fail(WK_ERR_UNSUPPORTED, "%s: pre_tokenizer: expected Split together with ByteLevel",
                       t->path),
               false;
    if (wm_config_find(c, "decoder", &v) && !read_parts(t, v, "decoders", read_decoder))
        return false;
    if (wm_config_find(c, "post_processor", &v) && !read_parts(t, v, "processors", read_post_processor))
        return false;
    if (!wm_config_find(c, "model", &v))
        return wm_fail(WK_ERR_FORMAT, "%s: model is missing", t->path), false;
    if (!read_model(t, v))
        return false;
    return !wm_config_find(c, "added_tokens", &v) || wk_json_peek(&v) != '[' || read_all_added(t, v);
}

wm_tokenizer *wm_tokenizer_open(const char *folder)
{
    if (wm_is_gguf(folder))
        return wm_gguf_tokenizer(folder);
    wm_tokenizer *t = calloc(1, sizeof *t);
    wm_config *c = wm_config_open(folder, "tokenizer.json");
    bool fine = t && c;
    if (fine) {
        *t = (wm_tokenizer){.bpe = wm_bpe_new(), .path = strdup(wm_config_path(c)), .unknown = WM_NO_TOKEN};
        fine = t->bpe && t->path && read_tokenizer(t, c) && wm_error_status() == WK_OK;
    }
    wm_config_close(c);
    if (fine)
        return t;
    wm_fail(WK_ERR_MEMORY, "%s/tokenizer.json: out of memory", folder);
    wm_tokenizer_close(t);
    return NULL;
}

void wm_tokenizer_close(wm_tokenizer *t)
{
    if (!t)
        return;
    for (int i = 0; i < t->n_steps; i++) {
        free(t->steps[i].from);
        free(t->steps[i].to);
    }
    for (int i = 0; i < t->n_added; i++) {
        free(t->added[i].text);
        free(t->added[i].normal);
    }
    free(t->added);
    wm_bpe_free(t->bpe);
    free(t->path);
    free(t);
}

uint32_t wm_tokenizer_size(const wm_tokenizer *t)
{
    uint32_t size = wm_bpe_size(t->bpe);
    for (int i = 0; i < t->n_added; i++)
        size = t->added[i].id >= size ? t->added[i].id + 1 : size;
    return size;
}

uint32_t wm_tokenizer_find(const wm_tokenizer *t, const char *text)
{
    for (int i = 0; i < t->n_added; i++) {
        if (strcmp(t->added[i].text, text) == 0)
            return t->added[i].id;
    }
    return wm_bpe_find(t->bpe, text, strlen(text));
}
