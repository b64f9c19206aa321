/* norm.hip: layer, rms and group norm of rows that registers hold: one read of x, one write of y.
 *
 * LANES threads share a row, a part of a wave or a whole block; each has PACKS packs of VEC neighbours of it. */
#include "cluster.h"
#include "norm.h"

/* Four sums over groups of WIDTH neighbouring lanes: lanes hand each other half of theirs until each has one, that of its
 * number modulo 4, which is less to do than four times over all lanes; then all get all. */
template <int WIDTH, class A> DEVICE void four_sums(A *v)
{
    UNROLL
    for (int half = 2; half; half /= 2) {
        bool upper = lane_id() & half;
        UNROLL
        for (int k = 0; k < half; k++) {
            A low = v[k], high = v[k + half];
            v[k] = (upper ? high : low) + shuffle_xor(upper ? low : high, half);
        }
    }
    A sum = v[0];
    UNROLL
    for (u32 m = 4; m < WIDTH; m *= 2)
        sum += shuffle_xor(sum, m);
    UNROLL
    for (int k = 0; k < 4; k++)
        v[k] = shuffle(sum, lane_id() / 4 * 4 + k);
}

/* N sums over the LANES threads of a row. room: of the block, N values for each wave. */
template <int LANES, int N, class A> DEVICE void row_sums(A *v, A *room)
{
    const int waves = LANES / WAVE, width = LANES <= WAVE ? LANES : WAVE;
    if constexpr (N == 4) {
        four_sums<width>(v);
    } else {
        UNROLL
        for (int k = 0; k < N; k++)
            v[k] = wave_reduce<op_sum, width>(v[k]);
    }
    if constexpr (LANES > WAVE) {
        if (lane_id() == 0) {
            UNROLL
            for (int k = 0; k < N; k++)
                room[k * waves + wave_id()] = v[k];
        }
        barrier();
        UNROLL
        for (int k = 0; k < N; k++) {
            v[k] = room[k * waves];
            for (int i = 1; i < waves; i++)
                v[k] += room[k * waves + i];
        }
        barrier();
    }
}

/* A row as one thread sees it. */
template <class T, int VEC, int PACKS, int LANES> struct row_part {
    acc<T> v[PACKS][VEC];
    u32 lane;
    int n;

    MEMBER int index(int p) const { return (int)(p * LANES + lane) * VEC; }
    MEMBER void fetch(const T *x)
    {
        pack<T, VEC> raw[PACKS];
        UNROLL
        for (int p = 0; p < PACKS; p++) /* behind the end the row's start is read: no branch between the loads */
            raw[p] = load_once<VEC>(x + (index(p) < n ? index(p) : 0));
        UNROLL
        for (int p = 0; p < PACKS; p++) {
            raw[p] = index(p) < n ? raw[p] : pack<T, VEC>{};
            UNROLL
            for (int e = 0; e < VEC; e++)
                v[p][e] = get(raw[p].v[e]);
        }
    }
    /* The sum of two rows: both are on their way before the first is looked at. */
    MEMBER void fetch_sum(const T *x, const T *z)
    {
        pack<T, VEC> raw[PACKS], more[PACKS];
        UNROLL
        for (int p = 0; p < PACKS; p++) {
            raw[p] = load_once<VEC>(x + (index(p) < n ? index(p) : 0));
            more[p] = load_once<VEC>(z + (index(p) < n ? index(p) : 0));
        }
        UNROLL
        for (int p = 0; p < PACKS; p++) {
            UNROLL
            for (int e = 0; e < VEC; e++)
                v[p][e] = index(p) < n ? get(raw[p].v[e]) + get(more[p].v[e]) : (acc<T>)0;
        }
    }
    MEMBER void keep(T *to) const
    {
        UNROLL
        for (int p = 0; p < PACKS; p++) {
            pack<T, VEC> out;
            UNROLL
            for (int e = 0; e < VEC; e++)
                out.v[e] = put<T>(v[p][e]);
            if (index(p) < n)
                store<VEC>(to + index(p), out);
        }
    }
};

/* How a row is normalised: (x - mean) * scale + shift, which is what rounding has cut off the mean. */
template <class R> struct row_stats {
    R mean, scale, shift;
};

/* What sums over a row are taken in: more than the elements have. */
template <class T> struct sum_of {
    typedef f64 type;
};
template <> struct sum_of<f16> {
    typedef f32 type;
};
template <> struct sum_of<bf16> {
    typedef f32 type;
};
template <class T> using wide = typename sum_of<T>::type;

