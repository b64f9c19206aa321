/* conv_tile.h: the tiles of convolutions: their forms, and products of them by matrix units or by each thread. */
#ifndef WK_KERNELS_CONV_TILE_H
#define WK_KERNELS_CONV_TILE_H

#include "device.h"

/* Tiles of BM x BN, in steps of BK, for 256 threads. A thread of its own makes TM x TN of it, in groups of 4 x 4; a wave with
 * matrix units one of WM x WN parts, in squares of SIDE. */
template <int SHAPE> struct tile_shape;
template <> struct tile_shape<0> {
    static const int BM = 16, BN = 256, BK = 8, TM = 4, TN = 4, WM = 1, WN = 4, SIDE = 16;
};
template <> struct tile_shape<1> {
    static const int BM = 64, BN = 64, BK = 16, TM = 4, TN = 4, WM = 2, WN = 2, SIDE = 32;
};
template <> struct tile_shape<2> {
    static const int BM = 32, BN = 128, BK = 16, TM = 4, TN = 4, WM = 1, WN = 4, SIDE = 32;
};
template <> struct tile_shape<3> {
    static const int BM = 64, BN = 128, BK = 16, TM = 8, TN = 4, WM = 2, WN = 2, SIDE = 32;
};
template <> struct tile_shape<4> {
    static const int BM = 128, BN = 128, BK = 8, TM = 8, TN = 8, WM = 2, WN = 2, SIDE = 32;
};

/* For matrix units alone. */
template <> struct tile_shape<5> {
    static const int BM = 32, BN = 256, WM = 1, WN = 4, SIDE = 32;
};

/* What a thread has of a tile's product: ROWS x COLS values, at row() + down(i) and col(j). */
template <class A, class S> struct tile_sums {
    static const int ROWS = S::TM, COLS = S::TN, AT_ONCE = S::TM * S::TN < 64 ? 4 : 2;
    A sum[ROWS][COLS];

    MEMBER tile_sums() : sum{} {}
    /* Groups of 4, a whole tile's threads apart. */
    static MEMBER u32 row() { return thread_id() / (S::BN / S::TN) * 4; }
    static MEMBER u32 down(int i) { return i / 4 * (S::BM / (S::TM / 4)) + i % 4; }
    static MEMBER u32 col(int j)
    {
        return thread_id() % (S::BN / S::TN) * 4 + j / 4 * (S::BN / (S::TN / 4)) + j % 4;
    }
    MEMBER A value(int i, int j) const { return sum[i][j]; }

    /* AT_ONCE steps of k are unrolled: more would take more registers than it saves time. */
    MEMBER void multiply(const A (*as)[S::BM + 4], const A (*bs)[S::BN + 4])
    {
        _Pragma("unroll 1") for (int first = 0; first < S::BK; first += AT_ONCE)
        {
            UNROLL
            for (int k = first; k < first + AT_ONCE; k++) {
                pack<A, 4> x[S::TM / 4], y[S::TN / 4];
                UNROLL
                for (int i = 0; i < S::TM / 4; i++)
                    x[i] = load<4>(&as[k][row() + down(i * 4)]);
                UNROLL
                for (int j = 0; j < S::TN / 4; j++)
                    y[j] = load<4>(&bs[k][col(j * 4)]);
                UNROLL
                for (int i = 0; i < S::TM; i++)
                    UNROLL
                for (int j = 0; j < S::TN; j++)
                    sum[i][j] += x[i / 4].v[i % 4] * y[j / 4].v[j % 4];
            }
        }
    }
};

#if defined(__gfx908__) || defined(__gfx90a__) || defined(__gfx942__) || defined(__gfx950__)
typedef f32 WK_ATTR(ext_vector_type(4)) floats_4;
typedef f32 WK_ATTR(ext_vector_type(16)) floats_16;

/* A square of SIDE by matrix units, which multiply f32 exactly: a lane has one column, and rows in groups of 4. */
template <int SIDE> struct square;
template <> struct square<32> {
    typedef floats_16 values;
    static const int K = 2; /* steps of k at once */
    static MEMBER values multiply(f32 a, f32 b, values c)
    {
        return __builtin_amdgcn_mfma_f32_32x32x2f32(a, b, c, 0, 0, 0);
    }
};
template <> struct square<16> {
    typedef floats_4 values;
    static const int K = 4;
    static MEMBER values multiply(f32 a, f32 b, values c)
    {
        return __builtin_amdgcn_mfma_f32_16x16x4f32(a, b, c, 0, 0, 0);
    }
};

template <class S> struct tile_sums<f32, S> {
    typedef square<S::SIDE> Q;
    static const int SIDE = S::SIDE, EACH = SIDE * SIDE / WAVE; /* values of a square */
    static const int DOWN = S::BM / S::WM / SIDE, COLS = S::BN / S::WN / SIDE, ROWS = DOWN * EACH;
    typename Q::values sum[DOWN][COLS];

    MEMBER tile_sums() : sum{} {}
    static MEMBER u32 wave_row() { return thread_id() / WAVE / S::WN * (S::BM / S::WM); }
    static MEMBER u32 wave_col() { return thread_id() / WAVE % S::WN * (S::BN / S::WN); }
    static MEMBER u32 row() { return wave_row() + lane_id() / SIDE * 4; }
    static MEMBER u32 down(int i) { return i / EACH * SIDE + i % EACH / 4 * (WAVE / SIDE * 4) + i % 4; }
    static MEMBER u32 col(int j) { return wave_col() + lane_id() % SIDE + j * SIDE; }
    MEMBER f32 value(int i, int j) const { return sum[i / EACH][j][i % EACH]; }

    MEMBER void multiply(const f32 (*as)[S::BM + 4], const f32 (*bs)[S::BN + 4])
    {
        const f32 *a = &as[lane_id() / SIDE][wave_row() + lane_id() % SIDE];
        const f32 *b = &bs[lane_id() / SIDE][col(0)];
        UNROLL
        for (int k = 0; k < S::BK; k += Q::K) {
            f32 x[DOWN];
            UNROLL
            for (int i = 0; i < DOWN; i++)
                x[i] = a[k * (S::BM + 4) + i * SIDE];
            UNROLL
            for (int j = 0; j < COLS; j++) {
                f32 y = b[k * (S::BN + 4) + j * SIDE];
                UNROLL
                for (int i = 0; i < DOWN; i++)
                    sum[i][j] = Q::multiply(x[i], y, sum[i][j]);
            }
        }
    }
};
#endif

#endif
