/* sort.inc.h: sorting pairs of type PAIR, with KEY(pair), PLACE(pair) and LESS(pair, pair). */

enum { FN(RUN) = 16 };

static void FN(insertion)(PAIR *a, int64_t n)
{
    for (int64_t i = 1; i < n; i++) {
        PAIR v = a[i];
        int64_t j = i;
        for (; j > 0 && LESS(v, a[j - 1]); j--)
            a[j] = a[j - 1];
        a[j] = v;
    }
}

/* Two sorted runs to one. */
static void FN(merge)(const PAIR *a, int64_t na, const PAIR *b, int64_t nb, PAIR *out)
{
    const PAIR *a_end = a + na, *b_end = b + nb;
    while (a < a_end && b < b_end) {
        bool from_b = LESS(*b, *a);
        *out++ = from_b ? *b : *a;
        a += !from_b;
        b += from_b;
    }
    memcpy(out, a, (size_t)(a_end - a) * sizeof *a);
    memcpy(out + (a_end - a), b, (size_t)(b_end - b) * sizeof *b);
}

/* Short arrays: runs by insertion, then merging from one array to the other. */
static PAIR *FN(sort_short)(PAIR *a, PAIR *b, int64_t n)
{
    for (int64_t i = 0; i < n; i += FN(RUN))
        FN(insertion)(a + i, least(FN(RUN), n - i));
    for (int64_t run = FN(RUN); run < n; run *= 2) {
        for (int64_t i = 0; i < n; i += 2 * run) {
            int64_t na = least(run, n - i), nb = least(run, n - i - na);
            FN(merge)(a + i, na, a + i + na, nb, b + i);
        }
        PAIR *t = a;
        a = b;
        b = t;
    }
    return a;
}

/* One pass of a radix sort, from the lowest digit: chunks count their digits, then know where theirs go. */
typedef struct {
    const PAIR *from;
    PAIR *to;
    int64_t n, chunk;
    int shift;
    uint32_t at[CHUNKS][256];
} FN(pass);

static void FN(count)(void *ctx, int64_t task)
{
    FN(pass) *p = ctx;
    uint32_t *at = p->at[task];
    int64_t end = least(p->n, (task + 1) * p->chunk);
    memset(at, 0, sizeof p->at[0]);
    for (int64_t i = task * p->chunk; i < end; i++)
        at[KEY(p->from[i]) >> p->shift & 255]++;
}

static void FN(move)(void *ctx, int64_t task)
{
    FN(pass) *p = ctx;
    uint32_t *at = p->at[task];
    int64_t end = least(p->n, (task + 1) * p->chunk);
    for (int64_t i = task * p->chunk; i < end; i++)
        p->to[at[KEY(p->from[i]) >> p->shift & 255]++] = p->from[i];
}

PAIR *WK_ISA(FN(wk_sort))(PAIR *a, PAIR *b, int64_t n, uint64_t varies)
{
    if (n < RADIX)
        return FN(sort_short)(a, b, n);
    FN(pass) p = {.n = n, .chunk = (n + CHUNKS - 1) / CHUNKS};
    if (p.chunk < CHUNK)
        p.chunk = CHUNK;
    int64_t chunks = (n + p.chunk - 1) / p.chunk;
    for (p.shift = 0; p.shift < KEY_BITS; p.shift += 8) {
        if (!(varies >> p.shift & 255))
            continue;
        p.from = a;
        p.to = b;
        wk_parallel_for(chunks, FN(count), &p);
        uint32_t sum = 0;
        for (int digit = 0; digit < 256; digit++) {
            for (int64_t c = 0; c < chunks; c++) {
                uint32_t count = p.at[c][digit];
                p.at[c][digit] = sum;
                sum += count;
            }
        }
        wk_parallel_for(chunks, FN(move), &p);
        a = p.to;
        b = (PAIR *)p.from;
    }
    return a;
}

/* The k-th smallest key, digit by digit from the highest; how many of the equal ones belong to the k is left in
 * *k. */
static uint64_t FN(kth_key)(const PAIR *a, int64_t n, int64_t *k)
{
    uint64_t prefix = 0, mask = 0;
    for (int shift = KEY_BITS - 8; shift >= 0; shift -= 8) {
        int64_t counts[256] = {0}, digit = 0;
        for (int64_t i = 0; i < n; i++)
            counts[KEY(a[i]) >> shift & 255] += (KEY(a[i]) & mask) == prefix;
        while (counts[digit] < *k)
            *k -= counts[digit++];
        prefix |= (uint64_t)digit << shift;
        mask |= (uint64_t)255 << shift;
    }
    return prefix;
}

void WK_ISA(FN(wk_choose))(PAIR *a, int64_t n, int64_t k)
{
    int64_t equal = k, at = 0;
    uint64_t edge = FN(kth_key)(a, n, &equal);
    for (int64_t i = 0; i < n; i++) {
        bool same = KEY(a[i]) == edge, take = KEY(a[i]) < edge || (same && equal > 0);
        equal -= same;
        a[at] = a[i]; /* at <= i */
        at += take;
    }
}

#undef PAIR
#undef KEY
#undef KEY_BITS
#undef LESS
#undef FN
