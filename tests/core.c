/* core.c: devices, errors, scopes, memory, writing in place, hooks, events. */
#include <pthread.h>
#include "core/memory.h"
#include "values.h"
#include "wick/stream.h"

static wk_device *cpu;

static void test_devices(void)
{
    int n = wk_device_count();
    CHECK(n >= 1);
    CHECK_STR(wk_device_name_at(n - 1), "cpu");
    CHECK(!wk_device_name_at(-1) && !wk_device_name_at(n));
    CHECK(wk_device_open("cpu") == cpu && wk_device_open("auto") != NULL);
    CHECK_STR(wk_device_name(cpu), "cpu");
    CHECK(strstr(wk_device_description(cpu), "threads") != NULL);
    CHECK_STR(wk_device_name(NULL), "");
    CHECK_STR(wk_device_description(NULL), "");
    CHECK_EQ(wk_sync(cpu), WK_OK);
    CHECK_FINE();
    CHECK_NULL(wk_device_open("nonsense"), WK_ERR_DEVICE, "nonsense");
    CHECK_NULL(wk_device_open(""), WK_ERR_DEVICE, "device_open");
    CHECK_NULL(wk_device_open("cpu:0"), WK_ERR_DEVICE, "cpu:0");
    CHECK_NULL(wk_device_open(NULL), WK_ERR_ARGUMENT, "device_open: name");
    CHECK_FAILS(wk_sync(NULL), WK_ERR_ARGUMENT, "sync: device");
    int threads = wk_num_threads();
    CHECK(threads >= 1);
    wk_set_num_threads(3);
    CHECK_EQ(wk_num_threads(), 3);
    wk_set_num_threads(-5);
    CHECK(wk_num_threads() >= 1);
    wk_set_num_threads(1000000);
    CHECK(wk_num_threads() >= 1 && wk_num_threads() < 1000000);
    wk_set_num_threads(0);
    CHECK(wk_num_threads() >= 1);
    wk_set_num_threads(threads);
    CHECK(strncmp(wk_version(), "0.", 2) == 0);
}

/* ---- errors ---- */

static void test_errors(void)
{
    static const char *const names[] = {"ok",     "argument", "shape",       "dtype", "param",  "index",
                                        "device", "memory",   "unsupported", "io",    "format", "internal"};
    for (int i = WK_OK; i <= WK_ERR_INTERNAL; i++)
        CHECK_STR(wk_status_name((wk_status)i), names[i]);
    CHECK_STR(wk_status_name((wk_status)99), "?");
    CHECK_STR(wk_status_name((wk_status)-1), "?");
    wk_error_clear();
    CHECK_STR(wk_error(), "");

    wk_scope_begin();
    wk_tensor *x = counting(WK_F32, SHAPE(2, 2)), *out = (wk_tensor *)&out;
    long live = wk_alloc_live();
    CHECK(wk_relu(NULL) == NULL); /* the first error stays ... */
    char first[200];
    snprintf(first, sizeof first, "%s", wk_error());
    CHECK(strstr(first, "relu: x") != NULL);
    CHECK(wk_softmax(x, 1, (int64_t[]){7}, WK_SOFTMAX_LOG) == NULL);
    CHECK(wk_device_open("nonsense") == NULL);
    CHECK_STR(wk_error(), first);
    CHECK_EQ(wk_error_status(), WK_ERR_ARGUMENT);
    /* ... and everything gives NULL at once, with good arguments too */
    CHECK(!wk_relu(x) && !wk_add(x, x) && !wk_matmul(x, x) && !wk_sum(x, 0, NULL, 0) && !wk_copy(x));
    CHECK(!wk_fill(cpu, WK_F32, SHAPE(2), 1) && !wk_arange(cpu, WK_F32, 0, 3, 1));
    CHECK(!wk_empty(cpu, WK_F32, SHAPE(2)) && !wk_from_host(cpu, WK_F32, SHAPE(1), first));
    CHECK(!wk_from_pointer(cpu, WK_F32, SHAPE(1), NULL, first, NULL, NULL) && !wk_to(x, cpu));
    CHECK(!wk_reshape(x, SHAPE(4)) && !wk_transpose(x, 0, 1) && !wk_permute(x, (int[]){0, 1}));
    CHECK(!wk_narrow(x, 0, 0, 1) && !wk_broadcast(x, SHAPE(2, 2)) && !wk_unsqueeze(x, 0) &&
          !wk_flatten(x, 0, 1));
    CHECK(!wk_squeeze(x, 0) && !wk_as_strided(x, SHAPE(1), (int64_t[]){1}, 0));
    CHECK_EQ(wk_copy_into(x, x), WK_ERR_ARGUMENT);
    CHECK_EQ(wk_fill_into(x, 9), WK_ERR_ARGUMENT);
    CHECK_EQ(wk_matmul_backward(x, x, x, &out, NULL), WK_ERR_ARGUMENT);
    CHECK(out == NULL);
    CHECK_EQ(wk_to_host(x, first), WK_ERR_ARGUMENT);
    CHECK(isnan(wk_item(x)));
    CHECK_EQ(wk_alloc_live(), live);
    wk_error_clear();
    CHECK_STR(wk_error(), "");
    CHECK_EQ(wk_error_status(), WK_OK);
    CHECK(HOLDS(wk_relu(x), 0, 1, 2, 3));
    wk_scope_end();
}

