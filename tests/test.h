/* test.h: checks that count. A program makes its checks in any order and thread and ends with
 * `return test_end();`, which prints "N passed, M failed" and gives the exit status: 0 when all passed, 77 when
 * everything was skipped, 1 otherwise. Checks go on after a failure. */
#ifndef WK_TESTS_TEST_H
#define WK_TESTS_TEST_H

#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include "wick/core.h"

enum { TEST_SKIPPED = 77, TEST_MAX_SHOWN = 40 };

static atomic_long test_passed, test_failed, test_skipped;

/* Counts one check; the text says what went wrong. Returns ok. */
__attribute__((format(printf, 4, 5))) static inline bool test_check(bool ok, const char *file, int line,
                                                                    const char *format, ...)
{
    if (ok) {
        atomic_fetch_add(&test_passed, 1);
        return true;
    }
    if (atomic_fetch_add(&test_failed, 1) < TEST_MAX_SHOWN) {
        char text[1200];
        va_list args;
        va_start(args, format);
        vsnprintf(text, sizeof text, format, args);
        va_end(args);
        fprintf(stderr, "%s:%d: %s\n", file, line, text);
    }
    return false;
}

static inline bool test_str(const char *got, const char *want, const char *file, int line, const char *what)
{
    bool same = got && want ? strcmp(got, want) == 0 : got == want;
    return test_check(same, file, line, "%s: got \"%s\", expected \"%s\"", what, got ? got : "(NULL)",
                      want ? want : "(NULL)");
}

/* The pending error has the status and the word in its message; it is cleared. */
static inline bool test_error(bool refused, wk_status status, const char *word, const char *file, int line,
                              const char *what)
{
    bool right = refused && wk_error_status() == status && strstr(wk_error(), word);
    test_check(right, file, line, "%s: %s, %s: '%s'; expected %s with '%s'", what,
               refused ? "refused" : "not refused", wk_status_name(wk_error_status()), wk_error(),
               wk_status_name(status), word);
    wk_error_clear();
    return right;
}

#define CHECK(condition) test_check((condition), __FILE__, __LINE__, "%s", #condition)
#define CHECK_EQ(got, want) \
    do { \
        long long got_ = (long long)(got), want_ = (long long)(want); \
        test_check(got_ == want_, __FILE__, __LINE__, "%s: got %lld, expected %lld", #got, got_, want_); \
    } while (0)
#define CHECK_STR(got, want) test_str((got), (want), __FILE__, __LINE__, #got)
/* A call that gives a pointer: it must give NULL, with an error of that status and that word in the message. */
#define CHECK_NULL(call, status, word) test_error((call) == NULL, (status), (word), __FILE__, __LINE__, #call)
/* The same for a call that gives a status. */
#define CHECK_FAILS(call, status, word) \
    test_error((call) == (status), (status), (word), __FILE__, __LINE__, #call)
/* The same for a call whose result does not matter. */
#define CHECK_ERROR(call, status, word) \
    do { \
        (void)(call); \
        test_error(true, (status), (word), __FILE__, __LINE__, #call); \
    } while (0)
/* Nothing went wrong up to here. */
#define CHECK_FINE() \
    do { \
        test_check(wk_error_status() == WK_OK, __FILE__, __LINE__, "error pending: %s", wk_error()); \
        wk_error_clear(); \
    } while (0)
/* Something this machine or build cannot do: said, and counted apart. */
#define SKIP(why) (atomic_fetch_add(&test_skipped, 1), fprintf(stderr, "skipped: %s\n", (why)))

static inline int test_end(void)
{
    long passed = test_passed, failed = test_failed, skipped = test_skipped;
    if (failed > TEST_MAX_SHOWN)
        fprintf(stderr, "(%ld more failures)\n", failed - TEST_MAX_SHOWN);
    printf(skipped ? "%ld passed, %ld failed, %ld skipped\n" : "%ld passed, %ld failed\n", passed, failed,
           skipped);
    return failed ? 1 : passed ? 0 : skipped ? TEST_SKIPPED : 1;
}

#endif
