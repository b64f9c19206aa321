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
    MEMBER u32 place() const { return (u32)v; }
    MEMBER bool before(const pair_of &b) const { return v < b.v; }
};
template <> struct pair_of<8> {
    u64 key, at;
    static MEMBER pair_of make(u64 key, u32 place) { return {key, place}; }
    static MEMBER pair_of last() { return {~0ull, ~0ull}; }
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

/* ---- tiles: sorted in shared memory ---- */

/* A bitonic network over lines of `size` pairs, a power of two, in `all` of them. */
template <class P> DEVICE void sort_shared(P *p, u32 size, u32 all)
{
    for (u32 k = 2; k <= size; k *= 2) {
        for (u32 j = k / 2; j; j /= 2) {
            for (u32 t = thread_id(); t < all / 2; t += WK_SORT_THREADS) {
                u32 lo = 2 * t - (t & (j - 1)), hi = lo + j;
                bool up = (lo & k & (size - 1)) == 0;
                P x = p[lo], y = p[hi];
                if (y.before(x) == up) {
                    p[lo] = y;
                    p[hi] = x;
                }
            }
            barrier();
        }
    }
}

/* Short lines: several in a block, results at once. Long ones: a tile to a block, the first a.keep pairs of it. */
template <class T> DEVICE void sort_tiles(const sort_args &a)
{
    typedef pair_of<sizeof(T)> P;
    SHARED P room[WK_SORT_TILE];
    u32 size = 1u << a.log_size, all = size * a.tile_lines;
    for (i64 block = block_id(); block < a.blocks; block += grid_blocks()) {
        i64 first = divide(block, a.tiles), tile = block - first * a.tiles.d;
        first *= a.tile_lines;
        for (u32 i = thread_id(); i < all; i += WK_SORT_THREADS) {
            i64 line = first + (i >> a.log_size), at = tile * size + (i & (size - 1));
            room[i] = line < a.lines && at < a.n ? get_pair<T, P>(a, line, at) : P::last();
        }
        barrier();
        sort_shared(room, size, all);
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

/* ---- merging ---- */

/* Of the first `n` pairs of both runs together, how many are of x. */
template <class P> DEVICE i64 merge_cut(const P *x, i64 nx, const P *y, i64 ny, i64 n)
{
    i64 lo = n > ny ? n - ny : 0, hi = lesser(n, nx);
    while (lo < hi) {
        i64 mid = (lo + hi) / 2;
        if (x[mid].before(y[n - 1 - mid]))
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* A thread's share of a tile, from shared memory. */
template <class P> DEVICE void merge_shared(const P *room, u32 nx, u32 n, P *out)
{
    const u32 each = WK_SORT_TILE / WK_SORT_THREADS;
    u32 at = lesser(thread_id() * each, n);
    u32 x = (u32)merge_cut(room, nx, room + nx, n - nx, at), y = at - x + nx;
    UNROLL
    for (u32 i = 0; i < each; i++) {
        bool from_x = x < nx && (y >= n || room[x].before(room[y]));
        u32 take = from_x ? x : y;
        out[i] = room[take < n ? take : 0];
        x += from_x;
        y += !from_x;
    }
}

/* Neighbouring runs of a line to one, a tile of the result to a block. */
template <class T> DEVICE void sort_merge(const sort_args &a)
{
    typedef pair_of<sizeof(T)> P;
    const u32 each = WK_SORT_TILE / WK_SORT_THREADS;
    SHARED P room[WK_SORT_TILE];
    SHARED i64 cuts[2];
    for (i64 block = block_id(); block < a.blocks; block += grid_blocks()) {
        i64 line = divide(block, a.tiles), begin = (block - line * a.tiles.d) * WK_SORT_TILE,
            end = lesser(begin + WK_SORT_TILE, a.n);
        const P *from = (const P *)a.from + line * a.n;
        i64 base = begin & -2 * a.run;
        i64 nx = lesser(a.run, a.n - base), ny = lesser(a.run, a.n - base - nx);
        const P *x = from + base, *y = x + nx;
        if (thread_id() < 2)
            cuts[thread_id()] = merge_cut(x, nx, y, ny, (thread_id() ? end : begin) - base);
        barrier();
        i64 x0 = cuts[0], y0 = begin - base - x0;
        u32 n = (u32)(end - begin), of_x = (u32)(cuts[1] - x0);
        for (u32 i = thread_id(); i < n; i += WK_SORT_THREADS)
            room[i] = i < of_x ? x[x0 + i] : y[y0 + (i - of_x)];
        barrier();
        P out[each];
        merge_shared(room, of_x, n, out);
        barrier();
        UNROLL
        for (u32 i = 0; i < each; i++) {
            if (thread_id() * each + i < n)
                room[thread_id() * each + i] = out[i];
        }
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
