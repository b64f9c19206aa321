/* jpeg.h: what the parts of the JPEG decoder share: jpeg.c reads the markers, jpeg_scan.c the coefficients, and
 * jpeg_pixels.c makes pixels of them. */
#ifndef WM_JPEG_H
#define WM_JPEG_H

#include "image_int.h"

enum { JPEG_COMPONENTS = 3, JPEG_FAST_BITS = 9 };

/* A Huffman code: symbols sorted by code; of each length the first code's place in them, and the first code that is
 * longer; short codes by one look: length << 8 | symbol, 0 where there is none. */
typedef struct {
    bool there;
    uint16_t fast[1 << JPEG_FAST_BITS];
    int32_t limit[18]; /* of length b: codes below limit[b] << (16 - b) are at most b bits long */
    int32_t offset[17];
    uint8_t symbols[256];
    int count;
} jpeg_huffman;

typedef struct {
    int id, h, v;           /* samples of each MCU, across and down */
    int table;              /* of quantisation */
    int dc, ac;             /* codes of the scan that is read */
    int predicted;          /* the last DC coefficient of the scan */
    int width, height;      /* in samples */
    int blocks_w, blocks_h; /* in blocks, whole MCUs */
    int own_w, own_h;       /* in blocks, as scans of this component alone count them */
    int16_t (*blocks)[64];  /* coefficients in natural order */
    uint8_t *samples;       /* blocks_w * 8 in a row */
    int8_t low[64];         /* progressive: the lowest bit that coefficients are known to; -1: not begun */
} jpeg_component;

typedef struct {
    wm_encoded *s;
    size_t at;
    bool progressive;
    int width, height, n; /* n components; 0 before the frame header */
    int h_max, v_max;
    int restart; /* MCUs between restart markers; 0: none */
    int adobe;   /* the transform an Adobe marker names; -1: no such marker */
    bool jfif;
    uint16_t quant[4][64]; /* in natural order; [0] is 0 where there is none */
    jpeg_huffman codes[2][4];
    jpeg_component c[JPEG_COMPONENTS];
} jpeg;

/* Place of coefficient k of the file's order in a block. */
extern const uint8_t jpeg_order[64];

/* Reads the coefficients of a scan whose header names n components; j->at is behind the header, and in the end at the
 * marker that follows. */
bool jpeg_scan(jpeg *j, int n, const int *which, int from, int to, int high, int low);
/* Makes the samples of all components from their coefficients. */
void jpeg_samples(jpeg *j);
/* Makes the pixels of row y; up holds three rows of the image's width and 16 more. */
void jpeg_row(const jpeg *j, int y, uint8_t *up, uint8_t *rgb);

#endif
