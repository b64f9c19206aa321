/* philox.h: the random words of src/core/random.h, with the same bits. */
#ifndef WK_KERNELS_PHILOX_H
#define WK_KERNELS_PHILOX_H

#include "device.h"

struct philox_block {
    u32 w0, w1, w2, w3;
};

/* The four words of a block. */
DEVICE philox_block philox(u64 seed, u64 block, u32 plane)
{
    u32 k0 = (u32)seed, k1 = (u32)(seed >> 32);
    u32 c0 = (u32)block, c1 = (u32)(block >> 32), c2 = plane, c3 = 0;
    UNROLL
    for (int round = 0; round < 10; round++) {
        u64 p0 = (u64)0xD2511F53u * c0, p1 = (u64)0xCD9E8D57u * c2;
        c0 = (u32)(p1 >> 32) ^ c1 ^ k0;
        c2 = (u32)(p0 >> 32) ^ c3 ^ k1;
        c1 = (u32)p1;
        c3 = (u32)p0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return {c0, c1, c2, c3};
}

/* Word i of a plane. */
DEVICE u32 philox_word(u64 seed, u64 offset, u32 plane, u64 i)
{
    philox_block b = philox(seed, offset + i / 4, plane);
    u32 lane = (u32)i % 4, low = lane & 1 ? b.w1 : b.w0, high = lane & 1 ? b.w3 : b.w2;
    return lane & 2 ? high : low;
}

#endif
