/* conv.hip: convolutions as products of tiles, one operand gathered on the way into shared memory. */
#include "conv_end.h"
#include "conv_tile.h"

/* What one step along k, or one column, adds to the place in each operand. Pixel and tap meet the gathered tensor where the
 * pixel's bits have the tap's; with more than 32 taps, where their coordinates' sums are within its sizes. What lies past
 * the end meets nothing: it has no bits, or its coordinates are far outside, a step's in the first dimension, a column's in
 * the second. */
template <int FEW> struct conv_place;
template <> struct conv_place<1> {
    u32 bits;
    i64 a, b; /* bytes */
    static MEMBER conv_place none(int) { return {0, 0, 0}; }
};
CONSTANT i32 OUTSIDE = (i32)0x80000000;
template <> struct conv_place<0> {
    i32 d[3];
    i64 a, b;
    static MEMBER conv_place none(int dim) { return {{dim == 0 ? OUTSIDE : 0, dim == 1 ? OUTSIDE : 0, 0}, 0, 0}; }
};

DEVICE bool is_none(const conv_place<1> &p) { return p.bits == 0; }
DEVICE bool is_none(const conv_place<0> &p) { return p.d[0] == OUTSIDE; }
DEVICE bool meet(const conv_space &, const conv_place<1> &c, const conv_place<1> &k) { return (c.bits & k.bits) != 0; }
DEVICE bool meet(const conv_space &s, const conv_place<0> &c, const conv_place<0> &k)
{
    bool ok = true;
    UNROLL
    for (int d = 0; d < 3; d++)
        ok &= (u32)(c.d[d] + k.d[d]) < (u32)s.axis[d].size;
    return ok;
}

/* i as three numbers, the last fastest; `by` picks the divisors. */
struct three {
    i32 v[3];
};
DEVICE three split(u32 i, const wk_divisor &middle, const wk_divisor &inner)
{
    u32 rest = divide(i, inner), outer = divide(rest, middle);
    return {{(i32)outer, (i32)(rest - outer * middle.d), (i32)(i - rest * inner.d)}};
}

/* ---- phases ---- */

DEVICE wk_divisor make_divisor(u32 d)
{
    wk_divisor v = {d, 0, 0};
    while ((1ull << v.shift) < d)
        v.shift++;
    v.magic = (u32)(((1ull << 32) * ((1ull << v.shift) - d)) / d + 1);
    return v;
}

/* The pixels phase, phase + stride, ... of the image and the taps that reach them. */
DEVICE conv_axis phase_axis(const conv_geometry_dim &g, i32 size, i32 phase)
{
    i32 at = phase + g.padding, most = lesser(g.period, g.kernel), t = 0;
    while (t < most && (at - t * g.dilation) % g.stride != 0)
        t++;
    conv_axis x = {size, 1, 0, 0, t, g.period, phase, g.stride, {0, 0, 0}, {0, 0, 0}};
    x.pixels = make_divisor((u32)((g.image - phase + g.stride - 1) / g.stride));
    if (t < most) {
        x.first = (at - t * g.dilation) / g.stride;
        x.hop = -(g.period * g.dilation / g.stride);
        x.taps = make_divisor((u32)((g.kernel - 1 - t) / g.period + 1));
    }
    return x;
}

template <class T> DEVICE void conv_phases(const conv_phases_args &a)
{
    for (u32 i = (u32)global_thread(); i < a.count; i += (u32)global_threads()) {
        three phase = split(i, a.phases[1], a.phases[2]);
        conv_space s;
        u32 taps = 1, pixels = 1;
        UNROLL
        for (int d = 0; d < 3; d++) {
            s.axis[d] = phase_axis(a.dim[d], a.size[d], phase.v[d]);
            taps *= s.axis[d].taps.d;
            pixels *= s.axis[d].pixels.d;
        }
        s.empty = taps == 0;
        s.taps = make_divisor(taps ? taps : 1);
        s.pixels = make_divisor(pixels);
        a.spaces[i] = s;
    }
}

/* A phase's space into shared memory. */
DEVICE void bring_space(const conv_space *from, conv_space *to)
{
    static_assert(sizeof(conv_space) % 4 == 0 && sizeof(conv_space) / 4 <= 256, "a word a thread");
    if (thread_id() < sizeof(conv_space) / 4)
        ((u32 *)to)[thread_id()] = ((const u32 *)from)[thread_id()];
}

/* ---- places ---- */

