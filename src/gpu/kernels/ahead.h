/* ahead.h: lines on their way while a cluster of blocks (cluster.h) works on others. A line is measured, blocks hear from each
 * other, and what comes of it is written. Where shared memory has room for two blocks on a unit, registers hold the line
 * meanwhile and the other block has the unit while one waits ("beside"). Else both passes read shared memory, and the next
 * line is measured before the last one is written. NVIDIA alone: elsewhere copies take registers. */
#ifndef WK_KERNELS_AHEAD_H
#define WK_KERNELS_AHEAD_H
#include "cluster.h"

#ifdef WK_NVIDIA
enum { RING = WK_AHEAD_LINES }; /* lines in shared memory, which comes with the launch */

DEVICE u32 *ring_room()
{
    ROOM(room, 0);
    return (u32 *)room;
}

/* A line whose packs are picked from shared memory when they are needed. A thread reads what it has sent for itself: no
 * barrier. */
template <class T, int KEEP, int THREADS, int BLOCKS>
struct line_ahead : kept_line<T, KEEP, THREADS, BLOCKS> {
    typedef kept_line<T, KEEP, THREADS, BLOCKS> base;
    MEMBER u32 *place(u32 turn, int k) const
    {
        return ring_room() + ((turn % RING * KEEP + k) * THREADS + thread_id()) * 4;
    }
    /* Sends for the line of a turn; NULL: there is none. */
    MEMBER void send_for(u32 turn, const T *line) const
    {
        const u32 *first = (const u32 *)line + (i64)base::index(0) * 4;
        UNROLL
        for (int k = 0; k < KEEP; k++) {
            if (line && base::index(k) < base::steps)
                copy_async(place(turn, k), first + (i64)k * BLOCKS * THREADS * 4, true);
        }
        copies_group();
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
    /* The line of a turn into registers, when it has come; its place is for `later`. */
    MEMBER void take(u32 turn, const T *later)
    {
        copies_wait_but<RING - 1>();
        pick_all(turn);
        send_for(turn, later);
    }
};

/* Where blocks of a cluster hear from each other, in shared memory: N values of each, for one turn and the next. What is sent
 * counts itself in at the receiver's barrier. (A barrier of the cluster would wait for all that its threads have written to
 * memory before.) */
template <int BLOCKS, int N, class A> struct cluster_box {
    u64 bars[2];
    A all[2][BLOCKS][N];

    /* By all threads, once. */
    MEMBER void open()
    {
        if (thread_id() == 0) {
            UNROLL
            for (int i = 0; i < 2; i++)
                asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(&bars[i]))
                             : "memory");
            asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        }
        cluster_arrive();
        cluster_wait();
    }
    /* By the first wave, all lanes of which have the block's values. */
    MEMBER void tell(u32 turn, const A *mine)
    {
        u32 bar = shared_address(&bars[turn & 1]), place = shared_address(all[turn & 1][block_id() % BLOCKS]),
            to_bar, to;
        if (thread_id() == 0)
            asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar),
                         "r"((u32)sizeof all[0])
                         : "memory");
        if (thread_id() >= BLOCKS)
            return;
        asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(to_bar) : "r"(bar), "r"(thread_id()));
        asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(to) : "r"(place), "r"(thread_id()));
        UNROLL
        for (int k = 0; k < N; k++) {
            if constexpr (sizeof(A) == 8)
                asm volatile(
                    "st.async.shared::cluster.mbarrier::complete_tx::bytes.b64 [%0], %1, [%2];" ::"r"(to +
                                                                                                      8 * k),
                    "l"(bit_cast<u64>(mine[k])), "r"(to_bar)
                    : "memory");
            else
                asm volatile(
                    "st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];" ::"r"(to +
                                                                                                      4 * k),
                    "r"(bit_cast<u32>(mine[k])), "r"(to_bar)
                    : "memory");
        }
    }
    /* What all have told in a turn. Threads meet at a barrier of the block between two turns. */
    MEMBER const A (*heard(u32 turn))[N]
    {
        u32 done = 0;
        while (!done)
            asm volatile("{.reg .pred done;\n"
                         "mbarrier.try_wait.parity.shared::cta.b64 done, [%1], %2;\n"
                         "selp.u32 %0, 1, 0, done;}"
                         : "=r"(done)
                         : "r"(shared_address(&bars[turn & 1])), "r"(turn >> 1 & 1)
                         : "memory");
        return all[turn & 1];
    }
};
#endif

#endif
