/* index.h: the arguments of the indexing kernels.
 *
 * "small" has the shape of the ids (the result of gather, the src of scatter), "big" is what the ids lead into. Element
 * e of small belongs to big[e but for dim; ids[e] along dim]. */
#ifndef WK_KERNELS_INDEX_H
#define WK_KERNELS_INDEX_H

#include "types.h"

typedef struct {
    void *big, *small;
    const void *ids;
    i64 count; /* of small */
    i32 rank;  /* its dimensions, innermost first */
    wk_divisor size[WK_DIMS];
    i64 size64[WK_DIMS];
    i64 big_step[WK_DIMS]; /* strides; of dim 0 */
    i64 small_step[WK_DIMS], id_step[WK_DIMS];
    i64 flat_step[WK_DIMS];       /* big's if it were packed; of dim 0 */
    i64 place_step[WK_DIMS];      /* 1 for dim, 0 elsewhere */
    i64 along, flat_along;        /* strides of dim in big, and if that were packed */
    i64 limit;                    /* of ids: big's size along dim */
    i64 n, id_along, small_along; /* ids along dim, and strides along it */
    i32 id_bytes;                 /* see ids.h */
    u32 *last;  /* scatter, beside each element of big: 1 + the place along dim of its last id; NULL where
                              * there are so few ids that a thread looks through them */
    void *rest; /* scatter's gradient, packed like big: what no id leads to */
    u32 *keys, *places; /* adding, for each id: its element of big (`none` without), and its own number */
    u32 none;
    wk_report report;
} index_args;

/* Adding, once the pairs are in the order of their keys: big[key] += small[place] for all columns. */
typedef struct {
    const u32 *keys, *places;
    i64 n;
    u32 none;
    void *big;
    const void *small;
    i64 columns;
    i32 rank; /* dimensions of the columns, innermost first */
    wk_divisor size[WK_DIMS];
    i64 big_step[WK_DIMS], small_step[WK_DIMS];
    i64 big_along, small_along; /* strides of keys and places */
    i32 log_group;              /* threads side by side in a row */
} runs_args;

/* Lines of big along dim that fit into shared memory: read from, or from + the small ones of its ids. */
typedef struct {
    const void *from; /* NULL: zeros */
    void *big;
    const void *small, *ids;
    i64 lines, n, size; /* lines along dim; ids, elements of big in one */
    i32 rank;           /* of the lines, innermost first */
    wk_divisor shape[WK_DIMS];
    i64 from_step[WK_DIMS], big_step[WK_DIMS], small_step[WK_DIMS], id_step[WK_DIMS];
    i64 from_along, big_along, small_along, id_along;
    u32 *counters;    /* two, 0 before and after: blocks with slots draw what they do next */
    wk_divisor tiles; /* of a line, each of as many elements as the kernel has sums */
    i32 id_bytes;
    i32 packed; /* lines of big and from are packed, and aligned for packs */
    wk_report report;
} lines_args;

enum { WK_GATHER_THREADS = 256, WK_GATHER_STEPS = 2 };
enum { WK_RUNS_THREADS = 256, WK_RUN_LONG = 128, WK_ROW_PACKS = 4 };
enum { WK_LINE_THREADS = 512, WK_LINE_IDS = 4096 /* that a block has in hand at a time */ };
enum { WK_LINE_SLOTS = 4, WK_LINE_LIST = 256 };
/* Shared memory of a block that adds to a line of `size` sums: to sort values, or for slots too. */
#define WK_LINE_ROOM(size, bytes, slotted) \
    ((size)*4 + ((slotted) ? (size)*WK_LINE_SLOTS : WK_LINE_IDS) * (bytes) + WK_LINE_IDS + 512)

#endif
