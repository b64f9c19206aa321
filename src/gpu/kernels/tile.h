/* tile.h: tiles of f16, bf16 or f32 in shared memory, filled from rows in memory and multiplied by matrix units.
 *
 * A wave owns 16 rows and multiplies them with rows of tiles that all waves share ("others"). Products of owners and others
 * stay in registers, and become the operand of the next product there. On NVIDIA owners are the rows of a product's
 * result; on AMD they are its columns, since there the result has an operand's layout that way round. Hopper's products
 * take shared memory, and run on while the waves go on: products_wait. */
#ifndef WK_KERNELS_TILE_H
#define WK_KERNELS_TILE_H

#include "mma.h"
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define WK_HOPPER
#include "gate.h"
#include "wgmma.h"
#endif

/* ---- where a lane's values are: owner own_row(slot), other other_at(i) of 16 x 16 ---- */

#if defined(WK_NVIDIA)
enum { OWN_SLOTS = 2, OWN_RUN = 2 };
DEVICE int own_slot(int i) { return i % 4 / 2; }
DEVICE int own_row(int slot) { return mma_row(slot); }
DEVICE int other_at(int i) { return mma_col(i); }
template <class OP> DEVICE f32 own_reduce(f32 v) { return wave_reduce<OP, 4>(v); }
template <class T> DEVICE void mma_own(const fragment<T> &own, const fragment<T> &other, f32 *c)
{
    mma(own, other, c);
}
#else
enum { OWN_SLOTS = 1, OWN_RUN = MMA_WORDS == 8 ? 1 : MMA_VALUES }; /* OWN_RUN: values that are neighbours */
DEVICE int own_slot(int) { return 0; }
DEVICE int own_row(int) { return lane_id() % 16; }
DEVICE int other_at(int i) { return mma_row(i); }
template <class OP> DEVICE f32 own_reduce(f32 v)
{
    UNROLL
    for (u32 m = 16; m < WAVE; m *= 2)
        v = OP::run(v, shuffle_xor(v, m));
    return v;
}
template <class T> DEVICE void mma_own(const fragment<T> &own, const fragment<T> &other, f32 *c)
{
    mma(other, own, c);
}
#endif

/* Two values as a word; and what rounding them left out. */
template <class T> DEVICE u32 two_of(f32 a, f32 b)
{
    T x = put<T>(a), y = put<T>(b);
    return (u32)x.bits | (u32)y.bits << 16;
}
#ifdef WK_NVIDIA
template <> MEMBER u32 two_of<f16>(f32 a, f32 b)
{
    u32 w;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(w) : "f"(b), "f"(a));
    return w;
}
template <> MEMBER u32 two_of<bf16>(f32 a, f32 b)
{
    u32 w;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(w) : "f"(b), "f"(a));
    return w;
}
#endif
template <class T> DEVICE f32 left_out(f32 v, u32 word, int half)
{
    return v - get(T{(unsigned short)(half ? word >> 16 : word)});
}

/* With two parts the second is what rounding left out of the first, and together they are as good as f32. */
template <class T, int PARTS> DEVICE void rounded_operand(const f32 *v, fragment<T> *f)
{
    u32 w[PARTS][MMA_VALUES / 2];
    UNROLL
    for (int j = 0; j < MMA_VALUES / 2; j++) {
        w[0][j] = two_of<T>(v[2 * j], v[2 * j + 1]);
        if constexpr (PARTS > 1)
            w[1][j] = two_of<T>(left_out<T>(v[2 * j], w[0][j], 0), left_out<T>(v[2 * j + 1], w[0][j], 1));
    }
    UNROLL
    for (int p = 0; p < PARTS; p++)
        UNROLL
    for (int j = 0; j < MMA_VALUES / 2; j++) {
#if defined(WK_NVIDIA)
        f[p].w[j] = w[p][j];
#else
        if constexpr (MMA_WORDS * 2 == MMA_VALUES) {
            f[p].w[j] = w[p][j];
        } else { /* the even others are in one half of the wave, the odd ones in the other; an operand has both */
            u32 theirs = shuffle_xor(w[p][j], 16);
            u32 even = lane_id() < 16 ? w[p][j] : theirs, odd = lane_id() < 16 ? theirs : w[p][j];
            f[p].w[2 * j] = (even & 0xFFFF) | odd << 16;
            f[p].w[2 * j + 1] = even >> 16 | (odd & 0xFFFF0000);
        }
#endif
    }
}

