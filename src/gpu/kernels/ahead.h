/* ahead.h: lines of a cluster of blocks (cluster.h) each, on their way to shared memory while others are worked on. A line is
 * measured, blocks hear from each other, and what comes of it is written. Blocks come and go with their line: several share a
 * unit, so that one has it while another waits. Or, where every line needs the same weights, they stay, and measure the next
 * lines while they write the last one. NVIDIA alone: elsewhere copies take registers. */
#ifndef WK_KERNELS_AHEAD_H
#define WK_KERNELS_AHEAD_H
#include "cluster.h"
#include "gate.h"

#ifdef WK_NVIDIA
DEVICE u32 *ring_room() /* comes with the launch */
{
    ROOM(room, 0);
    return (u32 *)room;
}

/* A line whose packs are picked from shared memory, which has room for RING of them, when they are needed. */
template <class T, int KEEP, int THREADS, int RING, int BLOCKS>
struct line_ahead : kept_line<T, KEEP, THREADS, BLOCKS> {
    typedef kept_line<T, KEEP, THREADS, BLOCKS> base;
    MEMBER u32 *place(u32 turn, int k) const
    {
        return ring_room() + ((turn % RING * KEEP + k) * THREADS + thread_id() % THREADS) * 4;
    }
    /* Where lines have ended, `none` stands from now on. */
    MEMBER void fill_ends(T none)
    {
        pack<T, base::VEC> v;
        UNROLL
        for (int i = 0; i < base::VEC; i++)
            v.v[i] = none;
        UNROLL
        for (int k = 0; k < RING * KEEP; k++) {
            if (base::index(k % KEEP) >= base::steps)
                store<base::VEC>((T *)place(k / KEEP, k % KEEP), v);
        }
    }
    /* Pack k of the line of a turn, which has come; w keeps it. */
    MEMBER void pick(u32 turn, int k)
    {
        pack<u32, 4> v = load<4>(place(turn, k));
        UNROLL
        for (int i = 0; i < 4; i++)
            base::w[k][i] = v.v[i];
    }
    MEMBER void pick_all(u32 turn)
    {
        UNROLL
        for (int k = 0; k < KEEP; k++)
            pick(turn, k);
    }
};

/* The line of blocks that come and go. A thread reads what it has sent for itself: no barrier, and the first copy leaves at
 * once. */
template <class T, int KEEP, int THREADS, int BLOCKS>
struct passing_line : line_ahead<T, KEEP, THREADS, 1, BLOCKS> {
    typedef line_ahead<T, KEEP, THREADS, 1, BLOCKS> base;
    MEMBER void send_for(const T *line) const
    {
        const u32 *first = (const u32 *)line + (i64)base::index(0) * 4;
        UNROLL
        for (int k = 0; k < KEEP; k++) {
            if (base::index(k) < base::steps)
                copy_async(base::place(0, k), first + (i64)k * BLOCKS * THREADS * 4, true);
        }
        copies_group();
    }
    MEMBER void await() const { copies_wait_but<0>(); }
};

/* Lines of blocks that stay: the block's part of each, of `steps` packs, is a line to it, and comes in one piece, which keeps
 * no thread busy. */
template <class T, int KEEP, int THREADS, int RING> struct line_ring : line_ahead<T, KEEP, THREADS, RING, 1> {
    typedef line_ahead<T, KEEP, THREADS, RING, 1> base;
    u64 *gates; /* in shared memory, one for each line there */

    /* By one thread: sends for the line of a turn, when all have read the one in whose place it comes; NULL: there is none. */
    MEMBER void send_for(u32 turn, const T *line) const
    {
        u32 at = turn % RING;
        if (line)
            bulk_fetch(ring_room() + at * KEEP * THREADS * 4, line, base::steps * 16, &gates[at]);
    }
    /* Until the line of a turn has come. */
    MEMBER void await(u32 turn) const { gate_wait(&gates[turn % RING], turn / RING & 1); }
};

/* Where blocks of a cluster hear from each other, in shared memory: two values of each block, in each of TURNS turns. What is sent
 * comes to the receiver's gate. (A barrier of the cluster would wait for all that its threads have written to memory before.) Both
 * go as one: it is the number of messages that takes time. */
template <int BLOCKS, int TURNS, class A> struct cluster_box {
    u64 gates[TURNS];
    alignas(2 * sizeof(A)) A all[TURNS][BLOCKS][2];

    /* By all threads, once, who wait for the cluster before they tell. */
    MEMBER void open()
    {
        if (thread_id() == 0) {
            UNROLL
            for (int i = 0; i < TURNS; i++)
                gate_init(&gates[i], 1);
            gates_fence();
        }
        cluster_arrive();
    }
    /* By the first wave, all of whose lanes have the values. */
    MEMBER void tell(u32 turn, const A *mine)
    {
        u32 bar = shared_address(&gates[turn % TURNS]), to_bar, to;
        u32 place = shared_address(all[turn % TURNS][block_id() % BLOCKS]);
        if (thread_id() == 0)
            gate_expect(&gates[turn % TURNS], (u32)sizeof all[0]);
        if (lane_id() >= BLOCKS)
            return;
        asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(to_bar) : "r"(bar), "r"(lane_id()));
        asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(to) : "r"(place), "r"(lane_id()));
        if constexpr (sizeof(A) == 8)
            asm volatile(
                "st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.b64 [%0], {%1, %2}, [%3];" ::"r"(
                    to),
                "l"(bit_cast<u64>(mine[0])), "l"(bit_cast<u64>(mine[1])), "r"(to_bar)
                : "memory");
        else
            asm volatile(
                "st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 [%0], {%1, %2}, [%3];" ::"r"(
                    to),
                "r"(bit_cast<u32>(mine[0])), "r"(bit_cast<u32>(mine[1])), "r"(to_bar)
                : "memory");
    }
    /* What all have told in a turn. */
    MEMBER const A (*heard(u32 turn))[2]
    {
        gate_wait(&gates[turn % TURNS], turn / TURNS & 1);
        return all[turn % TURNS];
    }
};
#endif

#endif
