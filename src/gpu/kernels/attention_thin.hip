/* attention_thin.hip: attention of a few rows over many keys (decoding), at the speed of memory: a block reads its split's
 * keys and values once, for all rows of the unit. */
#include "attention_tile.h"

/* What a block shares. */
template <class A, int ROWS, int VEC> struct thin_room {
    A q[ROWS][WK_ATTN_WIDEST];
    A s[ROWS][WK_ATTN_CHUNK]; /* scores, then weights */
    A top[ROWS], sum[ROWS], fix[ROWS];
    A out[256][VEC];
};

/* Keys a thread has in flight. */
template <int ROWS> struct flight_of {
    static const int keys = ROWS > 4 ? 2 : 4;
};

/* VEC elements of a row from column c on, zeros beyond its width; with VEC > 1 that is a multiple of it. */
template <int VEC, class T> DEVICE pack<T, VEC> some_of(const T *row, i64 stride, int c, int width)
{
    pack<T, VEC> v = {};
    if (row && c < width)
        v = VEC > 1 ? load<VEC>(row + c) : load<VEC>(row + c * stride);
    return v;
}

/* Sums of N values over 2 M neighbouring lanes, each lane ending with N / (2 M) of them (at least one): those from the
 * number returned on. */
template <int N, int M, class A> DEVICE int scatter_sums(A *v)
{
    bool upper = lane_id() & M;
    if constexpr (M == 0) {
        return 0;
    } else if constexpr (N == 1) {
        v[0] += shuffle_xor(v[0], M);
        return scatter_sums<1, M / 2>(v);
    } else {
        UNROLL
        for (int i = 0; i < N / 2; i++) {
            A low = v[i], high = v[i + N / 2];
            v[i] = (upper ? high : low) + shuffle_xor(upper ? low : high, M);
        }
        return (upper ? N / 2 : 0) + scatter_sums<N / 2, M / 2>(v);
    }
}

/* q . k of every row and the chunk's n keys from k0 on: 16 lanes to a key, a few keys at a time. */
template <class T, int ROWS, int VEC, class ROOM>
DEVICE void thin_dots(const attn_args &a, const source<T> &ks, int k0, int n, ROOM &room)
{
    typedef acc<T> A;
    const int KEYS = flight_of<ROWS>::keys, GROUPS = 256 / WK_ATTN_LANES, HELD = ROWS * KEYS / 16 > 0 ? ROWS * KEYS / 16 : 1;
    int group = thread_id() / WK_ATTN_LANES, lane = thread_id() % WK_ATTN_LANES;
    for (int at = 0; at < n; at += GROUPS * KEYS) {
        const T *rows[KEYS];
        A sum[ROWS * KEYS] = {};
        int key = at + group * KEYS;
        UNROLL
        for (int k = 0; k < KEYS; k++)
            rows[k] = key + k < n ? ks.row(k0 + key + k) : nullptr;
        for (int c = lane * VEC; c < a.d; c += WK_ATTN_LANES * VEC) {
            pack<T, VEC> v[KEYS];
            UNROLL
            for (int k = 0; k < KEYS; k++)
                v[k] = some_of<VEC>(rows[k], ks.d, c, a.d);
            UNROLL
            for (int j = 0; j < VEC; j++)
                UNROLL
                for (int r = 0; r < ROWS; r++)
                    UNROLL
                    for (int k = 0; k < KEYS; k++)
                        sum[r * KEYS + k] = m_fma(room.q[r][c + j], get(v[k].v[j]), sum[r * KEYS + k]);
        }
        int first = scatter_sums<ROWS * KEYS, 8>(sum);
        UNROLL
        for (int i = 0; i < HELD; i++)
            room.s[(first + i) / KEYS][key + (first + i) % KEYS] = sum[i];
    }
}

/* The running softmax: a wave has one row at a time. Scores become weights. */
template <class T, int ROWS, class ROOM>
DEVICE void thin_soften(const attn_args &a, const unit &u, int k0, int n, ROOM &room)
{
    typedef acc<T> A;
    const int EACH = WK_ATTN_CHUNK / WAVE;
    for (int r = wave_id(); r < ROWS; r += 256 / WAVE) {
        query q = query_of(a, u, r);
        A s[EACH], was = room.top[r], most = was, sum = 0, slope;
        UNROLL
        for (int i = 0; i < EACH; i++) {
            int at = i * WAVE + lane_id();
            s[i] = at < n ? score_of<T>(a, q, k0 + at, room.s[r][at], &slope) : -infinity<A>();
            most = greater(most, s[i]);
        }
        most = wave_reduce<op_max>(most);
        A fix = most != was ? m_exp(was - most) : 1, base = most == -infinity<A>() ? 0 : most;
        UNROLL
        for (int i = 0; i < EACH; i++) {
            s[i] = m_exp(s[i] - base);
            room.s[r][i * WAVE + lane_id()] = s[i];
            sum += s[i];
        }
        sum = wave_reduce<op_sum>(sum);
        wave_sync(); /* every lane has read the old top */
        if (lane_id() == 0) {
            room.top[r] = most;
            room.fix[r] = fix;
            room.sum[r] = room.sum[r] * fix + sum;
        }
    }
}

