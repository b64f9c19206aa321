/* ctc.inc.h: one sequence of the CTC loss, for REAL.
 *
 * The labels with a blank before, between and behind them are S = 2 L + 1 states. alpha[t][s] is the log-probability of
 * all ways to be in state s at step t; beta[s] that of all ways on from there. Both are kept relative to the
 * largest of their step, whose sum over the steps is a double of its own: so they stay small numbers, in which a
 * float loses nothing. Two places of -infinity before state 0 (behind the last, for beta) spare the loops their
 * edges. */

/* log(e^a + e^b + e^c); -infinity when all are. */
static inline REAL FN(log_sum3)(REAL a, REAL b, REAL c)
{
    REAL m = a > b ? a : b;
    m = c > m ? c : m;
    m = m == -(REAL)INFINITY ? 0 : m;
    return m + R_LOG(R_EXP(a - m) + R_EXP(b - m) + R_EXP(c - m));
}

/* Takes the largest of n values off them, and returns it. */
static inline double FN(take_largest)(REAL *v, int64_t n)
{
    REAL largest = FN(line_max)(v, n);
    if (!(R_ABS(largest) < (REAL)INFINITY))
        return 0;
    for (int64_t s = 0; s < n; s++)
        v[s] -= largest;
    return (double)largest;
}

/* alpha[t][0..S), rows `row` apart, and base[t], what is to be added to them. Returns the log-probability. */
static double FN(ctc_alpha)(const ctc_sequence *q, REAL *alpha, double *base)
{
    const REAL *x = q->x, *skip = q->skip;
    REAL none = -(REAL)INFINITY;
    int64_t n = q->states;
    if (q->steps == 0)
        return n == 1 ? 0 : (double)none;
    for (int64_t t = 0; t < q->steps; t++) {
        const REAL *before = alpha + (t - 1) * q->row, *probs = x + t * q->x_row;
        REAL *now = alpha + t * q->row, *emit = q->emit;
        for (int64_t s = 0; s < n; s++)
            emit[s] = probs[q->label[s]];
        now[-1] = now[-2] = none;
        if (t == 0) {
            for (int64_t s = 0; s < n; s++)
                now[s] = s < 2 ? emit[s] : none;
        } else {
            for (int64_t s = 0; s < n; s++)
                now[s] = FN(log_sum3)(before[s], before[s - 1], before[s - 2] + skip[s]) + emit[s];
        }
        base[t] = (t ? base[t - 1] : 0) + FN(take_largest)(now, n);
    }
    const REAL *last = alpha + (q->steps - 1) * q->row;
    return base[q->steps - 1] + (double)FN(log_sum3)(last[n - 1], n > 1 ? last[n - 2] : none, none);
}

/* Row t of dx, where beta is that of step t without the step's own emission: e^x - the label's share of the paths. */
static void FN(ctc_gradient)(const ctc_sequence *q, const REAL *alpha, const REAL *beta, REAL offset,
                             int64_t t)
{
    const REAL *x = (const REAL *)q->x + t * q->x_row, *a = alpha + t * q->row;
    REAL *share = q->emit, *dx = q->dx_row;
    for (int64_t s = 0; s < q->states; s++)
        share[s] = R_EXP(a[s] + beta[s] + offset);
    for (int64_t i = 0; i < q->classes; i++)
        dx[i] = R_EXP(x[i]);
    for (int64_t s = 0; s < q->states; s++)
        dx[q->label[s]] -= share[s];
}

/* The gradient of every step, from the last back. */
static void FN(ctc_beta)(const ctc_sequence *q, const REAL *alpha, const double *base, double log_probability)
{
    const REAL *x = q->x, *skip = q->skip;
    REAL none = -(REAL)INFINITY, *beta = q->beta, *next = q->next;
    int64_t n = q->states;
    double beta_base = 0;
    next[n] = next[n + 1] = none;
    for (int64_t t = q->steps - 1; t >= 0; t--) {
        /* next: beta of step t + 1 with its emission. */
        for (int64_t s = 0; s < n; s++)
            beta[s] = t == q->steps - 1 ? (s >= n - 2 ? 0 : none)
                                        : FN(log_sum3)(next[s], next[s + 1], next[s + 2] + skip[s + 2]);
        FN(ctc_gradient)(q, alpha, beta, (REAL)(base[t] + beta_base - log_probability), t);
        ctc_store_row(q, t);
        for (int64_t s = 0; s < n; s++)
            next[s] = beta[s] + x[t * q->x_row + q->label[s]];
        beta_base += FN(take_largest)(next, n);
    }
}

/* The memory of a sequence, cut up: alpha, beta, next, skip and emit, the row of dx. */
static double FN(ctc_sequence_run)(ctc_sequence *q, void *memory)
{
    REAL *at = memory;
    int64_t n = q->states;
    q->row = n + 2;
    REAL *skip = at;
    q->skip = skip;
    q->emit = skip + n + 2;
    q->beta = skip + 2 * (n + 2);
    q->next = skip + 3 * (n + 2);
    q->dx_row = skip + 4 * (n + 2);
    REAL *alpha = (REAL *)q->dx_row + q->classes + 2;
    double *base = q->base;
    /* From a label to the next one past the blank between, unless they are the same. */
    for (int64_t s = 0; s < n + 2; s++)
        skip[s] = s % 2 == 1 && s >= 3 && s < n && q->label[s] != q->label[s - 2] ? 0 : -(REAL)INFINITY;
    double log_probability = FN(ctc_alpha)(q, alpha, base);
    if (q->dx && log_probability != -INFINITY)
        FN(ctc_beta)(q, alpha, base, log_probability);
    return -log_probability;
}
