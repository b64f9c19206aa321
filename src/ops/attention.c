/* attention.c: front ends of attention. */
#include "attention.h"

double wk_sdpa_scale(const wk_sdpa_options *p, int64_t d)
{
    return p->scale == p->scale ? p->scale : d > 0 ? 1 / sqrt((double)d) : 1;
}

wk_tensor wk_sdpa_mask(const wk_tensor *mask, int64_t b, int64_t hq, int64_t s, int64_t t)
{
    wk_tensor m = wk_tensor_local(mask);
    int64_t shape[4] = {b, hq, s, t};
    for (int d = 0; d < 4; d++) {
        int from = d - (4 - mask->rank);
        m.strides[d] = from < 0 || mask->shape[from] == 1 ? 0 : mask->strides[from];
        m.shape[d] = shape[d];
    }
    m.rank = 4;
    return m;
}

int64_t wk_sdpa_seqlen(const wk_tensor *t, int64_t i)
{
    return wk_load_i64(t->dtype, (const char *)wk_ptr(t) + i * t->strides[0] * (int64_t)wk_bytes(t->dtype));
}

wk_status wk_sdpa_check_seqlens(const wk_call *c, int i, int64_t total)
{
    const wk_tensor *t = c->in[i];
    const char *name = c->op->in[i].name;
    int64_t before = wk_sdpa_seqlen(t, 0), last = t->shape[0] - 1;
    WK_NEED(before == 0, c, WK_ERR_INDEX, name, "expected 0 at 0, got %lld", (long long)before);
    for (int64_t j = 1; j <= last; j++) {
        int64_t at = wk_sdpa_seqlen(t, j);
        WK_NEED(at >= before, c, WK_ERR_INDEX, name, "expected no less than %lld at %lld, got %lld",
                (long long)before, (long long)j, (long long)at);
        before = at;
    }
    WK_NEED(before == total, c, WK_ERR_INDEX, name, "expected the total %lld at the end, got %lld",
            (long long)total, (long long)before);
    return WK_OK;
}

/* ---- checks and outputs ---- */

/* A mask in slot i against [b, hq, s, t]. */
static wk_status check_mask(const wk_call *c, int i, const int64_t shape[4])
{
    const wk_tensor *m = c->in[i];
    if (!m)
        return WK_OK;
    WK_NEED(m->dtype == c->dtype || m->dtype == WK_F32 || m->dtype == WK_U8, c, WK_ERR_DTYPE, "mask",
            "expected dtype %s, f32 or u8, got %s", wk_dtype_name(c->dtype), wk_dtype_name(m->dtype));
    bool fits = m->rank <= 4;
    for (int d = 4 - m->rank; fits && d < 4; d++)
        fits = m->shape[d - (4 - m->rank)] == 1 || m->shape[d - (4 - m->rank)] == shape[d];
    wk_shape_text want, got;
    WK_NEED(fits, c, WK_ERR_SHAPE, "mask", "expected a shape that broadcasts to %s, got %s",
            wk_shape_str(&want, 4, shape), wk_shape_str(&got, m->rank, m->shape));
    return WK_OK;
}

static wk_status check_options(const wk_call *c)
{
    const wk_sdpa_options *p = c->params;
    WK_NEED(!isinf(p->scale), c, WK_ERR_PARAM, "scale", "expected a finite number, got %g", p->scale);
    WK_NEED(p->causal == 0 || p->causal == 1, c, WK_ERR_PARAM, "causal", "expected 0 or 1, got %lld",
            (long long)p->causal);
    WK_NEED(p->softcap >= 0 && !isinf(p->softcap), c, WK_ERR_PARAM, "softcap",
            "expected 0 or a positive number, got %g", p->softcap);
    WK_NEED(p->window >= 0, c, WK_ERR_PARAM, "window", "expected 0 or a positive number, got %lld",
            (long long)p->window);
    return WK_OK;
}

