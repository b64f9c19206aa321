/* matmul.hip: matrix products by tiles in shared memory, thin ones at the speed of memory, and the sum of splits. */
#include "act.h"
#include "matmul.h"

/* Where product `batch` of an array of matrices begins. */
DEVICE i64 batch_offset(const wk_divisor *size, int rank, const i64 *step, u32 batch)
{
    i64 offset = 0;
    UNROLL_DIMS
    for (int d = 0; d < WK_DIMS; d++) {
        if (d >= rank)
            break;
        u32 rest = divide(batch, size[d]);
        offset += (i64)(batch - rest * size[d].d) * step[d];
        batch = rest;
    }
    return offset;
}

/* The part of the sum that this block computes. */
struct k_range {
    i64 lo, hi;
    MEMBER k_range(const matmul_args &g) : lo((i64)block_id_z() * g.split_k), hi(lesser(lo + g.split_k, g.k)) {}
};

template <class TO, class A> DEVICE void finish(const matmul_args &g, i64 at, i64 row, i64 col, A v)
{
    if (g.bias)
        v += get(((const TO *)g.bias)[row * g.bias_row + col * g.bias_col]);
    at += row * g.c_row + col * g.c_col;
    if (g.z)
        v += get(((const TO *)g.z)[at]);
    ((TO *)g.c)[at] = put<TO>(activate(g.act, v));
}

/* ---- tiles ---- */

/* The places (row, k) in a tile of the four elements a thread reads. */
DEVICE void tile_place(int read, int j, int *row, int *k)
{
    int t = thread_id(), e = t + 256 * j;
    switch (read) {
    case WK_READ_K_WIDE: *row = t / 4, *k = t % 4 * 4 + j; break;
    case WK_READ_ROW_WIDE: *row = t % 16 * 4 + j, *k = t / 16; break;
    case WK_READ_K: *row = e / WK_TILE_K, *k = e % WK_TILE_K; break;
    default: *row = e % WK_TILE, *k = e / WK_TILE;
    }
}

/* A thread's four elements of the tile that begins at p, zeros outside of `rows` x `steps`. */
template <class T> DEVICE void tile_read(const matmul_operand &o, const T *p, i64 rows, i64 steps, acc<T> *v)
{
    int row, k;
    tile_place(o.read, 0, &row, &k);
    bool inside = o.read == WK_READ_K_WIDE ? row < rows && k + 3 < steps : row + 3 < rows && k < steps;
    if (o.read <= WK_READ_ROW_WIDE && inside) {
        pack<T, 4> four = load<4>(p + row * o.row + k * o.k);
        UNROLL
        for (int j = 0; j < 4; j++)
            v[j] = get(four.v[j]);
        return;
    }
    UNROLL
    for (int j = 0; j < 4; j++) {
        tile_place(o.read, j, &row, &k);
        v[j] = row < rows && k < steps ? get(p[row * o.row + k * o.k]) : 0;
    }
}

template <class A> DEVICE void tile_keep(int read, const A *v, A (*tile)[WK_TILE + 4])
{
    int row, k;
    UNROLL
    for (int j = 0; j < 4; j++) {
        tile_place(read, j, &row, &k);
        tile[k][row] = v[j];
    }
}

/* sum += the product of two tiles; a thread has 4 x 4 places. */
template <class A>
DEVICE void tile_product(A (*ta)[WK_TILE + 4], A (*tb)[WK_TILE + 4], int y, int x, A (*sum)[4])
{
    UNROLL
    for (int k = 0; k < WK_TILE_K; k++) {
        A a[4], b[4];
        UNROLL
        for (int i = 0; i < 4; i++) {
            a[i] = ta[k][y + i];
            b[i] = tb[k][x + i];
        }
        UNROLL
        for (int i = 0; i < 4; i++)
            UNROLL
            for (int j = 0; j < 4; j++)
                sum[i][j] = m_fma(a[i], b[j], sum[i][j]);
    }
}

