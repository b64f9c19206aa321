/* attention_broad.h: what attention of f32 without matrix units, and its gradients, share. A thread makes several owners by
 * several others, then by several columns, of the two products: as many multiplications for a read of shared memory as there
 * are registers for. */
#ifndef WK_KERNELS_ATTENTION_BROAD_H
#define WK_KERNELS_ATTENTION_BROAD_H

#include "attention_tile.h"

/* A place in shared memory that is read from in a loop: NVIDIA's compiler would find the address again every time. */
struct shared_place {
#ifdef WK_NVIDIA
    u32 at;
    MEMBER shared_place(const f32 *p) : at(shared_address(p)) { asm volatile("" : "+r"(at)); }
    MEMBER pack<f32, 4> four(int offset) const
    {
        pack<f32, 4> v;
        asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                     : "=f"(v.v[0]), "=f"(v.v[1]), "=f"(v.v[2]), "=f"(v.v[3])
                     : "r"(at + offset * 4)
                     : "memory");
        return v;
    }
#else
    const f32 *p;
    MEMBER shared_place(const f32 *at) : p(at) {}
    MEMBER pack<f32, 4> four(int offset) const { return load<4>(p + offset); }
#endif
};

/* Blocks own ROWS rows of heads up to D wide and go through N others at a time. X neighbouring threads share TM owners; TN
 * others of each are a thread's, and TC columns. A thread's owners and others lie apart, and the rows of tiles are padded, so
 * that the lanes of a wave read from all banks. Weights stay within a wave. */
template <int D, int ROWS, int TM, int N> struct broad_shape {
    static const int X = D / 8, THREADS = ROWS / TM * X, TN = N / X, TC = D / X, NEAR = 32 / X, PITCH = D + 4;
    typedef f32 row_t[PITCH], weights_t[N + X];
    static MEMBER int owner(int i)
    {
        int t = thread_id();
        return t / 32 * (TM * NEAR) + t % 32 / X + i * NEAR;
    }
    static MEMBER int other(int j) { return (int)thread_id() % X + j * X; }
    static MEMBER int col(int c) { return (int)thread_id() % X * 4 + c * X; } /* c: a multiple of 4 */

    /* s[i][j] = the thread's owner i . its other j. While four columns are multiplied, the next are on their way. */
    static MEMBER void dots(const row_t *owners, const row_t *others, f32 (*s)[TN])
    {
        shared_place mine(owners[owner(0)]), theirs(others[other(0)]);
        pack<f32, 4> a[2][TM], b[2];
        UNROLL
        for (int i = 0; i < TM; i++) {
            a[0][i] = mine.four(i * NEAR * PITCH);
            UNROLL
            for (int j = 0; j < TN; j++)
                s[i][j] = 0;
        }
        b[0] = theirs.four(0);
        ROLLED
        for (int c = 0; c < D; c += 8)
            UNROLL
        for (int h = 0; h < 2; h++) {
            int now = c + h * 4, next = now + 4 < D ? now + 4 : 0;
            UNROLL
            for (int j = 0; j < TN; j++) {
                b[(h * TN + j + 1) % 2] =
                    j + 1 < TN ? theirs.four((j + 1) * X * PITCH + now) : theirs.four(next);
                UNROLL
                for (int i = j * TM / TN; i < (j + 1) * TM / TN; i++)
                    a[1 - h][i] = mine.four(i * NEAR * PITCH + next);
                UNROLL
                for (int e = 0; e < 4; e++)
                    UNROLL
                for (int i = 0; i < TM; i++)
                    s[i][j] = m_fma(a[h][i].v[e], b[(h * TN + j) % 2].v[e], s[i][j]);
            }
        }
    }

    /* out[i] += the sum over the others of weight * row. The same. */
    static MEMBER void add(const weights_t *weights, const row_t *others, f32 (*out)[TC])
    {
        const int STEPS = TC; /* of four others by four columns */
        shared_place mine(weights[owner(0)]), theirs(&others[0][col(0)]);
        pack<f32, 4> w[2][TM], v[2];
        UNROLL
        for (int i = 0; i < TM; i++)
            w[0][i] = mine.four(i * NEAR * (N + X));
        v[0] = theirs.four(0);
        ROLLED
        for (int k = 0; k < N; k += 8)
            UNROLL
        for (int h = 0; h < 2; h++) {
            int now = k + h * 4, next = now + 4 < N ? now + 4 : 0;
            UNROLL
            for (int t = 0; t < STEPS; t++) {
                int e = t / (TC / 4), c = t % (TC / 4) * 4, e1 = (t + 1) / (TC / 4),
                    c1 = (t + 1) % (TC / 4) * 4;
                v[(t + 1) % 2] =
                    t + 1 < STEPS ? theirs.four((now + e1) * PITCH + c1 * X) : theirs.four(next * PITCH);
                UNROLL
                for (int i = t * TM / STEPS; i < (t + 1) * TM / STEPS; i++)
                    w[1 - h][i] = mine.four(i * NEAR * (N + X) + next);
                UNROLL
                for (int i = 0; i < TM; i++)
                    UNROLL
                for (int j = 0; j < 4; j++)
                    out[i][c + j] = m_fma(w[h][i].v[e], v[t % 2].v[j], out[i][c + j]);
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

/* COUNT rows from row0 on, zeros where there are none, on their way to a tile that nobody reads any more: fetch starts, land
 * ends it. Then comes a barrier. */
template <int COUNT, int THREADS, int PITCH> struct broad_incoming {
    static const int PIECES = PITCH / 4 - 1, STEP = THREADS / PIECES,
                     EACH = COUNT / STEP; /* pieces of four columns */
    typedef f32 row_t[PITCH];
    static MEMBER int row_of(int e) { return (int)thread_id() / PIECES + e * STEP; }
    static MEMBER int column() { return (int)thread_id() % PIECES * 4; }
    static MEMBER bool quick(const source<f32> &from, int width) { return from.wide >= 4 && width % 4 == 0; }
    static MEMBER void copy_slowly(const source<f32> &from, u32 row0, int width, row_t *tile)
    {
        ROLLED
        for (int e = 0; e < EACH; e++) {
            pack<f32, 4> four;
            four_of(from.row(row0 + row_of(e)), from, column(), width, four.v);
            store<4>(&tile[row_of(e)][column()], four);
        }
    }
#ifdef WK_NVIDIA
    MEMBER void fetch(const source<f32> &from, u32 row0, int width, row_t *tile)
    {
        if (!quick(from, width)) {
            copy_slowly(from, row0, width, tile);
            return;
        }
        UNROLL
        for (int e = 0; e < EACH; e++) {
            const f32 *row = column() < width ? from.row(row0 + row_of(e)) : nullptr;
            copy_async(&tile[row_of(e)][column()], row ? row + column() : from.base, row);
        }
    }
    MEMBER void land(const source<f32> &, u32, int, row_t *) { copies_wait(); }
#else
    MEMBER void fetch(const source<f32> &, u32, int, row_t *) {} /* there are no registers left to wait in */
    MEMBER void land(const source<f32> &from, u32 row0, int width, row_t *tile)
    {
        pack<f32, 4> v[EACH] = {};
        if (!quick(from, width)) {
            copy_slowly(from, row0, width, tile);
            return;
        }
        UNROLL
        for (int e = 0; e < EACH; e++) {
            const f32 *row = column() < width ? from.row(row0 + row_of(e)) : nullptr;
            if (row)
                v[e] = load<4>(row + column());
        }
        UNROLL
        for (int e = 0; e < EACH; e++)
            store<4>(&tile[row_of(e)][column()], v[e]);
    }
#endif
};

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
