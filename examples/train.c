/* train.c: one layer trained: which of two clouds of points does a point come from? Gradient and AdamW in C. */
#include <stdio.h>
#include <wick/wick.h>

enum { POINTS = 256, STEPS = 60 };

int main(void)
{
    wk_device *device = wk_device_open("auto");
    wk_tensor *param[] = {wk_randn(device, WK_F32, 2, (int64_t[]){2, 2}, 0, 0.1, 1, 0),
                          wk_fill(device, WK_F32, 1, (int64_t[]){2}, 0)};
    wk_tensor *m[2], *v[2], *grad[2];
    for (int i = 0; i < 2; i++) {
        m[i] = wk_fill(device, WK_F32, wk_rank(param[i]), wk_shape(param[i]), 0);
        v[i] = wk_fill(device, WK_F32, wk_rank(param[i]), wk_shape(param[i]), 0);
    }
    for (int step = 1; step <= STEPS && wk_error_status() == WK_OK; step++) {
        wk_scope_begin();
        wk_tensor *d = NULL;
        wk_tensor *labels =
            wk_cast(wk_rand(device, WK_F32, 1, (int64_t[]){POINTS}, 0, 2, 2, 1000 * step), WK_I32);
        wk_tensor *middle =
            wk_unsqueeze(wk_affine(wk_cast(labels, WK_F32), 3, -1.5), 1); /* of the clouds: -1.5, 1.5 */
        wk_tensor *x =
            wk_add(wk_randn(device, WK_F32, 2, (int64_t[]){POINTS, 2}, 0, 1, 3, 1000 * step), middle);
        wk_tensor *y = wk_linear(x, param[0], param[1], WK_ACT_NONE);
        wk_tensor *loss = wk_cross_entropy(y, labels, WK_REDUCE_MEAN, &d);
        wk_linear_backward(x, param[0], d, NULL, &grad[0], &grad[1]);
        for (int i = 0; i < 2; i++)
            wk_adamw_step_into(param[i], grad[i], m[i], v[i], WK_ADAMW(.lr = 0.05, .step = step));
        if (step % 20 == 0) {
            wk_tensor *right = wk_eq(wk_cast(wk_argmax(y, 1, 0), WK_I32), labels);
            printf("step %d: loss %.3f, %.0f %% right\n", step, wk_item(loss),
                   100 * wk_item(wk_mean(wk_cast(right, WK_F32), 0, NULL, 0)));
        }
        wk_scope_end();
    }
    for (int i = 0; i < 2; i++) {
        wk_drop(param[i]);
        wk_drop(m[i]);
        wk_drop(v[i]);
    }
    if (wk_error_status() != WK_OK)
        fprintf(stderr, "%s\n", wk_error());
    return wk_error_status() != WK_OK;
}
