/* block.c: dtype conversion of packed runs, and the loads, stores and copies built on it.
 *
 * A conversion has a compute type on one side at least, so one loop for each pair is a table of 3 x 9 for
 * loading and another for storing. The loops are plain; the compiler vectorises them. */
#include "block.h"
#include "stream.h"

enum { CHUNK = 512 }; /* elements that pass through a buffer on the stack at a time */

typedef void convert_fn(const void *restrict src, void *restrict dst, int64_t n);

/* f32_to_u8 and so on: expr is the converted value of v. */
#define CONVERT(from, from_type, to, to_type, expr) \
    static void from##_to_##to(const void *restrict src, void *restrict dst, int64_t n) \
    { \
        const from_type *restrict s = src; \
        to_type *restrict t = dst; \
        for (int64_t i = 0; i < n; i++) { \
            from_type v = s[i]; \
            t[i] = expr; \
        } \
    }

static void copy4(const void *restrict src, void *restrict dst, int64_t n)
{
    memcpy(dst, src, (size_t)n * 4);
}
static void copy8(const void *restrict src, void *restrict dst, int64_t n)
{
    memcpy(dst, src, (size_t)n * 8);
}

/* ---- Float to integer ---- */

/* v within [lo, hi], NaN as 0. Both bounds must be integers that the float type holds. */
static inline float clamp_f32(float v, float lo, float hi)
{
    v = v == v ? v : 0;
    v = v > lo ? v : lo;
    return v < hi ? v : hi;
}

static inline double clamp_f64(double v, double lo, double hi)
{
    v = v == v ? v : 0;
    v = v > lo ? v : lo;
    return v < hi ? v : hi;
}

/* Where the largest integer is not a float, the clamp goes to the largest float below it (the conversion
 * would be undefined above), and what lay higher is put right after, by bits: gcc 13 makes branches of a choice. */
static inline int32_t f32_sat_i32(float v)
{
    int32_t r = (int32_t)clamp_f32(v, -0x1p31f, 0x1.fffffep30f);
    return r | (int32_t)(-(uint32_t)(v >= 0x1p31f) >> 1);
}

static inline uint32_t f32_sat_u32(float v)
{
    uint32_t r = (uint32_t)clamp_f32(v, 0, 0x1.fffffep31f);
    return r | -(uint32_t)(v >= 0x1p32f);
}

static inline int64_t f32_sat_i64(float v)
{
    int64_t r = (int64_t)clamp_f32(v, -0x1p63f, 0x1.fffffep62f);
    return r | (int64_t)(-(uint64_t)(v >= 0x1p63f) >> 1);
}

static inline int64_t f64_sat_i64(double v)
{
    int64_t r = (int64_t)clamp_f64(v, -0x1p63, 0x1.fffffffffffffp62);
    return r | (int64_t)(-(uint64_t)(v >= 0x1p63) >> 1);
}

/* ---- To the 16-bit floats from double, rounding once ---- */

/* fraction and bias are those of the target; the rest follows. All in 64-bit integers, like wk_f32_to_f16
 * one size up: a normal result is rebiased and rounded by an addition; a subnormal one is left to the
 * adder, beside a number whose last bit has the weight of the target's. */
static inline uint16_t f64_to_16bit(double v, int fraction, int bias)
{
    int shift = 52 - fraction;
    uint64_t infinity = (uint64_t)(2 * bias + 1) << fraction;
    uint64_t magic = (uint64_t)(1023 + 52 + 1 - bias - fraction) << 52;
    uint64_t least_normal = (uint64_t)(1023 + 1 - bias) << 52;
    uint64_t u, sub;
    memcpy(&u, &v, 8);
    uint64_t sign = u >> 48 & 0x8000, a = u & INT64_MAX;
    double magnitude, weight;
    memcpy(&magnitude, &a, 8);
    memcpy(&weight, &magic, 8);
    magnitude += weight;
    memcpy(&sub, &magnitude, 8);
    sub -= magic;
    uint64_t normal = a - ((uint64_t)(1023 - bias) << 52) + ((1ull << (shift - 1)) - 1) + (a >> shift & 1);
    normal >>= shift;
    normal = normal < infinity ? normal : infinity;
    uint64_t r = a < least_normal ? sub : normal;
    r = v == v ? r : infinity | 1ull << (fraction - 1);
    return (uint16_t)(sign | r);
}

