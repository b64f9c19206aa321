/* resample.inc.h: bilinear resampling and the gradients of both kinds, for REAL. */

/* Row `row`, counted through all planes, of a packed tensor with rows of n elements, as REAL: where it lies, or in buf. */
static inline const REAL *FN(row_of)(const wk_tensor *t, int64_t row, int64_t n, REAL *buf)
{
    const char *from = (const char *)wk_ptr(t) + row * n * (int64_t)wk_bytes(t->dtype);
    if (wk_bytes(t->dtype) == sizeof(REAL))
        return (const REAL *)from;
    WK_ISA(wk_block_load)(t->dtype, from, 1, buf, n);
    return buf;
}

/* Rows of the result: two rows of x become one, then two neighbours in it one element. The mixed row has one
 * element more, a copy of the last, so that every element has a right neighbour. */
static void FN(bilinear_band)(const plan *p, int64_t begin, int64_t end, void *buf)
{
    const wk_upsample_dim *h = &p->s.h, *w = &p->s.w;
    const REAL *left = p->w_left, *right = p->w_right;
    REAL *low = buf, *high = low + w->in, *mixed = high + w->in, *out = mixed + w->in + 1;
    for (int64_t i = begin; i < end; i++, out += w->out) {
        int64_t plane = i / h->out, o = i % h->out, lo = p->h_lo[o];
        int64_t hi = lo + 1 < h->in ? lo + 1 : lo;
        const REAL *a = FN(row_of)(p->x, plane * h->in + lo, w->in, low);
        const REAL *b = FN(row_of)(p->x, plane * h->in + hi, w->in, high);
        REAL t = (REAL)p->h_t[o], s = (REAL)(1 - p->h_t[o]);
        for (int64_t j = 0; j < w->in; j++)
            mixed[j] = s * a[j] + t * b[j];
        mixed[w->in] = mixed[w->in - 1];
        for (int64_t j = 0; j < w->out; j++) {
            int64_t at = p->w_lo[j];
            out[j] = left[j] * mixed[at] + right[j] * mixed[at + 1];
        }
    }
    int64_t n = (end - begin) * w->out;
    char *y = (char *)wk_ptr(p->y) + begin * w->out * (int64_t)wk_bytes(p->y->dtype);
    WK_ISA(wk_block_store)(p->y->dtype, REAL_COMPUTE, out - n, y, n, p->stream);
}

/* Rows of dx: the rows of dy that row i of a plane went into, each times its share, become one. */
static void FN(gather_rows)(const plan *p, int64_t plane, int64_t i, REAL *restrict acc, REAL *buf)
{
    const wk_upsample_dim *h = &p->s.h;
    int64_t n = p->s.w.out, first = p->h_first[p->linear && i > 0 ? i - 1 : i];
    memset(acc, 0, (size_t)n * sizeof(REAL));
    for (int64_t o = first; o < p->h_first[i + 1]; o++) {
        const REAL *restrict dy = FN(row_of)(p->x, plane * h->out + o, n, buf);
        int64_t lo = p->h_lo[o], hi = lo + 1 < h->in ? lo + 1 : lo;
        double share = p->linear ? (lo == i ? 1 - p->h_t[o] : 0) + (hi == i ? p->h_t[o] : 0) : 1;
        for (int64_t j = 0; j < n; j++)
            acc[j] += (REAL)share * dy[j];
    }
}

static void FN(grad_band)(const plan *p, int64_t begin, int64_t end, void *buf)
{
    const wk_upsample_dim *h = &p->s.h, *w = &p->s.w;
    const REAL *left = p->w_left, *right = p->w_right;
    REAL *acc = buf, *row = acc + w->out, *out = row + w->out;
    memset(out, 0, (size_t)((end - begin) * w->in) * sizeof(REAL));
    for (int64_t i = begin; i < end; i++, out += w->in) {
        FN(gather_rows)(p, i / h->in, i % h->in, acc, row);
        for (int64_t j = 0; j < w->out && !p->linear; j++)
            out[p->w_lo[j]] += acc[j];
        for (int64_t j = 0; j < w->out && p->linear; j++) {
            int64_t lo = p->w_lo[j];
            out[lo] += left[j] * acc[j];
            out[lo + 1 < w->in ? lo + 1 : lo] += right[j] * acc[j];
        }
    }
    int64_t n = (end - begin) * w->in;
    char *dx = (char *)wk_ptr(p->y) + begin * w->in * (int64_t)wk_bytes(p->y->dtype);
    WK_ISA(wk_block_store)(p->y->dtype, REAL_COMPUTE, out - n, dx, n, p->stream);
}

/* Shares of the left and the right neighbour from how far each element lies on the way. */
static void FN(shares)(const double *t, int64_t n, void *left, void *right)
{
    for (int64_t i = 0; i < n; i++) {
        ((REAL *)left)[i] = (REAL)(1 - t[i]);
        ((REAL *)right)[i] = (REAL)t[i];
    }
}
