/* quant.c: front ends of the ops on quantised weights, and the table of formats. */
#include "quant.h"

const wk_qformat_info wk_qformats[WK_QFORMAT_COUNT] = {
    [WK_Q4_0] = {"q4_0", 32, 18, {0, -1}, {8, 0}},
    [WK_Q8_0] = {"q8_0", 32, 34, {0, -1}, {128, 0}},
    [WK_Q4_K] = {"q4_k", 256, 144, {0, 2}, {63 * 15, 63}},
    [WK_Q6_K] = {"q6_k", 256, 210, {208, -1}, {128 * 32, 0}},
};

static bool is_format(wk_qformat f) { return (unsigned)f < WK_QFORMAT_COUNT; }

const char *wk_qformat_name(wk_qformat f) { return is_format(f) ? wk_qformats[f].name : NULL; }
int wk_qformat_block(wk_qformat f) { return is_format(f) ? wk_qformats[f].block : 0; }
int wk_qformat_bytes(wk_qformat f) { return is_format(f) ? wk_qformats[f].bytes : 0; }

int64_t wk_qrow_bytes(wk_qformat f, int64_t k)
{
    if (!is_format(f) || k < 0 || k % wk_qformats[f].block)
        return -1;
    int64_t blocks = k / wk_qformats[f].block;
    return blocks <= INT64_MAX / wk_qformats[f].bytes ? blocks * wk_qformats[f].bytes : -1;
}

const wk_tensor *wk_quant_rows(const wk_tensor *weight)
{
    int last = weight->rank - 1;
    bool rows = weight->rank == 2 && (weight->strides[last] == 1 || weight->shape[last] <= 1);
    return rows ? weight : wk_tensor_packed(weight);
}

/* ---- checks and outputs ---- */

/* The weights of a row of weight, whose last dimension is bytes. */
static wk_status row_weights(const wk_call *c, int slot, int64_t *k)
{
    const wk_tensor *w = c->in[slot];
    int64_t format = WK_PARAMS(c, wk_quant_params)->format;
    WK_NEED(format >= 0 && format < WK_QFORMAT_COUNT, c, WK_ERR_PARAM, "format",
            "expected one of wk_qformat, got %d", (int)format);
    const wk_qformat_info *info = &wk_qformats[format];
    int64_t bytes = w->shape[w->rank - 1];
    WK_NEED(bytes % info->bytes == 0, c, WK_ERR_SHAPE, c->op->in[slot].name,
            "expected rows of a multiple of %d bytes, the blocks of %s, got %lld", info->bytes, info->name,
            (long long)bytes);
    *k = bytes / info->bytes * info->block;
    return WK_OK;
}

static wk_status infer_qlinear(wk_call *c)
{
    const wk_tensor *x = c->in[0], *w = c->in[1];
    int64_t act = WK_PARAMS(c, wk_quant_params)->act, shape[WK_MAX_RANK], k;
    WK_NEED(act >= WK_ACT_NONE && act <= WK_ACT_SILU, c, WK_ERR_PARAM, "act",
            "expected one of wk_activation, got %d", (int)act);
    WK_TRY(wk_call_rank(c, 0, 1, WK_MAX_RANK));
    WK_TRY(wk_call_rank(c, 1, 2, 2));
    WK_TRY(row_weights(c, 1, &k));
    WK_NEED(x->shape[x->rank - 1] == k, c, WK_ERR_SHAPE, "weight",
            "expected rows of %lld weights, as x has columns, got %lld in %lld bytes of %s",
            (long long)x->shape[x->rank - 1], (long long)k, (long long)w->shape[1], wk_quant_info(c)->name);
    memcpy(shape, x->shape, sizeof shape);
    shape[x->rank - 1] = w->shape[0];
    wk_call_out(c, 0, c->dtype, x->rank, shape);
    return c->in[2] ? wk_call_shape(c, 2, 1, &w->shape[0]) : WK_OK;
}

/* The dtype of a result that a parameter names. */
static wk_status result_dtype(wk_call *c)
{
    int64_t dtype = WK_PARAMS(c, wk_quant_params)->dtype;
    WK_NEED(wk_dtype_valid((wk_dtype)dtype) && wk_is_float((wk_dtype)dtype), c, WK_ERR_PARAM, "dtype",
            "expected f32, f16, bf16 or f64, got %s",
            wk_dtype_valid((wk_dtype)dtype) ? wk_dtype_name((wk_dtype)dtype) : "none");
    c->dtype = (wk_dtype)dtype;
    return WK_OK;
}

