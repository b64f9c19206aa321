/* pool.inc.h: pooling of the rows of planes, for REAL.
 *
 * A window's maximum or sum is taken down the columns first (whole rows at a time) and then across: kh + kw steps
 * for each result instead of kh * kw, and vectors all the way. */

/* The larger; NaN when either is. The inner choice is the processor's maximum, which gives a where either is NaN. */
static inline REAL FN(larger)(REAL a, REAL b)
{
    REAL m = b > a ? b : a;
    return b != b ? b : m;
}

/* The largest of three; NaN when any is. The maxima pass on a NaN of a, the sum those of the others. */
static inline REAL FN(largest)(REAL a, REAL b, REAL c)
{
    REAL m = b > a ? b : a;
    m = c > m ? c : m;
    return __builtin_isunordered(b, c) ? b + c : m;
}

/* Row r of a plane as REAL: where it lies, or in buf. */
static inline const REAL *FN(row_of)(wk_dtype dtype, const char *plane, int64_t r, int64_t n, REAL *buf)
{
    const char *from = plane + r * n * (int64_t)wk_bytes(dtype);
    if (wk_bytes(dtype) == sizeof(REAL))
        return (const REAL *)from;
    WK_ISA(wk_block_load)(dtype, from, 1, buf, n);
    return buf;
}

/* The same place of two rows. */
static inline REAL FN(both)(REAL a, REAL b, bool max) { return max ? FN(larger)(a, b) : a + b; }

/* acc = a and b combined, and c too where it is not NULL; acc may be a. */
__attribute__((always_inline)) static inline void FN(combine)(const REAL *a, const REAL *b, const REAL *c,
                                                              REAL *acc, int64_t n, bool max)
{
    if (c) {
        WK_INDEPENDENT for (int64_t i = 0; i < n; i++) acc[i] =
            FN(both)(FN(both)(a[i], b[i], max), c[i], max);
    } else {
        WK_INDEPENDENT for (int64_t i = 0; i < n; i++) acc[i] = FN(both)(a[i], b[i], max);
    }
}

/* Rows [begin, end) of a plane combined to one, which is returned: it may be a row of the plane itself. */
static const REAL *FN(fold_rows)(const pool_plan *p, const char *plane, wk_pool_window rows, REAL *acc,
                                 REAL *row)
{
    int64_t n = p->s.w.in, r = rows.begin + 1;
    bool as_it_lies = wk_bytes(p->x->dtype) == sizeof(REAL);
    const REAL *sum = FN(row_of)(p->x->dtype, plane, rows.begin, n, acc);
    while (r < rows.end) {
        const REAL *b = FN(row_of)(p->x->dtype, plane, r, n, row),
                   *c = as_it_lies && r + 1 < rows.end ? b + n : NULL;
        p->max ? FN(combine)(sum, b, c, acc, n, true) : FN(combine)(sum, b, c, acc, n, false);
        sum = acc;
        r += c ? 2 : 1;
    }
    return sum;
}

/* n windows that lie in the row whole: window o is x[o * stride .. o * stride + kernel). */
__attribute__((always_inline)) static inline void FN(across)(const REAL *restrict x, REAL *restrict y,
                                                             int64_t n, int64_t kernel, int64_t stride,
                                                             bool max)
{
    for (int64_t o = 0; o < n; o++) {
        REAL v = x[o * stride];
        for (int64_t k = 1; k < kernel; k++)
            v = max ? FN(larger)(v, x[o * stride + k]) : v + x[o * stride + k];
        y[o] = v;
    }
}

/* The same for a stride of 2 and a kernel of 2 or 3: even and odd elements apart, so that the rest is plain vectors.
 * All is rounded up to whole vectors: x is read and y written up to 2 * POOL_SLACK and POOL_SLACK values further. */
__attribute__((always_inline)) static inline void FN(across_pairs)(const REAL *restrict x, REAL *restrict y,
                                                                   int64_t n, bool three, bool max,
                                                                   REAL *restrict spare)
{
    int64_t rounded = (n + POOL_SLACK - 1) / POOL_SLACK * POOL_SLACK;
    REAL *restrict even = spare, *restrict odd = even + rounded + POOL_SLACK;
    for (int64_t o = 0; o < rounded; o++) {
        even[o] = x[2 * o];
        odd[o] = x[2 * o + 1];
    }
    even[rounded] = x[2 * n];
    even[n] = x[2 * n];
    for (int64_t o = 0; o < rounded; o++) {
        REAL v = FN(both)(even[o], odd[o], max);
        y[o] = three ? FN(both)(v, even[o + 1], max) : v;
    }
}

