/* train.c: the gradients of whole models, and steps of AdamW with them, against PyTorch's (tests/models/vision.py).
 *     test_train [DEVICE] */
#include <math.h>
#include <stdlib.h>
#include <wick/wick.h>
#include "error.h"
#include "test.h"
#include "train.h"

static wk_device *device;

static wk_tensor *expected(const wk_safetensors *f, const char *front, const char *name)
{
    char full[200];
    snprintf(full, sizeof full, "%s%s", front, name);
    wk_tensor *t = wk_safetensors_get(f, full);
    test_check(t != NULL, __FILE__, __LINE__, "%s", wk_error());
    return t;
}

static wk_tensor *on_device(const wk_safetensors *f, const char *name)
{
    return wk_to(expected(f, "", name), device);
}

/* The largest difference as a part of the largest number expected. */
static double difference(const wk_tensor *got, const wk_tensor *want)
{
    int64_t n = wk_count(want);
    double most = 1e-30, worst = got && wk_count(got) == n ? 0 : INFINITY;
    float *a = malloc((size_t)n * sizeof *a);
    const float *b = wk_data(want);
    if (worst == 0 && wk_to_host(got, a) != WK_OK)
        worst = INFINITY;
    for (int64_t i = 0; worst < INFINITY && i < n; i++) {
        most = fmax(most, fabs((double)b[i]));
        double d = fabs((double)a[i] - b[i]);
        worst = d >= 0 ? fmax(worst, d) : INFINITY;
    }
    free(a);
    return worst / most;
}

static wk_tensor *cnn_loss(wm_params *p, const wk_safetensors *f)
{
    return wm_cnn_loss(p, on_device(f, "x"), on_device(f, "labels"), NULL);
}

static wk_tensor *ctc_loss(wm_params *p, const wk_safetensors *f)
{
    wm_ctc_batch b = {on_device(f, "x"), on_device(f, "widths"), on_device(f, "labels"),
                      on_device(f, "counts")};
    return wm_ctc_batch_loss(p, &b, NULL);
}

static void check(const char *name, bool (*init)(wm_params *, wk_device *, int64_t),
                  wk_tensor *(*loss)(wm_params *, const wk_safetensors *))
{
    char path[1000];
    snprintf(path, sizeof path, "%s/%s.safetensors", MODELS, name);
    wk_safetensors *f = wk_safetensors_open(path);
    wm_params params;
    CHECK(f && init(&params, device, 1));
    for (int i = 0; i < params.n; i++)
        CHECK_EQ(wk_copy_into(params.p[i].value, wk_to(expected(f, "value.", params.p[i].name), device)),
                 WK_OK);
    const float *losses = wk_data(expected(f, "", "losses"));
    for (int step = 0; step < 4; step++) {
        wk_tensor *y = loss(&params, f);
        double got = y ? wk_item(y) : NAN;
        test_check(fabs(got - losses[step]) < 2e-4 * losses[step], __FILE__, __LINE__,
                   "%s: loss %g at step %d, expected %g; %s", name, got, step, (double)losses[step],
                   wm_error());
        for (int i = 0; step == 0 && i < params.n; i++) {
            double d = difference(params.p[i].grad, expected(f, "grad.", params.p[i].name));
            test_check(d < 2e-5, __FILE__, __LINE__, "%s: gradient of %s: %g away", name, params.p[i].name,
                       d);
        }
        CHECK(wm_params_update(&params, 0.01));
    }
    wm_params_free(&params);
    wk_safetensors_close(f);
}

int main(int argc, char **argv)
{
    device = wk_device_open(argc > 1 ? argv[1] : "cpu");
    if (!device) {
        fprintf(stderr, "%s\n", wk_error());
        return TEST_SKIPPED;
    }
    wk_scope_begin();
    check("train-cnn", wm_cnn_init, cnn_loss);
    check("train-ctc", wm_ctc_init, ctc_loss);
    wk_scope_end();
    return test_end();
}