/* Deviations are taken from the thread's own first element in R, which is exact where it counts, and moved to those
 * from the row's first one in the wider type: no large mean and no outlier costs accuracy. sums: two of the row, of what
 * the thread has. */
template <class T, int VEC, int PACKS, int LANES>
DEVICE void sum_row(bool centred, const row_part<T, VEC, PACKS, LANES> &r, acc<T> start, wide<T> *sums)
{
    typedef acc<T> R;
    typedef wide<T> W;
    R s = 0, q = 0, own = centred ? r.v[0][0] : (R)0;
    int k = 0;
    UNROLL
    for (int p = 0; p < PACKS; p++) {
        if (r.index(p) >= r.n)
            continue;
        k += VEC;
        UNROLL
        for (int e = 0; e < VEC; e++) {
            R d = centred ? r.v[p][e] - own : r.v[p][e];
            s += centred ? d : (R)0;
            q += d * d;
        }
    }
    sums[0] = s;
    sums[1] = q;
    if (centred) {
        W off = (W)own - (W)start;
        sums[0] += k * off;
        sums[1] += off * (2 * (W)s + k * off);
    }
}

/* How a row is normalised, from its sums. */
template <class T, class W>
DEVICE row_stats<acc<T>> stats_from(const norm_rows_args &a, bool centred, acc<T> start, const W *sums)
{
    typedef acc<T> R;
    W inverse_n = (W)a.inverse_n;
    if (!centred)
        return {0, 1 / m_sqrt((R)(sums[1] * inverse_n) + (R)a.eps), 0};
    W mean = (W)start + sums[0] * inverse_n;
    R var = (R)((sums[1] - sums[0] * sums[0] * inverse_n) * inverse_n);
    R scale = 1 / m_sqrt(greater(var, (R)0) + (R)a.eps), rounded = (R)mean; /* a NaN stays one */
    return {rounded, scale, (R)(rounded - mean) * scale};
}

template <class T, int VEC, int PACKS, int LANES>
DEVICE row_stats<acc<T>> stats_of(const norm_rows_args &a, const row_part<T, VEC, PACKS, LANES> &r,
                                  acc<T> start, wide<T> *room)
{
    wide<T> sums[2];
    sum_row(a.centred, r, start, sums);
    row_sums<LANES, 2>(sums, room);
    return stats_from<T>(a, a.centred, start, sums);
}

/* A pack of weights (or biases) for a row's elements from `at` on; SPREAD: a channel has several elements. */
template <class T, int VEC, int SPREAD>
DEVICE void weights_at(const norm_rows_args &a, const void *from, int first, int at, acc<T> absent, acc<T> *w)
{
    pack<T, VEC> raw;
    if (!from) {
        UNROLL
        for (int e = 0; e < VEC; e++)
            w[e] = absent;
        return;
    }
    if (SPREAD && a.whole) {
        raw.v[0] = ((const T *)from)[first + divide((u32)at, a.by_inner)];
        UNROLL
        for (int e = 1; e < VEC; e++)
            raw.v[e] = raw.v[0];
    } else if (SPREAD) {
        UNROLL
        for (int e = 0; e < VEC; e++)
            raw.v[e] = ((const T *)from)[first + divide((u32)(at + e), a.by_inner)];
    } else {
        raw = load<VEC>((const T *)from + first + at);
    }
    UNROLL
    for (int e = 0; e < VEC; e++)
        w[e] = get(raw.v[e]);
}

/* A row of all: its sample and group. */
DEVICE void find_row(const norm_rows_args &a, i64 row, i64 *sample, int *group)
{
    *sample = row < (i64)1 << 31 ? (i64)divide((u32)row, a.by_groups) : row / a.groups;
    *group = (int)(row - *sample * a.groups);
}

/* A thread's part of a row, normalised, to y. */
template <class T, int VEC>
DEVICE void put_pack(const acc<T> *v, const row_stats<acc<T>> &s, const acc<T> *w, const acc<T> *b, T *y)
{
    pack<T, VEC> out;
    UNROLL
    for (int e = 0; e < VEC; e++)
        out.v[e] = put<T>(((v[e] - s.mean) * s.scale + s.shift) * w[e] + b[e]);
    store<VEC>(y, out);
}

