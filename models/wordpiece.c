/* wordpiece.c: BERT's tokenizer: its files, its vocabulary, and words cut into pieces. */
#include "wordpiece.h"
#include <stdlib.h>
#include <string.h>
#include "config.h"
#include "file.h"
#include "unicode.h"
#include "wordpiece_text.h"

enum { LONGEST_WORD = 100, WORD_BYTES = 4 * LONGEST_WORD, MAX_ID = 1 << 24 };

typedef struct {
    const char *text; /* in words */
    uint32_t size;
    uint32_t id;
    uint32_t next; /* in its bucket; 0: none */
} entry;

/* A token that is found in the text as it is, before anything is done to that: [SEP] and its like. */
typedef struct {
    char *text;
    size_t size;
    uint32_t id;
} added_token;

struct wm_wordpiece {
    wm_text_rules rules;
    char *words; /* the text of all entries */
    size_t words_size, words_room;
    entry *entries; /* from 1 on */
    uint32_t n, room;
    uint32_t *buckets, mask;
    added_token *added;
    size_t n_added;
    uint32_t ids; /* one more than the largest */
    uint32_t cls, sep, unk, pad;
};

/* ---- The vocabulary ---- */

static const uint32_t HASH_START = 2166136261u;

static uint32_t hash_on(uint32_t hash, const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ (unsigned char)text[i]) * 16777619u;
    return hash;
}

static uint32_t lookup(const wm_wordpiece *t, uint32_t hash, const char *front, size_t front_size,
                       const char *text, size_t size)
{
    for (uint32_t i = t->buckets[hash & t->mask]; i; i = t->entries[i].next) {
        const entry *e = &t->entries[i];
        if (e->size == front_size + size && !memcmp(e->text, front, front_size) &&
            !memcmp(e->text + front_size, text, size))
            return e->id;
    }
    return WM_NO_TOKEN;
}

uint32_t wm_wordpiece_find(const wm_wordpiece *t, const char *token)
{
    size_t size = strlen(token);
    return lookup(t, hash_on(HASH_START, token, size), "", 0, token, size);
}

uint32_t wm_wordpiece_size(const wm_wordpiece *t) { return t->ids; }

uint32_t wm_wordpiece_padding(const wm_wordpiece *t) { return t->pad; }

static bool no_memory(const char *path)
{
    wm_fail(WK_ERR_MEMORY, "%s: not enough memory for the vocabulary", path);
    return false;
}

/* Room for n entries and for the bytes of all of their texts, which are at most those of the file. */
static bool vocabulary_room(wm_wordpiece *t, const char *path, size_t n, size_t bytes)
{
    size_t buckets = 1024;
    while (buckets < n)
        buckets *= 2;
    if (n > MAX_ID) {
        wm_fail(WK_ERR_FORMAT, "%s: %zu tokens, more than can be", path, n);
        return false;
    }
    t->room = (uint32_t)n + 1;
    t->mask = (uint32_t)buckets - 1;
    t->words_room = bytes;
    t->words = malloc(bytes + 1);
    t->entries = calloc(t->room, sizeof *t->entries);
    t->buckets = calloc(buckets, sizeof *t->buckets);
    return (t->words && t->entries && t->buckets) || no_memory(path);
}

/* The token whose text stands at the end of words. */
static void vocabulary_add(wm_wordpiece *t, size_t size, uint32_t id)
{
    entry *e = &t->entries[++t->n];
    *e = (entry){t->words + t->words_size, (uint32_t)size, id, 0};
    t->words_size += size;
    uint32_t *bucket = &t->buckets[hash_on(HASH_START, e->text, size) & t->mask];
    e->next = *bucket;
    *bucket = t->n;
    t->ids = id >= t->ids ? id + 1 : t->ids;
}

static bool add_token(wm_wordpiece *t, const char *path, const char *text, size_t size, uint32_t id)
{
    added_token *more = realloc(t->added, (t->n_added + 1) * sizeof *more);
    char *copy = malloc(size + 1);
    if (more)
        t->added = more;
    if (!more || !copy) {
        free(copy);
        return no_memory(path);
    }
    memcpy(copy, text, size);
    copy[size] = 0;
    t->added[t->n_added++] = (added_token){copy, size, id};
    t->ids = id >= t->ids ? id + 1 : t->ids;
    return true;
}

