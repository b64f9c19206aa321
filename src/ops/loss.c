/* loss.c: front ends of the losses. */
#include "loss.h"
#include "wick/loss.h"

/* Output 0: one number, or one for each of the losses; output 1: like x. */
static wk_status infer_outputs(wk_call *c, int rank, const int64_t *losses)
{
    const wk_loss_params *p = c->params;
    WK_NEED(p->reduction >= WK_REDUCE_MEAN && p->reduction <= WK_REDUCE_NONE, c, WK_ERR_PARAM, "reduction",
            "expected one of wk_loss_reduction, got %d", (int)p->reduction);
    wk_call_out(c, 0, c->dtype, p->reduction == WK_REDUCE_NONE ? rank : 0, losses);
    wk_call_out_like(c, 1, c->in[0]);
    return WK_OK;
}

static wk_status infer_classes(wk_call *c)
{
    WK_TRY(wk_call_rank(c, 0, 2, 2));
    WK_TRY(wk_call_shape(c, 1, 1, c->in[0]->shape));
    return infer_outputs(c, 1, c->in[0]->shape);
}

/* The same with the logarithm of each row's sum of exponentials. */
static wk_status infer_softmax_classes(wk_call *c)
{
    WK_TRY(infer_classes(c));
    wk_call_out(c, 2, wk_stat_dtype(c->dtype), 1, c->in[0]->shape);
    return WK_OK;
}

static wk_status infer_elements(wk_call *c)
{
    WK_TRY(wk_call_same_shape(c, 1, 0));
    return infer_outputs(c, c->in[0]->rank, c->in[0]->shape);
}

static wk_status infer_huber(wk_call *c)
{
    double delta = WK_PARAMS(c, wk_loss_params)->delta;
    WK_NEED(delta > 0 && isfinite(delta), c, WK_ERR_PARAM, "delta", "expected a number above 0, got %g",
            delta);
    return infer_elements(c);
}

/* ---- the table ---- */

#define SAMPLES(name, ...) static const char *const name[] = {__VA_ARGS__, NULL}

SAMPLES(class_samples, "x=T[4,5] target=i64[4]:0..5", "x=T[7,300] target=u32[7]:0..300 reduction=sum",
        "x=T[3,2] target=u8[3]:0..2 reduction=none", "x=T[130,1025] target=i32[130]:0..1025",
        "x=T[70,1024] target=i64[70]:0..1024", "x=T[3,20000]:-9..9 target=i64[3]:0..20000",
        "x=T[1,40000] target=u32[1]:0..40000", "x=T[3,5] target=u8[3]:1,255,4",
        "x=T[3,5] target=i32[3]:2147483647,0,4 reduction=none", "x=T[5,3]:-40..40 target=i64[5]:0..3",
        "x=T[2,1] target=i32[2]:0..1", "x=T[0,3] target=i64[0] reduction=sum",
        "x=T[0,3] target=i64[0] reduction=none");
SAMPLES(class_errors, "x=T[4,5] ! target", "target=i64[4] ! x", "x=T[4] target=i64[4]:0..2 ! x",
        "x=T[4,5] target=i64[5]:0..5 ! target", "x=T[4,5] target=i64[4,1]:0..5 ! target",
        "x=T[4,5] target=f32[4] ! target", "x=i32[4,5] target=i64[4]:0..5 ! dtype",
        "x=T[4,5] target=i64[4]:5..6 ! target", "x=T[4,5] target=i64[4]:-2..-1 ! target",
        "x=T[4,5] target=i64[4]:0..5 reduction=max ! reduction");
SAMPLES(element_samples, "x=T[4,5] target=T[4,5]", "x=T[3,1001] target=T[3,1001] reduction=sum",
        "x=T[2,3,4] target=T[2,3,4] reduction=none", "x=T[40000] target=T[40000]", "x=T[] target=T[]",
        "x=T[0,3] target=T[0,3] reduction=sum", "x=T[0] target=T[0] reduction=none");
SAMPLES(element_errors, "x=T[4] ! target", "target=T[4] ! x", "x=T[4] target=T[5] ! target",
        "x=T[4] target=T[4,1] ! target", "x=f32[4] target=f64[4] ! target", "x=i32[4] target=i32[4] ! dtype",
        "x=T[4] target=T[4] reduction=median ! reduction");
SAMPLES(bce_samples, "x=T[4,5] target=T[4,5]:0..1", "x=T[3,1001]:-30..30 target=T[3,1001]:0..1 reduction=sum",
        "x=T[2,3,4] target=T[2,3,4]:0..1 reduction=none", "x=T[40000] target=T[40000]:0..1",
        "x=T[] target=T[]:0..1", "x=T[0] target=T[0] reduction=none");
