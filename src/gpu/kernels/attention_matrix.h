/* attention_matrix.h: what attention and its gradients on matrix units share. A block has four waves; each owns 16 rows, in
 * the sense of attention_tile.h, and goes through tiles of others that all four share. */
#ifndef WK_KERNELS_ATTENTION_MATRIX_H
#define WK_KERNELS_ATTENTION_MATRIX_H

#include "attention_tile.h"
#include "mma.h"

/* For heads up to D wide: others in a tile, so that two blocks or more fit a unit's shared memory. Where operands take
 * twice the registers (RDNA 3) a tile has half of them, and the owners' rows stay in shared memory if they are wide. */
template <int D> struct matrix_tile {
    static const bool doubled = MMA_WORDS == 8, resident = !doubled || D <= 64;
    static const int others = (D > 64 ? 32 : 64) / (doubled ? 2 : 1), pitch = D + 8, turned = others + 8;
    static const int kept = resident ? 8 : 64 * pitch; /* elements that such rows take there */
};
const int THREADS = 4 * WAVE;

/* Eight elements of a row from column c on, zeros beyond its width. */
template <class T> DEVICE pack<T, 8> eight_of(const T *row, const source<T> &from, int c, int width)
{
    pack<T, 8> v = {};
    if (row && from.wide >= 8 && c + 7 < width)
        return load<8>(row + c);
    UNROLL
    for (int j = 0; j < 8; j++)
        if (row && c + j < width)
            v.v[j] = row[(c + j) * from.d];
    return v;
}

/* Rows [first, first + n) to shared memory, [n][D + 8]; zeros where there are none. */
template <class T, int D> DEVICE void stage(const source<T> &from, u32 first, int n, int width, T *to)
{
    for (int e = thread_id(); e < n * (D / 8); e += THREADS) {
        int row = e / (D / 8), c = e % (D / 8) * 8;
        store<8>(to + row * matrix_tile<D>::pitch + c, eight_of(from.row(first + row), from, c, width));
    }
}

/* The same for a tile of others, turned: [D][others + 8]. */
template <class T, int D> DEVICE void stage_turned(const source<T> &from, u32 first, int width, T *to)
{
    const int N = matrix_tile<D>::others;
    for (int e = thread_id(); e < N * (D / 8); e += THREADS) {
        int row = e % N, c = e / N * 8;
        pack<T, 8> v = eight_of(from.row(first + row), from, c, width);
        UNROLL
        for (int j = 0; j < 8; j++)
            to[(c + j) * matrix_tile<D>::turned + row] = v.v[j];
    }
}

/* The wave's 16 rows of a tile of owners, as operands. */
template <class T, int D> struct owners {
    fragment<T> f[matrix_tile<D>::resident ? D / 16 : 1];
    const T *rows;
    MEMBER fragment<T> load(int k) const { return mma_load(rows + k * 16, matrix_tile<D>::pitch); }
    MEMBER void take(const T *tile)
    {
        rows = tile + wave_id() * 16 * matrix_tile<D>::pitch;
        UNROLL
        for (int k = 0; matrix_tile<D>::resident && k < D / 16; k++)
            f[k] = load(k);
    }
    MEMBER fragment<T> at(int k) const
    {
        if constexpr (matrix_tile<D>::resident)
            return f[k];
        else
            return load(k);
    }
};

/* s[n] = the wave's owners . others 16 n .. 16 n + 15 of the staged tile. */
template <class T, int D>
DEVICE void matrix_dots(const owners<T, D> &a, const T *tile, int width, f32 (*s)[MMA_VALUES])
{
    const int N = matrix_tile<D>::others / 16, PITCH8 = matrix_tile<D>::pitch;
    UNROLL
    for (int n = 0; n < N; n++)
        UNROLL
    for (int i = 0; i < MMA_VALUES; i++)
        s[n][i] = 0;
    UNROLL
    for (int k = 0; k < D / 16; k++) {
        if (k * 16 >= width)
            break;
        fragment<T> own = a.at(k);
        UNROLL
        for (int n = 0; n < N; n++)
            mma(own, mma_load(tile + n * 16 * PITCH8 + k * 16, PITCH8), s[n]);
    }
}

/* The wave's weights to shared memory, rounded: [PARTS][64][others + 8]. Only the wave itself reads them. With two parts
 * the second is what rounding left out of the first, and together they are as good as f32. */
template <class T, int D, int PARTS> DEVICE void keep_matrix(const f32 (*s)[MMA_VALUES], T *room)
{
    T *mine = room + wave_id() * 16 * matrix_tile<D>::turned;
    UNROLL
    for (int n = 0; n < matrix_tile<D>::others / 16; n++)
        UNROLL
    for (int i = 0; i < MMA_VALUES; i++) {
        int at = mma_row(mma_slot(i)) * matrix_tile<D>::turned + n * 16 + mma_col(i);
        T most = put<T>(s[n][i]);
        mine[at] = most;
        if (PARTS > 1)
            mine[64 * matrix_tile<D>::turned + at] = put<T>(s[n][i] - get(most));
    }
    wave_sync();
}

/* out[c] += weights . columns 16 c .. 16 c + 15 of the turned tile. */
template <class T, int D, int PARTS>
DEVICE void matrix_add(const T *room, const T *turned, int width, f32 (*out)[MMA_VALUES])
{
    const int PITCH8 = matrix_tile<D>::turned;
    UNROLL
    for (int n = 0; n < matrix_tile<D>::others / 16; n++) {
        fragment<T> w[PARTS];
        UNROLL
        for (int part = 0; part < PARTS; part++)
            w[part] = mma_load(room + (part * 64 + wave_id() * 16) * PITCH8 + n * 16, PITCH8);
        UNROLL
        for (int c = 0; c < D / 16; c++) {
            if (c * 16 >= width)
                break;
            fragment<T> v = mma_load(turned + c * 16 * PITCH8 + n * 16, PITCH8);
            UNROLL
            for (int part = 0; part < PARTS; part++)
                mma(w[part], v, out[c]);
        }
    }
}

#endif
