/* attention.c: reference attention: a whole row of scores at a time. */
#include "ops/attention.h"
#include "core/memory.h"
#include "ref.h"

/* What the two ops share: sizes, and the mask as [b, hq, s, t]. */
typedef struct {
    const double *q, *k, *v; /* [b, hq, s, d], [b, hk, t, d], [b, hk, t, dv] */
    const double *y, *dy;    /* of gradients: [b, hq, s, dv] */
    const wk_sdpa_options *o;
    wk_tensor mask;
    bool masked;
    int64_t b, hq, hk, s, t, d, dv;
    double scale;
} sizes;

static sizes sizes_of(const wk_call *c, int mask_slot)
{
    const wk_tensor *q = c->in[0], *k = c->in[1], *v = c->in[2], *mask = c->in[mask_slot];
    sizes z = {.q = wk_ref_values(q),
               .k = wk_ref_values(k),
               .v = wk_ref_values(v),
               .o = c->params,
               .masked = mask != NULL,
               .b = q->shape[0],
               .hq = q->shape[1],
               .hk = k->shape[1],
               .s = q->shape[2],
               .t = k->shape[2],
               .d = q->shape[3],
               .dv = v->shape[3],
               .scale = wk_sdpa_scale(c->params, q->shape[3])};
    if (mask)
        z.mask = wk_sdpa_mask(mask, z.b, z.hq, z.s, z.t);
    return z;
}

/* Row `row` of [b, hq, s]: where its key head begins among the keys of [b, hk, t]. */
static int64_t first_key(const sizes *z, int64_t row)
{
    int64_t head = row / z->s % z->hq, batch = row / z->s / z->hq;
    return (batch * z->hk + head / (z->hq / z->hk)) * z->t;
}

/* The t scores of a row, -infinity where it does not see the key. slope gets the softcap's derivative. */
static void scores_of(const sizes *z, int64_t row, double *scores, double *slope)
{
    wk_key_range see = wk_sdpa_keys(z->o->causal, z->o->window, z->s, z->t, row % z->s);
    int64_t key = first_key(z, row);
    double cap = z->o->softcap;
    for (int64_t j = 0; j < z->t; j++) {
        double x = 0, mask = z->masked ? wk_ref_get(&z->mask, row * z->t + j) : 0;
        bool kept = !z->masked || z->mask.dtype != WK_U8 || mask != 0;
        for (int64_t c = 0; c < z->d; c++)
            x += z->q[row * z->d + c] * z->k[(key + j) * z->d + c];
        x *= z->scale;
        slope[j] = 1;
        if (cap > 0) {
            slope[j] = 1 - tanh(x / cap) * tanh(x / cap);
            x = cap * tanh(x / cap);
        }
        if (z->masked && z->mask.dtype != WK_U8)
            x += mask;
        scores[j] = kept && j >= see.lo && j < see.hi ? x : -INFINITY;
    }
}

static double *new_doubles(int64_t n)
{
    double *x = wk_alloc((size_t)(n > 0 ? n : 1) * sizeof *x);
    if (!x)
        wk_fail(WK_ERR_MEMORY, "out of memory: %lld numbers", (long long)n);
    return x;
}

static wk_status run_sdpa(wk_call *c)
{
    sizes z = sizes_of(c, 3);
    double *scores = wk_pending() ? NULL : new_doubles(2 * z.t);
    if (!scores)
        return wk_error_status();
    for (int64_t row = 0; row < z.b * z.hq * z.s; row++) {
        double top = -INFINITY, sum = 0;
        scores_of(&z, row, scores, scores + z.t);
        for (int64_t j = 0; j < z.t; j++)
            top = fmax(top, scores[j]);
        for (int64_t j = 0; j < z.t; j++)
            sum += scores[j] = scores[j] == -INFINITY ? 0 : exp(scores[j] - top);
        for (int64_t i = 0; i < z.dv; i++) {
            double y = 0;
            for (int64_t j = 0; j < z.t; j++)
                y += scores[j] * z.v[(first_key(&z, row) + j) * z.dv + i];
            wk_ref_set(c->out[0], row * z.dv + i, sum == 0 ? 0 : y / sum);
        }
        if (c->out[1])
            wk_ref_set(c->out[1], row, top == -INFINITY ? -INFINITY : top + log(sum));
    }
    wk_free(scores);
    return WK_OK;
}

/* Adds row `row`'s share to the gradients, which are f64. */
static void add_row(const sizes *z, const wk_call *c, int64_t row, double *scores, double *dq, double *dk,
                    double *dv)
{
    const double *y = z->y + row * z->dv, *dy = z->dy + row * z->dv;
    int64_t key = first_key(z, row);
    double lse = wk_ref_get(c->in[4], row), delta = 0;
    scores_of(z, row, scores, scores + z->t);
    for (int64_t i = 0; i < z->dv; i++)
        delta += y[i] * dy[i];
    for (int64_t j = 0; j < z->t; j++) {
        double weight = scores[j] == -INFINITY ? 0 : exp(scores[j] - lse), ds = 0;
        for (int64_t i = 0; i < z->dv; i++) {
            ds += dy[i] * z->v[(key + j) * z->dv + i];
            dv[(key + j) * z->dv + i] += weight * dy[i];
        }
        ds = weight * (ds - delta) * scores[z->t + j] * z->scale;
        for (int64_t i = 0; i < z->d; i++) {
            dq[row * z->d + i] += ds * z->k[(key + j) * z->d + i];
            dk[(key + j) * z->d + i] += ds * z->q[row * z->d + i];
        }
    }
}

static wk_status run_sdpa_backward(wk_call *c)
{
    sizes z = sizes_of(c, 6);
    int64_t n[3] = {wk_count(c->in[0]), wk_count(c->in[1]), wk_count(c->in[2])};
    z.y = wk_ref_values(c->in[3]);
    z.dy = wk_ref_values(c->in[5]);
    double *memory = wk_pending() ? NULL : new_doubles(n[0] + n[1] + n[2] + 2 * z.t), *sums[3];
    if (!memory)
        return wk_error_status();
    for (int64_t i = 0; i < n[0] + n[1] + n[2]; i++)
        memory[i] = 0;
    sums[0] = memory;
    sums[1] = sums[0] + n[0];
    sums[2] = sums[1] + n[1];
    for (int64_t row = 0; row < z.b * z.hq * z.s; row++)
        add_row(&z, c, row, sums[2] + n[2], sums[0], sums[1], sums[2]);
    for (int k = 0; k < 3; k++)
        for (int64_t i = 0; c->out[k] && i < n[k]; i++)
            wk_ref_set(c->out[k], i, sums[k][i]);
    wk_free(memory);
    return WK_OK;
}

const wk_impl wk_ref_attention[] = {
    {"sdpa", "ref", run_sdpa, NULL, NULL},
    {"sdpa_backward", "ref", run_sdpa_backward, NULL, NULL},
    {0},
};
