/* fuzz_wordpiece.c: any bytes as a text for BERT's tokenizer, and as its tokenizer.json. */
#include <sys/stat.h>
#include "fuzz.h"
#include "wordpiece.h"

#define VOCABULARY \
    "{\"model\":{\"type\":\"WordPiece\",\"continuing_subword_prefix\":\"##\",\"vocab\":{\"[PAD]\":0,\"[UNK]" \
    "\":1,\"[CLS]\":2," \
    "\"[SEP]\":3,\"a\":4,\"##b\":5,\"\\u00e9\":6,\"the\":7}},\"normalizer\":{\"type\":\"BertNormalizer\"}," \
    "\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"},\"added_tokens\":[{\"id\":3,\"content\":\"[SEP]\"}]}"

static char folder[64], path[128];

static void remove_folder(void) { rmdir(folder); }

/* A tokenizer with that text as its file; NULL when it is refused. */
static wm_wordpiece *open_with(const void *json, size_t size)
{
    if (!folder[0]) {
        snprintf(folder, sizeof folder, "/tmp/fuzz_wordpiece.%ld", (long)getpid());
        snprintf(path, sizeof path, "%s/tokenizer.json", folder);
        FUZZ_NEED(mkdir(folder, 0700) == 0 && atexit(remove_folder) == 0);
    }
    FILE *f = fopen(path, "wb");
    FUZZ_NEED(f && fwrite(json, 1, size, f) == size);
    fclose(f);
    wm_wordpiece *t = wm_wordpiece_open(folder);
    unlink(path);
    FUZZ_NEED(t || strstr(wm_error(), folder));
    wm_error_clear();
    return t;
}

static void encode(const wm_wordpiece *t, const uint8_t *data, size_t size)
{
    wm_ids ids = {0};
    for (size_t max = 0; max < 20; max += 7) {
        FUZZ_NEED(wm_wordpiece_encode(t, (const char *)data, size, max, &ids));
        FUZZ_NEED(ids.n >= 2 && (!max || ids.n <= max));
        for (size_t i = 0; i < ids.n; i++)
            FUZZ_NEED(ids.ids[i] < wm_wordpiece_size(t));
    }
    wm_ids_free(&ids);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static wm_wordpiece *t;
    if (!t)
        t = open_with(VOCABULARY, sizeof VOCABULARY - 1);
    FUZZ_NEED(t);
    encode(t, data, size);
    if (size > 0 && data[0] == '{') {
        wm_wordpiece *other = open_with(data, size);
        if (other)
            encode(other, data, size);
        fuzz_accepted += other != NULL;
        wm_wordpiece_close(other);
    }
    return 0;
}

#ifdef FUZZ_MAIN
static const fuzz_input fuzz_seeds[] = {
    FUZZ_TEXT(VOCABULARY), FUZZ_TEXT("a\xc3\xa9 the [SEP] abb \xe4\xbd\xa0\xea\xb0\x80"), {0}};
static const char *const fuzz_words[] = {
    "[SEP]", "\"vocab\":",         "{", "}", "\"id\":", "\xef\xbf\xbd", "\xcc\x81", "\xc4\xb0", "null",
    "true",  "\"strip_accents\":", NULL};
#endif