/* The result [lead.., k]. */
static wk_status result_rows(wk_call *c, int rank, const int64_t *lead, int64_t k)
{
    int64_t shape[WK_MAX_RANK];
    memcpy(shape, lead, (size_t)rank * sizeof *lead);
    shape[rank] = k;
    WK_NEED(wk_shape_count(rank + 1, shape) >= 0, c, WK_ERR_SHAPE, "weight",
            "expected fewer weights than 2^63, got more");
    wk_call_out(c, 0, c->dtype, rank + 1, shape);
    return WK_OK;
}

static wk_status infer_dequantize(wk_call *c)
{
    int64_t k;
    WK_TRY(result_dtype(c));
    WK_TRY(wk_call_rank(c, 0, 1, WK_MAX_RANK));
    WK_TRY(row_weights(c, 0, &k));
    return result_rows(c, c->in[0]->rank - 1, c->in[0]->shape, k);
}

static wk_status infer_qembedding(wk_call *c)
{
    int64_t k;
    WK_TRY(result_dtype(c));
    WK_TRY(wk_call_rank(c, 0, 2, 2));
    WK_TRY(wk_call_rank(c, 1, 0, WK_MAX_RANK - 1));
    WK_TRY(row_weights(c, 0, &k));
    return result_rows(c, c->in[1]->rank, c->in[1]->shape, k);
}

/* ---- the table ---- */

#define SAMPLES(name, ...) static const char *const name[] = {__VA_ARGS__, NULL}

/* Rows of one, a few and many; widths of one block, of an odd number of them and of more than a wave or a cache takes at a time. */
/* So few that those of a row of x often meet weights of one sign. */
#define ONES "1,1,1,1,1,1,1,"
#define FEW_INFINITIES "inf," ONES ONES ONES ONES ONES ONES ONES ONES "1"
SAMPLES(qlinear_samples, "x=T[1,64] weight=u8[5,36]:q4_0 format=q4_0",
        "x=T[32] weight=u8[3,34]:q8_0 format=q8_0", "x=T[1,256] weight=u8[7,144]:q4_k format=q4_k",
        "x=T[1,256] weight=u8[7,210]:q6_k format=q6_k",
        "x=T[2,3,96] weight=u8[9,54]:q4_0 bias=T[9] format=q4_0 act=silu",
        "x=T[4,160] weight=u8[21,170]:q8_0 bias=T[21] format=q8_0 act=gelu",
        "x=T[3,512] weight=u8[10,288]:q4_k bias=T[10] format=q4_k act=relu",
        "x=T[8,768] weight=u8[6,630]:q6_k format=q6_k act=gelu_erf",
        "x=T[1,2112] weight=u8[70,1188]:q4_0 format=q4_0", "x=T[1,2112] weight=u8[35,2244]:q8_0 format=q8_0",
        "x=T[1,2304] weight=u8[33,1296]:q4_k format=q4_k", "x=T[1,2304] weight=u8[34,1890]:q6_k format=q6_k",
        "x=T[1,3488] weight=u8[22,1962]:q4_0 format=q4_0", "x=T[1,3200] weight=u8[9,3400]:q8_0 format=q8_0",
        "x=T[1,3328] weight=u8[9,1872]:q4_k format=q4_k", "x=T[1,3328] weight=u8[10,2730]:q6_k format=q6_k",
        "x=T[1,2304] weight=u8[35,1296]:q4_0 format=q4_0", "x=T[16,768] weight=u8[33,432]:q4_0 format=q4_0",
        "x=T[5,768] weight=u8[18,816]:q8_0 bias=T[18] format=q8_0 act=relu",
        "x=T[9,512] weight=u8[40,288]:q4_k bias=T[40] format=q4_k",
        "x=T[1,2048] weight=u8[50,1680]:q6_k format=q6_k", "x=T[13,2048] weight=u8[19,1680]:q6_k format=q6_k",
        "x=T[1,256]:special weight=u8[3,272]:q8_0 format=q8_0",
        "x=T[1,256]:" FEW_INFINITIES " weight=u8[40,144]:q4_k format=q4_k",
        "x=T[3,256]:" FEW_INFINITIES " weight=u8[40,144]:q4_k format=q4_k",
        "x=T[1,256]:special weight=u8[4,210]:q6_k format=q6_k",
        "x=T[19,352] weight=u8[37,198]:q4_0 bias=T[37] format=q4_0 act=silu",
        "x=T[33,96] weight=u8[66,102]:q8_0 format=q8_0", "x=T[20,512] weight=u8[50,288]:q4_k format=q4_k",
        "x=T[17,512] weight=u8[50,420]:q6_k format=q6_k", "x=T[0,32] weight=u8[3,18]:q4_0 format=q4_0",
        "x=T[2,0] weight=u8[3,0] bias=T[3] format=q4_k", "x=T[2,32] weight=u8[0,34] format=q8_0",
        "x=T[2,32]:special weight=u8[3,18]:q4_0 format=q4_0",
        "x=T[12,288] weight=u8[47,162]:q4_0 format=q4_0", "x=T[16,288] weight=u8[48,306]:q8_0 format=q8_0",
        "x=T[15,768] weight=u8[97,432]:q4_k bias=T[97] format=q4_k act=gelu",
        "x=T[11,512] weight=u8[49,420]:q6_k format=q6_k",
        "x=T[525,64] weight=u8[7,36]:q4_0 bias=T[7] format=q4_0",
        "x=T[11,256]:" FEW_INFINITIES " weight=u8[50,144]:q4_k format=q4_k",
        "x=T[11,256]:special weight=u8[50,210]:q6_k format=q6_k",
        "x=T[520,32]:" FEW_INFINITIES " weight=u8[50,34]:q8_0 format=q8_0",
        "x=T[25,512] weight=u8[40,288]:q4_k format=q4_k", "x=T[26,512] weight=u8[35,420]:q6_k format=q6_k",
        "x=T[2,256]:1e37..2e37 weight=u8[3,144]:q4_k format=q4_k",
        "x=bf16[11,64]:-1e19..1e19 weight=u8[3,36]:q4_0 format=q4_0",
        "x=bf16[11,64]:-2e36..2e36 weight=u8[20,68]:q8_0 format=q8_0");
