/* matmul_matrix.hip: matrix products of f16 and bf16 on matrix units. A block of four waves makes 64 x 64 places of the
 * result, each wave 32 x 32 of them. */
#include "matmul.hip"
#include "mma.h"

const int THREADS = 4 * WAVE, STEPS = 32, PITCH = STEPS + 8;
const int READS = WK_TILE * STEPS / 8 / THREADS; /* by one thread, of 8 elements each */

/* The first of the 8 elements of read i: they go on along k, or along the rows. */
DEVICE void octet_place(bool along_k, int i, int *row, int *k)
{
    int e = thread_id() + i * THREADS;
    *row = along_k ? e / (STEPS / 8) : e % (WK_TILE / 8) * 8;
    *k = along_k ? e % (STEPS / 8) * 8 : e / (WK_TILE / 8);
}

DEVICE bool goes_along_k(const matmul_operand &o) { return o.read == WK_READ_K_WIDE || o.read == WK_READ_K; }

/* A thread's part of the tile that begins at p, zeros outside of `rows` x `steps`. */
template <class T> DEVICE void matrix_read(const matmul_operand &o, const T *p, i64 rows, i64 steps, pack<T, 8> *v)
{
    bool along_k = goes_along_k(o), wide = o.read == WK_READ_K_WIDE || o.read == WK_READ_ROW_WIDE;
    UNROLL
    for (int i = 0; i < READS; i++) {
        int row, k;
        octet_place(along_k, i, &row, &k);
        const T *at = p + row * o.row + k * o.k;
        i64 left = along_k ? (row < rows ? steps - k : 0) : k < steps ? rows - row : 0;
        i64 step = along_k ? o.k : o.row;
        v[i] = {};
        if (wide && left >= 8) {
            v[i] = load<8>(at);
        } else {
            UNROLL
            for (int j = 0; j < 8; j++)
                if (j < left)
                    v[i].v[j] = at[j * step];
        }
    }
}

template <class T> DEVICE void matrix_keep(const matmul_operand &o, const pack<T, 8> *v, T *tile)
{
    bool along_k = goes_along_k(o);
    UNROLL
    for (int i = 0; i < READS; i++) {
        int row, k;
        octet_place(along_k, i, &row, &k);
        T *to = tile + row * PITCH + k;
        if (along_k) {
            store<8>(to, v[i]);
        } else {
            UNROLL
            for (int j = 0; j < 8; j++)
                to[j * PITCH] = v[i].v[j];
        }
    }
}

/* sum += the wave's part of the product of two tiles. */
template <class T> DEVICE void matrix_product(const T *ta, const T *tb, f32 (*sum)[2][MMA_VALUES])
{
    const T *a = ta + wave_id() / 2 * 32 * PITCH, *b = tb + wave_id() % 2 * 32 * PITCH;
    ROLLED
    for (int k = 0; k < STEPS; k += 16) {
        fragment<T> fa[2], fb[2];
        UNROLL
        for (int i = 0; i < 2; i++) {
            fa[i] = mma_load(a + i * 16 * PITCH + k, PITCH);
            fb[i] = mma_load(b + i * 16 * PITCH + k, PITCH);
        }
        UNROLL
        for (int i = 0; i < 2; i++)
            UNROLL
            for (int j = 0; j < 2; j++)
                mma(fa[i], fb[j], sum[i][j]);
    }
}

template <class T, class TO> DEVICE void one_matrix_tile(const matmul_args &g, u32 batch, i64 row0, i64 col0)
{
    SHARED alignas(16) T ta[2][WK_TILE * PITCH], tb[2][WK_TILE * PITCH];
    k_range range(g);
    const T *a = (const T *)g.a.data + batch_offset(g.batch_size, g.batch_rank, g.a.step, batch) + row0 * g.a.row;
    const T *b = (const T *)g.b.data + batch_offset(g.batch_size, g.batch_rank, g.b.step, batch) + col0 * g.b.row;
    f32 sum[2][2][MMA_VALUES] = {};
    pack<T, 8> va[READS], vb[READS];
    int now = 0;
    matrix_read(g.a, a + range.lo * g.a.k, g.m - row0, range.hi - range.lo, va);
    matrix_read(g.b, b + range.lo * g.b.k, g.n - col0, range.hi - range.lo, vb);
    for (i64 k = range.lo; k < range.hi; k += STEPS, now ^= 1) {
        matrix_keep(g.a, va, ta[now]);
        matrix_keep(g.b, vb, tb[now]);
        barrier();
        i64 next = k + STEPS;
        if (next < range.hi) { /* on its way while this tile is multiplied */
            matrix_read(g.a, a + next * g.a.k, g.m - row0, range.hi - next, va);
            matrix_read(g.b, b + next * g.b.k, g.n - col0, range.hi - next, vb);
        }
        matrix_product(ta[now], tb[now], sum);
    }
    i64 at = batch_offset(g.batch_size, g.batch_rank, g.c_step, batch) + block_id_z() * g.c_split;
    row0 += wave_id() / 2 * 32;
    col0 += wave_id() % 2 * 32;
    UNROLL
    for (int i = 0; i < 2; i++)
        UNROLL
        for (int j = 0; j < 2; j++)
            UNROLL
            for (int v = 0; v < MMA_VALUES; v++) {
                i64 row = row0 + i * 16 + mma_row(mma_slot(v)), col = col0 + j * 16 + mma_col(v);
                if (row < g.m && col < g.n)
                    finish<TO>(g, at, row, col, sum[i][j][v]);
            }
    barrier(); /* the next tile of the block begins with writes to shared memory */
}

/* Blocks: x over tiles, y over the batch, z over splits of the sum. */
template <class T, class TO> DEVICE void matmul_matrix(const matmul_args &g)
{
    for (u32 batch = block_id_y(); batch < (u32)g.batch; batch += grid_blocks_y()) {
        for (u32 t = block_id(); t < (u32)g.tiles; t += grid_blocks()) {
            u32 col = divide(t, g.row_tiles), row = t - col * g.row_tiles.d;
            one_matrix_tile<T, TO>(g, batch, (i64)row * WK_TILE, (i64)col * WK_TILE);
        }
    }
}
