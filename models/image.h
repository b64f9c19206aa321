/* image.h: images from PNG and JPEG files, made ready for a network.
 *
 * A file that is not wholly right is refused with WK_ERR_FORMAT and a line that names the file, the byte and what is
 * wrong there. Memory stays in proportion to the file: sizes that its bytes cannot fill are refused before any is
 * asked for. */
#ifndef WM_IMAGE_H
#define WM_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "error.h"

/* Red, green and blue of each pixel, a byte each, row by row. Alpha is left out, grey is three times the same, 16 bits
 * are cut to 8: what Pillow's convert("RGB") gives. */
typedef struct {
    int width, height;
    uint8_t *rgb; /* given back with wm_image_free */
} wm_image;

/* At most this many pixels. */
enum { WM_MAX_PIXELS = 1 << 27 };

/* Reads a file of either kind: what its first bytes say it is. */
bool wm_image_read(wm_image *image, const char *path);
/* The same from memory; name is for messages. */
bool wm_image_decode(wm_image *image, const char *name, const void *data, size_t size);
void wm_image_free(wm_image *image);

/* Another size, by Pillow's bilinear filter, which widens when it makes smaller (antialias): the same bytes. */
bool wm_image_resize(const wm_image *image, int width, int height, wm_image *out);

/* What torchvision's models were trained on: the shorter side to `resize` pixels, the middle crop x crop of that,
 * (value / 255 - mean) / std with ImageNet's numbers. out holds 3 * crop * crop floats, planes of red, green, blue. */
bool wm_image_prepare(const wm_image *image, int resize, int crop, float *out);

#endif
