/* rope.c: front ends of rotary embedding. */
#include "rope.h"
#include "wick/rope.h"

/* cos [t', r] or [b, t', r] against x, whose positions are dim t_dim. */
static wk_status check_angles(wk_call *c, int t_dim)
{
    const wk_tensor *x = c->in[0], *cos = c->in[1];
    WK_TRY(wk_call_rank(c, 0, 4, 4));
    WK_TRY(wk_call_rank(c, 1, 2, 3));
    int64_t t = x->shape[t_dim], d = x->shape[3], rows = cos->shape[cos->rank - 2],
            r = cos->shape[cos->rank - 1];
    WK_NEED(cos->rank == 2 || cos->shape[0] == x->shape[0], c, WK_ERR_SHAPE, "cos",
            "expected a batch of %lld, got %lld", (long long)x->shape[0], (long long)cos->shape[0]);
    WK_NEED(rows >= t, c, WK_ERR_SHAPE, "cos", "expected at least %lld positions, got %lld", (long long)t,
            (long long)rows);
    WK_NEED(r <= d / 2, c, WK_ERR_SHAPE, "cos", "expected a last dimension of at most %lld, got %lld",
            (long long)(d / 2), (long long)r);
    WK_TRY(wk_call_same_shape(c, 2, 1));
    wk_call_out_like(c, 0, x);
    return WK_OK;
}

static wk_status infer_rope(wk_call *c) { return check_angles(c, 2); }
static wk_status infer_rope_thd(wk_call *c) { return check_angles(c, 1); }

/* q against the angles, and k against q. */
static wk_status infer_rope_qk(wk_call *c)
{
    int64_t layout = WK_PARAMS(c, wk_rope_params)->layout;
    const wk_tensor *q = c->in[0], *k = c->in[3];
    WK_NEED(layout >= WK_ROPE_HALVES && layout <= WK_ROPE_THD, c, WK_ERR_PARAM, "layout",
            "expected one of wk_rope_layout, got %d", (int)layout);
    int t_dim = layout == WK_ROPE_THD ? 1 : 2, h_dim = 3 - t_dim;
    WK_TRY(check_angles(c, t_dim));
    WK_TRY(wk_call_rank(c, 3, 4, 4));
    int64_t shape[4] = {q->shape[0], q->shape[1], q->shape[2], q->shape[3]};
    shape[h_dim] = k->shape[h_dim];
    wk_call_out_like(c, 1, k);
    return wk_call_shape(c, 3, 4, shape);
}

/* q [b, t, hq, d] against the angles; k [b, t, hk, d] and v [b, t, hk, dv] against q and the caches. */
static wk_status infer_rope_cache(wk_call *c)
{
    const wk_tensor *q = c->in[0], *k = c->in[3], *v = c->in[4], *keys = c->in[5];
    WK_TRY(check_angles(c, 1));
    WK_TRY(wk_call_rank(c, 3, 4, 4));
    WK_TRY(wk_call_rank(c, 4, 4, 4));
    int64_t b = q->shape[0], t = q->shape[1], h = k->shape[2], d = q->shape[3], dv = v->shape[3];
    WK_TRY(wk_call_shape(c, 3, 4, (int64_t[]){b, t, h, d}));
    WK_TRY(wk_call_shape(c, 4, 4, (int64_t[]){b, t, h, dv}));
    WK_TRY(wk_call_rank(c, 5, 4, 4));
    WK_TRY(wk_call_shape(c, 5, 4, (int64_t[]){b, h, keys->shape[2], d}));
    WK_TRY(wk_call_shape(c, 6, 4, (int64_t[]){b, h, keys->shape[2], dv}));
    WK_TRY(wk_call_shape(c, 7, 2, (int64_t[]){b, t}));
    wk_call_out_like(c, 1, keys);
    wk_call_out_like(c, 2, c->in[6]);
    return WK_OK;
}

/* ---- the table ---- */

#define SAMPLES(name, ...) static const char *const name[] = {__VA_ARGS__, NULL}

