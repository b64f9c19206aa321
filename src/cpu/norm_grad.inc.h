/* norm_grad.inc.h: gradients of layer, rms and group norm of one group of a sample, for REAL. After norm.inc.h. */

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
        FN(stats) s = FN(stats_of)(c, x, NULL, n);
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
