/* ctc.inc.h: one sequence of the CTC loss, for REAL.
 *
 * The labels with a blank before, between and behind them are S = 2 L + 1 states. alpha[t][s] is the log-probability of
 * all ways to be in state s at step t; beta[s] that of all ways on from there. They are doubles, as they become large
 * numbers of which the difference counts; exp and log, of small numbers, are REAL's. Two places of -infinity before
 * state 0 (behind the last, for beta) spare the loops their edges, and states that nothing is ever in fill up the last
 * vector. */

/* log(e^a + e^b + e^c); -infinity when all are. */
static inline double FN(log_sum3)(double a, double b, double c)
{
    double m = a > b ? a : b;
    m = c > m ? c : m;
    m = m > -0x1p1000 ? m : -0x1p1000; /* -infinity - m is itself then */
    REAL sum = R_EXP_TERM((REAL)(a - m)) + R_EXP_TERM((REAL)(b - m)) + R_EXP_TERM((REAL)(c - m));
    return m + (double)R_LOG(sum);
}

/* alpha[t][0..S). Returns the log-probability of the labels. */
static double FN(ctc_alpha)(const ctc_sequence *q, double *restrict emit)
{
    int64_t n = q->states, filled = q->vectors * CTC_LANES;
    const double *skip = q->skip;
    if (q->steps == 0)
        return n == 1 ? 0 : -INFINITY;
    for (int64_t s = n; s < filled; s++)
        emit[s] = -INFINITY;
    for (int64_t t = 0; t < q->steps; t++) {
        const REAL *x = (const REAL *)q->x + t * q->x_row;
        double *restrict now = q->alpha + t * (filled + 2);
        const double *before = now - (filled + 2);
        for (int64_t s = 0; s < n; s++)
            emit[s] = (double)x[q->label[s]];
        now[-1] = now[-2] = -INFINITY;
        if (t == 0)
            for (int64_t s = 0; s < filled; s++)
                now[s] = s < 2 ? emit[s] : -INFINITY;
        else
            for (int64_t s = 0; s < filled; s++)
                now[s] = FN(log_sum3)(before[s], before[s - 1], before[s - 2] + skip[s]) + emit[s];
    }
    const double *last = q->alpha + (q->steps - 1) * (filled + 2);
    return FN(log_sum3)(last[n - 1], n > 1 ? last[n - 2] : -INFINITY, -INFINITY);
}

/* Row t of dx: e^x - the label's share of the paths. beta is that of step t without the step's own emission. */
static void FN(ctc_gradient)(const ctc_sequence *q, const double *beta, REAL *restrict share,
                             double log_probability, int64_t t)
{
    int64_t filled = q->vectors * CTC_LANES;
    const REAL *x = (const REAL *)q->x + t * q->x_row;
    const double *alpha = q->alpha + t * (filled + 2);
    REAL *dx = q->dx_row;
    for (int64_t s = 0; s < filled; s++)
        share[s] = R_EXP_TERM((REAL)(alpha[s] + beta[s] - log_probability));
    for (int64_t i = 0; i < q->classes; i++)
        dx[i] = R_EXP(x[i]);
    for (int64_t s = 0; s < q->states; s++)
        dx[q->label[s]] -= share[s];
}

/* The gradient of every step, from the last back. */
static void FN(ctc_beta)(const ctc_sequence *q, double *restrict beta, double *restrict next, REAL *share,
                         double log_probability)
{
    int64_t n = q->states, filled = q->vectors * CTC_LANES, last = q->steps - 1;
    const double *skip = q->skip;
    for (int64_t s = n; s < filled + 2; s++)
        next[s] = -INFINITY;
    for (int64_t t = last; t >= 0; t--) {
        const REAL *x = (const REAL *)q->x + t * q->x_row;
        /* next: beta of step t + 1 with its emission. */
        if (t == last)
            for (int64_t s = 0; s < filled; s++)
                beta[s] = s >= n - 2 && s < n ? 0 : -INFINITY;
        else
            for (int64_t s = 0; s < filled; s++)
                beta[s] = FN(log_sum3)(next[s], next[s + 1], next[s + 2] + skip[s + 2]);
        FN(ctc_gradient)(q, beta, share, log_probability, t);
        ctc_store_row(q, t);
        for (int64_t s = 0; s < n; s++)
            next[s] = beta[s] + (double)x[q->label[s]];
    }
}

/* The loss; the gradient too, where dx is wanted and the labels are possible. */
static double FN(ctc_run)(const ctc_sequence *q)
{
    double log_probability = FN(ctc_alpha)(q, q->work);
    if (q->dx && log_probability != -INFINITY)
        FN(ctc_beta)
    (q, q->work, q->work + ctc_row(q), (REAL *)(q->work + 2 * ctc_row(q)), log_probability);
    return -log_probability;
}