/* x stands for the first input: x, or dy of the gradients. */
#define ROPE_SAMPLES(x) \
    x "=T[2,3,5,8] cos=T[5,4] sin=T[5,4]", x "=T[2,3,5,8] cos=T[2,9,4] sin=T[2,9,4]", \
        x "=T[1,2,7,10] cos=T[8,3] sin=T[8,3]", x "=T[2,1,4,7] cos=T[4,2] sin=T[4,2]", \
        x "=T[1,2,3,6] cos=T[3,0] sin=T[3,0]", x "=T[2,4,40,64] cos=T[40,32] sin=T[40,32]", \
        x "=T[1,16,33,130] cos=T[50,65] sin=T[50,65]", x "=T[0,2,3,4] cos=T[3,2] sin=T[3,2]", \
        x "=T[1,5,6,48] cos=T[6,16] sin=T[6,16]", x "=T[2,2,0,4] cos=T[3,2] sin=T[3,2]", \
        x "=T[1,1,2,4]:special cos=T[2,2] sin=T[2,2]"
#define ROPE_THD_SAMPLES(x) \
    x "=T[2,5,3,8] cos=T[5,4] sin=T[5,4]", x "=T[2,5,3,8] cos=T[2,9,4] sin=T[2,9,4]", \
        x "=T[1,7,2,10] cos=T[8,3] sin=T[8,3]", x "=T[2,40,4,64] cos=T[40,32] sin=T[40,32]", \
        x "=T[2,3,0,4] cos=T[3,2] sin=T[3,2]", x "=T[1,33,16,130] cos=T[50,65] sin=T[50,65]"
#define ROPE_ERRORS(x) \
    x "=T[2,3,4,8] cos=T[4,4] ! sin", "cos=T[4,4] sin=T[4,4] ! " x, \
        x "=T[3,4,8] cos=T[4,4] sin=T[4,4] ! " x, x "=T[2,3,4,8] cos=T[4] sin=T[4] ! cos", \
        x "=T[2,4,4,8] cos=T[3,4] sin=T[3,4] ! cos", x "=T[2,3,4,8] cos=T[4,5] sin=T[4,5] ! cos", \
        x "=T[2,3,4,8] cos=T[3,4,4] sin=T[3,4,4] ! cos", x "=T[2,3,4,8] cos=T[4,4] sin=T[4,3] ! sin", \
        x "=f32[2,3,4,8] cos=f16[4,4] sin=f32[4,4] ! cos", \
        x "=i32[2,3,4,8] cos=i32[4,4] sin=i32[4,4] ! dtype"

SAMPLES(rope_samples, ROPE_SAMPLES("x"));
SAMPLES(rope_backward_samples, ROPE_SAMPLES("dy"));
SAMPLES(rope_thd_samples, ROPE_THD_SAMPLES("x"));
SAMPLES(rope_thd_backward_samples, ROPE_THD_SAMPLES("dy"));
SAMPLES(rope_errors, ROPE_ERRORS("x"));
SAMPLES(rope_backward_errors, ROPE_ERRORS("dy"));

SAMPLES(rope_qk_samples, "q=T[2,4,5,8] cos=T[5,4] sin=T[5,4] k=T[2,2,5,8]",
        "q=T[2,4,5,8] cos=T[2,9,4] sin=T[2,9,4] k=T[2,1,5,8] layout=interleaved",
        "q=T[2,5,4,8] cos=T[5,4] sin=T[5,4] k=T[2,5,2,8] layout=thd",
        "q=T[1,2,7,10] cos=T[8,3] sin=T[8,3] k=T[1,2,7,10]",
        "q=T[2,9,40,64] cos=T[40,32] sin=T[40,32] k=T[2,3,40,64]",
        "q=T[1,33,6,48] cos=T[33,16] sin=T[33,16] k=T[1,33,2,48] layout=thd",
        "q=T[0,2,3,4] cos=T[3,2] sin=T[3,2] k=T[0,1,3,4]", "q=T[2,2,3,4] cos=T[3,2] sin=T[3,2] k=T[2,0,3,4]");
SAMPLES(rope_qk_errors, "q=T[2,4,5,8] cos=T[5,4] sin=T[5,4] ! k",
        "q=T[2,4,5,8] cos=T[5,4] sin=T[5,4] k=T[2,2,4,8] ! k",
        "q=T[2,4,5,8] cos=T[5,4] sin=T[5,4] k=T[2,2,5] ! k",
        "q=T[2,4,5,8] cos=T[4,4] sin=T[4,4] k=T[2,2,5,8] ! cos",
        "q=T[2,4,5,8] cos=T[5,4] sin=T[5,3] k=T[2,2,5,8] ! sin",
        "q=T[2,4,5,8] cos=T[5,4] sin=T[5,4] k=T[2,2,5,8] layout=cube ! layout");

