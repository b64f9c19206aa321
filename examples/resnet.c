/* resnet.c: what is in a picture. usage: resnet WEIGHTS.safetensors PICTURE */
#include <stdio.h>
#include <wick/wick.h>
#include "error.h"
#include "image.h"
#include "resnet.h"

enum { SIDE = 224 };

/* The class with the largest logit, and its probability. */
static void run(const wm_resnet *model, wk_device *device, const float *pixels)
{
    uint32_t class;
    float share;
    wk_scope_begin();
    wk_tensor *x = wk_from_host(device, WK_F32, 4, (int64_t[]){1, 3, SIDE, SIDE}, pixels), *best = NULL;
    wk_tensor *y = wk_softmax(wm_resnet_run(model, x), 0, NULL, WK_SOFTMAX_ACCURATE);
    y = wk_max(y, 1, (int64_t[]){1}, 0, &best);
    if (wk_to_host(y, &share) == WK_OK && wk_to_host(best, &class) == WK_OK)
        printf("class %u, %s: %.1f %%\n", class, wm_imagenet_name(class), 100 * (double)share);
    wk_scope_end();
}

int main(int argc, char **argv)
{
    static float pixels[3 * SIDE * SIDE];
    if (argc != 3) {
        fprintf(stderr, "usage: resnet WEIGHTS.safetensors PICTURE\n");
        return 2;
    }
    wm_image image = {0};
    wk_device *device = wk_device_open("auto");
    wm_resnet *model = wm_resnet_load(argv[1], device, &(wm_resnet_options){.dtype = WK_F32}, NULL);
    if (model && wm_image_read(&image, argv[2]) && wm_image_prepare(&image, 256, SIDE, pixels))
        run(model, device, pixels);
    int status = wm_error_status() != WK_OK;
    if (status)
        fprintf(stderr, "%s\n", wm_error());
    wm_image_free(&image);
    wm_resnet_free(model);
    return status;
}