/* Asks for rows of x that another block will need next, while the block waits for its own n ones; one by each of n threads. */
template <class T>
DEVICE void ask_for_rows(const norm_rows_args &a, const void *x, i64 step, i64 first, u32 thread, u32 n)
{
#ifdef WK_NVIDIA
    i64 row = first + a.ahead + thread;
    if (a.ahead && thread < n && row < a.rows)
        fetch_ahead((const T *)x + row * step, (u32)a.n * sizeof(T));
#endif
}

/* MODE 1: a channel has several elements; 2: of the sum of x and z. */
template <class T, int VEC, int PACKS, int LANES, int MODE> DEVICE void norm_rows(const norm_rows_args &a)
{
    typedef acc<T> R;
    const int THREADS = LANES > WAVE ? LANES : 256, PER = THREADS / LANES;
    SHARED wide<T> room[2 * THREADS / WAVE];
    row_part<T, VEC, PACKS, LANES> r;
    r.lane = thread_id() % LANES;
    r.n = a.n;
    for (i64 base = (i64)block_id() * PER; base < a.rows; base += (i64)grid_blocks() * PER) {
        i64 row = base + thread_id() / LANES, sample;
        int group;
        bool live = row < a.rows; /* the others take part in the sums */
        row = live ? row : a.rows - 1;
        find_row(a, row, &sample, &group);
        const T *x = (const T *)a.x + sample * a.x_step + (i64)group * a.n;
        T *y = (T *)a.y + row * a.n;
        R start = get(*x);
        if constexpr (MODE == 2) {
            const T *z = (const T *)a.z + row * a.dy_step;
            r.fetch_sum(x, z);
            start += get(*z);
        } else {
            r.fetch(x);
        }
        if constexpr (MODE == 2 ? VEC == 8 : MODE == 0 && PER == 1 && VEC * sizeof(T) == 16) /* of a sum if 16-bit */
            ask_for_rows<T>(a, a.x, a.x_step, base, thread_id(), PER);
        if constexpr (MODE == 2 && VEC == 8)
            ask_for_rows<T>(a, a.z, a.dy_step, base, thread_id() - PER, PER);
        const bool EARLY = MODE == 0 && sizeof(T) == 4 && VEC > 1 && PACKS <= 4; /* weights come while sums are made */
        pack<T, VEC> early[EARLY ? PACKS : 1];
        UNROLL
        for (int p = 0; EARLY && a.weight && p < PACKS; p++)
            early[p] = load<VEC>((const T *)a.weight + group * a.channels + (r.index(p) < a.n ? r.index(p) : 0));
        row_stats<R> s = stats_of(a, r, start, room);
        if (MODE == 2 && a.sum && live) /* all threads have read the row: the sum may lie in x's or z's place */
            r.keep((T *)a.sum + row * a.n);
        UNROLL
        for (int p = 0; p < PACKS; p++) {
            const int SPREAD = MODE == 1;
            int at = r.index(p), first = group * a.channels;
            R w[VEC], b[VEC];
            if (at >= a.n || !live)
                continue;
            if constexpr (EARLY) {
                UNROLL
                for (int e = 0; e < VEC; e++)
                    w[e] = a.weight ? get(early[p].v[e]) : (R)1;
            } else {
                weights_at<T, VEC, SPREAD>(a, a.weight, first, at, 1, w);
            }
            weights_at<T, VEC, SPREAD>(a, a.bias, first, at, 0, b);
            put_pack<T, VEC>(r.v[p], s, w, b, y + at);
        }
    }
}

/* Element e of pack p, as r.value(p, e); the upper one of two bf16 by one instruction. */
template <class T, int KEEP, int LANES, int BLOCKS>
DEVICE acc<T> element(const kept_line<T, KEEP, LANES, BLOCKS> &r, int p, int e)
{
    if constexpr (sizeof(T) == 2)
        return half_of<T>(r.w[p][e / 2], e % 2);
    else
        return r.value(p, e);
}

