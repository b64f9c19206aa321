/* tokenizer_gguf.c: the tokenizer of a GGUF file: byte-level BPE with its merges ("gpt2"), or SentencePiece's pieces with
 * their scores ("llama"). */
#include <stdlib.h>
#include <string.h>
#include "error.h"
#include "gguf.h"
#include "tokenizer_int.h"
#include "unicode.h"

#define KEY(name) "tokenizer.ggml." name

/* Kinds of tokens, by the numbers of the file. */
enum { KIND_NORMAL = 1, KIND_UNKNOWN = 2, KIND_CONTROL = 3, KIND_USER = 4 };

static bool no_memory(const wm_tokenizer *t)
{
    return wm_fail(WK_ERR_MEMORY, "%s: out of memory", t->path), false;
}

static bool string_is(const wk_gguf *f, const char *key, const char *text)
{
    size_t size;
    const char *s = wk_gguf_string(f, key, &size);
    return s && size == strlen(text) && memcmp(s, text, size) == 0;
}

static bool flag(const wk_gguf *f, const char *key, bool fallback)
{
    int64_t v = fallback;
    wk_gguf_int(f, key, &v);
    return v != 0;
}

static int64_t kind_at(const wk_gguf *f, int64_t i)
{
    int64_t kind = KIND_NORMAL;
    wk_gguf_int_at(f, KEY("token_type"), i, &kind);
    return kind;
}

/* A string of the file as one of its own; NULL when memory is short. */
static char *copy_of(const char *text, size_t size)
{
    char *s = malloc(size + 1);
    if (s) {
        memcpy(s, text, size);
        s[size] = 0;
    }
    return s;
}

/* ---- tokens ---- */

static bool add_special(wm_tokenizer *t, const char *text, size_t size, uint32_t id, bool special)
{
    char *copy = copy_of(text, size);
    if (!copy)
        return no_memory(t);
    t->added[t->n_added++] = (wm_added){.text = copy, .size = strlen(copy), .id = id, .special = special};
    return true;
}

static bool add_token(wm_tokenizer *t, const wk_gguf *f, int64_t i)
{
    size_t size;
    const char *text = wk_gguf_string_at(f, KEY("tokens"), i, &size);
    int64_t kind = kind_at(f, i);
    if (kind == KIND_UNKNOWN)
        t->unknown = (uint32_t)i;
    if ((kind == KIND_CONTROL || kind == KIND_USER) &&
        !add_special(t, text, size, (uint32_t)i, kind == KIND_CONTROL))
        return false;
    char *copy = copy_of(text, size);
    bool fine = copy && wm_bpe_add_token(t->bpe, (uint32_t)i, copy, wm_token_bytes(t, copy, size));
    free(copy);
    return fine || no_memory(t);
}

static bool read_tokens(wm_tokenizer *t, const wk_gguf *f)
{
    wk_gguf_kind item;
    int64_t n = wk_gguf_length(f, KEY("tokens"));
    wk_gguf_kind_of(f, KEY("tokens"), &item);
    if (n < 1 || n > 1 << 24 || item != WK_GGUF_STRING)
        return wm_fail(WK_ERR_FORMAT, "%s: " KEY("tokens") ": expected a list of texts", t->path), false;
    t->added = calloc((size_t)n, sizeof *t->added);
    if (!t->added)
        return no_memory(t);
    for (int64_t i = 0; i < n; i++) {
        if (!add_token(t, f, i))
            return false;
    }
    wm_find_bytes(t);
    return true;
}

/* ---- byte-level BPE ---- */

/* "a b", in the alphabet of bytes. */
static bool add_merge(wm_tokenizer *t, char *text, size_t size)
{
    char *space = size > 1 ? memchr(text + 1, ' ', size - 1) : NULL;
    uint32_t left = WM_NO_TOKEN, right = WM_NO_TOKEN, both = WM_NO_TOKEN;
    if (space) {
        size_t n = wm_token_bytes(t, text, (size_t)(space - text));
        size_t m = wm_token_bytes(t, space + 1, (size_t)(text + size - space - 1));
        left = wm_bpe_find(t->bpe, text, n);
        right = wm_bpe_find(t->bpe, space + 1, m);
        memmove(text + n, space + 1, m);
        both = wm_bpe_find(t->bpe, text, n + m);
    }
    if (left == WM_NO_TOKEN || right == WM_NO_TOKEN || both == WM_NO_TOKEN)
        return wm_fail(WK_ERR_FORMAT, "%s: " KEY("merges") ": expected two tokens that make a third",
                       t->path),
               false;
    return wm_bpe_add_merge(t->bpe, left, right, both) || no_memory(t);
}

static bool read_merges(wm_tokenizer *t, const wk_gguf *f)
{
    int64_t n = wk_gguf_length(f, KEY("merges"));
    if (n < 0)
        return wm_fail(WK_ERR_FORMAT, "%s: " KEY("merges") " is missing", t->path), false;
    for (int64_t i = 0; i < n; i++) {
        size_t size;
        const char *text = wk_gguf_string_at(f, KEY("merges"), i, &size);
        char *copy = text ? copy_of(text, size) : NULL;
        bool fine = copy ? add_merge(t, copy, size) : no_memory(t);
        free(copy);
        if (!fine)
            return false;
    }
    return true;
}

