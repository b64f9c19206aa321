/* attention.c: the attention ops on the CPU: from tensors to a plan, and multi-head attention. */
#include "core/families.h"
#include "core/memory.h"
#include "wick/ops.h"
#include "activation.h"
#include "attention_int.h"

static const char *at(const wk_tensor *t, int64_t offset)
{
    return (const char *)wk_ptr(t) + offset * (int64_t)wk_bytes(t->dtype);
}

static wk_status new_sequences(attn_plan *p, int64_t n)
{
    p->n = n;
    p->sequences = wk_alloc((size_t)gemm_max(n, 1) * sizeof *p->sequences);
    if (!p->sequences)
        return wk_fail(WK_ERR_MEMORY, "out of memory for %lld sequences", (long long)n);
    memset(p->sequences, 0, (size_t)n * sizeof *p->sequences);
    return WK_OK;
}

static attn_strides strides_of(const wk_tensor *t)
{
    return (attn_strides){t->strides[1], t->strides[2], t->strides[3]};
}

/* Fills the plan in from views q, k, v, y of [b, h, rows, width], lse (NULL or packed) and a mask (NULL or any that
 * broadcasts). Its sequences are to be freed. */
static wk_status plan_batch(attn_plan *p, const wk_tensor *q, const wk_tensor *k, const wk_tensor *v,
                            const wk_tensor *mask, const wk_tensor *y, const wk_tensor *lse)
{
    int64_t b = q->shape[0], s = q->shape[2], t = k->shape[2];
    wk_tensor m = {0};
    if (mask)
        m = wk_sdpa_mask(mask, b, q->shape[1], s, t);
    p->dtype = q->dtype;
    p->y_dtype = y->dtype;
    p->mask_dtype = m.dtype;
    p->compute = wk_dtypes[q->dtype].compute;
    p->hq = q->shape[1];
    p->hk = k->shape[1];
    p->d = q->shape[3];
    p->dv = v->shape[3];
    p->q = strides_of(q);
    p->k = strides_of(k);
    p->v = strides_of(v);
    p->y = strides_of(y);
    p->mask = strides_of(&m);
    WK_TRY(new_sequences(p, b));
    for (int64_t i = 0; i < b; i++)
        p->sequences[i] = (attn_sequence){.q = at(q, i * q->strides[0]),
                                          .k = at(k, i * k->strides[0]),
                                          .v = at(v, i * v->strides[0]),
                                          .mask = mask ? at(&m, i * m.strides[0]) : NULL,
                                          .y = (char *)at(y, i * y->strides[0]),
                                          .lse = lse ? (char *)at(lse, i * lse->strides[0]) : NULL,
                                          .s = s,
                                          .t = t,
                                          .index = i};
    return WK_OK;
}

static wk_status run_batch(attn_plan *p, const wk_tensor *q, const wk_tensor *k, const wk_tensor *v,
                           const wk_tensor *mask, const wk_tensor *y, const wk_tensor *lse)
{
    WK_TRY(plan_batch(p, q, k, v, mask, y, lse));
    wk_status status = WK_ISA(attn_forward)(p);
    wk_free(p->sequences);
    return status;
}

static wk_status run_sdpa(wk_call *c)
{
    const wk_sdpa_options *o = c->params;
    const wk_tensor *y = c->out[0], *lse = c->out[1];
    if (wk_count(y) == 0 && (!lse || wk_count(lse) == 0))
        return WK_OK;
    attn_plan p = {.scale = wk_sdpa_scale(o, c->in[0]->shape[3]),
                   .softcap = o->softcap,
                   .causal = o->causal,
                   .window = o->window};
    return run_batch(&p, c->in[0], c->in[1], c->in[2], c->in[3], y, lse);
}

static wk_status run_sdpa_backward(wk_call *c)
{
    const wk_sdpa_options *o = c->params;
    const wk_tensor *in[6];
    if (c->in[0]->shape[0] == 0 || c->in[1]->shape[1] == 0)
        return WK_OK; /* nothing in any of them */
    for (int i = 0; i < 6; i++) {
        in[i] = WK_ISA(wk_compute_copy)(c->in[i]);
        if (!in[i])
            return wk_error_status();
    }
    const wk_tensor *delta = wk_sum(wk_mul(in[3], in[5]), 1, &(int64_t){3}, 0);
    if (!delta)
        return wk_error_status();
    attn_grad_plan g = {.p = {.scale = wk_sdpa_scale(o, c->in[0]->shape[3]),
                              .softcap = o->softcap,
                              .causal = o->causal,
                              .window = o->window},
                        .delta = wk_ptr(delta),
                        .dq = c->out[0],
                        .dk = c->out[1],
                        .dv = c->out[2]};
    WK_TRY(plan_batch(&g.p, in[0], in[1], in[2], c->in[6], in[5], in[4]));
    wk_status status = WK_ISA(attn_backward)(&g);
    wk_free(g.p.sequences);
    return status;
}

/* ---- Sequences end to end ---- */