/* As sum_row, of a row as it lies in memory; behind its end there are zeros. */
template <class T, int KEEP, int LANES, int BLOCKS, class W>
DEVICE void sum_kept(bool centred, const kept_line<T, KEEP, LANES, BLOCKS> &r, acc<T> start, W *sums)
{
    typedef acc<T> R;
    R s = 0, q = 0, own = centred ? element(r, 0, 0) : (R)0;
    int k = 0;
    UNROLL
    for (int p = 0; p < KEEP; p++) {
        bool there = r.index(p) < r.steps;
        R here = there ? own : (R)0; /* so that those behind the end do not count */
        k += there ? r.VEC : 0;
        UNROLL
        for (int e = 0; e < r.VEC; e++) {
            R d = centred ? element(r, p, e) - here : element(r, p, e);
            s += centred ? d : (R)0;
            q += d * d;
        }
    }
    sums[0] = s;
    sums[1] = q;
    if (centred) {
        W off = (W)own - (W)start;
        sums[0] += k * off;
        sums[1] += off * (2 * (W)s + k * off);
    }
}

/* Pack p of the weights (or biases) of a thread's part of a row, which other rows need too; behind its end the first one.
 * Where there are none w stays as it is. */
template <class T, int PACKS, int LANES>
DEVICE void fetch_weights(const void *from, int p, kept_line<T, PACKS, LANES> &w)
{
    if (!from)
        return;
    pack<u32, 4> v = load<4>((const u32 *)from + (w.index(p) < w.steps ? w.index(p) * 4 : 0));
    UNROLL
    for (int i = 0; i < 4; i++)
        w.w[p][i] = v.v[i];
}

/* Layer and rms norm of 16-bit rows, where instructions and registers count as much as bytes: a thread has a part of two rows,
 * and gets their weights once. */
template <class T, int PACKS, int LANES, int CENTRED> DEVICE void norm_row_pairs(const norm_rows_args &a)
{
    typedef acc<T> R;
    const int THREADS = LANES > WAVE ? LANES : 256, PER = 2 * THREADS / LANES, VEC = 16 / sizeof(T);
    SHARED wide<T> room[4 * THREADS / WAVE];
    kept_line<T, PACKS, LANES> r[2];
    r[0].steps = r[1].steps = (u32)(a.n / VEC);
    for (i64 base = (i64)block_id() * PER; base < a.rows; base += (i64)grid_blocks() * PER) {
        i64 row = base + thread_id() / LANES * 2;
        R start[2];
        wide<T> sums[2][2];
        row_stats<R> s[2];
        UNROLL
        for (int k = 0; k < 2; k++) {
            const T *x = (const T *)a.x + lesser(row + k, a.rows - 1) * a.x_step;
            start[k] = CENTRED ? get(*x) : (R)0;
            r[k].fetch(x, put<T>((R)0));
        }
        if constexpr (LANES > WAVE)
            ask_for_rows<T>(a, a.x, a.x_step, base, thread_id(), PER);
        UNROLL
        for (int k = 0; k < 2; k++)
            sum_kept(CENTRED, r[k], start[k], sums[k]);
        const bool EARLY = PACKS <= 2 || !CENTRED; /* weights come while sums are made, where registers are enough */
        kept_line<T, PACKS, LANES> weight, bias; /* rms norm has no bias */
        weight.steps = bias.steps = r[0].steps;
        weight.fill(put<T>((R)1));
        bias.fill(put<T>((R)0));
        UNROLL
        for (int p = 0; EARLY && p < PACKS; p++) {
            fetch_weights(a.weight, p, weight);
            if constexpr (CENTRED)
                fetch_weights(a.bias, p, bias);
        }
        if constexpr (CENTRED) {
            row_sums<LANES, 4>(sums[0], room);
        } else { /* squares alone */
            wide<T> squares[2] = {sums[0][1], sums[1][1]};
            row_sums<LANES, 2>(squares, room);
            sums[0][1] = squares[0];
            sums[1][1] = squares[1];
        }
        UNROLL
        for (int k = 0; k < 2; k++)
            s[k] = stats_from<T>(a, CENTRED, start[k], sums[k]);
        UNROLL
        for (int p = 0; p < PACKS; p++) {
            R w[VEC], b[VEC];
            if constexpr (EARLY) {
                weight.forget(p);
                if constexpr (CENTRED)
                    bias.forget(p);
            } else {
                fetch_weights(a.weight, p, weight);
                fetch_weights(a.bias, p, bias);
            }
            UNROLL
            for (int e = 0; e < VEC; e++)
                w[e] = element(weight, p, e), b[e] = CENTRED ? element(bias, p, e) : (R)0;
            UNROLL
            for (int k = 0; k < 2; k++) {
                R v[VEC];
                r[k].forget(p);
                UNROLL
                for (int e = 0; e < VEC; e++)
                    v[e] = ((element(r[k], p, e) - s[k].mean) * s[k].scale + s[k].shift) * w[e] + b[e];
                if (row + k < a.rows)
                    r[k].store_pack(p, (T *)a.y + (row + k) * a.n, v);
            }
        }
    }
}

