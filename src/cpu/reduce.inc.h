/* reduce.inc.h: the reduction engine for one compute type T (float, double, int64_t) with accumulator ACC.
 *
 * The reduced elements of a result are cut into chunks of fixed size, each folded by one task; the chunks' parts
 * are then combined in order. So a result depends neither on the number of threads nor on who came first. */

/* ---- folding: one result from many values, or a few values into each of many results ---- */

/* One result from n values. `omp simd reduction` lets the compiler combine in vector lanes, in an order that the build
 * fixes once and for all. */
#define ROW(name, start, term, clause, combine) \
    static T FN(row_##name)(const T *xs, int64_t n, T c) \
    { \
        T s = start; \
        (void)c; \
        _Pragma(clause) for (int64_t i = 0; i < n; i++) \
        { \
            T x = xs[i], t = term; \
            s = combine; \
        } \
        return s; \
    }

/* An extreme of integers; those of floats are found among their bits. */
#ifdef T_IS_FLOAT
#define EXTREME_ROW(name, start, term, clause, better)
#define ROW_OF_EXTREME(name) NULL
#else
#define ROW_OF_EXTREME(name) FN(row_##name)
#define EXTREME_ROW(name, start, term, clause, better) \
    static T FN(row_##name)(const T *xs, int64_t n, T c) \
    { \
        T s = start; \
        (void)c; \
        _Pragma(clause) for (int64_t i = 0; i < n; i++) \
        { \
            T x = xs[i], t = term; \
            s = t better s ? t : s; \
        } \
        return s; \
    }
#endif

/* In a function of columns: one row after the other. */
#define ROW_BY_ROW(term, combine) \
    for (int r = 0; r < n_rows; r++) { \
        const T *xs = rows[r]; \
        for (int64_t i = 0; i < n; i++) { \
            T s = parts[i], c = cs[i], x = xs[i], t = term; \
            (void)c; \
            parts[i] = combine; \
        } \
    }

/* A value of each row into each of n results. ROWS rows at a time, so that the parts are read and written once for all
 * of them; what is left over goes row by row. */
#define COLUMNS_OF(name, term, combine) \
    static void FN(columns_##name)(T *restrict parts, const void *const *rows, int n_rows, \
                                   const T *restrict cs, int64_t n) \
    { \
        const T *r0 = rows[0], *r1 = rows[1], *r2 = rows[2], *r3 = rows[3]; \
        for (int64_t i = 0; i < n && n_rows == ROWS; i++) { \
            T s = parts[i], c = cs[i], x, t; \
            (void)c; \
            x = r0[i], t = term, s = combine; \
            x = r1[i], t = term, s = combine; \
            x = r2[i], t = term, s = combine; \
            x = r3[i], t = term, s = combine; \
            parts[i] = s; \
        } \
        if (n_rows < ROWS) \
            ROW_BY_ROW(term, combine) \
    }

/* The same row by row, for what is rare or takes longer than its memory. */
#define COLUMNS_BY_ROW(name, term, combine) \
    static void FN(columns_##name)(T *restrict parts, const void *const *rows, int n_rows, \
                                   const T *restrict cs, int64_t n) \
    { \
        ROW_BY_ROW(term, combine) \
    }

/* The plain sum, at the speed of memory: several vectors at a time, since one alone would wait for its own additions,
 * and their lanes pairwise. */
typedef T FN(row_vec) __attribute__((vector_size(WK_VEC_BYTES), aligned(sizeof(T)), may_alias));

static T FN(row_sum)(const T *xs, int64_t n, T c)
{
    enum { LANES = WK_VEC_BYTES / sizeof(T) };
    FN(row_vec) s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};
    T lanes[LANES];
    int64_t i = 0;
    (void)c;
    for (; i + 4 * LANES <= n; i += 4 * LANES) {
        const FN(row_vec) *v = (const FN(row_vec) *)(xs + i);
        wk_ask_lines(v, 4 * WK_VEC_BYTES, wk_host_ahead.one);
        s0 += v[0];
        s1 += v[1];
        s2 += v[2];
        s3 += v[3];
    }
    s0 = (s0 + s1) + (s2 + s3);
    memcpy(lanes, &s0, sizeof lanes);
    for (int w = LANES / 2; w > 0; w /= 2) {
        for (int k = 0; k < w; k++)
            lanes[k] += lanes[k + w];
    }
    for (; i < n; i++)
        lanes[0] += xs[i];
    return lanes[0];
}

#define SUM_OF(name, term, columns) \
    ROW(name, 0, term, "omp simd reduction(+ : s)", s + t) columns(name, term, s + t)
#define PRODUCT_OF(name, term, columns) \
    ROW(name, 1, term, "omp simd reduction(* : s)", s *t) columns(name, term, s *t)
COLUMNS_OF(sum, x, s + t)
SUM_OF(sum_abs, T_ABS(x), COLUMNS_OF)
SUM_OF(sum_sqr, (x - c) * (x - c), COLUMNS_OF)
SUM_OF(sum_exp, T_EXP(x - c), COLUMNS_BY_ROW)
SUM_OF(zeros, x == 0, COLUMNS_BY_ROW)
SUM_OF(equal, x == c, COLUMNS_BY_ROW)
SUM_OF(equal_abs, T_ABS(x) == c, COLUMNS_BY_ROW)
PRODUCT_OF(prod, x, COLUMNS_BY_ROW)
PRODUCT_OF(prod_others, x == 0 ? 1 : x, COLUMNS_BY_ROW)
EXTREME_ROW(min, T_MAX, x, "omp simd reduction(min : s)", <)
EXTREME_ROW(max, T_MIN, x, "omp simd reduction(max : s)", >)
EXTREME_ROW(amax, 0, T_ABS(x), "omp simd reduction(max : s)", >)
COLUMNS_OF(min, x, t < s || T_NAN(t) ? t : s)
COLUMNS_OF(max, x, t > s || T_NAN(t) ? t : s)
COLUMNS_OF(amax, T_ABS(x), t > s || T_NAN(t) ? t : s)
#undef ROW
#undef EXTREME_ROW
#undef COLUMNS_OF
#undef COLUMNS_BY_ROW
#undef SUM_OF
#undef PRODUCT_OF

typedef struct {
    T (*row)(const T *xs, int64_t n, T c);
    void (*columns)(T *parts, const void *const *rows, int n_rows, const T *cs, int64_t n);
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
    [WK_R_MIN] = {ROW_OF_EXTREME(min), FN(columns_min), T_MAX, '<', false},
    [WK_R_MAX] = {ROW_OF_EXTREME(max), FN(columns_max), T_MIN, '>', false},
    [WK_R_AMAX] = {ROW_OF_EXTREME(amax), FN(columns_amax), 0, '>', true},
#undef ENTRY
#undef ROW_OF_EXTREME
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
    ACC *acc;       /* [chunks][outs] */
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

#ifdef T_IS_FLOAT
/* The extreme of elements [i, i + n) of a result, with its place, into acc and place. */
static void FN(fold_extreme)(const FN(reducer) * r, const char *base, int64_t i, int64_t n, T *buf, ACC *acc,
                             int64_t *place)
{
    const reduce_plan *p = &r->p;
    T value;
    const char *xs = WK_ISA(wk_walk_gather)(&p->reduced, (size_t)p->bytes, base, i, n, buf);
    int64_t at = find_extreme(p, p->dtype, xs, n);
    WK_ISA(wk_block_load)(p->dtype, xs + at * p->bytes, 1, &value, 1);
    FN(merge)(r->fold, acc, place, p->of_abs ? T_ABS(value) : value, i + at);
}
#else
/* Whether the value, or the other one, is among GROUP elements. A plain loop over a fixed count: vectors. */
enum { GROUP = 64 };
static bool FN(group_has)(const T *xs, T value, T other)
{
    int hit = 0;
    for (int i = 0; i < GROUP; i++)
        hit |= (xs[i] == value) | (xs[i] == other);
    return hit;
}

/* The first place of the value (or, of_abs, of its negative), which is there. */
static int64_t FN(find)(const T *xs, int64_t n, T value, bool of_abs)
{
    T other = of_abs ? -value : value;
    int64_t at = 0;
    while (at + GROUP <= n && !FN(group_has)(xs + at, value, other))
        at += GROUP;
    while (at + 1 < n && xs[at] != value && xs[at] != other)
        at++;
    return at;
}

static void FN(fold_extreme)(const FN(reducer) * r, const char *base, int64_t i, int64_t n, T *buf, ACC *acc,
                             int64_t *place)
{
    const T *xs = WK_ISA(wk_walk_fetch)(&r->p.reduced, r->p.dtype, base, T_COMPUTE, i, n, buf);
    T value = r->fold->row(xs, n, 0);
    if (*place < 0 || FN(better)(r->fold->combine, value, *acc))
        FN(merge)(r->fold, acc, place, value, i + (r->place ? FN(find)(xs, n, value, r->fold->of_abs) : 0));
}
#endif

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
    for (int64_t i = begin; i < end; i += p->block) {
        int64_t n = end - i < p->block ? end - i : p->block;
        if (p->words) {
            acc += (ACC)row_sum_bf16(base + i * 2, n);
            continue;
        }
        if (p->extreme) {
            FN(fold_extreme)(r, base, i, n, buf, &acc, &place);
            continue;
        }
        const T *xs = WK_ISA(wk_walk_fetch)(&p->reduced, p->dtype, base, T_COMPUTE, i, n, buf);
        FN(merge)(r->fold, &acc, NULL, r->fold->row(xs, n, c), 0);
    }
    r->acc[chunk * p->outs + out] = acc;
    if (r->place)
        r->place[chunk * p->outs + out] = place;
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

/* A row of n values added to n sums, which stay in the cache; what follows in the rows to come is asked for, `far` bytes from
 * here. */
static void FN(add_row)(T *sums, const T *xs, int64_t n, int64_t far)
{
    enum { LANES = WK_VEC_BYTES / sizeof(T) };
    int64_t i = 0;
    for (; i + 2 * LANES <= n; i += 2 * LANES) {
        FN(row_vec) *to = (FN(row_vec) *)(sums + i);
        const FN(row_vec) *v = (const FN(row_vec) *)(xs + i);
        wk_ask_lines(v, 2 * WK_VEC_BYTES, far);
        to[0] += v[0];
        to[1] += v[1];
    }
    for (; i < n; i++)
        sums[i] += xs[i];
}

/* Row i of n neighbouring results as values of T: where it lies (also in words), or in buf. The start of the row that comes ROWS
 * later is called for, since rows lie too far apart for the processor to guess; it goes on from there by itself. */
static const void *FN(column_row)(const reduce_plan *p, const char *base, int64_t i, int64_t n, bool words,
                                  T *buf)
{
    int64_t inner;
    const char *row = base + wk_walk_offset(&p->reduced, i, &inner) * p->bytes;
    if (i + ROWS < p->n && !p->far) {
        const char *later = base + wk_walk_offset(&p->reduced, i + ROWS, &inner) * p->bytes;
        for (int64_t at = 0; at < n * p->bytes && at < ROW_START; at += 64)
            __builtin_prefetch(later + at, 0, 2);
    }
    if (words || p->dtype == wk_compute_dtype(T_COMPUTE))
        return row;
    WK_ISA(wk_block_load)(p->dtype, row, 1, buf, n);
    return buf;
}

/* One chunk of n neighbouring results, walked across them. Parts are added up in T for a few rows at a time and
 * then taken into ACC, so that long sums of floats lose nothing. */
static void FN(fold_columns)(const FN(reducer) * r, int64_t out, int64_t n, int64_t chunk)
{
    enum { FLUSH = 16 * ROWS, MOST = COLUMN_BYTES / sizeof(T) };
    const reduce_plan *p = &r->p;
    /* Rows that are brought to buf are half as wide; see plan_columns. */
    _Alignas(64) T buf[ROWS][MOST / 2], part[MOST], zeros[MOST];
    ACC acc[MOST];
    int64_t inner, begin = chunk * p->chunk, end = begin + p->chunk < p->n ? begin + p->chunk : p->n;
    const char *base = p->data + wk_walk_offset(&p->kept, out, &inner) * p->bytes;
    for (int64_t j = 0; j < n; j++) {
        acc[j] = part[j] = r->fold->start;
        zeros[j] = 0;
    }
    for (int64_t i = begin; i < end; i += ROWS) {
        const void *rows[ROWS] = {0};
        int n_rows = end - i < ROWS ? (int)(end - i) : ROWS;
        for (int k = 0; k < n_rows; k++)
            rows[k] = FN(column_row)(p, base, i + k, n, p->words, buf[k]);
        if (p->words)
            for (int k = 0; k < n_rows; k++)
                add_row_bf16((void *)part, rows[k], n, p->far);
        else if (p->far)
            for (int k = 0; k < n_rows; k++)
                FN(add_row)(part, rows[k], n, p->far);
        else
            r->fold->columns(part, rows, n_rows, r->center ? r->center + out : zeros, n);
        bool flush = r->fold->combine == '+' && ((i - begin) % FLUSH == FLUSH - ROWS || i + ROWS >= end);
        if (flush && p->words)
            take_sums_bf16((void *)acc, (void *)part, n);
        for (int64_t j = 0; flush && j < n && !p->words; j++) {
            acc[j] += part[j];
            part[j] = 0;
        }
    }
    for (int64_t j = 0; j < n; j++)
        r->acc[chunk * p->outs + out + j] = r->fold->combine == '+' ? acc[j] : (ACC)part[j];
}

/* The same for extremes with their places. */
static void FN(find_columns)(const FN(reducer) * r, int64_t out, int64_t n, int64_t chunk)
{
    const reduce_plan *p = &r->p;
    enum { MOST = COLUMN_BYTES / sizeof(T) };
    _Alignas(64) T buf[MOST / 2], best[MOST];
    int64_t place[MOST];
    int64_t inner, begin = chunk * p->chunk, end = begin + p->chunk < p->n ? begin + p->chunk : p->n;
    const char *base = p->data + wk_walk_offset(&p->kept, out, &inner) * p->bytes;
    for (int64_t j = 0; j < n; j++) {
        best[j] = r->fold->start;
        place[j] = -1;
    }
    for (int64_t i = begin; i < end; i++)
        FN(extreme_columns)(r->fold, best, place, FN(column_row)(p, base, i, n, false, buf), n, i);
    for (int64_t j = 0; j < n; j++) {
        r->acc[chunk * p->outs + out + j] = (ACC)best[j];
        r->place[chunk * p->outs + out + j] = place[j];
    }
}

static void FN(reduce_task)(void *ctx, int64_t task)
{
    const FN(reducer) *r = ctx;
    const reduce_plan *p = &r->p;
    if (p->by_columns) {
        int64_t chunk = task % p->chunks, tile = task / p->chunks, width = p->kept.shape[p->kept.rank - 1];
        int64_t tiles = (width + p->columns - 1) / p->columns, at = tile % tiles * p->columns;
        int64_t n = width - at < p->columns ? width - at : p->columns;
        (r->place ? FN(find_columns) : FN(fold_columns))(r, tile / tiles * width + at, n, chunk);
        return;
    }
    for (int64_t u = task * p->units; u < (task + 1) * p->units && u < p->outs * p->chunks; u++)
        FN(fold_row)(r, u / p->chunks, u % p->chunks);
}

/* One chunk's parts of n results, which begin at part `at`, into acc and places. */
static void FN(merge_chunk)(const FN(reducer) * r, int64_t at, int64_t n, ACC *acc, int64_t *places)
{
    const ACC *part = r->acc + at;
    if (r->fold->combine == '+') { /* vectors */
        for (int64_t j = 0; j < n; j++)
            acc[j] += part[j];
        return;
    }
    for (int64_t j = 0; j < n; j++)
        FN(merge)(r->fold, acc + j, r->place ? places + j : NULL, part[j], r->place ? r->place[at + j] : 0);
}

/* Combines the chunks of BLOCK results and writes them. */
static void FN(finish_task)(void *ctx, int64_t task)
{
    const FN(reducer) *r = ctx;
    const reduce_plan *p = &r->p;
    _Alignas(64) T values[BLOCK];
    ACC acc[BLOCK];
    int64_t places[BLOCK];
    int64_t begin = task * BLOCK, n = p->outs - begin < BLOCK ? p->outs - begin : BLOCK;
    memcpy(acc, r->acc + begin, (size_t)n * sizeof *acc);
    if (r->place)
        memcpy(places, r->place + begin, (size_t)n * sizeof *places);
    for (int64_t at = begin + p->outs; at < p->chunks * p->outs; at += p->outs)
        FN(merge_chunk)(r, at, n, acc, places);
    for (int64_t j = 0; j < n; j++)
        values[j] = (T)acc[j];
    if (p->out)
        WK_ISA(wk_block_store)
    (p->out->dtype, T_COMPUTE, values, (char *)wk_ptr(p->out) + begin * (int64_t)wk_bytes(p->out->dtype), n,
     false);
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
