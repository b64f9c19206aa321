/* sort.hip: sorting. Elements become pairs of a key, a number in the order wanted, and a place that breaks ties. So all
 * pairs differ and there is one right order. */
#include "scan.h"
#include "walk.hip"

/* ---- keys ---- */

/* The bits of a float as a number in the same order; both zeros are one. */
template <class U> DEVICE U float_key(U bits, U infinity, const sort_args &a)
{
    U sign = (U)((U)1 << (sizeof(U) * 8 - 1)), magnitude = bits & (U)~sign;
    U key = bits & sign && magnitude ? (U)~bits : (U)(bits | sign);
    return magnitude > infinity ? (U)a.nan : (U)(key ^ (U)a.flip);
}
typedef unsigned short u16;
DEVICE u64 key_of(f32 v, const sort_args &a) { return float_key(bit_cast<u32>(v), 0x7F800000u, a); }
DEVICE u64 key_of(f16 v, const sort_args &a) { return float_key<u16>(v.bits, 0x7C00, a); }
DEVICE u64 key_of(bf16 v, const sort_args &a) { return float_key<u16>(v.bits, 0x7F80, a); }
DEVICE u64 key_of(f64 v, const sort_args &a) { return float_key<u64>(bit_cast<u64>(v), 0x7FF0000000000000ull, a); }
DEVICE u64 key_of(u8 v, const sort_args &a) { return (u8)(v ^ a.flip); }
DEVICE u64 key_of(u32 v, const sort_args &a) { return (u32)(v ^ a.flip); }
DEVICE u64 key_of(i16 v, const sort_args &a) { return (u16)((u16)v ^ 0x8000 ^ a.flip); }
DEVICE u64 key_of(i32 v, const sort_args &a) { return (u32)((u32)v ^ 0x80000000u ^ a.flip); }
DEVICE u64 key_of(i64 v, const sort_args &a) { return (u64)v ^ (1ull << 63) ^ a.flip; }

/* ---- pairs: keys of up to 32 bits share a word with the place ---- */

template <int BYTES> struct pair_of {
    u64 v;
    static MEMBER pair_of make(u64 key, u32 place) { return {key << 32 | place}; }
    static MEMBER pair_of last() { return {~0ull}; }
    static MEMBER pair_of pick(bool first, pair_of x, pair_of y) { return {first ? x.v : y.v}; }
    MEMBER u32 place() const { return (u32)v; }
    MEMBER bool before(const pair_of &b) const { return v < b.v; }
};
template <> struct pair_of<8> {
    u64 key, at;
    static MEMBER pair_of make(u64 key, u32 place) { return {key, place}; }
    static MEMBER pair_of last() { return {~0ull, ~0ull}; }
    /* By members: a choice between structs is one between addresses, and puts them into memory on gfx12. */
    static MEMBER pair_of pick(bool first, pair_of x, pair_of y)
    {
        return {first ? x.key : y.key, first ? x.at : y.at};
    }
    MEMBER u32 place() const { return (u32)at; }
    MEMBER bool before(const pair_of &b) const { return key < b.key || (key == b.key && at < b.at); }
};

/* ---- results ---- */

template <class T, class P> DEVICE void put_result(const sort_args &a, i64 line, i64 i, const P &pair)
{
    if (a.indices)
        a.indices[line * a.k + i] = pair.place();
    if (a.values)
        ((T *)a.values)[line * a.k + i] = ((const T *)a.x)[walk_to(a.kept, line).x + pair.place()];
}

template <class T, class P> DEVICE P get_pair(const sort_args &a, i64 line, i64 i)
{
    if (a.from)
        return ((const P *)a.from)[line * a.n + i];
    return P::make(key_of(((const T *)a.x)[walk_to(a.kept, line).x + i], a), (u32)i);
}

/* ---- shared memory ---- */

enum { EACH = WK_SORT_TILE / WK_SORT_THREADS }; /* neighbouring pairs that a thread holds */

/* A tile with a gap after every EACH pairs, so that threads that walk theirs do so in different banks. */
template <class P> struct tile_of {
    P p[WK_SORT_TILE + WK_SORT_THREADS];
    MEMBER P &operator[](u32 i) { return p[i + i / EACH]; }
    MEMBER const P &operator[](u32 i) const { return p[i + i / EACH]; }
};

/* Two sorted runs of a tile. */
template <class P> struct part_of {
    const tile_of<P> *tile;
    u32 from;
    MEMBER const P &operator[](u32 i) const { return (*tile)[from + i]; }
};

template <class P> DEVICE void store_pairs(tile_of<P> &tile, const P *p)
{
    UNROLL
    for (u32 i = 0; i < EACH; i++)
        tile[thread_id() * EACH + i] = p[i];
}

/* ---- merging ---- */

