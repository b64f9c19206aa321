/* norm_linear.hip: weights times one row, or its norm (a step of a language model), at the speed of memory: every block makes the
 * norm for itself, which costs less than a kernel of its own and the wait for it. */
#include "act.h"
#include "norm_linear.h"

const int WAVES = 256 / WAVE;

/* ---- the row, in shared memory ---- */

template <class T> DEVICE void copy_row(const norm_linear_args &a, T *row)
{
    const int VEC = 16 / sizeof(T);
    for (int at = (int)thread_id() * VEC; at < a.k; at += 256 * VEC)
        store<VEC>(row + at, load<VEC>((const T *)a.x + at));
    barrier();
}

/* The first block writes the sum. */
template <class T> DEVICE void normalise(const norm_linear_args &a, T *row)
{
    const int VEC = 16 / sizeof(T), PACKS = WK_NORM_LINEAR_K / 256 / VEC;
    SHARED f32 room[WAVES];
    pack<T, VEC> w[PACKS] = {};
    f32 v[PACKS][VEC], squares = 0;
    UNROLL
    for (int p = 0; p < PACKS; p++) {
        int at = (p * 256 + (int)thread_id()) * VEC;
        pack<T, VEC> x = {}, z = {};
        if (at < a.k) {
            x = load<VEC>((const T *)a.x + at);
            w[p] = load<VEC>((const T *)a.norm + at);
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
    f32 scale = 1 / m_sqrt(block_reduce<op_sum, 256>(squares, room) / a.k + (f32)a.eps);
    UNROLL
    for (int p = 0; p < PACKS; p++) {
        int at = (p * 256 + (int)thread_id()) * VEC;
        if (at >= a.k)
            continue;
        UNROLL
        for (int e = 0; e < VEC; e++)
            w[p].v[e] = put<T>(v[p][e] * scale * get(w[p].v[e]));
        store<VEC>(row + at, w[p]);
    }
    barrier();
}

/* ---- products ---- */

/* What a lane reads at once of ROWS rows of weights: N steps of each, zeros behind the end. */
template <class T, int ROWS> struct piece {
    static const int VEC = 16 / sizeof(T), STEP = WAVE * VEC, N = 8 / ROWS, SIZE = N * STEP;
    pack<T, VEC> v[ROWS][N];

    MEMBER void read(const norm_linear_args &a, i64 row, int k)
    {
        const T *w = (const T *)a.weight + row * a.pitch;
        UNROLL
        for (int r = 0; r < ROWS; r++)
            UNROLL
            for (int s = 0; s < N; s++) {
                v[r][s] = {};
                if (k + s * STEP < a.k)
                    v[r][s] = load_once<VEC>(w + r * a.apart + k + s * STEP);
            }
    }
    MEMBER void dot(const norm_linear_args &a, const T *row, int k, f32 *sum) const
    {
        UNROLL
        for (int s = 0; s < N; s++) {
            if (k + s * STEP >= a.k)
                continue;
            pack<T, VEC> x = load<VEC>(row + k + s * STEP);
            UNROLL
            for (int r = 0; r < ROWS; r++)
                UNROLL
                for (int e = 0; e < VEC; e++)
                    sum[r] = m_fma(get(x.v[e]), get(v[r][s].v[e]), sum[r]);
        }
    }
};

template <class T, int ROWS> DEVICE void finish(const norm_linear_args &a, int i, f32 *sum)
{
    UNROLL
    for (int r = 0; r < ROWS; r++) {
        sum[r] = wave_reduce<op_sum>(sum[r]);
        if (a.bias)
            sum[r] += get(((const T *)a.bias)[(i + (i64)r * a.n) * a.bias_step]);
    }
    if (lane_id() == 0)
        ((T *)a.y)[i] = put<T>(ROWS == 2 ? act_silu(sum[0]) * sum[ROWS - 1] : activate(a.act, sum[0]));
}

/* A wave makes one result after the other, a grid apart. The next piece of weights is on its way while one is worked on; the
 * first comes while the row is made. */
template <class T, int GATED> DEVICE void norm_linear(const norm_linear_args &a)
{
    const int ROWS = 1 + GATED;
    typedef piece<T, ROWS> part;
    SHARED alignas(16) T row[WK_NORM_LINEAR_ROOM];
    int i = (int)block_id() * WAVES + (int)wave_id(), stride = (int)grid_blocks() * WAVES;
    int first = (int)lane_id() * part::VEC;
    part now, next = {};
    now.read(a, i < a.n ? i : 0, first);
    if (a.norm)
        normalise(a, row);
    else
        copy_row(a, row);
    for (; i < a.n; i += stride) {
        f32 sum[ROWS] = {};
        for (int k = 0; k < a.k; k += part::SIZE) {
            bool last = k + part::SIZE >= a.k;
            if (!last || i + stride < a.n)
                next.read(a, last ? i + stride : i, first + (last ? 0 : k + part::SIZE));
            now.dot(a, row, first + k, sum);
            now = next;
        }
        finish<T, ROWS>(a, i, sum);
    }
}