/* The heads and sizes of k and v against q's; h, t and d are the dims that hold them. */
static wk_status check_heads(const wk_call *c, int h, int t, int d)
{
    const wk_tensor *q = c->in[0], *k = c->in[1], *v = c->in[2];
    int64_t shape[4], hq = q->shape[h], hk = k->shape[h];
    WK_NEED(hk > 0 ? hq % hk == 0 : hq == 0, c, WK_ERR_SHAPE, "k",
            "expected a number of heads that divides q's %lld, got %lld", (long long)hq, (long long)hk);
    memcpy(shape, q->shape, sizeof shape);
    shape[h] = hk;
    shape[t] = k->shape[t];
    WK_TRY(wk_call_shape(c, 1, q->rank, shape));
    shape[d] = v->shape[d];
    return wk_call_shape(c, 2, q->rank, shape);
}

static wk_status check_sdpa(wk_call *c, int mask_slot)
{
    const wk_tensor *q = c->in[0], *k = c->in[1];
    WK_TRY(check_options(c));
    for (int i = 0; i < 3; i++)
        WK_TRY(wk_call_rank(c, i, 4, 4));
    WK_TRY(check_heads(c, 1, 2, 3));
    return check_mask(c, mask_slot, (int64_t[]){q->shape[0], q->shape[1], q->shape[2], k->shape[2]});
}

static wk_status infer_sdpa(wk_call *c)
{
    const wk_tensor *q = c->in[0];
    WK_TRY(check_sdpa(c, 3));
    wk_call_out(c, 0, c->dtype, 4, (int64_t[]){q->shape[0], q->shape[1], q->shape[2], c->in[2]->shape[3]});
    wk_call_out(c, 1, wk_stat_dtype(c->dtype), 3, q->shape);
    return WK_OK;
}

static wk_status infer_sdpa_backward(wk_call *c)
{
    const wk_tensor *q = c->in[0];
    WK_TRY(check_sdpa(c, 6));
    int64_t shape[4] = {q->shape[0], q->shape[1], q->shape[2], c->in[2]->shape[3]};
    WK_TRY(wk_call_shape(c, 3, 4, shape));
    WK_TRY(wk_call_shape(c, 4, 3, shape));
    WK_TRY(wk_call_shape(c, 5, 4, shape));
    for (int i = 0; i < 3; i++)
        wk_call_out_like(c, i, c->in[i]);
    return WK_OK;
}

static wk_status infer_sdpa_varlen(wk_call *c)
{
    const wk_tensor *q = c->in[0];
    WK_TRY(check_options(c));
    for (int i = 0; i < 3; i++)
        WK_TRY(wk_call_rank(c, i, 3, 3));
    WK_TRY(check_heads(c, 1, 0, 2));
    WK_TRY(wk_call_rank(c, 3, 1, 1));
    WK_NEED(c->in[3]->shape[0] > 0, c, WK_ERR_SHAPE, "cu_seqlens_q",
            "expected at least one number, got none");
    WK_TRY(wk_call_same_shape(c, 4, 3));
    wk_call_out(c, 0, c->dtype, 3, (int64_t[]){q->shape[0], q->shape[1], c->in[2]->shape[2]});
    return WK_OK;
}

static wk_status infer_mha(wk_call *c)
{
    const wk_mha_options *p = c->params;
    const wk_tensor *q = c->in[0], *k = c->in[1];
    for (int i = 0; i < 3; i++)
        WK_TRY(wk_call_rank(c, i, 3, 3));
    int64_t b = q->shape[0], s = q->shape[1], e = q->shape[2], t = k->shape[1];
    WK_TRY(wk_call_shape(c, 1, 3, (int64_t[]){b, t, e}));
    WK_TRY(wk_call_shape(c, 2, 3, (int64_t[]){b, t, e}));
    WK_NEED(e <= INT64_MAX / 3, c, WK_ERR_SHAPE, "q", "expected a smaller last dimension, got %lld",
            (long long)e);
    WK_TRY(wk_call_shape(c, 3, 2, (int64_t[]){3 * e, e}));
    WK_TRY(wk_call_shape(c, 4, 1, (int64_t[]){3 * e}));
    WK_TRY(wk_call_shape(c, 5, 2, (int64_t[]){e, e}));
    WK_TRY(wk_call_shape(c, 6, 1, (int64_t[]){e}));
    WK_NEED(p->heads > 0 && e % p->heads == 0, c, WK_ERR_PARAM, "heads",
            "expected a divisor of the embedding's size %lld, got %lld", (long long)e, (long long)p->heads);
    WK_NEED(p->causal == 0 || p->causal == 1, c, WK_ERR_PARAM, "causal", "expected 0 or 1, got %lld",
            (long long)p->causal);
    WK_NEED(p->dropout >= 0 && p->dropout <= 1, c, WK_ERR_PARAM, "dropout", "expected 0 to 1, got %g",
            p->dropout);
    WK_TRY(check_mask(c, 7, (int64_t[]){b, p->heads, s, t}));
    wk_call_out_like(c, 0, q);
    return WK_OK;
}

