/* attention.h: the arguments of attention's kernels. */
#ifndef WK_KERNELS_ATTENTION_H
#define WK_KERNELS_ATTENTION_H

#include "types.h"

enum {
    WK_ATTN_ROWS = 64,    /* queries (or, for dk and dv, keys) that a block owns without matrix units */
    WK_ATTN_STEP = 16,    /* steps of a sum in shared memory at once */
    WK_ATTN_THIN = 8,     /* rows of a unit that go the thin way, */
    WK_ATTN_WIDEST = 256, /* for heads no wider than this, */
    WK_ATTN_LANES = 16,   /* with so many threads to a key */
    WK_ATTN_CHUNK = 256,  /* and so many keys at a time */
};

enum {
    WK_MASK_NONE,
    WK_MASK_KEEP,
    WK_MASK_OWN,
    WK_MASK_F32
}; /* u8; added, of the data's dtype; added, f32 */

/* What a block of the gradients owns rows of: dq, dk, dv, or dk and dv. */
enum { WK_GRAD_Q, WK_GRAD_K, WK_GRAD_V, WK_GRAD_KV };

/* A tensor of [batch, heads, rows, width]; strides in elements. */
typedef struct {
    const void *data;
    i64 b, h, s, d;
    i32 wide; /* neighbours of a row that may be read at once: 1, 4 or 8 */
} attn_view;

/* Sequences laid end to end: where each begins in q and in k. u32 or i32. */
typedef struct {
    const void *q, *k; /* NULL: none, the batch is a dimension */
    i64 q_stride, k_stride;
    i32 q_signed, k_signed;
    i64 q_total, k_total;
} attn_sequences;

/* A unit is a key head of one element of the batch (or sequence) with all rows that share it: row r is query r % s of
 * the unit's head r / s. */
typedef struct {
    attn_view q, k, v, mask, dy;
    void *y;  /* the result; for gradients dq or dk, */
    void *y2; /* and dv */
    i64 y_b, y_h, y_s;
    void *lse;                /* [b, hq, s], packed; NULL: not wanted. For gradients an input, as is delta */
    const void *delta;        /* sum(y dy) of every row */
    i32 batch, hq, hk, group; /* group = hq / hk */
    i32 s, t, d, dv;
    i32 owners, blocks, units; /* rows that a block owns; blocks of rows in a unit; units */
    i32 causal, mask_kind;
    i64 window;
    double scale, softcap;
    attn_sequences sequences;
    u64 drop_below, seed, offset; /* dropout: weights whose word is below go; 0: none */
    double keep;                  /* what the others are multiplied with */
    /* Splits of the keys (grid z): parts of every row, put together afterwards. */
    i32 splits, split_keys;
    void *part_y, *part_top, *part_sum; /* [splits, rows, dv], [splits, rows] */
    u32 *counters;                      /* of units whose last block puts the parts together; or NULL */
    i64 rows;
} attn_args;

typedef struct {
    const void *part_y, *part_top, *part_sum;
    void *y, *lse;
    i64 rows;
    i64 n1, n2, y0, y1, y2; /* row (i0 n1 + i1) n2 + i2 begins at i0 y0 + i1 y1 + i2 y2 */
    i32 dv, splits;
} attn_join_args;

typedef struct {
    attn_view y, dy;
    void *delta;
    i64 rows;
    i32 hq, s, dv;
} attn_delta_args;

typedef struct {
    const void *data;
    i64 stride, count, total;
    i32 is_signed;
    wk_report report;
} attn_check_args;

/* All gradients in one pass over f16 copies of q, k, v and dy (attention_joint_grad.hip). */
enum {
    WK_JOINT_KEYS = 128, /* that a block owns */
    WK_JOINT_SIDE = 8,   /* units whose blocks begin in turns */
    WK_JOINT_END = 16,   /* tiles of dq that one of the last blocks has */
    WK_JOINT_ROUND = 128 /* queries of a head are so many, or as many times that */
};
enum {
    WK_PEAK_Q,
    WK_PEAK_K,
    WK_PEAK_V,
    WK_PEAK_DY,
    WK_NORM_V,
    WK_NORM_DY,
    WK_SAMPLE_Q, /* and k, v, dy */
    WK_PEAKS = WK_SAMPLE_Q + 4
};
typedef struct {
    attn_view q, k, v, dy, y; /* of the call */
    void *keys16, *tiles16;   /* copies: [b, hk, blocks] of joint_keys, [b, hq, tiles] of joint_tile */
    const void *lse;          /* [b, hq, s] */
    u32 *peaks;  /* bits of f32: largest elements, largest squares of a row's length, largest of samples */
    u32 *turns;  /* how many have added to a tile of sums; and the number of blocks begun */
    float *sums; /* dq, tile after tile */
    void *dq, *dk, *dv; /* packed */
    i32 batch, hq, hk, group, s, t;
    i32 blocks, tiles; /* of keys in a unit, of queries in a head */
    i32 causal, paired;
    float scale;
} attn_joint_args;

#endif
