/* norm.inc.h: layer, rms and group norm of one group of a sample, for REAL; elements may be bf16. After moments.inc.h. */

/* How a group is normalised: (x - mean) * scale + shift, which is what rounding has cut off the mean, or all that is left of
 * it where there is none. */
typedef struct {
    REAL mean, scale, shift;
} FN(stats);

/* Of n elements of x, each with that of `more` added, which may be NULL. */
static FN(stats) FN(stats_of)(const norm_ctx *c, const ELEMENT *x, const ELEMENT *more, int64_t n)
{
    FN(stats) s = {0};
    if (!c->centred) {
        s.scale = (REAL)(1 / sqrt(FN(mean_square)(x, more, n) + c->eps));
        return s;
    }
    wk_moments m = FN(moments)(x, more, n);
    double scale = 1 / sqrt(m.m2 * (1 / (double)n) + c->eps);
    s.mean = (REAL)m.mean;
    s.scale = (REAL)scale;
#if ELEMENT_WORDS
    /* Taken off behind the product, if that leaves more bits than the result keeps. */
    if (fabs(m.mean) * scale < 16)
        s.mean = 0;
#endif
    s.shift = (REAL)((s.mean - m.mean) * scale);
    return s;
}

/* Asks for two vectors so many elements further. */
static inline void FN(two_ahead)(const ELEMENT *x, int64_t ahead)
{
    for (size_t i = 0; i < TWO; i += WK_LINE / sizeof *x)
        wk_words_ahead(x + i, ahead * (int64_t)sizeof *x);
}

/* y, and where it is not NULL the sum, of n elements, each with a channel of its own from `first` on. The sums of x and
 * more are taken again, which costs less than to keep them. Meanwhile what lies `ahead` elements further is called for. The
 * last three are whether there is a mean to take off, and a bias, and whether results go past the cache. Returns how many were
 * done: all but less than two vectors. */
ALWAYS_INLINE int64_t FN(normalise_with)(const norm_ctx *c, FN(stats) s, const ELEMENT *x,
                                         const ELEMENT *more, int64_t first, ELEMENT *y, ELEMENT *sum,
                                         int64_t n, int64_t ahead, bool mean, bool biased, bool stream)
{
    const REAL *weight = (const REAL *)c->weight + first,
               *bias = c->bias ? (const REAL *)c->bias + first : NULL;
    int64_t i = 0;
    for (; i + TWO <= n; i += TWO) {
        FN(two) v = FN(two_of)(x, more, i), w = FN(two_behind)(weight + i);
        FN(two_ahead)(x + i, ahead);
        if (more)
            FN(two_ahead)(more + i, ahead);
        if (sum)
            FN(two_put)(sum + i, v, stream);
        if (mean) {
            v.a -= s.mean;
            v.b -= s.mean;
        }
        FN(two) b = {{0}, {0}};
        if (biased)
            b = FN(two_behind)(bias + i);
        v.a = (v.a * s.scale + s.shift) * w.a + b.a;
        v.b = (v.b * s.scale + s.shift) * w.b + b.b;
        FN(two_put_near)(y + i, v, stream);
    }
    return i;
}

/* The loop without choices for what is asked of it. What it asks for is the next line, or what is further where memory is slow. */
ALWAYS_INLINE void FN(normalise)(const norm_ctx *c, FN(stats) s, const ELEMENT *x, const ELEMENT *more,
                                 int64_t first, ELEMENT *y, ELEMENT *sum, int64_t n, int64_t line)
{
    const int64_t one = wk_host_ahead.one / (int64_t)sizeof *x, ahead = c->stream && line < one ? one : line;
#if ELEMENT_WORDS
    bool mean = s.mean != 0;
#else
    bool mean = c->centred;
#endif
    int64_t i;
    if (c->stream) /* which takes as long as memory does, choices or not */
        i = FN(normalise_with)(c, s, x, more, first, y, sum, n, ahead, mean, c->bias, true);
    else if (mean && c->bias)
        i = FN(normalise_with)(c, s, x, more, first, y, sum, n, ahead, true, true, false);
    else if (mean)
        i = FN(normalise_with)(c, s, x, more, first, y, sum, n, ahead, true, false, false);
    else if (c->bias)
        i = FN(normalise_with)(c, s, x, more, first, y, sum, n, ahead, false, true, false);
    else
        i = FN(normalise_with)(c, s, x, more, first, y, sum, n, ahead, false, false, false);
    const REAL *weight = (const REAL *)c->weight + first,
               *bias = c->bias ? (const REAL *)c->bias + first : NULL;
    for (; i < n; i++) {
        REAL v = FN(one_of)(x, more, i), h = (v - s.mean) * s.scale + s.shift;
        if (sum)
            FN(one_put)(sum + i, v);
        FN(one_put)(y + i, h * weight[i] + (bias ? bias[i] : 0));
    }
}

#ifdef ELEMENT_BF16
/* n weights as normalise takes them: the even ones of two vectors before the odd ones. */
static void FN(spread)(const ELEMENT *from, REAL *to, int64_t n)
{
    int64_t i = 0;
    for (; i + TWO <= n; i += TWO) {
        FN(two) v = FN(two_at)(from + i);
        memcpy(to + i, &v, sizeof v);
    }
    for (; i < n; i++)
        to[i] = FN(one_at)(from + i);
}
#else
/* y of a group whose channels, from `first` on, are planes. */
static void FN(normalise_planes)(const norm_ctx *c, const REAL *x, int64_t first, REAL *y, int64_t n)
{
    const REAL *weight = c->weight, *bias = c->bias;
    FN(stats) s = FN(stats_of)(c, x, NULL, n);
    for (int64_t k = first; k < first + c->s.channels; k++, x += c->s.inner, y += c->s.inner) {
        REAL scale = s.scale * weight[k], shift = s.shift * weight[k] + (bias ? bias[k] : 0);
        WK_INDEPENDENT for (int64_t i = 0; i < c->s.inner; i++) y[i] = (x[i] - s.mean) * scale + shift;
    }
}
#endif

/* y of some groups, one after the other; line counts such runs of groups. All are measured before the first is
 * normalised: the root and the quotient that end a measurement take as long as the rest of a short group. */
static void FN(norm_line)(void *const *out, const void *const *in, int64_t line, int64_t n, const void *ctx)
{
    const norm_ctx *c = ctx;
    const ELEMENT *x = in[0];
    ELEMENT *y = out[0];
    int64_t size = c->s.channels * c->s.inner, first = line % c->s.groups * c->s.channels;
    FN(stats) s[GROUPS_TOGETHER];
#ifndef ELEMENT_BF16
    if (c->s.inner != 1) {
        FN(normalise_planes)(c, x, first, y, n);
        return;
    }
#endif
    for (int64_t k = 0; k < n / size; k++)
        s[k] = FN(stats_of)(c, x + k * size, NULL, size);
    for (int64_t k = 0; k < n / size; k++)
        FN(normalise)(c, s[k], x + k * size, NULL, first, y + k * size, NULL, size, n);
}

/* y of a line of x + residual, and the sum where it is wanted. */
static void FN(add_norm_line)(void *const *out, const void *const *in, int64_t line, int64_t n,
                              const void *ctx)
{
    const norm_ctx *c = ctx;
    (void)line;
    FN(stats) s = FN(stats_of)(c, in[0], in[1], n);
    if (c->sum)
        FN(normalise)(c, s, in[0], in[1], 0, out[0], out[1], n, n);
    else
        FN(normalise)(c, s, in[0], in[1], 0, out[0], NULL, n, n);
}
