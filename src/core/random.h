/* random.h: the one random generator, Philox 4x32-10, and how its words become numbers.
 *
 * The generator has no state: word i of a stream is a function of (seed, offset, i), so that threads and devices
 * make any part of a stream in any order and get the same numbers. What follows is the definition; kernels on
 * other devices mirror it and give the same bits.
 *
 *   key      k0 = seed's low 32 bits, k1 = its high ones
 *   counter  c0, c1 = low and high 32 bits of the block number, c2 = the plane, c3 = 0
 *   block    four words, of block number offset + i / 4 (modulo 2^64); word i of a plane is its lane i % 4
 *
 * offset counts blocks: after n elements the next unused one is offset + ceil(n / 4), whatever the dtype.
 *
 *   element i of a tensor (row-major)    takes
 *   dropout masks, of any dtype          word i of plane 0; it is dropped where word < p 2^32
 *   uniform f32, f16, bf16               the top 24 bits of word i of plane 0
 *   uniform f64                          (word i of plane 0) << 32 | (word i of plane 1), the top 53 bits of it
 *   normals: the pair 2 j, 2 j + 1       the pair's words of plane 0, and for f64 of plane 1, for two uniforms
 *
 * So a seed gives the same numbers in every dtype, as near as that has them. Uniforms u become low + u (high - low) in
 * f32 or f64, and f16 and bf16 cut that to their significand instead of rounding it: u itself stays below 1.
 *
 * The C library's log, sin and cos differ from device to device. Those here use +, -, *, / and sqrt of double
 * only, each rounded on its own: a file that makes normals, or scales uniforms, is compiled without contraction
 * of a * b + c to a fused multiply-add (-ffp-contract=off). */
#ifndef WK_CORE_RANDOM_H
#define WK_CORE_RANDOM_H

#include <math.h>
#include <stdint.h>
#include <string.h>

/* ---- Words ---- */

/* The four words of a block. */
static inline void wk_philox(uint64_t seed, uint64_t block, uint32_t plane, uint32_t w[4])
{
    uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
    uint32_t c0 = (uint32_t)block, c1 = (uint32_t)(block >> 32), c2 = plane, c3 = 0;
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)0xD2511F53 * c0, p1 = (uint64_t)0xCD9E8D57 * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c1 = (uint32_t)p1;
        c3 = (uint32_t)p0;
        k0 += 0x9E3779B9;
        k1 += 0xBB67AE85;
    }
    w[0] = c0;
    w[1] = c1;
    w[2] = c2;
    w[3] = c3;
}

/* Word i of a plane. */
static inline uint32_t wk_plane_word(uint64_t seed, uint64_t offset, uint32_t plane, uint64_t i)
{
    uint32_t w[4];
    wk_philox(seed, offset + i / 4, plane, w);
    return w[i % 4];
}

/* Words [first, first + n) of a plane. The middle, whole blocks, is a loop that vectorises. */
static inline void wk_plane_words(uint64_t seed, uint64_t offset, uint32_t plane, uint64_t first, int64_t n,
                                  uint32_t *w)
{
    int64_t at = 0;
    for (; at < n && (first + (uint64_t)at) % 4; at++)
        w[at] = wk_plane_word(seed, offset, plane, first + (uint64_t)at);
    int64_t blocks = (n - at) / 4;
    uint64_t block = offset + (first + (uint64_t)at) / 4;
    for (int64_t b = 0; b < blocks; b++)
        wk_philox(seed, block + (uint64_t)b, plane, w + at + 4 * b);
    for (at += 4 * blocks; at < n; at++)
        w[at] = wk_plane_word(seed, offset, plane, first + (uint64_t)at);
}

/* Those of plane 0: a word for every element. */
static inline uint32_t wk_random_word(uint64_t seed, uint64_t offset, uint64_t i)
{
    return wk_plane_word(seed, offset, 0, i);
}

static inline void wk_random_words(uint64_t seed, uint64_t offset, uint64_t first, int64_t n, uint32_t *w)
{
    wk_plane_words(seed, offset, 0, first, n, w);
}

/* ---- Dropout ---- */

/* An element is dropped where its word is below this; 0 <= p <= 1, so that it goes from 0 to 2^32. */
static inline uint64_t wk_dropout_threshold(double p) { return (uint64_t)(p * 0x1p32); }

static inline int wk_dropout_keeps(uint32_t word, uint64_t threshold) { return word >= threshold; }

/* What the elements that stay are multiplied with; 0 for p = 1. */
static inline double wk_dropout_scale(double p) { return p < 1 ? 1 / (1 - p) : 0; }

/* ---- Uniforms in [0, 1) ---- */

