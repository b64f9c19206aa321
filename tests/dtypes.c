/* dtypes.c: dtypes, conversion of single elements, arithmetic on shapes. */
#include <fenv.h>
#include "core/dtype.h"
#include "core/shape.h"
#include "values.h"

static void test_names(void)
{
    static const struct {
        wk_dtype dtype;
        const char *name;
        size_t size;
    } all[] = {{WK_F32, "f32", 4}, {WK_F16, "f16", 2}, {WK_BF16, "bf16", 2},
               {WK_F64, "f64", 8}, {WK_U8, "u8", 1},   {WK_U32, "u32", 4},
               {WK_I64, "i64", 8}, {WK_I32, "i32", 4}, {WK_I16, "i16", 2}};
    CHECK_EQ(sizeof all / sizeof *all, WK_DTYPE_COUNT);
    for (int i = 0; i < WK_DTYPE_COUNT; i++) {
        CHECK_STR(wk_dtype_name(all[i].dtype), all[i].name);
        CHECK_EQ(wk_dtype_size(all[i].dtype), all[i].size);
        CHECK_EQ(wk_dtype_parse(all[i].name), all[i].dtype);
    }
    const int none[] = {-1, WK_DTYPE_COUNT, 1000};
    for (int i = 0; i < 3; i++) {
        CHECK_STR(wk_dtype_name((wk_dtype)none[i]), "?");
        CHECK_EQ(wk_dtype_size((wk_dtype)none[i]), 0);
    }
    const char *const unknown[] = {NULL, "", "f", "f320", "F32", " f32", "float"};
    for (int i = 0; i < 7; i++)
        CHECK_EQ(wk_dtype_parse(unknown[i]), WK_DTYPE_COUNT);
    CHECK_FINE();
}

/* ---- halves ---- */

/* The value of a half with so many fraction bits, from its definition. */
static double half_value(uint16_t h, int fraction_bits)
{
    int exponent_bits = 15 - fraction_bits, bias = (1 << (exponent_bits - 1)) - 1;
    int exponent = (h & 0x7FFF) >> fraction_bits, fraction = h & ((1 << fraction_bits) - 1);
    double value;
    if (exponent == (1 << exponent_bits) - 1)
        value = fraction ? NAN : INFINITY;
    else if (exponent == 0)
        value = ldexp(fraction, 1 - bias - fraction_bits);
    else
        value = ldexp(fraction + (1 << fraction_bits), exponent - bias - fraction_bits);
    return h & 0x8000 ? -value : value;
}

static uint16_t stored(wk_dtype dtype, double v)
{
    uint16_t h;
    wk_store_f64(dtype, &h, v);
    return h;
}

/* Every bit pattern means what its definition says and comes back; halfway between neighbours goes to the even
 * one, a little beside halfway to the nearer one, however little that is (rounding twice would get it wrong). */
static void test_half(wk_dtype dtype, int fraction_bits)
{
    int wrong_value = 0, wrong_trip = 0, wrong_tie = 0, wrong_near = 0;
    uint16_t infinity = (uint16_t)(0x7FFF & ~((1 << fraction_bits) - 1));
    for (int i = 0; i < 0x10000; i++) {
        uint16_t h = (uint16_t)i;
        double want = half_value(h, fraction_bits), got = wk_load_f64(dtype, &h);
        bool nan = want != want;
        wrong_value += nan ? got == got : got != want || signbit(got) != signbit(want);
        wrong_trip += nan ? half_value(stored(dtype, got), fraction_bits) == got : stored(dtype, got) != h;
        if ((h & 0x7FFF) >= infinity)
            continue;
        /* The next one up from the largest number is where its binade would go on. */
        double up = (h & 0x7FFF) + 1 == infinity
                        ? ldexp(half_value((uint16_t)(h - (1 << fraction_bits)), fraction_bits), 1)
                        : 0;
        double next = up != 0 ? up + (want - half_value((uint16_t)(h - 1), fraction_bits))
                              : half_value((uint16_t)(h + 1), fraction_bits);
        double tie = (want + next) / 2;
        wrong_tie += stored(dtype, tie) != (h & 1 ? h + 1 : h);
        wrong_near += stored(dtype, nextafter(tie, want)) != h;
        wrong_near += stored(dtype, nextafter(tie, next)) != h + 1;
    }
    CHECK_EQ(wrong_value, 0);
    CHECK_EQ(wrong_trip, 0);
    CHECK_EQ(wrong_tie, 0);
    CHECK_EQ(wrong_near, 0);
    CHECK_EQ(stored(dtype, INFINITY), infinity);
    CHECK_EQ(stored(dtype, 1e300), infinity);
    CHECK_EQ(stored(dtype, -1e300), 0x8000 | infinity);
    CHECK_EQ(stored(dtype, 1e-300), 0);
    CHECK_EQ(stored(dtype, -1e-300), 0x8000);
}

