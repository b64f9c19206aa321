/* jpeg_scan.c: the entropy-coded data of a JPEG scan: Huffman codes, first and refining passes, restarts. */
#include "jpeg.h"

typedef struct {
    jpeg *j;
    uint32_t bits; /* the next one highest */
    int have;
    bool marker; /* the data have ended at a marker: zeros follow, which nothing may need */
    int padding; /* zeros among the bits that are not in the file */
    int run;     /* blocks left in a run of ended ones */
    int from, to, high, low;
} scan;

/* Fills up to at least 25 bits; behind the data with zeros. */
static void fill(scan *z)
{
    const wm_encoded *s = z->j->s;
    while (z->have <= 24) {
        uint32_t byte = 0;
        size_t at = z->j->at;
        if (!z->marker && at < s->size && s->data[at] != 0xFF) {
            byte = s->data[at];
            z->j->at++;
        } else if (!z->marker && at + 1 < s->size &&
                   s->data[at + 1] == 0) { /* a data byte FF is written FF 00 */
            byte = 0xFF;
            z->j->at += 2;
        } else {
            z->marker = true;
            z->padding += 8;
        }
        z->bits |= byte << (24 - z->have);
        z->have += 8;
    }
}

static bool overrun(const scan *z) { return z->padding > z->have; }

static void drop(scan *z, int n)
{
    z->bits <<= n;
    z->have -= n;
}

static int take_bit(scan *z)
{
    if (z->have < 1)
        fill(z);
    int bit = (int)(z->bits >> 31);
    drop(z, 1);
    return bit;
}

static int take_bits(scan *z, int n)
{
    if (n == 0)
        return 0;
    if (z->have < n)
        fill(z);
    int v = (int)(z->bits >> (32 - n));
    drop(z, n);
    return v;
}

/* A number of n bits whose first says its sign. */
static int take_signed(scan *z, int n)
{
    int v = take_bits(z, n);
    return n == 0 || v >> (n - 1) ? v : v - (1 << n) + 1;
}

static int take_symbol(scan *z, const jpeg_huffman *h)
{
    if (z->have < 16)
        fill(z);
    int entry = h->fast[z->bits >> (32 - JPEG_FAST_BITS)];
    if (entry) {
        drop(z, entry >> 8);
        return entry & 255;
    }
    int32_t code = (int32_t)(z->bits >> 16);
    int b = 1;
    while (code >= h->limit[b])
        b++;
    if (b > 16) {
        wm_wrong(z->j->s, z->j->at, "bits that are no code");
        return -1;
    }
    drop(z, b);
    return h->symbols[(code >> (16 - b)) + h->offset[b]];
}

static bool wrong_run(scan *z) { return wm_wrong(z->j->s, z->j->at, "a block of more than 64 coefficients"); }

static bool read_dc(scan *z, jpeg_component *c, int16_t *block)
{
    int size = take_symbol(z, &z->j->codes[0][c->dc]);
    if (size < 0)
        return false;
    if (size > 11)
        return wm_wrong(z->j->s, z->j->at, "a DC difference of more than 11 bits");
    c->predicted += take_signed(z, size);
    if (c->predicted < -32768 || c->predicted > 32767)
        return wm_wrong(z->j->s, z->j->at, "a DC coefficient out of range");
    block[0] = (int16_t)(c->predicted * (1 << z->low));
    return true;
}

/* A whole block of a baseline scan, or the first pass over some coefficients of a progressive one. */
static bool read_ac(scan *z, const jpeg_component *c, int16_t *block)
{
    const jpeg_huffman *h = &z->j->codes[1][c->ac];
    if (z->run > 0) {
        z->run--;
        return true;
    }
    for (int k = z->from ? z->from : 1; k <= z->to; k++) {
        int symbol = take_symbol(z, h), zeros = symbol >> 4, size = symbol & 15;
        if (symbol < 0)
            return false;
        if (size == 0 && zeros < 15) {
            if (zeros && !z->j->progressive)
                return wrong_run(z);
            z->run = (1 << zeros) - 1 + take_bits(z, zeros);
            return true;
        }
        k += zeros;
        if (k > z->to)
            return wrong_run(z);
        if (size)
            block[jpeg_order[k]] = (int16_t)(take_signed(z, size) * (1 << z->low));
    }
    return true;
}

/* One more bit of a coefficient that is not zero. */
static void refine(scan *z, int16_t *v)
{
    if (take_bit(z))
        *v = (int16_t)(*v + (*v > 0 ? 1 : -1) * (1 << z->low));
}