/* ---- the table ---- */

#define SAMPLES(name, ...) static const char *const name[] = {__VA_ARGS__, NULL}

/* Small ones, every parameter; then some for several blocks of rows and keys, few rows over many keys, and long
 * heads. */
SAMPLES(sdpa_samples, "q=T[2,3,4,8] k=T[2,3,5,8] v=T[2,3,5,8]", "q=T[2,3,17,8] k=T[2,3,17,8] v=T[2,3,17,8]",
        "q=T[1,2,70,16] k=T[1,2,70,16] v=T[1,2,70,16] causal=1",
        "q=T[1,4,3,6] k=T[1,2,7,6] v=T[1,2,7,5] causal=1",
        "q=T[2,6,5,4] k=T[2,2,5,4] v=T[2,2,5,3] causal=1 scale=0.3",
        "q=T[1,2,5,4] k=T[1,2,3,4] v=T[1,2,3,4] causal=1", "q=T[1,2,6,4] k=T[1,2,9,4] v=T[1,2,9,4] window=3",
        "q=T[1,2,6,4] k=T[1,2,9,4] v=T[1,2,9,4] window=2 causal=1",
        "q=T[1,2,5,4] k=T[1,1,6,4] v=T[1,1,6,4] softcap=1.5",
        "q=T[2,2,4,4] k=T[2,2,5,4] v=T[2,2,5,4] mask=T[4,5]",
        "q=T[2,2,4,4] k=T[2,1,5,4] v=T[2,1,5,4] mask=T[2,1,1,5] softcap=2 causal=1",
        "q=T[2,2,4,4] k=T[2,2,5,4] v=T[2,2,5,4] mask=u8[2,2,4,5]:0..2",
        "q=T[1,2,4,4] k=T[1,2,5,4] v=T[1,2,5,4] mask=f32[1,2,4,5] window=3",
        "q=T[1,2,4,4] k=T[1,2,5,4] v=T[1,2,5,4] mask=u8[1,5]:0..1",
        "q=T[1,2,70,16] k=T[1,1,70,16] v=T[1,1,70,16] causal=1",
        "q=T[1,1,100,20] k=T[1,1,150,20] v=T[1,1,150,24] mask=T[100,150]",
        "q=T[1,4,1,16] k=T[1,1,700,16] v=T[1,1,700,16]",
        "q=T[1,2,2,24] k=T[1,2,333,24] v=T[1,2,333,9] causal=1 window=200 softcap=3",
        "q=T[1,2,1,17] k=T[1,1,600,17] v=T[1,1,600,17] mask=u8[600]:0..2",
        "q=T[1,20,1,16] k=T[1,1,600,16] v=T[1,1,600,16] mask=T[20,1,600]",
        "q=T[1,2,65,64]:-1..1 k=T[1,2,193,64]:-1..1 v=T[1,2,193,64] window=40",
        "q=T[1,8,1,128]:-1..1 k=T[1,1,300,128]:-1..1 v=T[1,1,300,128] causal=1",
        "q=T[1,1,12,80]:-1..1 k=T[1,1,40,80]:-1..1 v=T[1,1,40,132]",
        "q=T[1,2,37,96]:-1..1 k=T[1,1,75,96]:-1..1 v=T[1,1,75,128] causal=1",
        "q=T[1,2,20,256]:-1..1 k=T[1,1,70,256]:-1..1 v=T[1,1,70,200] causal=1",
        "q=T[1,1,20,160]:-1..1 k=T[1,1,70,160]:-1..1 v=T[1,1,70,160] softcap=4 mask=T[70]",
        "q=T[1,1,140,64]:-1..1 k=T[1,1,300,64]:-1..1 v=T[1,1,300,64] window=90",
        "q=T[1,1,9,300]:-1..1 k=T[1,1,20,300]:-1..1 v=T[1,1,20,290]",
        "q=T[0,2,3,4] k=T[0,2,3,4] v=T[0,2,3,4]", "q=T[1,2,0,4] k=T[1,2,3,4] v=T[1,2,3,4]",
        "q=T[1,2,3,4] k=T[1,2,0,4] v=T[1,2,0,4]", "q=T[1,2,3,0] k=T[1,2,4,0] v=T[1,2,4,4]",
        "q=T[1,2,3,4] k=T[1,2,4,4] v=T[1,2,4,0]", "q=T[1,0,3,4] k=T[1,0,4,4] v=T[1,0,4,4]");
