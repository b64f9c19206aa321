/* cluster.h: lines that the registers of one block hold, or those of a cluster: blocks that run at the same time and reach
 * each other's shared memory, as NVIDIA has them from sm_90 on. Elsewhere a cluster is one block.
 *
 * A kernel's cluster has as many blocks as its last parameter says; their numbers follow each other in the grid. */
#ifndef WK_KERNELS_CLUSTER_H
#define WK_KERNELS_CLUSTER_H
#include "device.h"

#if defined WK_NVIDIA && __CUDA_ARCH__ >= 900
#define CLUSTER(blocks) __cluster_dims__(blocks, 1, 1)
/* Every thread of the cluster comes here; what it wrote before is seen by those that have waited. */
DEVICE void cluster_arrive() { asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory"); }
DEVICE void cluster_wait() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }
/* v to the place in shared memory of another block. */
template <class A> DEVICE void cluster_put(A *place, u32 block, A v)
{
    u32 at;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(at) : "r"(shared_address(place)), "r"(block));
    if constexpr (sizeof(A) == 8)
        asm volatile("st.shared::cluster.u64 [%0], %1;" ::"r"(at), "l"(bit_cast<u64>(v)) : "memory");
    else
        asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(at), "r"(bit_cast<u32>(v)) : "memory");
}
#else
#define CLUSTER(blocks)
DEVICE void cluster_arrive() {}
DEVICE void cluster_wait() {}
template <class A> DEVICE void cluster_put(A *, u32, A) {}
#endif

#define INSTANCE_CLUSTER(cluster, blocks, name, kernel, args, threads, ...) \
    KERNEL void BOUNDS_OF(blocks, threads) CLUSTER(cluster) name(PARAM(args) a) \
    { \
        begin_kernel(); \
        kernel<__VA_ARGS__>(a); \
    }

/* A kernel that exchanges values says first that its blocks have begun. */
template <int BLOCKS> DEVICE void cluster_begin()
{
    if constexpr (BLOCKS > 1)
        cluster_arrive();
}

/* N values of each block, all the threads of which have them, for the threads of all blocks: `all` has them after this. The
 * next call must be for another `all`. first: it is the kernel's first one. */
template <int BLOCKS, int N, class A> DEVICE void cluster_exchange(const A *mine, A (*all)[N], bool first)
{
    if (first)
        cluster_wait(); /* the others have begun: their shared memory is there */
    UNROLL
    for (int k = 0; k < N; k++) {
        if (thread_id() < BLOCKS)
            cluster_put(&all[block_id() % BLOCKS][k], thread_id(), mine[k]);
    }
    cluster_arrive();
    cluster_wait();
}

/* 16 bytes that are read once into w, where `there` holds; no branch between such loads. */
DEVICE void load_words_if(bool there, const u32 *p, u32 *w)
{
#ifdef WK_NVIDIA
    asm volatile("{.reg .pred there; setp.ne.u32 there, %4, 0;\n"
                 "@there ld.global.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%5];}"
                 : "+r"(w[0]), "+r"(w[1]), "+r"(w[2]), "+r"(w[3])
                 : "r"((u32)there), "l"(p));
#else
    if (there) {
        pack<u32, 4> v = load<4>(p);
        UNROLL
        for (int i = 0; i < 4; i++)
            w[i] = v.v[i];
    }
#endif
}

/* A thread's packs of a line, as they lie in memory: half the registers of computed values for 16-bit elements. They are
 * words, or the compiler would have a register for every element. */
