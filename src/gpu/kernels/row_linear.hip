/* row_linear.hip: weights times one row (a step of a language model), at the speed of memory: a wave's next weights are always
 * on their way. With a norm every block makes it for itself, which costs less than a kernel of its own and the wait for it. */
#define BEGINS_ITSELF
#include "act.h"
#include "row_linear.h"

const int THREADS = WK_ROW_LINEAR_THREADS, WAVES = THREADS / WAVE;

/* One of the two elements of a word. What waits in registers does so as words: taken apart it would want twice as many. */
template <class T> DEVICE f32 word_at(u32 w, int high)
{
    return get(T{(unsigned short)(high ? w >> 16 : w)});
}
template <> MEMBER f32 word_at<bf16>(u32 w, int high) { return bit_cast<f32>(high ? w & 0xFFFF0000 : w << 16); }

/* Zeros behind the row, as far as whole steps go. */
template <class T> DEVICE void pad_row(const row_linear_args &a, T *row, int whole)
{
    const int VEC = 16 / sizeof(T);
    for (int at = a.k + (int)thread_id() * VEC; at < whole; at += THREADS * VEC)
        store<VEC>(row + at, pack<T, VEC>{});
}

/* The row on its way to shared memory. */
template <class T> struct plain_row {
    static const int VEC = 16 / sizeof(T), PACKS = WK_ROW_LINEAR_K / THREADS / VEC;
    pack<u32, 4> x[PACKS];
    MEMBER void load_all(const row_linear_args &a)
    {
        UNROLL
        for (int p = 0; p < PACKS; p++) {
            int at = (p * THREADS + (int)thread_id()) * VEC;
            if (at < a.k)
                x[p] = load<4>((const u32 *)((const T *)a.x + at));
        }
    }
    MEMBER void leave(const row_linear_args &a, T *row)
    {
        UNROLL
        for (int p = 0; p < PACKS; p++) {
            int at = (p * THREADS + (int)thread_id()) * VEC;
            if (at < a.k)
                store<4>((u32 *)(row + at), x[p]);
        }
    }
};

/* The same with its norm. The first block writes the sum. */
template <class T> struct normal_row {
    static const int VEC = 16 / sizeof(T), PACKS = WK_ROW_LINEAR_NORM_K / THREADS / VEC;
    pack<u32, 4> x[PACKS], z[PACKS], by[PACKS];
    MEMBER void load_all(const row_linear_args &a)
    {
        UNROLL
        for (int p = 0; p < PACKS; p++) {
            int at = (p * THREADS + (int)thread_id()) * VEC;
            x[p] = z[p] = by[p] = {};
            if (at >= a.k)
                continue;
            x[p] = load<4>((const u32 *)((const T *)a.x + at));
            if (a.residual)
                z[p] = load<4>((const u32 *)((const T *)a.residual + at));
            by[p] = load<4>((const u32 *)((const T *)a.norm + at));
        }
    }
    /* Element e of a pack's sum. */
    MEMBER f32 value(int p, int e) const
    {
        return word_at<T>(x[p].v[e / 2], e % 2) + word_at<T>(z[p].v[e / 2], e % 2);
    }
    MEMBER void leave(const row_linear_args &a, T *row)
    {
        SHARED f32 room[WAVES];
        f32 squares = 0;
        UNROLL
        for (int p = 0; p < PACKS; p++)
            UNROLL
            for (int e = 0; e < VEC; e++)
                squares = m_fma(value(p, e), value(p, e), squares);
        f32 scale = 1 / m_sqrt(block_reduce<op_sum, THREADS>(squares, room) / a.k + (f32)a.eps);
        UNROLL
        for (int p = 0; p < PACKS; p++) {
            int at = (p * THREADS + (int)thread_id()) * VEC;
            pack<T, VEC> y, sum;
            UNROLL
            for (int e = 0; e < VEC; e++) {
                sum.v[e] = put<T>(value(p, e));
                y.v[e] = put<T>(value(p, e) * scale * word_at<T>(by[p].v[e / 2], e % 2));
            }
            if (at < a.k)
                store<VEC>(row + at, y);
            if (at < a.k && a.sum && block_id() == 0)
                store<VEC>((T *)a.sum + at, sum);
        }
    }
};
template <class T, int NORM> struct row_of {
    typedef plain_row<T> type;
};
template <class T> struct row_of<T, 1> {
    typedef normal_row<T> type;
};