SAMPLES(sdpa_errors, "q=T[1,2,3,4] k=T[1,2,3,4] ! v", "q=T[2,3,4] k=T[2,3,4] v=T[2,3,4] ! q",
        "q=T[1,3,3,4] k=T[1,2,3,4] v=T[1,2,3,4] ! k", "q=T[1,2,3,4] k=T[1,2,3,5] v=T[1,2,3,4] ! k",
        "q=T[2,2,3,4] k=T[1,2,3,4] v=T[1,2,3,4] ! k", "q=T[1,2,3,4] k=T[1,2,3,4] v=T[1,2,4,4] ! v",
        "q=T[1,2,3,4] k=T[1,0,3,4] v=T[1,0,3,4] ! k", "q=T[1,2,3,4] k=T[1,2,3,4] v=T[1,1,3,4] ! v",
        "q=T[1,2,3,4] k=T[1,2,3,4] v=T[1,2,3,4] mask=T[4,3] ! mask",
        "q=T[1,2,3,4] k=T[1,2,3,4] v=T[1,2,3,4] mask=i64[3,3] ! mask",
        "q=T[1,2,3,4] k=T[1,2,3,4] v=T[1,2,3,4] mask=T[1,1,1,3,3] ! mask",
        "q=T[1,2,3,4] k=T[1,2,3,4] v=T[1,2,3,4] window=-1 ! window",
        "q=T[1,2,3,4] k=T[1,2,3,4] v=T[1,2,3,4] softcap=-2 ! softcap",
        "q=T[1,2,3,4] k=T[1,2,3,4] v=T[1,2,3,4] causal=2 ! causal",
        "q=T[1,2,3,4] k=T[1,2,3,4] v=T[1,2,3,4] scale=inf ! scale",
        "q=i32[1,2,3,4] k=i32[1,2,3,4] v=i32[1,2,3,4] ! dtype");
