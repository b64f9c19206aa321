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
#ifdef WK_NVIDIA
    static const bool PAIRED = EACH == 2; /* their largest is found two at a time */
#else
    static const bool PAIRED = false;
#endif
    u32 w[KEEP][4];
    u32 steps; /* packs of the line */

    MEMBER u32 index(int k) const
    {
        return (k * BLOCKS + block_id() % BLOCKS) * THREADS + thread_id() % THREADS;
    }
    MEMBER void fill(T none)
    {
        word empty;
        UNROLL
        for (int i = 0; i < EACH; i++)
            empty.v[i] = none;
        UNROLL
        for (int j = 0; j < KEEP * 4; j++)
            w[j / 4][j % 4] = bit_cast<u32>(empty);
    }
    /* `none` stands where the line has ended. */
    MEMBER void fetch(const T *line, T none)
    {
        const u32 *first = (const u32 *)line + (i64)index(0) * 4;
        fill(none);
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

/* exp(x - top) by one product for each x. What top's share lost by rounding is mended in the sum. Where top is so large that
 * its share is no number, elements are equal to it or so far below that any factor does. */
struct exp_from {
    f32 factor, share, mend;
    MEMBER exp_from(f32 top)
    {
        factor = m_fabs(top) < 1e38f ? 1.44269504088896340736f : 0x1p-10f;
        share = top * factor;
        mend = m_exp2_fast(-m_fma(top, factor, -share));
    }
    MEMBER f32 of(f32 x) const { return m_exp2_fast(m_fma(x, factor, -share)); }
};

#ifdef WK_NVIDIA
/* The larger of each two, of a NaN and a number the number. */
DEVICE u32 larger_pair(f16, u32 a, u32 b)
{
    u32 y;
    asm("max.f16x2 %0, %1, %2;" : "=r"(y) : "r"(a), "r"(b));
    return y;
}
DEVICE u32 larger_pair(bf16, u32 a, u32 b)
{
    u32 y;
    asm("max.bf16x2 %0, %1, %2;" : "=r"(y) : "r"(a), "r"(b));
    return y;
}
#endif

/* The largest number a thread has of a line. It is above -infinity, so that no difference of infinities comes up. */
template <class T, int KEEP, int THREADS, int BLOCKS>
DEVICE f32 kept_top(const kept_line<T, KEEP, THREADS, BLOCKS> &line)
{
    f32 top = lowest<f32>();
#ifdef WK_NVIDIA
    if constexpr (kept_line<T, KEEP, THREADS, BLOCKS>::PAIRED) {
        u32 best[4];
        UNROLL
        for (int j = 0; j < KEEP * 4; j++)
            best[j % 4] = j < 4 ? line.w[0][j] : larger_pair(T{}, best[j % 4], line.w[j / 4][j % 4]);
        UNROLL
        for (int j = 0; j < 8; j++)
            top = max_number(top, get(bit_cast<pack<T, 2>>(best[j / 2]).v[j % 2]));
        return top;
    }
#endif
    UNROLL
    for (int j = 0; j < KEEP * line.VEC; j++)
        top = max_number(top, line.value(j / line.VEC, j % line.VEC));
    return top;
}

/* A wave's share of the same for a line fetched with smallest numbers behind its end; top is 0, where the sum is not to be
 * shifted. */
template <class T, int KEEP, int THREADS, int BLOCKS>
DEVICE sum_exp<f32> kept_sum_exp_wave(kept_line<T, KEEP, THREADS, BLOCKS> &line, bool shifted)
{
    f32 top = shifted ? wave_reduce<op_max_number>(kept_top(line)) : 0, sum = 0;
    exp_from e(top);
    UNROLL
    for (int j = 0; j < KEEP * line.VEC; j++) {
        if (j % line.VEC == 0 && !line.PAIRED)
            line.forget(j / line.VEC);
        sum += e.of(line.value(j / line.VEC, j % line.VEC));
    }
    return {top, wave_reduce<op_sum>(sum) * e.mend};
}

/* A thread's share for a line that nobody keeps, a few packs at a time. */
template <class T, int THREADS> DEVICE sum_exp<f32> passing_sum_exp(const T *line, u32 steps)
{
    const int KEEP = 4, VEC = 16 / sizeof(T);
    f32 top = lowest<f32>(), sum = 0;
    for (u32 at = 0; at < steps; at += KEEP * THREADS) {
        kept_line<T, KEEP, THREADS> part;
        part.steps = steps - at;
        part.fetch(line + (i64)at * VEC, put<T>(smallest<f32>()));
        f32 before = top, more = 0;
        top = max_number(top, kept_top(part));
        exp_from e(top);
        UNROLL
        for (int j = 0; j < KEEP * VEC; j++) {
            if (j % VEC == 0 && !part.PAIRED)
                part.forget(j / VEC);
            more += e.of(part.value(j / VEC, j % VEC));
        }
        sum = sum * m_exp_fast(before - top) + more * e.mend;
    }
    return {top, sum};
}

/* The waves' sums, in `room` for all threads of the block. */
DEVICE void put_wave_sum(const sum_exp<f32> &mine, f32 (*room)[2])
{
    if (lane_id() == 0) {
        room[wave_id()][0] = mine.top;
        room[wave_id()][1] = mine.sum;
    }
    barrier();
}

/* Of all threads of the block. */
template <int THREADS> DEVICE sum_exp<f32> block_sum_exp(const sum_exp<f32> &mine)
{
    const int waves = THREADS / WAVE;
    SHARED f32 room[waves][2];
    f32 top = wave_reduce<op_max_number>(mine.top);
    put_wave_sum({top, wave_reduce<op_sum>(mine.sum * m_exp_fast(mine.top - top))}, room);
    sum_exp<f32> total = merge_sums<waves>(room);
    barrier();
    return total;
}

/* That of the line. all: see cluster_exchange. */
template <class T, int KEEP, int THREADS, int BLOCKS>
DEVICE sum_exp<f32> kept_sum_exp(kept_line<T, KEEP, THREADS, BLOCKS> &line, bool shifted, f32 (*all)[2],
                                 bool first)
{
    const int waves = THREADS / WAVE;
    SHARED f32 room[waves][2];
    sum_exp<f32> total = kept_sum_exp_wave(line, shifted); /* of the wave: one barrier is enough for both */
    put_wave_sum(total, room);
    total = merge_sums<waves>(room);
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
