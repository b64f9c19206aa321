/* large.c: results too large for the cache, which are written past it: the same bits as from the rows a few at a time; large
 * operands of products. */
#include "core/dtype.h"
#include "core/tensor.h"
#include "test.h"
#include "wick/wick.h"

enum { ROWS = 100, BYTES = 25 << 20, OPS = 13 };

static wk_expr *expression;

static wk_tensor *run(int op, const wk_tensor *a, const wk_tensor *b, const wk_tensor *bias)
{
    wk_tensor *sum = NULL;
    switch (op) {
    case 0: return wk_gelu(a);
    case 1: return wk_add(a, b);
    case 2: return wk_silu_mul(a, b);
    case 3: return wk_bias_act(a, bias, NULL, 1, (wk_act){.kind = WK_ACT_GELU});
    case 4: return wk_mul(a, bias);
    case 5: return wk_softmax(a, 0, NULL, WK_SOFTMAX_ACCURATE);
    case 6: return wk_softmax(a, 0, NULL, WK_SOFTMAX_LOG);
    case 7: return wk_layer_norm(a, bias, bias, 1e-5);
    case 8: return wk_layer_norm(a, bias, NULL, 1e-5);
    case 9: return wk_rms_norm(a, bias, 1e-5);
    case 10: return wk_add_rms_norm(a, b, bias, 1e-5, NULL);
    case 11: return wk_add_layer_norm(a, b, bias, bias, 1e-5, &sum) ? sum : NULL;
    default: return wk_expr_run(expression, (const wk_tensor *const[]){a, b}, 2);
    }
}

static bool same_bits(const wk_tensor *a, const wk_tensor *b)
{
    return a && b && wk_count(a) == wk_count(b) &&
           memcmp(wk_ptr(a), wk_ptr(b), (size_t)wk_count(a) * wk_bytes(a->dtype)) == 0;
}

static void check(wk_dtype dtype, int64_t columns)
{
    int64_t rows = BYTES / ((int64_t)wk_bytes(dtype) * columns) / 8 * 8 + 8, shape[2] = {rows, columns};
    wk_tensor *a = wk_randn(wk_cpu(), dtype, 2, shape, 0, 2, 1, 0),
              *b = wk_randn(wk_cpu(), dtype, 2, shape, 0, 2, 2, 0),
              *bias = wk_randn(wk_cpu(), dtype, 1, &columns, 0, 2, 3, 0);
    for (int op = 0; op < OPS; op++) {
        wk_scope_begin();
        wk_tensor *whole = run(op, a, b, bias);
        CHECK(whole != NULL);
        for (int64_t at = 0; at < rows && whole; at += ROWS) {
            int64_t n = rows - at < ROWS ? rows - at : ROWS;
            wk_scope_begin();
            wk_tensor *part = run(op, wk_narrow(a, 0, at, n), wk_narrow(b, 0, at, n), bias);
            test_check(same_bits(part, wk_narrow(whole, 0, at, n)), __FILE__, __LINE__,
                       "op %d, %s: other bits from row %d on", op, wk_dtype_name(dtype), (int)at);
            wk_scope_end();
        }
        wk_scope_end();
    }
}

/* Rows that are whole lines, twice as wide, and others: by planes. */
static void check_upsample(wk_dtype dtype, int64_t width, int high, int wide)
{
    enum { HEIGHT = 33 };
    const wk_upsample_options *options = WK_UPSAMPLE(.scale = {high, wide});
    int64_t planes = BYTES / (HEIGHT * width * high * wide * (int64_t)wk_bytes(dtype)) + 1;
    wk_scope_begin();
    wk_tensor *x =
        wk_cast(wk_randn(wk_cpu(), WK_F32, 4, (int64_t[]){1, planes, HEIGHT, width}, 50, 20, 1, 0), dtype);
    wk_tensor *whole = wk_upsample_nearest2d(x, options);
    CHECK(whole != NULL);
    for (int64_t at = 0; at < planes && whole; at++) {
        wk_scope_begin();
        wk_tensor *part = wk_upsample_nearest2d(wk_narrow(x, 1, at, 1), options);
        test_check(same_bits(part, wk_narrow(whole, 1, at, 1)), __FILE__, __LINE__,
                   "upsample_nearest2d, %s, rows of %d: other bits in plane %d", wk_dtype_name(dtype),
                   (int)width, (int)at);
        wk_scope_end();
    }
    wk_scope_end();
}

