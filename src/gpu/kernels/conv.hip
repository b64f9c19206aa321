/* conv.hip: convolutions as products of tiles, one operand gathered on the way into shared memory. */
#include "conv_end.h"
#include "device.h"

/* Tiles of BM x BN, in steps of BK; a thread of 256 makes TM x TN of it, in groups of 4 x 4. */
template <int SHAPE> struct tile_shape;
template <> struct tile_shape<0> {
    static const int BM = 16, BN = 256, BK = 8, TM = 4, TN = 4;
};
template <> struct tile_shape<1> {
    static const int BM = 64, BN = 64, BK = 16, TM = 4, TN = 4;
};
template <> struct tile_shape<2> {
    static const int BM = 64, BN = 128, BK = 16, TM = 8, TN = 4;
};
template <> struct tile_shape<3> {
    static const int BM = 128, BN = 128, BK = 8, TM = 8, TN = 8;
};

/* What one step along k, or one column, adds to the place in each operand. One past the end is far outside, a step in
 * the first dimension, a column in the second. */
struct conv_place {
    i32 d[3]; /* coordinates in the gathered tensor */
    i64 a, b;
};
CONSTANT i32 OUTSIDE = (i32)0x80000000;

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

/* Pixel number i of all images, in the gathered tensor and (where weights are made) in the map. */
DEVICE conv_place pixel_place(const conv_args &a, const conv_space &s, u32 i)
{
    u32 n = divide(i, s.pixels);
    three o = split(i - n * s.pixels.d, s.axis[1].pixels, s.axis[2].pixels);
    conv_place p = {{0, 0, 0}, n * a.a.n, n * a.b.n};
    UNROLL
    for (int d = 0; d < 3; d++) {
        p.d[d] = o.v[d] * s.axis[d].step + s.axis[d].first;
        p.b += p.d[d] * a.b.s[d];
        p.a += o.v[d] * a.a.s[d];
    }
    return p;
}

/* Channel and tap number i, in the gathered tensor and in the weights. */
template <int DIR> DEVICE conv_place tap_place(const conv_args &a, const conv_space &s, u32 i)
{
    u32 c = divide(i, s.taps);
    three t = split(i - c * s.taps.d, s.axis[1].taps, s.axis[2].taps);
    conv_place p = {{0, 0, 0}, (i64)i, c * a.b.c};
    i32 number = 0;
    UNROLL
    for (int d = 0; d < 3; d++) {
        p.d[d] = t.v[d] * s.axis[d].hop;
        p.b += p.d[d] * a.b.s[d];
        number = number * a.kernel[d] + s.axis[d].tap + t.v[d] * s.axis[d].tap_step;
    }
    if (DIR == CONV_IMAGE)
        p.a = (i64)c * a.m * a.taps + (i - c * s.taps.d);
    if (DIR == CONV_PHASES)
        p.a = (i64)c * a.m * a.taps + number;
    return p;
}

template <int DIR> DEVICE conv_place step_place(const conv_args &a, const conv_space &s, u32 k, u32 end)
{
    if (k >= end)
        return {{OUTSIDE, 0, 0}, 0, 0};
    return DIR == CONV_WEIGHT ? pixel_place(a, s, k) : tap_place<DIR>(a, s, k);
}

