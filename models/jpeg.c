/* jpeg.c: JPEG files, baseline and progressive, grey or of three components. Here: markers and headers. */
#include "jpeg.h"
#include <stdlib.h>
#include <string.h>

const uint8_t jpeg_order[64] = {0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,
                                12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6,  7,  14, 21, 28,
                                35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51,
                                58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63};

/* The part of a marker that is read: from at to end. */
typedef struct {
    size_t at, end;
} segment;

static bool read_quantisation(jpeg *j, segment g)
{
    const uint8_t *d = j->s->data;
    while (g.at < g.end) {
        int wide = d[g.at] >> 4, table = d[g.at] & 15;
        size_t bytes = wide ? 128 : 64;
        if (wide > 1 || table > 3 || g.end - g.at - 1 < bytes)
            return wm_wrong(j->s, g.at, "a quantisation table that is none");
        g.at++;
        for (int k = 0; k < 64; k++) {
            uint32_t q = wide ? wm_be16(d + g.at + 2 * k) : d[g.at + (size_t)k];
            if (q == 0)
                return wm_wrong(j->s, g.at, "a quantisation table with a zero");
            j->quant[table][jpeg_order[k]] = (uint16_t)q;
        }
        g.at += bytes;
    }
    return true;
}

/* Works out codes from the number of each length; false where there are more than fit. */
static bool make_code(jpeg_huffman *h, const uint8_t *count)
{
    int32_t code = 0;
    memset(h->fast, 0, sizeof h->fast);
    for (int b = 1, i = 0; b <= 16; b++, code <<= 1) {
        h->offset[b] = i - code;
        for (int k = 0; k < count[b - 1]; k++, i++, code++) {
            if (code >= 1 << b)
                return false;
            for (int f = 0; b <= JPEG_FAST_BITS && f < 1 << (JPEG_FAST_BITS - b); f++)
                h->fast[(code << (JPEG_FAST_BITS - b)) + f] = (uint16_t)(b << 8 | h->symbols[i]);
        }
        h->limit[b] = code << (16 - b);
    }
    h->limit[17] = INT32_MAX;
    h->there = true;
    return true;
}

static bool read_huffman(jpeg *j, segment g)
{
    const uint8_t *d = j->s->data;
    while (g.at < g.end) {
        int kind = d[g.at] >> 4, table = d[g.at] & 15, total = 0;
        if (kind > 1 || table > 3 || g.end - g.at < 17)
            return wm_wrong(j->s, g.at, "a Huffman table that is none");
        const uint8_t *count = d + g.at + 1;
        for (int b = 0; b < 16; b++)
            total += count[b];
        if (total > 256 || g.end - g.at - 17 < (size_t)total)
            return wm_wrong(j->s, g.at, "a Huffman table with more symbols than it has room for");
        jpeg_huffman *h = &j->codes[kind][table];
        memcpy(h->symbols, d + g.at + 17, (size_t)total);
        if (!make_code(h, count))
            return wm_wrong(j->s, g.at, "a Huffman table with too many codes of a length");
        g.at += 17 + (size_t)total;
    }
    return true;
}

static int round_up(int a, int b) { return (a + b - 1) / b; }

/* Sizes of the components and memory for their coefficients. Every block takes at least a bit of the file. */
static bool make_blocks(jpeg *j)
{
    int mcus_w = round_up(j->width, 8 * j->h_max), mcus_h = round_up(j->height, 8 * j->v_max);
    uint64_t blocks = 0;
    for (int i = 0; i < j->n; i++) {
        jpeg_component *c = &j->c[i];
        c->width = round_up(j->width * c->h, j->h_max);
        c->height = round_up(j->height * c->v, j->v_max);
        c->blocks_w = mcus_w * c->h;
        c->blocks_h = mcus_h * c->v;
        c->own_w = round_up(c->width, 8);
        c->own_h = round_up(c->height, 8);
        blocks += (uint64_t)c->own_w * (uint64_t)c->own_h;
        memset(c->low, -1, sizeof c->low);
    }
    if (blocks / 8 > j->s->size)
        return wm_wrong(j->s, j->at, "the file has too few data for its size");
    for (int i = 0; i < j->n; i++) {
        size_t n = (size_t)j->c[i].blocks_w * (size_t)j->c[i].blocks_h;
        j->c[i].blocks = wm_encoded_alloc(j->s, n, sizeof *j->c[i].blocks);
        j->c[i].samples = wm_encoded_alloc(j->s, n, 64);
        if (!j->c[i].blocks || !j->c[i].samples)
            return false;
    }
    return true;
}

