/* binary.inc.h: the formulas of the binary ops and their gradients, for REAL. */

#define MAP(name, formula) \
    static void FN(name)(void *out, const void *const *in, int64_t n, const void *params) \
    { \
        const REAL *as = in[0], *bs = in[1]; \
        REAL *ys = out; \
        (void)params; \
        WK_INDEPENDENT for (int64_t i = 0; i < n; i++) \
        { \
            REAL a = as[i], b = bs[i]; \
            ys[i] = formula; \
        } \
    }

#define COMPARE(name, operator) \
    static void FN(name)(void *out, const void *const *in, int64_t n, const void *params) \
    { \
        const REAL *as = in[0], *bs = in[1]; \
        int64_t *ys = out; \
        (void)params; \
        for (int64_t i = 0; i < n; i++) \
            ys[i] = as[i] operator bs[i]; \
    }

/* The gradient for a and for b, each a map of (a, b, dy). */
#define GRAD(name, for_a, for_b) GRAD_OF(name##_da, for_a) GRAD_OF(name##_db, for_b)
#define GRAD_OF(name, formula) \
    static void FN(name)(void *out, const void *const *in, int64_t n, const void *params) \
    { \
        const REAL *as = in[0], *bs = in[1], *dys = in[2]; \
        REAL *ds = out; \
        (void)params; \
        WK_INDEPENDENT for (int64_t i = 0; i < n; i++) \
        { \
            REAL a = as[i], b = bs[i], dy = dys[i]; \
            (void)a, (void)b, (void)dy; \
            ds[i] = formula; \
        } \
    }

MAP(add, a + b)
MAP(sub, a - b)
MAP(mul, a *b)
MAP(div, a / b)
MAP(minimum, a != a || a < b ? a : b)
MAP(maximum, a != a || a > b ? a : b)
MAP(pow, R_POW(a, b))
COMPARE(eq, ==)
COMPARE(ne, !=)
COMPARE(lt, <)
COMPARE(le, <=)
COMPARE(gt, >)
COMPARE(ge, >=)
GRAD(add, dy, dy)
GRAD(sub, dy, -dy)
GRAD(mul, dy *b, dy *a)
GRAD(div, dy / b, -dy *a / (b * b))
GRAD(minimum, a < b ? dy : a == b ? dy / 2 : 0, b < a ? dy : a == b ? dy / 2 : 0)
GRAD(maximum, a > b ? dy : a == b ? dy / 2 : 0, b > a ? dy : a == b ? dy / 2 : 0)
GRAD(pow, b == 0 ? 0 : dy * b * R_POW(a, b - 1), a == 0 && b >= 0 ? 0 : dy * R_POW(a, b) * R_LOG(a))

/* Inputs: cond (int64), a, b. */
static void FN(where)(void *out, const void *const *in, int64_t n, const void *params)
{
    const int64_t *cond = in[0];
    const REAL *as = in[1], *bs = in[2];
    REAL *ys = out;
    (void)params;
    for (int64_t i = 0; i < n; i++)
        ys[i] = cond[i] ? as[i] : bs[i];
}

/* Inputs: cond (int64), dy. */
static void FN(where_da)(void *out, const void *const *in, int64_t n, const void *params)
{
    const int64_t *cond = in[0];
    const REAL *dy = in[1];
    REAL *da = out;
    (void)params;
    for (int64_t i = 0; i < n; i++)
        da[i] = cond[i] ? dy[i] : 0;
}

static void FN(where_db)(void *out, const void *const *in, int64_t n, const void *params)
{
    const int64_t *cond = in[0];
    const REAL *dy = in[1];
    REAL *db = out;
    (void)params;
    for (int64_t i = 0; i < n; i++)
        db[i] = cond[i] ? 0 : dy[i];
}

#undef MAP
#undef COMPARE
#undef GRAD
#undef GRAD_OF
