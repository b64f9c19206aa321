/* matmul.h: the arguments of the matrix products. */
#ifndef WK_KERNELS_MATMUL_H
#define WK_KERNELS_MATMUL_H

#include "types.h"

enum {
    WK_TILE = 64,         /* rows and columns of the result a block makes */
    WK_TILE_K = 16,       /* steps of the sum in shared memory at once */
    WK_THIN = 8,          /* the most rows of a thin product */
    WK_COLUMN_LANES = 32, /* matmul_columns: threads along a row of b */
};

/* How a tile of an operand is read: along which of its dimensions neighbouring threads go, one element or several of
 * them at a time (four; eight for matrix units). */
enum { WK_READ_K_WIDE, WK_READ_ROW_WIDE, WK_READ_K, WK_READ_ROW };

/* One operand as rows [rows, k]: the second one is transposed. Strides are in elements. */
typedef struct {
    const void *data;
    i64 row, k;
    i64 step[WK_DIMS]; /* batch dimensions, innermost first */
    i32 read;
} matmul_operand;

/* c [m, n] = act(a [m, k] . b [n, k]^T + bias + z), for every product of the batch. */
typedef struct {
    matmul_operand a, b;
    void *c;
    i64 c_row, c_col, c_step[WK_DIMS], c_split;
    const void *bias; /* of c's dtype, or NULL */
    i64 bias_row, bias_col;
    const void *z; /* added too: lies as c does; or NULL */
    i64 m, n, k;
    i64 split_k; /* the steps of one split; a multiple of WK_TILE_K */
    i32 splits;
    i32 act;
    i32 batch, batch_rank;
    i32 vec; /* thin: both operands are read 16 bytes at a time */
    wk_divisor batch_size[WK_DIMS], row_tiles;
    i64 tiles;
} matmul_args;

/* The splits' parts [splits, batch, m, n], packed, to c. */
typedef struct {
    const void *parts;
    void *c;
    i64 c_row, c_col, c_step[WK_DIMS];
    const void *bias;
    i64 bias_row, bias_col;
    const void *z;
    i64 n, rows, count; /* count = batch * m * n */
    i32 m, splits, act, batch_rank;
    wk_divisor batch_size[WK_DIMS];
} matmul_finish_args;

#endif