/* a, b: the product's operands; at: where its result begins. */
template <class T, class TO>
DEVICE void one_tile(const matmul_args &g, const T *a, const T *b, i64 at, i64 row0, i64 col0)
{
    typedef acc<T> A;
    SHARED alignas(16) A ta[2][WK_TILE_K][WK_TILE + 4], tb[2][WK_TILE_K][WK_TILE + 4];
    k_range range(g);
    int x = thread_id() % 16 * 4, y = thread_id() / 16 * 4, now = 0;
    a += row0 * g.a.row;
    b += col0 * g.b.row;
    A sum[4][4] = {}, va[4], vb[4];
    tile_read(g.a, a + range.lo * g.a.k, g.m - row0, range.hi - range.lo, va);
    tile_read(g.b, b + range.lo * g.b.k, g.n - col0, range.hi - range.lo, vb);
    for (i64 k = range.lo; k < range.hi; k += WK_TILE_K, now ^= 1) {
        tile_keep(g.a.read, va, ta[now]);
        tile_keep(g.b.read, vb, tb[now]);
        barrier();
        i64 next = k + WK_TILE_K;
        if (next < range.hi) { /* on its way while this tile is multiplied */
            tile_read(g.a, a + next * g.a.k, g.m - row0, range.hi - next, va);
            tile_read(g.b, b + next * g.b.k, g.n - col0, range.hi - next, vb);
        }
        tile_product(ta[now], tb[now], y, x, sum);
    }
    UNROLL
    for (int i = 0; i < 4; i++)
        UNROLL
        for (int j = 0; j < 4; j++)
            if (row0 + y + i < g.m && col0 + x + j < g.n)
                finish<TO>(g, at, row0 + y + i, col0 + x + j, sum[i][j]);
    barrier(); /* the next tile of the block begins with writes to shared memory */
}

/* Blocks: x over tiles, y over the batch, z over splits of the sum. */
template <class T, class TO> DEVICE void matmul_tiles(const matmul_args &g)
{
    for (u32 batch = block_id_y(); batch < (u32)g.batch; batch += grid_blocks_y()) {
        const T *a = (const T *)g.a.data + batch_offset(g.batch_size, g.batch_rank, g.a.step, batch);
        const T *b = (const T *)g.b.data + batch_offset(g.batch_size, g.batch_rank, g.b.step, batch);
        i64 at = batch_offset(g.batch_size, g.batch_rank, g.c_step, batch) + block_id_z() * g.c_split;
        for (u32 t = block_id(); t < (u32)g.tiles; t += grid_blocks()) {
            u32 col = divide(t, g.row_tiles), row = t - col * g.row_tiles.d;
            one_tile<T, TO>(g, a, b, at, (i64)row * WK_TILE, (i64)col * WK_TILE);
        }
    }
}

/* ---- thin products: a has at most M rows, b is read once ---- */

/* N steps of the dot products of a column with all rows, VEC elements a lane each, all of them read before the first is used. */
template <int N, int VEC, int M, class T, class A> DEVICE void dot_steps(const matmul_args &g, const T *a, const T *b, A *sum)
{
    pack<T, VEC> vb[N];
    UNROLL
    for (int s = 0; s < N; s++)
        vb[s] = load_once<VEC>(b + s * WAVE * VEC);
    UNROLL
    for (int i = 0; i < M; i++) {
        const T *row = a + (i < g.m ? i : 0) * g.a.row;
        UNROLL
        for (int s = 0; s < N; s++) {
            pack<T, VEC> va = load<VEC>(row + s * WAVE * VEC);
            UNROLL
            for (int j = 0; j < VEC; j++)
                sum[i] = m_fma(get(va.v[j]), get(vb[s].v[j]), sum[i]);
        }
    }
}

/* k is b's contiguous dimension: a wave makes one column by a dot product. One row alone is all about b being read: eight
 * reads of it are on their way at once. */
template <class T, class TO, int M> DEVICE void matmul_dot(const matmul_args &g)
{
    typedef acc<T> A;
    const int VEC = 16 / sizeof(T), WAVES = 256 / WAVE, STEP = WAVE * VEC, FLIGHT = M == 1 ? 8 : 1;
    k_range range(g);
    u32 lane = lane_id();
    for (u32 batch = block_id_y(); batch < (u32)g.batch; batch += grid_blocks_y()) {
        const T *a = (const T *)g.a.data + batch_offset(g.batch_size, g.batch_rank, g.a.step, batch);
        const T *b0 = (const T *)g.b.data + batch_offset(g.batch_size, g.batch_rank, g.b.step, batch);
        i64 at = batch_offset(g.batch_size, g.batch_rank, g.c_step, batch) + block_id_z() * g.c_split;
        for (i64 col = (i64)block_id() * WAVES + wave_id(); col < g.n; col += (i64)grid_blocks() * WAVES) {
            const T *b = b0 + col * g.b.row;
            A sum[M] = {};
            i64 k = range.lo + lane * VEC;
            for (; g.vec && k + (FLIGHT - 1) * STEP < range.hi; k += FLIGHT * STEP)
                dot_steps<FLIGHT, VEC, M>(g, a + k, b + k, sum);
            for (; g.vec && k < range.hi; k += STEP)
                dot_steps<1, VEC, M>(g, a + k, b + k, sum);
            for (k = range.lo + lane; !g.vec && k < range.hi; k += WAVE)
                dot_steps<1, 1, M>(g, a + k * g.a.k, b + k * g.b.k, sum);
            A mine = 0;
            UNROLL
            for (int i = 0; i < M; i++) {
                A all = wave_reduce<op_sum>(sum[i]);
                mine = lane == (u32)i ? all : mine;
            }
            if (lane < M && lane < g.m)
                finish<TO>(g, at, lane, col, mine);
        }
    }
}

