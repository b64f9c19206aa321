/* safetensors.c: reading and writing safetensors files.
 *
 * A file is 8 bytes with the length of the header (little-endian), the header, and the data:
 *     {"__metadata__": {"k": "v"}, "x": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...}
 * Offsets count from the end of the header; together the tensors cover the data, each byte once. All of that
 * is checked when the file is opened, so that a tensor is a view on the mapping without further ado. */
#include <stdio.h>
#include <stdlib.h>
#include "../core/memory.h"
#include "file.h"
#include "json.h"
#include "wick/io.h"

enum { LENGTH_BYTES = 8, MAX_HEADER = 100 * 1000 * 1000 };

typedef struct {
    const char *name;
    wk_dtype dtype;
    int rank;
    int64_t shape[WK_MAX_RANK];
    uint64_t begin, end; /* in the data */
    size_t at;           /* where the header speaks of it, in the file */
} entry;

struct wk_safetensors {
    wk_map *map;
    size_t data; /* where the data begin */
    entry *entries;
    entry **by_name; /* sorted */
    int64_t count, room;
    char *names; /* one after the other */
};

/* What the reader needs on the way. */
typedef struct {
    const char *path;
    wk_safetensors *file;
    wk_json json;
    char *name_end; /* of names */
} parser;

static const char call[] = "safetensors_open";

static wk_status no_memory(const char *what) { return wk_fail(WK_ERR_MEMORY, "%s: out of memory", what); }

/* ---- dtypes ---- */

static const char *const dtype_names[WK_DTYPE_COUNT] = {
    [WK_F32] = "F32", [WK_F16] = "F16", [WK_BF16] = "BF16", [WK_F64] = "F64", [WK_U8] = "U8",
    [WK_U32] = "U32", [WK_I64] = "I64", [WK_I32] = "I32",   [WK_I16] = "I16"};

static wk_dtype find_dtype(wk_json_raw name)
{
    for (int d = 0; d < WK_DTYPE_COUNT; d++) {
        if (wk_json_equal(name, dtype_names[d]))
            return (wk_dtype)d;
    }
    return wk_json_equal(name, "BOOL") ? WK_U8 : WK_DTYPE_COUNT;
}

/* ---- the header ---- */

/* What the JSON reader found wrong, with the byte of the file. */
static wk_status json_status(const parser *p)
{
    if (!p->json.reason)
        return WK_OK;
    return wk_fail_format(call, p->path, LENGTH_BYTES + p->json.at, "the header is not what it has to be: %s",
                          p->json.reason);
}

static wk_status fail_at(const parser *p, size_t at, const entry *e, const char *what)
{
    return wk_fail_format(call, p->path, LENGTH_BYTES + at, "tensor '%.60s': %s", e->name, what);
}

static wk_status read_dtype(parser *p, entry *e)
{
    wk_json_raw text;
    wk_json_peek(&p->json);
    size_t at = p->json.at;
    if (!wk_json_string(&p->json, &text))
        return json_status(p);
    e->dtype = find_dtype(text);
    if (e->dtype != WK_DTYPE_COUNT)
        return WK_OK;
    char what[160];
    snprintf(what, sizeof what,
             "dtype: expected F32, F16, BF16, F64, U8, U32, I64, I32, I16 or BOOL, got %.*s",
             (int)(text.size < 20 ? text.size : 20), text.text);
    return fail_at(p, at, e, what);
}

static wk_status read_shape(parser *p, entry *e)
{
    wk_json_enter(&p->json, '[');
    while (wk_json_more(&p->json)) {
        wk_json_peek(&p->json);
        size_t at = p->json.at;
        int64_t size;
        if (!wk_json_int(&p->json, &size))
            break;
        if (size < 0)
            return fail_at(p, at, e, "shape: expected sizes of 0 or more");
        if (e->rank == WK_MAX_RANK)
            return fail_at(p, at, e, "shape: expected at most 8 dimensions");
        e->shape[e->rank++] = size;
    }
    return json_status(p);
}

