/* fuzz_tokenizer.c: any bytes as a tokenizer.json; where one is taken it encodes and decodes a text. */
#include <sys/stat.h>
#include "error.h"
#include "fuzz.h"
#include "tokenizer.h"

static char folder[64];

static void remove_folder(void)
{
    char path[96];
    snprintf(path, sizeof path, "%s/tokenizer.json", folder);
    remove(path);
    rmdir(folder);
}

static bool write_file(const uint8_t *data, size_t size)
{
    char path[96];
    if (!folder[0]) {
        bool memory = access("/dev/shm", W_OK) == 0; /* a disk would be the slowest part */
        snprintf(folder, sizeof folder, "%s/fuzz_tokenizer.XXXXXX", memory ? "/dev/shm" : "/tmp");
        if (!mkdtemp(folder))
            return false;
        atexit(remove_folder);
    }
    snprintf(path, sizeof path, "%s/tokenizer.json", folder);
    FILE *f = fopen(path, "wb");
    bool fine = f && fwrite(data, 1, size, f) == size;
    return f && fclose(f) == 0 && fine;
}

/* What is made of tokens is text again, whatever the tokens. */
static void use(wm_tokenizer *t)
{
    static const char text[] = "  ab a\xCC\x81 \xE2\x96\x81\xF0\x9F\x99\x82 12345\n\xFF<s>x";
    wm_ids ids = {0};
    wm_decoder *d = wm_decoder_new(t);
    FUZZ_NEED(wm_encode(t, text, sizeof text, true, &ids));
    for (size_t i = 0; i < ids.n; i++)
        FUZZ_NEED(wm_decode(d, ids.ids[i]));
    FUZZ_NEED(wm_decode_end(d));
    wm_decoder_free(d);
    wm_ids_free(&ids);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    FUZZ_NEED(write_file(data, size));
    wm_tokenizer *t = wm_tokenizer_open(folder);
    FUZZ_NEED(t ? wm_error_status() == WK_OK : strstr(wm_error(), "tokenizer.json") != NULL);
    if (t)
        use(t);
    fuzz_accepted += t != NULL;
    wm_tokenizer_close(t);
    wm_error_clear();
    return 0;
}

#ifdef FUZZ_MAIN
#define LLAMA3 \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|\\\\p{N}{1,3}| " \
    "?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+"
static const fuzz_input fuzz_seeds[] = {
    FUZZ_TEXT("{\"added_tokens\":[{\"id\":3,\"content\":\"<s>\",\"special\":true,\"normalized\":false,"
              "\"lstrip\":true,"
              "\"rstrip\":true}],\"normalizer\":{\"type\":\"NFC\"},\"pre_tokenizer\":{\"type\":\"Sequence\","
              "\"pretokenizers\":["
              "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"" LLAMA3
              "\"},\"behavior\":\"Isolated\",\"invert\":false},"
              "{\"type\":\"ByteLevel\",\"add_prefix_space\":true,\"use_regex\":false}]},\"post_processor\":{"
              "\"type\":"
              "\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":\"<s>\"}},{\"Sequence\":{\"id\":"
              "\"A\"}}],"
              "\"special_tokens\":{\"<s>\":{\"ids\":[3]}}},\"decoder\":{\"type\":\"ByteLevel\"},\"model\":{"
              "\"type\":\"BPE\","
              "\"ignore_merges\":true,\"vocab\":{\"a\":0,\"b\":1,\"ab\":2},\"merges\":[\"a b\"]}}"),
    FUZZ_TEXT("{\"added_tokens\":[{\"id\":1,\"content\":\"<s>\",\"normalized\":true}],\"normalizer\":{"
              "\"type\":\"Sequence\","
              "\"normalizers\":[{\"type\":\"Prepend\",\"prepend\":\"_\"},{\"type\":\"Replace\",\"pattern\":{"
              "\"String\":\" \"},"
              "\"content\":\"_\"}]},\"decoder\":{\"type\":\"Strip\",\"content\":\" "
              "\",\"start\":1},\"model\":{\"unk_token\":"
              "\"<unk>\",\"fuse_unk\":true,\"byte_fallback\":true,\"vocab\":{\"<unk>\":0,\"<s>\":1,\"_\":2,"
              "\"a\":3,\"_a\":4,"
              "\"<0xF0>\":5},\"merges\":[[\"_\",\"a\"]]}}"),
    FUZZ_TEXT("{\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"\xE2\x96\x81\",\"prepend_"
              "scheme\":\"first\","
              "\"split\":true},\"model\":{\"vocab\":{\"\xE2\x96\x81\":0},\"merges\":[]}}"),
    {0}};
static const char *const fuzz_words[] = {"{",
                                         "}",
                                         "[",
                                         "]",
                                         ",",
                                         "\"\"",
                                         "null",
                                         "true",
                                         "false",
                                         "-1",
                                         "2097151",
                                         "\"type\":",
                                         "\"NFC\"",
                                         "\"Sequence\"",
                                         "\"BPE\"",
                                         "\"ByteLevel\"",
                                         "\"Metaspace\"",
                                         "\\u0000",
                                         "\\uD83D\\uDE42",
                                         "\"content\":",
                                         "\"lstrip\":true,",
                                         "\"id\":",
                                         NULL};
#endif
