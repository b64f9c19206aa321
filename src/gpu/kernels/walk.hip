/* walk.hip: from the number of a place to where it lies in memory. */
#ifndef WK_KERNELS_WALK_HIP
#define WK_KERNELS_WALK_HIP
#include "device.h"
#include "walk.h"

DEVICE i64 divide(i64 n, const wide_divisor &v)
{
    i64 q = (i64)((f64)n * v.inverse), rest = n - q * v.d;
    return rest < 0 ? q - 1 : rest >= v.d ? q + 1 : q;
}

typedef struct {
    i64 x, y;
} walk_offsets;

DEVICE walk_offsets walk_to(const walk_dims &w, i64 at)
{
    walk_offsets to = {0, 0};
    if (w.rank == 1)
        return {at * w.x[0], at * w.y[0]};
    ROLLED
    for (int d = 0; d < w.rank; d++) {
        i64 rest = w.wide ? divide(at, w.wide_size[d]) : (i64)divide((u32)at, w.size[d]);
        i64 i = at - rest * w.wide_size[d].d;
        at = rest;
        to.x += i * w.x[d];
        to.y += i * w.y[d];
    }
    return to;
}

#endif
