/* inflate.h: the zlib format (RFC 1950, 1951), unpacked into memory whose size is known. */
#ifndef WM_INFLATE_H
#define WM_INFLATE_H

#include <stddef.h>
#include <stdint.h>

/* Bytes that come in pieces: more (NULL: there is one piece only) is called at a piece's end, sets at and end to the
 * next one and returns 0 when there is none. */
typedef struct wm_bytes {
    const uint8_t *at, *end;
    int (*more)(struct wm_bytes *in);
    void *ctx;
} wm_bytes;

/* Unpacks exactly size bytes into out and checks their sum. NULL, or what is wrong; in->at is then where it was met. */
const char *wm_inflate(wm_bytes *in, uint8_t *out, size_t size);

#endif
