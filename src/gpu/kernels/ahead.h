/* ahead.h: lines of a cluster of blocks (cluster.h) each, on their way to shared memory while others are worked on. A line is
 * measured, blocks hear from each other, and what comes of it is written. Blocks come and go with their line: several share a
 * unit, so that one has it while another waits. Or, where every line needs the same weights, they stay, and measure the next
 * line before they write the last one. NVIDIA alone: elsewhere copies take registers. */
#ifndef WK_KERNELS_AHEAD_H
#define WK_KERNELS_AHEAD_H
#include "cluster.h"

#ifdef WK_NVIDIA
DEVICE u32 *ring_room() /* comes with the launch */
{
    ROOM(room, 0);
    return (u32 *)room;
}

/* A line whose packs are picked from shared memory, which has room for RING of them, when they are needed. A thread reads what
 * it has sent for itself: no barrier. */
template <class T, int KEEP, int THREADS, int RING, int BLOCKS>
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
};

/* Where blocks of a cluster hear from each other, in shared memory: N values of each of their waves, or of each block where
 * WAVES is 1, in each of TURNS turns. What is sent counts itself in at the receiver's barrier. (A barrier of the cluster would
 * wait for all that its threads have written to memory before.) */
template <int BLOCKS, int WAVES, int TURNS, int N, class A> struct cluster_box {
    u64 bars[TURNS];
    A all[TURNS][BLOCKS * WAVES][N];

    /* By all threads, once, who wait for the cluster before they tell. */
    MEMBER void open()
    {
        if (thread_id() == 0) {
            UNROLL
            for (int i = 0; i < TURNS; i++)
                asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(&bars[i]))
                             : "memory");
            asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        }
        cluster_arrive();
    }
    /* By each wave, or by the first where WAVES is 1; all its lanes have the values. */
    MEMBER void tell(u32 turn, const A *mine)
    {
        u32 bar = shared_address(&bars[turn % TURNS]), to_bar, to;
        u32 place = shared_address(all[turn % TURNS][block_id() % BLOCKS * WAVES + wave_id() % WAVES]);
        if (thread_id() == 0)
            asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar),
                         "r"((u32)sizeof all[0])
                         : "memory");
        if (lane_id() >= BLOCKS)
            return;
        asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(to_bar) : "r"(bar), "r"(lane_id()));
        asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(to) : "r"(place), "r"(lane_id()));
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
    /* What all have told in a turn. */
    MEMBER const A (*heard(u32 turn))[N]
    {
        u32 done = 0;
        while (!done)
            asm volatile("{.reg .pred done;\n"
                         "mbarrier.try_wait.parity.shared::cta.b64 done, [%1], %2;\n"
                         "selp.u32 %0, 1, 0, done;}"
                         : "=r"(done)
                         : "r"(shared_address(&bars[turn % TURNS])), "r"(turn / TURNS & 1)
                         : "memory");
        return all[turn % TURNS];
    }
};
#endif

#endif