/* The usual windows with their sizes known to the compiler. */
static void FN(across_any)(const REAL *x, REAL *y, int64_t n, int64_t kernel, int64_t stride, bool max,
                           REAL *spare)
{
    int64_t which = kernel < 8 && stride < 8 ? kernel * 8 + stride : 0;
    switch (which) {
    case 2 * 8 + 2:
        max ? FN(across_pairs)(x, y, n, false, true, spare) : FN(across_pairs)(x, y, n, false, false, spare);
        break;
    case 3 * 8 + 2:
        max ? FN(across_pairs)(x, y, n, true, true, spare) : FN(across_pairs)(x, y, n, true, false, spare);
        break;
    case 3 * 8 + 1: max ? FN(across)(x, y, n, 3, 1, true) : FN(across)(x, y, n, 3, 1, false); break;
    default: FN(across)(x, y, n, kernel, stride, max); break;
    }
}

/* Results [begin, end) of a row, whose windows are cut off by an end of it. */
static void FN(edge)(const pool_plan *p, const REAL *row, int64_t counted, REAL *y, int64_t begin,
                     int64_t end)
{
    const wk_pool_dim *w = &p->s.w;
    for (int64_t o = begin; o < end; o++) {
        wk_pool_window part = wk_pool_window_of(w, o);
        FN(across)(row + part.begin, y + o, 1, part.end - part.begin, 1, p->max);
        if (!p->max)
            y[o] /= (REAL)(counted * wk_pool_counted(w, o, p->exclude_pad));
    }
}

/* One row of results from a row of column results; counted: rows that count in a mean. */
static void FN(pool_row)(const pool_plan *p, const REAL *row, int64_t counted, REAL *y, REAL *spare)
{
    const wk_pool_dim *w = &p->s.w;
    int64_t begin = p->inner.begin, n = p->inner.end - begin;
    FN(edge)(p, row, counted, y, 0, begin);
    if (n > 0)
        FN(across_any)
    (row + begin * w->stride - w->padding, y + begin, n, w->kernel, w->stride, p->max, spare);
    REAL whole = (REAL)(counted * w->kernel);
    for (int64_t o = begin; o < begin + n && !p->max; o++)
        y[o] /= whole;
    FN(edge)(p, row, counted, y, begin + n, w->out);
}

/* n windows of 2 by 2 side by side in two rows: the most usual ones, in one step. The factor is for means. */
__attribute__((always_inline)) static inline void FN(quads)(const REAL *restrict a, const REAL *restrict b,
                                                            REAL *restrict y, int64_t n, bool max,
                                                            REAL factor)
{
    for (int64_t o = 0; o < n; o++) {
        REAL left = FN(both)(a[2 * o], b[2 * o], max), right = FN(both)(a[2 * o + 1], b[2 * o + 1], max);
        REAL v = FN(both)(left, right, max);
        y[o] = max ? v : v * factor;
    }
}

/* A row of them, a fixed number at a time: whole vectors. */
__attribute__((always_inline)) static inline void FN(quad_row)(const REAL *a, const REAL *b, REAL *y,
                                                               int64_t n, bool max)
{
    for (int64_t o = 0; o < n; o += POOL_SLACK) {
        pool_ahead(a + 2 * o);
        pool_ahead(b + 2 * o);
        if (o + POOL_SLACK <= n)
            FN(quads)(a + 2 * o, b + 2 * o, y + o, POOL_SLACK, max, (REAL)0.25);
        else
            FN(quads)(a + 2 * o, b + 2 * o, y + o, n - o, max, (REAL)0.25);
    }
}

/* Rows [begin, end) of results where all windows are such. */
static void FN(quad_rows)(const pool_plan *p, int64_t begin, int64_t end, REAL *out)
{
    const wk_pool_shape *s = &p->s;
    int64_t plane = begin / s->h.out, oh = begin % s->h.out, n = s->w.in;
    for (int64_t i = begin; i < end; i++, out += s->w.out) {
        const REAL *a = (const REAL *)pool_plane(p, p->x, plane) + 2 * oh * n;
        p->max ? FN(quad_row)(a, a + n, out, s->w.out, true) : FN(quad_row)(a, a + n, out, s->w.out, false);
        if (++oh == s->h.out) {
            oh = 0;
            plane++;
        }
    }
}