/* Passes over `zeros` coefficients that are still zero, refining the others, and stops at the next zero one (or behind
 * the last). */
static int skip_zeros(scan *z, int16_t *block, int k, int zeros)
{
    for (; k <= z->to; k++) {
        int16_t *v = &block[jpeg_order[k]];
        if (*v)
            refine(z, v);
        else if (zeros-- == 0)
            break;
    }
    return k;
}

static bool refine_ac(scan *z, const jpeg_component *c, int16_t *block)
{
    const jpeg_huffman *h = &z->j->codes[1][c->ac];
    int k = z->from;
    while (z->run == 0 && k <= z->to) {
        int symbol = take_symbol(z, h), zeros = symbol >> 4, size = symbol & 15, fresh = 0;
        if (symbol < 0)
            return false;
        if (size > 1)
            return wm_wrong(z->j->s, z->j->at, "a refining scan with a coefficient of more than one bit");
        if (size == 0 && zeros < 15) {
            z->run = (1 << zeros) + take_bits(z, zeros);
            break;
        }
        if (size)
            fresh = take_bit(z) ? 1 : -1;
        k = skip_zeros(z, block, k, zeros);
        if (k > z->to)
            return fresh || zeros < 15 ? wrong_run(z) : true;
        if (fresh)
            block[jpeg_order[k]] = (int16_t)(fresh * (1 << z->low));
        k++;
    }
    if (z->run > 0) {
        skip_zeros(z, block, k, 64);
        z->run--;
    }
    return true;
}

static bool read_block(scan *z, jpeg_component *c, int16_t *block)
{
    if (z->high) {
        if (z->from > 0)
            return refine_ac(z, c, block);
        if (take_bit(z))
            block[0] |= (int16_t)(1 << z->low);
        return true;
    }
    return (z->from > 0 || read_dc(z, c, block)) && (z->to == 0 || read_ac(z, c, block));
}

/* Block x, y of a component, or all blocks that it has in MCU x, y of an interleaved scan. */
static bool read_mcu(scan *z, jpeg_component *c, int x, int y, bool alone)
{
    int w = alone ? 1 : c->h, h = alone ? 1 : c->v;
    for (int i = 0; i < w * h; i++) {
        size_t row = (size_t)(y * h + i / w), column = (size_t)(x * w + i % w);
        if (!read_block(z, c, c->blocks[row * (size_t)c->blocks_w + column]))
            return false;
        if (overrun(z))
            return wm_wrong(z->j->s, z->j->at, "the data of a scan end too early");
    }
    return true;
}

/* The marker between two intervals, of which number is the next. */
static bool restart(scan *z, int number)
{
    jpeg *j = z->j;
    const wm_encoded *s = j->s;
    if (!z->marker)
        fill(z);
    /* All but the last bits of a byte must be used; what has been read ahead is whole bytes of data. */
    if (z->have - z->padding >= 8 || s->size - j->at < 2 || s->data[j->at] != 0xFF ||
        s->data[j->at + 1] != 0xD0 + number % 8)
        return wm_wrong(j->s, j->at, "expected the next restart marker");
    j->at += 2;
    z->bits = 0;
    z->have = z->padding = z->run = 0;
    z->marker = false;
    for (int i = 0; i < j->n; i++)
        j->c[i].predicted = 0;
    return true;
}

bool jpeg_scan(jpeg *j, int n, const int *which, int from, int to, int high, int low)
{
    scan z = {.j = j, .from = from, .to = to, .high = high, .low = low};
    jpeg_component *only = &j->c[which[0]];
    int width = n == 1 ? only->own_w : j->c[0].blocks_w / j->c[0].h;
    int height = n == 1 ? only->own_h : j->c[0].blocks_h / j->c[0].v;
    int left = j->restart, number = 0;
    for (int i = 0; i < j->n; i++)
        j->c[i].predicted = 0;
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++) {
            if (j->restart && left-- == 0) {
                if (!restart(&z, number++))
                    return false;
                left = j->restart - 1;
            }
            for (int i = 0; i < n; i++)
                if (!read_mcu(&z, &j->c[which[i]], x, y, n == 1))
                    return false;
        }
    /* Bytes that were read ahead are given back; what else is there until the next marker is refused there. */
    for (int spare = (z.have - z.padding) / 8; spare > 0; spare--)
        j->at -= j->at >= 2 && j->s->data[j->at - 1] == 0 && j->s->data[j->at - 2] == 0xFF ? 2 : 1;
    return true;
}
