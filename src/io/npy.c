/* npy.c: NumPy's array files.
 *
 * A file is "\x93NUMPY", two bytes of version, the header's length (2 bytes in version 1, 4 in 2 and 3), the
 * header, which is a Python dict, and the data:
 *     {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }              then spaces and a newline */
#include <stdio.h>
#include "../core/memory.h"
#include "file.h"
#include "json.h"
#include "wick/io.h"

static const char call[] = "npy_load";

typedef struct {
    const char *path, *begin, *at, *end; /* begin: of the file; end: of the header */
    wk_dtype dtype;
    bool fortran;
    int rank;
    int64_t shape[WK_MAX_RANK];
} parser;

static const struct {
    char code[3];
    wk_dtype dtype;
} codes[] = {{"f4", WK_F32}, {"f2", WK_F16}, {"f8", WK_F64}, {"u1", WK_U8}, {"u4", WK_U32},
             {"i8", WK_I64}, {"i4", WK_I32}, {"i2", WK_I16}, {"b1", WK_U8}};
enum { CODES = sizeof codes / sizeof *codes };

static wk_status fail_here(const parser *p, const char *what)
{
    return wk_fail_format(call, p->path, (uint64_t)(p->at - p->begin), "%s", what);
}

/* ---- the dict ---- */

static char peek(parser *p)
{
    while (p->at < p->end && memchr(" \t\n\r", *p->at, 4))
        p->at++;
    return p->at < p->end ? *p->at : 0;
}

static bool take(parser *p, char c)
{
    bool there = peek(p) == c;
    p->at += there;
    return there;
}

static bool take_word(parser *p, const char *word)
{
    size_t n = strlen(word);
    peek(p);
    bool there = (size_t)(p->end - p->at) >= n && memcmp(p->at, word, n) == 0;
    p->at += there ? n : 0;
    return there;
}

/* A text in quotes of either kind, without escapes. */
static wk_status read_string(parser *p, wk_json_raw *s)
{
    char quote = peek(p);
    if (quote != '\'' && quote != '"')
        return fail_here(p, "expected a text in quotes");
    const char *begin = p->at + 1;
    const char *close = memchr(begin, quote, (size_t)(p->end - begin));
    if (!close)
        return fail_here(p, "a text without end");
    *s = (wk_json_raw){begin, (size_t)(close - begin)};
    p->at = close + 1;
    return WK_OK;
}

static wk_status read_descr(parser *p)
{
    wk_json_raw s;
    if (peek(p) == '[')
        return fail_here(p, "descr: expected one dtype, got a record");
    const char *at = p->at;
    WK_TRY(read_string(p, &s));
    int i = 0;
    bool order = s.size == 3 && (strchr("<|=", s.text[0]) || s.text[2] == '1');
    while (i < CODES && !(order && memcmp(s.text + 1, codes[i].code, 2) == 0))
        i++;
    if (i < CODES) {
        p->dtype = codes[i].dtype;
        return WK_OK;
    }
    p->at = at;
    char what[160];
    snprintf(what, sizeof what,
             "descr: expected little-endian f2, f4, f8, u1, u4, i8, i4, i2 or b1, got %s'%.*s'",
             s.size && s.text[0] == '>' ? "big-endian " : "", (int)(s.size < 20 ? s.size : 20), s.text);
    return fail_here(p, what);
}

static wk_status read_order(parser *p)
{
    p->fortran = take_word(p, "True");
    return p->fortran || take_word(p, "False") ? WK_OK
                                               : fail_here(p, "fortran_order: expected True or False");
}

static wk_status read_size(parser *p)
{
    int64_t size = 0;
    const char *begin = p->at;
    for (; p->at < p->end && *p->at >= '0' && *p->at <= '9'; p->at++) {
        if (__builtin_mul_overflow(size, (int64_t)10, &size) ||
            __builtin_add_overflow(size, (int64_t)(*p->at - '0'), &size))
            return fail_here(p, "shape: a size past 64 bits");
    }
    if (p->at == begin)
        return fail_here(p, "shape: expected sizes of 0 or more");
    if (p->rank == WK_MAX_RANK)
        return fail_here(p, "shape: expected at most 8 dimensions");
    p->shape[p->rank++] = size;
    return WK_OK;
}