/* An op's name stands before the message once, also when it is the beginning of another's. */
static void test_error_context(void)
{
    wk_fail(WK_ERR_MEMORY, "maximum: no");
    wk_error_context("max");
    CHECK_STR(wk_error(), "max: maximum: no");
    wk_error_context("max");
    CHECK_STR(wk_error(), "max: maximum: no");
    wk_error_clear();
    char longest[1200];
    memset(longest, 'a', sizeof longest);
    longest[sizeof longest - 1] = 0;
    wk_fail(WK_ERR_PARAM, "%s", longest);
    size_t length = strlen(wk_error());
    wk_error_context("op");
    CHECK(length < 1200 && strlen(wk_error()) == length);
    wk_error_clear();
}

static void *fail_elsewhere(void *unused)
{
    (void)unused;
    CHECK_EQ(wk_error_status(), WK_OK);
    wk_relu(NULL);
    CHECK_EQ(wk_error_status(), WK_ERR_ARGUMENT);
    return NULL;
}

static void test_error_threads(void)
{
    pthread_t t;
    wk_device_open("nonsense");
    pthread_create(&t, NULL, fail_elsewhere, NULL);
    pthread_join(t, NULL);
    CHECK_EQ(wk_error_status(), WK_ERR_DEVICE);
    wk_error_clear();
}

/* ---- scopes ---- */

static void test_scopes(void)
{
    long live = wk_alloc_live();
    wk_tensor *x = counting(WK_F32, SHAPE(3)); /* no scope: ours */
    long with_x = wk_alloc_live();
    wk_scope_begin();
    wk_tensor *y = wk_neg(wk_sqr(wk_neg(x)));
    wk_scope_begin();
    wk_tensor *z = wk_add(y, y);
    wk_tensor *held = wk_retain(wk_abs(z)), *early = wk_copy(z);
    wk_drop(early);
    z = wk_scope_end_keep(z);
    CHECK(HOLDS(z, 0, -2, -8));
    CHECK(HOLDS(held, 0, 2, 8));
    y = wk_scope_end_keep(y); /* to us: there is no outer scope */
    CHECK(HOLDS(y, 0, -1, -4));
    CHECK(HOLDS(held, 0, 2, 8));
    wk_drop(held);
    wk_drop(y);
    CHECK_EQ(wk_alloc_live(), with_x);
    wk_drop(wk_relu(x));
    CHECK_EQ(wk_alloc_live(), with_x);
    wk_drop(x);
    CHECK_EQ(wk_alloc_live(), live);
    wk_scope_end(); /* one too many */
    CHECK(wk_scope_end_keep(NULL) == NULL);
    CHECK_FINE();
}