/* ---- vocab.txt: a token in each line, numbered from 0 ---- */

static bool read_lines(wm_wordpiece *t, const char *path, const wm_map *map)
{
    const char *at = map->data, *end = at + map->size;
    size_t lines = 0;
    for (size_t i = 0; i < map->size; i++)
        lines += at[i] == '\n' || i + 1 == map->size;
    if (!vocabulary_room(t, path, lines, map->size))
        return false;
    for (uint32_t id = 0; at < end; id++) {
        const char *line = memchr(at, '\n', (size_t)(end - at)), *next = line ? line + 1 : end;
        size_t size = (size_t)((line ? line : end) - at);
        size -= size > 0 && at[size - 1] == '\r';
        memcpy(t->words + t->words_size, at, size);
        vocabulary_add(t, size, id);
        at = next;
    }
    return true;
}

static bool read_rules(wm_wordpiece *t, const char *folder)
{
    static const char name[] = "tokenizer_config.json";
    char *path = wm_path(folder, name);
    bool there = path && wm_file_exists(path);
    free(path);
    t->rules = (wm_text_rules){true, true, true, true};
    if (!there)
        return wm_error_status() == WK_OK;
    wm_config *c = wm_config_open(folder, name);
    if (!c)
        return false;
    t->rules.lower = wm_config_bool_or(c, "do_lower_case", true);
    t->rules.strip = wm_config_bool_or(c, "strip_accents", t->rules.lower);
    t->rules.chinese = wm_config_bool_or(c, "tokenize_chinese_chars", true);
    wm_config_close(c);
    return wm_error_status() == WK_OK;
}

