/* batch_norm.inc.h: the loops of batch norm over one piece of a plane, for REAL. */

/* Mean and squared deviations of a piece. */
static void FN(measure)(const plan *p, int64_t plane, int64_t piece, void *buf)
{
    int64_t n = piece_size(p, piece);
    wk_moments m = FN(moments)(elements_of(p, p->x, plane, piece, buf), NULL, n);
    double *part = part_of(p, plane, piece);
    part[0] = m.mean;
    part[1] = m.m2;
}

/* sum(dy) and sum(dy (x - mean)) of a piece. */
static void FN(measure_grad)(const plan *p, int64_t plane, int64_t piece, void *buf)
{
    int64_t n = piece_size(p, piece);
    const REAL *x = elements_of(p, p->x, plane, piece, buf),
               *dy = elements_of(p, p->dy, plane, piece, (REAL *)buf + n);
    const channel *c = &p->channels[plane % p->s.c];
    REAL mean = (REAL)c->mean, sum = 0, dot = 0; /* an input: it is a REAL already */
    double *part = part_of(p, plane, piece);
    part[0] = part[1] = 0;
    for (int64_t at = 0; at < n; at += BLOCK, sum = dot = 0) {
        int64_t end = n - at < BLOCK ? n : at + BLOCK;
#pragma omp simd reduction(+ : sum, dot)
        for (int64_t i = at; i < end; i++) {
            sum += dy[i];
            dot += dy[i] * (x[i] - mean);
        }
        part[0] += (double)sum;
        part[1] += (double)dot;
    }
}

/* y = (x - mean) scale + shift; in a gradient dx = (x - mean) scale + shift + slope dy. */
static void FN(apply)(const plan *p, int64_t plane, int64_t piece, void *buf)
{
    int64_t n = piece_size(p, piece), bytes = (int64_t)wk_bytes(p->y->dtype);
    const channel *c = &p->channels[plane % p->s.c];
    const REAL *x = elements_of(p, p->x, plane, piece, buf);
    const REAL *dy = p->dy ? elements_of(p, p->dy, plane, piece, (REAL *)buf + n) : NULL;
    REAL mean = (REAL)c->mean, scale = (REAL)c->scale, slope = (REAL)c->slope;
    REAL shift = (REAL)(c->shift + (mean - c->mean) * c->scale); /* with what rounding has cut off the mean */
    char *y = (char *)wk_ptr(p->y) + (plane * p->s.inner + piece * PIECE) * bytes;
    for (int64_t at = 0; at < n; at += BLOCK) {
        int64_t m = n - at < BLOCK ? n - at : BLOCK;
        _Alignas(64) REAL out[BLOCK];
        if (dy) {
            for (int64_t i = 0; i < m; i++)
                out[i] = (x[at + i] - mean) * scale + shift + slope * dy[at + i];
        } else {
            for (int64_t i = 0; i < m; i++)
                out[i] = (x[at + i] - mean) * scale + shift;
        }
        /* Loads of the next block overlap with the stores of this one. */
        for (int64_t i = at + m; i < at + 2 * m && i < n; i += 64 / (int64_t)sizeof(REAL))
            __builtin_prefetch(x + i, 0, 2);
        WK_ISA(wk_block_store)(p->y->dtype, REAL_COMPUTE, out, y + at * bytes, m, p->stream);
    }
}