/* (), (3,), (3, 4) */
static wk_status read_shape(parser *p)
{
    if (!take(p, '('))
        return fail_here(p, "shape: expected (");
    while (peek(p) != ')') {
        WK_TRY(read_size(p));
        bool comma = take(p, ',');
        if (peek(p) != ')' ? !comma : !comma && p->rank == 1)
            return fail_here(p, "shape: expected ,");
    }
    p->at++;
    return WK_OK;
}

static wk_status read_dict(parser *p)
{
    static const char *const fields[] = {"descr", "fortran_order", "shape"};
    static wk_status (*const readers[])(parser *) = {read_descr, read_order, read_shape};
    unsigned seen = 0;
    if (!take(p, '{'))
        return fail_here(p, "expected {");
    while (peek(p) != '}') {
        wk_json_raw key;
        int i = 0;
        WK_TRY(read_string(p, &key));
        while (i < 3 && !wk_json_equal(key, fields[i]))
            i++;
        if (i == 3 || seen >> i & 1)
            return fail_here(p, "expected descr, fortran_order and shape, each once");
        seen |= 1u << i;
        if (!take(p, ':'))
            return fail_here(p, "expected :");
        WK_TRY(readers[i](p));
        if (!take(p, ',') && peek(p) != '}')
            return fail_here(p, "expected , or }");
    }
    p->at++;
    if (seen != 7)
        return fail_here(p, "expected descr, fortran_order and shape, one is missing");
    return peek(p) == 0 && p->at == p->end ? WK_OK : fail_here(p, "text behind the header's }");
}

/* ---- the file ---- */

/* Finds the header: from p->at to p->end. */
static wk_status find_header(parser *p, size_t bytes)
{
    uint32_t length = 0;
    p->at = p->begin;
    if (bytes < 10 || memcmp(p->begin, "\x93NUMPY", 6) != 0)
        return fail_here(p, bytes < 10 ? "truncated: expected at least 10 bytes" : "expected \\x93NUMPY");
    int version = p->begin[6];
    size_t length_bytes = version == 1 ? 2 : 4, front = 8 + length_bytes;
    p->at += 6;
    if (version < 1 || version > 3)
        return fail_here(p, "expected version 1, 2 or 3");
    p->at += 2;
    if (bytes < front)
        return fail_here(p, "truncated: expected the header's length");
    memcpy(&length, p->at, length_bytes);
    if (length > bytes - front)
        return fail_here(p, "truncated: the header is longer than the file");
    p->at = p->begin + front;
    p->end = p->at + length;
    return WK_OK;
}

static wk_status check_size(parser *p, size_t bytes)
{
    int64_t count = wk_shape_count(p->rank, p->shape), need;
    char what[120];
    if (count < 0 || __builtin_mul_overflow(count, (int64_t)wk_bytes(p->dtype), &need))
        return fail_here(p, "shape: more elements than can be counted");
    size_t have = bytes - (size_t)(p->end - p->begin);
    if ((size_t)need == have)
        return WK_OK;
    snprintf(what, sizeof what, "%s: expected %lld bytes of data, got %zu",
             have < (size_t)need ? "truncated" : "data behind the array", (long long)need, have);
    p->at = have < (size_t)need ? p->begin + bytes : p->end + need;
    return fail_here(p, what);
}

/* Fortran order is C order of the dimensions turned round. */
static wk_tensor *turned(wk_tensor *t)
{
    static const int dims[][WK_MAX_RANK] = {{0},
                                            {0},
                                            {1, 0},
                                            {2, 1, 0},
                                            {3, 2, 1, 0},
                                            {4, 3, 2, 1, 0},
                                            {5, 4, 3, 2, 1, 0},
                                            {6, 5, 4, 3, 2, 1, 0},
                                            {7, 6, 5, 4, 3, 2, 1, 0}};
    wk_tensor *v = t ? wk_permute(t, dims[t->rank]) : NULL;
    wk_drop(t);
    return v;
}