SAMPLES(huber_samples, "x=T[4,5] target=T[4,5]", "x=T[3,1001]:-5..5 target=T[3,1001] reduction=sum delta=0.7",
        "x=T[2,3,4] target=T[2,3,4] reduction=none delta=2.5", "x=T[40000] target=T[40000]",
        "x=T[0] target=T[0] reduction=none");
SAMPLES(huber_errors, "x=T[4] ! target", "x=T[4] target=T[5] ! target", "x=T[4] target=T[4] delta=0 ! delta",
        "x=T[4] target=T[4] delta=-1 ! delta", "x=T[4] target=T[4] delta=nan ! delta");

enum {
    OP_cross_entropy,
    OP_nll_loss,
    OP_mse_loss,
    OP_bce_with_logits,
    OP_huber_loss,
    OP_softmax_cross_entropy
};

#define REDUCTION \
    { \
        "reduction", WK_P_ENUM, offsetof(wk_loss_params, reduction), "mean", "mean|sum|none", 0 \
    }
#define LOSS(op, text, target_set, checks, good, bad) \
    [OP_##op] = { \
        .name = #op, \
        .summary = text, \
        .dtypes = WK_FLOATS, \
        .in = {{"x", 0, 0}, {"target", 0, target_set}}, \
        .out = {{"y", 0, 0}, {"dx", WK_SKIP, 0}}, \
        .params = WK_PARAM_LIST(REDUCTION), \
        .infer = checks, \
        .samples = good, \
        .errors = bad, \
    }

wk_op wk_ops_loss[] = {
    LOSS(cross_entropy, "-log(softmax(x)[target]) and its gradient", WK_IDS, infer_classes, class_samples,
         class_errors),
    LOSS(nll_loss, "-x[target] and its gradient", WK_IDS, infer_classes, class_samples, class_errors),
    LOSS(mse_loss, "(x - target)^2 and its gradient", 0, infer_elements, element_samples, element_errors),
    LOSS(bce_with_logits, "cross entropy of sigmoid(x) and target, and its gradient", 0, infer_elements,
         bce_samples, element_errors),
    [OP_huber_loss] = {.name = "huber_loss",
                       .summary = "squared near 0, linear beyond delta, and its gradient",
                       .dtypes = WK_FLOATS,
                       .in = {{"x", 0, 0}, {"target", 0, 0}},
                       .out = {{"y", 0, 0}, {"dx", WK_SKIP, 0}},
                       .params = WK_PARAM_LIST(
                           REDUCTION, {"delta", WK_P_FLOAT, offsetof(wk_loss_params, delta), "1", NULL, 0}),
                       .infer = infer_huber,
                       .samples = huber_samples,
                       .errors = huber_errors},
    [OP_softmax_cross_entropy] = {.name = "softmax_cross_entropy",
                                  .summary =
                                      "cross_entropy, its gradient and log_sum_exp of the rows, in one go",
                                  .dtypes = WK_FLOATS,
                                  .in = {{"x", 0, 0}, {"target", 0, WK_IDS}},
                                  .out = {{"y", 0, 0}, {"dx", WK_SKIP, 0}, {"lse", WK_SKIP | WK_STAT, 0}},
                                  .params = WK_PARAM_LIST(REDUCTION),
                                  .infer = infer_softmax_classes,
                                  .samples = class_samples,
                                  .errors = class_errors},
    {0},
};

/* ---- the API ---- */

static wk_tensor *run_loss(int op, const wk_tensor *x, const wk_tensor *target, wk_loss_params p,
                           wk_tensor **dx)
{
    wk_tensor *y;
    wk_call_run_into(&(wk_call){.op = &wk_ops_loss[op], .params = &p, .in = {x, target}},
                     (wk_tensor * *const[]){&y, dx}, 2);
    return y;
}

#define API(name) \
    wk_tensor *wk_##name(const wk_tensor *x, const wk_tensor *target, wk_loss_reduction reduction, \
                         wk_tensor **dx) \
    { \
        return run_loss(OP_##name, x, target, (wk_loss_params){.reduction = reduction}, dx); \
    }
API(cross_entropy)
API(nll_loss)
API(mse_loss)
API(bce_with_logits)

wk_tensor *wk_huber_loss(const wk_tensor *x, const wk_tensor *target, double delta,
                         wk_loss_reduction reduction, wk_tensor **dx)
{
    return run_loss(OP_huber_loss, x, target, (wk_loss_params){.reduction = reduction, .delta = delta}, dx);
}

wk_tensor *wk_softmax_cross_entropy(const wk_tensor *x, const wk_tensor *target, wk_loss_reduction reduction,
                                    wk_tensor **dx, wk_tensor **lse)
{
    wk_loss_params p = {.reduction = reduction};
    wk_tensor *y;
    wk_call_run_into(
        &(wk_call){.op = &wk_ops_loss[OP_softmax_cross_entropy], .params = &p, .in = {x, target}},
        (wk_tensor * *const[]){&y, dx, lse}, 3);
    return y;
}
