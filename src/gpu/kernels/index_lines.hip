/* index_lines.hip: reading from and adding to lines along dim that fit into shared memory. */
#include "ids.h"
#include "index.h"
#include "index_sum.h"

struct line_of {
    i64 from, big, small, id;
};

DEVICE line_of locate_line(const lines_args &a, u32 at)
{
    line_of l = {0, 0, 0, 0};
    UNROLL_DIMS
    for (int d = 0; d < WK_DIMS; d++) {
        if (d >= a.rank)
            break;
        u32 rest = divide(at, a.shape[d]);
        i64 i = at - rest * a.shape[d].d;
        at = rest;
        l.from += i * a.from_step[d];
        l.big += i * a.big_step[d];
        l.small += i * a.small_step[d];
        l.id += i * a.id_step[d];
    }
    return l;
}

/* ---- a block for each line ---- */

enum { NOWHERE = 0xFFFFFFFF };

/* The element of a thread in step s, PAIR of them. */
template <int PAIR> DEVICE int nth(int s) { return (s * WK_LINE_THREADS + (int)thread_id()) * PAIR; }

/* A thread's ids, `left` of all threads, as places in [first, first + width); those that lead elsewhere: nowhere. PAIR
 * neighbouring ones are loaded at once. */
template <int STEPS, int PAIR>
DEVICE void fetch_places(const lines_args &a, i64 at, int left, u32 first, u32 width, u32 nowhere, u32 (*place)[PAIR])
{
    u32 largest = 0, id[STEPS * PAIR][2]; /* low and high words */
    if (PAIR == 2 && a.id_bytes == -8) { /* no branch between the loads, nor work on what they bring */
        UNROLL
        for (int s = 0; s < STEPS; s++) {
            pack<u32, 4> p = load_once<4>((const u32 *)a.ids + (at + (nth<PAIR>(s) < left ? nth<PAIR>(s) : 0)) * 2);
            UNROLL
            for (int i = 0; i < PAIR * 2; i++)
                id[s * PAIR + i / 2][i % 2] = p.v[i];
        }
    } else {
        UNROLL
        for (int s = 0; s < STEPS * PAIR; s++) {
            int i = nth<PAIR>(s / PAIR) < left ? nth<PAIR>(s / PAIR) : 0;
            i64 v = load_id(a.ids, a.id_bytes, at + (i + s % PAIR) * a.id_along);
            id[s][0] = (u32)v;
            id[s][1] = v == id_padding(a.id_bytes) || (u64)v >> 32;
        }
    }
    u32 high = 0;
    UNROLL
    for (int s = 0; s < STEPS * PAIR; s++)
        high |= id[s][1];
    UNROLL
    for (int s = 0; high && s < STEPS * PAIR; s++) /* hardly ever */
        id[s][0] = id[s][1] ? (u32)NOWHERE : id[s][0];
    UNROLL
    for (int s = 0; s < STEPS * PAIR; s++) {
        u32 to = id[s][0];
        largest = greater(largest, to);
        place[s / PAIR][s % PAIR] = to - first < (nth<PAIR>(s / PAIR) < left ? width : 0) ? to - first : nowhere;
    }
    for (int s = 0; largest >= (u32)a.size && s < STEPS; s++) { /* which it was is said by looking again */
        for (int e = 0; e < PAIR && nth<PAIR>(s) < left; e++)
            id_leads(load_id(a.ids, a.id_bytes, at + (nth<PAIR>(s) + e) * a.id_along), a.id_bytes, a.size, a.report);
    }
}

