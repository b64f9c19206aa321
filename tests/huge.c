/* huge.c: tensors of more than 2^31 elements, where 32-bit arithmetic on indices ends. Runs on a GPU with 80 GB or more;
 * values are such that a few places and a sum tell whether all went well. Says how long a first result takes. */
#include <math.h>
#include <time.h>
#include "core/device.h"
#include "gpu/gpu.h"
#include "test.h"
#include "wick/wick.h"

static const int64_t BIG = ((int64_t)1 << 31) + 1000;

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Element i of t, counted over its last dimension's end: negative ones from the end. */
static double at(const wk_tensor *t, int64_t i)
{
    wk_tensor *flat = wk_flatten(t, 0, -1);
    return wk_item(wk_narrow(flat, 0, i < 0 ? wk_count(t) + i : i, 1));
}

#define CHECK_AT(t, i, want) \
    do { \
        double got_ = at((t), (i)), want_ = (want); \
        test_check(fabs(got_ - want_) <= 1e-5 * fabs(want_), __FILE__, __LINE__, \
                   "%s at %s: got %.9g, expected %.9g (%s)", #t, #i, got_, want_, wk_error()); \
        wk_error_clear(); \
    } while (0)

/* Numbers up to 2^31 and beyond, themselves; elementwise ops, narrowing, sums. */
static void elementwise(wk_device *d)
{
    wk_tensor *x = wk_arange(d, WK_I64, 0, (double)BIG, 1);
    CHECK_AT(x, -1, (double)(BIG - 1));
    CHECK_AT(x, BIG - 1000, (double)(BIG - 1000));
    wk_tensor *y = wk_cast(x, WK_F32);
    wk_drop(x);
    wk_tensor *z = wk_add(y, y);
    CHECK_AT(z, -1, 2.0 * (double)(BIG - 1));
    wk_drop(z);
    wk_tensor *ones = wk_fill(d, WK_F32, 1, (int64_t[]){BIG}, 1);
    CHECK_AT(wk_sum(ones, 0, NULL, 0), 0, (double)BIG);
    wk_tensor *picked = wk_where(wk_lt(ones, y), y, ones);
    CHECK_AT(picked, 0, 1);
    CHECK_AT(picked, -1, (double)(BIG - 1));
}

/* A matrix of 2^16 + 3 rows of 2^15 + 16: [i, j] holds i, up to 3000. */
static void matrices(wk_device *d)
{
    int64_t rows = (1 << 16) + 3, cols = (1 << 15) + 16, shape[] = {rows, cols};
    wk_tensor *count = wk_arange(d, WK_I64, 0, (double)rows, 1);
    wk_tensor *numbers = wk_cast(wk_minimum(count, wk_fill(d, WK_I64, 1, &rows, 3000)), WK_F16);
    wk_tensor *m =
        wk_copy(wk_broadcast(wk_reshape(wk_narrow(numbers, 0, 0, rows), 2, (int64_t[]){rows, 1}), 2, shape));
    CHECK(m != NULL);
    wk_tensor *turned = wk_copy(wk_transpose(m, 0, 1));
    CHECK_AT(turned, 2048, 2048);
    CHECK_AT(turned, rows * (cols - 1) + 1024, 1024);
    wk_drop(turned);
    wk_tensor *soft = wk_softmax(m, 1, (int64_t[]){-1}, WK_SOFTMAX_ACCURATE);
    test_check(fabs(at(soft, -1) * (double)cols - 1) < 2e-3, __FILE__, __LINE__, "softmax: got %g",
               at(soft, -1));
    wk_drop(soft);
    wk_tensor *row = wk_fill(d, WK_F16, 1, (int64_t[]){cols}, 1);
    wk_tensor *sum = wk_add(m, row);
    CHECK_AT(sum, 2 * cols, 3);
    CHECK_AT(sum, 2000 * cols + 5, 2001);
    wk_drop(sum);
    int64_t ids[3] = {rows - 1, 5, 2047};
    wk_tensor *taken = wk_index_select(m, wk_from_host(d, WK_I64, 1, (int64_t[]){3}, ids), 0);
    CHECK_AT(taken, cols, 5);
    CHECK_AT(taken, -1, 2047);
    CHECK_AT(wk_sum(wk_narrow(m, 0, 0, 64), 1, (int64_t[]){0}, 0), -1, 2016);
    wk_tensor *normal = wk_rms_norm(m, row, 1e-5);
    CHECK_AT(normal, 2000 * cols + 7, 1);
}

static void first_result(wk_device *d, double start)
{
    double opened = seconds();
    float one = 1, two = 0;
    wk_tensor *x = wk_from_host(d, WK_F32, 1, (int64_t[]){1}, &one);
    CHECK(wk_to_host(wk_add(x, x), &two) == WK_OK && two == 2);
    printf("%s: opened in %.0f ms, first result %.0f ms later\n", wk_device_name(d), (opened - start) * 1e3,
           (seconds() - opened) * 1e3);
}

int main(void)
{
    double start = seconds();
    wk_device *d = wk_device_open("auto");
    if (d->kind == WK_KIND_CPU || wk_gpu_of(d)->facts.memory < (size_t)80 << 30) {
        SKIP("no GPU with 80 GB of memory");
        return test_end();
    }
    void (*const tests[])(wk_device *) = {elementwise, matrices};
    first_result(d, start);
    for (int i = 0; i < 2; i++) {
        wk_scope_begin();
        tests[i](d);
        CHECK_FINE();
        wk_scope_end();
        wk_memory_trim(d);
    }
    return test_end();
}
