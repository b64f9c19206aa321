/* rnn.hip: the cells of recurrent layers, one step at a time; the products around them are matmul's. A thread has one unit
 * of one row. */
#include "device.h"
#include "rnn.h"

/* Whether step t of row b counts. */
DEVICE bool live(const rnn_sizes &z, int t, int b)
{
    return t >= 0 && t < (z.lengths ? z.lengths[b * z.lengths_stride] : z.t);
}

/* Where a thread is: unit u of row b in direction dir, at time t. */
struct place {
    i64 state;         /* in [dirs, b, hidden] */
    i64 row;           /* in [t, b] */
    int dir, b, u, t;
    MEMBER place(const rnn_sizes &z, int step, u32 i)
    {
        u32 line = i / (u32)z.hidden;
        u = (int)(i - line * (u32)z.hidden);
        dir = line >= (u32)z.b;
        b = (int)line - dir * z.b;
        t = dir ? z.t - 1 - step : step;
        state = i;
        row = (i64)t * z.b + b;
    }
    /* In [t, b, dirs hidden]. */
    MEMBER i64 out(const rnn_sizes &z, i64 at) const { return (at * z.dirs + dir) * z.hidden + u; }
};

/* ---- forward ---- */

/* The sum of gate k; the new gate of a GRU leaves the state's part out. */
template <class R> DEVICE R gate_sum(const rnn_cell_args &a, const place &p, int k, bool with_state)
{
    const rnn_sizes &z = a.z;
    i64 column = (i64)k * z.hidden + p.u, all = (i64)z.gates * z.hidden;
    const R *ih = (const R *)(p.dir ? a.bias_ih[1] : a.bias_ih[0]);
    const R *hh = (const R *)(p.dir ? a.bias_hh[1] : a.bias_hh[0]);
    R sum = ((const R *)a.gates)[p.dir * a.dir_stride + p.row * all + column];
    if (with_state)
        sum += ((const R *)a.sums)[((i64)p.dir * z.b + p.b) * all + column];
    if (ih)
        sum += ih[column] + (with_state ? hh[column] : 0);
    return sum;
}

template <class R> DEVICE void keep_gate(const rnn_cell_args &a, const place &p, int k, R v)
{
    if (a.keep)
        ((R *)a.gates)[p.dir * a.dir_stride + (p.row * a.z.gates + k) * a.z.hidden + p.u] = v;
}
template <class R> DEVICE void keep_extra(const rnn_cell_args &a, const place &p, R v)
{
    if (a.keep)
        ((R *)a.extra)[p.dir * a.dir_stride + p.row * a.z.hidden + p.u] = v;
}

template <class R> DEVICE R lstm_cell(const rnn_cell_args &a, const place &p)
{
    R i = m_sigmoid(gate_sum<R>(a, p, 0, true)), f = m_sigmoid(gate_sum<R>(a, p, 1, true));
    R g = m_tanh(gate_sum<R>(a, p, 2, true)), o = m_sigmoid(gate_sum<R>(a, p, 3, true));
    R c = f * ((R *)a.c)[p.state] + i * g;
    ((R *)a.c)[p.state] = c;
    keep_gate(a, p, 0, i);
    keep_gate(a, p, 1, f);
    keep_gate(a, p, 2, g);
    keep_gate(a, p, 3, o);
    keep_extra(a, p, c);
    return o * m_tanh(c);
}

template <class R> DEVICE R gru_cell(const rnn_cell_args &a, const place &p)
{
    const rnn_sizes &z = a.z;
    R r = m_sigmoid(gate_sum<R>(a, p, 0, true)), u = m_sigmoid(gate_sum<R>(a, p, 1, true));
    const R *hh = (const R *)(p.dir ? a.bias_hh[1] : a.bias_hh[0]);
    R q = ((const R *)a.sums)[((((i64)p.dir * z.b + p.b) * 3) + 2) * z.hidden + p.u];
    q += hh ? hh[2 * z.hidden + p.u] : 0;
    R g = m_tanh(gate_sum<R>(a, p, 2, false) + r * q), before = ((const R *)a.before)[p.state];
    keep_gate(a, p, 0, r);
    keep_gate(a, p, 1, u);
    keep_gate(a, p, 2, g);
    keep_extra(a, p, q);
    return g + u * (before - g);
}

