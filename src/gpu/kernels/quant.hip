/* quant.hip: weights in blocks of few bits: as floats, and multiplied with a few rows of x at the speed of memory. */
#include "act.h"
#include "ids.h"
#include "quant.h"
#include "quant_format.h"

/* ---- few rows of x ---- */

/* sum += the eight weights times eight of x. */
template <class F, class A> DEVICE A add_eight(const eight &w, const A *x, A sum)
{
    UNROLL
    for (int h = 0; h < 2; h++) {
        A part = 0;
        UNROLL
        for (int j = 0; j < 4; j++) {
            A q = (A)byte_less<F::OFFSET>(w.q[h], j);
            if (F::MIN)
                sum = m_fma(m_fma(q, (A)w.scale[h], -(A)w.min[h]), x[4 * h + j], sum);
            else
                part = m_fma(q, x[4 * h + j], part);
        }
        if (!F::MIN)
            sum = m_fma((A)w.scale[h], part, sum);
    }
    return sum;
}

template <class T> DEVICE void load_eight(const T *x, int gap, acc<T> *v)
{
    UNROLL
    for (int h = 0; h < 2; h++) {
        pack<T, 4> four = load<4>(x + h * gap);
        UNROLL
        for (int j = 0; j < 4; j++)
            v[4 * h + j] = get(four.v[j]);
    }
}

/* A group of ROWS rows of weights has a.split waves, which share its columns. */
template <class T, int FORMAT, int M> DEVICE void quant_dot(const quant_dot_args &a)
{
    typedef acc<T> A;
    typedef format_of<FORMAT> F;
    const int ROWS = WK_QUANT_GROUP(FORMAT, M), WAVES = 256 / WAVE, PARTS = F::BLOCK / 8;
    SHARED A room[WAVES][ROWS * M];
    u32 lane = lane_id(), wave = wave_id(), groups = WAVES / a.split, share = wave % a.split;
    for (i64 g = (i64)block_id() * groups; g * ROWS < a.n; g += (i64)grid_blocks() * groups) {
        i64 row0 = (g + wave / a.split) * ROWS;
        A sum[ROWS][M] = {};
        const u8 *rows[ROWS];
        UNROLL
        for (int r = 0; r < ROWS; r++)
            rows[r] = a.weight + lesser(row0 + r, a.n - 1) * a.pitch;
        u32 units = row0 < a.n ? (u32)(a.k / 8) : 0; /* the host sees that they fit */
        for (u32 u = share * WAVE + lane; u < units; u += a.split * WAVE) {
            u32 block = u / PARTS;
            int part = (int)(u % PARTS);
            eight w[ROWS];
            UNROLL
            for (int r = 0; r < ROWS; r++)
                w[r] = F::load(rows[r] + block * F::BYTES, part);
            UNROLL
            for (int i = 0; i < M; i++) {
                A x[8];
                load_eight((const T *)a.x + lesser(i, a.m - 1) * a.k + block * F::BLOCK + F::first(part), F::GAP, x);
                UNROLL
                for (int r = 0; r < ROWS; r++)
                    sum[r][i] = add_eight<F>(w[r], x, sum[r][i]);
            }
        }
        A mine = 0;
        UNROLL
        for (int r = 0; r < ROWS; r++)
            UNROLL
            for (int i = 0; i < M; i++) {
                A all = wave_reduce<op_sum>(sum[r][i]);
                mine = lane == (u32)(r * M + i) ? all : mine;
            }
        if (lane < ROWS * M)
            room[wave][lane] = mine;
        barrier();
        i64 row = row0 + lane / M, i = lane % M;
        if (share == 0 && lane < ROWS * M && row < a.n && i < a.m) {
            for (u32 s = 1; s < (u32)a.split; s++)
                mine += room[wave + s][lane];
            if (a.bias)
                mine += get(((const T *)a.bias)[row * a.bias_step]);
            ((T *)a.y)[i * a.n + row] = put<T>(activate(a.act, mine));
        }
        barrier();
    }
}

/* ---- weights as floats ---- */

/* Blocks: x along a row, y over rows. */
template <class T, int FORMAT> DEVICE void quant_rows(const quant_rows_args &a)
{
    typedef acc<T> A;
    typedef format_of<FORMAT> F;
    const int PARTS = F::BLOCK / 8;
    for (i64 row = block_id_y(); row < a.count; row += grid_blocks_y()) {
        i64 from = a.ids ? load_id(a.ids, a.id_bytes, row) : row;
        bool there = !a.ids || id_leads(from, a.id_bytes, a.limit, a.report);
        for (i64 u = global_thread(); u < a.k / 8; u += global_threads()) {
            i64 block = u / PARTS;
            int part = (int)(u % PARTS);
            T *y = (T *)a.y + row * a.k + block * F::BLOCK + F::first(part);
            eight w = {};
            if (there)
                w = F::load(a.weight + from * a.pitch + block * F::BYTES, part);
            UNROLL
            for (int h = 0; h < 2; h++) {
                pack<T, 4> four;
                UNROLL
                for (int j = 0; j < 4; j++)
                    four.v[j] = put<T>(m_fma((A)byte_less<F::OFFSET>(w.q[h], j), (A)w.scale[h], -(A)w.min[h]));
                store<4>(y + h * F::GAP, four);
            }
        }
    }
}
