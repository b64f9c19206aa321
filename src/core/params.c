/* params.c: parameters by name: defaults, text, public options. */
#include <errno.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include "op.h"

size_t wk_param_bytes(const wk_param *p)
{
    switch (p->type) {
    case WK_P_LIST: return sizeof(wk_list);
    case WK_P_SCALAR: return sizeof(wk_scalar);
    case WK_P_INTS:
    case WK_P_FLOATS: return 8 * (size_t)p->count;
    case WK_P_TEXT: return (size_t)p->count;
    default: return 8;
    }
}

/* ---- text to values ---- */

/* One number from *text up to a comma or the end; *text moves behind the comma. */
static bool read_int(const char **text, int64_t *v)
{
    char *end;
    errno = 0;
    long long n = strtoll(*text, &end, 10);
    if (end == *text || errno == ERANGE || (*end && *end != ','))
        return false;
    *v = n;
    *text = *end ? end + 1 : end;
    return true;
}

/* A decimal point is a point, whatever the locale of the process says. */
static locale_t c_locale;

static void make_locale(void) { c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0); }

double wk_read_double(const char *text, char **end)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_locale);
    return c_locale ? strtod_l(text, end, c_locale) : strtod(text, end);
}

static bool read_float(const char **text, double *v)
{
    char *end;
    *v = wk_read_double(*text, &end);
    if (end == *text || (*end && *end != ','))
        return false;
    *text = *end ? end + 1 : end;
    return true;
}

/* Numbers separated by commas, at most room; the count, or -1 when one does not read. */
static int read_ints(const char *text, int64_t *v, int room)
{
    int n = 0;
    if (!*text)
        return 0;
    do {
        if (n == room || !read_int(&text, &v[n]))
            return -1;
        n++;
    } while (*text || text[-1] == ',');
    return n;
}

static int read_floats(const char *text, double *v, int room)
{
    int n = 0;
    if (!*text)
        return 0;
    do {
        if (n == room || !read_float(&text, &v[n]))
            return -1;
        n++;
    } while (*text || text[-1] == ',');
    return n;
}

/* One number stands for all of them. */
static bool spread(void *v, int n, int count)
{
    int64_t *words = v;
    for (int i = 1; n == 1 && i < count; i++)
        words[i] = words[0];
    return n == 1 || n == count;
}

static bool read_choice(const char *choices, const char *text, int64_t *v)
{
    size_t length = strlen(text);
    int64_t i = 0;
    for (const char *c = choices; c; i++) {
        size_t n = strcspn(c, "|");
        if (n == length && strncmp(c, text, n) == 0) {
            *v = i;
            return true;
        }
        c = c[n] ? c + n + 1 : NULL;
    }
    return false;
}

static bool read_scalar(const char *text, wk_scalar *s)
{
    if (read_ints(text, &s->i, 1) == 1) {
        s->f = (double)s->i;
        return true;
    }
    double f;
    if (read_floats(text, &f, 1) != 1)
        return false;
    *s = wk_scalar_of(f);
    return true;
}

static bool read_param(const wk_param *p, void *field, const char *text)
{
    wk_list *list = field;
    wk_dtype dtype;
    switch (p->type) {
    case WK_P_INT: return read_ints(text, field, 1) == 1;
    case WK_P_BOOL: return read_choice("0|1", text, field);
    case WK_P_FLOAT: return read_floats(text, field, 1) == 1;
    case WK_P_SCALAR: return read_scalar(text, field);
    case WK_P_INTS: return spread(field, read_ints(text, field, p->count), p->count);
    case WK_P_FLOATS: return spread(field, read_floats(text, field, p->count), p->count);
    case WK_P_LIST:
        list->n = strcmp(text, "all") == 0 ? 0 : read_ints(text, list->v, WK_MAX_RANK);
        return list->n >= 0;
    case WK_P_ENUM: return read_choice(p->choices, text, field);
    case WK_P_TEXT: return (size_t)snprintf(field, (size_t)p->count, "%s", text) < (size_t)p->count;
    case WK_P_DTYPE:
        dtype = wk_dtype_parse(text);
        *(int64_t *)field = dtype;
        return dtype != WK_DTYPE_COUNT;
    }
    return false;
}

