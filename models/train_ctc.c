/* train_ctc.c: a bidirectional LSTM with CTC, forward and backward. */
#include <math.h>
#include "error.h"
#include "train.h"

enum { LSTM_WEIGHTS = 8, LINEAR = LSTM_WEIGHTS, BIAS, H = WM_CTC_HIDDEN };

bool wm_ctc_init(wm_params *params, wk_device *device, int64_t seed)
{
    static const char *const names[] = {"lstm.weight_ih_l0",         "lstm.weight_hh_l0",
                                        "lstm.bias_ih_l0",           "lstm.bias_hh_l0",
                                        "lstm.weight_ih_l0_reverse", "lstm.weight_hh_l0_reverse",
                                        "lstm.bias_ih_l0_reverse",   "lstm.bias_hh_l0_reverse"};
    bool ok = true;
    *params = (wm_params){0};
    for (int i = 0; ok && i < LSTM_WEIGHTS; i++) {
        int64_t shape[] = {4 * H, i % 4 ? H : WM_LINE_HEIGHT};
        ok = wm_params_add(params, names[i], device, i % 4 < 2 ? 2 : 1, shape, 1 / sqrt(H), seed);
    }
    return ok &&
           wm_params_add(params, "linear.weight", device, 2, (int64_t[]){WM_CTC_CLASSES, 2 * H},
                         1 / sqrt(2.0 * H), seed) &&
           wm_params_add(params, "linear.bias", device, 1, (int64_t[]){WM_CTC_CLASSES}, 1 / sqrt(2.0 * H),
                         seed);
}

wk_tensor *wm_ctc_batch_loss(wm_params *params, const wm_ctc_batch *b, wk_tensor **logits)
{
    wm_param *p = params->p;
    const wk_tensor *weights[LSTM_WEIGHTS];
    wk_tensor *grads[LSTM_WEIGHTS], *y, *reserve, *d = NULL, *loss = NULL;
    wk_rnn_options *options = WK_RNN(.hidden = H, .bidirectional = 1, .training = 1);
    for (int i = 0; i < LSTM_WEIGHTS; i++)
        weights[i] = p[i].value;
    wk_status status =
        wk_rnn(b->x, NULL, NULL, b->widths, weights, LSTM_WEIGHTS, options, &y, NULL, NULL, &reserve);
    if (status == WK_OK) {
        wk_tensor *out = wk_linear(y, p[LINEAR].value, p[BIAS].value, WK_ACT_NONE);
        loss = wk_ctc_loss(out, b->labels, b->widths, b->counts, WK_CTC(.logits = 1), &d);
        loss = wk_mean(loss, 0, NULL, 0);
        d = wk_affine(d, 1.0 / (double)wk_dim(b->x, 1), 0); /* the loss is the mean, d that of the sum */
        status = wk_linear_backward(y, p[LINEAR].value, d, &d, &p[LINEAR].grad, &p[BIAS].grad);
        if (logits)
            *logits = out;
    }
    if (status == WK_OK)
        status = wk_rnn_backward(b->x, NULL, NULL, b->widths, weights, LSTM_WEIGHTS, y, reserve, d, NULL,
                                 NULL, options, NULL, NULL, NULL, grads);
    if (status != WK_OK) {
        wm_fail(status, "train ctc");
        return NULL;
    }
    for (int i = 0; i < LSTM_WEIGHTS; i++)
        p[i].grad = grads[i];
    return loss;
}
