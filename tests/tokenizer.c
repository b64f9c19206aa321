/* tokenizer.c: tokens of the models in tests/models against those that the reference library gave (tokens.json). */
#include <stdlib.h>
#include <time.h>
#include "error.h"
#include "file.h"
#include "io/json.h"
#include "test.h"
#include "tokenizer.h"
#include "unicode.h"

static const char *const names[] = {"llama3",   "llama2",    "mistral",   "qwen2",     "qwen3",
                                    "gguf-f16", "gguf-q4_0", "gguf-q8_0", "gguf-q4_k", "gguf-q6_k"};

/* A case of tokens.json. */
typedef struct {
    char text[8192], decoded[8192];
    size_t size;
    uint32_t ids[4096];
    size_t n;
    int64_t times, count;
    char hash[32];
} token_case;

static void read_case(wk_json *j, token_case *c)
{
    wk_json_raw key, raw;
    int64_t id;
    c->n = c->size = 0;
    c->times = 1;
    c->hash[0] = 0;
    wk_json_enter(j, '{');
    while (wk_json_more(j) && wk_json_key(j, &key)) {
        if (wk_json_equal(key, "text") && wk_json_string(j, &raw) && raw.size < sizeof c->text) {
            c->size = wk_json_unescape(raw, c->text);
        } else if (wk_json_equal(key, "decoded") && wk_json_string(j, &raw) && raw.size < sizeof c->decoded) {
            wk_json_unescape(raw, c->decoded);
        } else if (wk_json_equal(key, "hash") && wk_json_string(j, &raw) && raw.size < sizeof c->hash) {
            wk_json_unescape(raw, c->hash);
        } else if (wk_json_equal(key, "times")) {
            wk_json_int(j, &c->times);
        } else if (wk_json_equal(key, "count")) {
            wk_json_int(j, &c->count);
        } else if (wk_json_enter(j, '[')) {
            while (wk_json_more(j) && wk_json_int(j, &id) && c->n < 4096)
                c->ids[c->n++] = (uint32_t)id;
        }
    }
}

static uint64_t hash_of(const uint32_t *ids, size_t n)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < n * 4; i++)
        h = (h ^ (ids[i / 4] >> 8 * (i % 4) & 0xFF)) * 0x100000001b3u;
    return h;
}

static void check_text(wm_tokenizer *t, const char *name, const token_case *c)
{
    wm_ids got = {0};
    CHECK(wm_encode(t, c->text, c->size, true, &got));
    size_t same = 0;
    while (same < got.n && same < c->n && got.ids[same] == c->ids[same])
        same++;
    test_check(got.n == c->n && same == c->n, __FILE__, __LINE__,
               "%s: '%s': token %zu is %u, expected %u (%zu tokens, %zu)", name, c->text, same,
               same < got.n ? got.ids[same] : 0, same < c->n ? c->ids[same] : 0, got.n, c->n);
    wm_ids_free(&got);
}

/* Token by token, each part valid UTF-8 in itself. */
static void check_decoding(wm_tokenizer *t, const char *name, const token_case *c)
{
    static char text[16384];
    size_t n = 0;
    wm_decoder *d = wm_decoder_new(t);
    for (size_t i = 0; i <= c->n; i++) {
        const char *part = i < c->n ? wm_decode(d, c->ids[i]) : wm_decode_end(d);
        const char *end = part + strlen(part);
        for (const char *p = part; p < end;) {
            int length = wm_utf8_length(p, end);
            if (!test_check(length > 0, __FILE__, __LINE__, "%s: part %zu is not UTF-8", name, i))
                break;
            p += length;
        }
        memcpy(text + n, part, (size_t)(end - part) + 1);
        n += (size_t)(end - part);
    }
    wm_decoder_free(d);
    if (!memchr(c->text, 0, c->size)) /* a NUL ends the strings of this test */
        test_check(strcmp(text, c->decoded) == 0, __FILE__, __LINE__, "%s: decoded '%s', expected '%s'", name,
                   text, c->decoded);
}

/* Long texts, by number and hash of their tokens, in a time that grows with the text and not with its square. */
static void check_long(wm_tokenizer *t, const char *name, const token_case *c)
{
    char hash[32], *text = malloc(c->size * (size_t)c->times);
    wm_ids got = {0};
    for (int64_t i = 0; i < c->times; i++)
        memcpy(text + c->size * (size_t)i, c->text, c->size);
    clock_t start = clock();
    CHECK(wm_encode(t, text, c->size * (size_t)c->times, false, &got));
    double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    snprintf(hash, sizeof hash, "%016llx", (unsigned long long)hash_of(got.ids, got.n));
    test_check((int64_t)got.n == c->count && strcmp(hash, c->hash) == 0, __FILE__, __LINE__,
               "%s: %lld times '%s': %zu tokens with hash %s, expected %lld with %s", name,
               (long long)c->times, c->text, got.n, hash, (long long)c->count, c->hash);
    test_check(seconds < 5, __FILE__, __LINE__, "%s: %lld times '%s': %.1f s", name, (long long)c->times,
               c->text, seconds);
    wm_ids_free(&got);
    free(text);
}

static void check_model(const char *name)
{
    static token_case c;
    wm_map map;
    char folder[512], file[600];
    snprintf(folder, sizeof folder, "%s/%s", MODELS, name);
    snprintf(file, sizeof file, "%s/model.gguf", folder);
    wm_tokenizer *t = wm_tokenizer_open(wm_file_exists(file) ? file : folder);
    char *path = wm_path(folder, "tokens.json");
    if (CHECK(t != NULL) && CHECK(wm_map_open(&map, path))) {
        wk_json j = wk_json_start(map.data, map.size);
        wk_json_enter(&j, '[');
        while (wk_json_more(&j)) {
            read_case(&j, &c);
            if (c.hash[0]) {
                check_long(t, name, &c);
            } else {
                check_text(t, name, &c);
                check_decoding(t, name, &c);
            }
        }
        test_check(!j.reason, __FILE__, __LINE__, "%s: byte %zu: %s", path, j.at, j.reason ? j.reason : "");
        wm_map_close(&map);
    }
    test_check(wm_error_status() == WK_OK, __FILE__, __LINE__, "%s: %s", name, wm_error());
    wm_error_clear();
    wm_tokenizer_close(t);
    free(path);
}

int main(void)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        check_model(names[i]);
    return test_end();
}
