/* rnn_backward.inc.h: gradients of the cells of recurrent layers: one row of n units, for REAL.
 *
 * dh comes in as the gradient of the row's state from the steps after it; the result's own, dout, is added. What goes
 * out in dh is the part of the state before that does not go through the gates; the rest is a product, added later. */

static void FN(lstm_gradient)(int64_t n, const REAL *gates, const REAL *restrict cell,
                              const REAL *restrict before, const REAL *restrict dout, REAL *restrict dh,
                              REAL *restrict dc, REAL *d)
{
    const REAL *restrict is = gates, *restrict fs = gates + n, *restrict gs = gates + 2 * n;
    const REAL *restrict os = gates + 3 * n;
    REAL *restrict di = d, *restrict df = d + n, *restrict dg = d + 2 * n, *restrict d_o = d + 3 * n;
    for (int64_t u = 0; u < n; u++) {
        REAL i = is[u], f = fs[u], g = gs[u], o = os[u], dy = dh[u] + dout[u], t = R_TANH(cell[u]);
        REAL c = dc[u] + dy * o * (1 - t * t);
        di[u] = c * g * i * (1 - i);
        df[u] = c * before[u] * f * (1 - f);
        dg[u] = c * i * (1 - g * g);
        d_o[u] = dy * t * o * (1 - o);
        dc[u] = c * f;
        dh[u] = 0;
    }
}

/* dx: of the gates' sums; d_state: of the state's part of them, in which the new gate is scaled by r. */
static void FN(gru_gradient)(int64_t n, const REAL *gates, const REAL *restrict q,
                             const REAL *restrict before, const REAL *restrict dout, REAL *restrict dh,
                             REAL *dx, REAL *d_state)
{
    const REAL *restrict rs = gates, *restrict zs = gates + n, *restrict ns = gates + 2 * n;
    REAL *restrict xr = dx, *restrict xz = dx + n, *restrict xn = dx + 2 * n;
    REAL *restrict sr = d_state, *restrict sz = d_state + n, *restrict sn = d_state + 2 * n;
    for (int64_t u = 0; u < n; u++) {
        REAL r = rs[u], z = zs[u], g = ns[u], dy = dh[u] + dout[u];
        REAL dn = dy * (1 - z) * (1 - g * g);
        sr[u] = xr[u] = dn * q[u] * r * (1 - r);
        sz[u] = xz[u] = dy * (before[u] - g) * z * (1 - z);
        xn[u] = dn;
        sn[u] = dn * r;
        dh[u] = dy * z;
    }
}

static void FN(plain_gradient)(int64_t n, bool relu, const REAL *restrict h, const REAL *restrict dout,
                               REAL *restrict dh, REAL *restrict d)
{
    for (int64_t u = 0; u < n; u++) {
        REAL slope = relu ? (h[u] > 0 ? 1 : 0) : 1 - h[u] * h[u];
        d[u] = (dh[u] + dout[u]) * slope;
        dh[u] = 0;
    }
}

/* Row `row` at step t. */
static void FN(backward_row)(const gradient *w, int64_t t, int64_t row)
{
    const wk_rnn_run *run = w->r;
    const wk_rnn_sizes *s = &run->s;
    int64_t n = s->hidden, place = t * s->b + row, all = s->gates * n, later = t + (w->dir ? 1 : -1);
    REAL *dx = (REAL *)w->dgates + place * all, *d_state = (REAL *)w->d_state + place * all;
    REAL *dh = (REAL *)w->dh + row * n, *dc = (REAL *)w->dc + row * n;
    const REAL *gates = (const REAL *)w->gates + place * all, *extra = (const REAL *)w->extra + place * n;
    const REAL *dout = (const REAL *)w->dout + place * s->dirs * n;
    bool started =
        wk_rnn_live(run, later, row); /* the step before this one, in the direction's order, counted */
    if (!wk_rnn_live(run, t, row)) {
        memset(dx, 0, (size_t)all * sizeof *dx);
        memset(d_state, 0, (size_t)all * sizeof *dx);
        return;
    }
    int64_t from = later * s->b + row;
    const REAL *h = started ? (const REAL *)w->out + from * s->dirs * n : (const REAL *)w->h0 + row * n;
    const REAL *c = started && s->extra ? (const REAL *)w->extra + from * n : (const REAL *)w->c0 + row * n;
    switch (run->mode) {
    case WK_LSTM: FN(lstm_gradient)(n, gates, extra, c, dout, dh, dc, dx); break;
    case WK_GRU: FN(gru_gradient)(n, gates, extra, h, dout, dh, dx, d_state); break;
    default: FN(plain_gradient)(n, run->mode == WK_RNN_RELU, gates, dout, dh, dx);
    }
}
