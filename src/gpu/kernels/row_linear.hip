/* row_linear.hip: weights times one row (a step of a language model), at the speed of memory: a wave's next weights are always
 * on their way, and the first ones before the kernel ahead is done. With a norm every block makes it for itself, which costs
 * less than a kernel of its own and the wait for it. */
#define BEGINS_ITSELF
#include "act.h"
#include "row_linear.h"

const int THREADS = WK_ROW_LINEAR_THREADS, WAVES = THREADS / WAVE;

/* Zeros behind the row, as far as whole steps go. */
template <class T> DEVICE void pad_row(const row_linear_args &a, T *row, int whole)
{
    const int VEC = 16 / sizeof(T);
    for (int at = a.k + (int)thread_id() * VEC; at < whole; at += THREADS * VEC)
        store<VEC>(row + at, pack<T, VEC>{});
}

/* The row to shared memory. */
template <class T> DEVICE void copy_row(const row_linear_args &a, T *row)
{
    const int VEC = 16 / sizeof(T);
    for (int at = (int)thread_id() * VEC; at < a.k; at += THREADS * VEC)
        store<VEC>(row + at, load<VEC>((const T *)a.x + at));
}

/* The norm of the row to shared memory. The first block writes the sum. */
template <class T> DEVICE void normalise(const row_linear_args &a, T *row)
{
    const int VEC = 16 / sizeof(T), PACKS = WK_ROW_LINEAR_NORM_K / THREADS / VEC;
    SHARED f32 room[WAVES];
    f32 v[PACKS][VEC], squares = 0;
    UNROLL
    for (int p = 0; p < PACKS; p++) {
        int at = (p * THREADS + (int)thread_id()) * VEC;
        pack<T, VEC> x = {}, z = {};
        if (at < a.k) {
            x = load<VEC>((const T *)a.x + at);
            if (a.residual)
                z = load<VEC>((const T *)a.residual + at);
        }
        UNROLL
        for (int e = 0; e < VEC; e++) {
            v[p][e] = get(x.v[e]) + (a.residual ? get(z.v[e]) : 0);
            squares = m_fma(v[p][e], v[p][e], squares);
            x.v[e] = put<T>(v[p][e]);
        }
        if (at < a.k && a.sum && block_id() == 0)
            store<VEC>((T *)a.sum + at, x);
    }
    f32 scale = 1 / m_sqrt(block_reduce<op_sum, THREADS>(squares, room) / a.k + (f32)a.eps);
    UNROLL
    for (int p = 0; p < PACKS; p++) {
        int at = (p * THREADS + (int)thread_id()) * VEC;
        if (at >= a.k)
            continue;
        pack<T, VEC> w = load<VEC>((const T *)a.norm + at), y;
        UNROLL
        for (int e = 0; e < VEC; e++)
            y.v[e] = put<T>(v[p][e] * scale * get(w.v[e]));
        store<VEC>(row + at, y);
    }
}

/* The two elements of a word. */
template <class T> DEVICE f32 word_lo(u32 w) { return get(T{(unsigned short)w}); }
template <class T> DEVICE f32 word_hi(u32 w) { return get(T{(unsigned short)(w >> 16)}); }
template <> MEMBER f32 word_hi<bf16>(u32 w) { return bit_cast<f32>(w & 0xFFFF0000); }

/* Packs of weights that a lane has on their way or there, in places 0 .. WK_ROW_LINEAR_DEEP - 1. */
#if defined(WK_NVIDIA) && __CUDA_ARCH__ >= 800
struct places { /* in shared memory: the compiler would have all of them come back before it lets the next go */
    pack<u32, 4> *mine;
    MEMBER places(unsigned char *room) : mine((pack<u32, 4> *)room + thread_id()) {}
    MEMBER void ask(int s, const void *from, bool there) { copy_async(mine + s * THREADS, from, there); }
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
    const T *row;     /* the lane's place in the row that comes next */
    i64 pitch, apart; /* pitch: from a row of the wave to its next */
    int n, stride, i; /* i: the number of the row that comes next */
    int k, at;        /* without the lane's columns: those of a row, and where the round that comes next begins */
    places held;

    MEMBER weights(const row_linear_args &a, unsigned char *room)
        : n(a.n), stride((int)grid_blocks() * WAVES), i((int)block_id() * WAVES + (int)wave_id()),
          k(a.k - (int)lane_id() * VEC), at(0), held(room)
    {
        row = (const T *)a.weight + i * a.pitch + lane_id() * VEC;
        pitch = stride * a.pitch;
        apart = a.apart;
    }
    MEMBER void ask(int s)
    {
        UNROLL
        for (int r = 0; r < ROWS; r++)
            held.ask(s * ROWS + r, row + at + r * apart + s * STEP, i < n && at + s * STEP < k);
        held.asked();
    }
    /* The first weights of the wave, before anything is read. */
    MEMBER void fetch(u32 bytes) const
    {
        bytes = lesser(bytes / ROWS, (u32)(k * sizeof(T)));
        if (lane_id() != 0 || bytes == 0 || i >= n)
            return;
        UNROLL
        for (int r = 0; r < ROWS; r++)
            fetch_ahead(row + r * apart, bytes);
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
        bool end = at + ROUND >= k + (int)lane_id() * VEC;
        x += at;
        at = end ? 0 : at + ROUND;
        i += end ? stride : 0;
        row += end ? pitch : 0;
        UNROLL
        for (int s = 0; s < STEPS; s++) {
            pack<u32, 4> xs = load<4>((const u32 *)(x + s * STEP));
            held.template wait<STEPS - 1>();
            UNROLL
            for (int r = 0; r < ROWS; r++) {
                pack<u32, 4> w = held.take(s * ROWS + r);
                UNROLL
                for (int e = 0; e < 4; e++) {
                    sum[r] = m_fma(word_lo<T>(xs.v[e]), word_lo<T>(w.v[e]), sum[r]);
                    sum[r] = m_fma(word_hi<T>(xs.v[e]), word_hi<T>(w.v[e]), sum[r]);
                }
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

/* A wave makes one result after the other, a grid apart. */
template <class T, int NORM, int GATED> DEVICE void row_linear(const row_linear_args &a)
{
    const int ROWS = 1 + GATED;
    ROOM(bytes, WK_ROW_LINEAR_K * sizeof(T));
    T *row = (T *)bytes;
    weights<T, ROWS> w(a, bytes + a.room);
    w.fetch((u32)a.fetch);
    wait_for_inputs();
    w.begin();
    if (NORM)
        normalise(a, row);
    else
        copy_row(a, row);
    pad_row(a, row, (a.k + w.ROUND - 1) / w.ROUND * w.ROUND);
    barrier();
    while (w.i < a.n) {
        f32 sum[ROWS] = {};
        int i = w.i;
        if (i + w.stride >= a.n) /* the last one: the next kernel may ask for its weights */
            let_next_begin();
        while (!w.turn(row + lane_id() * w.VEC, sum)) {
        }
        finish<T, ROWS>(a, i, sum);
    }
}