static wk_status read_offsets(parser *p, entry *e)
{
    int64_t v[2] = {0, 0};
    int n = 0;
    wk_json_peek(&p->json);
    size_t at = p->json.at;
    wk_json_enter(&p->json, '[');
    while (wk_json_more(&p->json)) {
        int64_t offset;
        if (!wk_json_int(&p->json, &offset))
            break;
        if (n < 2)
            v[n] = offset;
        n++;
    }
    WK_TRY(json_status(p));
    if (n != 2 || v[0] < 0 || v[1] < v[0])
        return fail_at(p, at, e,
                       "data_offsets: expected two, the first no less than 0 and the second no "
                       "less than the first");
    e->begin = (uint64_t)v[0];
    e->end = (uint64_t)v[1];
    e->at = at;
    return WK_OK;
}

/* The bytes have to be those of shape and dtype, inside the data. */
static wk_status check_entry(const parser *p, const entry *e)
{
    const wk_safetensors *f = p->file;
    int64_t count = wk_shape_count(e->rank, e->shape), bytes;
    char what[160];
    if (count < 0 || __builtin_mul_overflow(count, (int64_t)wk_bytes(e->dtype), &bytes))
        return fail_at(p, e->at, e, "shape: more elements than can be counted");
    if ((uint64_t)bytes != e->end - e->begin) {
        snprintf(what, sizeof what, "data_offsets: expected %lld bytes for its shape and dtype, got %llu",
                 (long long)bytes, (unsigned long long)(e->end - e->begin));
        return fail_at(p, e->at, e, what);
    }
    if (e->end <= f->map->bytes - f->data)
        return WK_OK;
    snprintf(what, sizeof what,
             "data_offsets: it ends at byte %llu of the data, but the file has %zu: truncated",
             (unsigned long long)e->end, f->map->bytes - f->data);
    return fail_at(p, e->at, e, what);
}

static wk_status read_entry(parser *p, entry *e)
{
    static const char *const fields[] = {"dtype", "shape", "data_offsets"};
    static wk_status (*const readers[])(parser *, entry *) = {read_dtype, read_shape, read_offsets};
    unsigned seen = 0;
    wk_json_raw key;
    wk_json_peek(&p->json);
    size_t begin = p->json.at;
    wk_json_enter(&p->json, '{');
    while (wk_json_more(&p->json)) {
        wk_json_peek(&p->json);
        size_t at = p->json.at;
        int i = 0;
        if (!wk_json_key(&p->json, &key))
            break;
        while (i < 3 && !wk_json_equal(key, fields[i]))
            i++;
        if (i == 3 || seen >> i & 1)
            return fail_at(p, at, e,
                           i == 3 ? "expected only dtype, shape and data_offsets" : "a field twice");
        seen |= 1u << i;
        WK_TRY(readers[i](p, e));
    }
    WK_TRY(json_status(p));
    char what[40];
    for (int i = 0; i < 3 && seen != 7; i++) {
        snprintf(what, sizeof what, "%s is missing", fields[i]);
        if (!(seen >> i & 1))
            return fail_at(p, begin, e, what);
    }
    return check_entry(p, e);
}

/* Texts by name; wick has no use for them, but they have to be that. */
static wk_status read_metadata(parser *p)
{
    wk_json_raw key, value;
    wk_json_enter(&p->json, '{');
    while (wk_json_more(&p->json) && wk_json_key(&p->json, &key))
        wk_json_string(&p->json, &value);
    return json_status(p);
}

static wk_status add_entry(parser *p, wk_json_raw key, size_t at)
{
    wk_safetensors *f = p->file;
    if (f->count == f->room) {
        int64_t room = f->room ? 2 * f->room : 64;
        entry *bigger = wk_realloc(f->entries, (size_t)room * sizeof *bigger);
        if (!bigger)
            return no_memory(call);
        f->entries = bigger;
        f->room = room;
    }
    entry *e = &f->entries[f->count++];
    *e = (entry){.name = p->name_end};
    size_t n = wk_json_unescape(key, p->name_end);
    if (strlen(p->name_end) != n)
        return fail_at(p, at, e, "expected a name without a zero in it");
    p->name_end += n + 1;
    return read_entry(p, e);
}