/* Retained and dropped, kept twice, kept from an outer scope, all in one scope. */
static void test_scope_corners(void)
{
    long live = wk_alloc_live();
    wk_scope_begin();
    wk_tensor *outer = counting(WK_F32, SHAPE(1));
    wk_scope_begin();
    wk_tensor *gone = counting(WK_F32, SHAPE(1)), *kept = counting(WK_F32, SHAPE(2));
    wk_drop(wk_retain(kept)); /* the scope's reference is still there */
    wk_drop(gone);            /* the first of its scope: where kept will go */
    CHECK(wk_scope_end_keep(kept) == kept);
    wk_scope_begin();
    CHECK(wk_scope_end_keep(outer) == outer);
    wk_scope_begin();
    CHECK(wk_scope_end_keep(NULL) == NULL);
    CHECK(HOLDS(kept, 0, 1) && HOLDS(outer, 0));
    wk_tensor *view = wk_retain(wk_narrow(kept, 0, 1, 1));
    wk_scope_end();
    CHECK(HOLDS(view, 1)); /* a view keeps the storage */
    wk_drop(view);
    CHECK_EQ(wk_alloc_live(), live);
    wk_tensor *mine = counting(WK_F32, SHAPE(1));
    wk_scope_begin();
    CHECK(wk_scope_end_keep(mine) == mine); /* of no scope: stays ours */
    CHECK(HOLDS(mine, 0));
    wk_drop(mine);
    CHECK_EQ(wk_alloc_live(), live);
    CHECK_FINE();
}

static void test_deep_scopes(void)
{
    enum { DEEP = 300, WIDE = 500 };
    wk_scope_begin();
    wk_tensor *x = counting(WK_I64, SHAPE(1));
    for (int i = 0; i < DEEP; i++)
        wk_scope_begin();
    for (int i = 0; i < WIDE; i++)
        x = wk_affine(x, 1, 1);
    for (int i = 0; i < DEEP; i++)
        x = wk_scope_end_keep(x);
    CHECK(wk_item(x) == WIDE);
    for (int i = 0; i < WIDE; i++) { /* a scope a layer: one result stays */
        wk_scope_begin();
        wk_tensor *next = wk_affine(wk_affine(x, 1, 2), 1, -1);
        wk_scope_end_keep(next);
        wk_drop(x);
        x = next;
    }
    CHECK(wk_item(x) == 2 * WIDE);
    wk_scope_end();
    CHECK_FINE();
}

/* ---- memory ---- */

static void test_memory(void)
{
    enum { MB = 1 << 20 };
    wk_memory_stats before, with, after;
    CHECK_EQ(wk_memory_trim(cpu), WK_OK);
    CHECK_EQ(wk_memory(cpu, &before), WK_OK);
    CHECK_EQ(before.cached, 0);
    wk_tensor *t = wk_empty(cpu, WK_U8, SHAPE(3 * MB));
    CHECK_EQ(wk_memory(cpu, &with), WK_OK);
    CHECK(with.in_use >= before.in_use + 3 * MB && with.in_use <= before.in_use + 4 * MB);
    CHECK(with.peak >= with.in_use && with.allocations == before.allocations + 1 &&
          with.system == before.system + 1);
    wk_drop(t);
    CHECK_EQ(wk_memory(cpu, &after), WK_OK);
    CHECK_EQ(after.in_use, before.in_use);
    CHECK(after.peak == with.peak);
    CHECK(after.cached == 0 ||
          after.cached == with.in_use - before.in_use); /* none is kept under a sanitizer */
    wk_drop(wk_empty(cpu, WK_U8, SHAPE(3 * MB - 5)));
    CHECK_EQ(wk_memory(cpu, &with), WK_OK);
    CHECK(with.system == after.system + (after.cached == 0) && with.allocations == after.allocations + 1);
    CHECK_EQ(wk_memory_trim(cpu), WK_OK);
    wk_memory(cpu, &after);
    CHECK_EQ(after.cached, 0);
    CHECK_EQ(after.in_use, before.in_use);
    CHECK_FINE();
    CHECK_FAILS(wk_memory(NULL, &after), WK_ERR_ARGUMENT, "memory: device");
    CHECK_FAILS(wk_memory(cpu, NULL), WK_ERR_ARGUMENT, "memory: stats");
    CHECK_FAILS(wk_memory_trim(NULL), WK_ERR_ARGUMENT, "memory_trim: device");
    CHECK_FAILS(wk_memory_limit(NULL, 1), WK_ERR_ARGUMENT, "memory_limit: device");
}

