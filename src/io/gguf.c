/* gguf.c: reading GGUF files, versions 2 and 3.
 *
 * A file is, little-endian: "GGUF", a version (u32), the numbers of tensors and of key-value pairs (u64), the pairs, a
 * description of each tensor, and from the next multiple of general.alignment on the data. A string is its length (u64)
 * and its bytes. A pair is a string, a kind (u32) and a value; a tensor is a string, its rank (u32), its sizes (u64, the
 * fastest first), its type (u32) and where it begins in the data (u64). All of that is checked when the file is opened. */
#include <stdio.h>
#include <stdlib.h>
#include "../core/memory.h"
#include "file.h"
#include "ops/quant.h"
#include "wick/io.h"

enum { DEFAULT_ALIGNMENT = 32, MAX_NAME = 1 << 16 };

typedef struct {
    char *key;
    wk_gguf_kind kind, item; /* item: of an array's elements */
    int64_t count;           /* elements of an array, bytes of a string */
    size_t at;               /* the value, in the file; of an array, its first element */
    size_t *items;           /* of an array of strings: where each is */
} pair;

typedef struct {
    char *name;
    uint32_t type;
    int rank;
    int64_t shape[WK_MAX_RANK]; /* rows first, of weights */
    size_t begin, bytes;        /* begin: in the file */
    size_t at;                  /* where it is described */
} entry;

struct wk_gguf {
    wk_map *map;
    uint32_t version;
    pair *pairs;
    entry *entries;
    entry **by_name;
    int64_t n_pairs, count;
};

typedef struct {
    const char *path;
    wk_gguf *file;
    size_t at;
} parser;

static const char call[] = "gguf_open";

static wk_status no_memory(void) { return wk_fail(WK_ERR_MEMORY, "%s: out of memory", call); }

/* ---- types of tensors ---- */

typedef struct {
    const char *name;
    uint16_t block, bytes;
    uint8_t dtype;  /* WK_DTYPE_COUNT: none */
    uint8_t format; /* WK_QFORMAT_COUNT: none */
} type_info;

#define PLAIN(name, bytes, dtype) \
    { \
        name, 1, bytes, dtype, WK_QFORMAT_COUNT \
    }
#define QUANT(name, format, block, bytes) \
    { \
        name, block, bytes, WK_DTYPE_COUNT, format \
    }
#define OTHER(name, block, bytes) \
    { \
        name, block, bytes, WK_DTYPE_COUNT, WK_QFORMAT_COUNT \
    }
static const type_info types[] = {
    [0] = PLAIN("F32", 4, WK_F32),
    [1] = PLAIN("F16", 2, WK_F16),
    [2] = QUANT("Q4_0", WK_Q4_0, 32, 18),
    [3] = OTHER("Q4_1", 32, 20),
    [6] = OTHER("Q5_0", 32, 22),
    [7] = OTHER("Q5_1", 32, 24),
    [8] = QUANT("Q8_0", WK_Q8_0, 32, 34),
    [9] = OTHER("Q8_1", 32, 36),
    [10] = OTHER("Q2_K", 256, 84),
    [11] = OTHER("Q3_K", 256, 110),
    [12] = QUANT("Q4_K", WK_Q4_K, 256, 144),
    [13] = OTHER("Q5_K", 256, 176),
    [14] = QUANT("Q6_K", WK_Q6_K, 256, 210),
    [15] = OTHER("Q8_K", 256, 292),
    [16] = OTHER("IQ2_XXS", 256, 66),
    [17] = OTHER("IQ2_XS", 256, 74),
    [18] = OTHER("IQ3_XXS", 256, 98),
    [19] = OTHER("IQ1_S", 256, 50),
    [20] = OTHER("IQ4_NL", 32, 18),
    [21] = OTHER("IQ3_S", 256, 110),
    [22] = OTHER("IQ2_S", 256, 82),
    [23] = OTHER("IQ4_XS", 256, 136),
    [24] = OTHER("I8", 1, 1),
    [25] = PLAIN("I16", 2, WK_I16),
    [26] = PLAIN("I32", 4, WK_I32),
    [27] = PLAIN("I64", 8, WK_I64),
    [28] = PLAIN("F64", 8, WK_F64),
    [29] = OTHER("IQ1_M", 256, 56),
    [30] = PLAIN("BF16", 2, WK_BF16),
};