static bool open_vocab(wm_wordpiece *t, const char *folder)
{
    static const char *const special[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
    char *path = wm_path(folder, "vocab.txt");
    wm_map map;
    if (!path || !wm_map_open(&map, path)) {
        free(path);
        return false;
    }
    bool ok = read_lines(t, path, &map) && read_rules(t, folder);
    wm_map_close(&map);
    for (size_t i = 0; ok && i < sizeof special / sizeof *special; i++) {
        uint32_t id = wm_wordpiece_find(t, special[i]);
        ok = id == WM_NO_TOKEN || add_token(t, path, special[i], strlen(special[i]), id);
    }
    free(path);
    return ok;
}

/* ---- tokenizer.json ---- */

static bool wrong(const wm_config *c, const char *what)
{
    wm_fail(WK_ERR_FORMAT, "%s: %s", wm_config_path(c), what);
    return false;
}

static bool expect(const wm_config *c, const char *key, const char *value)
{
    char text[64];
    if (!strcmp(wm_config_string(c, key, text, sizeof text), value))
        return true;
    wm_fail(WK_ERR_UNSUPPORTED, "%s: %s: expected %s, got '%s'", wm_config_path(c), key, value, text);
    return false;
}

/* Counts the entries of the vocabulary and the bytes they need at most, then adds them. */
static bool read_vocab(wm_wordpiece *t, const wm_config *c)
{
    wk_json j, again;
    wk_json_raw key;
    size_t n = 0, bytes = 0;
    int64_t id;
    if (!wm_config_find(c, "model.vocab", &j) || wk_json_peek(&j) != '{')
        return wrong(c, "model.vocab: expected an object");
    again = j;
    wk_json_enter(&j, '{');
    for (; wk_json_more(&j) && wk_json_key(&j, &key) && wk_json_skip(&j); n++)
        bytes += key.size + 1;
    if (!vocabulary_room(t, wm_config_path(c), n, bytes))
        return false;
    wk_json_enter(&again, '{');
    while (wk_json_more(&again) && wk_json_key(&again, &key)) {
        size_t size = wk_json_unescape(key, t->words + t->words_size);
        if (!wk_json_int(&again, &id) || id < 0 || id >= MAX_ID)
            return wrong(c, "model.vocab: expected numbers from 0 on");
        vocabulary_add(t, size, (uint32_t)id);
    }
    return true;
}

/* One member of added_tokens. */
static bool read_added(wm_wordpiece *t, const wm_config *c, wk_json *j)
{
    wk_json_raw key, content = {0};
    int64_t id = -1;
    if (!wk_json_enter(j, '{'))
        return wrong(c, "added_tokens: expected objects");
    while (wk_json_more(j) && wk_json_key(j, &key)) {
        if (wk_json_equal(key, "content"))
            wk_json_string(j, &content);
        else if (wk_json_equal(key, "id"))
            wk_json_int(j, &id);
        else
            wk_json_skip(j);
    }
    if (j->reason || !content.size || id < 0 || id >= MAX_ID)
        return wrong(c, "added_tokens: expected a text and a number in each");
    char *text = malloc(content.size + 1);
    if (!text)
        return no_memory(wm_config_path(c));
    bool ok = add_token(t, wm_config_path(c), text, wk_json_unescape(content, text), (uint32_t)id);
    free(text);
    return ok;
}

static bool read_added_tokens(wm_wordpiece *t, const wm_config *c)
{
    wk_json j;
    if (!wm_config_find(c, "added_tokens", &j))
        return true;
    if (!wk_json_enter(&j, '['))
        return wrong(c, "added_tokens: expected an array");
    while (wk_json_more(&j))
        if (!read_added(t, c, &j))
            return false;
    return true;
}

static bool open_json(wm_wordpiece *t, const char *folder)
{
    wm_config *c = wm_config_open(folder, "tokenizer.json");
    if (!c)
        return false;
    t->rules.clean = wm_config_bool_or(c, "normalizer.clean_text", true);
    t->rules.chinese = wm_config_bool_or(c, "normalizer.handle_chinese_chars", true);
    t->rules.lower = wm_config_bool_or(c, "normalizer.lowercase", true);
    t->rules.strip = wm_config_bool_or(c, "normalizer.strip_accents", t->rules.lower);
    bool ok = expect(c, "normalizer.type", "BertNormalizer") &&
              expect(c, "pre_tokenizer.type", "BertPreTokenizer") && expect(c, "model.type", "WordPiece") &&
              expect(c, "model.continuing_subword_prefix", "##") &&
              wm_config_int_or(c, "model.max_input_chars_per_word", LONGEST_WORD, LONGEST_WORD,
                               LONGEST_WORD) == LONGEST_WORD &&
              read_vocab(t, c) && read_added_tokens(t, c) && wm_error_status() == WK_OK;
    wm_config_close(c);
    return ok;
}

/* The tokens that every text needs. */
static bool find_special(wm_wordpiece *t, const char *folder)
{
    const struct {
        const char *name;
        uint32_t *id;
    } special[] = {{"[CLS]", &t->cls}, {"[SEP]", &t->sep}, {"[UNK]", &t->unk}, {"[PAD]", &t->pad}};
    for (size_t i = 0; i < sizeof special / sizeof *special; i++) {
        *special[i].id = wm_wordpiece_find(t, special[i].name);
        if (*special[i].id == WM_NO_TOKEN) {
            wm_fail(WK_ERR_FORMAT, "%s: the vocabulary has no %s", folder, special[i].name);
            return false;
        }
    }
    return true;
}

wm_wordpiece *wm_wordpiece_open(const char *folder)
{
    char *path = wm_path(folder, "tokenizer.json");
    wm_wordpiece *t = calloc(1, sizeof *t);
    bool json = path && wm_file_exists(path);
    free(path);
    if (!t)
        no_memory(folder);
    if (t && (json ? open_json(t, folder) : open_vocab(t, folder)) && find_special(t, folder))
        return t;
    wm_wordpiece_close(t);
    return NULL;
}

void wm_wordpiece_close(wm_wordpiece *t)
{
    if (!t)
        return;
    for (size_t i = 0; i < t->n_added; i++)
        free(t->added[i].text);
    free(t->added);
    free(t->words);
    free(t->entries);
    free(t->buckets);
    free(t);
}

/* ---- Text to ids ---- */

/* A word while it grows: its bytes and where each letter begins; n may pass the longest there is, which is then unknown. */
typedef struct {
    const wm_wordpiece *t;
    wm_ids *out;
    size_t max; /* ids before [SEP] */
    bool failed;
    int n;
    uint16_t begin[LONGEST_WORD + 1];
    char text[WORD_BYTES + 4];
} word;

static void put_id(word *w, uint32_t id) { w->failed = !wm_ids_add(w->out, id) || w->failed; }

/* The longest piece that begins at letter i and its id; returns the letter behind it, or 0 when there is none. */
static int longest_piece(const word *w, int i, uint32_t *id)
{
    uint32_t hash[LONGEST_WORD + 1];
    const char *front = i ? "##" : "", *text = w->text + w->begin[i];
    size_t front_size = i ? 2 : 0;
    hash[i] = hash_on(HASH_START, front, front_size);
    for (int k = i; k < w->n; k++)
        hash[k + 1] = hash_on(hash[k], w->text + w->begin[k], (size_t)(w->begin[k + 1] - w->begin[k]));
    for (int k = w->n; k > i; k--) {
        *id = lookup(w->t, hash[k], front, front_size, text, (size_t)(w->begin[k] - w->begin[i]));
        if (*id != WM_NO_TOKEN)
            return k;
    }
    return 0;
}

/* Ends the word: its pieces, or one unknown token where it cannot be cut. */
static void end_word(word *w)
{
    size_t before = w->out->n;
    bool known = w->n <= LONGEST_WORD;
    for (int i = 0; known && i < w->n;) {
        uint32_t id;
        i = longest_piece(w, i, &id);
        known = i > 0;
        if (known)
            put_id(w, id);
    }
    if (!known) {
        w->out->n = before;
        put_id(w, w->t->unk);
    }
    w->n = 0;
}

static void add_letter(word *w, uint32_t c)
{
    if (wm_is_space(c)) {
        if (w->n)
            end_word(w);
        return;
    }
    bool alone = wm_is_punctuation(c);
    if (alone && w->n)
        end_word(w);
    if (w->n < LONGEST_WORD)
        w->begin[w->n + 1] = (uint16_t)(w->begin[w->n] + (size_t)wm_utf8_put(c, w->text + w->begin[w->n]));
    w->n += w->n <= LONGEST_WORD;
    if (alone)
        end_word(w);
}

/* The added token that the text begins with, the longest of them; NULL when there is none. */
static const added_token *added_at(const wm_wordpiece *t, const char *text, size_t size)
{
    const added_token *best = NULL;
    for (size_t i = 0; i < t->n_added; i++) {
        const added_token *a = &t->added[i];
        if (a->text[0] == text[0] && a->size <= size && (!best || a->size > best->size) &&
            !memcmp(a->text, text, a->size))
            best = a;
    }
    return best;
}

/* The code point that the text begins with, U+FFFD for what is none; returns its bytes. */
static size_t take_letter(const char *text, size_t size, uint32_t *c)
{
    int n = wm_utf8_length(text, text + size);
    *c = n > 0 ? wm_utf8_get(text, &n) : 0xFFFD;
    return n > 0 ? (size_t)n : n < 0 ? (size_t)-n : size;
}

bool wm_wordpiece_encode(const wm_wordpiece *t, const char *text, size_t size, size_t max, wm_ids *out)
{
    word w = {.t = t, .out = out, .max = max > 1 ? max - 1 : SIZE_MAX};
    uint32_t c, plain[8];
    out->n = 0;
    put_id(&w, t->cls);
    for (size_t at = 0; at < size && out->n < w.max && !w.failed;) {
        const added_token *a = added_at(t, text + at, size - at);
        if (a) {
            if (w.n)
                end_word(&w);
            put_id(&w, a->id);
            at += a->size;
            continue;
        }
        at += take_letter(text + at, size - at, &c);
        int n = wm_text_plain(&t->rules, c, plain);
        for (int i = 0; i < n; i++)
            add_letter(&w, plain[i]);
    }
    if (w.n)
        end_word(&w);
    if (out->n > w.max)
        out->n = w.max;
    put_id(&w, t->sep);
    if (w.failed)
        wm_fail(WK_ERR_MEMORY, "not enough memory for the tokens of a text");
    return !w.failed;
}
