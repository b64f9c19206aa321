/* index.inc.h: the loops of the indexing ops for elements of type T.
 *
 * Each goes through n ids and works on the pairs
 *     small[k * step] and big[ids[k] * along + k * across]
 * so that one loop serves lines (across = 0: the ids run along the dim) and rows of neighbouring lines (across is
 * what lies between these). With holes a negative id stands for none. */

static inline void FN(gather_loop)(const T *restrict big, int64_t along, int64_t across, T *restrict small,
                                   int64_t step, const int64_t *restrict ids, int64_t n, bool holes)
{
    for (int64_t k = 0; k < n; k++)
        small[k * step] = holes && ids[k] < 0 ? 0 : big[ids[k] * along + k * across];
}

static inline void FN(scatter_loop)(T *restrict big, int64_t along, int64_t across, const T *restrict small,
                                    int64_t step, const int64_t *restrict ids, int64_t n, bool holes)
{
    for (int64_t k = 0; k < n; k++) {
        if (!holes || ids[k] >= 0)
            big[ids[k] * along + k * across] = small[k * step];
    }
}

static inline void FN(add_loop)(T *restrict big, int64_t along, int64_t across, const T *restrict small,
                                int64_t step, const int64_t *restrict ids, int64_t n, bool holes)
{
    for (int64_t k = 0; k < n; k++) {
        if (!holes || ids[k] >= 0)
            big[ids[k] * along + k * across] += small[k * step];
    }
}

/* From the last to the first: what is taken leaves a 0, so that only the last of equal ids gets it. */
static inline void FN(take_loop)(T *restrict big, int64_t along, int64_t across, T *restrict small,
                                 int64_t step, const int64_t *restrict ids, int64_t n, bool holes)
{
    for (int64_t k = n - 1; k >= 0; k--) {
        small[k * step] = 0;
        if (holes && ids[k] < 0)
            continue;
        T *at = &big[ids[k] * along + k * across];
        small[k * step] = *at;
        *at = 0;
    }
}

/* The usual case, whole lines of packed memory, with constants in the place of strides. */
#define LOOP(name) \
    static void FN(name)(void *big, int64_t along, int64_t across, void *small, int64_t step, \
                         const int64_t *ids, int64_t n, bool holes) \
    { \
        if (along == 1 && across == 0 && step == 1 && !holes) \
            FN(name##_loop)(big, 1, 0, small, 1, ids, n, false); \
        else \
            FN(name##_loop)(big, along, across, small, step, ids, n, holes); \
    }

LOOP(gather)
LOOP(scatter)
LOOP(add)
LOOP(take)
#undef LOOP

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

static const index_loops FN(loops) = {{FN(gather), FN(scatter), FN(add), FN(take)}, FN(add_row)};

#undef T
#undef FN
