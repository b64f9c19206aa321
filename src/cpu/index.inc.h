/* index.inc.h: the loops of the indexing ops for elements of type T.
 *
 * Each goes through n ids and works on the pairs
 *     small[k * step] and big[ids[k] * along + k * across]
 * so that one loop serves lines (across = 0: the ids run along the dim) and rows of neighbouring lines (across is
 * what lies between these). It stops before the first id that is not in [0, limit) and returns how many it has
 * done: looking at ids right where they are used costs less than a pass of its own. With holes ids are known to
 * be good, and a negative one stands for none. */

#define ARGUMENTS \
    T *restrict big, int64_t along, int64_t across, T *restrict small, int64_t step, \
        const int64_t *restrict ids, int64_t n, uint64_t limit, bool holes

static inline int64_t FN(add_loop)(ARGUMENTS)
{
    for (int64_t k = 0; k < n; k++) {
        int64_t id = ids[k];
        if (!holes && __builtin_expect((uint64_t)id >= limit, 0))
            return k;
        if (!holes || id >= 0)
            big[id * along + k * across] += small[k * step];
    }
    return n;
}

#define LOOP(name) \
    static int64_t FN(name)(void *big, int64_t along, int64_t across, void *small, int64_t step, \
                            const int64_t *ids, int64_t n, uint64_t limit, bool holes) \
    { \
        return holes ? FN(name##_loop)(big, along, across, small, step, ids, n, limit, true) \
                     : FN(name##_loop)(big, along, across, small, step, ids, n, limit, false); \
    }

LOOP(add)

/* The usual case, a line in packed memory; see gather_line. */
static int64_t FN(add_line)(void *big_line, void *small_line, const int64_t *ids, int64_t n, uint64_t limit,
                            const char *next, bool stream)
{
    /* Some ids before the first sum is written: loads behind that would wait for it where the lower bits of both are the same. */
    enum { LANES = WK_LINE / sizeof(T), TOGETHER = sizeof(T) < 4 ? 1 : ADDED_TOGETHER };
    T *restrict big = big_line;
    const T *restrict small = small_line;
    const int64_t ahead = ids_ahead();
    int64_t k = 0;
    (void)stream;
    for (; k + BATCH <= n && ids_inside(ids + k, BATCH, limit); k += BATCH) {
        for (int64_t i = k; i < k + BATCH; i += LANES) {
            __builtin_prefetch(next + i * (int64_t)sizeof(T), 1, 3);
            wk_ask_lines(ids + i, LANES * sizeof *ids, ahead * (int64_t)sizeof *ids);
            wk_ask(small + i, ahead * (int64_t)sizeof *small);
            for (int64_t j = i; j < i + LANES; j += TOGETHER) {
                int64_t at[TOGETHER];
#pragma GCC unroll 8
                for (int m = 0; m < TOGETHER; m++)
                    at[m] = ids[j + m];
#pragma GCC unroll 8
                for (int m = 0; m < TOGETHER; m++)
                    big[at[m]] += small[j + m];
            }
        }
    }
    return k + FN(add)(big_line, 1, 0, (T *)small_line + k, 1, ids + k, n - k, limit, false);
}

/* dst[k * dst_step] += src[k * src_step] */
static void FN(add_row)(void *dst, int64_t dst_step, const void *src, int64_t src_step, int64_t n)
{
    T *restrict d = dst;
    const T *restrict s = src;
    if (dst_step == 1 && src_step == 1) {
        for (int64_t k = 0; k < n; k++)
            d[k] += s[k];
    } else {
        for (int64_t k = 0; k < n; k++)
            d[k * dst_step] += s[k * src_step];
    }
}

#ifndef MOVED_AS /* else elements move as those of another type of their size do */
#define MOVED_AS FN

static inline int64_t FN(gather_loop)(ARGUMENTS)
{
    for (int64_t k = 0; k < n; k++) {
        int64_t id = ids[k];
        if (!holes && __builtin_expect((uint64_t)id >= limit, 0))
            return k;
        small[k * step] = holes && id < 0 ? 0 : big[id * along + k * across];
    }
    return n;
}

static inline int64_t FN(scatter_loop)(ARGUMENTS)
{
    for (int64_t k = 0; k < n; k++) {
        int64_t id = ids[k];
        if (!holes && __builtin_expect((uint64_t)id >= limit, 0))
            return k;
        if (!holes || id >= 0)
            big[id * along + k * across] = small[k * step];
    }
    return n;
}

LOOP(gather)
LOOP(scatter)

/* As many elements at ids as make 16 bytes: put together in a register, since bytes that were just stored one by one
 * cannot be loaded as one. */
typedef T FN(piece) __attribute__((vector_size(16)));
static inline FN(piece) FN(gather_piece)(const T *big, const int64_t *ids)
{
    FN(piece) p = {0};
#pragma GCC unroll 16
    for (int j = 0; j < (int)(16 / sizeof(T)); j++)
        p[j] = big[ids[j]];
    return p;
}

/* The usual case, a line in packed memory, by cache lines of small. With each goes a prefetch of one line of `next`, the
 * line of big that comes after: ids hit that in any order, which the CPU cannot foresee. Even spacing matters: in bursts
 * neither prefetches nor streaming stores overlap with the rest. */
static int64_t FN(gather_line)(void *big_line, void *small_line, const int64_t *ids, int64_t n,
                               uint64_t limit, const char *next, bool stream)
{
    enum { LANES = WK_LINE / sizeof(T), PIECE = 16 / sizeof(T) };
    const T *restrict big = big_line;
    T *restrict small = small_line;
    const int64_t ahead = ids_ahead();
    int64_t k = least(n, (int64_t)(-(uintptr_t)small % WK_LINE / sizeof(T))); /* to the first whole line */
    if (FN(gather)(big_line, 1, 0, small, 1, ids, k, limit, false) < k)
        return 0;
    for (; k + BATCH <= n && ids_inside(ids + k, BATCH, limit); k += BATCH) {
        for (int64_t i = k; i < k + BATCH; i += LANES) {
            __builtin_prefetch(next + i * (int64_t)sizeof(T), 0, 3);
            wk_ask_lines(ids + i, LANES * sizeof *ids, ahead * (int64_t)sizeof *ids);
            for (int64_t j = i; j < i + LANES; j += PIECE) {
                FN(piece) p = FN(gather_piece)(big, ids + j);
                wk_put_piece(small + j, &p, stream);
            }
        }
    }
    return k + FN(gather)(big_line, 1, 0, small + k, 1, ids + k, n - k, limit, false);
}

/* From the last to the first, with ids that may have holes: what is taken leaves a 0, so that only the last of
 * equal ids gets it. */
static int64_t FN(take)(void *big, int64_t along, int64_t across, void *small, int64_t step,
                        const int64_t *ids, int64_t n, uint64_t limit, bool holes)
{
    T *from = big, *to = small;
    (void)limit, (void)holes;
    for (int64_t k = n - 1; k >= 0; k--) {
        to[k * step] = 0;
        if (ids[k] < 0)
            continue;
        to[k * step] = from[ids[k] * along + k * across];
        from[ids[k] * along + k * across] = 0;
    }
    return n;
}

#endif

static const index_loops FN(loops) = {{MOVED_AS(gather), MOVED_AS(scatter), FN(add), MOVED_AS(take)},
                                      {[GATHER] = MOVED_AS(gather_line), [ADD] = FN(add_line)},
                                      FN(add_row)};

#undef MOVED_AS
#undef ARGUMENTS
#undef LOOP
#undef T
#undef FN
