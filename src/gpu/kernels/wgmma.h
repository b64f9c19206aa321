/* wgmma.h: Hopper's products by a group of four waves, with operands in shared memory, that go on while the waves do
 * something else. Rows of 128 bytes lie in shared memory with their 16-byte pieces exchanged as tile.h has it. */
#ifndef WK_KERNELS_WGMMA_H
#define WK_KERNELS_WGMMA_H

#include "mma.h"

/* Where an operand is. far: bytes between blocks of 64 columns, where rows are the sum's. Groups of 8 rows follow each
 * other. */
DEVICE u64 wgmma_place(const void *p, int far)
{
    u64 at = shared_address(p), groups = 1024;
    return (at & 0x3FFFF) >> 4 | (u64)(far >> 4) << 16 | groups >> 4 << 32 | (u64)1 << 62;
}

DEVICE void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
DEVICE void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int LEFT> DEVICE void wgmma_wait()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(LEFT) : "memory");
}

#define WK_LIST32 \
    "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%" \
    "27,%28,%29," \
    "%30,%31}"
#define WK_LIST64 \
    "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%" \
    "27,%28,%29," \
    "%30,%31,%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%" \
    "55,%56,%57," \
    "%58,%59,%60,%61,%62,%63}"
#define WK_SUMS8(i) \
    "+f"(c[i]), "+f"(c[i + 1]), "+f"(c[i + 2]), "+f"(c[i + 3]), "+f"(c[i + 4]), "+f"(c[i + 5]), \
        "+f"(c[i + 6]), "+f"(c[i + 7])
#define WK_SUMS32(i) WK_SUMS8(i), WK_SUMS8(i + 8), WK_SUMS8(i + 16), WK_SUMS8(i + 24)
#define WK_SUMS64 WK_SUMS32(0), WK_SUMS32(32)

/* c (+)= a . b^T, both in shared memory with the sum along their rows; the same with the sum along their columns; then
 * c += a . b, a in registers and the sum along b's columns. */
#define WK_WGMMA_SHARED(name, turned, T, type, n, list, o0, o1, o2, ...) \
    DEVICE void name(width_tag<n>, T, f32 *c, u64 a, u64 b, int add) \
    { \
        asm volatile("{.reg .pred p; setp.ne.b32 p, %" o2 ", 0;\n" \
                     "wgmma.mma_async.sync.aligned.m64n" #n "k16.f32." type "." type " " list ", %" o0 \
                     ", %" o1 ", p, 1, 1, " turned ";}" \
                     : __VA_ARGS__ \
                     : "l"(a), "l"(b), "r"(add)); \
    }
#define WK_WGMMA(T, type, n, list, sums, o0, o1, o2, o3, o4) \
    WK_WGMMA_SHARED(wgmma_dots, "0, 0", T, type, n, list, o0, o1, o2, sums) \
    WK_WGMMA_SHARED(wgmma_turned, "1, 1", T, type, n, list, o0, o1, o2, sums) \
    DEVICE void wgmma_add(width_tag<n>, f32 *c, const fragment<T> &a, u64 b) \
    { \
        asm volatile("wgmma.mma_async.sync.aligned.m64n" #n "k16.f32." type "." type " " list ", {%" o0 \
                     ",%" o1 ",%" o2 ",%" o3 "}, %" o4 ", 1, 1, 1, 1;" \
                     : sums \
                     : "r"(a.w[0]), "r"(a.w[1]), "r"(a.w[2]), "r"(a.w[3]), "l"(b)); \
    }
template <int N> struct width_tag {
};
WK_WGMMA(f16, "f16", 64, WK_LIST32, WK_SUMS32(0), "32", "33", "34", "35", "36")
WK_WGMMA(bf16, "bf16", 64, WK_LIST32, WK_SUMS32(0), "32", "33", "34", "35", "36")
WK_WGMMA(f16, "f16", 128, WK_LIST64, WK_SUMS64, "64", "65", "66", "67", "68")
WK_WGMMA(bf16, "bf16", 128, WK_LIST64, WK_SUMS64, "64", "65", "66", "67", "68")

#endif
