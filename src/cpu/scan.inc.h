/* scan.inc.h: running sums of a line of T, added up in ACC.
 *
 * Each sum waits for the one before it. So eight neighbours are first added up among themselves, which can overlap
 * with the work on others, and only the total of the eight is carried on. */

static void FN(cumsum)(void *const *out, const void *const *in, int64_t line, int64_t n, const void *ctx)
{
    const T *x = in[0];
    T *y = out[0];
    ACC carry = 0;
    int64_t i = 0;
    (void)line, (void)ctx;
    for (; i + 8 <= n; i += 8) {
        ACC s[8];
        for (int j = 0; j < 8; j++)
            s[j] = (ACC)x[i + j];
        for (int step = 1; step < 8; step *= 2)
            for (int j = 7; j >= step; j--)
                s[j] += s[j - step];
        for (int j = 0; j < 8; j++)
            y[i + j] = (T)(carry + s[j]);
        carry += s[7];
    }
    for (; i < n; i++)
        y[i] = (T)(carry += (ACC)x[i]);
}

/* From the end: dx[i] = dy[i] + ... + dy[n - 1]. */
static void FN(cumsum_back)(void *const *out, const void *const *in, int64_t line, int64_t n, const void *ctx)
{
    const T *dy = in[0];
    T *dx = out[0];
    ACC sum = 0;
    (void)line, (void)ctx;
    for (int64_t i = n - 1; i >= 0; i--)
        dx[i] = (T)(sum += (ACC)dy[i]);
}

#undef T
#undef ACC
#undef FN
