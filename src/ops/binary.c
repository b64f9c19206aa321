/* binary.c: front ends of the ops on two tensors: arithmetic, comparison, where, and their gradients. */
#include "core/op.h"
#include "wick/elementwise.h"

/* ---- checks and outputs ---- */

/* Grows the shape of output 0 to hold input i too. */
static wk_status join_shape(wk_call *c, int i)
{
    wk_spec *s = &c->spec[0];
    const wk_tensor *t = c->in[i];
    wk_shape_text have, got;
    int64_t shape[WK_MAX_RANK];
    int rank;
    WK_NEED(wk_shape_broadcast(s->rank, s->shape, t->rank, t->shape, &rank, shape), c, WK_ERR_SHAPE,
            c->op->in[i].name, "expected a shape that broadcasts with %s, got %s",
            wk_shape_str(&have, s->rank, s->shape), wk_shape_str(&got, t->rank, t->shape));
    wk_call_out(c, 0, s->dtype, rank, shape);
    return WK_OK;
}

static wk_status infer_binary(wk_call *c)
{
    wk_call_out_like(c, 0, c->in[0]);
    return join_shape(c, 1);
}

static wk_status infer_compare(wk_call *c)
{
    WK_TRY(infer_binary(c));
    c->spec[0].dtype = WK_U8;
    return WK_OK;
}

static wk_status infer_where(wk_call *c)
{
    wk_call_out_like(c, 0, c->in[1]);
    WK_TRY(join_shape(c, 2));
    return join_shape(c, 0);
}

/* dy, input i, has the forward's shape; the gradients those of their inputs. */
static wk_status infer_gradients(wk_call *c, int dy, int a, int b)
{
    WK_TRY(wk_call_shape(c, dy, c->spec[0].rank, c->spec[0].shape));
    wk_call_out_like(c, 0, c->in[a]);
    wk_call_out_like(c, 1, c->in[b]);
    return WK_OK;
}

static wk_status infer_backward(wk_call *c)
{
    WK_TRY(infer_binary(c));
    return infer_gradients(c, 2, 0, 1);
}

static wk_status infer_where_backward(wk_call *c)
{
    WK_TRY(infer_where(c));
    return infer_gradients(c, 3, 1, 2);
}

/* ---- the table ---- */

#define SAMPLES(name, ...) static const char *const name[] = {__VA_ARGS__, NULL}

SAMPLES(binary_samples, "a=T[4,5] b=T[4,5]", "a=T[3,1,5] b=T[4,1]", "a=T[1025] b=T[]", "a=T[] b=T[]",
        "a=T[0,3] b=T[3]", "a=T[2,1,2,1,2,1,2,3] b=T[2,1,3]", "a=T[6]:special b=T[6]",
        "a=T[6]:special b=T[6,1]:special");
SAMPLES(div_samples, "a=T[4,5] b=T[4,5]:1..5", "a=T[3,1,5] b=T[4,1]:1..9", "a=T[1025] b=T[]:2..3",
        "a=T[0,3] b=T[3]:1..2");
SAMPLES(pow_samples, "a=T[4,5]:0.1..3 b=T[4,5]", "a=T[3,1,5]:0.1..3 b=T[4,1]", "a=T[1025]:0.1..3 b=T[]",
        "a=T[0,3] b=T[3]");
SAMPLES(binary_errors, "a=T[3] ! b", "b=T[3] ! a", "a=T[3] b=T[4] ! b", "a=T[2,3] b=T[2] ! b",
        "a=f32[2] b=f16[2] ! dtype");
SAMPLES(div_errors, "a=T[3] b=T[4] ! b", "a=i32[3] b=i32[3]:0..1 ! zero", "a=u8[2] b=u8[]:0..1 ! zero");
SAMPLES(compare_samples, "a=T[4,5]:-2..2 b=T[4,5]:-2..2", "a=T[3,1,5]:-2..2 b=T[4,1]:-2..2",
        "a=T[1025] b=T[]", "a=T[0,3] b=T[3]", "a=T[6]:special b=T[6,1]:special");