template <int DIR> DEVICE conv_place column_place(const conv_args &a, const conv_space &s, u32 i, u32 columns)
{
    if (i >= columns)
        return {{0, OUTSIDE, 0}, 0, 0};
    return DIR == CONV_WEIGHT ? tap_place<DIR>(a, s, i) : pixel_place(a, s, i);
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
template <class T, int DIR, int SHAPE> struct bringer {
    typedef tile_shape<SHAPE> S;
    static const int A_EACH = S::BM * S::BK / 256 ? S::BM * S::BK / 256 : 1, B_EACH = S::BN * S::BK / 256;
    static const int COLUMNS = DIR == CONV_WEIGHT ? B_EACH : 1;
    const T *a, *b;
    i32 rows; /* of a, from this thread's first */
    conv_place column[COLUMNS];
    T from_a[A_EACH], from_b[B_EACH];

    MEMBER bringer(const conv_args &g, const conv_space &s, u32 group, u32 m, u32 n, u32 columns)
    {
        u32 row = thread_id() / S::BK;
        a = (const T *)g.a.p + group * g.a.group + m * row_step<DIR>(g);
        b = (const T *)g.b.p + group * g.b.group;
        rows = g.m - (i32)(m + row);
        if (S::BM * S::BK < 256 && row >= (u32)S::BM)
            rows = 0;
        UNROLL
        for (int i = 0; i < COLUMNS; i++)
            column[i] = column_place<DIR>(
                g, s, n + (DIR == CONV_WEIGHT ? row + i * (256 / S::BK) : thread_id() % S::BN), columns);
    }

    /* Element 0 is read in the place of one that is not there: no branch, so that all loads are under way at once. */
    static MEMBER T pick(const T *from, i64 at, bool ok)
    {
        T v = from[ok ? at : 0];
        return ok ? v : T{};
    }

    MEMBER T gather(const conv_args &g, const conv_place &c, const conv_place &k) const
    {
        bool ok = true;
        UNROLL
        for (int d = 0; d < 3; d++)
            ok &= (u32)(c.d[d] + k.d[d]) < (u32)g.space.axis[d].size;
        return pick(b, c.b + k.b, ok);
    }

    MEMBER void fetch(const conv_args &g, const conv_place *steps)
    {
        const conv_place &mine = steps[thread_id() % S::BK];
        i64 row = thread_id() / S::BK;
        UNROLL
        for (int i = 0; i < A_EACH; i++)
            from_a[i] = pick(a, mine.a + (row + i * (256 / S::BK)) * row_step<DIR>(g),
                             mine.d[0] != OUTSIDE && i * (256 / S::BK) < rows);
        UNROLL
        for (int i = 0; i < B_EACH; i++)
            from_b[i] = DIR == CONV_WEIGHT
                            ? gather(g, column[i % COLUMNS], mine)
                            : gather(g, column[0], steps[thread_id() / S::BN + i * (256 / S::BN)]);
    }

    template <class A> MEMBER void put_down(A (*as)[S::BM + 4], A (*bs)[S::BN + 4]) const
    {
        u32 k = thread_id() % S::BK, row = thread_id() / S::BK;
        UNROLL
        for (int i = 0; i < A_EACH; i++) {
            if (S::BM * S::BK >= 256 || row < (u32)S::BM)
                as[k][row + i * (256 / S::BK)] = get(from_a[i]);
        }
        UNROLL
        for (int i = 0; i < B_EACH; i++) {
            if (DIR == CONV_WEIGHT)
                bs[k][row + i * (256 / S::BK)] = get(from_b[i]);
            else
                bs[thread_id() / S::BN + i * (256 / S::BN)][thread_id() % S::BN] = get(from_b[i]);
        }
    }
};

/* Row or column number i of a thread's: groups of 4, a whole tile's threads apart. */
template <int EACH, int SIZE> DEVICE u32 spread(u32 thread, int i)
{
    return (u32)(i / 4) * (SIZE / (EACH / 4)) + thread * 4 + i % 4;
}

/* AT_ONCE steps of k are unrolled: more would take more registers than it saves time. */
template <class A, class S, int AT_ONCE>
DEVICE void multiply(const A (*as)[S::BM + 4], const A (*bs)[S::BN + 4], u32 ty, u32 tx, A (*sum)[S::TN])
{
    _Pragma("unroll 1")
    for (int first = 0; first < S::BK; first += AT_ONCE) {
        UNROLL
        for (int k = first; k < first + AT_ONCE; k++) {
            pack<A, 4> x[S::TM / 4], y[S::TN / 4];
            UNROLL
            for (int i = 0; i < S::TM / 4; i++)
                x[i] = load<4>(&as[k][spread<S::TM, S::BM>(ty, i * 4)]);
            UNROLL
            for (int j = 0; j < S::TN / 4; j++)
                y[j] = load<4>(&bs[k][spread<S::TN, S::BN>(tx, j * 4)]);
            UNROLL
            for (int i = 0; i < S::TM; i++)
                UNROLL
                for (int j = 0; j < S::TN; j++)
                    sum[i][j] += x[i / 4].v[i % 4] * y[j / 4].v[j % 4];
        }
    }
}

template <class T, int DIR, class S>
DEVICE void store_tile(const conv_args &a, const conv_space &s, u32 group, u32 m, u32 n, u32 columns,
                       const acc<T> (*sum)[S::TN])
{
    typedef acc<T> A;
    u32 tx = thread_id() % (S::BN / S::TN), ty = thread_id() / (S::BN / S::TN);
    UNROLL
    for (int j = 0; j < S::TN; j++) {
        u32 column = n + spread<S::TN, S::BN>(tx, j);
        if (column >= columns)
            continue;
        i64 at = column_out<DIR>(a, s, column) + (i64)group * a.m * a.out_c;
        UNROLL
        for (int i = 0; i < S::TM; i++) {
            u32 row = m + spread<S::TM, S::BM>(ty, i);
            if (row >= (u32)a.m)
                continue;
            A v = sum[i][j];
            i64 to = at + row * a.out_c;
            if (a.partial) {
                ((A *)a.partial)[block_id_z() * a.total + to] = v;
                continue;
            }
            if (DIR != CONV_WEIGHT && a.bias)
                v += get(((const T *)a.bias)[group * a.m + row]);
            if (DIR == CONV_MAP)
                put_result<T>(a.end, a.out, to, v);
            else
                ((T *)a.out)[to] = put<T>(v);
        }
    }
}

template <class T, int DIR, int SHAPE> DEVICE void conv_tiles(const conv_args &a)
{
    typedef tile_shape<SHAPE> S;
    typedef acc<T> A;
    const int AT_ONCE = S::TM * S::TN < 64 ? 4 : DIR == CONV_WEIGHT ? 1 : 2;
    SHARED alignas(32) A as[2][S::BK][S::BM + 4];
    SHARED alignas(32) A bs[2][S::BK][S::BN + 4];
    SHARED conv_place steps[2][S::BK];
    SHARED conv_space phase;
    const conv_space &s = DIR == CONV_PHASES ? phase : a.space;
    for (u32 t = block_id(); t < a.work; t += grid_blocks()) {
        u32 rest = divide(t, a.m_tiles), m = (t - rest * a.m_tiles.d) * S::BM, group = divide(rest, a.n_tiles);
        u32 n = (rest - group * a.n_tiles.d) * S::BN;
        barrier(); /* the last tile's work is done */
        if (DIR == CONV_PHASES) {
            u32 next = divide(group, a.phases);
            bring_space(a.spaces + (group - next * a.phases.d), &phase);
            group = next;
            barrier();
        }
        u32 columns = DIR == CONV_WEIGHT ? a.channels * s.taps.d : a.images * s.pixels.d;
        u32 k_all = DIR == CONV_WEIGHT ? a.images * s.pixels.d : s.empty ? 0 : a.channels * s.taps.d;
        if (n >= columns)
            continue;
        u32 k = block_id_z() * a.k_each, end = lesser(k_all, k + a.k_each), mine = thread_id();
        A sum[S::TM][S::TN] = {};
        bringer<T, DIR, SHAPE> in(a, s, group, m, n, columns);
        if (mine < 2 * S::BK)
            steps[mine / S::BK][mine % S::BK] = step_place<DIR>(a, s, k + mine, end);
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
            multiply<A, S, AT_ONCE>(as[turn], bs[turn], mine / (S::BN / S::TN), mine % (S::BN / S::TN), sum);
            if (more)
                in.put_down(as[turn ^ 1], bs[turn ^ 1]);
            if (mine < S::BK)
                steps[turn][mine] = step_place<DIR>(a, s, k + 2 * S::BK + mine, end);
            barrier();
        }
        store_tile<T, DIR, S>(a, s, group, m, n, columns, sum);
    }
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