/* A lane's products as the operand of the next one, whose sum is over the others. */
template <class T, int PARTS> DEVICE void own_operand(const f32 *v, fragment<T> *f)
{
    if constexpr (sizeof(T) == 4) {
        UNROLL
        for (int j = 0; j < MMA_VALUES; j++)
            f[0].w[j] = bit_cast<u32>(v[j]);
    } else {
        rounded_operand<T, PARTS>(v, f);
    }
}

/* ---- tiles ---- */

/* Elements in 16 bytes, which is what tiles are made of. */
template <class T> struct piece_of {
    static const int size = 16 / sizeof(T);
};

/* Where an element is: blocks of 64 columns (of f32: 32), rows of 128 bytes in which pieces are exchanged, so that eight rows'
 * pieces of one column lie in all banks. What an operand's place adds to a lane's is a constant but for a few cases: more
 * of them would be kept in registers. */
template <class T, int ROWS, int COLS> DEVICE int tile_at(int row, int col)
{
    const int P = piece_of<T>::size, BLOCK = 8 * P, PIECES = COLS < BLOCK ? COLS / P : 8;
    return (col / BLOCK * ROWS + row) * (PIECES * P) +
           (col / P ^ (COLS < BLOCK ? row / 2 : row)) % PIECES * P + col % P;
}

/* Rows row0 .. row0 + 15, columns col0 .. col0 + 15, as an operand; both multiples of 16. */
template <int ROWS, int COLS, class T> DEVICE fragment<T> tile_operand(const T *tile, int row0, int col0)
{
    fragment<T> f;
    int lane = lane_id(), row = row0 + lane % 16;
#if defined(WK_NVIDIA)
    matrix_load(f.w, tile + tile_at<T, ROWS, COLS>(row, col0 + lane / 16 * 8));
#else
    const int words = fragment<T>::WORDS, some = words < 4 ? words : 4, in_word = 4 / sizeof(T);
    UNROLL
    for (int i = 0; i < words; i += some) {
        int col = col0 + (words == 8 ? i : lane / 16 * words) * in_word;
        pack<u32, some> part = load<some>((const u32 *)(tile + tile_at<T, ROWS, COLS>(row, col)));
        UNROLL
        for (int j = 0; j < some; j++)
            f.w[i + j] = part.v[j];
    }
#endif
    return f;
}

/* The same turned: the operand's rows are columns col0 .. col0 + 15. AMD: of f32. */
template <int ROWS, int COLS, class T> DEVICE fragment<T> turned_operand(const T *tile, int row0, int col0)
{
    fragment<T> f;
    int lane = lane_id();
#ifdef WK_NVIDIA
    matrix_load_turned(
        f.w, tile + tile_at<T, ROWS, COLS>(row0 + lane % 8 + lane / 16 * 8, col0 + lane / 8 % 2 * 8));
#else
    UNROLL
    for (int i = 0; i < 4; i++)
        f.w[i] = bit_cast<u32>(tile[tile_at<T, ROWS, COLS>(row0 + lane / 16 * 4 + i, col0 + lane % 16)]);
#endif
    return f;
}
/* Whether tiles have to be turned for that in shared memory. */
template <class T> struct turns_tiles {
#ifdef WK_NVIDIA
    static const bool value = false;
#else
    static const bool value = sizeof(T) == 2;
#endif
};

/* ---- filling ---- */

/* A piece of a row from column c on, zeros beyond its width; whatever the layout. */
template <class T> DEVICE pack<T, piece_of<T>::size> piece_at(const T *row, i64 stride, int c, int width)
{
    pack<T, piece_of<T>::size> v = {};
    UNROLL
    for (int j = 0; j < piece_of<T>::size; j++)
        if (row && c + j < width)
            v.v[j] = row[(c + j) * stride];
    return v;
}

/* Element c of eight in two rows, as a word. */
DEVICE u32 two_rows(const pack<u32, 4> &a, const pack<u32, 4> &b, int c)
{
    u32 x = a.v[c / 2], y = b.v[c / 2];
    return c % 2 ? x >> 16 | (y & 0xFFFF0000) : (x & 0xFFFF) | y << 16;
}