/* The taps that reach the tensor from coordinates d: one bit each, the last dimension's neighbours. */
DEVICE u32 taps_inside(const conv_space &s, const i32 *d)
{
    u32 bits = 1, step = 1;
    UNROLL
    for (int k = 2; k >= 0; k--) {
        u32 all = 0;
        for (u32 t = 0; t < s.axis[k].taps.d; t++)
            all |= (u32)(d[k] + (i32)t * s.axis[k].hop) < (u32)s.axis[k].size ? bits << t * step : 0;
        bits = all;
        step *= s.axis[k].taps.d;
    }
    return bits;
}
DEVICE void set_pixel(const conv_space &s, const i32 *d, conv_place<1> *p) { p->bits = taps_inside(s, d); }
DEVICE void set_pixel(const conv_space &, const i32 *d, conv_place<0> *p)
{
    UNROLL
    for (int k = 0; k < 3; k++)
        p->d[k] = d[k];
}
DEVICE void set_tap(u32 number, const i32 *, conv_place<1> *p) { p->bits = 1u << number; }
DEVICE void set_tap(u32, const i32 *d, conv_place<0> *p)
{
    UNROLL
    for (int k = 0; k < 3; k++)
        p->d[k] = d[k];
}

/* Pixel number i of all images, in the gathered tensor and (where weights are made) in the map. */
template <class T, int DIR, int FEW> DEVICE conv_place<FEW> pixel_place(const conv_args &a, const conv_space &s, u32 i)
{
    u32 n = divide(i, s.pixels);
    three o = split(i - n * s.pixels.d, s.axis[1].pixels, s.axis[2].pixels);
    i64 in_a = n * a.a.n, in_b = n * a.b.n;
    i32 at[3];
    UNROLL
    for (int d = 0; d < 3; d++) {
        at[d] = o.v[d] * s.axis[d].step + s.axis[d].first;
        in_b += at[d] * a.b.s[d];
        in_a += o.v[d] * a.a.s[d];
    }
    conv_place<FEW> p;
    set_pixel(s, at, &p);
    p.a = in_a * (i64)sizeof(T);
    p.b = in_b * (i64)sizeof(T);
    return p;
}

/* Channel and tap number i, in the gathered tensor and in the weights. */
template <class T, int DIR, int FEW> DEVICE conv_place<FEW> tap_place(const conv_args &a, const conv_space &s, u32 i)
{
    u32 c = divide(i, s.taps), number = i - c * s.taps.d;
    three t = split(number, s.axis[1].taps, s.axis[2].taps);
    i64 in_a = (i64)i, in_b = c * a.b.c;
    i32 at[3], in_kernel = 0;
    UNROLL
    for (int d = 0; d < 3; d++) {
        at[d] = t.v[d] * s.axis[d].hop;
        in_b += at[d] * a.b.s[d];
        in_kernel = in_kernel * a.kernel[d] + s.axis[d].tap + t.v[d] * s.axis[d].tap_step;
    }
    if (DIR == CONV_IMAGE)
        in_a = (i64)c * a.m * a.taps + number;
    if (DIR == CONV_PHASES)
        in_a = (i64)c * a.m * a.taps + in_kernel;
    conv_place<FEW> p;
    set_tap(number, at, &p);
    p.a = in_a * (i64)sizeof(T);
    p.b = in_b * (i64)sizeof(T);
    return p;
}

template <class T, int DIR, int FEW>
DEVICE conv_place<FEW> step_place(const conv_args &a, const conv_space &s, u32 k, u32 end)
{
    if (k >= end)
        return conv_place<FEW>::none(0);
    return DIR == CONV_WEIGHT ? pixel_place<T, DIR, FEW>(a, s, k) : tap_place<T, DIR, FEW>(a, s, k);
}

template <class T, int DIR, int FEW>
DEVICE conv_place<FEW> column_place(const conv_args &a, const conv_space &s, u32 i, u32 columns)
{
    if (i >= columns)
        return conv_place<FEW>::none(1);
    return DIR == CONV_WEIGHT ? tap_place<T, DIR, FEW>(a, s, i) : pixel_place<T, DIR, FEW>(a, s, i);
}

/* Elements from one row of the product to the next, in operand a. */
template <int DIR> DEVICE i64 row_step(const conv_args &a)
{
    return DIR == CONV_WEIGHT ? a.a.c : DIR == CONV_MAP ? (i64)a.channels * a.taps : a.taps;
}