/* Row oh of the results of a plane, of any windows. */
static __attribute__((noinline)) void FN(pool_any_row)(const pool_plan *p, const char *plane, int64_t oh,
                                                       REAL *y, REAL *buf)
{
    const wk_pool_shape *s = &p->s;
    REAL *acc = buf, *row = acc + s->w.in + 2 * POOL_SLACK + 1, *spare = row + s->w.in;
    memset(acc + s->w.in, 0, (2 * POOL_SLACK + 1) * sizeof(REAL));
    const REAL *folded = FN(fold_rows)(p, plane, wk_pool_window_of(&s->h, oh), acc, row);
    if (folded != acc && p->pairs) /* which reads further than the row goes */
        folded = memcpy(acc, folded, (size_t)s->w.in * sizeof(REAL));
    FN(pool_row)(p, folded, wk_pool_counted(&s->h, oh, p->exclude_pad), y, spare);
}

/* POOL_SLACK windows of 3 by 3 at every second column: the maxima of their first and of their second columns.
 * The three rows are one before even and odd columns are taken apart. */
static inline void FN(start_triples)(const REAL *restrict a, const REAL *restrict b, const REAL *restrict c,
                                     REAL *restrict first, REAL *restrict second)
{
    REAL columns[2 * POOL_SLACK];
    for (int i = 0; i < 2 * POOL_SLACK; i++)
        columns[i] = FN(largest)(a[i], b[i], c[i]);
    for (int o = 0; o < POOL_SLACK; o++) {
        first[o] = columns[2 * o];
        second[o] = columns[2 * o + 1];
    }
}

/* The maxima of the windows: the last column of one is the first of the next. */
static inline void FN(end_triples)(const REAL *restrict first, const REAL *restrict second, REAL *restrict y)
{
    for (int o = 0; o < POOL_SLACK; o++)
        y[o] = FN(largest)(first[o], second[o], first[o + 1]);
}

/* start_triples for all windows that lie in the three rows from a on whole. The last POOL_SLACK overlap with those before, so
 * that there is no rest. */
static void FN(start_triple_row)(const pool_plan *p, const REAL *a, REAL *first, REAL *second)
{
    int64_t n = p->inner.end - p->inner.begin;
    if (WIDE_TRIPLES)
        return;
    a += 2 * p->inner.begin - p->s.w.padding;
    const REAL *b = a + p->s.w.in, *c = b + p->s.w.in;
    for (int64_t o = 0; o < n; o += POOL_SLACK) {
        int64_t at = o + POOL_SLACK < n ? o : n - POOL_SLACK;
        pool_ahead(b + 2 * o);
        pool_ahead(c + 2 * o);
        FN(start_triples)(a + 2 * at, b + 2 * at, c + 2 * at, first + at, second + at);
    }
    first[n] = FN(largest)(a[2 * n], b[2 * n], c[2 * n]);
}

/* The row of results. Windows that are cut off go by themselves. */
static void FN(end_triple_row)(const pool_plan *p, const REAL *a, const REAL *first, const REAL *second,
                               REAL *y)
{
    const wk_pool_dim *w = &p->s.w;
    int64_t begin = p->inner.begin, n = p->inner.end - begin;
    if (WIDE_TRIPLES)
        wide_triples((const float *)a + 2 * begin - w->padding, w->in, n, (float *)y + begin);
    for (int64_t at = 0; at < n && !WIDE_TRIPLES; at += POOL_SLACK) {
        int64_t from = at + POOL_SLACK < n ? at : n - POOL_SLACK;
        FN(end_triples)(first + from, second + from, y + begin + from);
    }
    for (int64_t edge = 0; edge < w->out - n; edge++) {
        int64_t o = edge < begin ? edge : edge + n; /* the others, at both ends */
        wk_pool_window part = wk_pool_window_of(w, o);
        REAL v = a[part.begin];
        for (int64_t i = part.begin; i < part.end; i++)
            v = FN(larger)(FN(larger)(FN(larger)(v, a[i]), a[w->in + i]), a[2 * w->in + i]);
        y[o] = v;
    }
}

/* Rows [begin, end) of the maxima of windows of 3 by 3. A row is begun before the one above it is ended: what was just
 * stored cannot be loaded in other pieces yet. */
