/* io.c: tests of files and DLPack: JSON, safetensors, npy, good ones and every kind of bad one. */
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/memory.h"
#include "folder.h"
#include "io/json.h"
#include "test.h"
#include "wick/dlpack.h"
#include "wick/wick.h"

#define SHAPE(...) \
    (int64_t[]) { __VA_ARGS__ }

static const char *folder;

/* A path in the test's folder; valid until the next but one call. */
static const char *in_folder(const char *name)
{
    static char paths[2][PATH_MAX + 64];
    static int turn;
    turn = !turn;
    snprintf(paths[turn], sizeof paths[turn], "%s/%s", folder, name);
    return paths[turn];
}

static void write_file(const char *path, const void *data, size_t bytes)
{
    FILE *f = fopen(path, "wb");
    CHECK(f && fwrite(data, 1, bytes, f) == bytes);
    if (f)
        fclose(f);
}

static size_t read_file(const char *path, char *data, size_t room)
{
    FILE *f = fopen(path, "rb");
    size_t n = f ? fread(data, 1, room, f) : 0;
    if (f)
        fclose(f);
    return n;
}

/* ---- JSON ---- */

/* Reads any value and says where it went wrong: -1 for nowhere. */
static long json_error(const char *text)
{
    wk_json j = wk_json_start(text, strlen(text));
    wk_json_skip(&j);
    wk_json_end(&j);
    return j.reason ? (long)j.at : -1;
}

static void test_json_grammar(void)
{
    static const char *const good[] = {"{}",
                                       "[]",
                                       " [1, -2.5e3, 0, -0, 1E+9] ",
                                       "\"\"",
                                       "true",
                                       "null",
                                       "[[[]], {}]",
                                       "{\"a\": {\"b\": [false]}, \"c\": \"\\u00e9\\ud83d\\ude00\\n\"}",
                                       "\"\xc3\xa9\xf0\x9f\x98\x80\""};
    static const struct {
        const char *text;
        long at;
    } bad[] = {{"", 0},
               {"{", 1},
               {"[1,]", 3},
               {"[1 2]", 3},
               {"{\"a\"}", 4},
               {"{\"a\":1,}", 7},
               {"{a:1}", 1},
               {"01", 0},
               {"1.", 0},
               {"-", 0},
               {"1e", 0},
               {"+1", 0},
               {"tru", 0},
               {"\"", 1},
               {"\"\\x\"", 1},
               {"\"\\u12\"", 1},
               {"\"\\ud800\"", 1},
               {"\"\\udc00\"", 1},
               {"\"\n\"", 1},
               {"\"\xff\"", 1},
               {"\"\xc0\x80\"", 1},
               {"\"\xed\xa0\x80\"", 1},
               {"[] []", 3},
               {"{\"a\":1]", 6},
               {"[1}", 2},
               {"nan", 0}};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        CHECK(json_error(good[i]) == -1);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        test_check(json_error(bad[i].text) == bad[i].at, __FILE__, __LINE__, "%s", bad[i].text);
    char deep[2 * WK_JSON_DEPTH + 3] = {0};
    memset(deep, '[', WK_JSON_DEPTH);
    memset(deep + WK_JSON_DEPTH, ']', WK_JSON_DEPTH);
    CHECK(json_error(deep) == -1);
    memset(deep, '[', WK_JSON_DEPTH + 1);
    CHECK(json_error(deep) == WK_JSON_DEPTH);
}

static void test_json_values(void)
{
    const char *text =
        "{\"k\": [9223372036854775807, -9223372036854775808, 2.5, \"a\\\"\\u20ac\\ud83d\\ude00\"]}";
    wk_json j = wk_json_start(text, strlen(text));
    wk_json_raw key = {0}, string = {0};
    int64_t a = 0, b = 0;
    double c = 0;
    char out[64];
    CHECK(wk_json_enter(&j, '{') && wk_json_more(&j) && wk_json_key(&j, &key) && wk_json_equal(key, "k"));
    CHECK(wk_json_enter(&j, '[') && wk_json_more(&j) && wk_json_int(&j, &a) && a == INT64_MAX);
    CHECK(wk_json_more(&j) && wk_json_int(&j, &b) && b == INT64_MIN);
    CHECK(wk_json_more(&j) && wk_json_number(&j, &c) && c == 2.5);
    CHECK(wk_json_more(&j) && wk_json_string(&j, &string));
    CHECK(wk_json_unescape(string, out) == 9 && strcmp(out, "a\"\xe2\x82\xac\xf0\x9f\x98\x80") == 0);
    CHECK(!wk_json_more(&j) && !wk_json_more(&j) && wk_json_end(&j));
    static const char *const wrong[] = {"9223372036854775808", "-9223372036854775809", "1.0", "1e2", "\"1\""};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        wk_json w = wk_json_start(wrong[i], strlen(wrong[i]));
        CHECK(!wk_json_int(&w, &a) && w.at == 0);
    }
    wk_text t = {0};
    wk_text_string(&t, "a\"b\\c\n\t\x01z\xc3\xa9");
    CHECK_STR(t.data, "\"a\\\"b\\\\c\\n\\t\\u0001z\xc3\xa9\"");
    wk_text_free(&t);
}