/* Packs of weights that a lane has on their way or there, in places 0 .. WK_ROW_LINEAR_DEEP - 1. */
#if defined(WK_NVIDIA) && __CUDA_ARCH__ >= 800
struct places { /* in shared memory: the compiler would have all of them come back before it lets the next go */
    pack<u32, 4> *mine;
    u64 policy;
    MEMBER places(unsigned char *room) : mine((pack<u32, 4> *)room + thread_id()), policy(first_to_leave()) {}
    MEMBER void ask(int s, const void *from, bool there) { copy_async_once(mine + s * THREADS, from, there, policy); }
    MEMBER void asked() { copies_group(); }
    template <int LATER> MEMBER void wait() { copies_wait_but<LATER>(); }
    MEMBER pack<u32, 4> take(int s) { return mine[s * THREADS]; }
};
#else
struct places {
    pack<u32, 4> v[WK_ROW_LINEAR_DEEP];
    MEMBER places(unsigned char *) {}
    MEMBER void ask(int s, const void *from, bool there)
    {
        v[s] = {};
        if (there)
            v[s] = load_once<4>((const u32 *)from);
    }
    MEMBER void asked() {}
    template <int> MEMBER void wait() {}
    MEMBER pack<u32, 4> take(int s) { return v[s]; }
};
#endif

/* ROWS rows of weights on their way through a wave, a round of STEPS steps ahead; zeros behind a row's end. */
template <class T, int ROWS> struct weights {
    static const int VEC = 16 / sizeof(T), STEP = WAVE * VEC, STEPS = WK_ROW_LINEAR_DEEP / ROWS, ROUND = STEPS * STEP;
    const row_linear_args &a;
    const T *row;      /* the lane's place in the row that comes next */
    int stride, i;     /* i: the number of the row that comes next; stride: waves of all blocks */
    int k, at;         /* k: columns of a row from the lane's first on; at: where the round that comes next begins */
    places held;

    MEMBER weights(const row_linear_args &args, unsigned char *room)
        : a(args), stride((int)grid_blocks() * WAVES), i((int)block_id() * WAVES + (int)wave_id()),
          k(args.k - (int)lane_id() * VEC), at(0), held(room)
    {
        row = (const T *)a.weight + i * a.pitch + lane_id() * VEC;
    }
    MEMBER void ask(int s)
    {
        UNROLL
        for (int r = 0; r < ROWS; r++)
            held.ask(s * ROWS + r, row + at + r * a.apart + s * STEP, i < a.n && at + s * STEP < k);
        held.asked();
    }
    MEMBER void begin()
    {
        UNROLL
        for (int s = 0; s < STEPS; s++)
            ask(s);
    }
    /* The sums of the round that is there, while the next comes. True at the end of a row. */
    MEMBER bool turn(const T *x, f32 *sum)
    {
        bool end = at + ROUND >= a.k;
        x += at;
        at += ROUND;
        if (end) {
            at = 0;
            i += stride;
            row += stride * a.pitch;
        }
        UNROLL
        for (int s = 0; s < STEPS; s++) {
            pack<u32, 4> xs = load<4>((const u32 *)(x + s * STEP));
            held.template wait<STEPS - 1>();
            UNROLL
            for (int r = 0; r < ROWS; r++) {
                pack<u32, 4> w = held.take(s * ROWS + r);
                UNROLL
                for (int e = 0; e < VEC; e++)
                    sum[r] = m_fma(word_at<T>(xs.v[e / 2], e % 2), word_at<T>(w.v[e / 2], e % 2), sum[r]);
            }
            ask(s);
        }
        return end;
    }
};

template <class T, int ROWS> DEVICE void finish(const row_linear_args &a, int i, f32 *sum)
{
    UNROLL
    for (int r = 0; r < ROWS; r++) {
        sum[r] = wave_reduce<op_sum>(sum[r]);
        if (a.bias)
            sum[r] += get(((const T *)a.bias)[(i + (i64)r * a.n) * a.bias_step]);
    }
    if (a.z)
        sum[0] += get(((const T *)a.z)[i]);
    if (lane_id() == 0)
        ((T *)a.y)[i] = put<T>(ROWS > 1 ? act_silu(sum[0]) * sum[ROWS - 1] : activate(a.act, sum[0]));
}

/* A wave makes one result after the other. */
template <class T, int NORM, int GATED> DEVICE void row_linear(const row_linear_args &a)
{
    const int ROWS = 1 + GATED;
    ROOM(bytes, WK_ROW_LINEAR_K * sizeof(T));
    T *row = (T *)bytes;
    typename row_of<T, NORM>::type x;
    weights<T, ROWS> w(a, bytes + a.room);
    let_next_begin();
    if (NORM && global_thread() == 0)
        fetch_ahead(a.norm, a.k * sizeof(T));
    wait_for_inputs();
    x.load_all(a);
    w.begin();
    x.leave(a, row);
    pad_row(a, row, (a.k + w.ROUND - 1) / w.ROUND * w.ROUND);
    barrier();
    while (w.i < a.n) {
        f32 sum[ROWS] = {};
        int i = w.i;
        while (!w.turn(row + lane_id() * w.VEC, sum)) {
        }
        finish<T, ROWS>(a, i, sum);
    }
}