static wk_status read_header(parser *p)
{
    wk_json_raw key;
    bool metadata = false;
    wk_json_enter(&p->json, '{');
    while (wk_json_more(&p->json)) {
        wk_json_peek(&p->json);
        size_t at = p->json.at;
        if (!wk_json_key(&p->json, &key))
            break;
        if (!wk_json_equal(key, "__metadata__")) {
            WK_TRY(add_entry(p, key, at));
            continue;
        }
        if (metadata)
            return wk_fail_format(call, p->path, LENGTH_BYTES + at, "__metadata__ twice");
        metadata = true;
        WK_TRY(read_metadata(p));
    }
    wk_json_end(&p->json);
    return json_status(p);
}

/* ---- the tensors together ---- */

static int compare_names(const void *a, const void *b)
{
    return strcmp((*(entry *const *)a)->name, (*(entry *const *)b)->name);
}

static int compare_places(const void *a, const void *b)
{
    const entry *x = *(entry *const *)a, *y = *(entry *const *)b;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return x->end != y->end ? (x->end < y->end ? -1 : 1) : 0;
}

/* Every byte of the data belongs to one tensor. */
static wk_status check_places(const parser *p)
{
    wk_safetensors *f = p->file;
    uint64_t end = 0;
    char what[120];
    qsort(f->by_name, (size_t)f->count, sizeof *f->by_name, compare_places);
    for (int64_t i = 0; i < f->count; i++) {
        const entry *e = f->by_name[i];
        if (e->begin != end) {
            snprintf(what, sizeof what,
                     "data_offsets: %s: expected it to begin at byte %llu of the data, got %llu",
                     e->begin < end ? "an overlap" : "a gap", (unsigned long long)end,
                     (unsigned long long)e->begin);
            return fail_at(p, e->at, e, what);
        }
        end = e->end;
    }
    if (end != f->map->bytes - f->data)
        return wk_fail_format(call, p->path, f->data + end, "%llu bytes behind the last tensor",
                              (unsigned long long)(f->map->bytes - f->data - end));
    return WK_OK;
}

static wk_status index_names(const parser *p)
{
    wk_safetensors *f = p->file;
    qsort(f->by_name, (size_t)f->count, sizeof *f->by_name, compare_names);
    for (int64_t i = 1; i < f->count; i++) {
        const entry *a = f->by_name[i - 1], *b = f->by_name[i];
        if (strcmp(a->name, b->name) == 0)
            return fail_at(p, a->at > b->at ? a->at : b->at, b, "the name is there twice");
    }
    return WK_OK;
}

static wk_status parse(parser *p)
{
    wk_safetensors *f = p->file;
    uint64_t length = 0;
    if (f->map->bytes < LENGTH_BYTES)
        return wk_fail_format(call, p->path, f->map->bytes,
                              "truncated: expected 8 bytes with the header's length");
    memcpy(&length, f->map->data, LENGTH_BYTES);
    if (length > MAX_HEADER)
        return wk_fail_format(call, p->path, 0, "expected a header of at most 100000000 bytes, got %llu",
                              (unsigned long long)length);
    if (length > f->map->bytes - LENGTH_BYTES)
        return wk_fail_format(call, p->path, 0, "truncated: a header of %llu bytes in a file of %zu",
                              (unsigned long long)length, f->map->bytes);
    f->data = LENGTH_BYTES + (size_t)length;
    f->names = wk_alloc((size_t)length + 1); /* a name and its 0 take no more than the text and its quotes */
    if (!f->names)
        return no_memory(call);
    p->name_end = f->names;
    p->json = wk_json_start(f->map->data + LENGTH_BYTES, (size_t)length);
    WK_TRY(read_header(p));
    f->by_name = wk_alloc((size_t)f->count * sizeof *f->by_name);
    if (!f->by_name)
        return no_memory(call);
    for (int64_t i = 0; i < f->count; i++)
        f->by_name[i] = &f->entries[i];
    WK_TRY(check_places(p));
    return index_names(p);
}

/* Takes over the reference to the map. */
static wk_safetensors *open_map(const char *path, wk_map *map)
{
    wk_safetensors *f = map ? wk_alloc(sizeof *f) : NULL;
    if (!f) {
        if (map)
            no_memory(call);
        wk_map_drop(map);
        return NULL;
    }
    *f = (wk_safetensors){.map = map};
    parser p = {.path = path, .file = f};
    if (parse(&p) == WK_OK)
        return f;
    wk_safetensors_close(f);
    return NULL;
}

