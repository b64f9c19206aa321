/* bf16.c: ops and expressions that take elements as they are: on every one of the 65536 numbers of bf16, at every place
 * of a block, in every layout, in tensors so large that results go past the cache. */
#include "values.h"
#include "wick/wick.h"

enum { ALL = 1 << 16 };

static double exp_of(double x) { return exp(x); }
static double relu_of(double x) { return x < 0 ? 0 : x; }
static double silu_of(double x) { return x / (1 + exp(-x)); }
static double gelu_of(double x)
{
    return x / (1 + exp(-2 * 0.79788456080286535588 * (x + 0.044715 * x * x * x)));
}

static const struct {
    const char *name;
    wk_tensor *(*op)(const wk_tensor *);
    double (*of)(double);
    bool exact;
} unary[] = {{"exp", wk_exp, exp_of, false},
             {"gelu", wk_gelu, gelu_of, false},
             {"silu", wk_silu, silu_of, false},
             {"relu", wk_relu, relu_of, true}};

static double sum_of(double x, double y) { return x + y; }
static double difference_of(double x, double y) { return x - y; }
static double product_of(double x, double y) { return x * y; }
static double quotient_of(double x, double y) { return x / y; }
static double silu_mul_of(double x, double y) { return silu_of(x) * y; }

static const struct {
    const char *name;
    wk_tensor *(*op)(const wk_tensor *, const wk_tensor *);
    double (*of)(double, double);
    bool exact;
} binary[] = {{"add", wk_add, sum_of, true},
              {"sub", wk_sub, difference_of, true},
              {"mul", wk_mul, product_of, true},
              {"div", wk_div, quotient_of, true},
              {"silu_mul", wk_silu_mul, silu_mul_of, false}};

static double value(uint16_t h) { return wk_load_f64(WK_BF16, &h); }

static uint16_t nearest(double v)
{
    uint16_t h;
    wk_store_f64(WK_BF16, &h, v);
    return h;
}

/* Places of a number in the order of all: neighbours differ by one, both zeros are one. */
static int place(uint16_t h) { return h & 0x8000 ? -(h & 0x7FFF) : h; }

/* Whether got is want rounded, or its neighbour; what is left of a quotient by more than a float holds may be 0. */
static bool near(uint16_t got, double want, bool exact)
{
    if (want != want || value(got) != value(got))
        return want != want && value(got) != value(got);
    if (!exact && fabs(want) < 0x1p-120 && value(got) == 0)
        return true;
    return abs(place(got) - place(nearest(want))) <= (exact ? 0 : 1);
}

/* Every bf16, in order. */
static wk_tensor *all_numbers(void)
{
    wk_tensor *t = wk_empty(wk_cpu(), WK_BF16, SHAPE(ALL));
    for (int i = 0; t && i < ALL; i++)
        ((uint16_t *)wk_data(t))[i] = (uint16_t)i;
    return t;
}

static void test_unary(void)
{
    const wk_tensor *x = all_numbers();
    for (size_t k = 0; k < sizeof unary / sizeof *unary; k++) {
        const wk_tensor *y = unary[k].op(x);
        const uint16_t *got = wk_data(y);
        int wrong = 0, rounded_otherwise = 0;
        for (int i = 0; i < ALL; i++) {
            double want = unary[k].of(value((uint16_t)i));
            bool ok = near(got[i], want, unary[k].exact);
            if (!ok && wrong++ < 8)
                test_check(ok, __FILE__, __LINE__, "%s of %g (0x%04x): got %g, expected %g", unary[k].name,
                           value((uint16_t)i), (unsigned)i, value(got[i]), want);
            rounded_otherwise +=
                want == want && fabs(want) > 0x1p-120 && place(got[i]) != place(nearest(want));
        }
        CHECK_EQ(wrong, 0);
        CHECK(rounded_otherwise < ALL / 50); /* good to 2^-12: seldom on the other side of a half */
    }
}

