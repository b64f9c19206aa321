/* depthwise.h: the arguments of the kernels for convolutions with one image channel a group, and of sums over all
 * pixels of a channel. */
#ifndef WK_KERNELS_DEPTHWISE_H
#define WK_KERNELS_DEPTHWISE_H

#include "conv.h"
#include "planes.h"

typedef struct {
    i32 size;                     /* of the gathered tensor */
    i32 step, first, hop;         /* pixel o of the result and tap t meet it at o * step + first + t * hop */
    i32 taps, out;                /* of the kernel, pixels of the result */
    wk_divisor by_out, by_stride; /* by_stride: the meeting point is this times the gathered pixel */
} depth_axis;

enum { WK_DEPTH_ROWS = 4 }; /* results that a thread makes of 3 x 3 taps */

typedef struct {
    conv_view b;               /* what is gathered */
    const void *weight, *bias; /* packed; bias may be NULL */
    void *out;                 /* packed */
    depth_axis axis[3];
    wk_divisor multiplier; /* map channels of each image channel */
    plane_walk walk;       /* planes: the result's; items: strips of `rows` pixels down */
    wk_divisor strips;     /* of one depth */
    i32 rows;
    i32 turned; /* taps in the opposite order */
    conv_end end;
} depth_args;

/* Sums over the pixels of all images, a block (and a part of the pixels) for each channel of the map. */
typedef struct {
    conv_view map, image; /* image: only where weights are made */
    void *out;            /* [channels][taps], or sums of parts before it: [splits][channels][taps] */
    void *partial;
    depth_axis axis[3]; /* out: of the map */
    wk_divisor pixels, multiplier;
    u32 channels, taps, k, k_each; /* k: pixels of all images */
} depth_sum_args;

#endif