/* What a text has to look like, for messages. */
static const char *expected(const wk_param *p, char *buf, size_t room)
{
    switch (p->type) {
    case WK_P_INT: return "an integer";
    case WK_P_BOOL: return "0 or 1";
    case WK_P_FLOAT:
    case WK_P_SCALAR: return "a number";
    case WK_P_LIST: return "up to 8 integers like 0,1";
    case WK_P_ENUM: snprintf(buf, room, "one of %s", p->choices); return buf;
    case WK_P_DTYPE: return "a dtype like f32";
    case WK_P_TEXT: snprintf(buf, room, "a text of fewer than %d letters", p->count); return buf;
    case WK_P_INTS:
    case WK_P_FLOATS:
        snprintf(buf, room, p->count > 1 ? "one number or %d like 2,2" : "one number", p->count);
        return buf;
    }
    return "?";
}

/* ---- by name ---- */

/* The fallback of a parameter, which may be a word. */
static void read_default(const wk_param *p, char *field)
{
    if (read_param(p, field, p->fallback))
        return;
    bool floats = p->type == WK_P_FLOAT || p->type == WK_P_FLOATS;
    for (size_t at = 0; at < wk_param_bytes(p); at += 8)
        memcpy(field + at, floats ? (const void *)&(double){NAN} : &(int64_t){WK_ABSENT}, 8);
}

void wk_params_defaults(const wk_op *op, void *params)
{
    memset(params, 0, WK_PARAMS_BYTES);
    for (const wk_param *p = op->params; p && p->name; p++) {
        if (p->fallback)
            read_default(p, (char *)params + p->offset);
    }
}

/* dim and dims are synonyms. */
static bool same_name(const char *a, const char *b)
{
    return strcmp(a, b) == 0 || (strncmp(a, "dim", 3) == 0 && strncmp(b, "dim", 3) == 0 && strlen(a) <= 4 &&
                                 strlen(b) <= 4 && (!a[3] || a[3] == 's') && (!b[3] || b[3] == 's'));
}

wk_status wk_params_parse(const wk_op *op, void *params, const char *name, const char *text, unsigned *seen)
{
    for (const wk_param *p = op->params; p && p->name; p++) {
        if (!same_name(p->name, name))
            continue;
        char buf[120];
        if (p->fallback && strcmp(text, p->fallback) == 0)
            read_default(p, (char *)params + p->offset);
        else if (!read_param(p, (char *)params + p->offset, text))
            return wk_fail(WK_ERR_PARAM, "%s: %s: expected %s, got '%.60s'", op->name, name,
                           expected(p, buf, sizeof buf), text);
        *seen |= 1u << (p - op->params);
        return WK_OK;
    }
    char names[160] = "none";
    size_t at = 0;
    for (const wk_param *p = op->params; p && p->name && at < sizeof names; p++)
        at += (size_t)snprintf(names + at, sizeof names - at, "%s%s", at ? ", " : "", p->name);
    return wk_fail(WK_ERR_PARAM, "%s: %.40s: no such parameter, expected %s", op->name, name, names);
}

wk_status wk_params_complete(const wk_op *op, unsigned seen)
{
    for (const wk_param *p = op->params; p && p->name; p++) {
        char buf[120];
        if (!p->fallback && !(seen >> (p - op->params) & 1))
            return wk_fail(WK_ERR_PARAM, "%s: %s: required: expected %s", op->name, p->name,
                           expected(p, buf, sizeof buf));
    }
    return WK_OK;
}

static bool all_zero(const char *bytes, size_t n)
{
    while (n > 0 && bytes[n - 1] == 0)
        n--;
    return n == 0;
}

/* The words of one field one by one, so that {2} of {2, 0} keeps its 2 and gets the other's fallback. */
static void take_words(char *to, const char *from, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += 8) {
        if (!all_zero(from + i, 8))
            memcpy(to + i, from + i, 8);
    }
}

void wk_params_from_options(const wk_op *op, void *params, const void *options, size_t size)
{
    wk_params_defaults(op, params);
    if (!options)
        return;
    for (const wk_param *p = op->params; p && p->name; p++) {
        size_t bytes = wk_param_bytes(p);
        if (p->offset + bytes <= size) /* an older caller's struct ends earlier */
            take_words((char *)params + p->offset, (const char *)options + p->offset, bytes);
    }
}