/* Tiles of ROWS rows on their way from a source S (attention_tile.h): aim says where the first begins, fetch starts the next
 * one, land ends it. Between the two, and before others read the tile, is a barrier. On AMD it waits in registers.
 * TURNED: the tile is wanted with its columns as rows; NVIDIA's operands are turned when they are read. Rows that cannot be
 * read 16 bytes at a time take their time. */
template <class S, class T, int ROWS, int COLS, int THREADS, bool TURNED> struct incoming {
    static const int P = piece_of<T>::size, per_row = COLS / P,
                     each = (ROWS * per_row + THREADS - 1) / THREADS, step = THREADS / per_row;
    S from;
    u32 first, next; /* rows: of the tile under way, and of the one after it */
    int width;
    MEMBER void aim(const S &source, u32 row, int columns)
    {
        from = source;
        next = row;
        width = columns;
    }
    MEMBER bool quick() const { return from.wide >= P && width % P == 0; }
    /* A piece of a row of the tile; NULL where there is none. */
    MEMBER const T *part_of(int row, int column) const
    {
        u32 r = first + row;
        if (r >= from.n || column >= width)
            return nullptr;
        return (from.per ? from.row(r) : from.base + (i64)r * from.s) + column;
    }
#ifdef WK_NVIDIA
    MEMBER void fetch(T *tile)
    {
        int row = thread_id() / per_row, column = thread_id() % per_row * P;
        first = next;
        next += ROWS;
        if (quick()) {
            bool mine = column < width;
            const T *at =
                from.base + (i64)(first + row) * from.s + column; /* not read where nothing is there */
            UNROLL
            for (int i = 0; i < each; i++, row += step) {
                if (each * THREADS > ROWS * per_row && row >= ROWS)
                    break;
                bool there = mine && first + row < from.n;
                const T *place = from.per && there ? part_of(row, column) : at + i * step * from.s;
                copy_async(tile + tile_at<T, ROWS, COLS>(row, column), place, there);
            }
        } else {
            ROLLED
            for (; row < ROWS; row += step)
                store<P>(tile + tile_at<T, ROWS, COLS>(row, column),
                         piece_at(from.row(first + row), from.d, column, width));
        }
    }
    MEMBER void land(T *) const {}
    MEMBER void land_plain(T *) const {}
#else
    static_assert(each * THREADS == ROWS * per_row, "every thread has as much");
    /* A thread has some rows next to each other, if they are to be turned; and four threads 64 bytes of a row, so that the
     * others' rows fill the banks when they are stored. */
    static const int keys = TURNED ? each < 4 ? each : 4 : 1, side = TURNED ? 4 : per_row;
    MEMBER int item(int i) const { return (int)thread_id() + i / keys * THREADS; }
    MEMBER int row_of(int i) const { return item(i) / side % (ROWS / keys) * keys + i % keys; }
    MEMBER int column_of(int i) const
    {
        return (item(i) % side + item(i) / (side * (ROWS / keys)) * side) * P;
    }
    /* RDNA has no registers left to wait in: there tiles are read when they land. */
    static const bool early = WAVE == 64;
    pack<u32, 4> v[early ? each : 1]; /* as words: elements by themselves would take a register each */
    MEMBER pack<u32, 4> read(int i) const
    {
        const T *at = part_of(row_of(i), column_of(i));
        pack<u32, 4> some = {};
        if (at)
            some = load<4>((const u32 *)at);
        return some;
    }
    MEMBER pack<u32, 4> held(int i) const { return early ? v[early ? i : 0] : read(i); }
    MEMBER void fetch(T *)
    {
        first = next;
        next += ROWS;
        if (early && quick()) {
            UNROLL
            for (int i = 0; i < each; i++)
                v[early ? i : 0] = read(i);
        }
    }
    MEMBER void land_plain(T *tile) const
    {
        if (quick()) {
            UNROLL
            for (int i = 0; i < each; i++)
                store<4>((u32 *)(tile + tile_at<T, ROWS, COLS>(row_of(i), column_of(i))), held(i));
            return;
        }
        ROLLED
        for (int i = 0; i < each; i++) {
            const T *row = from.row(first + row_of(i));
            store<P>(tile + tile_at<T, ROWS, COLS>(row_of(i), column_of(i)),
                     piece_at(row, from.d, column_of(i), width));
        }
    }
    MEMBER void land_turned(T *tile) const
    {
        if (quick()) {
            UNROLL
            for (int i = 0; i < each; i += keys) {
                pack<u32, 4> rows[keys];
                UNROLL
                for (int k = 0; k < keys; k++)
                    rows[k] = held(i + k);
                UNROLL
                for (int j = 0; j < 8; j++) {
                    T *to = tile + tile_at<T, COLS, ROWS>(column_of(i) + j, row_of(i));
                    if constexpr (keys == 1) {
                        to->bits = (unsigned short)(rows[0].v[j / 2] >> j % 2 * 16);
                    } else {
                        pack<u32, keys / 2> some;
                        UNROLL
                        for (int k = 0; k < keys; k += 2)
                            some.v[k / 2] = two_rows(rows[k], rows[k + 1], j);
                        store<keys / 2>((u32 *)to, some);
                    }
                }
            }
            return;
        }
        ROLLED
        for (int i = 0; i < each; i++) {
            pack<T, P> one = piece_at(from.row(first + row_of(i)), from.d, column_of(i), width);
            UNROLL
            for (int j = 0; j < 8; j++)
                tile[tile_at<T, COLS, ROWS>(column_of(i) + j, row_of(i))] = one.v[j];
        }
    }
    MEMBER void land(T *tile) const
    {
        if constexpr (TURNED)
            land_turned(tile);
        else
            land_plain(tile);
    }
#endif
};

