/* rnn.inc.h: the cells of recurrent layers: n units of one row, for REAL. */

/* ---- Forward: sums of the gates come in, activated gates stay in their place; c is the cell state, h the result ---- */

static void FN(lstm_cell)(int64_t n, REAL *restrict i, REAL *restrict f, REAL *restrict g, REAL *restrict o,
                          REAL *restrict c, REAL *restrict h)
{
    for (int64_t u = 0; u < n; u++) {
        i[u] = R_SIGMOID(i[u]);
        f[u] = R_SIGMOID(f[u]);
        g[u] = R_TANH(g[u]);
        o[u] = R_SIGMOID(o[u]);
        c[u] = f[u] * c[u] + i[u] * g[u];
        h[u] = o[u] * R_TANH(c[u]);
    }
}

/* q: W_hn h comes in, with its bias it stays. */
static void FN(gru_cell)(int64_t n, REAL *restrict r, REAL *restrict z, REAL *restrict g, REAL *restrict q,
                         const REAL *restrict bias, const REAL *restrict before, REAL *restrict h)
{
    for (int64_t u = 0; u < n; u++) {
        r[u] = R_SIGMOID(r[u]);
        z[u] = R_SIGMOID(z[u]);
        q[u] += bias[u];
        g[u] = R_TANH(g[u] + r[u] * q[u]);
        h[u] = g[u] + z[u] * (before[u] - g[u]);
    }
}

static void FN(plain_cell)(int64_t n, bool relu, REAL *restrict g, REAL *restrict h)
{
    if (relu)
        for (int64_t u = 0; u < n; u++)
            g[u] = g[u] < 0 ? 0 : g[u]; /* NaN stays NaN */
    else
        for (int64_t u = 0; u < n; u++)
            g[u] = R_TANH(g[u]);
    memcpy(h, g, (size_t)n * sizeof *h);
}

/* Units [u0, u0 + n) of a row (a sequence) at step t of a direction. */
static void FN(forward_row)(const direction *d, const wk_rnn_run *run, int64_t t, int64_t row, int64_t u0,
                            int64_t n)
{
    const wk_rnn_sizes *s = &run->s;
    int64_t hidden = s->hidden, place = t * s->b + row;
    REAL *g = (REAL *)d->gates + place * s->gates * hidden + u0;
    REAL *extra = (REAL *)d->extra + (d->keep ? place : row) * hidden + u0;
    REAL *c = (REAL *)d->c + row * hidden + u0, *out = (REAL *)d->out + place * s->dirs * hidden + u0;
    const REAL *before = (const REAL *)d->before + row * hidden + u0;
    REAL *h = (REAL *)d->now + row * hidden + u0;
    size_t bytes = (size_t)n * sizeof(REAL);
    if (!wk_rnn_live(run, t, row)) {
        memcpy(h, before, bytes);
        memset(out, 0, bytes);
        for (int64_t k = 0; d->keep && k < s->gates; k++)
            memset(g + k * hidden, 0, bytes);
        if (d->keep && s->extra)
            memset(extra, 0, bytes);
        return;
    }
    switch (run->mode) {
    case WK_LSTM:
        FN(lstm_cell)(n, g, g + hidden, g + 2 * hidden, g + 3 * hidden, c, h);
        if (d->keep)
            memcpy(extra, c, bytes);
        break;
    case WK_GRU:
        FN(gru_cell)(n, g, g + hidden, g + 2 * hidden, extra, (const REAL *)d->bias_n + u0, before, h);
        break;
    default: FN(plain_cell)(n, run->mode == WK_RNN_RELU, g, h);
    }
    memcpy(out, h, bytes);
}

/* b_ih + b_hh, except for the new gate of a GRU, where b_hh goes to bias_n. */
static void FN(join_biases)(const wk_rnn_run *r, const REAL *ih, const REAL *hh, REAL *sum, REAL *bias_n)
{
    int64_t hidden = r->s.hidden, shared = r->mode == WK_GRU ? 2 * hidden : r->s.gates * hidden;
    for (int64_t j = 0; j < r->s.gates * hidden; j++)
        sum[j] = ih[j] + (j < shared ? hh[j] : 0);
    for (int64_t j = 0; r->mode == WK_GRU && j < hidden; j++)
        bias_n[j] = hh[shared + j];
}