SAMPLES(
    sdpa_backward_samples,
    "q=T[2,2,9,6] k=T[2,2,9,6] v=T[2,2,9,6] y=T[2,2,9,6] lse=S[2,2,9]:2..3 dy=T[2,2,9,6]",
    "q=T[1,1,70,16]:-1..1 k=T[1,1,70,16]:-1..1 v=T[1,1,70,16] y=T[1,1,70,16] lse=S[1,1,70]:4..5 "
    "dy=T[1,1,70,16]",
    "q=T[1,1,260,4]:-1..1 k=T[1,1,260,4]:-1..1 v=T[1,1,260,4] y=T[1,1,260,4] lse=S[1,1,260]:5..6 "
    "dy=T[1,1,260,4] scale=0.2",
    "q=T[1,2,5,70]:-1..1 k=T[1,2,5,70]:-1..1 v=T[1,2,5,70] y=T[1,2,5,70] lse=S[1,2,5]:2..3 dy=T[1,2,5,70]",
    "q=T[1,2,4,6] k=T[1,2,5,6] v=T[1,2,5,3] y=T[1,2,4,3] lse=S[1,2,4]:2..3 dy=T[1,2,4,3]",
    "q=T[2,4,3,4] k=T[2,2,5,4] v=T[2,2,5,4] y=T[2,4,3,4] lse=S[2,4,3]:2..3 dy=T[2,4,3,4] causal=1",
    "q=T[1,2,70,8] k=T[1,1,90,8] v=T[1,1,90,8] y=T[1,2,70,8] lse=S[1,2,70]:5..6 dy=T[1,2,70,8] causal=1 "
    "window=50",
    "q=T[1,2,5,4] k=T[1,2,6,4] v=T[1,2,6,4] y=T[1,2,5,4] lse=S[1,2,5]:2..3 dy=T[1,2,5,4] mask=T[5,6] "
    "softcap=2",
    "q=T[1,2,5,4] k=T[1,2,6,4] v=T[1,2,6,4] y=T[1,2,5,4] lse=S[1,2,5]:2..3 dy=T[1,2,5,4] mask=u8[2,1,6]:0..2",
    "q=T[1,2,40,100]:-1..1 k=T[1,1,70,100]:-1..1 v=T[1,1,70,72] y=T[1,2,40,72] lse=S[1,2,40]:4..5 "
    "dy=T[1,2,40,72] causal=1",
    "q=T[1,2,9,130]:-1..1 k=T[1,1,12,130]:-1..1 v=T[1,1,12,70] y=T[1,2,9,70] lse=S[1,2,9]:3..4 "
    "dy=T[1,2,9,70]",
    "q=T[2,4,33,16]:-1..1 k=T[2,2,40,16]:-1..1 v=T[2,2,40,16] y=T[2,4,33,16] lse=S[2,4,33]:4..5 "
    "dy=T[2,4,33,16] causal=1",
    "q=T[2,6,33,16]:-1..1 k=T[2,2,40,16]:-1..1 v=T[2,2,40,16] y=T[2,6,33,16] lse=S[2,6,33]:4..5 "
    "dy=T[2,6,33,16]",
    "q=T[2,3,260,8]:-1..1 k=T[2,3,260,8]:-1..1 v=T[2,3,260,8] y=T[2,3,260,8] lse=S[2,3,260]:5..6 "
    "dy=T[2,3,260,8]",
    "q=T[1,2,140,64]:-1..1 k=T[1,1,140,64]:-1..1 v=T[1,1,140,64] y=T[1,2,140,64] lse=S[1,2,140]:5..6 "
    "dy=T[1,2,140,64] causal=1",
    "q=T[1,1,130,128]:-1..1 k=T[1,1,270,128]:-1..1 v=T[1,1,270,128] y=T[1,1,130,128] lse=S[1,1,130]:5..6 "
    "dy=T[1,1,130,128]",
    "q=T[1,2,0,4] k=T[1,2,3,4] v=T[1,2,3,4] y=T[1,2,0,4] lse=S[1,2,0] dy=T[1,2,0,4]",
    "q=T[1,2,3,4] k=T[1,2,0,4] v=T[1,2,0,4] y=T[1,2,3,4] lse=S[1,2,3] dy=T[1,2,3,4]");
SAMPLES(sdpa_backward_errors, "q=T[1,2,3,4] k=T[1,2,3,4] v=T[1,2,3,4] y=T[1,2,3,4] lse=S[1,2,3] ! dy",
        "q=T[1,2,3,4] k=T[1,2,3,4] v=T[1,2,3,4] y=T[1,2,3,5] lse=S[1,2,3] dy=T[1,2,3,4] ! y",
        "q=T[1,2,3,4] k=T[1,2,3,4] v=T[1,2,3,4] y=T[1,2,3,4] lse=S[1,2,4] dy=T[1,2,3,4] ! lse",
        "q=T[1,2,3,4] k=T[1,2,3,4] v=T[1,2,3,4] y=T[1,2,3,4] lse=S[1,2,3] dy=T[1,2,4,4] ! dy",
        "q=T[1,2,3,4] k=T[1,2,3,4] v=T[1,2,3,4] y=T[1,2,3,4] lse=i32[1,2,3] dy=T[1,2,3,4] ! lse");