template <class T, int KEEP, int THREADS, int BLOCKS = 1> struct kept_line {
    static const int VEC = 16 / sizeof(T), EACH = 4 / sizeof(T); /* elements of a pack, of a word */
    typedef pack<T, EACH> word;
    u32 w[KEEP][4];
    u32 steps; /* packs of the line */

    MEMBER u32 index(int k) const
    {
        return (k * BLOCKS + block_id() % BLOCKS) * THREADS + thread_id() % THREADS;
    }
    /* `none` stands where the line has ended. */
    MEMBER void fetch(const T *line, T none)
    {
        word empty;
        UNROLL
        for (int i = 0; i < EACH; i++)
            empty.v[i] = none;
        const u32 *first = (const u32 *)line + (i64)index(0) * 4;
        UNROLL
        for (int j = 0; j < KEEP * 4; j++)
            w[j / 4][j % 4] = bit_cast<u32>(empty);
        UNROLL
        for (int k = 0; k < KEEP; k++)
            load_words_if(index(k) < steps, first + (i64)k * BLOCKS * THREADS * 4, w[k]);
    }
    /* What was computed from the elements of pack k so far is not kept beside them. */
    MEMBER void forget(int k)
    {
        UNROLL
        for (int i = 0; i < 4 && EACH > 1; i++) {
#ifdef WK_NVIDIA /* the assembler looks through what does nothing; steps has no such bit */
            asm volatile("or.b32 %0, %0, %1;" : "+r"(w[k][i]) : "r"(steps >> 31));
#else
            asm volatile("" : "+v"(w[k][i]));
#endif
        }
    }
    /* Element i of pack k. */
    MEMBER acc<T> value(int k, int i) const { return get(bit_cast<word>(w[k][i / EACH]).v[i % EACH]); }
    /* Values to where pack k lies in the line. */
    MEMBER void store_pack(int k, T *line, const acc<T> *v) const
    {
        pack<T, VEC> p;
        UNROLL
        for (int i = 0; i < VEC; i++)
            p.v[i] = put<T>(v[i]);
        if (index(k) < steps)
            store<VEC>(line + (i64)index(k) * VEC, p);
    }
};

/* The largest element and the sum of exp(x - it). */
template <class A> struct sum_exp {
    A top, sum;
};

/* That of several parts, a pair each; a few of them at a time, since registers are short. */
template <int N, class A> DEVICE sum_exp<A> merge_sums(const A (*parts)[2])
{
    sum_exp<A> all = {parts[0][0], 0};
    UNROLL_BY_4
    for (int i = 1; i < N; i++)
        all.top = greater(all.top, parts[i][0]);
    UNROLL_BY_4
    for (int i = 0; i < N; i++)
        all.sum += parts[i][1] * m_exp_fast(parts[i][0] - all.top);
    return all;
}

/* The same of a line fetched with smallest numbers behind its end; top is 0, where the sum is not to be shifted. all: see
 * cluster_exchange. */
template <class T, int KEEP, int THREADS, int BLOCKS>
DEVICE sum_exp<f32> kept_sum_exp(kept_line<T, KEEP, THREADS, BLOCKS> &line, bool shifted, f32 (*all)[2],
                                 bool first)
{
    const int waves = THREADS / WAVE, VEC = line.VEC;
    SHARED f32 room[waves][2];
    /* It starts below every number but -infinity, so that no difference of infinities comes up. */
    f32 top = shifted ? lowest<f32>() : 0, sum = 0;
    UNROLL
    for (int j = 0; shifted && j < KEEP * VEC; j++)
        top = max_number(top, line.value(j / VEC, j % VEC));
    if (shifted) /* of the wave: one barrier is enough for both */
        top = wave_reduce<op_max_number>(top);
    UNROLL
    for (int j = 0; j < KEEP * VEC; j++) {
        if (j % VEC == 0)
            line.forget(j / VEC);
        sum += m_exp_fast(line.value(j / VEC, j % VEC) - top);
    }
    sum = wave_reduce<op_sum>(sum);
    if (lane_id() == 0) {
        room[wave_id()][0] = top;
        room[wave_id()][1] = sum;
    }
    barrier();
    sum_exp<f32> total = merge_sums<waves>(room);
    if constexpr (BLOCKS > 1) {
        f32 mine[2] = {total.top, total.sum};
        cluster_exchange<BLOCKS, 2>(mine, all, first);
        total = merge_sums<BLOCKS>(all);
    } else {
        barrier();
    }
    return total;
}

#endif
