/* jpeg_pixels.c: JPEG coefficients to samples, samples to pixels. The arithmetic is that of libjpeg's default settings
 * (13-bit inverse DCT, triangle filter for chroma, 16-bit colour conversion), so that the pixels are the same. */
#include "jpeg.h"
#include <string.h>

static uint8_t clamp8(int64_t v) { return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v); }

/* The inverse DCT of eight numbers that lie `step` apart, times 2^13. Constants are cosines times 2^13, as sums of those
 * that Loeffler's algorithm has. */
static void idct8(const int32_t *in, int step, int64_t *out)
{
    const int64_t a0 = in[0], a1 = in[step], a2 = in[2 * step], a3 = in[3 * step], a4 = in[4 * step],
                  a5 = in[5 * step], a6 = in[6 * step], a7 = in[7 * step];
    const int64_t sum = (a0 + a4) * 8192, difference = (a0 - a4) * 8192;
    const int64_t outer = 10703 * a2 + 4433 * a6, inner = 4433 * a2 - 10704 * a6;
    const int64_t even[4] = {sum + outer, difference + inner, difference - inner, sum - outer};
    const int64_t odd[4] = {
        11363 * a1 + 9633 * a3 + 6437 * a5 + 2260 * a7, 9633 * a1 - 2259 * a3 - 11362 * a5 - 6436 * a7,
        6437 * a1 - 11362 * a3 + 2261 * a5 + 9633 * a7, 2260 * a1 - 6436 * a3 + 9633 * a5 - 11363 * a7};
    for (int i = 0; i < 4; i++) {
        out[i] = even[i] + odd[i];
        out[7 - i] = even[i] - odd[i];
    }
}

static void block_samples(const int16_t *block, const uint16_t *quant, uint8_t *to, size_t stride)
{
    int32_t a[64], b[64];
    int64_t line[8];
    for (int i = 0; i < 64; i++)
        a[i] = block[i] * quant[i];
    for (int x = 0; x < 8; x++) { /* columns, keeping two bits more */
        idct8(a + x, 8, line);
        for (int y = 0; y < 8; y++)
            b[8 * y + x] = (int32_t)((line[y] + (1 << 10)) >> 11);
    }
    for (int y = 0; y < 8; y++) {
        idct8(b + 8 * y, 1, line);
        for (int x = 0; x < 8; x++)
            to[stride * (size_t)y + (size_t)x] = clamp8(((line[x] + (1 << 17)) >> 18) + 128);
    }
}

void jpeg_samples(jpeg *j)
{
    for (int i = 0; i < j->n; i++) {
        const jpeg_component *c = &j->c[i];
        size_t stride = (size_t)c->blocks_w * 8;
        for (int y = 0; y < c->blocks_h; y++)
            for (int x = 0; x < c->blocks_w; x++)
                block_samples(c->blocks[(size_t)y * (size_t)c->blocks_w + (size_t)x], j->quant[c->table],
                              c->samples + 8 * ((size_t)y * stride + (size_t)x), stride);
    }
}

static const uint8_t *sample_row(const jpeg_component *c, int y)
{
    y = y < 0 ? 0 : y >= c->height ? c->height - 1 : y;
    return c->samples + (size_t)y * (size_t)c->blocks_w * 8;
}

/* Twice as wide: each new sample is three parts of the nearest old one and one part of the next nearest, at the ends of
 * itself. With a row far, near and far are first weighted the same way. */
static void widen(const uint8_t *near, const uint8_t *far, int n, uint8_t *out)
{
    int left = far ? 8 : 1, right = far ? 7 : 2, shift = far ? 4 : 2;
    for (int i = 0; i < n; i++) {
        int before = i > 0 ? i - 1 : 0, after = i + 1 < n ? i + 1 : i;
        int v = far ? 3 * near[i] + far[i] : near[i];
        int b = far ? 3 * near[before] + far[before] : near[before];
        int a = far ? 3 * near[after] + far[after] : near[after];
        out[2 * i] = (uint8_t)((3 * v + b + left) >> shift);
        out[2 * i + 1] = (uint8_t)((3 * v + a + right) >> shift);
    }
}

/* Row y of a component at the image's full size. */
static const uint8_t *full_row(const jpeg *j, const jpeg_component *c, int y, uint8_t *out)
{
    int h = j->h_max / c->h, v = j->v_max / c->v, at = y / v;
    const uint8_t *near = sample_row(c, at);
    if (h == 1 && v == 1)
        return near;
    const uint8_t *far = v == 2 ? sample_row(c, y % 2 ? at + 1 : at - 1) : NULL;
    if (h == 2 && v <= 2 && c->width > 2) {
        widen(near, far, c->width, out);
    } else if (h == 1 && v == 2) {
        for (int x = 0; x < j->width; x++)
            out[x] = (uint8_t)((3 * near[x] + far[x] + 1 + y % 2) >> 2);
    } else {
        for (int x = 0; x < j->width; x++)
            out[x] = near[x / h];
    }
    return out;
}

/* Whether three components are red, green and blue themselves: what an Adobe marker says, or their names. */
static bool is_rgb(const jpeg *j)
{
    if (j->jfif)
        return false;
    if (j->adobe >= 0)
        return j->adobe == 0;
    return j->c[0].id == 'R' && j->c[1].id == 'G' && j->c[2].id == 'B';
}

void jpeg_row(const jpeg *j, int y, uint8_t *up, uint8_t *rgb)
{
    const uint8_t *row[JPEG_COMPONENTS] = {NULL};
    for (int i = 0; i < j->n; i++)
        row[i] = full_row(j, &j->c[i], y, up + (size_t)i * ((size_t)j->width + 16));
    if (j->n == 1) {
        for (int x = 0; x < j->width; x++)
            memset(rgb + 3 * x, row[0][x], 3);
        return;
    }
    if (is_rgb(j)) {
        for (int x = 0; x < j->width; x++)
            for (int i = 0; i < 3; i++)
                rgb[3 * x + i] = row[i][x];
        return;
    }
    for (int x = 0; x < j->width; x++) {
        int luma = row[0][x], cb = row[1][x] - 128, cr = row[2][x] - 128;
        rgb[3 * x] = clamp8(luma + ((91881 * cr + 32768) >> 16));
        rgb[3 * x + 1] = clamp8(luma + ((-22554 * cb - 46802 * cr + 32768) >> 16));
        rgb[3 * x + 2] = clamp8(luma + ((116130 * cb + 32768) >> 16));
    }
}
