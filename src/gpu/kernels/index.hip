/* index.hip: elements and rows that ids lead to. In kernels that only move elements T stands for any dtype of its
 * size. */
#include "ids.h"
#include "index.h"
#include "index_sum.h"

struct place_of {
    i64 big, flat, small, id, along; /* offsets, and the place along dim */
};

template <int WIDE> DEVICE place_of locate(const index_args &a, i64 at)
{
    place_of p = {0, 0, 0, 0, 0};
    u32 at32 = (u32)at;
    UNROLL
    for (int d = 0; d < WK_DIMS; d++) {
        if (d >= a.rank)
            break;
        i64 i;
        if (WIDE) {
            i64 rest = at / a.size64[d];
            i = at - rest * a.size64[d];
            at = rest;
        } else {
            u32 rest = divide(at32, a.size[d]);
            i = at32 - rest * a.size[d].d;
            at32 = rest;
        }
        p.big += i * a.big_step[d];
        p.flat += i * a.flat_step[d];
        p.small += i * a.small_step[d];
        p.id += i * a.id_step[d];
        p.along += i * a.place_step[d];
    }
    return p;
}

/* The id of an element; false when it leads nowhere. */
DEVICE bool find_id(const index_args &a, const place_of &p, i64 *id)
{
    *id = load_id(a.ids, a.id_bytes, p.id);
    return id_leads(*id, a.id_bytes, a.limit, a.report);
}

/* small, packed, from big. VEC > 1: the innermost dimension is a multiple of VEC, is walked by one in big and has one
 * id for all. A thread takes several pieces, a block apart, so that their loads are on the way together. */
template <class T, int VEC, int WIDE> DEVICE void index_gather(const index_args &a)
{
    const int STEPS = WK_GATHER_STEPS, STEP = WK_GATHER_THREADS * VEC;
    i64 first = (i64)block_id() * STEP * STEPS + thread_id() * VEC;
    for (; first < a.count; first += (i64)grid_blocks() * STEP * STEPS) {
        i64 from[STEPS];
        bool found[STEPS];
        pack<T, VEC> v[STEPS];
        UNROLL
        for (int k = 0; k < STEPS; k++) {
            i64 at = first + k * STEP, id;
            found[k] = false;
            if (at < a.count) {
                place_of p = locate<WIDE>(a, at);
                found[k] = find_id(a, p, &id);
                from[k] = p.big + id * a.along;
            }
        }
        UNROLL
        for (int k = 0; k < STEPS; k++) {
            v[k] = {};
            if (found[k])
                v[k] = load<VEC>((const T *)a.big + from[k]);
        }
        UNROLL
        for (int k = 0; k < STEPS; k++) {
            if (first + k * STEP < a.count)
                store<VEC>((T *)a.small + first + k * STEP, v[k]);
        }
    }
}

/* ---- scatter: of equal ids the last one counts ---- */

template <int WIDE> DEVICE void index_last(const index_args &a)
{
    for (i64 at = global_thread(); at < a.count; at += global_threads()) {
        place_of p = locate<WIDE>(a, at);
        i64 id;
        if (find_id(a, p, &id))
            atomic_max(&a.last[p.flat + id * a.flat_along], (u32)p.along + 1);
    }
}

/* Whether an id that leads somewhere is the last one that leads there. */
DEVICE bool is_last(const index_args &a, const place_of &p, i64 id)
{
    if (a.last)
        return a.last[p.flat + id * a.flat_along] == (u32)p.along + 1;
    for (i64 k = 1; k < a.n - p.along; k++) {
        if (load_id(a.ids, a.id_bytes, p.id + k * a.id_along) == id)
            return false;
    }
    return true;
}

template <class T, int WIDE> DEVICE void index_scatter(const index_args &a)
{
    for (i64 at = global_thread(); at < a.count; at += global_threads()) {
        place_of p = locate<WIDE>(a, at);
        i64 id;
        if (find_id(a, p, &id) && is_last(a, p, id))
            ((T *)a.big)[p.big + id * a.along] = ((const T *)a.small)[p.small];
    }
}

/* The gradient: small, packed, takes what it wrote from big, and leaves a 0 in rest. */
template <class T, int WIDE> DEVICE void index_take(const index_args &a)
{
    for (i64 at = global_thread(); at < a.count; at += global_threads()) {
        place_of p = locate<WIDE>(a, at);
        i64 id;
        T v = 0;
        if (find_id(a, p, &id) && is_last(a, p, id)) {
            v = ((const T *)a.big)[p.big + id * a.along];
            ((T *)a.rest)[p.flat + id * a.flat_along] = 0;
        }
        ((T *)a.small)[at] = v;
    }
}

