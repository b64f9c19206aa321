/* digits.h: drawn digits, crooked and noisy ones: data that a program makes itself, for training. */
#ifndef WM_DIGITS_H
#define WM_DIGITS_H

#include <stdint.h>

enum { WM_DIGIT_SIZE = 20, WM_LINE_HEIGHT = 12, WM_LINE_WIDTH = 56, WM_LINE_DIGITS = 5 };

/* The next number of a generator, below n; the same numbers for the same start. */
uint32_t wm_random(uint64_t *state, uint32_t n);

/* A digit, of random place, size, slant and thickness, with noise: WM_DIGIT_SIZE squared floats from 0 to 1. Returns which
 * one it is. */
int wm_draw_digit(uint64_t *state, float *out);

/* A line of two to WM_LINE_DIGITS digits, column by column: column x begins at out[x * stride] and has WM_LINE_HEIGHT
 * floats. labels get the digits; returns how many, and in *width the columns that the line takes. */
int wm_draw_line(uint64_t *state, float *out, int64_t stride, int32_t *labels, int32_t *width);

#endif