SAMPLES(qlinear_errors, "x=T[1,32] format=q4_0 ! weight", "x=T[1,32] weight=u8[3,18]:q4_0 ! format",
        "x=T[1,32] weight=u8[3,18]:q4_0 format=q5_0 ! format",
        "x=T[1,32] weight=u8[3,17] format=q4_0 ! weight",
        "x=T[1,64] weight=u8[3,18]:q4_0 format=q4_0 ! weight", "x=T[1,32] weight=u8[18] format=q4_0 ! weight",
        "x=T[1,32] weight=f32[3,18] format=q4_0 ! weight", "x=T[] weight=u8[3,18]:q4_0 format=q4_0 ! x",
        "x=T[1,32] weight=u8[3,18]:q4_0 bias=T[4] format=q4_0 ! bias",
        "x=i32[1,32] weight=u8[3,18]:q4_0 format=q4_0 ! x",
        "x=T[1,32] weight=u8[3,18]:q4_0 format=q4_0 act=cube ! act");
SAMPLES(dequantize_samples, "weight=u8[3,36]:q4_0 format=q4_0 dtype=T",
        "weight=u8[34]:q8_0 format=q8_0 dtype=T", "weight=u8[2,3,144]:q4_k format=q4_k dtype=T",
        "weight=u8[2,2,420]:q6_k format=q6_k dtype=T", "weight=u8[11,198]:q4_0 format=q4_0 dtype=T",
        "weight=u8[9,374]:q8_0 format=q8_0 dtype=T", "weight=u8[7,1296]:q4_k format=q4_k dtype=T",
        "weight=u8[5,1890]:q6_k format=q6_k dtype=T", "weight=u8[3,0] format=q4_0 dtype=T",
        "weight=u8[0,36] format=q4_0 dtype=T", "weight=u8[2,18]:q4_0 format=q4_0");
SAMPLES(dequantize_errors, "format=q4_0 ! weight", "weight=u8[3,36]:q4_0 ! format",
        "weight=u8[3,35] format=q4_0 ! weight", "weight=u8[] format=q4_0 ! weight",
        "weight=u8[3,36]:q4_0 format=q4_0 dtype=i32 ! dtype", "weight=i16[3,36] format=q4_0 ! weight");
SAMPLES(qembedding_samples, "weight=u8[7,36]:q4_0 ids=i64[5]:0..7 format=q4_0 dtype=T",
        "weight=u8[9,170]:q8_0 ids=i32[2,3]:0..9 format=q8_0 dtype=T",
        "weight=u8[5,144]:q4_k ids=u32[]:0..5 format=q4_k dtype=T",
        "weight=u8[6,630]:q6_k ids=u8[4]:0..6 format=q6_k dtype=T",
        "weight=u8[6,18]:q4_0 ids=u8[6]:1,255,5 format=q4_0 dtype=T",
        "weight=u8[6,18]:q4_0 ids=i64[0] format=q4_0 dtype=T",
        "weight=u8[4,0] ids=i64[3]:0..4 format=q4_0 dtype=T",
        "weight=u8[6,18]:q4_0 ids=i64[3]:0..6 format=q4_0");
