/* miopen.c: one convolution, right whatever happens to MIOpen, and other ops whose calls of it fail; see miopen.sh.
 * usage: test_miopen DEVICE IMPL [limit BYTES | forced | search], test_miopen DEVICE fails OP, test_miopen DEVICE wrong or later
 * IMPL is the implementation that has to run it, or any. With a limit the device has no more memory than the tensors need and so
 * many bytes. With `forced` IMPL is forced and has to fail, with a message that names MIOpen.
 * With `search` the fastest way is searched for, which fills MIOpen's find database.
 * `fails` runs the samples of an op: by MIOpen none of them may succeed, without it all have to.
 * `later` forces MIOpen: the first call succeeds, the others fail.
 * `wrong` runs the convolution under watch (WICK_VERIFY=1), has to find MIOpen's result off, and prints what is said then. */
#include <stdlib.h>
#include "check/check.h"
#include "test.h"
#include "wick/wick.h"

enum { N = 2, C = 8, K = 4, SIZE = 12 };

/* All ones: an element of y is the number of taps inside. */
static bool is_right(const wk_tensor *y)
{
    static float v[N * K * SIZE * SIZE];
    if (!y || wk_to_host(y, v) != WK_OK)
        return false;
    for (int i = 0; i < N * K * SIZE * SIZE; i++) {
        int row = i / SIZE % SIZE, column = i % SIZE;
        int high = row == 0 || row == SIZE - 1 ? 2 : 3, wide = column == 0 || column == SIZE - 1 ? 2 : 3;
        if (v[i] != (float)(C * high * wide))
            return false;
    }
    return true;
}

static void limit_memory(wk_device *d, uint64_t more)
{
    wk_memory_stats stats;
    wk_memory_trim(d);
    CHECK(wk_memory(d, &stats) == WK_OK);
    CHECK(wk_memory_limit(d, stats.in_use + stats.cached + more) == WK_OK);
}

/* True when MIOpen was reached, and failed. */
static bool fail_sample(wk_device *d, const wk_op *op, const char *text)
{
    wk_sample s;
    wk_tensor *tail[WK_SAMPLE_TAIL] = {0};
    bool reached = false;
    if (!CHECK(wk_sample_make(op, text, WK_F32, WK_LAYOUT_PACKED, 1, d, &s) == WK_OK))
        return false;
    wk_sample_want_all(&s, tail);
    for (int round = 0; round < 3; round++) {
        bool forced = round < 2; /* and what failed once fails again */
        wk_call call = s.call;
        wk_scope_begin();
        memset(tail, 0, sizeof tail);
        wk_force_impl(forced ? "miopen" : NULL);
        wk_status status = wk_call_run(&call);
        reached = reached || (forced && strstr(wk_error(), ": MIOpen: "));
        test_check((status == WK_OK) != forced, __FILE__, __LINE__, "%s: %s: %s", op->name, text, wk_error());
        wk_error_clear();
        wk_scope_end();
    }
    wk_force_impl(NULL);
    return reached;
}

static int fail_op(wk_device *d, const char *name)
{
    const wk_op *op = wk_op_find(name);
    int reached = 0;
    if (!CHECK(op != NULL))
        return test_end();
    for (const char *const *text = op->samples; *text; text++) {
        wk_scope_begin();
        reached += fail_sample(d, op, *text);
        wk_scope_end();
    }
    CHECK(reached > 0);
    return test_end();
}

static int find_wrong(const wk_tensor *x, const wk_tensor *w)
{
    CHECK(!wk_conv2d(x, w, NULL, WK_CONV(.padding = {1, 1})));
    CHECK(strstr(wk_error(), "verify: miopen gives y[") != NULL);
    puts(wk_error());
    return test_failed ? 1 : 0;
}

static int fail_later(const wk_tensor *x, const wk_tensor *w)
{
    wk_force_impl("miopen");
    CHECK(is_right(wk_conv2d(x, w, NULL, WK_CONV(.padding = {1, 1}))));
    for (int round = 0; round < 2; round++) {
        CHECK(!wk_conv2d(x, w, NULL, WK_CONV(.padding = {1, 1})) && strstr(wk_error(), "MIOpen: "));
        wk_error_clear();
    }
    return test_end();
}

int main(int argc, char **argv)
{
    wk_device *d = argc > 2 ? wk_device_open(argv[1]) : NULL;
    bool forced = argc > 3 && strcmp(argv[3], "forced") == 0;
    if (!d)
        return TEST_SKIPPED;
    if (argc > 3 && strcmp(argv[2], "fails") == 0)
        return fail_op(d, argv[3]);
    wk_scope_begin();
    wk_tensor *x = wk_fill(d, WK_F32, 4, (int64_t[]){N, C, SIZE, SIZE}, 1);
    wk_tensor *w = wk_fill(d, WK_F32, 4, (int64_t[]){K, C, 3, 3}, 1);
    if (strcmp(argv[2], "wrong") == 0)
        return find_wrong(x, w);
    if (strcmp(argv[2], "later") == 0)
        return fail_later(x, w);
    if (argc > 3 && strcmp(argv[3], "search") == 0)
        CHECK(wk_tune(WK_TUNE(.seconds = 0.01, .again = 1)) == WK_OK);
    if (argc > 4)
        limit_memory(d, strtoull(argv[4], NULL, 10));
    for (int round = 0; round < 3; round++) { /* what failed once stays away */
        wk_scope_begin();
        CHECK(wk_force_impl(forced ? argv[2] : NULL) == WK_OK);
        wk_tensor *y = wk_conv2d(x, w, NULL, WK_CONV(.padding = {1, 1}));
        const char *ran = wk_last_impl();
        CHECK(wk_force_impl(NULL) == WK_OK);
        if (forced) {
            CHECK(!y && strstr(wk_error(), "MIOpen"));
            wk_error_clear();
        } else {
            CHECK(is_right(y));
            CHECK_STR(wk_error(), "");
            CHECK(strcmp(argv[2], "any") == 0 || CHECK_STR(ran, argv[2]));
        }
        wk_scope_end();
    }
    wk_scope_end();
    return test_end();
}
