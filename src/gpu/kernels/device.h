/* device.h: one language for hipRTC and NVRTC: threads and waves, f16 and bf16, mathematics, reductions. No vendor
 * header is included: on AMD this file takes the place of hipRTC's own prelude, which would cost nine tenths of
 * every compilation.
 *
 * From the host come WAVE (32 or 64 lanes) and WK_AMD or WK_NVIDIA. A kernel that is right for only one width is a bug.
 *
 * A kernel is a template over dtypes and small numbers that takes one struct of arguments, shared with the host:
 *     template <class T, int LOG> DEVICE void softmax_rows(const softmax_args &a) { ... }
 * and the host asks for one instance of it: INSTANCE(softmax_rows, softmax_args, 256, f16, 1). */
#ifndef WK_KERNELS_DEVICE_H
#define WK_KERNELS_DEVICE_H

#include "types.h"

/* ---- the two compilers ---- */

#ifdef WK_AMD
#define WK_ATTR(x) __attribute__((x))
#define KERNEL extern "C" WK_ATTR(global)
#define MEMBER inline WK_ATTR(device) WK_ATTR(always_inline)
#define SHARED WK_ATTR(shared)
#define CONSTANT static WK_ATTR(device) const
#define BOUNDS(threads) WK_ATTR(amdgpu_flat_work_group_size(1, threads))
#define BOUNDS_OF(blocks, threads) BOUNDS(threads)
#define PARAM(type) const type
#define RESTRICT __restrict__
#else
#define KERNEL extern "C" __global__
#define MEMBER __device__ __forceinline__
#define SHARED __shared__
#define CONSTANT static __device__ const
#define BOUNDS(threads) __launch_bounds__(threads)
#define BOUNDS_OF(blocks, threads) __launch_bounds__(threads, blocks)
#define PARAM(type) const __grid_constant__ type
#define RESTRICT __restrict__
#endif
/* Shared memory that may be more than a kernel can ask for by itself: on NVIDIA it comes with the launch. */
#ifdef WK_AMD
#define ROOM(name, bytes) SHARED alignas(16) unsigned char name[bytes]
#else
#define ROOM(name, bytes) extern SHARED __align__(1024) unsigned char name[]
#endif
#define UNROLL _Pragma("unroll")
#define UNROLL_BY_4 _Pragma("unroll 4")
#define ROLLED _Pragma("unroll 1") /* a loop whose copies would cost more to compile than they gain */
/* Over dimensions, for what a block does once: AMD's compiler keeps all that the copies need in scalar registers through the
 * kernel, and there are not so many. */
#ifdef WK_AMD
#define UNROLL_DIMS ROLLED
#else
#define UNROLL_DIMS UNROLL
#endif
#define DEVICE static MEMBER /* a function; MEMBER: of a struct, or a specialisation */

#define INSTANCE(name, kernel, args, threads, ...) \
    KERNEL void BOUNDS(threads) name(PARAM(args) a) \
    { \
        begin_kernel(); \
        kernel<__VA_ARGS__>(a); \
    }
/* With registers for so many blocks on a unit. */
#define INSTANCE_OF(blocks, name, kernel, args, threads, ...) \
    KERNEL void BOUNDS_OF(blocks, threads) name(PARAM(args) a) \
    { \
        begin_kernel(); \
        kernel<__VA_ARGS__>(a); \
    }

typedef float f32;
typedef double f64;

/* ---- the kernels before and behind: NVIDIA's overlap from sm_90 on ---- */

#if defined(WK_NVIDIA) && __CUDA_ARCH__ >= 900
/* The next kernel of the stream may begin, which then waits for the end of this one. */
DEVICE void let_next_begin() { asm volatile("griddepcontrol.launch_dependents;"); }
/* The kernels ahead are done, and what they have written is seen. */
DEVICE void wait_for_inputs() { asm volatile("griddepcontrol.wait;" ::: "memory"); }
/* Brings so many bytes (a multiple of 16, at one) to the cache that all units share, where a kernel ahead may still change
 * them: what may be done before wait_for_inputs. One lane's call is enough. */