template <class R> DEVICE R plain_cell(const rnn_cell_args &a, const place &p)
{
    R g = gate_sum<R>(a, p, 0, true);
    g = a.z.mode == WK_CELL_TANH ? m_tanh(g) : g < 0 ? 0 : g; /* NaN stays NaN */
    keep_gate(a, p, 0, g);
    return g;
}

/* Nothing counts: the state stays, the result is 0. */
template <class R> DEVICE R idle_cell(const rnn_cell_args &a, const place &p)
{
    for (int k = 0; k < a.z.gates; k++)
        keep_gate(a, p, k, (R)0);
    if (a.z.mode <= WK_CELL_GRU)
        keep_extra(a, p, (R)0);
    return 0;
}

template <class R, class T> DEVICE void rnn_cell(const rnn_cell_args &a)
{
    const rnn_sizes &z = a.z;
    u32 count = (u32)z.dirs * (u32)z.b * (u32)z.hidden;
    for (u32 i = (u32)global_thread(); i < count; i += (u32)global_threads()) {
        place p(z, a.step, i);
        bool counts = live(z, p.t, p.b);
        R h = !counts                  ? idle_cell<R>(a, p)
              : z.mode == WK_CELL_LSTM ? lstm_cell<R>(a, p)
              : z.mode == WK_CELL_GRU  ? gru_cell<R>(a, p)
                                       : plain_cell<R>(a, p);
        ((R *)a.now)[i] = counts ? h : ((const R *)a.before)[i];
        if (a.out)
            ((R *)a.out)[p.out(z, p.row)] = h;
        if (a.y)
            ((T *)a.y)[p.out(z, p.row)] = put<T>(h);
    }
}

/* ---- backward ----
 * dh comes in as the gradient of the row's state from the steps after it; what goes out in dh is the part of the state
 * before that does not go through the gates. */

/* Gate k of the gradients' arrays, [dirs, t, b, gates, hidden]. */
DEVICE i64 gate_at(const rnn_sizes &z, const place &p, int k)
{
    return ((((i64)p.dir * z.t * z.b + p.row) * z.gates) + k) * z.hidden + p.u;
}
template <class R> DEVICE R gate_of(const rnn_grad_args &a, const place &p, int k)
{
    return ((const R *)a.gates)[p.dir * a.dir_stride + (p.row * a.z.gates + k) * a.z.hidden + p.u];
}
template <class R> DEVICE R extra_of(const rnn_grad_args &a, const place &p, i64 row)
{
    return ((const R *)a.extra)[p.dir * a.dir_stride + row * a.z.hidden + p.u];
}

template <class R> DEVICE R lstm_grad(const rnn_grad_args &a, const place &p, R dy, R before)
{
    R i = gate_of<R>(a, p, 0), f = gate_of<R>(a, p, 1), g = gate_of<R>(a, p, 2), o = gate_of<R>(a, p, 3);
    R t = m_tanh(extra_of<R>(a, p, p.row)), *d = (R *)a.dgates;
    R c = ((R *)a.dc)[p.state] + dy * o * (1 - t * t);
    d[gate_at(a.z, p, 0)] = c * g * i * (1 - i);
    d[gate_at(a.z, p, 1)] = c * before * f * (1 - f);
    d[gate_at(a.z, p, 2)] = c * i * (1 - g * g);
    d[gate_at(a.z, p, 3)] = dy * t * o * (1 - o);
    ((R *)a.dc)[p.state] = c * f;
    return 0;
}

