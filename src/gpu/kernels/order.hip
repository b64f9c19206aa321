/* order.hip: pairs of a key and a place put into the order of the keys, equal ones as they were: a radix sort, eight
 * bits at a time, the lowest first. Each pass counts the digits of every tile, sums the counts up to where each tile's
 * digits go, and moves the pairs. */
#include "ids.h"
#include "order.h"

DEVICE u32 digit_of(u32 key, i32 shift) { return key >> shift & (WK_ORDER_DIGITS - 1); }

template <int THREADS> DEVICE void order_count(const order_args &a)
{
    SHARED u32 counts[WK_ORDER_DIGITS];
    static_assert(THREADS == WK_ORDER_DIGITS, "a thread for each digit");
    for (u32 block = block_id(); block < a.blocks; block += grid_blocks()) {
        counts[thread_id()] = 0;
        barrier();
        i64 begin = (i64)block * WK_ORDER_TILE, end = lesser(begin + WK_ORDER_TILE, a.n);
        for (i64 i = begin + thread_id(); i < end; i += THREADS)
            atomic_add(&counts[digit_of(a.keys[i], a.shift)], 1);
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

/* Counts the digits of keys [begin, end), less base, in `counts`, which the wave has to itself. */
DEVICE void count_part(const u32 *keys, i64 begin, i64 end, u32 base, i32 shift, u32 *counts)
{
    for (i64 i = begin + lane_id(); i < end; i += WAVE)
        atomic_add(&counts[digit_of(keys[i] - base, shift)], 1);
}

/* Moves the pairs [begin, end) of the wave, in order, so that equal digits stay in order. to: where the wave's next
 * pair of each digit goes. Every lane of the wave takes part. */
DEVICE void move_part(const u32 *keys, const u32 *places, u32 *to_keys, u32 *to_places, i64 begin, i64 end, u32 base,
                      i32 shift, u32 *to)
{
    for (i64 first = begin; first < end; first += WAVE) {
        i64 i = first + lane_id();
        bool valid = i < end;
        u32 key = valid ? keys[i] : 0, place = valid ? places[i] : 0;
        u32 digit = digit_of(key - base, shift);
        u64 same = wave_match<8>(digit, valid), lower = same & lanes_below();
        u32 target = to[digit] + count_bits(lower);
        wave_sync();
        if (valid && !lower)
            to[digit] += count_bits(same);
        wave_sync();
        if (valid) {
            to_keys[target] = key;
            to_places[target] = place;
        }
    }
}

template <int THREADS> DEVICE void order_move(const order_args &a)
{
    const int WAVES = THREADS / WAVE, PART = WK_ORDER_TILE / WAVES;
    SHARED u32 to[WAVES][WK_ORDER_DIGITS];
    for (u32 block = block_id(); block < a.blocks; block += grid_blocks()) {
        i64 begin = (i64)block * WK_ORDER_TILE + wave_id() * PART, end = lesser(begin + PART, a.n);
        UNROLL
        for (int w = 0; w < WAVES; w++)
            to[w][thread_id()] = 0;
        barrier();
        count_part(a.keys, begin, end, 0, a.shift, to[wave_id()]);
        barrier();
        u32 at = a.counts[(i64)thread_id() * a.blocks + block];
        UNROLL
        for (int w = 0; w < WAVES; w++) {
            u32 count = to[w][thread_id()];
            to[w][thread_id()] = at;
            at += count;
        }
        barrier();
        move_part(a.keys, a.places, a.to_keys, a.to_places, begin, end, 0, a.shift, to[wave_id()]);
        barrier();
    }
}

/* One pass over n pairs by one block; digits are those of key - base. */
template <int THREADS>
DEVICE void order_pass(const u32 *keys, const u32 *places, u32 *to_keys, u32 *to_places, i64 n, u32 base, i32 shift,
                       u32 (*to)[WK_ORDER_DIGITS], u32 *sums)
{
    const int WAVES = THREADS / WAVE;
    u32 t = thread_id(), part = (u32)(n + THREADS - 1) / THREADS * WAVE, total = 0;
    i64 begin = lesser((i64)wave_id() * part, n), end = lesser(begin + part, n);
    for (u32 k = t; k < WAVES * WK_ORDER_DIGITS; k += THREADS)
        to[0][k] = 0;
    barrier();
    count_part(keys, begin, end, base, shift, to[wave_id()]);
    barrier();
    if (t < WK_ORDER_DIGITS) {
        for (int w = 0; w < WAVES; w++)
            total += to[w][t];
        sums[t] = total;
    }
    barrier();
    for (u32 step = 1; step < WK_ORDER_DIGITS; step *= 2) {
        u32 add = t >= step && t < WK_ORDER_DIGITS ? sums[t - step] : 0;
        barrier();
        if (t < WK_ORDER_DIGITS)
            sums[t] += add;
        barrier();
    }
    if (t < WK_ORDER_DIGITS) {
        u32 at = sums[t] - total;
        for (int w = 0; w < WAVES; w++) {
            u32 count = to[w][t];
            to[w][t] = at;
            at += count;
        }
    }
    barrier();
    move_part(keys, places, to_keys, to_places, begin, end, base, shift, to[wave_id()]);
    barrier();
}

DEVICE u32 key_at(const order_args &a, i64 i)
{
    if (a.keys)
        return a.keys[i];
    i64 id = load_id(a.ids, a.id_bytes, i * a.id_step);
    return (u64)id < (u64)a.limit && id != id_padding(a.id_bytes) ? (u32)id : (u32)a.limit;
}

/* Of the wave's keys [begin, end) those before lo, and those of [lo, lo + width). */
DEVICE void count_range(const order_args &a, i64 begin, i64 end, u32 lo, u32 *before, u32 *inside)
{
    u32 b = 0, n = 0;
    UNROLL_BY_4
    for (i64 i = begin + lane_id(); i < end; i += WAVE) {
        u32 key = key_at(a, i);
        b += key < lo;
        n += key - lo < a.width;
    }
    *before = wave_reduce<op_sum>(b);
    *inside = wave_reduce<op_sum>(n);
}

/* The pairs of the wave that are in the range, in order. */
DEVICE void pick_range(const order_args &a, i64 begin, i64 end, u32 lo, u32 at, u32 *keys, u32 *places)
{
    UNROLL_BY_4
    for (i64 f = begin; f < end; f += WAVE) {
        i64 i = f + lane_id();
        u32 key = i < end ? key_at(a, i) : 0;
        bool mine = i < end && key - lo < a.width;
        u64 lanes = wave_ballot(mine);
        u32 slot = at + count_bits(lanes & lanes_below());
        if (mine) {
            keys[slot] = key;
            places[slot] = a.keys ? a.places[i] : (u32)i;
        }
        at += count_bits(lanes);
    }
}

/* Every thread has a pair and counts those that belong before it. */
DEVICE void order_by_rank(const u32 *keys, const u32 *places, u32 n, u32 *to_keys, u32 *to_places)
{
    u32 t = thread_id();
    if (t >= n)
        return;
    u32 key = keys[t], rank = 0;
    UNROLL_BY_4
    for (u32 j = 0; j < n; j++)
        rank += keys[j] < key || (keys[j] == key && j < t);
    to_keys[rank] = key;
    to_places[rank] = places[t];
}

/* Few pairs, all by one launch: each block has a range of `width` keys, which it picks from all pairs, in order, and sorts by
 * itself. */
template <int THREADS> DEVICE void order_ranges(const order_args &a)
{
    const int WAVES = THREADS / WAVE;
    SHARED u32 to[WAVES][WK_ORDER_DIGITS]; /* or keys and places of as many pairs as there are threads */
    SHARED u32 sums[WK_ORDER_DIGITS], before[WAVES], inside[WAVES];
    static_assert(WAVES * WK_ORDER_DIGITS >= 2 * THREADS, "room for the pairs");
    u32 lo = block_id() * a.width, part = (u32)(a.n + THREADS - 1) / THREADS * WAVE, b, n, first = 0, count = 0, at = 0;
    i64 begin = lesser((i64)wave_id() * part, a.n), end = lesser(begin + part, a.n);
    count_range(a, begin, end, lo, &b, &n);
    if (lane_id() == 0) {
        before[wave_id()] = b;
        inside[wave_id()] = n;
    }
    if (!a.keys && block_id() == 0) {
        for (i64 i = begin + lane_id(); i < end; i += WAVE)
            id_leads(load_id(a.ids, a.id_bytes, i * a.id_step), a.id_bytes, a.limit, a.report);
    }
    barrier();
    for (u32 w = 0; w < WAVES; w++) {
        first += before[w];
        count += inside[w];
        at += w < wave_id() ? inside[w] : 0;
    }
    u32 *final_keys = a.to_keys + first, *final_places = a.to_places + first;
    if (count <= THREADS) {
        pick_range(a, begin, end, lo, at, to[0], to[0] + THREADS);
        barrier();
        order_by_rank(to[0], to[0] + THREADS, count, final_keys, final_places);
        return;
    }
    u32 *mid_keys = a.mid_keys + first, *mid_places = a.mid_places + first;
    bool odd = a.passes & 1; /* so that the last pass ends where it should */
    pick_range(a, begin, end, lo, at, odd ? mid_keys : final_keys, odd ? mid_places : final_places);
    barrier();
    for (i32 pass = 0; pass < a.passes; pass++) {
        bool up = (a.passes - pass) & 1;
        order_pass<THREADS>(up ? mid_keys : final_keys, up ? mid_places : final_places, up ? final_keys : mid_keys,
                            up ? final_places : mid_places, count, lo, pass * 8, to, sums);
    }
}
