/* conv.h: what front end and kernels of the convolutions share.
 *
 * All fifteen ops are three computations on one relation: the kernel slides over an image and gives a map, one
 * value for each place of the kernel. Pixel i of the image and pixel o of the map meet at tap t of the kernel where
 *     i = o * stride - padding + t * dilation
 * in each dimension. A convolution goes from the image (x) to the map (y), a transposed one from the map (x) to the
 * image (y), with the same weights [map channels, image channels / groups, taps]. So
 *     the map from the image:   conv, conv_transpose_backward_data
 *     the image from the map:   conv_transpose, conv_backward_data
 *     the weights from both:    both backward_weight */
#ifndef WK_OPS_CONV_H
#define WK_OPS_CONV_H

#include "core/op.h"
#include "wick/conv.h"

typedef struct {
    wk_conv_options options;
    wk_list size; /* input_size or kernel_size of the backward ops */
} wk_conv_params;

typedef enum { WK_CONV_FORWARD, WK_CONV_BACKWARD_DATA, WK_CONV_BACKWARD_WEIGHT } wk_conv_role;

/* The relation of a call. Fewer dimensions than three have leading ones of size 1. */
typedef struct {
    wk_conv_role role;
    bool transposed;
    int64_t n, groups;
    int64_t image_channels, map_channels; /* of all groups */
    int64_t image[3], map[3], kernel[3];
    int64_t stride[3], padding[3], dilation[3];
} wk_conv_geometry;

/* Which of the three computations: what is made from the other two. */
typedef enum { WK_CONV_TO_MAP, WK_CONV_TO_IMAGE, WK_CONV_TO_WEIGHT, WK_CONV_WAYS } wk_conv_way;

static inline wk_conv_way wk_conv_way_of(const wk_conv_geometry *g)
{
    if (g->role == WK_CONV_BACKWARD_WEIGHT)
        return WK_CONV_TO_WEIGHT;
    return g->transposed == (g->role == WK_CONV_BACKWARD_DATA) ? WK_CONV_TO_MAP : WK_CONV_TO_IMAGE;
}

/* Of the image from the map: every how many taps along dimension d one of them reaches the same pixels again. */
int64_t wk_conv_tap_period(const wk_conv_geometry *g, int d);
/* Works it out; fails when shapes or parameters do not fit. A call of an op outside of the family counts as conv2d: its
 * first inputs are x, weight and bias, and its parameter struct begins with wk_conv_params. */
wk_status wk_conv_geometry_of(const wk_call *c, wk_conv_geometry *g);
/* Checks x, weight and bias of such a call, or of a convolution, and says what output 0 is. */
wk_status wk_conv_infer(wk_call *c);
/* Public options as the parameters of the op; false with an error. */
bool wk_conv_take_options(const wk_op *op, wk_conv_params *p, const wk_conv_options *options);

#endif
