/* softmax.inc.h: softmax of one line of n packed values, for REAL. */

/* y = softmax(x) or log(softmax(x)); y may be x. */
static void FN(softmax)(void *const *out, const void *const *in, int64_t line, int64_t n, const void *ctx)
{
    const REAL *x = in[0];
    REAL *y = out[0];
    int64_t mode = ((const softmax_ctx *)ctx)->mode;
    (void)line;
    REAL largest = mode == WK_SOFTMAX_FAST ? 0 : FN(line_top)(x, n); /* a NaN gets into the sum */
    if (mode == WK_SOFTMAX_LOG) {
        REAL log_sum = R_LOG(FN(line_sum_exp)(x, n, largest));
        for (int64_t i = 0; i < n; i++)
            y[i] = x[i] - largest - log_sum;
        return;
    }
    REAL scale = 1 / FN(line_exp)(x, y, n, largest);
    for (int64_t i = 0; i < n; i++)
        y[i] *= scale;
}

/* dx = y (dy - sum(y dy)), or dy - exp(y) sum(dy) for the log; dx may be either input. */
static void FN(softmax_backward)(void *const *out, const void *const *in, int64_t line, int64_t n,
                                 const void *ctx)
{
    const REAL *y = in[0], *dy = in[1];
    REAL *dx = out[0];
    (void)line;
    if (((const softmax_ctx *)ctx)->mode == WK_SOFTMAX_LOG) {
        REAL sum = FN(line_sum)(dy, n);
        for (int64_t i = 0; i < n; i++)
            dx[i] = dy[i] - R_EXP(y[i]) * sum;
        return;
    }
    REAL sum = FN(line_dot)(y, dy, n);
    for (int64_t i = 0; i < n; i++)
        dx[i] = y[i] * (dy[i] - sum);
}
