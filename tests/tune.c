/* tune.c: choices that searches have found: kept, found again, used by dispatch; the file with damage in it and several
 * writers. Without a GPU, on a planning device. With the name of a device: searches there.
 * usage: test_tune [DEVICE] */
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "core/tensor.h"
#include "folder.h"
#include "gpu/plan.h"
#include "test.h"
#include "tune/choices.h"
#include "wick/wick.h"

static char path[300]; /* of the file */

/* ---- implementations that say who ran ---- */

static const char *ran;
static uint64_t ran_variant;
static wk_status answer;

static wk_status run_first(wk_call *c)
{
    ran = "first";
    ran_variant = c->variant;
    return WK_OK;
}

static wk_status run_other(wk_call *c)
{
    ran = "other";
    ran_variant = c->variant;
    return answer == WK_OK ? WK_OK : wk_fail(answer, "not today");
}

static const wk_impl first = {"add", "first", run_first, NULL, NULL},
                     other = {"add", "other", run_other, NULL, NULL};

static void install(void)
{
    wk_op *op = (wk_op *)wk_op_find("add");
    const wk_impl **list = op->impls[WK_KIND_ROCM];
    list[0] = &first;
    list[1] = &other;
    list[2] = NULL;
}

/* ---- calls ---- */

static wk_tensor *numbers(wk_device *d, int64_t n) { return wk_fill(d, WK_F32, 1, &n, 1); }

/* A checked call of add with outputs, as dispatch has it. */
static wk_call add_of(wk_device *d, int64_t n)
{
    static char params[WK_PARAMS_BYTES];
    wk_call c = {.op = wk_op_find("add"), .params = params};
    wk_params_defaults(c.op, params);
    c.in[0] = numbers(d, n);
    c.in[1] = numbers(d, n);
    CHECK(wk_call_check(&c) == WK_OK);
    c.out[0] = numbers(d, n);
    return c;
}

static void keep(wk_device *d, int64_t n, uint64_t variant)
{
    wk_choice choice = {.impl = "other", .variant = variant};
    wk_call c = add_of(d, n);
    wk_choice_keep(&c, &choice, 12.5);
}

static uint64_t found(wk_device *d, int64_t n)
{
    wk_choice choice;
    wk_call c = add_of(d, n);
    return wk_choice_find(&c, &choice) && strcmp(choice.impl, "other") == 0 ? choice.variant : 0;
}

static wk_device *planner(void) { return wk_plan_open(wk_arch_find("gfx90a")); }

/* In a process of its own, which reads the file anew; its exit status says whether all was right. */
static pid_t start(bool (*fn)(wk_device *))
{
    pid_t child = fork();
    if (child == 0) {
        test_failed = 0;
        wk_scope_begin();
        bool good = fn(planner());
        wk_scope_end();
        _exit(good && test_failed == 0 ? 0 : 1);
    }
    return child;
}