/* The line into shared memory, by all threads of the block. */
template <class T, int KB> DEVICE void stage_line(const lines_args &a, const T *big, T *line)
{
    const int VEC = 16 / sizeof(T), EACH = KB * 64 / WK_LINE_THREADS;
    if (!a.packed) {
        for (i64 i = thread_id(); i < a.size; i += WK_LINE_THREADS)
            line[i] = big[i * a.big_along];
        return;
    }
#ifdef WK_NVIDIA /* no registers: more blocks at once */
    UNROLL
    for (int k = 0; k < EACH; k++) {
        int at = (k * WK_LINE_THREADS + (int)thread_id()) * VEC;
        if (at < a.size)
            copy_async(line + at, big + at, true);
    }
#else
    pack<T, VEC> p[EACH];
    UNROLL
    for (int k = 0; k < EACH; k++) {
        int at = (k * WK_LINE_THREADS + (int)thread_id()) * VEC;
        p[k] = load_once<VEC>(big + (at < a.size ? at : 0));
    }
    UNROLL
    for (int k = 0; k < EACH; k++) {
        int at = (k * WK_LINE_THREADS + (int)thread_id()) * VEC;
        if (at < a.size)
            store<VEC>(line + at, p[k]);
    }
#endif
}

/* The line is there for all threads of the block. */
DEVICE void stage_wait()
{
#ifdef WK_NVIDIA
    copies_wait();
#endif
    barrier();
}

/* small from big: the line of big is read once, in order, and the elements are picked from shared memory. PAIR 2: lines
 * of ids and of small are packed, even and aligned. */
template <class T, int KB, int PAIR> DEVICE void lines_gather(const lines_args &a)
{
    const int STEPS = 4, CHUNK = STEPS * WK_LINE_THREADS * PAIR;
    SHARED alignas(16) T line[KB * 1024 / sizeof(T)];
    for (u32 unit = block_id(); unit < (u32)a.lines; unit += grid_blocks()) {
        line_of l = locate_line(a, unit);
        for (int base = 0; base < (int)a.n; base += CHUNK) {
            T *small = (T *)a.small + l.small + base * a.small_along;
            int left = (int)a.n - base;
            u32 place[STEPS][PAIR];
            if (base == 0)
                stage_line<T, KB>(a, (const T *)a.big + l.big, line);
            fetch_places<STEPS, PAIR>(a, l.id + base * a.id_along, left, 0, (u32)a.size, NOWHERE, place);
            if (base == 0)
                stage_wait();
            UNROLL
            for (int s = 0; s < STEPS; s++) {
                pack<T, PAIR> v = {};
                UNROLL
                for (int e = 0; e < PAIR; e++) {
                    if (place[s][e] != NOWHERE)
                        v.v[e] = line[place[s][e]];
                }
                if (nth<PAIR>(s) < left)
                    store<PAIR>(small + (PAIR == 2 ? nth<PAIR>(s) : nth<PAIR>(s) * a.small_along), v);
            }
        }
        barrier();
    }
}

/* ---- adding by a block ----
 *
 * The values of a chunk of ids are put side by side by the place they lead to, by counting; within a place they lie in
 * whatever order they came. Two are added alike in either order; three and more are added in the order of their bits, so
 * that the sum is the same every time. */

enum { FEW = 4, MANY = 32 }; /* values of a place: sorted in registers; looked through by one thread */

template <class A> struct bits_of {
    typedef u32 type;
};
template <> struct bits_of<f64> {
    typedef u64 type;
};
template <> struct bits_of<u64> {
    typedef u64 type;
};

template <class K> DEVICE void put_in_order(K &a, K &b)
{
    K low = lesser(a, b);
    b = greater(a, b);
    a = low;
}

template <class A> DEVICE A sum_of_few(const A *v, u32 n)
{
    typedef typename bits_of<A>::type K;
    K a = bit_cast<K>(v[0]), b = bit_cast<K>(v[1]), c = bit_cast<K>(v[2]), d = n == FEW ? bit_cast<K>(v[3]) : ~(K)0;
    put_in_order(a, b);
    put_in_order(c, d);
    put_in_order(a, c);
    put_in_order(b, d);
    put_in_order(b, c);
    A sum = bit_cast<A>(a) + bit_cast<A>(b) + bit_cast<A>(c);
    return n == FEW ? sum + bit_cast<A>(d) : sum;
}

