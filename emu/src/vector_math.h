/* vector_math.h - what the expressions of exec_vector.c are made of: extremes, conversions, bit fields, sums of bytes and
 * the last steps of divisions and of reducing an angle, as the hardware does them. */
#ifndef ROCM_EMU_VECTOR_MATH_H
#define ROCM_EMU_VECTOR_MATH_H
#include "vector_list.h"
#include "vmath.h"

#define PI 3.14159265358979323846

static inline double min_f64(double a, double b) { return a == b ? u2d(d2u(a) | d2u(b)) : (a < b || b != b) ? a : b; }
static inline double max_f64(double a, double b) { return a == b ? u2d(d2u(a) & d2u(b)) : (a > b || b != b) ? a : b; }
static inline float med3_f32(float a, float b, float c)
{
    if (a != a || b != b || c != c)
        return min_f32(min_f32(a, b), c);
    return max_f32(min_f32(a, b), min_f32(max_f32(a, b), c));
}
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define MED3(a, b, c) MAX(MIN(a, b), MIN(MAX(a, b), c))
static inline int32_t cvt_i32(double x)
{
    return x != x ? 0 : x <= -2147483648.0 ? INT32_MIN : x >= 2147483647.0 ? INT32_MAX : (int32_t)x;
}
static inline uint32_t cvt_u32(double x) { return !(x > 0) ? 0 : x >= 4294967295.0 ? UINT32_MAX : (uint32_t)x; }
static inline float fract_f32(float x)
{
    float r = x - floorf(x);
    return r < 1 ? r : (r == r ? 0x1.fffffep-1f : r);
}
static inline double fract_f64(double x)
{
    double r = x - floor(x);
    return r < 1 ? r : (r == r ? 0x1.fffffffffffffp-1 : r);
}
/* sin/cos of a number of turns, reduced exactly first */
static float sin_turns(float x)
{
    double t = x - floor((double)x);
    return fabs((double)x) > 16777216.0 ? 0 : (float)sin(2 * PI * t);
}
static float cos_turns(float x)
{
    double t = x - floor((double)x);
    return fabs((double)x) > 16777216.0 ? 1 : (float)cos(2 * PI * t);
}
static double frexp_mant_f64(double x)
{
    int e;
    return isfinite(x) ? frexp(x, &e) : x;
}
static int32_t frexp_exp_f64(double x)
{
    int e = 0;
    if (isfinite(x))
        frexp(x, &e);
    return e;
}
static uint32_t brev32(uint32_t v)
{
    v = (v >> 1 & 0x55555555u) | (v & 0x55555555u) << 1;
    v = (v >> 2 & 0x33333333u) | (v & 0x33333333u) << 2;
    v = (v >> 4 & 0x0f0f0f0fu) | (v & 0x0f0f0f0fu) << 4;
    return __builtin_bswap32(v);
}
static int32_t i24(uint32_t v) { return (int32_t)(v << 8) >> 8; }
static uint32_t u24(uint32_t v) { return v & 0xffffffu; }
static uint32_t bfe_u(uint32_t a, uint32_t b, uint32_t c)
{
    b &= 31, c &= 31;
    return a >> b & ((1u << c) - 1);
}
static uint32_t bfe_i(uint32_t a, uint32_t b, uint32_t c)
{
    b &= 31, c &= 31;
    if (!c)
        return 0;
    if (b + c > 32)
        return (uint32_t)((int32_t)a >> b);
    return (uint32_t)((int32_t)(a << (32 - b - c)) >> (32 - c));
}
static uint32_t perm(uint32_t a, uint32_t b, uint32_t sel)
{
    uint64_t v = (uint64_t)a << 32 | b;
    uint32_t r = 0;
    for (int i = 0; i < 4; i++) {
        uint32_t s = sel >> 8 * i & 0xff, byte;
        if (s < 8)
            byte = (uint32_t)(v >> 8 * s & 0xff);
        else if (s < 12)
            byte = v >> (16 * (s - 8) + 15) & 1 ? 0xff : 0;
        else
            byte = s == 12 ? 0 : 0xff;
        r |= byte << 8 * i;
    }
    return r;
}
static uint32_t sad_u8(uint32_t a, uint32_t b, uint32_t c, bool masked)
{
    for (int i = 0; i < 32; i += 8) {
        int x = (int)(a >> i & 0xff), y = (int)(b >> i & 0xff);
        if (!masked || y)
            c += (uint32_t)(x > y ? x - y : y - x);
    }
    return c;
}
static uint32_t sad_u16(uint32_t a, uint32_t b, uint32_t c)
{
    for (int i = 0; i < 32; i += 16) {
        int x = (int)(a >> i & 0xffff), y = (int)(b >> i & 0xffff);
        c += (uint32_t)(x > y ? x - y : y - x);
    }
    return c;
}
static uint32_t lerp_u8(uint32_t a, uint32_t b, uint32_t c)
{
    uint32_t r = 0;
    for (int i = 0; i < 32; i += 8)
        r |= (((a >> i & 0xff) + (b >> i & 0xff) + (c >> i & 1)) >> 1) << i;
    return r;
}
static uint32_t cvt_pk_u8(float x, uint32_t b, uint32_t c)
{
    uint32_t v = !(x > 0) ? 0 : x >= 255 ? 255 : (uint32_t)x, sh = 8 * (b & 3);
    return (c & ~(0xffu << sh)) | v << sh;
}
/* f32 to f16 toward zero */
static uint32_t f2h_rtz(float x)
{
    uint32_t h = f2h(x), mag = f2u(x) & 0x7fffffffu;
    if (mag < 0x7f800000u && fabsf(h2f(h)) > fabsf(x))
        h--; /* rounded away from zero, perhaps to infinity */
    return h;
}
static uint32_t norm_i16(float x) { return (uint16_t)(int16_t)lrintf((x > 1 ? 1 : x > -1 ? x : -1) * 32767.0f); }
static uint32_t norm_u16(float x) { return (uint16_t)lrintf((x > 1 ? 1 : x > 0 ? x : 0) * 65535.0f); }
static int32_t sat_i16(int32_t x) { return MED3(x, -32768, 32767); }

