/* verify.c: vendors' implementations under watch, with one of a vendor's name put before the CPU's own: results that
 * are off are told, with a command that repeats the call; what the deny-list has is passed over. */
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/op.h"
#include "core/tensor.h"
#include "folder.h"
#include "test.h"
#include "verify/deny.h"
#include "wick/ops.h"

static float off_by;     /* what the vendor's result is off by */
static wk_status answer; /* what the vendor's run says */
static int vendor_calls;

static wk_status run_vendor(wk_call *c)
{
    vendor_calls++;
    if (answer != WK_OK)
        return wk_fail(answer, "the library says no");
    const float *a = wk_ptr(c->in[0]), *b = wk_ptr(c->in[1]);
    float *y = wk_ptr(c->out[0]);
    for (int64_t i = 0; i < wk_count(c->in[0]); i++)
        y[i] = a[i] + b[i] + (i == 2 ? off_by : 0);
    return WK_OK;
}

static const wk_impl vendor = {"add", "miopen", run_vendor, NULL, NULL};

/* Puts it first in the list of the op. */
static void install(void)
{
    wk_op *op = (wk_op *)wk_op_find("add");
    const wk_impl **list = op->impls[WK_KIND_CPU];
    memmove(list + 1, list, (WK_MAX_IMPLS - 1) * sizeof *list);
    list[0] = &vendor;
}

static wk_tensor *numbers(void)
{
    const float v[] = {1, 2, 3, 4};
    return wk_from_host(wk_cpu(), WK_F32, 1, (int64_t[]){4}, v);
}

static void test_right_result(void)
{
    wk_tensor *y = wk_add(numbers(), numbers());
    CHECK(y && ((float *)wk_ptr(y))[2] == 6);
    CHECK(strcmp(wk_last_impl(), "miopen") == 0);
}

static void test_wrong_result(const char *cache)
{
    char path[300];
    off_by = 1;
    CHECK(wk_add(numbers(), numbers()) == NULL);
    CHECK(wk_error_status() == WK_ERR_DEVICE);
    CHECK(strstr(wk_error(), "miopen gives y[2] = 7, wick's own kernel 6") != NULL);
    CHECK(strstr(wk_error(), "wick op add ") && strstr(wk_error(), "--impl miopen"));
    CHECK(strstr(wk_error(), "add miopen f32 * *") != NULL);
    wk_error_clear();
    snprintf(path, sizeof path, "%s/verify/add.miopen.f32.in.safetensors", cache);
    CHECK(access(path, R_OK) == 0);
    wk_set_verify(0);
    wk_tensor *y = wk_add(numbers(), numbers());
    CHECK(y && ((float *)wk_ptr(y))[2] == 7);
    wk_set_verify(1);
}

/* What the user lets a library round is not off. */
static void test_fast(void)
{
    off_by = 0.005f;
    CHECK(wk_add(numbers(), numbers()) == NULL);
    wk_error_clear();
    wk_set_matmul_precision(WK_PRECISION_FAST);
    CHECK(wk_add(numbers(), numbers()) != NULL);
    wk_set_matmul_precision(WK_PRECISION_EXACT);
    off_by = 1;
}

/* Where the inputs cannot be kept the message says so. */
static void test_unsaved(const char *cache)
{
    char path[300];
    snprintf(path, sizeof path, "%s/verify/add.miopen.f32.in.safetensors", cache);
    CHECK(unlink(path) == 0);
    *strrchr(path, '/') = 0;
    CHECK(rmdir(path) == 0);
    FILE *f = fopen(path, "w"); /* in the folder's place */
    CHECK(f && fclose(f) == 0);
    CHECK(wk_add(numbers(), numbers()) == NULL);
    CHECK(strstr(wk_error(), "wick's own kernel 6") &&
          strstr(wk_error(), "inputs, which could not be saved"));
    wk_error_clear();
    CHECK(unlink(path) == 0);
}