/* Where column i of the product lies in out. */
template <int DIR> DEVICE i64 column_out(const conv_args &a, const conv_space &s, u32 i)
{
    if (DIR == CONV_WEIGHT)
        return i;
    u32 n = divide(i, s.pixels);
    three o = split(i - n * s.pixels.d, s.axis[1].pixels, s.axis[2].pixels);
    i32 v[3];
    UNROLL
    for (int d = 0; d < 3; d++)
        v[d] = s.axis[d].pixel + o.v[d] * s.axis[d].pixel_step;
    return n * a.out_n + ((i64)v[0] * a.out_high + v[1]) * a.out_wide + v[2];
}

/* ---- tiles ---- */

/* What a thread brings into shared memory: a fixed step of k and several rows of a; of b one column and several steps
 * of k, or, where weights are made, one step and several columns: neighbours in the wave are neighbours in memory. */
template <class T, int DIR, int SHAPE, int FEW> struct bringer {
    typedef tile_shape<SHAPE> S;
    static const int A_EACH = S::BM * S::BK / 256 ? S::BM * S::BK / 256 : 1, B_EACH = S::BN * S::BK / 256;
    static const int COLUMNS = DIR == CONV_WEIGHT ? B_EACH : 1, A_ROWS = 256 / S::BK;
    const char *a, *b;
    i32 rows; /* of a, from this thread's first */
    conv_place<FEW> column[COLUMNS];
    T from_a[A_EACH], from_b[B_EACH];

    MEMBER bringer(const conv_args &g, const conv_space &s, u32 group, u32 m, u32 n, u32 columns)
    {
        u32 row = thread_id() / S::BK;
        a = (const char *)((const T *)g.a.p + group * g.a.group + (m + row) * row_step<DIR>(g));
        b = (const char *)((const T *)g.b.p + group * g.b.group);
        rows = g.m - (i32)(m + row);
        if (S::BM * S::BK < 256 && row >= (u32)S::BM)
            rows = 0;
        UNROLL
        for (int i = 0; i < COLUMNS; i++)
            column[i] = column_place<T, DIR, FEW>(
                g, s, n + (DIR == CONV_WEIGHT ? row + i * A_ROWS : thread_id() % S::BN), columns);
    }

    /* An element, or zero where there is none. */
    static MEMBER T pick(const char *from, bool ok)
    {
        T v = {};
        if (ok)
            v = *(const T *)from;
        return v;
    }

    MEMBER T gather(const conv_space &s, const conv_place<FEW> &c, const conv_place<FEW> &k) const
    {
        return pick(b + c.b + k.b, meet(s, c, k));
    }

    MEMBER void fetch(const conv_args &g, const conv_place<FEW> *steps)
    {
        const conv_place<FEW> &mine = steps[thread_id() % S::BK];
        const char *first = a + mine.a;
        i32 there = is_none(mine) ? 0 : rows;
        UNROLL
        for (int i = 0; i < A_EACH; i++)
            from_a[i] = pick(first + i * A_ROWS * row_step<DIR>(g) * (i64)sizeof(T), i * A_ROWS < there);
        UNROLL
        for (int i = 0; i < B_EACH; i++)
            from_b[i] = DIR == CONV_WEIGHT
                            ? gather(g.space, column[i % COLUMNS], mine)
                            : gather(g.space, column[0], steps[thread_id() / S::BN + i * (256 / S::BN)]);
    }

    template <class A> MEMBER void put_down(A (*as)[S::BM + 4], A (*bs)[S::BN + 4]) const
    {
        u32 k = thread_id() % S::BK, row = thread_id() / S::BK;
        UNROLL
        for (int i = 0; i < A_EACH; i++) {
            if (S::BM * S::BK >= 256 || row < (u32)S::BM)
                as[k][row + i * A_ROWS] = get(from_a[i]);
        }
        UNROLL
        for (int i = 0; i < B_EACH; i++) {
            if (DIR == CONV_WEIGHT)
                bs[k][row + i * A_ROWS] = get(from_b[i]);
            else
                bs[thread_id() / S::BN + i * (256 / S::BN)][thread_id() % S::BN] = get(from_b[i]);
        }
    }
};

/* A value of the result, at `to` of what is written. Weights have no bias. */
template <class T, int DIR> DEVICE void finish(const conv_args &a, i64 to, acc<T> v, const T *bias)
{
    if (DIR != CONV_WEIGHT && bias)
        v += get(*bias);
    if (DIR == CONV_MAP)
        put_result<T>(a.end, a.out, to, v);
    else
        ((T *)a.out)[to] = put<T>(v);
}

