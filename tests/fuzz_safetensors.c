/* fuzz_safetensors.c: any bytes as a safetensors file. An input that begins with a brace is a header, to which a
 * right length and some data are put, so that mutants get past the first check. */
#include "core/memory.h"
#include "fuzz.h"
#include "wick/io.h"

static void look_at(wk_safetensors *f)
{
    unsigned sum = 0;
    for (int64_t i = 0; i < wk_safetensors_count(f); i++) {
        wk_tensor *t = wk_safetensors_tensor(f, i);
        FUZZ_NEED(t && wk_safetensors_find(f, wk_safetensors_name(f, i)) == i);
        FUZZ_NEED(wk_is_packed(t) && wk_rank(t) == wk_safetensors_rank(f, i));
        const unsigned char *bytes = wk_data(t);
        size_t n = (size_t)wk_count(t) * wk_dtype_size(wk_dtype_of(t));
        for (size_t k = 0; k < n; k++)
            sum += bytes[k];
        wk_drop(t);
    }
    FUZZ_NEED(sum < UINT32_MAX);
}

static void open_it(void *data, size_t size)
{
    long live = wk_alloc_live();
    wk_safetensors *f = wk_safetensors_over("fuzz", data, size, NULL, NULL);
    if (f)
        look_at(f);
    else
        FUZZ_NEED(wk_error_status() == WK_ERR_FORMAT && strstr(wk_error(), "byte "));
    fuzz_accepted += wk_safetensors_count(f) > 0;
    wk_safetensors_close(f);
    wk_error_clear();
    FUZZ_NEED(wk_alloc_live() == live);
}

/* The header with its length in front and so many bytes of data behind. */
static void open_header(const uint8_t *header, size_t size, size_t amount)
{
    uint64_t length = size;
    char *file = malloc(8 + size + amount);
    FUZZ_NEED(file);
    memcpy(file, &length, 8);
    memcpy(file + 8, header, size);
    memset(file + 8 + size, 1, amount);
    open_it(file, 8 + size + amount);
    free(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 0 && data[0] == '{') {
        open_header(data, size, 0); /* the amounts that seeds have */
        open_header(data, size, 4);
        open_header(data, size, 24);
        open_header(data, size, 40);
        return 0;
    }
    char *file = malloc(size + 1);
    FUZZ_NEED(file);
    memcpy(file, data, size);
    open_it(file, size);
    free(file);
    return 0;
}

#ifdef FUZZ_MAIN
static const fuzz_input fuzz_seeds[] = {
    FUZZ_TEXT("\2\0\0\0\0\0\0\0{}"),
    FUZZ_TEXT("\x36\0\0\0\0\0\0\0{\"x\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}abcd"),
    FUZZ_TEXT("{\"x\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}} "),
    FUZZ_TEXT("{\"x\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]}}"),
    FUZZ_TEXT(
        "{\"__metadata__\":{\"a\":\"b\"},\"x\":{\"dtype\":\"I64\",\"shape\":[3],\"data_offsets\":[0,24]},"
        "\"y\":{\"dtype\":\"BF16\",\"shape\":[2,2,2],\"data_offsets\":[24,40]}}"),
    FUZZ_TEXT("{\"e\":{\"dtype\":\"U8\",\"shape\":[0,9],\"data_offsets\":[0,0]}}  "),
    {0}};
static const char *const fuzz_words[] = {"{",
                                         "}",
                                         "[",
                                         "]",
                                         ",",
                                         ":",
                                         "\"",
                                         "\"x\":",
                                         "\"y\":",
                                         "\"dtype\":",
                                         "\"shape\":",
                                         "\"data_offsets\":",
                                         "\"F32\"",
                                         "\"BOOL\"",
                                         "\"F8_E4M3\"",
                                         "\"__metadata__\":{}",
                                         "[0,24]",
                                         "[24,40]",
                                         "[]",
                                         " ",
                                         "{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}",
                                         NULL};
#endif
