/* reduce_grad.inc.h: what turns a reduction's raw sums into its result, and the formulas of the gradients, for
 * REAL. y is the forward's raw result for the element's place, n the number of elements reduced. */

#define MAP1(name, formula) \
    static void FN(name)(void *out, const void *const *in, int64_t n, const void *params) \
    { \
        const REAL *ss = in[0]; \
        REAL *ys = out, count = (REAL) * (const double *)params; \
        (void)count; \
        for (int64_t i = 0; i < n; i++) { \
            REAL s = ss[i]; \
            ys[i] = formula; \
        } \
    }
/* dx from x, a raw result y and dy; a fourth input z where there is one. */
#define MAP4(name, formula) \
    static void FN(name)(void *out, const void *const *in, int64_t n, const void *params) \
    { \
        const REAL *xs = in[0], *ys = in[1], *dys = in[2], *zs = in[3]; \
        REAL *dxs = out, count = (REAL) * (const double *)params; \
        (void)count; \
        for (int64_t i = 0; i < n; i++) { \
            REAL x = xs[i], y = ys[i], dy = dys[i], z = zs[i]; \
            (void)x, (void)y, (void)z; \
            dxs[i] = formula; \
        } \
    }

MAP1(divide, s / count)
MAP1(root, R_SQRT(s))
MAP1(finite_or_zero, R_ABS(s) <= -R_LOWEST ? s : 0)

/* log_sum_exp: inputs are the sum and the center. */
static void FN(log_plus)(void *out, const void *const *in, int64_t n, const void *params)
{
    const REAL *sums = in[0], *centers = in[1];
    REAL *ys = out;
    (void)params;
    for (int64_t i = 0; i < n; i++)
        ys[i] = R_LOG(sums[i]) + centers[i];
}

MAP4(sum_grad, dy)
MAP4(mean_grad, dy / count)
MAP4(norm1_grad, dy *((REAL)(x > 0) - (REAL)(x < 0)))
MAP4(norm2_grad, y == 0 ? 0 : dy * x / y)
MAP4(log_sum_exp_grad, dy *R_EXP(x - y))
MAP4(var_grad, dy * 2 * (x - y) / count)
/* y: product of what is not 0; z: how many are. */
MAP4(prod_grad, x != 0 ? (z == 0 ? dy * y / x : 0) : (z == 1 ? dy * y : 0))
/* z: how many are equal to the extreme y. */
MAP4(extreme_grad, x == y ? dy / z : 0)
/* The slope of |x| at 0 is 0. */
MAP4(amax_grad, R_ABS(x) == y ? dy / z * ((REAL)(x > 0) - (REAL)(x < 0)) : 0)

#undef MAP1
#undef MAP4