static bool read_byte_level(wm_tokenizer *t, const wk_gguf *f)
{
    t->byte_level = true;
    if (string_is(f, KEY("pre"), "llama-bpe") || string_is(f, KEY("pre"), "llama3")) {
        t->split = WM_SPLIT_LLAMA3;
        t->ignore_merges = true;
    } else if (string_is(f, KEY("pre"), "qwen2")) {
        t->split = WM_SPLIT_QWEN2;
        t->steps[t->n_steps++] = (wm_step){.kind = WM_STEP_NFC};
    } else if (string_is(f, KEY("pre"), "gpt-2")) {
        t->split = WM_SPLIT_GPT2;
    } else {
        return wm_fail(WK_ERR_UNSUPPORTED, "%s: " KEY("pre") ": expected llama-bpe, qwen2 or gpt-2", t->path),
               false;
    }
    return read_tokens(t, f) && read_merges(t, f);
}

/* ---- SentencePiece ---- */

typedef struct {
    float score;
    uint32_t id;
} scored;

static int best_first(const void *a, const void *b)
{
    float x = ((const scored *)a)->score, y = ((const scored *)b)->score;
    return x > y ? -1 : x < y;
}

/* A piece comes from any two others that it is made of. */
static bool add_ways(wm_tokenizer *t, uint32_t id, uint32_t rank)
{
    size_t size;
    const char *text = wm_bpe_text(t->bpe, id, &size);
    for (size_t cut = 1; text && cut < size; cut++) {
        if (((unsigned char)text[cut] & 0xC0) == 0x80)
            continue;
        uint32_t left = wm_bpe_find(t->bpe, text, cut), right = wm_bpe_find(t->bpe, text + cut, size - cut);
        if (left != WM_NO_TOKEN && right != WM_NO_TOKEN && !wm_bpe_add_ranked(t->bpe, left, right, id, rank))
            return no_memory(t);
    }
    return true;
}

/* The piece with the best score is made first; equal scores have one rank, so that the place in the text decides. */
static bool read_scores(wm_tokenizer *t, const wk_gguf *f)
{
    int64_t n = wk_gguf_length(f, KEY("tokens")), used = 0;
    scored *pieces = malloc((size_t)n * sizeof *pieces);
    uint32_t rank = 0;
    bool fine = true;
    if (!pieces)
        return no_memory(t);
    for (int64_t i = 0; i < n && fine; i++) {
        double score;
        fine = wk_gguf_float_at(f, KEY("scores"), i, &score);
        if (fine && (kind_at(f, i) == KIND_NORMAL || kind_at(f, i) == KIND_USER))
            pieces[used++] = (scored){(float)score, (uint32_t)i};
    }
    if (!fine)
        wm_fail(WK_ERR_FORMAT, "%s: " KEY("scores") ": expected a number for each token", t->path);
    qsort(pieces, (size_t)used, sizeof *pieces, best_first);
    for (int64_t i = 0; i < used && fine; i++) {
        rank += i > 0 && pieces[i].score != pieces[i - 1].score;
        fine = add_ways(t, pieces[i].id, rank);
    }
    free(pieces);
    return fine;
}

static bool read_sentence_piece(wm_tokenizer *t, const wk_gguf *f)
{
    char *space = strdup(" "), *mark = strdup(WM_METASPACE), *front = strdup(WM_METASPACE);
    t->byte_fallback = t->fuse_unknown = true;
    t->strip_first = flag(f, KEY("add_space_prefix"), true);
    if (t->strip_first)
        t->steps[t->n_steps++] = (wm_step){.kind = WM_STEP_PREPEND, .to = front};
    else
        free(front);
    t->steps[t->n_steps++] = (wm_step){.kind = WM_STEP_REPLACE, .from = space, .to = mark};
    if (!space || !mark || !front)
        return no_memory(t);
    return read_tokens(t, f) && read_scores(t, f);
}

/* ---- the whole ---- */

static bool read_around(wm_tokenizer *t, const wk_gguf *f, bool pieces)
{
    int64_t id, n = wk_gguf_length(f, KEY("tokens"));
    bool begins = flag(f, KEY("add_bos_token"), pieces || t->split == WM_SPLIT_LLAMA3);
    if (begins && wk_gguf_int(f, KEY("bos_token_id"), &id))
        t->before[t->n_before++] = (uint32_t)id;
    if (flag(f, KEY("add_eos_token"), false) && wk_gguf_int(f, KEY("eos_token_id"), &id))
        t->after[t->n_after++] = (uint32_t)id;
    for (int i = 0; i < t->n_before + t->n_after; i++) {
        if ((i < t->n_before ? t->before[i] : t->after[i - t->n_before]) >= n)
            return wm_fail(WK_ERR_FORMAT, "%s: " KEY("bos_token_id") ": expected a token", t->path), false;
    }
    return true;
}

wm_tokenizer *wm_gguf_tokenizer(const char *path)
{
    wk_gguf *f = wk_gguf_open(path);
    wm_tokenizer *t = f ? calloc(1, sizeof *t) : NULL;
    bool fine = false;
    if (t) {
        *t = (wm_tokenizer){.bpe = wm_bpe_new(), .path = strdup(path), .unknown = WM_NO_TOKEN};
        bool pieces = string_is(f, KEY("model"), "llama"), bytes = string_is(f, KEY("model"), "gpt2");
        if (!t->bpe || !t->path)
            no_memory(t);
        else if (!pieces && !bytes)
            wm_fail(WK_ERR_UNSUPPORTED, "%s: " KEY("model") ": expected llama or gpt2", path);
        else
            fine = (pieces ? read_sentence_piece(t, f) : read_byte_level(t, f)) && read_around(t, f, pieces);
    }
    wk_gguf_close(f);
    if (fine)
        return t;
    if (wm_error_status() == WK_OK)
        wm_fail(WK_ERR_MEMORY, "%s: out of memory", path);
    wm_tokenizer_close(t);
    return NULL;
}