static inline uint16_t f64_to_f16_bits(double v) { return f64_to_16bit(v, 10, 15); }
static inline uint16_t f64_to_bf16_bits(double v) { return f64_to_16bit(v, 7, 127); }

/* The double from which a 16-bit float is rounded as from v itself: beyond 2^53, where a double would have
 * to round already, the bits that do not fit leave a mark in the last one that does. */
static inline double i64_to_f64_odd(int64_t v)
{
    int64_t odd = (v & ~0x7FFll) | ((v & 0x7FF) != 0 ? 0x800 : 0);
    bool fits = v < (1ll << 53) && v > -(1ll << 53);
    return (double)(fits ? v : odd);
}

/* ---- Between float and the 16-bit floats ---- */

/* What is left of rows that are no multiple of GROUP, as those of convolutions and products may be, goes as a group too, with some
 * of those before once more. */
#ifdef __AVX512F__
enum { GROUP = 16 };
#else
enum { GROUP = 8 };
#endif

#define CONVERT_GROUPS(from, from_type, to, to_type, some, one) \
    static void from##_to_##to(const void *restrict src, void *restrict dst, int64_t n) \
    { \
        const from_type *restrict s = src; \
        to_type *restrict t = dst; \
        int64_t i = 0; \
        for (; i + 2 * GROUP <= n; i += 2 * GROUP) \
            some(s + i, t + i, 2 * GROUP); \
        for (; n >= GROUP && i < n; i += GROUP) { \
            int64_t at = i + GROUP < n ? i : n - GROUP; \
            some(s + at, t + at, GROUP); \
        } \
        for (; i < n; i++) \
            t[i] = one(s[i]); \
    }

#ifdef __F16C__
ALWAYS_INLINE void some_from_f16(const uint16_t *s, float *t, int n)
{
    for (int i = 0; i < n; i += GROUP)
#ifdef __AVX512F__
        _mm512_storeu_ps(t + i, _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(s + i))));
#else
        _mm256_storeu_ps(t + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(s + i))));
#endif
}

ALWAYS_INLINE void some_to_f16(const float *s, uint16_t *t, int n)
{
    for (int i = 0; i < n; i += GROUP)
#ifdef __AVX512F__
        _mm256_storeu_si256((__m256i *)(t + i),
                            _mm512_cvtps_ph(_mm512_loadu_ps(s + i), _MM_FROUND_TO_NEAREST_INT));
#else
        _mm_storeu_si128((__m128i *)(t + i),
                         _mm256_cvtps_ph(_mm256_loadu_ps(s + i), _MM_FROUND_TO_NEAREST_INT));
#endif
}

CONVERT_GROUPS(f16, uint16_t, f32, float, some_from_f16, wk_f16_to_f32)
CONVERT_GROUPS(f32, float, f16, uint16_t, some_to_f16, wk_f32_to_f16)
#else
CONVERT(f16, uint16_t, f32, float, wk_f16_to_f32(v))
CONVERT(f32, float, f16, uint16_t, wk_f32_to_f16(v))
#endif

ALWAYS_INLINE void some_to_bf16(const float *restrict s, uint16_t *restrict t, int n)
{
    for (int i = 0; i < n; i++)
        t[i] = wk_f32_to_bf16(s[i]);
}

CONVERT(bf16, uint16_t, f32, float, wk_bf16_to_f32(v))
CONVERT_GROUPS(f32, float, bf16, uint16_t, some_to_bf16, wk_f32_to_bf16)

/* ---- The other pairs ---- */

CONVERT(f16, uint16_t, f64, double, wk_f16_to_f32(v))
CONVERT(f16, uint16_t, i64, int64_t, f32_sat_i64(wk_f16_to_f32(v)))
CONVERT(bf16, uint16_t, f64, double, wk_bf16_to_f32(v))
CONVERT(bf16, uint16_t, i64, int64_t, f32_sat_i64(wk_bf16_to_f32(v)))

CONVERT(u8, uint8_t, f32, float, v)
CONVERT(u8, uint8_t, f64, double, v)
CONVERT(u8, uint8_t, i64, int64_t, v)
CONVERT(i16, int16_t, f32, float, v)
CONVERT(i16, int16_t, f64, double, v)
CONVERT(i16, int16_t, i64, int64_t, v)
CONVERT(i32, int32_t, f32, float, (float)v)
CONVERT(i32, int32_t, f64, double, v)
CONVERT(i32, int32_t, i64, int64_t, v)
CONVERT(u32, uint32_t, f32, float, (float)v)
CONVERT(u32, uint32_t, f64, double, v)
CONVERT(u32, uint32_t, i64, int64_t, v)