template <class R> DEVICE R gru_grad(const rnn_grad_args &a, const place &p, R dy, R before)
{
    R r = gate_of<R>(a, p, 0), u = gate_of<R>(a, p, 1), g = gate_of<R>(a, p, 2), q = extra_of<R>(a, p, p.row);
    R *d = (R *)a.dgates, *s = (R *)a.d_state;
    R dn = dy * (1 - u) * (1 - g * g), dr = dn * q * r * (1 - r), du = dy * (before - g) * u * (1 - u);
    d[gate_at(a.z, p, 0)] = s[gate_at(a.z, p, 0)] = dr;
    d[gate_at(a.z, p, 1)] = s[gate_at(a.z, p, 1)] = du;
    d[gate_at(a.z, p, 2)] = dn;
    s[gate_at(a.z, p, 2)] = dn * r;
    return dy * u;
}

template <class R> DEVICE R plain_grad(const rnn_grad_args &a, const place &p, R dy)
{
    R h = gate_of<R>(a, p, 0);
    ((R *)a.dgates)[gate_at(a.z, p, 0)] = dy * (a.z.mode == WK_CELL_TANH ? 1 - h * h : h > 0 ? 1 : 0);
    return 0;
}

/* A state (the result, or the cell's) before this step: the array's where one counted, else the first. */
template <class R> DEVICE R state_before(const rnn_grad_args &a, const place &p, bool started, R from, const void *first)
{
    return started ? from : first ? ((const R *)first)[p.state] : 0;
}

template <class R> DEVICE void rnn_grad(const rnn_grad_args &a)
{
    const rnn_sizes &z = a.z;
    u32 count = (u32)z.dirs * (u32)z.b * (u32)z.hidden;
    for (u32 i = (u32)global_thread(); i < count; i += (u32)global_threads()) {
        place p(z, a.step, i);
        R dh = ((R *)a.dh)[i] + (a.sums ? ((const R *)a.sums)[i] : 0), h = 0;
        if (live(z, p.t, p.b)) {
            bool started = live(z, p.t + (p.dir ? 1 : -1), p.b);
            i64 from = p.row + (p.dir ? z.b : -z.b);
            R dy = dh + ((const R *)a.dout)[p.out(z, p.row)];
            h = state_before<R>(a, p, started, started ? ((const R *)a.out)[p.out(z, from)] : 0, a.h0);
            if (z.mode == WK_CELL_LSTM)
                dh = lstm_grad<R>(a, p, dy,
                                  state_before<R>(a, p, started, started ? extra_of<R>(a, p, from) : 0, a.c0));
            else
                dh = z.mode == WK_CELL_GRU ? gru_grad<R>(a, p, dy, h) : plain_grad<R>(a, p, dy);
        } else {
            for (int k = 0; k < z.gates; k++)
                ((R *)a.dgates)[gate_at(z, p, k)] = ((R *)a.d_state)[gate_at(z, p, k)] = 0;
        }
        ((R *)a.dh)[i] = dh;
        ((R *)a.before)[((i64)p.dir * z.t * z.b + p.row) * z.hidden + p.u] = h;
    }
}

/* ---- lengths ---- */

template <class R> DEVICE void rnn_mask(const rnn_mask_args &a)
{
    for (i64 i = global_thread(); i < (i64)a.z.t * a.z.b * a.n; i += global_threads()) {
        i64 row = i / a.n;
        int t = (int)(row / a.z.b), b = (int)(row - (i64)t * a.z.b);
        ((R *)a.y)[i] = live(a.z, t, b) ? ((const R *)a.x)[i] : 0;
    }
}

template <class T> DEVICE void rnn_check(const rnn_check_args &a)
{
    for (i64 i = global_thread(); i < a.z.b; i += global_threads())
        index_ok(a.report, ((const T *)a.z.lengths)[i * a.z.lengths_stride], (i64)a.z.t + 1);
}