SAMPLES(where_samples, "cond=u8[4,5]:0..2 a=T[4,5] b=T[4,5]", "cond=i64[4,1]:0..2 a=T[] b=T[5]",
        "cond=u32[1025]:0..2 a=T[1025] b=T[1025]", "cond=u8[0,3]:0..2 a=T[3] b=T[1]");
SAMPLES(where_errors, "cond=f32[3] a=T[3] b=T[3] ! cond", "cond=u8[3] a=T[4] b=T[4] ! cond",
        "cond=u8[3] a=T[3] ! b", "cond=u8[2] a=f32[2] b=f64[2] ! b");
SAMPLES(backward_samples, "a=T[4,5] b=T[4,5] dy=T[4,5]", "a=T[3,1,5] b=T[4,1] dy=T[3,4,5]",
        "a=T[1025] b=T[] dy=T[1025]", "a=T[0,3] b=T[3] dy=T[0,3]", "a=T[5]:1..2 b=T[5]:1..2 dy=T[5]");
SAMPLES(div_backward_samples, "a=T[4,5] b=T[4,5]:1..5 dy=T[4,5]", "a=T[3,1,5] b=T[4,1]:1..5 dy=T[3,4,5]",
        "a=T[1025] b=T[]:1..5 dy=T[1025]");
SAMPLES(pow_backward_samples, "a=T[4,5]:0.1..3 b=T[4,5] dy=T[4,5]", "a=T[3,1,5]:0.1..3 b=T[4,1] dy=T[3,4,5]");
SAMPLES(backward_errors, "a=T[3] b=T[3] ! dy", "a=T[3] b=T[3] dy=T[4] ! dy",
        "a=i32[3] b=i32[3] dy=i32[3] ! dtype");
SAMPLES(where_backward_samples, "cond=u8[4,5]:0..2 a=T[4,5] b=T[4,5] dy=T[4,5]",
        "cond=i64[4,1]:0..2 a=T[] b=T[5] dy=T[4,5]");
SAMPLES(where_backward_errors, "cond=u8[3] a=T[3] b=T[3] ! dy", "cond=u8[3] a=T[3] b=T[3] dy=T[2] ! dy");

#define AB \
    { \
        {"a", 0, 0}, { "b", 0, 0 } \
    }
#define AB_DY \
    { \
        {"a", 0, 0}, {"b", 0, 0}, { "dy", 0, 0 } \
    }
#define DA_DB \
    { \
        {"da", WK_SKIP, 0}, { "db", WK_SKIP, 0 } \
    }

/* X(name, dtypes, samples, samples of the gradient, errors, summary) */
#define ARITHMETIC(X) \
    X(add, WK_ALL, binary_samples, backward_samples, binary_errors, "a + b") \
    X(sub, WK_ALL, binary_samples, backward_samples, binary_errors, "a - b") \
    X(mul, WK_ALL, binary_samples, backward_samples, binary_errors, "a * b") \
    X(div, WK_ALL, div_samples, div_backward_samples, div_errors, "a / b") \
    X(minimum, WK_ALL, binary_samples, backward_samples, binary_errors, "the smaller; NaN when either is") \
    X(maximum, WK_ALL, binary_samples, backward_samples, binary_errors, "the larger; NaN when either is") \
    X(pow, WK_FLOATS, pow_samples, pow_backward_samples, binary_errors, "a ^ b")
#define COMPARE(X) \
    X(eq, "a == b") X(ne, "a != b") X(lt, "a < b") X(le, "a <= b") X(gt, "a > b") X(ge, "a >= b")

enum {
#define INDEX(name, ...) OP_##name, OP_##name##_backward,
    ARITHMETIC(INDEX)
#undef INDEX
#define INDEX(name, ...) OP_##name,
        COMPARE(INDEX) OP_where,
    OP_where_backward,
#undef INDEX
};