/* The cast op agrees with the conversion of single elements: every half up, and a walk through the floats down. */
static void test_cast(wk_dtype dtype)
{
    enum { N = 1 << 16 };
    static uint16_t halves[N], back[N];
    static float floats[N];
    int64_t shape[] = {N};
    wk_scope_begin();
    for (int i = 0; i < N; i++)
        halves[i] = (uint16_t)i;
    wk_tensor *h = wk_from_host(wk_cpu(), dtype, 1, shape, halves);
    CHECK_EQ(wk_to_host(wk_cast(h, WK_F32), floats), WK_OK);
    CHECK_EQ(wk_to_host(wk_cast(wk_cast(h, WK_F32), dtype), back), WK_OK);
    int wrong_up = 0, wrong_back = 0, wrong_down = 0;
    for (int i = 0; i < N; i++) {
        double v = wk_load_f64(dtype, &halves[i]);
        wrong_up += v == v ? floats[i] != v : floats[i] == floats[i];
        wrong_back += v == v ? back[i] != halves[i] : wk_load_f64(dtype, &back[i]) == v;
    }
    CHECK_EQ(wrong_up, 0);
    CHECK_EQ(wrong_back, 0);
    const uint32_t half = dtype == WK_F16 ? 0x1000 : 0x8000, below = 2 * half - 1; /* what is rounded away */
    for (int i = 0; i < N; i++) { /* an odd step, to meet all exponents; ties, and one beside them */
        uint32_t bits = (uint32_t)i * 65521u;
        floats[i] = wk_bits_float(i % 2 ? bits : (bits & ~below) + half + (uint32_t)(i / 2 % 3) - 1);
    }
    wk_tensor *f = wk_from_host(wk_cpu(), WK_F32, 1, shape, floats);
    CHECK_EQ(wk_to_host(wk_cast(f, dtype), back), WK_OK);
    for (int i = 0; i < N; i++) {
        bool nan = floats[i] != floats[i];
        wrong_down += nan ? !isnan(wk_load_f64(dtype, &back[i])) : back[i] != stored(dtype, floats[i]);
    }
    CHECK_EQ(wrong_down, 0);
    CHECK_FINE();
    wk_scope_end();
}

/* ---- integers ---- */

static int64_t through(wk_dtype dtype, double v)
{
    char element[8];
    wk_store_f64(dtype, element, v);
    return wk_load_i64(dtype, element);
}

static int64_t wrapped(wk_dtype dtype, int64_t v)
{
    char element[8];
    wk_store_i64(dtype, element, v);
    return wk_load_i64(dtype, element);
}

static void test_integers(void)
{
    static const struct {
        wk_dtype dtype;
        int64_t lo, hi;
    } all[] = {{WK_U8, 0, 255},
               {WK_U32, 0, UINT32_MAX},
               {WK_I16, INT16_MIN, INT16_MAX},
               {WK_I32, INT32_MIN, INT32_MAX},
               {WK_I64, INT64_MIN, INT64_MAX}};
    for (int i = 0; i < 5; i++) {
        wk_dtype d = all[i].dtype;
        CHECK_EQ(through(d, 1e30), all[i].hi);
        CHECK_EQ(through(d, -1e30), all[i].lo);
        CHECK_EQ(through(d, INFINITY), all[i].hi);
        CHECK_EQ(through(d, -INFINITY), all[i].lo);
        CHECK_EQ(through(d, NAN), 0);
        CHECK_EQ(through(d, 7.9), 7);
        CHECK_EQ(through(d, -7.9), all[i].lo == 0 ? 0 : -7);
        CHECK_EQ(wrapped(d, all[i].hi), all[i].hi);
        CHECK_EQ(wrapped(d, all[i].lo), all[i].lo);
        CHECK_EQ(wrapped(d, (int64_t)((uint64_t)all[i].hi + 1)), all[i].lo);
    }
    CHECK_EQ(through(WK_I64, -0x1p63), INT64_MIN);
    CHECK_EQ(through(WK_I64, 0x1p62), (int64_t)1 << 62);
    float f = 3e9f;
    CHECK_EQ(wk_load_i64(WK_F32, &f), 3000000000);
    wk_store_i64(WK_F32, &f, -5);
    CHECK(f == -5);
}

/* ---- shapes ---- */

static void test_counts(void)
{
    CHECK_EQ(wk_shape_count(SCALAR), 1);
    CHECK_EQ(wk_shape_count(SHAPE(2, 3)), 6);
    CHECK_EQ(wk_shape_count(SHAPE(2, 0, 3)), 0);
    CHECK_EQ(wk_shape_count(SHAPE(INT64_MAX, INT64_MAX, 0)), 0);
    CHECK_EQ(wk_shape_count(SHAPE(2, -1)), -1);
    CHECK_EQ(wk_shape_count(SHAPE(0, -1)), -1);
    CHECK_EQ(wk_shape_count(SHAPE(INT64_MAX, 2)), -1);
    CHECK_EQ(wk_shape_count(SHAPE((int64_t)1 << 32, (int64_t)1 << 32)), -1);
    CHECK_EQ(wk_shape_count(SHAPE((int64_t)1 << 61)), -1);
    wk_shape_text text;
    CHECK_STR(wk_shape_str(&text, SHAPE(2, 3)), "[2,3]");
    CHECK_STR(wk_shape_str(&text, SCALAR), "[]");
    const int64_t m = INT64_MIN;
    CHECK_EQ(strlen(wk_shape_str(&text, SHAPE(m, m, m, m, m, m, m, m))), sizeof text.text - 1);
    CHECK_EQ(wk_shape_dim(3, -1), 2);
    CHECK_EQ(wk_shape_dim(3, -3), 0);
    CHECK_EQ(wk_shape_dim(3, 3), -1);
    CHECK_EQ(wk_shape_dim(3, -4), -1);
    CHECK_EQ(wk_shape_dim(0, 0), -1);
    CHECK_EQ(wk_shape_dim(3, INT64_MIN), -1);
    CHECK_EQ(wk_shape_dim(3, (int64_t)1 << 32), -1);
}