/* The next larger ones are looked for again and again. */
template <class A> DEVICE A sum_of_more(const A *v, u32 n)
{
    typedef typename bits_of<A>::type K;
    A sum = 0;
    K last = 0;
    for (u32 done = 0; done < n;) {
        K best = ~(K)0;
        u32 equal = 0;
        for (u32 i = 0; i < n; i++) {
            K k = bit_cast<K>(v[i]);
            bool later = done == 0 || k > last, smaller = k < best;
            equal = later && smaller ? 1 : equal + (later && k == best);
            best = later && smaller ? k : best;
        }
        for (u32 i = 0; i < equal; i++)
            sum += bit_cast<A>(best);
        done += equal;
        last = best;
    }
    return sum;
}

/* What all threads before this one have together. room: a number for each wave. */
DEVICE u32 sum_before(u32 mine, u32 *room)
{
    u32 sum = mine, before = 0;
    UNROLL
    for (u32 d = 1; d < WAVE; d *= 2) {
        u32 other = shuffle(sum, lane_id() >= d ? lane_id() - d : lane_id());
        sum += lane_id() >= d ? other : 0;
    }
    if (lane_id() == WAVE - 1)
        room[wave_id()] = sum;
    barrier();
    for (u32 w = 0; w < wave_id(); w++)
        before += room[w];
    return before + sum - mine;
}

/* The room of a block that adds. */
template <class A, int SIZE> struct add_room {
    u32 places[SIZE]; /* how many values a place has; then where they begin, and << 16 how many */
    A values[WK_LINE_IDS];
    A waves[WK_LINE_THREADS / 32];
    u32 counts[WK_LINE_THREADS / 32];
    u32 more[WK_LINE_IDS / FEW], n_more; /* places with more than FEW values */
};

/* The values of a chunk, those of a place side by side. */
template <class T, int SIZE, int PAIR>
DEVICE void sort_chunk(const lines_args &a, const line_of &l, int base, u32 first, u32 width, add_room<sum<T>, SIZE> &r)
{
    const int STEPS = 4, GROUPS = SIZE / WK_LINE_THREADS / 4;
    u32 place[STEPS][PAIR], mine = 0;
    pack<T, PAIR> value[STEPS];
    pack<u32, 4> count[GROUPS];
    const T *small = (const T *)a.small + l.small + base * a.small_along;
    int left = (int)a.n - base;
    fetch_places<STEPS, PAIR>(a, l.id + base * a.id_along, left, first, width, NOWHERE, place);
    UNROLL
    for (int s = 0; s < STEPS; s++) {
        int i = nth<PAIR>(s) < left ? nth<PAIR>(s) : 0;
        value[s] = load_once<PAIR>(small + (PAIR == 2 ? i : i * a.small_along));
    }
    UNROLL
    for (int g = 0; g < GROUPS; g++)
        store<4>(r.places + nth<4>(g), pack<u32, 4>{});
    barrier();
    if (thread_id() == 0)
        r.n_more = 0;
    UNROLL
    for (int s = 0; s < STEPS * PAIR; s++) {
        u32 &to = place[s / PAIR][s % PAIR];
        if (to != NOWHERE)
            to |= atomic_next(&r.places[to]) << 16;
    }
    barrier();
    UNROLL
    for (int g = 0; g < GROUPS; g++) {
        count[g] = load<4>(r.places + nth<4>(g));
        mine += count[g].v[0] + count[g].v[1] + count[g].v[2] + count[g].v[3];
    }
    u32 next = sum_before(mine, r.counts);
    UNROLL
    for (int g = 0; g < GROUPS; g++) {
        UNROLL
        for (int e = 0; e < 4; e++) {
            u32 n = count[g].v[e];
            count[g].v[e] = next | n << 16;
            next += n;
        }
        store<4>(r.places + nth<4>(g), count[g]);
    }
    barrier();
    UNROLL
    for (int s = 0; s < STEPS * PAIR; s++) {
        u32 to = place[s / PAIR][s % PAIR];
        if (to != NOWHERE)
            r.values[(r.places[to & 0xFFFF] & 0xFFFF) + (to >> 16)] = to_sum(value[s / PAIR].v[s % PAIR]);
    }
    barrier();
}