static void test_memory_limit(void)
{
    enum { MB = 1 << 20 };
    wk_memory_stats s;
    wk_memory(cpu, &s);
    wk_drop(wk_empty(cpu, WK_U8, SHAPE(9 * MB))); /* into the cache */
    CHECK_EQ(wk_memory_limit(cpu, s.in_use + 8 * MB), WK_OK);
    wk_memory_stats limited;
    wk_memory(cpu, &limited);
    CHECK(limited.in_use + limited.cached <= s.in_use + 8 * MB);
    wk_tensor *a = wk_empty(cpu, WK_U8, SHAPE(5 * MB));
    CHECK(a != NULL);
    CHECK_NULL(wk_empty(cpu, WK_U8, SHAPE(5 * MB)), WK_ERR_MEMORY, "out of memory: 5242880 bytes on cpu");
    CHECK_NULL(wk_copy(a), WK_ERR_MEMORY, "copy: out of memory");
    wk_drop(a);
    a = wk_empty(cpu, WK_U8, SHAPE(7 * MB)); /* what is cached makes room */
    CHECK(a != NULL);
    wk_drop(a);
    CHECK_EQ(wk_memory_limit(cpu, 0), WK_OK);
    a = wk_empty(cpu, WK_U8, SHAPE(20 * MB));
    CHECK(a != NULL);
    wk_drop(a);
    CHECK_FINE();
}

static uint64_t system_allocations(int64_t bytes)
{
    wk_memory_stats before, after;
    wk_memory(cpu, &before);
    wk_drop(wk_empty(cpu, WK_U8, SHAPE(bytes)));
    wk_memory(cpu, &after);
    return after.system - before.system;
}

/* No more than 4 GB are kept: of larger sizes that were used before, the oldest makes room. */
static void test_memory_oldest_goes(void)
{
    const int64_t half = 1 << 29;
    wk_memory_stats s;
    wk_memory_trim(cpu);
    CHECK_EQ(system_allocations(2 * half), 1);
    CHECK_EQ(system_allocations(3 * half), 1);
    wk_memory(cpu, &s);
    if (s.cached == 0)
        return; /* none is kept under a sanitizer */
    CHECK_EQ(system_allocations(4 * half), 1);
    CHECK_EQ(system_allocations(half), 1);
    CHECK_EQ(system_allocations(half), 0);
    CHECK_EQ(system_allocations(4 * half), 0);
    CHECK_EQ(system_allocations(3 * half), 0);
    CHECK_EQ(system_allocations(2 * half), 1);
    wk_memory_trim(cpu);
    CHECK_FINE();
}

/* ---- writing in place ---- */

static void test_into(void)
{
    wk_scope_begin();
    wk_tensor *t = counting(WK_F32, SHAPE(3, 4)), *v = wk_narrow(t, 1, 1, 2);
    uint64_t version = wk_storage_version(t);
    CHECK_EQ(wk_fill_into(v, -1), WK_OK);
    CHECK(HOLDS(t, 0, -1, -1, 3, 4, -1, -1, 7, 8, -1, -1, 11));
    CHECK_EQ(wk_storage_version(t), version + 1);
    CHECK_EQ(wk_storage_version(v), version + 1);
    wk_tensor *src = wk_broadcast(counting(WK_F32, SHAPE(3, 1)), SHAPE(3, 2));
    CHECK_EQ(wk_copy_into(v, src), WK_OK);
    CHECK(HOLDS(t, 0, 0, 0, 3, 4, 1, 1, 7, 8, 2, 2, 11));
    CHECK_EQ(wk_storage_version(t), version + 2);
    CHECK_EQ(wk_storage_version(src), 0);
    CHECK_FINE();

    CHECK_FAILS(wk_copy_into(v, t), WK_ERR_SHAPE, "dst");
    CHECK_FAILS(wk_copy_into(v, counting(WK_F64, SHAPE(3, 2))), WK_ERR_DTYPE, "dst");
    CHECK_FAILS(wk_copy_into(src, v), WK_ERR_SHAPE, "stride 0");
    CHECK_FAILS(wk_fill_into(src, 1), WK_ERR_SHAPE, "stride 0");
    CHECK_FAILS(wk_copy_into(v, NULL), WK_ERR_ARGUMENT, "copy: x");
    CHECK_EQ(wk_storage_version(t), version + 2);
    CHECK(HOLDS(t, 0, 0, 0, 3, 4, 1, 1, 7, 8, 2, 2, 11));
    wk_tensor *empty = wk_narrow(t, 0, 1, 0);
    CHECK_EQ(wk_copy_into(empty, empty), WK_OK);
    CHECK_EQ(wk_fill_into(empty, 5), WK_OK);
    wk_scope_end();
}

