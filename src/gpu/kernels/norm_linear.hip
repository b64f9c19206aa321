/* norm_linear.hip: weights times the norm of one row (a step of a language model), at the speed of memory: every block makes
 * the norm for itself, which costs less than a kernel of its own and the wait for it. */
#include "act.h"
#include "norm_linear.h"

const int WAVES = 256 / WAVE;

/* The norm of the row to shared memory. The first block writes the sum. */
template <class T> DEVICE void normalise(const norm_linear_args &a, T *row)
{
    const int VEC = 16 / sizeof(T), PACKS = WK_NORM_LINEAR_K / 256 / VEC;
    SHARED f32 room[WAVES];
    f32 v[PACKS][VEC], squares = 0;
    UNROLL
    for (int p = 0; p < PACKS; p++) {
        int at = (p * 256 + (int)thread_id()) * VEC;
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
    f32 scale = 1 / m_sqrt(block_reduce<op_sum, 256>(squares, room) / a.k + (f32)a.eps);
    UNROLL
    for (int p = 0; p < PACKS; p++) {
        int at = (p * 256 + (int)thread_id()) * VEC;
        if (at >= a.k)
            continue;
        pack<T, VEC> w = load<VEC>((const T *)a.norm + at), y;
        UNROLL
        for (int e = 0; e < VEC; e++)
            y.v[e] = put<T>(v[p][e] * scale * get(w.v[e]));
        store<VEC>(row + at, y);
    }
    barrier();
}

/* N steps of ROWS dot products, all of them read before the first is used. */
template <int N, int ROWS, class T> DEVICE void dot_steps(const T *x, const T *w, i64 apart, f32 *sum)
{
    const int VEC = 16 / sizeof(T);
    pack<T, VEC> v[ROWS][N];
    UNROLL
    for (int r = 0; r < ROWS; r++)
        UNROLL
        for (int s = 0; s < N; s++)
            v[r][s] = load_once<VEC>(w + r * apart + s * WAVE * VEC);
    UNROLL
    for (int s = 0; s < N; s++) {
        pack<T, VEC> xs = load<VEC>(x + s * WAVE * VEC);
        UNROLL
        for (int r = 0; r < ROWS; r++)
            UNROLL
            for (int e = 0; e < VEC; e++)
                sum[r] = m_fma(get(xs.v[e]), get(v[r][s].v[e]), sum[r]);
    }
}

/* A wave makes one result after the other, a grid apart. */
template <class T, int GATED> DEVICE void norm_linear(const norm_linear_args &a)
{
    const int VEC = 16 / sizeof(T), STEP = WAVE * VEC, ROWS = 1 + GATED, FLIGHT = 8 / ROWS;
    SHARED alignas(16) T row[WK_NORM_LINEAR_K];
    normalise(a, row);
    for (int i = (int)block_id() * WAVES + (int)wave_id(); i < a.n; i += (int)grid_blocks() * WAVES) {
        const T *w = (const T *)a.weight + i * a.pitch;
        f32 sum[ROWS] = {};
        int k = (int)lane_id() * VEC;
        for (; k + (FLIGHT - 1) * STEP < a.k; k += FLIGHT * STEP)
            dot_steps<FLIGHT, ROWS>(row + k, w + k, a.apart, sum);
        for (; k < a.k; k += STEP)
            dot_steps<1, ROWS>(row + k, w + k, a.apart, sum);
        UNROLL
        for (int r = 0; r < ROWS; r++) {
            sum[r] = wave_reduce<op_sum>(sum[r]);
            if (a.bias)
                sum[r] += get(((const T *)a.bias)[(i + (i64)r * a.n) * a.bias_step]);
        }
        if (lane_id() == 0)
            ((T *)a.y)[i] = put<T>(GATED ? act_silu(sum[0]) * sum[ROWS - 1] : sum[0]);
    }
}