/* ---- rows of a block or a cluster ---- */

/* Layer and rms norm. */
template <class T, int KEEP, int THREADS, int BLOCKS> DEVICE void norm_kept(const norm_rows_args &a)
{
    typedef acc<T> R;
    SHARED f64 room[2 * THREADS / WAVE], all[2][BLOCKS][2];
    kept_line<T, KEEP, THREADS, BLOCKS> r;
    r.steps = (u32)(a.n / r.VEC);
    cluster_begin<BLOCKS>();
    i64 first = block_id() / BLOCKS, clusters = grid_blocks() / BLOCKS;
    for (i64 row = first, turn = 0; row < a.rows; row += clusters, turn++) {
        const T *x = (const T *)a.x + row * a.x_step;
        R start = get(*x);
        f64 sums[2];
        r.fetch(x, put<T>((R)0));
        sum_kept(a.centred, r, start, sums); /* in f64: these rows are long */
        row_sums<THREADS, 2>(sums, room);
        if constexpr (BLOCKS > 1) {
            cluster_exchange<BLOCKS, 2>(sums, all[turn & 1], turn == 0);
            sums[0] = sums[1] = 0;
            ROLLED
            for (int b = 0; b < BLOCKS; b++) {
                sums[0] += all[turn & 1][b][0];
                sums[1] += all[turn & 1][b][1];
            }
        }
        row_stats<R> s = stats_from<T>(a, a.centred, start, sums);
        UNROLL
        for (int p = 0; p < KEEP; p++) {
            int at = (int)(r.index(p) < r.steps ? r.index(p) : 0) * r.VEC;
            R v[r.VEC], w[r.VEC], b[r.VEC];
            r.forget(p);
            weights_at<T, r.VEC, 0>(a, a.weight, 0, at, 1, w);
            weights_at<T, r.VEC, 0>(a, a.bias, 0, at, 0, b);
            UNROLL
            for (int e = 0; e < r.VEC; e++)
                v[e] = ((r.value(p, e) - s.mean) * s.scale + s.shift) * w[e] + b[e];
            r.store_pack(p, (T *)a.y + row * a.n, v);
        }
    }
}

/* ---- gradients ---- */

/* With h = (x - mean) * scale and g = dy * weight:
 *   dweight = sum(dy h), dbias = sum(dy), dx = scale (g - mean(g) - h mean(g h)), without mean(g) for rms norm.
 * x and dy become h and dy; shares of dweight and dbias are added to the thread's own. */
template <class T, int VEC, int PACKS, int LANES>
DEVICE void grad_row(const norm_rows_args &a, row_part<T, VEC, PACKS, LANES> &x,
                     const row_part<T, VEC, PACKS, LANES> &dy, const row_stats<acc<T>> &s, int first, T *dx,
                     acc<T> *room)
{
    typedef acc<T> R;
    R sums[2] = {0, 0}, w[VEC];
    UNROLL
    for (int p = 0; p < PACKS; p++) {
        if (x.index(p) >= a.n)
            continue;
        weights_at<T, VEC, 0>(a, a.weight, first, x.index(p), 1, w);
        UNROLL
        for (int e = 0; e < VEC; e++) {
            R g = dy.v[p][e] * w[e], h = (x.v[p][e] - s.mean) * s.scale + s.shift;
            x.v[p][e] = h;
            sums[0] += g;
            sums[1] += g * h;
        }
    }
    row_sums<LANES, 2>(sums, room);
    R mean_g = a.centred ? sums[0] * (R)a.inverse_n : (R)0, mean_gh = sums[1] * (R)a.inverse_n;
    UNROLL
    for (int p = 0; p < PACKS; p++) {
        int at = x.index(p);
        pack<T, VEC> out;
        if (at >= a.n || !dx)
            continue;
        weights_at<T, VEC, 0>(a, a.weight, first, at, 1, w);
        UNROLL
        for (int e = 0; e < VEC; e++)
            out.v[e] = put<T>(s.scale * (dy.v[p][e] * w[e] - mean_g - x.v[p][e] * mean_gh));
        store<VEC>(dx + at, out);
    }
}