#define CACHE_SAMPLE(b, t, hq, hk, d, r, places) \
    "q=T[" #b "," #t "," #hq "," #d "] cos=T[" #b ",9," #r "] sin=T[" #b ",9," #r "] k=T[" #b "," #t "," #hk \
    "," #d "] v=T[" #b "," #t "," #hk "," #d "] keys=T[" #b "," #hk "," #places "," #d "] values=T[" #b \
    "," #hk "," #places "," #d "] "
SAMPLES(rope_cache_samples, CACHE_SAMPLE(2, 1, 4, 2, 8, 4, 5) "place=u32[2,1]:0..5",
        CACHE_SAMPLE(3, 1, 5, 5, 64, 32, 7) "place=i64[3,1]:0..7",
        CACHE_SAMPLE(1, 1, 9, 3, 6, 3, 4) "place=i32[1,1]:3,",
        CACHE_SAMPLE(2, 1, 2, 1, 10, 3, 4) "place=u8[2,1]:1,255",
        CACHE_SAMPLE(2, 3, 4, 2, 8, 4, 6) "place=u32[2,3]:4,1,2,0,5,3",
        "q=T[1,1,2,8] cos=T[3,4] sin=T[3,4] k=T[1,1,2,8] v=T[1,1,2,5] keys=T[1,2,3,8] values=T[1,2,3,5] "
        "place=u32[1,1]:2,",
        CACHE_SAMPLE(0, 1, 2, 1, 8, 4, 3) "place=u32[0,1]:0..3",
        CACHE_SAMPLE(2, 1, 2, 0, 8, 4, 3) "place=u32[2,1]:0..3");
SAMPLES(
    rope_cache_errors,
    "q=T[2,1,4,8] cos=T[5,4] sin=T[5,4] k=T[2,1,2,8] v=T[2,1,2,8] keys=T[2,2,5,8] values=T[2,2,5,8] ! place",
    "q=T[2,1,4,8] cos=T[5,4] sin=T[5,4] k=T[2,1,2,8] v=T[2,1,3,8] keys=T[2,2,5,8] values=T[2,2,5,8] "
    "place=u32[2,1]:0..5 ! v",
    "q=T[2,1,4,8] cos=T[5,4] sin=T[5,4] k=T[2,1,2,6] v=T[2,1,2,8] keys=T[2,2,5,8] values=T[2,2,5,8] "
    "place=u32[2,1]:0..5 ! k",
    "q=T[2,1,4,8] cos=T[5,4] sin=T[5,4] k=T[2,1,2,8] v=T[2,1,2,8] keys=T[2,3,5,8] values=T[2,2,5,8] "
    "place=u32[2,1]:0..5 ! keys",
    "q=T[2,1,4,8] cos=T[5,4] sin=T[5,4] k=T[2,1,2,8] v=T[2,1,2,8] keys=T[2,2,5,8] values=T[2,2,4,8] "
    "place=u32[2,1]:0..4 ! values",
    "q=T[2,1,4,8] cos=T[5,4] sin=T[5,4] k=T[2,1,2,8] v=T[2,1,2,8] keys=T[2,2,5,8] values=T[2,2,5,8] "
    "place=u32[2]:0..5 ! place",
    "q=T[2,1,4,8] cos=T[5,4] sin=T[5,4] k=T[2,1,2,8] v=T[2,1,2,8] keys=T[2,2,5,8] values=T[2,2,5,8] "
    "place=f32[2,1]:0..5 ! place",
    CACHE_SAMPLE(2, 1, 4, 2, 8, 4, 5) "place=u32[2,1]:0,5 ! got");

enum {
    OP_rope,
    OP_rope_backward,
    OP_rope_i,
    OP_rope_i_backward,
    OP_rope_thd,
    OP_rope_thd_backward,
    OP_rope_qk,
    OP_rope_cache
};

