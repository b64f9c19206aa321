/* image_int.h: what the decoders of image files share. */
#ifndef WM_IMAGE_INT_H
#define WM_IMAGE_INT_H

#include "image.h"

/* A file in memory and what is wrong with it: the first reason stays. */
typedef struct {
    const uint8_t *data;
    size_t size;
    const char *reason; /* NULL: nothing so far */
    size_t at;
    bool memory; /* there was not enough of it */
} wm_encoded;

static inline bool wm_wrong(wm_encoded *s, size_t at, const char *reason)
{
    if (!s->reason) {
        s->reason = reason;
        s->at = at;
    }
    return false;
}

/* Memory for a decoder, all zeros; NULL with the reason noted. */
void *wm_encoded_alloc(wm_encoded *s, size_t count, size_t size);
/* Whether an image of that size is allowed. */
bool wm_encoded_size(wm_encoded *s, size_t at, uint32_t width, uint32_t height);

static inline uint32_t wm_be32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static inline uint32_t wm_be16(const uint8_t *p) { return (uint32_t)p[0] << 8 | p[1]; }

/* Each gives true with the image, or false with the reason noted and no memory held. */
bool wm_png_decode(wm_encoded *s, wm_image *image);
bool wm_jpeg_decode(wm_encoded *s, wm_image *image);

#endif
