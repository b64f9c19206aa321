/* inflate.c: deflate and the zlib wrapping around it. */
#include "inflate.h"
#include <string.h>

enum {
    FAST_BITS = 9, /* codes up to this length are found by one look into a table */
    MAX_BITS = 15,
    MAX_SYMBOLS = 288,
};

/* A canonical Huffman code: symbols sorted by code, the number of codes of each length, and the table for short ones,
 * indexed by the next bits as they come: symbol << 4 | length, 0 where the code is longer or there is none. */
typedef struct {
    uint16_t fast[1 << FAST_BITS];
    uint16_t count[MAX_BITS + 1];
    uint16_t symbols[MAX_SYMBOLS];
} huffman;

typedef struct {
    wm_bytes *in;
    uint32_t bits; /* not used yet, the next one lowest */
    int have;
    uint8_t *out;
    size_t at, size;
    const char *wrong; /* the first thing that is; decoding then runs out quickly */
    huffman lengths, distances;
} inflater;

static const char *const ended = "the compressed data end too early";

static int wrong(inflater *z, const char *reason)
{
    if (!z->wrong)
        z->wrong = reason;
    return -1;
}

static int next_byte(inflater *z)
{
    wm_bytes *in = z->in;
    while (in->at == in->end)
        if (!in->more || !in->more(in))
            return wrong(z, ended);
    return *in->at++;
}

/* Up to 16 bits, the first one lowest; -1 when they are not there. */
static int take_bits(inflater *z, int n)
{
    while (z->have < n) {
        int byte = next_byte(z);
        if (byte < 0)
            return -1;
        z->bits |= (uint32_t)byte << z->have;
        z->have += 8;
    }
    int value = (int)(z->bits & ((1u << n) - 1));
    z->bits >>= n;
    z->have -= n;
    return value;
}

static uint32_t reversed(uint32_t code, int length)
{
    uint32_t r = 0;
    for (int i = 0; i < length; i++)
        r |= ((code >> i) & 1) << (length - 1 - i);
    return r;
}

/* Makes the code in which symbol i has length[i] bits (0: it does not occur). A set of lengths that leaves codes without
 * a symbol is refused but for the one that the format allows: a single code of one bit. */
static int make_code(inflater *z, huffman *h, const uint8_t *length, int n)
{
    uint16_t start[MAX_BITS + 2] = {0};
    memset(h, 0, sizeof *h);
    for (int i = 0; i < n; i++)
        h->count[length[i]]++;
    int used = n - h->count[0], room = 1;
    h->count[0] = 0;
    for (int b = 1; b <= MAX_BITS; b++) {
        room = 2 * room - h->count[b];
        if (room < 0)
            return wrong(z, "a Huffman code has too many codes of a length");
        start[b + 1] = (uint16_t)(start[b] + h->count[b]);
    }
    if (room > 0 && used > 1)
        return wrong(z, "a Huffman code is not complete");
    for (int i = 0; i < n; i++)
        if (length[i])
            h->symbols[start[length[i]]++] = (uint16_t)i;
    uint32_t code = 0;
    for (int b = 1, i = 0; b <= FAST_BITS; b++, code <<= 1)
        for (int k = 0; k < h->count[b]; k++, i++, code++)
            for (uint32_t at = reversed(code, b); at < 1u << FAST_BITS; at += 1u << b)
                h->fast[at] = (uint16_t)(h->symbols[i] << 4 | b);
    return 0;
}

/* The next symbol, bit by bit: for long codes, and where fewer bits are left than the table looks at. */
static int take_symbol_slowly(inflater *z, const huffman *h)
{
    int code = 0, first = 0, index = 0;
    for (int b = 1; b <= MAX_BITS; b++) {
        int bit = take_bits(z, 1);
        if (bit < 0)
            return -1;
        code = code << 1 | bit;
        if (code - first < h->count[b])
            return h->symbols[index + code - first];
        index += h->count[b];
        first = (first + h->count[b]) << 1;
    }
    return wrong(z, "bits that are no code");
}

static int take_symbol(inflater *z, const huffman *h)
{
    while (z->have < FAST_BITS && z->in->at < z->in->end) {
        z->bits |= (uint32_t)*z->in->at++ << z->have;
        z->have += 8;
    }
    int entry = h->fast[z->bits & ((1u << FAST_BITS) - 1)], length = entry & 15;
    if (length == 0 || length > z->have)
        return take_symbol_slowly(z, h);
    z->bits >>= length;
    z->have -= length;
    return entry >> 4;
}

static int put_byte(inflater *z, int byte)
{
    if (z->at == z->size)
        return wrong(z, "there are more data than the image has");
    z->out[z->at++] = (uint8_t)byte;
    return 0;
}

/* A piece of the output once more. */
static int repeat(inflater *z, size_t distance, size_t length)
{
    if (distance > z->at)
        return wrong(z, "a distance reaches before the beginning");
    if (length > z->size - z->at)
        return wrong(z, "there are more data than the image has");
    for (size_t i = 0; i < length; i++, z->at++) /* it may overlap itself */
        z->out[z->at] = z->out[z->at - distance];
    return 0;
}

/* The base of length symbols 257.. and distance symbols 0.. and how many bits follow. */
static int take_length(inflater *z, int symbol)
{
    int i = symbol - 257;
    if (i < 8)
        return 3 + i;
    if (i >= 28)
        return i == 28 ? 258 : wrong(z, "a length that does not exist");
    int extra = (i - 4) / 4, more = take_bits(z, extra);
    return more < 0 ? -1 : 3 + ((4 + i % 4) << extra) + more;
}

