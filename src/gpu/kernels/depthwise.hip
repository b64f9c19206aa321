/* depthwise.hip: convolutions with one image channel a group, their gradients, and the gradient of a bias. */
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

/* K: the kernel is 1 x K x K; 0: of any size. */
template <class T, int K> DEVICE void depth_map(const depth_args &a)
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
            for (i32 td = 0; td < (K ? 1 : d.taps); td++) {
                i32 z = z0 + td * d.hop;
                const T *plane = x + z * a.b.s[0], *row = weight + td * h.taps * w.taps;
                if (!inside(d, z))
                    continue;
                UNROLL
                for (i32 th = 0; th < (K ? K : h.taps); th++) {
                    i32 y = y0 + th * h.hop;
                    UNROLL
                    for (i32 tw = 0; tw < (K ? K : w.taps); tw++) {
                        i32 q = x0 + tw * w.hop;
                        if (inside(h, y) && inside(w, q))
                            sum += get(row[th * w.taps + tw]) * get(plane[y * a.b.s[1] + q * a.b.s[2]]);
                    }
                }
            }
            ((T *)a.out)[at.out] = put<T>(sum + bias);
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
            ((T *)a.out)[at.out] = put<T>(sum + bias);
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

/* The tap number t of each dimension, times its hop. */
struct tap_reach {
    i32 v[3];
    MEMBER void set(const depth_sum_args &a, u32 t)
    {
        u32 rest = divide(t, a.axis[2].by_taps), d = divide(rest, a.axis[1].by_taps);
        v[0] = (i32)d * a.axis[0].hop;
        v[1] = (i32)(rest - d * a.axis[1].by_taps.d) * a.axis[1].hop;
        v[2] = (i32)(t - rest * a.axis[2].by_taps.d) * a.axis[2].hop;
    }
};

/* The map times what it was made of: the gradient of the weights. Nine taps at a time share a pixel of the map. */
template <class T> DEVICE void depth_weight(const depth_sum_args &a)
{
    typedef acc<T> A;
    const int EACH = 9;
    SHARED A room[256 / WAVE];
    u32 begin = block_id_z() * a.k_each, end = lesser(a.k, begin + a.k_each);
    for (u32 m = block_id(); m < a.channels; m += grid_blocks()) {
        for (u32 first = 0; first < a.taps; first += EACH) {
            const T *map = (const T *)a.map.p + m * a.map.c;
            const T *image = (const T *)a.image.p + divide(m, a.multiplier) * a.image.c;
            A sum[EACH] = {};
            tap_reach tap[EACH];
            UNROLL
            for (int t = 0; t < EACH; t++)
                tap[t].set(a, first + t < a.taps ? first + t : first);
            for (u32 k = begin + thread_id(); k < end; k += 256) {
                map_pixel o(a, k);
                i64 at = o.n * a.map.n, from = o.n * a.image.n;
                UNROLL
                for (int i = 0; i < 3; i++) {
                    at += o.v[i] * a.map.s[i];
                    o.v[i] = o.v[i] * a.axis[i].step + a.axis[i].first;
                }
                A g = get(map[at]);
                UNROLL
                for (int t = 0; t < EACH; t++) {
                    i32 z = o.v[0] + tap[t].v[0], y = o.v[1] + tap[t].v[1], x = o.v[2] + tap[t].v[2];
                    if (inside(a.axis[0], z) && inside(a.axis[1], y) && inside(a.axis[2], x))
                        sum[t] += g * get(image[from + z * a.image.s[0] + y * a.image.s[1] + x * a.image.s[2]]);
                }
            }
            UNROLL
            for (int t = 0; t < EACH; t++) {
                A v = block_reduce<op_sum, 256>(sum[t], room);
                if (thread_id() == 0 && first + t < a.taps)
                    store_sum<T>(a, (i64)m * a.taps + first + t, v);
            }
        }
    }
}