/* The sum of a place with more than FEW values takes the place of the first of them: by one thread, or by all of the block
 * together, each adding its own in order. */
template <class T, int SIZE>
DEVICE void sum_up_more(const lines_args &a, const line_of &l, int base, int chunk, u32 first, add_room<sum<T>, SIZE> &r)
{
    for (u32 k = thread_id(); k < r.n_more; k += WK_LINE_THREADS) {
        u32 where = r.places[r.more[k]], n = where >> 16;
        if (n <= MANY)
            r.values[where & 0xFFFF] = sum_of_more(r.values + (where & 0xFFFF), n);
    }
    for (u32 k = 0; k < r.n_more; k++) {
        u32 where = r.places[r.more[k]];
        if (where >> 16 <= MANY)
            continue;
        sum<T> mine = 0;
        for (int i = base + (int)thread_id(); i < lesser(base + chunk, (int)a.n); i += WK_LINE_THREADS) {
            if (load_id(a.ids, a.id_bytes, l.id + i * a.id_along) == (i64)(first + r.more[k]))
                mine += to_sum(((const T *)a.small)[l.small + i * a.small_along]);
        }
        mine = block_reduce<op_sum, WK_LINE_THREADS>(mine, r.waves);
        if (thread_id() == 0)
            r.values[where & 0xFFFF] = mine;
    }
    barrier();
}

/* A chunk's values onto the thread's part of the line. */
template <class T, int SIZE>
DEVICE void add_chunk(const lines_args &a, const line_of &l, int base, int chunk, u32 first, add_room<sum<T>, SIZE> &r,
                      sum<T> (*total)[4])
{
    const int GROUPS = SIZE / WK_LINE_THREADS / 4;
    UNROLL
    for (int c = 0; c < GROUPS * 4; c++) {
        u32 place = (c / 4 * WK_LINE_THREADS + thread_id()) * 4 + c % 4, where = r.places[place], n = where >> 16;
        const sum<T> *v = r.values + (where & 0xFFFF);
        if (n > FEW)
            r.more[atomic_next(&r.n_more)] = place;
        else if (n)
            total[c / 4][c % 4] += n == 1 ? v[0] : n == 2 ? v[0] + v[1] : sum_of_few(v, n);
    }
    barrier();
    if (r.n_more == 0)
        return;
    sum_up_more<T, SIZE>(a, l, base, chunk, first, r);
    UNROLL
    for (int c = 0; c < GROUPS * 4; c++) {
        u32 where = r.places[(c / 4 * WK_LINE_THREADS + thread_id()) * 4 + c % 4];
        if (where >> 16 > FEW)
            total[c / 4][c % 4] += r.values[where & 0xFFFF];
    }
    barrier();
}

/* ---- adding where few values meet ----
 *
 * Most places get no more than SLOTS values of a chunk: those lie in slots of their own, in whatever order they came, and
 * further ones in a list. Where a place gets more than MOST, or the list is full, the chunk is sorted instead. Empty slots
 * hold -0, which added to anything leaves it as it is. */

enum { SLOTS = WK_LINE_SLOTS, MOST = 8 };

template <class A, int SIZE> struct slot_room {
    u32 counts[SIZE + WAVE]; /* behind the places: of what leads nowhere, from SLOTS on, so that no branch is needed */
    A slots[SLOTS][SIZE];
    A list[WK_LINE_LIST];
    u32 list_places[WK_LINE_LIST], n_list, beyond; /* a place, and << 16 which of its values */
};
static_assert(WK_LINE_LIST <= WK_LINE_THREADS, "a thread for each of the list");

