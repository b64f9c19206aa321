/* loss.inc.h: the losses' formulas, for REAL. */

/* ---- Classes: one row of x at a time ---- */

static void FN(cross_entropy)(void *const *out, const void *const *in, int64_t row, int64_t n,
                              const void *ctx)
{
    const class_loss *p = ctx;
    const REAL *x = in[0];
    REAL *dx = p->gradient ? out[0] : NULL;
    int64_t target = p->targets[row];
    p->losses[row] = 0;
    if (p->lse)
        ((REAL *)p->lse)[row] = 0;
    if (target < 0) {
        for (int64_t i = 0; dx && i < n; i++)
            dx[i] = 0;
        return;
    }
    REAL largest = FN(line_max)(x, n), above = largest - x[target];
    REAL sum = dx ? FN(line_exp)(x, dx, n, largest) : FN(line_sum_exp)(x, n, largest);
    p->losses[row] = (double)above + (double)R_LOG(sum);
    if (p->lse)
        ((REAL *)p->lse)[row] = largest + R_LOG(sum);
    REAL scale = (REAL)p->scale, part = scale / sum;
    for (int64_t i = 0; dx && i < n; i++)
        dx[i] *= part;
    if (dx)
        dx[target] -= scale;
}

static void FN(nll_loss)(void *const *out, const void *const *in, int64_t row, int64_t n, const void *ctx)
{
    const class_loss *p = ctx;
    const REAL *x = in[0];
    int64_t target = p->targets[row];
    p->losses[row] = target < 0 ? 0 : -(double)x[target];
    if (!p->gradient)
        return;
    REAL *dx = out[0];
    for (int64_t i = 0; i < n; i++)
        dx[i] = 0;
    if (target >= 0)
        dx[target] = -(REAL)p->scale;
}

/* ---- Elements: y is the loss, dx its gradient times scale; either may be NULL ---- */

#define ELEMENT_LOSS(name, loss, slope) \
    static void FN(name)(void *const *out, const void *const *in, int64_t first, int64_t n, void *ctx) \
    { \
        const element_loss *p = ctx; \
        const REAL *xs = in[0], *targets = in[1]; \
        REAL *dx = out[1], scale = (REAL)p->scale, delta = (REAL)p->delta, losses[WK_BLOCK]; \
        (void)delta; \
        for (int64_t i = 0; i < n; i++) { \
            REAL x = xs[i], t = targets[i]; \
            losses[i] = loss; \
        } \
        for (int64_t i = 0; dx && i < n; i++) { \
            REAL x = xs[i], t = targets[i]; \
            dx[i] = (slope)*scale; \
        } \
        if (p->sums) \
            p->sums[first / WK_BLOCK] = (double)FN(line_sum)(losses, n); \
        else \
            memcpy(out[0], losses, (size_t)n * sizeof *losses); \
    }

ELEMENT_LOSS(mse_loss, (x - t) * (x - t), 2 * (x - t))
/* With the difference first: what is left of it is small where the loss is. */
ELEMENT_LOSS(bce_with_logits, ((x > 0 ? x : 0) - x * t) + R_SOFTPLUS(-R_ABS(x)), R_SIGMOID(x) - t)
ELEMENT_LOSS(huber_loss, R_ABS(x - t) > delta ? delta * (R_ABS(x - t) - delta / 2) : (x - t) * (x - t) / 2,
             x - t > delta    ? delta
             : x - t < -delta ? -delta
                              : x - t)
#undef ELEMENT_LOSS
