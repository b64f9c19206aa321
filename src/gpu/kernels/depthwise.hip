/* depthwise.hip: convolutions with one image channel a group, their gradients, and the gradient of a bias. */
#include "conv_end.h"
#include "depthwise.h"
#include "planes.hip"

/* ---- the result from its neighbourhood ---- */

/* Where an item's first pixel is. */
struct depth_item {
    u32 n, channel;
    i32 d, h, w, end;
    i64 out; /* of the pixel */
    MEMBER depth_item(const depth_args &a, u32 i)
    {
        plane_item at(a.walk, i);
        u32 plane = (u32)a.walk.first + at.plane;
        n = divide(plane, a.walk.channels);
        channel = plane - n * a.walk.channels.d;
        d = (i32)divide((u32)at.row, a.strips);
        h = (at.row - d * (i32)a.strips.d) * a.rows;
        w = at.col;
        end = lesser(h + a.rows, a.axis[1].out);
        out = (((i64)plane * a.axis[0].out + d) * a.axis[1].out + h) * a.axis[2].out + w;
    }
};

DEVICE bool inside(const depth_axis &x, i32 at) { return (u32)at < (u32)x.size; }

template <class T> DEVICE void depth_map(const depth_args &a)
{
    typedef acc<T> A;
    const depth_axis &d = a.axis[0], &h = a.axis[1], &w = a.axis[2];
    i32 taps = d.taps * h.taps * w.taps;
    for (u32 i = (u32)global_thread(); i < a.walk.items; i += (u32)global_threads()) {
        depth_item at(a, i);
        const T *x = (const T *)a.b.p + at.n * a.b.n + divide(at.channel, a.multiplier) * a.b.c;
        const T *weight = (const T *)a.weight + (i64)at.channel * taps;
        A bias = a.bias ? get(((const T *)a.bias)[at.channel]) : 0;
        i32 z0 = at.d * d.step + d.first, x0 = at.w * w.step + w.first;
        for (; at.h < at.end; at.h++, at.out += w.out) {
            A sum = 0;
            i32 y0 = at.h * h.step + h.first;
            for (i32 td = 0; td < d.taps; td++) {
                i32 z = z0 + td * d.hop;
                for (i32 th = 0; th < (inside(d, z) ? h.taps : 0); th++) {
                    i32 y = y0 + th * h.hop;
                    for (i32 tw = 0; tw < (inside(h, y) ? w.taps : 0); tw++) {
                        i32 q = x0 + tw * w.hop;
                        if (inside(w, q))
                            sum += get(weight[(td * h.taps + th) * w.taps + tw]) *
                                   get(x[z * a.b.s[0] + y * a.b.s[1] + q * a.b.s[2]]);
                    }
                }
            }
            put_result<T>(a.end, a.out, at.out, sum + bias);
        }
    }
}

/* Kernels of 3 x 3 without dilation: a thread makes ROWS results below each other, STEP rows of x apart, and reads
 * each row of x once. */
template <class T, int STEP> DEVICE void depth_3x3(const depth_args &a)
{
    typedef acc<T> A;
    const int ROWS = WK_DEPTH_ROWS;
    const depth_axis &h = a.axis[1], &w = a.axis[2];
    for (u32 i = (u32)global_thread(); i < a.walk.items; i += (u32)global_threads()) {
        depth_item at(a, i);
        const T *x = (const T *)a.b.p + at.n * a.b.n + divide(at.channel, a.multiplier) * a.b.c;
        const T *weight = (const T *)a.weight + (i64)at.channel * 9;
        A bias = a.bias ? get(((const T *)a.bias)[at.channel]) : 0, sum[ROWS], tap[9];
        i32 top = at.h * STEP + h.first, left = at.w * STEP + w.first;
        UNROLL
        for (int t = 0; t < 9; t++)
            tap[t] = get(weight[a.turned ? 8 - t : t]);
        UNROLL
        for (int o = 0; o < ROWS; o++)
            sum[o] = bias;
        UNROLL
        for (int r = 0; r < (ROWS - 1) * STEP + 3; r++) {
            A v[3];
            const T *row = x + (top + r) * a.b.s[1] + left;
            UNROLL
            for (int q = 0; q < 3; q++)
                v[q] = inside(h, top + r) && inside(w, left + q) ? get(row[q]) : 0;
            UNROLL
            for (int o = 0; o < ROWS; o++) {
                int t = r - o * STEP;
                UNROLL
                for (int q = 0; q < 3 && t >= 0 && t < 3; q++)
                    sum[o] += tap[t * 3 + q] * v[q];
            }
        }
        UNROLL
        for (int o = 0; o < ROWS; o++) {
            if (at.h + o < at.end)
                put_result<T>(a.end, a.out, at.out + (i64)o * w.out, sum[o]);
        }
    }
}

/* The pixel of the map that meets image pixel i at tap t; negative where there is none. */
DEVICE i32 met(const depth_axis &x, i32 i, i32 t)
{
    i32 at = i + x.first + t * x.hop;
    u32 o = at < 0 ? 0 : divide((u32)at, x.by_stride);
    return at < 0 || o * x.by_stride.d != (u32)at || o >= (u32)x.size ? -1 : (i32)o;
}

