/* matmul.c: reference matrix product. */
#include "ops/matmul.h"
#include "ref.h"

/* y[i, j] = sum over p of a[i, p] b[p, j], for every place of the leading dimensions. */
static wk_status run_matmul(wk_call *c)
{
    wk_matmul_shape s;
    WK_TRY(wk_matmul_shapes(c, c->in[0], c->in[1], &s));
    const double *a = wk_ref_values(&s.a), *b = wk_ref_values(&s.b);
    if (wk_pending())
        return wk_error_status();
    int64_t batch = wk_shape_count(s.rank, s.lead);
    for (int64_t y = 0; y < batch * s.m * s.n; y++) {
        int64_t lead = y / (s.m * s.n), i = y / s.n % s.m, j = y % s.n;
        double sum = 0;
        for (int64_t p = 0; p < s.k; p++)
            sum += a[(lead * s.m + i) * s.k + p] * b[(lead * s.k + p) * s.n + j];
        wk_ref_set(c->out[0], y, sum);
    }
    return WK_OK;
}

const wk_impl wk_ref_matmul[] = {
    {"matmul", "ref", run_matmul, NULL, NULL},
    {0},
};
