/* json.h: a strict JSON reader that pulls one value after the other out of a text and needs no memory of its
 * own, and a growing text to write JSON into.
 *
 *     wk_json j = wk_json_start(text, size);
 *     wk_json_enter(&j, '{');
 *     while (wk_json_more(&j)) {
 *         wk_json_key(&j, &key);
 *         ... wk_json_string, wk_json_int, wk_json_skip, or another wk_json_enter
 *     }
 *     wk_json_end(&j);
 *     if (j.reason) ... j.at is the byte where it stopped
 *
 * After the first thing that is wrong every call returns false and the place and the reason stay. */
#ifndef WK_IO_JSON_H
#define WK_IO_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WK_JSON_DEPTH = 32 };

typedef struct {
    const char *text;
    size_t size, at;
    int depth;
    uint32_t objects;   /* bit d: depth d is an object, not an array */
    uint32_t begun;     /* bit d: a member of depth d has been read */
    const char *reason; /* what is wrong at byte `at`; NULL: nothing so far */
} wk_json;

/* A string as it stands in the text, between the quotes and with its escapes. */
typedef struct {
    const char *text;
    size_t size;
} wk_json_raw;

wk_json wk_json_start(const void *text, size_t size);
/* The first letter of the next value: '{' '[' '"' 't' 'f' 'n' '-' or a digit; 0 at the end. */
char wk_json_peek(wk_json *j);
/* Steps into an object '{' or an array '['. */
bool wk_json_enter(wk_json *j, char open);
/* Whether the object or array has another member; steps out of it where not. */
bool wk_json_more(wk_json *j);
bool wk_json_key(wk_json *j, wk_json_raw *key);
bool wk_json_string(wk_json *j, wk_json_raw *string);
/* An integer that fits; a fraction or an exponent is refused. */
bool wk_json_int(wk_json *j, int64_t *v);
bool wk_json_number(wk_json *j, double *v);
/* Any value. */
bool wk_json_skip(wk_json *j);
/* Nothing but white space is left. */
bool wk_json_end(wk_json *j);
/* Records what is wrong at byte `at`, unless something is already; returns false. */
bool wk_json_fail(wk_json *j, size_t at, const char *reason);

/* The string with its escapes undone, as UTF-8 and with a 0 at its end, into out, which has room for
 * raw.size + 1 bytes; returns its length. */
size_t wk_json_unescape(wk_json_raw raw, char *out);
bool wk_json_equal(wk_json_raw raw, const char *text);

/* ---- Writing ---- */

/* A text that grows; once memory is short it stays as it was and failed says so. */
typedef struct {
    char *data; /* ends in a 0; NULL while nothing is in it */
    size_t size, room;
    bool failed;
} wk_text;

void wk_text_add(wk_text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The string in quotes, escaped. */
void wk_text_string(wk_text *t, const char *string);
void wk_text_free(wk_text *t);

#endif
