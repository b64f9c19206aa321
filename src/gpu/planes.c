/* planes.c: kernels over planes: views and launches. */
#include "planes.h"

/* Rows walked by one, and 31 bits are enough for a plane. */
static bool has_rows(const wk_tensor *t, bool flat)
{
    int last = t->rank - 1;
    if (t->shape[last] > 1 && t->strides[last] != 1)
        return false;
    return flat || t->shape[last - 1] <= 1 ||
           t->strides[last - 1] <= (INT32_MAX - t->shape[last]) / (t->shape[last - 1] - 1);
}

wk_status wk_planes_view(const wk_tensor *t, bool flat, plane_view *v)
{
    int last = t->rank - 1, lead = t->rank - (flat ? 1 : 2);
    if (!has_rows(t, flat) && !(t = wk_tensor_packed(t)))
        return wk_error_status();
    *v = (plane_view){.p = wk_ptr(t), .c = t->strides[lead - 1]};
    if (!flat && t->shape[last - 1] > 1)
        v->row = (i32)t->strides[last - 1];
    if (lead > 1)
        v->n = t->strides[0];
    return WK_OK;
}

wk_divisor wk_planes_channels(const wk_tensor *t, bool flat)
{
    int64_t channels = t->shape[t->rank - (flat ? 2 : 3)];
    return wk_divisor_of(channels > 0 ? channels : 1);
}

i32 wk_planes_rows(int64_t threads, int64_t high)
{
    int64_t rows = threads >> 15;
    rows = rows > 4 ? 4 : rows < 1 ? 1 : rows;
    return (i32)(rows < high ? rows : high);
}

wk_status wk_planes_run(const wk_call *c, const wk_kernel *k, const wk_instance *instance, const void *args,
                        plane_walk *walk, const int64_t size[3], int lanes)
{
    int64_t planes = size[0], each = size[1] * size[2], most = INT32_MAX / each;
    walk->strips = wk_divisor_of(size[1]);
    walk->cols = wk_divisor_of(size[2]);
    for (walk->first = 0; walk->first < planes; walk->first += most) {
        int64_t left = planes - walk->first;
        walk->items = (u32)((left < most ? left : most) * each);
        wk_grid grid = {.x = wk_blocks(walk->items, k->threads / lanes, WK_GRID_MAX)};
        WK_TRY(wk_gpu_launch(c, k, instance, grid, args));
    }
    return WK_OK;
}
