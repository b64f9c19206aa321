/* gguf.c: the reader of GGUF files: values of every kind, tensors, and what is wrong with a file. */
#include "core/memory.h"
#include "test.h"
#include "wick/wick.h"

/* ---- a file being written ---- */

typedef struct {
    char data[4096];
    size_t n;
} file;

static void put(file *f, const void *bytes, size_t n)
{
    memcpy(f->data + f->n, bytes, n);
    f->n += n;
}
static void put_u32(file *f, uint32_t v) { put(f, &v, sizeof v); }
static void put_u64(file *f, uint64_t v) { put(f, &v, sizeof v); }
static void put_text(file *f, const char *text)
{
    put_u64(f, strlen(text));
    put(f, text, strlen(text));
}
static void put_key(file *f, const char *key, wk_gguf_kind kind)
{
    put_text(f, key);
    put_u32(f, (uint32_t)kind);
}
static void begin(file *f, uint32_t version, uint64_t tensors, uint64_t keys)
{
    f->n = 0;
    put(f, "GGUF", 4);
    put_u32(f, version);
    put_u64(f, tensors);
    put_u64(f, keys);
}
static void put_tensor(file *f, const char *name, uint32_t type, uint64_t columns, uint64_t rows, uint64_t at)
{
    put_text(f, name);
    put_u32(f, 2);
    put_u64(f, columns);
    put_u64(f, rows);
    put_u32(f, type);
    put_u64(f, at);
}
static void put_data(file *f, size_t bytes)
{
    while (f->n % 32)
        f->data[f->n++] = 0;
    for (size_t i = 0; i < bytes; i++)
        f->data[f->n++] = (char)i;
}

static wk_gguf *opened(file *f) { return wk_gguf_over("test", f->data, f->n, NULL, NULL); }

/* ---- what is right ---- */

static void check_values(void)
{
    file f;
    int64_t v = 0;
    double d = 0;
    size_t size = 0;
    begin(&f, 3, 0, 6);
    put_key(&f, "i8", WK_GGUF_I8), put(&f, "\xfe", 1);
    put_key(&f, "u16", WK_GGUF_U16), put(&f, "\xff\xff", 2);
    put_key(&f, "f64", WK_GGUF_F64), put(&f, &(double){0.25}, 8);
    put_key(&f, "yes", WK_GGUF_BOOL), put(&f, "\1", 1);
    put_key(&f, "name", WK_GGUF_STRING), put_text(&f, "wick");
    put_key(&f, "list", WK_GGUF_ARRAY), put_u32(&f, WK_GGUF_STRING), put_u64(&f, 3);
    put_text(&f, "a"), put_text(&f, ""), put_text(&f, "ccc");
    wk_gguf *g = opened(&f);
    if (!CHECK(g != NULL))
        return;
    CHECK_EQ(wk_gguf_version(g), 3);
    CHECK_EQ(wk_gguf_keys(g), 6);
    CHECK(strcmp(wk_gguf_key(g, 1), "u16") == 0 && wk_gguf_key(g, 6) == NULL);
    CHECK(wk_gguf_int(g, "i8", &v) && v == -2);
    CHECK(wk_gguf_int(g, "u16", &v) && v == 65535);
    CHECK(wk_gguf_int(g, "yes", &v) && v == 1);
    CHECK(wk_gguf_float(g, "f64", &d) && d == 0.25 && !wk_gguf_int(g, "f64", &v));
    CHECK(wk_gguf_float(g, "i8", &d) && d == -2);
    const char *text = wk_gguf_string(g, "name", &size);
    CHECK(text && size == 4 && memcmp(text, "wick", 4) == 0 && !wk_gguf_string(g, "i8", &size));
    CHECK(!wk_gguf_int(g, "none", &v) && wk_gguf_kind_of(g, "none", NULL) == WK_GGUF_KIND_COUNT);
    wk_gguf_kind item;
    CHECK(wk_gguf_kind_of(g, "list", &item) == WK_GGUF_ARRAY && item == WK_GGUF_STRING);
    CHECK_EQ(wk_gguf_length(g, "list"), 3);
    text = wk_gguf_string_at(g, "list", 2, &size);
    CHECK(text && size == 3 && memcmp(text, "ccc", 3) == 0 && !wk_gguf_string_at(g, "list", 3, &size));
    CHECK(!wk_gguf_string(g, "list", &size) && wk_gguf_length(g, "name") == -1);
    wk_gguf_close(g);
    CHECK_FINE();
}

static void make_tensors(file *f)
{
    begin(f, 2, 3, 1);
    put_key(f, "general.alignment", WK_GGUF_U32), put_u32(f, 64);
    put_tensor(f, "plain", 0, 3, 2, 0);
    put_tensor(f, "blocks", 2, 64, 2, 64);
    put_tensor(f, "unknown", 10, 256, 1, 192);
    while (f->n % 64)
        f->data[f->n++] = 0;
    put_data(f, 192 + 84);
}

