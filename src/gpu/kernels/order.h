/* order.h: the arguments of the kernels that put keys into order. */
#ifndef WK_KERNELS_ORDER_H
#define WK_KERNELS_ORDER_H

#include "types.h"

enum {
    WK_ORDER_DIGITS = 256,
    WK_ORDER_TILE = 4096,   /* pairs of a block */
    WK_ORDER_FEW = 1 << 16, /* that blocks order by themselves, each a range of the keys */
};

typedef struct {
    const u32 *keys, *places;
    u32 *to_keys, *to_places;
    u32 *counts; /* [digit][block]: how many of the block's keys have the digit; then where they go */
    i64 n;
    u32 blocks;
    i32 shift; /* of the digit in the key */
    /* Few pairs: */
    u32 *mid_keys, *mid_places;
    u32 width;  /* keys of a block's range */
    i32 passes; /* over it, where a block has many */
    /* Where keys is NULL the ids are the keys, and their numbers the places; limit for one that leads nowhere. */
    const void *ids;
    i64 id_step, limit;
    i32 id_bytes;
    wk_report report;
} order_args;

#endif