static const type_info *type_of(uint32_t type)
{
    return type < sizeof types / sizeof *types && types[type].name ? &types[type] : NULL;
}

/* ---- reading ---- */

static wk_status fail_at(const parser *p, size_t at, const char *name, const char *what)
{
    return wk_fail_format(call, p->path, at, "'%.60s': %s", name ? name : "?", what);
}

static wk_status need(const parser *p, uint64_t bytes, const char *what)
{
    size_t left = p->file->map->bytes - p->at;
    if (bytes <= left)
        return WK_OK;
    return wk_fail_format(call, p->path, p->at, "truncated: expected %s of %llu bytes, got %zu", what,
                          (unsigned long long)bytes, left);
}

static wk_status read_bytes(parser *p, void *out, size_t bytes, const char *what)
{
    WK_TRY(need(p, bytes, what));
    memcpy(out, p->file->map->data + p->at, bytes);
    p->at += bytes;
    return WK_OK;
}

static wk_status read_u32(parser *p, uint32_t *v, const char *what)
{
    return read_bytes(p, v, sizeof *v, what);
}
static wk_status read_u64(parser *p, uint64_t *v, const char *what)
{
    return read_bytes(p, v, sizeof *v, what);
}

/* Steps over a string; *at is where its bytes are. */
static wk_status read_string(parser *p, size_t *at, uint64_t *size, const char *what)
{
    WK_TRY(read_u64(p, size, what));
    WK_TRY(need(p, *size, what));
    *at = p->at;
    p->at += (size_t)*size;
    return WK_OK;
}

/* A name: a string of its own, with a 0 at its end and none in it. */
static wk_status read_name(parser *p, char **name, const char *what)
{
    size_t at, begin = p->at;
    uint64_t size;
    WK_TRY(read_string(p, &at, &size, what));
    const char *text = p->file->map->data + at;
    if (size == 0 || size > MAX_NAME || memchr(text, 0, (size_t)size))
        return wk_fail_format(call, p->path, begin, "expected %s of 1 to %d bytes without a zero", what,
                              MAX_NAME);
    *name = wk_alloc((size_t)size + 1);
    if (!*name)
        return no_memory();
    memcpy(*name, text, (size_t)size);
    (*name)[size] = 0;
    return WK_OK;
}

/* n records of `bytes` each, zeroed, of which each takes at least `least` in the file: a number that the file cannot
 * hold is refused before it costs memory. */
static wk_status make_list(const parser *p, uint64_t n, size_t least, size_t bytes, const char *what,
                           void **list)
{
    size_t left = p->file->map->bytes - p->at;
    if (n > left / least)
        return wk_fail_format(call, p->path, p->at, "truncated: %llu %s in %zu bytes", (unsigned long long)n,
                              what, left);
    *list = wk_alloc((size_t)n * bytes + 1);
    if (!*list)
        return no_memory();
    memset(*list, 0, (size_t)n * bytes);
    return WK_OK;
}

/* ---- pairs ---- */

/* Bytes of a value of that kind; 0 for strings and arrays, -1 for no kind. */
static int kind_bytes(uint32_t kind)
{
    static const signed char bytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    return kind < sizeof bytes ? bytes[kind] : -1;
}

static wk_status check_bool(const parser *p, const pair *k, size_t at)
{
    return (unsigned char)p->file->map->data[at] <= 1 ? WK_OK
                                                      : fail_at(p, at, k->key, "expected a bool of 0 or 1");
}

static wk_status read_strings(parser *p, pair *k)
{
    void *list;
    WK_TRY(make_list(p, (uint64_t)k->count, sizeof(uint64_t), sizeof(size_t), "strings", &list));
    k->items = list;
    for (int64_t i = 0; i < k->count; i++) {
        uint64_t size;
        size_t at;
        k->items[i] = p->at;
        WK_TRY(read_string(p, &at, &size, "a string"));
    }
    return WK_OK;
}