SAMPLES(
    sdpa_varlen_samples,
    "q=T[9,4,6] k=T[12,2,6] v=T[12,2,5] cu_seqlens_q=i32[4]:0,2,2,9 cu_seqlens_k=u32[4]:0,5,8,12",
    "q=T[9,4,6] k=T[12,2,6] v=T[12,2,5] cu_seqlens_q=u32[4]:0,2,4,9 cu_seqlens_k=i32[4]:0,5,5,12 causal=1",
    "q=T[70,2,16] k=T[90,2,16] v=T[90,2,16] cu_seqlens_q=i32[3]:0,1,70 cu_seqlens_k=i32[3]:0,15,90 scale=0.5 "
    "causal=1",
    "q=T[5,4,8] k=T[700,2,8] v=T[700,2,8] cu_seqlens_q=i32[3]:0,1,5 cu_seqlens_k=i32[3]:0,600,700",
    "q=T[0,2,4] k=T[0,2,4] v=T[0,2,4] cu_seqlens_q=i32[1]:0 cu_seqlens_k=u32[1]:0",
    "q=T[0,2,4] k=T[3,1,4] v=T[3,1,6] cu_seqlens_q=i32[3]:0,0,0 cu_seqlens_k=i32[3]:0,1,3");
SAMPLES(
    sdpa_varlen_errors, "q=T[3,2,4] k=T[3,2,4] v=T[3,2,4] cu_seqlens_q=i32[2]:0,3 ! cu_seqlens_k",
    "q=T[3,2,4] k=T[3,2,4] v=T[3,2,4] cu_seqlens_q=i32[2]:0,2 cu_seqlens_k=i32[2]:0,3 ! cu_seqlens_q",
    "q=T[3,2,4] k=T[3,2,4] v=T[3,2,4] cu_seqlens_q=i32[2]:1,3 cu_seqlens_k=i32[2]:0,3 ! cu_seqlens_q",
    "q=T[3,2,4] k=T[3,2,4] v=T[3,2,4] cu_seqlens_q=i32[3]:0,2,3 cu_seqlens_k=i32[3]:0,4,3 ! cu_seqlens_k",
    "q=T[3,2,4] k=T[3,2,4] v=T[3,2,4] cu_seqlens_q=i32[3]:0,-1,3 cu_seqlens_k=i32[3]:0,2,3 ! cu_seqlens_q",
    "q=T[3,2,4] k=T[3,2,4] v=T[3,2,4] cu_seqlens_q=i32[2]:0,3 cu_seqlens_k=i32[3]:0,2,3 ! cu_seqlens_k",
    "q=T[0,2,4] k=T[3,2,4] v=T[3,2,4] cu_seqlens_q=i32[0] cu_seqlens_k=i32[0] ! cu_seqlens_q",
    "q=T[3,2,4] k=T[3,2,4] v=T[3,2,4] cu_seqlens_q=i64[2]:0,3 cu_seqlens_k=i32[2]:0,3 ! cu_seqlens_q",
    "q=T[3,2,4] k=T[3,2,5] v=T[3,2,4] cu_seqlens_q=i32[2]:0,3 cu_seqlens_k=i32[2]:0,3 ! k",
    "q=T[1,3,2,4] k=T[3,2,4] v=T[3,2,4] cu_seqlens_q=i32[2]:0,3 cu_seqlens_k=i32[2]:0,3 ! q");
#define MHA_WEIGHTS \
    " in_proj_weight=T[24,8]:-0.5..0.5 in_proj_bias=T[24] out_proj_weight=T[8,8] out_proj_bias=T[8] "
SAMPLES(mha_samples, "q=T[2,3,8] k=T[2,5,8] v=T[2,5,8]" MHA_WEIGHTS "heads=2",
        "q=T[1,4,8] k=T[1,4,8] v=T[1,4,8]" MHA_WEIGHTS "heads=4 causal=1",
        "q=T[2,3,8] k=T[2,5,8] v=T[2,5,8]" MHA_WEIGHTS "mask=T[3,5] heads=1",
        "q=T[2,3,8] k=T[2,5,8] v=T[2,5,8]" MHA_WEIGHTS
        "mask=u8[2,1,1,5]:0..2 heads=2 dropout=0.25 seed=7 offset=3",
        "q=T[2,3,8] k=T[2,5,8] v=T[2,5,8]" MHA_WEIGHTS "heads=2 dropout=1 seed=1",
        "q=T[1,60,8] k=T[1,130,8] v=T[1,130,8]" MHA_WEIGHTS "heads=2 dropout=0.5 seed=-1 offset=9",
        "q=T[0,3,8] k=T[0,3,8] v=T[0,3,8]" MHA_WEIGHTS "heads=2",
        "q=T[1,3,8] k=T[1,0,8] v=T[1,0,8]" MHA_WEIGHTS "heads=2");
