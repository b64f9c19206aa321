/* digits.c: digits as a few strokes, drawn by the distance of each pixel from them. */
#include "digits.h"
#include <math.h>
#include <string.h>

/* Corners of the strokes in a box of 0..2 by 0..4, "xy" each; a blank ends a stroke. */
static const char *const strokes[10] = {"0020240400",      "1014",         "002022020424", "00202404 0222",
                                        "000222 2024",     "200002222404", "200004242202", "002014",
                                        "0020240400 0222", "220200202404"};

typedef struct {
    float a[4], b[2]; /* box to pixels: a matrix and an offset */
    float radius, soft;
} pen;

uint32_t wm_random(uint64_t *state, uint32_t n)
{
    *state += 0x9E3779B97F4A7C15u; /* SplitMix64 */
    uint64_t z = *state;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    z ^= z >> 31;
    return (uint32_t)((z >> 32) * n >> 32);
}

/* From low to high. */
static float between(uint64_t *state, float low, float high)
{
    return low + (high - low) * (float)wm_random(state, 1 << 20) / (float)(1 << 20);
}

static float distance(float px, float py, const float *from, const float *to)
{
    float dx = to[0] - from[0], dy = to[1] - from[1], length = dx * dx + dy * dy;
    float t = length > 0 ? ((px - from[0]) * dx + (py - from[1]) * dy) / length : 0;
    t = t < 0 ? 0 : t > 1 ? 1 : t;
    return hypotf(px - from[0] - t * dx, py - from[1] - t * dy);
}

static void corner(const pen *p, const char *xy, float *out)
{
    float x = (float)(xy[0] - '0') - 1, y = (float)(xy[1] - '0') - 2;
    out[0] = p->a[0] * x + p->a[1] * y + p->b[0];
    out[1] = p->a[2] * x + p->a[3] * y + p->b[1];
}

/* One line over the picture: the darkest of what is there and what it gives. */
static void draw_segment(const pen *p, const char *from, const char *to, float *out, int w, int h, int64_t dx,
                         int64_t dy)
{
    float a[2], b[2];
    corner(p, from, a);
    corner(p, to, b);
    for (int y = 0; y < h; y++)
        for (int x = 0; x < w; x++) {
            float d = distance((float)x, (float)y, a, b);
            float ink = 1 - (d - p->radius) / p->soft, *to_pixel = &out[x * dx + y * dy];
            ink = ink < 0 ? 0 : ink > 1 ? 1 : ink;
            *to_pixel = ink > *to_pixel ? ink : *to_pixel;
        }
}

static void draw(const pen *p, int digit, float *out, int w, int h, int64_t dx, int64_t dy)
{
    for (const char *s = strokes[digit]; s[0] && s[1]; s += s[0] == ' ' ? 1 : 2)
        if (s[0] != ' ' && s[2] && s[2] != ' ')
            draw_segment(p, s, s + 2, out, w, h, dx, dy);
}

int wm_draw_digit(uint64_t *state, float *out)
{
    enum { N = WM_DIGIT_SIZE };
    int digit = (int)wm_random(state, 10);
    float size = between(state, 2.4f, 3.6f), slant = between(state, -0.3f, 0.3f),
          turn = between(state, -0.25f, 0.25f);
    pen p = {.a = {size * between(state, 0.8f, 1.2f), slant * size, turn * size, size},
             .b = {N / 2 + between(state, -2, 2), N / 2 + between(state, -2, 2)},
             .radius = between(state, 0.3f, 1.2f),
             .soft = 0.9f};
    memset(out, 0, N * N * sizeof *out);
    draw(&p, digit, out, N, N, 1, N);
    for (int i = 0; i < N * N; i++)
        out[i] += between(state, -0.15f, 0.15f);
    return digit;
}

int wm_draw_line(uint64_t *state, float *out, int64_t stride, int32_t *labels, int32_t *width)
{
    enum { H = WM_LINE_HEIGHT, CELL = 9 };
    int n = 2 + (int)wm_random(state, WM_LINE_DIGITS - 1);
    float at = between(state, 0, 3);
    for (int x = 0; x < WM_LINE_WIDTH; x++)
        memset(out + x * stride, 0, H * sizeof *out);
    for (int i = 0; i < n; i++, at += CELL + between(state, 0, 2)) {
        float size = between(state, 1.8f, 2.4f), slant = between(state, -0.2f, 0.2f);
        pen p = {.a = {size * 0.9f, slant * size, 0, size},
                 .b = {3.5f, H / 2.0f - 0.5f + between(state, -0.6f, 0.6f)},
                 .radius = between(state, 0.3f, 0.7f),
                 .soft = 0.8f};
        labels[i] = (int32_t)wm_random(state, 10);
        draw(&p, labels[i], out + (int64_t)at * stride, CELL, H, stride, 1);
    }
    *width = (int32_t)at < WM_LINE_WIDTH ? (int32_t)at : WM_LINE_WIDTH;
    for (int x = 0; x < *width; x++)
        for (int y = 0; y < H; y++)
            out[x * stride + y] += between(state, -0.1f, 0.1f);
    return n;
}