static wk_status read_array(parser *p, pair *k)
{
    uint32_t item;
    uint64_t count;
    size_t begin = p->at;
    WK_TRY(read_u32(p, &item, "an array's kind"));
    WK_TRY(read_u64(p, &count, "an array's length"));
    if (kind_bytes(item) < 0 || item == WK_GGUF_ARRAY)
        return fail_at(p, begin, k->key, "expected an array of numbers, bools or strings");
    k->item = (wk_gguf_kind)item;
    k->at = p->at;
    if (count > (uint64_t)INT64_MAX / 16)
        return fail_at(p, begin, k->key, "an array longer than the file");
    k->count = (int64_t)count;
    if (item == WK_GGUF_STRING)
        return read_strings(p, k);
    WK_TRY(need(p, count * (uint64_t)kind_bytes(item), "an array"));
    for (uint64_t i = 0; item == WK_GGUF_BOOL && i < count; i++)
        WK_TRY(check_bool(p, k, p->at + (size_t)i));
    p->at += (size_t)count * (size_t)kind_bytes(item);
    return WK_OK;
}

static wk_status read_pair(parser *p, pair *k)
{
    uint32_t kind;
    WK_TRY(read_name(p, &k->key, "a key"));
    size_t begin = p->at;
    WK_TRY(read_u32(p, &kind, "a kind of value"));
    if (kind_bytes(kind) < 0)
        return fail_at(p, begin, k->key, "expected a kind of value from 0 to 12");
    k->kind = (wk_gguf_kind)kind;
    if (kind == WK_GGUF_ARRAY)
        return read_array(p, k);
    if (kind == WK_GGUF_STRING) {
        uint64_t size;
        WK_TRY(read_string(p, &k->at, &size, "a string"));
        k->count = (int64_t)size;
        return WK_OK;
    }
    WK_TRY(need(p, (uint64_t)kind_bytes(kind), "a value"));
    k->at = p->at;
    p->at += (size_t)kind_bytes(kind);
    return kind == WK_GGUF_BOOL ? check_bool(p, k, k->at) : WK_OK;
}

/* ---- tensors ---- */

/* Sizes come fastest first. */
static wk_status read_shape(parser *p, entry *e)
{
    uint32_t rank;
    size_t begin = p->at;
    WK_TRY(read_u32(p, &rank, "a rank"));
    if (rank > WK_MAX_RANK)
        return fail_at(p, begin, e->name, "expected at most 8 dimensions");
    e->rank = (int)rank;
    for (int d = e->rank - 1; d >= 0; d--) {
        uint64_t size;
        begin = p->at;
        WK_TRY(read_u64(p, &size, "a size"));
        if (size > (uint64_t)INT64_MAX)
            return fail_at(p, begin, e->name, "a size of more than 2^63");
        e->shape[d] = (int64_t)size;
    }
    return WK_OK;
}

static wk_status count_bytes(const parser *p, entry *e, const type_info *t)
{
    int64_t count = wk_shape_count(e->rank, e->shape), row = e->rank ? e->shape[e->rank - 1] : 1, bytes;
    char what[96];
    snprintf(what, sizeof what, "expected rows of a multiple of %d weights for %s, got %lld", t->block,
             t->name, (long long)row);
    if (row % t->block)
        return fail_at(p, e->at, e->name, what);
    if (count < 0 || __builtin_mul_overflow(count / t->block, (int64_t)t->bytes, &bytes))
        return fail_at(p, e->at, e->name, "more elements than can be counted");
    e->bytes = (size_t)bytes;
    return WK_OK;
}

static wk_status read_entry(parser *p, entry *e)
{
    uint64_t begin;
    e->at = p->at;
    WK_TRY(read_name(p, &e->name, "a tensor's name"));
    WK_TRY(read_shape(p, e));
    size_t at = p->at;
    WK_TRY(read_u32(p, &e->type, "a type"));
    const type_info *t = type_of(e->type);
    if (!t)
        return fail_at(p, at, e->name, "a type of tensor that is not known");
    WK_TRY(count_bytes(p, e, t));
    WK_TRY(read_u64(p, &begin, "an offset"));
    if (begin > p->file->map->bytes)
        return fail_at(p, p->at - 8, e->name, "an offset behind the file's end");
    e->begin = (size_t)begin;
    return WK_OK;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp((*(entry *const *)a)->name, (*(entry *const *)b)->name);
}

