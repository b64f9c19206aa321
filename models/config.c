/* config.c: typed reads from a model's JSON files. A key is searched from the top each time: the files are small. */
#include "config.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "error.h"
#include "file.h"

struct wm_config {
    char *path;
    wm_map map;
};

/* Nothing but one object, right to its end. */
static bool check_json(const wm_config *c)
{
    wk_json j = wk_json_start(c->map.data ? c->map.data : "", c->map.size);
    if (wk_json_peek(&j) != '{')
        wk_json_fail(&j, j.at, "expected an object");
    wk_json_skip(&j);
    wk_json_end(&j);
    if (j.reason)
        wm_fail(WK_ERR_FORMAT, "%s: byte %zu: %s", c->path, j.at, j.reason);
    return !j.reason;
}

wm_config *wm_config_open(const char *folder, const char *name)
{
    wm_config *c = calloc(1, sizeof *c);
    if (!c) {
        wm_fail(WK_ERR_MEMORY, "%s: out of memory", name);
        return NULL;
    }
    c->path = wm_path(folder, name);
    if (!c->path || !wm_map_open(&c->map, c->path) || !check_json(c)) {
        wm_config_close(c);
        return NULL;
    }
    return c;
}

void wm_config_close(wm_config *c)
{
    if (!c)
        return;
    wm_map_close(&c->map);
    free(c->path);
    free(c);
}

const char *wm_config_path(const wm_config *c) { return c->path; }

/* Steps into the object that j stands at, to the value of the key's first part of that length. */
static bool find_member(wk_json *j, const char *key, size_t length)
{
    wk_json_raw name;
    if (wk_json_peek(j) != '{' || !wk_json_enter(j, '{'))
        return false;
    while (wk_json_more(j) && wk_json_key(j, &name)) {
        if (name.size == length && memcmp(name.text, key, length) == 0)
            return true;
        wk_json_skip(j);
    }
    return false;
}

bool wm_config_find(const wm_config *c, const char *key, wk_json *j)
{
    *j = wk_json_start(c->map.data, c->map.size);
    for (;;) {
        size_t length = strcspn(key, ".");
        if (!find_member(j, key, length))
            return false;
        if (!key[length])
            return wk_json_peek(j) != 'n';
        key += length + 1;
    }
}

bool wm_config_has(const wm_config *c, const char *key)
{
    wk_json j;
    return wm_config_find(c, key, &j);
}

static wk_status missing(const wm_config *c, const char *key)
{
    return wm_fail(WK_ERR_FORMAT, "%s: %s is missing", c->path, key);
}

/* The integer that j stands at. */
static int64_t read_int(const wm_config *c, const char *key, wk_json *j, int64_t lo, int64_t hi)
{
    int64_t v;
    if (!wk_json_int(j, &v)) {
        wm_fail(WK_ERR_FORMAT, "%s: %s: expected an integer", c->path, key);
        return lo;
    }
    if (v >= lo && v <= hi)
        return v;
    wm_fail(WK_ERR_PARAM, "%s: %s: expected %lld to %lld, got %lld", c->path, key, (long long)lo,
            (long long)hi, (long long)v);
    return lo;
}

int64_t wm_config_int(const wm_config *c, const char *key, int64_t lo, int64_t hi)
{
    wk_json j;
    if (wm_config_find(c, key, &j))
        return read_int(c, key, &j, lo, hi);
    missing(c, key);
    return lo;
}

int64_t wm_config_int_or(const wm_config *c, const char *key, int64_t lo, int64_t hi, int64_t fallback)
{
    return wm_config_has(c, key) ? wm_config_int(c, key, lo, hi) : fallback;
}

double wm_config_number(const wm_config *c, const char *key)
{
    wk_json j;
    double v = 0;
    if (!wm_config_find(c, key, &j))
        missing(c, key);
    else if (!wk_json_number(&j, &v))
        wm_fail(WK_ERR_FORMAT, "%s: %s: expected a number", c->path, key);
    return v;
}

double wm_config_number_or(const wm_config *c, const char *key, double fallback)
{
    return wm_config_has(c, key) ? wm_config_number(c, key) : fallback;
}

bool wm_config_bool_or(const wm_config *c, const char *key, bool fallback)
{
    wk_json j;
    if (!wm_config_find(c, key, &j))
        return fallback;
    char first = wk_json_peek(&j);
    if (first != 't' && first != 'f')
        wm_fail(WK_ERR_FORMAT, "%s: %s: expected true or false", c->path, key);
    return first == 't';
}

int wm_config_ints(const wm_config *c, const char *key, int64_t lo, int64_t hi, int64_t *out, int max)
{
    wk_json j;
    int n = 0;
    if (!wm_config_find(c, key, &j))
        return 0;
    if (wk_json_peek(&j) != '[') {
        out[0] = read_int(c, key, &j, lo, hi);
        return 1;
    }
    wk_json_enter(&j, '[');
    for (; wk_json_more(&j) && wm_error_status() == WK_OK; n++) {
        if (n == max) {
            wm_fail(WK_ERR_FORMAT, "%s: %s: expected at most %d numbers", c->path, key, max);
            return n;
        }
        out[n] = read_int(c, key, &j, lo, hi);
    }
    return n;
}

char *wm_config_string(const wm_config *c, const char *key, char *out, size_t room)
{
    wk_json j;
    wk_json_raw raw;
    out[0] = 0;
    if (!wm_config_find(c, key, &j))
        return out;
    if (!wk_json_string(&j, &raw))
        wm_fail(WK_ERR_FORMAT, "%s: %s: expected a string", c->path, key);
    else if (raw.size >= room)
        wm_fail(WK_ERR_FORMAT, "%s: %s: longer than %zu bytes", c->path, key, room - 1);
    else
        wk_json_unescape(raw, out);
    return out;
}
