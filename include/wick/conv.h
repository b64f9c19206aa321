/* wick/conv.h: convolutions and transposed convolutions of 1 to 3 spatial dimensions.
 *
 * Cross-correlation with zero padding: x [n, c_in, in..], one number in every option array per spatial dimension.
 *   conv:           weight [c_out, c_in / groups, k..], out = (in + 2 padding - dilation (k - 1) - 1) / stride + 1
 *   conv_transpose: weight [c_in, c_out / groups, k..],
 *                   out = (in - 1) stride - 2 padding + dilation (k - 1) + output_padding + 1
 * Float; makers' libraries may round f16 and bf16 before they add the bias, and again after it (docs/miopen.md).
 * Errors: WK_ERR_SHAPE where ranks, channels or sizes do not fit together (a kernel larger than the padded input among
 * them), WK_ERR_PARAM for an option out of its range. */
#ifndef WICK_CONV_H
#define WICK_CONV_H

#include "core.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    size_t size;               /* of this struct; WK_CONV sets it */
    int64_t stride[3];         /* 0 means 1 */
    int64_t padding[3];        /* on both sides */
    int64_t dilation[3];       /* 0 means 1 */
    int64_t output_padding[3]; /* transposed only: less than stride or dilation */
    int64_t groups;            /* 0 means 1; divides both numbers of channels */
} wk_conv_options;

/* Options written in place: WK_CONV(.stride = {2, 2}, .groups = 4). */
#define WK_CONV(...) (&(wk_conv_options){.size = sizeof(wk_conv_options), __VA_ARGS__})

/* bias [c_out] and options may be NULL. */
WK_API wk_tensor *wk_conv1d(const wk_tensor *x, const wk_tensor *weight, const wk_tensor *bias,
                            const wk_conv_options *options);
WK_API wk_tensor *wk_conv2d(const wk_tensor *x, const wk_tensor *weight, const wk_tensor *bias,
                            const wk_conv_options *options);
WK_API wk_tensor *wk_conv3d(const wk_tensor *x, const wk_tensor *weight, const wk_tensor *bias,
                            const wk_conv_options *options);
WK_API wk_tensor *wk_conv_transpose1d(const wk_tensor *x, const wk_tensor *weight, const wk_tensor *bias,
                                      const wk_conv_options *options);
WK_API wk_tensor *wk_conv_transpose2d(const wk_tensor *x, const wk_tensor *weight, const wk_tensor *bias,
                                      const wk_conv_options *options);

/* dx from dy and weight. rank and input_shape are the shape of x, which strides leave open: any that gives dy's. */
WK_API wk_tensor *wk_conv1d_backward_data(const wk_tensor *dy, const wk_tensor *weight, int rank,
                                          const int64_t *input_shape, const wk_conv_options *options);
WK_API wk_tensor *wk_conv2d_backward_data(const wk_tensor *dy, const wk_tensor *weight, int rank,
                                          const int64_t *input_shape, const wk_conv_options *options);
WK_API wk_tensor *wk_conv3d_backward_data(const wk_tensor *dy, const wk_tensor *weight, int rank,
                                          const int64_t *input_shape, const wk_conv_options *options);
WK_API wk_tensor *wk_conv_transpose1d_backward_data(const wk_tensor *dy, const wk_tensor *weight, int rank,
                                                    const int64_t *input_shape,
                                                    const wk_conv_options *options);
WK_API wk_tensor *wk_conv_transpose2d_backward_data(const wk_tensor *dy, const wk_tensor *weight, int rank,
                                                    const int64_t *input_shape,
                                                    const wk_conv_options *options);

/* dweight, of the shape rank and kernel_shape say, and dbias [c_out]; a place that is NULL is not computed. */
WK_API wk_status wk_conv1d_backward_weight(const wk_tensor *x, const wk_tensor *dy, int rank,
                                           const int64_t *kernel_shape, const wk_conv_options *options,
                                           wk_tensor **dweight, wk_tensor **dbias);
WK_API wk_status wk_conv2d_backward_weight(const wk_tensor *x, const wk_tensor *dy, int rank,
                                           const int64_t *kernel_shape, const wk_conv_options *options,
                                           wk_tensor **dweight, wk_tensor **dbias);
WK_API wk_status wk_conv3d_backward_weight(const wk_tensor *x, const wk_tensor *dy, int rank,
                                           const int64_t *kernel_shape, const wk_conv_options *options,
                                           wk_tensor **dweight, wk_tensor **dbias);
WK_API wk_status wk_conv_transpose1d_backward_weight(const wk_tensor *x, const wk_tensor *dy, int rank,
                                                     const int64_t *kernel_shape,
                                                     const wk_conv_options *options, wk_tensor **dweight,
                                                     wk_tensor **dbias);
WK_API wk_status wk_conv_transpose2d_backward_weight(const wk_tensor *x, const wk_tensor *dy, int rank,
                                                     const int64_t *kernel_shape,
                                                     const wk_conv_options *options, wk_tensor **dweight,
                                                     wk_tensor **dbias);

#ifdef __cplusplus
}
#endif
#endif