/* The image from a map made with a stride, or with several channels for each of the image. */
template <class T> DEVICE void depth_image(const depth_args &a)
{
    typedef acc<T> A;
    const depth_axis &d = a.axis[0], &h = a.axis[1], &w = a.axis[2];
    i32 taps = d.taps * h.taps * w.taps;
    for (u32 i = (u32)global_thread(); i < a.walk.items; i += (u32)global_threads()) {
        depth_item at(a, i);
        A bias = a.bias ? get(((const T *)a.bias)[at.channel]) : 0;
        for (; at.h < at.end; at.h++, at.out += w.out) {
            A sum = 0;
            for (i32 td = 0; td < d.taps; td++) {
                i32 z = met(d, at.d, td);
                for (i32 th = 0; th < (z < 0 ? 0 : h.taps); th++) {
                    i32 y = met(h, at.h, th);
                    for (i32 tw = 0; tw < (y < 0 ? 0 : w.taps); tw++) {
                        i32 q = met(w, at.w, tw);
                        for (u32 j = 0; j < (q < 0 ? 0 : a.multiplier.d); j++) {
                            i64 channel = (i64)at.channel * a.multiplier.d + j;
                            const T *map = (const T *)a.b.p + at.n * a.b.n + channel * a.b.c;
                            const T *weight = (const T *)a.weight + channel * taps;
                            sum += get(weight[(td * h.taps + th) * w.taps + tw]) *
                                   get(map[z * a.b.s[0] + y * a.b.s[1] + q * a.b.s[2]]);
                        }
                    }
                }
            }
            put_result<T>(a.end, a.out, at.out, sum + bias);
        }
    }
}

/* ---- sums over all pixels ---- */

struct map_pixel {
    i32 v[3];
    u32 n;
    MEMBER map_pixel(const depth_sum_args &a, u32 k)
    {
        n = divide(k, a.pixels);
        u32 at = k - n * a.pixels.d, rest = divide(at, a.axis[2].by_out), d = divide(rest, a.axis[1].by_out);
        v[0] = (i32)d;
        v[1] = (i32)(rest - d * a.axis[1].by_out.d);
        v[2] = (i32)(at - rest * a.axis[2].by_out.d);
    }
};

template <class T, class A> DEVICE void store_sum(const depth_sum_args &a, i64 at, A v)
{
    if (a.partial)
        ((A *)a.partial)[block_id_z() * (i64)a.channels * a.taps + at] = v;
    else
        ((T *)a.out)[at] = put<T>(v);
}

/* The map itself: the gradient of a bias. */
template <class T> DEVICE void channel_sum(const depth_sum_args &a)
{
    typedef acc<T> A;
    SHARED A room[256 / WAVE];
    u32 begin = block_id_z() * a.k_each, end = lesser(a.k, begin + a.k_each);
    for (u32 m = block_id(); m < a.channels; m += grid_blocks()) {
        A sum = 0;
        for (u32 k = begin + thread_id(); k < end; k += 256) {
            map_pixel o(a, k);
            i64 at = o.n * a.map.n + m * a.map.c;
            UNROLL
            for (int i = 0; i < 3; i++)
                at += o.v[i] * a.map.s[i];
            sum += get(((const T *)a.map.p)[at]);
        }
        sum = block_reduce<op_sum, 256>(sum, room);
        if (thread_id() == 0)
            store_sum<T>(a, m, sum);
    }
}

/* Nine taps from (td, th, tw) on: the map times what it was made of. */
template <class T>
DEVICE void depth_taps(const depth_sum_args &a, const T *map, const T *image, i32 td, i32 th, i32 tw, acc<T> *sum)
{
    const depth_axis &d = a.axis[0], &h = a.axis[1], &w = a.axis[2];
    u32 begin = block_id_z() * a.k_each, end = lesser(a.k, begin + a.k_each);
    for (u32 k = begin + thread_id(); k < end; k += 256) {
        map_pixel o(a, k);
        acc<T> g = get(map[o.n * a.map.n + o.v[0] * a.map.s[0] + o.v[1] * a.map.s[1] + o.v[2] * a.map.s[2]]);
        i32 z = o.v[0] * d.step + d.first + td * d.hop, y = o.v[1] * h.step + h.first + th * h.hop;
        i32 x = o.v[2] * w.step + w.first + tw * w.hop;
        const T *from = image + o.n * a.image.n + z * a.image.s[0] + y * a.image.s[1] + x * a.image.s[2];
        UNROLL
        for (int t = 0; t < 9; t++) {
            i32 r = t / 3 * h.hop, q = t % 3 * w.hop;
            if (inside(d, z) && inside(h, y + r) && inside(w, x + q))
                sum[t] += g * get(from[r * a.image.s[1] + q * a.image.s[2]]);
        }
    }
}

/* The gradient of the weights, 3 x 3 taps at a time. */
template <class T> DEVICE void depth_weight(const depth_sum_args &a)
{
    typedef acc<T> A;
    SHARED A room[256 / WAVE];
    i32 high = a.axis[1].taps, wide = a.axis[2].taps;
    for (u32 m = block_id(); m < a.channels; m += grid_blocks()) {
        const T *map = (const T *)a.map.p + m * a.map.c;
        const T *image = (const T *)a.image.p + divide(m, a.multiplier) * a.image.c;
        for (i32 row = 0; row < a.axis[0].taps * high; row += row % high + 3 < high ? 3 : high - row % high) {
            for (i32 tw = 0; tw < wide; tw += 3) {
                A sum[9] = {};
                depth_taps<T>(a, map, image, row / high, row % high, tw, sum);
                UNROLL
                for (int t = 0; t < 9; t++) {
                    A v = block_reduce<op_sum, 256>(sum[t], room);
                    if (thread_id() == 0 && row % high + t / 3 < high && tw + t % 3 < wide)
                        store_sum<T>(a, (i64)m * a.taps + (row + t / 3) * wide + tw + t % 3, v);
                }
            }
        }
    }
}