wk_safetensors *wk_safetensors_open(const char *path) { return open_map(path, wk_map_open(call, path)); }

wk_safetensors *wk_safetensors_over(const char *name, void *data, size_t bytes, void (*release)(void *ctx),
                                    void *ctx)
{
    if (wk_pending())
        return NULL;
    if (!data && bytes) {
        wk_fail(WK_ERR_ARGUMENT, "safetensors_over: data: expected %zu bytes, got NULL", bytes);
        return NULL;
    }
    wk_safetensors *f = open_map(name ? name : "memory", wk_map_over(call, data, bytes, NULL, NULL));
    if (f) { /* only now: on failure the memory stays the caller's */
        f->map->release = release;
        f->map->ctx = ctx;
    }
    return f;
}

void wk_safetensors_close(wk_safetensors *f)
{
    if (!f)
        return;
    wk_map_drop(f->map);
    wk_free(f->names);
    wk_free(f->by_name);
    wk_free(f->entries);
    wk_free(f);
}

/* ---- what is in it ---- */

static const entry *entry_at(const wk_safetensors *f, int64_t i)
{
    return f && i >= 0 && i < f->count ? &f->entries[i] : NULL;
}

int64_t wk_safetensors_count(const wk_safetensors *f) { return f ? f->count : 0; }

int64_t wk_safetensors_find(const wk_safetensors *f, const char *name)
{
    if (!f || !name)
        return -1;
    entry key = {.name = name}, *p = &key;
    entry **found = bsearch(&p, f->by_name, (size_t)f->count, sizeof p, compare_names);
    return found ? *found - f->entries : -1;
}

const char *wk_safetensors_name(const wk_safetensors *f, int64_t i)
{
    const entry *e = entry_at(f, i);
    return e ? e->name : NULL;
}

wk_dtype wk_safetensors_dtype(const wk_safetensors *f, int64_t i)
{
    const entry *e = entry_at(f, i);
    return e ? e->dtype : WK_DTYPE_COUNT;
}

int wk_safetensors_rank(const wk_safetensors *f, int64_t i)
{
    const entry *e = entry_at(f, i);
    return e ? e->rank : -1;
}

const int64_t *wk_safetensors_shape(const wk_safetensors *f, int64_t i)
{
    const entry *e = entry_at(f, i);
    return e ? e->shape : NULL;
}

wk_tensor *wk_safetensors_tensor(const wk_safetensors *f, int64_t i)
{
    const entry *e = entry_at(f, i);
    if (wk_pending())
        return NULL;
    if (!e) {
        wk_fail(WK_ERR_ARGUMENT, "safetensors_tensor: %s",
                f ? "i: expected the number of a tensor of the file"
                  : "file: expected an open file, got NULL");
        return NULL;
    }
    return wk_map_tensor(f->map, f->data + e->begin, e->dtype, e->rank, e->shape);
}

wk_tensor *wk_safetensors_get(const wk_safetensors *f, const char *name)
{
    int64_t i = wk_safetensors_find(f, name);
    if (i >= 0)
        return wk_safetensors_tensor(f, i);
    wk_fail(WK_ERR_ARGUMENT, "safetensors_get: name: expected the name of a tensor of the file, got '%.100s'",
            name ? name : "NULL");
    return NULL;
}

/* ---- writing ---- */

static const char save[] = "safetensors_save";

static wk_status check_save(int n, const char *const *names, wk_tensor *const *tensors)
{
    if (n < 0 || (n > 0 && (!names || !tensors)))
        return wk_fail(WK_ERR_ARGUMENT, "%s: expected n of 0 or more, names and tensors", save);
    for (int i = 0; i < n; i++) {
        if (!names[i] || !tensors[i])
            return wk_fail(WK_ERR_ARGUMENT, "%s: %s: number %d is NULL", save, names[i] ? "tensors" : "names",
                           i);
        if (strcmp(names[i], "__metadata__") == 0)
            return wk_fail(WK_ERR_ARGUMENT, "%s: names: __metadata__ is no name for a tensor", save);
    }
    return WK_OK;
}