/* ---- safetensors ---- */

static wk_tensor *counted(wk_dtype dtype, int rank, const int64_t *shape)
{
    char data[4096];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (char)(i * 7 % 61);
    return wk_from_host(wk_device_open("cpu"), dtype, rank, shape, data);
}

static bool same_bytes(const wk_tensor *a, const wk_tensor *b)
{
    char x[4096] = {0}, y[4096] = {0};
    return a && b && wk_dtype_of(a) == wk_dtype_of(b) && wk_rank(a) == wk_rank(b) &&
           memcmp(wk_shape(a), wk_shape(b), (size_t)wk_rank(a) * 8) == 0 && wk_to_host(a, x) == WK_OK &&
           wk_to_host(b, y) == WK_OK && memcmp(x, y, sizeof x) == 0;
}

static void test_round_trip(void)
{
    wk_tensor *t[WK_DTYPE_COUNT + 3];
    const char *names[WK_DTYPE_COUNT + 3];
    const char *path = in_folder("all.safetensors");
    wk_scope_begin();
    for (int d = 0; d < WK_DTYPE_COUNT; d++) {
        t[d] = counted((wk_dtype)d, 2, SHAPE(3, 5));
        names[d] = wk_dtype_name((wk_dtype)d);
    }
    int n = WK_DTYPE_COUNT;
    t[n] = wk_transpose(counted(WK_F32, 2, SHAPE(4, 3)), 0, 1);
    names[n++] = "a \"view\"\n";
    t[n] = counted(WK_U8, 2, SHAPE(0, 7));
    names[n++] = "";
    t[n] = counted(WK_F64, 0, NULL);
    names[n++] = "\xe2\x82\xac";
    CHECK(wk_safetensors_save(path, n, names, t) == WK_OK);
    wk_safetensors *f = wk_safetensors_open(path);
    CHECK(f && wk_safetensors_count(f) == n);
    wk_tensor *got[WK_DTYPE_COUNT + 3];
    for (int i = 0; i < n; i++) {
        CHECK_STR(wk_safetensors_name(f, i), names[i]);
        CHECK(wk_safetensors_find(f, names[i]) == i);
        CHECK(wk_safetensors_dtype(f, i) == wk_dtype_of(t[i]));
        CHECK(wk_safetensors_rank(f, i) == wk_rank(t[i]));
        got[i] = wk_safetensors_get(f, names[i]);
        CHECK((uintptr_t)wk_data(got[i]) % wk_dtype_size(wk_dtype_of(t[i])) == 0);
    }
    CHECK(wk_safetensors_find(f, "none") == -1 && !wk_safetensors_name(f, n) && !wk_safetensors_shape(f, -1));
    CHECK(wk_safetensors_rank(f, n) == -1 && wk_safetensors_dtype(f, n) == WK_DTYPE_COUNT);
    CHECK_ERROR(wk_safetensors_get(f, "none"), WK_ERR_ARGUMENT, "none");
    CHECK_ERROR(wk_safetensors_tensor(f, n), WK_ERR_ARGUMENT, "safetensors_tensor");
    wk_safetensors_close(f);
    unlink(path); /* the tensors hold what they need */
    for (int i = 0; i < n; i++)
        CHECK(same_bytes(got[i], t[i]));
    wk_scope_end();
}

