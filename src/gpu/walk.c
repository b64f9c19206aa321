/* walk.c: dimensions walked by kernels. */
#include "walk.h"

void wk_gpu_walk_add(wk_gpu_walk *w, int64_t size, int64_t x, int64_t y)
{
    w->shape[w->rank] = size;
    w->strides[0][w->rank] = x;
    w->strides[1][w->rank++] = y;
}

/* Larger is further out. */
static int64_t weight(const wk_gpu_walk *w, int d)
{
    return w->shape[d] == 1 || w->strides[0][d] == 0 ? INT64_MAX : w->strides[0][d];
}

void wk_gpu_walk_sort(wk_gpu_walk *w)
{
    for (int i = 1; i < w->rank; i++) {
        for (int d = i; d > 0 && weight(w, d - 1) < weight(w, d); d--) {
            int64_t *rows[] = {w->shape, w->strides[0], w->strides[1]};
            for (int r = 0; r < 3; r++) {
                int64_t t = rows[r][d];
                rows[r][d] = rows[r][d - 1];
                rows[r][d - 1] = t;
            }
        }
    }
}

void wk_gpu_walk_join(wk_gpu_walk *w) { w->rank = wk_shape_coalesce(w->rank, w->shape, 2, w->strides); }

int64_t wk_gpu_walk_count(const wk_gpu_walk *w) { return wk_shape_count(w->rank, w->shape); }
int64_t wk_gpu_walk_inner(const wk_gpu_walk *w) { return w->rank ? w->shape[w->rank - 1] : 1; }
int64_t wk_gpu_walk_step(const wk_gpu_walk *w) { return w->rank ? w->strides[0][w->rank - 1] : 0; }

bool wk_gpu_walk_vector(const wk_gpu_walk *w, int vec)
{
    if (wk_gpu_walk_step(w) != 1 || wk_gpu_walk_inner(w) % vec)
        return false;
    for (int d = 0; d + 1 < w->rank; d++) {
        if (w->strides[0][d] % vec)
            return false;
    }
    return true;
}

wide_divisor wk_wide_divisor_of(int64_t d) { return (wide_divisor){d, 1 / (double)d}; }

walk_dims wk_gpu_walk_dims(const wk_gpu_walk *w, int vec)
{
    walk_dims k = {.rank = w->rank, .wide = wk_gpu_wide(wk_gpu_walk_count(w) / vec)};
    for (int d = 0; d < w->rank; d++) {
        int from = w->rank - 1 - d, per = d == 0 ? vec : 1;
        int64_t size = w->shape[from] / per;
        k.wide_size[d] = wk_wide_divisor_of(size);
        k.size[d] = wk_divisor_of(size < (int64_t)1 << 31 ? size : 1);
        k.x[d] = w->strides[0][from] * per;
        k.y[d] = w->strides[1][from] * per;
    }
    return k;
}
