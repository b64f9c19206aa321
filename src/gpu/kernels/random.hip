/* random.hip: random numbers and dropout: what core/random.h defines, bit for bit. Compiled without fused
 * multiply-adds, as that asks for. A thread makes four neighbouring elements, which share a block of the generator. */
#include "philox.h"
#include "random.h"

DEVICE void philox(u64 seed, u64 block, u32 plane, u32 *w)
{
    philox_block b = philox(seed, block, plane);
    w[0] = b.w0;
    w[1] = b.w1;
    w[2] = b.w2;
    w[3] = b.w3;
}

/* ---- four elements from and to memory, or as many as there are ---- */

template <class T> DEVICE pack<T, 4> load_some(const random_args &a, const T *p, i64 at)
{
    pack<T, 4> v = {};
    if (a.aligned && at + 4 <= a.count)
        return load<4>(p + at);
    UNROLL
    for (int i = 0; i < 4; i++) {
        if (at + i < a.count)
            v.v[i] = p[at + i];
    }
    return v;
}

template <class T> DEVICE void store_some(const random_args &a, T *p, i64 at, const pack<T, 4> &v)
{
    if (a.aligned && at + 4 <= a.count) {
        store<4>(p + at, v);
        return;
    }
    UNROLL
    for (int i = 0; i < 4; i++) {
        if (at + i < a.count)
            p[at + i] = v.v[i];
    }
}

#define EACH_FOUR(at) for (i64 at = global_thread() * 4; at < a.count; at += global_threads() * 4)

/* ---- uniforms ---- */

DEVICE f64 uniform_f64(u32 high, u32 low) { return (f64)(i64)(((u64)high << 32 | low) >> 11) * 0x1p-53; }

/* f16 and bf16 have 13 and 16 bits less than a float; they are cut off, so that u stays below 1. */
template <class T> DEVICE f32 cut(f32 v) { return v; }
template <> MEMBER f32 cut<f16>(f32 v) { return bit_cast<f32>(bit_cast<u32>(v) >> 13 << 13); }
template <> MEMBER f32 cut<bf16>(f32 v) { return bit_cast<f32>(bit_cast<u32>(v) >> 16 << 16); }

template <class T> DEVICE void rand_four(const random_args &a, u64 block, pack<T, 4> &y)
{
    u32 w[4];
    f32 low = (f32)a.a, range = (f32)a.b;
    philox(a.seed, block, 0, w);
    UNROLL
    for (int i = 0; i < 4; i++)
        y.v[i] = put<T>(cut<T>(low + (f32)(i32)(w[i] >> 8) * 0x1p-24f * range));
}
DEVICE void rand_four(const random_args &a, u64 block, pack<f64, 4> &y)
{
    u32 high[4], low[4];
    philox(a.seed, block, 0, high);
    philox(a.seed, block, 1, low);
    UNROLL
    for (int i = 0; i < 4; i++)
        y.v[i] = a.a + uniform_f64(high[i], low[i]) * a.b;
}

template <class T> DEVICE void random_uniform(const random_args &a)
{
    EACH_FOUR(at)
    {
        pack<T, 4> y;
        rand_four(a, a.offset + (u64)at / 4, y);
        store_some(a, (T *)a.y, at, y);
    }
}

/* ---- normals ---- */

/* -2 ln(u) for 0 < u <= 1: see core/random.h. */
DEVICE f64 minus_2_log(f64 u)
{
    const u64 sqrt_half = 0x3FE6A09E667F3BCD;
    u64 bits = bit_cast<u64>(u) - sqrt_half;
    f64 k = bit_cast<f64>(((bits + ((u64)1023 << 52)) >> 52) | 0x4330000000000000);
    f64 m = bit_cast<f64>((bits & 0xFFFFFFFFFFFFF) + sqrt_half);
    k -= 0x1p52 + 1023;
    f64 s = (m - 1) / (m + 1), z = s * s;
    f64 p = 1.0 / 21;
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
    return k * -0x1.62e42fefa39efp0 + s * p * -4;
}