static void FN(triple_rows)(const pool_plan *p, int64_t begin, int64_t end, REAL *out, REAL *buf)
{
    const wk_pool_shape *s = &p->s;
    int64_t half = (s->w.out / POOL_SLACK + 2) * POOL_SLACK; /* whole lines */
    int64_t plane = begin / s->h.out, oh = begin % s->h.out;
    const REAL *above = NULL; /* the three rows of the row of results that is yet to be ended */
    for (int64_t i = begin; i <= end; i++, out += s->w.out) {
        const char *from = pool_plane(p, p->x, plane);
        wk_pool_window rows = wk_pool_window_of(&s->h, oh);
        const REAL *a = (const REAL *)from + rows.begin * s->w.in;
        bool whole = i < end && rows.end - rows.begin == 3;
        REAL *now = buf + i % 2 * 2 * half, *before = buf + (i + 1) % 2 * 2 * half;
        if (whole)
            FN(start_triple_row)(p, a, now, now + half);
        if (above)
            FN(end_triple_row)(p, above, before, before + half, out - s->w.out);
        above = whole ? a : NULL;
        if (i < end && !whole)
            FN(pool_any_row)(p, from, oh, out, buf);
        if (++oh == s->h.out) {
            oh = 0;
            plane++;
        }
    }
}

/* A few rows of results; rows are counted through all planes. */
static void FN(pool_piece)(const pool_plan *p, int64_t begin, int64_t end, REAL *buf)
{
    const wk_pool_shape *s = &p->s;
    REAL *out = buf + pool_scratch(p);
    bool quads = p->quads && sizeof(REAL) == sizeof(float),
         triples = p->triples && sizeof(REAL) == sizeof(float);
    char *y = (char *)wk_ptr(p->y) + begin * s->w.out * (int64_t)wk_bytes(p->y->dtype);
    if (quads)
        FN(quad_rows)(p, begin, end, out);
    else if (triples)
        FN(triple_rows)(p, begin, end, out, buf);
    for (int64_t i = begin; i < end && !quads && !triples; i++) {
        const char *plane = pool_plane(p, p->x, i / s->h.out);
        pool_prefetch(p, plane, wk_pool_window_of(&s->h, i % s->h.out).end);
        FN(pool_any_row)(p, plane, i % s->h.out, out + (i - begin) * s->w.out, buf);
    }
    WK_ISA(wk_block_store)(p->y->dtype, REAL_COMPUTE, out, y, (end - begin) * s->w.out, p->stream);
}

/* The maximum so far and its place against x[o * stride], for n results; the first x is at place `at`. */
__attribute__((always_inline)) static inline void FN(take_larger)(const REAL *restrict x, REAL *restrict y,
                                                                  int64_t *restrict place, int64_t n,
                                                                  int64_t stride, int64_t at)
{
    for (int64_t o = 0; o < n; o++) {
        REAL v = x[o * stride];
        bool take = (v > y[o]) | (v != v);
        y[o] = take ? v : y[o];
        place[o] = take ? at + o * stride : place[o];
    }
}

/* One row of x, which begins at place `at` of the plane, into the maxima of a row of results: tap by tap for windows
 * that lie in the row whole, so that it runs across the results. */
static void FN(max_taps)(const pool_plan *p, const REAL *row, int64_t at, REAL *y, int64_t *place)
{
    const wk_pool_dim *w = &p->s.w;
    int64_t begin = p->inner.begin, n = p->inner.end - begin, first = begin * w->stride - w->padding;
    for (int64_t k = first; k < first + w->kernel && n > 0; k++) {
        switch (w->stride) {
        case 1: FN(take_larger)(row + k, y + begin, place + begin, n, 1, at + k); break;
        case 2: FN(take_larger)(row + k, y + begin, place + begin, n, 2, at + k); break;
        default: FN(take_larger)(row + k, y + begin, place + begin, n, w->stride, at + k); break;
        }
    }
    for (int64_t edge = 0; edge < w->out - n; edge++) {
        int64_t o = edge < begin ? edge : edge + n; /* the others, at both ends */
        wk_pool_window part = wk_pool_window_of(w, o);
        for (int64_t i = part.begin; i < part.end; i++)
            FN(take_larger)(row + i, y + o, place + o, 1, 1, at + i);
    }
}

/* The maximum of every window of one row of results and its place in the plane, the first of equal ones. */
static void FN(max_row)(const pool_plan *p, const char *plane, int64_t oh, REAL *y, int64_t *place, REAL *buf)
{
    const wk_pool_dim *w = &p->s.w;
    wk_pool_window rows = wk_pool_window_of(&p->s.h, oh);
    for (int64_t o = 0; o < w->out; o++) {
        y[o] = -INFINITY;
        place[o] = rows.begin * w->in + wk_pool_window_of(w, o).begin;
    }
    for (int64_t r = rows.begin; r < rows.end; r++)
        FN(max_taps)(p, FN(row_of)(p->x->dtype, plane, r, w->in, buf), r * w->in, y, place);
}