static bool read_component(jpeg *j, jpeg_component *c, size_t at)
{
    const uint8_t *d = j->s->data + at;
    *c = (jpeg_component){.id = d[0], .h = d[1] >> 4, .v = d[1] & 15, .table = d[2]};
    if (c->h < 1 || c->h > 4 || c->v < 1 || c->v > 4 || c->table > 3)
        return wm_wrong(j->s, at, "a component with sampling factors or a table out of range");
    for (const jpeg_component *other = j->c; other < c; other++)
        if (other->id == c->id)
            return wm_wrong(j->s, at, "two components of the same number");
    j->h_max = c->h > j->h_max ? c->h : j->h_max;
    j->v_max = c->v > j->v_max ? c->v : j->v_max;
    return true;
}

static bool read_frame(jpeg *j, segment g, int marker)
{
    const uint8_t *d = j->s->data + g.at;
    if (j->n)
        return wm_wrong(j->s, g.at, "a second frame");
    if (g.end - g.at < 6 || g.end - g.at != 6 + 3 * (size_t)d[5])
        return wm_wrong(j->s, g.at, "a frame header of the wrong length");
    if (d[0] != 8)
        return wm_wrong(j->s, g.at, "samples that do not have 8 bits are not supported");
    if (!wm_encoded_size(j->s, g.at + 1, wm_be16(d + 3), wm_be16(d + 1)))
        return false;
    if (d[5] != 1 && d[5] != 3)
        return wm_wrong(j->s, g.at + 5, "1 or 3 components are supported (no CMYK)");
    j->progressive = marker == 0xC2;
    j->height = (int)wm_be16(d + 1);
    j->width = (int)wm_be16(d + 3);
    for (int i = 0; i < d[5]; i++)
        if (!read_component(j, &j->c[i], g.at + 6 + 3 * (size_t)i))
            return false;
    if (d[5] ==
        1) /* of one component there is nothing to interleave: a block is an MCU, whatever the factors */
        j->c[0].h = j->c[0].v = j->h_max = j->v_max = 1;
    for (int i = 0; i < d[5]; i++)
        if (j->h_max % j->c[i].h || j->v_max % j->c[i].v)
            return wm_wrong(j->s, g.at, "sampling factors that do not divide the largest are not supported");
    j->n = d[5];
    return make_blocks(j);
}

/* Progressive: a scan must begin a coefficient's bits or go on where the one before ended. */
static bool note_bits(jpeg *j, jpeg_component *c, int from, int to, int high, int low)
{
    for (int k = from; k <= to; k++) {
        if (c->low[k] < 0 ? high != 0 : high != c->low[k])
            return wm_wrong(j->s, j->at, "a scan that does not go on where the one before it ended");
        c->low[k] = (int8_t)low;
    }
    return from == 0 || c->low[0] >= 0
               ? true
               : wm_wrong(j->s, j->at, "a scan of a component whose DC has not come yet");
}

static bool scan_component(jpeg *j, size_t at, int *which, int taken)
{
    const uint8_t *d = j->s->data + at;
    for (*which = 0; *which < j->n && j->c[*which].id != d[0]; ++*which)
        ;
    if (*which == j->n)
        return wm_wrong(j->s, at, "a scan of a component that the frame does not have");
    if (taken >> *which & 1)
        return wm_wrong(j->s, at, "a scan that names a component twice");
    jpeg_component *c = &j->c[*which];
    c->dc = d[1] >> 4;
    c->ac = d[1] & 15;
    if (c->dc > 3 || c->ac > 3)
        return wm_wrong(j->s, at, "a Huffman table out of range");
    if (!j->quant[c->table][0])
        return wm_wrong(j->s, at, "a quantisation table is missing");
    return true;
}

static bool check_scan(jpeg *j, int n, const int *which, int from, int to, int high, int low)
{
    bool range = j->progressive ? from <= to && to < 64 && (from == 0 ? to == 0 : n == 1) && low <= 13 &&
                                      (high == 0 || high == low + 1)
                                : from == 0 && to == 63 && high == 0 && low == 0;
    if (!range)
        return wm_wrong(j->s, j->at, "a scan of coefficients or bits that there are not");
    for (int i = 0; i < n; i++) {
        jpeg_component *c = &j->c[which[i]];
        if ((from == 0 && high == 0 && !j->codes[0][c->dc].there) || (to > 0 && !j->codes[1][c->ac].there))
            return wm_wrong(j->s, j->at, "a Huffman table is missing");
        if (!j->progressive && c->low[0] >= 0)
            return wm_wrong(j->s, j->at, "a second scan of a component");
        if (!note_bits(j, c, from, to, high, low))
            return false;
    }
    return true;
}