/* ---- adding ---- */

template <int WIDE> DEVICE void index_keys(const index_args &a)
{
    for (i64 at = global_thread(); at < a.count; at += global_threads()) {
        place_of p = locate<WIDE>(a, at);
        i64 id;
        a.keys[at] = find_id(a, p, &id) ? (u32)(p.flat + id * a.flat_along) : a.none;
        a.places[at] = (u32)at;
    }
}

/* Few ids along dim: the first of those that lead to an element looks through the others and adds them all, in order. */
template <class T, int WIDE> DEVICE void index_add_few(const index_args &a)
{
    for (i64 at = global_thread(); at < a.count; at += global_threads()) {
        place_of p = locate<WIDE>(a, at);
        i64 id;
        bool first = find_id(a, p, &id);
        for (i64 k = 1; first && k <= p.along; k++)
            first = load_id(a.ids, a.id_bytes, p.id - k * a.id_along) != id;
        if (!first)
            continue;
        const T *small = (const T *)a.small + p.small;
        T *big = (T *)a.big + p.big + id * a.along;
        sum<T> total = to_sum(*big) + to_sum(*small);
        for (i64 k = 1; k < a.n - p.along; k++) {
            if (load_id(a.ids, a.id_bytes, p.id + k * a.id_along) == id)
                total += to_sum(small[k * a.small_along]);
        }
        *big = from_sum<T>(total);
    }
}

/* In any order, for those who said that they do not mind. */
template <class T, int WIDE> DEVICE void index_add_atomic(const index_args &a)
{
    for (i64 at = global_thread(); at < a.count; at += global_threads()) {
        place_of p = locate<WIDE>(a, at);
        i64 id;
        if (find_id(a, p, &id))
            atomic_add_float((T *)a.big + p.big + id * a.along, ((const T *)a.small)[p.small]);
    }
}

template <class T, int VEC> struct row_sum {
    sum<T> v[VEC];
    MEMBER void add(const pack<T, VEC> &x)
    {
        UNROLL
        for (int k = 0; k < VEC; k++)
            v[k] += to_sum(x.v[k]);
    }
};

DEVICE void locate_column(const runs_args &a, i64 column, i64 *big, i64 *small)
{
    u32 at = (u32)column;
    *big = *small = 0;
    if (a.rank == 1) {
        *big = column * a.big_step[0];
        *small = column * a.small_step[0];
        return;
    }
    UNROLL
    for (int d = 0; d < WK_DIMS; d++) {
        if (d >= a.rank)
            break;
        u32 rest = divide(at, a.size[d]);
        i64 i = at - rest * a.size[d].d;
        at = rest;
        *big += i * a.big_step[d];
        *small += i * a.small_step[d];
    }
}

/* Adds the pairs from j on that have the key, every `step`th of them. small: the column of row 0. */
template <class T, int VEC>
DEVICE void add_run(const runs_args &a, i64 j, i64 step, u32 key, const T *small, row_sum<T, VEC> *total)
{
    const int AT_ONCE = 4;
    for (; j + (AT_ONCE - 1) * step < a.n && a.keys[j + (AT_ONCE - 1) * step] == key; j += AT_ONCE * step) {
        pack<T, VEC> x[AT_ONCE];
        UNROLL
        for (int k = 0; k < AT_ONCE; k++)
            x[k] = load<VEC>(small + (i64)a.places[j + k * step] * a.small_along);
        UNROLL
        for (int k = 0; k < AT_ONCE; k++)
            total->add(x[k]);
    }
    for (; j < a.n && a.keys[j] == key; j += step)
        total->add(load<VEC>(small + (i64)a.places[j] * a.small_along));
}

template <class T, int VEC> DEVICE row_sum<T, VEC> load_sum(const T *p)
{
    row_sum<T, VEC> total;
    pack<T, VEC> x = load<VEC>(p);
    UNROLL
    for (int k = 0; k < VEC; k++)
        total.v[k] = to_sum(x.v[k]);
    return total;
}

template <class T, int VEC> DEVICE void store_sum(T *p, const row_sum<T, VEC> &total)
{
    pack<T, VEC> y;
    UNROLL
    for (int k = 0; k < VEC; k++)
        y.v[k] = from_sum<T>(total.v[k]);
    store<VEC>(p, y);
}

/* Rows of many columns, a block for each pair: the first of those with one key adds them all, in order. A thread has
 * several packs of the row on their way at a time. */
