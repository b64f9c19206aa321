/* reduce.inc.h: the reduction engine for one compute type T (float, double, int64_t) with accumulator ACC.
 *
 * The reduced elements of a result are cut into chunks of fixed size, each folded by one task; the chunks' parts
 * are then combined in order. So a result depends neither on the number of threads nor on who came first. */

/* ---- folding: one result from many values, or one value into each of many results ---- */

/* Sums are kept in interleaved lanes, so that vectors can be used without changing the order within a lane. */
#define LANES (4 * WK_VEC_BYTES / (int)sizeof(T))

#define FOLD(name, start, term, combine) \
    static T FN(row_##name)(const T *xs, int64_t n, T c) \
    { \
        T part[LANES]; \
        (void)c; \
        for (int l = 0; l < LANES; l++) \
            part[l] = start; \
        int64_t i = 0; \
        for (; i + LANES <= n; i += LANES) { \
            for (int l = 0; l < LANES; l++) { \
                T x = xs[i + l], s = part[l], t = term; \
                part[l] = combine; \
            } \
        } \
        for (int l = 0; i < n; i++, l++) { \
            T x = xs[i], s = part[l], t = term; \
            part[l] = combine; \
        } \
        for (int w = LANES / 2; w > 0; w /= 2) { \
            for (int l = 0; l < w; l++) { \
                T s = part[l], t = part[l + w]; \
                part[l] = combine; \
            } \
        } \
        return part[0]; \
    } \
    static void FN(columns_##name)(T *restrict parts, const T *restrict xs, const T *restrict cs, int64_t n) \
    { \
        for (int64_t i = 0; i < n; i++) { \
            T x = xs[i], s = parts[i], c = cs[i], t = term; \
            (void)c; \
            parts[i] = combine; \
        } \
    }

/* NaN stays once it is there: it is neither above nor equal to anything. */
#define LARGER (t > s || T_NAN(t) ? t : s)
#define SMALLER (t < s || T_NAN(t) ? t : s)
FOLD(sum, 0, x, s + t)
FOLD(sum_abs, 0, T_ABS(x), s + t)
FOLD(sum_sqr, 0, (x - c) * (x - c), s + t)
FOLD(sum_exp, 0, T_EXP(x - c), s + t)
FOLD(prod, 1, x, s *t)
FOLD(prod_others, 1, x == 0 ? 1 : x, s *t)
FOLD(zeros, 0, x == 0, s + t)
FOLD(equal, 0, x == c, s + t)
FOLD(equal_abs, 0, T_ABS(x) == c, s + t)
FOLD(min, T_MAX, x, SMALLER)
FOLD(max, T_MIN, x, LARGER)
FOLD(amax, 0, T_ABS(x), LARGER)
#undef FOLD
#undef LARGER
#undef SMALLER

typedef struct {
    T (*row)(const T *xs, int64_t n, T c);
    void (*columns)(T *parts, const T *xs, const T *cs, int64_t n);
    T start;
    char combine; /* '+', '*', '<' or '>' */
    bool of_abs;
} FN(fold);

static const FN(fold) FN(folds)[WK_R_COUNT] = {
#define ENTRY(name, start, combine, of_abs) \
    { \
        FN(row_##name), FN(columns_##name), start, combine, of_abs \
    }
    [WK_R_SUM] = ENTRY(sum, 0, '+', false),
    [WK_R_SUM_ABS] = ENTRY(sum_abs, 0, '+', false),
    [WK_R_SUM_SQR] = ENTRY(sum_sqr, 0, '+', false),
    [WK_R_SUM_EXP] = ENTRY(sum_exp, 0, '+', false),
    [WK_R_PROD] = ENTRY(prod, 1, '*', false),
    [WK_R_PROD_OTHERS] = ENTRY(prod_others, 1, '*', false),
    [WK_R_ZEROS] = ENTRY(zeros, 0, '+', false),
    [WK_R_EQUAL] = ENTRY(equal, 0, '+', false),
    [WK_R_EQUAL_ABS] = ENTRY(equal_abs, 0, '+', false),
    [WK_R_MIN] = ENTRY(min, T_MAX, '<', false),
    [WK_R_MAX] = ENTRY(max, T_MIN, '>', false),
    [WK_R_AMAX] = ENTRY(amax, 0, '>', true),
#undef ENTRY
};

/* True when t takes the place of s: the first extreme one stays, a NaN beats every number. */
static bool FN(better)(char combine, ACC t, ACC s)
{
    return combine == '>' ? t > s || (T_NAN(t) && !T_NAN(s)) : t < s || (T_NAN(t) && !T_NAN(s));
}

/* ---- the parts of a call ---- */

/* An accumulator for every chunk of every result, and for extremes the place it is at (-1: none yet). */
typedef struct {
    reduce_plan p;
    const FN(fold) * fold;
    const T *center;
    ACC *acc;       /* [outs][chunks] */
    int64_t *place; /* the same, or NULL */
} FN(reducer);

static void FN(merge)(const FN(fold) * f, ACC *acc, int64_t *place, ACC value, int64_t at)
{
    if (f->combine == '+') {
        *acc += value;
    } else if (f->combine == '*') {
        *acc *= value;
    } else if (FN(better)(f->combine, value, *acc) || (place && *place < 0)) {
        *acc = value;
        if (place)
            *place = at;
    }
}

static int64_t FN(find)(const T *xs, int64_t n, T value, bool of_abs)
{
    for (int64_t i = 0; i < n; i++) {
        T x = of_abs ? T_ABS(xs[i]) : xs[i];
        if (x == value || (T_NAN(x) && T_NAN(value)))
            return i;
    }
    return 0;
}

/* One chunk of one result, walked along the reduced elements. */
static void FN(fold_row)(const FN(reducer) * r, int64_t out, int64_t chunk)
{
    const reduce_plan *p = &r->p;
    _Alignas(64) T buf[BLOCK];
    T c = r->center ? r->center[out] : 0;
    int64_t inner, begin = chunk * p->chunk, end = begin + p->chunk < p->n ? begin + p->chunk : p->n;
    const char *base = p->data + wk_walk_offset(&p->kept, out, &inner) * p->bytes;
    ACC acc = r->fold->start;
    int64_t place = -1;
    for (int64_t i = begin; i < end; i += BLOCK) {
        int64_t n = end - i < BLOCK ? end - i : BLOCK;
        const T *xs = WK_ISA(wk_walk_fetch)(&p->reduced, p->dtype, base, T_COMPUTE, i, n, buf);
        T value = r->fold->row(xs, n, c);
        if (!r->place)
            FN(merge)(r->fold, &acc, NULL, value, 0);
        else if (place < 0 || FN(better)(r->fold->combine, value, acc))
            FN(merge)(r->fold, &acc, &place, value, i + FN(find)(xs, n, value, r->fold->of_abs));
    }
    r->acc[out * p->chunks + chunk] = acc;
    if (r->place)
        r->place[out * p->chunks + chunk] = place;
}

/* Takes up one row of values into extremes and their places. */
static void FN(extreme_columns)(const FN(fold) * f, T *best, int64_t *place, const T *xs, int64_t n,
                                int64_t at)
{
    for (int64_t i = 0; i < n; i++) {
        T x = f->of_abs ? T_ABS(xs[i]) : xs[i];
        if (place[i] < 0 || FN(better)(f->combine, x, best[i])) {
            best[i] = x;
            place[i] = at;
        }
    }
}

/* One chunk of n neighbouring results, walked across them. Parts are added up in T for a few rows at a time and
 * then taken into ACC, so that long sums of floats lose nothing. */
static void FN(fold_columns)(const FN(reducer) * r, int64_t out, int64_t n, int64_t chunk)
{
    enum { FLUSH = 64 };
    const reduce_plan *p = &r->p;
    _Alignas(64) T buf[COLUMNS], part[COLUMNS], zeros[COLUMNS];
    ACC acc[COLUMNS];
    int64_t place[COLUMNS];
    int64_t inner, begin = chunk * p->chunk, end = begin + p->chunk < p->n ? begin + p->chunk : p->n;
    const char *base = p->data + wk_walk_offset(&p->kept, out, &inner) * p->bytes;
    for (int64_t j = 0; j < n; j++) {
        part[j] = r->fold->start;
        acc[j] = r->fold->start;
        zeros[j] = 0;
        place[j] = -1;
    }
    for (int64_t i = begin; i < end; i++) {
        const char *row = base + wk_walk_offset(&p->reduced, i, &inner) * p->bytes;
        const T *xs = (const T *)row;
        if (p->dtype != wk_compute_dtype(T_COMPUTE)) {
            WK_ISA(wk_block_load)(p->dtype, row, 1, buf, n);
            xs = buf;
        }
        if (r->place) {
            FN(extreme_columns)(r->fold, part, place, xs, n, i);
            continue;
        }
        r->fold->columns(part, xs, r->center ? r->center + out : zeros, n);
        bool flush = r->fold->combine == '+' && ((i - begin) % FLUSH == FLUSH - 1 || i + 1 == end);
        for (int64_t j = 0; flush && j < n; j++) {
            acc[j] += part[j];
            part[j] = 0;
        }
    }
    for (int64_t j = 0; j < n; j++) {
        r->acc[(out + j) * p->chunks + chunk] = r->fold->combine == '+' && !r->place ? acc[j] : (ACC)part[j];
        if (r->place)
            r->place[(out + j) * p->chunks + chunk] = place[j];
    }
}

static void FN(reduce_task)(void *ctx, int64_t task)
{
    const FN(reducer) *r = ctx;
    const reduce_plan *p = &r->p;
    if (p->by_columns) {
        int64_t chunk = task % p->chunks, tile = task / p->chunks, width = p->kept.shape[p->kept.rank - 1];
        int64_t tiles = (width + COLUMNS - 1) / COLUMNS, at = tile % tiles * COLUMNS;
        int64_t n = width - at < COLUMNS ? width - at : COLUMNS;
        FN(fold_columns)(r, tile / tiles * width + at, n, chunk);
        return;
    }
    for (int64_t u = task * p->units; u < (task + 1) * p->units && u < p->outs * p->chunks; u++)
        FN(fold_row)(r, u / p->chunks, u % p->chunks);
}

/* Combines the chunks of BLOCK results and writes them. */
static void FN(finish_task)(void *ctx, int64_t task)
{
    const FN(reducer) *r = ctx;
    const reduce_plan *p = &r->p;
    _Alignas(64) T values[BLOCK];
    int64_t places[BLOCK];
    int64_t begin = task * BLOCK, n = p->outs - begin < BLOCK ? p->outs - begin : BLOCK;
    for (int64_t j = 0; j < n; j++) {
        const ACC *acc = r->acc + (begin + j) * p->chunks;
        ACC value = acc[0];
        places[j] = r->place ? r->place[(begin + j) * p->chunks] : 0;
        for (int64_t k = 1; k < p->chunks; k++)
            FN(merge)
            (r->fold, &value, r->place ? &places[j] : NULL, acc[k],
             r->place ? r->place[(begin + j) * p->chunks + k] : 0);
        values[j] = (T)value;
    }
    if (p->out)
        WK_ISA(wk_block_store)
        (p->out->dtype, T_COMPUTE, values, (char *)wk_ptr(p->out) + begin * (int64_t)wk_bytes(p->out->dtype),
         n, false);
    if (p->indices)
        WK_ISA(wk_block_store)
        (WK_U32, WK_COMPUTE_I64, places, (char *)wk_ptr(p->indices) + begin * 4, n, false);
}

static wk_status FN(reduce)(const reduce_plan *p, wk_reduction how, const wk_tensor *center)
{
    FN(reducer) r = {.p = *p, .fold = &FN(folds)[how], .center = center ? wk_ptr(center) : NULL};
    size_t parts = (size_t)(p->outs * p->chunks);
    r.acc = wk_block_alloc(parts * sizeof *r.acc);
    r.place = p->indices ? wk_block_alloc(parts * sizeof *r.place) : NULL;
    bool room = r.acc && (r.place || !p->indices);
    if (room) {
        wk_parallel_for(p->tasks, FN(reduce_task), &r);
        wk_parallel_for((p->outs + BLOCK - 1) / BLOCK, FN(finish_task), &r);
    }
    wk_block_free(r.acc, parts * sizeof *r.acc);
    wk_block_free(r.place, parts * sizeof *r.place);
    return room ? WK_OK : wk_fail(WK_ERR_MEMORY, "out of memory: %zu partial results", parts);
}

#undef LANES
