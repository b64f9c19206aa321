/* wick/resample.h: planes made larger or smaller. */
#ifndef WICK_RESAMPLE_H
#define WICK_RESAMPLE_H

#include "core.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How large the planes of the result are: by output_size, or by scale as floor(in * scale); one of them must be
 * given. The 1d form uses the first number of each pair. bilinear takes both: output_size is the result's, and
 * 1 / scale, instead of in / out, the step in x. Write it with WK_UPSAMPLE(.scale = {2, 2}). */
typedef struct {
    size_t size; /* of this struct; set by WK_UPSAMPLE */
    int64_t output_size[2];
    double scale[2];
    int64_t
        align_corners; /* bilinear: 1: the corner elements' centres stay where they are, not their outer edges */
} wk_upsample_options;
#define WK_UPSAMPLE(...) (&(wk_upsample_options){.size = sizeof(wk_upsample_options), __VA_ARGS__})

/* x [n, c, l] or [n, c, h, w]: y[o] = x[floor(o * in / out)] along each dimension. All dtypes. */
WK_API wk_tensor *wk_upsample_nearest1d(const wk_tensor *x, const wk_upsample_options *options);
WK_API wk_tensor *wk_upsample_nearest2d(const wk_tensor *x, const wk_upsample_options *options);
/* x [n, c, h, w]: between the four nearest elements. Float. */
WK_API wk_tensor *wk_upsample_bilinear2d(const wk_tensor *x, const wk_upsample_options *options);

/* dx from dy; input_size is the whole shape of x, `rank` sizes. Float. */
WK_API wk_tensor *wk_upsample_nearest1d_backward(const wk_tensor *dy, int rank, const int64_t *input_size,
                                                 const wk_upsample_options *options);
WK_API wk_tensor *wk_upsample_nearest2d_backward(const wk_tensor *dy, int rank, const int64_t *input_size,
                                                 const wk_upsample_options *options);
WK_API wk_tensor *wk_upsample_bilinear2d_backward(const wk_tensor *dy, int rank, const int64_t *input_size,
                                                  const wk_upsample_options *options);

#ifdef __cplusplus
}
#endif
#endif