/* A band of rows of results, maxima and their places. */
static void FN(max_band)(const pool_plan *p, int64_t begin, int64_t end, REAL *buf)
{
    const wk_pool_shape *s = &p->s;
    int64_t n = s->w.out, *place = (int64_t *)buf;
    REAL *row = (REAL *)(place + n), *out = row + s->w.in;
    uint32_t *indices = (uint32_t *)wk_ptr(p->indices) + begin * n;
    char *y = (char *)wk_ptr(p->y) + begin * n * (int64_t)wk_bytes(p->y->dtype);
    for (int64_t i = begin; i < end; i++) {
        FN(max_row)(p, pool_plane(p, p->x, i / s->h.out), i % s->h.out, out + (i - begin) * n, place, row);
        for (int64_t o = 0; o < n; o++)
            indices[(i - begin) * n + o] = (uint32_t)place[o];
    }
    WK_ISA(wk_block_store)(p->y->dtype, REAL_COMPUTE, out, y, (end - begin) * n, p->stream);
}

/* ---- gradients ---- */

/* Each window's gradient to the place of its maximum. */
static void FN(max_grad_plane)(pool_plan *p, int64_t plane, REAL *buf)
{
    const wk_pool_shape *s = &p->s;
    int64_t n = s->w.out, elements = s->h.in * s->w.in, *place = (int64_t *)buf;
    REAL *row = (REAL *)(place + n), *best = row + s->w.in, *dy = best + n, *dx = dy + n;
    const uint32_t *given = p->indices ? (const uint32_t *)wk_ptr(p->indices) + plane * s->h.out * n : NULL;
    if (wk_bytes(p->dx->dtype) == sizeof(REAL))
        dx = (REAL *)pool_plane(p, p->dx, plane);
    memset(dx, 0, (size_t)elements * sizeof(REAL));
    for (int64_t oh = 0; oh < s->h.out; oh++) {
        const REAL *g = FN(row_of)(p->y->dtype, pool_plane(p, p->y, plane), oh, n, dy);
        if (!given)
            FN(max_row)(p, pool_plane(p, p->x, plane), oh, best, place, row);
        for (int64_t o = 0; o < n; o++) {
            int64_t at = given ? given[oh * n + o] : place[o];
            if (at >= elements) {
                atomic_store(&p->bad_index, at + 1);
                return;
            }
            dx[at] += g[o];
        }
    }
    if (wk_bytes(p->dx->dtype) != sizeof(REAL))
        WK_ISA(wk_block_store)(p->dx->dtype, REAL_COMPUTE, dx, pool_plane(p, p->dx, plane), elements, false);
}

/* A band of rows of dx: each takes its share from the rows of windows it is in, then from those across. */
static void FN(avg_grad_band)(const pool_plan *p, int64_t begin, int64_t end, REAL *buf)
{
    const wk_pool_dim *h = &p->s.h, *w = &p->s.w;
    REAL *share = buf, *row = share + w->out, *out = row + w->out;
    memset(out, 0, (size_t)((end - begin) * w->in) * sizeof(REAL));
    for (int64_t i = begin; i < end; i++, out += w->in) {
        const char *dy = pool_plane(p, p->y, i / h->in);
        wk_pool_window windows = pool_windows_over(h, i % h->in);
        memset(share, 0, (size_t)w->out * sizeof(REAL));
        for (int64_t oh = windows.begin; oh < windows.end; oh++) {
            const REAL *g = FN(row_of)(p->y->dtype, dy, oh, w->out, row);
            int64_t counted = wk_pool_counted(h, oh, p->exclude_pad);
            for (int64_t o = 0; o < w->out; o++)
                share[o] += g[o] / (REAL)(counted * p->counted[o]);
        }
        for (int64_t o = 0; o < w->out; o++) {
            wk_pool_window part = wk_pool_window_of(w, o);
            for (int64_t at = part.begin; at < part.end; at++)
                out[at] += share[o];
        }
    }
    out -= (end - begin) * w->in;
    char *dx = (char *)wk_ptr(p->dx) + begin * w->in * (int64_t)wk_bytes(p->dx->dtype);
    WK_ISA(wk_block_store)(p->dx->dtype, REAL_COMPUTE, out, dx, (end - begin) * w->in, p->stream);
}
