/* ctc.c: front end of the CTC loss. Its parameters are wk_ctc_options. */
#include "core/op.h"
#include "wick/ctc.h"

static wk_status infer_ctc(wk_call *c)
{
    const wk_ctc_options *p = c->params;
    const wk_tensor *x = c->in[0];
    WK_TRY(wk_call_rank(c, 0, 3, 3));
    WK_TRY(wk_call_rank(c, 1, 2, 2));
    WK_TRY(wk_call_shape(c, 1, 2, (int64_t[]){x->shape[1], c->in[1]->shape[1]}));
    WK_TRY(wk_call_shape(c, 2, 1, &x->shape[1]));
    WK_TRY(wk_call_shape(c, 3, 1, &x->shape[1]));
    WK_NEED(p->blank >= 0 && p->blank < x->shape[2], c, WK_ERR_PARAM, "blank",
            "expected a class from 0 to %lld, got %lld", (long long)x->shape[2] - 1, (long long)p->blank);
    WK_NEED(p->logits == 0 || p->logits == 1, c, WK_ERR_PARAM, "logits", "expected 0 or 1, got %lld",
            (long long)p->logits);
    WK_NEED(p->zero_infinity == 0 || p->zero_infinity == 1, c, WK_ERR_PARAM, "zero_infinity",
            "expected 0 or 1, got %lld", (long long)p->zero_infinity);
    wk_call_out(c, 0, c->dtype, 1, &x->shape[1]);
    wk_call_out_like(c, 1, x);
    return WK_OK;
}

#define SAMPLES(name, ...) static const char *const name[] = {__VA_ARGS__, NULL}

SAMPLES(
    ctc_samples,
    "x=T[9,3,5] labels=i32[3,4]:1..5 input_lengths=i32[3]:8..10 label_lengths=i32[3]:1..5 logits=1",
    "x=T[12,2,7]:-40..-30 labels=i32[2,3]:0..6 input_lengths=i64[2]:12..13 label_lengths=i64[2]:0..4 blank=6",
    "x=T[40,5,30] labels=i32[5,19]:1..30 input_lengths=i32[5]:38..41 label_lengths=i64[5]:10..20 logits=1",
    "x=T[3,4,5] labels=i32[4,6]:1..5 input_lengths=i32[4]:1..4 label_lengths=i32[4]:4..7 logits=1 "
    "zero_infinity=1",
    "x=T[5,2,3] labels=i32[2,0] input_lengths=i32[2]:3..6 label_lengths=i32[2]:0..1 logits=1",
    "x=T[560,1,30] labels=i32[1,520]:1..30 input_lengths=i32[1]:560..561 label_lengths=i32[1]:515..520 "
    "logits=1",
    "x=T[7,2,4] labels=i32[2,3]:0..4 input_lengths=i32[2]:6..8 label_lengths=i32[2]:2..4 blank=1",
    "x=T[5,0,3] labels=i32[0,2] input_lengths=i32[0] label_lengths=i32[0]",
    "x=T[0,2,3] labels=i32[2,2]:1..3 input_lengths=i32[2]:0..1 label_lengths=i32[2]:0..1");
SAMPLES(
    ctc_errors, "x=T[5,2,3] labels=i32[2,2]:1..3 input_lengths=i32[2]:5..6 ! label_lengths",
    "x=T[5,2] labels=i32[2,2] input_lengths=i32[2] label_lengths=i32[2] ! x",
    "x=T[5,2,3] labels=i32[3,2] input_lengths=i32[2] label_lengths=i32[2] ! labels",
    "x=T[5,2,3] labels=i64[2,2] input_lengths=i32[2] label_lengths=i32[2] ! labels",
    "x=T[5,2,3] labels=i32[2] input_lengths=i32[2] label_lengths=i32[2] ! labels",
    "x=T[5,2,3] labels=i32[2,2]:1..3 input_lengths=i32[3]:1..2 label_lengths=i32[2]:1..2 ! input_lengths",
    "x=T[5,2,3] labels=i32[2,2]:1..3 input_lengths=u8[2]:1..2 label_lengths=i32[2]:1..2 ! input_lengths",
    "x=T[5,2,3] labels=i32[2,2]:1..3 input_lengths=i32[2]:6..7 label_lengths=i32[2]:1..2 ! input_lengths",
    "x=T[5,2,3] labels=i32[2,2]:1..3 input_lengths=i32[2]:-3..-2 label_lengths=i32[2]:1..2 ! input_lengths",
    "x=T[5,2,3] labels=i32[2,2]:1..3 input_lengths=i32[2]:5..6 label_lengths=i32[2]:3..4 ! label_lengths",
    "x=T[5,2,3] labels=i32[2,2]:3..4 input_lengths=i32[2]:5..6 label_lengths=i32[2]:1..2 ! labels",
    "x=T[5,2,3] labels=i32[2,2]:1..3 input_lengths=i32[2]:5..6 label_lengths=i32[2]:1..2 blank=3 ! blank",
    "x=T[5,2,3] labels=i32[2,2]:1..3 input_lengths=i32[2]:5..6 label_lengths=i32[2]:1..2 blank=-1 ! blank",
    "x=i32[5,2,3] labels=i32[2,2]:1..3 input_lengths=i32[2]:5..6 label_lengths=i32[2]:1..2 ! dtype");

#define LENGTHS (WK_SET(WK_I32) | WK_SET(WK_I64))

wk_op wk_ops_ctc[] = {
    {.name = "ctc_loss",
     .summary = "-log of the probability of a label sequence, and its gradient",
     .dtypes = WK_FLOATS,
     .in = {{"x", 0, 0},
            {"labels", 0, WK_SET(WK_I32)},
            {"input_lengths", 0, LENGTHS},
            {"label_lengths", 0, LENGTHS}},
     .out = {{"loss", 0, 0}, {"dx", WK_SKIP, 0}},
     .params =
         WK_PARAM_LIST({"blank", WK_P_INT, offsetof(wk_ctc_options, blank), "0", NULL, 0},
                       {"logits", WK_P_BOOL, offsetof(wk_ctc_options, logits), "0", NULL, 0},
                       {"zero_infinity", WK_P_BOOL, offsetof(wk_ctc_options, zero_infinity), "0", NULL, 0}),
     .infer = infer_ctc,
     .samples = ctc_samples,
     .errors = ctc_errors},
    {0},
};

wk_tensor *wk_ctc_loss(const wk_tensor *x, const wk_tensor *labels, const wk_tensor *input_lengths,
                       const wk_tensor *label_lengths, const wk_ctc_options *options, wk_tensor **dx)
{
    _Alignas(8) char p[WK_PARAMS_BYTES];
    wk_tensor *loss;
    wk_params_from_options(&wk_ops_ctc[0], p, options, options ? options->size : 0);
    wk_call_run_into(
        &(wk_call){.op = &wk_ops_ctc[0], .params = p, .in = {x, labels, input_lengths, label_lengths}},
        (wk_tensor * *const[]){&loss, dx}, 2);
    return loss;
}