static bool read_scan(jpeg *j, segment g)
{
    const uint8_t *d = j->s->data + g.at;
    int which[JPEG_COMPONENTS], taken = 0;
    if (!j->n)
        return wm_wrong(j->s, g.at, "a scan before the frame header");
    int n = g.at < g.end ? d[0] : 0;
    if (n < 1 || n > j->n || g.end - g.at != 4 + 2 * (size_t)n)
        return wm_wrong(j->s, g.at, "a scan header of the wrong length");
    for (int i = 0; i < n; i++) {
        if (!scan_component(j, g.at + 1 + 2 * (size_t)i, &which[i], taken))
            return false;
        taken |= 1 << which[i];
    }
    const uint8_t *t = d + 1 + 2 * n;
    return check_scan(j, n, which, t[0], t[1], t[2] >> 4, t[2] & 15) &&
           jpeg_scan(j, n, which, t[0], t[1], t[2] >> 4, t[2] & 15);
}

static bool read_restart(jpeg *j, segment g)
{
    if (g.end - g.at != 2)
        return wm_wrong(j->s, g.at, "a restart interval of the wrong length");
    j->restart = (int)wm_be16(j->s->data + g.at);
    return true;
}

static void read_app(jpeg *j, segment g, int marker)
{
    const uint8_t *d = j->s->data + g.at;
    if (marker == 0xEE && g.end - g.at >= 12 && !memcmp(d, "Adobe", 5))
        j->adobe = d[11];
    if (marker == 0xE0 && g.end - g.at >= 5 && !memcmp(d, "JFIF", 5))
        j->jfif = true;
}

/* Steps over a marker's FF and its number, which stands at *at; fill bytes may come between. */
static bool next_marker(jpeg *j, int *marker)
{
    const wm_encoded *s = j->s;
    if (j->at < s->size && s->data[j->at] != 0xFF)
        return wm_wrong(j->s, j->at, "expected a marker");
    while (j->at < s->size && s->data[j->at] == 0xFF)
        j->at++;
    if (j->at >= s->size)
        return wm_wrong(j->s, s->size, "the file ends too early");
    *marker = s->data[j->at++];
    return true;
}

static bool read_segment(jpeg *j, int marker)
{
    const wm_encoded *s = j->s;
    if (s->size - j->at < 2 || wm_be16(s->data + j->at) < 2 || wm_be16(s->data + j->at) > s->size - j->at)
        return wm_wrong(j->s, j->at, "a marker's data reach beyond the end of the file");
    segment g = {j->at + 2, j->at + wm_be16(s->data + j->at)};
    j->at = g.end;
    switch (marker) {
    case 0xC0:
    case 0xC1:
    case 0xC2: return read_frame(j, g, marker);
    case 0xC4: return read_huffman(j, g);
    case 0xDA: return read_scan(j, g);
    case 0xDB: return read_quantisation(j, g);
    case 0xDD: return read_restart(j, g);
    case 0xC3:
    case 0xC5:
    case 0xC6:
    case 0xC7:
    case 0xC9:
    case 0xCA:
    case 0xCB:
    case 0xCC:
    case 0xCD:
    case 0xCE:
    case 0xCF:
        return wm_wrong(j->s, g.at - 3,
                        "lossless, hierarchical and arithmetic-coded files are not supported");
    default:
        if (marker < 0xC0 || marker == 0xDC)
            return wm_wrong(j->s, g.at - 3, "a marker that is not supported");
        read_app(j, g, marker);
        return true;
    }
}

static bool read_markers(jpeg *j)
{
    int marker = 0;
    j->at = 2;
    while (next_marker(j, &marker) && marker != 0xD9)
        if (!read_segment(j, marker))
            return false;
    if (j->s->reason)
        return false;
    if (!j->n)
        return wm_wrong(j->s, j->at, "the file has no frame");
    for (int i = 0; i < j->n; i++)
        if (j->c[i].low[0] < 0)
            return wm_wrong(j->s, j->at, "a component has no data");
    return true;
}

static bool make_image(jpeg *j, wm_image *image)
{
    size_t width = (size_t)j->width;
    image->width = j->width;
    image->height = j->height;
    image->rgb = wm_encoded_alloc(j->s, width * (size_t)j->height, 3);
    uint8_t *rows = wm_encoded_alloc(j->s, 3, width + 16);
    bool ok = image->rgb && rows;
    if (ok)
        jpeg_samples(j);
    for (int y = 0; ok && y < j->height; y++)
        jpeg_row(j, y, rows, image->rgb + 3 * width * (size_t)y);
    free(rows);
    if (!ok)
        wm_image_free(image);
    return ok;
}

bool wm_jpeg_decode(wm_encoded *s, wm_image *image)
{
    jpeg *j = wm_encoded_alloc(s, 1, sizeof *j);
    if (!j)
        return false;
    j->s = s;
    j->adobe = -1;
    bool ok = read_markers(j) && make_image(j, image);
    for (int i = 0; i < JPEG_COMPONENTS; i++) {
        free(j->c[i].blocks);
        free(j->c[i].samples);
    }
    free(j);
    return ok;
}
