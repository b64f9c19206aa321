/* fuzz_gguf.c: any bytes as a GGUF file. */
#include "core/memory.h"
#include "fuzz.h"
#include "wick/io.h"

/* Reads every value there is, whatever it is said to be. */
static unsigned look_at_key(const wk_gguf *f, const char *key)
{
    wk_gguf_kind item, kind = wk_gguf_kind_of(f, key, &item);
    int64_t n = wk_gguf_length(f, key), v;
    double d;
    size_t size;
    unsigned sum = 0;
    FUZZ_NEED(kind < WK_GGUF_KIND_COUNT && (n >= 0) == (kind == WK_GGUF_ARRAY));
    for (int64_t i = -1; i <= (n < 0 ? 1 : n); i++) {
        const char *text = wk_gguf_string_at(f, key, i, &size);
        for (size_t k = 0; text && k < size; k++)
            sum += (unsigned char)text[k];
        sum += (unsigned)wk_gguf_int_at(f, key, i, &v) + (unsigned)wk_gguf_float_at(f, key, i, &d);
    }
    return sum + (unsigned)wk_gguf_int(f, key, &v) + (wk_gguf_string(f, key, &size) != NULL);
}

static unsigned look_at_tensor(const wk_gguf *f, int64_t i)
{
    wk_tensor *t = wk_gguf_tensor(f, i);
    unsigned sum = 0;
    FUZZ_NEED(wk_gguf_find(f, wk_gguf_name(f, i)) == i && wk_gguf_type(f, i));
    if (!t) {
        FUZZ_NEED(wk_error_status() == WK_ERR_UNSUPPORTED);
        wk_error_clear();
        return 0;
    }
    const unsigned char *bytes = wk_data(t);
    size_t n = (size_t)wk_count(t) * wk_dtype_size(wk_dtype_of(t));
    for (size_t k = 0; k < n; k++)
        sum += bytes[k];
    wk_drop(t);
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    long live = wk_alloc_live();
    char *copy = malloc(size + 1); /* of exactly that size for the sanitizer */
    unsigned sum = 0;
    FUZZ_NEED(copy);
    memcpy(copy, data, size);
    wk_gguf *f = wk_gguf_over("fuzz", copy, size, NULL, NULL);
    if (!f)
        FUZZ_NEED(wk_error_status() == WK_ERR_FORMAT && strstr(wk_error(), "byte "));
    wk_error_clear();
    for (int64_t i = 0; i < wk_gguf_keys(f); i++)
        sum += look_at_key(f, wk_gguf_key(f, i));
    for (int64_t i = 0; i < wk_gguf_count(f); i++)
        sum += look_at_tensor(f, i);
    fuzz_accepted += wk_gguf_count(f) > 0;
    wk_gguf_close(f);
    FUZZ_NEED(sum < UINT32_MAX && wk_alloc_live() == live);
    free(copy);
    return 0;
}

#ifdef FUZZ_MAIN
#define U32(a) a "\0\0\0"
#define U64(a) a "\0\0\0\0\0\0\0"
#define ZEROS "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
#define BEGIN(version, tensors, keys) "GGUF" U32(version) U64(tensors) U64(keys)
static const fuzz_input fuzz_seeds[] = {
    FUZZ_TEXT(BEGIN("\3", "\0", "\0")),
    FUZZ_TEXT(BEGIN("\2", "\0", "\3") U64("\1") "a" U32("\4") U32("\7") U64("\1") "b" U32("\x8")
                  U64("\2") "hi" U64("\1") "c" U32("\x9") U32("\x8") U64("\2") U64("\1") "x" U64("\0")),
    FUZZ_TEXT(BEGIN("\3", "\0", "\2") U64("\1") "a" U32("\x9") U32("\7")
                  U64("\2") "\0\1" U64("\1") "b" U32("\6") "abcd"),
    /* Its data begin at byte 96. */
    FUZZ_TEXT(BEGIN("\3", "\1", "\0") U64("\1") "t" U32("\1") U64("\x20") U32("\2") U64("\0")
                  ZEROS ZEROS ZEROS),
    FUZZ_TEXT(BEGIN("\3", "\1", "\0") U64("\1") "t" U32("\2") U64("\2") U64("\3") U32("\0") U64("\0")
                  ZEROS ZEROS ZEROS),
    {0}};
static const char *const fuzz_words[] = {"GGUF", "general.alignment", "\x20", "\xff\xff\xff\xff", NULL};
#endif
