/* copy.hip: elements moved between any two layouts. T stands for any dtype of its size. */
#include "copy.h"
#include "device.h"

/* VEC > 1: the innermost dimension is walked by one on both sides and is a multiple of VEC. */
template <class T, int VEC, int WIDE> DEVICE void copy_strided(const copy_args &a)
{
    for (i64 at = global_thread() * VEC; at < a.count; at += global_threads() * VEC) {
        i64 from = 0, to = 0, left = at;
        u32 small = (u32)at;
        UNROLL
        for (int d = 0; d < WK_DIMS; d++) {
            if (d >= a.rank)
                break;
            i64 i;
            if (WIDE) {
                i64 rest = left / a.size64[d];
                i = left - rest * a.size64[d];
                left = rest;
            } else {
                u32 rest = divide(small, a.size[d]);
                i = small - rest * a.size[d].d;
                small = rest;
            }
            from += i * a.from[d];
            to += i * a.to[d];
        }
        store<VEC>((T *)a.dst + to, load<VEC>((const T *)a.src + from));
    }
}

/* A tile of 64 x 64 elements is read along src and written along dst, turned in shared memory. The row of the tile has
 * one word more than it needs, so that a column lies in different banks. */
template <class T> DEVICE void copy_tiled(const copy_args &a)
{
    const int N = WK_COPY_TILE, PAD = sizeof(T) < 4 ? 4 / sizeof(T) : 1;
    SHARED T tile[N][N + PAD];
    for (u32 t = block_id(); t < (u32)a.count; t += grid_blocks()) {
        u32 rest = divide(t, a.col_tiles), rest2 = divide(rest, a.row_tiles);
        i64 col = (i64)(t - rest * a.col_tiles.d) * N, row = (i64)(rest - rest2 * a.row_tiles.d) * N;
        i64 from = row * a.row_from + col, to = row + col * a.col_to;
        UNROLL
        for (int d = 0; d < WK_DIMS; d++) {
            if (d >= a.rank)
                break;
            u32 next = divide(rest2, a.size[d]);
            i64 i = rest2 - next * a.size[d].d;
            rest2 = next;
            from += i * a.from[d];
            to += i * a.to[d];
        }
        const T *src = (const T *)a.src + from;
        T *dst = (T *)a.dst + to;
        int x = thread_id() % N, y0 = thread_id() / N;
        UNROLL
        for (int y = y0; y < N; y += 256 / N) {
            if (row + y < a.rows && col + x < a.cols)
                tile[y][x] = src[y * a.row_from + x];
        }
        barrier();
        UNROLL
        for (int y = y0; y < N; y += 256 / N) {
            if (col + y < a.cols && row + x < a.rows)
                dst[x + y * a.col_to] = tile[x][y];
        }
        barrier();
    }
}