/* cos and sin of 2 pi u for 0 <= u < 1: see core/random.h. */
DEVICE void cos_sin_turn(f64 u, f64 *cosine, f64 *sine)
{
    i32 k = (i32)(u * 4 + 0.5);
    f64 x = (u * 4 - k) * 0x1.921fb54442d18p0, z = x * x;
    f64 s = 1.0 / 355687428096000;
    s = s * z - 1.0 / 1307674368000;
    s = s * z + 1.0 / 6227020800;
    s = s * z - 1.0 / 39916800;
    s = s * z + 1.0 / 362880;
    s = s * z - 1.0 / 5040;
    s = s * z + 1.0 / 120;
    s = s * z - 1.0 / 6;
    s = s * z * x + x;
    f64 c = 1.0 / 20922789888000;
    c = c * z - 1.0 / 87178291200;
    c = c * z + 1.0 / 479001600;
    c = c * z - 1.0 / 3628800;
    c = c * z + 1.0 / 40320;
    c = c * z - 1.0 / 720;
    c = c * z + 1.0 / 24;
    c = c * z - 0.5;
    c = c * z + 1;
    f64 a = k & 1 ? s : c, b = k & 1 ? c : s;
    *cosine = (k + 1) & 2 ? -a : a;
    *sine = k & 2 ? -b : b;
}

/* Box and Muller. */
DEVICE void normal_pair(f64 u, f64 v, f64 *z)
{
    f64 radius = m_sqrt(minus_2_log(u)), cosine, sine;
    cos_sin_turn(v, &cosine, &sine);
    z[0] = radius * cosine;
    z[1] = radius * sine;
}

template <class T> DEVICE void normal_four(const random_args &a, u64 block, pack<T, 4> &y)
{
    u32 w[4];
    philox(a.seed, block, 0, w);
    UNROLL
    for (int i = 0; i < 4; i += 2) {
        f64 z[2];
        normal_pair(((f64)w[i] + 1) * 0x1p-32, (f64)w[i + 1] * 0x1p-32, z);
        y.v[i] = put<T>((f32)(a.a + a.b * z[0]));
        y.v[i + 1] = put<T>((f32)(a.a + a.b * z[1]));
    }
}
DEVICE void normal_four(const random_args &a, u64 block, pack<f64, 4> &y)
{
    u32 high[4], low[4];
    philox(a.seed, block, 0, high);
    philox(a.seed, block, 1, low);
    UNROLL
    for (int i = 0; i < 4; i += 2) {
        f64 z[2];
        normal_pair(uniform_f64(high[i], low[i]) + 0x1p-53, uniform_f64(high[i + 1], low[i + 1]), z);
        y.v[i] = a.a + a.b * z[0];
        y.v[i + 1] = a.a + a.b * z[1];
    }
}

template <class T> DEVICE void random_normal(const random_args &a)
{
    EACH_FOUR(at)
    {
        pack<T, 4> y;
        normal_four(a, a.offset + (u64)at / 4, y);
        store_some(a, (T *)a.y, at, y);
    }
}

/* ---- dropout ---- */

/* Which of four elements stay: by the mask where there is one, else by the generator. */
DEVICE pack<u8, 4> keep_four(const random_args &a, i64 at)
{
    pack<u8, 4> keep = {};
    u32 w[4];
    if (a.keep)
        return load_some(a, a.keep, at);
    if (a.threshold >> 32)
        return keep;
    philox(a.seed, a.offset + (u64)at / 4, 0, w);
    UNROLL
    for (int i = 0; i < 4; i++)
        keep.v[i] = w[i] >= (u32)a.threshold;
    return keep;
}

template <class T> DEVICE void random_dropout(const random_args &a)
{
    EACH_FOUR(at)
    {
        pack<T, 4> x = {};
        if (a.y) /* on their way while the generator works */
            x = load_some(a, (const T *)a.x, at);
        pack<u8, 4> keep = keep_four(a, at);
        if (a.y) {
            pack<T, 4> y;
            UNROLL
            for (int i = 0; i < 4; i++)
                y.v[i] = put<T>(keep.v[i] ? get(x.v[i]) * (acc<T>)a.b : (acc<T>)0);
            store_some(a, (T *)a.y, at, y);
        }
        if (a.mask)
            store_some(a, a.mask, at, keep);
    }
}