SAMPLES(mha_errors, "q=T[2,3,8] k=T[2,5,8] v=T[2,5,8]" MHA_WEIGHTS "heads=3 ! heads",
        "q=T[2,3,8] k=T[2,5,8] v=T[2,5,8]" MHA_WEIGHTS "! heads",
        "q=T[2,3,8] k=T[2,5,8] v=T[2,5,8]" MHA_WEIGHTS "heads=0 ! heads",
        "q=T[2,3,8] k=T[2,5,8] v=T[2,4,8]" MHA_WEIGHTS "heads=2 ! v",
        "q=T[2,3,8] k=T[1,5,8] v=T[2,5,8]" MHA_WEIGHTS "heads=2 ! k",
        "q=T[3,8] k=T[3,8] v=T[3,8]" MHA_WEIGHTS "heads=2 ! q",
        "q=T[2,3,6] k=T[2,5,6] v=T[2,5,6]" MHA_WEIGHTS "heads=2 ! in_proj_weight",
        "q=T[2,3,8] k=T[2,5,8] v=T[2,5,8]" MHA_WEIGHTS "heads=2 dropout=1.5 ! dropout",
        "q=T[2,3,8] k=T[2,5,8] v=T[2,5,8]" MHA_WEIGHTS "heads=2 causal=2 ! causal",
        "q=T[2,3,8] k=T[2,5,8] v=T[2,5,8]" MHA_WEIGHTS "mask=T[5,3] heads=2 ! mask",
        "q=T[2,3,8] k=T[2,5,8] v=T[2,5,8] in_proj_weight=T[24,8] heads=2 ! in_proj_bias");

enum { OP_sdpa, OP_sdpa_backward, OP_sdpa_varlen, OP_mha };

#define AT(field) offsetof(wk_sdpa_options, field)
#define SDPA_PARAMS \
    WK_PARAM_LIST({"scale", WK_P_FLOAT, AT(scale), "1/sqrt(d)", NULL, 0}, \
                  {"causal", WK_P_BOOL, AT(causal), "0", NULL, 0}, \
                  {"softcap", WK_P_FLOAT, AT(softcap), "0", NULL, 0}, \
                  {"window", WK_P_INT, AT(window), "0", NULL, 0})
#define SEQLENS WK_SET(WK_U32) | WK_SET(WK_I32)

wk_op wk_ops_attention[] = {
    [OP_sdpa] = {.name = "sdpa",
                 .summary = "softmax(scale q k^T + mask) v, for grouped heads",
                 .dtypes = WK_FLOATS,
                 .in = {{"q", 0, 0}, {"k", 0, 0}, {"v", 0, 0}, {"mask", WK_OPTIONAL | WK_ANY, 0}},
                 .out = {{"y", 0, 0}, {"lse", WK_OPTIONAL | WK_STAT, 0}},
                 .params = SDPA_PARAMS,
                 .infer = infer_sdpa,
                 .samples = sdpa_samples,
                 .errors = sdpa_errors},
    [OP_sdpa_backward] = {.name = "sdpa_backward",
                          .summary = "gradient of sdpa",
                          .dtypes = WK_FLOATS,
                          .in = {{"q", 0, 0},
                                 {"k", 0, 0},
                                 {"v", 0, 0},
                                 {"y", 0, 0},
                                 {"lse", WK_STAT, 0},
                                 {"dy", 0, 0},
                                 {"mask", WK_OPTIONAL | WK_ANY, 0}},
                          .out = {{"dq", WK_SKIP, 0}, {"dk", WK_SKIP, 0}, {"dv", WK_SKIP, 0}},
                          .params = SDPA_PARAMS,
                          .infer = infer_sdpa_backward,
                          .samples = sdpa_backward_samples,
                          .errors = sdpa_backward_errors},
    [OP_sdpa_varlen] = {.name = "sdpa_varlen",
                        .summary = "sdpa of sequences laid end to end",
                        .dtypes = WK_FLOATS,
                        .in = {{"q", 0, 0},
                               {"k", 0, 0},
                               {"v", 0, 0},
                               {"cu_seqlens_q", 0, SEQLENS},
                               {"cu_seqlens_k", 0, SEQLENS}},
                        .out = {{"y", 0, 0}},
                        .params = SDPA_PARAMS,
                        .infer = infer_sdpa_varlen,
                        .samples = sdpa_varlen_samples,
                        .errors = sdpa_varlen_errors},
    [OP_mha] = {.name = "mha",
                .summary = "multi-head attention with its projections",
                .dtypes = WK_FLOATS,
                .in = {{"q", 0, 0},
                       {"k", 0, 0},
                       {"v", 0, 0},
                       {"in_proj_weight", 0, 0},
                       {"in_proj_bias", 0, 0},
                       {"out_proj_weight", 0, 0},
                       {"out_proj_bias", 0, 0},
                       {"mask", WK_OPTIONAL | WK_ANY, 0}},
                .out = {{"y", 0, 0}},
                .params =
                    WK_PARAM_LIST({"heads", WK_P_INT, offsetof(wk_mha_options, heads), NULL, NULL, 0},
                                  {"causal", WK_P_BOOL, offsetof(wk_mha_options, causal), "0", NULL, 0},
                                  {"dropout", WK_P_FLOAT, offsetof(wk_mha_options, dropout), "0", NULL, 0},
                                  {"seed", WK_P_INT, offsetof(wk_mha_options, seed), "0", NULL, 0},
                                  {"offset", WK_P_INT, offsetof(wk_mha_options, offset), "0", NULL, 0}),
                .infer = infer_mha,
                .samples = mha_samples,
                .errors = mha_errors},
    {0},
};