/* Source and destination share memory: the result is as if the source had been copied first. */
static void test_overlap(void)
{
    enum { N = 1000 };
    wk_scope_begin();
    wk_tensor *t = counting(WK_I32, SHAPE(6));
    CHECK_EQ(wk_copy_into(wk_narrow(t, 0, 0, 5), wk_narrow(t, 0, 1, 5)), WK_OK);
    CHECK(HOLDS(t, 1, 2, 3, 4, 5, 5));
    CHECK_EQ(wk_copy_into(wk_narrow(t, 0, 1, 5), wk_narrow(t, 0, 0, 5)), WK_OK);
    CHECK(HOLDS(t, 1, 1, 2, 3, 4, 5));
    CHECK_EQ(wk_copy_into(t, t), WK_OK);
    CHECK(HOLDS(t, 1, 1, 2, 3, 4, 5));
    t = counting(WK_I32, SHAPE(3, 3));
    CHECK_EQ(wk_copy_into(t, wk_transpose(t, 0, 1)), WK_OK);
    CHECK(HOLDS(t, 0, 3, 6, 1, 4, 7, 2, 5, 8));
    CHECK_EQ(wk_copy_into(t, wk_broadcast(wk_narrow(t, 0, 1, 1), SHAPE(3, 3))), WK_OK);
    CHECK(HOLDS(t, 1, 4, 7, 1, 4, 7, 1, 4, 7));
    t = counting(WK_F32, SHAPE(N, N)); /* large enough for blocks and threads */
    wk_tensor *want = wk_copy(wk_transpose(t, 0, 1));
    CHECK_EQ(wk_copy_into(t, wk_transpose(t, 0, 1)), WK_OK);
    CHECK(same_elements(t, want));
    CHECK_EQ(wk_copy_into(wk_narrow(t, 0, 1, N - 1), wk_narrow(t, 0, 0, N - 1)), WK_OK);
    CHECK(same_elements(wk_narrow(t, 0, 1, N - 1), wk_narrow(want, 0, 0, N - 1)));
    CHECK_FINE();
    wk_scope_end();
}

static void test_host_and_back(void)
{
    wk_scope_begin();
    wk_tensor *t = counting(WK_I16, SHAPE(2, 3));
    int16_t got[6];
    CHECK_EQ(wk_to_host(wk_transpose(t, 0, 1), got), WK_OK);
    CHECK(got[0] == 0 && got[1] == 3 && got[2] == 1 && got[5] == 5);
    wk_tensor *same = wk_to(t, cpu);
    CHECK(wk_data(same) == wk_data(t) && same_elements(same, t));
    CHECK(wk_item(wk_narrow(wk_flatten(t, 0, 1), 0, 4, 1)) == 4);
    static const double values[] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
    for (int d = 0; d < WK_DTYPE_COUNT; d++)
        CHECK(wk_item(wk_fill(cpu, (wk_dtype)d, SCALAR, values[d])) == 1);
    CHECK(wk_item(wk_fill(cpu, WK_I64, SCALAR, -0x1p62)) == -0x1p62);
    CHECK_FINE();
    wk_scope_end();
}

/* ---- which code runs, and hooks ---- */

static struct {
    int calls;
    char op[40], impl[40];
    double microseconds;
} traced;