/* ---- products ---- */

/* The owners' rows of a block: a tile of ROWS x D, and where there is room the wave's own as operands. */
template <class T, int D, int ROWS> struct owners {
#ifdef WK_HOPPER
    static const bool resident = false, kept = true;
#else
    static const bool resident = WAVE == 64 || D <= (MMA_WORDS < 8 ? 128 : 64),
                      kept = !resident; /* kept: the tile stays */
#endif
    fragment<T> f[resident ? D / 16 : 1];
    const T *tile;
    MEMBER fragment<T> load(int k) const { return tile_operand<ROWS, D>(tile, (int)wave_id() * 16, k * 16); }
    MEMBER void take(const T *from)
    {
        tile = from;
        UNROLL
        for (int k = 0; resident && k < D / 16; k++)
            f[k] = load(k);
    }
    MEMBER fragment<T> at(int k) const
    {
        if constexpr (resident)
            return f[k];
        else
            return load(k);
    }
};

/* s[n] = the wave's owners . others 16 n .. 16 n + 15 of a tile of N x D, over `width` columns. */
template <class T, int D, int N, int ROWS>
DEVICE void start_dots(const owners<T, D, ROWS> &own, const T *tile, int width, f32 (*s)[MMA_VALUES])
{
#ifdef WK_HOPPER
    u64 a = wgmma_place(own.tile + wave_id() / 4 * (64 * 64), 16), b = wgmma_place(tile, 16);
    wgmma_fence();
    UNROLL
    for (int k = 0; k < D / 16; k++) /* a step is 32 bytes, four steps a block of columns */
        wgmma_dots(width_tag<N>(), T(), &s[0][0], a + k / 4 * (ROWS * 8) + k % 4 * 2,
                   b + k / 4 * (N * 8) + k % 4 * 2, k > 0);
    wgmma_commit();
#else
    UNROLL
    for (int n = 0; n < N / 16; n++)
        UNROLL
    for (int i = 0; i < MMA_VALUES; i++)
        s[n][i] = 0;
    UNROLL
    for (int k = 0; k < D / 16; k++) {
        if (k * 16 >= width)
            break;
        fragment<T> mine = own.at(k);
        UNROLL
        for (int n = 0; n < N / 16; n++)
            mma_own(mine, tile_operand<N, D>(tile, n * 16, k * 16), s[n]);
    }
#endif
}

