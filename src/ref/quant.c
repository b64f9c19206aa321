/* quant.c: references of the ops on quantised weights: one weight after the other, as the format defines it. */
#include "ops/quant.h"
#include "ref.h"

/* Weight i of a block. */
static double weight_of(wk_qformat format, const uint8_t *block, int i)
{
    double d = wk_quant_f16(block + wk_qformats[format].scale_at[0]);
    if (format == WK_Q4_0)
        return d * ((block[2 + i % 16] >> (i / 16 * 4) & 15) - 8);
    if (format == WK_Q8_0)
        return d * (int8_t)block[2 + i];
    if (format == WK_Q4_K) {
        unsigned scale, min;
        wk_q4_k_scale(block + 4, i / 32, &scale, &min);
        int q = block[16 + i / 64 * 32 + i % 32] >> (i / 32 % 2 * 4) & 15;
        return d * scale * q - (double)wk_quant_f16(block + 2) * min;
    }
    /* q6_k: halves of 128, in each four runs of 32; the low 4 bits of runs 0 and 2 share bytes, so do those of 1 and 3;
     * the high 2 bits of all four share bytes. */
    int half = i / 128, run = i / 32 % 4, l = i % 32;
    int low = block[64 * half + 32 * (run % 2) + l] >> (run / 2 * 4) & 15;
    int high = block[128 + 32 * half + l] >> (2 * run) & 3;
    return d * (int8_t)block[192 + i / 16] * ((low | high << 4) - 32);
}

/* The block that was read last. Byte by byte: the tensor's rows may have any layout. */
typedef struct {
    const wk_call *call;
    const wk_tensor *weight;
    int64_t first; /* its first byte; -1: none yet */
    uint8_t block[256];
} reader;

static double weight_at(reader *r, int64_t row, int64_t col)
{
    const wk_qformat_info *info = wk_quant_info(r->call);
    int64_t first = row * r->weight->shape[r->weight->rank - 1] + col / info->block * info->bytes;
    for (int b = 0; b < info->bytes && first != r->first; b++)
        r->block[b] = (uint8_t)wk_ref_get_int(r->weight, first + b);
    r->first = first;
    return weight_of((wk_qformat)WK_PARAMS(r->call, wk_quant_params)->format, r->block,
                     (int)(col % info->block));
}

static double activate(int64_t act, double v)
{
    switch (act) {
    case WK_ACT_RELU: return v > 0 ? v : v != v ? v : 0;
    case WK_ACT_GELU: return 0.5 * v * (1 + tanh(0.7978845608028654 * (v + 0.044715 * v * v * v)));
    case WK_ACT_GELU_ERF: return 0.5 * v * (1 + erf(v * 0.7071067811865476));
    case WK_ACT_SILU: return v / (1 + exp(-v));
    default: return v;
    }
}

static wk_status run_qlinear(wk_call *c)
{
    const wk_tensor *x = c->in[0], *w = c->in[1];
    int64_t n = w->shape[0], k = x->shape[x->rank - 1];
    reader r = {.call = c, .weight = w, .first = -1};
    for (int64_t y = 0; y < wk_count(c->out[0]); y++) {
        double sum = c->in[2] ? wk_ref_get(c->in[2], y % n) : 0;
        for (int64_t p = 0; p < k; p++)
            sum += wk_ref_get(x, y / n * k + p) * weight_at(&r, y % n, p);
        wk_ref_set(c->out[0], y, activate(WK_PARAMS(c, wk_quant_params)->act, sum));
    }
    return WK_OK;
}

static wk_status run_dequantize(wk_call *c)
{
    wk_tensor *y = c->out[0];
    int64_t k = y->shape[y->rank - 1];
    reader r = {.call = c, .weight = c->in[0], .first = -1};
    for (int64_t i = 0; i < wk_count(y); i++)
        wk_ref_set(y, i, weight_at(&r, i / k, i % k));
    return WK_OK;
}

static int64_t padding(wk_dtype d)
{
    return d == WK_U8 ? UINT8_MAX : d == WK_U32 ? UINT32_MAX : d == WK_I32 ? INT32_MAX : INT64_MAX;
}

static wk_status run_qembedding(wk_call *c)
{
    wk_tensor *y = c->out[0];
    int64_t k = y->shape[y->rank - 1];
    reader r = {.call = c, .weight = c->in[0], .first = -1};
    for (int64_t i = 0; i < wk_count(y); i++) {
        int64_t id = wk_ref_get_int(c->in[1], i / k);
        wk_ref_set(y, i, id == padding(c->in[1]->dtype) ? 0 : weight_at(&r, id, i % k));
    }
    return WK_OK;
}

/* Bad ids are for the fast one to report. */
static const char *refuse_qembedding(const wk_call *c)
{
    for (int64_t i = 0; i < wk_count(c->in[1]); i++) {
        int64_t id = wk_ref_get_int(c->in[1], i);
        if (id != padding(c->in[1]->dtype) && (id < 0 || id >= c->in[0]->shape[0]))
            return "it takes ids in range only";
    }
    return NULL;
}

const wk_impl wk_ref_quant[] = {
    {"qlinear", "ref", run_qlinear, NULL, NULL},
    {"dequantize", "ref", run_dequantize, NULL, NULL},
    {"qembedding", "ref", run_qembedding, refuse_qembedding, NULL},
    {0},
};
