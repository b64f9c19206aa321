/* attention_matrix.h: what attention and its gradients on matrix units share. */
#ifndef WK_KERNELS_ATTENTION_MATRIX_H
#define WK_KERNELS_ATTENTION_MATRIX_H

#include "attention_tile.h"
#include "tile.h"

/* Blocks of WAVES waves, for heads up to D wide, go through tiles of N others. Where tiles do not pass through registers,
 * the next is on its way to a second place. */
template <int D, int N, int WAVES> struct matrix_shape {
    static const int rows = 16 * WAVES, threads = WAVES * WAVE, tile = N * D;
#ifdef WK_NVIDIA
    static const int bufs = 2;
#else
    static const int bufs = 1;
#endif
#ifdef WK_HOPPER
    static const int value_bufs = 3; /* some waves may still be at the values before the last */
#else
    static const int value_bufs = bufs;
#endif
};

/* Whether a lane's owner values from column `at` on may be stored together. */
template <class T> DEVICE bool stores_at_once(const T *to, int at, int width)
{
    return OWN_RUN > 1 && at + OWN_RUN <= width && (u64)to % (sizeof(T) * OWN_RUN) == 0;
}

/* OWN_RUN values to row + at, as far as the row goes. */
template <class T> DEVICE void store_run(T *row, int at, int width, const f32 *v, f32 factor)
{
    pack<T, OWN_RUN> some;
    UNROLL
    for (int j = 0; j < OWN_RUN; j++)
        some.v[j] = put<T>(v[j] * factor);
    if (stores_at_once(row + at, at, width)) {
        store<OWN_RUN>(row + at, some);
        return;
    }
    UNROLL
    for (int j = 0; j < OWN_RUN; j++)
        if (at + j < width)
            row[at + j] = some.v[j];
}

/* The wave's rows of one result, packed: [.., n, width]. */
template <class T, int D>
DEVICE void grad_store(void *to, i64 first, u32 owner0, u32 n, int width, f32 factor,
                       const f32 (*out)[MMA_VALUES])
{
    UNROLL
    for (int i = 0; i < MMA_VALUES; i += OWN_RUN) {
        u32 owner = owner0 + own_row(own_slot(i));
        if (owner >= n)
            continue;
        UNROLL
        for (int c = 0; c < D / 16; c++)
            store_run((T *)to + (first + owner) * width, c * 16 + other_at(i), width, &out[c][i], factor);
    }
}

#endif