/* out[c] += the wave's weights . columns 16 c .. 16 c + 15 of a tile of N x D, of which `width` matter; turned, where tiles are. */
template <class T, int D, int N, int PARTS>
DEVICE void start_add(const fragment<T> (*weights)[PARTS], const T *tile, int width, f32 (*out)[MMA_VALUES])
{
#ifdef WK_HOPPER
    const int WIDE = D < 128 ? D : 128;
    u64 b = wgmma_place(tile, N * 128);
    wgmma_fence();
    UNROLL
    for (int n = 0; n < N / 16; n++)
        UNROLL
    for (int p = 0; p < PARTS; p++)
        UNROLL
    for (int c = 0; c < D; c += WIDE)
        wgmma_add(width_tag<WIDE>(), &out[c / 16][0], weights[n][p], b + n * 128 + c / 64 * (N * 8));
    wgmma_commit();
#else
#ifdef WK_AMD
    __builtin_amdgcn_sched_barrier(
        0); /* or operands of this product wait in registers for the one before it */
#endif
    UNROLL
    for (int n = 0; n < N / 16; n++)
        UNROLL
    for (int c = 0; c < D / 16; c++) {
        if (c * 16 >= width)
            break;
        fragment<T> v;
        if constexpr (turns_tiles<T>::value)
            v = tile_operand<D, N>(tile, c * 16, n * 16);
        else
            v = turned_operand<N, D>(tile, n * 16, c * 16);
        UNROLL
        for (int p = 0; p < PARTS; p++)
            mma_own(weights[n][p], v, out[c]);
    }
#endif
}

/* What v is made of is computed before the next wait: compilers put waits first in a stretch without branches, and here
 * one ends. v is never below zero. */
DEVICE void products_before(f32 v)
{
#ifdef WK_HOPPER
    if (v < 0)
        asm volatile("nanosleep.u32 1;" ::: "memory");
#endif
}

/* All but the last LEFT products started are done; c are the sums of those. */
template <int LEFT, int N> DEVICE void products_wait(f32 (*c)[MMA_VALUES])
{
#ifdef WK_HOPPER
    wgmma_wait<LEFT>();
    UNROLL
    for (int n = 0; n < N; n++)
        UNROLL
    for (int i = 0; i < MMA_VALUES; i++)
        asm volatile("" : "+f"(c[n][i])::"memory"); /* not read before */
#endif
}

/* Tiles that were fetched are there for every wave; nobody uses what was there before. To be called by all. */
template <class A, class T> DEVICE void tiles_arrive(const A &a, T *to)
{
#ifdef WK_NVIDIA
    copies_wait();
#else
    barrier();
    a.land(to);
#endif
    barrier();
}
template <class A, class B, class T> DEVICE void tiles_arrive(const A &a, T *to_a, const B &b, T *to_b)
{
#ifdef WK_NVIDIA
    copies_wait();
#else
    barrier();
    a.land(to_a);
    b.land(to_b);
#endif
    barrier();
}

/* A barrier in two halves: a thread that has announced its copies, and that it is done with tiles before them, goes on with
 * something else; pass waits until all have. Elsewhere than on Hopper pass does it all. */
struct tile_gate {
#ifdef WK_HOPPER
    u64 *place; /* in shared memory */
    u32 phase;
    MEMBER void open(u64 *p, int threads)
    {
        place = p;
        phase = 0;
        if (thread_id() == 0)
            gate_init(p, threads);
        barrier();
    }
    MEMBER void announce()
    {
        copies_wait();
        gate_arrive(place);
    }
    template <class A, class B, class T> MEMBER void pass(const A &, T *, const B &, T *)
    {
        gate_wait(place, phase);
        phase ^= 1;
    }
    template <class A, class T> MEMBER void pass(const A &a, T *to) { pass(a, to, a, to); }
    MEMBER void close()
    {
        barrier();
        if (thread_id() == 0)
            gate_close(place);
    }
#else
    MEMBER void open(u64 *, int) {}
    MEMBER void announce() {}
    template <class A, class B, class T> MEMBER void pass(const A &a, T *to_a, const B &b, T *to_b)
    {
        tiles_arrive(a, to_a, b, to_b);
    }
    template <class A, class T> MEMBER void pass(const A &a, T *to) { tiles_arrive(a, to); }
    MEMBER void close() { barrier(); }
#endif
};

#endif