static wk_status index_names(const parser *p)
{
    wk_gguf *f = p->file;
    f->by_name = wk_alloc((size_t)f->count * sizeof *f->by_name + 1);
    if (!f->by_name)
        return no_memory();
    for (int64_t i = 0; i < f->count; i++)
        f->by_name[i] = &f->entries[i];
    qsort(f->by_name, (size_t)f->count, sizeof *f->by_name, compare_names);
    for (int64_t i = 1; i < f->count; i++) {
        if (strcmp(f->by_name[i - 1]->name, f->by_name[i]->name) == 0)
            return fail_at(p, f->by_name[i]->at, f->by_name[i]->name, "the name is there twice");
    }
    return WK_OK;
}

/* From offsets to places in the file. */
static wk_status place_tensors(parser *p)
{
    wk_gguf *f = p->file;
    int64_t alignment = DEFAULT_ALIGNMENT;
    bool given = wk_gguf_int(f, "general.alignment", &alignment);
    if (given && (alignment < 1 || alignment > 1 << 30 || (alignment & (alignment - 1))))
        return fail_at(p, p->at, "general.alignment", "expected a power of 2");
    size_t data = (p->at + (size_t)alignment - 1) & ~((size_t)alignment - 1);
    for (int64_t i = 0; i < f->count; i++) {
        entry *e = &f->entries[i];
        if (e->begin % (size_t)alignment)
            return fail_at(p, e->at, e->name, "expected an offset that is a multiple of the alignment");
        if (data > f->map->bytes || e->begin > f->map->bytes - data ||
            e->bytes > f->map->bytes - data - e->begin)
            return fail_at(p, e->at, e->name, "its data are behind the file's end: truncated");
        e->begin += data;
    }
    return WK_OK;
}

/* ---- the whole ---- */

static wk_status parse(parser *p)
{
    wk_gguf *f = p->file;
    uint64_t tensors, pairs;
    void *list;
    char magic[4];
    WK_TRY(read_bytes(p, magic, sizeof magic, "\"GGUF\""));
    if (memcmp(magic, "GGUF", 4) != 0)
        return wk_fail_format(call, p->path, 0, "expected a file that begins with GGUF");
    WK_TRY(read_u32(p, &f->version, "a version"));
    if (f->version != 2 && f->version != 3)
        return wk_fail_format(call, p->path, 4, "expected version 2 or 3, got %u", f->version);
    WK_TRY(read_u64(p, &tensors, "the number of tensors"));
    WK_TRY(read_u64(p, &pairs, "the number of keys"));
    WK_TRY(make_list(p, pairs, 13, sizeof *f->pairs, "keys", &list));
    f->pairs = list;
    for (f->n_pairs = 0; f->n_pairs < (int64_t)pairs;)
        WK_TRY(read_pair(p, &f->pairs[f->n_pairs++]));
    WK_TRY(make_list(p, tensors, 25, sizeof *f->entries, "tensors", &list));
    f->entries = list;
    for (f->count = 0; f->count < (int64_t)tensors;)
        WK_TRY(read_entry(p, &f->entries[f->count++]));
    WK_TRY(index_names(p));
    return place_tensors(p);
}

/* Takes over the reference to the map. */
static wk_gguf *open_map(const char *path, wk_map *map)
{
    wk_gguf *f = map ? wk_alloc(sizeof *f) : NULL;
    if (!f) {
        if (map)
            no_memory();
        wk_map_drop(map);
        return NULL;
    }
    *f = (wk_gguf){.map = map};
    if (parse(&(parser){.path = path, .file = f}) == WK_OK)
        return f;
    wk_gguf_close(f);
    return NULL;
}

wk_gguf *wk_gguf_open(const char *path) { return open_map(path, wk_map_open(call, path)); }

