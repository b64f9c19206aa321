/* train_cnn.c: a LeNet, forward and backward. */
#include <math.h>
#include "error.h"
#include "train.h"

enum { CONV1, BIAS1, CONV2, BIAS2, LINEAR1, BIAS3, LINEAR2, BIAS4 };

bool wm_cnn_init(wm_params *params, wk_device *device, int64_t seed)
{
    static const struct {
        const char *name;
        int rank;
        int64_t shape[4];
        int inputs; /* of each output: what the range depends on, as in PyTorch */
    } made[] = {{"conv1.weight", 4, {8, 1, 5, 5}, 25},   {"conv1.bias", 1, {8}, 25},
                {"conv2.weight", 4, {16, 8, 5, 5}, 200}, {"conv2.bias", 1, {16}, 200},
                {"linear1.weight", 2, {64, 144}, 144},   {"linear1.bias", 1, {64}, 144},
                {"linear2.weight", 2, {10, 64}, 64},     {"linear2.bias", 1, {10}, 64}};
    bool ok = true;
    *params = (wm_params){0};
    for (size_t i = 0; ok && i < sizeof made / sizeof *made; i++)
        ok = wm_params_add(params, made[i].name, device, made[i].rank, made[i].shape,
                           1 / sqrt(made[i].inputs), seed);
    return ok;
}

/* conv, relu and pool: what is kept of them for the way back. */
typedef struct {
    const wk_tensor *x;
    wk_tensor *sum, *relu, *places, *y;
    int64_t padding;
} stage;

static wk_tensor *stage_forward(stage *s, const wk_tensor *x, const wm_param *weight, const wm_param *bias,
                                int64_t padding)
{
    s->x = x;
    s->padding = padding;
    s->sum = wk_conv2d(x, weight->value, bias->value, WK_CONV(.padding = {padding, padding}));
    s->relu = wk_relu(s->sum);
    s->y = wk_max_pool2d(s->relu, WK_POOL(.kernel_size = {2, 2}), &s->places);
    return s->y;
}

/* The parameters' gradients from dy; returns that of x where it is wanted. */
static wk_tensor *stage_backward(const stage *s, const wk_tensor *dy, wm_param *weight, wm_param *bias,
                                 bool want)
{
    wk_conv_options *options = WK_CONV(.padding = {s->padding, s->padding});
    wk_tensor *d = wk_max_pool2d_backward(s->relu, dy, s->places, WK_POOL(.kernel_size = {2, 2}));
    d = wk_relu_backward(s->sum, d);
    wk_conv2d_backward_weight(s->x, d, 4, wk_shape(weight->value), options, &weight->grad, &bias->grad);
    return want ? wk_conv2d_backward_data(d, weight->value, 4, wk_shape(s->x), options) : NULL;
}

wk_tensor *wm_cnn_loss(wm_params *params, const wk_tensor *x, const wk_tensor *labels, wk_tensor **logits)
{
    wm_param *p = params->p;
    stage first, second;
    wk_tensor *d = NULL;
    wk_tensor *y = stage_forward(&first, x, &p[CONV1], &p[BIAS1], 2);
    y = stage_forward(&second, y, &p[CONV2], &p[BIAS2], 0);
    wk_tensor *flat = wk_flatten(y, 1, 3);
    wk_tensor *sum = wk_linear(flat, p[LINEAR1].value, p[BIAS3].value, WK_ACT_NONE), *hidden = wk_relu(sum);
    wk_tensor *out = wk_linear(hidden, p[LINEAR2].value, p[BIAS4].value, WK_ACT_NONE);
    wk_tensor *loss = wk_cross_entropy(out, labels, WK_REDUCE_MEAN, &d);

    if (loss &&
        wk_linear_backward(hidden, p[LINEAR2].value, d, &d, &p[LINEAR2].grad, &p[BIAS4].grad) == WK_OK &&
        wk_linear_backward(flat, p[LINEAR1].value, wk_relu_backward(sum, d), &d, &p[LINEAR1].grad,
                           &p[BIAS3].grad) == WK_OK) {
        d = stage_backward(&second, wk_reshape(d, 4, wk_shape(y)), &p[CONV2], &p[BIAS2], true);
        stage_backward(&first, d, &p[CONV1], &p[BIAS1], false);
    }
    if (wk_error_status() != WK_OK) {
        wm_fail(WK_ERR_INTERNAL, "train cnn");
        return NULL;
    }
    if (logits)
        *logits = out;
    return loss;
}
