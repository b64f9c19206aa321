/* conv_patch.hip: convolutions with stride 1 over planes, on matrix units of f32. A block's pixels follow each other in one
 * plane, and what their taps see of a few channels lies in shared memory, zeros around the image among it: it is read once
 * for all taps, and a tap is a distance in it. */
#include "conv_end.h"
#include "conv_tile.h"

/* What one round of CONV_PATCH_CHANNELS channels brings into shared memory, by way of registers. */
template <class T, int DIR, class S> struct patch_bringer {
    static const int C = CONV_PATCH_CHANNELS, MOST = CONV_PATCH_TAPS * C * S::BM;
    static const int A_EACH = (MOST + 255) / 256, B_EACH = CONV_PATCH / 256;
    const T *a, *b;      /* this round's, of the first channel */
    i32 left;            /* channels from here on */
    i64 in_a[A_EACH];    /* places in weights, and in the patch's channel; -1: a zero */
    i64 in_b[B_EACH];
    i32 to_a[A_EACH];    /* places in shared memory times C, plus the channel; -1: none */
    T from_a[A_EACH], from_b[B_EACH][C];

    MEMBER patch_bringer(const conv_args &g, u32 group, u32 m, u32 image, i32 top, i32 bottom, i32 left_col)
    {
        const conv_space &s = g.space;
        a = (const T *)g.a.p + group * g.a.group;
        b = (const T *)g.b.p + (group * g.b.group + image * g.b.n);
        left = g.channels;
        UNROLL
        for (int i = 0; i < A_EACH; i++) {
            u32 e = i * 256 + thread_id(), q = divide(e, s.taps), tap = e - q * s.taps.d;
            u32 row = DIR == CONV_MAP ? q / C : q % S::BM, c = DIR == CONV_MAP ? q % C : q / S::BM;
            bool there = e < s.taps.d * C * S::BM;
            to_a[i] = there ? (i32)(((tap * C + c) * S::BM + row) * C + c) : -1;
            i64 at = DIR == CONV_MAP ? ((i64)(m + row) * g.channels + c) * g.taps + tap
                                     : ((i64)c * g.m + (m + row)) * g.taps + tap;
            in_a[i] = there && m + row < (u32)g.m ? at : -1;
        }
        UNROLL
        for (int i = 0; i < B_EACH; i++) {
            u32 e = i * 256 + thread_id(), row = divide(e, g.patch_wide);
            i32 y = top + (i32)row, x = left_col + (i32)(e - row * g.patch_wide.d);
            bool there = y < bottom && (u32)y < (u32)s.axis[1].size && (u32)x < (u32)s.axis[2].size;
            in_b[i] = there ? y * g.b.s[1] + x * g.b.s[2] : -1;
        }
    }

    MEMBER void fetch(const conv_args &g)
    {
        UNROLL
        for (int i = 0; i < A_EACH; i++) {
            from_a[i] = {};
            if (in_a[i] >= 0 && to_a[i] % C < left)
                from_a[i] = a[in_a[i]];
        }
        UNROLL
        for (int c = 0; c < C; c++) {
            UNROLL
            for (int i = 0; i < B_EACH; i++) {
                from_b[i][c] = {};
                if (in_b[i] >= 0 && c < left)
                    from_b[i][c] = (b + c * g.b.c)[in_b[i]];
            }
        }
        a += DIR == CONV_MAP ? (i64)C * g.taps : (i64)C * g.m * g.taps;
        b += C * g.b.c;
        left -= C;
    }

    MEMBER void put_down(f32 *as, f32 (*bs)[CONV_PATCH]) const
    {
        UNROLL
        for (int i = 0; i < A_EACH; i++) {
            if (to_a[i] >= 0)
                as[to_a[i] / C] = get(from_a[i]);
        }
        UNROLL
        for (int c = 0; c < C; c++) {
            UNROLL
            for (int i = 0; i < B_EACH; i++)
                bs[c][i * 256 + thread_id()] = get(from_b[i][c]);
        }
    }
};