CONVERT(f32, float, f64, double, v)
CONVERT(f32, float, u8, uint8_t, (uint8_t)(int32_t)clamp_f32(v, 0, 255))
CONVERT(f32, float, i16, int16_t, (int16_t)(int32_t)clamp_f32(v, -32768, 32767))
CONVERT(f32, float, i32, int32_t, f32_sat_i32(v))
CONVERT(f32, float, u32, uint32_t, f32_sat_u32(v))
CONVERT(f32, float, i64, int64_t, f32_sat_i64(v))

CONVERT(f64, double, f32, float, (float)v)
CONVERT(f64, double, f16, uint16_t, f64_to_f16_bits(v))
CONVERT(f64, double, bf16, uint16_t, f64_to_bf16_bits(v))
CONVERT(f64, double, u8, uint8_t, (uint8_t)(int32_t)clamp_f64(v, 0, 255))
CONVERT(f64, double, i16, int16_t, (int16_t)(int32_t)clamp_f64(v, -32768, 32767))
CONVERT(f64, double, i32, int32_t, (int32_t)clamp_f64(v, INT32_MIN, INT32_MAX))
CONVERT(f64, double, u32, uint32_t, (uint32_t)clamp_f64(v, 0, UINT32_MAX))
CONVERT(f64, double, i64, int64_t, f64_sat_i64(v))

CONVERT(i64, int64_t, f32, float, (float)v)
CONVERT(i64, int64_t, f64, double, (double)v)
CONVERT(i64, int64_t, f16, uint16_t, f64_to_f16_bits(i64_to_f64_odd(v)))
CONVERT(i64, int64_t, bf16, uint16_t, f64_to_bf16_bits(i64_to_f64_odd(v)))
CONVERT(i64, int64_t, u8, uint8_t, (uint8_t)v)
CONVERT(i64, int64_t, i16, int16_t, (int16_t)v)
CONVERT(i64, int64_t, i32, int32_t, (int32_t)v)
CONVERT(i64, int64_t, u32, uint32_t, (uint32_t)v)

static convert_fn *const loads[3][WK_DTYPE_COUNT] = {
    [WK_COMPUTE_F32] = {[WK_F32] = copy4,
                        [WK_F16] = f16_to_f32,
                        [WK_BF16] = bf16_to_f32,
                        [WK_F64] = f64_to_f32,
                        [WK_U8] = u8_to_f32,
                        [WK_U32] = u32_to_f32,
                        [WK_I64] = i64_to_f32,
                        [WK_I32] = i32_to_f32,
                        [WK_I16] = i16_to_f32},
    [WK_COMPUTE_F64] = {[WK_F32] = f32_to_f64,
                        [WK_F16] = f16_to_f64,
                        [WK_BF16] = bf16_to_f64,
                        [WK_F64] = copy8,
                        [WK_U8] = u8_to_f64,
                        [WK_U32] = u32_to_f64,
                        [WK_I64] = i64_to_f64,
                        [WK_I32] = i32_to_f64,
                        [WK_I16] = i16_to_f64},
    [WK_COMPUTE_I64] = {[WK_F32] = f32_to_i64,
                        [WK_F16] = f16_to_i64,
                        [WK_BF16] = bf16_to_i64,
                        [WK_F64] = f64_to_i64,
                        [WK_U8] = u8_to_i64,
                        [WK_U32] = u32_to_i64,
                        [WK_I64] = copy8,
                        [WK_I32] = i32_to_i64,
                        [WK_I16] = i16_to_i64},
};