wk_op wk_ops_binary[] = {
#define ROW(name_, dtypes_, samples_, backward_samples_, errors_, summary_) \
    [OP_##name_] = {.name = #name_, \
                    .summary = summary_, \
                    .dtypes = dtypes_, \
                    .in = AB, \
                    .out = {{"y", 0, 0}}, \
                    .infer = infer_binary, \
                    .samples = samples_, \
                    .errors = errors_}, \
    [OP_##name_##_backward] = {.name = #name_ "_backward", \
                               .summary = "gradient of " #name_, \
                               .dtypes = WK_FLOATS, \
                               .in = AB_DY, \
                               .out = DA_DB, \
                               .infer = infer_backward, \
                               .samples = backward_samples_, \
                               .errors = backward_errors},
    ARITHMETIC(ROW)
#undef ROW
#define ROW(name_, summary_) \
    [OP_##name_] = {.name = #name_, \
                    .summary = summary_ ", as u8", \
                    .dtypes = WK_ALL, \
                    .in = AB, \
                    .out = {{"y", 0, WK_SET(WK_U8)}}, \
                    .infer = infer_compare, \
                    .samples = compare_samples, \
                    .errors = binary_errors},
        COMPARE(ROW)
#undef ROW
            [OP_where] = {.name = "where",
                          .summary = "a where cond is not zero, else b",
                          .dtypes = WK_ALL,
                          .in = {{"cond", 0, WK_CONDS}, {"a", 0, 0}, {"b", 0, 0}},
                          .out = {{"y", 0, 0}},
                          .infer = infer_where,
                          .samples = where_samples,
                          .errors = where_errors},
    [OP_where_backward] = {.name = "where_backward",
                           .summary = "gradient of where",
                           .dtypes = WK_FLOATS,
                           .in = {{"cond", 0, WK_CONDS}, {"a", 0, 0}, {"b", 0, 0}, {"dy", 0, 0}},
                           .out = DA_DB,
                           .infer = infer_where_backward,
                           .samples = where_backward_samples,
                           .errors = where_backward_errors},
    {0},
};

/* ---- the API ---- */

static wk_tensor *run_binary(int op, const wk_tensor *a, const wk_tensor *b)
{
    return wk_call_run1(&(wk_call){.op = &wk_ops_binary[op], .in = {a, b}});
}

#define API_ARITHMETIC(name, ...) \
    wk_tensor *wk_##name(const wk_tensor *a, const wk_tensor *b) { return run_binary(OP_##name, a, b); } \
    wk_status wk_##name##_backward(const wk_tensor *a, const wk_tensor *b, const wk_tensor *dy, \
                                   wk_tensor **da, wk_tensor **db) \
    { \
        return wk_call_run_into(&(wk_call){.op = &wk_ops_binary[OP_##name##_backward], .in = {a, b, dy}}, \
                                (wk_tensor * *[]){da, db}, 2); \
    }
ARITHMETIC(API_ARITHMETIC)

#define API_COMPARE(name, ...) \
    wk_tensor *wk_##name(const wk_tensor *a, const wk_tensor *b) { return run_binary(OP_##name, a, b); }
COMPARE(API_COMPARE)

wk_tensor *wk_where(const wk_tensor *cond, const wk_tensor *a, const wk_tensor *b)
{
    return wk_call_run1(&(wk_call){.op = &wk_ops_binary[OP_where], .in = {cond, a, b}});
}

wk_status wk_where_backward(const wk_tensor *cond, const wk_tensor *a, const wk_tensor *b,
                            const wk_tensor *dy, wk_tensor **da, wk_tensor **db)
{
    return wk_call_run_into(&(wk_call){.op = &wk_ops_binary[OP_where_backward], .in = {cond, a, b, dy}},
                            (wk_tensor * *[]){da, db}, 2);
}