static void check_tensors(void)
{
    file f;
    make_tensors(&f);
    wk_gguf *g = opened(&f);
    if (!CHECK(g != NULL))
        return;
    CHECK_EQ(wk_gguf_count(g), 3);
    CHECK_EQ(wk_gguf_find(g, "blocks"), 1);
    CHECK_EQ(wk_gguf_find(g, "none"), -1);
    CHECK(wk_gguf_dtype(g, 0) == WK_F32 && wk_gguf_format(g, 0) == WK_QFORMAT_COUNT);
    CHECK(wk_gguf_dtype(g, 1) == WK_DTYPE_COUNT && wk_gguf_format(g, 1) == WK_Q4_0);
    CHECK(strcmp(wk_gguf_type(g, 2), "Q2_K") == 0 && wk_gguf_type(g, 3) == NULL);
    CHECK(wk_gguf_rank(g, 0) == 2 && wk_gguf_shape(g, 0)[0] == 2 && wk_gguf_shape(g, 0)[1] == 3);
    wk_tensor *t = wk_gguf_tensor(g, 0), *q = wk_gguf_tensor(g, 1);
    CHECK(wk_gguf_tensor(g, 2) == NULL && wk_error_status() == WK_ERR_UNSUPPORTED &&
          strstr(wk_error(), "Q2_K"));
    wk_error_clear();
    CHECK(wk_gguf_tensor(g, 3) == NULL && wk_error_status() == WK_ERR_ARGUMENT);
    wk_error_clear();
    wk_gguf_close(g); /* the tensors stay */
    if (CHECK(t && q)) {
        CHECK(wk_dtype_of(q) == WK_U8 && wk_dim(q, 0) == 2 && wk_dim(q, 1) == 36);
        CHECK(((unsigned char *)wk_data(q))[0] == 64);
    }
    wk_drop(t);
    wk_drop(q);
    CHECK_FINE();
}

/* ---- what is wrong ---- */

static void expect_error(file *f, const char *word)
{
    long live = wk_alloc_live();
    wk_gguf *g = opened(f);
    test_check(!g && wk_error_status() == WK_ERR_FORMAT && strstr(wk_error(), word) &&
                   strstr(wk_error(), "byte "),
               __FILE__, __LINE__, "expected an error with '%s', got '%s'", word, wk_error());
    wk_gguf_close(g);
    wk_error_clear();
    CHECK_EQ(wk_alloc_live(), live);
}

static void check_errors(void)
{
    file f;
    begin(&f, 3, 0, 0), f.data[0] = 'g', expect_error(&f, "begins with GGUF");
    begin(&f, 1, 0, 0), expect_error(&f, "version 2 or 3, got 1");
    begin(&f, 3, 0, UINT64_MAX), expect_error(&f, "keys");
    begin(&f, 3, UINT64_MAX / 8, 0), expect_error(&f, "tensors");
    begin(&f, 3, 0, 1), put_key(&f, "k", (wk_gguf_kind)13), put_u64(&f, 0), expect_error(&f, "'k'");
    begin(&f, 3, 0, 1), put_key(&f, "k", WK_GGUF_BOOL), put(&f, "\2\0\0\0", 4), expect_error(&f, "bool");
    begin(&f, 3, 0, 1), put_key(&f, "k", WK_GGUF_STRING), put_u64(&f, UINT64_MAX),
        expect_error(&f, "truncated");
    begin(&f, 3, 0, 1), put_key(&f, "k", WK_GGUF_ARRAY), put_u32(&f, WK_GGUF_ARRAY), put_u64(&f, 1);
    expect_error(&f, "array of numbers");
    begin(&f, 3, 0, 1), put_key(&f, "k", WK_GGUF_ARRAY), put_u32(&f, WK_GGUF_F64),
        put_u64(&f, UINT64_MAX / 8 + 2);
    expect_error(&f, "array");
    begin(&f, 3, 1, 0), put_tensor(&f, "t", 99, 1, 1, 0), put_data(&f, 64), expect_error(&f, "type");
    begin(&f, 3, 1, 0), put_tensor(&f, "t", 2, 33, 1, 0), put_data(&f, 64),
        expect_error(&f, "multiple of 32");
    begin(&f, 3, 1, 0), put_tensor(&f, "t", 0, 1, 1, 16), put_data(&f, 64), expect_error(&f, "alignment");
    begin(&f, 3, 1, 0), put_tensor(&f, "t", 0, 17, 1, 0), put_data(&f, 64), expect_error(&f, "truncated");
    begin(&f, 3, 1, 0), put_tensor(&f, "t", 0, 1ull << 40, 1ull << 40, 0), put_data(&f, 64),
        expect_error(&f, "counted");
    begin(&f, 3, 2, 0), put_tensor(&f, "t", 0, 1, 1, 0), put_tensor(&f, "t", 0, 1, 1, 32), put_data(&f, 64);
    expect_error(&f, "twice");
}

/* Cut off anywhere, it is refused. */
static void check_truncated(void)
{
    file f;
    make_tensors(&f);
    size_t whole = f.n;
    for (f.n = 0; f.n < whole; f.n++) {
        wk_gguf *g = opened(&f);
        test_check(!g && wk_error_status() == WK_ERR_FORMAT, __FILE__, __LINE__, "%zu bytes of %zu are taken",
                   f.n, whole);
        wk_gguf_close(g);
        wk_error_clear();
    }
    CHECK(wk_gguf_open("/no/such/file.gguf") == NULL && wk_error_status() == WK_ERR_IO);
    wk_error_clear();
}

int main(void)
{
    check_values();
    check_tensors();
    check_errors();
    check_truncated();
    return test_end();
}