static bool broadcasts(int rank_a, const int64_t *a, int rank_b, const int64_t *b, int rank,
                       const int64_t *want)
{
    int got_rank = -1;
    int64_t got[WK_MAX_RANK];
    return wk_shape_broadcast(rank_a, a, rank_b, b, &got_rank, got) &&
           wk_shape_equal(got_rank, got, rank, want);
}

static void test_broadcast(void)
{
    int rank;
    int64_t shape[WK_MAX_RANK];
    CHECK(broadcasts(SHAPE(2, 1, 4), SHAPE(3, 1), SHAPE(2, 3, 4)));
    CHECK(broadcasts(SHAPE(5), SCALAR, SHAPE(5)));
    CHECK(broadcasts(SHAPE(1), SHAPE(0), SHAPE(0)));
    CHECK(broadcasts(SHAPE(0, 3), SHAPE(1, 1), SHAPE(0, 3)));
    CHECK(broadcasts(SHAPE(1, 1, 1, 1, 1, 1, 1, 2), SHAPE(3, 1), SHAPE(1, 1, 1, 1, 1, 1, 3, 2)));
    CHECK(!wk_shape_broadcast(SHAPE(2), SHAPE(3), &rank, shape));
    CHECK(!wk_shape_broadcast(SHAPE(0), SHAPE(2), &rank, shape));
    CHECK(!wk_shape_broadcast(SHAPE(2, 3), SHAPE(2, 4), &rank, shape));
}

static bool coalesces(int rank, const int64_t *shape, const int64_t *strides, int want_rank,
                      const int64_t *want_shape, const int64_t *want_strides)
{
    int64_t s[WK_MAX_RANK], st[1][WK_MAX_RANK];
    memcpy(s, shape, (size_t)rank * sizeof *s);
    memcpy(st[0], strides, (size_t)rank * sizeof *s);
    int got = wk_shape_coalesce(rank, s, 1, st);
    return wk_shape_equal(got, s, want_rank, want_shape) &&
           wk_shape_equal(got, st[0], want_rank, want_strides);
}
#define LIST(...) \
    (int64_t[]) { __VA_ARGS__ }

static void test_coalesce(void)
{
    CHECK(coalesces(3, LIST(2, 3, 4), LIST(12, 4, 1), 1, LIST(24), LIST(1)));
    CHECK(coalesces(3, LIST(2, 3, 4), LIST(24, 4, 1), 2, LIST(2, 12), LIST(24, 1)));
    CHECK(coalesces(3, LIST(2, 3, 4), LIST(12, 4, 2), 2, LIST(6, 4), LIST(4, 2)));
    CHECK(coalesces(3, LIST(2, 1, 4), LIST(4, 99, 1), 1, LIST(8), LIST(1)));
    CHECK(coalesces(2, LIST(3, 4), LIST(0, 0), 1, LIST(12), LIST(0)));
    CHECK(coalesces(2, LIST(3, 4), LIST(0, 1), 2, LIST(3, 4), LIST(0, 1)));
    CHECK(coalesces(2, LIST(3, 4), LIST(1, 3), 2, LIST(3, 4), LIST(1, 3)));
    CHECK(coalesces(2, LIST(1, 1), LIST(7, 9), 0, LIST(0), LIST(0)));
    /* Two stride arrays: what one of them cannot walk in one go stays apart. */
    int64_t shape[WK_MAX_RANK] = {2, 3, 4}, strides[2][WK_MAX_RANK] = {{12, 4, 1}, {3, 1, 0}};
    CHECK_EQ(wk_shape_coalesce(3, shape, 2, strides), 2);
    CHECK(wk_shape_equal(2, shape, SHAPE(6, 4)));
    CHECK(wk_shape_equal(2, strides[0], SHAPE(4, 1)));
    CHECK(wk_shape_equal(2, strides[1], SHAPE(1, 0)));
    int64_t packed[WK_MAX_RANK];
    wk_shape_strides(3, LIST(2, 0, 4), packed);
    CHECK(wk_shape_equal(3, packed, SHAPE(4, 4, 1)));
}

int main(void)
{
    test_names();
    test_half(WK_F16, 10);
    test_half(WK_BF16, 7);
    test_cast(WK_F16);
    test_cast(WK_BF16);
    test_integers();
    test_counts();
    test_broadcast();
    test_coalesce();
    return test_end();
}
