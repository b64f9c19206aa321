/* conv.h: what convolutions by the makers' libraries leave to wick's kernels. */
#ifndef WK_GPU_CONV_H
#define WK_GPU_CONV_H

#include "gpu.h"

/* y[n, c, ..] += bias[c] for a call of a convolution, whose y is there. */
wk_status wk_conv_add_bias(const wk_call *c);
/* The bias's gradient of a call of a backward_weight op. */
wk_status wk_conv_bias_gradient(const wk_call *c);

#endif
