/* quant.h: the arguments of kernels on quantised weights. */
#ifndef WK_KERNELS_QUANT_H
#define WK_KERNELS_QUANT_H

#include "types.h"

enum { WK_QUANT_ROWS = 8 }; /* the most rows of x that go over the weights together */

/* Rows of weights that a wave takes together with m rows of x (1, 4 or 8): as many as registers hold; q6_k is format 3. */
#define WK_QUANT_GROUP(format, m) ((m) == 1 ? 4 : (m) == 8 && (format) == 3 ? 1 : 2)

/* quant_row: rows of weights that a wave has in shared memory together, and how many weights of each; the room that 64 of x take
 * there. */
enum { WK_QUANT_ROW_ROWS = 2, WK_QUANT_ROW_PAIR = 272, WK_QUANT_ROW_THREADS = 512 };
#define WK_QUANT_ROW_UNIT(format) ((format) == 0 || (format) == 2 ? 4096 : 2048)

/* y [m, n] = act(x [m, k] . weight^T + bias). */
typedef struct {
    const u8 *weight;
    i64 pitch;     /* bytes from row to row */
    const void *x; /* packed */
    void *y;
    const void *bias; /* or NULL */
    i64 bias_step;
    i64 n, k;
    i32 m, act;
    i32 split; /* waves that share the columns of a group of rows: 1, 2, 4, ... */
} quant_dot_args;

/* y [count, k]: rows of weight, at ids where these are given. */
typedef struct {
    const u8 *weight;
    i64 pitch;
    void *y;
    i64 count, k;
    const void *ids; /* packed */
    i32 id_bytes;
    i64 limit;
    wk_report report;
} quant_rows_args;

#endif
