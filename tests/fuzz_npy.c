/* fuzz_npy.c: any bytes as an npy file. An input that begins with a brace is a header, to which the front and some
 * data are put. */
#include "core/memory.h"
#include "fuzz.h"
#include "wick/io.h"

/* A view that is not packed, so that reading it runs an op. */
#define WARM "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }\n"

static void load_it(void *data, size_t size)
{
    static bool warm;
    long live = wk_alloc_live();
    wk_tensor *t = wk_npy_over("fuzz", data, size, NULL, NULL);
    if (t) {
        size_t bytes = (size_t)wk_count(t) * wk_dtype_size(wk_dtype_of(t));
        void *copy = malloc(bytes + 1);
        FUZZ_NEED(copy && bytes <= size && wk_to_host(t, copy) == WK_OK);
        free(copy);
    } else {
        FUZZ_NEED(wk_error_status() == WK_ERR_FORMAT && strstr(wk_error(), "byte "));
    }
    fuzz_accepted += t != NULL;
    wk_drop(t);
    wk_error_clear();
    FUZZ_NEED(!warm || wk_alloc_live() == live);
    warm = true; /* what a thread allocates once is not a leak */
}

/* The header with the front of version 1 and so many bytes of data behind. */
static void load_header(const uint8_t *header, size_t size, size_t amount)
{
    char *file = malloc(10 + size + amount);
    FUZZ_NEED(file);
    memcpy(file, "\x93NUMPY\1\0", 8);
    file[8] = (char)(size & 255);
    file[9] = (char)(size >> 8);
    memcpy(file + 10, header, size);
    memset(file + 10 + size, 1, amount);
    load_it(file, 10 + size + amount);
    free(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static bool warm;
    if (!warm)
        load_header((const uint8_t *)WARM, sizeof WARM - 1, 24);
    warm = true;
    if (size > 0 && size < 65536 && data[0] == '{') {
        load_header(data, size, 0); /* the amounts that seeds have */
        load_header(data, size, 4);
        load_header(data, size, 24);
        return 0;
    }
    char *file = malloc(size + 1);
    FUZZ_NEED(file);
    memcpy(file, data, size);
    load_it(file, size);
    free(file);
    return 0;
}

#ifdef FUZZ_MAIN
static const fuzz_input fuzz_seeds[] = {
    FUZZ_TEXT("\x93NUMPY\1\0\x3d\0{'descr': '|u1', 'fortran_order': False, 'shape': (4,), }   \nabcd"),
    FUZZ_TEXT("\x93NUMPY\2\0\x3d\0\0\0{'descr': '|u1', 'fortran_order': False, 'shape': (4,), }   \nabcd"),
    FUZZ_TEXT("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n  "),
    FUZZ_TEXT("{'descr': '<i8', 'fortran_order': True, 'shape': (3, 1), }\n "),
    FUZZ_TEXT("{'shape': (), \"fortran_order\": False, 'descr': '<i4'}\n   "),
    {0}};
static const char *const fuzz_words[] = {"{",
                                         "}",
                                         "(",
                                         ")",
                                         ",",
                                         ":",
                                         "'",
                                         "\"",
                                         "'descr': ",
                                         "'shape': ",
                                         "'fortran_order': ",
                                         "True",
                                         "False",
                                         "'<f2'",
                                         "'>f4'",
                                         "'|b1'",
                                         "(1,)",
                                         "(0, 5)",
                                         " ",
                                         "\n",
                                         NULL};
#endif