static wk_status run_sdpa_varlen(wk_call *c)
{
    const wk_sdpa_options *o = c->params;
    const wk_tensor *q = c->in[0], *k = c->in[1], *v = c->in[2], *y = c->out[0];
    WK_TRY(wk_sdpa_check_seqlens(c, 3, q->shape[0]));
    WK_TRY(wk_sdpa_check_seqlens(c, 4, k->shape[0]));
    if (wk_count(y) == 0)
        return WK_OK;
    attn_plan p = {.dtype = c->dtype,
                   .y_dtype = c->dtype,
                   .compute = wk_dtypes[c->dtype].compute,
                   .hq = q->shape[1],
                   .hk = k->shape[1],
                   .d = q->shape[2],
                   .dv = v->shape[2],
                   .q = {q->strides[1], q->strides[0], q->strides[2]},
                   .k = {k->strides[1], k->strides[0], k->strides[2]},
                   .v = {v->strides[1], v->strides[0], v->strides[2]},
                   .y = {y->strides[1], y->strides[0], y->strides[2]},
                   .scale = wk_sdpa_scale(o, q->shape[2]),
                   .softcap = o->softcap,
                   .causal = o->causal,
                   .window = o->window};
    WK_TRY(new_sequences(&p, c->in[3]->shape[0] - 1));
    for (int64_t i = 0; i < p.n; i++) {
        int64_t q0 = wk_sdpa_seqlen(c->in[3], i), k0 = wk_sdpa_seqlen(c->in[4], i);
        p.sequences[i] = (attn_sequence){.q = at(q, q0 * q->strides[0]),
                                         .k = at(k, k0 * k->strides[0]),
                                         .v = at(v, k0 * v->strides[0]),
                                         .y = (char *)at(y, q0 * y->strides[0]),
                                         .s = wk_sdpa_seqlen(c->in[3], i + 1) - q0,
                                         .t = wk_sdpa_seqlen(c->in[4], i + 1) - k0,
                                         .index = i};
    }
    wk_status status = WK_ISA(attn_forward)(&p);
    wk_free(p.sequences);
    return status;
}

/* ---- Multi-head attention ----
 * Three products, attention on the heads where they lie, one product. What lies between is in the compute type:
 * f16 and bf16 are rounded once, at the end. */

static wk_status gemm_failed(void)
{
    return wk_fail(WK_ERR_MEMORY, "out of memory for packing the operands");
}

/* Part i of the input projection applied to x [b, rows, e], as heads: [b, heads, rows, e / heads], a view on a
 * new [b, rows, e]. */
static wk_status project_in(const wk_call *c, const wk_tensor *x, const wk_tensor *bias, int i,
                            wk_tensor *out)
{
    const wk_tensor *w = c->in[3], *packed = wk_tensor_packed(x);
    int64_t heads = WK_PARAMS(c, wk_mha_options)->heads, e = x->shape[2], rows = x->shape[1];
    wk_tensor *y = wk_tensor_new(c->device, wk_stat_dtype(c->dtype), 3, x->shape);
    if (!packed || !y)
        return wk_error_status();
    wk_gemm_args g = {.m = x->shape[0] * rows,
                      .n = e,
                      .k = e,
                      .a = {wk_ptr(packed), x->dtype, e, 1},
                      .b = {(void *)at(w, i * e * w->strides[0]), w->dtype, w->strides[1], w->strides[0]},
                      .c = {wk_ptr(y), y->dtype, e, 1},
                      .col_bias = at(bias, i * e)};
    if (!WK_ISA(wk_gemm)(&g))
        return gemm_failed();
    *out = *y;
    out->rank = 4;
    memcpy(out->shape, (int64_t[]){x->shape[0], heads, rows, e / heads}, 4 * sizeof(int64_t));
    memcpy(out->strides, (int64_t[]){rows * e, e / heads, e, 1}, 4 * sizeof(int64_t));
    return WK_OK;
}

static wk_status run_mha(wk_call *c)
{
    const wk_mha_options *o = c->params;
    wk_tensor qkv[3], *y = c->out[0];
    if (wk_count(y) == 0)
        return WK_OK;
    const wk_tensor *in_bias = WK_ISA(wk_compute_copy)(c->in[4]), *weight = WK_ISA(wk_compute_copy)(c->in[5]);
    const wk_tensor *bias = WK_ISA(wk_compute_copy)(c->in[6]);
    wk_tensor *mixed = wk_tensor_new(c->device, wk_stat_dtype(c->dtype), 3, y->shape);
    if (!in_bias || !weight || !bias || !mixed)
        return wk_error_status();
    for (int i = 0; i < 3; i++)
        WK_TRY(project_in(c, c->in[i], in_bias, i, &qkv[i]));
    int64_t e = y->shape[2];
    wk_tensor heads = qkv[0]; /* the same layout, on the result's memory */
    heads.storage = mixed->storage;
    heads.offset = mixed->offset;
    attn_plan p = {.scale = 1 / sqrt((double)(e / o->heads)),
                   .causal = o->causal,
                   .dropout = o->dropout,
                   .seed = (uint64_t)o->seed,
                   .offset = (uint64_t)o->offset};
    WK_TRY(run_batch(&p, &qkv[0], &qkv[1], &qkv[2], c->in[7], &heads, NULL));
    wk_gemm_args g = {.m = y->shape[0] * y->shape[1],
                      .n = e,
                      .k = e,
                      .a = {wk_ptr(mixed), mixed->dtype, e, 1},
                      .b = {wk_ptr(weight), weight->dtype, 1, e},
                      .c = {wk_ptr(y), y->dtype, e, 1},
                      .col_bias = wk_ptr(bias)};
    return WK_ISA(wk_gemm)(&g) ? WK_OK : gemm_failed();
}

const wk_impl WK_ISA(wk_cpu_attention)[] = {
    {"sdpa", "simd", run_sdpa, NULL, NULL},
    {"sdpa_backward", "simd", run_sdpa_backward, NULL, NULL},
    {"sdpa_varlen", "simd", run_sdpa_varlen, NULL, NULL},
    {"mha", "simd", run_mha, NULL, NULL},
    {0},
};