/* Empties the slots of the thread's group of places. */
template <class A, int SIZE> DEVICE void empty_slots(slot_room<A, SIZE> &r, int group)
{
    A none = -(A)0;
    store<4>(r.counts + nth<4>(group), pack<u32, 4>{});
    UNROLL
    for (int s = 0; s < SLOTS; s++)
        store<4>(r.slots[s] + nth<4>(group), pack<A, 4>{{none, none, none, none}});
}

/* Empties all of them. */
template <class A, int SIZE> DEVICE void empty_room(slot_room<A, SIZE> &r)
{
    UNROLL
    for (int g = 0; g < SIZE / WK_LINE_THREADS / 4; g++)
        empty_slots(r, g);
    if (thread_id() < WAVE)
        r.counts[SIZE + thread_id()] = SLOTS;
    if (thread_id() == 0)
        r.n_list = r.beyond = 0;
    barrier();
}

/* A thread's part of a chunk. */
enum { STEPS = 4 };
template <class T, int PAIR> struct chunk_part {
    pack<T, PAIR> value[STEPS];
    u32 place[STEPS][PAIR];
};

template <class T, int SIZE, int PAIR>
DEVICE void fetch_chunk(const lines_args &a, const line_of &l, int base, u32 first, u32 width, chunk_part<T, PAIR> &c)
{
    const T *small = (const T *)a.small + l.small + base * a.small_along;
    int left = (int)a.n - base;
    UNROLL
    for (int s = 0; s < STEPS; s++) {
        int i = nth<PAIR>(s) < left ? nth<PAIR>(s) : 0;
        c.value[s] = load_once<PAIR>(small + (PAIR == 2 ? i : i * a.small_along));
    }
    fetch_places<STEPS, PAIR>(a, l.id + base * a.id_along, left, first, width, SIZE + lane_id(), c.place);
}

/* The values of a chunk into their slots; false: they do not fit. */
template <class T, int SIZE, int PAIR> DEVICE bool slot_chunk(const chunk_part<T, PAIR> &c, slot_room<sum<T>, SIZE> &r)
{
    u32 number[STEPS][PAIR], most = 0;
    UNROLL
    for (int s = 0; s < STEPS * PAIR; s++) /* all on their way before the first is looked at */
        number[s / PAIR][s % PAIR] = atomic_next(&r.counts[c.place[s / PAIR][s % PAIR]]);
    UNROLL
    for (int s = 0; s < STEPS * PAIR; s++) {
        u32 n = number[s / PAIR][s % PAIR];
        if (n < SLOTS)
            r.slots[n][c.place[s / PAIR][s % PAIR]] = to_sum(c.value[s / PAIR].v[s % PAIR]);
        most = greater(most, n);
    }
    UNROLL
    for (int s = 0; most >= SLOTS && s < STEPS * PAIR; s++) {
        u32 n = number[s / PAIR][s % PAIR], to = c.place[s / PAIR][s % PAIR];
        if (n >= SLOTS && to < SIZE) {
            u32 at = atomic_next(&r.n_list);
            if (n < MOST && at < WK_LINE_LIST)
                r.list[at] = to_sum(c.value[s / PAIR].v[s % PAIR]), r.list_places[at] = to | n << 16;
            else
                atomic_next(&r.beyond);
        }
    }
    barrier();
    return !r.beyond;
}

/* Four, in order. */
template <class K> DEVICE void sort_four(K *k)
{
    put_in_order(k[0], k[1]);
    put_in_order(k[2], k[3]);
    put_in_order(k[0], k[2]);
    put_in_order(k[1], k[3]);
    put_in_order(k[1], k[2]);
}