/* The product of one row with a matrix that comes from memory: what it gives as one of several rows, but for rounding. */
static void check_row(wk_dtype dtype, int64_t n)
{
    enum { ROWS_OF_A = 9 };
    int64_t k = (int64_t)(64 << 20) / (n * (int64_t)wk_bytes(dtype)) + 5;
    wk_scope_begin();
    wk_tensor *a = wk_randn(wk_cpu(), dtype, 2, (int64_t[]){ROWS_OF_A, k}, 0, 1, 1, 0),
              *b = wk_randn(wk_cpu(), dtype, 2, (int64_t[]){k, n}, 0, 1, 2, 0);
    wk_tensor *one = wk_cast(wk_matmul(wk_narrow(a, 0, 0, 1), b), WK_F64);
    wk_tensor *row = wk_cast(wk_narrow(wk_matmul(a, b), 0, 0, 1), WK_F64);
    CHECK(one && row);
    double allowed = (dtype == WK_F32 ? 2e-6 : dtype == WK_F64 ? 1e-14 : 8e-3) * (double)k / 64;
    for (int64_t j = 0; one && row && j < n; j++) {
        double x = ((const double *)wk_ptr(one))[j], y = ((const double *)wk_ptr(row))[j];
        test_check(x - y <= allowed && y - x <= allowed, __FILE__, __LINE__,
                   "matmul, %s: column %d: %g and %g", wk_dtype_name(dtype), (int)j, x, y);
    }
    wk_scope_end();
}

/* What a product works in is no larger than its operands, however many parts they make. */
static void check_workspace(void)
{
    enum { K = 8 << 20, LIMIT = 160 << 20 };
    for (int64_t n = 2; n <= 3; n++) {
        wk_scope_begin();
        wk_tensor *x = wk_fill(wk_cpu(), WK_F32, 2, (int64_t[]){1, K}, 1);
        wk_tensor *b = wk_fill(wk_cpu(), WK_F32, 2, (int64_t[]){K, n}, 1);
        CHECK_EQ(wk_memory_limit(wk_cpu(), LIMIT), WK_OK);
        wk_tensor *y = wk_matmul(x, b);
        CHECK(y && ((const float *)wk_ptr(y))[0] == K);
        CHECK_EQ(wk_memory_limit(wk_cpu(), 0), WK_OK);
        wk_scope_end();
    }
}

/* Long sums of equal numbers, whose roundings all go the same way. */
static void check_long_sums(void)
{
    enum { K = 200000, N = 8 };
    wk_scope_begin();
    wk_tensor *x = wk_fill(wk_cpu(), WK_F32, 2, (int64_t[]){K, N}, 0.7);
    wk_tensor *y = wk_matmul(wk_transpose(wk_narrow(x, 1, 0, 1), 0, 1), x);
    double want = (double)0.7f * 0.7f * K;
    CHECK(y != NULL);
    for (int j = 0; y && j < N; j++) {
        double off = ((const float *)wk_ptr(y))[j] / want - 1;
        test_check(off < 5e-5 && off > -5e-5, __FILE__, __LINE__, "matmul: column %d: off by %g", j, off);
    }
    wk_scope_end();
}

int main(void)
{
    wk_scope_begin();
    check_workspace();
    check_long_sums();
    check_row(WK_F32, 4096);
    check_row(WK_F64, 1999);
    check_row(WK_BF16, 4096);
    check_row(WK_F16, 8009);
    for (int dtype = 0; dtype < WK_DTYPE_COUNT; dtype++) {
        check_upsample((wk_dtype)dtype, 192, 2, 2);
        check_upsample((wk_dtype)dtype, 192, 3, 2);
        check_upsample((wk_dtype)dtype, 192, 3, 3);
        check_upsample((wk_dtype)dtype, 71, 2, 2);
    }
    expression = wk_expr_compile("gelu(a*b + a)*b");
    static const int64_t columns[] = {1031, 544, 1056}; /* the last two are whole lines of the cache */
    for (int k = 0; k < 3; k++) {
        check(WK_F32, columns[k]);
        check(WK_BF16, columns[k]);
        check(WK_F64, columns[k]);
    }
    wk_expr_drop(expression);
    wk_scope_end();
    return test_end();
}
