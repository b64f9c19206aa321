/* hello.c: softmax(x . w) on the best device there is. */
#include <stdio.h>
#include <wick/wick.h>

int main(void)
{
    const float x[] = {1, 2, 3, 4, 5, 6}, w[] = {0.1f, 0.2f, 0.3f, 0.4f, 0.5f, 0.6f};
    float y[4];
    wk_device *device = wk_device_open("auto");
    wk_scope_begin();
    wk_tensor *a = wk_from_host(device, WK_F32, 2, (int64_t[]){2, 3}, x);
    wk_tensor *b = wk_from_host(device, WK_F32, 2, (int64_t[]){3, 2}, w);
    wk_status status = wk_to_host(wk_softmax(wk_matmul(a, b), 0, NULL, WK_SOFTMAX_ACCURATE), y);
    wk_scope_end();
    if (status != WK_OK) {
        fprintf(stderr, "%s\n", wk_error());
        return 1;
    }
    printf("%s: %.4f %.4f / %.4f %.4f\n", wk_device_name(device), y[0], y[1], y[2], y[3]);
    return 0;
}
