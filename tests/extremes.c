/* extremes.c: minima and maxima of rows and their places: equal elements, zeros of both signs, infinities and NaN, in
 * rows of many lengths and every float dtype, beside the plain loop. */
#include "values.h"

static const wk_dtype dtypes[] = {WK_F32, WK_F16, WK_BF16, WK_F64};

/* Some whole numbers, so that many are equal, and now and then something special. kind: 0 without, 1 with infinities,
 * 2 with NaN of both signs too, 3 zeros alone; 4 numbers below 0 alone, 5 numbers of which the large ones are rare. */
static double some_value(uint64_t *seed, int kind)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    if (kind == 5) {
        double v = ldexp(1 + (double)(*seed >> 60) / 16, __builtin_clzll(*seed << 8 | (uint64_t)1 << 49));
        return *seed >> 59 & 1 ? -v : v;
    }
    unsigned r = (unsigned)(*seed >> 40) % 400;
    if (kind == 4)
        return -1 - (double)(r % 101);
    if (kind == 3 || r % 20 == 0)
        return r % 2 ? -0.0 : 0.0;
    if (r == 1 && kind > 0)
        return INFINITY;
    if (r == 2 && kind > 0)
        return -INFINITY;
    if ((r == 3 || r == 5) && kind > 1)
        return r == 3 ? NAN : -NAN;
    return (double)(r % 101) - 60;
}

typedef enum { LEAST, LARGEST, MAGNITUDE } which;

static bool better(which w, double t, double s)
{
    if (s != s)
        return false;
    if (t != t)
        return true;
    return w == LEAST ? t < s : w == LARGEST ? t > s : fabs(t) > fabs(s);
}

static int64_t first_best(which w, const double *x, int64_t n)
{
    int64_t at = 0;
    for (int64_t i = 1; i < n; i++)
        at = better(w, x[i], x[at]) ? i : at;
    return at;
}

static double element(const wk_tensor *t, int64_t i)
{
    return wk_load_f64(wk_dtype_of(t), (const char *)wk_data(t) + (size_t)i * wk_dtype_size(wk_dtype_of(t)));
}

static wk_tensor *extreme(which w, const wk_tensor *x, wk_tensor **places)
{
    int64_t last = 1;
    return (w == LEAST ? wk_min : w == LARGEST ? wk_max : wk_amax)(x, 1, &last, 0, places);
}

static void test_rows(wk_dtype dtype, int64_t n, int kind)
{
    enum { ROWS = 3 };
    uint64_t seed = (uint64_t)n * 4 + (uint64_t)kind;
    double values[ROWS * 5000];
    for (int64_t i = 0; i < ROWS * n; i++)
        values[i] = some_value(&seed, kind);
    wk_tensor *x = wk_cast(wk_from_host(wk_cpu(), WK_F64, SHAPE(ROWS, n), values), dtype);
    for (int w = LEAST; w <= MAGNITUDE; w++) {
        wk_tensor *places, *y = extreme((which)w, x, &places);
        wk_tensor *arg = w == LEAST ? wk_argmin(x, 1, 0) : w == LARGEST ? wk_argmax(x, 1, 0) : places;
        for (int r = 0; r < ROWS; r++) {
            int64_t want = first_best((which)w, values + r * n, n);
            double v = values[r * n + want];
            double got = element(y, r), at = element(places, r);
            v = w == MAGNITUDE ? fabs(v) : v;
            test_check(at == (double)want && element(arg, r) == at, __FILE__, __LINE__,
                       "%s, %lld: place %g, expected %lld", wk_dtype_name(dtype), (long long)n, at,
                       (long long)want);
            test_check(v == v ? got == v && !signbit(got) == !signbit(v) : got != got, __FILE__, __LINE__,
                       "%s, %lld: got %g, expected %g", wk_dtype_name(dtype), (long long)n, got, v);
        }
    }
}

int main(void)
{
    static const int64_t lengths[] = {1, 2, 31, 32, 33, 127, 128, 129, 255, 300, 1000, 4096, 4099, 5000};
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++) {
        for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++) {
            for (int kind = 0; kind < 6; kind++) {
                wk_scope_begin();
                test_rows(dtypes[d], lengths[k], kind);
                wk_scope_end();
            }
        }
    }
    CHECK_FINE();
    return test_end();
}
