/* planes.hip: an item's place in its plane, and the planes of a view. */
#include "device.h"
#include "planes.h"

struct plane_item {
    u32 plane;    /* of this launch */
    i32 row, col; /* the first row, in elements; col counts items */
    MEMBER plane_item(const plane_walk &w, u32 i)
    {
        u32 rest = divide(i, w.cols);
        plane = divide(rest, w.strips);
        row = (i32)(rest - plane * w.strips.d) * w.rows;
        col = (i32)(i - rest * w.cols.d);
    }
};

/* Where a plane begins. */
template <class T> DEVICE T *plane_of(const plane_view &v, const plane_walk &w, u32 plane)
{
    u32 at = (u32)w.first + plane, n = divide(at, w.channels), c = at - n * w.channels.d;
    return (T *)v.p + n * v.n + c * v.c;
}
