/* optim.inc.h: the optimizer steps, for REAL. */

static void FN(sgd)(void *const *out, const void *const *in, int64_t first, int64_t n, void *ctx)
{
    const wk_sgd_params *p = ctx;
    const REAL *param = in[0], *grad = in[1], *momentum = in[2];
    REAL *new_param = out[0], *new_momentum = out[1], buffer[WK_BLOCK];
    REAL lr = (REAL)p->lr, factor = (REAL)p->momentum, decay = (REAL)p->weight_decay;
    (void)first;
    for (int64_t i = 0; i < n; i++)
        buffer[i] = grad[i] + decay * param[i];
    for (int64_t i = 0; momentum && i < n; i++)
        buffer[i] = factor * momentum[i] + buffer[i];
    for (int64_t i = 0; new_param && i < n; i++)
        new_param[i] = param[i] - lr * buffer[i];
    if (new_momentum)
        memcpy(new_momentum, buffer, (size_t)n * sizeof *buffer);
}

static void FN(adamw)(void *const *out, const void *const *in, int64_t first, int64_t n, void *ctx)
{
    const adamw *p = ctx;
    const REAL *param = in[0], *grad = in[1], *m = in[2], *v = in[3];
    REAL *to_param = out[0], *to_m = out[1], *to_v = out[2];
    REAL new_param[WK_BLOCK], new_m[WK_BLOCK], new_v[WK_BLOCK];
    REAL beta1 = (REAL)p->beta1, rest1 = (REAL)(1 - p->beta1), beta2 = (REAL)p->beta2;
    REAL rest2 = (REAL)(1 - p->beta2), keep = (REAL)p->keep, rate = (REAL)p->rate, root = (REAL)p->root;
    REAL eps = (REAL)p->eps;
    (void)first;
    for (int64_t i = 0; i < n; i++) {
        new_m[i] = beta1 * m[i] + rest1 * grad[i];
        new_v[i] = beta2 * v[i] + rest2 * grad[i] * grad[i];
        new_param[i] = param[i] * keep - rate * new_m[i] / (R_SQRT(new_v[i]) / root + eps);
    }
    if (to_param)
        memcpy(to_param, new_param, (size_t)n * sizeof(REAL));
    if (to_m)
        memcpy(to_m, new_m, (size_t)n * sizeof(REAL));
    if (to_v)
        memcpy(to_v, new_v, (size_t)n * sizeof(REAL));
}