wk_gguf *wk_gguf_over(const char *name, void *data, size_t bytes, void (*release)(void *ctx), void *ctx)
{
    if (wk_pending())
        return NULL;
    if (!data && bytes) {
        wk_fail(WK_ERR_ARGUMENT, "gguf_over: data: expected %zu bytes, got NULL", bytes);
        return NULL;
    }
    wk_gguf *f = open_map(name ? name : "memory", wk_map_over(call, data, bytes, NULL, NULL));
    if (f) { /* only now: on failure the memory stays the caller's */
        f->map->release = release;
        f->map->ctx = ctx;
    }
    return f;
}

void wk_gguf_close(wk_gguf *f)
{
    if (!f)
        return;
    for (int64_t i = 0; i < f->n_pairs; i++) {
        wk_free(f->pairs[i].key);
        wk_free(f->pairs[i].items);
    }
    for (int64_t i = 0; i < f->count; i++)
        wk_free(f->entries[i].name);
    wk_free(f->pairs);
    wk_free(f->entries);
    wk_free(f->by_name);
    wk_map_drop(f->map);
    wk_free(f);
}

/* ---- what is in it: keys ---- */

int wk_gguf_version(const wk_gguf *f) { return f ? (int)f->version : 0; }
int64_t wk_gguf_keys(const wk_gguf *f) { return f ? f->n_pairs : 0; }
const char *wk_gguf_key(const wk_gguf *f, int64_t i)
{
    return f && i >= 0 && i < f->n_pairs ? f->pairs[i].key : NULL;
}

static const pair *find_pair(const wk_gguf *f, const char *key)
{
    for (int64_t i = 0; f && key && i < f->n_pairs; i++) {
        if (strcmp(f->pairs[i].key, key) == 0)
            return &f->pairs[i];
    }
    return NULL;
}

wk_gguf_kind wk_gguf_kind_of(const wk_gguf *f, const char *key, wk_gguf_kind *item)
{
    const pair *k = find_pair(f, key);
    if (item)
        *item = k && k->kind == WK_GGUF_ARRAY ? k->item : WK_GGUF_KIND_COUNT;
    return k ? k->kind : WK_GGUF_KIND_COUNT;
}

int64_t wk_gguf_length(const wk_gguf *f, const char *key)
{
    const pair *k = find_pair(f, key);
    return k && k->kind == WK_GGUF_ARRAY ? k->count : -1;
}

/* Element i of a pair (0 of what is no array), and its kind; NULL when there is none. */
static const char *element(const wk_gguf *f, const char *key, int64_t i, wk_gguf_kind *kind)
{
    const pair *k = find_pair(f, key);
    bool array = k && k->kind == WK_GGUF_ARRAY;
    if (!k || i < 0 || i >= (array ? k->count : 1))
        return NULL;
    *kind = array ? k->item : k->kind;
    if (*kind == WK_GGUF_STRING)
        return f->map->data + (array ? k->items[i] : k->at - sizeof(uint64_t));
    return f->map->data + k->at + i * kind_bytes(*kind);
}

int wk_gguf_int_at(const wk_gguf *f, const char *key, int64_t i, int64_t *v)
{
    wk_gguf_kind kind;
    const char *p = element(f, key, i, &kind);
    uint64_t bits = 0;
    int bytes = p ? kind_bytes(kind) : 0;
    if (bytes < 1 || kind == WK_GGUF_F32 || kind == WK_GGUF_F64)
        return 0;
    memcpy(&bits, p, (size_t)bytes);
    switch (kind) {
    case WK_GGUF_I8: *v = (int8_t)bits; break;
    case WK_GGUF_I16: *v = (int16_t)bits; break;
    case WK_GGUF_I32: *v = (int32_t)bits; break;
    default: *v = (int64_t)bits; return kind != WK_GGUF_U64 || bits <= (uint64_t)INT64_MAX;
    }
    return 1;
}

int wk_gguf_float_at(const wk_gguf *f, const char *key, int64_t i, double *v)
{
    wk_gguf_kind kind;
    const char *p = element(f, key, i, &kind);
    int64_t whole;
    float narrow;
    if (p && kind == WK_GGUF_F64) {
        memcpy(v, p, sizeof *v);
    } else if (p && kind == WK_GGUF_F32) {
        memcpy(&narrow, p, sizeof narrow);
        *v = narrow;
    } else if (wk_gguf_int_at(f, key, i, &whole)) {
        *v = (double)whole;
    } else {
        return 0;
    }
    return 1;
}