static convert_fn *const stores[3][WK_DTYPE_COUNT] = {
    [WK_COMPUTE_F32] = {[WK_F32] = copy4,
                        [WK_F16] = f32_to_f16,
                        [WK_BF16] = f32_to_bf16,
                        [WK_F64] = f32_to_f64,
                        [WK_U8] = f32_to_u8,
                        [WK_U32] = f32_to_u32,
                        [WK_I64] = f32_to_i64,
                        [WK_I32] = f32_to_i32,
                        [WK_I16] = f32_to_i16},
    [WK_COMPUTE_F64] = {[WK_F32] = f64_to_f32,
                        [WK_F16] = f64_to_f16,
                        [WK_BF16] = f64_to_bf16,
                        [WK_F64] = copy8,
                        [WK_U8] = f64_to_u8,
                        [WK_U32] = f64_to_u32,
                        [WK_I64] = f64_to_i64,
                        [WK_I32] = f64_to_i32,
                        [WK_I16] = f64_to_i16},
    [WK_COMPUTE_I64] = {[WK_F32] = i64_to_f32,
                        [WK_F16] = i64_to_f16,
                        [WK_BF16] = i64_to_bf16,
                        [WK_F64] = i64_to_f64,
                        [WK_U8] = i64_to_u8,
                        [WK_U32] = i64_to_u32,
                        [WK_I64] = copy8,
                        [WK_I32] = i64_to_i32,
                        [WK_I16] = i64_to_i16},
};

/* ---- The functions of block.h ---- */

#define GATHER(type) \
    static void gather_##type(const void *restrict src, int64_t stride, void *restrict dst, int64_t n) \
    { \
        const type *restrict s = src; \
        type *restrict t = dst; \
        for (int64_t i = 0; i < n; i++) \
            t[i] = s[i * stride]; \
    }

GATHER(uint8_t)
GATHER(uint16_t)
GATHER(uint32_t)
GATHER(uint64_t)

void WK_ISA(wk_block_gather)(size_t bytes, const void *src, int64_t stride, void *dst, int64_t n)
{
    if (stride == 1) {
        memcpy(dst, src, (size_t)n * bytes);
        return;
    }
    switch (bytes) {
    case 1: gather_uint8_t(src, stride, dst, n); break;
    case 2: gather_uint16_t(src, stride, dst, n); break;
    case 4: gather_uint32_t(src, stride, dst, n); break;
    default: gather_uint64_t(src, stride, dst, n); break;
    }
}

void WK_ISA(wk_block_load_as)(wk_compute c, wk_dtype d, const void *src, int64_t stride, void *dst, int64_t n)
{
    convert_fn *convert = loads[c][d];
    size_t bytes = wk_bytes(d), out_bytes = wk_compute_bytes(c);
    if (stride == 1) {
        convert(src, dst, n);
    } else if (stride == 0) {
        uint64_t value;
        convert(src, &value, n > 0);
        WK_ISA(wk_block_gather)(out_bytes, &value, 0, dst, n);
    } else {
        _Alignas(WK_LINE) unsigned char raw[CHUNK * 8];
        for (int64_t i = 0; i < n; i += CHUNK) {
            int64_t m = n - i < CHUNK ? n - i : CHUNK;
            const unsigned char *from = (const unsigned char *)src + i * stride * (int64_t)bytes;
            WK_ISA(wk_block_gather)(bytes, from, stride, raw, m);
            convert(raw, (unsigned char *)dst + (size_t)i * out_bytes, m);
        }
    }
}

void WK_ISA(wk_block_load)(wk_dtype d, const void *src, int64_t stride, void *dst, int64_t n)
{
    WK_ISA(wk_block_load_as)(wk_dtypes[d].compute, d, src, stride, dst, n);
}

void WK_ISA(wk_block_store)(wk_dtype d, wk_compute c, const void *src, void *dst, int64_t n, bool stream)
{
    convert_fn *convert = stores[c][d];
    if (!stream) {
        convert(src, dst, n);
        return;
    }
    if (d == wk_compute_dtype(c)) {
        WK_ISA(wk_block_copy)(src, dst, (size_t)n * wk_bytes(d), true);
        return;
    }
    _Alignas(WK_LINE) unsigned char packed[CHUNK * 8];
    size_t bytes = wk_bytes(d), in_bytes = wk_compute_bytes(c);
    for (int64_t i = 0; i < n; i += CHUNK) {
        int64_t m = n - i < CHUNK ? n - i : CHUNK;
        convert((const unsigned char *)src + (size_t)i * in_bytes, packed, m);
        wk_stream_copy((unsigned char *)dst + (size_t)i * bytes, packed, (size_t)m * bytes, 0);
    }
}

void WK_ISA(wk_block_copy)(const void *src, void *dst, size_t bytes, bool stream)
{
    if (!stream) {
        memcpy(dst, src, bytes);
        return;
    }
    wk_stream_copy(dst, src, bytes, 0);
}