/* All values of a place, the first to be listed of which is the thread's own, become their sum. */
template <class A, int SIZE> DEVICE void sum_listed(slot_room<A, SIZE> &r)
{
    typedef typename bits_of<A>::type K;
    static_assert(SLOTS == 4 && MOST == 8, "two fours");
    u32 mine = r.list_places[thread_id()], place = mine & 0xFFFF, n = r.counts[place];
    if (mine >> 16 != SLOTS)
        return;
    K k[MOST];
    UNROLL
    for (int i = 0; i < MOST; i++)
        k[i] = i < SLOTS ? bit_cast<K>(r.slots[i][place]) : ~(K)0;
    UNROLL_BY_4
    for (u32 j = 0; j < r.n_list; j++) { /* what the list has of the place moves in from one end */
        bool here = (r.list_places[j] & 0xFFFF) == place;
        K next = bit_cast<K>(r.list[j]);
        k[7] = here ? k[6] : k[7];
        k[6] = here ? k[5] : k[6];
        k[5] = here ? k[4] : k[5];
        k[4] = here ? next : k[4];
    }
    sort_four(k);
    sort_four(k + 4);
    UNROLL
    for (int i = 0; i < 4; i++) /* two sorted fours are merged */
        put_in_order(k[i], k[i + 4]);
    put_in_order(k[2], k[4]);
    put_in_order(k[3], k[5]);
    UNROLL
    for (int i = 1; i < 6; i += 2)
        put_in_order(k[i], k[i + 1]);
    A sum = bit_cast<A>(k[0]);
    UNROLL
    for (u32 i = 1; i < MOST; i++)
        sum = i < n ? sum + bit_cast<A>(k[i]) : sum;
    UNROLL
    for (int i = 0; i < SLOTS; i++)
        r.slots[i][place] = i ? -(A)0 : sum;
}

/* The sum of values in slots, the same in whatever order they came: the largest of what three ways to pair them give, which
 * costs less than to sort them. */
DEVICE f32 sum_slots(const pack<f32, 4> *v, int e)
{
    static_assert(SLOTS == 4, "pairs of pairs");
    f32 a = v[0].v[e], b = v[1].v[e], c = v[2].v[e], d = v[3].v[e];
    return max_number(max_number((a + b) + (c + d), (a + c) + (b + d)), (a + d) + (b + c));
}

/* The slots' values onto the thread's part of the line, and the slots empty. What the list has is summed up before, by the
 * thread of a place's first value there: then all places are alike. */
template <class A, int SIZE> DEVICE void add_slots(slot_room<A, SIZE> &r, A (*total)[4])
{
    const int GROUPS = SIZE / WK_LINE_THREADS / 4;
    if (r.n_list) {
        if (thread_id() < r.n_list)
            sum_listed<A, SIZE>(r);
        barrier();
        if (thread_id() == 0)
            r.n_list = 0;
    }
    UNROLL
    for (int g = 0; g < GROUPS; g++) {
        pack<A, 4> v[SLOTS];
        UNROLL
        for (int s = 0; s < SLOTS; s++)
            v[s] = load<4>(r.slots[s] + nth<4>(g));
        UNROLL
        for (int e = 0; e < 4; e++)
            total[g][e] += sum_slots(v, e);
        empty_slots(r, g);
    }
    barrier();
}

/* A thread's part of a line: groups of four neighbours. */
template <class T, int GROUPS> DEVICE void fetch_part(const T *from, i64 along, bool packed, int width, sum<T> (*v)[4])
{
    UNROLL
    for (int g = 0; g < GROUPS; g++) {
        int at = nth<4>(g);
        pack<T, 4> p = {};
        if (packed && at < width)
            p = load_once<4>(from + at);
        UNROLL
        for (int e = 0; e < 4 && !packed; e++) {
            if (at + e < width)
                p.v[e] = from[(at + e) * along];
        }
        UNROLL
        for (int e = 0; e < 4; e++)
            v[g][e] = to_sum(p.v[e]);
    }
}

