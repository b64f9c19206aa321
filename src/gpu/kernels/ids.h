/* ids.h: reading ids in kernels. Their dtype is no template parameter: a branch that all threads take alike costs
 * less than four times as many kernels. */
#ifndef WK_KERNELS_IDS_H
#define WK_KERNELS_IDS_H

#include "device.h"

/* `bytes` is the size of an id, negative when it is signed: 1, 4, -4, -8. */
DEVICE i64 load_id(const void *ids, i32 bytes, i64 at)
{
    if (bytes == -8)
        return ((const i64 *)ids)[at];
    if (bytes == -4)
        return ((const i32 *)ids)[at];
    if (bytes == 4)
        return ((const u32 *)ids)[at];
    return ((const u8 *)ids)[at];
}

/* The id that stands for none: the largest of its dtype. */
DEVICE i64 id_padding(i32 bytes)
{
    return bytes == -8 ? (i64)(~0ull >> 1) : bytes == -4 ? 0x7FFFFFFF : bytes == 4 ? 0xFFFFFFFFll : 255;
}

/* True for a place of [0, limit); false for none, and for a bad id, which is left for the next synchronisation. */
DEVICE bool id_leads(i64 id, i32 bytes, i64 limit, const wk_report &report)
{
    return id != id_padding(bytes) && index_ok(report, id, limit);
}

#endif
