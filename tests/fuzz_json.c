/* fuzz_json.c: any bytes as JSON: skipped as a whole, and walked value by value, with the same verdict. */
#include "core/memory.h"
#include "fuzz.h"
#include "io/json.h"

/* Walks what comes next, looking at every string and number. */
static void walk(wk_json *j, int depth)
{
    wk_json_raw raw;
    int64_t whole;
    double number;
    char first = wk_json_peek(j);
    if (first == '{' || first == '[') {
        if (!wk_json_enter(j, first))
            return;
        while (wk_json_more(j)) {
            if (first == '{' && !wk_json_key(j, &raw))
                return;
            walk(j, depth + 1);
        }
        return;
    }
    if (first == '"' && wk_json_string(j, &raw)) {
        char *text = malloc(raw.size + 1);
        FUZZ_NEED(text && wk_json_unescape(raw, text) <= raw.size);
        wk_text out = {0};
        if (!memchr(text, 0, wk_json_unescape(raw, text))) { /* written and read again it is the same */
            wk_text_string(&out, text);
            wk_json again = wk_json_start(out.data, out.size);
            FUZZ_NEED(wk_json_string(&again, &raw) && wk_json_end(&again));
            char *copy = malloc(raw.size + 1);
            FUZZ_NEED(copy && wk_json_unescape(raw, copy) == strlen(text) && strcmp(copy, text) == 0);
            free(copy);
        }
        wk_text_free(&out);
        free(text);
        return;
    }
    wk_json at = *j;
    if ((first == '-' || (first >= '0' && first <= '9')) && wk_json_number(&at, &number)) {
        *j = at;
        return;
    }
    at = *j;
    if (wk_json_int(&at, &whole))
        *j = at;
    else
        wk_json_skip(j);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    wk_json skipped = wk_json_start(data, size), walked = skipped;
    wk_json_skip(&skipped);
    wk_json_end(&skipped);
    walk(&walked, 0);
    wk_json_end(&walked);
    FUZZ_NEED(skipped.at <= size && walked.at <= size);
    FUZZ_NEED(!skipped.reason == !walked.reason && skipped.at == walked.at);
    fuzz_accepted += !walked.reason;
    return 0;
}

#ifdef FUZZ_MAIN
static const fuzz_input fuzz_seeds[] = {
    FUZZ_TEXT("{\"a\": [1, -2.5e3, true, false, null], \"b\": {\"c\": \"\\u00e9\\ud83d\\ude00\\n\\\"\"}}"),
    FUZZ_TEXT("[[[[[[[[]]]]]]]]"),
    FUZZ_TEXT("\"\xc3\xa9\xf0\x9f\x98\x80\""),
    {0}};
static const char *const fuzz_words[] = {
    "{",    "}",    "[",   "]", ",", ":",        "\"",     "\\", "\\u", "\\ud83d\\ude00",
    "true", "null", "1e5", "-", ".", "[[[[[[[[", "\"a\":", NULL};
#endif