DEVICE void fetch_ahead(const void *p, u32 bytes)
{
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(p), "r"(bytes) : "memory");
}
#else
DEVICE void let_next_begin() {}
DEVICE void wait_for_inputs() {}
DEVICE void fetch_ahead(const void *, u32) {}
#endif
/* What an instance begins with. A file that does so at its own time (each of its kernels calls both, in every block) says
 * BEGINS_ITSELF before it includes this one. */
DEVICE void begin_kernel()
{
#ifndef BEGINS_ITSELF
    let_next_begin();
    wait_for_inputs();
#endif
}

/* ---- threads ---- */

#ifdef WK_AMD
DEVICE u32 thread_id() { return __builtin_amdgcn_workitem_id_x(); }
DEVICE u32 block_id() { return __builtin_amdgcn_workgroup_id_x(); }
DEVICE u32 block_id_y() { return __builtin_amdgcn_workgroup_id_y(); }
DEVICE u32 block_id_z() { return __builtin_amdgcn_workgroup_id_z(); }
DEVICE u32 block_size() { return __builtin_amdgcn_workgroup_size_x(); }
DEVICE u32 grid_blocks() { return __builtin_amdgcn_grid_size_x() / __builtin_amdgcn_workgroup_size_x(); }
DEVICE u32 grid_blocks_y() { return __builtin_amdgcn_grid_size_y(); }
DEVICE void barrier()
{
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
#if WAVE == 64
DEVICE u32 lane_id() { return __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0)); }
#else
DEVICE u32 lane_id() { return __builtin_amdgcn_mbcnt_lo(~0u, 0); }
#endif
/* The value of another lane of the wave; every lane takes part. */
DEVICE u32 shuffle_word(u32 v, u32 from)
{
    return (u32)__builtin_amdgcn_ds_bpermute((int)(from * 4), (int)v);
}
/* A bit for every lane where p holds. Older compilers have the first form for 64 lanes only. */
#if WAVE == 64
DEVICE u64 wave_ballot(bool p) { return __builtin_amdgcn_ballot_w64(p); }
#else
DEVICE u64 wave_ballot(bool p) { return __builtin_amdgcn_ballot_w32(p); }
#endif
/* What lanes of the wave wrote to shared memory is seen by its other lanes. */
DEVICE void wave_sync()
{
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront");
    __builtin_amdgcn_wave_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront");
}
DEVICE u32 count_bits(u64 v) { return (u32)__builtin_popcountll(v); }
/* On integers only: their order does not matter. */
DEVICE void atomic_add(u32 *p, u32 v)
{
    __hip_atomic_fetch_add(p, v, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
DEVICE void atomic_max(u32 *p, u32 v)
{
    __hip_atomic_fetch_max(p, v, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
/* On floats the order of the additions, and so the last bits, are left to chance. */
DEVICE void atomic_add_float(f32 *p, f32 v)
{
    __hip_atomic_fetch_add(p, v, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
DEVICE void atomic_add_float(f64 *p, f64 v)
{
    __hip_atomic_fetch_add(p, v, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
/* What the thread wrote before is seen by the whole device before what it writes after; the same for reads. */
DEVICE void device_fence() { __builtin_amdgcn_fence(__ATOMIC_ACQ_REL, "agent"); }
/* Adds one to a counter that all blocks share; the count before. */
DEVICE u32 atomic_next_of_all(u32 *p)
{
    return __hip_atomic_fetch_add(p, 1u, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
/* Adds one to a counter of the block; the count before. */
DEVICE u32 atomic_next(u32 *p)
{
    return __hip_atomic_fetch_add(p, 1u, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
}
#else
DEVICE u32 thread_id() { return threadIdx.x; }
DEVICE u32 block_id() { return blockIdx.x; }
DEVICE u32 block_id_y() { return blockIdx.y; }
DEVICE u32 block_id_z() { return blockIdx.z; }
DEVICE u32 block_size() { return blockDim.x; }
DEVICE u32 grid_blocks() { return gridDim.x; }
DEVICE u32 grid_blocks_y() { return gridDim.y; }
DEVICE void barrier() { __syncthreads(); }
DEVICE u32 lane_id() { return threadIdx.x & 31; }
DEVICE u32 shuffle_word(u32 v, u32 from) { return __shfl_sync(0xffffffffu, v, from); }
DEVICE u64 wave_ballot(bool p) { return __ballot_sync(0xffffffffu, p); }
DEVICE void wave_sync() { __syncwarp(); }
DEVICE u32 count_bits(u64 v) { return (u32)__popcll(v); }
DEVICE void atomic_add(u32 *p, u32 v) { atomicAdd(p, v); }
DEVICE void atomic_max(u32 *p, u32 v) { atomicMax(p, v); }
DEVICE void atomic_add_float(f32 *p, f32 v) { atomicAdd(p, v); }
DEVICE void atomic_add_float(f64 *p, f64 v) { atomicAdd(p, v); }
DEVICE void device_fence() { __threadfence(); }
DEVICE u32 atomic_next_of_all(u32 *p) { return atomicAdd(p, 1u); }
DEVICE u32 atomic_next(u32 *p) { return atomicAdd(p, 1u); }
#endif
/* The same for all lanes, which lets what follows from it be scalar. */
#ifdef WK_AMD
DEVICE u32 wave_id() { return (u32)__builtin_amdgcn_readfirstlane((int)(thread_id() / WAVE)); }
#else
DEVICE u32 wave_id() { return thread_id() / WAVE; }
#endif

#ifdef WK_NVIDIA
DEVICE u32 shared_address(const void *p) { return (u32)__cvta_generic_to_shared(p); }
/* 16 bytes to shared memory that no register sees; zeros where `there` does not hold. */
DEVICE void copy_async(void *shared, const void *from, bool there)
{
    asm volatile(
        "{.reg .pred none; setp.eq.u32 none, %2, 0;\ncp.async.cg.shared.global [%0], [%1], 16, none;}" ::"r"(
            shared_address(shared)),
        "l"(from), "r"((u32)there)
        : "memory");
}
/* The same for what is read once: it leaves the shared cache first, and what is read again (also the kernels' instructions)
 * stays there. policy: first_to_leave(). */
DEVICE u64 first_to_leave()
{
    u64 policy;
    asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    return policy;
}
DEVICE void copy_async_once(void *shared, const void *from, bool there, u64 policy)
{
    asm volatile(
        "{.reg .pred none; setp.eq.u32 none, %2, 0;\n"
        "cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, none, %3;}" ::"r"(shared_address(shared)),
        "l"(from), "r"((u32)there), "l"(policy)
        : "memory");
}
/* Closes a group of the thread's copies. */
DEVICE void copies_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }
/* All of the thread's groups are there but the last LATER ones. For the thread itself. */
template <int LATER> DEVICE void copies_wait_but()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(LATER) : "memory");
}
/* The thread's copies are there; a barrier tells the others. */
DEVICE void copies_wait()
{
    asm volatile("cp.async.wait_all;" ::: "memory");
#if __CUDA_ARCH__ >= 900 /* also for products that read shared memory themselves */
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}
#endif

DEVICE i64 global_thread() { return (i64)block_id() * block_size() + thread_id(); }
#ifdef WK_AMD /* no division, which grid_blocks() costs */
DEVICE i64 global_threads() { return __builtin_amdgcn_grid_size_x(); }
#else
DEVICE i64 global_threads() { return (i64)grid_blocks() * block_size(); }
#endif

/* Lanes of the wave whose value has the same lowest BITS bits, of those where valid; every lane takes part. */
template <int BITS> DEVICE u64 wave_match(u32 value, bool valid)
{
    u64 lanes = wave_ballot(valid);
    UNROLL
    for (int b = 0; b < BITS; b++) {
        bool one = value >> b & 1;
        u64 ones = wave_ballot(one);
        lanes &= one ? ones : ~ones;
    }
    return lanes;
}
/* Bits of the lanes before this one. */
DEVICE u64 lanes_below() { return ((u64)1 << lane_id()) - 1; }

template <class A, class B> DEVICE A bit_cast(const B &b)
{
    static_assert(sizeof(A) == sizeof(B), "bit_cast between types of one size");
    A a;
#ifdef WK_AMD
    __builtin_memcpy(&a, &b, sizeof a);
#else
    memcpy(&a, &b, sizeof a);
#endif
    return a;
}

template <int BYTES> struct shuffled;
template <> struct shuffled<4> {
    template <class T> static MEMBER T get(T v, u32 from)
    {
        return bit_cast<T>(shuffle_word(bit_cast<u32>(v), from));
    }
};
template <> struct shuffled<8> {
    template <class T> static MEMBER T get(T v, u32 from)
    {
        u64 u = bit_cast<u64>(v);
        u64 lo = shuffle_word((u32)u, from), hi = shuffle_word((u32)(u >> 32), from);
        return bit_cast<T>(hi << 32 | lo);
    }
};
/* The value of lane `from` of the same wave (4 or 8 bytes); every lane of the wave takes part. */
template <class T> DEVICE T shuffle(T v, u32 from) { return shuffled<sizeof(T)>::get(v, from); }
template <class T> DEVICE T shuffle_xor(T v, u32 mask) { return shuffle(v, lane_id() ^ mask); }

/* ---- dtypes ---- */

struct f16 {
    unsigned short bits;
};
struct bf16 {
    unsigned short bits;
};

/* What a dtype computes in: float, double or i64, as on the CPU. */
template <class T> struct acc_of {
    typedef i64 type;
    static const bool is_float = false;
};
template <> struct acc_of<f32> {
    typedef f32 type;
    static const bool is_float = true;
};
template <> struct acc_of<f16> : acc_of<f32> {
};
template <> struct acc_of<bf16> : acc_of<f32> {
};
template <> struct acc_of<f64> {
    typedef f64 type;
    static const bool is_float = true;
};
template <class T> using acc = typename acc_of<T>::type;

DEVICE f32 from_f16(f16 h)
{
#ifdef WK_AMD
    return (f32)bit_cast<_Float16>(h);
#else
    f32 f;
    asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h.bits));
    return f;
#endif
}

DEVICE f16 to_f16(f32 f)
{
#ifdef WK_AMD
    return bit_cast<f16>((_Float16)f);
#else
    f16 h;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h.bits) : "f"(f));
    return h;
#endif
}

DEVICE f32 from_bf16(bf16 h) { return bit_cast<f32>((u32)h.bits << 16); }

/* To nearest even; a NaN stays a quiet NaN. */
DEVICE bf16 to_bf16(f32 f)
{
#ifdef WK_NVIDIA
    bf16 h;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(h.bits) : "f"(f));
    return h;
#else
    u32 u = bit_cast<u32>(f);
    u32 rounded = (u + 0x7FFF + ((u >> 16) & 1)) >> 16, nan = (u >> 16) | 0x40;
    return {(unsigned short)((u & 0x7FFFFFFF) > 0x7F800000 ? nan : rounded)};
#endif
}

/* The double as a float that, rounded to a narrower type, gives what rounding once would: inexact results are made
 * odd. */
DEVICE f32 to_f32_odd(f64 d)
{
    f32 f = (f32)d;
    u32 u = bit_cast<u32>(f);
    if ((f64)f == d || f != f || (u & 0x7FFFFFFF) == 0x7F800000 || (u & 1))
        return f;
    bool grew = d < 0 ? f < d : f > d;
    return bit_cast<f32>(grew ? u - 1 : u + 1);
}

/* Float to integer as the contract has it: cut, saturated; NaN becomes 0. */
DEVICE i64 saturate(f64 d, f64 lo, f64 hi)
{
    if (d != d)
        return 0;
    if (d <= lo)
        return lo <= -0x1p63 ? (i64)(1ull << 63) : (i64)lo;
    if (d >= hi)
        return hi >= 0x1p63 ? (i64)(~0ull >> 1) : (i64)hi;
    return (i64)d;
}

template <class T> struct range_of;
template <> struct range_of<u8> {
    static constexpr f64 lo = 0, hi = 255;
};
template <> struct range_of<u32> {
    static constexpr f64 lo = 0, hi = 4294967295.0;
};
template <> struct range_of<i16> {
    static constexpr f64 lo = -32768, hi = 32767;
};
template <> struct range_of<i32> {
    static constexpr f64 lo = -2147483648.0, hi = 2147483647.0;
};
template <> struct range_of<i64> {
    static constexpr f64 lo = -0x1p63, hi = 0x1p63;
};

/* An element as its compute type, and back (rounded, wrapped, or saturated from a float). */
template <class T> DEVICE acc<T> get(T v) { return (acc<T>)v; }
DEVICE f32 get(f16 v) { return from_f16(v); }
DEVICE f32 get(bf16 v) { return from_bf16(v); }

template <class T> struct put_to {
    static MEMBER T run(i64 v) { return (T)v; }
    static MEMBER T run(f32 v) { return (T)saturate(v, range_of<T>::lo, range_of<T>::hi); }
    static MEMBER T run(f64 v) { return (T)saturate(v, range_of<T>::lo, range_of<T>::hi); }
};
template <> struct put_to<f32> {
    template <class A> static MEMBER f32 run(A v) { return (f32)v; }
};
template <> struct put_to<f64> {
    template <class A> static MEMBER f64 run(A v) { return (f64)v; }
};
/* A 64-bit integer goes to the 16-bit floats over a double made odd: rounded once. */
DEVICE f64 odd_f64(i64 v)
{
    f64 d = (f64)v;
    u64 a = v < 0 ? 0 - (u64)v : (u64)v;
    return a >> 53 ? bit_cast<f64>(bit_cast<u64>((f64)(i64)(v & ~(i64)0xFFF)) | 1) : d;
}
template <> struct put_to<f16> {
    static MEMBER f16 run(f32 v) { return to_f16(v); }
    static MEMBER f16 run(f64 v) { return to_f16(to_f32_odd(v)); }
    static MEMBER f16 run(i64 v) { return to_f16(to_f32_odd(odd_f64(v))); }
};
template <> struct put_to<bf16> {
    static MEMBER bf16 run(f32 v) { return to_bf16(v); }
    static MEMBER bf16 run(f64 v) { return to_bf16(to_f32_odd(v)); }
    static MEMBER bf16 run(i64 v) { return to_bf16(to_f32_odd(odd_f64(v))); }
};
template <class T, class A> DEVICE T put(A v) { return put_to<T>::run(v); }

/* One of the two 16-bit elements of a word; bf16's lie where a float has them, or a shift away. */
template <class T> DEVICE f32 half_of(u32 w, bool upper)
{
    return get(T{(unsigned short)(upper ? w >> 16 : w)});
}
template <> MEMBER f32 half_of<bf16>(u32 w, bool upper)
{
    return bit_cast<f32>(upper ? w & 0xFFFF0000u : w << 16);
}

/* Several neighbouring elements, moved by one access. */
template <class T, int N> struct alignas(sizeof(T) * N) pack {
    T v[N];
};
template <int N, class T> DEVICE pack<T, N> load(const T *p) { return *(const pack<T, N> *)p; }
template <int N, class T> DEVICE void store(T *p, const pack<T, N> &v) { *(pack<T, N> *)p = v; }
/* The same for what is read once: it does not push what is read again (a row of weights) out of the nearest cache. */
template <int N, class T> DEVICE pack<T, N> load_once(const T *p)
{
#ifdef WK_NVIDIA
    if constexpr (sizeof(pack<T, N>) == 16) {
        u32 w[4];
        asm volatile("ld.global.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(w[0]), "=r"(w[1]), "=r"(w[2]), "=r"(w[3])
                     : "l"(p));
        return bit_cast<pack<T, N>>(w);
    }
#endif
    return load<N>(p);
}
/* ---- indices ---- */

/* n / v.d for n below 2^31. */
DEVICE u32 divide(u32 n, const wk_divisor &v)
{
#ifdef WK_AMD
    return ((u32)(((u64)n * v.magic) >> 32) + n) >> v.shift;
#else
    return (__umulhi(n, v.magic) + n) >> v.shift;
#endif
}

/* Leaves a value that is wrong for the next synchronisation to report. */
DEVICE void index_bad(const wk_report &r, i64 value, i64 limit)
{
    u64 what = (u64)limit << 16 | (u64)(u32)r.op << 4 | (u64)(r.slot + 1);
    store<2>((u64 *)r.mailbox, pack<u64, 2>{{what, (u64)value}});
}

/* True when the index is one of [0, limit); else it is left for the next synchronisation to report. */
DEVICE bool index_ok(const wk_report &r, i64 value, i64 limit)
{
    if ((u64)value < (u64)limit)
        return true;
    index_bad(r, value, limit);
    return false;
}

/* ---- mathematics ---- */

#ifdef WK_AMD
#define WK_MATH1(name) \
    extern "C" WK_ATTR(device) WK_ATTR(const) f32 __ocml_##name##_f32(f32); \
    extern "C" WK_ATTR(device) WK_ATTR(const) f64 __ocml_##name##_f64(f64); \
    DEVICE f32 m_##name(f32 x) { return __ocml_##name##_f32(x); } \
    DEVICE f64 m_##name(f64 x) { return __ocml_##name##_f64(x); }
#define WK_MATH2(name) \
    extern "C" WK_ATTR(device) WK_ATTR(const) f32 __ocml_##name##_f32(f32, f32); \
    extern "C" WK_ATTR(device) WK_ATTR(const) f64 __ocml_##name##_f64(f64, f64); \
    DEVICE f32 m_##name(f32 x, f32 y) { return __ocml_##name##_f32(x, y); } \
    DEVICE f64 m_##name(f64 x, f64 y) { return __ocml_##name##_f64(x, y); }
#else
#define WK_MATH1(name) \
    DEVICE f32 m_##name(f32 x) { return name##f(x); } \
    DEVICE f64 m_##name(f64 x) { return name(x); }
#define WK_MATH2(name) \
    DEVICE f32 m_##name(f32 x, f32 y) { return name##f(x, y); } \
    DEVICE f64 m_##name(f64 x, f64 y) { return name(x, y); }
#endif
WK_MATH1(exp)
WK_MATH1(expm1)
WK_MATH1(log)
WK_MATH1(log1p)
WK_MATH1(sin)
WK_MATH1(cos)
WK_MATH1(tanh)
WK_MATH1(erf)
WK_MATH2(pow)

#ifdef WK_AMD
#define WK_BUILTIN1(name) \
    DEVICE f32 m_##name(f32 x) { return __builtin_##name##f(x); } \
    DEVICE f64 m_##name(f64 x) { return __builtin_##name(x); }
DEVICE f32 m_fma(f32 x, f32 y, f32 z) { return __builtin_fmaf(x, y, z); }
DEVICE f64 m_fma(f64 x, f64 y, f64 z) { return __builtin_fma(x, y, z); }
#else
#define WK_BUILTIN1(name) WK_MATH1(name)
DEVICE f32 m_fma(f32 x, f32 y, f32 z) { return fmaf(x, y, z); }
DEVICE f64 m_fma(f64 x, f64 y, f64 z) { return fma(x, y, z); }
#endif
WK_BUILTIN1(sqrt)
WK_BUILTIN1(fabs)
WK_BUILTIN1(floor)
WK_BUILTIN1(ceil)
WK_BUILTIN1(trunc)

/* Right but for a unit or two in the last place; not for tiny numbers. */
#ifdef WK_AMD
DEVICE f32 fast_sqrt(f32 x) { return __builtin_amdgcn_sqrtf(x); }
DEVICE f32 fast_rsqrt(f32 x) { return __builtin_amdgcn_rsqf(x); }
#else
DEVICE f32 fast_sqrt(f32 x)
{
    asm("sqrt.approx.f32 %0, %0;" : "+f"(x));
    return x;
}
DEVICE f32 fast_rsqrt(f32 x)
{
    asm("rsqrt.approx.f32 %0, %0;" : "+f"(x));
    return x;
}
#endif

template <class A> MEMBER A infinity() { return (A)bit_cast<f32>(0x7F800000u); }
template <> MEMBER i64 infinity<i64>() { return (i64)(~0ull >> 1); }
template <class A> MEMBER A smallest() { return -infinity<A>(); } /* below every number */
template <> MEMBER i64 smallest<i64>() { return (i64)(1ull << 63); }
template <class A> MEMBER A lowest(); /* the least finite number */
template <> MEMBER f32 lowest<f32>() { return bit_cast<f32>(0xFF7FFFFFu); }
template <> MEMBER f64 lowest<f64>() { return bit_cast<f64>(0xFFEFFFFFFFFFFFFFull); }
template <class A> DEVICE A lesser(A a, A b) { return b < a ? b : a; }
template <class A> DEVICE A greater(A a, A b) { return b > a ? b : a; }
/* The other one, where one is a NaN; one instruction. */
#ifdef WK_AMD
DEVICE f32 max_number(f32 a, f32 b) { return __builtin_fmaxf(a, b); }
#else
DEVICE f32 max_number(f32 a, f32 b) { return fmaxf(a, b); }
#endif
/* A NaN among the two is the result. */
template <class A> DEVICE A min_nan(A a, A b) { return a != a || a < b ? a : b; }
template <class A> DEVICE A max_nan(A a, A b) { return a != a || a > b ? a : b; }
#ifdef WK_NVIDIA /* one instruction from sm_80 on */
DEVICE f32 min_nan(f32 a, f32 b)
{
    f32 y;
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
    return y;
}
DEVICE f32 max_nan(f32 a, f32 b)
{
    f32 y;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
    return y;
}
#endif

/* 1 / x for x of 1 or more, off by at most one in the last place where that is much cheaper. */
DEVICE f64 m_recip(f64 x) { return 1 / x; }
DEVICE f32 m_recip(f32 x)
{
#ifdef WK_AMD
    return __builtin_amdgcn_rcpf(x);
#else
    f32 y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
#endif
}
/* 2 to the x by the hardware's own instruction: good to two places in the last, where x is; 0 for what is below the least
 * normal number. */
DEVICE f32 m_exp2_fast(f32 x)
{
#ifdef WK_AMD
#if __has_builtin(__builtin_amdgcn_exp2f)
    return __builtin_amdgcn_exp2f(x);
#else /* ROCm before 5.7 */
    return __builtin_exp2f(x);
#endif
#else
    f32 y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
#endif
}
/* e to the x by the same: for weights that are summed and divided by their sum. */
DEVICE f32 m_exp_fast(f32 x) { return m_exp2_fast(x * 1.44269504088896340736f); }
DEVICE f64 m_exp_fast(f64 x) { return m_exp(x); }
template <class R> DEVICE R m_sigmoid(R x)
{
    R e = m_exp(-m_fabs(x)), s = m_recip(1 + e);
    return x < 0 ? e * s : s;
}
/* log(1 + x) for x from 0 to 1, as 2 atanh(x / (2 + x)). */
DEVICE f64 m_log1p_unit(f64 x) { return m_log1p(x); }
DEVICE f32 m_log1p_unit(f32 x)
{
    f32 s = x * m_recip(2 + x), z = s * s;
    f32 p = m_fma(m_fma(m_fma(0.281783342f, z, 0.279606014f), z, 0.400249094f), z, 0.66666317f);
    return s * m_fma(p, z, 2.0f);
}
/* e^x - 1 for x up to 0: 2^n (e^r - 1) + 2^n - 1; the sum with a large number rounds x / log(2) to n, its last bits. */
DEVICE f64 m_expm1_below(f64 x) { return m_expm1(x); }
DEVICE f32 m_expm1_below(f32 x)
{
    x = max_number(x, -20.0f); /* -1 from here on */
    f32 large = 12582912.0f, sum = m_fma(x, 1.44269504f, large), n = sum - large;
    f32 r = m_fma(n, -1.42860677e-6f, m_fma(n, -0.693145752f, x));
    f32 p = m_fma(m_fma(m_fma(0.00139012863f, r, 0.00836314447f), r, 0.0416668542f), r, 0.166665778f);
    f32 power = bit_cast<f32>((bit_cast<u32>(sum) << 23) + 0x3F800000u);
    return m_fma(m_fma(r * r, m_fma(p, r, 0.5f), r), power, power - 1);
}
template <class R> DEVICE R m_softplus(R x) { return greater(x, (R)0) + m_log1p_unit(m_exp(-m_fabs(x))); }

/* ---- blocks that share a result ---- */

/* True for the last of `blocks` blocks that come here; what the others wrote before they came is seen by it. Every thread
 * of the block calls this; the counter is 0 before and after. */
DEVICE bool last_of(u32 *counter, u32 blocks)
{
    SHARED u32 is_last;
    device_fence();
    barrier();
    if (thread_id() == 0) {
        is_last = atomic_next_of_all(counter) == blocks - 1;
        if (is_last)
            *counter = 0;
    }
    barrier();
    device_fence();
    return is_last;
}

/* ---- reductions over lanes and blocks ---- */

struct op_sum {
    template <class A> static MEMBER A run(A a, A b) { return a + b; }
};
struct op_max {
    template <class A> static MEMBER A run(A a, A b) { return max_nan(a, b); }
};
struct op_max_number {
    static MEMBER f32 run(f32 a, f32 b) { return max_number(a, b); }
};
struct op_min {
    template <class A> static MEMBER A run(A a, A b) { return min_nan(a, b); }
};

/* Over groups of WIDTH neighbouring lanes (a power of two up to WAVE); every lane gets the result. */
template <class OP, int WIDTH = WAVE, class A> DEVICE A wave_reduce(A v)
{
    UNROLL
    for (u32 m = WIDTH / 2; m; m /= 2)
        v = OP::run(v, shuffle_xor(v, m));
    return v;
}

/* Over the THREADS threads of the block; every thread gets the result. room: THREADS / WAVE values (at least one)
 * of shared memory, free again after the call. */
template <class OP, int THREADS, class A> DEVICE A block_reduce(A v, A *room)
{
    const int waves = THREADS / WAVE;
    v = wave_reduce<OP>(v);
    if (waves <= 1)
        return v;
    if (lane_id() == 0)
        room[wave_id()] = v;
    barrier();
    v = room[0];
    for (int i = 1; i < waves; i++)
        v = OP::run(v, room[i]);
    barrier();
    return v;
}

#endif