/* A round's products, tap by tap; half of the lanes have the next channel. `at`: a lane's pixels in the patch. */
template <class S>
DEVICE void multiply_patch(const conv_args &g, const f32 *as, const f32 (*bs)[CONV_PATCH], const u32 *at,
                           tile_sums<f32, S> &sums)
{
    typedef tile_sums<f32, S> place;
    const int C = CONV_PATCH_CHANNELS, SIDE = S::SIDE;
    const conv_axis &h = g.space.axis[1], &w = g.space.axis[2];
    u32 half = lane_id() / SIDE;
    const f32 *a = as + half * S::BM + place::wave_row() + lane_id() % SIDE;
    for (u32 t1 = 0; t1 < h.taps.d; t1++) {
        for (u32 t2 = 0; t2 < w.taps.d; t2++, a += C * S::BM) {
            i32 row = h.hop < 0 ? (i32)(t1 - h.taps.d + 1) * h.hop : (i32)t1 * h.hop;
            i32 col = w.hop < 0 ? (i32)(t2 - w.taps.d + 1) * w.hop : (i32)t2 * w.hop;
            u32 far = (u32)(row * (i32)g.patch_wide.d + col);
            UNROLL
            for (int c = 0; c < C; c += 2) {
                f32 x[place::DOWN];
                UNROLL
                for (int i = 0; i < place::DOWN; i++)
                    x[i] = a[c * S::BM + i * SIDE];
                UNROLL
                for (int j = 0; j < place::COLS; j++) {
                    f32 y = bs[c + half][at[j] + far];
                    UNROLL
                    for (int i = 0; i < place::DOWN; i++)
                        sums.sum[i][j] = square<SIDE>::multiply(x[i], y, sums.sum[i][j]);
                }
            }
        }
    }
}

template <class T, int DIR, int SHAPE> DEVICE void conv_patch(const conv_args &a)
{
    typedef tile_shape<SHAPE> S;
    typedef tile_sums<f32, S> place;
    SHARED f32 as[CONV_PATCH_TAPS * CONV_PATCH_CHANNELS * S::BM];
    SHARED f32 bs[CONV_PATCH_CHANNELS][CONV_PATCH];
    SHARED f32 bias[S::BM];
    const conv_axis &h = a.space.axis[1], &w = a.space.axis[2];
    u32 t = block_id_y() * a.abreast + block_id();
    if (t >= a.work)
        return;
    u32 rest = divide(t, a.m_tiles), m = (t - rest * a.m_tiles.d) * S::BM, group = divide(rest, a.n_tiles);
    u32 n = rest - group * a.n_tiles.d, image = divide(n, a.image_tiles);
    u32 first = (n - image * a.image_tiles.d) * S::BN, pixels = a.space.pixels.d, line = divide(first, w.pixels);
    u32 last = divide(lesser(first + S::BN, pixels) - 1, w.pixels); /* the lines of its first and last pixel */
    i32 reach = (i32)(h.taps.d - 1) * h.hop, top = (i32)line + h.first + lesser(reach, 0);
    i32 bottom = (i32)last + h.first + greater(reach, 0) + 1;
    u32 at[place::COLS];
    UNROLL
    for (int j = 0; j < place::COLS; j++) {
        u32 p = lesser(first + place::col(j), pixels - 1), y = divide(p, w.pixels);
        at[j] = (y - line) * a.patch_wide.d + (p - y * w.pixels.d);
    }
    if (thread_id() < S::BM)
        bias[thread_id()] = a.bias && m + thread_id() < (u32)a.m
                                ? get(((const T *)a.bias)[group * a.m + m + thread_id()])
                                : 0.0f;
    place sums;
    patch_bringer<T, DIR, S> in(a, group, m, image, top, bottom, w.first + lesser((i32)(w.taps.d - 1) * w.hop, 0));
    in.fetch(a);
    for (i32 c = 0; c < a.channels; c += CONV_PATCH_CHANNELS) {
        barrier();
        in.put_down(as, bs);
        barrier();
        if (c + CONV_PATCH_CHANNELS < a.channels)
            in.fetch(a);
        multiply_patch<S>(a, as, bs, at, sums);
    }
    barrier(); /* without channels, the bias is not there yet */
    u32 row = m + place::row();
    UNROLL
    for (int j = 0; j < place::COLS; j++) {
        u32 p = first + place::col(j);
        i32 rows = p < pixels ? a.m - (i32)row : 0;
        i64 to = image * a.out_n + p + (group * (i64)a.m + row) * a.out_c;
        UNROLL
        for (int i = 0; i < place::ROWS; i++) {
            if ((i32)place::down(i) >= rows)
                continue;
            f32 v = sums.value(i, j) + bias[place::row() + place::down(i)];
            put_result<T>(a.end, a.out, to + place::down(i) * a.out_c, v);
        }
    }
}