/* The file of a header and so many bytes of data. */
static size_t compose(char *out, const char *header, size_t data)
{
    uint64_t length = strlen(header);
    memcpy(out, &length, 8);
    memcpy(out + 8, header, length);
    memset(out + 8 + length, 1, data);
    return 8 + length + data;
}

static void test_malformed(void)
{
#define X(fields) "{\"x\":{" fields "}}"
#define F32 "\"dtype\":\"F32\","
    static const struct {
        const char *header;
        size_t data;
        const char *word;
    } bad[] = {
        {"", 0, "byte 8: "},
        {"[]", 0, "object"},
        {"{\"x\":1}", 0, "byte 13: "},
        {"{} x", 0, "behind"},
        {"{\"x\":", 0, "object"},
        {X("\"shape\":[],\"data_offsets\":[0,4]"), 4, "dtype is missing"},
        {X(F32 "\"data_offsets\":[0,4]"), 4, "shape is missing"},
        {X(F32 "\"shape\":[1]"), 4, "data_offsets is missing"},
        {X("\"dtype\":\"I8\",\"shape\":[4],\"data_offsets\":[0,4]"), 4, "got I8"},
        {X("\"dtype\":\"F8_E4M3\",\"shape\":[4],\"data_offsets\":[0,4]"), 4, "got F8_E4M3"},
        {X("\"dtype\":\"U64\",\"shape\":[1],\"data_offsets\":[0,8]"), 8, "got U64"},
        {X("\"dtype\":7,\"shape\":[4],\"data_offsets\":[0,4]"), 4, "expected a string"},
        {X(F32 "\"shape\":[1],\"data_offsets\":[0,4],\"more\":1"), 4, "only"},
        {X(F32 F32 "\"shape\":[1],\"data_offsets\":[0,4]"), 4, "twice"},
        {X(F32 "\"shape\":[2],\"data_offsets\":[0,4]"), 4, "expected 8 bytes"},
        {X(F32 "\"shape\":[1],\"data_offsets\":[0,8]"), 8, "expected 4 bytes"},
        {X(F32 "\"shape\":[-1],\"data_offsets\":[0,4]"), 4, "0 or more"},
        {X(F32 "\"shape\":[1.0],\"data_offsets\":[0,4]"), 4, "integer"},
        {X(F32 "\"shape\":[1,1,1,1,1,1,1,1,1],\"data_offsets\":[0,4]"), 4, "at most 8"},
        {X(F32 "\"shape\":[4611686018427387904,4],\"data_offsets\":[0,4]"), 4, "counted"},
        {X(F32 "\"shape\":[99999999999999999999],\"data_offsets\":[0,4]"), 4, "64 bits"},
        {X(F32 "\"shape\":[1],\"data_offsets\":[0]"), 4, "two"},
        {X(F32 "\"shape\":[1],\"data_offsets\":[0,4,8]"), 4, "two"},
        {X(F32 "\"shape\":[1],\"data_offsets\":[4,0]"), 4, "no less"},
        {X(F32 "\"shape\":[1],\"data_offsets\":[-4,0]"), 4, "no less"},
        {X(F32 "\"shape\":[1],\"data_offsets\":[0,4]"), 3, "truncated"},
        {X(F32 "\"shape\":[1],\"data_offsets\":[0,4]"), 5, "behind the last tensor"},
        {X(F32 "\"shape\":[1],\"data_offsets\":[4,8]"), 8, "gap"},
        {X(F32 "\"shape\":[1],\"data_offsets\":[9223372036854775800,9223372036854775804]"), 4, "truncated"},
        {"{\"x\":{" F32 "\"shape\":[1],\"data_offsets\":[0,4]},\"y\":{" F32
         "\"shape\":[1],\"data_offsets\":[2,6]}}",
         6, "overlap"},
        {"{\"x\":{" F32 "\"shape\":[1],\"data_offsets\":[0,4]},\"x\":{" F32
         "\"shape\":[1],\"data_offsets\":[4,8]}}",
         8, "twice"},
        {"{\"\\u0000\":{" F32 "\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "zero"},
        {"{\"__metadata__\":{\"a\":1}}", 0, "expected a string"},
        {"{\"__metadata__\":{},\"__metadata__\":{}}", 0, "twice"},
        {"{\"\xff\":{" F32 "\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "byte 10: "},
    };
    char file[1024];
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK_ERROR(wk_safetensors_over("f", file, compose(file, bad[i].header, bad[i].data), NULL, NULL),
                    WK_ERR_FORMAT, bad[i].word);
    for (size_t n = 0; n < 8; n++)
        CHECK_ERROR(wk_safetensors_over("f", file, n, NULL, NULL), WK_ERR_FORMAT, "truncated");
    uint64_t length = 1000;
    memcpy(file, &length, 8);
    CHECK_ERROR(wk_safetensors_over("f", file, 100, NULL, NULL), WK_ERR_FORMAT, "truncated");
    length = 100000001;
    memcpy(file, &length, 8);
    CHECK_ERROR(wk_safetensors_over("f", file, 100, NULL, NULL), WK_ERR_FORMAT, "at most 100000000");
    length = UINT64_MAX;
    memcpy(file, &length, 8);
    CHECK_ERROR(wk_safetensors_over("f", file, 100, NULL, NULL), WK_ERR_FORMAT, "at most 100000000");
}

static void count_call(void *ctx) { ++*(int *)ctx; }

static void test_foreign(void)
{
    static _Alignas(8) char file[1024];
    int released = 0;
    /* Names in another order than the data, bool, metadata, an odd header: the floats lie unaligned. */
    size_t n = compose(file,
                       "{ \"__metadata__\" : {\"format\":\"pt\"}, \"b\":{" F32
                       "\"shape\":[2],\"data_offsets\":[3,11]},"
                       "\"a\":{\"dtype\":\"BOOL\",\"shape\":[3],\"data_offsets\":[0,3]}}",
                       11);
    wk_safetensors *f = wk_safetensors_over(NULL, file, n, count_call, &released);
    CHECK(f && wk_safetensors_count(f) == 2 && wk_safetensors_dtype(f, 1) == WK_U8);
    wk_tensor *b = wk_safetensors_get(f, "b"), *a = wk_safetensors_get(f, "a");
    CHECK((uintptr_t)wk_data(b) % 4 == 0 && (char *)wk_data(a) == file + n - 11);
    float values[2], want;
    memset(&want, 1, sizeof want);
    CHECK(wk_to_host(b, values) == WK_OK && values[0] == want && values[1] == want);
    wk_safetensors_close(f);
    CHECK(released == 0);
    wk_drop(b);
    wk_drop(a);
    CHECK(released == 1);
    CHECK_ERROR(wk_safetensors_over(NULL, file, 4, count_call, &released), WK_ERR_FORMAT, "truncated");
    CHECK(released == 1);
}

static void test_files(void)
{
    const char *path = in_folder("x.safetensors"), *names[] = {"x", "x"};
    char before[256], after[256];
    CHECK_ERROR(wk_safetensors_open(in_folder("none")), WK_ERR_IO, "No such file");
    CHECK_ERROR(wk_safetensors_open(folder), WK_ERR_IO, "directory");
    CHECK_ERROR(wk_safetensors_open(NULL), WK_ERR_ARGUMENT, "path");
    path = in_folder("x.safetensors");
    write_file(path, "", 0);
    CHECK_ERROR(wk_safetensors_open(path), WK_ERR_FORMAT, "truncated");
    wk_scope_begin();
    wk_tensor *x = counted(WK_F32, 1, SHAPE(4)), *both[] = {x, x}, *none[] = {NULL};
    CHECK(wk_safetensors_save(path, 1, names, both) == WK_OK);
    size_t n = read_file(path, before, sizeof before);
    CHECK(n > 16 && before[0] % 8 == 0);
    CHECK_ERROR(wk_safetensors_save(path, 2, names, both), WK_ERR_ARGUMENT, "twice");
    CHECK_ERROR(wk_safetensors_save(path, 1, names, none), WK_ERR_ARGUMENT, "NULL");
    CHECK_ERROR(wk_safetensors_save(path, 1, (const char *[]){"\xff"}, both), WK_ERR_ARGUMENT, "UTF-8");
    CHECK_ERROR(wk_safetensors_save(path, 1, (const char *[]){"__metadata__"}, both), WK_ERR_ARGUMENT,
                "metadata");
    CHECK_ERROR(wk_safetensors_save(in_folder("no/x"), 1, names, both), WK_ERR_IO, "No such file");
    /* What is written into a tensor of a file stays in the process. */
    path = in_folder("x.safetensors");
    wk_safetensors *f = wk_safetensors_open(path);
    wk_tensor *mine = wk_safetensors_tensor(f, 0);
    wk_safetensors_close(f);
    CHECK(wk_copy_into(mine, wk_neg(x)) == WK_OK && wk_storage_version(mine) == 1);
    CHECK(read_file(path, after, sizeof after) == n && memcmp(before, after, n) == 0);
    /* A symbolic link stays one, and a device is written to, not replaced. */
    const char *link = in_folder("link");
    CHECK(symlink("x.safetensors", link) == 0 && wk_safetensors_save(link, 1, names, both) == WK_OK);
    struct stat info;
    CHECK(lstat(link, &info) == 0 && S_ISLNK(info.st_mode));
    CHECK(wk_safetensors_save("/dev/null", 1, names, both) == WK_OK);
    CHECK(stat("/dev/null", &info) == 0 && S_ISCHR(info.st_mode));
    CHECK(wk_safetensors_save(path, 0, NULL, NULL) == WK_OK);
    wk_safetensors_close(f = wk_safetensors_open(path));
    CHECK(f != NULL);
    unlink(link);
    unlink(path);
    wk_scope_end();
}

/* ---- npy ---- */

static size_t compose_npy(char *out, int version, const char *header, size_t data)
{
    uint32_t length = (uint32_t)strlen(header);
    size_t front = version == 1 ? 10 : 12;
    memcpy(out, "\x93NUMPY", 6);
    out[6] = (char)version;
    out[7] = 0;
    memcpy(out + 8, &length, front - 8);
    memcpy(out + front, header, length);
    memset(out + front + length, 1, data);
    return front + length + data;
}

static void test_npy(void)
{
    const char *path = in_folder("x.npy");
    char file[1024];
    wk_scope_begin();
    for (int d = 0; d < WK_DTYPE_COUNT; d++) {
        for (int rank = 0; rank < 4; rank++) {
            wk_tensor *t = counted((wk_dtype)d, rank, SHAPE(3, 2, 5));
            if (d == WK_BF16) {
                CHECK_ERROR(wk_npy_save(path, t), WK_ERR_DTYPE, "bf16");
                continue;
            }
            CHECK(wk_npy_save(path, rank > 1 ? wk_transpose(t, 0, 1) : t) == WK_OK);
            CHECK(same_bytes(wk_npy_load(path), rank > 1 ? wk_transpose(t, 0, 1) : t));
            CHECK(read_file(path, file, sizeof file) >= 64 && (10 + file[8]) % 64 == 0);
        }
    }
    for (int version = 1; version <= 3; version++) {
        size_t n =
            compose_npy(file, version, "{'descr': '<i2', 'fortran_order': True, 'shape': (2, 3), }\n", 0);
        for (short i = 0; i < 6; i++)
            memcpy(file + n + 2 * i, &i, 2);
        wk_tensor *t = wk_npy_over(NULL, file, n + 12, NULL, NULL);
        short got[6] = {0};
        CHECK(t && wk_dim(t, 0) == 2 && wk_dim(t, 1) == 3 && wk_to_host(t, got) == WK_OK);
        CHECK(memcmp(got, (short[]){0, 2, 4, 1, 3, 5}, sizeof got) == 0);
    }
    wk_scope_end();
    unlink(path);
}

static void test_npy_malformed(void)
{
#define NPY(descr, order, shape) "{'descr': " descr ", 'fortran_order': " order ", 'shape': " shape ", }\n"
    static const struct {
        const char *header;
        size_t data;
        const char *word;
    } bad[] = {{NPY("'>f4'", "False", "(1,)"), 4, "big-endian"},
               {NPY("'<c8'", "False", "(1,)"), 8, "<c8"},
               {NPY("'|i1'", "False", "(1,)"), 1, "|i1"},
               {NPY("'<f4", "False", "(1,)"), 4, "descr"},
               {NPY("[('a','<f4')]", "False", "(1,)"), 4, "record"},
               {NPY("'<f4'", "Maybe", "(1,)"), 4, "True or False"},
               {NPY("'<f4'", "False", "(-1,)"), 4, "0 or more"},
               {NPY("'<f4'", "False", "(1)"), 4, "expected ,"},
               {NPY("'<f4'", "False", "(1 2)"), 4, "expected ,"},
               {NPY("'<f4'", "False", "[1]"), 4, "expected ("},
               {NPY("'<f4'", "False", "(1,1,1,1,1,1,1,1,1)"), 4, "at most 8"},
               {NPY("'<f4'", "False", "(9223372036854775807, 2)"), 4, "counted"},
               {NPY("'<f4'", "False", "(99999999999999999999,)"), 4, "64 bits"},
               {NPY("'<f4'", "False", "(2,)"), 4, "truncated"},
               {NPY("'<f4'", "False", "(1,)"), 5, "behind"},
               {"{'descr': '<f4'}", 4, "missing"},
               {"{'descr': '<f4', 'descr': '<f4'}", 4, "once"},
               {"{'descr' '<f4'}", 4, "expected :"},
               {"{'descr': '<f4'", 4, ", or }"},
               {"descr", 4, "expected {"},
               {NPY("'<f4'", "False", "(1,)") "x", 4, "behind"}};
    char file[1024];
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK_ERROR(wk_npy_over("f", file, compose_npy(file, 1, bad[i].header, bad[i].data), NULL, NULL),
                    WK_ERR_FORMAT, bad[i].word);
    size_t n = compose_npy(file, 4, NPY("'<f4'", "False", "(1,)"), 4);
    CHECK_ERROR(wk_npy_over("f", file, n, NULL, NULL), WK_ERR_FORMAT, "byte 6: expected version");
    n = compose_npy(file, 1, NPY("'<f4'", "False", "(1,)"), 4);
    for (size_t cut = 0; cut < n; cut++)
        CHECK_ERROR(wk_npy_over("f", file, cut, NULL, NULL), WK_ERR_FORMAT, "truncated");
    file[0] = 'x';
    CHECK_ERROR(wk_npy_over("f", file, n, NULL, NULL), WK_ERR_FORMAT, "NUMPY");
    CHECK_ERROR(wk_npy_load(in_folder("none")), WK_ERR_IO, "No such file");
    CHECK_ERROR(wk_npy_save(in_folder("x"), NULL), WK_ERR_ARGUMENT, "t: ");
}

/* ---- DLPack ---- */

static void test_dlpack_out(void)
{
    wk_scope_begin();
    wk_tensor *v = wk_narrow(wk_transpose(counted(WK_BF16, 2, SHAPE(3, 5)), 0, 1), 0, 1, 3);
    DLManagedTensor *h = wk_to_dlpack(v);
    DLManagedTensorVersioned *w = wk_to_dlpack_versioned(v);
    CHECK(h && h->dl_tensor.ndim == 2 && h->dl_tensor.shape[0] == 3 && h->dl_tensor.strides[1] == 5);
    CHECK(h->dl_tensor.dtype.code == kDLBfloat && h->dl_tensor.dtype.bits == 16 &&
          h->dl_tensor.dtype.lanes == 1);
    CHECK(h->dl_tensor.device.device_type == kDLCPU && h->dl_tensor.data == wk_data(v));
    CHECK(w && w->version.major == 1 && w->flags == 0 && w->dl_tensor.data == wk_data(v));
    v = wk_scope_end_keep(v);
    /* Through another library and back. */
    wk_tensor *back = wk_from_dlpack(h), *again = wk_from_dlpack_versioned(w);
    CHECK(same_bytes(back, v) && same_bytes(again, v));
    wk_drop(v);
    wk_drop(back);
    wk_drop(again);
    CHECK_ERROR(wk_to_dlpack(NULL), WK_ERR_ARGUMENT, "t: ");
    CHECK_ERROR(wk_from_dlpack(NULL), WK_ERR_ARGUMENT, "handle");
}

static int deleted;
static void count_deleted(DLManagedTensor *h)
{
    (void)h;
    deleted++;
}

static void test_dlpack_in(void)
{
    static float data[12] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
    int64_t shape[9] = {2, 3}, strides[9] = {4, 1};
    DLManagedTensor h = {{data, {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, shape, strides, 4}, NULL, count_deleted};
    wk_tensor *t = wk_from_dlpack(&h), *view = wk_narrow(t, 0, 1, 1);
    float got[6];
    CHECK(wk_to_host(t, got) == WK_OK && got[0] == 1 && got[3] == 5 && got[5] == 7);
    wk_drop(t);
    CHECK(deleted == 0);
    wk_drop(view);
    CHECK(deleted == 1);
    h.dl_tensor.strides = NULL;
    t = wk_from_dlpack(&h);
    CHECK(wk_to_host(t, got) == WK_OK && got[3] == 4);
    wk_drop(t);
    CHECK(deleted == 2);
    h.dl_tensor.strides = (int64_t[]){-7, 1}; /* of one row: no step is taken */
    shape[0] = 1;
    wk_drop(t = wk_from_dlpack(&h));
    CHECK(t && deleted == 3);
    shape[0] = 2;
#define REFUSED(field, value, status, word) \
    do { \
        DLManagedTensor bad = h; \
        bad.dl_tensor.field = value; \
        CHECK_ERROR(wk_from_dlpack(&bad), status, word); \
    } while (0)
    REFUSED(dtype.lanes, 0, WK_ERR_DTYPE, "lanes");
    h.dl_tensor.strides = (int64_t[]){-3, 1};
    REFUSED(byte_offset, 0, WK_ERR_SHAPE, "strides");
    h.dl_tensor.strides = strides;
    REFUSED(dtype.lanes, 4, WK_ERR_DTYPE, "lanes");
    REFUSED(dtype.bits, 8, WK_ERR_DTYPE, "8 bits");
    REFUSED(dtype.code, 5, WK_ERR_DTYPE, "code 5");
    REFUSED(byte_offset, 2, WK_ERR_ARGUMENT, "data");
    REFUSED(ndim, 9, WK_ERR_SHAPE, "rank 9");
    REFUSED(ndim, -1, WK_ERR_SHAPE, "rank -1");
    REFUSED(shape, NULL, WK_ERR_SHAPE, "shape");
    REFUSED(data, NULL, WK_ERR_ARGUMENT, "data");
    REFUSED(device.device_type, (DLDeviceType)7, WK_ERR_DEVICE, "type 7");
    REFUSED(device.device_id, 99; bad.dl_tensor.device.device_type = kDLCUDA, WK_ERR_DEVICE, "cuda:99");
    shape[0] = -1;
    REFUSED(byte_offset, 0, WK_ERR_SHAPE, "shape");
    CHECK(deleted == 3);
    DLManagedTensorVersioned v = {.version = {2, 0}};
    CHECK_ERROR(wk_from_dlpack_versioned(&v), WK_ERR_FORMAT, "2.0");
}

/* ---- every allocation may fail ---- */

static void use_everything(const char *file, const char *array)
{
    static const char *const names[] = {"x", "y"};
    wk_scope_begin();
    wk_tensor *x = counted(WK_F32, 2, SHAPE(3, 4)), *y = x ? wk_transpose(x, 0, 1) : NULL;
    wk_safetensors_save(file, 2, names, (wk_tensor *[]){x, y});
    wk_safetensors *f = wk_safetensors_open(file);
    wk_safetensors_get(f, "y");
    wk_safetensors_close(f);
    wk_npy_save(array, y);
    wk_npy_load(array);
    DLManagedTensor *h = wk_to_dlpack(y);
    if (h && !wk_from_dlpack(h))
        h->deleter(h);
    wk_scope_end();
}

static void test_memory(void)
{
    char file[PATH_MAX + 64], array[PATH_MAX + 64];
    snprintf(file, sizeof file, "%s", in_folder("m.safetensors"));
    snprintf(array, sizeof array, "%s", in_folder("m.npy"));
    use_everything(file, array);
    CHECK(wk_error_status() == WK_OK);
    long live = wk_alloc_live(), n = 1;
    for (bool failed = true; failed && n < 1000; n++) {
        wk_alloc_fail_at(n, 1);
        use_everything(file, array);
        failed = wk_alloc_count() >= n;
        wk_alloc_fail_at(0, 0);
        CHECK(failed ? wk_error_status() == WK_ERR_MEMORY : wk_error_status() == WK_OK);
        CHECK(wk_alloc_live() == live);
        wk_error_clear();
    }
    CHECK(n > 10 && n < 1000);
    unlink(file);
    unlink(array);
}

int main(void)
{
    folder = test_folder("io");
    test_json_grammar();
    test_json_values();
    test_round_trip();
    test_malformed();
    test_foreign();
    test_files();
    test_npy();
    test_npy_malformed();
    test_dlpack_out();
    test_dlpack_in();
    test_memory();
    CHECK(rmdir(folder) == 0); /* no temporary file is left */
    return test_end();
}
