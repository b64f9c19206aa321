/* pool.inc.h: pooling of the rows of planes, for REAL.
 *
 * A window's maximum or sum is taken down the columns first (whole rows at a time) and then across: kh + kw steps
 * for each result instead of kh * kw, and vectors all the way. */

/* The larger; NaN when either is. */
static inline REAL FN(larger)(REAL a, REAL b) { return ((b > a) | (b != b)) ? b : a; }

/* Row r of a plane as REAL: where it lies, or in buf. */
static inline const REAL *FN(row_of)(wk_dtype dtype, const char *plane, int64_t r, int64_t n, REAL *buf)
{
    const char *from = plane + r * n * (int64_t)wk_bytes(dtype);
    if (wk_bytes(dtype) == sizeof(REAL))
        return (const REAL *)from;
    WK_ISA(wk_block_load)(dtype, from, 1, buf, n);
    return buf;
}

/* Rows [begin, end) of a plane combined to one, which is returned: it may be a row of the plane itself. */
static const REAL *FN(fold_rows)(const pool_plan *p, const char *plane, wk_pool_window rows,
                                 REAL *restrict acc, REAL *row)
{
    int64_t n = p->s.w.in, r = rows.begin + 1;
    const REAL *first = FN(row_of)(p->x->dtype, plane, rows.begin, n, acc);
    for (; r < rows.end; r++) {
        const REAL *restrict a = r == rows.begin + 1 ? first : acc;
        const REAL *restrict b = FN(row_of)(p->x->dtype, plane, r, n, row);
        if (p->max) {
            WK_INDEPENDENT for (int64_t i = 0; i < n; i++) acc[i] = FN(larger)(a[i], b[i]);
        } else {
            WK_INDEPENDENT for (int64_t i = 0; i < n; i++) acc[i] = a[i] + b[i];
        }
    }
    return rows.end - rows.begin > 1 ? acc : first;
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

/* The usual windows with their sizes known to the compiler. */
static void FN(across_any)(const REAL *x, REAL *y, int64_t n, int64_t kernel, int64_t stride, bool max)
{
    int64_t which = kernel < 8 && stride < 8 ? kernel * 8 + stride : 0;
    switch (which) {
    case 2 * 8 + 2: max ? FN(across)(x, y, n, 2, 2, true) : FN(across)(x, y, n, 2, 2, false); break;
    case 3 * 8 + 2: max ? FN(across)(x, y, n, 3, 2, true) : FN(across)(x, y, n, 3, 2, false); break;
    case 3 * 8 + 1: max ? FN(across)(x, y, n, 3, 1, true) : FN(across)(x, y, n, 3, 1, false); break;
    default: FN(across)(x, y, n, kernel, stride, max); break;
    }
}

/* One row of results from a row of column results; counted: rows that count in a mean. */
static void FN(pool_row)(const pool_plan *p, const REAL *row, int64_t counted, REAL *y)
{
    const wk_pool_dim *w = &p->s.w;
    FN(across_any)
    (row + p->inner.begin * w->stride - w->padding, y + p->inner.begin, p->inner.end - p->inner.begin,
     w->kernel, w->stride, p->max);
    for (int64_t o = 0; o < w->out; o++) {
        if (o == p->inner.begin && p->inner.end > o)
            o = p->inner.end;
        if (o == w->out)
            break;
        wk_pool_window part = wk_pool_window_of(w, o);
        FN(across)(row + part.begin, y + o, 1, part.end - part.begin, 1, p->max);
    }
    if (p->max)
        return;
    REAL whole = (REAL)(counted * w->kernel);
    for (int64_t o = p->inner.begin; o < p->inner.end; o++)
        y[o] /= whole;
    for (int64_t o = 0; o < w->out; o++) {
        if (o < p->inner.begin || o >= p->inner.end)
            y[o] /= (REAL)(counted * wk_pool_counted(w, o, p->exclude_pad));
    }
}

/* A band of rows of results; rows are counted through all planes. */
static void FN(pool_band)(const pool_plan *p, int64_t begin, int64_t end, REAL *buf)
{
    const wk_pool_shape *s = &p->s;
    REAL *acc = buf, *row = acc + s->w.in, *out = row + s->w.in;
    bool direct = !p->stream && wk_bytes(p->y->dtype) == sizeof(REAL);
    char *y = (char *)wk_ptr(p->y) + begin * s->w.out * (int64_t)wk_bytes(p->y->dtype);
    if (direct)
        out = (REAL *)y;
    for (int64_t i = begin; i < end; i++) {
        const char *plane = pool_plane(p, p->x, i / s->h.out);
        int64_t oh = i % s->h.out;
        const REAL *folded = FN(fold_rows)(p, plane, wk_pool_window_of(&s->h, oh), acc, row);
        FN(pool_row)(p, folded, wk_pool_counted(&s->h, oh, p->exclude_pad), out + (i - begin) * s->w.out);
    }
    if (!direct)
        WK_ISA(wk_block_store)(p->y->dtype, REAL_COMPUTE, out, y, (end - begin) * s->w.out, p->stream);
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
    for (int64_t r = rows.begin; r < rows.end; r++) {
        const REAL *row = FN(row_of)(p->x->dtype, plane, r, w->in, buf);
        for (int64_t o = 0; o < w->out; o++) {
            wk_pool_window part = wk_pool_window_of(w, o);
            for (int64_t i = part.begin; i < part.end; i++) {
                bool take = (row[i] > y[o]) | (row[i] != row[i]);
                place[o] = take ? r * w->in + i : place[o];
                y[o] = take ? row[i] : y[o];
            }
        }
    }
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