#define ROPE(name_, samples_, infer_, summary_) \
    [OP_##name_] = {.name = #name_, \
                    .summary = summary_, \
                    .dtypes = WK_FLOATS, \
                    .in = {{"x", 0, 0}, {"cos", 0, 0}, {"sin", 0, 0}}, \
                    .out = {{"y", 0, 0}}, \
                    .infer = infer_, \
                    .samples = samples_##_samples, \
                    .errors = rope_errors}, \
    [OP_##name_##_backward] = {.name = #name_ "_backward", \
                               .summary = "gradient of " #name_, \
                               .dtypes = WK_FLOATS, \
                               .in = {{"dy", 0, 0}, {"cos", 0, 0}, {"sin", 0, 0}}, \
                               .out = {{"dx", 0, 0}}, \
                               .infer = infer_, \
                               .samples = samples_##_backward_samples, \
                               .errors = rope_backward_errors}

wk_op wk_ops_rope[] = {
    ROPE(rope, rope, infer_rope, "turns pairs i, i + r of [b,h,t,d] by their position's angles"),
    ROPE(rope_i, rope, infer_rope, "turns pairs 2i, 2i + 1 of [b,h,t,d] by their position's angles"),
    ROPE(rope_thd, rope_thd, infer_rope_thd, "turns pairs i, i + r of [b,t,h,d] by their position's angles"),
    [OP_rope_qk] = {.name = "rope_qk",
                    .summary = "rope, rope_i or rope_thd of queries and keys at once",
                    .dtypes = WK_FLOATS,
                    .in = {{"q", 0, 0}, {"cos", 0, 0}, {"sin", 0, 0}, {"k", 0, 0}},
                    .out = {{"q", 0, 0}, {"k", 0, 0}},
                    .params = WK_PARAM_LIST({"layout", WK_P_ENUM, offsetof(wk_rope_params, layout), "halves",
                                             "halves|interleaved|thd", 0}),
                    .infer = infer_rope_qk,
                    .samples = rope_qk_samples,
                    .errors = rope_qk_errors},
    [OP_rope_cache] = {.name = "rope_cache",
                       .summary = "rope_thd of queries and keys, the keys and v to places of a cache",
                       .dtypes = WK_FLOATS,
                       .in = {{"q", 0, 0},
                              {"cos", 0, 0},
                              {"sin", 0, 0},
                              {"k", 0, 0},
                              {"v", 0, 0},
                              {"keys", WK_UPDATE, 0},
                              {"values", WK_UPDATE, 0},
                              {"place", 0, WK_IDS}},
                       .out = {{"q", 0, 0}, {"keys", 0, 0}, {"values", 0, 0}},
                       .infer = infer_rope_cache,
                       .samples = rope_cache_samples,
                       .errors = rope_cache_errors},
    {0},
};

/* ---- the API ---- */

#define API(name) \
    wk_tensor *wk_##name(const wk_tensor *x, const wk_tensor *cos, const wk_tensor *sin) \
    { \
        return wk_call_run1(&(wk_call){.op = &wk_ops_rope[OP_##name], .in = {x, cos, sin}}); \
    }
API(rope)
API(rope_backward)
API(rope_i)
API(rope_i_backward)
API(rope_thd)
API(rope_thd_backward)

wk_status wk_rope_qk(const wk_tensor *q, const wk_tensor *k, const wk_tensor *cos, const wk_tensor *sin,
                     wk_rope_layout layout, wk_tensor **q_turned, wk_tensor **k_turned)
{
    wk_rope_params p = {layout};
    if (!wk_pending() && (!q_turned || !k_turned))
        return wk_fail(WK_ERR_ARGUMENT, "rope_qk: %s: expected a place, got NULL",
                       q_turned ? "k_turned" : "q_turned");
    return wk_call_run_into(&(wk_call){.op = &wk_ops_rope[OP_rope_qk], .params = &p, .in = {q, cos, sin, k}},
                            (wk_tensor * *[]){q_turned, k_turned}, 2);
}

wk_tensor *wk_rope_cache(const wk_tensor *q, const wk_tensor *k, const wk_tensor *v, const wk_tensor *cos,
                         const wk_tensor *sin, wk_tensor *keys, wk_tensor *values, const wk_tensor *place)
{
    return wk_call_run1(&(wk_call){.op = &wk_ops_rope[OP_rope_cache],
                                   .in = {q, cos, sin, k, v, keys, values, place},
                                   .out = {NULL, keys, values}});
}