/* out += weights . v: `lanes` threads have VEC columns of a key's row each, the others further keys. */
template <class T, int ROWS, int VEC, class ROOM>
DEVICE void thin_mix(const attn_args &a, const source<T> &vs, int k0, int n, int lanes, ROOM &room, acc<T> (*out)[VEC])
{
    typedef acc<T> A;
    const int KEYS = flight_of<ROWS>::keys;
    int slices = 256 / lanes, slice = thread_id() / lanes, c = (int)thread_id() % lanes * VEC;
    UNROLL
    for (int r = 0; r < ROWS; r++)
        UNROLL
        for (int j = 0; j < VEC; j++)
            out[r][j] *= room.fix[r];
    for (int at = slice; at < n; at += slices * KEYS) {
        pack<T, VEC> v[KEYS];
        UNROLL
        for (int k = 0; k < KEYS; k++) {
            int key = at + k * slices;
            v[k] = some_of<VEC>(key < n ? vs.row(k0 + key) : nullptr, vs.d, c, a.dv);
        }
        UNROLL
        for (int k = 0; k < KEYS; k++) {
            int key = at + k * slices < n ? at + k * slices : at;
            UNROLL
            for (int r = 0; r < ROWS; r++) {
                A w = room.s[r][key];
                UNROLL
                for (int j = 0; j < VEC; j++)
                    out[r][j] = m_fma(w, get(v[k].v[j]), out[r][j]);
            }
        }
    }
}

/* One row's columns, all slices in room.out added, to y or to the split's part. */
template <class T, int VEC, class ROOM>
DEVICE void thin_store(const attn_args &a, const unit &u, u32 r, int lanes, ROOM &room)
{
    typedef acc<T> A;
    if (r < u.rows && (int)thread_id() < lanes) {
        query q = query_of(a, u, r);
        A top = room.top[r], sum = room.sum[r], factor = a.splits > 1 ? 1 : sum == 0 ? 0 : 1 / sum;
        i64 at = block_id_z() * a.rows + q.index;
        u32 head = r / u.s, i = r - head * u.s;
        T *y = (T *)a.y + u.batch * a.y_b + (i64)(head + u.head * a.group) * a.y_h + i * a.y_s;
        UNROLL
        for (int j = 0; j < VEC; j++) {
            int c = (int)thread_id() * VEC + j;
            A all = 0;
            for (int slice = 0; slice < 256 / lanes; slice++)
                all += room.out[slice * lanes + thread_id()][j];
            if (c < a.dv && a.splits > 1)
                ((A *)a.part_y)[at * a.dv + c] = all;
            else if (c < a.dv)
                y[c] = put<T>(all * factor);
        }
        if (thread_id() == 0 && a.splits > 1) {
            ((A *)a.part_top)[at] = top;
            ((A *)a.part_sum)[at] = sum;
        } else if (thread_id() == 0 && a.lse) {
            ((A *)a.lse)[q.index] = sum == 0 ? -infinity<A>() : top + m_log(sum);
        }
    }
}

/* All rows of a unit over the keys of one split. */
template <class T, int ROWS, int VEC> DEVICE void thin_unit(const attn_args &a, const unit &u)
{
    typedef acc<T> A;
    SHARED thin_room<A, ROWS, VEC> room;
    source<T> qs = queries_of<T>(a, a.q, u), ks = keys_of<T>(a.k, u), vs = keys_of<T>(a.v, u);
    int lo, hi, lanes = 1;
    A out[ROWS][VEC] = {};
    while (lanes * VEC < a.dv)
        lanes *= 2;
    for (int i = thread_id(); i < ROWS * WK_ATTN_WIDEST; i += 256) {
        const T *row = qs.row(i / WK_ATTN_WIDEST);
        int c = i % WK_ATTN_WIDEST;
        room.q[i / WK_ATTN_WIDEST][c] = row && c < a.d ? get(row[c * qs.d]) : 0;
    }
    if (thread_id() < ROWS) {
        room.top[thread_id()] = -infinity<A>();
        room.sum[thread_id()] = 0;
    }
    keys_of_rows(a, u, 0, u.rows - 1, &lo, &hi);
    lo = lo > (int)block_id_z() * a.split_keys ? lo : (int)block_id_z() * a.split_keys;
    hi = (int)lesser((i64)hi, (i64)(block_id_z() + 1) * a.split_keys);
    barrier();
    for (int k0 = lo; k0 < hi; k0 += WK_ATTN_CHUNK) {
        int n = lesser(hi - k0, (int)WK_ATTN_CHUNK);
        thin_dots<T, ROWS, VEC>(a, ks, k0, n, room);
        barrier();
        thin_soften<T, ROWS>(a, u, k0, n, room);
        barrier();
        thin_mix<T, ROWS, VEC>(a, vs, k0, n, lanes, room, out);
        barrier();
    }
    ROLLED
    for (int r = 0; r < ROWS; r++) {
        UNROLL
        for (int i = 0; i < ROWS; i++)
            UNROLL
            for (int j = 0; j < VEC; j++)
                if (i == r) /* no index into registers */
                    room.out[thread_id()][j] = out[i][j];
        barrier();
        thin_store<T, VEC>(a, u, r, lanes, room);
        barrier();
    }
}

/* Blocks: x over units, z over splits of the keys. VEC: elements of k and v read at once. */
template <class T, int ROWS, int VEC> DEVICE void attn_thin(const attn_args &a)
{
    for (u32 id = block_id(); id < (u32)a.units; id += grid_blocks()) {
        unit u;
        find_unit(a, id, &u);
        thin_unit<T, ROWS, VEC>(a, u);
    }
}