SAMPLES(qembedding_errors, "weight=u8[7,36]:q4_0 format=q4_0 ! ids", "ids=i64[2]:0..1 format=q4_0 ! weight",
        "weight=u8[7,36]:q4_0 ids=i64[2]:0..7 ! format",
        "weight=u8[7,36]:q4_0 ids=i64[2]:7..8 format=q4_0 ! ids",
        "weight=u8[7,36]:q4_0 ids=i32[2]:-3..-2 format=q4_0 ! -3",
        "weight=u8[7,36]:q4_0 ids=f32[2] format=q4_0 ! ids",
        "weight=u8[36]:q4_0 ids=i64[2] format=q4_0 ! weight",
        "weight=u8[7,36]:q4_0 ids=i64[2]:0..7 format=q4_0 dtype=u8 ! dtype");

#define FORMAT \
    { \
        "format", WK_P_ENUM, offsetof(wk_quant_params, format), NULL, "q4_0|q8_0|q4_k|q6_k", 0 \
    }
#define DTYPE \
    { \
        "dtype", WK_P_DTYPE, offsetof(wk_quant_params, dtype), "f32", NULL, 0 \
    }

enum { OP_qlinear, OP_dequantize, OP_qembedding };

wk_op wk_ops_quant[] = {
    [OP_qlinear] = {.name = "qlinear",
                    .summary = "act(x . weight^T + bias) with weights in blocks of few bits",
                    .dtypes = WK_FLOATS,
                    .in = {{"x", 0, 0}, {"weight", 0, WK_SET(WK_U8)}, {"bias", WK_OPTIONAL, 0}},
                    .out = {{"y", 0, 0}},
                    .params = WK_PARAM_LIST(FORMAT, {"act", WK_P_ENUM, offsetof(wk_quant_params, act), "none",
                                                     "none|relu|gelu|gelu_erf|silu", 0}),
                    .infer = infer_qlinear,
                    .samples = qlinear_samples,
                    .errors = qlinear_errors},
    [OP_dequantize] = {.name = "dequantize",
                       .summary = "weights in blocks of few bits as floats",
                       .dtypes = WK_FLOATS,
                       .in = {{"weight", 0, WK_SET(WK_U8)}},
                       .out = {{"y", WK_ANY, 0}},
                       .params = WK_PARAM_LIST(FORMAT, DTYPE),
                       .infer = infer_dequantize,
                       .samples = dequantize_samples,
                       .errors = dequantize_errors},
    [OP_qembedding] = {.name = "qembedding",
                       .summary = "rows of a matrix in blocks of few bits at ids, as floats",
                       .dtypes = WK_FLOATS,
                       .in = {{"weight", 0, WK_SET(WK_U8)}, {"ids", 0, WK_IDS}},
                       .out = {{"y", WK_ANY, 0}},
                       .params = WK_PARAM_LIST(FORMAT, DTYPE),
                       .infer = infer_qembedding,
                       .samples = qembedding_samples,
                       .errors = qembedding_errors},
    {0},
};

/* ---- the API ---- */

wk_tensor *wk_qlinear(const wk_tensor *x, const wk_tensor *weight, const wk_tensor *bias, wk_qformat format,
                      wk_activation act)
{
    wk_quant_params p = {.format = format, .act = act};
    return wk_call_run1(&(wk_call){.op = &wk_ops_quant[OP_qlinear], .params = &p, .in = {x, weight, bias}});
}

wk_tensor *wk_dequantize(const wk_tensor *weight, wk_qformat format, wk_dtype dtype)
{
    wk_quant_params p = {.format = format, .dtype = dtype};
    return wk_call_run1(&(wk_call){.op = &wk_ops_quant[OP_dequantize], .params = &p, .in = {weight}});
}

wk_tensor *wk_qembedding(const wk_tensor *weight, const wk_tensor *ids, wk_qformat format, wk_dtype dtype)
{
    wk_quant_params p = {.format = format, .dtype = dtype};
    return wk_call_run1(&(wk_call){.op = &wk_ops_quant[OP_qembedding], .params = &p, .in = {weight, ids}});
}
