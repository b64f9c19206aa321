/* resnet.h: ResNets (18 to 152, and the wide ones and ResNeXts, which differ in sizes only) on wick's public API, from
 * weights under torchvision's names. What kind it is, the weights say. */
#ifndef WM_RESNET_H
#define WM_RESNET_H

#include <stdbool.h>
#include <wick/wick.h>
#include "weights.h"

typedef struct wm_resnet wm_resnet;

typedef struct {
    wk_dtype dtype; /* of weights and activations: f32, f16 or bf16 */
    bool
        keep_batch_norm; /* batch norms as ops of their own instead of folded into the convolutions' weights */
} wm_resnet_options;

/* From a safetensors file; progress may be NULL. NULL with an error that names file and tensor. */
wm_resnet *wm_resnet_load(const char *path, wk_device *device, const wm_resnet_options *options,
                          const wm_progress *progress);
/* One of depth 18, 34, 50, 101 or 152 with random weights, made on the device. */
wm_resnet *wm_resnet_random(int depth, wk_device *device, const wm_resnet_options *options, int64_t seed);
/* NULL is fine. */
void wm_resnet_free(wm_resnet *m);

/* 50 for a ResNet-50: layers with weights on the longest way. */
int wm_resnet_depth(const wm_resnet *m);
int64_t wm_resnet_classes(const wm_resnet *m);

/* Logits f32 [n, classes] of images [n, 3, h, w] in the model's dtype on its device (wm_image_prepare makes them); the
 * caller's, or the scope's. NULL with an error. */
wk_tensor *wm_resnet_run(const wm_resnet *m, const wk_tensor *images);

/* Called with what each stage gives, by torchvision's names: "conv1", "layer1.0", ..., "layer4.2", "avgpool", "fc"; for
 * tests. NULL takes it away. */
typedef void (*wm_resnet_watch)(void *ctx, const char *name, const wk_tensor *y);
void wm_resnet_set_watch(wm_resnet *m, wm_resnet_watch watch, void *ctx);

/* The name of an ImageNet class, 0 to 999, valid until the thread's next call; NULL, without an error, outside of that. */
const char *wm_imagenet_name(int64_t i);

#endif
