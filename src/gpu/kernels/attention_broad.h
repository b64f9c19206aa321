/* attention_broad.h: what attention of f32 without matrix units, and its gradients, share. A thread makes several owners by
 * several others, then by several columns, of the two products: as many multiplications for a read of shared memory as there
 * are registers for. */
#ifndef WK_KERNELS_ATTENTION_BROAD_H
#define WK_KERNELS_ATTENTION_BROAD_H

#include "attention_tile.h"

const f32 LOG2E = 1.44269504088896340736f, LN2 = 0.69314718055994530942f;

/* Blocks own ROWS rows of heads up to D wide and go through N others at a time. X neighbouring threads share TM owners; TN
 * others of each are a thread's, and TC columns. A thread's owners and others lie apart, and the rows of tiles are padded, so
 * that the lanes of a wave read from all banks. Weights stay within a wave. */
template <int D, int ROWS, int TM, int N> struct broad_shape {
    static const int X = D / 8, THREADS = ROWS / TM * X, TN = N / X, TC = D / X, NEAR = 32 / X;
    typedef f32 row_t[D + 4], weights_t[N + X];
    static MEMBER int owner(int i)
    {
        int t = thread_id();
        return t / 32 * (TM * NEAR) + t % 32 / X + i * NEAR;
    }
    static MEMBER int other(int j) { return (int)thread_id() % X + j * X; }
    static MEMBER int col(int c) { return (int)thread_id() % X * 4 + c * X; } /* c: a multiple of 4 */

    /* s[i][j] = the thread's owner i . its other j */
    static MEMBER void dots(const row_t *owners, const row_t *others, f32 (*s)[TN])
    {
        UNROLL
        for (int i = 0; i < TM; i++)
            UNROLL
        for (int j = 0; j < TN; j++)
            s[i][j] = 0;
        _Pragma("unroll 2") for (int c = 0; c < D; c += 4)
        {
            pack<f32, 4> a[TM];
            UNROLL
            for (int i = 0; i < TM; i++)
                a[i] = load<4>(&owners[owner(i)][c]);
            UNROLL
            for (int j = 0; j < TN; j++) {
                pack<f32, 4> b = load<4>(&others[other(j)][c]);
                UNROLL
                for (int e = 0; e < 4; e++)
                    UNROLL
                for (int i = 0; i < TM; i++)
                    s[i][j] = m_fma(a[i].v[e], b.v[e], s[i][j]);
            }
        }
    }

    /* out[i] += the sum over the others of weight * row. */
    static MEMBER void add(const weights_t *weights, const row_t *others, f32 (*out)[TC])
    {
        _Pragma("unroll 2") for (int k = 0; k < N; k += 4)
        {
            pack<f32, 4> w[TM];
            UNROLL
            for (int i = 0; i < TM; i++)
                w[i] = load<4>(&weights[owner(i)][k]);
            UNROLL
            for (int e = 0; e < 4; e++)
                UNROLL
            for (int c = 0; c < TC; c += 4) {
                pack<f32, 4> v = load<4>(&others[k + e][col(c)]);
                UNROLL
                for (int i = 0; i < TM; i++)
                    UNROLL
                for (int j = 0; j < 4; j++)
                    out[i][c + j] = m_fma(w[i].v[e], v.v[j], out[i][c + j]);
            }
        }
    }

    /* The thread's columns of a row of the result. */
    static MEMBER void store_row(f32 *row, int width, const f32 *v, f32 factor)
    {
        bool at_once = width % 4 == 0 && (u64)row % 16 == 0;
        UNROLL
        for (int c = 0; c < TC; c += 4) {
            pack<f32, 4> four;
            int at = col(c);
            UNROLL
            for (int j = 0; j < 4; j++)
                four.v[j] = v[c + j] * factor;
            if (at_once && at < width)
                store<4>(row + at, four);
            UNROLL
            for (int j = 0; j < 4; j++)
                if (!at_once && at + j < width)
                    row[at + j] = four.v[j];
        }
    }
};

/* COUNT rows from row0 on, zeros where there are none, start on their way to a tile. */
template <int COUNT, int THREADS, int PITCH>
DEVICE void broad_fetch(const source<f32> &from, u32 row0, int width, f32 (*tile)[PITCH])
{
    const int PIECES = PITCH / 4 - 1, STEP = THREADS / PIECES; /* pieces of four columns */
    int c = (int)thread_id() % PIECES * 4;
#ifdef WK_NVIDIA
    if (from.wide >= 4 && width % 4 == 0) {
        UNROLL
        for (int e = 0; e < COUNT / STEP; e++) {
            int r = (int)thread_id() / PIECES + e * STEP;
            const f32 *row = c < width ? from.row(row0 + r) : nullptr;
            copy_async(&tile[r][c], row ? row + c : from.base, row);
        }
        return;
    }
#endif
    ROLLED
    for (int r = (int)thread_id() / PIECES; r < COUNT; r += STEP) {
        pack<f32, 4> four;
        four_of(from.row(row0 + r), from, c, width, four.v);
        store<4>(&tile[r][c], four);
    }
}

/* What was fetched is there, and what was read before may be overwritten. */
DEVICE void broad_arrive()
{
#ifdef WK_NVIDIA
    copies_wait();
#endif
    barrier();
}

/* The keys that all of rows [first, last] see. */
DEVICE void keys_of_all_rows(const attn_args &a, const unit &u, u32 first, u32 last, int *lo, int *hi)
{
    int none;
    last = last < u.rows ? last : u.rows - 1;
    bool one_head = first / u.s == last / u.s;
    keys_seen(a, u, one_head ? last % u.s : u.s - 1, lo, &none);
    keys_seen(a, u, one_head ? first % u.s : 0, &none, hi);
}

#endif