/* Sums, products and quotients are exact in double, or so nearly that they round as they should. */
static void test_binary(void)
{
    const uint16_t others[] = {0x3F80, 0xBF81, 0x3FC3, 0x4049, 0x0001, 0x8080, 0x7F80, 0x7FC0, 0x3A95};
    const wk_tensor *a = all_numbers();
    for (size_t j = 0; j < sizeof others / sizeof *others; j++) {
        wk_tensor *b = wk_fill(wk_cpu(), WK_BF16, SHAPE(ALL), value(others[j]));
        for (size_t k = 0; k < sizeof binary / sizeof *binary; k++) {
            const uint16_t *got = wk_data(binary[k].op(a, b));
            int wrong = 0;
            for (int i = 0; i < ALL; i++) {
                double x = value((uint16_t)i), y = value(others[j]);
                bool lost = !binary[k].exact && isinf(y) && x < -80; /* 0, times infinity */
                wrong += !lost && !near(got[i], binary[k].of(x, y), binary[k].exact);
            }
            test_check(wrong == 0, __FILE__, __LINE__, "%s with %g: %d wrong", binary[k].name,
                       value(others[j]), wrong);
        }
    }
}

/* A result depends on the number alone: not on where in a tensor it is, nor on the tensor's layout. */
static void test_places(void)
{
    enum { FIRST = 0x3F00, LONGEST = 100 };
    wk_tensor *x = all_numbers(), *rows = wk_reshape(x, SHAPE(256, 256));
    for (size_t k = 0; k < sizeof unary / sizeof *unary; k++) {
        const uint16_t *want = wk_data(unary[k].op(x));
        for (int n = 1; n < LONGEST; n++)
            CHECK(memcmp(wk_data(unary[k].op(wk_narrow(x, 0, FIRST, n))), want + FIRST, (size_t)n * 2) == 0);
        const uint16_t *across = wk_data(unary[k].op(wk_transpose(rows, 0, 1)));
        bool same = true;
        for (int i = 0; i < ALL; i++)
            same = same && across[i] == want[i % 256 * 256 + i / 256];
        CHECK(same);
    }
}

/* Softmax of a row is the same alone and beside rows that go another way. */
static void test_rows_apart(void)
{
    enum { ROWS = 8, SIZE = 40 };
    wk_tensor *x = wk_randn(wk_cpu(), WK_BF16, 2, (int64_t[]){ROWS, SIZE}, 0, 4, 5, 0);
    static const double odd[] = {2000, INFINITY, NAN};
    for (int k = 0; k < 3; k++) {
        CHECK_EQ(wk_fill_into(wk_narrow(wk_narrow(x, 0, 3 + 2 * k % 5, 1), 1, 3, 1), odd[k]), WK_OK);
        const uint16_t *all = wk_data(wk_softmax(x, 0, NULL, WK_SOFTMAX_ACCURATE));
        for (int i = 0; i < ROWS; i++) {
            const uint16_t *one = wk_data(wk_softmax(wk_narrow(x, 0, i, 1), 0, NULL, WK_SOFTMAX_ACCURATE));
            test_check(memcmp(one, all + i * SIZE, SIZE * sizeof *one) == 0, __FILE__, __LINE__,
                       "softmax beside %g: row %d is another one alone", odd[k], i);
        }
    }
}

/* ---- large ones ---- */

enum { PERIOD = 1000, LARGE = (24 << 20) / 2 + PERIOD / 2 }; /* no multiple of anything in the way */

static const char *const texts[] = {
    "gelu(a*b+c)*d",         "exp(a)*b+silu(c)*d",  "(a*b+c*d)*(a-b)", "tanh(a*b)+sqr(c)*d",
    "relu(a*b)*c+a*d",       "d-exp(a*b)*exp(a*b)", "tanh(a*b+c*d)",   "(a-b)*(c-d)+(a+b)*(c+d)*a",
    "(a*b+c)*d+a",           "gelu(a-b)*c+d",       "relu(a+b)+c+d",   "a-b+c+d",
    "d+exp(silu(a)*b)*(c+a)"};

