/* softmax_lines.inc.h: softmax of lines one behind the other, for ELEMENT: packed floats, or bf16 as they lie in memory.
 *
 * Exponentials of a line are worked out in one loop with the products that finish the last line but one: either alone
 * would wait at its end, for lanes that become one number and for a quotient. Both halves of a line go side by side, for
 * the same reason. */

typedef struct {
    const ELEMENT *x;
    float top, *e;     /* exp(x - top) goes to e */
    ELEMENT *next;     /* where results of that line will go */
    const float *done; /* exponentials: times scale they go to y */
    float scale;
    ELEMENT *y;
    int64_t n, ahead; /* a number of whole steps; elements from x to what is wanted next */
} FN(pass);

/* One pass over a line; the sum of the exponentials. y goes past the cache where it streams. */
ALWAYS_INLINE float FN(pass_over)(FN(pass) p, bool exps, bool scales, bool stream)
{
    const int64_t half = p.n / 2;
    double total = 0;
    for (int64_t at = 0; at < half; at += WORDS_BLOCK) {
        int64_t end = half - at < WORDS_BLOCK ? half : at + WORDS_BLOCK;
        wk_lanes a = {0}, b = {0};
        SUMS_A_B for (int64_t i = at; i < end; i += STEP)
        {
            lanes_two v[TOGETHER];
            UNROLL for (int k = 0; exps && k < TOGETHER; k++)
            {
                v[k] = FN(exp_two)(p.x, i + k * LANES, half, p.top);
                FN(two_ahead)(p.x + p.ahead, i + k * LANES, half);
                if (!stream)
                    FN(two_wanted)(p.next, i + k * LANES, half);
            }
            UNROLL for (int k = 0; exps && k < TOGETHER; k++)
            {
                lanes_put(p.e + i + k * LANES, half, v[k]);
                a += v[k].a;
                b += v[k].b;
            }
            UNROLL for (int k = 0; scales && k < TOGETHER; k++) FN(two_to)(
                p.y, i + k * LANES, half, lanes_get(p.done + i + k * LANES, half), p.scale, stream);
        }
        total += (double)lanes_total(a + b);
    }
    return (float)total;
}

/* What is left of a line, less than two steps, goes through memory of its own, filled up with what adds nothing. */
static float FN(rest_of_pass)(FN(pass) p, int64_t rest, bool exps, bool scales)
{
    ELEMENT x[2 * STEP], y[2 * STEP];
    for (int64_t i = 0; i < 2 * STEP; i++)
        x[i] = LOWEST;
    if (exps)
        memcpy(x, p.x + p.n, (size_t)rest * sizeof *x);
    FN(pass) last = {x, p.top, p.e + p.n, y, p.done + p.n, p.scale, y, 2 * STEP, 0};
    float sum = exps ? FN(pass_over)(last, true, false, false) : 0;
    if (scales) {
        FN(pass_over)(last, false, true, false);
        memcpy(p.y + p.n, y, (size_t)rest * sizeof *y);
    }
    return sum;
}

/* Of count lines of n elements, of which top[k] is the largest; e is room for EXPS_KEPT lines of kept_floats(n), or for one where
 * count is one. */
static void FN(softmax_lines)(const ELEMENT *x, ELEMENT *y, const float *top, float *e, int64_t count,
                              int64_t n, bool stream)
{
    const int64_t one = wk_host_ahead.one / (int64_t)sizeof *x;
    float scale[EXPS_KEPT] = {0};
    int64_t room = kept_floats(n), rest = n % (2 * STEP);
    for (int64_t k = 0; k < count + 2; k++) {
        bool exps = k < count, scales = k >= 2;
        int64_t now = exps ? k : 0, before = scales ? k - 2 : 0;
        FN(pass)
        p = {.x = x + now * n,
             .top = top[now],
             .e = e + now % EXPS_KEPT * room,
             .next = y + now * n,
             .done = e + before % EXPS_KEPT * room,
             .scale = scale[before % EXPS_KEPT],
             .y = y + before * n,
             .n = n - rest,
             .ahead = stream && count * n < one ? one : count * n};
        float sum = 0;
        if (exps && scales && stream)
            sum = FN(pass_over)(p, true, true, true);
        else if (exps && scales)
            sum = FN(pass_over)(p, true, true, false);
        else if (exps)
            sum = FN(pass_over)(p, true, false, stream);
        else if (scales)
            FN(pass_over)(p, false, true, stream);
        if (rest > 0)
            sum += FN(rest_of_pass)(p, rest, exps, scales);
        if (exps)
            scale[k % EXPS_KEPT] = 1 / sum;
    }
}
