/* attention.c: one decoding step of a transformer layer with a KV cache: rope, cache write, attention. */
#include <stdio.h>
#include <wick/wick.h>

enum { HEADS = 8, KV_HEADS = 2, DIM = 64, CONTEXT = 128 };

int main(void)
{
    wk_device *device = wk_device_open("auto");
    wk_tensor *keys = wk_fill(device, WK_F32, 4, (int64_t[]){1, KV_HEADS, CONTEXT, DIM}, 0);
    wk_tensor *values = wk_fill(device, WK_F32, 4, (int64_t[]){1, KV_HEADS, CONTEXT, DIM}, 0);
    double sum = 0;
    for (int t = 0; t < 16 && wk_error_status() == WK_OK; t++) {
        wk_scope_begin();
        wk_tensor *q =
            wk_randn(device, WK_F32, 4, (int64_t[]){1, HEADS, 1, DIM}, 0, 1, 1, (uint64_t)t * 1000);
        wk_tensor *k =
            wk_randn(device, WK_F32, 4, (int64_t[]){1, KV_HEADS, 1, DIM}, 0, 1, 2, (uint64_t)t * 1000);
        wk_tensor *v =
            wk_randn(device, WK_F32, 4, (int64_t[]){1, KV_HEADS, 1, DIM}, 0, 1, 3, (uint64_t)t * 1000);
        wk_tensor *angle = wk_fill(device, WK_F32, 2, (int64_t[]){1, DIM / 2}, 0.1 * t);
        q = wk_rope(q, wk_cos(angle), wk_sin(angle));
        k = wk_rope(k, wk_cos(angle), wk_sin(angle));
        wk_copy_into(wk_narrow(keys, 2, t, 1), k); /* the step's place in the cache */
        wk_copy_into(wk_narrow(values, 2, t, 1), v);
        wk_tensor *y =
            wk_sdpa(q, wk_narrow(keys, 2, 0, t + 1), wk_narrow(values, 2, 0, t + 1), NULL, NULL, NULL);
        sum += wk_item(wk_norm2(y, 0, NULL, 0));
        wk_scope_end();
    }
    wk_drop(keys);
    wk_drop(values);
    if (wk_error_status() != WK_OK) {
        fprintf(stderr, "%s\n", wk_error());
        return 1;
    }
    printf("%s: 16 steps, sum of norms %.3f\n", wk_device_name(device), sum);
    return 0;
}