/* Threads' shares of a block's columns to row `part` of the parts. PER threads have the same columns. */
template <int VEC, int PACKS, int LANES, int PER, class R>
DEVICE void give_shares(const norm_rows_args &a, R (*share)[VEC], i64 array, i64 part, int group, R *room)
{
    const int WIDTH = LANES * VEC;
    R *to = (R *)a.parts + ((array * a.n_parts + part) * a.groups + group) * a.n;
    UNROLL
    for (int p = 0; p < PACKS; p++) {
        UNROLL
        for (int e = 0; e < VEC; e++)
            room[thread_id() * VEC + e] = share[p][e];
        barrier();
        for (int i = (int)thread_id(); i < WIDTH && p * WIDTH + i < a.n; i += LANES * PER) {
            R sum = room[i];
            for (int k = 1; k < PER; k++)
                sum += room[k * WIDTH + i];
            to[p * WIDTH + i] = sum;
        }
        barrier();
    }
}

/* A block does one group of every n_parts-th set of PER samples; the threads keep their columns' shares of dweight and
 * dbias on the way. */
template <class T, int VEC, int PACKS, int LANES> DEVICE void norm_rows_grad(const norm_rows_args &a)
{
    typedef acc<T> R;
    const int THREADS = LANES < 256 ? 256 : LANES, PER = THREADS / LANES;
    SHARED wide<T> room[2 * THREADS / WAVE];
    SHARED R room2[THREADS * VEC];
    R dweight[PACKS][VEC], dbias[PACKS][VEC];
    row_part<T, VEC, PACKS, LANES> x, dy;
    x.lane = dy.lane = thread_id() % LANES;
    x.n = dy.n = a.n;
    i64 part;
    int group;
    find_row(a, block_id(), &part, &group);
    UNROLL
    for (int p = 0; p < PACKS; p++) {
        UNROLL
        for (int e = 0; e < VEC; e++)
            dweight[p][e] = dbias[p][e] = 0;
    }
    for (i64 base = part * PER; base < a.samples; base += a.n_parts * PER) {
        i64 sample = base + thread_id() / LANES;
        bool live = sample < a.samples; /* the others take part in the sums */
        sample = live ? sample : a.samples - 1;
        const T *from = (const T *)a.x + sample * a.x_step + (i64)group * a.n;
        x.fetch(from);
        dy.fetch((const T *)a.dy + sample * a.dy_step + (i64)group * a.n);
        row_stats<R> s = stats_of(a, x, get(*from), room);
        T *dx = live && a.y ? (T *)a.y + (sample * a.groups + group) * a.n : (T *)0;
        grad_row(a, x, dy, s, group * a.n, dx, room2);
        UNROLL
        for (int p = 0; p < PACKS; p++) {
            UNROLL
            for (int e = 0; e < VEC; e++) {
                dweight[p][e] += live ? dy.v[p][e] * x.v[p][e] : (R)0;
                dbias[p][e] += live ? dy.v[p][e] : (R)0;
            }
        }
    }
    if (a.parts) {
        give_shares<VEC, PACKS, LANES, PER>(a, dweight, 0, part, group, room2);
        give_shares<VEC, PACKS, LANES, PER>(a, dbias, 1, part, group, room2);
    }
}

/* Blocks of 32 columns; 16 threads share one. y counts the arrays. */
template <class T, class R> DEVICE void norm_sum(const norm_sum_args &a)
{
    SHARED R room[16][33];
    u32 x = thread_id() % 32, y = thread_id() / 32, array = block_id_y();
    T *out = (T *)(array ? a.out[1] : a.out[0]);
    for (i64 base = (i64)block_id() * 32; out && base < a.columns; base += (i64)grid_blocks() * 32) {
        i64 column = base + x;
        const R *parts = (const R *)a.parts + array * a.n_parts * a.columns + (column < a.columns ? column : 0);
        R sum = 0;
        for (i64 p = y; p < a.n_parts; p += 64) {
            R v[4]; /* on their way together */
            UNROLL
            for (int i = 0; i < 4; i++)
                v[i] = parts[(p + 16 * i < a.n_parts ? p + 16 * i : p) * a.columns];
            UNROLL
            for (int i = 0; i < 4; i++)
                sum += p + 16 * i < a.n_parts ? v[i] : (R)0;
        }
        room[y][x] = sum;
        barrier();
        for (int i = 1; i < 16 && y == 0; i++)
            sum += room[i][x];
        if (y == 0 && column < a.columns)
            out[column] = put<T>(sum);
        barrier();
    }
}
