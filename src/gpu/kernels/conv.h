/* conv.h: the arguments of the convolution kernels; see ops/conv.h for images, maps and the relation between them.
 *
 * A convolution is a product of matrices, one of which is gathered as it is needed:
 *     the map from the image:  map[m, p]    = sum over k of weight[m, k] * image(p, k)
 *     the image from the map:  image[m, p]  = sum over k of weight[k, m] * map(p, k)
 *     the weights from both:   weight[m, k] = sum over p of map[m, p] * image(p, k)
 * where p counts the pixels of all images, k channels and taps. Pixel o and tap t meet the gathered tensor at
 *     o * step + first + t * hop
 * in each dimension, or nowhere where that lies outside. The image from a map that was made with a stride is made by
 * phases: pixels `stride` apart use the same taps, so that each phase is a plain convolution of its own. */
#ifndef WK_KERNELS_CONV_H
#define WK_KERNELS_CONV_H

#include "types.h"

enum { CONV_MAP, CONV_IMAGE, CONV_PHASES, CONV_WEIGHT };

/* What lies in shared memory for conv_patch.hip: elements of a channel, channels, and at most so many taps. */
enum { CONV_PATCH = 1024, CONV_PATCH_CHANNELS = 4, CONV_PATCH_TAPS = 9 };

/* One dimension of the relation. */
typedef struct {
    i32 size;              /* of the gathered tensor */
    i32 step, first, hop;  /* see above */
    i32 tap, tap_step;     /* tap t is number tap + t * tap_step of the kernel */
    i32 pixel, pixel_step; /* pixel o is number pixel + o * pixel_step of the result */
    wk_divisor taps, pixels;
} conv_axis;

typedef struct {
    conv_axis axis[3];
    wk_divisor taps, pixels; /* of all three */
    i32 empty;               /* no tap reaches this phase */
} conv_space;

/* A tensor of pixels: strides of image, channel and each dimension. */
typedef struct {
    const void *p;
    i64 n, c, s[3];
    i64 group; /* from one group's channels to the next's */
} conv_view;

/* What results end with: + z, times slope below 0, held between lo and hi. */
typedef struct {
    const void *z; /* as the result, packed; or NULL */
    double slope, lo, hi;
    i32 some; /* 0: nothing of it */
} conv_end;

typedef struct {
    conv_view b;             /* what is gathered */
    conv_view a;             /* weights (packed; only p and group count), or the map where weights are made */
    const void *bias;        /* by channels of the result, or NULL */
    void *out;               /* packed */
    void *partial;           /* sums of parts of k, in the compute type: splits x total */
    i64 total;               /* elements of out */
    i64 out_n, out_c;        /* strides of out: images, rows m */
    i32 out_high, out_wide;  /* its last dimensions, in pixels */
    i32 m, channels, images; /* rows of the product, channels of k (or of the columns), images; of a group */
    i32 taps;                /* of the whole kernel */
    i32 k_each;              /* how much of k a block does */
    u32 work, abreast;       /* tiles of the result; of those in a row of the grid */
    wk_divisor m_tiles, n_tiles, phases;
    wk_divisor image_tiles, patch_wide; /* patches: tiles of a plane, columns of a patch */
    conv_space space;
    const conv_space *spaces; /* by phases */
    i32 kernel[3];            /* for phases */
    conv_end end;
} conv_args;

typedef struct {
    i32 image, kernel, stride, padding, dilation, period; /* every period-th tap reaches the same phase */
} conv_geometry_dim;

/* The spaces of all phases. */
typedef struct {
    conv_geometry_dim dim[3];
    i32 size[3]; /* of the map */
    u32 count;
    wk_divisor phases[3]; /* in each dimension */
    conv_space *spaces;
} conv_phases_args;

/* The sum of parts. */
typedef struct {
    const void *partial, *bias;
    void *out;
    i64 total;
    i32 splits;
    wk_divisor pixels, channels; /* of the result, for the bias */
    conv_end end;
} conv_sum_args;

#endif