static wk_status add_into(wk_tensor *x)
{
    wk_call c = {.op = wk_op_find("add"), .in = {x, numbers()}, .out = {x}};
    return wk_call_run(&c);
}

/* wick's own kernel sees the input before the vendor writes over it. */
static void test_in_place(void)
{
    wk_tensor *x = numbers();
    CHECK(add_into(x) != WK_OK);
    CHECK(strstr(wk_error(), "wick's own kernel 6") != NULL);
    wk_error_clear();
    off_by = 0;
    x = numbers();
    CHECK(add_into(x) == WK_OK);
    CHECK(((float *)wk_ptr(x))[3] == 8);
}

static void test_failing_library(void)
{
    const wk_status answers[] = {WK_ERR_UNSUPPORTED, WK_ERR_DEVICE};
    for (int i = 0; i < 2; i++) {
        answer = answers[i];
        wk_tensor *y = wk_add(numbers(), numbers());
        CHECK(y && ((float *)wk_ptr(y))[2] == 6);
        CHECK(strcmp(wk_last_impl(), "miopen") != 0);
    }
    answer = WK_OK;
}

static void test_deny(void)
{
    static const char *const bad[] = {"",         "# nothing", "nosuchop miopen",
                                      "add simd", "add",       "add miopen f32 gfx90a 1.0 more"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CHECK(wk_deny(bad[i]) == WK_ERR_ARGUMENT);
        wk_error_clear();
    }
    CHECK(wk_deny(NULL) == WK_ERR_ARGUMENT);
    wk_error_clear();
    CHECK(wk_deny("add miopen f64") == WK_OK);
    CHECK(wk_deny("add miopen f32 gfx90a") == WK_OK); /* another device's */
    CHECK(wk_add(numbers(), numbers()) && strcmp(wk_last_impl(), "miopen") == 0);
    CHECK(wk_deny("add miopen f32 # this one") == WK_OK);
    vendor_calls = 0;
    CHECK(wk_add(numbers(), numbers()) && strcmp(wk_last_impl(), "miopen") != 0);
    CHECK(vendor_calls == 0);
    wk_force_impl("miopen");
    CHECK(!wk_add(numbers(), numbers()) && wk_error_status() == WK_ERR_UNSUPPORTED);
    CHECK(strstr(wk_error(), "deny-list") != NULL);
    wk_error_clear();
    wk_force_impl(NULL);
}

/* The file of the cache folder is read by the first call; a line that does not read costs only itself. */
static void write_list(const char *cache)
{
    char path[300];
    snprintf(path, sizeof path, "%s/deny.txt", cache);
    FILE *f = fopen(path, "w");
    fputs("# passed over here\nsub simd\nmul miopen bf16 gfx942 3.4.0\n\n  \nadd miopen i64",
          f); /* no end of the line */
    fclose(f);
}

static void test_file(const char *cache)
{
    char path[300], text[400] = "";
    wk_op *op = (wk_op *)wk_op_find("add");
    wk_call c = {.op = op, .device = wk_cpu(), .dtype = WK_I64};
    CHECK(wk_denied(&c, &vendor));
    c.dtype = WK_I32;
    CHECK(!wk_denied(&c, &vendor));
    CHECK(wk_deny_keep("add miopen i32 * *") == WK_OK);
    CHECK(wk_denied(&c, &vendor));
    snprintf(path, sizeof path, "%s/deny.txt", cache);
    FILE *f = fopen(path, "r");
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    CHECK(n > 0 && strstr(text, "\nadd miopen i64\nadd miopen i32 * *\n") != NULL);
    if (f)
        fclose(f);
}

int main(void)
{
    const char *cache = test_folder("verify");
    setenv("WICK_CACHE", cache, 1);
    setenv("WICK_VERIFY", "1", 1);
    write_list(cache);
    wk_scope_begin();
    install();
    test_file(cache);
    test_right_result();
    test_wrong_result(cache);
    test_fast();
    test_unsaved(cache);
    test_in_place();
    test_failing_library();
    test_deny();
    wk_scope_end();
    return test_end();
}
