/* gate.h: gates in shared memory, as Hopper has them. Threads and copies come to a gate; when all that it was told of have, it
 * opens, and those who wait for its phase, 0 first and then by turns, pass. */
#ifndef WK_KERNELS_GATE_H
#define WK_KERNELS_GATE_H
#include "device.h"

#ifdef WK_NVIDIA
DEVICE void gate_init(u64 *p, int threads)
{
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(shared_address(p)), "r"(threads) : "memory");
}
DEVICE void gate_arrive(u64 *p)
{
    asm volatile("{.reg .b64 state;\nmbarrier.arrive.shared.b64 state, [%0];}" ::"r"(shared_address(p))
                 : "memory");
}
/* A thread comes, and says that so many bytes will. */
DEVICE void gate_expect(u64 *p, u32 bytes)
{
    asm volatile(
        "{.reg .b64 state;\nmbarrier.arrive.expect_tx.shared.b64 state, [%0], %1;}" ::"r"(shared_address(p)),
        "r"(bytes)
        : "memory");
}
DEVICE void gate_wait(u64 *p, u32 phase)
{
    asm volatile(
        "{.reg .pred done;\nagain: mbarrier.try_wait.parity.shared.b64 done, [%0], %1;\n@!done bra again;}" ::
            "r"(shared_address(p)),
        "r"(phase)
        : "memory");
}
/* Nobody waits for it any more: the room may be used otherwise. */
DEVICE void gate_close(u64 *p)
{
    asm volatile("mbarrier.inval.shared.b64 [%0];" ::"r"(shared_address(p)) : "memory");
}

/* Bytes of memory, sixteens of them, to shared memory, which the gate expects. */
DEVICE void bulk_copy(void *to, const void *from, u32 bytes, u64 *gate)
{
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
            shared_address(to)),
        "l"(from), "r"(bytes), "r"(shared_address(gate))
        : "memory");
}
DEVICE void bulk_fetch(void *to, const void *from, u32 bytes, u64 *gate)
{
    gate_expect(gate, bytes);
    bulk_copy(to, from, bytes, gate);
}

/* A barrier of some waves of the block: of one crew, where there are several. */
template <int THREADS> DEVICE void crew_barrier()
{
    asm volatile("bar.sync 1, %0;" ::"n"(THREADS) : "memory");
}

/* Between a thread's accesses and those of copies and products; the others for one memory alone, of which shared takes no time. */
DEVICE void proxy_fence() { asm volatile("fence.proxy.async;" ::: "memory"); }
DEVICE void shared_proxy_fence() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
DEVICE void memory_proxy_fence() { asm volatile("fence.proxy.async.global;" ::: "memory"); }
/* Of gates that were set up, for other blocks of the cluster and for copies. */
DEVICE void gates_fence() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
#endif

#endif
