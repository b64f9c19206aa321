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

/* Where tile t begins in src and dst, and its first row and column. Tiles go down in stripes a few tiles wide: what blocks
 * read and what they write at a time are both long runs. */
struct tile_place {
    i64 row, col, from, to;
};

DEVICE tile_place place_tile(const copy_args &a, u32 t)
{
    u32 rest = t >> a.log_stripe, stripe = divide(rest, a.row_tiles), around = divide(stripe, a.stripes);
    u32 col = ((stripe - around * a.stripes.d) << a.log_stripe) + (t & ((1u << a.log_stripe) - 1));
    tile_place p;
    p.col = (i64)col * WK_COPY_TILE;
    p.row = (i64)(rest - stripe * a.row_tiles.d) * WK_COPY_TILE;
    p.from = p.row * a.row_from + p.col;
    p.to = p.row + p.col * a.col_to;
    UNROLL
    for (int d = 0; d < WK_DIMS; d++) {
        if (d >= a.rank)
            break;
        u32 next = divide(around, a.size[d]);
        i64 i = around - next * a.size[d].d;
        around = next;
        p.from += i * a.from[d];
        p.to += i * a.to[d];
    }
    return p;
}

/* A tile of 64 x 64 elements is read along src and written along dst, VEC elements at once, turned in shared memory.
 * A row of the tile has one word more than it needs, so that a column lies in different banks. With VEC > 1 rows and
 * columns are multiples of it, and every address is aligned. */
template <class T, int VEC> DEVICE void copy_tiled(const copy_args &a)
{
    const int N = WK_COPY_TILE, WORD = sizeof(T) < 4 ? 4 / sizeof(T) : 1, STEP = VEC < WORD ? VEC : WORD;
    const int ACROSS = N / VEC, DOWN = 256 / ACROSS, ROUNDS = N / DOWN;
    SHARED alignas(16) T tile[N][N + WORD];
    const int x = thread_id() % ACROSS * VEC, y0 = thread_id() / ACROSS;
    /* Columns of the tile are read by 32 lanes that lie in a rectangle, LX packs wide: then no two of them meet in a bank. */
    const int LX = VEC == 1 ? 32 : sizeof(T) < 4 ? 4 : 8, LY = 32 / LX;
    const int x1 = (thread_id() % LX + thread_id() / 32 % (ACROSS / LX) * LX) * VEC;
    const int y1 = thread_id() / LX % LY + thread_id() / 32 / (ACROSS / LX) * LY;
    for (u32 t = block_id(); t < (u32)a.count; t += grid_blocks()) {
        tile_place p = place_tile(a, t);
        const T *src = (const T *)a.src + p.from;
        T *dst = (T *)a.dst + p.to;
        pack<T, VEC> v[ROUNDS];
        UNROLL
        for (int r = 0; r < ROUNDS; r++) {
            int y = y0 + r * DOWN;
            if (p.row + y < a.rows && p.col + x < a.cols)
                v[r] = load<VEC>(src + y * a.row_from + x);
        }
        UNROLL
        for (int r = 0; r < ROUNDS; r++) {
            UNROLL
            for (int i = 0; i < VEC; i += STEP) {
                pack<T, STEP> word;
                UNROLL
                for (int k = 0; k < STEP; k++)
                    word.v[k] = v[r].v[i + k];
                store<STEP>(&tile[y0 + r * DOWN][x + i], word);
            }
        }
        barrier();
        UNROLL
        for (int r = 0; r < ROUNDS; r++) {
            int y = y1 + r * DOWN;
            UNROLL
            for (int i = 0; i < VEC; i++)
                v[r].v[i] = tile[x1 + i][y];
            if (p.col + y < a.cols && p.row + x1 < a.rows)
                store<VEC>(dst + x1 + y * a.col_to, v[r]);
        }
        barrier();
    }
}