static int take_distance(inflater *z)
{
    int symbol = take_symbol(z, &z->distances);
    if (symbol < 4)
        return symbol < 0 ? -1 : 1 + symbol;
    if (symbol >= 30)
        return wrong(z, "a distance that does not exist");
    int extra = symbol / 2 - 1, more = take_bits(z, extra);
    return more < 0 ? -1 : 1 + ((2 + symbol % 2) << extra) + more;
}

static void coded_block(inflater *z)
{
    for (;;) {
        int symbol = take_symbol(z, &z->lengths);
        if (symbol < 0 || symbol == 256)
            return;
        if (symbol < 256) {
            if (put_byte(z, symbol) < 0)
                return;
            continue;
        }
        int length = take_length(z, symbol), distance = length < 0 ? -1 : take_distance(z);
        if (distance < 0 || repeat(z, (size_t)distance, (size_t)length) < 0)
            return;
    }
}

static void stored_block(inflater *z)
{
    take_bits(z, z->have % 8);
    int length = take_bits(z, 16), check = take_bits(z, 16);
    if (check < 0)
        return;
    if (length != (check ^ 0xFFFF))
        wrong(z, "the length of a stored block does not agree with its complement");
    for (; length > 0 && !z->wrong; length--) {
        int byte = take_bits(z, 8);
        if (byte >= 0)
            put_byte(z, byte);
    }
}

static void fixed_codes(inflater *z)
{
    uint8_t length[MAX_SYMBOLS];
    for (int i = 0; i < MAX_SYMBOLS; i++)
        length[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
    make_code(z, &z->lengths, length, MAX_SYMBOLS);
    memset(length, 5, 32);
    make_code(z, &z->distances, length, 32);
}

/* The lengths of n codes, themselves written in the code h. */
static void code_lengths(inflater *z, const huffman *h, uint8_t *length, int n)
{
    static const uint8_t extra[] = {2, 3, 7}, least[] = {3, 3, 11};
    for (int i = 0; i < n;) {
        int symbol = take_symbol(z, h);
        if (symbol < 0)
            return;
        if (symbol < 16) {
            length[i++] = (uint8_t)symbol;
            continue;
        }
        int times = take_bits(z, extra[symbol - 16]) + least[symbol - 16];
        if (z->wrong || (symbol == 16 && i == 0) || times > n - i) {
            wrong(z, "the lengths of codes are repeated where they cannot be");
            return;
        }
        memset(length + i, symbol == 16 ? length[i - 1] : 0, (size_t)times);
        i += times;
    }
}

static void dynamic_codes(inflater *z)
{
    static const uint8_t order[] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
    uint8_t length[320] = {0};
    int lengths = take_bits(z, 5) + 257, distances = take_bits(z, 5) + 1, codes = take_bits(z, 4) + 4;
    for (int i = 0; i < codes; i++)
        length[order[i]] = (uint8_t)take_bits(z, 3);
    if (z->wrong || make_code(z, &z->lengths, length, 19) < 0)
        return;
    memset(length, 0, sizeof length);
    code_lengths(z, &z->lengths, length, lengths + distances);
    if (lengths > 286 || distances > 30)
        wrong(z, "a Huffman code for more symbols than there are");
    if (!z->wrong && length[256] == 0)
        wrong(z, "a block that cannot end");
    if (!z->wrong && make_code(z, &z->distances, length + lengths, distances) == 0)
        make_code(z, &z->lengths, length, lengths);
}

static void blocks(inflater *z)
{
    for (int last = 0; !last && !z->wrong;) {
        last = take_bits(z, 1);
        switch (take_bits(z, 2)) {
        case 0: stored_block(z); break;
        case 1:
            fixed_codes(z);
            coded_block(z);
            break;
        case 2:
            dynamic_codes(z);
            if (!z->wrong)
                coded_block(z);
            break;
        default: wrong(z, "a block of a kind that does not exist");
        }
    }
}

static uint32_t adler(const uint8_t *data, size_t size)
{
    uint32_t a = 1, b = 0;
    while (size > 0) {
        size_t n = size < 5552 ? size : 5552; /* as many as fit before b wraps */
        for (size_t i = 0; i < n; i++)
            b += a += data[i];
        a %= 65521;
        b %= 65521;
        data += n;
        size -= n;
    }
    return b << 16 | a;
}

const char *wm_inflate(wm_bytes *in, uint8_t *out, size_t size)
{
    inflater z = {.in = in, .out = out, .size = size};
    int method = take_bits(&z, 8), flags = take_bits(&z, 8);
    if (!z.wrong && ((method & 15) != 8 || method >> 4 > 7 || (method << 8 | flags) % 31 || flags & 32))
        return "not a zlib stream";
    blocks(&z);
    if (!z.wrong && z.at < size)
        wrong(&z, "there are fewer data than the image has");
    take_bits(&z, z.have % 8);
    uint32_t sum = 0;
    for (int i = 0; i < 4 && !z.wrong; i++)
        sum = sum << 8 | (uint32_t)take_bits(&z, 8);
    if (!z.wrong && sum != adler(out, size))
        wrong(&z, "the checksum of the data is wrong");
    return z.wrong;
}
