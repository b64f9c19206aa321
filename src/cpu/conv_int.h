/* conv_int.h: what the files of the convolutions share. Nothing here is for others.
 *
 *   conv.c         the three computations of ops/conv.h as products on the GEMM core
 *   conv_window.c  the source with its zero padding, laid out so that patches are runs of memory
 *   conv_pack.c    patches of the window to panels of the product's B, and results to where they belong
 *   conv_rows.c    the same without patches, for stretches of rows whose window stays in the cache
 *   conv_winograd.c  kernels of 3x3, 2x2 and 1x3 with fewer products
 *   conv_direct.c  the other way, for groups of so few channels that a product of matrices gains nothing
 *
 * The map from the image, and the image from the map, are both gathers: every result is a sum over source channels
 * and taps, and result q takes source position first + q * step + t * hop at tap t, in each dimension. For the image
 * from the map that holds for every stride-th pixel: the taps that reach pixel i are those with
 * (i + padding - t * dilation) divisible by the stride, so pixels of equal i modulo stride (a phase) have the same
 * taps, and their sources are neighbours. */
#ifndef WK_CPU_CONV_INT_H
#define WK_CPU_CONV_INT_H

#include "ops/conv.h"
#include "activation.h"
#include "gemm.h"

typedef struct {
    int64_t count; /* results */
    int64_t step, taps, first, hop;
} conv_axis;

static inline int64_t conv_min(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t conv_max(int64_t a, int64_t b) { return a > b ? a : b; }
static inline int64_t conv_pixels(const int64_t *size) { return size[0] * size[1] * size[2]; }
/* Rounded down and up; b > 0. */
static inline int64_t conv_floor_div(int64_t a, int64_t b) { return a / b - (a % b < 0); }
static inline int64_t conv_ceil_div(int64_t a, int64_t b) { return a / b + (a % b > 0); }

/* ---- The window ---- */

/* Positions lo to lo + size - 1 of the source in each dimension, zeros where the source has none. A row is kept in
 * `split` parts, part r holding the positions r, r + split, ...: with split = step, neighbouring results find their
 * sources side by side. */
typedef struct {
    wk_dtype dtype, source_dtype; /* the source's, or the compute dtype */
    int64_t channels, source[3];  /* the source: [images, channels, source..], packed */
    int64_t lo[3], size[3];
    int64_t split, part;               /* elements of a part */
    int64_t image, channel, slab, row; /* strides in elements */
    bool in_place;                     /* the source itself will do */
    char *data;
} conv_window;

/* Fills in strides and in_place from dtype, channels, source, lo, size and split. False when it would be huge. */
bool WK_ISA(conv_window_plan)(conv_window *w);
/* Brings images of the source into data, or points data at them if they can be used in place. */
void WK_ISA(conv_window_fill)(conv_window *w, const void *source, int64_t images);

/* One channel of it, without in_place. */
void WK_ISA(conv_window_plane)(const conv_window *w, const void *source, char *dst);

/* n values of a row, step elements apart, of the source's dtype to the same or the compute dtype. Rows are short: it is
 * quick to begin with. */
void WK_ISA(conv_copy_values)(wk_dtype dtype, wk_dtype source, const char *src, int64_t step, char *dst,
                              int64_t n);

/* Where window position `at` of a row is. */
static inline int64_t conv_window_column(const conv_window *w, int64_t at)
{
    return at % w->split * w->part + at / w->split;
}

/* ---- Patches ---- */

/* The matrix of patches: row p is a source channel and a tap, column j an image and a result pixel. Element (p, j)
 * is at data[offsets[p] + place of j]. */
typedef struct {
    wk_dtype dtype;
    const char *data;
    const int64_t *offsets;
    bool apart;       /* rows have nothing in common: one tap a channel */
    int64_t count[3]; /* result pixels */
    int64_t image, slab,
        row; /* from one image, slab and row of results to the next; pixels of a row are neighbours */
    struct { /* where results go; the same from pixel to pixel */
        wk_dtype dtype;
        char *data;
        int64_t image, channel, slab, row, pixel;
    } out;
} conv_patches;

/* The hooks of wk_gemm_args for these patches as B; ctx is the conv_patches. */
wk_gemm_pack_fn WK_ISA(conv_pick_pack)(wk_dtype dtype);
void WK_ISA(conv_pack_pairs)(const void *ctx, int64_t p0, int64_t pn, int64_t j0, int64_t jn, int64_t nr,
                             void *dst);
void WK_ISA(conv_store)(const void *ctx, int64_t i, int64_t j0, int64_t n, const void *v);
/* For the transposed patches as B. */
void WK_ISA(conv_pack_transposed)(const void *ctx, int64_t p0, int64_t pn, int64_t j0, int64_t jn, int64_t nr,
                                  void *dst);

/* Offsets of the rows of the patch matrix: channel by channel, tap by tap. */
void WK_ISA(conv_offsets)(const conv_window *w, const conv_axis *axis, int64_t channels, int64_t *offsets);
/* n values of the compute type to every step-th element. */
void WK_ISA(conv_store_run)(wk_dtype dtype, const void *v, char *dst, int64_t step, int64_t n);

/* ---- Without patches ---- */

typedef struct {
    wk_dtype dtype;
    const char *source; /* [images, groups * from, size..], packed */
    int64_t images, groups, from, to, size[3];
    conv_axis axis[3];
    const char *weights; /* [groups, to, from, taps..], or [groups, from, taps.., to]; packed */
    int64_t weight_row,
        weight_step;              /* from one result channel to the next; from one source channel and tap */
    const void *bias;             /* NULL or in the compute type */
    const wk_activation_ctx *act; /* NULL, or what results end with: not for conv_direct_run */
    const conv_patches
        *patches; /* where results go; those of a group are `to` channels after the last one's */
} conv_direct;

bool WK_ISA(conv_direct_takes)(int64_t from, int64_t to);
/* False when memory is missing. */
bool WK_ISA(conv_direct_run)(const conv_direct *s);

/* Whether conv_rows_run is a good way; it can do all of f32, f16 and bf16. */
bool WK_ISA(conv_rows_takes)(const conv_direct *s);
/* False when memory is missing. */
bool WK_ISA(conv_rows_run)(const conv_direct *s);

typedef enum {
    CONV_DONE,
    CONV_NO_MEMORY,
    CONV_ODD, /* some numbers are not finite, or nearly so: to be done in another way */
} conv_outcome;

/* Whether conv_winograd_run is a good way, and possible. */
bool WK_ISA(conv_winograd_takes)(const conv_direct *s);
conv_outcome WK_ISA(conv_winograd_run)(const conv_direct *s);

#endif
