/* ctc.inc.h: one sequence of the CTC loss, for REAL.
 *
 * The labels with a blank before, between and behind them are S = 2 L + 1 states. alpha[t][s] is the log-probability of
 * all ways to be in state s at step t; beta[s] that of all ways on from there. They are doubles, as they become large
 * numbers of which the difference counts; exp and log, of small numbers, are REAL's. Two places of -infinity before
 * state 0 (behind the last, for beta) spare the loops their edges. */

/* log(e^a + e^b + e^c); -infinity when all are. */
static inline double FN(log_sum3)(double a, double b, double c)
{
    double m = a > b ? a : b;
    m = c > m ? c : m;
    m = m == -INFINITY ? 0 : m;
    REAL sum = R_EXP((REAL)(a - m)) + R_EXP((REAL)(b - m)) + R_EXP((REAL)(c - m));
    return m + (double)R_LOG(sum);
}

/* alpha[t][0..S), rows S + 2 apart. Returns the log-probability of the labels. */
static double FN(ctc_alpha)(const ctc_sequence *q, double *restrict emit)
{
    int64_t n = q->states;
    const double *skip = q->skip;
    if (q->steps == 0)
        return n == 1 ? 0 : -INFINITY;
    for (int64_t t = 0; t < q->steps; t++) {
        const REAL *x = (const REAL *)q->x + t * q->x_row;
        double *restrict now = q->alpha + t * (n + 2);
        const double *before = now - (n + 2);
        for (int64_t s = 0; s < n; s++)
            emit[s] = (double)x[q->label[s]];
        now[-1] = now[-2] = -INFINITY;
        for (int64_t s = 0; s < n && t == 0; s++)
            now[s] = s < 2 ? emit[s] : -INFINITY;
        for (int64_t s = 0; s < n && t > 0; s++)
            now[s] = FN(log_sum3)(before[s], before[s - 1], before[s - 2] + skip[s]) + emit[s];
    }
    const double *last = q->alpha + (q->steps - 1) * (n + 2);
    return FN(log_sum3)(last[n - 1], n > 1 ? last[n - 2] : -INFINITY, -INFINITY);
}

/* Row t of dx: e^x - the label's share of the paths. beta is that of step t without the step's own emission. */
static void FN(ctc_gradient)(const ctc_sequence *q, const double *beta, double log_probability, int64_t t)
{
    const REAL *x = (const REAL *)q->x + t * q->x_row;
    const double *alpha = q->alpha + t * (q->states + 2);
    REAL *dx = q->dx_row;
    for (int64_t i = 0; i < q->classes; i++)
        dx[i] = R_EXP(x[i]);
    for (int64_t s = 0; s < q->states; s++)
        dx[q->label[s]] -= R_EXP((REAL)(alpha[s] + beta[s] - log_probability));
}

/* The gradient of every step, from the last back. */
static void FN(ctc_beta)(const ctc_sequence *q, double *restrict beta, double *restrict next,
                         double log_probability)
{
    int64_t n = q->states, last = q->steps - 1;
    const double *skip = q->skip;
    next[n] = next[n + 1] = -INFINITY;
    for (int64_t t = last; t >= 0; t--) {
        const REAL *x = (const REAL *)q->x + t * q->x_row;
        /* next: beta of step t + 1 with its emission. */
        for (int64_t s = 0; s < n && t == last; s++)
            beta[s] = s >= n - 2 ? 0 : -INFINITY;
        for (int64_t s = 0; s < n && t < last; s++)
            beta[s] = FN(log_sum3)(next[s], next[s + 1], next[s + 2] + skip[s + 2]);
        FN(ctc_gradient)(q, beta, log_probability, t);
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
        FN(ctc_beta)(q, q->work, q->work + q->states + 2, log_probability);
    return -log_probability;
}