static uint64_t tensor_bytes(const wk_tensor *t) { return (uint64_t)wk_count(t) * wk_bytes(t->dtype); }

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static wk_status check_names(int n, const char *const *names)
{
    const char **sorted = wk_alloc((size_t)n * sizeof *sorted);
    wk_status status = WK_OK;
    if (!sorted)
        return no_memory(save);
    for (int i = 0; i < n; i++)
        sorted[i] = names[i];
    qsort(sorted, (size_t)n, sizeof *sorted, compare_texts);
    for (int i = 1; i < n && status == WK_OK; i++) {
        if (strcmp(sorted[i - 1], sorted[i]) == 0)
            status = wk_fail(WK_ERR_ARGUMENT, "%s: names: '%.100s' is there twice", save, sorted[i]);
    }
    wk_free(sorted);
    return status;
}

/* Data lie in the order of their elements' size, the largest first: so all are aligned without gaps. */
static const size_t sizes[] = {8, 4, 2, 1};

static void place(int n, wk_tensor *const *tensors, uint64_t *begins)
{
    uint64_t at = 0;
    for (int s = 0; s < 4; s++) {
        for (int i = 0; i < n; i++) {
            if (wk_bytes(tensors[i]->dtype) == sizes[s]) {
                begins[i] = at;
                at += tensor_bytes(tensors[i]);
            }
        }
    }
}

static void add_header_entry(wk_text *h, const char *name, const wk_tensor *t, uint64_t begin)
{
    wk_text_string(h, name);
    wk_text_add(h, ":{\"dtype\":\"%s\",\"shape\":[", dtype_names[t->dtype]);
    for (int d = 0; d < t->rank; d++)
        wk_text_add(h, d ? ",%lld" : "%lld", (long long)t->shape[d]);
    wk_text_add(h, "],\"data_offsets\":[%llu,%llu]}", (unsigned long long)begin,
                (unsigned long long)(begin + tensor_bytes(t)));
}

/* The header in the order of the names, ended by spaces so that the data begin at a multiple of 8. */
static wk_status make_header(wk_text *h, int n, const char *const *names, wk_tensor *const *tensors)
{
    uint64_t *begins = wk_alloc((size_t)n * sizeof *begins);
    if (!begins)
        return no_memory(save);
    place(n, tensors, begins);
    wk_text_add(h, "{");
    for (int i = 0; i < n; i++) {
        wk_text_add(h, "%s", i ? "," : "");
        add_header_entry(h, names[i], tensors[i], begins[i]);
    }
    wk_text_add(h, "}");
    wk_text_add(h, "%*s", (int)(-h->size & 7), "");
    wk_free(begins);
    if (h->failed)
        return no_memory(save);
    wk_json j = wk_json_start(h->data, h->size);
    if (h->size > MAX_HEADER || !wk_json_skip(&j))
        return wk_fail(WK_ERR_ARGUMENT, "%s: names: expected UTF-8 and a header of at most 100000000 bytes",
                       save);
    return WK_OK;
}

static wk_status write_all(wk_writer *w, const wk_text *h, int n, wk_tensor *const *tensors)
{
    uint64_t length = h->size;
    WK_TRY(wk_writer_write(w, &length, LENGTH_BYTES));
    WK_TRY(wk_writer_write(w, h->data, h->size));
    for (int s = 0; s < 4; s++) {
        for (int i = 0; i < n; i++) {
            if (wk_bytes(tensors[i]->dtype) == sizes[s])
                WK_TRY(wk_writer_tensor(w, tensors[i]));
        }
    }
    return WK_OK;
}

wk_status wk_safetensors_save(const char *path, int n, const char *const *names, wk_tensor *const *tensors)
{
    if (wk_pending())
        return wk_error_status();
    WK_TRY(check_save(n, names, tensors));
    WK_TRY(check_names(n, names));
    wk_text header = {0};
    wk_writer w;
    wk_status status = make_header(&header, n, names, tensors);
    if (status == WK_OK)
        status = wk_writer_open(&w, save, path);
    if (status == WK_OK)
        status = wk_writer_close(&w, write_all(&w, &header, n, tensors));
    wk_text_free(&header);
    return status;
}
