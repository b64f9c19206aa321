/* config.h: typed reads from a model's JSON files (config.json and its like).
 *
 * A key may be a path: "rope_scaling.factor". A value that is null counts as absent. What is missing, of another kind or
 * out of its range is an error that names the file and the key, and the call gives its lowest value or the fallback: a
 * config is read from top to bottom and checked once, at the end, with wm_error_status. */
#ifndef WM_CONFIG_H
#define WM_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "io/json.h"

typedef struct wm_config wm_config;

/* The file of that name in the folder; NULL with an error when it cannot be read or is no JSON object. */
wm_config *wm_config_open(const char *folder, const char *name);
/* NULL is fine. */
void wm_config_close(wm_config *c);
/* The file's path, for messages. */
const char *wm_config_path(const wm_config *c);

bool wm_config_has(const wm_config *c, const char *key);
/* An integer from lo to hi. */
int64_t wm_config_int(const wm_config *c, const char *key, int64_t lo, int64_t hi);
int64_t wm_config_int_or(const wm_config *c, const char *key, int64_t lo, int64_t hi, int64_t fallback);
double wm_config_number(const wm_config *c, const char *key);
double wm_config_number_or(const wm_config *c, const char *key, double fallback);
bool wm_config_bool_or(const wm_config *c, const char *key, bool fallback);
/* Integers from lo to hi, an array of them or a single one, into out; returns how many (0 when absent), an error when
 * there are more than max. */
int wm_config_ints(const wm_config *c, const char *key, int64_t lo, int64_t hi, int64_t *out, int max);
/* A string into out, "" when absent; an error when it has no room. Returns out. */
char *wm_config_string(const wm_config *c, const char *key, char *out, size_t room);
/* A reader that stands at the value, for what the above do not cover; false, without an error, when absent. */
bool wm_config_find(const wm_config *c, const char *key, wk_json *j);

#endif