/* ---- the API ---- */

/* The parameters that options (NULL: every default) ask for. */
#define PARAMS_FROM(op, options) \
    union { \
        char bytes[WK_PARAMS_BYTES]; \
        int64_t align; \
    } params; \
    wk_params_from_options(&wk_ops_attention[op], &params, options, (options) ? (options)->size : 0)

wk_tensor *wk_sdpa(const wk_tensor *q, const wk_tensor *k, const wk_tensor *v, const wk_tensor *mask,
                   const wk_sdpa_options *options, wk_tensor **lse)
{
    PARAMS_FROM(OP_sdpa, options);
    wk_tensor *y = NULL, **places[] = {&y, lse};
    wk_call c = {.op = &wk_ops_attention[OP_sdpa], .params = &params, .in = {q, k, v, mask}};
    wk_call_run_into(&c, places, 2);
    return y;
}

wk_status wk_sdpa_backward(const wk_tensor *q, const wk_tensor *k, const wk_tensor *v, const wk_tensor *y,
                           const wk_tensor *lse, const wk_tensor *dy, const wk_tensor *mask,
                           const wk_sdpa_options *options, wk_tensor **dq, wk_tensor **dk, wk_tensor **dv)
{
    PARAMS_FROM(OP_sdpa_backward, options);
    wk_tensor **places[] = {dq, dk, dv};
    wk_call c = {
        .op = &wk_ops_attention[OP_sdpa_backward], .params = &params, .in = {q, k, v, y, lse, dy, mask}};
    return wk_call_run_into(&c, places, 3);
}

wk_tensor *wk_sdpa_varlen(const wk_tensor *q, const wk_tensor *k, const wk_tensor *v,
                          const wk_tensor *cu_seqlens_q, const wk_tensor *cu_seqlens_k,
                          const wk_sdpa_options *options)
{
    PARAMS_FROM(OP_sdpa_varlen, options);
    return wk_call_run1(&(wk_call){.op = &wk_ops_attention[OP_sdpa_varlen],
                                   .params = &params,
                                   .in = {q, k, v, cu_seqlens_q, cu_seqlens_k}});
}

wk_tensor *wk_mha(const wk_tensor *q, const wk_tensor *k, const wk_tensor *v, const wk_tensor *in_proj_weight,
                  const wk_tensor *in_proj_bias, const wk_tensor *out_proj_weight,
                  const wk_tensor *out_proj_bias, const wk_tensor *mask, const wk_mha_options *options)
{
    PARAMS_FROM(OP_mha, options);
    return wk_call_run1(
        &(wk_call){.op = &wk_ops_attention[OP_mha],
                   .params = &params,
                   .in = {q, k, v, in_proj_weight, in_proj_bias, out_proj_weight, out_proj_bias, mask}});
}