static inline float wk_uniform_f32(uint32_t word) { return (float)(int32_t)(word >> 8) * 0x1p-24f; }

/* Sets a float's last n bits to 0: 13 for f16, 16 for bf16. */
static inline float wk_cut_f32(float v, int n)
{
    uint32_t bits;
    memcpy(&bits, &v, 4);
    bits = bits >> n << n;
    memcpy(&v, &bits, 4);
    return v;
}

/* high from plane 0, low from plane 1. */
static inline double wk_uniform_f64(uint32_t high, uint32_t low)
{
    return (double)(int64_t)(((uint64_t)high << 32 | low) >> 11) * 0x1p-53;
}

/* ---- Normals ---- */

/* -2 ln(u) for 0 < u <= 1. With u = 2^k m, m from sqrt(1/2) to sqrt(2), and s = (m - 1) / (m + 1) it is
 * -2 (k ln 2 + 2 s (1 + s^2 / 3 + s^4 / 5 + ...)); the terms left out are below 2^-57. */
static inline double wk_minus_2_log(double u)
{
    const uint64_t sqrt_half = 0x3FE6A09E667F3BCD;
    uint64_t bits;
    memcpy(&bits, &u, 8);
    bits -= sqrt_half;
    /* The exponent, at least -64 here, as a double: by way of the low bits of 2^52. */
    uint64_t k_bits = ((bits + ((uint64_t)1023 << 52)) >> 52) | 0x4330000000000000;
    uint64_t m_bits = (bits & 0xFFFFFFFFFFFFF) + sqrt_half;
    double k, m;
    memcpy(&k, &k_bits, 8);
    memcpy(&m, &m_bits, 8);
    k -= 0x1p52 + 1023;
    double s = (m - 1) / (m + 1), z = s * s;
    double p = 1.0 / 21;
    p = p * z + 1.0 / 19;
    p = p * z + 1.0 / 17;
    p = p * z + 1.0 / 15;
    p = p * z + 1.0 / 13;
    p = p * z + 1.0 / 11;
    p = p * z + 1.0 / 9;
    p = p * z + 1.0 / 7;
    p = p * z + 1.0 / 5;
    p = p * z + 1.0 / 3;
    p = p * z + 1;
    return k * -0x1.62e42fefa39efp0 + s * p * -4; /* -2 ln 2 */
}

/* cos and sin of 2 pi u for 0 <= u < 1, by quarters of a turn: u = k / 4 + r / 4 with |r| <= 1/2, exactly. Then
 * Taylor's series, whose terms left out are below 2^-55. */
static inline void wk_cos_sin_turn(double u, double *cosine, double *sine)
{
    int32_t k = (int32_t)(u * 4 + 0.5);
    double x = (u * 4 - k) * 0x1.921fb54442d18p0, z = x * x; /* pi / 2 */
    double s = 1.0 / 355687428096000;
    s = s * z - 1.0 / 1307674368000;
    s = s * z + 1.0 / 6227020800;
    s = s * z - 1.0 / 39916800;
    s = s * z + 1.0 / 362880;
    s = s * z - 1.0 / 5040;
    s = s * z + 1.0 / 120;
    s = s * z - 1.0 / 6;
    s = s * z * x + x;
    double c = 1.0 / 20922789888000;
    c = c * z - 1.0 / 87178291200;
    c = c * z + 1.0 / 479001600;
    c = c * z - 1.0 / 3628800;
    c = c * z + 1.0 / 40320;
    c = c * z - 1.0 / 720;
    c = c * z + 1.0 / 24;
    c = c * z - 0.5;
    c = c * z + 1;
    double a = k & 1 ? s : c, b = k & 1 ? c : s;
    *cosine = (k + 1) & 2 ? -a : a;
    *sine = k & 2 ? -b : b;
}

/* Box and Muller: two normals of two uniforms, 0 < u <= 1 and 0 <= v < 1. */
static inline void wk_normal_pair(double u, double v, double z[2])
{
    double radius = sqrt(wk_minus_2_log(u)), cosine, sine;
    wk_cos_sin_turn(v, &cosine, &sine);
    z[0] = radius * cosine;
    z[1] = radius * sine;
}

/* For f32, f16 and bf16, from the pair's words; each z is rounded to float by the caller, last of all. */
static inline void wk_normals_f32(const uint32_t w[2], double z[2])
{
    wk_normal_pair(((double)w[0] + 1) * 0x1p-32, (double)w[1] * 0x1p-32, z);
}

/* For f64. */
static inline void wk_normals_f64(const uint32_t high[2], const uint32_t low[2], double z[2])
{
    wk_normal_pair(wk_uniform_f64(high[0], low[0]) + 0x1p-53, wk_uniform_f64(high[1], low[1]), z);
}

#endif