const char *wk_gguf_string_at(const wk_gguf *f, const char *key, int64_t i, size_t *size)
{
    wk_gguf_kind kind;
    const char *p = element(f, key, i, &kind);
    uint64_t length;
    if (!p || kind != WK_GGUF_STRING)
        return NULL;
    memcpy(&length, p, sizeof length);
    *size = (size_t)length;
    return p + sizeof length;
}

static bool is_single(const wk_gguf *f, const char *key)
{
    return wk_gguf_kind_of(f, key, NULL) != WK_GGUF_ARRAY;
}

int wk_gguf_int(const wk_gguf *f, const char *key, int64_t *v)
{
    return is_single(f, key) && wk_gguf_int_at(f, key, 0, v);
}

int wk_gguf_float(const wk_gguf *f, const char *key, double *v)
{
    return is_single(f, key) && wk_gguf_float_at(f, key, 0, v);
}

const char *wk_gguf_string(const wk_gguf *f, const char *key, size_t *size)
{
    return is_single(f, key) ? wk_gguf_string_at(f, key, 0, size) : NULL;
}

/* ---- tensors ---- */

static const entry *entry_at(const wk_gguf *f, int64_t i)
{
    return f && i >= 0 && i < f->count ? &f->entries[i] : NULL;
}

int64_t wk_gguf_count(const wk_gguf *f) { return f ? f->count : 0; }

int64_t wk_gguf_find(const wk_gguf *f, const char *name)
{
    if (!f || !name)
        return -1;
    entry key = {.name = (char *)name}, *p = &key;
    entry **found = bsearch(&p, f->by_name, (size_t)f->count, sizeof p, compare_names);
    return found ? *found - f->entries : -1;
}

const char *wk_gguf_name(const wk_gguf *f, int64_t i)
{
    const entry *e = entry_at(f, i);
    return e ? e->name : NULL;
}

const char *wk_gguf_type(const wk_gguf *f, int64_t i)
{
    const entry *e = entry_at(f, i);
    return e ? types[e->type].name : NULL;
}

wk_dtype wk_gguf_dtype(const wk_gguf *f, int64_t i)
{
    const entry *e = entry_at(f, i);
    return e ? (wk_dtype)types[e->type].dtype : WK_DTYPE_COUNT;
}

wk_qformat wk_gguf_format(const wk_gguf *f, int64_t i)
{
    const entry *e = entry_at(f, i);
    return e ? (wk_qformat)types[e->type].format : WK_QFORMAT_COUNT;
}

int wk_gguf_rank(const wk_gguf *f, int64_t i)
{
    const entry *e = entry_at(f, i);
    return e ? e->rank : -1;
}

const int64_t *wk_gguf_shape(const wk_gguf *f, int64_t i)
{
    const entry *e = entry_at(f, i);
    return e ? e->shape : NULL;
}

wk_tensor *wk_gguf_tensor(const wk_gguf *f, int64_t i)
{
    const entry *e = entry_at(f, i);
    if (wk_pending())
        return NULL;
    if (!e) {
        wk_fail(WK_ERR_ARGUMENT, "gguf_tensor: i: expected 0 to %lld, got %lld",
                (long long)wk_gguf_count(f) - 1, (long long)i);
        return NULL;
    }
    const type_info *t = &types[e->type];
    if (t->dtype != WK_DTYPE_COUNT)
        return wk_map_tensor(f->map, e->begin, (wk_dtype)t->dtype, e->rank, e->shape);
    if (t->format == WK_QFORMAT_COUNT) {
        wk_fail(WK_ERR_UNSUPPORTED,
                "gguf_tensor: '%.60s': expected F32, F16, BF16, F64, I16, I32, I64, Q4_0, Q8_0, Q4_K or "
                "Q6_K, got %s",
                e->name, t->name);
        return NULL;
    }
    int64_t shape[WK_MAX_RANK];
    int rank = e->rank ? e->rank : 1;
    memcpy(shape, e->shape, sizeof shape);
    shape[rank - 1] = e->shape[rank - 1] / t->block * t->bytes;
    return wk_map_tensor(f->map, e->begin, WK_U8, rank, shape);
}
