/* test.h: what a test program needs: checks that go on after a failure, and a count at the end.
 *
 *     CHECK(wk_rank(t) == 2);
 *     CHECK_ERROR(wk_relu(NULL), WK_ERR_ARGUMENT, "x");
 *     return test_end(); */
#ifndef WK_TESTS_TEST_H
#define WK_TESTS_TEST_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include "wick/core.h"

static int test_passed, test_failed, test_skipped;

static inline bool test_check(bool fine, const char *what, const char *file, int line)
{
    test_passed += fine;
    test_failed += !fine;
    if (!fine)
        fprintf(stderr, "%s:%d: failed: %s%s%s\n", file, line, what, *wk_error() ? "; pending: " : "",
                wk_error());
    return fine;
}

/* The call before this one has failed with that status and a message that has the word; clears the error. */
static inline void test_error(wk_status status, const char *word, const char *what, const char *file,
                              int line)
{
    bool fine = wk_error_status() == status && strstr(wk_error(), word);
    if (!fine)
        fprintf(stderr, "%s:%d: expected an error of kind %s with '%s', got %s: %s\n", file, line,
                wk_status_name(status), word, wk_status_name(wk_error_status()), wk_error());
    wk_error_clear();
    test_check(fine, what, file, line);
}

#define CHECK(condition) test_check((condition) ? true : false, #condition, __FILE__, __LINE__)
#define CHECK_TEXT(a, b) test_check(strcmp((a), (b)) == 0, #a " is " #b, __FILE__, __LINE__)
#define CHECK_ERROR(call, status, word) \
    do { \
        (void)(call); \
        test_error(status, word, #call, __FILE__, __LINE__); \
    } while (0)
/* Says that a check could not be made here, and why. */
#define SKIP(why) (test_skipped++, fprintf(stderr, "%s:%d: skipped: %s\n", __FILE__, __LINE__, why))

/* Prints the count; the exit status of main. */
static inline int test_end(void)
{
    if (test_skipped)
        printf("%d passed, %d failed, %d skipped\n", test_passed, test_failed, test_skipped);
    else
        printf("%d passed, %d failed\n", test_passed, test_failed);
    return test_failed || test_passed == 0;
}

#endif