template <class T, int GROUPS> DEVICE void store_part(T *to, i64 along, bool packed, int width, sum<T> (*v)[4])
{
    UNROLL
    for (int g = 0; g < GROUPS; g++) {
        int at = nth<4>(g);
        pack<T, 4> p;
        UNROLL
        for (int e = 0; e < 4; e++)
            p.v[e] = from_sum<T>(v[g][e]);
        if (packed && at < width)
            store<4>(to + at, p);
        UNROLL
        for (int e = 0; e < 4 && !packed; e++) {
            if (at + e < width)
                to[(at + e) * along] = p.v[e];
        }
    }
}

/* Asks for what lies in memory from p on, before it is needed. */
DEVICE void ask_for(const void *p, i64 bytes)
{
    u64 from = (u64)p & ~(u64)15;
    u32 whole = (u32)((u64)p + bytes - from) & ~15u;
    if (whole)
        fetch_ahead((const void *)from, whole);
}

/* The same for the first chunk of a unit, whose ids and small ones follow memory. */
template <class T, int SIZE> DEVICE void ask_for_unit(const lines_args &a, u32 unit, i64 chunk)
{
    u32 line = divide(unit, a.tiles), first = (unit - line * a.tiles.d) * SIZE;
    line_of l = locate_line(a, line);
    i64 n = lesser(a.n, chunk), id_bytes = a.id_bytes < 0 ? -a.id_bytes : a.id_bytes;
    ask_for((const u8 *)a.ids + l.id * id_bytes, n * id_bytes);
    ask_for((const T *)a.small + l.small, n * sizeof(T));
    if (a.from && a.packed)
        ask_for((const T *)a.from + l.from + first, lesser((i64)SIZE, a.size - first) * sizeof(T));
}

/* A line of big, or a tile of SIZE of it, in the registers of a block. PAIR 2: lines of ids and of small are packed, even
 * and aligned. SLOTTED: there is room for slots. */
template <class T, int SIZE, int PAIR, int SLOTTED> DEVICE void lines_add(const lines_args &a)
{
    const int GROUPS = SIZE / WK_LINE_THREADS / 4, CHUNK = 4 * WK_LINE_THREADS * PAIR;
    typedef add_room<sum<T>, SIZE> to_sort;
    typedef slot_room<sum<T>, SIZE> to_slot;
    const int BYTES = WK_LINE_ROOM(SIZE, (int)sizeof(sum<T>), SLOTTED);
    static_assert(sizeof(to_sort) <= BYTES && (!SLOTTED || sizeof(to_slot) <= BYTES), "room");
    ROOM(room, BYTES);
    SHARED u32 drawn[2]; /* the block's next unit, by turns */
    const u32 units = (u32)(a.lines * a.tiles.d);
    if constexpr (SLOTTED)
        empty_room<sum<T>, SIZE>(*(to_slot *)room);
    for (u32 unit = block_id(), turn = 0; unit < units; unit = SLOTTED ? drawn[turn & 1] : unit + grid_blocks(), turn++) {
        u32 line = divide(unit, a.tiles);
        u32 first = (unit - line * a.tiles.d) * SIZE, width = lesser((u32)a.size - first, (u32)SIZE);
        sum<T> total[GROUPS][4];
        for (int base = 0; base < (int)a.n; base += CHUNK) {
            chunk_part<T, PAIR> c;
            line_of l = locate_line(a, line);
            if constexpr (SLOTTED)
                fetch_chunk<T, SIZE, PAIR>(a, l, base, first, width, c);
            if (base == 0) /* they are needed last, and registers are short */
                fetch_part<T, GROUPS>((const T *)a.from + l.from + first * a.from_along, a.from_along, a.packed,
                                      a.from ? (int)width : 0, total);
            if (SLOTTED && base == 0 && thread_id() == 0) { /* while all wait for what they fetch */
                u32 next = drawn[turn & 1] = grid_blocks() + atomic_next_of_all(a.counters);
#ifdef WK_NVIDIA
                if (PAIR == 2 && next < units)
                    ask_for_unit<T, SIZE>(a, next, CHUNK);
#endif
            }
            if constexpr (SLOTTED) {
                if (slot_chunk<T, SIZE, PAIR>(c, *(to_slot *)room)) {
                    add_slots<sum<T>, SIZE>(*(to_slot *)room, total);
                    continue;
                }
                barrier();
            }
            line_of again = locate_line(a, line);
            sort_chunk<T, SIZE, PAIR>(a, again, base, first, width, *(to_sort *)room);
            add_chunk<T, SIZE>(a, again, base, CHUNK, first, *(to_sort *)room, total);
            if constexpr (SLOTTED) {
                barrier();
                empty_room<sum<T>, SIZE>(*(to_slot *)room);
            }
        }
        T *big = (T *)a.big + locate_line(a, line).big + first * a.big_along;
        store_part<T, GROUPS>(big, a.big_along, a.packed, (int)width, total);
    }
    if (SLOTTED && last_of(a.counters + 1, grid_blocks()) && thread_id() == 0)
        *a.counters = 0;
}