/* Partial sums of the 256 / WK_COLUMN_LANES rows of threads, for VEC columns each, put together. */
template <int VEC, class A> DEVICE void join_slices(A *sum, A (*room)[WK_COLUMN_LANES * VEC])
{
    const int SLICES = 256 / WK_COLUMN_LANES;
    int x = thread_id() % WK_COLUMN_LANES, y = thread_id() / WK_COLUMN_LANES;
    UNROLL
    for (int j = 0; j < VEC; j++)
        room[y][x * VEC + j] = sum[j];
    barrier();
    if (y == 0) {
        UNROLL
        for (int j = 0; j < VEC; j++)
            for (int s = 1; s < SLICES; s++)
                sum[j] += room[s][x * VEC + j];
    }
    barrier();
}

/* n is b's contiguous dimension: a thread makes VEC neighbouring columns from every eighth row of b. */
template <class T, class TO, int M, int VEC> DEVICE void matmul_columns(const matmul_args &g)
{
    typedef acc<T> A;
    const int LANES = WK_COLUMN_LANES, SLICES = 256 / LANES;
    SHARED A room[SLICES][LANES * VEC];
    k_range range(g);
    int x = thread_id() % LANES, y = thread_id() / LANES;
    for (u32 batch = block_id_y(); batch < (u32)g.batch; batch += grid_blocks_y()) {
        const T *a = (const T *)g.a.data + batch_offset(g.batch_size, g.batch_rank, g.a.step, batch);
        const T *b = (const T *)g.b.data + batch_offset(g.batch_size, g.batch_rank, g.b.step, batch);
        i64 at = batch_offset(g.batch_size, g.batch_rank, g.c_step, batch) + block_id_z() * g.c_split;
        for (i64 col0 = (i64)block_id() * LANES * VEC; col0 < g.n; col0 += (i64)grid_blocks() * LANES * VEC) {
            i64 col = col0 + x * VEC;
            bool inside = col < g.n;
            A sum[M][VEC] = {};
            for (i64 k = range.lo + y; inside && k < range.hi; k += SLICES) {
                pack<T, VEC> vb = load<VEC>(b + k * g.b.k + col * g.b.row);
                UNROLL
                for (int i = 0; i < M; i++) {
                    A va = get(a[(i < g.m ? i : 0) * g.a.row + k * g.a.k]);
                    UNROLL
                    for (int j = 0; j < VEC; j++)
                        sum[i][j] = m_fma(va, get(vb.v[j]), sum[i][j]);
                }
            }
            UNROLL
            for (int i = 0; i < M; i++) {
                join_slices<VEC>(sum[i], room);
                UNROLL
                for (int j = 0; j < VEC; j++)
                    if (inside && y == 0 && i < g.m)
                        finish<TO>(g, at, i, col + j, sum[i][j]);
            }
        }
    }
}

/* ---- splits ---- */

template <class A, class TO> DEVICE void matmul_finish(const matmul_finish_args &g)
{
    for (i64 i = global_thread(); i < g.count; i += global_threads()) {
        i64 line = i / g.n, col = i - line * g.n, batch = line / g.m, row = line - batch * g.m;
        const A *p = (const A *)g.parts + i;
        A sum = 0;
        for (int s = 0; s < g.splits; s++)
            sum += p[s * g.count];
        if (g.bias)
            sum += get(((const TO *)g.bias)[row * g.bias_row + col * g.bias_col]);
        i64 at = batch_offset(g.batch_size, g.batch_rank, g.c_step, (u32)batch) + row * g.c_row + col * g.c_col;
        if (g.z)
            sum += get(((const TO *)g.z)[at]);
        ((TO *)g.c)[at] = put<TO>(activate(g.act, sum));
    }
}