/* Of the first n pairs of the sorted runs x and y together, how many are of x. */
template <class N, class X> DEVICE N merge_cut(X x, N nx, X y, N ny, N n)
{
    N lo = n > ny ? n - ny : 0, hi = lesser(n, nx);
    while (lo < hi) {
        N mid = (lo + hi) / 2;
        if (x[mid].before(y[n - 1 - mid]))
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* EACH pairs, from the at-th on, of the runs of nx and ny pairs that begin at x and y. */
template <class P> DEVICE void merge_some(const tile_of<P> &tile, u32 x, u32 nx, u32 y, u32 ny, u32 at, P *out)
{
    u32 of_x = merge_cut<u32>(part_of<P>{&tile, x}, nx, part_of<P>{&tile, y}, ny, at);
    u32 x_end = x + nx, y_end = y + ny;
    x += of_x;
    y += at - of_x;
    P next_x = x < x_end ? tile[x] : P::last(), next_y = y < y_end ? tile[y] : P::last();
    UNROLL
    for (u32 i = 0; i < EACH; i++) {
        bool take_x = y >= y_end || (x < x_end && next_x.before(next_y));
        out[i] = P::pick(take_x, next_x, next_y);
        x += take_x;
        y += !take_x;
        if (take_x)
            next_x = x < x_end ? tile[x] : P::last();
        else
            next_y = y < y_end ? tile[y] : P::last();
    }
}

/* ---- tiles ---- */

template <class P> DEVICE void order(P &a, P &b)
{
    bool swap = b.before(a);
    P t = P::pick(swap, b, a);
    b = P::pick(swap, a, b);
    a = t;
}

/* Batcher's network for the pairs of a thread. */
template <class P> DEVICE void sort_own(P *p)
{
    static_assert(EACH == 8, "a network for eight");
    order(p[0], p[1]), order(p[2], p[3]), order(p[4], p[5]), order(p[6], p[7]);
    order(p[0], p[2]), order(p[1], p[3]), order(p[4], p[6]), order(p[5], p[7]);
    order(p[1], p[2]), order(p[5], p[6]);
    order(p[0], p[4]), order(p[1], p[5]), order(p[2], p[6]), order(p[3], p[7]);
    order(p[2], p[4]), order(p[3], p[5]);
    order(p[1], p[2]), order(p[3], p[4]), order(p[5], p[6]);
}

/* Lines of `size` pairs (EACH or more, a power of two) side by side in a tile of `all`: every thread sorts its own, then
 * runs are merged two by two. */
template <class P> DEVICE void sort_tile(tile_of<P> &tile, u32 size, u32 all)
{
    u32 at = thread_id() * EACH;
    bool busy = at < all;
    P p[EACH];
    if (busy) {
        UNROLL
        for (u32 i = 0; i < EACH; i++)
            p[i] = tile[at + i];
        sort_own(p);
        store_pairs(tile, p);
    }
    barrier();
    for (u32 run = EACH; run < size; run *= 2) {
        u32 base = at & ~(2 * run - 1);
        if (busy)
            merge_some(tile, base, run, base + run, run, at - base, p);
        barrier();
        if (busy)
            store_pairs(tile, p);
        barrier();
    }
}

/* Short lines: several in a block, results at once. Long ones: a tile to a block, the first a.keep pairs of it. */
template <class T> DEVICE void sort_tiles(const sort_args &a)
{
    typedef pair_of<sizeof(T)> P;
    SHARED tile_of<P> room;
    u32 size = 1u << a.log_size, all = size * a.tile_lines;
    for (i64 block = block_id(); block < a.blocks; block += grid_blocks()) {
        i64 first = divide(block, a.tiles), tile = block - first * a.tiles.d;
        first *= a.tile_lines;
        for (u32 i = thread_id(); i < all; i += WK_SORT_THREADS) {
            i64 line = first + (i >> a.log_size), at = tile * size + (i & (size - 1));
            room[i] = line < a.lines && at < a.n ? get_pair<T, P>(a, line, at) : P::last();
        }
        barrier();
        sort_tile(room, size, all);
        for (u32 i = thread_id(); i < all; i += WK_SORT_THREADS) {
            i64 line = first + (i >> a.log_size);
            u32 at = i & (size - 1);
            if (line >= a.lines || at >= (u32)a.keep)
                continue;
            if (!a.to)
                put_result<T>(a, line, at, room[i]);
            else if (tile * a.keep + at < a.stride)
                ((P *)a.to)[line * a.stride + tile * a.keep + at] = room[i];
        }
        barrier();
    }
}

/* ---- runs in memory ---- */

/* Neighbouring runs of a line to one, a tile of the result to a block. */
template <class T> DEVICE void sort_merge(const sort_args &a)
{
    typedef pair_of<sizeof(T)> P;
    SHARED tile_of<P> room;
    SHARED i64 cuts[2];
    for (i64 block = block_id(); block < a.blocks; block += grid_blocks()) {
        i64 line = divide(block, a.tiles), begin = (block - line * a.tiles.d) * WK_SORT_TILE,
            end = lesser(begin + WK_SORT_TILE, a.n);
        i64 base = begin & -2 * a.run, nx = lesser(a.run, a.n - base), ny = lesser(a.run, a.n - base - nx);
        const P *x = (const P *)a.from + line * a.n + base, *y = x + nx;
        if (thread_id() < 2)
            cuts[thread_id()] = merge_cut<i64>(x, nx, y, ny, (thread_id() ? end : begin) - base);
        barrier();
        i64 x0 = cuts[0], y0 = begin - base - x0;
        u32 n = (u32)(end - begin), of_x = (u32)(cuts[1] - x0);
        for (u32 i = thread_id(); i < n; i += WK_SORT_THREADS)
            room[i] = i < of_x ? x[x0 + i] : y[y0 + (i - of_x)];
        barrier();
        P p[EACH];
        merge_some(room, 0, of_x, of_x, n - of_x, lesser(thread_id() * EACH, n), p);
        barrier();
        store_pairs(room, p);
        barrier();
        for (u32 i = thread_id(); i < n; i += WK_SORT_THREADS) {
            if (a.to)
                ((P *)a.to)[line * a.n + begin + i] = room[i];
            else if (begin + i < a.k)
                put_result<T>(a, line, begin + i, room[i]);
        }
        barrier();
    }
}