/* ---- a wave for each line: few ids ---- */

/* One value of each lane is added to sums[at], where it is for this wave. Lanes that meet in one element take turns, so
 * that values are added in the order of their lanes. */
template <int SIZE, class A> DEVICE void add_in_turn(A *sums, u32 at, A value, bool mine)
{
    const int BITS = SIZE > 1024 ? 12 : 10;
    static_assert(SIZE <= 1 << BITS, "places have more bits");
    u32 turn = count_bits(wave_match<BITS>(at, mine) & lanes_below());
    for (u32 t = 0; wave_ballot(mine && turn >= t); t++) {
        if (mine && turn == t)
            sums[at] += value;
        wave_sync();
    }
}

/* A wave has a line of big, or a tile of it, in shared memory and goes through the line's ids in order. */
template <class T, int SIZE> DEVICE void index_lines(const lines_args &a)
{
    typedef sum<T> A;
    const int AT_ONCE = 4;
    SHARED A sums[SIZE];
    for (u32 unit = block_id(); unit < (u32)(a.lines * a.tiles.d); unit += grid_blocks()) {
        u32 line = divide(unit, a.tiles);
        i64 first = (i64)(unit - line * a.tiles.d) * SIZE, width = lesser(a.size - first, (i64)SIZE);
        line_of l = locate_line(a, line);
        const T *from = (const T *)a.from + l.from + first * a.from_along, *small = (const T *)a.small + l.small;
        T *big = (T *)a.big + l.big + first * a.big_along;
        for (i64 k = lane_id(); k < width; k += WAVE)
            sums[k] = a.from ? to_sum(from[k * a.from_along]) : (A)0;
        wave_sync();
        for (i64 base = 0; base < a.n; base += AT_ONCE * WAVE) {
            A value[AT_ONCE];
            u32 at[AT_ONCE];
            bool mine[AT_ONCE];
            UNROLL
            for (int k = 0; k < AT_ONCE; k++) {
                i64 i = base + k * WAVE + lane_id(), id = 0;
                mine[k] = i < a.n;
                if (mine[k]) {
                    id = load_id(a.ids, a.id_bytes, l.id + i * a.id_along);
                    mine[k] = (u64)(id - first) < (u64)width && id != id_padding(a.id_bytes);
                    if (!mine[k])
                        id_leads(id, a.id_bytes, a.size, a.report);
                }
                at[k] = (u32)(id - first);
                value[k] = mine[k] ? to_sum(small[i * a.small_along]) : (A)0;
            }
            UNROLL
            for (int k = 0; k < AT_ONCE; k++)
                add_in_turn<SIZE>(sums, at[k], value[k], mine[k]);
        }
        for (i64 k = lane_id(); k < width; k += WAVE)
            big[k * a.big_along] = from_sum<T>(sums[k]);
        wave_sync();
    }
}