template <class T, int VEC> DEVICE void index_rows(const runs_args &a)
{
    const int PACKS = WK_ROW_PACKS, WIDTH = VEC * WK_RUNS_THREADS;
    for (i64 i = block_id(); i < a.n; i += grid_blocks()) {
        u32 key = a.keys[i], before = i ? a.keys[i - 1] : a.none;
        if (key == a.none || before == key)
            continue;
        for (i64 base = (i64)block_id_y() * PACKS * WIDTH; base < a.columns; base += (i64)grid_blocks_y() * PACKS * WIDTH) {
            i64 big[PACKS], small[PACKS], column = base + thread_id() * VEC;
            row_sum<T, VEC> total[PACKS];
            UNROLL
            for (int k = 0; k < PACKS; k++) {
                if (column + k * WIDTH >= a.columns)
                    continue;
                locate_column(a, column + k * WIDTH, &big[k], &small[k]);
                big[k] += key * a.big_along;
                total[k] = load_sum<T, VEC>((const T *)a.big + big[k]);
            }
            i64 j = i;
            do {
                i64 row = a.places[j] * a.small_along;
                UNROLL
                for (int k = 0; k < PACKS; k++) {
                    if (column + k * WIDTH < a.columns)
                        total[k].add(load_once<VEC>((const T *)a.small + small[k] + row));
                }
            } while (++j < a.n && a.keys[j] == key);
            UNROLL
            for (int k = 0; k < PACKS; k++) {
                if (column + k * WIDTH < a.columns)
                    store_sum<T, VEC>((T *)a.big + big[k], total[k]);
            }
        }
    }
}

/* A long run is added by all groups of the block: each takes every GROUPS-th row, and their sums are added in order.
 * Every thread of the block calls this alike. */
template <class T, int VEC>
DEVICE void add_long_run(const runs_args &a, i64 first, const T *small, T *big, bool active,
                         row_sum<T, VEC> *room)
{
    u32 group = thread_id() >> a.log_group, groups = WK_RUNS_THREADS >> a.log_group;
    row_sum<T, VEC> total = {};
    if (active && group == 0)
        total = load_sum<T, VEC>(big);
    if (active)
        add_run<T, VEC>(a, first + group, groups, a.keys[first], small, &total);
    room[thread_id()] = total;
    barrier();
    if (active && group == 0) {
        for (u32 g = 1; g < groups; g++) {
            UNROLL
            for (int k = 0; k < VEC; k++)
                total.v[k] += room[thread_id() + (g << a.log_group)].v[k];
        }
        store_sum<T, VEC>(big, total);
    }
    barrier();
}

/* A group of threads for each pair; the first of those with one key adds them all, in order. */
template <class T, int VEC> DEVICE void index_runs(const runs_args &a)
{
    SHARED row_sum<T, VEC> room[WK_RUNS_THREADS];
    SHARED u32 any_long;
    u32 groups = WK_RUNS_THREADS >> a.log_group, group = thread_id() >> a.log_group;
    i64 width = (i64)VEC << a.log_group, lane = (i64)(thread_id() & ((1u << a.log_group) - 1)) * VEC;
    for (i64 first = (i64)block_id() * groups; first < a.n; first += (i64)grid_blocks() * groups) {
        i64 i = first + group;
        u32 key = i < a.n ? a.keys[i] : a.none, place = i < a.n ? a.places[i] : 0;
        bool leads = key != a.none && (i == 0 || a.keys[i - 1] != key), is_long = false;
        if (groups > 1) {
            is_long = leads && i + WK_RUN_LONG < a.n && a.keys[i + WK_RUN_LONG] == key;
            barrier();
            if (thread_id() == 0)
                any_long = 0;
            barrier();
            if (is_long)
                atomic_max(&any_long, 1);
            barrier();
        }
        for (i64 base = block_id_y() * width; base < a.columns; base += grid_blocks_y() * width) {
            i64 big_at, small_at;
            bool active = base + lane < a.columns;
            locate_column(a, active ? base + lane : 0, &big_at, &small_at);
            T *big = (T *)a.big + big_at;
            const T *small = (const T *)a.small + small_at;
            if (active && leads && !is_long) {
                pack<T, VEC> x = load<VEC>(small + place * a.small_along);
                row_sum<T, VEC> total = load_sum<T, VEC>(big + key * a.big_along);
                total.add(x);
                add_run<T, VEC>(a, i + 1, 1, key, small, &total);
                store_sum<T, VEC>(big + key * a.big_along, total);
            }
            for (u32 g = 0; groups > 1 && any_long && g < groups && first + g + WK_RUN_LONG < a.n; g++) {
                i64 at = first + g;
                u32 k = a.keys[at];
                if (k != a.none && (at == 0 || a.keys[at - 1] != k) && a.keys[at + WK_RUN_LONG] == k)
                    add_long_run<T, VEC>(a, at, small, big + k * a.big_along, active, room);
            }
        }
    }
}
