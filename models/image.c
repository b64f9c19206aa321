/* image.c: images: which decoder a file needs, other sizes, and the numbers a network takes. */
#include "image_int.h"
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "file.h"

void *wm_encoded_alloc(wm_encoded *s, size_t count, size_t size)
{
    void *p = calloc(count ? count : 1, size);
    if (!p) {
        s->memory = true;
        wm_wrong(s, 0, "not enough memory");
    }
    return p;
}

bool wm_encoded_size(wm_encoded *s, size_t at, uint32_t width, uint32_t height)
{
    if (width == 0 || height == 0)
        return wm_wrong(s, at, "an image without pixels");
    if (width > INT_MAX || (uint64_t)width * height > WM_MAX_PIXELS)
        return wm_wrong(s, at, "an image of more than 2^27 pixels");
    return true;
}

void wm_image_free(wm_image *image)
{
    free(image->rgb);
    *image = (wm_image){0};
}

bool wm_image_decode(wm_image *image, const char *name, const void *data, size_t size)
{
    wm_encoded s = {.data = data, .size = size};
    *image = (wm_image){0};
    bool ok;
    if (size >= 8 && !memcmp(data, "\x89PNG\r\n\x1a\n", 8))
        ok = wm_png_decode(&s, image);
    else if (size >= 3 && !memcmp(data, "\xFF\xD8\xFF", 3))
        ok = wm_jpeg_decode(&s, image);
    else
        ok = wm_wrong(&s, 0, "neither a PNG nor a JPEG file");
    if (!ok)
        wm_fail(s.memory ? WK_ERR_MEMORY : WK_ERR_FORMAT, "%s: byte %zu: %s", name, s.at, s.reason);
    return ok;
}

bool wm_image_read(wm_image *image, const char *path)
{
    wm_map map;
    *image = (wm_image){0};
    if (!wm_map_open(&map, path))
        return false;
    bool ok = wm_image_decode(image, path, map.data, map.size);
    wm_map_close(&map);
    return ok;
}

/* ---- Another size. The weights are fractions of 2^22, each pass rounds to bytes: as Pillow does. ---- */

enum { WEIGHT_BITS = 22 };

/* For each place of a line of the new size: the first old place that counts, how many do, and their weights. */
typedef struct {
    int taps;       /* room for each place */
    int *first, *n; /* of each place */
    int32_t *weight;
} filter;

static void filter_free(filter *f)
{
    free(f->first);
    free(f->n);
    free(f->weight);
}

/* The weights of one place whose middle is at `centre` of the old line. */
static void filter_place(filter *f, int place, int from, double centre, double scale)
{
    double sum = 0;
    int first = (int)(centre - scale + 0.5), end = (int)(centre + scale + 0.5);
    first = first < 0 ? 0 : first;
    end = end > from ? from : end;
    int32_t *weight = f->weight + (size_t)place * (size_t)f->taps;
    for (int pass = 0; pass < 2; pass++)
        for (int i = first; i < end; i++) {
            double w = 1 - fabs((i - centre + 0.5) / scale);
            if (pass == 0)
                sum += w > 0 ? w : 0;
            else
                weight[i - first] = (int32_t)(0.5 + (w > 0 ? w / sum : 0) * (1 << WEIGHT_BITS));
        }
    f->first[place] = first;
    f->n[place] = end - first;
}

static bool filter_make(filter *f, int from, int to)
{
    double ratio = (double)from / to, scale = ratio < 1 ? 1 : ratio; /* making smaller widens the triangle */
    f->taps = (int)ceil(scale) * 2 + 1;
    f->first = malloc((size_t)to * sizeof *f->first);
    f->n = malloc((size_t)to * sizeof *f->n);
    f->weight = calloc((size_t)to * (size_t)f->taps, sizeof *f->weight);
    if (!f->first || !f->n || !f->weight) {
        filter_free(f);
        return false;
    }
    for (int i = 0; i < to; i++)
        filter_place(f, i, from, (i + 0.5) * ratio, scale);
    return true;
}

/* One pass: `lines` lines of `to` places each. A place's neighbours are `in_step` bytes apart, lines `in_line`. */
static void filter_lines(const filter *f, int lines, int to, const uint8_t *in, size_t in_line,
                         size_t in_step, uint8_t *out, size_t out_line, size_t out_step)
{
    for (int l = 0; l < lines; l++)
        for (int i = 0; i < to; i++)
            for (size_t c = 0; c < 3; c++) {
                const uint8_t *p = in + (size_t)l * in_line + (size_t)f->first[i] * in_step + c;
                const int32_t *weight = f->weight + (size_t)i * (size_t)f->taps;
                int64_t sum = 1 << (WEIGHT_BITS - 1);
                for (int k = 0; k < f->n[i]; k++, p += in_step)
                    sum += (int64_t)*p * weight[k];
                sum >>= WEIGHT_BITS;
                out[(size_t)l * out_line + (size_t)i * out_step + c] = (uint8_t)(sum > 255 ? 255 : sum);
            }
}

bool wm_image_resize(const wm_image *image, int width, int height, wm_image *out)
{
    filter across = {0}, down = {0};
    size_t old_line = 3 * (size_t)image->width, line = 3 * (size_t)width;
    *out = (wm_image){0};
    if (width < 1 || height < 1 || (int64_t)width * height > WM_MAX_PIXELS) {
        wm_fail(WK_ERR_PARAM, "image: cannot be made %d x %d", width, height);
        return false;
    }
    uint8_t *between = malloc(line * (size_t)image->height);
    uint8_t *rgb = malloc(line * (size_t)height);
    bool ok = between && rgb && filter_make(&across, image->width, width) &&
              filter_make(&down, image->height, height);
    if (ok) {
        filter_lines(&across, image->height, width, image->rgb, old_line, 3, between, line, 3);
        filter_lines(&down, width, height, between, 3, line, rgb, 3, line);
        *out = (wm_image){width, height, rgb};
    } else {
        free(rgb);
        wm_fail(WK_ERR_MEMORY, "image: not enough memory to make it %d x %d", width, height);
    }
    free(between);
    filter_free(&across);
    filter_free(&down);
    return ok;
}

/* Half of what is over, to the nearest, and to the even one of two: as Python rounds. */
static int crop_from(int size, int crop)
{
    int over = size - crop, half = over / 2;
    return over % 2 && half % 2 ? half + 1 : half;
}

bool wm_image_prepare(const wm_image *image, int resize, int crop, float *out)
{
    static const float mean[] = {0.485f, 0.456f, 0.406f}, deviation[] = {0.229f, 0.224f, 0.225f};
    int w = image->width, h = image->height;
    int64_t longer = (int64_t)resize * (w > h ? w : h) / (w > h ? h : w);
    wm_image small;
    if (crop < 1 || crop > resize || longer > INT_MAX) {
        wm_fail(WK_ERR_PARAM, "image: a crop of %d from %d x %d pixels resized to %d", crop, w, h, resize);
        return false;
    }
    if (!wm_image_resize(image, w > h ? (int)longer : resize, w > h ? resize : (int)longer, &small))
        return false;
    int left = crop_from(small.width, crop), top = crop_from(small.height, crop);
    for (int c = 0; c < 3; c++)
        for (int y = 0; y < crop; y++)
            for (int x = 0; x < crop; x++) {
                size_t at = (size_t)(top + y) * (size_t)small.width + (size_t)(left + x);
                *out++ = ((float)small.rgb[3 * at + (size_t)c] / 255.0f - mean[c]) / deviation[c];
            }
    wm_image_free(&small);
    return true;
}
