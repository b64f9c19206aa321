/* norm.inc.h: layer, rms and group norm of one group of a sample, for REAL. */

/* How a group is normalised: (x - mean) * scale + shift, which is what rounding has cut off the mean. */
typedef struct {
    REAL mean, scale, shift;
} FN(stats);

static FN(stats) FN(stats_of)(const norm_ctx *c, const REAL *x, int64_t n)
{
    FN(stats) s = {0};
    if (!c->centred) {
        s.scale = (REAL)(1 / sqrt(FN(mean_square)(x, n) + c->eps));
        return s;
    }
    wk_moments m = FN(moments)(x, n);
    double scale = 1 / sqrt(m.m2 / (double)n + c->eps);
    s.mean = (REAL)m.mean;
    s.scale = (REAL)scale;
    s.shift = (REAL)((s.mean - m.mean) * scale);
    return s;
}

/* y of a group; line counts the groups of all samples. */
static void FN(norm_line)(void *const *out, const void *const *in, int64_t line, int64_t n, const void *ctx)
{
    const norm_ctx *c = ctx;
    const REAL *x = in[0];
    REAL *y = out[0];
    int64_t first = line % c->s.groups * c->s.channels, inner = c->s.inner;
    const REAL *weight = (const REAL *)c->weight + first, *bias = (const REAL *)c->bias + first;
    FN(stats) s = FN(stats_of)(c, x, n);
    if (inner == 1) {
        WK_INDEPENDENT for (int64_t i = 0; i < n; i++) y[i] =
            ((x[i] - s.mean) * s.scale + s.shift) * weight[i] + bias[i];
        return;
    }
    for (int64_t k = 0; k < c->s.channels; k++, x += inner, y += inner) {
        REAL scale = s.scale * weight[k], shift = s.shift * weight[k] + bias[k];
        WK_INDEPENDENT for (int64_t i = 0; i < inner; i++) y[i] = (x[i] - s.mean) * scale + shift;
    }
}

/* y of a line of x + residual, and the sum where it is wanted. */
static void FN(add_norm_line)(void *const *out, const void *const *in, int64_t line, int64_t n,
                              const void *ctx)
{
    const norm_ctx *c = ctx;
    const REAL *x = in[0], *residual = in[1];
    REAL *y = out[0];
    WK_INDEPENDENT for (int64_t i = 0; i < n; i++) y[i] = x[i] + residual[i];
    if (c->sum)
        memcpy(out[1], y, (size_t)n * sizeof *y);
    FN(norm_line)(out, (const void *const[]){y}, line, n, ctx);
}

/* ---- gradients ---- */

/* With h = (x - mean) * scale and g = dy * weight:
 *   dweight = sum(dy h), dbias = sum(dy), dx = scale (g - mean(g) - h mean(g h)), without mean(g) for rms norm.
 * h and g of the group to their buffers, shares of dweight and dbias added to theirs; sums to *sum_g, *sum_gh. */
static void FN(grad_sums)(const norm_ctx *c, const REAL *x, const REAL *dy, FN(stats) s, int64_t first,
                          REAL *restrict h, REAL *restrict g, double *restrict dweight,
                          double *restrict dbias, double *sum_g, double *sum_gh)
{
    int64_t n = c->s.channels * c->s.inner, inner = c->s.inner;
    const REAL *weight = (const REAL *)c->weight + first;
    for (int64_t i = 0; i < n; i++)
        h[i] = (x[i] - s.mean) * s.scale + s.shift;
    if (inner == 1) {
        for (int64_t i = 0; i < n; i++) {
            g[i] = dy[i] * weight[i];
            dweight[i] += (double)(dy[i] * h[i]);
            dbias[i] += (double)dy[i];
        }
    } else {
        for (int64_t k = 0; k < c->s.channels; k++) {
            int64_t at = k * inner;
            dweight[k] += (double)FN(line_dot)(dy + at, h + at, inner);
            dbias[k] += (double)FN(line_sum)(dy + at, inner);
            for (int64_t i = at; i < at + inner; i++)
                g[i] = dy[i] * weight[k];
        }
    }
    *sum_g = c->centred ? (double)FN(line_sum)(g, n) : 0;
    *sum_gh = (double)FN(line_dot)(g, h, n);
}

/* Group `group` of samples [begin, end): dx, and their share of dweight and dbias. */
static void FN(grad_task)(const grad_plan *p, int64_t group, int64_t begin, int64_t end, double *dweight,
                          double *dbias, REAL *buf)
{
    const norm_ctx *c = &p->c;
    int64_t n = c->s.channels * c->s.inner, first = group * c->s.channels,
            bytes = (int64_t)wk_bytes(p->x->dtype);
    REAL *x_buf = buf, *dy_buf = x_buf + n, *h = dy_buf + n, *g = h + n;
    for (int64_t i = begin; i < end; i++) {
        int64_t at = (i * c->s.groups + group) * n * bytes;
        const REAL *x = FN(line_of)(p->x, at, n, x_buf), *dy = FN(line_of)(p->dy, at, n, dy_buf);
        FN(stats) s = FN(stats_of)(c, x, n);
        double sum_g, sum_gh;
        FN(grad_sums)(c, x, dy, s, first, h, g, dweight + first, dbias + first, &sum_g, &sum_gh);
        if (!p->dx)
            continue;
        REAL mean_g = (REAL)(sum_g / (double)n), mean_gh = (REAL)(sum_gh / (double)n);
        for (int64_t j = 0; j < n; j++)
            g[j] = s.scale * (g[j] - mean_g - h[j] * mean_gh);
        WK_ISA(wk_block_store)(p->dx->dtype, REAL_COMPUTE, g, (char *)wk_ptr(p->dx) + at, n, p->stream);
    }
}