/* later assignments win; written so that the loop over lanes has no branches */
static inline float div_fixup_f32(float q, float d, float n)
{
    float r = q != q ? INFINITY : fabsf(q); /* NaN: the steps before overflowed */
    int dn = (int)(f2u(n) >> 23 & 255), dd = (int)(f2u(d) >> 23 & 255);
    r = dn - dd < -150 || fabsf(d) == INFINITY || n == 0 ? 0 : r;
    r = d == 0 || fabsf(n) == INFINITY ? INFINITY : r;
    r = u2f(f2u(r) | ((f2u(d) ^ f2u(n)) & 0x80000000u));
    r = (d == 0 && n == 0) || (fabsf(d) == INFINITY && fabsf(n) == INFINITY) ? NAN : r;
    r = d != d ? d : r;
    return n != n ? n : r;
}
static double div_fixup_f64(double q, double d, double n)
{
    double r;
    bool neg = (d2u(d) ^ d2u(n)) >> 63;
    if (div_special(d, n, &r))
        return r;
    if ((int)(d2u(n) >> 52 & 2047) - (int)(d2u(d) >> 52 & 2047) < -1075)
        return neg ? -0.0 : 0.0;
    if (q != q)
        q = INFINITY;
    return neg ? -fabs(q) : fabs(q);
}
/* 2/pi in 1201 bits is what the hardware holds; a kernel that reduces huge arguments of sin in
 * double precision reads 53 of them at a time. */
static double trig_preop(double x, uint32_t seg)
{
    static const uint32_t two_over_pi[] = {
        0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0, 0xdb629599, 0x3c439041, 0xfe5163ab, 0xdebbc561,
        0xb7246e3a, 0x424dd2e0, 0x06492eea, 0x09d1921c, 0xfe1deb1c, 0xb129a73e, 0xe88235f5, 0x2ebb4484,
        0xe99c7026, 0xb45f7e41, 0x3991d639, 0x835339f4, 0x9c845f8b, 0xbdf9283b, 0x1ff897ff, 0xde05980f,
        0xef2f118b, 0x5a0a6d1f, 0x6d367ecf, 0x27cb09b7, 0x4f463f66, 0x9e5fea2d, 0x7527bac7, 0xebe5f17b,
        0x3d0739f7, 0x8a5292ea, 0x6bfb5fb1, 0x1f8d5d08, 0x56033046, 0xfc7b6bab};
    int e = (int)(d2u(x) >> 52 & 0x7ff);
    int shift = (int)(seg & 31) * 53;
    if (e > 1077)
        shift += e - 1077;
    uint64_t bits = 0; /* bits shift .. shift+52 of 0.two_over_pi */
    for (int i = 0; i < 53; i++) {
        int k = shift + i;
        uint32_t word = k / 32 < 38 ? two_over_pi[k / 32] : 0;
        bits = bits << 1 | (word >> (31 - k % 32) & 1);
    }
    int scale = -53 - shift;
    if (e >= 1968)
        scale += 128;
    return ldexp((double)bits, scale);
}

#endif
