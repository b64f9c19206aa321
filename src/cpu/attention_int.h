/* attention_int.h: what the files of attention share. Nothing here is for others.
 *
 *   attention.c           the ops: from tensors to a plan; multi-head attention with its projections
 *   attention_forward.c   softmax(q k^T) v over blocks of keys, with a running maximum and sum
 *   attention_backward.c  its gradients, from scores made again block by block
 *   attention_block.inc.h scores of a block: mask, softcap and limits
 *   attention_pairs.inc.h the forward in bf16 on processors that multiply pairs or tiles of it
 *
 * The usual way works on ATTN_ROWS queries at a time, transposed: scores are [keys, rows], so that a vector holds
 * one key's scores for neighbouring queries. The products then read k and v where they lie, one value at a time
 * to all lanes, and maxima, sums and masks need nothing across lanes. The thin way, for a few queries over many
 * keys (decoding), has vectors along d instead and reads k and v once for all the heads that share them. */
#ifndef WK_CPU_ATTENTION_INT_H
#define WK_CPU_ATTENTION_INT_H

#include "ops/attention.h"
#include "gemm_int.h"

enum {
    ATTN_ROWS = 48,       /* queries in a block; a multiple of all kernels' widths */
    ATTN_LANES = 16,      /* of which so many are handled at once; divides ATTN_ROWS */
    ATTN_KEYS = 64,       /* keys in a block */
    ATTN_THIN = 8,        /* queries of one key head that go the thin way, */
    ATTN_THIN_KEYS = 256, /* with so many keys at a time; the two multiplied are no more than a block */
};

/* Strides of a tensor by head, row and element. */
typedef struct {
    int64_t h, s, d;
} attn_strides;

/* One element of the batch: s queries over t keys. Pointers are to its first element. */
typedef struct {
    const char *q, *k, *v, *mask;
    char *y, *lse;
    int64_t s, t;
    int64_t index; /* in the batch */
    /* The cut into tasks: units are key heads with all their queries, or query heads where these have enough of
     * their own; then blocks of rows; then splits of split_keys keys. */
    int64_t units, blocks, splits, split_keys;
    int64_t first_task, first_part;
    const uint16_t *values; /* v for products by tiles, or NULL */
    bool whole_groups;
} attn_sequence;

typedef struct {
    wk_dtype dtype, y_dtype, mask_dtype;
    wk_compute compute;
    int64_t hq, hk, d, dv;
    attn_strides q, k, v, y, mask; /* y.d is 1; lse is packed [h, s] */
    double scale, softcap;
    int64_t causal, window;
    double dropout;
    uint64_t seed, offset;
    int64_t n; /* sequences */
    attn_sequence *sequences;
    /* Filled by attn_forward: */
    int64_t tasks, parts;
    char *part_memory, *value_memory;
    size_t part_bytes;
    atomic_bool no_memory;
} attn_plan;

/* A block of queries that share a key head: row x is row first + x of the heads from `head` on. */
typedef struct {
    const attn_sequence *of;
    int64_t head, key_head, first;
    int rows;
    wk_key_range keys;           /* that any row sees */
    wk_key_range see[ATTN_ROWS]; /* that row x sees */
} attn_rows;

/* Whether the queries of a key head go the thin way. */
static inline bool attn_is_thin(const attn_plan *p, const attn_sequence *q)
{
    return q->whole_groups && p->hq / p->hk * q->s <= ATTN_THIN && p->dropout == 0;
}

static inline int64_t attn_head(const attn_rows *r, int x) { return r->head + (r->first + x) / r->of->s; }
static inline int64_t attn_query(const attn_rows *r, int x) { return (r->first + x) % r->of->s; }

/* C[m, n] (+)= A[m, k] B[k, n] by tiles; strides in packed elements, B and C with rows of vectors. more: NULL, or see
 * gemm_tile. */
typedef struct {
    const void *data;
    int64_t rs, cs;
} attn_mat;
void WK_ISA(attn_product)(const gemm_kernel *kernel, int64_t m, int64_t n, int64_t k, attn_mat a,
                          const void *b, const void *more, int64_t b_rs, void *c, int64_t c_rs, bool add);

/* Rows [row, row + n) of width elements from base, as values of the compute type: where they lie when they are
 * that (and, for a pitch > 0, when rows are packed and need no padding to it), else in buf, zeros up to pitch. */
attn_mat WK_ISA(attn_rows_of)(wk_dtype dtype, const char *base, attn_strides strides, int64_t row, int64_t n,
                              int64_t width, int64_t pitch, void *buf);

/* Cuts every sequence into units and blocks of rows, by sizes alone; returns how many blocks there are. */
int64_t WK_ISA(attn_cut_rows)(attn_plan *p);
/* Block i of the sequence, counted over all its units. */
attn_rows WK_ISA(attn_block)(const attn_plan *p, const attn_sequence *q, int64_t i);

/* Runs the plan: everything but what it fills in itself is set. */
wk_status WK_ISA(attn_forward)(attn_plan *p);

/* A plan of sdpa's gradient: all of it is packed and in the compute type, y is dy. */
typedef struct {
    attn_plan p;
    const void *delta;       /* of every row, sum(y * dy) */
    wk_tensor *dq, *dk, *dv; /* NULL: not wanted */
} attn_grad_plan;
wk_status WK_ISA(attn_backward)(attn_grad_plan *g);

/* Cuts one allocation into aligned pieces: with base NULL it only counts. */
static inline void *attn_take(char *base, size_t *at, int64_t count, size_t bytes)
{
    void *piece = base ? base + *at : NULL;
    *at += ((size_t)count * bytes + 63) / 64 * 64;
    return piece;
}

/* The largest width of a head: what scratch memory multiplies it with stays far from overflow. */
#define ATTN_MAX_WIDTH ((int64_t)1 << 40)

#endif