static wk_tensor *load_map(const char *path, wk_map *map)
{
    parser p = {.path = path, .begin = map->data};
    if (find_header(&p, map->bytes) != WK_OK || read_dict(&p) != WK_OK || check_size(&p, map->bytes) != WK_OK)
        return NULL;
    for (int a = 0, b = p.rank - 1; p.fortran && a < b; a++, b--) {
        int64_t size = p.shape[a];
        p.shape[a] = p.shape[b];
        p.shape[b] = size;
    }
    wk_tensor *t = wk_map_tensor(map, (size_t)(p.end - p.begin), p.dtype, p.rank, p.shape);
    return p.fortran ? turned(t) : t;
}

wk_tensor *wk_npy_load(const char *path)
{
    wk_map *map = wk_map_open(call, path);
    wk_tensor *t = map ? load_map(path, map) : NULL;
    wk_map_drop(map);
    return t;
}

wk_tensor *wk_npy_over(const char *name, void *data, size_t bytes, void (*release)(void *ctx), void *ctx)
{
    if (wk_pending())
        return NULL;
    if (!data && bytes) {
        wk_fail(WK_ERR_ARGUMENT, "npy_over: data: expected %zu bytes, got NULL", bytes);
        return NULL;
    }
    wk_map *map = wk_map_over(call, data, bytes, NULL, NULL);
    wk_tensor *t = map ? load_map(name ? name : "memory", map) : NULL;
    if (t) {
        map->release = release;
        map->ctx = ctx;
    }
    wk_map_drop(map); /* where the tensor is a copy this releases the memory */
    return t;
}

/* ---- writing ---- */

static wk_status make_header(wk_text *h, const wk_tensor *t)
{
    int i = 0;
    while (i < CODES && codes[i].dtype != t->dtype)
        i++;
    if (i == CODES)
        return wk_fail(WK_ERR_DTYPE, "npy_save: t: npy has no dtype %s; cast it to f32 first",
                       wk_dtype_name(t->dtype));
    wk_text_add(h, "{'descr': '%c%s', 'fortran_order': False, 'shape': (",
                wk_bytes(t->dtype) == 1 ? '|' : '<', codes[i].code);
    for (int d = 0; d < t->rank; d++)
        wk_text_add(h, d ? " %lld," : "%lld,", (long long)t->shape[d]);
    if (t->rank > 1 && !h->failed)
        h->size--; /* (3,) but (3, 4) */
    wk_text_add(h, "), }");
    wk_text_add(h, "%*s\n", (int)(-(10 + h->size + 1) & 63), ""); /* the data begin at a multiple of 64 */
    return h->failed ? wk_fail(WK_ERR_MEMORY, "npy_save: out of memory") : WK_OK;
}

static wk_status write_all(wk_writer *w, const wk_text *h, const wk_tensor *t)
{
    unsigned char front[10] = {
        0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (unsigned char)(h->size & 255), (unsigned char)(h->size >> 8)};
    WK_TRY(wk_writer_write(w, front, sizeof front));
    WK_TRY(wk_writer_write(w, h->data, h->size));
    return wk_writer_tensor(w, t);
}

wk_status wk_npy_save(const char *path, const wk_tensor *t)
{
    if (wk_pending())
        return wk_error_status();
    if (!t)
        return wk_fail(WK_ERR_ARGUMENT, "npy_save: t: expected a tensor, got NULL");
    wk_text header = {0};
    wk_writer w;
    wk_status status = make_header(&header, t);
    if (status == WK_OK)
        status = wk_writer_open(&w, "npy_save", path);
    if (status == WK_OK)
        status = wk_writer_close(&w, write_all(&w, &header, t));
    wk_text_free(&header);
    return status;
}
