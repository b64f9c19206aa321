/* order.hip: pairs of a key and a place put into the order of the keys, equal ones as they were: a radix sort, eight
 * bits at a time, the lowest first. Each pass counts the digits of every tile, sums the counts up to where each tile's
 * digits go, and moves the pairs. */
#include "device.h"
#include "order.h"

DEVICE u32 digit_of(const order_args &a, u32 key) { return key >> a.shift & (WK_ORDER_DIGITS - 1); }

template <int THREADS> DEVICE void order_count(const order_args &a)
{
    SHARED u32 counts[WK_ORDER_DIGITS];
    static_assert(THREADS == WK_ORDER_DIGITS, "a thread for each digit");
    for (u32 block = block_id(); block < a.blocks; block += grid_blocks()) {
        counts[thread_id()] = 0;
        barrier();
        i64 begin = (i64)block * WK_ORDER_TILE, end = lesser(begin + WK_ORDER_TILE, a.n);
        for (i64 i = begin + thread_id(); i < end; i += THREADS)
            atomic_add(&counts[digit_of(a, a.keys[i])], 1);
        barrier();
        a.counts[(i64)thread_id() * a.blocks + block] = counts[thread_id()];
        barrier();
    }
}

/* The counts become the sums of all before them, by one block: each thread takes a run of them. */
template <int THREADS> DEVICE void order_sum(const order_args &a)
{
    SHARED u32 sums[THREADS];
    i64 n = (i64)WK_ORDER_DIGITS * a.blocks, each = (n + THREADS - 1) / THREADS;
    i64 begin = lesser(thread_id() * each, n), end = lesser(begin + each, n);
    u32 sum = 0, before = 0;
    for (i64 i = begin; i < end; i++)
        sum += a.counts[i];
    sums[thread_id()] = sum;
    barrier();
    for (u32 step = 1; step < THREADS; step *= 2) {
        u32 add = thread_id() >= step ? sums[thread_id() - step] : 0;
        barrier();
        sums[thread_id()] += add;
        barrier();
    }
    before = thread_id() ? sums[thread_id() - 1] : 0;
    for (i64 i = begin; i < end; i++) {
        u32 count = a.counts[i];
        a.counts[i] = before;
        before += count;
    }
}

/* A wave keeps a part of the tile to itself and walks it in order, so that equal digits stay in order. */
template <int THREADS> DEVICE void order_move(const order_args &a)
{
    const int WAVES = THREADS / WAVE, PART = WK_ORDER_TILE / WAVES;
    SHARED u32 to[WAVES][WK_ORDER_DIGITS];
    for (u32 block = block_id(); block < a.blocks; block += grid_blocks()) {
        i64 begin = (i64)block * WK_ORDER_TILE + wave_id() * PART;
        u32 *mine = to[wave_id()];
        UNROLL
        for (int w = 0; w < WAVES; w++)
            to[w][thread_id()] = 0;
        barrier();
        for (int k = lane_id(); k < PART; k += WAVE) {
            if (begin + k < a.n)
                atomic_add(&mine[digit_of(a, a.keys[begin + k])], 1);
        }
        barrier();
        u32 at = a.counts[(i64)thread_id() * a.blocks + block];
        UNROLL
        for (int w = 0; w < WAVES; w++) {
            u32 count = to[w][thread_id()];
            to[w][thread_id()] = at;
            at += count;
        }
        barrier();
        for (int k = lane_id(); k < PART; k += WAVE) {
            bool valid = begin + k < a.n;
            u32 key = valid ? a.keys[begin + k] : 0, place = valid ? a.places[begin + k] : 0;
            u32 digit = digit_of(a, key);
            u64 same = wave_match<8>(digit, valid), lower = same & lanes_below();
            u32 target = mine[digit] + count_bits(lower);
            wave_sync();
            if (valid && !lower)
                mine[digit] += count_bits(same);
            wave_sync();
            if (valid) {
                a.to_keys[target] = key;
                a.to_places[target] = place;
            }
        }
        barrier();
    }
}