static void trace(void *ctx, const char *op, const char *impl, double microseconds)
{
    CHECK(ctx == &traced);
    traced.calls++;
    snprintf(traced.op, sizeof traced.op, "%s", op);
    snprintf(traced.impl, sizeof traced.impl, "%s", impl);
    traced.microseconds = microseconds;
}

static void keep_line(void *ctx, const char *line) { snprintf(ctx, 40, "%s", line); }

static void test_hooks(void)
{
    wk_scope_begin();
    wk_tensor *x = counting(WK_F32, SHAPE(2, 2));
    wk_set_trace(trace, &traced);
    wk_relu(x);
    CHECK_EQ(traced.calls, 1);
    CHECK_STR(traced.op, "relu");
    CHECK_STR(traced.impl, "simd");
    CHECK(traced.microseconds >= 0 && traced.microseconds < 1e7);
    wk_relu(NULL); /* never ran */
    wk_error_clear();
    CHECK_EQ(traced.calls, 1);
    wk_set_trace(NULL, NULL);
    wk_relu(x);
    CHECK_EQ(traced.calls, 1);

    char line[40] = "";
    wk_set_log(keep_line, line);
    wk_say("%d lines", 1);
    wk_set_log(NULL, NULL);
    wk_say("nobody hears");
    CHECK_STR(line, "1 lines");

    CHECK_STR(wk_last_impl(), "simd");
    CHECK_EQ(wk_force_impl("ref"), WK_OK);
    wk_tensor *y = wk_matmul(x, x);
    CHECK_STR(wk_last_impl(), "ref");
    CHECK(HOLDS(y, 2, 3, 6, 11));
    CHECK_EQ(wk_force_impl("nonsense"), WK_OK);
    CHECK_NULL(wk_matmul(x, x), WK_ERR_UNSUPPORTED, "nonsense");
    CHECK_EQ(wk_force_impl(NULL), WK_OK);
    CHECK(same_elements(wk_matmul(x, x), y));
    CHECK_STR(wk_last_impl(), "simd");
    CHECK_FAILS(wk_force_impl("a name that is longer than any implementation has"), WK_ERR_ARGUMENT,
                "force_impl");
    CHECK(wk_relu(x) != NULL);
    CHECK_FINE();
    wk_scope_end();
}

/* On the CPU a place in the work is a time. */
static void test_events(void)
{
    wk_event *from = wk_event_new(cpu), *to = wk_event_new(cpu);
    CHECK(isnan(wk_event_ms(from, to)));
    CHECK_EQ(wk_error_status(), WK_ERR_ARGUMENT);
    wk_error_clear();
    CHECK_EQ(wk_event_record(from), WK_OK);
    CHECK_EQ(wk_event_record(to), WK_OK);
    CHECK(wk_event_ms(from, to) >= 0);
    CHECK_FINE();
    wk_event_drop(from);
    wk_event_drop(to);
}

static void test_precision_setting(void)
{
    setenv("WICK_PRECISION", "fast", 1);
    CHECK_EQ(wk_matmul_precision(), WK_PRECISION_FAST);
    wk_set_matmul_precision(WK_PRECISION_EXACT);
    CHECK_EQ(wk_matmul_precision(), WK_PRECISION_EXACT);
    unsetenv("WICK_PRECISION");
}

static void test_determinism_setting(void)
{
    setenv("WICK_DETERMINISTIC", "0", 1);
    CHECK_EQ(wk_deterministic(), 0);
    wk_set_deterministic(1);
    CHECK_EQ(wk_deterministic(), 1);
    unsetenv("WICK_DETERMINISTIC");
}

int main(void)
{
    CHECK_STR(wk_last_impl(), "");
    test_determinism_setting(); /* first: the environment is asked once */
    test_precision_setting();
    cpu = wk_device_open("cpu");
    test_deep_scopes(); /* first: it grows the thread's scope arrays, which stay */
    long live = wk_alloc_live();
    test_devices();
    test_errors();
    test_error_context();
    test_error_threads();
    test_scopes();
    test_scope_corners();
    test_memory();
    test_memory_limit();
    test_memory_oldest_goes();
    test_into();
    test_overlap();
    test_host_and_back();
    test_hooks();
    test_events();
    CHECK_EQ(wk_alloc_live(), live);
    return test_end();
}