template <class T, int DIR, class S>
DEVICE void store_tile(const conv_args &a, const conv_space &s, u32 group, u32 m, u32 n, u32 columns,
                       const tile_sums<acc<T>, S> &sums)
{
    typedef acc<T> A;
    typedef tile_sums<A, S> place;
    u32 row = m + place::row();
    const T *bias = a.bias ? (const T *)a.bias + (group * a.m + row) : (const T *)0;
    UNROLL
    for (int j = 0; j < place::COLS; j++) {
        u32 column = n + place::col(j);
        i32 rows = column < columns ? a.m - (i32)row : 0;
        i64 at = column_out<DIR>(a, s, column) + (group * (i64)a.m + row) * a.out_c;
        A *part = (A *)a.partial + (block_id_z() * a.total + at);
        UNROLL
        for (int i = 0; i < place::ROWS; i++) {
            i64 below = place::down(i) * a.out_c;
            if ((i32)place::down(i) >= rows)
                continue;
            if (a.partial)
                part[below] = sums.value(i, j);
            else
                finish<T, DIR>(a, at + below, sums.value(i, j), bias ? bias + place::down(i) : bias);
        }
    }
}

/* FEW: a kernel (or phase) of up to 32 taps. */
template <class T, int DIR, int SHAPE, int FEW> DEVICE void conv_tiles(const conv_args &a)
{
    typedef tile_shape<SHAPE> S;
    typedef acc<T> A;
    SHARED alignas(32) A as[2][S::BK][S::BM + 4];
    SHARED alignas(32) A bs[2][S::BK][S::BN + 4];
    SHARED conv_place<FEW> steps[2][S::BK];
    SHARED conv_space phase;
    const conv_space &s = DIR == CONV_PHASES ? phase : a.space;
    u32 t = block_id_y() * a.abreast + block_id();
    if (t >= a.work)
        return;
    u32 rest = divide(t, a.m_tiles), m = (t - rest * a.m_tiles.d) * S::BM, group = divide(rest, a.n_tiles);
    u32 n = (rest - group * a.n_tiles.d) * S::BN;
    if (DIR == CONV_PHASES) {
        u32 next = divide(group, a.phases);
        bring_space(a.spaces + (group - next * a.phases.d), &phase);
        group = next;
        barrier();
    }
    u32 columns = DIR == CONV_WEIGHT ? a.channels * s.taps.d : a.images * s.pixels.d;
    u32 k_all = DIR == CONV_WEIGHT ? a.images * s.pixels.d : s.empty ? 0 : a.channels * s.taps.d;
    if (n >= columns)
        return;
    u32 k = block_id_z() * a.k_each, end = lesser(k_all, k + a.k_each), mine = thread_id();
    tile_sums<A, S> sums;
    bringer<T, DIR, SHAPE, FEW> in(a, s, group, m, n, columns);
    if (mine < 2 * S::BK)
        steps[mine / S::BK][mine % S::BK] = step_place<T, DIR, FEW>(a, s, k + mine, end);
    barrier();
    if (k < end) {
        in.fetch(a, steps[0]);
        in.put_down(as[0], bs[0]);
    }
    barrier();
    for (u32 turn = 0; k < end; k += S::BK, turn ^= 1) {
        bool more = k + S::BK < end;
        if (more)
            in.fetch(a, steps[turn ^ 1]);
        sums.multiply(as[turn], bs[turn]);
        if (more)
            in.put_down(as[turn ^ 1], bs[turn ^ 1]);
        if (mine < S::BK && k + 2 * S::BK < end)
            steps[turn][mine] = step_place<T, DIR, FEW>(a, s, k + 2 * S::BK + mine, end);
        barrier();
    }
    store_tile<T, DIR, S>(a, s, group, m, n, columns, sums);
}

/* Parts of k added up, always in the same order. */
template <class T> DEVICE void conv_sum(const conv_sum_args &a)
{
    typedef acc<T> A;
    for (i64 i = global_thread(); i < a.total; i += global_threads()) {
        A v = 0;
        for (i32 s = 0; s < a.splits; s++)
            v += ((const A *)a.partial)[s * a.total + i];
        if (a.bias) {
            u32 row = divide((u32)i, a.pixels), channel = row - divide(row, a.channels) * a.channels.d;
            v += get(((const T *)a.bias)[channel]);
        }
        put_result<T>(a.end, a.out, i, v);
    }
}
