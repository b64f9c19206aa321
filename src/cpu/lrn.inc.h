/* lrn.inc.h: local response norm of one unit, rows x cols values, for REAL. */

/* out[r] = sum of the rows in[r - before .. r + after]; row by row, so that it runs across the columns. */
static void FN(sum_down)(const plan *p, const REAL *in, REAL *restrict out, int64_t before, int64_t after)
{
    for (int64_t r = 0; r < p->rows; r++) {
        int64_t first = r > before ? r - before : 0, end = p->rows - r > after ? r + after + 1 : p->rows;
        REAL *to = out + r * p->cols;
        memcpy(to, in + first * p->cols, (size_t)p->cols * sizeof(REAL));
        for (int64_t k = first + 1; k < end; k++) {
            for (int64_t j = 0; j < p->cols; j++)
                to[j] += in[k * p->cols + j];
        }
    }
}

/* The same across the columns, in place; row has room for one. */
static void FN(sum_across)(const plan *p, REAL *out, REAL *row, int64_t before, int64_t after)
{
    for (int64_t r = 0; r < p->rows; r++) {
        REAL *to = out + r * p->cols;
        memcpy(row, to, (size_t)p->cols * sizeof(REAL));
        for (int64_t j = 0; j < p->cols; j++) {
            int64_t first = j > before ? j - before : 0, end = p->cols - j > after ? j + after + 1 : p->cols;
            REAL sum = 0;
            for (int64_t k = first; k < end; k++)
                sum += row[k];
            to[j] = sum;
        }
    }
}

/* Windows of the unit summed: in to out; in is used up. */
static void FN(sum_windows)(const plan *p, REAL *in, REAL *out, int64_t before, int64_t after)
{
    FN(sum_down)(p, in, out, before, after);
    if (p->within)
        FN(sum_across)(p, out, in, before, after);
}

static void FN(load_unit)(const plan *p, const wk_tensor *t, int64_t at, REAL *to)
{
    for (int64_t r = 0; r < p->rows; r++)
        WK_ISA(wk_block_load)
    (t->dtype, (const char *)wk_ptr(t) + (at + r * p->pitch) * (int64_t)wk_bytes(t->dtype), 1,
     to + r * p->cols, p->cols);
}

static void FN(store_unit)(const plan *p, int64_t at, const REAL *from)
{
    for (int64_t r = 0; r < p->rows; r++)
        WK_ISA(wk_block_store)
    (p->out->dtype, REAL_COMPUTE, from + r * p->cols,
     (char *)wk_ptr(p->out) + (at + r * p->pitch) * (int64_t)wk_bytes(p->out->dtype), p->cols, false);
}

/* d = k + alpha * mean(x^2) of each element's window; spare is used up. */
static void FN(divisors)(const plan *p, const REAL *x, REAL *d, REAL *spare)
{
    int64_t n = p->rows * p->cols;
    for (int64_t i = 0; i < n; i++)
        spare[i] = x[i] * x[i];
    FN(sum_windows)(p, spare, d, p->o.size / 2, (p->o.size - 1) / 2);
    REAL alpha = (REAL)p->alpha, k = (REAL)p->o.k;
    for (int64_t i = 0; i < n; i++)
        d[i] = k + alpha * d[i];
}

/* y = x d^-beta; at is the unit's first element. */
static void FN(lrn_unit)(const plan *p, int64_t at, void *buf)
{
    int64_t n = p->rows * p->cols;
    REAL *x = buf, *d = x + n, *spare = d + n, beta = (REAL)-p->o.beta;
    FN(load_unit)(p, p->x, at, x);
    FN(divisors)(p, x, d, spare);
    for (int64_t i = 0; i < n; i++)
        x[i] *= R_POW(d[i], beta);
    FN(store_unit)(p, at, x);
}

/* dx = dy d^-beta - 2 alpha beta x sum(dy y / d), the sum over the elements that x is in the window of. */
static void FN(lrn_grad_unit)(const plan *p, int64_t at, void *buf)
{
    int64_t n = p->rows * p->cols;
    REAL *x = buf, *d = x + n, *dy = d + n, *t = dy + n, *sum = t + n, beta = (REAL)-p->o.beta;
    FN(load_unit)(p, p->x, at, x);
    FN(load_unit)(p, p->dy, at, dy);
    FN(divisors)(p, x, d, t);
    FN(load_unit)(p, p->y, at, t);
    for (int64_t i = 0; i < n; i++)
        t[i] = t[i] * dy[i] / d[i];
    FN(sum_windows)(p, t, sum, (p->o.size - 1) / 2, p->o.size / 2);
    REAL c = (REAL)(2 * p->alpha * p->o.beta);
    for (int64_t i = 0; i < n; i++)
        x[i] = dy[i] * R_POW(d[i], beta) - c * x[i] * sum[i];
    FN(store_unit)(p, at, x);
}