/* Where there is nothing to add or to multiply by, a step changes nothing: not the sign of a zero either. */
static void test_zeros(void)
{
    const char *const same[] = {"a*1", "a+b", "relu(a)", "a*1*1", "gelu(a)", "silu(a)*1", "a-(-b)"};
    for (int k = 0; k < 4; k++) {
        wk_dtype dtype = k % 2 ? WK_BF16 : WK_F32;
        const wk_tensor *in[] = {wk_fill(wk_cpu(), dtype, SHAPE(70), k < 2 ? -0.0 : 0.0),
                                 wk_fill(wk_cpu(), dtype, SHAPE(70), k < 2 ? -0.0 : 0.0)};
        for (size_t j = 0; j < sizeof same / sizeof *same; j++) {
            wk_expr *e = wk_expr_compile(same[j]);
            double *got = elements(wk_expr_run(e, in, wk_expr_inputs(e)));
            test_check(got[0] == 0 && got[69] == 0 && !signbit(got[69]) == (k >= 2), __FILE__, __LINE__,
                       "%s of %s0", same[j], k < 2 ? "-" : "");
            free(got);
            wk_expr_drop(e);
        }
    }
}

/* n numbers from -2 to 2 that begin anew after PERIOD, as f64 and then as dtype. */
static wk_tensor *periodic(wk_dtype dtype, int64_t n, int seed)
{
    wk_tensor *t = wk_empty(wk_cpu(), dtype, SHAPE(n));
    for (int64_t i = 0; t && i < n; i++)
        wk_store_f64(dtype, (char *)wk_data(t) + (size_t)i * wk_dtype_size(dtype),
                     (double)((i % PERIOD * 7919 + seed * 211) % 401 - 200) / 100);
    return t;
}

/* The first PERIOD results are right, and every other one is the same as PERIOD before it, to the bit. */
static void check_periods(const wk_tensor *y, const wk_tensor *want, const char *text)
{
    size_t bytes = wk_dtype_size(wk_dtype_of(y)), period = PERIOD * bytes, all = (size_t)wk_count(y) * bytes;
    double *got = elements(wk_narrow(y, 0, 0, PERIOD)), *expected = elements(want);
    double worst = 0;
    for (int i = 0; i < PERIOD; i++)
        worst = fmax(worst, fabs(got[i] - expected[i]) / (fabs(expected[i]) + 0.02));
    test_check(worst < (bytes == 2 ? 0x1p-7 : 0x1p-16), __FILE__, __LINE__, "%s: off by %g", text, worst);
    test_check(memcmp((const char *)wk_data(y) + period, wk_data(y), all - period) == 0, __FILE__, __LINE__,
               "%s: not the same at every place", text);
    free(got);
    free(expected);
}

static void test_large(wk_dtype dtype)
{
    const wk_tensor *large[4], *exact[4];
    for (int i = 0; i < 4; i++) {
        large[i] = periodic(dtype, LARGE, i);
        exact[i] = wk_cast(wk_narrow(large[i], 0, 0, PERIOD), WK_F64);
    }
    wk_tensor *place =
        wk_narrow(wk_empty(wk_cpu(), dtype, SHAPE(LARGE + 1)), 0, 1, LARGE); /* no start of a line */
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
        wk_expr *e = wk_expr_compile(texts[k]);
        wk_scope_begin();
        const wk_tensor *want = wk_expr_run(e, exact, wk_expr_inputs(e));
        check_periods(wk_expr_run(e, large, wk_expr_inputs(e)), want, texts[k]);
        CHECK_EQ(wk_expr_run_into(place, e, large, wk_expr_inputs(e)), WK_OK);
        check_periods(place, want, texts[k]);
        wk_scope_end();
        wk_expr_drop(e);
    }
    for (size_t k = 0; k < sizeof unary / sizeof *unary; k++)
        check_periods(unary[k].op(large[0]), unary[k].op(exact[0]), unary[k].name);
    check_periods(wk_silu_mul(large[0], large[1]), wk_silu_mul(exact[0], exact[1]), "silu_mul");
}

int main(void)
{
    wk_scope_begin();
    test_unary();
    test_binary();
    test_places();
    test_rows_apart();
    test_zeros();
    wk_scope_end();
    for (int i = 0; i < 2; i++) {
        wk_scope_begin();
        test_large(i ? WK_BF16 : WK_F32);
        wk_scope_end();
    }
    CHECK_FINE();
    return test_end();
}
