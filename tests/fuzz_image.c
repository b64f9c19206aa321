/* fuzz_image.c: any bytes as a PNG or JPEG file, and as a zlib stream. A PNG's checksums are put right first, or hardly a
 * mutant would be read on. */
#include "fuzz.h"
#include "fuzz_image_seeds.h"
#include "image.h"
#include "inflate.h"

static uint32_t crc(const uint8_t *data, size_t size)
{
    uint32_t c = 0xFFFFFFFF;
    for (size_t i = 0; i < size; i++) {
        c ^= data[i];
        for (int b = 0; b < 8; b++)
            c = c >> 1 ^ (c & 1 ? 0xEDB88320u : 0);
    }
    return ~c;
}

static void put_checksums_right(uint8_t *file, size_t size)
{
    for (size_t at = 8; size >= 12 && at <= size - 12;) {
        const uint8_t *p = file + at;
        uint32_t length = (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
        if (length > size - at - 12)
            return;
        uint32_t sum = crc(file + at + 4, (size_t)length + 4);
        for (int i = 0; i < 4; i++)
            file[at + 8 + length + (size_t)i] = (uint8_t)(sum >> (24 - 8 * i));
        at += (size_t)length + 12;
    }
}

static void unpack(const uint8_t *data, size_t size)
{
    uint8_t out[2048];
    for (size_t room = 0; room <= sizeof out; room += sizeof out / 4) {
        wm_bytes in = {data, data + size, NULL, NULL};
        wm_inflate(&in, out, room);
        FUZZ_NEED(in.at >= data && in.at <= data + size);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    wm_image image;
    uint8_t *file = malloc(size + !size);
    FUZZ_NEED(file);
    memcpy(file, data, size);
    if (size > 1 && file[0] == 0x89 && file[1] == 'P')
        put_checksums_right(file, size);
    if (wm_image_decode(&image, "fuzz", file, size)) {
        long sum = 0;
        for (size_t i = 0; i < 3 * (size_t)image.width * (size_t)image.height; i++)
            sum += image.rgb[i];
        FUZZ_NEED(sum >= 0 && image.width > 0 && image.height > 0);
        wm_image_free(&image);
        fuzz_accepted++;
    } else {
        FUZZ_NEED(wm_error_status() == WK_ERR_FORMAT && strstr(wm_error(), "fuzz: byte ") && !image.rgb);
    }
    wm_error_clear();
    unpack(file, size);
    free(file);
    return 0;
}

#ifdef FUZZ_MAIN
#define FUZZ_BYTES(bytes) \
    { \
        bytes, sizeof(bytes) - 1 \
    }
static const fuzz_input fuzz_seeds[] = {FUZZ_BYTES(SEED_0),
                                        FUZZ_BYTES(SEED_1),
                                        FUZZ_BYTES(SEED_2),
                                        FUZZ_BYTES(SEED_3),
                                        FUZZ_BYTES(SEED_4),
                                        FUZZ_BYTES(SEED_5),
                                        FUZZ_BYTES(SEED_6),
                                        FUZZ_BYTES(SEED_7),
                                        FUZZ_BYTES(SEED_8),
                                        FUZZ_TEXT("\x78\x9c\x4b\x4c\x4a\x06\x00\x02\x4d\x01\x27"),
                                        FUZZ_TEXT("\x78\x01\x01\x03\x00\xfc\xff"
                                                  "abc\x02\x4d\x01\x27"),
                                        {0}};
static const char *const fuzz_words[] = {
    "IHDR",     "IDAT",     "IEND",     "PLTE",     "\xFF\xD9", "\xFF\xDA", "\xFF\xC4", "\xFF\xDB",
    "\xFF\xC2", "\xFF\xC0", "\xFF\xD0", "\xFF\xDD", "\x11",     "\x22",     "\x3F",     NULL};
#endif
