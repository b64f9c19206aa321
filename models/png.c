/* png.c: PNG files: every colour type and bit depth, interlaced or not, with their checksums. */
#include "image_int.h"
#include <stdlib.h>
#include <string.h>
#include "inflate.h"

enum { GREY = 0, RGB = 2, PALETTE = 3, GREY_ALPHA = 4, RGB_ALPHA = 6 };

typedef struct {
    wm_encoded *s;
    uint32_t width, height;
    int depth, colour, channels;
    bool interlaced;
    uint8_t palette[256][3];
    uint32_t colours;            /* of the palette */
    size_t idat_first, idat_end; /* where the first data chunk begins and the last one ends */
    size_t idat_bytes;
} png;

/* Interlaced images are seven smaller ones: where each begins and in what steps it goes on. */
static const struct {
    uint8_t x, y, dx, dy;
} passes[] = {{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4},
              {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}, {0, 0, 1, 1}};
enum { WHOLE = 7 };

static uint32_t crc(const uint8_t *data, size_t size)
{
    static const uint32_t nibble[16] = {
        0x00000000, 0x1DB71064, 0x3B6E20C8, 0x26D930AC, 0x76DC4190, 0x6B6B51F4, 0x4DB26158, 0x5005713C,
        0xEDB88320, 0xF00F9344, 0xD6D6A3E8, 0xCB61B38C, 0x9B64C2B0, 0x86D3D2D4, 0xA00AE278, 0xBDBDF21C};
    uint32_t c = 0xFFFFFFFF;
    for (size_t i = 0; i < size; i++) {
        c ^= data[i];
        c = c >> 4 ^ nibble[c & 15];
        c = c >> 4 ^ nibble[c & 15];
    }
    return ~c;
}

static bool read_header(png *p, size_t at, uint32_t length)
{
    static const uint8_t channels[] = {1, 0, 3, 1, 2, 0, 4};
    const uint8_t *h = p->s->data + at;
    if (length != 13)
        return wm_wrong(p->s, at, "a header that is not 13 bytes long");
    p->width = wm_be32(h);
    p->height = wm_be32(h + 4);
    p->depth = h[8];
    p->colour = h[9];
    p->channels = p->colour <= RGB_ALPHA ? channels[p->colour] : 0;
    p->interlaced = h[12];
    bool packed = p->depth == 1 || p->depth == 2 || p->depth == 4;
    if (!p->channels)
        return wm_wrong(p->s, at + 9, "no such colour type");
    if (p->depth != 8 && !(p->depth == 16 && p->colour != PALETTE) &&
        !(packed && (p->colour == GREY || p->colour == PALETTE)))
        return wm_wrong(p->s, at + 8, "no such bit depth for this colour type");
    if (h[10] || h[11] || h[12] > 1)
        return wm_wrong(p->s, at + 10, "an unknown compression, filter or interlace method");
    return wm_encoded_size(p->s, at, p->width, p->height);
}

static bool read_palette(png *p, size_t at, uint32_t length)
{
    if (p->colours || p->idat_first)
        return wm_wrong(p->s, at, "a palette where there can be none");
    if (length == 0 || length % 3 || length > sizeof p->palette)
        return wm_wrong(p->s, at, "a palette that is not 1 to 256 colours");
    memcpy(p->palette, p->s->data + at, length);
    p->colours = length / 3;
    return true;
}

static bool note_data(png *p, size_t at, uint32_t length)
{
    if (p->colour == PALETTE && !p->colours)
        return wm_wrong(p->s, at, "data before the palette");
    if (p->idat_first && at - 8 != p->idat_end)
        return wm_wrong(p->s, at, "data chunks with others in between");
    if (!p->idat_first)
        p->idat_first = at - 8;
    p->idat_end = at + length + 4;
    p->idat_bytes += length;
    return true;
}

/* One chunk whose length, data and checksum lie within the file; *more is false at the last one. */
static bool read_chunk(png *p, size_t at, uint32_t length, bool *more)
{
    const uint8_t *type = p->s->data + at - 4;
    if (wm_be32(p->s->data + at + length) != crc(type, (size_t)length + 4))
        return wm_wrong(p->s, at + length, "the checksum of a chunk is wrong");
    if (!p->channels != !memcmp(type, "IHDR", 4))
        return wm_wrong(p->s, at - 4, "expected one IHDR chunk, at the beginning");
    if (!p->channels)
        return read_header(p, at, length);
    if (!memcmp(type, "PLTE", 4))
        return read_palette(p, at, length);
    if (!memcmp(type, "IDAT", 4))
        return note_data(p, at, length);
    *more = memcmp(type, "IEND", 4) != 0;
    if (*more && !(type[0] & 32))
        return wm_wrong(p->s, at - 4, "a chunk that must be understood and is not known");
    return true;
}

static bool read_chunks(png *p)
{
    const wm_encoded *s = p->s;
    size_t at = 8;
    for (bool more = true; more;) {
        if (s->size - at < 12)
            return wm_wrong(p->s, s->size, "the file ends too early");
        uint32_t length = wm_be32(s->data + at);
        if (length > s->size - at - 12)
            return wm_wrong(p->s, at, "a chunk reaches beyond the end of the file");
        if (!read_chunk(p, at + 8, length, &more))
            return false;
        at += (size_t)length + 12;
    }
    return p->idat_first ? true : wm_wrong(p->s, at - 12, "the file has no image data");
}

static size_t row_bytes(const png *p, uint32_t width)
{
    return ((size_t)width * (size_t)p->channels * (size_t)p->depth + 7) / 8;
}

static uint32_t pass_width(const png *p, int i)
{
    return (p->width + passes[i].dx - 1 - passes[i].x) / passes[i].dx;
}