static bool was_right(pid_t child)
{
    int status;
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

static bool elsewhere(bool (*fn)(wk_device *)) { return was_right(start(fn)); }

static bool keep_three(wk_device *d)
{
    for (int n = 1; n <= 3; n++)
        keep(d, n, (uint64_t)(10 * n));
    keep(d, 2, 21); /* the later one counts */
    return found(d, 2) == 21;
}

static bool find_three(wk_device *d)
{
    return found(d, 1) == 10 && found(d, 2) == 21 && found(d, 3) == 30 && found(d, 4) == 0;
}

static bool find_some(wk_device *d) { return found(d, 1) == 0 && found(d, 2) == 21 && found(d, 3) == 0; }

static bool keep_many(wk_device *d)
{
    for (int n = 1; n <= 50; n++)
        keep(d, n, (uint64_t)n);
    return true;
}

static bool find_many(wk_device *d)
{
    for (int n = 1; n <= 50; n++) {
        if (found(d, n) != (uint64_t)n)
            return false;
    }
    return true;
}

/* A choice is for the settings it was found with. */
static bool find_by_settings(wk_device *d)
{
    bool found_before = found(d, 1) == 10;
    wk_set_matmul_precision(WK_PRECISION_FAST);
    bool fast = found(d, 1) != 0;
    keep(d, 1, 17);
    bool kept = found(d, 1) == 17;
    wk_set_matmul_precision(WK_PRECISION_EXACT);
    wk_set_deterministic(0);
    bool any_order = found(d, 1) != 0;
    wk_set_deterministic(1);
    return found_before && !fast && kept && !any_order && found(d, 1) == 10;
}

/* dispatch: the choice runs, with its variant; when it cannot, the usual order does. */
static bool dispatch(wk_device *d)
{
    keep(d, 5, 7);
    CHECK(wk_add(numbers(d, 5), numbers(d, 5)) && strcmp(ran, "other") == 0 && ran_variant == 7);
    CHECK(wk_add(numbers(d, 6), numbers(d, 6)) && strcmp(ran, "first") == 0 && ran_variant == 0);
    answer = WK_ERR_UNSUPPORTED;
    CHECK(wk_add(numbers(d, 5), numbers(d, 5)) && strcmp(ran, "first") == 0 && ran_variant == 0);
    answer = WK_OK;
    wk_tensor *five = numbers(d, 5);
    CHECK(wk_force_impl("first") == WK_OK);
    CHECK(wk_add(five, five) && strcmp(ran, "first") == 0);
    CHECK(wk_force_impl(NULL) == WK_OK);
    return true;
}

/* A digit of the first line changed, the third line cut, and noise between them. */
static void damage(void)
{
    char text[4096] = "";
    FILE *f = fopen(path, "r");
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    CHECK(n > 0);
    if (f)
        fclose(f);
    char *digit = strstr(text, "other 10 "), *third = strstr(text, "other 30 ");
    CHECK(digit && third);
    f = digit && third ? fopen(path, "w") : NULL;
    if (!f)
        return;
    digit[6] = '9';
    third[0] = 0;
    char *last = strstr(third + 1, "\n");
    fprintf(f, "\x01\xff no line of ours ~\n\n~12345678\n%s\n%s", text, last ? last + 1 : "");
    fclose(f);
}

static void test_file(void)
{
    CHECK(elsewhere(keep_three));
    CHECK(elsewhere(find_three));
    CHECK(elsewhere(find_by_settings));
    damage();
    CHECK(elsewhere(find_some));
    CHECK(unlink(path) == 0);
    CHECK(elsewhere(dispatch));
    CHECK(unlink(path) == 0);
    pid_t children[4];
    for (int i = 0; i < 4; i++)
        children[i] = start(keep_many);
    for (int i = 0; i < 4; i++)
        CHECK(was_right(children[i]));
    CHECK(elsewhere(find_many));
    CHECK(unlink(path) == 0 && mkdir(path, 0700) == 0); /* no file can be there */
    CHECK(elsewhere(keep_three));
    CHECK(rmdir(path) == 0);
}

static void test_options(void)
{
    CHECK(wk_tune(NULL) == WK_OK);
    CHECK_FAILS(wk_tune(WK_TUNE(.seconds = -1)) != WK_OK, WK_ERR_ARGUMENT, "tune: seconds");
    CHECK_FAILS(wk_tune(WK_TUNE(.seconds = NAN)) != WK_OK, WK_ERR_ARGUMENT, "tune: seconds");
}

/* ---- on a device ---- */

static long lines(void)
{
    long n = 0;
    FILE *f = fopen(path, "r");
    for (int ch; f && (ch = fgetc(f)) != EOF;)
        n += ch == '\n';
    if (f)
        fclose(f);
    return n;
}

static bool all_are(const wk_tensor *y, double want)
{
    float v[2048];
    bool good = y && wk_count(y) <= 2048 && wk_to_host(y, v) == WK_OK;
    for (int64_t i = 0; good && i < wk_count(y); i++)
        good = fabs(v[i] - want) < 1e-5;
    return good;
}

static void test_search(wk_device *d)
{
    wk_tensor *x = wk_fill(d, WK_F32, 4, (int64_t[]){2, 8, 9, 9}, 0.5);
    wk_tensor *w = wk_fill(d, WK_F32, 4, (int64_t[]){4, 8, 1, 1}, 0.25);
    CHECK(all_are(wk_conv2d(x, w, NULL, NULL), 1));
    CHECK_EQ(lines(), 0);
    CHECK(wk_tune(WK_TUNE(.seconds = 0.5)) == WK_OK);
    CHECK(all_are(wk_conv2d(x, w, NULL, NULL), 1));
    CHECK_EQ(lines(), 1);
    CHECK(all_are(wk_conv2d(x, w, NULL, NULL), 1));
    CHECK_EQ(lines(), 1); /* known already */
    CHECK(all_are(wk_softmax(x, 1, (int64_t[]){-1}, WK_SOFTMAX_ACCURATE), 1 / 9.));
    CHECK_EQ(lines(), 2);
    CHECK(wk_tune(NULL) == WK_OK);
    w = wk_fill(d, WK_F32, 4, (int64_t[]){5, 8, 1, 1}, 0.25);
    CHECK(all_are(wk_conv2d(x, w, NULL, NULL), 1));
    CHECK_EQ(lines(), 2);
}

int main(int argc, char **argv)
{
    setenv("WICK_CACHE", test_folder("tune"), 1);
    CHECK(wk_choices_path(path, sizeof path));
    if (argc > 1) {
        wk_device *d = wk_device_open(argv[1]);
        CHECK(d != NULL);
        wk_scope_begin();
        if (d)
            test_search(d);
        wk_scope_end();
    } else {
        install();
        test_file();
        test_options();
    }
    return test_end();
}