static uint32_t pass_height(const png *p, int i)
{
    return (p->height + passes[i].dy - 1 - passes[i].y) / passes[i].dy;
}

/* Bytes of a pass: a filter byte and the pixels of each row; none when no pixel falls into it. */
static size_t pass_bytes(const png *p, int i)
{
    uint32_t width = pass_width(p, i);
    return width ? (row_bytes(p, width) + 1) * pass_height(p, i) : 0;
}

static uint8_t paeth(int a, int b, int c)
{
    int da = abs(b - c), db = abs(a - c), dc = abs(a + b - 2 * c);
    return (uint8_t)(da <= db && da <= dc ? a : db <= dc ? b : c);
}

/* Undoes a row's filter; above is NULL for the first row, step the bytes of a pixel (1 where it has less). */
static bool unfilter(int filter, uint8_t *row, const uint8_t *above, size_t n, size_t step)
{
    for (size_t i = 0; i < n; i++) {
        int a = i < step ? 0 : row[i - step], b = above ? above[i] : 0,
            c = above && i >= step ? above[i - step] : 0;
        switch (filter) {
        case 0: return true;
        case 1: row[i] = (uint8_t)(row[i] + a); break;
        case 2: row[i] = (uint8_t)(row[i] + b); break;
        case 3: row[i] = (uint8_t)(row[i] + (a + b) / 2); break;
        case 4: row[i] = (uint8_t)(row[i] + paeth(a, b, c)); break;
        default: return false;
        }
    }
    return filter <= 4;
}

/* Sample i of a row: its high byte for 16 bits; grey of fewer than 8 bits is spread to 0..255 later. */
static uint32_t sample(const png *p, const uint8_t *row, size_t i)
{
    if (p->depth >= 8)
        return row[i * (size_t)(p->depth / 8)];
    size_t bit = i * (size_t)p->depth;
    return (uint32_t)row[bit / 8] >> (8 - p->depth - (int)(bit % 8)) & ((1u << p->depth) - 1);
}

static bool put_pixel(const png *p, const uint8_t *row, size_t x, uint8_t *rgb)
{
    uint32_t v = sample(p, row, x * (size_t)p->channels);
    if (p->colour == PALETTE) {
        if (v >= p->colours)
            return false;
        memcpy(rgb, p->palette[v], 3);
    } else if (p->channels >= 3) {
        for (size_t c = 0; c < 3; c++)
            rgb[c] = (uint8_t)sample(p, row, x * (size_t)p->channels + c);
    } else {
        memset(rgb, (int)(p->depth < 8 ? v * 255 / ((1u << p->depth) - 1) : v), 3);
    }
    return true;
}

/* Undoes the filters of a pass in place and spreads its pixels over the image. */
static bool read_pass(png *p, int i, uint8_t *raw, wm_image *image)
{
    uint32_t width = pass_width(p, i), height = width ? pass_height(p, i) : 0;
    size_t n = row_bytes(p, width), step = (size_t)(p->channels * p->depth / 8);
    for (uint32_t y = 0; y < height; y++, raw += n + 1) {
        if (!unfilter(raw[0], raw + 1, y ? raw - n : NULL, n, step ? step : 1))
            return wm_wrong(p->s, p->idat_first, "a row has a filter that does not exist");
        uint8_t *to = image->rgb + 3 * ((size_t)(passes[i].y + y * passes[i].dy) * p->width + passes[i].x);
        for (uint32_t x = 0; x < width; x++, to += 3 * passes[i].dx)
            if (!put_pixel(p, raw + 1, x, to))
                return wm_wrong(p->s, p->idat_first, "a pixel has a colour that the palette lacks");
    }
    return true;
}

/* The next data chunk: the one behind the checksum of the last, as long as they go. */
static int next_data(wm_bytes *in)
{
    const png *p = in->ctx;
    const uint8_t *chunk = in->end + 4;
    if (chunk == p->s->data + p->idat_end)
        return 0;
    in->at = chunk + 8;
    in->end = in->at + wm_be32(chunk);
    return 1;
}

static bool read_pixels(png *p, wm_image *image)
{
    int first = p->interlaced ? 0 : WHOLE, end = p->interlaced ? WHOLE : WHOLE + 1;
    size_t bytes = 0;
    for (int i = first; i < end; i++)
        bytes += pass_bytes(p, i);
    if (bytes / 1032 > p->idat_bytes) /* deflate makes data at most 1032 times smaller */
        return wm_wrong(p->s, p->idat_first, "the file has too few data for its size");
    uint8_t *raw = wm_encoded_alloc(p->s, bytes, 1);
    image->rgb = wm_encoded_alloc(p->s, (size_t)p->width * p->height, 3);
    bool ok = raw && image->rgb;
    if (ok) {
        const uint8_t *data = p->s->data + p->idat_first + 8;
        wm_bytes in = {data, data + wm_be32(data - 8), next_data, p};
        const char *reason = wm_inflate(&in, raw, bytes);
        ok = !reason || wm_wrong(p->s, (size_t)(in.at - p->s->data), reason);
    }
    uint8_t *at = raw;
    for (int i = first; ok && i < end; i++) {
        ok = read_pass(p, i, at, image);
        at += pass_bytes(p, i);
    }
    free(raw);
    return ok;
}

bool wm_png_decode(wm_encoded *s, wm_image *image)
{
    png p = {.s = s};
    if (!read_chunks(&p))
        return false;
    image->width = (int)p.width;
    image->height = (int)p.height;
    if (read_pixels(&p, image))
        return true;
    wm_image_free(image);
    return false;
}
